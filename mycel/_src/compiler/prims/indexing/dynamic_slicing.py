"""Dynamic slices, whose starts are data: `dynamic_slice` reads, `dynamic_update_slice` writes.

A start is clamped so that the block lies inside the tensor; unlike an index, a negative one does
not count from the end. The two are each other's transposes. With one start for each example of a
batch, a block is read by one `take` for each axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.ir.dims import DimLike, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Sample, constant, register, same_dtype
from mycel._src.compiler.prims.convolution.conv import _below
from mycel._src.compiler.prims.factors import Factor, named
from mycel._src.compiler.prims.indexing.index import _front, _need_index, _take_batch, scatter_nd, take, take_add
from mycel._src.foundation.dtype import bool_, int8, int32, int64
from mycel._src.foundation.errors import ShapeError

__all__ = ["dynamic_slice", "dynamic_update_slice"]

Shape = tuple[DimLike, ...]


def _starts_check(name: str, x: TensorType, starts: Sequence[TensorType], sizes: Shape) -> None:
    _need_index(name, *starts)
    if len(starts) != x.rank or any(s.rank for s in starts):
        raise ShapeError(f"{name}: {x} needs {x.rank} scalar starts, not {', '.join(map(str, starts)) or 'none'}")
    if len(sizes) != x.rank or any(_below(n, 0) or _below(d, n) for n, d in zip(sizes, x.shape)):
        raise ShapeError(f"{name}: a block of shape {list(sizes)} does not fit into {x}")


def _dynamic_slice_infer(x: TensorType, *starts: TensorType, sizes: Shape) -> TensorType:
    _starts_check("dynamic_slice", x, starts, tuple(sizes))
    return x.with_shape(tuple(sizes))


def _dynamic_update_infer(x: TensorType, update: TensorType, *starts: TensorType) -> TensorType:
    same_dtype("dynamic_update_slice", x, update)
    _starts_check("dynamic_update_slice", x, starts, update.shape)
    return x


def _factors(node: Node) -> tuple[Factor, ...]:
    """Return a factor for each axis that the block has as a whole, where it can start at 0 only."""
    x, sizes = node.inputs[0].shape, node.params.get("sizes")
    block = node.inputs[1].shape if sizes is None else sizes
    labels = [a if same(d, n) else None for a, (d, n) in enumerate(zip(x, block))]
    scalars: list[Any] = [()] * len(x)
    if sizes is None:
        return named(node, [labels, labels, *scalars], [labels])
    return named(node, [labels, *scalars], [labels], sizes={a: (("sizes", a),) for a in range(len(x))})


def _block(x: Any, starts: Any, sizes: Any) -> tuple[slice, ...]:
    first = [max(0, min(int(s), d - n)) for s, d, n in zip(starts, x.shape, sizes)]
    return tuple(slice(a, a + n) for a, n in zip(first, sizes))


def _dynamic_update_reference(x: Any, update: Any, *starts: Any) -> Any:
    result = x.copy()
    result[_block(x, starts, update.shape)] = update
    return result


def _dynamic_slice_vjp(ct: Node, out: Node, x: Node, *starts: Node, sizes: Shape) -> tuple[Node | None, ...]:
    none = (None,) * len(starts)
    return dynamic_update_slice(S.full(x.shape, 0, ct.dtype), ct, *starts), *none


def _dynamic_update_vjp(ct: Node, out: Node, x: Node, update: Node, *starts: Node) -> tuple[Node | None, ...]:
    none = (None,) * len(starts)
    zeros = S.full(update.shape, 0, ct.dtype)
    return dynamic_update_slice(ct, zeros, *starts), dynamic_slice(ct, *starts, sizes=tuple(update.shape)), *none


def _clamped(start: Node, limit: DimLike, size: DimLike) -> Node:
    return E.maximum(E.minimum(start, constant(limit - size, start.dtype)), 0)


def _take_front(size: DimLike | None, x: Node, batched: bool, index: Node, axis: int) -> tuple[Node, bool]:
    """Return `take` along an axis, and whether the result has a batch in front.

    `x` has a batch in front where `batched`, `index` where its rank is 2. Each index is inside the
    axis, or one beyond it where nothing is to be read.
    """
    many = index.type.rank == 2
    if not batched and not many:
        return take(x, index, axis=axis, bounds="drop"), False
    assert size is not None
    y, place = _take_batch(size, (x, index), (0 if batched else None, 0 if many else None), axis=axis, bounds="drop")
    return S.move_axis(y, place, 0), True


def _slice_by_take(size: DimLike | None, x: Node, batched: bool, starts: Sequence[Node], sizes: Shape) -> Node:
    """Return `dynamic_slice` as one `take` for each axis.

    `x`, where `batched`, and each start may have a batch in front.
    """
    shape = x.shape[1:] if batched else x.shape
    for axis, (start, d, n) in enumerate(zip(starts, shape, sizes)):
        first = S.reshape(_clamped(start, d, n), (*start.shape, 1))
        index = E.add(first, S.iota(shape=(n,), axis=0, dtype=start.dtype))
        x, batched = _take_front(size, x, batched, index, axis)
    return x


def _update_by_take(
    size: DimLike | None, x: Node, update: Node, batched: bool, shape: Shape, starts: Sequence[Node]
) -> Node:
    """Return `dynamic_update_slice` by `take`.

    `x`, `update` (where `batched`) and each start may have a batch in front; `shape` is that of one
    example.
    """
    sizes = update.shape[1:] if batched else update.shape
    rank = len(shape)
    inside: Node | None = None
    for axis, (start, d, n) in enumerate(zip(starts, shape, sizes)):
        place = S.iota(shape=(d,), axis=0, dtype=start.dtype)
        index = E.sub(place, S.reshape(_clamped(start, d, n), (*start.shape, 1)))
        index = S.reshape(index, (*start.shape, d))
        here = E.logical_and(E.ge(index, 0), E.lt(index, constant(n, start.dtype)))
        update, batched = _take_front(size, update, batched, E.select(here, index, constant(n, start.dtype)), axis)
        here = S.reshape(here, (*start.shape, *(1,) * axis, d, *(1,) * (rank - axis - 1)))
        inside = here if inside is None else E.logical_and(inside, here)
    return update if inside is None else E.select(inside, update, x)


def _is_zero(x: Node) -> bool:
    """Return whether a node repeats the number 0."""
    source = x.inputs[0] if x.prim is S.BROADCAST_TO else x
    return source.is_constant and not source.type.rank and x.dtype is not bool_ and source.value[()] == 0


def _update_open(x: Node, update: Node, *starts: Node) -> Node:
    """Return `dynamic_update_slice` in simpler primitives.

    Few rows are scattered into a copy, at the cost of those rows; otherwise each element is
    selected.
    """
    partial = [i for i, (d, n) in enumerate(zip(x.shape, update.shape)) if d is not n and d != n]
    lead = update.shape[: max(partial, default=-1) + 1]
    if not partial or not all(type(d) is int for d in (*x.shape, *lead)):
        return _update_by_take(None, x, update, False, tuple(x.shape), starts)
    if math.prod(lead) * len(lead) * _ROWS > math.prod(x.shape):
        return _update_by_take(None, x, update, False, tuple(x.shape), starts)
    if len(partial) == 1 and _is_zero(x):
        # As the transpose of reading, which can be added to another operand where it belongs.
        (axis,) = partial
        line = S.iota(shape=(lead[axis],), axis=0, dtype=starts[axis].dtype)
        line = E.add(line, _clamped(starts[axis], x.shape[axis], lead[axis]))
        return take_add(update, line, axis=axis, size=x.shape[axis], bounds="drop")
    places = []
    for axis, (start, d, n) in enumerate(zip(starts, x.shape, lead)):
        line = E.add(S.iota(shape=(n,), axis=0, dtype=start.dtype), _clamped(start, d, n))
        line = S.reshape(E.cast(line, dtype=int64), (*(1,) * axis, n, *(1,) * (len(lead) - 1 - axis), 1))
        places.append(S.broadcast_to(line, (*lead, 1)))
    index = places[0] if len(places) == 1 else S.concat(places, len(lead))
    if x.dtype is bool_:
        written = scatter_nd(E.cast(x, dtype=int8), index, E.cast(update, dtype=int8), mode="set")
        return E.cast(written, dtype=bool_)
    return scatter_nd(x, index, update, mode="set")


def _dynamic_slice_batch(size: DimLike, values: Sequence[Node], axes: Any, *, sizes: Shape) -> tuple[Node, int]:
    x, starts = values[0], values[1:]
    if axes[0] is not None:
        x = S.move_axis(x, axes[0], 0)
    if all(a is None for a in axes[1:]):
        zero = constant(0, starts[0].dtype if starts else int32)
        return dynamic_slice(x, zero, *starts, sizes=(size, *sizes)), 0
    return _slice_by_take(size, x, axes[0] is not None, starts, sizes), 0


def _dynamic_update_batch(size: DimLike, values: Sequence[Node], axes: Any) -> tuple[Node, int]:
    (x, update), starts = values[:2], values[2:]
    if all(a is None for a in axes[2:]):
        zero = constant(0, starts[0].dtype if starts else int32)
        return dynamic_update_slice(_front(x, axes[0], size), _front(update, axes[1], size), zero, *starts), 0
    shape = tuple(d for i, d in enumerate(x.shape) if i != axes[0])
    x = x if axes[0] is None else S.move_axis(x, axes[0], 0)
    update = update if axes[1] is None else S.move_axis(update, axes[1], 0)
    return _update_by_take(size, x, update, axes[1] is not None, shape, starts), 0


_ROWS = 8  # an index takes as many elements as one that is moved
_STARTS = ("int32", "int64")

dynamic_slice: Primitive = register(
    Primitive(
        "dynamic_slice",
        _dynamic_slice_infer,
        lambda x, *starts, sizes: x[_block(x, starts, sizes)],
        _dynamic_slice_vjp,
        _dynamic_slice_batch,
        lambda x, *starts, sizes: _slice_by_take(None, x, False, starts, sizes),
        samples=(
            Sample(((5, 4), (), ()), {"sizes": (2, 3)}, integers=(-1, 6), dtypes=("*", *_STARTS)),
            Sample(((6,), ()), {"sizes": (6,)}, dtypes=("*", "int32")),
            Sample(((6,), ()), {"sizes": (0,)}, dtypes=("*", "int64")),
        ),
        dtypes=S.ANY,
        factors=_factors,
        doc="The block of shape `sizes` at scalar starts, which are clamped so that it lies inside x.",
    )
)
dynamic_update_slice: Primitive = register(
    Primitive(
        "dynamic_update_slice",
        _dynamic_update_infer,
        _dynamic_update_reference,
        _dynamic_update_vjp,
        _dynamic_update_batch,
        _update_open,
        samples=(
            Sample(((5, 4), (2, 3), (), ()), integers=(-1, 6), dtypes=("*", "*", *_STARTS)),
            Sample(((6,), (2,), ()), integers=(0, 9), dtypes=("*", "*", "int32")),
            Sample(((40, 3), (2, 3), (), ()), integers=(-1, 50), dtypes=("*", "*", *_STARTS)),
            Sample(((9, 4, 5), (1, 2, 5), (), (), ()), integers=(0, 9), dtypes=("*", "*", "int64", "int64", "int64")),
        ),
        dtypes=S.ANY,
        factors=_factors,
        doc="x with a block replaced by `update`; its scalar starts are clamped so that it lies inside x.",
    )
)
