"""The operations of arithmetic, comparisons and products of matrices as objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel.core.tensor import Tensor
from mycel.ops import (
    array,
    elementwise,
    logic,
    math,
    pairwise,
    reduction,
)
from mycel.ops._operands import constant_like as like
from mycel.ops._operands import operands, run, select, terms
from mycel.ops.algebra import linalg
from mycel.ops.operations.primitive import Primitive, operations_of
from mycel.prims import elementwise as E

__all__: list[str] = []


class Abs(Primitive, compute=elementwise.abs): ...


class ACos(Primitive, compute=elementwise.acos): ...


class Acosh(Primitive, compute=elementwise.acosh): ...


class Add(Primitive, compute=elementwise.add): ...


class TensorAdd(Primitive, compute=elementwise.add): ...


class Asin(Primitive, compute=elementwise.asin): ...


class Asinh(Primitive, compute=elementwise.asinh): ...


class Atan(Primitive, compute=elementwise.atan): ...


class Atan2(Primitive, compute=elementwise.atan2): ...


class Atanh(Primitive, compute=elementwise.atanh): ...


class BitwiseAnd(Primitive, compute=logic.bitwise_and): ...


class BitwiseOr(Primitive, compute=logic.bitwise_or): ...


class BitwiseXor(Primitive, compute=logic.bitwise_xor): ...


class Ceil(Primitive, compute=elementwise.ceil): ...


class Cos(Primitive, compute=elementwise.cos): ...


class Cosh(Primitive, compute=elementwise.cosh): ...


class Digamma(Primitive, compute=elementwise.digamma): ...


class Div(Primitive, compute=elementwise.div): ...


class Equal(Primitive, compute=elementwise.equal): ...


class Erf(Primitive, compute=elementwise.erf): ...


class Erfc(Primitive, compute=elementwise.erfc): ...


class Erfinv(Primitive, compute=elementwise.erfinv): ...


class Exp(Primitive, compute=elementwise.exp): ...


class Expm1(Primitive, compute=elementwise.expm1): ...


class Floor(Primitive, compute=elementwise.floor): ...


class FloorDiv(Primitive, compute=elementwise.floor_divide): ...


class FloorMod(Primitive, compute=elementwise.remainder): ...


class Greater(Primitive, compute=elementwise.greater): ...


class GreaterEqual(Primitive, compute=elementwise.greater_equal): ...


class Inv(Primitive, compute=elementwise.inv): ...


class Invert(Primitive, compute=logic.invert): ...


class IsFinite(Primitive, compute=elementwise.isfinite): ...


class IsInf(Primitive, compute=elementwise.isinf): ...


class IsNan(Primitive, compute=elementwise.isnan): ...


class LeftShift(Primitive, compute=logic.bitwise_left_shift): ...


class Less(Primitive, compute=elementwise.less): ...


class LessEqual(Primitive, compute=elementwise.less_equal): ...


class Lgamma(Primitive, compute=elementwise.lgamma): ...


class Log(Primitive, compute=elementwise.log): ...


class Log1p(Primitive, compute=elementwise.log1p): ...


class LogicalAnd(Primitive, compute=logic.logical_and): ...


class LogicalNot(Primitive, compute=logic.logical_not): ...


class LogicalOr(Primitive, compute=logic.logical_or): ...


class LogicalXor(Primitive, compute=logic.logical_xor): ...


class Maximum(Primitive, compute=elementwise.maximum): ...


class Minimum(Primitive, compute=elementwise.minimum): ...


class Mod(Primitive, compute=elementwise.truncate_mod): ...


class Mul(Primitive, compute=elementwise.mul): ...


class Neg(Primitive, compute=elementwise.neg): ...


class NotEqual(Primitive, compute=elementwise.not_equal): ...


class Pow(Primitive, compute=elementwise.pow): ...


class RealDiv(Primitive, compute=elementwise.div): ...


class Reciprocal(Primitive, compute=elementwise.reciprocal): ...


class RightShift(Primitive, compute=logic.bitwise_right_shift): ...


class Rint(Primitive, compute=elementwise.round): ...


class Round(Primitive, compute=elementwise.round): ...


class Rsqrt(Primitive, compute=elementwise.rsqrt): ...


class Sigmoid(Primitive, compute=elementwise.sigmoid): ...


class Sign(Primitive, compute=elementwise.sign): ...


class Sin(Primitive, compute=elementwise.sin): ...


class Sinh(Primitive, compute=elementwise.sinh): ...


class Sqrt(Primitive, compute=elementwise.sqrt): ...


class Square(Primitive, compute=elementwise.square): ...


class Sub(Primitive, compute=elementwise.sub): ...


class Tan(Primitive, compute=elementwise.tan): ...


class Tanh(Primitive, compute=elementwise.tanh): ...


class Trunc(Primitive, compute=elementwise.trunc): ...


class TruncateDiv(Primitive, compute=elementwise.truncate_div): ...


class TruncateMod(Primitive, compute=elementwise.truncate_mod): ...


class Addcdiv(Primitive, compute=math.addcdiv): ...


class Addcmul(Primitive, compute=math.addcmul): ...


class AddN(Primitive, compute=math.addn): ...


class AccumulateNV2(Primitive, compute=math.accumulate_n): ...


class Fmax(Primitive, compute=math.fmax): ...


class Fmin(Primitive, compute=math.fmin): ...


class Gcd(Primitive, compute=math.gcd): ...


class Heaviside(Primitive, compute=math.heaviside): ...


class Hypot(Primitive, compute=math.hypot): ...


class Lcm(Primitive, compute=math.lcm): ...


class Lerp(Primitive, compute=math.lerp): ...


class Sinc(Primitive, compute=math.sinc): ...


class Xdivy(Primitive, compute=math.xdivy): ...


class Xlogy(Primitive, compute=math.xlogy): ...


class Dense(Primitive, compute=linalg.dense): ...


class Ger(Primitive, compute=linalg.ger): ...


class Trace(Primitive, compute=linalg.trace): ...


def _transposed(x: Tensor, swap: bool) -> Tensor:
    return array.swapaxes(x, -1, -2) if swap else x


def _matrix_product(p: Any, x: Any, y: Any) -> Tensor:
    a, b = operands(p.name, x, y)
    return linalg.matmul(_transposed(a, p.transpose_a), _transposed(b, p.transpose_b))


def _no_nan(function: Any) -> Callable[[Any, Any], Tensor]:
    def compute(x: Any, y: Any) -> Tensor:
        a, b = terms("no_nan", x, y)
        zero = run(E.eq, b, like(0, b))
        return select(zero, like(0, a), function(a, select(zero, like(1, b), b)))

    return compute


class MatMul(Primitive, compute=_matrix_product, transpose_a=False, transpose_b=False): ...


class BatchMatMul(Primitive, compute=_matrix_product, transpose_a=False, transpose_b=False): ...


class DivNoNan(Primitive, compute=_no_nan(elementwise.div)):
    """The quotient x / y, and 0 where y is 0."""


class MulNoNan(Primitive, compute=_no_nan(elementwise.mul)):
    """The product x * y, and 0 where y is 0."""


class SquaredDifference(Primitive, compute=lambda x, y: elementwise.square(elementwise.sub(x, y))):
    """The square of the difference."""


class SquareSumAll(Primitive, compute=lambda x, y: (reduction.sum(x * x), reduction.sum(y * y))):
    """The sums of squares of two tensors."""


class L2Loss(Primitive, compute=lambda x: reduction.sum(x * x) * 0.5):
    """Half the sum of squares."""


class ApproximateEqual(
    Primitive, compute=lambda p, x, y: math.approximate_equal(x, y, p.tolerance), tolerance=1e-5
): ...


class IsClose(
    Primitive,
    compute=lambda p, x, y: math.isclose(x, y, p.rtol, p.atol, p.equal_nan),
    rtol=1e-5,
    atol=1e-8,
    equal_nan=False,
): ...


class NanToNum(
    Primitive, compute=lambda p, x: math.nan_to_num(x, p.nan, p.posinf, p.neginf), nan=None, posinf=None, neginf=None
): ...


class Logit(Primitive, compute=lambda p, x: math.logit(x, None if p.eps < 0 else p.eps), eps=-1.0): ...


class Cdist(Primitive, compute=lambda p, x, y: pairwise.cdist(x, y, p.p), p=2.0): ...


class StopGradient(Primitive, compute=lambda x: run(E.stop_gradient, x) if isinstance(x, Tensor) else x):
    """The tensor as a constant for differentiation."""


__all__.extend(operations_of(globals()))
