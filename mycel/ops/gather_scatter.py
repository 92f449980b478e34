"""Reading and writing at positions: gather, embedding, scatter and writes to slices.

Positions are integers. One that is out of range raises an IndexRangeError, at once or, from a
compiled function, when its call ends. Negative positions count from the end where they do in
MindSpore: in `gather`, `gather_elements`, `index_select`, `embedding`, `take`, `index_fill`,
`inplace_update` and `scatter`. In `gather_nd`, `index_add` and the functions that write at rows of
indices they are out of range. `tensor_scatter_elements` ignores positions that are out of range.
Functions named after MindSpore's in-place operations (`scatter_add`, `scatter_nd_update`, ...)
write to the parameter they are given and return it; those named `tensor_scatter_*` return a new
tensor.
"""

from __future__ import annotations

import builtins
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.indexing.index_bounds import out_of_range
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops._operands import (
    axis_of,
    broadcast,
    cast_index,
    constant_like,
    flat,
    iota,
    move_axis,
    numbers,
    operand,
    reshaped,
    run,
    shape_of,
    size_of,
    take_slice,
    term,
)
from mycel.ops._operands import (
    select as choose,
)
from mycel.ops.assignment import updated
from mycel.ops.creation import ones_like, zeros
from mycel.ops.vector_norms import vector_norm

__all__ = [
    "embedding",
    "gather",
    "gather_d",
    "gather_elements",
    "gather_nd",
    "index_add",
    "index_fill",
    "index_select",
    "inplace_add",
    "inplace_sub",
    "inplace_update",
    "scatter",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd",
    "scatter_nd_add",
    "scatter_nd_div",
    "scatter_nd_max",
    "scatter_nd_min",
    "scatter_nd_mul",
    "scatter_nd_sub",
    "scatter_nd_update",
    "scatter_sub",
    "scatter_update",
    "select_scatter",
    "slice_scatter",
    "take",
    "tensor_scatter_add",
    "tensor_scatter_div",
    "tensor_scatter_elements",
    "tensor_scatter_max",
    "tensor_scatter_min",
    "tensor_scatter_mul",
    "tensor_scatter_sub",
    "tensor_scatter_update",
]


def _fit(name: str, x: Tensor, axis: int, index: Tensor) -> bool:
    """Return whether `index` has the sizes of `x` on every axis other than `axis`.

    Raises ShapeError where they have different numbers of dimensions.
    """
    if index.ndim != x.ndim:
        raise ShapeError(f"{name}: the index {index._type} must have the {x.ndim} dimensions of {x._type}")
    return builtins.all(a == b for i, (a, b) in enumerate(zip(index.shape, x.shape)) if i != axis)


def _position(index: Tensor, axis: int) -> Tensor:
    """Return the full position in the tensor that each element of `index` names.

    It is the element's value along `axis` and its own position along the other axes.
    """
    parts = [index if i == axis else iota(index.shape, i, index.dtype) for i in builtins.range(index.ndim)]
    parts = [reshaped(p, (*index.shape, 1)) for p in parts]
    return run(S.CONCAT, *parts, axis=index.ndim) if len(parts) > 1 else parts[0]


def gather(input_params: Any, input_indices: Any, axis: Any, batch_dims: int = 0) -> Tensor:
    """Return the slices of a tensor along an axis at given positions.

    Args:
        input_params (Tensor): The tensor.
        input_indices (Tensor): The positions.
        axis (int): The axis.
        batch_dims (int): How many of the first axes both tensors share, each example having its own
            indices; a negative one counts from the last axis of the indices. Default: 0.

    Returns:
        Tensor: The input with the axes of the indices in the place of `axis`.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.gather(ms.Tensor([[1, 2, 3], [4, 5, 6]]), ms.Tensor([2, 0]), 1).tolist()
        [[3, 1], [6, 4]]
    """
    arguments.integer("gather", "batch_dims", batch_dims)
    x, index = operand("gather", input_params), cast_index("gather", input_indices)
    where = axis_of("gather", axis, x.ndim)
    batch = batch_dims + index.ndim if batch_dims < 0 else batch_dims
    if batch == 0:
        return run(I.take, x, index, axis=where)
    if not batch <= where or batch > index.ndim or x.shape[:batch] != index.shape[:batch]:
        raise ShapeError(
            f"gather: {batch_dims} batch axes do not fit {x._type} and indices {index._type} along axis {where}"
        )
    x = move_axis(x, where, batch)
    rows = [iota(index.shape, i, index.dtype) for i in builtins.range(batch)]
    parts = [reshaped(p, (*index.shape, 1)) for p in (*rows, index)]
    found = run(I.gather_nd, x, run(S.CONCAT, *parts, axis=index.ndim))
    count = index.ndim - batch
    for _ in builtins.range(count):
        found = move_axis(found, batch, where + count - 1)
    return found


