"""Histograms, sequences, polynomials, grids, sets and functions along axes of `mycel.numpy` against
NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.numpy as mnp
from mycel import Tensor
from tests.meaning import A, B, Checks, I

checks = Checks("NumPy")
CHECKED = {
    f"numpy.{n}": "NumPy"
    for n in """array_str isscalar apply_along_axis apply_over_axes piecewise setdiff1d intersect1d
    ix_ array_equiv""".split()
}
RANDOM = np.random.default_rng(3)


def floats(function: Any) -> Any:
    """NumPy's counts as floats, which they are here; lists flat."""

    def of(*args: Any, **kwargs: Any) -> Any:
        count, edges = function(*args, **kwargs)[:2], function(*args, **kwargs)[2:]
        first, second = count
        second = tuple(second) if isinstance(second, (list, tuple)) else (second,)
        return (np.asarray(first, float), *second, *edges)

    return of


# Windows, grids and positions.
for name in ("bartlett", "blackman", "hamming", "hanning"):
    checks.add(f"numpy.{name}", getattr(np, name), (5,), (1,), (0,), (12,), tolerance=1e4)
checks.add("numpy.indices", lambda d: tuple(np.indices(d)), ((2, 3),), ((1,),), ((0, 2),), dtypes="float32")
checks.add(
    "numpy.indices",
    lambda d, sparse: tuple(np.indices(d, sparse=True)),
    ((2, 3),),
    kwargs={"sparse": True},
    dtypes="float32",
)
checks.add("numpy.diag_indices", lambda *a: tuple(np.diag_indices(*a)), (3,), (2, 3), (0,), dtypes="float32")
for name in ("tril_indices", "triu_indices"):
    checks.add(f"numpy.{name}", getattr(np, name), (3,), (3, 1, 2), (4, -1), (0,), dtypes="float32")
    checks.add(f"numpy.{name}_from", getattr(np, f"{name}_from"), (A(3, 2), -1), (A(2, 3),), (A(1, 1),), grad=())
checks.add(
    "numpy.geomspace",
    np.geomspace,
    (1, 256, 9),
    (-1, -1000, 4),
    (2.0, 3.0, 1),
    (2.0, 3.0, 0),
    dtypes="float32",
    tolerance=3,
)
checks.add(
    "numpy.geomspace",
    np.geomspace,
    (1, 256, 8),
    (5.0, 1.0, 3),
    kwargs={"endpoint": False},
    dtypes="float32",
    tolerance=3,
)
checks.add(
    "numpy.geomspace",
    np.geomspace,
    (A(2, low=1, high=2), A(2, low=3, high=5), 4),
    (A(1, 3, low=1, high=2), A(2, 1, low=3, high=5), 5),
    tolerance=3,
)

FLAT = I(2, 3, low=-7, high=10)
checks.add(
    "numpy.unravel_index",
    lambda i, s: np.unravel_index(np.clip(np.where(i < 0, i + np.prod(s), i), 0, np.prod(s) - 1), s),
    (FLAT, (3, 4)),
    (I(4, high=30), (2, 3, 5)),
    (I(0), (3,)),
    dtypes="float32",
)
checks.add(
    "numpy.unravel_index",
    lambda i, s, order: np.unravel_index(i, s, order),
    (I(4, high=30), (2, 3, 5)),
    kwargs={"order": "F"},
    dtypes="float32",
)
PLACES = (I(5, low=-3, high=9), I(5, low=-3, high=9))
for mode, order in (("clip", "C"), ("wrap", "C"), ("clip", "F")):
    checks.add(
        "numpy.ravel_multi_index",
        np.ravel_multi_index,
        (PLACES, (4, 6)),
        ((I(1), I(1), I(1)), (2, 7, 3)),
        ((I(0),), (3,)),
        kwargs={"mode": mode, "order": order},
        dtypes="float32",
    )

