"""Gradients by large tables that stay rows: values against NumPy, and that nothing of the table's
size is made where nobody asks for it.
"""

import copy
import pickle

import numpy as np
import pytest

import mycel as ms
from mycel import mint, nn, ops
from mycel._src.tensors.core.autograd.sparse_gradient import bytes_in_rows

SIZE, WIDTH = 40_000, 8


def _table(seed=0):
    drawn = np.random.default_rng(seed).standard_normal((SIZE, WIDTH)).astype(np.float32)
    return ms.Parameter(ms.Tensor(drawn), name=f"table{seed}"), drawn.astype(np.float64)


def _indices(seed, n, kind=np.int32):
    found = np.random.default_rng(seed).integers(0, SIZE, n).astype(kind)
    found[: n // 4] = found[n // 2 : n // 2 + n // 4]  # some of them twice
    return found


def _added(*pairs):
    total = np.zeros((SIZE, WIDTH))
    for indices, rows in pairs:
        np.add.at(total, indices, rows)
    return total


def _read(kind, table, indices):
    if kind == "x[t]":
        return table[ms.Tensor(indices)]
    if kind == "gather":
        return ops.gather(table, ms.Tensor(indices), 0)
    if kind == "embedding":
        return mint.nn.functional.embedding(ms.Tensor(indices), table)
    return mint.index_select(table, 0, ms.Tensor(indices))


@pytest.mark.parametrize("kind", ["x[t]", "gather", "embedding", "index_select"])
@pytest.mark.parametrize("integer", [np.int32, np.int64])
def test_the_gradient_of_reading_rows_is_rows_until_it_is_looked_at(kind, integer):
    table, _ = _table()
    indices, factors = _indices(1, 37, integer), np.random.default_rng(2).standard_normal((37, WIDTH))
    weight = ms.Tensor(factors.astype(np.float32))
    gradient = ms.grad(lambda: (_read(kind, table, indices) * weight).sum(), None, table)
    for _ in range(3):  # operation by operation, compiled, and compiled before
        found = gradient()
        assert bytes_in_rows([found]) == SIZE * WIDTH * 4 and found.shape == (SIZE, WIDTH)
        np.testing.assert_allclose(found.asnumpy(), _added((indices, factors)), rtol=1e-5, atol=1e-5)
        assert bytes_in_rows([found]) == 0 and type(found) is ms.Tensor


def test_small_tables_and_many_rows_are_dense():
    table, _ = _table()
    many = _indices(0, SIZE)
    assert not bytes_in_rows([ms.grad(lambda: _read("gather", table, many).sum(), None, table)()])
    small = ms.Parameter(ms.Tensor(np.ones((100, 4), np.float32)))
    assert not bytes_in_rows([ms.grad(lambda: small[ms.Tensor([1, 2])].sum(), None, small)()])


@pytest.mark.parametrize("copies", [2, 7])
def test_several_reads_of_one_table_are_one_list_of_rows(copies):
    table, values = _table()
    lists = [_indices(k, 5 + k, np.int32 if k % 2 else np.int64) for k in range(copies)]

    def loss():
        total = 0.0
        for indices in lists:
            total = total + (_read("gather", table, indices) ** 2).sum()
        return total

    wanted = _added(*[(i, 2 * values[i]) for i in lists])
    for _ in range(3):
        found = ms.grad(loss, None, table)()
        assert bytes_in_rows([found])
        np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-5, atol=1e-5)


def test_a_tied_table_has_a_dense_gradient():
    table, values = _table()
    indices = _indices(3, 6)
    x = np.random.default_rng(4).standard_normal((3, WIDTH)).astype(np.float32)

    def loss():
        return (_read("gather", table, indices) ** 2).sum() + ops.matmul(table, ms.Tensor(x.T)).sum()

    wanted = _added((indices, 2 * values[indices])) + x.astype(np.float64).sum(0)
    for _ in range(3):
        found = ms.grad(loss, None, table)()
        assert not bytes_in_rows([found])
        np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-4, atol=1e-4)


def _loss(table, other, indices):
    return (ops.matmul(ops.gather(table, indices, 0), other) ** 2).sum()


_OPTIMIZERS = {
    "SGD": lambda p: nn.SGD(p, 0.1),
    "SGD decayed": lambda p: nn.SGD(p, 0.1, weight_decay=0.01),
    "Momentum": lambda p: nn.Momentum(p, 0.1, 0.9),
    "Adam": lambda p: nn.Adam(p, 0.1),
    "Adagrad": lambda p: nn.Adagrad(p, learning_rate=0.1),
    "scaled": lambda p: nn.SGD(p, 0.1, loss_scale=4.0),
    "mint": lambda p: mint.optim.AdamW(p, 0.1),
    "experimental": lambda p: ms.experimental.optim.SGD(p, 0.1),
}


@pytest.mark.parametrize("name", _OPTIMIZERS)
def test_steps_with_rows_are_steps_with_tables(name):
    """The same steps with gradients that were looked at before the step."""
    results = []
    for look in (False, True):
        table, _ = _table()
        other = ms.Parameter(ms.Tensor(np.ones((WIDTH, 3), np.float32)), name="other")
        optimizer = _OPTIMIZERS[name]([table, other])
        for step in range(6):
            indices = _indices(step, 20 + step % 3)
            gradients = ms.grad(_loss, None, [table, other])(table, other, ms.Tensor(indices))
            assert bytes_in_rows(gradients)
            if look:
                gradients[0].asnumpy()
            optimizer(gradients)
            if step >= 3:
                assert bool(bytes_in_rows(gradients)) is not look
        results.append((table.asnumpy().copy(), other.asnumpy().copy()))
    for rows, dense in zip(*results):
        np.testing.assert_allclose(rows, dense, rtol=2e-5, atol=2e-6)


