"""Random numbers from a generator, of the elementary distributions."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.compiler.prims import random
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops.random import draw

__all__ = ["exponential", "open_uniform", "standard_normal", "unit"]


def unit(shape: Any, generator: Any, dtype: Any) -> Tensor:
    """Return numbers uniform in [0, 1)."""
    return draw(random.uniform, shape, generator, dtype=dtype)


def open_uniform(shape: Any, generator: Any) -> Tensor:
    """Return float64 numbers uniform in (0, 1): the midpoints of 2**53 equal parts."""
    return draw(random.uniform, shape, generator, dtype=D.float64) * (1 - 2.0**-53) + 2.0**-54


def exponential(shape: Any, generator: Any, dtype: Any) -> Tensor:
    """Return numbers of the exponential distribution with rate 1."""
    return cast(-ops.log(open_uniform(shape, generator)), dtype)


def standard_normal(shape: Any, generator: Any, dtype: Any) -> Tensor:
    """Return numbers of the normal distribution with mean 0 and standard deviation 1."""
    return draw(random.normal, shape, generator, dtype=dtype)
