"""Variants of functions with other parameters than the function of the plainer name, and small
functions of shapes.
"""

from __future__ import annotations

import math as plain_math
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import random
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.generator import seeded_generator
from mycel.ops import elementwise, loss, math, sorting
from mycel.ops._operands import (
    axis_of,
    constant_like,
    finfo,
    floating,
    iota,
    operand,
    reshaped,
    run,
    select,
    shape_of,
    term,
)
from mycel.ops.algebra import linalg
from mycel.ops.array import reshape as reshape_plain
from mycel.ops.assignment import updated
from mycel.ops.composite import HyperMap
from mycel.ops.creation import full
from mycel.ops.gather_scatter import index_add
from mycel.ops.random import draw
from mycel.ops.segments import unique

__all__ = [
    "baddbmm_ext",
    "bernoulli_ext",
    "bidense",
    "diff_ext",
    "eps",
    "fill_diagonal",
    "float_power_ext",
    "hyper_add",
    "inplace_index_add",
    "inplace_sigmoid",
    "isnan_ext",
    "mse_loss_ext",
    "print_",
    "reduced_shape",
    "reshape_",
    "shape_mul",
    "tensor_muls",
    "unique_with_pad",
]


def baddbmm_ext(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return ``beta * input + alpha * bmm(batch1, batch2)``.

    Args:
        input (Tensor): What is added, broadcast to the product.
        batch1 (Tensor): Matrices (b, n, m).
        batch2 (Tensor): Matrices (b, m, p).
        beta (Tensor | float): The factor of `input`; where it is 0, `input` is ignored. Default: 1.
        alpha (float): The factor of the products. Default: 1.

    Returns:
        Tensor: (b, n, p).

    Examples:
        >>> import mycel as ms
        >>> x, y = ms.ops.ones((1, 1, 3)), ms.ops.ones((1, 3, 1))
        >>> ms.ops.baddbmm_ext(ms.Tensor([1.0]), x, y, alpha=2).tolist()
        [[[7.0]]]
    """
    if beta == 0:
        product = linalg.bmm(batch1, batch2)
        return product if alpha == 1 else elementwise.mul(product, alpha)
    return linalg.baddbmm(input, batch1, batch2, beta, alpha)


def bernoulli_ext(input: Any, *, generator: Any = None) -> Tensor:
    """Return 1 with the probability that is the element of `input` and else 0, in its shape and
    floating type.

    >>> import mycel as ms
    >>> ms.ops.bernoulli_ext(ms.Tensor([0.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    p = floating("bernoulli_ext", input)
    wide = p if p.dtype in (D.float32, D.float64) else cast(p, D.float32)
    return cast(run(E.lt, draw(random.uniform, p.shape, seeded_generator(generator), dtype=wide.dtype), wide), p.dtype)


def bidense(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """Return x1^T A_o x2 + b_o for each output o.

    Args:
        input1 (Tensor): (..., i).
        input2 (Tensor): (..., j).
        weight (Tensor): (o, i, j).
        bias (Tensor | None): (o,) or (), or None. Default: None.

    Returns:
        Tensor: (..., o).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.bidense(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0]]), ms.ops.ones((1, 2,
        ...     1))).tolist()
        [[9.0]]
    """
    arguments.optional("bidense", "bias", bias, Tensor)
    a, b, w = (operand("bidense", v) for v in (input1, input2, weight))
    if w.ndim != 3 or a.shape[-1:] != w.shape[1:2] or b.shape[-1:] != w.shape[2:] or a.shape[:-1] != b.shape[:-1]:
        raise ShapeError(f"bidense: takes (.., i), (.., j) and (o, i, j), not {a._type}, {b._type} and {w._type}")
    found = linalg.einsum("...i,oij,...j->...o", a, w, b)
    return found if bias is None else elementwise.add(found, bias)


def diff_ext(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return the `n`-th differences of neighbours in `input` along the axis `dim`.

    Args:
        input (Tensor): The tensor.
        n (int): How many times differences are taken. Default: 1.
        dim (int): The axis. Default: -1.
        prepend (Tensor | None): What is joined to the tensor first. Default: None.
        append (Tensor | None): What is joined to the tensor first. Default: None.

    Returns:
        Tensor: The input with `n` elements less along the axis.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.diff_ext(ms.Tensor([1, 3, -1])).tolist()
        [2, -4]
    """
    arguments.integer("diff_ext", "n", n, flags=True)
    x = operand("diff_ext", input)
    if n == 0:
        return run(E.identity, x)
    parts = [operand("diff_ext", v) for v in (prepend, x, append) if v is not None]
    if any(v.ndim != x.ndim for v in parts):
        raise ShapeError(f"diff_ext: what is joined to {x._type} must have {x.ndim} dimensions")
    size = sum(v.shape[axis_of("diff_ext", dim, x.ndim)] for v in parts)
    # More differences than there are neighbours leave nothing.
    return sorting.diff(x, min(n, max(size, 1)), dim, prepend, append)


def float_power_ext(input: Any, exponent: Any) -> Tensor:
    """Raise the first operand to the power of the second in float64.

    At least one of them is a tensor, and none is complex.

    >>> import mycel as ms
    >>> ms.ops.float_power_ext(ms.Tensor([2]), -1).tolist()
    [0.5]
    """
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError("float_power_ext: one of input and exponent must be a tensor")
    for value in (input, exponent):
        if (isinstance(value, Tensor) and value.dtype.is_complex) or isinstance(value, complex):
            raise TypeError("float_power_ext: complex numbers are not supported; use pow")
    return math.float_power(*(cast(v, D.float64) if isinstance(v, Tensor) else float(v) for v in (input, exponent)))


def isnan_ext(tensor: Any) -> Tensor:
    """Return whether each element is NaN, which integers never are.

    >>> import mycel as ms
    >>> ms.ops.isnan_ext(ms.Tensor([float("nan"), 1.0])).tolist()
    [True, False]
    """
    return elementwise.isnan(term("isnan_ext", tensor))


def mse_loss_ext(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return the squared difference of two tensors that broadcast, reduced.

    `reduction` is "mean", "sum" or "none".

    >>> import mycel as ms
    >>> ms.ops.mse_loss_ext(ms.Tensor([1.0, 2.0]), ms.Tensor([[1.0], [4.0]]), "sum").item()
    14.0
    """
    arguments.text("mse_loss_ext", "reduction", reduction)
    return loss.mse_loss(input, target, reduction)


def tensor_muls(input: Any, other: Any) -> Tensor:
    """Multiply a tensor by a number.

    >>> import mycel as ms
    >>> ms.ops.tensor_muls(ms.Tensor([2.0]), 3).tolist()
    [6.0]
    """
    return elementwise.mul(input, other)


def hyper_add(*args: Any) -> Any:
    """Add the corresponding leaves of equally nested sequences.

    >>> import mycel as ms
    >>> ms.ops.hyper_add((1, (2, 3)), (10, (20, 30)))
    (11, (22, 33))
    """
    return HyperMap()(_added, *args)


def _added(x: Any, *more: Any) -> Any:
    for y in more:
        x = x + y
    return x


def eps(x: Any) -> Tensor:
    """Return the distance from 1 to the next number of the floating type of `x`, in the shape and
    type of `x`.

    >>> import mycel as ms
    >>> ms.ops.eps(ms.Tensor([4.0])).tolist() == [2.0**-23]
    True
    """
    value = operand("eps", x)
    if value.dtype not in (D.float16, D.float32, D.float64):
        raise TypeError(f"eps: x must be float16, float32 or float64, not {value.dtype.name}")
    return full(value.shape, float(finfo(value.dtype.numpy).eps), dtype=value.dtype)


# Writes.


def inplace_index_add(var: Any, indices: Any, updates: Any, axis: int) -> Tensor:
    """Add slices of `updates` in place to `var` along `axis` at the positions in the vector
    `indices`, and return `var`.

    Args:
        var (Parameter): What is added to.
        indices (Tensor): The positions, a vector.
        updates (Tensor): The slices that are added.
        axis (int): The axis.

    Returns:
        Tensor: `var` itself.

    Examples:
        >>> import mycel as ms
        >>> x, updates = ms.Tensor([[1.0, 2.0]]), ms.Tensor([[5.0]])
        >>> ms.ops.inplace_index_add(x, ms.Tensor([1]), updates, 1).tolist()
        [[1.0, 7.0]]
    """
    arguments.instance("inplace_index_add", "var", var, Tensor, "a Tensor or Parameter to write to")
    return updated(var, index_add(run(E.identity, var), indices, updates, axis))


def inplace_sigmoid(input: Any) -> Tensor:
    """Replace each element of `input` by its sigmoid in place, and return `input`.

    >>> import mycel as ms
    >>> ms.ops.inplace_sigmoid(ms.Tensor([0.0])).tolist()
    [0.5]
    """
    arguments.instance("inplace_sigmoid", "input", input, Tensor, "a Tensor to write to")
    return input.sigmoid_()


def fill_diagonal(x: Any, fill_value: float, wrap: bool = False) -> Tensor:
    """Return a new tensor with `fill_value` on the diagonal, where the positions along all axes are
    equal.

    A tensor of more than two dimensions must have equal sizes. With `wrap` the diagonal of a matrix
    with more rows than columns begins again after each block of columns + 1 rows.

    >>> import mycel as ms
    >>> ms.ops.zeros((2, 2)).fill_diagonal(5.0).tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    arguments.instance("fill_diagonal", "fill_value", fill_value, float)
    arguments.flag("fill_diagonal", "wrap", wrap)
    value = operand("fill_diagonal", x)
    if value.ndim < 2 or (value.ndim > 2 and len(set(value.shape)) > 1):
        raise ShapeError(f"fill_diagonal: takes a matrix, or a tensor of equal sizes, not {value._type}")
    rows = iota(value.shape, 0, D.int64)
    if wrap and value.ndim == 2:
        rows = run(E.mod, rows, constant_like(value.shape[1] + 1, rows))
    hit = run(E.eq, rows, iota(value.shape, 1, D.int64))
    for axis in range(2, value.ndim):
        hit = run(E.logical_and, hit, run(E.eq, rows, iota(value.shape, axis, D.int64)))
    return select(hit, cast(term("fill_diagonal", fill_value), value.dtype), value)


def unique_with_pad(x: Any, pad_num: Any) -> tuple[Tensor, Tensor]:
    """Return the distinct elements of a vector in the order of their first occurrence, and each
    element's position among them.

    The distinct elements are followed by `pad_num` up to the length of the vector.

    >>> import mycel as ms
    >>> [t.tolist() for t in ms.ops.unique_with_pad(ms.Tensor([3, 1, 3]), 0)]
    [[3, 1, 0], [0, 1, 0]]
    """
    value = operand("unique_with_pad", x)
    if value.ndim != 1 or not value.dtype.is_integer:
        raise TypeError(f"unique_with_pad: takes a vector of integers, not {value._type}")
    place = unique(value)[1]
    pads = full(value.shape, 0, dtype=value.dtype) + term("unique_with_pad", pad_num, value.dtype)
    found = run(I.scatter_nd, pads, reshaped(place, (value.shape[0], 1)), value, mode="set")
    return found, cast(place, value.dtype)


# Shapes.


def reshape_(input: Any, shape: Any) -> Tensor:
    """Return the same as `reshape`.

    >>> import mycel as ms
    >>> ms.ops.reshape_(ms.Tensor([1, 2]), (2, 1)).tolist()
    [[1], [2]]
    """
    return reshape_plain(input, shape)


def shape_mul(input_data: Any) -> Any:
    """Return the product of the sizes of a shape.

    >>> import mycel as ms
    >>> ms.ops.shape_mul((2, 3))
    6
    """
    return plain_math.prod(shape_of("shape_mul", input_data, False))


def reduced_shape(shape: Any, axis: Any) -> tuple[Any, ...]:
    """Return the shape of a reduction over `axis` that keeps the reduced axes; () reduces all axes.

    >>> import mycel as ms
    >>> ms.ops.reduced_shape((2, 3), (1,))
    (2, 1)
    """
    shape = shape_of("reduced_shape", shape, False)
    axes = (axis,) if isinstance(axis, int) else arguments.sequence("reduced_shape", "axis", axis)
    hit = {axis_of("reduced_shape", a, len(shape)) for a in axes} or set(range(len(shape)))
    return tuple(1 if k in hit else size for k, size in enumerate(shape))


def print_(*input_x: Any) -> None:
    """Print values, each on lines of its own; a compiled function prints when it runs.

    >>> import mycel as ms
    >>> ms.ops.print_("x is", 3)
    x is
    3
    """
    from mycel.ops.operations.debugging import print_values

    print_values(*input_x)