def test_descent_against_numpy_in_float64():
    table, values = _table()
    embedding = nn.Embedding(SIZE, WIDTH, embedding_table=ms.Tensor(values.astype(np.float32)))
    step = nn.TrainOneStepCell(nn.WithLossCell(embedding, nn.MSELoss()), nn.SGD(embedding.trainable_params(), 0.5))
    for k in range(6):
        n = 9 if k < 4 else 9 + k
        indices, label = _indices(k, n), np.random.default_rng(k).standard_normal((n, WIDTH)).astype(np.float32)
        step(ms.Tensor(indices), ms.Tensor(label))
        values -= 0.5 * _added((indices, 2 * (values[indices] - label) / label.size))
        np.testing.assert_allclose(embedding.embedding_table.asnumpy(), values, rtol=1e-5, atol=1e-6)


def test_rows_that_are_used_otherwise_are_tables():
    table, values = _table()
    indices = _indices(5, 12)
    wanted = _added((indices, 2 * values[indices]))

    def fresh():
        return ms.grad(lambda: (table[ms.Tensor(indices)] ** 2).sum(), None, [table])()[0]

    uses = [
        lambda g: (g + g).asnumpy() / 2,
        lambda g: ops.stop_gradient(g).asnumpy(),
        lambda g: copy.deepcopy(g).asnumpy(),
        lambda g: copy.copy(g).asnumpy(),
        lambda g: pickle.loads(pickle.dumps(g)).asnumpy(),
        lambda g: ms.Tensor(g).asnumpy(),
        lambda g: ms.Parameter(g).asnumpy(),
        lambda g: ms.jit(lambda x: x * 1.0)(g).asnumpy(),
        lambda g: np.asarray(g),
        lambda g: np.stack([r.asnumpy() for r in g.split(SIZE // 2)]).reshape(SIZE, WIDTH),
        lambda g: ops.relu(g).asnumpy() - ops.relu(-g).asnumpy(),
        lambda g: ops.clip_by_global_norm((g,), 1.0)[0].asnumpy() * np.linalg.norm(wanted),
    ]
    for use in uses:
        np.testing.assert_allclose(use(fresh()), wanted, rtol=1e-4, atol=1e-4)
    g = fresh()
    g[0] = 7.0
    assert g[0].asnumpy().tolist() == [7.0] * WIDTH
    assert repr(fresh())[:7] == "Tensor(" and isinstance(fresh(), ms.Tensor)


def test_clipped_and_accumulated_gradients_step_as_dense_ones():
    table, values = _table()
    optimizer = nn.SGD([table], 0.5)
    for k in range(5):
        a, b = _indices(k, 8), _indices(k + 50, 11)
        first = ms.grad(lambda i=a: (table[ms.Tensor(i)] ** 2).sum(), None, [table])()
        second = ms.grad(lambda i=b: table[ms.Tensor(i)].sum(), None, [table])()
        clipped = ops.clip_by_global_norm(tuple(x + y for x, y in zip(first, second)), 3.0)
        optimizer(clipped)
        g = _added((a, 2 * values[a]), (b, np.ones((len(b), WIDTH))))
        values -= 0.5 * g * min(1.0, 3.0 / np.linalg.norm(g))
        np.testing.assert_allclose(table.asnumpy(), values, rtol=1e-5, atol=1e-5)


def test_hooks_see_the_whole_gradient():
    table, values = _table()
    indices, seen = _indices(6, 5), []
    handle = table.register_hook(lambda g: seen.append(g.asnumpy().copy()))
    for _ in range(2):
        ms.grad(lambda: table[ms.Tensor(indices)].sum(), None, table)()
    handle.remove()
    for g in seen:
        np.testing.assert_allclose(g, _added((indices, np.ones((5, WIDTH)))))
    assert len(seen) == 2


def test_a_second_derivative_goes_through_rows():
    table, values = _table()
    indices = _indices(7, 5)

    def slope(x):
        return ms.grad(lambda: (table[ms.Tensor(indices)] ** 3).sum() * x, None, table)().sum()

    found = ms.grad(slope)(ms.Tensor(2.0))
    np.testing.assert_allclose(float(found), 3 * (values[indices] ** 2).sum(), rtol=1e-4)


@pytest.mark.parametrize("bounds", [-1, SIZE])
def test_indices_out_of_range_are_errors_and_change_nothing(bounds):
    table, values = _table()
    optimizer = nn.SGD([table], 0.5)
    indices = np.array([3, bounds, 5], np.int32)

    def step():
        optimizer(ms.grad(lambda: table[ms.Tensor(indices)].sum(), None, [table])())

    if bounds < 0:
        step()
        values[[3, bounds, 5]] -= 0.5
    else:
        with pytest.raises(IndexError):
            step()
    np.testing.assert_allclose(table.asnumpy(), values, rtol=1e-6)
