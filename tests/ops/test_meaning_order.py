"""Running reductions, ordering, searching, counting and covariance under all of their names against
NumPy and SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.special

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Array, Checks, I

from .checks import add_everywhere

checks = Checks("NumPy")


def distinct(*shape: int) -> Array:
    """Numbers of which no two are equal, so that extremes have derivatives."""
    order = np.random.default_rng(9).permutation(int(np.prod(shape)))
    return A(*shape, values=order.reshape(shape) / 7.0 - 0.8)


EXTREMES = (distinct(3, 4), distinct(2, 3, 2), distinct(1, 5))
# Counting.
SPARSE = (I(3, 4, high=2), I(2, 3, 2, high=2), I(0, 5))
checks.add(
    "ops.count_nonzero Tensor.count_nonzero numpy.count_nonzero",
    np.count_nonzero,
    *[(x,) for x in SPARSE],
    (A(3, 4),),
    dtypes="float32",
    grad=(),
)
checks.add(
    "ops.count_nonzero Tensor.count_nonzero numpy.count_nonzero",
    lambda x, axis, keep=False: np.count_nonzero(x, axis, keepdims=keep),
    (SPARSE[0], 1),
    (SPARSE[1], (0, 2), True),
    (SPARSE[2], 0),
    dtypes="float32",
    grad=(),
)
checks.add(
    "ops.CountNonZero",
    lambda x: np.count_nonzero(x, 1),
    (SPARSE[0],),
    (SPARSE[1],),
    (SPARSE[2],),
    init={"dims": [1]},
    dtypes="float32",
    grad=(),
)
checks.add(
    "ops.bincount Tensor.bincount",
    lambda x, weights=None, minlength=0: np.bincount(x, weights, minlength).astype(np.float32),
    (I(7),),
    (I(5), A(5)),
    (I(4), None, 9),
    dtypes="float32",
    grad=(),
    jit=False,
)
checks.add(
    "numpy.bincount",
    lambda *a: np.bincount(*a).astype(np.float32),
    (I(7),),
    (I(5), A(5)),
    (I(4), None, 9),
    dtypes="float32",
    grad=(),
    jit=False,
)
checks.add(
    "ops.histc Tensor.histc",
    lambda x, bins=100, min=0.0, max=0.0: np.histogram(x, bins, None if min == max else (min, max))[0].astype(x.dtype),
    (A(30), 4),
    (A(3, 4), 5, -1.0, 1.5),
    (A(2, 2),),
    dtypes="float32",
    grad=(),
    jit=False,
)

# Running.
LINES = ((A(3, 4), 1), (A(2, 3, 2), -2), (A(1, 5), 0))
checks.add("ops.cumsum Tensor.cumsum", np.cumsum, *LINES, (A(0, 2), 0), dtypes="float32")
checks.add("ops.cumprod Tensor.cumprod", np.cumprod, *LINES, dtypes="float32")
checks.add(
    "ops.logcumsumexp Tensor.logcumsumexp", lambda x, axis: np.logaddexp.accumulate(x, axis), *LINES, dtypes="float32"
)


def running(function: Any, start: float, exclusive: bool, reverse: bool) -> Any:
    def run(x: Any, axis: int) -> Any:
        x = np.flip(x, axis) if reverse else x
        total = function.accumulate(x, axis)
        if exclusive:
            total = np.roll(total, 1, axis)
            np.moveaxis(total, axis, 0)[0] = start
        return np.flip(total, axis) if reverse else total

    return run


for exclusive in (False, True):
    for reverse in (False, True):
        init = {"exclusive": exclusive, "reverse": reverse}
        checks.add("ops.CumSum", running(np.add, 0, exclusive, reverse), *LINES, init=init, dtypes="float32")
        checks.add("ops.CumProd", running(np.multiply, 1, exclusive, reverse), *LINES, init=init, dtypes="float32")
add_everywhere(
    checks,
    "diff",
    lambda x, n=1, axis=-1: np.diff(x, n, axis),
    (A(3, 4),),
    (A(2, 3, 2), 2, 1),
    (A(4, 1), 1, 0),
    dtypes="float32",
)
add_everywhere(
    checks,
    "diff",
    lambda x, n, axis, prepend, append: np.diff(x, n, axis, prepend, append),
    (A(3, 4), 1, 1, A(3, 1), A(3, 2)),
    (A(2, 3), 2, 0, A(1, 3), A(1, 3)),
    (A(4), 1, 0, A(1), A(2)),
    dtypes="float32",
)
add_everywhere(
    checks,
    "trapz",
    lambda y, x=None, dx=1.0: scipy.integrate.trapezoid(y, x, dx),
    (A(3, 4),),
    (A(5), A(5)),
    (A(2, 1),),
    dtypes="float32",
    oracle="SciPy",
)
checks.add(
    "ops.trapz",
    lambda y, dx, dim: scipy.integrate.trapezoid(y, dx=dx, axis=dim),
    (A(3, 4),),
    (A(5, 2),),
    (A(2, 1),),
    kwargs={"dx": 0.3, "dim": 0},
    dtypes="float32",
    oracle="SciPy",
)

# Order.
ROWS = tuple((x,) for x in EXTREMES)


def ordered(x: Any, axis: int = -1, descending: bool = False) -> Any:
    place = np.argsort(-x if descending else x, axis, kind="stable")
    return np.take_along_axis(x, place, axis), place


checks.add(
    "ops.sort Tensor.sort",
    ordered,
    *ROWS,
    (EXTREMES[0], 0, True),
    (EXTREMES[1], 1, True),
    (EXTREMES[2], 0),
    dtypes="float32",
)
checks.add(
    "ops.argsort Tensor.argsort",
    lambda *a: ordered(*a)[1],
    *ROWS,
    (EXTREMES[0], 0, True),
    (EXTREMES[1], 1, True),
    (EXTREMES[2], 0),
    dtypes="float32",
    grad=(),
)
checks.add("ops.Sort", ordered, *ROWS, dtypes="float32")
checks.add("ops.Sort", lambda x: ordered(x, 0, True), *ROWS, init={"axis": 0, "descending": True}, dtypes="float32")
checks.add("ops.msort Tensor.msort", lambda x: np.sort(x, 0), *ROWS, dtypes="float32")


def first(x: Any, k: int, dim: int = -1, largest: bool = True) -> Any:
    values, place = ordered(x, dim, largest)
    return np.take(values, range(k), dim), np.take(place, range(k), dim)


checks.add(
    "ops.topk Tensor.topk",
    first,
    (EXTREMES[0], 2),
    (EXTREMES[1], 1, 1, False),
    (EXTREMES[2], 5, -1, True),
    (EXTREMES[0], 0),
    dtypes="float32",
)
checks.add(
    "ops.top_k Tensor.top_k ops.TopK", first, (EXTREMES[0], 2), (EXTREMES[1], 1), (EXTREMES[2], 5), dtypes="float32"
)


def middle(x: Any, axis: int = -1, keepdims: bool = False) -> Any:
    place = np.take(np.argsort(x, axis), [(x.shape[axis] - 1) // 2], axis)
    value = np.take_along_axis(x, place, axis)
    return (value, place) if keepdims else (value.squeeze(axis), place.squeeze(axis))


checks.add(
    "ops.median ops.nanmedian Tensor.nanmedian",
    middle,
    *ROWS,
    (EXTREMES[0], 0),
    (EXTREMES[1], 1, True),
    dtypes="float32",
)
checks.add("Tensor.median", middle, (EXTREMES[0], 1), (EXTREMES[1], 1, True), (EXTREMES[2], -1), dtypes="float32")
for names, function in (
    ("ops.quantile Tensor.quantile", np.quantile),
    ("ops.nanquantile Tensor.nanquantile", np.nanquantile),
):
    for axis, keep in ((None, False), (1, False), (0, True)):
        checks.add(
            names,
            lambda x, q, axis, keepdims, f=function: f(x, q, axis, keepdims=keepdims),
            (EXTREMES[0], 0.3),
            (EXTREMES[1], 0.5),
            (EXTREMES[2], 1.0),
            kwargs={"axis": axis, "keepdims": keep},
            dtypes="float32",
        )
    checks.add(
        names,
        lambda x, q, axis, f=function: f(x, q, axis),
        (EXTREMES[0], A(2, values=np.array([0.1, 0.75]))),
        kwargs={"axis": 1},
        dtypes="float32",
        grad=(0,),
    )
EDGES = A(4, values=np.array([-1.0, 0.0, 0.5, 1.5]))
checks.add(
    "ops.searchsorted ops.SearchSorted",
    np.searchsorted,
    (EDGES, A(3, 4)),
    (EDGES, A(5)),
    (EDGES, A(0, 2)),
    (EDGES, EDGES),
    dtypes="float32",
    grad=(),
)
checks.add(
    "Tensor.searchsorted numpy.searchsorted",
    np.searchsorted,
    (EDGES, A(3, 4)),
    (EDGES, A(5)),
    (EDGES, A(0, 2)),
    (EDGES, EDGES, "right"),
    dtypes="float32",
    grad=(),
)
checks.add(
    "ops.searchsorted",
    lambda s, v, right: np.searchsorted(s, v, "right"),
    (EDGES, A(3, 4)),
    (EDGES, EDGES),
    (EDGES, A(0, 2)),
    kwargs={"right": True},
    dtypes="float32",
    grad=(),
)
checks.add(
    "ops.SearchSorted",
    lambda s, v: np.searchsorted(s, v, "right"),
    (EDGES, A(3, 4)),
    (EDGES, EDGES),
    (EDGES, A(0, 2)),
    init={"right": True},
    dtypes="float32",
    grad=(),
)
checks.add(
    "ops.bucketize",
    lambda v, s, right=False: np.searchsorted(s, v, "right" if right else "left"),
    (A(3, 4), [-1.0, 0.0, 1.0]),
    (A(5), [0.0]),
    (A(0, 2), [0.5, 1.0]),
    dtypes="float32",
    grad=(),
)
checks.add(
    "ops.bucketize",
    lambda v, s, right=False: np.searchsorted(s, v, "right" if right else "left"),
    (EDGES, [-1.0, 0.0, 1.5]),
    (A(5), [0.0]),
    (A(0, 2), [0.5, 1.0]),
    kwargs={"right": True},
    dtypes="float32",
    grad=(),
)


def among(x: Any, target: Any, k: int) -> Any:
    return np.array([np.sum(row > row[t]) < k for row, t in zip(x, target)])


checks.add(
    "ops.intopk",
    among,
    (EXTREMES[0], I(3, high=4), 2),
    (A(5, 3), I(5, high=3), 1),
    (A(2, 6), I(2), 6),
    dtypes="float32",
    grad=(),
)
checks.add(
    "ops.InTopK",
    lambda x, t: among(x, t, 2),
    (EXTREMES[0], I(3, high=4)),
    (A(5, 3), I(5, high=3)),
    (A(2, 6), I(2)),
    init={"k": 2},
    dtypes="float32",
    grad=(),
)


def as_they_come(x: Any) -> Any:
    values = list(dict.fromkeys(x.ravel().tolist()))
    return np.array(values), np.array([values.index(v) for v in x.ravel().tolist()]).reshape(x.shape)


checks.add(
    "ops.unique ops.Unique",
    as_they_come,
    (I(7),),
    (I(3, 4),),
    (I(1),),
    dtypes="float32",
    grad=(),
    jit=False,
)
checks.add(
    "Tensor.unique numpy.unique", np.unique, (I(7),), (I(3, 4),), (I(1),), (A(6),), dtypes="float32", grad=(), jit=False
)
checks.add(
    "ops.unique_consecutive Tensor.unique_consecutive",
    lambda x: x.ravel()[np.r_[True, np.diff(x.ravel()) != 0]],
    (I(9, high=2),),
    (I(3, 4, high=2),),
    (I(1),),
    dtypes="float32",
    grad=(),
    jit=False,
)
checks.add("numpy.isin", np.isin, (I(3, 4), [1, 2]), (I(7), [0]), (I(2, 2), [3, 4, 1]), dtypes="float32", grad=())
checks.add("numpy.isin", np.isin, (I(3, 4), [1, 2]), kwargs={"invert": True}, dtypes="float32", grad=())

# Covariance.
for correction in (1, 0):
    checks.add(
        "ops.cov Tensor.cov",
        lambda x, correction: np.cov(x, ddof=correction),
        (A(3, 4),),
        (A(5),),
        (A(2, 6),),
        kwargs={"correction": correction},
        dtypes="float32",
    )
checks.add(
    "ops.cov Tensor.cov",
    lambda x, fweights, aweights: np.cov(x, fweights=fweights, aweights=aweights),
    (A(3, 4),),
    (A(1, 4),),
    (A(2, 4),),
    kwargs={"fweights": None, "aweights": None},
    dtypes="float32",
)
checks.add(
    "numpy.cov",
    np.cov,
    (A(3, 4),),
    (A(5),),
    (A(4, 2), None, False),
    (A(2, 6), None, True, True),
    (A(2, 5), A(2, 5)),
    dtypes="float32",
)
test_values, test_gradients = checks.tests()


@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [3, 40, 3000])
def test_the_first_of_a_descending_order_is_the_maximum_also_where_it_is_nan(size: int, dtype: str, mode: str) -> None:
    random = np.random.default_rng(size)
    x = random.choice([np.nan, np.inf, -np.inf, 1.0, -1.0, 0.0], (4, size), p=[0.05, 0.05, 0.1, 0.3, 0.3, 0.2])
    x[0, 1], x[1, -1], x[2] = np.nan, np.nan, np.where(np.isnan(x[2]), 2.0, x[2])
    wrap = ms.jit if mode == "compiled" else lambda f: f

    def firsts(t: ms.Tensor) -> list[ms.Tensor]:
        return [
            ops.max(t, 1)[0],
            ops.sort(t, 1, True)[0][:, 0],
            ops.topk(t, 2)[0][:, 0],
            ops.TopK()(t, 1)[0][:, 0],
            ops.sort(t, 1)[0][:, -1],
            ops.topk(t, size, largest=False)[0][:, -1],
            ms.mint.topk(t, 1)[0][:, 0],
            ops.cummax(t, 1)[0][:, -1],
        ]

    def places(t: ms.Tensor) -> list[ms.Tensor]:
        return [ops.argmax(t, 1), ops.sort(t, 1, True)[1][:, 0], ops.topk(t, 2)[1][:, 0], ops.argsort(t, 1, True)[:, 0]]

    tensor = Tensor(x).astype(getattr(ms, dtype))
    for found in wrap(firsts)(tensor):
        np.testing.assert_array_equal(found.astype(ms.float64).asnumpy(), x.max(1))
    for found in wrap(places)(tensor):
        np.testing.assert_array_equal(found.asnumpy(), x.argmax(1))
