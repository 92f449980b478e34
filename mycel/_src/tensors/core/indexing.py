"""Indexing: `tensor[index]` and `tensor[index] = value` with NumPy's rules.

An index is read as entries, one for each axis. Ints, slices, None and "..." are *basic*: they
become one strided slice with positive steps, a reversal of the axes that run backwards, and a
reshape. Tensors, arrays, sequences of ints and masks are *advanced*: a mask of k axes stands for
its k vectors of positions. All advanced entries are broadcast together, and the axes of their
common shape replace theirs, or come first where basic entries lie between them. Their values need
not be known. A scalar integer tensor is a position that may be unknown too: it becomes the start of
a block.

A write into a large tensor whose memory nothing else shares costs no more than the values written.
Other writes make a new value of the tensor: they replace a block (basic indices), choose between a
block spread out by its strides and the old values (steps other than 1), or scatter to the positions
along all axes (advanced indices). Known positions out of range raise IndexError; unknown ones read
0 and write nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.compiler.prims.indexing import dynamic_slicing
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.engines import buffers
from mycel._src.foundation import dtype as D
from mycel._src.foundation.bounded_caches import MANY, SOME, Remembered
from mycel._src.foundation.errors import ShapeError
from mycel._src.foundation.python_runtime.reference_counts import ONE_OWNER
from mycel._src.foundation.python_runtime.tracebacks import at_border
from mycel._src.tensors.core import eager, view_cache, views
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.index_entries import Axes, Mask, entry_of, expanded, inside, limited
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast, scalar

__all__ = ["get", "put"]

apply = eager.apply


def get(tensor: Tensor, index: Any) -> Tensor:
    """Return `tensor[index]`, a new tensor. Raises IndexError for an index that does not fit.

    >>> import mycel as ms
    >>> ms.Tensor([[1, 2], [3, 4]])[:, -1].tolist()
    [2, 4]
    """
    if type(index) is list:
        index = _as_entries(index)
    if isinstance(index, Tensor) and index.ndim == 0 and index.dtype.is_integer and tensor.ndim:
        block = _block_step(tensor, [index] + [slice(None)] * (tensor.ndim - 1))
        return views.through(tensor, block, (S.RESHAPE, {"shape": tensor.shape[1:]}, ()))
    if isinstance(index, tuple) and any(isinstance(e, Tensor) and e.ndim == 0 and e.dtype.is_integer for e in index):
        found = _scalar_entries(tensor, index)
        if found is not None:
            return found
    if isinstance(index, Tensor) and index.ndim and index.dtype.is_integer:
        return _taken(tensor, index)
    axes = Axes(tensor.shape, index)
    return _advanced(tensor, axes) if axes.advanced() else _basic(tensor, axes.steps)


def _as_entries(index: list[Any]) -> Any:
    """Return a list as an index: the tuple of its members, unless they are ints and booleans."""
    several = any(isinstance(e, (list, tuple, slice, Tensor, type(None), type(...))) for e in index)
    return tuple(index) if several else index


@fused
def _taken(tensor: Tensor, index: Tensor) -> Tensor:
    return _advanced(tensor, Axes(tensor.shape, index))


def _scalar_entries(tensor: Tensor, index: tuple[Any, ...]) -> Tensor | None:
    """Return the part that an index of scalar tensors and basic entries selects; None for others.

    The scalar tensors are the starts of a block. Beside other advanced entries they are advanced
    entries themselves.
    """
    entries = expanded(index, tensor.ndim)
    if any(isinstance(e, (Mask, np.ndarray)) or (isinstance(e, Tensor) and e.ndim) for e in entries):
        return None
    block = views.through(tensor, _block_step(tensor, [e for e in entries if e is not None]))
    return _basic(block, Axes(block.shape, tuple(0 if isinstance(e, Tensor) else e for e in entries)).steps)


def _starts(x: Tensor, entries: Sequence[Any]) -> tuple[list[Tensor], list[DimLike]]:
    """Return the start of the block at scalar tensors along each axis, and its sizes.

    Negative positions are counted from the end of the axis.
    """
    starts: list[Tensor] = []
    sizes: list[DimLike] = []
    for axis, (entry, size) in enumerate(zip(entries, x.shape)):
        if isinstance(entry, Tensor):
            known = isinstance(size, int) and entry._buf is not None and entry._node is None
            entry = entry if entry.dtype in (D.int32, D.int64) else cast(limited(entry), D.int64)
            entry = entry if known else apply(I.checked, entry, axis=axis, size=size)
            starts.append(apply(E.SELECT, entry < 0, entry + as_tensor(size, entry.dtype), entry))
            sizes.append(1)
        else:
            starts.append(scalar(0, D.int32))
            sizes.append(size)
    return starts, sizes


def _check_known(x: Tensor, entries: Sequence[Any]) -> None:
    for axis, (entry, size) in enumerate(zip(entries, x.shape)):
        if not isinstance(entry, Tensor) or not isinstance(size, int):
            continue
        entry._settle()
        if entry._buf is not None and entry._node is None:
            inside(int(entry), size, axis)


def _block_step(x: Tensor, entries: Sequence[Any]) -> views.Step:
    """Return the step to the block at scalar tensors: of size 1 along their axes, which are kept,
    and whole along the others.
    """
    _check_known(x, entries)
    starts, sizes = _starts(x, entries)
    return dynamic_slicing.dynamic_slice, {"sizes": tuple(sizes)}, tuple(starts)


def _reshaped(x: Tensor, shape: tuple[DimLike, ...]) -> Tensor:
    return x if x.shape == shape else apply(S.RESHAPE, x, shape=shape)


def _slice_steps(
    shape: tuple[DimLike, ...], steps: Sequence[tuple[Any, ...]]
) -> tuple[list[views.Step], list[DimLike]]:
    """Return the steps to the elements that basic entries select, and the sizes of the result.

    The axes of ints are kept with size 1, and those of advanced entries are whole.
    """
    starts: list[DimLike] = []
    stops: list[DimLike] = []
    strides: list[int] = []
    backwards: list[int] = []
    own = [s for s in steps if s[0] != "new"]
    for axis, step in enumerate(own):
        if step[0] == "at":
            a, b, s = step[1], step[1] + 1, 1
        elif step[0] == "slice":
            a, b, s = step[1:]
            if s < 0:
                backwards.append(axis)
        else:
            a, b, s = 0, shape[axis], 1
        starts.append(a)
        stops.append(b)
        strides.append(abs(s))
    found: list[views.Step] = []
    whole = all(isinstance(a, int) and a == 0 for a in starts) and tuple(stops) == shape and set(strides) <= {1}
    if not whole:
        found.append((S.SLICE, {"starts": tuple(starts), "stops": tuple(stops), "steps": tuple(strides)}, ()))
    if backwards:
        found.append((S.reverse, {"axes": tuple(backwards)}, ()))
    return found, [(b - a + (s - 1)) // s for a, b, s in zip(starts, stops, strides)]


def _sliced(x: Tensor, steps: Sequence[tuple[Any, ...]]) -> Tensor:
    """Return the elements that basic entries select.

    The axes of ints are kept with size 1, and those of advanced entries are whole.
    """
    return views.derived(x, _slice_steps(x.shape, steps)[0])


def _basic(x: Tensor, steps: Sequence[tuple[Any, ...]]) -> Tensor:
    found, counts = _slice_steps(x.shape, steps)
    sizes = iter(counts)
    shape: list[DimLike] = []
    for step in steps:
        if step[0] == "new":
            shape.append(1)
            continue
        size = next(sizes)
        if step[0] == "slice":
            shape.append(size)
    if shape != counts:
        found.append((S.RESHAPE, {"shape": tuple(shape)}, ()))
    return views.through(x, *(found or [(E.identity, {}, ())]))


def _position(value: DimLike) -> Tensor:
    """Return a known position as a tensor."""
    return as_tensor(value, D.int64) if isinstance(value, Dim) else scalar(value, D.int64)


def _as_advanced(steps: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the steps with ints as advanced entries, which they are beside other ones."""
    return [("advanced", _position(s[1])) if s[0] == "at" else s for s in steps]


