"""Complex numbers: made from real and imaginary parts, and taken apart into them.

All else about complex numbers is composed of these and of the element-wise primitives. The gradient
of a real function by a complex number z = x + iy is df/dx + i df/dy. So the rule of a function that
is complex-differentiable, made of the same formula as its real derivative, takes the conjugate of
the cotangent and gives the conjugate of the result: differentiation does so for the primitives that
are marked `holomorphic`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import (
    Primitive,
    Rounding,
    Sample,
    batch_elementwise,
    broadcast_shapes,
    need_kind,
    register,
    same_dtype,
)
from mycel._src.compiler.prims.elementwise_records import unbroadcast
from mycel._src.compiler.prims.factors import elementwise_factors
from mycel._src.foundation.dtype import DType, complex64, complex128, float32, float64

__all__ = [
    "angle",
    "complex_",
    "complex_abs",
    "complex_angle",
    "complex_of",
    "conjugate",
    "imag",
    "modulus",
    "part_of",
    "real",
]

_PARTS = {complex64: float32, complex128: float64}
_WHOLES = {float32: complex64, float64: complex128}


def part_of(dtype: DType) -> DType:
    """Return the element type of the parts of a complex type."""
    return _PARTS[dtype]


def complex_of(dtype: DType) -> DType:
    """Return the complex type with parts of a floating type."""
    return _WHOLES[dtype]


def _complex_infer(re: TensorType, im: TensorType) -> TensorType:
    dtype = same_dtype("complex", re, im)
    if dtype not in _WHOLES:
        raise TypeError(f"complex takes float32 or float64 parts, not {dtype.name}")
    return tensor_type(broadcast_shapes(re.shape, im.shape, name="complex"), _WHOLES[dtype])


def _complex_reference(re: Any, im: Any) -> Any:
    # A product with 1j would make NaN of an infinite part.
    result = np.empty(np.broadcast_shapes(re.shape, im.shape), np.result_type(re.dtype, np.complex64))
    result.real, result.imag = re, im
    return result


def _part_infer(x: TensorType) -> TensorType:
    need_kind("real and imag", "c", x)
    return x.with_dtype(_PARTS[x.dtype])


def _part(name: str, reference: Any, back: Any, doc: str) -> Primitive:
    def batch(size: Any, values: Any, axes: Any) -> Any:
        return primitive(values[0]), axes[0]

    primitive = Primitive(
        name,
        _part_infer,
        lambda x: np.array(reference(x)),
        lambda ct, out, x: (back(ct),),
        batch,
        samples=(Sample((np.array([[1 + 2j, -0.5j]], np.complex64),), dtypes=("complex64",), differentiable=False),),
        factors=elementwise_factors,
        doc=doc,
    )
    return register(primitive)


complex_: Primitive = register(
    Primitive(
        "complex",
        _complex_infer,
        _complex_reference,
        lambda ct, out, re, im: (unbroadcast(real(ct), re), unbroadcast(imag(ct), im)),
        lambda size, values, axes: batch_elementwise(complex_, size, values, axes, {}),
        samples=(
            Sample(((2, 3), (2, 3)), differentiable=False),
            Sample(((2, 1), (3,)), differentiable=False),
        ),
        dtypes=("float32", "float64"),
        factors=elementwise_factors,
        doc="The complex numbers of real and imaginary parts.",
    )
)
real: Primitive = _part("real", np.real, lambda ct: complex_(ct, E.zero_like(ct)), "The real part of a complex number.")
imag: Primitive = _part(
    "imag", np.imag, lambda ct: complex_(E.zero_like(ct), ct), "The imaginary part of a complex number."
)


def conjugate(x: Node) -> Node:
    """Return the complex conjugate; for a real node the node itself."""
    return complex_(real(x), E.neg(imag(x))) if x.dtype.is_complex else x


def modulus(re: Node, im: Node) -> Node:
    """Return sqrt(re^2 + im^2) without overflow; the derivative at 0 is 0."""
    largest = E.maximum(E.abs_(re), E.abs_(im))
    plain = E.logical_and(E.gt(largest, 0), E.is_finite(largest))
    scale = E.stop_gradient(E.select(plain, largest, 1))
    a, b = E.div(re, scale), E.div(im, scale)
    squares = E.add(E.mul(a, a), E.mul(b, b))
    zero = E.eq(squares, 0)
    return E.select(zero, 0, E.mul(scale, E.sqrt(E.select(zero, 1, squares))))


def angle(re: Node, im: Node) -> Node:
    """Return the angle of the point (re, im), in (-pi, pi]; the derivative at 0 is 0."""
    return E.atan2(im, re)


def _of_parts(name: str, reference: Any, function: Any, rounding: Rounding, doc: str) -> Primitive:
    def batch(size: Any, values: Any, axes: Any) -> Any:
        return primitive(values[0]), axes[0]

    primitive = Primitive(
        name,
        _part_infer,
        reference,
        None,
        batch,
        lambda z: function(real(z), imag(z)),
        samples=(Sample((np.array([[1 + 2j, -0.5j]], np.complex64),), dtypes=("complex64",), differentiable=False),),
        rounding=rounding,
        factors=elementwise_factors,
        doc=doc,
    )
    return register(primitive)


complex_abs: Primitive = _of_parts(
    "complex_abs", np.abs, modulus, Rounding.ONCE, "The distance of a complex number from 0."
)
complex_angle: Primitive = _of_parts(
    "complex_angle", np.angle, angle, Rounding.OWN, "The angle of a complex number, in (-pi, pi]."
)
