"""Element-wise functions composed of several primitives.

Limits (`clamp`) pass NaN on and have derivative 1 at the bounds.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import (
    broadcast,
    constant_like,
    finfo,
    floating,
    number_of,
    operand,
    operands,
    rounded_once,
    run,
    select,
    term,
    terms,
)
from mycel.ops.activation import log_of_sum
from mycel.ops.complex_numbers import direction, imag
from mycel.ops.creation import ones

__all__ = [
    "accumulate_n",
    "addcdiv",
    "addcmul",
    "addn",
    "approximate_equal",
    "clamp",
    "clip",
    "clip_by_value",
    "copysign",
    "deg2rad",
    "float_power",
    "fmax",
    "fmin",
    "frac",
    "gcd",
    "heaviside",
    "isclose",
    "isneginf",
    "isposinf",
    "isreal",
    "lcm",
    "ldexp",
    "lerp",
    "logaddexp",
    "logaddexp2",
    "logit",
    "nan_to_num",
    "rad2deg",
    "sgn",
    "signbit",
]


@fused
def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """Limit each element from below and above by numbers or tensors, which broadcast; `max` wins
    where the bounds cross.

    Operands are converted to their common type. Raises ValueError where both bounds are None.

    >>> import mycel as ms
    >>> ms.ops.clamp(ms.Tensor([-1.0, 0.5, 3.0]), 0, 2).tolist()
    [0.0, 0.5, 2.0]
    """
    if min is None and max is None:
        raise ValueError("clamp: min and max are both None; give at least one")
    x = operand("clamp", input)
    for bound, primitive in ((min, E.lt), (max, E.gt)):
        if bound is None:
            continue
        x, limit = terms("clamp", x, bound)
        x = select(run(primitive, x, limit), limit, x)
    return x


@fused
def clip(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """Return the same as `clamp`.

    >>> import mycel as ms
    >>> ms.ops.clip(ms.Tensor([-1.0, 3.0]), max=2).tolist()
    [-1.0, 2.0]
    """
    return clamp(input, min, max)


@fused
def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Tensor:
    """Return the same as `clamp`; a sequence of tensors gives a sequence of results.

    >>> import mycel as ms
    >>> ms.ops.clip_by_value(ms.Tensor([-1.0, 3.0]), 0, 2).tolist()
    [0.0, 2.0]
    """
    if isinstance(x, (list, tuple)):
        several: Any = type(x)(clamp(operand("clip_by_value", v), clip_value_min, clip_value_max) for v in x)
        return several
    return clamp(x, clip_value_min, clip_value_max)


@fused
@rounded_once
def addcmul(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """Return ``input + value * tensor1 * tensor2``.

    Args:
        input (Tensor): What is added to.
        tensor1 (Tensor): The first operand.
        tensor2 (Tensor): The second operand.
        value (Tensor | float): The factor. Default: 1.

    Returns:
        Tensor: The shapes of the operands, broadcast, in their common type.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.addcmul(ms.Tensor([1.0]), ms.Tensor([2.0]), ms.Tensor([3.0]), 0.5).tolist()
        [4.0]
    """
    a, b = operands("addcmul", tensor1, tensor2)
    return operand("addcmul", input) + a * b * number_of("addcmul", "value", value)


@fused
@rounded_once
def addcdiv(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """Return ``input + value * tensor1 / tensor2``.

    Args:
        input (Tensor): What is added to.
        tensor1 (Tensor): The first operand.
        tensor2 (Tensor): The second operand.
        value (Tensor | float): The factor. Default: 1.

    Returns:
        Tensor: The shapes of the operands, broadcast, in their common type.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.addcdiv(ms.Tensor([1.0]), ms.Tensor([4.0]), ms.Tensor([2.0]), 0.5).tolist()
        [2.0]
    """
    if isinstance(value, bool):
        raise arguments.wrong_type("addcdiv", "value", "a number or a tensor", value)
    a, b = operands("addcdiv", tensor1, tensor2)
    return operand("addcdiv", input) + a / b * number_of("addcdiv", "value", value)


@fused
def addn(x: Any) -> Tensor:
    """Return the sum of several tensors.

    >>> import mycel as ms
    >>> ms.ops.addn((ms.Tensor([1.0]), ms.Tensor([2.0]), ms.Tensor([3.0]))).tolist()
    [6.0]
    """
    arguments.sequence("addn", "x", x, "a tuple or a list of tensors")
    values = [operand("addn", v) for v in x]
    if not values:
        raise ValueError("addn: takes at least one tensor")
    total = values[0]
    for v in values[1:]:
        total = total + v
    return total


@fused
def accumulate_n(x: Any) -> Tensor:
    """Return the same as `addn`.

    >>> import mycel as ms
    >>> ms.ops.accumulate_n([ms.Tensor([1.0]), ms.Tensor([2.0])]).tolist()
    [3.0]
    """
    arguments.sequence("accumulate_n", "x", x, "a tuple or a list of tensors")
    return addn(x)


@fused
@rounded_once
def lerp(input: Any, end: Any, weight: Any) -> Tensor:
    """Return ``input + weight * (end - input)``.

    >>> import mycel as ms
    >>> ms.ops.lerp(ms.Tensor([1.0]), ms.Tensor([3.0]), 0.25).tolist()
    [1.5]
    """
    a, b = operands("lerp", input, end)
    return a + (b - a) * weight


@fused
@rounded_once
def logaddexp(input: Any, other: Any) -> Tensor:
    """Return log(exp(x) + exp(y)) without overflow.

    >>> import mycel as ms
    >>> ms.ops.logaddexp(ms.Tensor(1000.0), ms.Tensor(1000.0)).item()
    1000.6931762695312
    """
    return _log_sum("logaddexp", input, other, 1.0)


def _log_sum(name: str, input: Any, other: Any, scale: float) -> Tensor:
    """Return log(exp(x s) + exp(y s)) / s."""
    a, b = operands(name, input, other)
    return log_of_sum(floating(name, a), floating(name, b), scale)


@fused
@rounded_once
def logaddexp2(input: Any, other: Any) -> Tensor:
    """Return log2(2**x + 2**y) without overflow.

    >>> import mycel as ms
    >>> ms.ops.logaddexp2(ms.Tensor(1000.0), ms.Tensor(1000.0)).item()
    1001.0
    """
    return _log_sum("logaddexp2", input, other, math.log(2.0))


def _chosen(name: str, input: Any, other: Any, compare: Any) -> Tensor:
    """Return the operand that compares, or else the other; a number is chosen before NaN, and the
    first of equals.
    """
    a, b = terms(name, input, other)
    chosen = run(compare, a, b)
    if a.dtype.is_floating:
        chosen = run(E.logical_or, chosen, run(E.is_nan, b))
    return select(chosen, a, b)


@fused
def fmax(input: Any, other: Any) -> Tensor:
    """Return the larger of two elements; a number is chosen before NaN.

    >>> import mycel as ms
    >>> ms.ops.fmax(ms.Tensor([1.0, float("nan")]), ms.Tensor([2.0, 3.0])).tolist()
    [2.0, 3.0]
    """
    return _chosen("fmax", input, other, E.ge)


@fused
def fmin(input: Any, other: Any) -> Tensor:
    """Return the smaller of two elements; a number is chosen before NaN.

    >>> import mycel as ms
    >>> ms.ops.fmin(ms.Tensor([1.0, float("nan")]), ms.Tensor([2.0, 3.0])).tolist()
    [1.0, 3.0]
    """
    return _chosen("fmin", input, other, E.le)


@fused
def signbit(input: Any) -> Tensor:
    """Return whether the sign of each element is negative, as it also is for -0.

    >>> import mycel as ms
    >>> ms.ops.signbit(ms.Tensor([-0.0, 1.0])).tolist()
    [True, False]
    """
    x = operand("signbit", input)
    if not x.dtype.is_floating:
        return run(E.lt, x, constant_like(0, x))
    # atan2 tells -0 from 0: its angle to the left is -pi.
    angle = run(E.atan2, x, broadcast(constant_like(-1.0, x), x.shape))
    return run(E.lt, angle, constant_like(0.0, x))


@fused
def copysign(x: Any, other: Any) -> Tensor:
    """Return the absolute value of `x` with the sign of `other`.

    >>> import mycel as ms
    >>> ms.ops.copysign(ms.Tensor([1.0, -2.0]), ms.Tensor([-1.0, 1.0])).tolist()
    [-1.0, 2.0]
    """
    a, b = terms("copysign", x, other)
    a = run(E.abs_, floating("copysign", a))
    return select(signbit(b), run(E.neg, a), a)


@fused
def sgn(input: Any) -> Tensor:
    """Return -1, 0 or 1 by the sign of each element; z / abs(z), or 0, for complex numbers.

    >>> import mycel as ms
    >>> ms.ops.sgn(ms.Tensor([-3.0, 0.0])).tolist()
    [-1.0, 0.0]
    """
    x = operand("sgn", input)
    return direction(x) if x.dtype.is_complex else run(E.sign, x)


@fused
def heaviside(input: Any, values: Any) -> Tensor:
    """Return 0 for negative elements, 1 for positive ones, `values` at 0.

    >>> import mycel as ms
    >>> ms.ops.heaviside(ms.Tensor([-1.0, 0.0, 2.0]), ms.Tensor(0.5)).tolist()
    [0.0, 0.5, 1.0]
    """
    x, at_zero = operands("heaviside", input, values)
    zero = constant_like(0, x)
    side = select(run(E.lt, x, zero), zero, select(run(E.gt, x, zero), constant_like(1, x), x))
    return select(run(E.eq, x, zero), at_zero, side)


@fused
def frac(x: Any) -> Tensor:
    """Return each element minus its whole part, which is rounded towards 0.

    >>> import mycel as ms
    >>> ms.ops.frac(ms.Tensor([1.5, -2.25])).tolist()
    [0.5, -0.25]
    """
    value = floating("frac", x)
    return run(E.sub, value, run(E.trunc, value))


@fused
def float_power(input: Any, exponent: Any) -> Tensor:
    """Raise the first operand to the power of the second in float64.

    >>> import mycel as ms
    >>> ms.ops.float_power(ms.Tensor([2]), 3).tolist()
    [8.0]
    """
    x, y = terms("float_power", input, exponent)
    return run(E.pow_, cast(x, D.float64), cast(y, D.float64))


@fused
@rounded_once
def deg2rad(x: Any) -> Tensor:
    """Convert degrees to radians.

    >>> import mycel as ms
    >>> ms.ops.deg2rad(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    return floating("deg2rad", x) * (math.pi / 180)


@fused
@rounded_once
def rad2deg(x: Any) -> Tensor:
    """Convert radians to degrees.

    >>> import mycel as ms
    >>> ms.ops.rad2deg(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    return floating("rad2deg", x) * (180 / math.pi)


@fused
def nan_to_num(
    input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Return a tensor with NaN and infinities replaced.

    Args:
        input (Tensor): The tensor.
        nan (float | None): What replaces NaN; None for 0. Default: None.
        posinf (float | None): What replaces inf; None for the largest number of the type. Default:
            None.
        neginf (float | None): What replaces -inf; None for the smallest number of the type.
            Default: None.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.nan_to_num(ms.Tensor([float("nan"), 1.0]), 5.0).tolist()
        [5.0, 1.0]
    """
    for parameter, value in (("nan", nan), ("posinf", posinf), ("neginf", neginf)):
        arguments.optional("nan_to_num", parameter, value, (int, float))
    x = operand("nan_to_num", input)
    if not x.dtype.is_floating:
        return x
    limits = finfo(x.dtype.numpy)
    top = float(limits.max) if posinf is None else posinf
    bottom = float(limits.min) if neginf is None else neginf
    result = select(run(E.eq, x, constant_like(math.inf, x)), constant_like(top, x), x)
    result = select(run(E.eq, x, constant_like(-math.inf, x)), constant_like(bottom, x), result)
    return select(run(E.is_nan, x), constant_like(0.0 if nan is None else nan, x), result)


@fused
def isposinf(input: Any) -> Tensor:
    """Return whether each element is +inf.

    >>> import mycel as ms
    >>> ms.ops.isposinf(ms.Tensor([float("inf"), float("-inf")])).tolist()
    [True, False]
    """
    x = floating("isposinf", input)
    return run(E.eq, x, constant_like(math.inf, x))


@fused
def isneginf(input: Any) -> Tensor:
    """Return whether each element is -inf.

    >>> import mycel as ms
    >>> ms.ops.isneginf(ms.Tensor([float("inf"), float("-inf")])).tolist()
    [False, True]
    """
    x = floating("isneginf", input)
    return run(E.eq, x, constant_like(-math.inf, x))


@fused
def isreal(input: Any) -> Tensor:
    """Return whether the imaginary part of each element is 0, as it is for real numbers.

    >>> import mycel as ms
    >>> ms.ops.isreal(ms.Tensor([1.0])).tolist()
    [True]
    """
    x = operand("isreal", input)
    if x.dtype.is_complex:
        part = imag(x)
        return run(E.eq, part, constant_like(0, part))
    return ones(x.shape, D.bool_)


@fused
def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Return whether ``|x - y| <= atol + rtol * |y|`` for the elements x of `input` and y of
    `other`.

    Args:
        input (Tensor): The elements x.
        other (Tensor): The elements y.
        rtol (float): The tolerance relative to y. Default: 1e-05.
        atol (float): The absolute tolerance. Default: 1e-08.
        equal_nan (bool): Whether NaN is close to NaN. Default: False.

    Returns:
        Tensor: Booleans, of the broadcast shape.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.isclose(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 2.1])).tolist()
        [True, False]
    """
    x, y = operands("isclose", input, other)
    for word, value in (("rtol", rtol), ("atol", atol)):
        number_of("isclose", word, value)
    same = run(E.eq, x, y)
    if not x.dtype.is_floating:
        x, y = cast(x, D.float64), cast(y, D.float64)
    near = run(E.le, run(E.abs_, x - y), run(E.abs_, y) * rtol + atol)
    close = run(E.logical_or, same, run(E.logical_and, near, run(E.is_finite, y)))
    return run(E.logical_or, close, run(E.logical_and, run(E.is_nan, x), run(E.is_nan, y))) if equal_nan else close


@fused
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-5) -> Tensor:
    """Return whether ``|x - y| < tolerance``.

    >>> import mycel as ms
    >>> ms.ops.approximate_equal(ms.Tensor([1.0]), ms.Tensor([1.1]), 0.2).tolist()
    [True]
    """
    a, b = operands("approximate_equal", x, y)
    gap = run(E.abs_, a - b)
    return gap < number_of("approximate_equal", "tolerance", tolerance)


@fused
@rounded_once
def logit(input: Any, eps: float | None = None) -> Tensor:
    """Return log(x / (1 - x)), where x is first limited to [eps, 1 - eps] if `eps` is given.

    >>> import mycel as ms
    >>> ms.ops.logit(ms.Tensor([0.5])).tolist()
    [0.0]
    """
    if eps is not None:
        arguments.instance("logit", "eps", eps, float)
    x = floating("logit", input)
    x = x if eps is None else clamp(x, eps, 1 - eps)
    return run(E.log, x / (1.0 - x))


@fused
def ldexp(x: Any, other: Any) -> Tensor:
    """Return x * 2**y.

    >>> import mycel as ms
    >>> ms.ops.ldexp(ms.Tensor([3.0]), ms.Tensor([2])).tolist()
    [12.0]
    """
    value, power = floating("ldexp", term("ldexp", x)), floating("ldexp", term("ldexp", other))
    return value * run(E.exp2, power)


@fused
def gcd(input: Any, other: Any) -> Tensor:
    """Return the greatest common divisor of integers.

    It is computed by Euclid's algorithm with as many steps as the type can need.

    >>> import mycel as ms
    >>> ms.ops.gcd(ms.Tensor([12, 7]), ms.Tensor([18, 0])).tolist()
    [6, 7]
    """
    a, b = operands("gcd", input, other)
    if not a.dtype.is_integer:
        raise TypeError(f"gcd: takes integers, not {a.dtype.name}")
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = (broadcast(v if v.dtype.kind == "u" else run(E.abs_, v), shape) for v in (a, b))
    zero, one = constant_like(0, a), constant_like(1, a)
    # Consecutive Fibonacci numbers need the most steps: about 1.44 for each bit.
    for _ in builtins.range(math.ceil(1.45 * a.dtype.bits)):
        done = run(E.eq, b, zero)
        a, b = select(done, a, b), select(done, zero, run(E.mod, a, select(done, one, b)))
    # The least integer has no absolute value of its type, so that signs may remain.
    return a if a.dtype.kind == "u" else run(E.abs_, a)


@fused
def lcm(input: Any, other: Any) -> Tensor:
    """Return the least common multiple of integers.

    >>> import mycel as ms
    >>> ms.ops.lcm(ms.Tensor([4, 0]), ms.Tensor([6, 3])).tolist()
    [12, 0]
    """
    a, b = terms("lcm", input, other)
    divisor = gcd(a, b)
    zero = run(E.eq, divisor, constant_like(0, divisor))
    product = run(E.mul, run(E.floor_div, a, select(zero, 1, divisor)), b)
    return product if product.dtype.kind == "u" else run(E.abs_, product)
