"""Complex numbers: parts, conjugates, absolute values and angles.

The gradient of a real function by z = x + iy is df/dx + i df/dy, as in MindSpore and PyTorch.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import complex as complex_prims
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import broadcast, constant_like, floating, operand, operands, reshaped, run, select

__all__ = ["angle", "conj", "imag", "polar", "real", "view_as_real"]


def absolute_value(z: Tensor) -> Tensor:
    """Return the absolute values of complex numbers, in the type of their parts.

    The derivative at 0 is 0.
    """
    return run(complex_prims.complex_abs, operand("ComplexAbs", z))


def direction(z: Tensor) -> Tensor:
    """Return z / abs(z), and 0 where z is 0, with derivative 0."""
    size = absolute_value(z)
    empty = run(E.eq, size, constant_like(0, size))
    return run(E.div, select(empty, 0.0, z), cast(select(empty, 1, size), z.dtype))


def complex_of(real: Tensor, imag: Tensor) -> Tensor:
    """Return the complex numbers whose parts are two floating tensors, which broadcast."""
    return run(complex_prims.complex_, *operands("Complex", real, imag))


def real(input: Any) -> Tensor:
    """Return the real part of each element: float32 for complex64, float64 for complex128.

    Real tensors are returned as they are.

    >>> import mycel as ms
    >>> ms.ops.real(ms.Tensor([1 + 2j])).tolist()
    [1.0]
    """
    x = operand("real", input)
    return run(complex_prims.real, x) if x.dtype.is_complex else run(E.identity, x)


def imag(input: Any) -> Tensor:
    """Return the imaginary part of each element: float32 for complex64, float64 for complex128.

    It is 0 for real tensors.

    >>> import mycel as ms
    >>> ms.ops.imag(ms.Tensor([1 + 2j])).tolist()
    [2.0]
    """
    x = operand("imag", input)
    return run(complex_prims.imag, x) if x.dtype.is_complex else broadcast(constant_like(0, x), x.shape)


def conj(input: Any) -> Tensor:
    """Return the complex conjugate of each element; real tensors are returned as they are.

    >>> import mycel as ms
    >>> ms.ops.conj(ms.Tensor([1 + 2j])).tolist()
    [(1-2j)]
    """
    x = operand("conj", input)
    if not x.dtype.is_complex:
        return run(E.identity, x)
    return run(complex_prims.complex_, run(complex_prims.real, x), run(E.neg, run(complex_prims.imag, x)))


def angle(input: Any) -> Tensor:
    """Return the angle of each element in radians: in (-pi, pi] for a complex number, 0 or pi for a
    real one, NaN for NaN.

    >>> import mycel as ms
    >>> ms.ops.angle(ms.Tensor([-1.0, 1.0])).tolist()
    [3.1415927410125732, 0.0]
    """
    x = floating("angle", input)
    if x.dtype.is_complex:
        return run(complex_prims.complex_angle, x)
    turned = select(run(E.lt, x, constant_like(0, x)), constant_like(3.141592653589793, x), constant_like(0, x))
    return select(run(E.is_nan, x), x, turned)


def polar(abs: Any, angle: Any) -> Tensor:
    """Return the complex numbers with the absolute values `abs` and the angles `angle` in radians.

    Raises TypeError unless both are float32 or both float64.

    >>> import mycel as ms
    >>> ms.ops.polar(ms.Tensor([2.0]), ms.Tensor([0.0])).tolist()
    [(2+0j)]
    """
    size, turn = operand("polar", abs), operand("polar", angle)
    if size.dtype is not turn.dtype or size.dtype not in (D.float32, D.float64):
        raise TypeError(f"polar: takes two float32 or two float64 tensors, not {size.dtype.name} and {turn.dtype.name}")
    return complex_of(run(E.mul, size, run(E.cos, turn)), run(E.mul, size, run(E.sin, turn)))


def view_as_real(input: Any) -> Tensor:
    """Return the real and imaginary parts of complex numbers along a new last axis of size 2.

    Raises TypeError for tensors that are not complex.

    >>> import mycel as ms
    >>> ms.ops.view_as_real(ms.Tensor([1 + 2j])).tolist()
    [[1.0, 2.0]]
    """
    x = operand("view_as_real", input)
    if not x.dtype.is_complex:
        raise TypeError(f"view_as_real: takes a complex tensor, not {x.dtype.name}")
    parts = [reshaped(run(p, x), (*x.shape, 1)) for p in (complex_prims.real, complex_prims.imag)]
    return run(S.CONCAT, *parts, axis=x.ndim)