def _advanced(x: Tensor, axes: Axes) -> Tensor:
    steps = _as_advanced(axes.steps)
    x = _sliced(x, steps)
    own = [s for s in steps if s[0] != "new"]
    indexed = [i for i, s in enumerate(own) if s[0] == "advanced"]
    indices, shape = _together([own[i][1] for i in indexed])
    kept = [i for i in range(x.ndim) if i not in indexed]
    if len(indexed) == 1:
        result = apply(I.take, x, indices[0], axis=indexed[0])
        result = _moved(result, indexed[0], len(shape), 0)
    else:
        order = (*indexed, *kept)
        x = x if order == tuple(range(x.ndim)) else apply(S.TRANSPOSE, x, permutation=order)
        result = apply(I.gather_nd, x, _stacked(indices, shape))
    return _placed(
        result,
        steps,
        shape,
        [x.shape[len(indexed) + i] for i in range(len(kept))] if len(indexed) > 1 else [x.shape[i] for i in kept],
    )


def _together(indices: Sequence[Tensor]) -> tuple[list[Tensor], tuple[DimLike, ...]]:
    """Return index tensors converted to one type and broadcast to one shape, and that shape."""
    try:
        shape = broadcast_shapes(*[t.shape for t in indices])
    except ShapeError:
        raise IndexError(
            f"index arrays of shapes {', '.join(str(t.shape) for t in indices)} do not broadcast together"
        ) from None
    kind = D.int64 if any(t.dtype is D.int64 for t in indices) else D.int32
    result = [cast(t, kind) for t in indices]
    return [t if t.shape == shape else apply(S.BROADCAST_TO, t, shape=shape) for t in result], shape


