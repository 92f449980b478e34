"""Cosine transforms of type II, and their inverses.

The orthonormal transform of x_0, ..., x_(N-1) is

    X_k = c_k sum_n x_n cos(pi k (2n + 1) / (2N)),  c_0 = sqrt(1/N), c_k = sqrt(2/N).

It is found from one Fourier transform of the same length, of the elements of even index followed by
those of odd index backwards (J. Makhoul, "A fast cosine transform in one and two dimensions",
1980).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.public_names import listing as _listing
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import axis_of, floating
from mycel.ops.complex_numbers import complex_of

__all__ = ["dct", "dctn", "idct", "idctn"]


def _checked(name: str, x: Any, type: int, norm: str | None) -> Tensor:
    if arguments.integer(name, "type", type) != 2:
        raise ValueError(f"{name}: only type 2 is supported, not {type}")
    if norm not in (None, "ortho"):
        raise ValueError(f"{name}: only norm 'ortho' is supported, which None means too, not {norm!r}")
    value = floating(name, x)
    return value if value.dtype is D.float64 else cast(value, D.float32)


def _sized(name: str, x: Tensor, n: int | None, axis: int) -> Tensor:
    """Return the first `n` elements along an axis, followed by zeros if there are fewer."""
    if n is None:
        return x
    arguments.integer(name, "n", n, 1)
    size = x.shape[axis]
    if n <= size:
        return ops.narrow(x, axis, 0, n)
    gap = list(x.shape)
    gap[axis] = n - size
    return ops.cat([x, ops.zeros(tuple(gap), x.dtype)], axis)


def _turns(count: int, sign: float, like: Tensor) -> Tensor:
    kind = np.complex128 if like.dtype is D.float64 else np.complex64
    return Tensor(np.exp(sign * 1j * math.pi * np.arange(count) / (2 * count)).astype(kind))


def _scales(count: int, like: Tensor) -> Tensor:
    scales = np.full(count, math.sqrt(0.5 / count))
    scales[0] = math.sqrt(0.25 / count)
    return Tensor(scales, like.dtype)


def _forward(x: Tensor) -> Tensor:
    """Return the transform along the last axis."""
    count = x.shape[-1]
    folded = ops.cat([x[..., ::2], ops.flip(x[..., 1::2], (-1,))], -1)
    turned = ops.fft(folded) * _turns(count, -1.0, x)
    return cast(ops.real(turned), x.dtype) * (2.0 * _scales(count, x))


def _inverse(x: Tensor) -> Tensor:
    """Return the inverse along the last axis."""
    count = x.shape[-1]
    plain = x / _scales(count, x)
    back = ops.cat([ops.zeros_like(plain[..., :1]), ops.flip(plain[..., 1:], (-1,))], -1)
    folded = cast(ops.real(ops.ifft(complex_of(plain, -back) * (0.5 * _turns(count, 1.0, x)))), x.dtype)
    # Element 2i is i of the folded ones, element 2i + 1 is i from their end.
    order = np.empty(count, np.int64)
    order[::2] = np.arange((count + 1) // 2)
    order[1::2] = count - 1 - np.arange(count // 2)
    return ops.gather(folded, Tensor(order), -1)


def _along(name: str, transform: Any, x: Tensor, n: int | None, axis: int) -> Tensor:
    place = axis_of(name, axis, x.ndim)
    return ops.swapaxes(transform(ops.swapaxes(_sized(name, x, n, place), place, -1)), place, -1)


def _several(name: str, transform: Any, x: Tensor, s: Any, axes: Any) -> Tensor:
    count = x.ndim if s is None else len(s)
    chosen: Sequence[int] = range(x.ndim - count, x.ndim) if axes is None else axes
    sizes = [None] * len(chosen) if s is None else list(s)
    if len(sizes) != len(chosen):
        raise ValueError(f"{name}: s has {len(sizes)} sizes for {len(chosen)} axes")
    for axis, n in zip(chosen, sizes):
        x = _along(name, transform, x, n, axis)
    return x


def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return the orthonormal cosine transform of type II along an axis.

    The result is float64 for float64, else float32. Raises ValueError for other types and norms.

    Args:
        x: A tensor of real numbers.
        type: 2.
        n: The number of elements to transform: the first ones, followed by zeros if there are
            fewer. None is all.
        axis: The axis.
        norm: "ortho" or None, which means the same.

    >>> import mycel as ms
    >>> [round(v, 4) for v in ms.scipy.fft.dct(ms.Tensor([1.0, 2.0, 4.0])).tolist()]
    [4.0415, -2.1213, 0.4082]
    """
    return _along("dct", _forward, _checked("dct", x, type, norm), n, axis)


def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Return what `dct` transforms into `x`; the arguments are the same.

    Args:
        x: A tensor of real numbers.
        type: 2.
        n: The number of elements to transform, None for all.
        axis: The axis.
        norm: "ortho" or None, which means the same.

    >>> import mycel as ms
    >>> [round(v, 4) for v in ms.scipy.fft.idct(ms.scipy.fft.dct(ms.Tensor([1.0, 2.0]))).tolist()]
    [1.0, 2.0]
    """
    return _along("idct", _inverse, _checked("idct", x, type, norm), n, axis)


def dctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """Return `dct` along several axes.

    Args:
        x: A tensor of real numbers.
        type: 2.
        s: The number of elements to transform along each axis, None for all.
        axes: The axes; by default the last ones, as many as `s` has, or all.
        norm: "ortho" or None, which means the same.

    >>> import mycel as ms
    >>> ms.scipy.fft.dctn(ms.ops.ones((2, 2))).shape
    (2, 2)
    """
    return _several("dctn", _forward, _checked("dctn", x, type, norm), s, axes)


def idctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """Return `idct` along several axes.

    Args:
        x: A tensor of real numbers.
        type: 2.
        s: The number of elements to transform along each axis, None for all.
        axes: The axes; by default the last ones, as many as `s` has, or all.
        norm: "ortho" or None, which means the same.

    >>> import mycel as ms
    >>> ms.scipy.fft.idctn(ms.ops.ones((2, 2))).shape
    (2, 2)
    """
    return _several("idctn", _inverse, _checked("idctn", x, type, norm), s, axes)


__dir__ = _listing(__name__)
