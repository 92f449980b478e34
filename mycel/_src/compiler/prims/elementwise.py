"""Element-wise primitives: operands broadcast by NumPy's rule and share one element type.

Comparisons give booleans and have no derivative. Integer division and remainder are floored, as in
Python. Where a function is not differentiable, its rule states the derivative. bfloat16 and
float16 are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import OPERATORS, Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import scalar_functions
from mycel._src.compiler.prims.base import (
    Cost,
    Primitive,
    Rounding,
    Sample,
    batch_elementwise,
    broadcast_shapes,
    constant,
    register,
    same_dtype,
)
from mycel._src.compiler.prims.elementwise_records import NUMBERS, Facts, binary, unary, unbroadcast
from mycel._src.compiler.prims.factors import elementwise_factors
from mycel._src.foundation.dtype import ALL, DType, bool_, float32, float64


def _zero_traps(node: Node) -> bool:
    """Return whether a division by zero stops the program, as for integers."""
    return bool(node.dtype.is_integer)


_ARITHMETIC = Facts(Cost.LIGHT)
_LINEAR = Facts(Cost.LIGHT, linear=True)
_EXACT = Facts(rounding=Rounding.EXACT)
_CHOICE = Facts(Cost.LIGHT, Rounding.EXACT)
_QUOTIENT = Facts(rounding=Rounding.OWN, traps=_zero_traps)


def _advised(advice: str) -> Facts:
    return Facts(advice=advice)


neg: Primitive = unary(
    "neg",
    np.negative,
    lambda ct, out, x: neg(ct),
    "ifuc",
    facts=Facts(Cost.LIGHT, Rounding.EXACT, linear=True),
    doc="-x; modular for unsigned types.",
)
abs_: Primitive = unary(
    "abs", np.abs, lambda ct, out, x: mul(ct, sign(x)), "ifu", facts=_CHOICE, doc="|x|; the derivative at 0 is 0."
)
sign: Primitive = unary("sign", np.sign, None, "ifu", facts=_CHOICE, doc="-1, 0 or 1; NaN stays NaN.")
exp: Primitive = unary(
    "exp",
    np.exp,
    lambda ct, out, x: mul(ct, out),
    kinds="fc",
    facts=_advised("subtract the maximum first, or use ops.softmax, ops.logsumexp or a loss that takes logits"),
    doc="e**x.",
)
exp2 = unary("exp2", np.exp2, lambda ct, out, x: mul(mul(ct, out), math.log(2)), kinds="fc", doc="2**x.")
expm1 = unary(
    "expm1",
    np.expm1,
    lambda ct, out, x: mul(ct, add(out, 1.0)),
    kinds="fc",
    facts=_advised("bound the operand, as with ops.clamp"),
    doc="e**x - 1, exact near 0.",
)
log: Primitive = unary(
    "log",
    np.log,
    lambda ct, out, x: div(ct, x),
    domain=(0.1, 3),
    kinds="fc",
    facts=_advised("keep the operand above 0, as in ops.log(x + 1e-7) or ops.log(ops.clamp(x, 1e-7))"),
    doc="Natural logarithm; NaN below 0, -inf at 0.",
)
log2 = unary(
    "log2",
    np.log2,
    lambda ct, out, x: div(ct, mul(x, math.log(2))),
    domain=(0.1, 3),
    kinds="fc",
    facts=_advised("keep the operand above 0"),
    doc="Logarithm of base 2.",
)
log10 = unary(
    "log10",
    np.log10,
    lambda ct, out, x: div(ct, mul(x, math.log(10))),
    domain=(0.1, 3),
    kinds="fc",
    doc="Logarithm of base 10.",
)
log1p = unary(
    "log1p",
    np.log1p,
    lambda ct, out, x: div(ct, add(x, 1.0)),
    domain=(-0.8, 3),
    kinds="fc",
    facts=_advised("keep the operand above -1"),
    doc="log(1 + x), exact near 0.",
)
sqrt: Primitive = unary(
    "sqrt",
    np.sqrt,
    lambda ct, out, x: div(ct, mul(out, 2.0)),
    domain=(0.1, 3),
    kinds="fc",
    facts=_advised("keep the operand above 0, as in ops.sqrt(x + 1e-12); the derivative is infinite at 0"),
    doc="Square root; NaN below 0.",
)
rsqrt: Primitive = unary(
    "rsqrt",
    lambda x: np.reciprocal(np.sqrt(x)),
    lambda ct, out, x: mul(ct, mul(div(out, x), -0.5)),
    domain=(0.1, 3),
    kinds="fc",
    facts=_advised("keep the operand above 0, as in ops.rsqrt(x + 1e-12)"),
    doc="1 / sqrt(x).",
)
sin: Primitive = unary("sin", np.sin, lambda ct, out, x: mul(ct, cos(x)), kinds="fc", doc="Sine of radians.")
cos: Primitive = unary("cos", np.cos, lambda ct, out, x: neg(mul(ct, sin(x))), kinds="fc", doc="Cosine of radians.")
tan: Primitive = unary(
    "tan",
    np.tan,
    lambda ct, out, x: mul(ct, add(mul(out, out), 1.0)),
    domain=(-1.2, 1.2),
    kinds="fc",
    doc="Tangent of radians.",
)
asin: Primitive = unary(
    "asin",
    np.arcsin,
    lambda ct, out, x: mul(ct, rsqrt(sub(1.0, mul(x, x)))),
    domain=(-0.9, 0.9),
    kinds="fc",
    facts=_advised("keep the operand inside [-1, 1]"),
    doc="Arc sine.",
)
acos: Primitive = unary(
    "acos",
    np.arccos,
    lambda ct, out, x: neg(mul(ct, rsqrt(sub(1.0, mul(x, x))))),
    domain=(-0.9, 0.9),
    kinds="fc",
    facts=_advised("keep the operand inside [-1, 1]"),
    doc="Arc cosine.",
)
atan: Primitive = unary(
    "atan", np.arctan, lambda ct, out, x: div(ct, add(mul(x, x), 1.0)), kinds="fc", doc="Arc tangent."
)
sinh: Primitive = unary("sinh", np.sinh, lambda ct, out, x: mul(ct, cosh(x)), kinds="fc", doc="Hyperbolic sine.")
cosh: Primitive = unary("cosh", np.cosh, lambda ct, out, x: mul(ct, sinh(x)), kinds="fc", doc="Hyperbolic cosine.")
tanh: Primitive = unary(
    "tanh", np.tanh, lambda ct, out, x: mul(ct, sub(1.0, mul(out, out))), kinds="fc", doc="Hyperbolic tangent."
)
asinh: Primitive = unary(
    "asinh",
    np.arcsinh,
    lambda ct, out, x: mul(ct, rsqrt(add(mul(x, x), 1.0))),
    kinds="fc",
    doc="Inverse hyperbolic sine.",
)
acosh: Primitive = unary(
    "acosh",
    np.arccosh,
    lambda ct, out, x: mul(ct, mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0)))),
    domain=(1.1, 3),
    kinds="fc",
    facts=_advised("keep the operand at 1 or above"),
    doc="Inverse hyperbolic cosine.",
)
atanh: Primitive = unary(
    "atanh",
    np.arctanh,
    lambda ct, out, x: div(ct, sub(1.0, mul(x, x))),
    domain=(-0.8, 0.8),
    kinds="fc",
    facts=_advised("keep the operand inside (-1, 1)"),
    doc="Inverse hyperbolic tangent.",
)
erf: Primitive = unary(
    "erf",
    scalar_functions.vectorized(math.erf),
    lambda ct, out, x: mul(ct, mul(exp(neg(mul(x, x))), 2 / math.sqrt(math.pi))),
    doc="Error function.",
)
erfc: Primitive = unary(
    "erfc",
    scalar_functions.vectorized(math.erfc),
    lambda ct, out, x: mul(ct, mul(exp(neg(mul(x, x))), -2 / math.sqrt(math.pi))),
    doc="1 - erf(x).",
)
erfinv: Primitive = unary(
    "erfinv",
    scalar_functions.erfinv,
    lambda ct, out, x: mul(ct, mul(exp(mul(out, out)), math.sqrt(math.pi) / 2)),
    domain=(-0.99, 0.99),
    doc="Inverse of erf.",
)
lgamma: Primitive = unary(
    "lgamma",
    scalar_functions.vectorized(scalar_functions.lgamma),
    lambda ct, out, x: mul(ct, digamma(x)),
    domain=(0.2, 4),
    doc="log|gamma(x)|.",
)
digamma: Primitive = unary(
    "digamma",
    scalar_functions.vectorized(scalar_functions.digamma),
    lambda ct, out, x: mul(ct, trigamma(x)),
    domain=(0.2, 4),
    doc="Derivative of lgamma.",
)
sigmoid: Primitive = unary(
    "sigmoid",
    scalar_functions.sigmoid,
    lambda ct, out, x: mul(ct, mul(out, sub(1.0, out))),
    kinds="fc",
    doc="1 / (1 + e**-x), without overflow.",
)
floor: Primitive = unary("floor", np.floor, None, facts=_EXACT, doc="Largest integer not above x; derivative 0.")
ceil: Primitive = unary("ceil", np.ceil, None, facts=_EXACT, doc="Smallest integer not below x; derivative 0.")
trunc: Primitive = unary("trunc", np.trunc, None, facts=_EXACT, doc="x without its fraction; derivative 0.")
rint: Primitive = unary("rint", np.rint, None, facts=_EXACT, doc="The nearest integer, ties to even; derivative 0.")
is_nan: Primitive = unary("is_nan", np.isnan, None, "fc", bool_, doc="Whether x is NaN.")
is_inf: Primitive = unary("is_inf", np.isinf, None, "fc", bool_, doc="Whether x is infinite.")
is_finite: Primitive = unary("is_finite", np.isfinite, None, "fc", bool_, doc="Whether x is neither infinite nor NaN.")
logical_not: Primitive = unary("logical_not", np.logical_not, None, "b", facts=_ARITHMETIC, doc="Not x.")
bitwise_not: Primitive = unary("bitwise_not", np.invert, None, "iu", doc="All bits inverted.")


def trigamma(x: Node) -> Node:
    """Return the derivative of digamma.

    It takes ten steps of the recurrence, then the asymptotic series; below 0 it uses the reflection
    formula.
    """
    reflected = lt(x, 0.0)
    y = select(reflected, sub(1.0, x), x)
    total = div(1.0, mul(y, y))
    for k in range(1, 10):
        total = add(total, div(1.0, mul(add(y, float(k)), add(y, float(k)))))
    r = div(1.0, add(y, 10.0))
    s = mul(r, r)
    series = zero_like(x)
    for c in (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6):
        series = mul(add(series, c), s)
    total = add(total, mul(r, add(add(series, mul(r, 0.5)), 1.0)))
    sine = div(math.pi, sin(mul(select(reflected, x, 0.5), math.pi)))
    return select(reflected, sub(mul(sine, sine), total), total)


def in_floats(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule that computes in float64 where its operands are integers or booleans, and
    rounds its cotangents to the operands' type.
    """

    def run(ct: Node, out: Node, *inputs: Node, **params: Any) -> Any:
        kind = inputs[0].dtype
        if kind.is_inexact:
            return rule(ct, out, *inputs, **params)
        wide = [cast(i, dtype=float64) if i.dtype is kind else i for i in inputs]
        found = rule(cast(ct, dtype=float64), cast(out, dtype=float64), *wide, **params)
        return tuple([None if g is None else cast(g, dtype=kind) for g in found])

    return run


