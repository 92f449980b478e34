"""Reductions, extremes, spreads and norms under all of their names against NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.integrate
import scipy.special

from tests.meaning import A, Array, B, Checks

from .checks import add_everywhere

checks = Checks("NumPy")


def distinct(*shape: int) -> Array:
    """Numbers of which no two are equal, so that extremes have derivatives."""
    order = np.random.default_rng(9).permutation(int(np.prod(shape)))
    return A(*shape, values=order.reshape(shape) / 7.0 - 0.8)


def reduce(names: str, expected: Any, *arrays: Array, none: bool = True, keep: bool = True, **more: Any) -> None:
    """A reduction `expected(x, axis, keepdims)`: of everything, along one axis, along the last one
    keeping it.
    """
    x, y, z = arrays or (A(3, 4), A(2, 3, 2), A(1, 5))
    cases: list[Any] = [(x,)] if none else []
    cases += [(x, 1), (y, -2), (z, 0)]
    if keep:
        cases += [(y, 1, True), (z, -1, True)]
    add_everywhere(checks, names, expected, *cases, **{"dtypes": "float32", **more})


def by(function: Any) -> Any:
    return lambda x, axis=None, keepdims=False: function(x, axis=axis, keepdims=keepdims)


EXTREMES = (distinct(3, 4), distinct(2, 3, 2), distinct(1, 5))
reduce("mean reduce_mean", by(np.mean), keep=False)
reduce("mean", by(np.mean))
reduce("reduce_sum", by(np.sum), keep=False)
reduce("prod", by(np.prod))
reduce("amax", by(np.max), *EXTREMES)
reduce("amin", by(np.min), *EXTREMES)
reduce("reduce_max ReduceMax", by(np.max), *EXTREMES, keep=False)
reduce("reduce_min ReduceMin", by(np.min), *EXTREMES, keep=False)
reduce("ReduceMean", by(np.mean), keep=False)
reduce("ReduceSum", by(np.sum), keep=False)
reduce("ReduceProd", by(np.prod), keep=False)
reduce("ptp", by(np.ptp), *EXTREMES)
TRUTHS = (B(3, 4), B(2, 3, 2), B(0, 5))
reduce("all", by(np.all), *TRUTHS, grad=())
reduce("any sometrue", by(np.any), *TRUTHS, grad=())
reduce("ReduceAll", by(np.all), *TRUTHS, keep=False, grad=())
reduce("ReduceAny", by(np.any), *TRUTHS, keep=False, grad=())
reduce("logsumexp", by(scipy.special.logsumexp), none=False, oracle="SciPy")
for init in ({"keep_dims": True},):
    for name, function in (
        ("ReduceSum", np.sum),
        ("ReduceMean", np.mean),
        ("ReduceProd", np.prod),
        ("ReduceMax", np.max),
    ):
        checks.add(
            f"ops.{name}",
            lambda x, axis, f=function: f(x, axis, keepdims=True),
            (distinct(3, 4), 1),
            (distinct(2, 3, 2), -1),
            (distinct(1, 5), 0),
            init=init,
            dtypes="float32",
        )
AXES = ((A(3, 4), (0, 1)), (A(2, 3, 2), (0, -1)), (A(0, 3, 2), (1, 2)))
for names, function in (("mean", np.mean), ("sum", np.sum), ("prod", np.prod)):
    cases = AXES if names != "prod" else ((A(3, 4), 0), (A(2, 3, 2), -1), (A(0, 3), 1))
    add_everywhere(checks, names, lambda x, axis, f=function: f(x, axis=axis), *cases, dtypes="float32")
checks.add(
    "ops.sum",
    lambda x, dim=None, keepdim=False: np.sum(x, dim, keepdims=keepdim),
    (A(3, 4),),
    (A(2, 3, 2), 1, True),
    (A(0, 3), (0, 1)),
    dtypes="float32",
)
checks.add(
    "Tensor.sum numpy.sum",
    lambda x, axis=None, dtype=None, keepdims=False: np.sum(x, axis, keepdims=keepdims),
    (A(3, 4),),
    (A(2, 3, 2), 1, None, True),
    (A(0, 3), (0, 1)),
    dtypes="float32",
)

# Extremes with positions.


def placed(take: Any, first: bool = False) -> Any:
    def run(x: Any, axis: int = 0, keepdims: bool = False) -> Any:
        place = take(x, axis=axis, keepdims=True)
        value = np.take_along_axis(x, place, axis)
        found = (value, place) if keepdims else (value.squeeze(axis), place.squeeze(axis))
        return found[::-1] if first else found

    return run


def last(x: Any, function: Any, axis: int) -> Any:
    """Where the running extreme was met last."""
    ramp = np.arange(x.shape[axis]).reshape([-1 if a == axis % x.ndim else 1 for a in range(x.ndim)])
    return np.maximum.accumulate(np.where(x == function.accumulate(x, axis), ramp, 0), axis)


for name, take in (("max", np.argmax), ("min", np.argmin)):
    value = np.max if name == "max" else np.min
    checks.add(f"ops.{name}", lambda x, f=value: (f(x), np.int64(0)), *[(x,) for x in EXTREMES], dtypes="float32")
    checks.add(
        f"ops.{name}", placed(take), (EXTREMES[0], 1), (EXTREMES[1], -2, True), (EXTREMES[2], 0), dtypes="float32"
    )
    checks.add(f"Tensor.{name} numpy.{name}", lambda x, f=value: f(x), *[(x,) for x in EXTREMES], dtypes="float32")
    checks.add(
        f"numpy.{name}", by(value), (EXTREMES[0], 1), (EXTREMES[1], -2, True), (EXTREMES[2], 0), dtypes="float32"
    )
    checks.add(
        f"Tensor.{name}", placed(take), (EXTREMES[0], 1), (EXTREMES[1], -2, True), (EXTREMES[2], 0), dtypes="float32"
    )
    checks.add(
        f"Tensor.{name}",
        lambda x, axis, f=value: f(x, axis),
        *[(x,) for x in EXTREMES],
        kwargs={"axis": 1},
        dtypes="float32",
    )
    checks.add(
        f"Tensor.arg{name}_with_value",
        placed(take),
        (EXTREMES[0], 1),
        (EXTREMES[1], -2, True),
        (EXTREMES[2],),
        dtypes="float32",
    )
    for axis, keep in ((0, False), (1, True), (-1, False)):
        checks.add(
            f"ops.Arg{name.title()}WithValue",
            lambda x, t=take, a=axis, k=keep: placed(t, True)(x, a, k),
            *[(x,) for x in EXTREMES],
            init={"axis": axis, "keep_dims": keep},
            dtypes="float32",
        )
        checks.add(
            f"ops.Arg{name}",
            lambda x, t=take, a=axis: t(x, a),
            *[(x,) for x in EXTREMES],
            init={"axis": axis},
            dtypes="float32",
            grad=(),
        )
    reduce(f"arg{name}", by(take), *EXTREMES, keep=False, grad=())
    checks.add(
        f"ops.arg{name} Tensor.arg{name}",
        by(take),
        (EXTREMES[0], 1, True),
        (EXTREMES[1], 0, True),
        (EXTREMES[2], -1, True),
        dtypes="float32",
        grad=(),
    )
    checks.add(
        f"numpy.nan{name}",
        lambda x, axis=None, f=np.nanmax if name == "max" else np.nanmin: f(x, axis),
        *[(x,) for x in EXTREMES],
        (A(2, 2, values=np.array([[np.nan, 1.0], [2.0, np.nan]])), 1),
        dtypes="float32",
        grad=(),
    )
    checks.add(
        f"ops.cum{name} Tensor.cum{name}",
        lambda x, axis, f=np.maximum if name == "max" else np.minimum: (f.accumulate(x, axis), last(x, f, axis)),
        (EXTREMES[0], 1),
        (EXTREMES[1], -2),
        (EXTREMES[2], 0),
        dtypes="float32",
    )
    checks.add(
        f"ops.Cum{name}",
        lambda x, f=np.maximum if name == "max" else np.minimum: (f.accumulate(x, 1), last(x, f, 1)),
        *[(x,) for x in EXTREMES],
        init={"axis": 1},
        dtypes="float32",
    )


checks.add(
    "ops.aminmax Tensor.aminmax",
    lambda x, axis=0, keepdims=False: (np.min(x, axis, keepdims=keepdims), np.max(x, axis, keepdims=keepdims)),
    *[(x,) for x in EXTREMES],
    dtypes="float32",
)
checks.add(
    "ops.aminmax Tensor.aminmax",
    lambda x, axis=0, keepdims=False: (np.min(x, axis, keepdims=keepdims), np.max(x, axis, keepdims=keepdims)),
    *[(x,) for x in EXTREMES],
    kwargs={"axis": 1, "keepdims": True},
    dtypes="float32",
)

# Spread.
SPREADS = ((A(3, 4),), (A(2, 3, 2), 1), (A(4, 5), (0, 1), 1), (A(4, 3), -1, 2, True), (A(2, 3), 0, 0, True))


def spread(root: bool, both: bool = False) -> Any:
    def run(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
        value = (np.std if root else np.var)(x, axis, ddof=ddof, keepdims=keepdims)
        return (value, np.mean(x, axis, keepdims=keepdims)) if both else value

    return run


add_everywhere(checks, "var", spread(False), *SPREADS, dtypes="float32")
add_everywhere(checks, "std", spread(True), *SPREADS, dtypes="float32")
checks.add("ops.var_mean", spread(False, True), *SPREADS, dtypes="float32")
checks.add("ops.std_mean", spread(True, True), *SPREADS, dtypes="float32")
checks.add(
    "ops.ReduceStd", lambda x: spread(True, True)(x, None, 1), (A(3, 4),), (A(2, 3, 2),), (A(5),), dtypes="float32"
)
checks.add(
    "ops.ReduceStd",
    lambda x: spread(True, True)(x, 1, 0, True),
    (A(3, 4),),
    (A(2, 3, 2),),
    (A(1, 5),),
    init={"axis": 1, "unbiased": False, "keep_dims": True},
    dtypes="float32",
)
HOLES = A(3, 4, values=np.where(np.eye(3, 4) > 0, np.nan, np.arange(12).reshape(3, 4) / 7))
for names, function in (("nansum", np.nansum), ("nanmean", np.nanmean)):
    for kwargs in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
        add_everywhere(checks, names, function, (A(3, 4),), (A(2, 3, 2),), (A(1, 5),), kwargs=kwargs, dtypes="float32")
        add_everywhere(checks, names, function, (HOLES,), kwargs=kwargs, dtypes="float32", grad=())
for names, function in (("nanstd", np.nanstd), ("nanvar", np.nanvar)):
    for kwargs in ({}, {"axis": 0, "ddof": 1}, {"axis": 1, "keepdims": True}):
        add_everywhere(
            checks,
            names,
            function,
            (A(3, 4),),
            (A(2, 3, 2),),
            (A(2, 5),),
            (HOLES,),
            kwargs=kwargs,
            dtypes="float32",
            grad=(),
        )
for kwargs in ({}, {"axis": 0}, {"axis": -1}):
    checks.add("numpy.average", np.average, (A(3, 4),), (A(2, 3, 2),), (A(1, 5),), kwargs=kwargs, dtypes="float32")
    checks.add(
        "numpy.nancumsum", np.nancumsum, (A(3, 4),), (A(2, 3, 2),), (HOLES,), kwargs=kwargs, dtypes="float32", grad=()
    )
    checks.add("numpy.cumsum", np.cumsum, (A(3, 4),), (A(2, 3, 2),), (A(0, 5),), kwargs=kwargs, dtypes="float32")
    checks.add("numpy.cumprod", np.cumprod, (A(3, 4),), (A(2, 3, 2),), (A(1, 5),), kwargs=kwargs, dtypes="float32")
checks.add(
    "numpy.average",
    lambda x, axis, weights: np.average(x, axis, weights),
    (A(3, 4), 1, A(4, low=0.5)),
    (A(5), 0, A(5, low=0.5)),
    (A(2, 3), None, A(2, 3, low=0.5)),
    dtypes="float32",
    grad=(0,),
)

# Norms.
for order in (2, 1, 3, 0.5, float("inf"), -float("inf")):
    checks.add(
        "ops.vector_norm",
        lambda x, ord, axis: np.linalg.norm(x, ord, axis),
        *[(x,) for x in (distinct(3, 4), distinct(2, 5), distinct(5, 1))],
        kwargs={"ord": order, "axis": 1},
        dtypes="float32",
    )
    checks.add(
        "numpy.norm",
        lambda x, ord, axis: np.linalg.norm(x, ord, axis),
        *[(x,) for x in (distinct(3, 4), distinct(2, 5), distinct(5, 1))],
        kwargs={"ord": order, "axis": 1},
        dtypes="float32",
    )
checks.add(
    "ops.vector_norm numpy.norm",
    lambda x, keepdims=False: np.sqrt(np.sum(x * x, keepdims=keepdims)),
    (A(3, 4),),
    (A(5),),
    (A(2, 3, 2),),
    dtypes="float32",
)
checks.add(
    "ops.vector_norm",
    lambda x, keepdims=False: np.sqrt(np.sum(x * x, keepdims=keepdims)),
    (A(3, 4),),
    (A(5),),
    (A(2, 3, 2),),
    kwargs={"keepdims": True},
    dtypes="float32",
)
for p, keep in ((2, False), (1, True), (3, False)):
    checks.add(
        "ops.LpNorm",
        lambda x, p=p, keep=keep: np.sum(np.abs(x) ** p, (0, 1), keepdims=keep) ** (1 / p),
        (A(3, 4),),
        (A(2, 3, 2),),
        (A(1, 5),),
        init={"axis": [0, 1], "p": p, "keep_dims": keep},
        dtypes="float32",
    )
checks.add(
    "ops.EuclideanNorm",
    lambda x, axes: np.sqrt(np.sum(x * x, tuple(axes))),
    (A(3, 4), Array((1,), dtype="int64", values=[1])),
    (A(2, 3, 2), Array((2,), dtype="int64", values=[0, 2])),
    (A(1, 5), Array((1,), dtype="int64", values=[0])),
    dtypes="float32",
)
checks.add("ops.L2Loss", lambda x: np.sum(x * x) / 2, (A(3, 4),), (A(5),), (A(0, 2),), dtypes="float32")
for axis, epsilon in ((0, 1e-4), (1, 0.5)):
    checks.add(
        "ops.L2Normalize",
        lambda x, axis=axis, e=epsilon: x / np.sqrt(np.maximum(np.sum(x * x, axis, keepdims=True), e)),
        (A(3, 4),),
        (A(2, 3, 2),),
        (A(1, 5),),
        init={"axis": axis, "epsilon": epsilon},
        dtypes="float32",
    )
checks.add(
    "ops.dist",
    lambda x, y, p=2: np.sum(np.abs(x - y) ** p) ** (1 / p),
    (A(3, 4), A(3, 4)),
    (A(5), A(5), 3),
    (A(2, 3), A(3), 1),
    dtypes="float32",
)
for p in (1.0, 2.0, 3.0):
    checks.add(
        "ops.cdist",
        lambda x, y, p: np.sum(np.abs(x[..., :, None, :] - y[..., None, :, :]) ** p, -1) ** (1 / p),
        (A(3, 4), A(5, 4)),
        (A(2, 3, 2), A(2, 1, 2)),
        (A(1, 3), A(2, 3)),
        kwargs={"p": p},
        dtypes="float32",
    )
    checks.add(
        "ops.Cdist",
        lambda x, y, p=p: np.sum(np.abs(x[..., :, None, :] - y[..., None, :, :]) ** p, -1) ** (1 / p),
        (A(3, 4), A(5, 4)),
        (A(2, 3, 2), A(2, 1, 2)),
        (A(1, 3), A(2, 3)),
        init={"p": p},
        dtypes="float32",
    )
    checks.add(
        "ops.pdist",
        lambda x, p: np.array(
            [np.sum(np.abs(x[i] - x[j]) ** p) ** (1 / p) for i in range(len(x)) for j in range(i + 1, len(x))]
        ),
        (A(4, 3),),
        (A(2, 5),),
        (A(3, 1),),
        kwargs={"p": p},
        dtypes="float32",
    )

test_values, test_gradients = checks.tests()
