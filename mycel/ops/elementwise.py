"""Element-wise functions that are one primitive each: arithmetic, elementary functions
and comparisons.

Operands broadcast and are converted to their common type (`mycel.dtype.promote`). Functions of real
numbers turn booleans and integers into float32. Most functions below are made from one row of a
table, which holds the primitive and what it computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import Primitive
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.binary_operators import beyond
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.ops._operands import floating, operand, run, size_of, terms
from mycel.ops.complex_numbers import absolute_value, direction
from mycel.ops.creation import full_like

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "digamma",
    "div",
    "divide",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floor_div",
    "floor_divide",
    "floor_mod",
    "floordiv",
    "floormod",
    "fmod",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "inv",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "multiply",
    "ne",
    "neg",
    "negative",
    "not_equal",
    "positive",
    "pow",
    "pows",
    "reciprocal",
    "remainder",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "subtract",
    "tan",
    "tanh",
    "tensor_add",
    "tensor_div",
    "tensor_exp",
    "tensor_expm1",
    "tensor_floordiv",
    "tensor_ge",
    "tensor_gt",
    "tensor_le",
    "tensor_lt",
    "tensor_mod",
    "tensor_mul",
    "tensor_pow",
    "tensor_sub",
    "true_divide",
    "trunc",
    "truncate_div",
    "truncate_mod",
]

_EXAMPLE = """{summary}

    {note}

    >>> import mycel as ms
    >>> ms.ops.{name}({call}).item()
    {shown}
    """
_FLOATING = "The result has the floating type of the argument; float32 for integers."
_KEPT = "The result has the type of the argument."


def _describe(function: Any, name: str, summary: str, note: str, call: str, shown: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _EXAMPLE.format(summary=summary, note=note, name=name, call=call, shown=shown)


def _show(value: str, dtype: str = "Float32") -> str:
    return f"{value}.0" if dtype == "Float32" and value.lstrip("-").isdigit() else value


def _real(
    name: str, primitive: Primitive, summary: str, at: str, value: str, parameter: str = "input"
) -> Callable[[Any], Tensor]:
    """Return a function of real numbers.

    `name`, `summary`, the argument `at` and its result `value` make its documentation, `primitive`
    computes it, and `parameter` is the name of its parameter.
    """

    def of_input(input: Any) -> Tensor:
        return run(primitive, floating(name, input))

    def of_x(x: Any) -> Tensor:
        return run(primitive, floating(name, x))

    function = of_x if parameter == "x" else of_input
    _describe(function, name, summary, _FLOATING, f"ms.Tensor({at})", _show(value))
    return fused(function)


_COMPLEX = {E.abs_: absolute_value, E.sign: direction}


def _number(
    name: str, primitive: Primitive, summary: str, at: str, value: str, dtype: str = "Float32"
) -> Callable[[Any], Tensor]:
    """Return a function that keeps the type of its argument, also where that is an integer type."""

    def function(input: Any) -> Tensor:
        x = operand(name, input)
        if x.dtype is D.bool_:
            if primitive is E.abs_:
                return run(E.identity, x)
            raise TypeError(f"{name}: takes numbers, not booleans; cast the tensor first")
        if x.dtype.is_complex and primitive in _COMPLEX:
            return _COMPLEX[primitive](x)
        return run(primitive, x)

    _describe(function, name, summary, _KEPT, f"ms.Tensor({at})", _show(value, dtype))
    return fused(function)


def _whole(name: str, primitive: Primitive, summary: str, at: str, value: str) -> Callable[[Any], Tensor]:
    """Return a rounding function, which leaves integers as they are."""

    def function(input: Any) -> Tensor:
        x = operand(name, input)
        return run(primitive, x) if x.dtype.is_floating else run(E.identity, x)

    _describe(function, name, summary, f"{_KEPT[:-1]}; the derivative is 0.", f"ms.Tensor({at})", _show(value))
    return fused(function)


abs = _number(
    "abs", E.abs_, "Return the absolute value of each element, which is real for complex numbers.", "-2.0", "2"
)
absolute = _number("absolute", E.abs_, "Return the absolute value of each element.", "-2.0", "2")
neg = _number("neg", E.neg, "Return each element with its sign reversed.", "2.0", "-2")
negative = _number("negative", E.neg, "Return each element with its sign reversed.", "2.0", "-2")
sign = _number("sign", E.sign, "Return -1, 0 or 1 by the sign of each element.", "-3.0", "-1")
exp = _real("exp", E.exp, "Return e raised to each element.", "0.0", "1")
exp2 = _real("exp2", E.exp2, "Return 2 raised to each element.", "3.0", "8")
expm1 = _real("expm1", E.expm1, "Return exp(x) - 1 of each element x, exact near 0.", "0.0", "0")
log = _real("log", E.log, "Return the natural logarithm of each element; NaN below 0, -inf at 0.", "1.0", "0")
log2 = _real("log2", E.log2, "Return the logarithm of base 2 of each element.", "8.0", "3")
log10 = _real("log10", E.log10, "Return the logarithm of base 10 of each element.", "1.0", "0")
log1p = _real("log1p", E.log1p, "Return log(1 + x) of each element x, exact near 0.", "0.0", "0")
sqrt = _real("sqrt", E.sqrt, "Return the square root of each element; NaN below 0.", "4.0", "2", "x")
rsqrt = _real("rsqrt", E.rsqrt, "Return 1 / sqrt(x) of each element x.", "4.0", "0.5")
sin = _real("sin", E.sin, "Return the sine of each element in radians.", "0.0", "0")
cos = _real("cos", E.cos, "Return the cosine of each element in radians.", "0.0", "1")
tan = _real("tan", E.tan, "Return the tangent of each element in radians.", "0.0", "0")
asin = _real("asin", E.asin, "Return the arc sine of each element.", "0.0", "0")
acos = _real("acos", E.acos, "Return the arc cosine of each element.", "1.0", "0")
atan = _real("atan", E.atan, "Return the arc tangent of each element.", "0.0", "0")
sinh = _real("sinh", E.sinh, "Return the hyperbolic sine of each element.", "0.0", "0")
cosh = _real("cosh", E.cosh, "Return the hyperbolic cosine of each element.", "0.0", "1")
tanh = _real("tanh", E.tanh, "Return the hyperbolic tangent of each element.", "0.0", "0")
asinh = _real("asinh", E.asinh, "Return the inverse hyperbolic sine of each element.", "0.0", "0")
acosh = _real("acosh", E.acosh, "Return the inverse hyperbolic cosine of each element.", "1.0", "0")
atanh = _real("atanh", E.atanh, "Return the inverse hyperbolic tangent of each element.", "0.0", "0")
arcsin = _real("arcsin", E.asin, "Return the arc sine of each element.", "0.0", "0", "x")
arccos = _real("arccos", E.acos, "Return the arc cosine of each element.", "1.0", "0")
arctan = _real("arctan", E.atan, "Return the arc tangent of each element.", "0.0", "0")
arcsinh = _real("arcsinh", E.asinh, "Return the inverse hyperbolic sine of each element.", "0.0", "0")
arccosh = _real("arccosh", E.acosh, "Return the inverse hyperbolic cosine of each element.", "1.0", "0")
arctanh = _real("arctanh", E.atanh, "Return the inverse hyperbolic tangent of each element.", "0.0", "0")
erf = _real("erf", E.erf, "Return the error function of each element.", "0.0", "0")
erfc = _real("erfc", E.erfc, "Return 1 - erf(x) of each element x.", "0.0", "1")
erfinv = _real("erfinv", E.erfinv, "Return the inverse of erf at each element.", "0.0", "0")
lgamma = _real("lgamma", E.lgamma, "Return log |gamma(x)| of each element x.", "1.0", "0")
digamma = _real("digamma", E.digamma, "Return the derivative of `lgamma` at each element.", "float('inf')", "inf")
sigmoid = _real("sigmoid", E.sigmoid, "Return 1 / (1 + exp(-x)) of each element x, without overflow.", "0.0", "0.5")
tensor_exp = _real("tensor_exp", E.exp, "Return e raised to each element.", "0.0", "1")
tensor_expm1 = _real("tensor_expm1", E.expm1, "Return exp(x) - 1 of each element x, exact near 0.", "0.0", "0")
floor = _whole("floor", E.floor, "Round each element down to a whole number.", "1.7", "1")
ceil = _whole("ceil", E.ceil, "Round each element up to a whole number.", "1.2", "2")
trunc = _whole("trunc", E.trunc, "Round each element towards 0.", "-1.7", "-1")


@fused
def positive(input: Any) -> Tensor:
    """Return the argument itself.

    >>> import mycel as ms
    >>> float(ms.ops.positive(ms.Tensor(2.0)))
    2.0
    """
    return operand("positive", input)


@fused
def round(input: Any, *, decimals: int = 0) -> Tensor:
    """Round to `decimals` decimals, ties to even.

    Negative `decimals` round to tens, hundreds and so on. Integers stay as they are.

    >>> import mycel as ms
    >>> ms.ops.round(ms.Tensor([0.5, 1.5, -1.2])).tolist()
    [0.0, 2.0, -1.0]
    """
    arguments.integer("round", "decimals", decimals)
    x = operand("round", input)
    if not x.dtype.is_floating:
        return run(E.identity, x)
    if decimals == 0:
        return run(E.rint, x)
    if not -300 <= size_of("round", decimals) <= 300:
        raise ValueError(f"round: decimals must lie between -300 and 300, not {decimals}")
    scale = 10.0**decimals
    return run(E.rint, x * scale) / scale


@fused
def square(input: Any) -> Tensor:
    """Return the square of each element.

    >>> import mycel as ms
    >>> ms.ops.square(ms.Tensor([2.0, -3.0])).tolist()
    [4.0, 9.0]
    """
    x = operand("square", input)
    return x * x


@fused
def reciprocal(input: Any) -> Tensor:
    """Return 1 / x of each element x; float32 for integers.

    >>> import mycel as ms
    >>> ms.ops.reciprocal(ms.Tensor([2.0, 4.0])).tolist()
    [0.5, 0.25]
    """
    return 1.0 / floating("reciprocal", input)


@fused
def inv(x: Any) -> Tensor:
    """Return 1 / x of each element x; float32 for integers.

    >>> import mycel as ms
    >>> ms.ops.inv(ms.Tensor([2.0])).tolist()
    [0.5]
    """
    return reciprocal(x)


def _test(name: str, primitive: Primitive, summary: str, call: str, shown: str) -> Callable[[Any], Tensor]:
    """Return a test of each element; an integer passes only `isfinite`."""
    of_integers = name == "isfinite"

    def function(input: Any) -> Tensor:
        x = operand(name, input)
        if x.dtype.is_floating:
            return run(primitive, x)
        return full_like(x, of_integers, dtype=D.bool_)

    _describe(function, name, summary, "The result is boolean.", f"ms.Tensor({call})", _show(shown, "Bool"))
    return fused(function)


isnan = _test("isnan", E.is_nan, "Return whether each element is NaN.", "1.0", "False")
isinf = _test("isinf", E.is_inf, "Return whether each element is infinite.", "1.0", "False")
isfinite = _test("isfinite", E.is_finite, "Return whether each element is neither infinite nor NaN.", "1.0", "True")


Binary = Callable[[Any, Any], Tensor]


def _binary(
    name: str,
    compute: Callable[[Tensor, Tensor], Tensor],
    summary: str,
    note: str,
    call: str,
    shown: str,
    names: str = "io",
    prepare: Callable[[str, Any, Any], tuple[Tensor, Tensor]] = terms,
) -> Binary:
    def input_other(input: Any, other: Any) -> Tensor:
        return compute(*prepare(name, input, other))

    def x_y(x: Any, y: Any) -> Tensor:
        return compute(*prepare(name, x, y))

    def input_exponent(input: Any, exponent: Any) -> Tensor:
        return compute(*prepare(name, input, exponent))

    function = {"io": input_other, "xy": x_y, "ie": input_exponent}[names]
    _describe(function, name, summary, note, call, shown)
    return fused(function)


_COMMON = "Operands broadcast and are converted to their common type."
_BOOLEAN = "Operands broadcast and are converted to their common type; the result is boolean."


def _as_they_are(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the operands unchanged where an operator of tensors converts them: two tensors, or a
    tensor and a number.

    Other operands become tensors of their common type.
    """
    plain = all(isinstance(v, (Tensor, int, float)) for v in (x, y)) and (
        isinstance(x, Tensor) or isinstance(y, Tensor)
    )
    return (x, y) if plain else terms(name, x, y)