def _pow_vjp(ct: Node, out: Node, x: Node, y: Node) -> tuple[Node | None, Node | None]:
    if x.dtype.is_complex:
        dx = mul(ct, mul(y, pow_(x, sub(y, 1.0))))
        zero = eq(x, 0.0)
        return select(eq(y, 0.0), 0.0, dx), select(zero, 0.0, mul(ct, mul(out, log(select(zero, 1.0, x)))))
    if y.is_constant:
        less = select(eq(y, 0.0), 0.0, sub(y, 1.0)) if np.any(y.value == 0) else sub(y, 1.0)
        return mul(ct, mul(y, pow_(x, less))), None
    # x ** -1 at 0 would meet the exponent 0.
    one = logical_and(eq(y, 0.0), eq(x, 0.0))
    dx = mul(ct, mul(y, pow_(select(one, 1.0, x), sub(y, 1.0))))
    safe = select(gt(x, 0.0), x, 1.0)
    return dx, select(gt(x, 0.0), mul(ct, mul(out, log(safe))), 0.0)


def _atan2_vjp(ct: Node, out: Node, y: Node, x: Node) -> tuple[Node, Node]:
    # Quotients by the larger keep the squares in the range of the type.
    largest = maximum(abs_(x), abs_(y))
    plain = logical_and(gt(largest, 0.0), is_finite(largest))
    scale = stop_gradient(select(plain, largest, 1.0))
    a, b = div(x, scale), div(y, scale)
    squares = add(mul(a, a), mul(b, b))
    size = mul(select(eq(squares, 0.0), 1.0, squares), scale)
    return mul(ct, div(a, size)), neg(mul(ct, div(b, size)))