def _stacked(indices: Sequence[Tensor], shape: tuple[DimLike, ...]) -> Tensor:
    parts = [_reshaped(t, (*shape, 1)) for t in indices]
    return parts[0] if len(parts) == 1 else apply(S.CONCAT, *parts, axis=len(shape))


def _moved(x: Tensor, at: int, count: int, to: int) -> Tensor:
    """Move `count` axes of `x` that begin at axis `at`, so that they begin at `to`."""
    block = list(range(at, at + count))
    rest = [i for i in range(x.ndim) if i not in block]
    order = (*rest[:to], *block, *rest[to:])
    return x if order == tuple(range(x.ndim)) else apply(S.TRANSPOSE, x, permutation=order)


def _front(steps: Sequence[tuple[Any, ...]]) -> int:
    """Return the axis of the result at which the axes of the advanced entries begin.

    They follow the basic axes before them, or come first where basic entries separate them.
    """
    marks = [s[0] == "advanced" for s in steps]
    first, last = marks.index(True), len(marks) - 1 - marks[::-1].index(True)
    return first if all(marks[first : last + 1]) else 0


def _placed(x: Tensor, steps: Sequence[tuple[Any, ...]], shape: tuple[DimLike, ...], kept: Sequence[DimLike]) -> Tensor:
    """Return a result with its new axes, and with the axes of the advanced entries in their place.

    `x` has the advanced axes, of the common shape `shape`, in front of the basic ones, whose sizes
    are `kept`.
    """
    sizes = iter(kept)
    basic = [1 if s[0] == "new" else next(sizes) for s in steps if s[0] != "advanced"]
    x = _reshaped(x, (*shape, *basic))
    return _moved(x, 0, len(shape), _front(steps))


def put(tensor: Tensor, index: Any, value: Any) -> None:
    """Write `value`, converted and broadcast, to the places that `index` selects in `tensor`.

    Raises IndexError for an index that does not fit, and ValueError for a value that does not.

    >>> import mycel as ms
    >>> x = ms.Tensor([1, 2, 3])
    >>> x[1:] = 0
    >>> x.tolist()
    [1, 0, 0]
    """
    try:
        block = None
        if type(index) is list:
            index = _as_entries(index)
        if not eager.active or eager.local.staging is None:
            if type(value) is int or type(value) is float:
                value = scalar(value, D.int64 if type(value) is int else D.float32)
            key = view_cache.basic_key(index)
            if key is not None:
                known = tensor._type, key
                block = _recent.get(known)
                if block is None:
                    block = _blocks.recall(known, partial(_block, tensor, index))
        new = cast(as_tensor(value), tensor.dtype)
        if not eager.active or eager.local.context is None:
            kind = tensor._type
            if kind.is_static and kind.nbytes >= _LARGE and _written_in_place(tensor, index, new):
                return
        tensor._replace(_written(tensor, index, new) if not block else block[1](tensor, new, *block[0]))
    except Exception as error:
        at_border(error)
        raise


_LARGE = 1 << 16


def _written_in_place(tensor: Tensor, index: Any, value: Tensor) -> bool:
    """Write into the memory of a tensor if nothing else shares it, and return whether that was
    done.

    It is not done for an index that NumPy would read differently, or for one that does not fit. The
    caller then makes a new value of the whole tensor, which raises the errors.
    """
    buffer = tensor._buf
    if buffer is None or tensor._view is not None or sys.getrefcount(buffer) > ONE_OWNER or not buffers.is_own(buffer):
        return False
    if buffers.is_shared(buffer):
        return False
    entries = index if type(index) is tuple else (index,)
    plain = tuple([_as_numpy(e, len(entries) == 1) for e in entries])
    if any(e is NotImplemented for e in plain):
        return False
    array, given = buffers.to_array(buffer, tensor._type), value.asnumpy()
    if value.dtype in D.STORED or value.dtype is D.bfloat16:
        array, given = (a.view(f"u{array.dtype.itemsize}") for a in (array, given))
    try:
        array[plain] = given
    except (IndexError, ValueError):
        return False
    if tensor._views is not None:
        views.outdate(tensor)
    return True


