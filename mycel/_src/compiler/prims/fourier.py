"""Discrete Fourier transforms.

None is divided by its size, each is multiplied by `factor`. The adjoint of the complex transform
is itself in the other direction. Those from and to real numbers, which take half the work, are each
other's adjoint once the terms between the first and the last, which stand for two each, are given
their weight.

`fourier_parts` is what engines without complex numbers run: along one axis, with real and imaginary
parts apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Sample, need_kind, register
from mycel._src.compiler.prims.complex import complex_of, conjugate, real
from mycel._src.compiler.prims.factors import other_axes_factors
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError

__all__ = ["PRIMES", "fourier", "fourier_from_half", "fourier_half", "fourier_parts"]

# The prime factors of the sizes that `fourier_parts` takes.
PRIMES = (2, 3, 5, 7, 11, 13)


def _infer(x: TensorType, *, axes: tuple[int, ...], inverse: bool, factor: float = 1.0) -> TensorType:
    need_kind("fourier", "c", x)
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.rank for a in axes):
        raise ShapeError(f"fourier: {axes} are not axes of {x}")
    if any(x.shape[a] == 0 for a in axes):
        raise ShapeError(f"fourier: an axis of {x} has no elements")
    return x


def _lengths(node: Node) -> tuple[DimLike, ...]:
    """Return the sizes of the axes of a transform of several."""
    return (*(node.inputs[0].shape[a] for a in node.params["axes"]), node.params.get("size", 1))


def _library() -> Any:
    from scipy import fft

    return fft


def _reference(x: Any, *, axes: tuple[int, ...], inverse: bool, factor: float = 1.0) -> Any:
    library = _library()
    found = library.ifftn(x, axes=axes, norm="forward") if inverse else library.fftn(x, axes=axes)
    return _times(found.astype(x.dtype, copy=False), factor)


def _times(array: Any, factor: float) -> Any:
    return array if factor == 1.0 else array * array.real.dtype.type(factor)


def _batch(size: Any, values: Any, batch_axes: Any, *, axes: tuple[int, ...], **params: Any) -> tuple[Node, int]:
    x = S.move_axis(values[0], batch_axes[0], 0)
    return fourier(x, axes=tuple(a + 1 for a in axes), **params), 0


fourier: Primitive = register(
    Primitive(
        "fourier",
        _infer,
        _reference,
        lambda ct, out, x, *, inverse, **params: (fourier(ct, inverse=not inverse, **params),),
        _batch,
        fixed=_lengths,
        factors=lambda node: other_axes_factors(node, node.params["axes"]),
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
        doc="Sums of x[n] exp(-2 pi i k n / N) over axes, with `inverse` of the conjugate exponentials, times "
        "`factor` (1 by default). Neither is divided by N.",
    )
)


# Of real numbers, whose transform is conjugate to itself in reverse order.


def _half_infer(x: TensorType, *, axes: tuple[int, ...], factor: float = 1.0) -> TensorType:
    need_kind("fourier_half", "f", x)
    found = _infer(x.with_dtype(complex_of(x.dtype)), axes=axes, inverse=False)
    return found.with_shape(tuple([d // 2 + 1 if k == axes[-1] else d for k, d in enumerate(x.shape)]))


def _half_reference(x: Any, *, axes: tuple[int, ...], factor: float = 1.0) -> Any:
    found = _library().rfftn(x, axes=axes).astype(np.result_type(x.dtype, np.complex64), copy=False)
    return _times(found, factor)


def _half_expand(x: Node, *, axes: tuple[int, ...], factor: float = 1.0) -> Node:
    found = fourier(E.cast(x, dtype=complex_of(x.dtype)), axes=axes, inverse=False, factor=factor)
    return S.slice_axis(found, axes[-1], 0, x.shape[axes[-1]] // 2 + 1)


def _weighted(x: Node, axis: int, size: DimLike, inner: float) -> Node:
    """Return the terms of half a transform of `size` numbers, those times `inner` that stand for
    two.
    """
    count = x.shape[axis]
    shape = tuple([count if k == axis else 1 for k in range(x.type.rank)])
    place = S.iota(shape=shape, axis=axis, dtype=D.int64)
    last = size // 2 if size % 2 == 0 else -1
    alone = E.logical_or(E.eq(place, 0), E.eq(place, S.constant_like(last, place)))
    part = D.float64 if x.dtype is D.complex128 else D.float32
    weight = E.select(alone, S.full(shape, 1, part), S.full(shape, inner, part))
    return E.mul(x, E.cast(S.broadcast_to(weight, x.shape), dtype=x.dtype))


def _half_vjp(ct: Node, out: Node, x: Node, *, axes: tuple[int, ...], factor: float = 1.0) -> tuple[Node]:
    size = x.shape[axes[-1]]
    return (fourier_from_half(_weighted(ct, axes[-1], size, 0.5), axes=axes, size=size, factor=factor),)


def _half_batch(size: Any, values: Any, batch_axes: Any, *, axes: tuple[int, ...], **params: Any) -> tuple[Node, int]:
    return fourier_half(S.move_axis(values[0], batch_axes[0], 0), axes=tuple(a + 1 for a in axes), **params), 0


fourier_half: Primitive = register(
    Primitive(
        "fourier_half",
        _half_infer,
        _half_reference,
        _half_vjp,
        _half_batch,
        expand=_half_expand,
        fixed=_lengths,
        factors=lambda node: other_axes_factors(node, node.params["axes"]),
        samples=tuple(
            Sample((shape,), {"axes": axes, **more}, dtypes=(k,), differentiable=False)
            for k in ("float32", "float64")
            for shape, axes, more in (
                ((3, 4), (1,), {}),
                ((3, 5), (0, 1), {}),
                ((2, 1), (1,), {}),
                ((2, 6), (1,), {"factor": 0.25}),
            )
        ),
        doc="The first n // 2 + 1 terms, along the last of the axes, of the transform of real numbers, times `factor`.",
    )
)


def _whole_infer(x: TensorType, *, axes: tuple[int, ...], size: DimLike, factor: float = 1.0) -> TensorType:
    found = _infer(x, axes=axes, inverse=True)
    kind = D.float64 if x.dtype is D.complex128 else D.float32
    if x.shape[axes[-1]] != size // 2 + 1:
        raise ShapeError(f"fourier_from_half: {size} numbers have {size // 2 + 1} terms, not {x.shape[axes[-1]]}")
    return tensor_type(tuple([size if k == axes[-1] else d for k, d in enumerate(found.shape)]), kind)


def _whole_reference(x: Any, *, axes: tuple[int, ...], size: int, factor: float = 1.0) -> Any:
    sizes = [*[x.shape[a] for a in axes[:-1]], size]
    found = _library().irfftn(x, sizes, axes=axes, norm="forward")
    return _times(found.astype(np.float64 if x.dtype == np.complex128 else np.float32, copy=False), factor)


def _whole_expand(x: Node, *, axes: tuple[int, ...], size: DimLike, factor: float = 1.0) -> Node:
    last = axes[-1]
    if axes[:-1]:
        x = fourier(x, axes=axes[:-1], inverse=True)
    if size > 2:
        rest = S.reverse(conjugate(S.slice_axis(x, last, 1, (size + 1) // 2)), axes=(last,))
        x = S.concat([x, rest], last)
    else:
        x = S.slice_axis(x, last, 0, size)
    return real(fourier(x, axes=(last,), inverse=True, factor=factor))


def _whole_vjp(
    ct: Node, out: Node, x: Node, *, axes: tuple[int, ...], size: DimLike, factor: float = 1.0
) -> tuple[Node]:
    return (_weighted(fourier_half(ct, axes=axes, factor=factor), axes[-1], size, 2.0),)


def _whole_batch(_: Any, values: Any, batch_axes: Any, *, axes: tuple[int, ...], **params: Any) -> tuple[Node, int]:
    return fourier_from_half(S.move_axis(values[0], batch_axes[0], 0), axes=tuple(a + 1 for a in axes), **params), 0


fourier_from_half: Primitive = register(
    Primitive(
        "fourier_from_half",
        _whole_infer,
        _whole_reference,
        _whole_vjp,
        _whole_batch,
        expand=_whole_expand,
        fixed=_lengths,
        factors=lambda node: other_axes_factors(node, node.params["axes"]),
        samples=tuple(
            Sample((np.exp(1j * np.arange(9.0) ** 2).reshape(3, 3).astype(k),), p, dtypes=(k,), differentiable=False)
            for k in ("complex64", "complex128")
            for p in (
                {"axes": (1,), "size": 4},
                {"axes": (0, 1), "size": 5},
                {"axes": (1,), "size": 4, "factor": 0.25},
            )
        ),
        doc="The `size` real numbers that the inverse transform gives for the first half of its terms, along the "
        "last of the axes, times `factor`.",
    )
)


# Along one axis, with the parts of numbers apart.


def _parts_infer(
    re: TensorType, *others: TensorType, axis: int, kind: str, inverse: bool, factor: float, turn: int
) -> TensorType:
    need_kind("fourier_parts", "f", re, *others)
    if any(o is not re for o in others) or not 0 <= axis < re.rank:
        raise ShapeError(f"fourier_parts: parts {(re, *others)} along axis {axis}")
    more = {"whole": 0, "half": 1, "from_half": -1}[kind]
    return re.with_shape((*(d + more if k == axis else d for k, d in enumerate(re.shape)), 2))


def _parts_reference(re: Any, im: Any = None, *, axis: int, kind: str, inverse: bool, factor: float, turn: int) -> Any:
    library = _library()
    z = re + 1j * (np.zeros_like(re) if im is None else im)
    if turn:
        places = np.arange(re.shape[axis]) * np.arange(re.shape[axis - 1])[:, None] % turn
        z = (z * np.exp((2j if inverse else -2j) * np.pi * places / turn)).astype(z.dtype)
    if kind == "half":
        x = np.moveaxis(np.stack([z.real, z.imag], axis + 1), (axis, axis + 1), (-2, -1))
        found = np.moveaxis(library.rfft(x.reshape(*x.shape[:-2], -1)), -1, axis)
    elif kind == "from_half":
        x = np.moveaxis(library.irfft(np.moveaxis(z, axis, -1), 2 * (re.shape[axis] - 1), norm="forward"), -1, axis)
        even, odd = (x[(slice(None),) * axis + (slice(k, None, 2),)] for k in (0, 1))
        return _times(np.stack([even, odd], -1), factor)
    else:
        found = library.ifft(z, axis=axis, norm="forward") if inverse else library.fft(z, axis=axis)
    return _times(np.stack([found.real, found.imag], -1).astype(re.dtype, copy=False), factor)


fourier_parts: Primitive = register(
    Primitive(
        "fourier_parts",
        _parts_infer,
        _parts_reference,
        doc="A transform along one axis, from parts that lie apart to pairs of them along a new last axis. The size "
        "is a product of PRIMES. 'whole': of complex numbers, or of real ones where only those are given. 'half': "
        "the first half of the terms of real numbers, given as those of even and of odd places. 'from_half': such "
        "numbers from half of the terms. `turn`: element j in place k of the axis before is first multiplied by "
        "exp(-2 pi i j k / turn).",
    )
)
