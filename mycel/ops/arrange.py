"""Repeats, rolls, flips, slices, padding, diagonals and triangles.

Every function moves elements, or chooses them by position (by comparing `iota`), and so is
differentiable and takes symbolic sizes.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import views
from mycel._src.tensors.core.indexing import get as indexed
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops._operands import (
    all_axes,
    axis_of,
    broadcast,
    check_sizes,
    constant_like,
    flat,
    iota,
    need_room,
    operand,
    permuted,
    reshaped,
    run,
    select,
    shape_of,
    size_of,
    sizes_of,
    take_slice,
    term,
)
from mycel.ops.array import concat, moveaxis, ravel

__all__ = [
    "block_diag",
    "diag",
    "diag_embed",
    "diagonal",
    "flip",
    "fliplr",
    "flipud",
    "meshgrid",
    "narrow",
    "pad",
    "repeat_elements",
    "repeat_interleave",
    "reverse",
    "roll",
    "rot90",
    "slice",
    "strided_slice",
    "tensor_slice",
    "tile",
    "tril",
    "triu",
]


def tile(input: Any, dims: Any) -> Tensor:
    """Repeat the whole tensor `dims[i]` times along each axis i.

    Axes or counts that are missing in front count as 1.

    >>> import mycel as ms
    >>> ms.ops.tile(ms.Tensor([1, 2]), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x = operand("tile", input)
    counts = check_sizes("tile", shape_of("tile", dims, False))
    counts = (1,) * (x.ndim - len(counts)) + counts
    sizes = (1,) * (len(counts) - x.ndim) + x.shape
    spread = tuple(v for d in sizes for v in (1, d))
    full = tuple(v for n, d in zip(counts, sizes) for v in (n, d))
    return reshaped(broadcast(reshaped(x, spread), full), tuple(n * d for n, d in zip(counts, sizes)))


def repeat_interleave(input: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Repeat each element along `axis` `repeats` times in a row; without `axis` the tensor is
    flattened first.

    `repeats` is one number, or a sequence or tensor with one number for each element. The values of
    such a tensor are needed.

    >>> import mycel as ms
    >>> ms.ops.repeat_interleave(ms.Tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    x = operand("repeat_interleave", input)
    x, where = (flat(x), 0) if axis is None else (x, axis_of("repeat_interleave", axis, x.ndim))
    if isinstance(repeats, Tensor):
        repeats = repeats.tolist()
    if isinstance(repeats, (tuple, list)) and len(repeats) == 1:
        repeats = repeats[0]
    if not isinstance(repeats, (tuple, list)):
        count = size_of("repeat_interleave", repeats)
        if count < 0:
            raise arguments.wrong_value("repeat_interleave", "repeats", "at least 0", count)
        wide = (*x.shape[: where + 1], count, *x.shape[where + 1 :])
        x = broadcast(reshaped(x, (*x.shape[: where + 1], 1, *x.shape[where + 1 :])), wide)
        return reshaped(x, (*wide[:where], wide[where] * count, *wide[where + 2 :]))
    repeats = sizes_of("repeat_interleave", "repeats", repeats)
    if len(repeats) != x.shape[where] or builtins.any(r < 0 for r in repeats):
        raise ShapeError(
            f"repeat_interleave: {len(repeats)} repeats do not fit the {x.shape[where]} elements of axis {axis}, or "
            "are negative"
        )
    need_room("repeat_interleave", (*x.shape[:where], builtins.sum(repeats), *x.shape[where + 1 :]), x.dtype)
    need_room("repeat_interleave", (builtins.sum(repeats),), D.int64)
    positions = np.repeat(np.arange(len(repeats)), np.asarray(repeats, np.int64))
    return run(I.take, x, Tensor(positions, S.position_type(x.shape[where])), axis=where)


def repeat_elements(x: Any, rep: int, axis: int = 0) -> Tensor:
    """Repeat each element along an axis `rep` times in a row.

    >>> import mycel as ms
    >>> ms.ops.repeat_elements(ms.Tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    arguments.integer("repeat_elements", "rep", rep)
    return repeat_interleave(x, rep, axis)


def flip(input: Any, dims: Any) -> Tensor:
    """Reverse the order of the elements along the axes `dims`.

    >>> import mycel as ms
    >>> ms.ops.flip(ms.Tensor([[1, 2], [3, 4]]), (1,)).tolist()
    [[2, 1], [4, 3]]
    """
    x = operand("flip", input)
    if not arguments.sequence("flip", "dims", dims):
        return x
    return run(S.reverse, x, axes=all_axes("flip", dims, x.ndim)) if x.ndim else x


def reverse(x: Any, axis: Any) -> Tensor:
    """Reverse the order of the elements along the axes `axis`.

    >>> import mycel as ms
    >>> ms.ops.reverse(ms.Tensor([1, 2, 3]), [0]).tolist()
    [3, 2, 1]
    """
    return flip(x, axis)


def fliplr(input: Any) -> Tensor:
    """Reverse the order of the elements along axis 1.

    >>> import mycel as ms
    >>> ms.ops.fliplr(ms.Tensor([[1, 2]])).tolist()
    [[2, 1]]
    """
    return flip(input, (1,))


def flipud(input: Any) -> Tensor:
    """Reverse the order of the elements along axis 0.

    >>> import mycel as ms
    >>> ms.ops.flipud(ms.Tensor([[1], [2]])).tolist()
    [[2], [1]]
    """
    return flip(input, (0,))


def rot90(input: Any, k: int, dims: Any) -> Tensor:
    """Rotate by 90 degrees, `k` times, in the plane of the two axes `dims`, from the first towards
    the second.

    >>> import mycel as ms
    >>> ms.ops.rot90(ms.Tensor([[1, 2], [3, 4]]), 1, (0, 1)).tolist()
    [[2, 4], [1, 3]]
    """
    arguments.integer("rot90", "k", k, flags=True)
    x = operand("rot90", input)
    if len(arguments.sequence("rot90", "dims", dims)) != 2:
        raise arguments.wrong_value("rot90", "dims", "two axes", dims)
    a, b = (axis_of("rot90", d, x.ndim) for d in dims)
    if a == b:
        raise ShapeError(f"rot90: dims {tuple(dims)} must name two axes")
    order = list(builtins.range(x.ndim))
    order[a], order[b] = b, a
    turns = k % 4
    if turns == 2:
        return flip(x, (a, b))
    if turns == 1:
        return permuted(flip(x, (b,)), tuple(order))
    return flip(permuted(x, tuple(order)), (b,)) if turns else x


def roll(input: Any, shifts: Any, dims: Any = None) -> Tensor:
    """Shift the elements by `shifts` places along the axes `dims`; those that leave at the end come
    back at the start.

    Without `dims` the tensor is shifted as if it were flattened.

    >>> import mycel as ms
    >>> ms.ops.roll(ms.Tensor([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    """
    x = operand("roll", input)
    moves = [size_of("roll", s) for s in (shifts if isinstance(shifts, (tuple, list)) else [shifts])]
    if dims is None:
        if len(moves) != 1:
            raise ValueError(f"roll: {len(moves)} shifts need as many dims")
        return reshaped(_rolled(flat(x), 0, moves[0]), x.shape)
    axes = list(dims) if isinstance(dims, (tuple, list)) else [dims]
    moves = moves * len(axes) if len(moves) == 1 else moves
    if len(moves) != len(axes):
        raise ValueError(f"roll: {len(moves)} shifts do not fit {len(axes)} dims")
    for move, axis in zip(moves, axes):
        x = _rolled(x, axis_of("roll", axis, x.ndim), move)
    return x


def _rolled(x: Tensor, axis: int, shift: Any) -> Tensor:
    length = x.shape[axis]
    if isinstance(length, int) and length == 0:
        return x
    cut = (length - shift) % length
    if isinstance(cut, int) and cut == 0:
        return x
    return concat((take_slice(x, axis, cut, length), take_slice(x, axis, 0, cut)), axis)


def narrow(input: Any, axis: int, start: int, length: int) -> Tensor:
    """Return the `length` elements of `input` along `axis` that begin at `start`.

    Args:
        input (Tensor): The tensor.
        axis (int): The axis.
        start (int | Tensor): The first; a negative one counts from the end.
        length (int): How many.

    Returns:
        Tensor: The input with `length` elements along the axis.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.narrow(ms.Tensor([1, 2, 3, 4]), 0, 1, 2).tolist()
        [2, 3]
    """
    x = operand("narrow", input)
    where = axis_of("narrow", axis, x.ndim)
    first, count = size_of("narrow", start), size_of("narrow", length)
    first = first + x.shape[where] if first < 0 else first
    return views.take_slice(x, where, first, first + count)


def slice(input_x: Any, begin: Any, size: Any) -> Tensor:
    """Return the `size[i]` elements from position `begin[i]` along every axis i.

    A size of -1 takes everything up to the end.

    >>> import mycel as ms
    >>> ms.ops.slice(ms.Tensor([[1, 2, 3], [4, 5, 6]]), (0, 1), (2, -1)).tolist()
    [[2, 3], [5, 6]]
    """
    x = operand("slice", input_x)
    starts, sizes = shape_of("slice", begin, False), shape_of("slice", size, False)
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise ShapeError(f"slice: begin {starts} and size {sizes} need one entry for each of the {x.ndim} axes")
    stops = tuple(d if isinstance(n, int) and n == -1 else a + n for a, n, d in zip(starts, sizes, x.shape))
    return views.through(x, (S.SLICE, {"starts": starts, "stops": stops, "steps": (1,) * x.ndim}, ()))


def tensor_slice(input: Any, begin: Any, size: Any) -> Tensor:
    """Return the same as `slice`.

    >>> import mycel as ms
    >>> ms.ops.tensor_slice(ms.Tensor([1, 2, 3]), (1,), (2,)).tolist()
    [2, 3]
    """
    return slice(input, begin, size)


def strided_slice(
    input_x: Any,
    begin: Any,
    end: Any,
    strides: Any,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """Return ``input_x[begin[0]:end[0]:strides[0], ...]``.

    Bit i of a mask changes entry i.

    Args:
        input_x (Tensor): The tensor.
        begin (tuple[int, ...]): The first position of each axis.
        end (tuple[int, ...]): The bound of each axis.
        strides (tuple[int, ...] | None): The steps; None for 1.
        begin_mask (int): The axes, as bits, whose `begin` is left out. Default: 0.
        end_mask (int): The axes whose `end` is left out. Default: 0.
        ellipsis_mask (int): The entry that is "...". Default: 0.
        new_axis_mask (int): The entries that are a new axis. Default: 0.
        shrink_axis_mask (int): The entries that are an index, which removes the axis. Default: 0.

    Returns:
        Tensor: The part.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.strided_slice(ms.ops.arange(6), (1,), (6,), (2,)).tolist()
        [1, 3, 5]
    """
    arguments.integer("strided_slice", "begin_mask", begin_mask)
    arguments.integer("strided_slice", "end_mask", end_mask)
    arguments.integer("strided_slice", "ellipsis_mask", ellipsis_mask)
    arguments.integer("strided_slice", "new_axis_mask", new_axis_mask)
    arguments.integer("strided_slice", "shrink_axis_mask", shrink_axis_mask)
    first, last, steps = (shape_of("strided_slice", v, False) for v in (begin, end, strides))
    if not len(first) == len(last) == len(steps):
        raise ShapeError(f"strided_slice: begin {first}, end {last} and strides {steps} must be equally long")
    entries: list[Any] = []
    for i, (a, b, s) in enumerate(zip(first, last, steps)):
        bit = 1 << i
        if ellipsis_mask & bit:
            entries.append(Ellipsis)
        elif new_axis_mask & bit:
            entries.append(None)
        elif shrink_axis_mask & bit:
            entries.append(a)
        else:
            entries.append(builtins.slice(None if begin_mask & bit else a, None if end_mask & bit else b, s))
    return indexed(operand("strided_slice", input_x), tuple(entries))


_PAD_MODES = ("constant", "reflect", "replicate", "circular")


def pad(input_x: Any, padding: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Pad the last axes of `input_x`.

    Args:
        input_x (Tensor): The tensor.
        padding (tuple[int, ...] | Sequence[int] | Tensor): Two for each axis, from the last axis
            on.
        mode (str): "constant", "reflect" (mirrors without repeating the edge), "replicate" (repeats
            the edge) or "circular" (wraps around). Default: "constant".
        value (float | None): The constant; None for 0. Default: None.

    Returns:
        Tensor: The padded tensor.

    Raises:
        ValueError: For other modes and for amounts that do not fit.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.pad(ms.Tensor([1, 2, 3]), (1, 2), mode="reflect").tolist()
        [2, 1, 2, 3, 2, 1]
    """
    x = operand("pad", input_x)
    amounts = shape_of("pad", padding)
    arguments.one_of("pad", "mode", mode, _PAD_MODES)
    if len(amounts) % 2 or len(amounts) > 2 * x.ndim:
        raise ShapeError(f"pad: padding {amounts} must be pairs for at most the {x.ndim} axes of {x._type}")
    if mode != "constant" and value is not None:
        raise ValueError(f"pad: a value goes with mode 'constant', not {mode!r}")
    pairs = [(amounts[i], amounts[i + 1]) for i in builtins.range(0, len(amounts), 2)]
    axes = [x.ndim - 1 - i for i in builtins.range(len(pairs))]
    if mode == "constant":
        low, high = [0] * x.ndim, [0] * x.ndim
        for axis, (a, b) in zip(axes, pairs):
            low[axis], high[axis] = a, b
        if builtins.all(isinstance(v, int) and v == 0 for v in (*low, *high)):
            return x
        fill = term("pad", 0 if value is None else value, x.dtype)
        return run(S.PAD, x, fill, low=tuple(low), high=tuple(high), interior=(0,) * x.ndim)
    for axis, (a, b) in zip(axes, pairs):
        x = padded("pad", x, axis, a, b, mode)
    return x


def padded(name: str, x: Tensor, axis: int, low: int, high: int, mode: str) -> Tensor:
    """Pad one axis of `x` with its own elements, `low` of them in front and `high` behind.

    `mode` is a mode of `pad` other than "constant", or "symmetric", which mirrors and repeats the
    edge. `name` is the operation that errors name. Negative amounts remove elements.
    """
    if low < 0 or high < 0:
        x = take_slice(x, axis, builtins.max(-low, 0), x.shape[axis] - builtins.max(-high, 0))
        low, high = builtins.max(low, 0), builtins.max(high, 0)
    if low == 0 and high == 0:
        return x
    length: Any = x.shape[axis]
    limit = {"reflect": length - 1, "replicate": None}.get(mode, length)
    if limit is not None and builtins.max(low, high) > limit:
        raise ShapeError(
            f"{name}: {builtins.max(low, high)} elements by mode {mode!r} do not come out of axis {axis} of size "
            f"{length}"
        )
    if mode == "replicate":
        before, after = take_slice(x, axis, 0, 1), take_slice(x, axis, length - 1, length)
        first, last = ((*x.shape[:axis], n, *x.shape[axis + 1 :]) for n in (low, high))
        parts = [broadcast(before, first), x, broadcast(after, last)]
    elif mode == "circular":
        parts = [take_slice(x, axis, length - low, length), x, take_slice(x, axis, 0, high)]
    else:
        edge = int(mode == "reflect")
        before = take_slice(x, axis, edge, low + edge)
        after = take_slice(x, axis, length - high - edge, length - edge)
        parts = [flip(before, (axis,)), x, flip(after, (axis,))]
    kept = [p for p in parts if not (isinstance(p.shape[axis], int) and p.shape[axis] == 0)]
    return concat(kept, axis)


def _triangle(name: str, input: Any, diagonal: int, upper: bool) -> Tensor:
    x = operand(name, input)
    if x.ndim < 2:
        raise ShapeError(f"{name}: takes tensors of at least 2 dimensions, not {x._type}")
    rows, columns = (iota(x.shape[-2:], i, D.int32) for i in (0, 1))
    if size_of(name, diagonal):
        # A diagonal beyond the corners is as good as one at them.
        largest = np.iinfo(np.int32).max // 2
        rows = rows + (
            builtins.max(builtins.min(diagonal, largest), -largest) if isinstance(diagonal, int) else diagonal
        )
    return select(run(E.ge if upper else E.le, columns, rows), x, constant_like(0, x))


def tril(input: Any, diagonal: int = 0) -> Tensor:
    """Keep the elements of matrices on and below a diagonal and set the others to 0.

    `diagonal` 0 is the main diagonal; positive ones lie above it.

    >>> import mycel as ms
    >>> ms.ops.tril(ms.ops.ones((2, 2), ms.int32)).tolist()
    [[1, 0], [1, 1]]
    """
    return _triangle("tril", input, diagonal, False)


def triu(input: Any, diagonal: int = 0) -> Tensor:
    """Keep the elements of matrices on and above a diagonal and set the others to 0.

    `diagonal` 0 is the main diagonal; positive ones lie above it.

    >>> import mycel as ms
    >>> ms.ops.triu(ms.ops.ones((2, 2), ms.int32)).tolist()
    [[1, 1], [0, 1]]
    """
    return _triangle("triu", input, diagonal, True)


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices with the last axis of `input` on a diagonal and zeros elsewhere.

    Args:
        input (Tensor): The tensor.
        offset (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        dim1 (int): The axis of the rows of the matrices. Default: -2.
        dim2 (int): The axis of their columns. Default: -1.

    Returns:
        Tensor: The matrices; one axis more than the input.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.diag_embed(ms.Tensor([1, 2])).tolist()
        [[1, 0], [0, 2]]
    """
    x = operand("diag_embed", input)
    if x.ndim < 1:
        raise ShapeError("diag_embed: takes tensors of at least 1 dimension")
    offset = size_of("diag_embed", offset)
    count = x.shape[-1]
    above, below = builtins.max(offset, 0), builtins.max(-offset, 0)
    side = count + above + below
    # Columns hold the values, moved right by the offset; rows choose them.
    line = pad(x, (above, below))
    square = (side, side)
    here = run(E.eq, iota(square, 1, D.int32), iota(square, 0, D.int32) + offset)
    result = select(here, reshaped(line, (*x.shape[:-1], 1, side)), constant_like(0, x))
    a, b = axis_of("diag_embed", dim1, result.ndim), axis_of("diag_embed", dim2, result.ndim)
    if a == b:
        raise ShapeError(f"diag_embed: dim1 {dim1} and dim2 {dim2} are the same axis")
    return moveaxis(result, (-2, -1), (a, b))


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a diagonal of the matrices in `input`, as a new last axis.

    Args:
        input (Tensor): The tensor.
        offset (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        dim1 (int): The axis of the rows of the matrices. Default: 0.
        dim2 (int): The axis of their columns. Default: 1.

    Returns:
        Tensor: The diagonals; one axis less than the input.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.diagonal(ms.Tensor([[1, 2], [3, 4]])).tolist()
        [1, 4]
    """
    x = operand("diagonal", input)
    a, b = axis_of("diagonal", dim1, x.ndim), axis_of("diagonal", dim2, x.ndim)
    if a == b:
        raise ShapeError(f"diagonal: dim1 {dim1} and dim2 {dim2} are the same axis")
    offset = size_of("diagonal", offset)
    x = moveaxis(x, (a, b), (-2, -1))
    rows, columns = x.shape[-2] + builtins.min(offset, 0), x.shape[-1] - builtins.max(offset, 0)
    count = builtins.max(builtins.min(rows, columns), 0)
    first = (builtins.max(-offset, 0), builtins.max(offset, 0))
    if count == 0:
        x = views.take_slice(views.take_slice(x, x.ndim - 1, 0, 0), x.ndim - 2, 0, 0)
        return views.reshaped(x, (*x.shape[:-2], 0))
    for axis, start in zip((x.ndim - 2, x.ndim - 1), first):
        x = views.take_slice(x, axis, start, start + count)
    if isinstance(count, int):
        return views.through(x, (views.DIAGONAL, {}, ()))
    here = run(E.eq, iota((count, count), 0, D.int32), iota((count, count), 1, D.int32))
    picked = select(here, x, constant_like(0, x))
    if x.dtype is D.bool_:
        return run(R.reduce_any, picked, axes=(x.ndim - 2,), keepdims=False)
    return run(R.reduce_sum, picked, axes=(x.ndim - 2,), keepdims=False)


def diag(input: Any) -> Tensor:
    """Return a tensor of twice as many dimensions with the elements of `input` on its diagonal and
    zeros elsewhere; for a vector, a matrix.

    >>> import mycel as ms
    >>> ms.ops.diag(ms.Tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    x = operand("diag", input)
    return reshaped(diag_embed(flat(x)), (*x.shape, *x.shape))


def block_diag(*inputs: Any) -> Tensor:
    """Return one matrix with the given matrices along its diagonal and zeros elsewhere; vectors
    count as rows.

    >>> import mycel as ms
    >>> ms.ops.block_diag(ms.Tensor([[1]]), ms.Tensor([[2, 3]])).tolist()
    [[1, 0, 0], [0, 2, 3]]
    """
    blocks = [operand("block_diag", v) for v in inputs]
    for v in blocks:
        if v.ndim > 2:
            raise ShapeError(f"block_diag: takes tensors of at most 2 dimensions, not {v._type}")
    blocks = [reshaped(v, (1,) * (2 - v.ndim) + v.shape) for v in blocks]
    total, start, rows = builtins.sum(v.shape[1] for v in blocks), 0, []
    for v in blocks:
        rows.append(pad(v, (start, total - start - v.shape[1])))
        start += v.shape[1]
    return concat(rows, 0)


def meshgrid(*inputs: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Return vectors spread over a grid: the i-th result varies along axis i.

    `indexing` "xy" exchanges the first two axes.

    >>> import mycel as ms
    >>> [g.tolist() for g in ms.ops.meshgrid(ms.Tensor([1, 2]), ms.Tensor([3, 4]))]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    arguments.choice("meshgrid", "indexing", indexing, ("xy", "ij"))
    if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)):
        inputs = tuple(inputs[0])
    lines = [ravel(operand("meshgrid", v)) for v in inputs]
    order = list(builtins.range(len(lines)))
    if indexing == "xy" and len(lines) > 1:
        order[:2] = [1, 0]
    sizes = tuple(lines[i].size for i in order)
    grids = []
    for i, v in enumerate(lines):
        own = tuple(v.size if order[k] == i else 1 for k in builtins.range(len(lines)))
        grids.append(views.broadcast(views.reshaped(v, own), sizes))
    return tuple(grids)