def _share(ct: Node, chosen: Node, tie: Node) -> Node:
    return mul(ct, add(cast(chosen, dtype=ct.dtype), mul(cast(tie, dtype=ct.dtype), 0.5)))


add: Primitive = binary(
    "add", np.add, lambda ct, out, x, y: (ct, ct), "ifuc", facts=_LINEAR, doc="x + y; modular for integers."
)
sub: Primitive = binary(
    "sub", np.subtract, lambda ct, out, x, y: (ct, neg(ct)), "ifuc", facts=_LINEAR, doc="x - y; modular for integers."
)
mul: Primitive = binary(
    "mul",
    np.multiply,
    lambda ct, out, x, y: (mul(ct, y), mul(ct, x)),
    "ifuc",
    facts=_ARITHMETIC,
    doc="x * y; modular for integers.",
)
div: Primitive = binary(
    "div",
    np.true_divide,
    lambda ct, out, x, y: (div(ct, y), neg(div(mul(ct, out), y))),
    "fc",
    domain=(0.5, 2),
    facts=_advised("keep the divisor away from 0, as in x / (y + 1e-7)"),
    doc="x / y for floating tensors.",
)
floor_div: Primitive = binary(
    "floor_div",
    np.floor_divide,
    None,
    "ifu",
    domain=(0.5, 2),
    integers=(1, 6),
    facts=_QUOTIENT,
    doc="floor(x / y); derivative 0; division of integers by zero is not defined.",
)
mod: Primitive = binary(
    "mod",
    np.mod,
    in_floats(lambda ct, out, x, y: (ct, neg(mul(ct, floor(div(x, y)))))),
    "ifu",
    domain=(0.5, 2),
    integers=(1, 6),
    facts=_QUOTIENT,
    doc="x - y * floor(x / y): the remainder with the sign of y.",
)
fmod: Primitive = binary(
    "fmod",
    np.fmod,
    in_floats(lambda ct, out, x, y: (ct, neg(mul(ct, trunc(div(x, y)))))),
    "ifu",
    domain=(0.5, 2),
    integers=(1, 6),
    facts=Facts(rounding=Rounding.EXACT, traps=_zero_traps),
    doc="x - y * trunc(x / y): the remainder with the sign of x.",
)
pow_: Primitive = binary(
    "pow",
    scalar_functions.power,
    in_floats(_pow_vjp),
    "ifuc",
    domain=(0.2, 2),
    integers=(0, 4),
    facts=_advised("keep the base above 0, and base and exponent in a range whose power the type holds"),
    doc="x ** y; the derivative by y is 0 where x <= 0; a negative integer power truncates.",
)
atan2 = binary(
    "atan2",
    np.arctan2,
    _atan2_vjp,
    "f",
    doc="The angle of the point (y, x), in (-pi, pi]; the derivative at the origin is 0.",
)
maximum: Primitive = binary(
    "maximum",
    np.maximum,
    in_floats(lambda ct, out, x, y: (_share(ct, gt(x, y), eq(x, y)), _share(ct, lt(x, y), eq(x, y)))),
    "ifub",
    facts=_CHOICE,
    doc="The larger; NaN if either is; equal operands share the derivative.",
)
minimum: Primitive = binary(
    "minimum",
    np.minimum,
    in_floats(lambda ct, out, x, y: (_share(ct, lt(x, y), eq(x, y)), _share(ct, gt(x, y), eq(x, y)))),
    "ifub",
    facts=_CHOICE,
    doc="The smaller; NaN if either is; equal operands share the derivative.",
)
eq: Primitive = binary("eq", np.equal, None, "ifubc", bool_, facts=_ARITHMETIC, doc="x == y.")
ne: Primitive = binary("ne", np.not_equal, None, "ifubc", bool_, facts=_ARITHMETIC, doc="x != y.")
lt: Primitive = binary("lt", np.less, None, "ifub", bool_, facts=_ARITHMETIC, doc="x < y.")
le: Primitive = binary("le", np.less_equal, None, "ifub", bool_, facts=_ARITHMETIC, doc="x <= y.")
gt: Primitive = binary("gt", np.greater, None, "ifub", bool_, facts=_ARITHMETIC, doc="x > y.")
ge: Primitive = binary("ge", np.greater_equal, None, "ifub", bool_, facts=_ARITHMETIC, doc="x >= y.")
logical_and: Primitive = binary("logical_and", np.logical_and, None, "b", facts=_ARITHMETIC, doc="Both.")
logical_or: Primitive = binary("logical_or", np.logical_or, None, "b", facts=_ARITHMETIC, doc="Either.")
logical_xor: Primitive = binary("logical_xor", np.logical_xor, None, "b", facts=_ARITHMETIC, doc="Exactly one.")
bitwise_and: Primitive = binary("bitwise_and", np.bitwise_and, None, "iu", facts=_ARITHMETIC, doc="Bits in both.")
bitwise_or: Primitive = binary("bitwise_or", np.bitwise_or, None, "iu", facts=_ARITHMETIC, doc="Bits in either.")
bitwise_xor: Primitive = binary(
    "bitwise_xor", np.bitwise_xor, None, "iu", facts=_ARITHMETIC, doc="Bits in exactly one."
)
shift_left: Primitive = binary(
    "shift_left",
    np.left_shift,
    None,
    "iu",
    integers=(0, 4),
    facts=_ARITHMETIC,
    doc="x << y for 0 <= y < bits.",
)
shift_right: Primitive = binary(
    "shift_right",
    np.right_shift,
    None,
    "iu",
    integers=(0, 4),
    facts=_ARITHMETIC,
    doc="x >> y, arithmetic for signed types, 0 <= y < bits.",
)