def gather_elements(input: Any, dim: int, index: Any) -> Tensor:
    """Return, for each element of `index`, the element of `input` at the same position, but at the
    index along `dim`.

    >>> import mycel as ms
    >>> ms.ops.gather_elements(ms.Tensor([[1, 2], [3, 4]]), 1, ms.Tensor([[0, 0], [1, 0]])).tolist()
    [[1, 1], [4, 3]]
    """
    x, where = operand("gather_elements", input), cast_index("gather_elements", index)
    axis = axis_of("gather_elements", dim, x.ndim)
    if _fit("gather_elements", x, axis, where):
        return run(I.take_along, x, where, axis=axis)
    return run(I.gather_nd, x, _position(where, axis))


def gather_d(x: Any, dim: int, index: Any) -> Tensor:
    """Return the same as `gather_elements`.

    >>> import mycel as ms
    >>> ms.ops.gather_d(ms.Tensor([[1, 2]]), 1, ms.Tensor([[1]])).tolist()
    [[2]]
    """
    return gather_elements(x, dim, index)


def gather_nd(input_x: Any, indices: Any) -> Tensor:
    """Return ``input_x[indices[..., 0], ..., indices[..., k - 1]]``: each row of `indices` is a
    position in the first k axes.

    >>> import mycel as ms
    >>> ms.ops.gather_nd(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([[0, 1], [1, 0]])).tolist()
    [2, 3]
    """
    return run(I.gather_nd, operand("gather_nd", input_x), cast_index("gather_nd", indices), bounds="front")


def index_select(input: Any, axis: int, index: Any) -> Tensor:
    """Return the slices of `input` along `axis` at the positions in the vector `index`.

    >>> import mycel as ms
    >>> ms.ops.index_select(ms.Tensor([[1, 2, 3]]), 1, ms.Tensor([2, 0])).tolist()
    [[3, 1]]
    """
    x, where = operand("index_select", input), cast_index("index_select", index)
    if where.ndim > 1:
        raise ShapeError(f"index_select: the index must be a vector, not {where._type}")
    return run(I.take, x, reshaped(where, (where.size,)), axis=axis_of("index_select", axis, x.ndim))


def take(input: Any, index: Any) -> Tensor:
    """Return the elements of the flattened tensor at the positions `index`, in the shape of
    `index`.

    >>> import mycel as ms
    >>> ms.ops.take(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([3, 0])).tolist()
    [4, 1]
    """
    return run(I.take, flat(operand("take", input)), cast_index("take", index), axis=0)


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """Return the rows of the table `weight` (rows, size) at the indices `input`.

    Args:
        input (Tensor): The indices, of any shape.
        weight (Parameter): The table, (rows, size).
        padding_idx (int | None): The row that gets no gradient. Default: None.
        max_norm (float | None): The norm to which longer rows are scaled in the result; None for no
            limit. Default: None.
        norm_type (float): The order of the norm. Default: 2.0.
        scale_grad_by_freq (bool): Must be False: True raises NotImplementedError. Default: False.

    Returns:
        Tensor: The shape of the indices, with `size` as a new last axis.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.embedding(ms.Tensor([1, 0]), ms.Tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[3.0, 4.0], [1.0, 2.0]]
    """
    if arguments.flag("embedding", "scale_grad_by_freq", scale_grad_by_freq):
        raise NotImplementedError("embedding: scale_grad_by_freq=True is not supported; leave it False")
    index, table = cast_index("embedding", input), operand("embedding", weight)
    if table.ndim != 2:
        raise ShapeError(f"embedding: the weight must be (rows, size), not {table._type}")
    rows = run(I.take, table, index, axis=0)
    if max_norm is not None:
        length = vector_norm(rows, norm_type, -1, True)
        limit = choose(length > max_norm, max_norm / (length + 1e-7), 1.0)
        rows = rows * run(E.stop_gradient, limit)
    if padding_idx is None:
        return rows
    number = padding_idx + table.shape[0] if padding_idx < 0 else padding_idx
    padded = reshaped(run(E.eq, index, constant_like(number, index)), (*index.shape, 1))
    return choose(padded, run(E.stop_gradient, rows), rows)


