"""`mycel.numpy` against NumPy itself."""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
import mycel.numpy as mnp
from mycel import Tensor

X = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3, 4))
V = X[0, 0]
CALLS = {
    **{
        name: (X,)
        for name in (
            "abs",
            "arccos",
            "arcsin",
            "arctan",
            "arcsinh",
            "arctanh",
            "cbrt",
            "ceil",
            "cos",
            "cosh",
            "deg2rad",
            "exp",
            "exp2",
            "expm1",
            "fabs",
            "floor",
            "isfinite",
            "isnan",
            "log",
            "log10",
            "log1p",
            "log2",
            "negative",
            "positive",
            "radians",
            "reciprocal",
            "rint",
            "sign",
            "sin",
            "sinh",
            "sqrt",
            "square",
            "tan",
            "tanh",
            "trunc",
            "mean",
            "std",
            "var",
            "sum",
            "max",
            "min",
            "ptp",
            "argmax",
            "argmin",
            "cumsum",
            "cumprod",
            "nansum",
            "nanmean",
            "nanmax",
            "nanstd",
            "ravel",
            "transpose",
            "flip",
            "flipud",
            "fliplr",
            "rot90",
            "diff",
            "tril",
            "triu",
            "diagonal",
            "trace",
            "squeeze",
            "count_nonzero",
            "fix",
            "isposinf",
        )
    },
    **{
        name: (X, X[:1] + 0.3)
        for name in (
            "add",
            "arctan2",
            "copysign",
            "divide",
            "equal",
            "float_power",
            "floor_divide",
            "fmod",
            "greater",
            "hypot",
            "less_equal",
            "logaddexp",
            "maximum",
            "mod",
            "multiply",
            "not_equal",
            "power",
            "remainder",
            "subtract",
            "true_divide",
            "minimum",
            "isclose",
            "heaviside",
        )
    },
    "dot": (X, X.swapaxes(1, 2)),
    "inner": (X, X),
    "outer": (V, V),
    "matmul": (X, X.swapaxes(1, 2)),
    "kron": (X[0], X[1]),
    "clip": (X, 0.3, 0.6),
    "around": (X, 1),
    "average": (X, 1),
    "interp": (V, np.sort(V), V),
    "polyval": (V, X),
    "diag": (V, 1),
    "concatenate": ((X, X), 2),
    "stack": ((X, X), 1),
    "hstack": ((X, X),),
    "vstack": ((V, V),),
    "dstack": ((V, V),),
    "column_stack": ((V, V),),
    "reshape": (X, (4, 6)),
    "swapaxes": (X, 0, 2),
    "moveaxis": (X, 0, 2),
    "expand_dims": (X, 1),
    "rollaxis": (X, 2),
    "tile": (V, (2, 2)),
    "repeat": (X, 2, 1),
    "roll": (X, 2, 1),
    "broadcast_to": (V, (3, 4)),
    "take_along_axis": (X, X.argsort(1), 1),
    "append": (X, X, 0),
    "where": (X > 0.5, X, 0.0),
    "pad": (X[0], ((1, 0), (0, 2))),
    "searchsorted": (np.sort(V), V),
    "vander": (V,),
    "cov": (X[0],),
    "tensordot": (X, X.transpose(1, 2, 0), 2),
    "array_equal": (X, X),
    "diagflat": (V,),
    "isin": (V, V[:2]),
    "select": ([X > 0.8, X > 0.4], [X, -X]),
    "linspace": (0.0, 2.0, 5),
    "eye": (3, 4, 1),
    "tri": (3,),
    "full": ((2, 2), 0.5),
    "arange": (2, 9, 3),
}


def _tensors(value: object) -> object:
    if isinstance(value, np.ndarray):
        return Tensor(value)
    return type(value)(map(_tensors, value)) if isinstance(value, (tuple, list)) else value


@pytest.mark.parametrize("name", CALLS)
def test_values(name: str) -> None:
    # NumPy 2.5 deprecates fix in favour of the same function under the name trunc.
    want = np.asarray(getattr(np, "trunc" if name == "fix" else name)(*CALLS[name]))
    got = (
        getattr(mnp, name)(*_tensors(CALLS[name]))
        if name in ("pad", "reshape", "tile", "broadcast_to", "full")
        else getattr(mnp, name)(*[_tensors(a) for a in CALLS[name]])
    )
    assert got.shape == want.shape
    tolerance = 1e-6 if got.dtype is ms.float32 else 1e-12
    np.testing.assert_allclose(
        got.asnumpy().astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance
    )


def test_anything_array_like_is_accepted() -> None:
    assert mnp.tanh(2.0).dtype is ms.float32
    assert mnp.add(1, 2).dtype is ms.int32 and mnp.add(1, 2).item() == 3
    assert mnp.true_divide(1, 2).item() == 0.5
    assert mnp.array([1, 2]).dtype is ms.int32 and mnp.array([1.0]).dtype is ms.float32
    assert mnp.array(np.zeros(2)).dtype is ms.float64
    assert mnp.array([Tensor(1.0), 2.0]).tolist() == [1.0, 2.0]
    assert mnp.arange(5).dtype is ms.int32 and mnp.arange(0, 1, 0.5).dtype is ms.float32
    assert mnp.sum([1, 2]).dtype is ms.int64
    assert mnp.add(Tensor(np.float16(1.0)), 2.5).dtype is ms.float16
    assert mnp.exp([0.0], dtype="float64").dtype is ms.float64


def test_gradients_of_any_order() -> None:
    slope = ms.grad(mnp.tanh)
    assert float(slope(2.0)) == pytest.approx(0.070650816, rel=1e-6)
    assert float(ms.grad(slope)(2.0)) == pytest.approx(-0.13621868, rel=1e-5)
    assert float(ms.grad(ms.grad(slope))(2.0)) == pytest.approx(0.25265405, rel=1e-5)


def test_grids_splits_and_types() -> None:
    for sparse in (False, True):
        for got, want in zip(
            mnp.meshgrid([1, 2], [3, 4, 5], sparse=sparse), np.meshgrid([1, 2], [3, 4, 5], sparse=sparse)
        ):
            np.testing.assert_array_equal(got.asnumpy(), want)
    assert [p.tolist() for p in mnp.split([1, 2, 3, 4], [1, 3])] == [[1], [2, 3], [4]]
    with pytest.raises(ValueError, match="does not divide into 3 parts"):
        mnp.split([1, 2, 3, 4], 3)
    assert [t.tolist() for t in mnp.where([True, False, True])] == [[0, 2]]
    assert mnp.nanmin([np.nan, 2.0, 1.0]).item() == 1.0
    line, step = mnp.linspace(0, 1, 4, endpoint=False, retstep=True)
    assert line.tolist() == [0.0, 0.25, 0.5, 0.75] and step == 0.25
    assert mnp.result_type(mnp.int32, [1.0]) is ms.float32
    assert mnp.take([1, 2, 3], [5, -9]).tolist() == [3, 1]
