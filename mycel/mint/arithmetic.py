"""Arithmetic that differs from `mycel.ops` in its arguments: scaled sums, rounding, distances,
products.
"""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.mint._arguments import number, real, whole
from mycel.ops._operands import floating, operand, operands, term
from mycel.ops.algebra.linear_systems import triangular_solve
from mycel.ops.tensors import in_place_functions

__all__ = [
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr_",
    "allclose",
    "baddbmm",
    "batch_norm_elemt",
    "batch_norm_gather_stats_with_counts",
    "batch_norm_stats",
    "bmm",
    "cdist",
    "conv2d",
    "conv_tbc",
    "equal",
    "fix",
    "frac",
    "histc",
    "isnan",
    "mv",
    "softmax",
    "sqrt",
    "sub",
    "triangular_solve",
    "vdot",
]


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return input + alpha * other.

    >>> import mycel as ms
    >>> ms.mint.add(ms.Tensor([1.0]), ms.Tensor([2.0]), alpha=3).tolist()
    [7.0]
    """
    return ops.add(input, _scaled("add", other, alpha))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return input - alpha * other.

    >>> import mycel as ms
    >>> ms.mint.sub(ms.Tensor([1.0]), ms.Tensor([2.0]), alpha=3).tolist()
    [-5.0]
    """
    return ops.sub(input, _scaled("sub", other, alpha))


def _scaled(name: str, x: Any, alpha: Any) -> Any:
    if type(alpha) is int and alpha == 1:
        return x
    return ops.mul(term(name, x), number(name, "alpha", alpha))


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 / tensor2.

    Args:
        input (Tensor): What is added to.
        tensor1 (Tensor): The first operand.
        tensor2 (Tensor): The second operand.
        value (float): The factor. Default: 1.

    Returns:
        Tensor: The shapes of the operands, broadcast, in their common type.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.addcdiv(ms.Tensor([1.0]), ms.Tensor([4.0]), ms.Tensor([2.0])).tolist()
        [3.0]
    """
    return ops.addcdiv(input, tensor1, tensor2, value)


def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 * tensor2.

    Args:
        input (Tensor): What is added to.
        tensor1 (Tensor): The first operand.
        tensor2 (Tensor): The second operand.
        value (float): The factor. Default: 1.

    Returns:
        Tensor: The shapes of the operands, broadcast, in their common type.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.addcmul(ms.Tensor([1.0]), ms.Tensor([4.0]), ms.Tensor([2.0])).tolist()
        [9.0]
    """
    return ops.addcmul(input, tensor1, tensor2, value)