def _as_numpy(entry: Any, alone: bool) -> Any:
    """Return an entry of an index in NumPy's form; NotImplemented for one that NumPy would refuse
    or read differently.

    `alone` says whether the index has no other entry.
    """
    kind = type(entry)
    if kind is int or entry is None or entry is Ellipsis:
        return entry
    if kind is slice:
        bounds = (entry.start, entry.stop, entry.step)
        return entry if all(b is None or type(b) is int for b in bounds) else NotImplemented
    if isinstance(entry, Tensor):
        if entry.ndim and entry.dtype in (D.int32, D.int64, D.bool_):
            return entry.asnumpy()
        return int(entry) if alone and entry.dtype in (D.int32, D.int64) else NotImplemented
    return entry if alone and kind is list and all(type(e) is int for e in entry) else NotImplemented


_blocks = Remembered[Any, Any]("indices written to", MANY)
_recent = _blocks.recent
_writers = Remembered[Any, Any]("writers of blocks", SOME)


def _block(x: Tensor, index: Any) -> Any:
    """Return the starts of the block that basic entries select, and the function that writes it.

    Returns False where the selection is not a block with steps of 1.
    """
    shape, whole, backwards, firsts, strides = _selected(Axes(x.shape, index).steps)
    if backwards or set(strides) - {1} or 0 in whole or tuple(whole) == x.shape:
        return False
    sizes = tuple(shape), tuple(whole)
    writer = _writers.recall(sizes, partial(_writer, *sizes))
    return [scalar(a, D.int64) for a in firsts], writer


def _writer(shape: tuple[Any, ...], whole: tuple[Any, ...]) -> Any:
    """Return a function that replaces a block of sizes `whole` in a tensor by a value that is
    broadcast to `shape`.
    """

    @fused
    def with_block(x: Tensor, value: Tensor, *starts: Tensor) -> Tensor:
        return apply(dynamic_slicing.dynamic_update_slice, x, _reshaped(_fitted(value, shape), whole), *starts)

    return with_block


def _written(x: Tensor, index: Any, value: Tensor) -> Tensor:
    mask = _whole_mask(x, index)
    if mask is not None and value.ndim == 0:
        extra = (1,) * (x.ndim - mask.ndim)
        return apply(E.SELECT, _reshaped(mask, (*mask.shape, *extra)), value, x)
    entries = expanded(index, x.ndim)
    if any(isinstance(e, Tensor) and e.ndim == 0 for e in entries) and not any(
        isinstance(e, (Mask, np.ndarray)) or (isinstance(e, Tensor) and e.ndim) for e in entries
    ):
        return _written_at(x, entries, value)
    axes = Axes(x.shape, index)
    return _scattered(x, axes, value) if axes.advanced() else _written_slice(x, axes.steps, value)


def _whole_mask(x: Tensor, index: Any) -> Tensor | None:
    """Return the mask that is the whole index, if it has the shape of the leading axes.

    Writing at such a mask does not need its value.
    """
    if isinstance(index, tuple) and len(index) == 1:
        index = index[0]
    entry = None if isinstance(index, tuple) else entry_of(index)
    if not isinstance(entry, Mask) or tuple(entry.value.shape) != x.shape[: entry.rank]:
        return None
    return entry.value if isinstance(entry.value, Tensor) else Tensor(entry.value)


def _fitted(value: Tensor, shape: tuple[DimLike, ...]) -> Tensor:
    """Return `value` broadcast to the shape of the selection, without superfluous leading axes of
    size 1.
    """
    while value.ndim > len(shape) and isinstance(value.shape[0], int) and value.shape[0] == 1:
        value = _reshaped(value, value.shape[1:])
    if value.shape == shape:
        return value
    try:
        if broadcast_shapes(value.shape, shape) != shape:
            raise ShapeError("")
        return apply(S.BROADCAST_TO, value, shape=shape)
    except ShapeError:
        raise ValueError(f"a value of shape {value.shape} does not fit the selected places, of shape {shape}") from None