def inside(name: str, indices: Any, size: Any, axis: int = 0) -> Tensor:
    """Check that indices lie in [0, size), and return them.

    It is for operations that neither read nor write at their indices. `name` is the operation and
    `axis` the axis that errors name.
    """
    return run(I.checked, cast_index(name, indices), axis=axis, size=size, bounds="front")


def read_or_zeros(x: Tensor, index: Tensor, axis: int = 0) -> Tensor:
    """Return `gather` along `axis`, with zeros for indices that are out of range.

    Negative indices count from the end.
    """
    return run(I.take, x, index, axis=axis, bounds="drop")


def write(name: str, input: Any, indices: Any, updates: Any, mode: str, bounds: str = "front") -> Tensor:
    """Return `input` with `updates` written at the positions that are the rows of `indices`.

    `mode` says how an update meets the element that is there: "set", "add", "sub", "mul", "div",
    "max" or "min". `bounds` says which indices are valid, as in `prims.indexing.index`. `name` is
    the operation that errors name.
    """
    x, index = operand(name, input), cast_index(name, indices)
    new = operand(name, updates, x.dtype)
    if index.ndim < 1 or not isinstance(index.shape[-1], int) or not index.shape[-1] <= x.ndim:
        raise ShapeError(f"{name}: indices {index._type} do not name places of {x._type}; their last axis counts axes")
    wanted = (*index.shape[:-1], *x.shape[index.shape[-1] :])
    if new.shape != wanted:
        new = broadcast(new, broadcast_shapes(new.shape, wanted)) if new.ndim == 0 else new
        if new.shape != wanted:
            raise ShapeError(f"{name}: the updates must have the shape {wanted}, not {new.shape}")
    if mode == "sub":
        return run(I.scatter_nd, x, index, run(E.neg, new), mode="add", bounds=bounds)
    if mode == "div":
        divisor = run(I.scatter_nd, ones_like(x), index, new, mode="mul", bounds=bounds)
        return run(E.div if x.dtype.is_floating else E.floor_div, x, divisor)
    if x.dtype is D.bool_:
        return cast(run(I.scatter_nd, cast(x, D.int8), index, cast(new, D.int8), mode=mode, bounds=bounds), D.bool_)
    return run(I.scatter_nd, x, index, new, mode=mode, bounds=bounds)


_WORDS = {
    "update": "replaced by",
    "add": "increased by",
    "sub": "decreased by",
    "mul": "multiplied by",
    "div": "divided by",
    "max": "raised to at least",
    "min": "lowered to at most",
}


