"""MindSpore's `scipy.fft`: the orthonormal cosine transform of the second type, and its inverse, as
products with the matrix of the transform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np

from mycel import ops
from mycel.core.tensor import Tensor
from mycel.ops._operands import floating

__all__ = ["NAMES", "TRANSFORMS"]


def _matrix(size: int) -> Any:
    """Return the matrix (frequencies, places) of the transform; its inverse is the transpose."""
    places, frequencies = np.arange(size), np.arange(size)[:, None]
    table = np.sqrt(2.0 / size) * np.cos(np.pi * frequencies * (2 * places + 1) / (2 * size))
    table[0] /= np.sqrt(2.0)
    return table


def _sized(x: Any, size: int, axis: int) -> Any:
    """Cut an axis off, or put zeros behind."""
    if size <= x.shape[axis]:
        return ops.narrow(x, axis, 0, size)
    behind = [n if i != axis else size - n for i, n in enumerate(x.shape)]
    return ops.cat((x, ops.zeros(behind, x.dtype)), axis)


def _along(x: Any, size: Optional[int], axis: int, inverse: bool) -> Any:
    axis %= x.ndim
    x = x if size is None else _sized(x, size, axis)
    table = _matrix(x.shape[axis])
    weights = Tensor(table if inverse else table.T).astype(x.dtype)
    return ops.matmul(x.swapaxes(axis, -1), weights).swapaxes(axis, -1)


def _check(type_: Any, norm: Any) -> None:
    if type_ != 2:
        raise ValueError("Only dct type II is supported currently.")
    if norm not in (None, "ortho"):
        raise ValueError('Only norm "ortho" is supported currently.')


def _one(inverse: bool) -> Callable[..., Any]:
    def transform(x: Any, type: int = 2, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None) -> Any:
        _check(type, norm)
        return _along(floating("dct", x), n, axis, inverse)

    return transform


def _many(inverse: bool) -> Callable[..., Any]:
    def transform(
        x: Any,
        type: int = 2,
        s: Optional[Sequence[int]] = None,
        axes: Optional[Sequence[int]] = None,
        norm: Optional[str] = None,
    ) -> Any:
        _check(type, norm)
        x = floating("dctn", x)
        if axes is None:
            axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
        sizes = [None] * len(axes) if s is None else s
        for axis, size in zip(axes, sizes):
            x = _along(x, size, axis, inverse)
        return x

    return transform


NAMES: dict[str, Any] = {"dct": _one(False), "dctn": _many(False), "idct": _one(True), "idctn": _many(True)}


def _work(name: str) -> Callable[..., Any]:
    return lambda p, *inputs: NAMES[name](*inputs)


TRANSFORMS: dict[str, Callable[..., Any]] = {name.upper(): _work(name) for name in NAMES}
