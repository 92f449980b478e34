"""Activations under the names and arguments of PyTorch.

Where `inplace` is true, the argument itself takes the result.
"""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.mint._arguments import number, real
from mycel.mint.special import usual_axis
from mycel.ops._operands import operand

__all__ = [
    "dropout",
    "dropout2d",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardtanh",
    "hardtanh_",
    "inplace_elu",
    "inplace_silu",
    "leaky_relu",
    "log_softmax",
    "logsigmoid",
    "mish",
    "relu6",
    "relu_",
    "selu",
    "sigmoid_",
    "silu",
    "silu_func",
    "softmax",
    "threshold",
    "threshold_",
]


def _written(input: Any, result: Tensor, inplace: bool = True) -> Tensor:
    if not inplace:
        return result
    if not isinstance(input, Tensor):
        raise TypeError(f"inplace: only a tensor takes a result, not {type(input).__name__}")
    return input._replace(result if result is not input else result + 0)


def _check_flags(name: str, training: Any, inplace: Any) -> None:
    if training is not True:
        arguments.flag(name, "training", training)
    if inplace is not False:
        arguments.flag(name, "inplace", inplace)


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set each element to 0 with probability `p`, and divide the others by 1 - p (Srivastava et
    al., 2014).

    Args:
        input (Tensor): The tensor.
        p (float): The probability of 0. Default: 0.5.
        training (bool): Whether anything is done. Default: True.
        inplace (bool): Whether the result is written into the input. Default: False.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.dropout(ms.Tensor([1.0, 2.0]), training=False).tolist()
        [1.0, 2.0]
    """
    _check_flags("dropout", training, inplace)
    return _written(input, ops.dropout(input, p, training), inplace and training)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Apply `dropout` to whole channels of (N, C, H, W) or (C, H, W).

    Args:
        input (Tensor): The tensor.
        p (float): The probability of 0. Default: 0.5.
        training (bool): Whether anything is done. Default: True.
        inplace (bool): Whether the result is written into the input. Default: False.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.dropout2d(ms.ops.ones((1, 2, 3, 3)), training=False).shape
        (1, 2, 3, 3)
    """
    _check_flags("dropout2d", training, inplace)
    return _written(input, ops.dropout2d(input, p, training), inplace and training)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where it is positive, else ``alpha * (exp(x) - 1)`` (Clevert et al., 2015).

    >>> import mycel as ms
    >>> ms.mint.nn.functional.elu(ms.Tensor([-1.0, 2.0]), 0.5).asnumpy().round(3).tolist()
    [-0.3160000145435333, 2.0]
    """
    x, alpha = operand("elu", input), real("elu", "alpha", alpha)
    if inplace is not False:
        arguments.flag("elu", "inplace", inplace)
    result = ops.where(x > 0, x, alpha * ops.expm1(ops.where(x > 0, ops.zeros_like(x), x)))
    return _written(input, result, inplace)


def elu_(input: Any, alpha: float = 1.0) -> Tensor:
    """Assign `elu` of the argument to it, and return it.

    >>> import mycel as ms
    >>> x = ms.Tensor([-1.0, 2.0]); _ = ms.mint.nn.functional.elu_(x, 0.0); x.tolist()
    [-0.0, 2.0]
    """
    return elu(input, alpha, True)


def gelu(input: Any, *, approximate: str = "none") -> Tensor:
    """Return x * P(X <= x) for a standard normal X, or its approximation by "tanh" (Hendrycks and
    Gimpel, 2016).

    >>> import mycel as ms
    >>> ms.mint.nn.functional.gelu(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    if type(approximate) is not str:
        arguments.text("gelu", "approximate", approximate)
    return ops.gelu(input, approximate)


def glu(input: Any, dim: int = -1) -> Tensor:
    """Return the first half along `dim` times the sigmoid of the second (Dauphin et al., 2016).

    >>> import mycel as ms
    >>> ms.mint.nn.functional.glu(ms.Tensor([4.0, 0.0])).tolist()
    [2.0]
    """
    return ops.glu(input, dim)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `input` limited to [`min_val`, `max_val`]; the derivative at the bounds is 0.

    Args:
        input (Tensor): The tensor.
        min_val (float): The lower bound. Default: -1.0.
        max_val (float): The upper bound. Default: 1.0.
        inplace (bool): Whether the result is written into the input. Default: False.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.hardtanh(ms.Tensor([-3.0, 0.5])).tolist()
        [-1.0, 0.5]
    """
    low, high = number("hardtanh", "min_val", min_val), number("hardtanh", "max_val", max_val)
    return _written(input, ops.hardtanh(input, low, high), inplace)


def hardtanh_(input: Any, min_val: float = -1, max_val: float = 1) -> Tensor:
    """Assign `hardtanh` of the argument to it, and return it.

    >>> import mycel as ms
    >>> x = ms.Tensor([-3.0, 0.5]); _ = ms.mint.nn.functional.hardtanh_(x); x.tolist()
    [-1.0, 0.5]
    """
    return hardtanh(input, min_val, max_val, True)


def inplace_elu(input: Any, alpha: float = 1.0) -> Tensor:
    """Assign `elu` of the argument to it, and return it.

    >>> import mycel as ms
    >>> x = ms.Tensor([-1.0, 2.0]); _ = ms.mint.nn.functional.inplace_elu(x, 0.0); x.tolist()
    [-0.0, 2.0]
    """
    return elu(input, alpha, True)


def silu(input: Any, inplace: bool = False) -> Tensor:
    """Return x times its sigmoid (Elfwing et al., 2017).

    >>> import mycel as ms
    >>> ms.mint.nn.functional.silu(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    return _written(input, ops.silu(input), inplace)


def silu_func(input: Any) -> Tensor:
    """Return x times its sigmoid, as `silu`.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.silu_func(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    return ops.silu(input)


def inplace_silu(input: Any) -> Tensor:
    """Assign `silu` of the argument to it, and return it.

    >>> import mycel as ms
    >>> x = ms.Tensor([0.0]); ms.mint.nn.functional.inplace_silu(x) is x
    True
    """
    return silu(input, True)


def leaky_relu(input: Any, negative_slope: float = 0.01) -> Tensor:
    """Return x where it is positive, else ``negative_slope * x`` (Maas et al., 2013).

    >>> import mycel as ms
    >>> ms.mint.nn.functional.leaky_relu(ms.Tensor([-2.0, 1.0]), 0.5).tolist()
    [-1.0, 1.0]
    """
    return ops.leaky_relu(input, negative_slope)


def logsigmoid(input: Any) -> Tensor:
    """Return the logarithm of the sigmoid of x.

    >>> import mycel as ms
    >>> round(ms.mint.nn.functional.logsigmoid(ms.Tensor([0.0])).item(), 4)
    -0.6931
    """
    return ops.logsigmoid(input)


def mish(input: Any) -> Tensor:
    """Return ``x * tanh(log(1 + exp(x)))`` (Misra, 2019).

    >>> import mycel as ms
    >>> ms.mint.nn.functional.mish(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    return ops.mish(input)


def relu_(input: Any) -> Tensor:
    """Assign max(x, 0) to the argument, and return it.

    >>> import mycel as ms
    >>> x = ms.Tensor([-1.0, 2.0]); _ = ms.mint.nn.functional.relu_(x); x.tolist()
    [0.0, 2.0]
    """
    return ops.relu(input, True)


def relu6(input: Any, inplace: bool = False) -> Tensor:
    """Return min(max(x, 0), 6).

    >>> import mycel as ms
    >>> ms.mint.nn.functional.relu6(ms.Tensor([-1.0, 8.0])).tolist()
    [0.0, 6.0]
    """
    return _written(input, ops.relu6(input), inplace)


def selu(input: Any) -> Tensor:
    """Return a scaled `elu` that keeps mean and variance (Klambauer et al., 2017).

    >>> import mycel as ms
    >>> ms.mint.nn.functional.selu(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    return ops.selu(input)


def sigmoid_(input: Any) -> Tensor:
    """Assign 1 / (1 + exp(-x)) to the argument, and return it.

    >>> import mycel as ms
    >>> x = ms.Tensor([0.0]); _ = ms.mint.nn.functional.sigmoid_(x); x.tolist()
    [0.5]
    """
    return _written(input, ops.sigmoid(input))


def softmax(input: Any, dim: Any = None, dtype: Any = None) -> Tensor:
    """Return exp(x) over its sum along `dim`; `dtype` converts the elements first.

    Where `dim` is None it is axis 0 of tensors of 0, 1 or 3 dimensions and axis 1 of others.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.softmax(ms.Tensor([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    x = operand("softmax", input, dtype)
    return ops.softmax(x, usual_axis(x) if dim is None else dim)


def log_softmax(input: Any, dim: Any = None, *, dtype: Any = None) -> Tensor:
    """Return the logarithm of `softmax`.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.log_softmax(ms.Tensor([0.0])).tolist()
    [0.0]
    """
    x = operand("log_softmax", input) if dtype is None else cast(operand("log_softmax", input), dtype)
    return ops.log_softmax(x, usual_axis(x) if dim is None else dim)


def threshold(input: Any, threshold: Any, value: Any, inplace: bool = False) -> Tensor:
    """Return `input` where it is above `threshold`, else `value`.

    Args:
        input (Tensor): The tensor.
        threshold (float): The bound.
        value (float): What replaces the others.
        inplace (bool): Whether the result is written into the input. Default: False.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.threshold(ms.Tensor([1.0, 3.0]), 2.0, 9.0).tolist()
        [9.0, 3.0]
    """
    limit, other = number("threshold", "threshold", threshold), number("threshold", "value", value)
    return _written(input, ops.threshold(input, limit, other), inplace)


def threshold_(input: Any, threshold: Any, value: Any) -> Tensor:
    """Assign `value` to the elements of the argument that are not above `threshold`, and return it.

    >>> import mycel as ms
    >>> x = ms.Tensor([1.0, 3.0]); _ = ms.mint.nn.functional.threshold_(x, 2.0, 9.0); x.tolist()
    [9.0, 3.0]
    """
    return _written(input, ops.threshold(input, threshold, value))
