"""Indices out of range are errors: every operation that takes indices, in every way of running it,
with every kind of wrong index.

An operation is a function of x, float32 (4, 3), and indices i (2,), of which each names one of 4
places. The ways of running it are a call at once, a compiled function, one for all sizes, its
gradient alone (where the operation itself need not be computed), a batch of one or of both
arguments, and a loop in whose third round the index gets out of range. Masked examples and branches
that are not taken are no errors.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, mint, ops
from mycel._src.foundation.errors import IndexRangeError

SIZE = 4
X = np.arange(12.0, dtype=np.float32).reshape(SIZE, 3)


def rows(i: Any) -> Any:
    return ops.reshape(i, (2, 1))


def wide(i: Any) -> Any:
    return ops.broadcast_to(rows(i), (2, 3))


def set_at(x: Any, i: Any) -> Any:
    y = x * 1.0
    y[i] = 7.0
    return y


def set_at_both(x: Any, i: Any) -> Any:
    y = x * 1.0
    y[i, 0] = 7.0
    return y


def set_at_one(x: Any, i: Any) -> Any:
    y = x * 1.0
    y[i[1]] = 7.0
    return y


def ones(x: Any) -> Any:
    return ops.ones_like(x[:2]) * x[0, 0]


def logits(x: Any) -> Any:
    return ops.transpose(x[:, :2], (1, 0))


Function = Callable[[Any, Any], Any]
# Negative indices count from the end.
WRAPS: dict[str, Function] = {
    "x[i]": lambda x, i: x[i],
    "x[i, j]": lambda x, i: x[i, i * 0],
    "x[:, i]": lambda x, i: ops.transpose(x, (1, 0))[:, i],
    "x[t]": lambda x, i: x[i[1]],
    "x[t, :2]": lambda x, i: x[i[1], :2],
    "x[i] = y": set_at,
    "x[i, j] = y": set_at_both,
    "x[t] = y": set_at_one,
    "gather": lambda x, i: ops.gather(x, i, 0),
    "gather, batches": lambda x, i: ops.gather(logits(x), rows(i), 1, 1),
    "gather_elements": lambda x, i: ops.gather_elements(x, 0, wide(i)),
    "gather_d": lambda x, i: ops.gather_d(x, 0, rows(i)),
    "index_select": lambda x, i: ops.index_select(x, 0, i),
    "take": lambda x, i: ops.take(x[:, 0], i),
    "Tensor.take": lambda x, i: x.take(i, 0, mode="raise"),
    "embedding": lambda x, i: ops.embedding(i, x),
    "mint.gather": lambda x, i: mint.gather(x, 0, wide(i)),
    "take_along_axis": lambda x, i: ms.numpy.take_along_axis(x, rows(i), 0),
    "scatter": lambda x, i: ops.scatter(x, 0, wide(i), ones(x)),
    "scatter_add": lambda x, i: x.scatter_add(0, wide(i), ones(x)),
    "index_fill": lambda x, i: ops.index_fill(x, 0, i, 2.0) * x[0, 1],
    "index_put": lambda x, i: x.index_put((i,), ones(x)),
    "index_put, add": lambda x, i: x.index_put((i,), ones(x), True),
    "inplace_update": lambda x, i: ops.inplace_update(x, ones(x), i),
    "searchsorted, sorter": lambda x, i: ops.searchsorted(x[:, 0], x[:, 1], sorter=ops.concat((i, i))) + x[0, 0],
}
FRONT: dict[str, Function] = {
    "gather_nd": lambda x, i: ops.gather_nd(x, rows(i)),
    "scatter_nd": lambda x, i: ops.scatter_nd(rows(i), ones(x), (4, 3)),
    "tensor_scatter_update": lambda x, i: ops.tensor_scatter_update(x, rows(i), ones(x)),
    "tensor_scatter_add": lambda x, i: ops.tensor_scatter_add(x, rows(i), ones(x)),
    "tensor_scatter_sub": lambda x, i: ops.tensor_scatter_sub(x, rows(i), ones(x)),
    "tensor_scatter_mul": lambda x, i: ops.tensor_scatter_mul(x, rows(i), ones(x)),
    "tensor_scatter_max": lambda x, i: ops.tensor_scatter_max(x, rows(i), ones(x)),
    "index_add": lambda x, i: ops.index_add(x, i, ones(x), 0),
    "inplace_add": lambda x, i: ops.inplace_add(x, ones(x), i),
    "cross_entropy": lambda x, i: ops.cross_entropy(logits(x), i),
    "nll_loss": lambda x, i: ops.nll_loss(logits(x), i, reduction="sum"),
    "nll_loss, weight": lambda x, i: ops.nll_loss(logits(x), i, ops.ones(4)),
    "multi_margin_loss": lambda x, i: ops.multi_margin_loss(logits(x), i),
    "ctc_loss": lambda x, i: ops.ctc_loss(
        ops.log_softmax(ops.broadcast_to(logits(x), (3, 2, 4)), 2), rows(i), Tensor([3, 3]), Tensor([1, 1])
    )[0],
    "max_unpool1d": lambda x, i: ops.max_unpool1d(x[:1, :2].reshape((1, 1, 2)), i.reshape((1, 1, 2)), 2),
    "csr_to_dense": lambda x, i: ops.csr_to_dense(ms.CSRTensor(Tensor([0, 1, 2]), i, x[0, :2], (2, 4))),
    "coo_to_dense": lambda x, i: ms.COOTensor(ops.stack((i, i * 0), 1), x[0, :2], (4, 1)).to_dense(),
}
# Negative numbers belong nowhere.
SEGMENTS: dict[str, Function] = {
    "unsorted_segment_sum": lambda x, i: ops.unsorted_segment_sum(x[:2], i, 4),
    "multilabel_margin_loss": lambda x, i: ops.multilabel_margin_loss(logits(x), ops.broadcast_to(rows(i), (2, 4))),
    "unsorted_segment_max": lambda x, i: ops.unsorted_segment_max(x[:2], i, 4),
}
ALL = {**WRAPS, **FRONT, **SEGMENTS}
# Known to Python at once.
SCALARS = {"x[t]", "x[t, :2]", "x[t] = y"}


def wrong(name: str) -> list[int]:
    below = [] if name in SEGMENTS else [-SIZE - 1 if name in WRAPS else -1]
    return [SIZE, 10**6, *below]


def error(index: int) -> Any:
    return pytest.raises(IndexRangeError, match=rf"index {index} is out of range for axis \d of size 4; use one in \[")


def indices(*values: int, kind: Any = np.int32) -> Tensor:
    return Tensor(np.array(values, kind))


@pytest.mark.parametrize("name", ALL)
def test_at_once(name: str) -> None:
    f = ALL[name]
    f(Tensor(X), indices(0, 3))
    if name in WRAPS:
        np.testing.assert_array_equal(f(Tensor(X), indices(0, -4)).asnumpy(), f(Tensor(X), indices(0, 0)).asnumpy())
    for index in wrong(name):
        if name in SCALARS:
            with pytest.raises(IndexError, match=f"index {index} is out of range for axis 0 of size 4"):
                f(Tensor(X), indices(0, index))
        else:
            with error(index):
                f(Tensor(X), indices(0, index))
            with error(index):
                ms.grad(lambda x: f(x, indices(0, index)).sum())(Tensor(X))  # noqa: B023


@pytest.mark.parametrize("name", ALL)
def test_in_compiled_functions(name: str) -> None:
    f = ms.jit(ALL[name])
    f(Tensor(X), indices(0, 3))
    for index in wrong(name):
        with error(index):
            f(Tensor(X), indices(0, index))
    with error(2**40):
        f(Tensor(X), indices(0, 2**40, kind=np.int64))
    f(Tensor(X), indices(0, 3))


@pytest.mark.parametrize("name", ALL)
def test_where_only_the_derivative_is_wanted(name: str) -> None:
    def total(x: Any, i: Any) -> Any:
        y = ALL[name](x, i)
        return (y * y).sum()

    f = ms.jit(ms.grad(total))
    f(Tensor(X), indices(0, 3))
    for index in wrong(name):
        with error(index):
            f(Tensor(X), indices(0, index))


@pytest.mark.parametrize("name", ALL)
def test_in_batches(name: str) -> None:
    f = ALL[name]
    shared, own = ms.jit(ms.vmap(f, (None, 0))), ms.jit(ms.vmap(f, (0, 0)))
    good, xs = indices([0, 3], [2, 1]), Tensor(np.stack([X, X]))
    shared(Tensor(X), good), own(xs, good)
    for index in wrong(name):
        bad = indices([0, 3], [2, index])
        with pytest.raises(IndexRangeError, match=f"index {index} is out of range"):
            shared(Tensor(X), bad)
        with pytest.raises(IndexRangeError, match=f"index {index} is out of range"):
            own(xs, bad)


@pytest.mark.parametrize("name", ALL)
def test_in_a_loop(name: str) -> None:
    def looped(x: Any, i: Any, n: Any) -> Any:
        total, k = x.sum() * 0.0, n * 0
        while k < n:
            total = total + ALL[name](x, i).sum()
            i = ops.stack((i[0] * 0, i[1] + 1))
            k = k + 1
        return total

    f = ms.jit(looped)
    for run in (f, ms.jit(ms.grad(looped))):
        run(Tensor(X), indices(0, 2), Tensor(2))
        with error(4):
            run(Tensor(X), indices(0, 2), Tensor(3))
        # Rounds behind the wrong one would go on for ever.
        with error(4):
            run(Tensor(X), indices(0, 2), Tensor(2**31 - 1))


@pytest.mark.parametrize("name", sorted(set(ALL) - {"csr_to_dense", "coo_to_dense"}))
def test_for_all_sizes(name: str) -> None:
    f = ms.jit(lambda x, i: ALL[name](x, i[:2]), dynamic=1)
    for size in (5, 7):
        i = np.zeros(size, np.int32)
        i[1] = 3
        f(Tensor(X), Tensor(i))
        i[1] = 10
        with error(10):
            f(Tensor(X), Tensor(i))


def test_for_sizes_that_are_symbols() -> None:
    f = ms.jit(lambda x, i: ops.gather(x, i, 0).sum() + x[i[0]].sum(), dynamic=1)
    for size in (3, 6):
        x = Tensor(np.ones((size, 2), np.float32))
        assert f(x, indices(-size, size - 1)).item() == 6
        for index in (size, -size - 1):
            with pytest.raises(IndexRangeError, match=f"index {index} is out of range for axis 0 of size {size};"):
                f(x, indices(0, index))
            with pytest.raises(IndexRangeError, match=f"index {index} is out of range for axis 0 of size {size};"):
                f(x, indices(index, 0))


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint8, np.uint16, np.uint32, np.uint64, np.int64])
def test_types_of_indices(kind: Any) -> None:
    top = int(np.iinfo(kind).max)
    x = Tensor(np.arange(300.0, dtype=np.float32))
    for f in (lambda x, i: ops.gather(x, i, 0), lambda x, i: x[i], lambda x, i: x.take(i, mode="raise")):
        for run in (f, ms.jit(f)):
            assert run(x, indices(3, 100, kind=kind)).tolist() == [3, 100]
            if top > 300:
                with pytest.raises(IndexRangeError, match=f"index {min(top, 2**63 - 1)} is out of range"):
                    run(x, indices(3, top, kind=kind))
            if np.iinfo(kind).min < 0:
                assert run(x, indices(-1, -128, kind=kind)).tolist() == [299, 172]
    assert x.take(indices(3, top, kind=kind)).tolist() == [3, min(top, 299)]


def test_ignored_labels_are_none() -> None:
    x = Tensor(np.zeros((2, 3), np.float32))
    for f in (ops.cross_entropy, ops.nll_loss, ms.jit(lambda x, y: ops.cross_entropy(x, y))):
        f(x, indices(0, -100))
        for label in (3, -1, -99):
            with pytest.raises(IndexRangeError, match=f"index {label} is out of range for axis 1 of size 3;"):
                f(x, indices(0, label))
    assert ops.nll_loss(x, indices(0, 7), ignore_index=7).item() == 0


def test_what_defines_its_outcome_is_no_error() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    assert ops.one_hot(indices(0, 5, -1), 3).tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert ops.tensor_scatter_elements(x, indices(5), Tensor([9.0])).tolist() == [1, 2, 3]
    assert ops.unsorted_segment_sum(x, indices(0, -1, 1), 2).tolist() == [1, 3]
    assert x.take(indices(7, -9)).tolist() == [3, 1]
    assert x.take(indices(4, -4), mode="wrap").tolist() == [2, 3]
    assert ops.intopk(Tensor([[1.0, 2.0]] * 3), indices(1, 2, -1), 1).tolist() == [True, False, False]
    assert ms.nn.EmbeddingLookup(2, 1, "ones")(indices(1, 2)).tolist() == [[1], [0]]


def test_branches_that_are_not_taken_and_examples_that_did_not_ask() -> None:
    def chosen(x: Any, i: Any) -> Any:
        if i < SIZE:
            return x[i] * 2.0
        return x[0]

    f = ms.jit(chosen)
    assert f(Tensor(X), Tensor(3)).tolist() == (2 * X[3]).tolist()
    assert f(Tensor(X), Tensor(99)).tolist() == X[0].tolist()
    each = ms.vmap(chosen, (None, 0))
    np.testing.assert_array_equal(each(Tensor(X), indices(99, 1, 5)).asnumpy(), [X[0], 2 * X[1], X[0]])
    slopes = ms.vmap(ms.grad(lambda x, i: chosen(x, i).sum()), (None, 0))(Tensor(X), indices(99, 1))
    assert slopes.asnumpy()[:, :, 0].tolist() == [[1, 0, 0, 0], [0, 2, 0, 0]]

    def counted(x: Any, i: Any) -> Any:
        total = x[0] * 0.0
        while i < SIZE:
            total = total + x[i]
            i = i + 1
        return total

    np.testing.assert_array_equal(
        ms.vmap(counted, (None, 0))(Tensor(X), indices(2, 7)).asnumpy(), [X[2] + X[3], 0 * X[0]]
    )


def test_a_recursion_ends() -> None:
    @ms.jit
    def walk(x: Any, i: Any, n: Any) -> Any:
        if n < 1:
            return x[0] * 0.0
        return x[i] + walk(x, i + 1, n - 1)

    assert walk(Tensor(X), Tensor(1), Tensor(3)).tolist() == X[1:].sum(0).tolist()
    for n in (4, 10**9):
        with error(4):
            walk(Tensor(X), Tensor(1), Tensor(n))
    assert walk(Tensor(X), Tensor(1), Tensor(3)).tolist() == X[1:].sum(0).tolist()


def test_the_error_names_operation_line_index_and_size() -> None:
    @ms.jit
    def f(x: Any, i: Any) -> Any:
        y = x * 2.0
        return ops.gather(y, i, 0).sum()  # this line

    with pytest.raises(IndexError) as found:
        f(Tensor(X), indices(1, 9))
    assert isinstance(found.value, (RuntimeError, ValueError))
    text = str(found.value)
    assert text.startswith("ops.gather: index 9 is out of range for axis 0 of size 4; use one in [-4, 4)\n")
    assert re.search(
        r"test_index_bounds.py:\d+\n +return ops.gather\(y, i, 0\).sum\(\)  # this line\n +\^{19}\n?", text
    )
    with pytest.raises(IndexError, match=r"in the derivative of"):
        ms.jit(ms.grad(f))(Tensor(X), indices(1, 9))
    with pytest.raises(IndexError, match=r"^gather: index 9"):
        ops.gather(Tensor(X), indices(9), 0)
    with pytest.raises(IndexError, match=r"^x\[\.\.\.\]: index 9"):
        Tensor(X)[indices(9)]
    with pytest.raises(IndexError, match=r"^GatherNd: index -1 .* use one in \[0, 4\)"):
        ops.GatherNd()(Tensor(X), indices([-1]))
    with pytest.raises(IndexError, match=r"the axis has no elements"):
        ops.gather(Tensor(X[:0]), indices(0), 0)


def test_parameters_are_as_before() -> None:
    table = ms.Parameter(Tensor(X), name="table")
    optimizer = ms.nn.Momentum([table], 0.1, 0.9)
    step = ms.value_and_grad(lambda i: (ops.embedding(i, table) ** 2).sum(), None, [table])

    @ms.jit
    def train(i: Any) -> Any:
        loss, slopes = step(i)
        optimizer(slopes)
        return loss

    train(indices(0, 1))
    before = table.asnumpy().copy()
    for _ in range(2):
        with error(4):
            train(indices(0, 4))
    np.testing.assert_array_equal(table.asnumpy(), before)
    train(indices(0, 1))
    assert (table.asnumpy() != before).any()


def test_each_call_has_its_own_outcome() -> None:
    f = ms.jit(lambda x, i: ops.gather(x, i, 0).sum())
    x = Tensor(np.ones((1000, 200), np.float32))
    good, bad = Tensor(np.arange(1000)), Tensor(np.arange(1, 1001))
    assert f(x, good).item() == 200_000
    results: dict[str, list[bool]] = {"good": [], "bad": []}

    def work(name: str, i: Tensor) -> None:
        for _ in range(30):
            try:
                results[name].append(f(x, i).item() == 200_000)
            except IndexRangeError as error:
                results[name].append("index 1000 " not in str(error))

    threads = [threading.Thread(target=work, args=a) for a in (("good", good), ("bad", bad))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {"good": [True] * 30, "bad": [False] * 30}


def test_long_rows_and_many_threads() -> None:
    x = np.zeros((50, 1003), np.float32)
    i = np.zeros((7001, 1003), np.int64)
    i[6987, 1002] = 50
    f = ms.jit(lambda x, i: ops.gather_elements(x, 0, i).sum())
    with pytest.raises(IndexRangeError, match="index 50 is out of range for axis 0 of size 50"):
        f(Tensor(x), Tensor(i))
