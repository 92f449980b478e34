"""References of element-wise functions that NumPy lacks, or computes with other errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["digamma", "erfinv", "lgamma", "power", "sigmoid", "vectorized"]


def vectorized(function: Callable[[float], float]) -> Callable[..., Any]:
    """Return a function that applies `function` to each element, in float64."""

    def run(x: Any) -> Any:
        flat = np.asarray(x, np.float64).ravel()
        values = np.fromiter((function(v) for v in flat), np.float64, flat.size)
        return values.reshape(np.shape(x)).astype(x.dtype)

    return run


def lgamma(v: float) -> float:
    """Return log|gamma(v)|, infinite at the poles."""
    if math.isinf(v):
        return math.inf
    if v <= 0 and v == math.floor(v):
        return math.inf
    return math.lgamma(v)


def digamma(v: float) -> float:
    """Return the derivative of `lgamma`.

    It uses the reflection formula below 0, the recurrence up to 12, and the asymptotic series
    there.
    """
    if math.isnan(v) or v == -math.inf or (v < 0 and v == math.floor(v)):
        return math.nan
    if v == 0:
        return -math.copysign(math.inf, v)
    result = 0.0
    if v < 0:
        result, v = -math.pi / math.tan(math.pi * (v - math.floor(v))), 1 - v
    while v < 12:
        result, v = result - 1 / v, v + 1
    w = 1 / (v * v)
    tail = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w * (1 / 132 - w * (691 / 32760 - w / 12))))))
    return result + math.log(v) - 0.5 / v - tail


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + e**-x) without overflow."""
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    tail = np.exp(-np.abs(x))
    # NumPy 1 promotes a scalar and a Python number to float64.
    one = tail.dtype.type(1)
    return np.where(x < 0, tail, one) / (one + tail)


def erfinv(x: Any) -> Any:
    """Return the inverse of erf."""
    from scipy import special

    return special.erfinv(np.asarray(x, np.float64)).astype(x.dtype)


def power(x: Any, y: Any) -> Any:
    """Return x ** y; a negative power of an integer is truncated to an integer."""
    if x.dtype.kind in "iu":
        safe = np.where(y < 0, 0, y)
        result = np.power(x, safe.astype(x.dtype))
        exact = (
            np.where(x == 1, 1, np.where((x == -1) & (y % 2 == 0), 1, np.where(x == -1, -1, 0)))
            if x.dtype.kind == "i"
            else 0
        )
        return np.where(y < 0, exact, result).astype(x.dtype)
    return np.power(x, y)
