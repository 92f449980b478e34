"""ONNX's operators of data movement: they move, repeat, pick and join elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import (
    Array,
    Operation,
    apply,
    as_type,
    broadcast,
    kind_of,
    moved,
    number,
    pad,
    reshaped,
    rule,
    same,
    scalar,
    select,
    shape_values,
    sliced,
    transposed,
)

__all__ = ["axis_of", "broadcast_shape", "padded"]


def axis_of(op: Operation, axis: int, rank: int) -> int:
    """Return an axis that may count from the end."""
    if not -rank <= axis < max(rank, 1):
        raise op.wrong(f"the axis {axis} is not one of {rank}")
    return axis % rank if rank else 0


def broadcast_shape(op: Operation, *shapes: Any) -> tuple[Any, ...]:
    """Return the shape to which shapes broadcast."""
    rank = max(len(s) for s in shapes)
    out: list[Any] = [1] * rank
    for shape in shapes:
        for i, d in enumerate(shape, rank - len(shape)):
            if isinstance(out[i], int) and out[i] == 1:
                out[i] = d
            elif not (isinstance(d, int) and d == 1) and d != out[i]:
                raise op.wrong(f"the shapes {shapes} do not broadcast")
    return tuple(out)


@rule("Reshape", known=(1,))
def _reshape(op: Operation, x: Tensor, shape: Array) -> Tensor:
    wanted: list[Any] = shape_values(shape)
    if not op.get("allowzero", 0):
        for i, d in enumerate(wanted):
            if isinstance(d, int) and d == 0:
                if i >= x.ndim:
                    raise op.wrong(f"the shape {wanted} copies axis {i} of an input of shape {tuple(x.shape)}")
                wanted[i] = x.shape[i]
    open_ = [i for i, d in enumerate(wanted) if isinstance(d, int) and d == -1]
    if len(open_) > 1 or any(isinstance(d, int) and d < -1 for d in wanted):
        raise op.wrong(f"the shape {wanted} has more than one -1, or smaller numbers")
    if open_:
        rest, whole = product(d for i, d in enumerate(wanted) if i != open_[0]), product(x.shape)
        if isinstance(rest, int) and rest == 0:
            raise op.wrong(f"-1 in the shape {wanted} beside 0 could be any size")
        wanted[open_[0]] = whole // rest
    return reshaped(x, wanted)


@rule("Flatten")
def _flatten(op: Operation, x: Tensor) -> Tensor:
    axis = op.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return reshaped(x, (product(x.shape[:axis]), product(x.shape[axis:])))


@rule("Transpose")
def _transpose(op: Operation, x: Tensor) -> Tensor:
    return transposed(x, op.get("perm") or range(x.ndim - 1, -1, -1))


@rule("Squeeze", known=(1,))
def _squeeze(op: Operation, x: Tensor, axes: Any = None) -> Tensor:
    if axes is None:
        kept = [d for d in x.shape if not (isinstance(d, int) and d == 1)]
    else:
        gone = {axis_of(op, a, x.ndim) for a in shape_values(axes)}
        if any(isinstance(x.shape[a], int) and x.shape[a] != 1 for a in gone):
            raise op.wrong(f"the axes {sorted(gone)} of the shape {tuple(x.shape)} are not all of size 1")
        kept = [d for i, d in enumerate(x.shape) if i not in gone]
    return reshaped(x, kept)


@rule("Unsqueeze", known=(1,))
def _unsqueeze(op: Operation, x: Tensor, axes: Array) -> Tensor:
    rank = x.ndim + axes.size
    new = {axis_of(op, a, rank) for a in shape_values(axes)}
    if len(new) != axes.size:
        raise op.wrong(f"the axes {axes.tolist()} are not different")
    sizes = iter(x.shape)
    return reshaped(x, [1 if i in new else next(sizes) for i in range(rank)])


@rule("Expand", known=(1,))
def _expand(op: Operation, x: Tensor, shape: Array) -> Tensor:
    return broadcast(x, broadcast_shape(op, tuple(x.shape), tuple(shape_values(shape))))


@rule("Tile", known=(1,))
def _tile(op: Operation, x: Tensor, repeats: Array) -> Tensor:
    counts = shape_values(repeats)
    if len(counts) != x.ndim:
        raise op.wrong(f"{len(counts)} repeats for {x.ndim} axes")
    apart = [n for d in x.shape for n in (1, d)]
    wide = broadcast(reshaped(x, apart), [n for c, d in zip(counts, x.shape) for n in (c, d)])
    return reshaped(wide, [c * d for c, d in zip(counts, x.shape)])


@rule("Concat")
def _concat(op: Operation, *parts: Tensor) -> Tensor:
    axis = axis_of(op, op.get("axis", 1), parts[0].ndim)
    return parts[0] if len(parts) == 1 else apply(S.CONCAT, *parts, axis=axis)


@rule("Split", known=(1,))
def _split(op: Operation, x: Tensor, sizes: Any = None) -> Any:
    axis = axis_of(op, op.get("axis", 0), x.ndim)
    whole = x.shape[axis]
    if sizes is not None:
        parts = shape_values(sizes)
    else:
        count = op.get("num_outputs", op.count)
        each = -(-whole // count)
        parts = [each] * (count - 1) + [whole - each * (count - 1)]
    if all(isinstance(p, int) for p in (*parts, whole)) and (sum(parts) != whole or min(parts, default=0) < 0):
        raise op.wrong(f"the parts {parts} do not make up the size {whole}")
    found, start = [], 0
    for size in parts:
        found.append(sliced(x, axis, start, start + size))
        start = start + size
    return tuple(found)


@rule("Slice", known=(1, 2, 3, 4))
def _slice(op: Operation, x: Tensor, starts: Array, ends: Array, axes: Any = None, steps: Any = None) -> Tensor:
    given = range(x.ndim) if axes is None else [axis_of(op, a, x.ndim) for a in shape_values(axes)]
    by = [1] * len(given) if steps is None else shape_values(steps)
    low, high, every, turned = [0] * x.ndim, list(x.shape), [1] * x.ndim, []
    for axis, start, stop, step in zip(given, shape_values(starts), shape_values(ends), by):
        if step == 0:
            raise op.wrong("a step of 0")
        size = x.shape[axis]
        if step > 0:
            low[axis], high[axis], every[axis] = _clamped(start, size, 0), _clamped(stop, size, 0), step
            high[axis] = high[axis] if isinstance(high[axis], Dim) else _later(low[axis], high[axis])
            continue
        # What goes backwards is cut out forwards, and then turned around.
        if isinstance(size, Dim):
            raise op.refused("a negative step along an axis of open size is not supported")
        first, last = _clamped(start, size, -1), _clamped(stop, size, -1)
        count = max(-(-(first - last) // -step), 0)
        low[axis] = first + (count - 1) * step if count else 0
        high[axis], every[axis] = (first + 1 if count else 0), -step
        turned.append(axis)
    found = apply(S.SLICE, x, starts=tuple(low), stops=tuple(high), steps=tuple(every))
    return apply(S.reverse, found, axes=tuple(sorted(turned))) if turned else found


def _later(low: Any, high: Any) -> Any:
    return high if isinstance(low, Dim) else max(low, high)


def _clamped(place: Any, size: Any, least: int) -> Any:
    """Return a place that may count from the end, between `least` and the end."""
    if isinstance(place, Dim) or isinstance(size, Dim):
        if isinstance(place, int):
            return size if place >= 1 << 31 else size + place if place < 0 else place
        return place
    place = place + size if place < 0 else place
    return min(max(place, least), size + min(least, 0))


@rule("Pad", known=(1, 3))
def _pad(op: Operation, x: Tensor, pads: Array, value: Any = None, axes: Any = None) -> Tensor:
    amounts = shape_values(pads)
    given = range(x.ndim) if axes is None else [axis_of(op, a, x.ndim) for a in shape_values(axes)]
    low, high = [0] * x.ndim, [0] * x.ndim
    for i, axis in enumerate(given):
        low[axis], high[axis] = amounts[i], amounts[len(amounts) // 2 + i]
    fill = scalar(0, x) if value is None else reshaped(value, ())
    return padded(op, x, low, high, op.get("mode", "constant"), fill)


def padded(op: Operation, x: Tensor, low: Any, high: Any, mode: str, fill: Tensor) -> Tensor:
    """Return `x`, for the node `op`, with more or, for negative amounts, fewer entries at its ends.

    `low` and `high` are amounts by axis; `mode` says what is added, `fill` the constant.
    """
    if mode == "constant":
        return pad(x, low, high, fill)
    cut = [min(p, 0) for p in low], [min(p, 0) for p in high]
    x = pad(x, cut[0], cut[1], scalar(0, x))
    for axis, (a, b) in enumerate(zip(low, high)):
        n = x.shape[axis]
        a, b = max(a, 0), max(b, 0)
        if not (a or b):
            continue
        places = np.arange(-a, n + b)
        if mode == "edge":
            places = places.clip(0, n - 1)
        elif mode == "wrap":
            places = places % n
        elif mode == "reflect":
            period = max(2 * (n - 1), 1)
            places = np.abs((places + (n - 1)) % period - (n - 1)) if n > 1 else places * 0
        else:
            raise op.refused(f"the mode {mode!r}; 'constant', 'edge', 'reflect' and 'wrap' are supported")
        x = apply(I.take, x, same(places, D.int64), axis=axis)
    return x


@rule("Gather")
def _gather(op: Operation, x: Tensor, places: Tensor) -> Tensor:
    return apply(I.take, x, places, axis=axis_of(op, op.get("axis", 0), x.ndim))


@rule("GatherElements")
def _gather_elements(op: Operation, x: Tensor, places: Tensor) -> Tensor:
    axis = axis_of(op, op.get("axis", 0), x.ndim)
    return apply(I.take_along, _cut_to(x, places, axis), places, axis=axis)


def _cut_to(x: Tensor, places: Tensor, axis: int) -> Tensor:
    """Cut what indices of a smaller shape do not reach, along all axes but one."""
    for i, (n, wanted) in enumerate(zip(x.shape, places.shape)):
        if i != axis and n is not wanted and n != wanted:
            x = sliced(x, i, 0, wanted)
    return x


@rule("GatherND")
def _gather_nd(op: Operation, x: Tensor, places: Tensor) -> Tensor:
    batch = op.get("batch_dims", 0)
    if not batch:
        return apply(I.gather_nd, x, places)
    lead = tuple(x.shape[:batch])
    own = [broadcast(_counting(places.shape, i), (*places.shape[:-1], 1)) for i in range(batch)]
    del lead
    return apply(I.gather_nd, x, apply(S.CONCAT, *own, places, axis=places.ndim - 1))


def _counting(shape: Any, axis: int) -> Tensor:
    form = tuple(n if i == axis else 1 for i, n in enumerate(shape))
    return apply(S.iota, shape=form, axis=axis, dtype=D.int64)


_MODES = {"none": "set", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@rule("ScatterND")
def _scatter_nd(op: Operation, x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    return apply(I.scatter_nd, x, places, updates, mode=_mode(op))


def _mode(op: Operation) -> str:
    given = op.get("reduction", "none")
    if given not in _MODES:
        raise op.refused(f"the reduction {given!r}; {sorted(_MODES)} are supported")
    return _MODES[given]


@rule("ScatterElements", "Scatter")
def _scatter_elements(op: Operation, x: Tensor, places: Tensor, updates: Tensor) -> Tensor:
    axis = axis_of(op, op.get("axis", 0), x.ndim)
    others = [
        broadcast(_counting(places.shape, i), places.shape) if i != axis else as_type(places, D.int64)
        for i in range(x.ndim)
    ]
    size = x.shape[axis]
    zero = same(0, D.int64)
    at = others[axis]
    end = same(size, D.int64) if isinstance(size, int) else apply(S.SIZE, dim=size, dtype=D.int64)
    others[axis] = select(apply(E.lt, at, zero), apply(E.add, at, end), at)
    joined = apply(S.CONCAT, *[reshaped(o, (*o.shape, 1)) for o in others], axis=x.ndim)
    return apply(I.scatter_nd, x, joined, updates, mode=_mode(op))


@rule("OneHot", known=(1,))
def _one_hot(op: Operation, places: Tensor, depth: Array, values: Tensor) -> Tensor:
    rank = places.ndim + 1
    axis = op.get("axis", -1) % rank
    count = int(number(depth))
    at = as_type(places, D.int64)
    at = select(apply(E.lt, at, same(0, D.int64)), apply(E.add, at, same(count, D.int64)), at)
    at = reshaped(at, (*places.shape[:axis], 1, *places.shape[axis:]))
    order = reshaped(same(np.arange(count), D.int64), [count if i == axis else 1 for i in range(rank)])
    return select(apply(E.eq, at, order), reshaped(sliced(values, 0, 1, 2), ()), reshaped(sliced(values, 0, 0, 1), ()))


@rule("DepthToSpace")
def _depth_to_space(op: Operation, x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    b = op.get("blocksize")
    if op.get("mode", "DCR") == "DCR":
        apart = transposed(reshaped(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    else:
        apart = transposed(reshaped(x, (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return reshaped(apart, (n, c // (b * b), h * b, w * b))


@rule("SpaceToDepth")
def _space_to_depth(op: Operation, x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    b = op.get("blocksize")
    apart = reshaped(x, (n, c, h // b, b, w // b, b))
    order = (0, 3, 5, 1, 2, 4) if op.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return reshaped(transposed(apart, order), (n, c * b * b, h // b, w // b))


@rule("Trilu", known=(1,))
def _trilu(op: Operation, x: Tensor, k: Any = None) -> Tensor:
    diagonal = 0 if k is None else int(number(k))
    rows, columns = x.shape[-2:]
    row = apply(S.iota, shape=(rows, columns), axis=0, dtype=D.int64)
    column = apply(S.iota, shape=(rows, columns), axis=1, dtype=D.int64)
    edge = apply(E.add, row, same(diagonal, D.int64))
    kept = apply(E.ge if op.get("upper", 1) else E.le, column, edge)
    return select(kept, x, scalar(0, x))


@rule("EyeLike")
def _eye_like(op: Operation, x: Tensor) -> Tensor:
    rows, columns = x.shape
    row = apply(S.iota, shape=(rows, columns), axis=0, dtype=D.int64)
    column = apply(S.iota, shape=(rows, columns), axis=1, dtype=D.int64)
    found = apply(E.eq, column, apply(E.add, row, same(op.get("k", 0), D.int64)))
    return as_type(found, kind_of(op.get("dtype"), op) if op.get("dtype") else x.dtype)


@rule("ReverseSequence")
def _reverse_sequence(op: Operation, x: Tensor, lengths: Tensor) -> Tensor:
    time, batch = op.get("time_axis", 0), op.get("batch_axis", 1)
    form = [1] * x.ndim
    form[batch] = x.shape[batch]
    ends = reshaped(as_type(lengths, D.int64), form)
    form = [1] * x.ndim
    form[time] = x.shape[time]
    order = reshaped(apply(S.iota, shape=(x.shape[time],), axis=0, dtype=D.int64), form)
    back = apply(E.sub, apply(E.sub, ends, same(1, D.int64)), order)
    places = select(apply(E.lt, order, ends), back, broadcast(order, back.shape))
    return apply(I.take_along, x, broadcast(places, x.shape), axis=time)


@rule("CenterCropPad", known=(1,))
def _center_crop_pad(op: Operation, x: Tensor, shape: Array) -> Tensor:
    axes = [axis_of(op, a, x.ndim) for a in op.get("axes") or range(x.ndim)]
    low, high = [0] * x.ndim, [0] * x.ndim
    for axis, wanted in zip(axes, shape_values(shape)):
        more = wanted - x.shape[axis]
        low[axis] = more // 2 if more >= 0 else -(-more // 2)
        high[axis] = more - low[axis]
    return pad(x, low, high, scalar(0, x))


@rule("Compress", known=(1,))
def _compress(op: Operation, x: Tensor, condition: Array) -> Tensor:
    axis = op.get("axis")
    if axis is None:
        x, axis = reshaped(x, (product(x.shape),)), 0
    axis = axis_of(op, axis, x.ndim)
    places = np.flatnonzero(condition)
    if places.size and places[-1] >= x.shape[axis]:
        raise op.wrong(f"the condition of {condition.size} entries for an axis of {x.shape[axis]}")
    return apply(I.take, x, same(places, D.int64), axis=axis)


@rule("NonZero", known=(0,))
def _non_zero(op: Operation, x: Array) -> Any:
    return np.array(np.nonzero(x), np.int64)


@rule("Unique", known=(0,))
def _unique(op: Operation, x: Array) -> Any:
    axis = op.get("axis")
    found, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not op.get("sorted", 1):
        order = np.argsort(first, kind="stable")
        back = np.argsort(order, kind="stable")
        found = np.take(found, order, axis=axis if axis is not None else 0)
        first, counts, inverse = first[order], counts[order], back[inverse]
    return (found, *[v.astype(np.int64) for v in (first, inverse, counts)])


@rule("TensorScatter")
def _tensor_scatter(op: Operation, past: Tensor, update: Tensor, starts: Any = None) -> Tensor:
    axis = axis_of(op, op.get("axis", -2), past.ndim)
    size, count, batch = past.shape[axis], update.shape[axis], past.shape[0]
    first = same(np.zeros(batch), D.int64) if starts is None else as_type(starts, D.int64)
    at = apply(E.add, reshaped(first, (batch, 1)), same(np.arange(count).reshape(1, count), D.int64))
    if op.get("mode", "linear") == "circular":
        at = apply(E.mod, at, same(size, D.int64))
    # With the axis in second place, rows of a batch are entries by (example, place).
    old, new = moved(past, axis, 1), moved(update, axis, 1)
    who = broadcast(same(np.arange(batch).reshape(batch, 1), D.int64), at.shape)
    joined = apply(S.CONCAT, *[reshaped(v, (*at.shape, 1)) for v in (who, at)], axis=2)
    return moved(apply(I.scatter_nd, old, joined, new, mode="set"), 1, axis)
