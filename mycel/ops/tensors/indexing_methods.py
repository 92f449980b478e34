"""The methods of tensors that read and write at positions."""

from __future__ import annotations

import builtins
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops import array, gather_scatter, masked_selection, math, splits
from mycel.ops._operands import axis_of, broadcast, cast_index, flat, operand, reshaped, run, size_of, term
from mycel.ops.tensors.signatures import bound

# Reading and writing at positions.

__all__ = ["methods", "written"]


def _gather(self: Tensor, *args: Any, **named: Any) -> Tensor:
    """Return the elements at positions.

    ``gather(input_indices, axis, batch_dims=0)`` is `mycel.ops.gather`; ``gather(dim, index)`` is
    `mycel.ops.gather_elements`.
    """
    if "dim" in named or "index" in named or (args and isinstance(args[0], builtins.int)):
        return gather_scatter.gather_elements(self, *bound("gather", ("dim", "index"), args, named))
    return gather_scatter.gather(self, *bound("gather", ("input_indices", "axis"), args, named, batch_dims=0))


def _scatter_add(self: Tensor, *args: Any, **named: Any) -> Tensor:
    """Return a new tensor with elements added at positions.

    ``scatter_add(indices, updates)`` is `mycel.ops.tensor_scatter_add`; ``scatter_add(dim, index,
    src)`` adds along one axis.
    """
    if "dim" in named or (args and isinstance(args[0], builtins.int)):
        dim, index, src = bound("scatter_add", ("dim", "index", "src"), args, named)
        return gather_scatter.write_elements("scatter_add", self, index, src, dim, "add")
    return gather_scatter.tensor_scatter_add(self, *bound("scatter_add", ("indices", "updates"), args, named))


def _index_add(self: Tensor, *args: Any, alpha: Any = 1, **named: Any) -> Tensor:
    """Return a new tensor with parts added at positions of an axis: ``index_add(dim, index, source,
    *, alpha=1)`` or ``index_add(indices, y, axis)``.

    See `mycel.ops.index_add`.
    """
    if "dim" in named or (args and isinstance(args[0], builtins.int)):
        dim, index, source = bound("index_add", ("dim", "index", "source"), args, named)
    else:
        index, source, dim = bound("index_add", ("indices", "y", "axis"), args, named)
    return _index_added(self, dim, index, source, alpha=alpha)


def _scatter_added(self: Tensor, dim: int, index: Any, src: Any) -> Tensor:
    """Return a new tensor with the elements of `src` added at the positions that `index` names
    along one axis.
    """
    return gather_scatter.write_elements("scatter_add", self, index, src, dim, "add")


def _index_added(self: Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """Return a new tensor with the parts of `source`, times `alpha`, added at the positions `index`
    of one axis.
    """
    return gather_scatter._along(
        "index_add", self, dim, index, operand("index_add", source) * term("index_add", alpha), "add"
    )


def _take(self: Tensor, indices: Any, axis: int | None = None, mode: str = "clip") -> Tensor:
    """Return the elements at positions of the flattened tensor, or of an axis.

    `mode` "clip" cuts positions off at the ends, "wrap" goes around, and "raise" raises
    IndexRangeError for one out of range.
    """
    arguments.one_of("take", "mode", mode, ("clip", "wrap", "raise"))
    x = flat(self) if axis is None else self
    where = 0 if axis is None else axis_of("take", axis, self.ndim)
    index = operand("take", indices)
    index = cast(cast_index("take", index) if index.dtype.is_integer else index, D.int64)
    size = x.shape[where]
    if mode == "clip":
        index = math.clamp(index, -size, size - 1)
    elif mode == "wrap":
        index = index % size
    return run(I.take, x, index, axis=where)


def _where(self: Tensor, condition: Any, y: Any) -> Tensor:
    """Return the tensor where the condition holds, else `y`."""
    return masked_selection.where(condition, self, y)


def _choose_from(self: Tensor, choices: Any, mode: str = "clip") -> Tensor:
    """Return at each place the element of that choice which the tensor's integer there names.

    `mode` is "clip", "wrap" or "raise".
    """
    members = (
        splits.unstack(choices) if isinstance(choices, Tensor) else arguments.sequence("choose", "choices", choices)
    )
    values = [as_tensor(c) for c in members]
    if not values:
        raise ValueError("choose: choices must hold at least one tensor")
    shape = broadcast_shapes(self.shape, *[v.shape for v in values])
    table = array.stack([broadcast(v, shape) for v in values])
    index = cast(broadcast(self, shape), D.int64)
    if mode == "clip":
        index = math.clamp(index, 0, len(values) - 1)
    elif mode == "wrap":
        index = index % len(values)
    elif mode != "raise":
        raise ValueError(f"choose: mode must be 'clip', 'wrap' or 'raise', not {mode!r}")
    return reshaped(run(I.take_along, table, reshaped(index, (1, *shape)), axis=0), shape)


def _index_put(self: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """Return a new tensor with values written at positions, or added there with `accumulate`.

    `indices` has a tensor of positions for each leading axis.
    """
    arguments.flag("index_put", "accumulate", accumulate)
    if not accumulate:
        result = run(E.identity, self)
        result[tuple(arguments.sequence("index_put", "indices", indices))] = values
        return result
    found = [cast_index("index_put", i) for i in arguments.sequence("index_put", "indices", indices)]
    shape = broadcast_shapes(*[i.shape for i in found])
    rows = array.stack([broadcast(i, shape) for i in found], -1)
    new = broadcast(operand("index_put", values, self.dtype), (*shape, *self.shape[len(found) :]))
    return gather_scatter.write("index_put", self, rows, new, "add", "wrap")


def _index(self: Tensor, indices: Any) -> Tensor:
    """Return the elements at positions.

    `indices` has a tensor of positions or a mask for each leading axis; None takes a whole axis.
    """
    return self[tuple(slice(None) if i is None else i for i in arguments.sequence("index", "indices", indices))]


def _itemset(self: Tensor, *args: Any) -> Tensor:
    """Return a new tensor with one element set: ``itemset(value)``, ``itemset(index, value)`` with
    a flat index, or ``itemset(i, j, value)``.
    """
    if not args:
        raise TypeError("itemset: takes the value, or an index and the value")
    *index, value = args
    index = list(index[0]) if len(index) == 1 and isinstance(index[0], (tuple, list)) else index
    if not index and self.size != 1:
        raise ValueError(f"itemset: the tensor has {self.size} elements; give an index")
    x = flat(self) if len(index) < 2 else self
    result = run(E.identity, x)
    result[tuple(index) or (0,)] = value
    return reshaped(result, self.shape)


def _select(self: Tensor, *args: Any, **named: Any) -> Tensor:
    """Return the part at one position of an axis, ``select(dim, index)``.

    ``select(condition, y)`` is `where`.
    """
    if "condition" in named or (args and isinstance(args[0], Tensor)):
        return _where(self, *bound("select", ("condition", "y"), args, named))
    dim, index = bound("select", ("dim", "index"), args, named)
    return self[(slice(None),) * axis_of("select", dim, self.ndim) + (size_of("select", index),)]


methods: dict[str, Any] = {
    "gather": _gather,
    "scatter_add": _scatter_add,
    "index": _index,
    "index_add": _index_add,
    "index_put": _index_put,
    "take": _take,
    "where": _where,
    "choose": _choose_from,
    "itemset": _itemset,
    "select": _select,
}
written: dict[str, Any] = {"scatter_add_": _scatter_added, "index_add_": _index_added, "index_put_": _index_put}
