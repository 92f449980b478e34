"""Reductions against NumPy and SciPy; their types and derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import mycel as ms
from mycel import Tensor, ops

from .checks import check_gradient, close, numbers

X = numbers(2, 3, 4)
AXES = [None, 0, -1, (0, 2), (1,), ()]


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "std", "var"])
def test_reductions(name: str, axis: object, keep: bool) -> None:
    numpy_axis = None if axis == () else axis
    function = getattr(ops, name)
    if name == "sum":
        got = function(Tensor(X), axis, keep)
    elif name in ("std", "var"):
        got = function(Tensor(X), axis, 1, keep)
    else:
        got = function(Tensor(X), axis, keep)
    options = {"ddof": 1} if name in ("std", "var") else {}
    close(got, getattr(np, name)(X, axis=numpy_axis, keepdims=keep, **options))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "std", "var"])
def test_derivatives(name: str) -> None:
    check_gradient(lambda t: getattr(ops, name)(t, 1), numbers(2, 3))


@pytest.mark.parametrize("order", [1, 2, 3, 0.5, np.inf, -np.inf, 0])
def test_norms_of_vectors(order: float) -> None:
    close(ops.norm(Tensor(X), order, 1), np.linalg.norm(X, order, 1))
    if order != 0:
        check_gradient(lambda t: ops.norm(t, order, 1), numbers(2, 3))


@pytest.mark.parametrize("order", ["fro", 1, -1, np.inf, -np.inf])
def test_norms_of_matrices(order: object) -> None:
    close(ops.norm(Tensor(X[0]), order), np.linalg.norm(X[0], order))
    close(ops.norm(Tensor(X), order, (0, 2), True), np.linalg.norm(X, order, (0, 2), keepdims=True))


def test_the_norm_of_zero_has_no_nan_derivative() -> None:
    assert ms.grad(lambda t: ops.norm(t))(Tensor([0.0, 0.0])).tolist() == [0.0, 0.0]


def test_integers_add_up_in_int64_and_average_towards_zero() -> None:
    x = Tensor(np.array([-1, -2, -4], np.int32))
    assert ops.sum(x).dtype is ms.int64
    assert ops.prod(x).dtype is ms.int64
    assert ops.sum(Tensor([True, True])).item() == 2
    assert ops.sum(x, dtype=ms.int32).dtype is ms.int32
    assert ops.mean(x).dtype is ms.int32 and ops.mean(x).item() == -2
    assert ops.var(x).dtype is ms.float32
    with pytest.raises(TypeError, match="mean: takes numbers, not booleans"):
        ops.mean(Tensor([True]))


def test_sums_of_16_bit_floats_do_not_overflow_in_a_mean() -> None:
    x = Tensor(np.full((70000,), 2.0, np.float16))
    assert ops.mean(x).dtype is ms.float16 and ops.mean(x).item() == 2.0


def test_extremes_with_positions() -> None:
    x = np.array([[1.0, 5.0, 5.0], [np.nan, 2.0, 3.0]])
    values, positions = ops.max(Tensor(x), 1)
    np.testing.assert_array_equal(values.asnumpy(), [5.0, np.nan])
    assert positions.dtype is ms.int64 and positions.tolist() == [1, 0]
    values, positions = ops.min(Tensor(x[:1]), 1, True)
    assert values.tolist() == [[1.0]] and positions.tolist() == [[0]]
    assert ops.argmax(Tensor(x[0])).dtype is ms.int64
    assert ops.argmin(Tensor(x[:1]), 1).dtype is ms.int32
    assert ms.grad(lambda t: ops.amax(t))(Tensor([1.0, 3.0, 3.0])).tolist() == [0.0, 0.5, 0.5]
    assert ops.amax(Tensor([1.0, 2.0]), initial=5.0).item() == 5.0
    assert ops.amax(Tensor([1.0, 9.0]), initial=0.0, where=Tensor([True, False])).item() == 1.0


def test_log_sum_exp() -> None:
    x = np.array([[1000.0, 1000.0], [-np.inf, -np.inf], [np.inf, 0.0], [1.0, 2.0]])
    np.testing.assert_allclose(ops.logsumexp(Tensor(x), 1).asnumpy(), scipy.special.logsumexp(x, axis=1))
    check_gradient(lambda t: ops.logsumexp(t, (0, 2), True), X)


def test_nan_is_left_out_by_name() -> None:
    x = X.copy()
    x[0, 1] = np.nan
    close(ops.nansum(Tensor(x), 1), np.nansum(x, 1))
    close(ops.nanmean(Tensor(x), 1), np.nanmean(x, 1))
    assert ops.count_nonzero(Tensor([[0, 1], [2, 3]]), 1).tolist() == [1, 2]
    assert ops.any(Tensor([[0, 1], [0, 0]]), 1).tolist() == [True, False]
    assert ops.all(Tensor([[0, 1], [1, 1]]), 1).tolist() == [False, True]


def test_wrong_axes() -> None:
    with pytest.raises(
        ValueError, match=r"sum: axis 3 is out of range for a tensor of 3 dimensions; use a value in \[-3, 3\)"
    ):
        ops.sum(Tensor(X), 3)
    with pytest.raises(ValueError, match="names a dimension twice"):
        ops.sum(Tensor(X), (0, -3))
    with pytest.raises(ValueError, match="amax: there is nothing to choose from"):
        ops.amax(Tensor(np.zeros((0, 2))), 0)
    with pytest.raises(TypeError, match="argmax: axis must be an int, not str"):
        ops.argmax(Tensor(X), "x")


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_running_reductions(axis: int) -> None:
    close(ops.cumsum(Tensor(X), axis), np.cumsum(X, axis))
    close(ops.cumprod(Tensor(X), axis), np.cumprod(X, axis))
    values, positions = ops.cummax(Tensor(X), axis)
    close(values, np.maximum.accumulate(X, axis))
    close(ops.gather_elements(Tensor(X), axis, positions), values.asnumpy())
    close(ops.logcumsumexp(Tensor(X), axis), np.log(np.cumsum(np.exp(X), axis)))
    check_gradient(lambda t: ops.logcumsumexp(t, axis % 2), numbers(2, 3))


def test_order() -> None:
    values, positions = ops.sort(Tensor(X), 1, True)
    close(values, -np.sort(-X, 1))
    assert positions.dtype is ms.int32
    values, positions = ops.topk(Tensor(X), 2, 1, False)
    close(values, np.sort(X, 1)[:, :2])
    close(ops.gather_elements(Tensor(X), 1, positions), values.asnumpy())
    check_gradient(lambda t: ops.topk(t, 2)[0], numbers(2, 4))
    close(ops.median(Tensor(X), 2)[0], np.sort(X, 2)[..., 1])
    assert np.isnan(ops.median(Tensor([1.0, np.nan, 2.0]))[0].item())
    for q in (0.0, 0.3, 1.0, np.array([0.1, 0.5])):
        level = Tensor(np.asarray(q))
        close(ops.quantile(Tensor(X), level, 1), np.quantile(X, q, 1))
        close(ops.quantile(Tensor(X), level), np.quantile(X, q))
    x = X.copy()
    x[0, 0, :2] = np.nan
    close(ops.nanquantile(Tensor(x), 0.4, 2), np.nanquantile(x, 0.4, 2))
    close(ops.diff(Tensor(X), 2, 1), np.diff(X, 2, 1))
    close(ops.trapz(Tensor(X), dx=0.5, dim=1), ((X[:, 1:] + X[:, :-1]) / 2 * 0.5).sum(1))
    with pytest.raises(ValueError, match="topk: k must lie between 0 and 4"):
        ops.topk(Tensor(X), 5)


def test_searches_and_counts() -> None:
    rows, values = np.sort(numbers(7)), numbers(2, 3, seed=1)
    for right in (False, True):
        want = np.searchsorted(rows, values, "right" if right else "left")
        np.testing.assert_array_equal(ops.searchsorted(Tensor(rows), Tensor(values), right=right).asnumpy(), want)
    np.testing.assert_array_equal(ops.bucketize(Tensor(values), Tensor(rows)).asnumpy(), np.searchsorted(rows, values))
    numbers_ = np.array([1, 1, 4, 2])
    np.testing.assert_array_equal(ops.bincount(Tensor(numbers_)).asnumpy(), np.bincount(numbers_))
    close(
        ops.bincount(Tensor(numbers_), Tensor(values[0, :1].repeat(4))), np.bincount(numbers_, values[0, :1].repeat(4))
    )
    np.testing.assert_array_equal(ops.histc(Tensor(rows), 4, -1.0, 1.0).asnumpy(), np.histogram(rows, 4, (-1, 1))[0])


def test_positions_of_extremes_with_a_first_value() -> None:
    """As in MindSpore 2.10: where the first value is not surpassed the position is 0."""
    x = Tensor([[5, 0, 3], [7, 9, 2], [1, 2, 3]])
    assert [t.tolist() for t in ops.min(x, axis=1, initial=2)] == [[0, 2, 1], [1, 0, 0]]
    assert [t.tolist() for t in ops.max(x, axis=1, initial=5)] == [[5, 9, 5], [0, 1, 0]]
    where = Tensor([[True, False, True]] * 3)
    assert [t.tolist() for t in ops.min(x, axis=1, initial=2, where=where)] == [[2, 2, 1], [0, 0, 0]]
