"""Element-wise primitives: operands broadcast by NumPy's rule and share one element type.

The derivative of a broadcast is a sum, so each rule passes its cotangents through `unbroadcast`. Comparisons give booleans and have no
derivative. Integer division and remainder are floored, as in Python. Where a function has a kink, its derivative is the one stated in
its rule. bfloat16 and float16 are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from mycel.base.dtype import ALL, DType, bool_
from mycel.ir.dims import same
from mycel.ir.graph import OPERATORS, Node
from mycel.ir.types import TensorType, tensor_type
from mycel.prims.base import Primitive, Sample, batch_elementwise, broadcast_shapes, need_kind, register, same_dtype

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = FLOATS + INTEGERS
Rule = Optional[Callable[..., Any]]


def unbroadcast(ct: Node, like: Node) -> Node:
    """Sum a cotangent over the axes along which `like` was broadcast."""
    from mycel.prims import reduce as R
    from mycel.prims import shape as S

    if same(ct.shape, like.shape):
        return ct
    extra = len(ct.shape) - len(like.shape)
    axes = tuple(range(extra)) + tuple(
        extra + i for i, d in enumerate(like.shape) if not same(d, ct.shape[extra + i]) and d == 1
    )
    return S.reshape(R.reduce_sum(ct, axes=axes, keepdims=False), like.shape)


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """The reference in float32 for the 16-bit types, and with floating-point warnings off."""

    def run(*arrays: Any, **params: Any) -> Any:
        kind = arrays[0].dtype
        with np.errstate(all="ignore"):
            if kind.itemsize == 2 and kind.kind not in "iub":
                wide = [a.astype(np.float32) if a.dtype == kind else a for a in arrays]
                result = np.asarray(function(*wide, **params))
                return result.astype(kind) if result.dtype != np.bool_ else result
            return np.asarray(function(*arrays, **params))

    return run


def _define(
    name: str, arity: int, reference: Callable[..., Any], vjp: Rule, kinds: str, result: Optional[DType], doc: str,
    domain: tuple[float, float], expand: Rule = None, integers: tuple[int, int] = (-5, 6),
) -> Primitive:  # fmt: skip
    def infer(*types: TensorType) -> TensorType:
        if len(types) != arity:
            raise TypeError(f"{name} takes {arity} operands, not {len(types)}")
        need_kind(name, kinds, *types)
        dtype = same_dtype(name, *types)
        shape = types[0].shape if arity == 1 else broadcast_shapes(*[t.shape for t in types], name=name)
        return tensor_type(shape, result or dtype)

    def batch(size: Any, values: Any, axes: Any, **params: Any) -> Any:
        return batch_elementwise(primitive, size, values, axes, params)

    allowed = tuple(n for n in (*FLOATS, *INTEGERS, "bool") if _kind(n) in kinds)
    shapes: tuple[Any, ...] = {
        1: (((2, 3),), ((),), ((0, 2),)),
        2: (((2, 3), (2, 3)), ((2, 1, 3), (4, 1)), ((), (3,)), ((0, 2), (1,))),
    }[arity]
    samples = tuple(Sample(s, domain=domain, integers=integers) for s in shapes)
    primitive = Primitive(
        name, infer, _widened(reference), vjp, batch, expand, samples, allowed, elementwise=True,
        holomorphic="c" in kinds, doc=doc,
    )  # fmt: skip
    return register(primitive)


def _kind(name: str) -> str:
    return {"b": "f", "f": "f", "i": "i", "u": "u"}[name[0]] if name != "bool" else "b"


def unary(
    name: str, reference: Any, derivative: Rule, kinds: str = "f", result: Optional[DType] = None, doc: str = "",
    domain: tuple[float, float] = (-2.0, 2.0), expand: Rule = None, integers: tuple[int, int] = (-5, 6),
) -> Primitive:  # fmt: skip
    """Define a unary primitive; `derivative(ct, out, x)` is the cotangent of x."""
    vjp = (lambda ct, out, x: (derivative(ct, out, x),)) if derivative is not None else None
    if derivative is None and expand is None:
        vjp = lambda ct, out, x: (None,)
    return _define(name, 1, reference, vjp, kinds, result, doc, domain, expand, integers)


def binary(
    name: str, reference: Any, derivative: Rule, kinds: str, result: Optional[DType] = None, doc: str = "",
    domain: tuple[float, float] = (-2.0, 2.0), integers: tuple[int, int] = (-5, 6),
) -> Primitive:  # fmt: skip
    """Define a binary primitive; `derivative(ct, out, x, y)` gives both cotangents before unbroadcasting."""

    def vjp(ct: Node, out: Node, x: Node, y: Node) -> tuple[Optional[Node], Optional[Node]]:
        if derivative is None:
            return None, None
        dx, dy = derivative(ct, out, x, y)
        return (None if dx is None else unbroadcast(dx, x)), (None if dy is None else unbroadcast(dy, y))

    return _define(name, 2, reference, vjp, kinds, result, doc, domain, None, integers)


def _vectorized(function: Callable[[float], float]) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        flat = np.asarray(x, np.float64).ravel()
        values = np.fromiter((function(v) for v in flat), np.float64, flat.size)
        return values.reshape(np.shape(x)).astype(x.dtype)

    return run


def _lgamma(v: float) -> float:
    if math.isinf(v):
        return math.inf
    if v <= 0 and v == math.floor(v):
        return math.inf
    return math.lgamma(v)


def _digamma(v: float) -> float:
    if math.isnan(v) or v == -math.inf or (v < 0 and v == math.floor(v)):
        return math.nan
    if v == 0:
        return -math.copysign(math.inf, v)
    result = 0.0
    if v < 0:
        result, v = -math.pi / math.tan(math.pi * (v - math.floor(v))), 1 - v
    while v < 12:
        result, v = result - 1 / v, v + 1
    w = 1 / (v * v)
    tail = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w * (1 / 132 - w * (691 / 32760 - w / 12))))))
    return result + math.log(v) - 0.5 / v - tail


def _sigmoid(x: Any) -> Any:
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    tail = np.exp(-np.abs(x))
    # NumPy 1 promotes a scalar and a Python number to float64.
    one = tail.dtype.type(1)
    return np.where(x < 0, tail, one) / (one + tail)


def _erfinv(v: float) -> float:
    if abs(v) >= 1 or math.isnan(v):
        return math.copysign(math.inf, v) if abs(v) == 1 else math.nan
    w = -math.log((1 - v) * (1 + v))
    a = 2 / (math.pi * 0.147) - w / 2
    x = math.copysign(math.sqrt(max(math.sqrt(a * a + w / 0.147) - a, 0.0)), v)
    for _ in range(4):
        # Near 1 the difference of the complements keeps its digits.
        error = math.erf(x) - v if abs(v) < 0.9 else math.copysign(1, v) * (1 - abs(v) - math.erfc(abs(x)))
        step = error * math.sqrt(math.pi) / 2 * math.exp(x * x)
        x -= step / (1 + x * step)
    return x


neg: Primitive = unary("neg", np.negative, lambda ct, out, x: neg(ct), "ifuc", doc="-x; modular for unsigned types.")
abs_: Primitive = unary("abs", np.abs, lambda ct, out, x: mul(ct, sign(x)), "ifu", doc="|x|; the derivative at 0 is 0.")
sign: Primitive = unary("sign", np.sign, None, "ifu", doc="-1, 0 or 1; NaN stays NaN.")
exp: Primitive = unary("exp", np.exp, lambda ct, out, x: mul(ct, out), kinds="fc", doc="e**x.")
exp2 = unary("exp2", np.exp2, lambda ct, out, x: mul(mul(ct, out), math.log(2)), kinds="fc", doc="2**x.")
expm1 = unary("expm1", np.expm1, lambda ct, out, x: mul(ct, add(out, 1.0)), kinds="fc", doc="e**x - 1, exact near 0.")
log: Primitive = unary(
    "log",
    np.log,
    lambda ct, out, x: div(ct, x),
    domain=(0.1, 3),
    kinds="fc",
    doc="Natural logarithm; NaN below 0, -inf at 0.",
)
log2 = unary(
    "log2",
    np.log2,
    lambda ct, out, x: div(ct, mul(x, math.log(2))),
    domain=(0.1, 3),
    kinds="fc",
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
    doc="log(1 + x), exact near 0.",
)
sqrt: Primitive = unary(
    "sqrt",
    np.sqrt,
    lambda ct, out, x: div(ct, mul(out, 2.0)),
    domain=(0.1, 3),
    kinds="fc",
    doc="Square root; NaN below 0.",
)
rsqrt: Primitive = unary(
    "rsqrt", lambda x: np.reciprocal(np.sqrt(x)), lambda ct, out, x: mul(ct, mul(div(out, x), -0.5)), domain=(0.1, 3),
    kinds="fc", doc="1 / sqrt(x).",
)  # fmt: skip
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
    doc="Arc sine.",
)
acos: Primitive = unary(
    "acos",
    np.arccos,
    lambda ct, out, x: neg(mul(ct, rsqrt(sub(1.0, mul(x, x))))),
    domain=(-0.9, 0.9),
    kinds="fc",
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
    doc="Inverse hyperbolic cosine.",
)
atanh: Primitive = unary(
    "atanh",
    np.arctanh,
    lambda ct, out, x: div(ct, sub(1.0, mul(x, x))),
    domain=(-0.8, 0.8),
    kinds="fc",
    doc="Inverse hyperbolic tangent.",
)
erf: Primitive = unary(
    "erf",
    _vectorized(math.erf),
    lambda ct, out, x: mul(ct, mul(exp(neg(mul(x, x))), 2 / math.sqrt(math.pi))),
    doc="Error function.",
)
erfc: Primitive = unary(
    "erfc",
    _vectorized(math.erfc),
    lambda ct, out, x: mul(ct, mul(exp(neg(mul(x, x))), -2 / math.sqrt(math.pi))),
    doc="1 - erf(x).",
)
erfinv: Primitive = unary(
    "erfinv", _vectorized(_erfinv), lambda ct, out, x: mul(ct, mul(exp(mul(out, out)), math.sqrt(math.pi) / 2)),
    domain=(-0.99, 0.99), doc="Inverse of erf.",
)  # fmt: skip
lgamma: Primitive = unary(
    "lgamma", _vectorized(_lgamma), lambda ct, out, x: mul(ct, digamma(x)), domain=(0.2, 4), doc="log|gamma(x)|."
)
digamma: Primitive = unary(
    "digamma",
    _vectorized(_digamma),
    lambda ct, out, x: mul(ct, trigamma(x)),
    domain=(0.2, 4),
    doc="Derivative of lgamma.",
)
sigmoid: Primitive = unary(
    "sigmoid", _sigmoid, lambda ct, out, x: mul(ct, mul(out, sub(1.0, out))),
    kinds="fc", doc="1 / (1 + e**-x), without overflow.",
)  # fmt: skip
floor: Primitive = unary("floor", np.floor, None, doc="Largest integer not above x; derivative 0.")
ceil: Primitive = unary("ceil", np.ceil, None, doc="Smallest integer not below x; derivative 0.")
trunc: Primitive = unary("trunc", np.trunc, None, doc="x without its fraction; derivative 0.")
rint: Primitive = unary("rint", np.rint, None, doc="The nearest integer, ties to even; derivative 0.")
is_nan: Primitive = unary("is_nan", np.isnan, None, "fc", bool_, doc="Whether x is NaN.")
is_inf: Primitive = unary("is_inf", np.isinf, None, "fc", bool_, doc="Whether x is infinite.")
is_finite: Primitive = unary("is_finite", np.isfinite, None, "fc", bool_, doc="Whether x is neither infinite nor NaN.")
logical_not: Primitive = unary("logical_not", np.logical_not, None, "b", doc="Not x.")
bitwise_not: Primitive = unary("bitwise_not", np.invert, None, "iu", doc="All bits inverted.")


def trigamma(x: Node) -> Node:
    """The derivative of digamma: ten steps of its recurrence, then its asymptotic series; by reflection below 0."""
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


def _pow_vjp(ct: Node, out: Node, x: Node, y: Node) -> tuple[Optional[Node], Optional[Node]]:
    if not x.dtype.is_differentiable:
        return None, None
    dx = mul(ct, mul(y, pow_(x, sub(y, 1.0))))
    if x.dtype.is_complex:
        zero = eq(x, 0.0)
        return select(eq(y, 0.0), 0.0, dx), select(zero, 0.0, mul(ct, mul(out, log(select(zero, 1.0, x)))))
    if y.is_constant:
        return (select(eq(y, 0.0), 0.0, dx) if np.any(y.value == 0) else dx), None
    safe = select(gt(x, 0.0), x, 1.0)
    return select(eq(y, 0.0), 0.0, dx), select(gt(x, 0.0), mul(ct, mul(out, log(safe))), 0.0)


def _float_only(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda ct, out, x, y: rule(ct, out, x, y) if x.dtype.is_differentiable else (None, None)


def _share(ct: Node, chosen: Node, tie: Node) -> Node:
    return mul(ct, add(cast(chosen, dtype=ct.dtype), mul(cast(tie, dtype=ct.dtype), 0.5)))


def _integer_power(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        safe = np.where(y < 0, 0, y)
        result = np.power(x, safe.astype(x.dtype))
        exact = (
            np.where(x == 1, 1, np.where((x == -1) & (y % 2 == 0), 1, np.where(x == -1, -1, 0)))
            if x.dtype.kind == "i"
            else 0
        )
        return np.where(y < 0, exact, result).astype(x.dtype)
    return np.power(x, y)


add: Primitive = binary("add", np.add, lambda ct, out, x, y: (ct, ct), "ifuc", doc="x + y; modular for integers.")
sub: Primitive = binary(
    "sub", np.subtract, lambda ct, out, x, y: (ct, neg(ct)), "ifuc", doc="x - y; modular for integers."
)
mul: Primitive = binary(
    "mul", np.multiply, lambda ct, out, x, y: (mul(ct, y), mul(ct, x)), "ifuc", doc="x * y; modular for integers."
)
div: Primitive = binary(
    "div", np.true_divide, lambda ct, out, x, y: (div(ct, y), neg(div(mul(ct, out), y))), "fc", domain=(0.5, 2),
    doc="x / y for floating tensors.",
)  # fmt: skip
floor_div: Primitive = binary(
    "floor_div", np.floor_divide, None, "ifu", domain=(0.5, 2), integers=(1, 6),
    doc="floor(x / y); derivative 0; division of integers by zero is not defined.",
)  # fmt: skip
mod: Primitive = binary(
    "mod", np.mod, _float_only(lambda ct, out, x, y: (ct, neg(mul(ct, floor(div(x, y)))))), "ifu", domain=(0.5, 2), integers=(1, 6),
    doc="x - y * floor(x / y): the remainder with the sign of y.",
)  # fmt: skip
fmod: Primitive = binary(
    "fmod", np.fmod, _float_only(lambda ct, out, x, y: (ct, neg(mul(ct, trunc(div(x, y)))))), "ifu", domain=(0.5, 2), integers=(1, 6),
    doc="x - y * trunc(x / y): the remainder with the sign of x.",
)  # fmt: skip
pow_: Primitive = binary(
    "pow", _integer_power, _pow_vjp, "ifuc", domain=(0.2, 2), integers=(0, 4),
    doc="x ** y; the derivative by y is 0 where x <= 0; a negative integer power truncates.",
)  # fmt: skip
atan2 = binary(
    "atan2", np.arctan2,
    lambda ct, out, y, x: (div(mul(ct, x), add(mul(x, x), mul(y, y))), neg(div(mul(ct, y), add(mul(x, x), mul(y, y))))),
    "f", doc="The angle of the point (y, x), in (-pi, pi].",
)  # fmt: skip
maximum: Primitive = binary(
    "maximum", np.maximum, _float_only(lambda ct, out, x, y: (_share(ct, gt(x, y), eq(x, y)), _share(ct, lt(x, y), eq(x, y)))),
    "ifub", doc="The larger; NaN if either is; equal operands share the derivative.",
)  # fmt: skip
minimum: Primitive = binary(
    "minimum", np.minimum, _float_only(lambda ct, out, x, y: (_share(ct, lt(x, y), eq(x, y)), _share(ct, gt(x, y), eq(x, y)))),
    "ifub", doc="The smaller; NaN if either is; equal operands share the derivative.",
)  # fmt: skip
eq: Primitive = binary("eq", np.equal, None, "ifubc", bool_, doc="x == y.")
ne: Primitive = binary("ne", np.not_equal, None, "ifubc", bool_, doc="x != y.")
lt: Primitive = binary("lt", np.less, None, "ifub", bool_, doc="x < y.")
le: Primitive = binary("le", np.less_equal, None, "ifub", bool_, doc="x <= y.")
gt: Primitive = binary("gt", np.greater, None, "ifub", bool_, doc="x > y.")
ge: Primitive = binary("ge", np.greater_equal, None, "ifub", bool_, doc="x >= y.")
logical_and: Primitive = binary("logical_and", np.logical_and, None, "b", doc="Both.")
logical_or: Primitive = binary("logical_or", np.logical_or, None, "b", doc="Either.")
logical_xor: Primitive = binary("logical_xor", np.logical_xor, None, "b", doc="Exactly one.")
bitwise_and: Primitive = binary("bitwise_and", np.bitwise_and, None, "iu", doc="Bits in both.")
bitwise_or: Primitive = binary("bitwise_or", np.bitwise_or, None, "iu", doc="Bits in either.")
bitwise_xor: Primitive = binary("bitwise_xor", np.bitwise_xor, None, "iu", doc="Bits in exactly one.")
shift_left: Primitive = binary(
    "shift_left", np.left_shift, None, "iu", integers=(0, 4), doc="x << y for 0 <= y < bits."
)
shift_right: Primitive = binary(
    "shift_right",
    np.right_shift,
    None,
    "iu",
    integers=(0, 4),
    doc="x >> y, arithmetic for signed types, 0 <= y < bits.",
)


def _select_infer(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    if condition.dtype is not bool_:
        raise TypeError(f"select: the condition must be boolean, not {condition.dtype.name}")
    return tensor_type(broadcast_shapes(condition.shape, x.shape, y.shape, name="select"), same_dtype("select", x, y))


def _select_vjp(ct: Node, out: Node, condition: Node, x: Node, y: Node) -> tuple[Optional[Node], ...]:
    if not x.dtype.is_differentiable:
        return None, None, None
    return (
        None,
        unbroadcast(_SELECT(condition, ct, zero_like(ct)), x),
        unbroadcast(_SELECT(condition, zero_like(ct), ct), y),
    )


_SELECT: Primitive = register(
    Primitive(
        "select",
        _select_infer,
        lambda condition, x, y: np.asarray(np.where(condition, x, y), x.dtype),
        _select_vjp,
        lambda size, values, axes, **p: batch_elementwise(_SELECT, size, values, axes, p),
        samples=(
            Sample(((2, 3), (2, 3), (2, 3)), dtypes=("bool", "*", "*")),
            Sample(((3,), (), (2, 1)), dtypes=("bool", "*", "*")),
        ),
        dtypes=(*NUMBERS, "bool"),
        elementwise=True,
        doc="x where the condition holds, else y.",
    )
)


def select(condition: Node, x: Any, y: Any) -> Node:
    """`x` where `condition` holds, else `y`; either may be a Python scalar."""
    from mycel.prims.base import constant

    like = x.dtype if isinstance(x, Node) else y.dtype
    chosen = [v if isinstance(v, Node) else constant(v, like) for v in (x, y)]
    return _SELECT(condition, *chosen)


def zero_like(x: Node) -> Node:
    """A scalar zero of the element type of `x`."""
    from mycel.prims.base import constant

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
    """float64 with the precision of float32, odd where bits were cut off: so what is then rounded by way of float32 is rounded once."""
    bits = x.view(np.uint64) if x.flags.c_contiguous else x.copy().view(np.uint64)
    cut = np.uint64((1 << 29) - 1)
    return ((bits & ~cut) | (((bits & cut) != 0).astype(np.uint64) << np.uint64(29))).view(np.float64)


def _cast_vjp(ct: Node, out: Node, x: Node, *, dtype: DType) -> tuple[Optional[Node]]:
    if not (x.dtype.is_differentiable and dtype.is_differentiable):
        return (None,)
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
        doc="The same values in another element type; to integers by truncation, to booleans by x != 0.",
    )
)

identity: Primitive = register(
    Primitive(
        "identity", lambda x: x, lambda x: x, lambda ct, out, x: (ct,),
        lambda size, values, axes: (identity(values[0]), axes[0]),
        samples=(Sample(((2, 3),)),), dtypes=(*NUMBERS, "bool"), elementwise=True,
        doc="The same tensor as a new node: what differentiation marks its inputs with.",
    )
)  # fmt: skip
stop_gradient: Primitive = register(
    Primitive(
        "stop_gradient", lambda x: x, lambda x: x, lambda ct, out, x: (None,),
        lambda size, values, axes: (stop_gradient(values[0]), axes[0]),
        samples=(Sample(((2, 3),), differentiable=False),), dtypes=(*NUMBERS, "bool"), elementwise=True,
        doc="The same tensor with derivative 0.",
    )
)  # fmt: skip

OPERATORS.update(add=add, sub=sub, mul=mul, div=div, neg=neg)