# Histograms.
EDGES = A(4, values=np.array([-1.5, -0.5, 0.25, 1.0]))
checks.add(
    "numpy.digitize",
    np.digitize,
    (A(3, 4), EDGES),
    (A(5), A(3, values=np.array([1.0, 0.5, -1.0]))),
    (A(1), A(1)),
    (A(0, 3), EDGES),
    (I(9), A(3, values=np.array([1.0, 2.0, 4.0]))),
    grad=(),
)
checks.add(
    "numpy.digitize",
    np.digitize,
    (I(9), A(3, values=np.array([1.0, 2.0, 4.0]))),
    (I(9), A(3, values=np.array([4.0, 2.0, 1.0]))),
    kwargs={"right": True},
    grad=(),
)
checks.add(
    "numpy.histogram_bin_edges", np.histogram_bin_edges, (A(9), 4), (A(2, 3), 10), (A(1), 3), (A(5), EDGES), grad=()
)
checks.add("numpy.histogram_bin_edges", np.histogram_bin_edges, (A(9), 4), kwargs={"range": (-1.0, 2.0)}, grad=())
checks.add("numpy.histogram", floats(np.histogram), (A(40),), (A(3, 5), 4), (A(1), 3), (A(30), EDGES), grad=())
checks.add("numpy.histogram", floats(np.histogram), (A(40), 5), kwargs={"range": (-1.0, 1.0), "density": True}, grad=())
checks.add(
    "numpy.histogram",
    lambda a, bins, range, weights: floats(np.histogram)(a, bins, range, weights=weights),
    (A(30), 5, (-2, 2), A(30)),
    grad=(3,),
)
checks.add(
    "numpy.histogram2d",
    floats(np.histogram2d),
    (A(40), A(40)),
    (A(9), A(9), 3),
    (A(9), A(9), (2, EDGES)),
    (A(9), A(9), EDGES),
    grad=(),
)
checks.add("numpy.histogram2d", floats(np.histogram2d), (A(40), A(40), 3), kwargs={"density": True}, grad=())
checks.add("numpy.histogramdd", floats(np.histogramdd), (A(40, 3), 3), (A(9, 2), (2, 4)), (A(5, 1), 2), grad=())
checks.add(
    "numpy.histogramdd",
    floats(np.histogramdd),
    (A(40, 3), 3),
    kwargs={"density": True, "range": ((-1, 1), (-2, 2), (-1.5, 1))},
    grad=(),
)

# Sequences and polynomials.
PAIRS = ((A(5), A(3)), (A(4), A(7)), (A(6), A(2)), (A(1), A(4)), (A(1), A(1)), (A(4), A(4)))
for mode in ("full", "same", "valid"):
    checks.add("numpy.convolve", np.convolve, *PAIRS, kwargs={"mode": mode})
    checks.add("numpy.correlate", np.correlate, *PAIRS, kwargs={"mode": mode})
    checks.add("numpy.convolve", np.convolve, (I(5), I(3)), (I(2), I(4)), kwargs={"mode": mode}, dtypes="float32")
checks.add("numpy.corrcoef", np.corrcoef, (A(3, 6),), (A(4), A(4)), (A(2, 5), A(3, 5)), tolerance=30)
checks.add(
    "numpy.corrcoef",
    lambda x, rowvar: np.corrcoef(x, rowvar=rowvar),
    (A(6, 3),),
    kwargs={"rowvar": False},
    tolerance=30,
)


def cross(a: Any, b: Any, **kwargs: Any) -> Any:
    wide = [np.concatenate((x, np.zeros((*x.shape[:-1], 3 - x.shape[-1]))), -1) for x in (a, b)]
    made = np.cross(*wide, **kwargs)
    return made[..., 2] if a.shape[-1] == b.shape[-1] == 2 else made


checks.add("numpy.cross", cross, (A(3), A(3)), (A(4, 3), A(3)), (A(2), A(2)), (A(2, 3), A(1, 2)), (A(0, 3), A(0, 3)))
checks.add("numpy.cross", np.cross, (A(3, 4), A(3, 4)), kwargs={"axis": 0})
checks.add("numpy.cross", np.cross, (A(3, 4), A(4, 3)), kwargs={"axisa": 0, "axisc": 0})
checks.add("numpy.ediff1d", np.ediff1d, (A(5),), (A(2, 3), A(2), A(1)), (A(1),), (A(0), A(2)), (I(5),))
checks.add(
    "numpy.gradient",
    np.gradient,
    (A(5),),
    (A(3, 4), 2.0, 0.5),
    (A(2, 3), 2.0),
    (A(6), A(6, values=np.array([0, 1, 3, 3.5, 6, 7.0]))),
    grad=(0,),
)
checks.add(
    "numpy.gradient",
    np.gradient,
    (A(5),),
    (A(3, 4),),
    (A(6), A(6, values=np.array([0, 1, 3, 3.5, 6, 7.0]))),
    kwargs={"edge_order": 2},
    grad=(0,),
)
checks.add("numpy.gradient", np.gradient, (A(3, 4),), kwargs={"axis": -1})
checks.add(
    "numpy.unwrap",
    np.unwrap,
    (A(3, 9, low=-20, high=20),),
    (A(1),),
    (A(0, 3),),
)
checks.add("numpy.unwrap", np.unwrap, (A(7, 2, low=-20, high=20),), kwargs={"axis": 0, "discont": 5.0})
checks.add("numpy.unwrap", np.unwrap, (A(4, values=np.array([0, np.pi, 3 * np.pi, 7.0])),), grad=())
for name in ("polyadd", "polysub", "polymul"):
    checks.add(f"numpy.{name}", getattr(np, name), (A(3), A(5)), (A(4), A(1)), (A(2), A(2)), (I(3, low=1), I(2, low=1)))