def addr_(input: Tensor, vec1: Any, vec2: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Assign beta * input + alpha * (vec1 as a column) @ (vec2 as a row) to `input`, and return it.

    Args:
        input (Tensor): The tensor that is written to, (n, m).
        vec1 (Tensor): The vector of the rows, (n,).
        vec2 (Tensor): The vector of the columns, (m,).
        beta (Tensor | float): The factor of `input`. Default: 1.
        alpha (float): The factor of the product. Default: 1.

    Returns:
        Tensor: `input` itself.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.addr_(ms.Tensor([[1.0]]), ms.Tensor([2.0]), ms.Tensor([3.0])).tolist()
        [[7.0]]
    """
    return in_place_functions._written("addr_", input).copy_(ops.addr(input, vec1, vec2, beta=beta, alpha=alpha))


def _check_factors(name: str, **factors: Any) -> None:
    for parameter, value in factors.items():
        if not isinstance(value, (bool, int, float)):
            number(name, parameter, value)


def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * the sum of the products of matrices in `batch1` and `batch2`.

    Args:
        input (Tensor): What is added, broadcast to the result.
        batch1 (Tensor): Matrices (b, n, m).
        batch2 (Tensor): Matrices (b, m, p).
        beta (Tensor | float): The factor of `input`. Default: 1.
        alpha (float): The factor of the products. Default: 1.

    Returns:
        Tensor: (n, p).

    Examples:
        >>> import mycel as ms
        >>> row, column = ms.ops.ones((2, 1, 2)), ms.ops.ones((2, 2, 1))
        >>> ms.mint.addbmm(ms.ops.ones((1, 1)), row, column).item()
        5.0
    """
    _check_factors("addbmm", beta=beta, alpha=alpha)
    x, first, second = operand("addbmm", input), operand("addbmm", batch1), operand("addbmm", batch2)
    return ops.addbmm(x, first, second, beta=beta, alpha=alpha)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * mat1 @ mat2.

    Args:
        input (Tensor): What is added, broadcast to (n, p).
        mat1 (Tensor): The left matrix, (n, m).
        mat2 (Tensor): The right matrix, (m, p).
        beta (Tensor | float): The factor of `input`. Default: 1.
        alpha (float): The factor of the product. Default: 1.

    Returns:
        Tensor: (n, p).

    Examples:
        >>> import mycel as ms
        >>> ms.mint.addmm(ms.ops.ones((1, 1)), ms.ops.ones((1, 3)), ms.ops.ones((3, 1))).tolist()
        [[4.0]]
    """
    _check_factors("addmm", beta=beta, alpha=alpha)
    return ops.addmm(operand("addmm", input), mat1, mat2, beta=beta, alpha=alpha)


def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * mat @ vec.

    Args:
        input (Tensor): What is added, broadcast to (n,).
        mat (Tensor): The matrix, (n, m).
        vec (Tensor): The vector, (m,).
        beta (Tensor | float): The factor of `input`. Default: 1.
        alpha (float): The factor of the product. Default: 1.

    Returns:
        Tensor: (n,).

    Examples:
        >>> import mycel as ms
        >>> ms.mint.addmv(ms.ops.ones(1), ms.ops.ones((1, 3)), ms.ops.ones(3)).tolist()
        [4.0]
    """
    return ops.addmv(input, mat, vec, beta=number("addmv", "beta", beta), alpha=number("addmv", "alpha", alpha))


def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * batch1 @ batch2 for stacks of matrices.

    Args:
        input (Tensor): What is added, broadcast to the result.
        batch1 (Tensor): Matrices (b, n, m).
        batch2 (Tensor): Matrices (b, m, p).
        beta (Tensor | float): The factor of `input`. Default: 1.
        alpha (float): The factor of the products. Default: 1.

    Returns:
        Tensor: (b, n, p).

    Examples:
        >>> import mycel as ms
        >>> row, column = ms.ops.ones((1, 1, 2)), ms.ops.ones((1, 2, 1))
        >>> ms.mint.baddbmm(ms.ops.ones((1, 1, 1)), row, column).item()
        3.0
    """
    _check_factors("baddbmm", beta=beta, alpha=alpha)
    return ops.baddbmm(input, batch1, batch2, beta, alpha)


def bmm(input: Any, mat2: Any) -> Tensor:
    """Return the products of two stacks of matrices.

    >>> import mycel as ms
    >>> ms.mint.bmm(ms.ops.ones((1, 1, 2)), ms.ops.ones((1, 2, 1))).item()
    2.0
    """
    return ops.bmm(input, mat2)


def mv(input: Any, vec: Any) -> Tensor:
    """Return the product of a matrix and a vector.

    >>> import mycel as ms
    >>> ms.mint.mv(ms.ops.ones((1, 2)), ms.ops.ones((2,))).tolist()
    [2.0]
    """
    return ops.mv(input, vec)


def vdot(input: Any, other: Any) -> Tensor:
    """Return the sum of the products of two vectors, complex ones with the conjugate of the first.

    >>> import mycel as ms
    >>> ms.mint.vdot(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0])).item()
    11.0
    """
    x, y = operands("vdot", input, other)
    if x.ndim != 1 or y.ndim != 1 or x.shape != y.shape:
        raise ShapeError(f"vdot: takes two vectors of one size, not of shapes {x.shape} and {y.shape}")
    return ops.sum(ops.conj(x) * y)


def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether ``|input - other| <= atol + rtol * |other|`` everywhere, as a Python bool.

    Args:
        input (Tensor): The tensor.
        other (Tensor | float): The other tensor.
        rtol (float): The tolerance relative to the second operand. Default: 1e-05.
        atol (float): The absolute tolerance. Default: 1e-08.
        equal_nan (bool): Whether NaN is close to NaN. Default: False.

    Returns:
        bool: Whether they are.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.allclose(ms.Tensor([1.0]), ms.Tensor([1.0]))
        True
    """
    return bool(ops.all(ops.isclose(input, other, rtol, atol, equal_nan)))


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Return the distances of order `p` between the rows of `x1` and `x2`, two matrices or stacks
    of matrices.

    Args:
        x1 (Tensor): Rows, (..., n, m).
        x2 (Tensor): Rows, (..., n, m).
        p (float): The order of the norm. Default: 2.0.
        compute_mode (str): Has no effect. Default: "use_mm_for_euclid_dist_if_necessary".

    Returns:
        Tensor: (..., n1, n2).

    Examples:
        >>> import mycel as ms
        >>> ms.mint.cdist(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[3.0, 4.0]])).item()
        5.0
    """
    x, y = operand("cdist", x1), operand("cdist", x2)
    if x.ndim != y.ndim:
        raise ShapeError(f"cdist: x1 and x2 must have the same number of dimensions, not {x._type} and {y._type}")
    if real("cdist", "p", p) < 0:
        raise arguments.wrong_value("cdist", "p", "at least 0", p)
    return ops.cdist(x, y, p)


def equal(input: Any, other: Any) -> Tensor:
    """Return whether two tensors have the same shape and equal elements, as a tensor of one
    boolean.

    >>> import mycel as ms
    >>> ms.mint.equal(ms.Tensor([1, 2]), ms.Tensor([1, 2])).item()
    True
    """
    x, y = operands("equal", input, other)
    return ops.all(ops.eq(x, y)) if x.shape == y.shape else as_tensor(False)


def fix(input: Any) -> Tensor:
    """Return each element rounded towards 0.

    >>> import mycel as ms
    >>> ms.mint.fix(ms.Tensor([-1.5])).tolist()
    [-1.0]
    """
    return ops.trunc(input)


def frac(input: Any) -> Tensor:
    """Return the fractional part of each element, with its sign.

    >>> import mycel as ms
    >>> ms.mint.frac(ms.Tensor([-1.5])).tolist()
    [-0.5]
    """
    return ops.frac(input)


def isnan(tensor: Any) -> Tensor:
    """Return whether each element is NaN.

    >>> import mycel as ms
    >>> ms.mint.isnan(ms.Tensor([1.0])).tolist()
    [False]
    """
    return ops.isnan(term("isnan", tensor))


def sqrt(input: Any) -> Tensor:
    """Return the square root of each element; NaN below 0.

    >>> import mycel as ms
    >>> ms.mint.sqrt(ms.Tensor([4.0])).tolist()
    [2.0]
    """
    return ops.sqrt(input)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Tensor:
    """Return exp(x) over its sum along `dim`; `dtype` converts the elements first.

    >>> import mycel as ms
    >>> ms.mint.softmax(ms.Tensor([1.0, 1.0]), 0).tolist()
    [0.5, 0.5]
    """
    return ops.softmax(input, dim, dtype=dtype)


def histc(input: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """Return how many elements fall into each of `bins` equal intervals.

    Args:
        input (Tensor): The tensor.
        bins (int): The number of intervals. Default: 100.
        min (float): The lower end. Default: 0.
        max (float): The upper end; where both are 0 they are those of the elements. Default: 0.

    Returns:
        Tensor: (bins,).

    Examples:
        >>> import mycel as ms
        >>> ms.mint.histc(ms.Tensor([1.0, 2.0, 1.0]), 2, 0, 2).tolist()
        [0.0, 3.0]
    """
    return ops.histc(input, whole("histc", "bins", bins), min, max)


def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Return the two-dimensional convolution of (N, C, H, W) images.

    Args:
        input (Tensor): ([N,] C, *spatial).
        weight (Tensor): (C_out, C / groups, *kernel).
        bias (Tensor | None): (C_out,), or None. Default: None.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        padding (int | tuple[int, ...]): The zeros on each side: an int, one for each axis, "valid"
            or "same". Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        groups (int): The number of groups of channels that are convolved separately. Default: 1.

    Returns:
        Tensor: ([N,] C_out, *positions).

    Examples:
        >>> import mycel as ms
        >>> ms.mint.conv2d(ms.ops.ones((1, 1, 3, 3)), ms.ops.ones((1, 1, 2, 2))).shape
        (1, 1, 2, 2)
    """
    if isinstance(padding, str):
        return ops.conv2d(input, weight, bias, stride, padding, 0, dilation, groups)
    return ops.conv2d(input, weight, bias, stride, "pad", padding, dilation, groups)


