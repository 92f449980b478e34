"""The operations of arithmetic, comparisons and products of matrices as objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import array, elementwise, logic, math, pairwise, reduction, removable_singularities
from mycel.ops._operands import constant_like as like
from mycel.ops._operands import matched, run, select, terms
from mycel.ops.algebra import linalg
from mycel.ops.operations.attributes import number, optional
from mycel.ops.operations.inputs import NUMBER
from mycel.ops.operations.primitive import Primitive, alike, operations_of

__all__: list[str] = []


class Abs(Primitive, compute=elementwise.abs): ...


class ACos(Primitive, compute=elementwise.acos): ...


class Acosh(Primitive, compute=elementwise.acosh): ...


class Add(Primitive, compute=elementwise.add, inputs=(NUMBER, NUMBER)): ...


class TensorAdd(Primitive, compute=elementwise.add, inputs=(NUMBER, NUMBER)): ...


class Asin(Primitive, compute=elementwise.asin): ...


class Asinh(Primitive, compute=elementwise.asinh): ...


class Atan(Primitive, compute=elementwise.atan): ...


class Atan2(Primitive, compute=elementwise.atan2, inputs=(NUMBER, NUMBER)): ...


class Atanh(Primitive, compute=elementwise.atanh): ...


class BitwiseAnd(Primitive, compute=logic.bitwise_and, inputs=((Tensor, bool, int), (Tensor, bool, int))): ...


class BitwiseOr(Primitive, compute=logic.bitwise_or, inputs=((Tensor, bool, int), (Tensor, bool, int))): ...


class BitwiseXor(Primitive, compute=logic.bitwise_xor, inputs=((Tensor, bool, int), (Tensor, bool, int))): ...


class Ceil(Primitive, compute=elementwise.ceil): ...


class Cos(Primitive, compute=elementwise.cos): ...


class Cosh(Primitive, compute=elementwise.cosh): ...


class Digamma(Primitive, compute=elementwise.digamma): ...


class Div(Primitive, compute=elementwise.div, inputs=(NUMBER, NUMBER)): ...


class Equal(Primitive, compute=elementwise.equal, inputs=(NUMBER, NUMBER)): ...


class Erf(Primitive, compute=elementwise.erf): ...


class Erfc(Primitive, compute=elementwise.erfc): ...


class Erfinv(Primitive, compute=elementwise.erfinv): ...


class Exp(Primitive, compute=elementwise.exp): ...


class Expm1(Primitive, compute=elementwise.expm1): ...


class Floor(Primitive, compute=elementwise.floor): ...


class FloorDiv(Primitive, compute=elementwise.floor_divide, inputs=(NUMBER, NUMBER)): ...


class FloorMod(Primitive, compute=elementwise.remainder, inputs=(NUMBER, NUMBER)): ...


class Greater(Primitive, compute=elementwise.greater, inputs=(NUMBER, NUMBER)): ...


class GreaterEqual(Primitive, compute=elementwise.greater_equal, inputs=(NUMBER, NUMBER)): ...


class Inv(Primitive, compute=elementwise.inv): ...


class Invert(Primitive, compute=logic.invert): ...


class IsFinite(Primitive, compute=elementwise.isfinite): ...


class IsInf(Primitive, compute=elementwise.isinf): ...


class IsNan(Primitive, compute=elementwise.isnan): ...


class LeftShift(Primitive, compute=logic.bitwise_left_shift): ...


class Less(Primitive, compute=elementwise.less, inputs=(NUMBER, NUMBER)): ...


class LessEqual(Primitive, compute=elementwise.less_equal, inputs=(NUMBER, NUMBER)): ...


class Lgamma(Primitive, compute=elementwise.lgamma): ...


class Log(Primitive, compute=elementwise.log): ...


class Log1p(Primitive, compute=elementwise.log1p): ...


class LogicalAnd(Primitive, compute=logic.logical_and, inputs=((Tensor, bool), (Tensor, bool))): ...


class LogicalNot(Primitive, compute=logic.logical_not): ...


class LogicalOr(Primitive, compute=logic.logical_or, inputs=((Tensor, bool), (Tensor, bool))): ...


class LogicalXor(Primitive, compute=logic.logical_xor, inputs=((Tensor, bool), (Tensor, bool))): ...


class Maximum(Primitive, compute=elementwise.maximum, inputs=(NUMBER, NUMBER)): ...


class Minimum(Primitive, compute=elementwise.minimum, inputs=(NUMBER, NUMBER)): ...


class Mod(Primitive, compute=elementwise.truncate_mod, inputs=(NUMBER, NUMBER)): ...


class Mul(Primitive, compute=elementwise.mul, inputs=(NUMBER, NUMBER)): ...


class Neg(Primitive, compute=elementwise.neg): ...


class NotEqual(Primitive, compute=elementwise.not_equal, inputs=(NUMBER, NUMBER)): ...


class Pow(Primitive, compute=elementwise.pow, inputs=(NUMBER, NUMBER)): ...


class RealDiv(Primitive, compute=elementwise.div, inputs=(NUMBER, NUMBER)): ...


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


class Sub(Primitive, compute=elementwise.sub, inputs=(NUMBER, NUMBER)): ...


class Tan(Primitive, compute=elementwise.tan): ...


class Tanh(Primitive, compute=elementwise.tanh): ...


class Trunc(Primitive, compute=elementwise.trunc): ...


class TruncateDiv(Primitive, compute=elementwise.truncate_div, inputs=(NUMBER, NUMBER)): ...


class TruncateMod(Primitive, compute=elementwise.truncate_mod, inputs=(NUMBER, NUMBER)): ...


class Addcdiv(Primitive, compute=lambda x, x1, x2, value: math.addcdiv(x, x1, x2, value)): ...


class Addcmul(Primitive, compute=lambda x, x1, x2, value: math.addcmul(x, x1, x2, value)): ...


class AddN(Primitive, compute=math.addn, inputs=((tuple, list),)): ...


class AccumulateNV2(Primitive, compute=math.accumulate_n, inputs=((tuple, list),)): ...


class Fmax(Primitive, compute=math.fmax, inputs=(NUMBER, NUMBER)): ...


class Fmin(Primitive, compute=math.fmin, inputs=(NUMBER, NUMBER)): ...


class Gcd(Primitive, compute=math.gcd): ...


class Heaviside(Primitive, compute=math.heaviside): ...


class Hypot(Primitive, compute=removable_singularities.hypot, inputs=(NUMBER, NUMBER)): ...


class Lcm(Primitive, compute=math.lcm, inputs=((Tensor, bool, int), (Tensor, bool, int))): ...


class Lerp(Primitive, compute=math.lerp, inputs=(Tensor, Tensor, (Tensor, float))): ...


class Sinc(Primitive, compute=removable_singularities.sinc): ...


class Xdivy(Primitive, compute=removable_singularities.xdivy, inputs=(NUMBER, NUMBER)): ...


class Xlogy(Primitive, compute=removable_singularities.xlogy): ...


class Dense(Primitive, compute=linalg.dense): ...


class Ger(Primitive, compute=linalg.ger): ...


class Trace(Primitive, compute=linalg.trace): ...


def _transposed(x: Tensor, swap: bool) -> Tensor:
    return array.swapaxes(x, -1, -2) if swap else x


def _matrix_product(p: Any, x: Any, y: Any) -> Tensor:
    a, b = matched(p.name, x, y, "x", "y")
    if (a.ndim, b.ndim) != (2, 2) if p.name == "MatMul" else a.ndim != b.ndim or a.ndim < 2:
        wanted = "two matrices" if p.name == "MatMul" else "two tensors of as many dimensions, at least 2"
        raise ShapeError(f"{p.name}: takes {wanted}, not {a._type} and {b._type}")
    return linalg.matmul(_transposed(a, p.transpose_a), _transposed(b, p.transpose_b))


def _no_nan(function: Any) -> Callable[[Any, Any], Tensor]:
    def compute(x: Any, y: Any) -> Tensor:
        a, b = terms("no_nan", x, y)
        zero = run(E.eq, b, like(0, b))
        return select(zero, like(0, a), function(a, select(zero, like(1, b), b)))

    return compute


class MatMul(Primitive, compute=_matrix_product, transpose_a=False, transpose_b=False): ...


class BatchMatMul(Primitive, compute=_matrix_product, transpose_a=False, transpose_b=False): ...


class DivNoNan(Primitive, compute=_no_nan(elementwise.div), inputs=(NUMBER, NUMBER)):
    """The quotient x / y, and 0 where y is 0."""


class MulNoNan(Primitive, compute=_no_nan(elementwise.mul), inputs=(NUMBER, NUMBER)):
    """The product x * y, and 0 where y is 0."""


class SquaredDifference(
    Primitive, compute=lambda x, y: elementwise.square(elementwise.sub(x, y)), inputs=(NUMBER, NUMBER)
):
    """The square of the difference."""


class SquareSumAll(Primitive, compute=alike("SquareSumAll", lambda x, y: (reduction.sum(x * x), reduction.sum(y * y)))):
    """The sums of squares of two tensors."""


class L2Loss(Primitive, compute=lambda x: reduction.sum(x * x) * 0.5):
    """Half the sum of squares."""


class ApproximateEqual(
    Primitive, compute=lambda p, x, y: math.approximate_equal(x, y, p.tolerance), tolerance=1e-5
): ...


class IsClose(
    Primitive,
    compute=lambda p, x, y: math.isclose(x, y, p.rtol, p.atol, p.equal_nan),
    rtol=number(1e-5),
    atol=number(1e-8),
    equal_nan=False,
): ...


class NanToNum(
    Primitive,
    compute=lambda p, x: math.nan_to_num(x, p.nan, p.posinf, p.neginf),
    nan=optional(number()),
    posinf=optional(number()),
    neginf=optional(number()),
): ...


class Logit(Primitive, compute=lambda p, x: math.logit(x, None if p.eps < 0 else p.eps), eps=-1.0): ...


class Cdist(Primitive, compute=lambda p, x, y: pairwise.cdist(x, y, p.p), p=2.0): ...


class StopGradient(
    Primitive, compute=lambda x: run(E.stop_gradient, x) if isinstance(x, Tensor) else x, inputs=(object,)
):
    """The tensor as a constant for differentiation."""


__all__.extend(operations_of(globals()))