checks.add("numpy.polyder", np.polyder, (A(5),), (A(5), 3), (A(1),), (A(3), 0), (I(4),))
checks.add("numpy.polyint", np.polyint, (A(4),), (A(3), 3), (A(1), 2), (A(3), 2, A(2)), (A(2), 2, A(1)))

# Sets and questions.
checks.add(
    "numpy.in1d",
    lambda a, b, *c: np.isin(a.ravel(), b, invert=bool(c)),
    (I(2, 5), I(2)),
    (I(3), I(0)),
    (I(0), I(3)),
    (I(9), I(3), True),
    dtypes="float32",
)

# Shapes, whose parameters are MindSpore's.
checks.add("numpy.ravel", np.ravel, (A(2, 3),), (A(0, 2),), (A(),))
checks.add("numpy.moveaxis", np.moveaxis, (A(2, 3, 4), 0, -1), (A(2, 3, 1), (0, 1), (2, 0)), (A(0, 3), 1, 0))
checks.add("numpy.swapaxes", np.swapaxes, (A(2, 3, 4), 0, -1), (A(1, 3), 1, 0), (A(0, 3), 1, 0))
checks.add("numpy.expand_dims", np.expand_dims, (A(2, 3), 1), (A(3), (0, -1)), (A(0), -1))
checks.add("numpy.fliplr", np.fliplr, (A(2, 3),), (A(3, 1),), (A(0, 3),))
checks.add("numpy.flipud", np.flipud, (A(2, 3),), (A(3),), (A(0, 3),))
checks.add("numpy.argwhere", lambda x: np.argwhere(x), (I(3, 4, high=2),), (B(5),), (I(0, 2),), dtypes="float32")
checks.add("numpy.array_split", np.array_split, (A(9), 4), (A(9), [3, 5]), (A(2, 5), 3, 1))
checks.add("numpy.hsplit", np.hsplit, (A(2, 4), 2), (A(6), 3), (A(2, 5), [1, 3]))
checks.add("numpy.vsplit", np.vsplit, (A(4, 2), 2), (A(4, 1), [1]), (A(2, 0), 2))
checks.add("numpy.dsplit", np.dsplit, (A(1, 2, 4), 2), (A(2, 1, 3), [1]), (A(2, 0, 2), 2))
checks.add("numpy.asarray", np.asarray, (A(2, 3),), (A(0),), (A(),))
checks.add("numpy.empty_like", np.zeros_like, (A(2, 3),), (A(0),), (A(),), grad=())
test_values, test_gradients = checks.tests()


def same(got: Any, want: Any) -> None:
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6)


def test_grids_by_slices() -> None:
    same(mnp.mgrid[0:5, 1:3], np.mgrid[0:5, 1:3])
    same(mnp.mgrid[-1:1:5j], np.mgrid[-1:1:5j])
    same(mnp.mgrid[0:1:0.25], np.mgrid[0:1:0.25])
    for got, want in zip(mnp.ogrid[0:3, 0:1:3j], np.ogrid[0:3, 0:1:3j]):
        same(got, want)
    same(mnp.ogrid[0:3], np.ogrid[0:3])
    assert mnp.mgrid[0:2].dtype is ms.int32 and mnp.mgrid[0:1:3j].dtype is ms.float32


def test_open_grids() -> None:
    for got, want in zip(
        mnp.ix_([0, 1], [2, 4, 5], [True, False, True]), np.ix_([0, 1], [2, 4, 5], [True, False, True])
    ):
        same(got, want)
    with pytest.raises(ValueError, match="ix_: every argument must be a vector"):
        mnp.ix_([[1]])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_functions_along_axes(axis: int) -> None:
    x = RANDOM.normal(size=(2, 3, 4))
    same(
        mnp.apply_along_axis(lambda v: mnp.sum(v * v), axis, Tensor(x)),
        np.apply_along_axis(lambda v: (v * v).sum(), axis, x),
    )
    want = np.apply_along_axis(lambda v, k: np.outer(v[:2], v) * k, axis, x, 3.0)
    same(mnp.apply_along_axis(lambda v, k: mnp.outer(v[:2], v) * k, axis, Tensor(x), 3.0), want)
    same(ms.jit(lambda v: mnp.apply_along_axis(mnp.cumsum, axis, v))(Tensor(x)), np.cumsum(x, axis))
    with pytest.raises(ValueError, match="no vectors along axis 1"):
        mnp.apply_along_axis(mnp.sum, 1, mnp.ones((0, 2)))


