"""Discrete Fourier transforms.

None is normalised. The adjoint of the complex transform is itself in the other direction. Those
from and to real numbers, which take half the work, are differentiated through it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.ir.dims import DimLike
from mycel.ir.graph import Node
from mycel.ir.types import TensorType, tensor_type
from mycel.prims import elementwise as E
from mycel.prims import shape as S
from mycel.prims.base import Primitive, Sample, need_kind, register
from mycel.prims.complex import complex_of, conjugate, real

__all__ = ["fourier", "fourier_from_half", "fourier_half"]


def _infer(x: TensorType, *, axes: tuple[int, ...], inverse: bool) -> TensorType:
    need_kind("fourier", "c", x)
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.rank for a in axes):
        raise ShapeError(f"fourier: {axes} are not axes of {x}")
    if any(x.shape[a] == 0 for a in axes):
        raise ShapeError(f"fourier: an axis of {x} has no elements")
    return x


def _library() -> Any:
    from scipy import fft

    return fft


def _reference(x: Any, *, axes: tuple[int, ...], inverse: bool) -> Any:
    library = _library()
    found = library.ifftn(x, axes=axes, norm="forward") if inverse else library.fftn(x, axes=axes)
    return found.astype(x.dtype, copy=False)


def _batch(size: Any, values: Any, batch_axes: Any, *, axes: tuple[int, ...], inverse: bool) -> tuple[Node, int]:
    x = S.move_axis(values[0], batch_axes[0], 0)
    return fourier(x, axes=tuple(a + 1 for a in axes), inverse=inverse), 0


fourier: Primitive = register(
    Primitive(
        "fourier",
        _infer,
        _reference,
        lambda ct, out, x, *, axes, inverse: (fourier(ct, axes=axes, inverse=not inverse),),
        _batch,
        samples=tuple(
            Sample(
                (np.exp(1j * np.arange(12.0) ** 2).reshape(3, 4).astype(k),),
                {"axes": a, "inverse": i},
                dtypes=(k,),
                differentiable=False,
            )
            for k in ("complex64", "complex128")
            for a, i in (((1,), False), ((0, 1), True))
        ),
        doc="Sums of x[n] exp(-2 pi i k n / N) over axes; with `inverse` of the conjugate exponentials. Neither is "
        "divided by N.",
    )
)


# Of real numbers, whose transform is conjugate to itself in reverse order.


def _half_infer(x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    need_kind("fourier_half", "f", x)
    found = _infer(x.with_dtype(complex_of(x.dtype)), axes=axes, inverse=False)
    return found.with_shape(tuple([d // 2 + 1 if k == axes[-1] else d for k, d in enumerate(x.shape)]))


def _half_reference(x: Any, *, axes: tuple[int, ...]) -> Any:
    return _library().rfftn(x, axes=axes).astype(np.result_type(x.dtype, np.complex64), copy=False)


def _half_expand(x: Node, *, axes: tuple[int, ...]) -> Node:
    found = fourier(E.cast(x, dtype=complex_of(x.dtype)), axes=axes, inverse=False)
    return S.slice_axis(found, axes[-1], 0, x.shape[axes[-1]] // 2 + 1)


fourier_half: Primitive = register(
    Primitive(
        "fourier_half",
        _half_infer,
        _half_reference,
        expand=_half_expand,
        samples=tuple(
            Sample((shape,), {"axes": axes}, dtypes=(k,), differentiable=False)
            for k in ("float32", "float64")
            for shape, axes in (((3, 4), (1,)), ((3, 5), (0, 1)), ((2, 1), (1,)))
        ),
        doc="The first n // 2 + 1 terms, along the last of the axes, of the transform of real numbers.",
    )
)


def _whole_infer(x: TensorType, *, axes: tuple[int, ...], size: DimLike) -> TensorType:
    found = _infer(x, axes=axes, inverse=True)
    kind = D.float64 if x.dtype is D.complex128 else D.float32
    if x.shape[axes[-1]] != size // 2 + 1:
        raise ShapeError(f"fourier_from_half: {size} numbers have {size // 2 + 1} terms, not {x.shape[axes[-1]]}")
    return tensor_type(tuple([size if k == axes[-1] else d for k, d in enumerate(found.shape)]), kind)


def _whole_reference(x: Any, *, axes: tuple[int, ...], size: int) -> Any:
    sizes = [*[x.shape[a] for a in axes[:-1]], size]
    found = _library().irfftn(x, sizes, axes=axes, norm="forward")
    return found.astype(np.float64 if x.dtype == np.complex128 else np.float32, copy=False)


def _whole_expand(x: Node, *, axes: tuple[int, ...], size: DimLike) -> Node:
    last = axes[-1]
    if axes[:-1]:
        x = fourier(x, axes=axes[:-1], inverse=True)
    if size > 2:
        rest = S.reverse(conjugate(S.slice_axis(x, last, 1, (size + 1) // 2)), axes=(last,))
        x = S.concat([x, rest], last)
    else:
        x = S.slice_axis(x, last, 0, size)
    return real(fourier(x, axes=(last,), inverse=True))


fourier_from_half: Primitive = register(
    Primitive(
        "fourier_from_half",
        _whole_infer,
        _whole_reference,
        expand=_whole_expand,
        samples=tuple(
            Sample((np.exp(1j * np.arange(9.0) ** 2).reshape(3, 3).astype(k),), p, dtypes=(k,), differentiable=False)
            for k in ("complex64", "complex128")
            for p in ({"axes": (1,), "size": 4}, {"axes": (0, 1), "size": 5})
        ),
        doc="The `size` real numbers that the inverse transform gives for the first half of its terms, along the "
        "last of the axes.",
    )
)