def _select_infer(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    if condition.dtype is not bool_:
        raise TypeError(f"select: the condition must be boolean, not {condition.dtype.name}")
    return tensor_type(broadcast_shapes(condition.shape, x.shape, y.shape, name="select"), same_dtype("select", x, y))


def _select_vjp(ct: Node, out: Node, condition: Node, x: Node, y: Node) -> tuple[Node | None, ...]:
    return (
        None,
        unbroadcast(SELECT(condition, ct, zero_like(ct)), x),
        unbroadcast(SELECT(condition, zero_like(ct), ct), y),
    )


SELECT: Primitive = register(
    Primitive(
        "select",
        _select_infer,
        lambda condition, x, y: np.asarray(np.where(condition, x, y), x.dtype),
        _select_vjp,
        lambda size, values, axes, **p: batch_elementwise(SELECT, size, values, axes, p),
        samples=(
            Sample(((2, 3), (2, 3), (2, 3)), dtypes=("bool", "*", "*")),
            Sample(((3,), (), (2, 1)), dtypes=("bool", "*", "*")),
        ),
        dtypes=(*NUMBERS, "bool"),
        elementwise=True,
        factors=elementwise_factors,
        linear=True,
        cost=Cost.LIGHT,
        rounding=Rounding.EXACT,
        doc="x where the condition holds, else y.",
    )
)


def select(condition: Node, x: Any, y: Any) -> Node:
    """Return `x` where `condition` holds, else `y`; either may be a Python scalar."""
    like = x.dtype if isinstance(x, Node) else y.dtype
    chosen = [v if isinstance(v, Node) else constant(v, like) for v in (x, y)]
    return SELECT(condition, *chosen)


def zero_like(x: Node) -> Node:
    """Return a scalar zero with the element type of `x`."""
    return constant(0, x.dtype)


def _cast_reference(x: Any, *, dtype: DType) -> Any:
    with np.errstate(all="ignore"):
        if dtype is bool_:
            return x != 0
        if x.dtype.kind == "c" and dtype.kind != "c":
            x = x.real
        if dtype.kind == "s" and x.dtype == np.float64:
            x = to_odd(x)
        return x.astype(dtype.numpy)


def to_odd(x: Any) -> Any:
    """Return float64 values rounded to odd at the precision of float32.

    Where bits are cut off, the last bit kept is set. A later rounding by way of float32 then gives
    the same as a single rounding.
    """
    bits = x.view(np.uint64) if x.flags.c_contiguous else x.copy().view(np.uint64)
    cut = np.uint64((1 << 29) - 1)
    return ((bits & ~cut) | (((bits & cut) != 0).astype(np.uint64) << np.uint64(29))).view(np.float64)


def _cast_vjp(ct: Node, out: Node, x: Node, *, dtype: DType) -> tuple[Node | None]:
    if not (x.dtype.is_differentiable and dtype.is_differentiable):
        return (None,)  # a float of 8 bits
    return (cast(ct, dtype=x.dtype),)


cast: Primitive = register(
    Primitive(
        "cast",
        lambda x, *, dtype: x.with_dtype(dtype),
        _cast_reference,
        _cast_vjp,
        lambda size, values, axes, *, dtype: (cast(values[0], dtype=dtype), axes[0]),
        samples=tuple(Sample(((2, 3),), {"dtype": d}, integers=(0, 6), domain=(0, 6)) for d in ALL if d.kind != "c"),
        dtypes=(*NUMBERS, "bool"),
        elementwise=True,
        factors=elementwise_factors,
        cost=Cost.LIGHT,
        advice="the value is beyond the range of the narrower type; scale it, or keep the wider type",
        doc="The same values in another element type; to integers by truncation, to booleans by x != 0.",
    )
)

promote: Primitive = register(
    Primitive(
        "promote",
        lambda x, *, dtype: x.with_dtype(dtype),
        _cast_reference,
        lambda ct, out, x, *, dtype: (cast(ct, dtype=x.dtype) if x.dtype.is_inexact else ct,),
        lambda size, values, axes, *, dtype: (promote(values[0], dtype=dtype), axes[0]),
        expand=lambda x, *, dtype: cast(x, dtype=dtype),
        samples=(Sample(((2, 3),), {"dtype": float32}, integers=(0, 6), differentiable=False),),
        dtypes=("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"),
        elementwise=True,
        factors=elementwise_factors,
        cost=Cost.LIGHT,
        doc="Integers as floats for an operation of floats; the derivative is not rounded to integers.",
    )
)

identity: Primitive = register(
    Primitive(
        "identity",
        lambda x: x,
        lambda x: x,
        lambda ct, out, x: (ct,),
        lambda size, values, axes: (identity(values[0]), axes[0]),
        samples=(Sample(((2, 3),)),),
        dtypes=(*NUMBERS, "bool"),
        elementwise=True,
        factors=elementwise_factors,
        view=True,
        linear=True,
        cost=Cost.LIGHT,
        rounding=Rounding.EXACT,
        doc="The same tensor as a new node: what differentiation marks its inputs with.",
    )
)
stop_gradient: Primitive = register(
    Primitive(
        "stop_gradient",
        lambda x: x,
        lambda x: x,
        lambda ct, out, x: (None,),
        lambda size, values, axes: (stop_gradient(values[0]), axes[0]),
        samples=(Sample(((2, 3),), differentiable=False),),
        dtypes=(*NUMBERS, "bool"),
        elementwise=True,
        factors=elementwise_factors,
        view=True,
        linear=True,
        cost=Cost.LIGHT,
        rounding=Rounding.EXACT,
        doc="The same tensor with derivative 0.",
    )
)

OPERATORS.update(add=add, sub=sub, mul=mul, div=div, neg=neg)
