"""XLA rules of element-wise primitives. 16-bit floats are computed in float32 and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.engines.xla.binding import jax, jnp, lax
from mycel._src.foundation.dtype import DType, bool_

__all__ = ["RULES", "is_floating", "narrow", "wide"]

# Those that jax has, by their names in jax.numpy or, after a point, elsewhere.
_JNP = {
    "neg": "negative",
    "abs": "abs",
    "sign": "sign",
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log2": "log2",
    "log10": "log10",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "rint": "rint",
    "is_nan": "isnan",
    "is_inf": "isinf",
    "is_finite": "isfinite",
    "logical_not": "logical_not",
    "bitwise_not": "invert",
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "true_divide",
    "atan2": "arctan2",
    "maximum": "maximum",
    "minimum": "minimum",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "logical_xor": "logical_xor",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "shift_left": "left_shift",
    "shift_right": "right_shift",
}
_LAX = {"rsqrt": "rsqrt", "erf": "erf", "erfc": "erfc", "erfinv": "erf_inv", "lgamma": "lgamma", "digamma": "digamma"}


def is_floating(x: Any) -> bool:
    """Return whether the elements are real floats, those of 16 bits included."""
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def narrow(x: Any) -> bool:
    """Return whether the elements are floats of 16 bits."""
    return is_floating(x) and x.dtype.itemsize == 2


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule that computes 16-bit floats in float32 and rounds the result once."""

    def rule(*operands: Any, **params: Any) -> Any:
        if not narrow(operands[0]):
            return function(*operands, **params)
        result = function(*[x.astype(jnp.float32) for x in operands], **params)
        return result.astype(operands[0].dtype) if result.dtype == jnp.float32 else result

    return rule


def _of(module: Any, name: str) -> Callable[..., Any]:
    return wide(lambda *operands: getattr(module, name)(*operands))


# Whole numbers by zero give what NumPy gives: 0.


def _divided(rule: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def whole(x: Any, y: Any) -> Any:
        if is_floating(x):
            return rule(x, y)
        return jnp.where(y == 0, jnp.zeros((), x.dtype), rule(x, jnp.where(y == 0, jnp.ones((), y.dtype), y)))

    return wide(whole)


def _floor_div(x: Any, y: Any) -> Any:
    if not is_floating(x):
        return jnp.floor_divide(x, y)
    # By the remainder, as NumPy does, which is exact where the quotient is rounded up to a whole.
    rest = lax.rem(*jnp.broadcast_arrays(x, y))
    quotient = (x - rest) / y
    quotient = jnp.where((rest != 0) & ((y < 0) != (rest < 0)), quotient - 1, quotient)
    floor = jnp.floor(quotient)
    floor = jnp.where(quotient - floor > 0.5, floor + 1, floor)
    zero = jnp.copysign(jnp.zeros((), x.dtype), x / y)
    return jnp.where(y == 0, x / y, jnp.where(quotient != 0, floor, zero))


def _power(x: Any, y: Any) -> Any:
    if is_floating(x) or x.dtype.kind == "c":
        return jnp.power(x, y)
    shape = jnp.broadcast_shapes(x.shape, y.shape)
    base, left = jnp.broadcast_to(x, shape), jnp.broadcast_to(jnp.maximum(y, 0), shape)
    result = jnp.ones(shape, x.dtype)
    # As many squarings as the exponent has bits; products wrap as NumPy's do.
    for bit in range(x.dtype.itemsize * 8):
        result = jnp.where((left >> bit) & 1 != 0, result * base, result)
        base = base * base
    if x.dtype.kind == "i":
        odd = jnp.where(y % 2 == 0, 1, -1)
        below = jnp.where(x == 1, 1, jnp.where(x == -1, odd, 0)).astype(x.dtype)
        result = jnp.where(y < 0, below, result)
    return result


def _cast(x: Any, *, dtype: DType) -> Any:
    if dtype is bool_:
        return x != 0
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    if is_floating(x) and dtype.is_integer:
        return _to_integer(x, dtype)
    if x.dtype == np.float64 and dtype.kind == "s":
        x = _to_odd(x)
    return lax.convert_element_type(x, dtype.numpy)


def _to_integer(x: Any, dtype: DType) -> Any:
    """Return floats as whole numbers of a type.

    What does not fit wraps by way of int64 as NumPy has it on the usual processors; what is not in
    the range of int64 becomes its lowest.
    """
    cut = jnp.trunc(x.astype(jnp.float64))
    if dtype.itemsize == 8 and dtype.kind == "u":
        high = cut >= 2.0**63
        return jnp.where(
            high,
            lax.convert_element_type(jnp.where(high, cut, 0), jnp.uint64),
            lax.convert_element_type(jnp.where(high, 0, cut), jnp.int64).astype(jnp.uint64),
        )
    through = np.int64 if dtype.itemsize == 8 or dtype.name == "uint32" else np.int32
    limits = np.iinfo(through)
    inside = (cut >= float(limits.min)) & (cut < -float(limits.min))
    whole = lax.convert_element_type(jnp.where(inside, cut, 0), through)
    return jnp.where(inside, whole, limits.min).astype(dtype.numpy)


def _to_odd(x: Any) -> Any:
    """Return float64 values rounded to odd at the precision of float32, for a second rounding."""
    bits = lax.bitcast_convert_type(x, jnp.uint64)
    cut = np.uint64((1 << 29) - 1)
    odd = ((bits & cut) != 0).astype(jnp.uint64) << np.uint64(29)
    return lax.bitcast_convert_type((bits & ~cut) | odd, jnp.float64)


def _after(x: Any, *tokens: Any) -> Any:
    return lax.optimization_barrier((x, *tokens))[0]


RULES: dict[str, Callable[..., Any]] = {
    **{name: _of(jnp, found) for name, found in _JNP.items()},
    **{name: _of(lax, found) for name, found in _LAX.items()},
    "sigmoid": wide(lambda x: jax.nn.sigmoid(x)),
    "floor_div": _divided(_floor_div),
    "mod": _divided(lambda x, y: jnp.mod(x, y)),
    "fmod": _divided(lambda x, y: jnp.fmod(x, y)),
    "pow": wide(_power),
    "select": lambda condition, x, y: jnp.where(condition, x, y),
    "cast": _cast,
    "identity": lambda x: x,
    "stop_gradient": lambda x: x,
    "after": _after,
    "awaiting": _after,
    "complex": lambda x, y: lax.complex(*jnp.broadcast_arrays(x, y)),
    "real": lambda x: jnp.real(x),
    "imag": lambda x: jnp.imag(x),
}
