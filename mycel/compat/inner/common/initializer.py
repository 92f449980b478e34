"""`mindspore.common.initializer`: what initializers of a program's own are made with."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from mycel.common.initializer import _ALIASES as _INITIALIZER_ALIAS
from mycel.common.initializer import Initializer
from mycel.common.seed import initializer_rng
from mycel.compat.inner._c_expression import _random_normal, _random_uniform, _truncated_normal
from mycel.compat.inner.common.seed import _get_graph_seed

__all__: list[str] = []

Array = NDArray[Any]
_UNIT_GAINS = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def _register(*aliases: str) -> Callable[[type[Initializer]], type[Initializer]]:
    """Return a decorator that lets `initializer` know a class by its name in lower case, and by
    other names.
    """

    def enter(kind: type[Initializer]) -> type[Initializer]:
        for name in (kind.__name__.lower(), *aliases):
            _INITIALIZER_ALIAS[name] = kind
        return kind

    return enter


def _assignment(arr: Array, num: Any) -> Array:
    """Write a number, or an array of the same shape, into an array, and return the array."""
    arr[...] = num
    return arr


def _numpy_seed() -> int:
    """Return a new seed, which follows from that of `set_seed`."""
    return int(initializer_rng().integers(1 << 63))


def _calculate_fan_in_and_fan_out(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return how many inputs an output of a weight of this shape has, and how many outputs an
    input.

    Raises ValueError for fewer than two dimensions.
    """
    if len(shape) < 2:
        raise ValueError(f"fan_in and fan_out need a shape of at least 2 dimensions, not {tuple(shape)}")
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def _calculate_correct_fan(shape: tuple[int, ...], mode: str) -> int:
    """Return the fan that a mode means, "fan_in" or "fan_out"; ValueError for another mode."""
    modes = ("fan_in", "fan_out")
    if mode.lower() not in modes:
        raise ValueError(f"mode must be 'fan_in' or 'fan_out', not {mode!r}")
    return _calculate_fan_in_and_fan_out(shape)[modes.index(mode.lower())]


def _calculate_in_and_out(arr: Array) -> tuple[int, int]:
    """Return the number of outputs and of inputs of a weight; ValueError for fewer than two
    dimensions.
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(arr.shape)
    return fan_in, fan_out


def _calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return by how much weights before an activation are larger than without one.

    `param` is the slope of "leaky_relu", 0.01 if it is None. Raises ValueError for an activation
    that is not known, or a slope that is no number.
    """
    if nonlinearity in _UNIT_GAINS or nonlinearity == "sigmoid":
        return 1
    if nonlinearity == "tanh":
        return 5 / 3
    if nonlinearity == "relu":
        return math.sqrt(2)
    if nonlinearity != "leaky_relu":
        raise ValueError(f"nonlinearity must be 'sigmoid', 'tanh', 'relu' or 'leaky_relu', not {nonlinearity!r}")
    if param is None:
        param = 0.01
    if isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"the slope of 'leaky_relu' must be an int or float, not {param!r}")
    return math.sqrt(2 / (1 + param**2))


def _init_random_normal_inplace(mean: float, sigma: float, arr: Array) -> None:
    """Fill an array with normal numbers."""
    _random_normal(_numpy_seed(), arr, mean, sigma)


def _init_random_uniform_inplace(a: float, b: float, arr: Array) -> None:
    """Fill an array with uniform numbers."""
    _random_uniform(_numpy_seed(), arr, a, b)


def _init_truncated_normal_inplace(a: float, b: float, mean: float, sigma: float, arr: Array) -> None:
    """Fill an array with normal numbers between bounds.

    `a` and `b` are the bounds, `mean` and `sigma` the mean and the deviation, `arr`
    the array.
    """
    _truncated_normal(_numpy_seed(), arr, a, b, mean, sigma)


def _init_random_normal(mean: float, sigma: float, shape: tuple[int, ...]) -> Array:
    """Return an array of float32 of normal numbers."""
    arr = np.empty(shape, np.float32)
    _init_random_normal_inplace(mean, sigma, arr)
    return arr


def _init_random_uniform(a: float, b: float, shape: tuple[int, ...]) -> Array:
    """Return an array of float32 of uniform numbers."""
    arr = np.empty(shape, np.float32)
    _init_random_uniform_inplace(a, b, arr)
    return arr


def _init_truncated_normal(a: float, b: float, mean: float, sigma: float, shape: tuple[int, ...]) -> Array:
    """Return an array of float32 of normal numbers between bounds.

    `a` and `b` are the bounds, `mean` and `sigma` the mean and the deviation, `shape`
    the shape of the array.
    """
    arr = np.empty(shape, np.float32)
    _init_truncated_normal_inplace(a, b, mean, sigma, arr)
    return arr