def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Tensor:
    """Return the convolution along time.

    Args:
        input (Tensor): (time, batch, channels).
        weight (Tensor): (kernel, in, out).
        bias (Tensor | None): (out,).
        pad (int): The number of zeros at both ends of the time axis. Default: 0.

    Returns:
        Tensor: (time', batch, out).

    Examples:
        >>> import mycel as ms
        >>> ms.mint.conv_tbc(ms.ops.ones((4, 1, 2)), ms.ops.ones((3, 2, 1)), ms.ops.zeros((
        ...     1,))).shape
        (2, 1, 1)
    """
    x, w = operand("conv_tbc", input), operand("conv_tbc", weight)
    if x.ndim != 3 or w.ndim != 3 or x.shape[2] != w.shape[1]:
        raise ShapeError(f"conv_tbc: weights of shape {w.shape} do not fit an input of shape {x.shape}")
    image = ops.expand_dims(ops.permute(x, (1, 2, 0)), 2)
    kernel = ops.expand_dims(ops.permute(w, (2, 1, 0)), 2)
    out = ops.conv2d(image, kernel, operand("conv_tbc", bias), 1, "pad", (0, 0, pad, pad))
    return ops.permute(ops.squeeze(out, 2), (2, 0, 1))


def _channels(x: Tensor) -> tuple[int, ...]:
    return tuple(a for a in range(x.ndim) if a != 1)


