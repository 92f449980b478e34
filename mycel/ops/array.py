"""Functions that rearrange elements without computing: shapes, the order of axes, and joins.

All of them look at types alone, accept symbolic sizes where the result allows it, and are
differentiable.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError, named
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel._src.tensors.core.view_cache import viewing
from mycel._src.tensors.core.views import broadcast, permuted, reshaped
from mycel.ops import _operands
from mycel.ops._operands import all_axes, axis_of, operand, run, shape_of
from mycel.ops.complex_numbers import conj
from mycel.ops.splits import unstack

__all__ = [
    "adjoint",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_to",
    "cat",
    "column_stack",
    "concat",
    "dstack",
    "expand",
    "expand_as",
    "expand_dims",
    "flatten",
    "hstack",
    "moveaxis",
    "movedim",
    "permute",
    "ravel",
    "reshape",
    "row_stack",
    "squeeze",
    "stack",
    "swapaxes",
    "swapdims",
    "t",
    "transpose",
    "unsqueeze",
    "view_as",
    "vstack",
]


@viewing
def reshape(input: Any, shape: Any) -> Tensor:
    """Return the same elements, in row-major order, with another shape.

    One size may be -1 and follows from the others. Raises ValueError where the number of elements
    does not fit.

    >>> import mycel as ms
    >>> ms.ops.reshape(ms.ops.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    x = operand("reshape", input)
    wanted = shape_of("reshape", shape, False)
    free = [i for i, d in enumerate(wanted) if isinstance(d, int) and d == -1]
    if len(free) > 1 or builtins.any(isinstance(d, int) and d < -1 for d in wanted):
        raise ShapeError(f"reshape: the shape {wanted} may hold one -1 and no other negative size")
    if free:
        known = product(d for i, d in enumerate(wanted) if i != free[0])
        total = product(x.shape)
        if isinstance(known, int) and known == 0:
            raise ShapeError(f"reshape: -1 in {wanted} is ambiguous beside a size of 0")
        if isinstance(total, int) and isinstance(known, int) and total % known:
            raise ShapeError(f"reshape: {x._type} has {total} elements, which do not divide into {wanted}")
        wanted = tuple(total // known if i == free[0] else d for i, d in enumerate(wanted))
    return reshaped(x, wanted)


def view_as(input: Any, other: Tensor) -> Tensor:
    """Return `input` with the shape of `other`.

    >>> import mycel as ms
    >>> ms.ops.view_as(ms.ops.arange(4), ms.ops.ones((2, 2))).shape
    (2, 2)
    """
    return reshape(input, operand("view_as", other).shape)


@viewing
def ravel(input: Any) -> Tensor:
    """Flatten a tensor to one axis, in row-major order.

    >>> import mycel as ms
    >>> ms.ops.ravel(ms.Tensor([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    x = operand("ravel", input)
    return reshaped(x, (product(x.shape),))


@viewing
def flatten(input: Any, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Join the axes of `input` from `start_dim` to `end_dim` into one.

    Args:
        input (Tensor): The tensor.
        order (str): "C" is row-major; "F" reverses the axes first. Default: "C".
        start_dim (int): The first axis. Default: 1.
        end_dim (int): The last axis. Default: -1.

    Returns:
        Tensor: The same elements; tensors of fewer than two dimensions become one axis.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.flatten(ms.ops.ones((2, 3, 4))).shape
        (2, 12)
    """
    arguments.text("flatten", "order", order)
    x = operand("flatten", input)
    if order not in ("C", "F"):
        raise ValueError(f"flatten: order must be 'C' or 'F', not {order!r}")
    if order == "F":
        x = permuted(x, tuple(reversed(builtins.range(x.ndim))))
    if x.ndim < 2:
        return reshaped(x, (product(x.shape),))
    first, last = axis_of("flatten", start_dim, x.ndim), axis_of("flatten", end_dim, x.ndim)
    if first > last:
        raise ShapeError(f"flatten: start_dim {start_dim} lies behind end_dim {end_dim} for {x.ndim} dimensions")
    return reshaped(x, (*x.shape[:first], product(x.shape[first : last + 1]), *x.shape[last + 1 :]))


def transpose(input: Any, dims: Any) -> Tensor:
    """Permute the axes: axis i of the result is axis dims[i] of `input`.

    Raises ValueError unless `dims` is a permutation.

    >>> import mycel as ms
    >>> ms.ops.transpose(ms.ops.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return permute(input, dims)


@viewing
def permute(input: Any, axis: Any) -> Tensor:
    """Permute the axes: axis i of the result is axis axis[i] of `input`.

    Raises ValueError unless `axis` is a permutation.

    >>> import mycel as ms
    >>> ms.ops.permute(ms.ops.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = operand("transpose", input)
    order = shape_of("transpose", axis, False)
    if len(order) != x.ndim or sorted(d % x.ndim if x.ndim else 0 for d in order if -x.ndim <= d < x.ndim) != list(
        builtins.range(x.ndim)
    ):
        raise ShapeError(f"transpose: {order} is not a permutation of the {x.ndim} axes of {x._type}")
    return permuted(x, tuple(d % x.ndim for d in order))


@viewing
def t(input: Any) -> Tensor:
    """Transpose a matrix; vectors and scalars are returned as they are.

    Raises ValueError for more than two dimensions.

    >>> import mycel as ms
    >>> ms.ops.t(ms.ops.ones((2, 3))).shape
    (3, 2)
    """
    x = operand("t", input)
    if x.ndim > 2:
        raise ShapeError(f"t: takes tensors of at most 2 dimensions, not {x._type}; use swapaxes")
    return permuted(x, (1, 0)) if x.ndim == 2 else x


def adjoint(x: Any) -> Tensor:
    """Exchange the last two axes and conjugate complex numbers.

    >>> import mycel as ms
    >>> ms.ops.adjoint(ms.ops.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    value = operand("adjoint", x)
    return swapaxes(conj(value), -1, -2) if value.dtype.is_complex else swapaxes(value, -1, -2)


@viewing
def swapaxes(input: Any, axis0: int, axis1: int) -> Tensor:
    """Exchange two axes.

    >>> import mycel as ms
    >>> ms.ops.swapaxes(ms.ops.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = operand("swapaxes", input)
    a, b = axis_of("swapaxes", axis0, x.ndim), axis_of("swapaxes", axis1, x.ndim)
    order = list(builtins.range(x.ndim))
    order[a], order[b] = b, a
    return permuted(x, tuple(order))


def swapdims(input: Any, dim0: int, dim1: int) -> Tensor:
    """Return the same as `swapaxes`.

    >>> import mycel as ms
    >>> ms.ops.swapdims(ms.ops.ones((2, 3)), 0, 1).shape
    (3, 2)
    """
    return swapaxes(input, dim0, dim1)


@viewing
def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Move axes to new places; the other axes keep their order.

    Raises ValueError where the two lists differ in length or repeat an axis.

    >>> import mycel as ms
    >>> ms.ops.moveaxis(ms.ops.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    value = operand("moveaxis", x)
    old, new = (
        [axis_of("moveaxis", a, value.ndim) for a in (axes if isinstance(axes, (tuple, list)) else (axes,))]
        for axes in (source, destination)
    )
    if len(old) != len(new) or len(set(old)) != len(old) or len(set(new)) != len(new):
        raise ShapeError(f"moveaxis: source {source} and destination {destination} must be equally many distinct axes")
    order = [i for i in builtins.range(value.ndim) if i not in old]
    for to, at in sorted(zip(new, old)):
        order.insert(to, at)
    return permuted(value, tuple(order))


def movedim(x: Any, source: Any, destination: Any) -> Tensor:
    """Return the same as `moveaxis`.

    >>> import mycel as ms
    >>> ms.ops.movedim(ms.ops.ones((2, 3)), 0, 1).shape
    (3, 2)
    """
    return moveaxis(x, source, destination)


@viewing
def expand_dims(input_x: Any, axis: int) -> Tensor:
    """Insert a new axis of size 1 at `axis`.

    >>> import mycel as ms
    >>> ms.ops.expand_dims(ms.ops.ones((2, 3)), -1).shape
    (2, 3, 1)
    """
    x = operand("expand_dims", input_x)
    place = axis_of("expand_dims", axis, x.ndim + 1)
    return reshaped(x, (*x.shape[:place], 1, *x.shape[place:]))


@viewing
def unsqueeze(input: Any, dim: int) -> Tensor:
    """Insert a new axis of size 1 at `dim`.

    >>> import mycel as ms
    >>> ms.ops.unsqueeze(ms.ops.ones((2, 3)), 0).shape
    (1, 2, 3)
    """
    return expand_dims(input, dim)


@viewing
def squeeze(input: Any, axis: Any = None) -> Tensor:
    """Remove axes of size 1; `axis` limits which. Axes of other sizes stay.

    >>> import mycel as ms
    >>> ms.ops.squeeze(ms.ops.ones((1, 2, 1))).shape
    (2,)
    """
    x = operand("squeeze", input)
    axes = all_axes("squeeze", axis, x.ndim)
    return reshaped(x, tuple(d for i, d in enumerate(x.shape) if i not in axes or not isinstance(d, int) or d != 1))


@viewing
def broadcast_to(input: Any, shape: Any) -> Tensor:
    """Broadcast `input` to `shape`: axes of size 1 are repeated and missing axes added in front.

    A size of -1 keeps the axis as it is. Raises ValueError where the shapes do not fit.

    >>> import mycel as ms
    >>> ms.ops.broadcast_to(ms.Tensor([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    x = operand("broadcast_to", input)
    wanted = list(shape_of("broadcast_to", shape, False))
    for i, d in enumerate(wanted):
        if isinstance(d, int) and d == -1:
            own = i - (len(wanted) - x.ndim)
            if own < 0:
                raise ShapeError(f"broadcast_to: -1 in {tuple(wanted)} stands for an axis that {x._type} does not have")
            wanted[i] = x.shape[own]
    if builtins.any(isinstance(d, int) and d < 0 for d in wanted):
        raise ShapeError(f"broadcast_to: sizes must not be negative but for -1, got {tuple(wanted)}")
    return named(broadcast, "broadcast_to")(x, tuple(wanted))


def expand(input_x: Any, size: Any) -> Tensor:
    """Return the same as `broadcast_to`.

    >>> import mycel as ms
    >>> ms.ops.expand(ms.Tensor([[1], [2]]), (2, 2)).tolist()
    [[1, 1], [2, 2]]
    """
    return broadcast_to(input_x, size)


def expand_as(input: Any, other: Tensor) -> Tensor:
    """Return `input` broadcast to the shape of `other`.

    >>> import mycel as ms
    >>> ms.ops.expand_as(ms.Tensor([1, 2]), ms.ops.ones((3, 2))).shape
    (3, 2)
    """
    return broadcast(operand("expand_as", input), operand("expand_as", other).shape)


def _members(name: str, tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor) and tensors.ndim and tensors.shape[0]:
        return list(unstack(tensors))
    if not arguments.sequence(name, "tensors", tensors, "a tuple or a list of tensors"):
        raise ValueError(f"{name}: takes a sequence of at least one tensor")
    found = [operand(name, v) for v in tensors]
    kind = found[0].dtype
    for v in found[1:]:
        kind = D.promote(kind, v.dtype)
    return [cast(v, kind) for v in found]


def _joined(values: Sequence[Tensor], axis: int) -> Tensor:
    return run(E.identity, values[0]) if len(values) == 1 else run(S.CONCAT, *values, axis=axis)


@fused
def concat(tensors: Any, axis: int = 0) -> Tensor:
    """Join tensors along an existing axis, in their common type.

    Raises ValueError where the sizes of the other axes differ.

    >>> import mycel as ms
    >>> ms.ops.concat((ms.Tensor([1, 2]), ms.Tensor([3]))).tolist()
    [1, 2, 3]
    """
    values = _members("concat", tensors)
    return _joined(values, axis_of("concat", axis, values[0].ndim))


def cat(tensors: Any, axis: int = 0) -> Tensor:
    """Return the same as `concat`.

    >>> import mycel as ms
    >>> ms.ops.cat((ms.Tensor([1, 2]), ms.Tensor([3]))).tolist()
    [1, 2, 3]
    """
    return concat(tensors, axis)


@fused
def stack(tensors: Any, axis: int = 0) -> Tensor:
    """Join tensors of one shape along a new axis, in their common type.

    >>> import mycel as ms
    >>> ms.ops.stack((ms.Tensor([1, 2]), ms.Tensor([3, 4])), 1).tolist()
    [[1, 3], [2, 4]]
    """
    values = _members("stack", tensors)
    for v in values[1:]:
        if v.shape != values[0].shape:
            raise ShapeError(f"stack: the shapes {values[0].shape} and {v.shape} differ; all must be the same")
    place = axis_of("stack", axis, values[0].ndim + 1)
    shape = (*values[0].shape[:place], 1, *values[0].shape[place:])
    return _joined([_operands.reshaped(v, shape) for v in values], place)


def _stacker(name: str, tensors: Any, raise_to: Any, axis: int) -> Tensor:
    if isinstance(tensors, Tensor):
        tensors = unstack(tensors)
    arguments.sequence(name, "what is joined", tensors)
    values = [raise_to(operand(name, v)) for v in tensors]
    return concat(values, axis if values and values[0].ndim > axis else 0)


@fused
def hstack(tensors: Any) -> Tensor:
    """Join tensors along axis 1; vectors along axis 0.

    >>> import mycel as ms
    >>> ms.ops.hstack((ms.Tensor([1, 2]), ms.Tensor([3]))).tolist()
    [1, 2, 3]
    """
    return _stacker("hstack", tensors, atleast_1d, 1)


@fused
def vstack(inputs: Any) -> Tensor:
    """Join tensors along axis 0; vectors count as rows.

    >>> import mycel as ms
    >>> ms.ops.vstack((ms.Tensor([1, 2]), ms.Tensor([3, 4]))).tolist()
    [[1, 2], [3, 4]]
    """
    return _stacker("vstack", inputs, atleast_2d, 0)


def row_stack(tensors: Any) -> Tensor:
    """Return the same as `vstack`.

    >>> import mycel as ms
    >>> ms.ops.row_stack((ms.Tensor([1, 2]), ms.Tensor([3, 4]))).shape
    (2, 2)
    """
    return vstack(tensors)


@fused
def dstack(tensors: Any) -> Tensor:
    """Join tensors along axis 2, after vectors and matrices have gained the missing axes (see
    `atleast_3d`).

    >>> import mycel as ms
    >>> ms.ops.dstack((ms.Tensor([1, 2]), ms.Tensor([3, 4]))).tolist()
    [[[1, 3], [2, 4]]]
    """
    return _stacker("dstack", tensors, atleast_3d, 2)


@fused
def column_stack(tensors: Any) -> Tensor:
    """Join tensors along axis 1; vectors become the columns of a matrix.

    >>> import mycel as ms
    >>> ms.ops.column_stack((ms.Tensor([1, 2]), ms.Tensor([3, 4]))).tolist()
    [[1, 3], [2, 4]]
    """
    return _stacker("column_stack", tensors, lambda v: _operands.reshaped(v, (v.size, 1)) if v.ndim < 2 else v, 1)


def _at_least(name: str, inputs: Any, shape_to: Any) -> Any:
    if isinstance(inputs, (tuple, list)):
        return tuple(_at_least(name, v, shape_to) for v in inputs)
    x = operand(name, inputs)
    return reshaped(x, shape_to(x.shape))


def atleast_1d(inputs: Any) -> Any:
    """Return a tensor, or each tensor of a sequence, with at least one dimension.

    >>> import mycel as ms
    >>> ms.ops.atleast_1d(ms.Tensor(3)).shape
    (1,)
    """
    return _at_least("atleast_1d", inputs, lambda s: s or (1,))


def atleast_2d(inputs: Any) -> Any:
    """Return a tensor, or each tensor of a sequence, with at least two dimensions; new ones are
    added in front.

    >>> import mycel as ms
    >>> ms.ops.atleast_2d(ms.Tensor([1, 2])).shape
    (1, 2)
    """
    return _at_least("atleast_2d", inputs, lambda s: (1,) * (2 - len(s)) + s)


def atleast_3d(inputs: Any) -> Any:
    """Return a tensor, or each tensor of a sequence, with at least three dimensions.

    Vectors become (1, N, 1) and matrices (M, N, 1).

    >>> import mycel as ms
    >>> ms.ops.atleast_3d(ms.Tensor([1, 2])).shape
    (1, 2, 1)
    """
    return _at_least("atleast_3d", inputs, lambda s: {0: (1, 1, 1), 1: (1, *s, 1), 2: (*s, 1)}.get(len(s), s))