def _describe(function: Any, name: str, summary: str, place: str, expected: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    Examples:
        >>> import mycel as ms
        >>> ms.ops.{name}({place}).tolist()
        {expected}
    """


_RESULT = {"update": 3.0, "add": 5.0, "sub": -1.0, "mul": 6.0, "div": 2.0 / 3.0, "max": 3.0, "min": 2.0}


def _shown(kind: str) -> str:
    return str([[1.0, _RESULT[kind] if kind != "div" else 0.6666666865348816]]).replace("[[", "[").replace("]]", "]")


def _tensor_scatter(kind: str) -> Any:
    name = f"tensor_scatter_{kind}"

    def function(input_x: Any, indices: Any, updates: Any) -> Tensor:
        return write(name, input_x, indices, updates, "set" if kind == "update" else kind)

    summary = (
        f"Return a new tensor: `input_x` {_WORDS[kind]} `updates` at the positions that are the rows of `indices`.\n\n"
        "    Raises ValueError where shapes do not fit."
    )
    _describe(function, name, summary, "ms.Tensor([1.0, 2.0]), ms.Tensor([[1]]), ms.Tensor([3.0])", _shown(kind))
    return function


tensor_scatter_update = _tensor_scatter("update")
tensor_scatter_add = _tensor_scatter("add")
tensor_scatter_sub = _tensor_scatter("sub")
tensor_scatter_mul = _tensor_scatter("mul")
tensor_scatter_div = _tensor_scatter("div")
tensor_scatter_max = _tensor_scatter("max")
tensor_scatter_min = _tensor_scatter("min")


_LISTED = """

    Args:
        input_x (Parameter): The parameter.
        indices (Tensor): The positions, as the rows of int32 or int64, (..., axes).
        updates (Tensor): What is written, of shape ``indices.shape[:-1] + input_x.shape[axes:]``.
        use_locking (bool): Has no effect. Default: False.

    Returns:
        Tensor: The parameter."""


def _in_place(name: str, kind: str, by_rows: bool) -> Any:
    def write_rows(input_x: Any, indices: Any, updates: Any) -> Tensor:
        index = cast_index(name, indices)
        if by_rows:
            index = reshaped(index, (*index.shape, 1))
        return updated(input_x, write(name, input_x, index, updates, "set" if kind == "update" else kind))

    def write_nd(input_x: Any, indices: Any, updates: Any, use_locking: bool = False) -> Tensor:
        arguments.flag(name, "use_locking", use_locking)
        return write_rows(input_x, indices, updates)

    function = write_rows if by_rows else write_nd
    if by_rows:
        summary = (
            f"Write to a parameter in place: `input_x` is {_WORDS[kind]} `updates` at the rows (axis 0) at "
            "`indices`.\n\n    Returns the parameter."
        )
    else:
        summary = f"Write to a parameter in place: it is {_WORDS[kind]} the updates at given positions.{_LISTED}"
    place = f"ms.Parameter(ms.Tensor([1.0, 2.0])), ms.Tensor({'[1]' if by_rows else '[[1]]'}), ms.Tensor([3.0])"
    _describe(function, name, summary, place, _shown(kind))
    return function


scatter_update = _in_place("scatter_update", "update", True)
scatter_add = _in_place("scatter_add", "add", True)
scatter_sub = _in_place("scatter_sub", "sub", True)
scatter_mul = _in_place("scatter_mul", "mul", True)
scatter_div = _in_place("scatter_div", "div", True)
scatter_max = _in_place("scatter_max", "max", True)
scatter_min = _in_place("scatter_min", "min", True)
scatter_nd_update = _in_place("scatter_nd_update", "update", False)
scatter_nd_add = _in_place("scatter_nd_add", "add", False)
scatter_nd_sub = _in_place("scatter_nd_sub", "sub", False)
scatter_nd_mul = _in_place("scatter_nd_mul", "mul", False)
scatter_nd_div = _in_place("scatter_nd_div", "div", False)
scatter_nd_max = _in_place("scatter_nd_max", "max", False)
scatter_nd_min = _in_place("scatter_nd_min", "min", False)


def scatter_nd(indices: Any, updates: Any, shape: Any) -> Tensor:
    """Return zeros of `shape` with `updates` added at the positions that are the rows of `indices`.

    >>> import mycel as ms
    >>> ms.ops.scatter_nd(ms.Tensor([[1], [1]]), ms.Tensor([2.0, 3.0]), (3,)).tolist()
    [0.0, 5.0, 0.0]
    """
    new = operand("scatter_nd", updates)
    return write("scatter_nd", zeros(shape_of("scatter_nd", shape, False), new.dtype), indices, new, "add")


_REDUCTIONS = {"none": "set", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def tensor_scatter_elements(input_x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "none") -> Tensor:
    """Return a copy of `input_x` with each element of `updates` written at its own position, but at
    the index in `indices` along `axis`.

    Args:
        input_x (Tensor): The tensor.
        indices (Tensor): Where along `axis` each element goes; those out of range are ignored.
        updates (Tensor): The elements.
        axis (int): The axis. Default: 0.
        reduction (str): How an update meets the element that is there: "none" (it replaces it),
            "add", "mul", "max" or "min". Default: "none".

    Returns:
        Tensor: The shape and type of `input_x`.

    Examples:
        >>> import mycel as ms
        >>> x, at, updates = ms.Tensor([[1.0, 2.0]]), ms.Tensor([[1]]), ms.Tensor([[5.0]])
        >>> ms.ops.tensor_scatter_elements(x, at, updates, 1, "add").tolist()
        [[1.0, 7.0]]
    """
    return write_elements("tensor_scatter_elements", input_x, indices, updates, axis, reduction, "drop")


def write_elements(
    name: str, input_x: Any, indices: Any, updates: Any, axis: int, reduction: str, bounds: str = "wrap"
) -> Tensor:
    """Compute `tensor_scatter_elements` for the operation `name`.

    `input_x`, `indices`, `updates`, `axis` and `reduction` are those of that function; `bounds`
    says which indices are valid, as in `prims.indexing.index`.
    """
    arguments.choice(name, "reduction", reduction, _REDUCTIONS)
    x, index = operand(name, input_x), cast_index(name, indices)
    where = axis_of(name, axis, x.ndim)
    new = term(name, updates, x.dtype)
    new = broadcast(new, index.shape) if new.ndim == 0 else new
    if new.ndim != index.ndim or builtins.any(
        isinstance(a, int) and isinstance(b, int) and a < b for a, b in zip(new.shape, index.shape)
    ):
        raise ShapeError(f"{name}: the updates {new._type} must have the shape of the indices {index._type}")
    for i, (a, b) in enumerate(zip(new.shape, index.shape)):
        new = new if a == b else take_slice(new, i, 0, b)
    mode = _REDUCTIONS[reduction]
    if x.dtype is D.bool_:
        return cast(write_elements(name, cast(x, D.int8), index, cast(new, D.int8), axis, reduction, bounds), D.bool_)
    if _fit(name, x, where, index):
        return run(I.put_along, x, index, new, axis=where, mode=mode, bounds=bounds)
    return run(I.scatter_nd, x, _position(index, where), new, mode=mode, bounds=bounds)


def scatter(input: Any, axis: int, index: Any, src: Any) -> Tensor:
    """Return a copy of `input` with each element of `src` written at its own position, but at the
    index in `index` along `axis`.

    Args:
        input (Tensor): The tensor.
        axis (int): The axis.
        index (Tensor): Where along `axis` each element goes.
        src (Tensor): The elements.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.scatter(ms.Tensor([[1.0, 2.0]]), 1, ms.Tensor([[1]]), ms.Tensor([[5.0]])).tolist(
        ...     )
        [[1.0, 5.0]]
    """
    return write_elements("scatter", input, index, src, axis, "none")


def _along(name: str, input: Any, axis: int, index: Any, values: Any, mode: str, bounds: str = "wrap") -> Tensor:
    """Return a copy of `input` with slices of `values` written along `axis` at the positions in the
    vector `index`.
    """
    x, where = operand(name, input), cast_index(name, index)
    at = axis_of(name, axis, x.ndim)
    where = reshaped(where, (where.size, 1))
    new = term(name, values, x.dtype)
    parts = move_axis(new, at, 0) if new.ndim else broadcast(new, (where.shape[0], *x.shape[:at], *x.shape[at + 1 :]))
    return move_axis(write(name, move_axis(x, at, 0), where, parts, mode, bounds), 0, at)


def index_add(x: Any, indices: Any, y: Any, axis: int, use_lock: bool = True, check_index_bound: bool = True) -> Tensor:
    """Return `x` with the slices of `y` along `axis` added at the positions in the vector
    `indices`; a Parameter is also changed in place.

    Args:
        x (Tensor): The tensor.
        indices (Tensor): The positions, a vector.
        y (Tensor): The slices that are added.
        axis (int): The axis.
        use_lock (bool): Has no effect: updates never race, and indices are always checked. Default:
            True.
        check_index_bound (bool): Has no effect: updates never race, and indices are always checked.
            Default: True.

    Returns:
        Tensor: The shape and type of `x`.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.index_add(ms.Tensor([[1.0, 2.0]]), ms.Tensor([1]), ms.Tensor([[5.0]]), 1).tolist(
        ...     )
        [[1.0, 7.0]]
    """
    result = _along("index_add", x, axis, indices, operand("index_add", y), "add", "front")
    if isinstance(x, Parameter):
        x._replace(result)
    return result


def index_fill(x: Any, axis: int, index: Any, value: Any) -> Tensor:
    """Return `x` with `value` at the positions `index` along `axis`.

    Args:
        x (Tensor): The tensor.
        axis (int): The axis.
        index (Tensor): The positions, a vector.
        value (Tensor | float): What is written.

    Returns:
        Tensor: The shape and type of `x`.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.index_fill(ms.Tensor([[1.0, 2.0]]), 1, ms.Tensor([1]), 9.0).tolist()
        [[1.0, 9.0]]
    """
    return _along("index_fill", x, axis, index, value, "set")


def _rows(name: str, indices: Any) -> Tensor:
    """Make a tensor of the numbers of rows: an int, a tuple of ints, or a tensor of them."""
    if isinstance(indices, Tensor):
        return indices
    found = indices if isinstance(indices, tuple) else (indices,)
    return as_tensor([arguments.integer(name, "each of indices", i) for i in found], D.int64)


def inplace_update(x: Any, v: Any, indices: Any) -> Tensor:
    """Return `x` with the rows (axis 0) at `indices` replaced by those of `v`.

    >>> import mycel as ms
    >>> ms.ops.inplace_update(ms.Tensor([1.0, 2.0]), ms.Tensor([5.0]), 1).tolist()
    [1.0, 5.0]
    """
    return _along("inplace_update", x, 0, _rows("inplace_update", indices), operand("inplace_update", v), "set")


def inplace_add(x: Any, v: Any, indices: Any) -> Tensor:
    """Return `x` with the rows of `v` added to the rows (axis 0) at `indices`.

    >>> import mycel as ms
    >>> ms.ops.inplace_add(ms.Tensor([1.0, 2.0]), ms.Tensor([5.0]), 1).tolist()
    [1.0, 7.0]
    """
    return _along("inplace_add", x, 0, _rows("inplace_add", indices), operand("inplace_add", v), "add", "front")


def inplace_sub(x: Any, v: Any, indices: Any) -> Tensor:
    """Return `x` with the rows of `v` subtracted from the rows (axis 0) at `indices`.

    >>> import mycel as ms
    >>> ms.ops.inplace_sub(ms.Tensor([1.0, 2.0]), ms.Tensor([5.0]), 1).tolist()
    [1.0, -3.0]
    """
    return _along("inplace_sub", x, 0, _rows("inplace_sub", indices), operand("inplace_sub", v), "sub", "front")


def select_scatter(input: Any, src: Any, axis: int, index: int) -> Tensor:
    """Return `input` with the slice at position `index` along `axis` replaced by `src`.

    Args:
        input (Tensor): The tensor.
        src (Tensor): What replaces it.
        axis (int): The axis.
        index (int): The position.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.select_scatter(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([8, 9]), 0, 1).tolist()
        [[1, 2], [8, 9]]
    """
    x = operand("select_scatter", input)
    where = axis_of("select_scatter", axis, x.ndim)
    part = operand("select_scatter", src, x.dtype)
    place: Any = size_of("select_scatter", index)
    size: Any = x.shape[where]
    if not -size <= place < size:
        raise out_of_range("select_scatter", place, where, size)
    place = place % size
    return slice_scatter(x, reshaped(part, (*x.shape[:where], 1, *x.shape[where + 1 :])), axis, place, place + 1)


def slice_scatter(
    input: Any, src: Any, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return `input` with the slice ``start:end:step`` along `axis` replaced by `src`.

    Args:
        input (Tensor): The tensor.
        src (Tensor): What replaces it.
        axis (int): The axis. Default: 0.
        start (int | None): The first element; None for 0. Default: None.
        end (int | None): The bound; None for the end. Default: None.
        step (int): The step. Default: 1.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.slice_scatter(ms.Tensor([1, 2, 3, 4]), ms.Tensor([8, 9]), start=0,
        ...     step=2).tolist()
        [8, 2, 9, 4]
    """
    x = operand("slice_scatter", input)
    where = axis_of("slice_scatter", axis, x.ndim)
    bounds = [None if bound is None else size_of("slice_scatter", bound) for bound in (start, end, step)]
    if bounds[2] == 0:
        raise ValueError("slice_scatter: step must not be 0")
    positions = builtins.range(x.shape[where])[slice(*bounds)]
    part = operand("slice_scatter", src, x.dtype)
    if part.shape != (*x.shape[:where], len(positions), *x.shape[where + 1 :]):
        raise ShapeError(
            f"slice_scatter: {part._type} does not fit {len(positions)} positions along axis {axis} of {x._type}"
        )
    places = positions.start + positions.step * numbers(len(positions))
    return _along("slice_scatter", x, where, Tensor(places, S.position_type(x.shape[where])), part, "set")
