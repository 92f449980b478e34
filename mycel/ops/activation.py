"""Activation functions, element by element or along one axis.

Where a function has a kink its derivative there is MindSpore's: 0 for `relu` at 0, and for `relu6`
and `hardtanh` at either bound. NaN passes through all of them. Functions along an axis subtract the
maximum before they take exponentials, so that nothing overflows; they compute 16-bit floats in
float32 and round once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import Primitive
from mycel._src.compiler.prims.neural import normalization
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import (
    axis_of,
    constant_like,
    floating,
    need_matched,
    operand,
    reshaped,
    rounded_once,
    run,
    select,
    take_slice,
    wide,
)

__all__ = [
    "celu",
    "elu",
    "fast_gelu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "silu",
    "soft_shrink",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "swiglu",
    "tanhshrink",
    "threshold",
]


def _at_most(x: Tensor, bound: float) -> Tensor:
    return run(E.le, x, constant_like(bound, x))


@fused
def relu(input: Any, inplace: bool = False) -> Tensor:
    """Return max(x, 0) of each element x; the derivative at 0 is 0.

    With `inplace` the result is also written to `input`.

    >>> import mycel as ms
    >>> ms.ops.relu(ms.Tensor([-1.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 2.0]
    """
    x = operand("relu", input)
    result = select(_at_most(x, 0), constant_like(0, x), x)
    return x._replace(result) if inplace else result


@fused
def relu6(x: Any) -> Tensor:
    """Return min(max(x, 0), 6) of each element x.

    >>> import mycel as ms
    >>> ms.ops.relu6(ms.Tensor([-1.0, 3.0, 9.0])).tolist()
    [0.0, 3.0, 6.0]
    """
    return hardtanh(x, 0.0, 6.0)


@fused
def hardtanh(input: Any, min_val: Any = -1.0, max_val: Any = 1.0) -> Tensor:
    """Return each element limited to [`min_val`, `max_val`]; the derivative at the bounds is 0.

    >>> import mycel as ms
    >>> ms.ops.hardtanh(ms.Tensor([-2.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """
    arguments.number("hardtanh", "min_val", min_val)
    arguments.number("hardtanh", "max_val", max_val)
    x = operand("hardtanh", input)
    low, high = (_bound_of(x, value) for value in (min_val, max_val))
    return select(run(E.le, x, low), low, select(run(E.ge, x, high), high, x))


def _bound_of(x: Tensor, value: Any) -> Tensor:
    """Return a bound in the type of `x`; for integers the nearest value that the type can hold."""
    if x.dtype.is_integer and isinstance(value, (int, float)) and value == value:
        limits = np.iinfo(x.dtype.numpy)
        value = min(max(value, int(limits.min)), int(limits.max))
    return constant_like(value, x)


@fused
@rounded_once
def leaky_relu(input: Any, alpha: float = 0.2) -> Tensor:
    """Return x where it is positive, else alpha * x.

    >>> import mycel as ms
    >>> ms.ops.leaky_relu(ms.Tensor([-2.0, 2.0]), 0.5).tolist()
    [-1.0, 2.0]
    """
    arguments.number("leaky_relu", "alpha", alpha)
    x = floating("leaky_relu", input)
    return select(_at_most(x, 0.0), x * alpha, x)


@fused
@rounded_once
def prelu(input: Any, weight: Any) -> Tensor:
    """Return x where it is positive, else `weight` * x, with one weight for all or one for each
    channel (axis 1).

    Raises ValueError where the weight has another size.

    >>> import mycel as ms
    >>> ms.ops.prelu(ms.Tensor([[-2.0, 2.0]]), ms.Tensor([0.25])).tolist()
    [[-0.5, 2.0]]
    """
    x, w = floating("prelu", input), operand("prelu", weight)
    need_matched("prelu", x, w, second="weight")
    channels = x.shape[1] if x.ndim > 1 else 1
    if w.ndim > 1 or (w.size != 1 and w.size != channels):
        raise ShapeError(f"prelu: the weight must have 1 or {channels} elements, not shape {w.shape}")
    w = reshaped(w, (w.size, *(1,) * (x.ndim - 2)) if w.size != 1 else ())
    return select(_at_most(x, 0.0), x * w, x)


def _negative_part(x: Tensor) -> Tensor:
    """Return min(x, 0), so that exponentials do not overflow where the other branch is chosen."""
    return select(_at_most(x, 0.0), x, 0.0)


@fused
@rounded_once
def elu(input_x: Any, alpha: float = 1.0) -> Tensor:
    """Return x where it is positive, else alpha * (exp(x) - 1). Clevert et al., 2016.

    >>> import mycel as ms
    >>> ms.ops.elu(ms.Tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    arguments.instance("elu", "alpha", alpha, float)
    x = floating("elu", input_x)
    return select(_at_most(x, 0.0), run(E.expm1, _negative_part(x)) * alpha, x)


@fused
@rounded_once
def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return x where it is positive, else alpha * (exp(x / alpha) - 1). Barron, 2017.

    Raises ValueError for `alpha` 0.

    >>> import mycel as ms
    >>> ms.ops.celu(ms.Tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    arguments.instance("celu", "alpha", alpha, float)
    if alpha == 0:
        raise ValueError("celu: alpha must not be 0")
    value = floating("celu", x)
    return select(_at_most(value, 0.0), run(E.expm1, _negative_part(value) / alpha) * alpha, value)


_SELU_SCALE = 1.0507009873554805
_SELU_ALPHA = 1.6732632423543772


@fused
@rounded_once
def selu(input_x: Any) -> Tensor:
    """Return scale * elu(x, alpha) with the constants of self-normalising networks.

    Klambauer et al., 2017.

    >>> import mycel as ms
    >>> ms.ops.selu(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    return elu(input_x, _SELU_ALPHA) * _SELU_SCALE


@fused
@rounded_once
def gelu(input: Any, approximate: str = "none") -> Tensor:
    """Return x * P(X <= x) for a standard normal X. Hendrycks and Gimpel, 2016.

    With `approximate` "none" P is computed by erf, with "tanh" by an approximation with tanh.

    >>> import mycel as ms
    >>> ms.ops.gelu(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    arguments.one_of("gelu", "approximate", approximate, ("none", "tanh"))
    x = floating("gelu", input)
    if approximate == "none":
        return x * 0.5 * (run(E.erf, x * math.sqrt(0.5)) + 1.0)
    cubic = x + x * x * x * 0.044715
    return x * 0.5 * (run(E.tanh, cubic * math.sqrt(2 / math.pi)) + 1.0)


@fused
@rounded_once
def fast_gelu(x: Any) -> Tensor:
    """Return ``x / (1 + exp(-1.702 |x|)) * exp(0.851 (x - |x|))``, an approximation of `gelu`.

    >>> import mycel as ms
    >>> ms.ops.fast_gelu(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    value = floating("fast_gelu", x)
    size = run(E.abs_, value)
    return value * run(E.sigmoid, size * 1.702) * run(E.exp, (value - size) * 0.851)


@fused
@rounded_once
def silu(input: Any) -> Tensor:
    """Return x * sigmoid(x) of each element x.

    >>> import mycel as ms
    >>> ms.ops.silu(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    x = floating("silu", input)
    return run(E.mul, x, run(E.sigmoid, x))


@fused
@rounded_once
def swiglu(input: Any, dim: int = -1) -> Tensor:
    """Return silu(a) * b of the two halves a and b of `input` along `dim`.

    Raises ValueError where the axis has an odd size.

    >>> import mycel as ms
    >>> ms.ops.swiglu(ms.Tensor([0.0, 3.0])).tolist()
    [0.0]
    """
    first, second = _halves("swiglu", floating("swiglu", input), dim)
    return run(E.mul, silu(first), second)


def _halves(name: str, x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    where = axis_of(name, axis, x.ndim)
    size = x.shape[where]
    if isinstance(size, int) and size % 2:
        raise ShapeError(f"{name}: axis {axis} has size {size}, which does not split into halves")
    return take_slice(x, where, 0, size // 2), take_slice(x, where, size // 2, size)


@fused
@rounded_once
def glu(x: Any, axis: int = -1) -> Tensor:
    """Return a * sigmoid(b) of the two halves a and b of `x` along `axis`. Dauphin et al., 2017.

    Raises ValueError where the axis has an odd size.

    >>> import mycel as ms
    >>> ms.ops.glu(ms.Tensor([4.0, 0.0])).tolist()
    [2.0]
    """
    first, second = _halves("glu", floating("glu", x), axis)
    return run(E.mul, first, run(E.sigmoid, second))


def _softplus(x: Tensor) -> Tensor:
    """Return log(1 + exp(x)), as max(x, 0) + log1p(exp(-|x|)).

    The choices are those of one side at 0, so that all derivatives are those of the function.
    """
    low = run(E.lt, x, constant_like(0.0, x))
    return select(low, 0.0, x) + run(E.log1p, run(E.exp, select(low, x, -x)))


def log_of_sum(a: Tensor, b: Tensor, scale: float = 1.0) -> Tensor:
    """Return log(exp(a s) + exp(b s)) / s, where `scale` is s; equal infinities share the
    derivative.
    """
    low = run(E.lt, a, b)
    high, least = select(low, b, a), select(low, a, b)
    endless = run(E.logical_and, run(E.eq, a, b), run(E.is_inf, a))
    gap = select(endless, 0.0, least - high)
    rest = run(E.log1p, run(E.exp, gap if scale == 1.0 else gap * scale))
    return select(endless, a * 0.5 + b * 0.5, high + (rest if scale == 1.0 else rest / scale))


@fused
@rounded_once
def softplus(input: Any, beta: Any = 1, threshold: Any = 20) -> Tensor:
    """Return log(1 + exp(beta * x)) / beta, and x itself where beta * x is above `threshold`.

    >>> import mycel as ms
    >>> ms.ops.softplus(ms.Tensor([100.0])).tolist()
    [100.0]
    """
    arguments.instance("softplus", "beta", beta, (int, float))
    x = floating("softplus", input)
    scaled = x if beta == 1 else x * beta
    soft = _softplus(scaled)
    soft = soft if beta == 1 else soft / beta
    return select(run(E.gt, scaled, constant_like(threshold, x)), x, soft)


@fused
@rounded_once
def logsigmoid(x: Any) -> Tensor:
    """Return log(sigmoid(x)) of each element x, without overflow.

    >>> import mycel as ms
    >>> ms.ops.logsigmoid(ms.Tensor([-100.0])).tolist()
    [-100.0]
    """
    return -_softplus(-floating("logsigmoid", x))


@fused
@rounded_once
def mish(x: Any) -> Tensor:
    """Return x * tanh(softplus(x)) of each element x. Misra, 2019.

    >>> import mycel as ms
    >>> ms.ops.mish(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    value = floating("mish", x)
    return run(E.mul, value, run(E.tanh, _softplus(value)))


@fused
@rounded_once
def softsign(x: Any) -> Tensor:
    """Return x / (1 + |x|) of each element x.

    >>> import mycel as ms
    >>> ms.ops.softsign(ms.Tensor([-1.0, 3.0])).tolist()
    [-0.5, 0.75]
    """
    value = floating("softsign", x)
    return value / (run(E.abs_, value) + 1.0)


@fused
@rounded_once
def hardsigmoid(input: Any) -> Tensor:
    """Return (x + 3) / 6 limited to [0, 1].

    >>> import mycel as ms
    >>> ms.ops.hardsigmoid(ms.Tensor([-4.0, 0.0, 4.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return hardtanh(floating("hardsigmoid", input) / 6.0 + 0.5, 0.0, 1.0)


@fused
@rounded_once
def hardswish(input: Any) -> Tensor:
    """Return x * hardsigmoid(x) of each element x. Howard et al., 2019.

    >>> import mycel as ms
    >>> ms.ops.hardswish(ms.Tensor([-4.0, 0.0, 4.0])).tolist()
    [-0.0, 0.0, 4.0]
    """
    x = floating("hardswish", input)
    return run(E.mul, x, hardsigmoid(x))


@fused
def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """Return x where |x| > lambd, else 0.

    >>> import mycel as ms
    >>> ms.ops.hardshrink(ms.Tensor([-0.4, 0.6, 2.0]), 1.0).tolist()
    [0.0, 0.0, 2.0]
    """
    arguments.instance("hardshrink", "lambd", lambd, (int, float))
    x = floating("hardshrink", input)
    return select(_at_most(run(E.abs_, x), lambd), 0.0, x)


@fused
@rounded_once
def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """Return x moved towards 0 by `lambd`, and 0 where |x| <= lambd.

    >>> import mycel as ms
    >>> ms.ops.softshrink(ms.Tensor([-2.0, 0.4, 2.0])).tolist()
    [-1.5, 0.0, 1.5]
    """
    arguments.instance("softshrink", "lambd", lambd, (int, float))
    x = floating("softshrink", input)
    moved = x - run(E.sign, x) * lambd
    return select(_at_most(run(E.abs_, x), lambd), 0.0, moved)


@fused
@rounded_once
def soft_shrink(input: Any, lambd: float = 0.5) -> Tensor:
    """Return the same as `softshrink`.

    >>> import mycel as ms
    >>> ms.ops.soft_shrink(ms.Tensor([2.0])).tolist()
    [1.5]
    """
    return softshrink(input, lambd)


@fused
@rounded_once
def tanhshrink(input: Any) -> Tensor:
    """Return x - tanh(x) of each element x.

    >>> import mycel as ms
    >>> ms.ops.tanhshrink(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    x = floating("tanhshrink", input)
    return run(E.sub, x, run(E.tanh, x))


@fused
def threshold(input: Any, thr: Any, value: Any) -> Tensor:
    """Return x where x > thr, else `value`.

    >>> import mycel as ms
    >>> ms.ops.threshold(ms.Tensor([0.0, 2.0]), 1, -1).tolist()
    [-1.0, 2.0]
    """
    arguments.number("threshold", "thr", thr)
    arguments.number("threshold", "value", value)
    x = operand("threshold", input)
    return select(_at_most(x, thr), constant_like(value, x), x)


def _along(primitive: Primitive, name: str, input: Any, axis: int) -> Tensor:
    """Apply a primitive along an axis, computing 16-bit floats in float32.

    A scalar counts as an axis of one element.
    """
    x = floating(name, input)
    full = wide(x) if x.ndim else reshaped(wide(x), (1,))
    result = run(primitive, full, axis=axis_of(name, axis, x.ndim) if x.ndim else 0)
    return cast(result if x.ndim else reshaped(result, ()), x.dtype)


@fused
def softmax(input: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """Return exp(x) / sum(exp(x)) along `axis`.

    `dtype` is the type to which the argument is converted first.

    >>> import mycel as ms
    >>> ms.ops.softmax(ms.Tensor([1000.0, 1000.0])).tolist()
    [0.5, 0.5]
    """
    input = input if dtype is None else operand("softmax", input, D.from_any(dtype))
    return _along(normalization.softmax, "softmax", input, axis)


@fused
def log_softmax(logits: Any, axis: int = -1) -> Tensor:
    """Return log(softmax(x)) along `axis`, as x - max - log(sum(exp(x - max))).

    >>> import mycel as ms
    >>> ms.ops.log_softmax(ms.Tensor([[0.0], [1000.0]]), 0).tolist()
    [[-1000.0], [0.0]]
    """
    return _along(normalization.log_softmax, "log_softmax", logits, axis)


@fused
def softmin(x: Any, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """Return softmax(-x) along `axis`.

    `dtype` is the type to which the argument is converted first.

    >>> import mycel as ms
    >>> ms.ops.softmin(ms.Tensor([3.0, 3.0])).tolist()
    [0.5, 0.5]
    """
    value = floating("softmin", x) if dtype is None else operand("softmin", x, D.from_any(dtype))
    return softmax(run(E.neg, value), axis)
