"""The primitives, one record each, and their registry; importing the package fills it."""

from mycel.prims import (
    block,
    control,
    conv,
    custom,
    elementwise,
    index,
    linalg,
    loop_gradient,
    normalization,
    ordered,
    positions,
    random,
    recompute,
    recursion,
    reduce,
    shape,
    window,
)
from mycel.prims.base import REGISTRY, Primitive

__all__ = [
    "REGISTRY",
    "Primitive",
    "block",
    "control",
    "conv",
    "custom",
    "elementwise",
    "index",
    "linalg",
    "loop_gradient",
    "normalization",
    "ordered",
    "positions",
    "random",
    "recompute",
    "recursion",
    "reduce",
    "shape",
    "window",
]