def _beside(v: Any, x: Tensor) -> Tensor:
    return ops.reshape(operand("batch_norm", v), tuple(-1 if a == 1 else 1 for a in range(x.ndim)))


def batch_norm_stats(input: Any, eps: float) -> tuple[Tensor, Tensor]:
    """Return the mean of each channel (axis 1) and 1 / sqrt(variance + eps).

    >>> import mycel as ms
    >>> ms.mint.batch_norm_stats(ms.ops.ones((2, 3)), 0.25)[1].tolist()
    [2.0, 2.0, 2.0]
    """
    x = floating("batch_norm_stats", input)
    mean = ops.mean(x, _channels(x))
    variance = ops.mean(ops.square(x - _beside(mean, x)), _channels(x))
    return mean, ops.rsqrt(variance + eps)


def batch_norm_elemt(
    input: Any, weight: Any = None, bias: Any = None, mean: Any = None, invstd: Any = None, eps: float = 1e-05
) -> Tensor:
    """Return (input - mean) * invstd * weight + bias, by channel (axis 1).

    Args:
        input (Tensor): (N, C, ...).
        weight (Tensor | None): The scale, (C,); None for 1. Default: None.
        bias (Tensor | None): The shift, (C,); None for 0. Default: None.
        mean (Tensor | None): The means, (C,); None for 0. Default: None.
        invstd (Tensor | None): 1 over the deviations, (C,); None for 1. Default: None.
        eps (float): Has no effect. Default: 1e-05.

    Returns:
        Tensor: The shape of the input.

    Examples:
        >>> import mycel as ms
        >>> x, one = ms.ops.ones((1, 1)), ms.ops.ones((1,))
        >>> ms.mint.batch_norm_elemt(x, one, one, one, one).tolist()
        [[1.0]]
    """
    x = floating("batch_norm_elemt", input)
    out = x if mean is None else x - _beside(mean, x)
    for factor in (invstd, weight):
        out = out if factor is None else out * _beside(factor, x)
    return out if bias is None else out + _beside(bias, x)


def batch_norm_gather_stats_with_counts(
    input: Any,
    mean: Any,
    invstd: Any,
    running_mean: Any = None,
    running_var: Any = None,
    momentum: float = 0.1,
    eps: float = 1e-05,
    counts: Any = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean and 1 / sqrt(variance + eps) of each channel over several parts.

    `running_mean` and `running_var`, where given, are overwritten by (1 - momentum) of the old and
    momentum of the new statistics, with the unbiased variance.

    Args:
        input (Tensor): Has no effect.
        mean (Tensor): The means of the parts, (parts, channels).
        invstd (Tensor): 1 over the deviations of the parts, (parts, channels).
        running_mean (Tensor | None): Moved in place towards the result; None for nothing. Default:
            None.
        running_var (Tensor | None): Moved in place towards the result; None for nothing. Default:
            None.
        momentum (float): The share by which they are moved. Default: 0.1.
        eps (float): Added to variances. Default: 1e-05.
        counts (Tensor): The numbers of elements of the parts, (parts,). Default: None.

    Returns:
        tuple[Tensor, Tensor]: The means and the inverse deviations, (channels,).

    Examples:
        >>> import mycel as ms
        >>> one = ms.ops.ones((1, 1))
        >>> gather, counts = ms.mint.batch_norm_gather_stats_with_counts, ms.Tensor([2.0])
        >>> gather(one, one, one, eps=0.0, counts=counts)[0].tolist()
        [1.0]
    """
    means, inverses = (
        floating("batch_norm_gather_stats_with_counts", mean),
        floating("batch_norm_gather_stats_with_counts", invstd),
    )
    weights = ops.reshape(cast(operand("batch_norm_gather_stats_with_counts", counts), means.dtype), (-1, 1))
    total = ops.sum(weights)
    average = ops.sum(means * weights, 0) / total
    variances = 1 / ops.square(inverses) - eps
    variance = ops.sum((variances + ops.square(means - average)) * weights, 0) / total
    for running in (running_mean, running_var):
        if running is not None and not isinstance(running, Tensor):
            raise TypeError(
                "batch_norm_gather_stats_with_counts: running statistics are tensors or None, not "
                f"{type(running).__name__}"
            )
    if running_mean is not None:
        running_mean.copy_(running_mean * (1 - momentum) + average * momentum)
    if running_var is not None:
        running_var.copy_(running_var * (1 - momentum) + variance * (total / (total - 1)) * momentum)
    return average, ops.rsqrt(variance + eps)