def _arithmetic(name: str, operator: str, summary: str, call: str, value: str, names: str = "io") -> Binary:
    """Return a function that computes an operator of tensors."""
    method, reverse = getattr(Tensor, f"__{operator}__"), getattr(Tensor, f"__r{operator}__")

    def compute(x: Any, y: Any) -> Tensor:
        return method(x, y) if isinstance(x, Tensor) else reverse(y, x)

    return _binary(name, compute, summary, _COMMON, call, _show(value), names, _as_they_are)


def _single(
    name: str, primitive: Primitive, summary: str, call: str, value: str, names: str = "io", dtype: str = "Float32"
) -> Binary:
    return _binary(name, lambda x, y: run(primitive, x, y), summary, _COMMON, call, _show(value, dtype), names)


def _comparable(name: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    try:
        return terms(name, x, y)
    except OverflowError:
        return beyond(x, y)


def _compare(name: str, primitive: Primitive, summary: str, value: str) -> Binary:
    shown = _show(value, "Bool")
    return _binary(name, lambda x, y: run(primitive, x, y), summary, _BOOLEAN, "1.0, 2.0", shown, prepare=_comparable)


def _atan2(y: Tensor, x: Tensor) -> Tensor:
    return run(E.atan2, *(floating("atan2", v) for v in (y, x)))


def _truncated_quotient(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.is_floating:
        return run(E.trunc, run(E.div, x, y))
    quotient = run(E.floor_div, x, y)
    exact = run(E.eq, run(E.mul, quotient, y), x)
    upward = run(E.logical_and, run(E.lt, quotient, scalar(0, x.dtype)), run(E.logical_not, exact))
    return run(E.add, quotient, cast(upward, x.dtype))


_POWER = "Raise the first operand to the power of the second."
_FLOOR = "Return the quotient, rounded down."
_MODULO = "Return the remainder of the division, with the sign of the divisor."
_REMAINDER = "Return the remainder of the division, with the sign of the dividend."
_ANGLE = "Return the angle of the point (other, input) in (-pi, pi]."
add = _arithmetic("add", "add", "Return the sum of two tensors, element by element.", "1.0, 2.0", "3")
sub = _arithmetic("sub", "sub", "Subtract the second operand from the first.", "1.0, 2.0", "-1")
mul = _arithmetic("mul", "mul", "Return the product of two tensors, element by element.", "3.0, 2.0", "6")
multiply = _arithmetic("multiply", "mul", "Return the product of two tensors, element by element.", "3.0, 2.0", "6")
pow = _arithmetic("pow", "pow", _POWER, "3.0, 2.0", "9", "ie")
pows = _arithmetic("pows", "pow", _POWER, "3.0, 2.0", "9", "ie")
floor_divide = _arithmetic("floor_divide", "floordiv", _FLOOR, "7.0, 2.0", "3")
floordiv = _arithmetic("floordiv", "floordiv", _FLOOR, "7.0, 2.0", "3")
floor_div = _arithmetic("floor_div", "floordiv", _FLOOR, "7.0, 2.0", "3", "xy")
remainder = _arithmetic("remainder", "mod", _MODULO, "-7.0, 2.0", "1")
floor_mod = _arithmetic("floor_mod", "mod", _MODULO, "-7.0, 2.0", "1", "xy")
floormod = _arithmetic("floormod", "mod", _MODULO, "-7.0, 2.0", "1", "xy")
tensor_mod = _arithmetic("tensor_mod", "mod", _MODULO, "-7.0, 2.0", "1", "xy")
tensor_add = _arithmetic("tensor_add", "add", "Return the sum of two tensors, element by element.", "1.0, 2.0", "3")
tensor_sub = _arithmetic("tensor_sub", "sub", "Subtract the second operand from the first.", "1.0, 2.0", "-1")
tensor_mul = _arithmetic("tensor_mul", "mul", "Return the product of two tensors, element by element.", "3.0, 2.0", "6")
tensor_pow = _arithmetic("tensor_pow", "pow", _POWER, "3.0, 2.0", "9", "ie")
tensor_div = _arithmetic("tensor_div", "truediv", "Return the quotient; float32 for integers.", "1.0, 2.0", "0.5", "xy")
tensor_floordiv = _arithmetic("tensor_floordiv", "floordiv", _FLOOR, "7.0, 2.0", "3")
fmod = _single("fmod", E.fmod, _REMAINDER, "-7.0, 2.0", "-1")
truncate_mod = _single("truncate_mod", E.fmod, _REMAINDER, "-7.0, 2.0", "-1", "xy")
truncate_div = _binary(
    "truncate_div",
    _truncated_quotient,
    "Return the quotient, rounded towards 0.",
    _COMMON,
    "-7.0, 2.0",
    _show("-3"),
    "xy",
)
maximum = _single("maximum", E.maximum, "Return the larger of two elements; NaN if either is.", "1.0, 2.0", "2")
minimum = _single("minimum", E.minimum, "Return the smaller of two elements; NaN if either is.", "1.0, 2.0", "1")
atan2 = _binary("atan2", _atan2, _ANGLE, _COMMON, "0.0, 1.0", _show("0"))
arctan2 = _binary("arctan2", _atan2, _ANGLE, _COMMON, "0.0, 1.0", _show("0"))
eq = _compare("eq", E.eq, "Return whether two elements are equal.", "False")
equal = _compare("equal", E.eq, "Return whether two elements are equal.", "False")
ne = _compare("ne", E.ne, "Return whether two elements differ.", "True")
not_equal = _compare("not_equal", E.ne, "Return whether two elements differ.", "True")
lt = _compare("lt", E.lt, "Return whether the first element is less than the second.", "True")
less = _compare("less", E.lt, "Return whether the first element is less than the second.", "True")
le = _compare("le", E.le, "Return whether the first element is at most the second.", "True")
less_equal = _compare("less_equal", E.le, "Return whether the first element is at most the second.", "True")
gt = _compare("gt", E.gt, "Return whether the first element is greater than the second.", "False")
greater = _compare("greater", E.gt, "Return whether the first element is greater than the second.", "False")
ge = _compare("ge", E.ge, "Return whether the first element is at least the second.", "False")
greater_equal = _compare("greater_equal", E.ge, "Return whether the first element is at least the second.", "False")
tensor_lt = _compare("tensor_lt", E.lt, "Return whether the first element is less than the second.", "True")
tensor_le = _compare("tensor_le", E.le, "Return whether the first element is at most the second.", "True")
tensor_gt = _compare("tensor_gt", E.gt, "Return whether the first element is greater than the second.", "False")
tensor_ge = _compare("tensor_ge", E.ge, "Return whether the first element is at least the second.", "False")


@fused
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Return the quotient of two tensors, element by element; float32 for integers.

    `rounding_mode` "floor" rounds it down and "trunc" towards 0; the result then has the operands'
    common type.

    >>> import mycel as ms
    >>> ms.ops.div(ms.Tensor([-7, 7]), 2, rounding_mode="trunc").tolist()
    [-3, 3]
    """
    if rounding_mode is None:
        x, y = _as_they_are("div", input, other)
        return x / y
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        return truncate_div(input, other)
    raise ValueError(f"div: rounding_mode must be None, 'floor' or 'trunc', not {rounding_mode!r}")


@fused
def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Return the same as `div`.

    >>> import mycel as ms
    >>> float(ms.ops.divide(1.0, 4.0))
    0.25
    """
    return div(input, other, rounding_mode=rounding_mode)


@fused
def true_divide(dividend: Any, divisor: Any) -> Tensor:
    """Return the quotient of two tensors, element by element; float32 for integers.

    >>> import mycel as ms
    >>> float(ms.ops.true_divide(1, 4))
    0.25
    """
    return div(dividend, divisor)


@fused
def subtract(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return ``input - alpha * other``.

    >>> import mycel as ms
    >>> float(ms.ops.subtract(5.0, 2.0, alpha=2))
    1.0
    """
    arguments.number("subtract", "alpha", alpha)
    return sub(input, other if isinstance(alpha, (int, float)) and alpha == 1 else mul(other, alpha))