def _selected(steps: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the selection of basic entries: the shape of a value for it, its sizes along all axes,
    the axes that run backwards, and the start and stride of each axis.
    """
    shape: list[DimLike] = []
    whole: list[DimLike] = []
    backwards: list[int] = []
    own = [s for s in steps if s[0] != "new"]
    for axis, step in enumerate(own):
        if step[0] == "at":
            whole.append(1)
        else:
            a, b, s = step[1:]
            whole.append((b - a + abs(s) - 1) // abs(s))
            if s < 0:
                backwards.append(axis)
    sizes = iter(whole)
    for step in steps:
        size = 1 if step[0] == "new" else next(sizes)
        if step[0] != "at":
            shape.append(size)
    firsts: list[DimLike] = [s[1] for s in own]
    return shape, whole, backwards, firsts, [abs(s[3]) if s[0] == "slice" else 1 for s in own]


def _written_slice(x: Tensor, steps: Sequence[tuple[Any, ...]], value: Tensor) -> Tensor:
    """Return `x` with `value` written to the places that basic entries select."""
    shape, whole, backwards, firsts, strides = _selected(steps)
    value = _reshaped(_fitted(value, tuple(shape)), tuple(whole))
    if backwards:
        value = apply(S.reverse, value, axes=tuple(backwards))
    return views.put_block(x, firsts, strides, value)


def _written_at(x: Tensor, entries: Sequence[Any], value: Tensor) -> Tensor:
    """Return `x` with `value` written to the places that scalar tensors and basic entries select.

    The block at the scalar tensors is read, written and put back.
    """
    own = [e for e in entries if e is not None]
    block = views.derived(x, (_block_step(x, own),))
    steps = Axes(block.shape, tuple(0 if isinstance(e, Tensor) else e for e in entries)).steps
    starts, _ = _starts(x, own)
    return apply(dynamic_slicing.dynamic_update_slice, x, _written_slice(block, steps, value), *starts)


def _scattered(x: Tensor, axes: Axes, value: Tensor) -> Tensor:
    """Return `x` with `value` written to the places that advanced entries select.

    The value is scattered to the positions along all indexed axes, those of slices included.
    """
    steps = _as_advanced(axes.steps)
    own = [s for s in steps if s[0] != "new"]
    indexed = [i for i, s in enumerate(own) if s[0] == "advanced"]
    kept = [i for i in range(x.ndim) if i not in indexed]
    indices, shape = _together([own[i][1] for i in indexed])
    full = all(own[i][1:] == (0, x.shape[i], 1) for i in kept)
    sizes = [_count(own[i]) for i in kept]
    counts = iter(sizes)
    basic = [1 if s[0] == "new" else next(counts) for s in steps if s[0] != "advanced"]
    front = _front(steps)
    wanted = (*basic[:front], *shape, *basic[front:])
    value = _reshaped(_moved(_fitted(value, wanted), front, len(shape), 0), (*shape, *sizes))
    order = (*indexed, *kept)
    turned = x if order == tuple(range(x.ndim)) else apply(S.TRANSPOSE, x, permutation=order)
    if not full:
        indices, shape = _with_slices(indices, shape, [own[i] for i in kept])
    back = tuple(order.index(i) for i in range(x.ndim))
    written = _scatter(turned, _stacked(indices, shape), value)
    return written if order == tuple(range(x.ndim)) else apply(S.TRANSPOSE, written, permutation=back)


def _scatter(x: Tensor, indices: Tensor, value: Tensor) -> Tensor:
    if x.dtype is D.bool_:
        return cast(apply(I.scatter_nd, cast(x, D.int8), indices, cast(value, D.int8), mode="set"), D.bool_)
    return apply(I.scatter_nd, x, indices, value, mode="set")


def _count(step: tuple[Any, ...]) -> DimLike:
    start, stop, stride = step[1:]
    return (stop - start + abs(stride) - 1) // abs(stride)


def _with_slices(
    indices: Sequence[Tensor], shape: tuple[DimLike, ...], slices: Sequence[tuple[Any, ...]]
) -> tuple[list[Tensor], tuple[DimLike, ...]]:
    """Return the indices and further ones for the sliced axes, all broadcast to one shape, and that
    shape.
    """
    sizes = tuple(_count(s) for s in slices)
    whole = (*shape, *sizes)
    result = [apply(S.BROADCAST_TO, _reshaped(t, (*shape, *(1,) * len(sizes))), shape=whole) for t in indices]
    for i, (step, size) in enumerate(zip(slices, sizes)):
        start, stop, stride = step[1:]
        line = apply(S.iota, shape=(size,), axis=0, dtype=indices[0].dtype)
        line = line * stride + (start if stride > 0 else start + (size - 1) * -stride)
        line = _reshaped(line, (*(1,) * (len(shape) + i), size, *(1,) * (len(sizes) - 1 - i)))
        result.append(apply(S.BROADCAST_TO, line, shape=whole))
    return result, whole
