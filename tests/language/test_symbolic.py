"""Sizes that vary: one compilation serves all lengths, every answer is right, and so is every
gradient.

Each program runs over many lengths against its own run in float64 NumPy. The first length is
compiled for itself, the second makes the dimension a symbol, and from then on nothing is compiled
any more: neither a version of the function nor a lowering of the native engine.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops
from mycel._src.compiler.ir import symbols
from mycel._src.engines.native.program.template import Template
from mycel._src.staging.frontend.specialization import dynamic_shapes
from tests.language.harness import F, differences, same, total

W = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
LENGTHS = (5, 6, 2, 3, 7, 8, 31, 32, 33, 64, 100, 257)


def rows(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng((n, seed)).normal(size=(n, 3)).astype(np.float32)


def versions(jitted: Any) -> int:
    """How often a function was compiled."""
    fixed = sum(v.symbolic is None for found in jitted.versions.values() for v in found)
    return fixed + sum(c.staged for c in jitted.dimensions.calls.values())


class Count:
    """The compilations of a function, and the lowerings of the engine, since it was made."""

    def __init__(self, jitted: Any) -> None:
        self.jitted, self.before = jitted, Template.lowerings

    def check(self, most: int = 2, lowerings: int | None = None) -> None:
        assert not self.jitted.lives, str(ms.explain(self.jitted))
        assert versions(self.jitted) <= most, [
            s.plan.decisions.describe() for c in self.jitted.dimensions.calls.values() for s in c.symbolic
        ]
        assert Template.lowerings - self.before <= (lowerings or most)


PROGRAMS: list[tuple[Callable[..., Any], dict[str, Any]]] = []


def program(**options: Any) -> Any:
    def declare(fn: Any) -> Any:
        PROGRAMS.append((fn, options))
        return fn

    return declare


def soft(x: Any, axis: int) -> Any:
    e = F.exp(x - F.amax(x, axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@program()
def elementwise(x: Any) -> Any:
    return F.sin(x) * x + 1.0, F.exp(-x)


@program()
def reductions(x: Any) -> Any:
    return x.sum(), x.sum(0), x.sum(1), F.amax(x, 0), x.mean(), x.mean(0)


@program()
def soft_max(x: Any) -> Any:
    return soft(x, 0), soft(x, 1)


@program()
def product(x: Any) -> Any:
    return F.matmul(x, weights(x)), F.matmul(x, F.transpose(x, (1, 0)))


def weights(x: Any) -> Any:
    return Tensor(W) if isinstance(x, Tensor) else W


@program(tolerance=1e-3)
def attention(x: Any) -> Any:
    return F.matmul(soft(F.matmul(x, F.transpose(x, (1, 0))) / math.sqrt(3), 1), x)


@program()
def layer_norm(x: Any) -> Any:
    d = x - x.mean(1, keepdims=True)
    return d / F.sqrt((d * d).mean(1, keepdims=True) + 1e-5)


@program()
def number_of_rows(x: Any) -> Any:
    return x.sum() / x.shape[0], x * x.shape[0] + x.shape[0], x * (1 / x.shape[0]), x / math.sqrt(x.shape[0])


@program(grad=False)
def sizes_are_results(x: Any) -> Any:
    return x.shape[0], len(x), x.shape[0] * 2 + 1, x.shape[0] // 2, (x.shape[0] - 1, x.size)


@program(lengths=(5, 6, 7, 31, 64))
def parts(x: Any) -> Any:
    return x[1:], x[:-1], x[-1], x[::2], x[::-1], x[None], x[:, 0], x[1:] - x[:-1]


@program()
def joined(x: Any) -> Any:
    return F.concat((x, x * 2, x), 0), F.concat((x, x[:, :1]), 1), F.stack((x, x), 0)


@program()
def other_shapes(x: Any) -> Any:
    return x.reshape(-1), x.T.reshape(-1), x.reshape((x.shape[0], 3, 1)), F.transpose(x, (1, 0))


@program()
def made_by_size(x: Any) -> Any:
    of = ops if isinstance(x, Tensor) else np
    return x + of.arange(x.shape[0])[:, None], of.zeros((x.shape[0], 2)), of.ones((2, x.shape[0]))


@program()
def loop_over_range(x: Any) -> Any:
    s = x[0] * 0.0
    for i in range(x.shape[0]):
        s = s + x[i] * i
    return s


@program()
def loop_over_rows(x: Any) -> Any:
    s = 0.0
    for row in x:
        s = s * 0.5 + row
    return s


@program()
def loop_from_one(x: Any) -> Any:
    s = 0.0
    for i in range(1, x.shape[0]):
        s = s + (x[i] * x[i - 1]).sum() / i
    return s


@program()
def loop_while(x: Any) -> Any:
    s, i = x[0] * 0.0, 0
    while i < len(x):
        s = s + x[i]
        i += 1
    return s


@program()
def loop_with_break(x: Any) -> Any:
    s = x[0] * 0.0
    for i in range(x.shape[0]):
        if s.sum() > 2.0:
            break
        s = s + x[i]
    return s


@program()
def branch_by_value(x: Any) -> Any:
    if x.sum() > 0:
        return x * 2
    return x - 1


@program()
def while_by_value(x: Any) -> Any:
    while x.sum() < 50:
        x = x * x + 0.5
    return x


@program(lengths=(5, 6, 7, 31), grad=False)
def of_integers(x: Any) -> Any:
    return F.argmax(x, 0), F.sort(x, 0)[0] if isinstance(x, Tensor) else np.sort(x, 0)


@pytest.mark.parametrize("fn, options", PROGRAMS, ids=[fn.__name__ for fn, _ in PROGRAMS])
def test_one_compilation_serves_all_lengths(fn: Any, options: dict[str, Any]) -> None:
    if fn is of_integers:
        oracle: Any = lambda x: (np.argmax(x, 0), np.sort(x, 0))
    else:
        oracle = fn
    jitted = ms.jit(fn)
    count = Count(jitted)
    for n in options.get("lengths", LENGTHS):
        x = rows(n)
        same(jitted(Tensor(x)), oracle(x.astype(np.float64)), options.get("tolerance", 2e-4), f"length {n}")
    count.check()


@pytest.mark.parametrize(
    "fn",
    [fn for fn, o in PROGRAMS if o.get("grad", True)],
    ids=[fn.__name__ for fn, o in PROGRAMS if o.get("grad", True)],
)
def test_gradients(fn: Any) -> None:
    value = lambda x: total(fn(x))
    inside, outside = ms.jit(ms.grad(value)), ms.grad(ms.jit(value))
    count = Count(inside)
    for n in (5, 6, 8):
        x = rows(n, 3)
        expected = differences(fn, [x], 0)
        same(inside(Tensor(x)), expected, 2e-3, f"the compiled gradient at length {n}")
        same(outside(Tensor(x)), expected, 2e-3, f"the gradient of the compiled function at length {n}")
    assert versions(inside) <= 2 and not inside.lives
    assert count.before < Template.lowerings


def everything(x: Any, w: Any) -> Any:
    h = F.maximum(F.matmul(x, w), 0.0 * x[0, 0])
    d = h - h.mean(1, keepdims=True)
    h = d / F.sqrt((d * d).mean(1, keepdims=True) + 1e-5)
    a = F.matmul(soft(F.matmul(h, F.transpose(h, (1, 0))) / 2.0, 1), h)
    s = a[0] * 0.0
    for i in range(x.shape[0]):
        s = s * 0.5 + a[i]
    return s.sum() + (a.mean(0) * x.shape[0]).sum()


def test_a_thousand_lengths() -> None:
    f = ms.jit(lambda x, w: (F.sin(x).sum(0) / x.shape[0], soft(x, 0).max(), F.matmul(x[:2], w)))
    count = Count(f)
    for n in range(2, 1002):
        x = rows(n)
        expected = np.sin(x).sum(0) / n, soft(x.astype(np.float64), 0).max(), x[:2] @ W
        same(f(Tensor(x), Tensor(W)), expected, 1e-3, f"length {n}")
    count.check()


def test_a_block_of_a_network_and_its_gradient() -> None:
    f = ms.jit(ms.value_and_grad(everything))
    count = Count(f)
    for n in (4, 6, 5, 9, 33, 70):
        x = rows(n)
        value, slope = f(Tensor(x), Tensor(W))
        same(value, everything(x.astype(np.float64), W.astype(np.float64)), 2e-3, f"length {n}")
        if n < 8:
            expected = differences(lambda a: everything(a, W.astype(np.float64)), [x], 0)
            same(slope, expected, 5e-3, f"length {n}")
    count.check()


def test_a_training_step_with_a_batch_that_varies() -> None:
    ms.set_seed(3)
    net = nn.SequentialCell(nn.Dense(3, 8), nn.ReLU(), nn.LayerNorm((8,)), nn.Dense(8, 2))
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, optimizer.parameters)

    def step(x: Any, y: Any) -> Any:
        loss, grads = gradient(x, y)
        optimizer(grads)
        return loss

    jitted = ms.jit(step)
    count = Count(jitted)
    losses = []
    for k in range(40):
        x = rows(8 + k % 7)
        losses.append(float(jitted(Tensor(x), Tensor((x[:, 0] > 0).astype(np.int32)))))
    count.check()
    assert losses[-1] < 0.5 * losses[0]


def test_convolution_and_pooling() -> None:
    kernel = np.random.default_rng(0).normal(size=(2, 3, 3, 3)).astype(np.float32)

    def f(x: Any) -> Any:
        return ops.max_pool2d(ops.relu(ops.conv2d(x, Tensor(kernel))), 2)

    jitted, eager = ms.jit(f), f
    count = Count(jitted)
    for n in (6, 8, 10, 14, 30):
        x = np.random.default_rng(n).normal(size=(2, 3, n, n)).astype(np.float32)
        found = jitted(Tensor(x)).asnumpy()
        patches = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (2, 3))
        wide = np.maximum(np.einsum("bcyxij,ocij->boyx", patches, kernel), 0)
        m = (n - 2) // 2
        expected = wide[:, :, : 2 * m, : 2 * m].reshape(2, 2, m, 2, m, 2).max((3, 5))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert versions(jitted) <= 2 and eager is f
    assert not jitted.lives
    assert Template.lowerings > count.before


# Which dimensions are symbols.


def test_dimensions_that_vary_apart_are_apart() -> None:
    f = ms.jit(lambda x, y: (x.sum(), F.concat((x, y), 0)))
    count = Count(f)
    for n, m in ((4, 6), (5, 7), (9, 2), (3, 3), (8, 100)):
        x, y = rows(n), rows(m, 1)
        same(f(Tensor(x), Tensor(y)), (x.sum(), np.concatenate((x, y))), 1e-4, f"lengths {n} and {m}")
    count.check()


def test_dimensions_that_have_to_be_equal() -> None:
    f = ms.jit(lambda x, y: x + y)
    count = Count(f)
    for n in (4, 5, 6, 50):
        same(f(Tensor(rows(n)), Tensor(rows(n, 1))), rows(n) + rows(n, 1), 1e-6, f"length {n}")
    count.check()
    same(f(Tensor(rows(7)), Tensor(rows(1, 1))), rows(7) + rows(1, 1), 1e-6, "broadcast")
    with pytest.raises(ValueError, match="broadcast"):
        f(Tensor(rows(7)), Tensor(rows(6)))
    same(f(Tensor(rows(6)), Tensor(rows(6, 1))), rows(6) + rows(6, 1), 1e-6, "after an error")


def test_sizes_of_0_and_1_are_their_own() -> None:
    f = ms.jit(lambda x: (x * 2 + x.sum(0), x.sum()))
    for n in (3, 4, 1, 0, 7, 1, 0, 2):
        x = rows(n)
        same(f(Tensor(x)), (x * 2 + x.sum(0), x.sum()), 1e-5, f"length {n}")
    assert versions(f) <= 4


def test_the_program_may_ask_for_a_size() -> None:
    def f(x: Any) -> Any:
        return x * 2 if x.shape[0] > 50 else x + x.shape[0] % 2

    jitted = ms.jit(f)
    for n in (4, 5, 60, 61, 7, 100, 49, 50, 51):
        same(jitted(Tensor(rows(n))), f(rows(n)), 1e-5, f"length {n}")
    assert versions(jitted) <= 5 and not jitted.lives


def test_a_size_that_the_program_fixes_is_a_constant() -> None:
    def f(x: Any) -> Any:
        return x + len(f"{x.shape[0]}"), [x[i].sum() * i for i in range(x.shape[0])]

    jitted = ms.jit(f)
    for n in (9, 10, 11, 9, 10, 11):
        same(jitted(Tensor(rows(n))), f(rows(n)), 1e-5, f"length {n}")
    assert versions(jitted) <= 3


def test_a_size_that_is_fixed_in_the_middle_is_constant_everywhere() -> None:
    def loss(x: Any, labels: Any) -> Any:
        rebuilt = ops.cat([x[i : i + 1] for i in range(int(x.shape[0]))], 0)
        return ops.cross_entropy(rebuilt.reshape(-1, 3), labels.reshape(-1))

    jitted = ms.jit(ms.value_and_grad(loss))
    for n in (9, 10, 11, 9, 10, 11):
        x = np.stack([rows(n), rows(n, 1)], 1)
        labels = np.random.default_rng(n).integers(0, 3, (n, 2))
        power = np.exp(x.astype(np.float64))
        chances, right = power / power.sum(2, keepdims=True), np.eye(3)[labels]
        expected = -np.log((chances * right).sum(2)).mean(), (chances - right) / (2 * n)
        same(jitted(Tensor(x), Tensor(labels.astype(np.int32))), expected, 1e-5, f"length {n}")
    assert versions(jitted) <= 3


def test_what_else_is_read_is_guarded_for_all_sizes() -> None:
    scale = [2.0]
    f = ms.jit(lambda x: x * scale[0])
    for n in (4, 5, 6, 7):
        same(f(Tensor(rows(n))), rows(n) * 2, 1e-6, f"length {n}")
    scale[0] = 3.0
    for n in (4, 5, 6, 8):
        same(f(Tensor(rows(n))), rows(n) * 3, 1e-6, f"length {n} after a change")


def test_dynamic_from_the_first_call() -> None:
    f = ms.jit(lambda x: x.sum(0) * 2, dynamic=1)
    count = Count(f)
    for n in (4, 5, 9):
        x = np.random.default_rng(n).normal(size=(n, n + 1)).astype(np.float32)
        same(f(Tensor(x)), x.sum(0) * 2, 1e-5, f"length {n}")
    count.check(1)


class Net(nn.Cell):
    def construct(self, x: Any) -> Any:
        return ops.abs(x).sum(0)


@pytest.fixture
def graph_mode() -> Any:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.usefixtures("graph_mode")
def test_declared_inputs() -> None:
    net = Net()
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
    before = Template.lowerings
    for n in (4, 5, 100, 1):
        same(net(Tensor(rows(n))), np.abs(rows(n)).sum(0), 1e-4, f"length {n}")
    assert Template.lowerings - before <= 2
    with pytest.raises(ValueError, match=r"do not fit those declared by set_inputs.*d\d+, 3.*4, 5"):
        net(Tensor(np.zeros((4, 5), np.float32)))


@pytest.mark.usefixtures("graph_mode")
def test_declared_inputs_of_any_rank() -> None:
    class Both(nn.Cell):
        def construct(self, x: Any, y: Any) -> Any:
            return (x * y).sign() + x.mean(keepdims=True).round(decimals=1)

    class Slopes(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.grad = Both(), ops.GradOperation(get_all=True)

        def construct(self, x: Any, y: Any) -> Any:
            return self.grad(self.net)(x, y)

    net, slopes, plain = Both(), Slopes(), Both()
    anything = Tensor(shape=None, dtype=ms.float32)
    for cell in (net, slopes):
        cell.set_inputs(anything, anything)
    for shape in ((), (3,), (2, 3), (2, 3, 4), (5, 4), (4,), (1, 1), (0, 2)):
        x = Tensor(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))
        same(net(x, x), plain(x, x).asnumpy(), 1e-6, str(shape))
        assert [g.shape for g in slopes(x, x)] == [shape, shape]
    # One graph for a number of dimensions, whatever the sizes are.
    before = Template.lowerings
    for n in (7, 8, 9):
        x = Tensor(rows(n))
        same(net(x, x), np.sign(rows(n) ** 2) + rows(n).mean().round(1), 1e-4, f"length {n}")
    assert Template.lowerings == before
    one, more = Tensor(rows(1)[0]), Tensor(rows(4))
    same(net(more, one), plain(more, one).asnumpy(), 1e-6, "two ranks")
    net = Both()
    net.set_inputs(anything, Tensor(shape=[None, 3], dtype=ms.float32))
    with pytest.raises(ValueError, match=r"expected float32 of any rank, float32\[d\d+, 3\], got float32\[3\]"):
        net(one, one)
    with pytest.raises(ValueError, match="any rank.*got int32"):
        net(more.astype(ms.int32), more)


@pytest.mark.usefixtures("graph_mode")
def test_declared_sizes_are_none_of_those_of_inputs_of_any_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each counts the names that it has given.
    monkeypatch.setattr(dynamic_shapes, "_numbers", itertools.count(1000))
    monkeypatch.setattr(symbols, "_numbers", itertools.count(1000))

    class Both(nn.Cell):
        def construct(self, x: Any, y: Any) -> Any:
            return x.sum(-1) + y.mean()

    net = Both()
    net.set_inputs(Tensor(shape=None, dtype=ms.float32), Tensor(shape=[None, 3], dtype=ms.float32))
    for n, m in ((5, 4), (4, 5), (2, 2)):
        assert float(net.compile_and_run(ops.ones(n), ops.ones((m, 3)))) == n + 1


@pytest.mark.usefixtures("graph_mode")
def test_symbols() -> None:
    odd, small = ms.Symbol(divisor=8, remainder=1), ms.Symbol(max=32, unique=True)
    net = Net()
    net.set_inputs(Tensor(shape=(None, odd, odd, small, small), dtype=ms.float32))
    for shape in ((2, 9, 17, 8, 8), (3, 25, 9, 5, 5), (2, 17, 33, 6, 6)):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        same(net(Tensor(x)), np.abs(x).sum(0), 1e-4, str(shape))
    for shape in ((2, 8, 17, 8, 8), (2, 9, 17, 8, 7), (2, 9, 17, 33, 33)):
        with pytest.raises(ValueError, match="do not fit"):
            net(Tensor(np.zeros(shape, np.float32)))


def test_what_a_symbol_may_say() -> None:
    assert repr(ms.Symbol(max=8)) == "Symbol(max=8, min=1, divisor=1, remainder=0, unique=False)"
    for wrong, error in (
        ({"min": 0}, ValueError),
        ({"divisor": 0}, ValueError),
        ({"remainder": 1}, ValueError),
        ({"max": 1.5}, TypeError),
        ({"unique": 1}, TypeError),
        ({"least": 1}, TypeError),
    ):
        with pytest.raises(error, match="Symbol"):
            ms.Symbol(**wrong)


# Sizes that data decide.

OPEN: list[Callable[..., Any]] = []


def by_data(fn: Any) -> Any:
    OPEN.append(fn)
    return fn


@by_data
def masked(x: Any) -> Any:
    return x[x > 0]


@by_data
def masked_rows(x: Any) -> Any:
    return x[x.sum(1) > 0] * 2.0 + 1.0


@by_data
def masked_sums(x: Any) -> Any:
    return x[x > 0].sum(), (x[x > 0.5] ** 2).sum(), x[x > 0].sum() / x.shape[0]


@by_data
def masked_twice(x: Any) -> Any:
    y = x[x[:, 0] > 0]
    z = y[y[:, 1] > 0]
    return z.sum(0), z.shape[0], y.shape[0] + 1


@by_data
def masked_product(x: Any) -> Any:
    return F.matmul(x[x[:, 0] > 0], weights(x)).sum(0)


@by_data
def one_mask_for_two(x: Any) -> Any:
    keep = x > 0
    return x[keep] * F.exp(x)[keep]


@pytest.mark.parametrize("fn", OPEN, ids=[fn.__name__ for fn in OPEN])
def test_sizes_that_data_decide(fn: Any) -> None:
    jitted = ms.jit(fn, fullgraph=True)
    for n in (5, 6, 7, 31, 64, 3, 100):
        same(jitted(Tensor(rows(n))), fn(rows(n).astype(np.float64)), 2e-4, f"length {n}")
    same(jitted(Tensor(-np.abs(rows(9)))), fn(-np.abs(rows(9)).astype(np.float64)), 2e-4, "nothing chosen")
    assert versions(jitted) <= 2 and not jitted.lives


@pytest.mark.parametrize("fn", OPEN, ids=[fn.__name__ for fn in OPEN])
def test_gradients_where_data_decide_sizes(fn: Any) -> None:
    value = lambda x: total(fn(x))
    inside, outside = ms.jit(ms.grad(value), fullgraph=True), ms.grad(ms.jit(value))
    for n in (5, 6, 7):
        expected = differences(fn, [rows(n)], 0)
        same(inside(Tensor(rows(n))), expected, 2e-3, f"the compiled gradient at length {n}")
        same(outside(Tensor(rows(n))), expected, 2e-3, f"the gradient of the compiled function at length {n}")


def test_positions_and_distinct_elements() -> None:
    def f(x: Any) -> Any:
        values, places = ops.unique(ops.floor(x * 2))
        return ops.nonzero(x > 0), ops.argwhere(x > 1), ops.masked_select(x, x > 0.5), values, places

    jitted = ms.jit(f, fullgraph=True)
    for n in (5, 6, 7, 31, 64):
        x = rows(n)
        _, first = np.unique(np.floor(x * 2), return_index=True)
        values = np.floor(x * 2).reshape(-1)[np.sort(first)]
        places = np.argmax(np.floor(x * 2)[..., None] == values, -1)
        expected = (np.argwhere(x > 0), np.argwhere(x > 1), x[x > 0.5], values, places)
        same(jitted(Tensor(x)), expected, 1e-6, f"length {n}")
    assert versions(jitted) <= 2


def test_counts_of_distinct_elements_and_nan() -> None:
    x = np.array([2.0, np.nan, 1.0, 2.0, np.nan, 2.0], np.float32)
    f = ms.jit(lambda t: (t * 1.0).unique(return_inverse=True, return_counts=True), fullgraph=True)
    values, places, counts = f(Tensor(x))
    np.testing.assert_array_equal(values.asnumpy(), np.array([1.0, 2.0, np.nan], np.float32))
    assert places.tolist() == [1, 2, 0, 1, 2, 1] and counts.tolist() == [1, 3, 2]


def test_where_a_size_that_data_decide_cannot_be_compiled() -> None:
    def in_branch(x: Any) -> Any:
        if x.sum() > 0:
            return x[x > 0].sum()
        return x.sum()

    def asked(x: Any) -> Any:
        y = x[x > 0]
        return x.sum() if y.shape[0] == 0 else y.sum()

    for fn in (in_branch, asked):
        jitted = ms.jit(fn)
        for x in (rows(5), -np.abs(rows(6)), rows(7)):
            same(jitted(Tensor(x)), fn(x), 1e-5, fn.__name__)
        assert jitted.lives
        with pytest.raises(ms.errors.CompileError, match="size u|positions at which a mask holds"):
            ms.jit(fn, fullgraph=True)(Tensor(rows(5)))