def test_functions_over_axes() -> None:
    x = RANDOM.normal(size=(2, 3, 4))
    same(mnp.apply_over_axes(mnp.sum, Tensor(x), (0, -1)), np.apply_over_axes(np.sum, x, (0, -1)))
    same(mnp.apply_over_axes(mnp.cumsum, Tensor(x), 1), np.cumsum(x, 1))


def test_pieces() -> None:
    x = RANDOM.normal(size=(3, 4))
    for conditions, pieces in (
        ([x < 0, x >= 0], [-1, 1]),
        ([x < 0], [lambda v: -v, lambda v: v * 10]),
        ([x < 0, x > -0.5], [1, lambda v: v * v, 3]),
        ([x < 0], [2.0]),
    ):
        held = [Tensor(c) for c in conditions] if isinstance(conditions, list) else Tensor(conditions)
        same(mnp.piecewise(Tensor(x), held, pieces), np.piecewise(x, conditions, pieces))
    gradient = ms.grad(lambda v: mnp.sum(mnp.piecewise(v, [v < 0], [lambda t: -t, lambda t: t * t])))(Tensor(x))
    same(gradient, np.where(x < 0, -1, 2 * x))


@pytest.mark.parametrize(
    ("a", "b"), [([1, 3, 4, 3], [3, 1, 2, 1]), ([5, 5], [1]), ([], [1.0]), ([[2.5, 1.5], [1.5, 0]], [0, 1.5])]
)
def test_sets(a: Any, b: Any) -> None:
    x, y = np.asarray(a), np.asarray(b)
    same(mnp.setdiff1d(Tensor(x), Tensor(y)), np.setdiff1d(x, y))
    same(mnp.setdiff1d(Tensor(x), Tensor(y), True), np.setdiff1d(x, y, True))
    same(mnp.intersect1d(Tensor(x), Tensor(y)), np.intersect1d(x, y))
    for got, want in zip(
        mnp.intersect1d(Tensor(x), Tensor(y), return_indices=True), np.intersect1d(x, y, return_indices=True)
    ):
        same(got, want)
    same(ms.jit(mnp.setdiff1d)(Tensor(x), Tensor(y)), np.setdiff1d(x, y))


def test_questions() -> None:
    assert mnp.array_equiv([1, 2], [[1, 2], [1, 2]]).item() and not mnp.array_equiv([1, 2], [[1, 2], [1, 3]]).item()
    assert not mnp.array_equiv([1, 2], [1, 2, 3]).item()
    assert (
        mnp.isscalar(3)
        and mnp.isscalar("a")
        and mnp.isscalar(np.float32(1))
        and not mnp.isscalar(Tensor(1))
        and not mnp.isscalar([1])
    )
    assert mnp.array_str(mnp.arange(3)) == np.array_str(np.arange(3))
    assert all(
        hasattr(mnp, n)
        for n in (
            *mnp.numeric_types,
            *mnp.math_module,
            *mnp.array_ops_module,
            *mnp.logic_module,
            *mnp.array_creations_module,
        )
    )


def test_what_is_wrong_is_told() -> None:
    for call, message in (
        (lambda: mnp.convolve([], [1]), "convolve: both operands must be vectors that are not empty"),
        (lambda: mnp.convolve([1], [1], "most"), "mode must be one of 'full', 'same', 'valid', not 'most'"),
        (lambda: mnp.histogram([1.0], 0), "there must be at least one bin, not 0"),
        (lambda: mnp.histogram([1.0], 2, weights=[1.0, 2.0]), "2 weights for 1 values"),
        (lambda: mnp.cross([1], [2]), "vectors have 2 or 3 numbers, not 1 and 1"),
        (lambda: mnp.gradient([1.0]), "axis 0 needs at least 2 points, not 1"),
        (lambda: mnp.ravel_multi_index([[1]], (2, 3)), "1 rows of positions for 2 dimensions"),
        (lambda: mnp.polyint([1.0], 3, k=[1.0, 2.0]), "k must be one number or 3, not 2"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
