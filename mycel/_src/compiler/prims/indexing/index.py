"""Gather and scatter: reads and writes at positions that are data; also take and put.

Indices are int32 or int64. `bounds` says how an index outside [0, size) is treated:

    wrap    a negative one counts from the end; one out of range is an error (IndexRangeError)
    front   a negative one is an error, too
    drop    a negative one counts from the end; one out of range reads 0 and writes nothing

The engine raises the error: a compiled program finds the index while it runs and raises when it
ends. No access leaves its array in any case. Derivatives check the same indices in the same way, as
the operation itself may not be computed where only its derivative is wanted. `checked` checks the
indices of operations that are composed of other primitives.

Where several writes meet in one place, `set` keeps the last in row-major order and the other modes
combine all of them with what is there. 16-bit sums accumulate in float32.

Reading is linear and its transpose is an adding write; `index_writes` has the derivatives of
writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Rounding, Sample, constant, need_kind, register, same_dtype
from mycel._src.compiler.prims.convolution.conv import _differs
from mycel._src.compiler.prims.elementwise_records import NUMBERS
from mycel._src.compiler.prims.indexing import index_factors
from mycel._src.compiler.prims.indexing.index_bounds import BOUNDS, inside, may_be_outside, wrapped
from mycel._src.compiler.prims.indexing.index_writes import MODES, write_at, write_vjp
from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import bool_, int32, int64
from mycel._src.foundation.errors import ShapeError

__all__ = ["checked", "gather_nd", "put_along", "scatter_nd", "take", "take_add", "take_along"]


Shape = tuple[DimLike, ...]


def _need_index(name: str, *indices: TensorType) -> None:
    for t in indices:
        if t.dtype not in (int32, int64):
            raise TypeError(f"{name}: indices must be int32 or int64, not {t.dtype.name}; cast them")


def _need_mode(name: str, mode: str, x: TensorType) -> None:
    arguments.one_of(name, "mode", mode, MODES)
    if mode in ("add", "mul"):
        need_kind(f"{name} with mode {mode!r}", "fiuc", x)


def _same_shape(a: Shape, b: Shape) -> bool:
    return len(a) == len(b) and not any(_differs(p, q) for p, q in zip(a, b))


def _front(value: Node, axis: int | None, size: DimLike) -> Node:
    """Return the value with its batch axis in front; repeat the value where it has none."""
    return S.broadcast_to(value, (size, *value.shape)) if axis is None else S.move_axis(value, axis, 0)


# gather_nd and scatter_nd.


def _nd_depth(name: str, x: Shape, indices: TensorType) -> int:
    _need_index(name, indices)
    k = indices.shape[-1] if indices.rank else None
    if not isinstance(k, int) or not 1 <= k <= len(x):
        raise ShapeError(f"{name}: the last axis of the indices, {indices}, must name 1 to {len(x)} axes of {list(x)}")
    return k


def _gather_nd_infer(x: TensorType, indices: TensorType, *, bounds: str = "wrap") -> TensorType:
    arguments.one_of("gather_nd", "bounds", bounds, BOUNDS)
    k = _nd_depth("gather_nd", x.shape, indices)
    return x.with_shape(indices.shape[:-1] + x.shape[k:])


def _scatter_nd_infer(
    x: TensorType, indices: TensorType, updates: TensorType, *, mode: str, bounds: str = "wrap"
) -> TensorType:
    _need_mode("scatter_nd", mode, x)
    arguments.one_of("scatter_nd", "bounds", bounds, BOUNDS)
    k = _nd_depth("scatter_nd", x.shape, indices)
    same_dtype("scatter_nd", x, updates)
    wanted = indices.shape[:-1] + x.shape[k:]
    if not _same_shape(updates.shape, wanted):
        raise ShapeError(
            f"scatter_nd: indices {indices} into {x} want updates of shape {list(wanted)}, not {list(updates.shape)}"
        )
    return x


def _nd_position(name: str, x: Any, indices: Any, bounds: str) -> tuple[tuple[Any, ...], Any]:
    pairs = [wrapped(name, indices[..., i], i, x.shape[i], bounds) for i in range(indices.shape[-1])]
    return tuple(p for p, _ in pairs), np.logical_and.reduce([v for _, v in pairs])


def _gather_nd_reference(x: Any, indices: Any, *, bounds: str = "wrap") -> Any:
    where, valid = _nd_position("gather_nd", x, indices, bounds)
    k = indices.shape[-1]
    if 0 in x.shape[:k]:
        return np.zeros(indices.shape[:-1] + x.shape[k:], x.dtype)
    found = x[where]
    return np.where(valid.reshape(valid.shape + (1,) * (x.ndim - k)), found, np.zeros((), x.dtype)).astype(x.dtype)


def _scatter_nd_reference(x: Any, indices: Any, updates: Any, *, mode: str, bounds: str = "wrap") -> Any:
    where, valid = _nd_position("scatter_nd", x, indices, bounds)
    return write_at(x, tuple(w[valid] for w in where), updates[valid], mode)


def _gather_nd_vjp(ct: Node, out: Node, x: Node, indices: Node, **p: Any) -> tuple[Node | None, None]:
    return scatter_nd(S.full(x.shape, 0, ct.dtype), indices, ct, mode="add", **p), None


def _scatter_nd_vjp(
    ct: Node, out: Node, x: Node, indices: Node, updates: Node, *, mode: str, **p: Any
) -> tuple[Any, ...]:
    k = indices.shape[-1]
    dx, du = write_vjp(
        ct,
        out,
        x,
        updates,
        mode,
        x.shape[:k],
        tuple(indices.shape[:-1]),
        lambda v: gather_nd(v, indices, **p),
        lambda base, u, m: scatter_nd(base, indices, u, mode=m, **p),
    )
    return dx, None, du


def _with_batch_index(indices: Node, axis: int | None, size: DimLike) -> Node:
    """Return indices (B, ..., 1 + k) whose first number is that of the example."""
    indices = _front(indices, axis, size)
    column = S.iota(shape=(*indices.shape[:-1], 1), axis=0, dtype=indices.dtype)
    return S.concat([column, indices], len(indices.shape) - 1)


def _gather_nd_batch(size: DimLike, values: Sequence[Node], axes: Any, **p: Any) -> tuple[Node, int]:
    (x, indices), (ax, ai) = values, axes
    if ax is None:
        return gather_nd(x, S.move_axis(indices, ai, 0), **p), 0
    if ai is None:
        return gather_nd(S.move_axis(x, ax, indices.shape[-1]), indices, **p), indices.type.rank - 1
    return gather_nd(S.move_axis(x, ax, 0), _with_batch_index(indices, ai, size), **p), 0


def _scatter_nd_batch(size: DimLike, values: Sequence[Node], axes: Any, *, mode: str, **p: Any) -> tuple[Node, int]:
    (x, indices, updates), (ax, ai, au) = values, axes
    x, updates = _front(x, ax, size), _front(updates, au, size)
    if ai is None:
        k = indices.shape[-1]
        moved = S.move_axis(updates, 0, indices.type.rank - 1)
        return scatter_nd(S.move_axis(x, 0, k), indices, moved, mode=mode, **p), k
    return scatter_nd(x, _with_batch_index(indices, ai, size), updates, mode=mode, **p), 0


# take and its transpose.


def _take_infer(x: TensorType, indices: TensorType, *, axis: int, bounds: str = "wrap") -> TensorType:
    _need_index("take", indices)
    arguments.one_of("take", "bounds", bounds, BOUNDS)
    _need_axis("take", axis, x)
    return x.with_shape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :])


def _need_axis(name: str, axis: int, x: TensorType) -> None:
    if not 0 <= axis < x.rank:
        raise ShapeError(f"{name}: axis {axis} is not an axis of {x}")


def _take_add_infer(
    ct: TensorType, indices: TensorType, *, axis: int, size: DimLike, bounds: str = "wrap"
) -> TensorType:
    _need_index("take_add", indices)
    arguments.one_of("take_add", "bounds", bounds, BOUNDS)
    need_kind("take_add", "fiuc", ct)
    end = axis + indices.rank
    if axis < 0 or end > ct.rank or not _same_shape(ct.shape[axis:end], indices.shape):
        raise ShapeError(
            f"take_add: the axes of {ct} from {axis} on do not begin with the shape of the indices, "
            f"{list(indices.shape)}"
        )
    return ct.with_shape(ct.shape[:axis] + (size,) + ct.shape[end:])


def _take_reference(x: Any, indices: Any, *, axis: int, bounds: str = "wrap") -> Any:
    where, valid = wrapped("take", indices, axis, x.shape[axis], bounds)
    shape = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
    if x.shape[axis] == 0:
        return np.zeros(shape, x.dtype)
    mask = valid.reshape(valid.shape + (1,) * (x.ndim - axis - 1))
    return np.where(mask, np.take(x, where, axis=axis), np.zeros((), x.dtype)).astype(x.dtype)


def _take_add_reference(ct: Any, indices: Any, *, axis: int, size: int, bounds: str = "wrap") -> Any:
    where, valid = wrapped("take_add", indices, axis, size, bounds)
    rest = ct.shape[:axis] + ct.shape[axis + indices.ndim :]
    rows = np.moveaxis(ct, range(axis, axis + indices.ndim), range(indices.ndim))
    total = write_at(np.zeros((size, *rest), ct.dtype), (where[valid],), rows[valid], "add")
    return np.moveaxis(total, 0, axis)


def _take_vjp(ct: Node, out: Node, x: Node, indices: Node, *, axis: int, **p: Any) -> tuple[Node | None, None]:
    return take_add(ct, indices, axis=axis, size=x.shape[axis], **p), None


def _take_add_vjp(
    c: Node, out: Node, ct: Node, indices: Node, *, axis: int, size: DimLike, **p: Any
) -> tuple[Node | None, None]:
    return take(c, indices, axis=axis, **p), None


def _take_expand(x: Node, indices: Node, *, axis: int, **p: Any) -> Node:
    rows = gather_nd(S.move_axis(x, axis, 0), S.reshape(indices, (*indices.shape, 1)), **p)
    return _put_block(rows, indices.type.rank, axis)


def _take_add_expand(ct: Node, indices: Node, *, axis: int, size: DimLike, **p: Any) -> Node:
    rank = indices.type.rank
    zeros = S.full((size, *ct.shape[:axis], *ct.shape[axis + rank :]), 0, ct.dtype)
    rows = _take_block(ct, rank, axis)
    total = scatter_nd(zeros, S.reshape(indices, (*indices.shape, 1)), rows, mode="add", **p)
    return S.move_axis(total, 0, axis)


def _put_block(x: Node, length: int, axis: int, skip: int = 0) -> Node:
    """Move the `length` axes that follow the first `skip` axes back by `axis` places."""
    order = [*range(skip), *range(skip + length, skip + length + axis), *range(skip, skip + length)]
    return S.transpose(x, (*order, *range(len(order), x.type.rank)))


def _take_block(x: Node, length: int, axis: int, skip: int = 0) -> Node:
    """Return the result of the inverse of `_put_block`."""
    order = [*range(skip), *range(skip + axis, skip + axis + length), *range(skip, skip + axis)]
    return S.transpose(x, (*order, *range(len(order), x.type.rank)))


def _joined_indices(indices: Node, axis: int, count: DimLike, size: DimLike, along: int, bounds: str = "wrap") -> Node:
    """Return indices into the rows of all examples, joined along one axis.

    Each of the `count` examples has `size` rows along its axis `along`; the batch axis of `indices`
    is `axis`. The indices are checked by `bounds` here, so that the joined ones need no check.
    """
    front = E.cast(S.move_axis(indices, axis, 0), dtype=int64)
    if bounds != "drop":
        front = checked(front, axis=along, size=size, bounds=bounds)
    rows, total = constant(size, int64), constant(count * size, int64)
    front = E.select(E.lt(front, 0), E.add(front, rows), front)
    valid = E.logical_and(E.ge(front, 0), E.lt(front, rows))
    example = S.reshape(S.iota(shape=(count,), axis=0, dtype=int64), (count, *(1,) * (front.type.rank - 1)))
    return E.select(valid, E.add(front, E.mul(example, rows)), total)


def _take_batch(size: DimLike, values: Sequence[Node], axes: Any, *, axis: int, **p: Any) -> tuple[Node, int]:
    (x, indices), (ax, ai) = values, axes
    if ax is None:
        return take(x, S.move_axis(indices, ai, 0), axis=axis, **p), axis
    x = S.move_axis(x, ax, 0)
    if ai is None:
        return take(x, indices, axis=axis + 1, **p), 0
    rows = S.move_axis(x, axis + 1, 1)
    joined = S.reshape(rows, (size * rows.shape[1], *rows.shape[2:]))
    found = take(joined, _joined_indices(indices, ai, size, rows.shape[1], axis, **p), axis=0, bounds="drop")
    return _put_block(found, indices.type.rank - 1, axis, 1), 0


def _take_add_batch(
    count: DimLike, values: Sequence[Node], axes: Any, *, axis: int, size: DimLike, **p: Any
) -> tuple[Node, int]:
    (ct, indices), (ac, ai) = values, axes
    ct = _front(ct, ac, count)
    if ai is None:
        return take_add(ct, indices, axis=axis + 1, size=size, **p), 0
    rows = _take_block(ct, indices.type.rank - 1, axis, 1)
    joined = _joined_indices(indices, ai, count, size, axis, **p)
    total = take_add(rows, joined, axis=0, size=count * size, bounds="drop")
    return S.move_axis(S.reshape(total, (count, size, *total.shape[1:])), 1, axis + 1), 0


# take_along and put_along.


def _along_check(name: str, x: TensorType, indices: TensorType, axis: int) -> None:
    _need_index(name, indices)
    _need_axis(name, axis, x)
    others = indices.shape[:axis] + x.shape[axis : axis + 1] + indices.shape[axis + 1 :]
    if indices.rank != x.rank or not _same_shape(others, x.shape):
        raise ShapeError(
            f"{name}: the indices {indices} must have the shape of {x} except on axis {axis}; broadcast them first"
        )


def _take_along_infer(x: TensorType, indices: TensorType, *, axis: int, bounds: str = "wrap") -> TensorType:
    arguments.one_of("take_along", "bounds", bounds, BOUNDS)
    _along_check("take_along", x, indices, axis)
    return x.with_shape(indices.shape)


def _put_along_infer(
    x: TensorType, indices: TensorType, updates: TensorType, *, axis: int, mode: str, bounds: str = "wrap"
) -> TensorType:
    _need_mode("put_along", mode, x)
    arguments.one_of("put_along", "bounds", bounds, BOUNDS)
    _along_check("put_along", x, indices, axis)
    same_dtype("put_along", x, updates)
    if not _same_shape(updates.shape, indices.shape):
        raise ShapeError(
            f"put_along: updates of shape {list(updates.shape)} for indices of shape {list(indices.shape)}"
        )
    return x


def _take_along_reference(x: Any, indices: Any, *, axis: int, bounds: str = "wrap") -> Any:
    where, valid = wrapped("take_along", indices, axis, x.shape[axis], bounds)
    if x.shape[axis] == 0:
        return np.zeros(indices.shape, x.dtype)
    return np.where(valid, np.take_along_axis(x, where, axis), np.zeros((), x.dtype)).astype(x.dtype)


def _put_along_reference(x: Any, indices: Any, updates: Any, *, axis: int, mode: str, bounds: str = "wrap") -> Any:
    where, valid = wrapped("put_along", indices, axis, x.shape[axis], bounds)
    position = [g[valid] for g in np.indices(indices.shape)]
    position[axis] = where[valid]
    return write_at(x, tuple(position), updates[valid], mode)


def _along_position(indices: Node, axis: int) -> Node:
    """Return indices for `gather_nd` that name the same places."""
    columns = [
        indices if i == axis else S.iota(shape=tuple(indices.shape), axis=i, dtype=indices.dtype)
        for i in range(indices.type.rank)
    ]
    return S.concat([S.reshape(c, (*indices.shape, 1)) for c in columns], indices.type.rank)


def _take_along_vjp(ct: Node, out: Node, x: Node, indices: Node, *, axis: int, **p: Any) -> tuple[Node | None, None]:
    return put_along(S.full(x.shape, 0, ct.dtype), indices, ct, axis=axis, mode="add", **p), None


def _put_along_vjp(
    ct: Node, out: Node, x: Node, indices: Node, updates: Node, *, axis: int, mode: str, **p: Any
) -> tuple[Any, ...]:
    dx, du = write_vjp(
        ct,
        out,
        x,
        updates,
        mode,
        tuple(x.shape),
        tuple(indices.shape),
        lambda v: take_along(v, indices, axis=axis, **p),
        lambda base, u, m: put_along(base, indices, u, axis=axis, mode=m, **p),
    )
    return dx, None, du


def _along_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(size: DimLike, values: Sequence[Node], axes: Any, *, axis: int, **p: Any) -> tuple[Node, int]:
        return primitive()(*[_front(v, a, size) for v, a in zip(values, axes)], axis=axis + 1, **p), 0

    return rule


_ANY = S.ANY
_XI = ("*", "int32")
_XIU = ("*", "int32", "*")
_DROP, _FRONT = {"bounds": "drop"}, {"bounds": "front"}


def _checked_infer(indices: TensorType, *, axis: int, size: DimLike, bounds: str = "wrap") -> TensorType:
    need_kind("checked", "iu", indices)
    arguments.one_of("checked", "bounds", bounds, BOUNDS)
    tensor_type((size,), bool_)  # an axis that there can be
    return indices


def _checked_reference(indices: Any, *, axis: int, size: int, bounds: str = "wrap") -> Any:
    inside("checked", indices, axis, size, bounds)
    return indices


checked: Primitive = register(
    Primitive(
        "checked",
        _checked_infer,
        _checked_reference,
        lambda ct, out, indices, **_: (None,),
        lambda count, values, axes, **p: (checked(values[0], **p), axes[0]),
        samples=(
            Sample(((3, 4),), {"axis": 0, "size": 6}, integers=(-6, 6)),
            Sample(((5,),), {"axis": 1, "size": 6, **_FRONT}, integers=(0, 6)),
            Sample(((0,),), {"axis": 0, "size": 0}),
        ),
        dtypes=("int32", "int64", "uint8"),
        traps=may_be_outside,
        factors=index_factors.checked_factors,
        doc="The indices themselves; an error where one of them is out of range for an axis of `size`.",
    )
)

gather_nd: Primitive = register(
    Primitive(
        "gather_nd",
        _gather_nd_infer,
        _gather_nd_reference,
        _gather_nd_vjp,
        _gather_nd_batch,
        samples=(
            Sample(((4, 5, 2), (3, 2)), integers=(-4, 4), dtypes=_XI),
            Sample(((4, 3), (2, 2, 1)), _DROP, integers=(-6, 6), dtypes=_XI),
            Sample(((6,), (1,)), _FRONT, integers=(0, 6), dtypes=("*", "int64")),
            Sample(((3, 2), (0, 2)), dtypes=_XI),
            Sample(((0, 2), (3, 1)), _DROP, dtypes=_XI),
        ),
        dtypes=_ANY,
        linear=True,
        traps=may_be_outside,
        factors=index_factors.nd_factors,
        part=index_factors.nd_part,
        doc="x[indices[..., 0], ..., indices[..., k - 1]]: each index row names a place in the first k axes.",
    )
)
scatter_nd: Primitive = register(
    Primitive(
        "scatter_nd",
        _scatter_nd_infer,
        _scatter_nd_reference,
        _scatter_nd_vjp,
        _scatter_nd_batch,
        samples=(
            *(Sample(((4, 3), (5, 1), (5, 3)), {"mode": m, **_DROP}, integers=(-5, 5), dtypes=_XIU) for m in MODES),
            *(Sample(((3, 2, 2), (2, 3, 2), (2, 3, 2)), {"mode": m}, integers=(-2, 2), dtypes=_XIU) for m in MODES),
            Sample(((3,), (0, 1), (0,)), {"mode": "add"}, dtypes=_XIU),
        ),
        dtypes=NUMBERS,
        linear=True,
        rounding=Rounding.IN_PLACE,
        traps=may_be_outside,
        factors=index_factors.nd_factors,
        part=index_factors.nd_part,
        doc="x with updates set, added, multiplied or compared in at the places that gather_nd would read.",
    )
)
take: Primitive = register(
    Primitive(
        "take",
        _take_infer,
        _take_reference,
        _take_vjp,
        _take_batch,
        _take_expand,
        samples=(
            Sample(((5, 3), (4,)), {"axis": 0}, integers=(-5, 5), dtypes=_XI),
            Sample(((2, 4, 3), (2, 3)), {"axis": 1, **_DROP}, integers=(-6, 6), dtypes=_XI),
            Sample(((2, 4), ()), {"axis": 1}, integers=(0, 4), dtypes=("*", "int64")),
            Sample(((4, 2), (0,)), {"axis": 0}, dtypes=_XI),
            Sample(((0, 2), (3,)), {"axis": 0, **_DROP}, dtypes=_XI),
        ),
        dtypes=_ANY,
        linear=True,
        traps=may_be_outside,
        factors=index_factors.take_factors,
        part=index_factors.take_part,
        doc="The parts of x that indices name along an axis; the axes of the indices take its place.",
    )
)
take_add: Primitive = register(
    Primitive(
        "take_add",
        _take_add_infer,
        _take_add_reference,
        _take_add_vjp,
        _take_add_batch,
        _take_add_expand,
        samples=(
            Sample(((4, 3), (4,)), {"axis": 0, "size": 5}, integers=(-5, 5), dtypes=_XI),
            Sample(((2, 2, 3, 2), (2, 3)), {"axis": 1, "size": 3, **_DROP}, integers=(-4, 4), dtypes=_XI),
            Sample(((2,), ()), {"axis": 1, "size": 4}, integers=(0, 4), dtypes=("*", "int64")),
            Sample(((0, 2), (0,)), {"axis": 0, "size": 3}, dtypes=_XI),
        ),
        dtypes=NUMBERS,
        linear=True,
        rounding=Rounding.IN_PLACE,
        traps=may_be_outside,
        factors=index_factors.take_add_factors,
        part=index_factors.take_add_part,
        doc="Zeros of `size` along an axis, with each part of ct added where its index says: the transpose of take.",
    )
)
take_along: Primitive = register(
    Primitive(
        "take_along",
        _take_along_infer,
        _take_along_reference,
        _take_along_vjp,
        _along_batch(lambda: take_along),
        lambda x, indices, *, axis, **p: gather_nd(x, _along_position(indices, axis), **p),
        samples=(
            Sample(((3, 4), (3, 2)), {"axis": 1, **_DROP}, integers=(-5, 5), dtypes=_XI),
            Sample(((4, 2, 3), (6, 2, 3)), {"axis": 0}, integers=(-4, 4), dtypes=("*", "int64")),
            Sample(((2, 3), (2, 0)), {"axis": 1}, dtypes=_XI),
        ),
        dtypes=_ANY,
        linear=True,
        traps=may_be_outside,
        factors=index_factors.along_factors,
        part=index_factors.along_part,
        doc="Along an axis, each row of x read at the positions in the same row of indices.",
    )
)
put_along: Primitive = register(
    Primitive(
        "put_along",
        _put_along_infer,
        _put_along_reference,
        _put_along_vjp,
        _along_batch(lambda: put_along),
        lambda x, indices, updates, *, axis, mode, **p: scatter_nd(
            x, _along_position(indices, axis), updates, mode=mode, **p
        ),
        samples=(
            *(
                Sample(((3, 4), (3, 5), (3, 5)), {"axis": 1, "mode": m, **_DROP}, integers=(-5, 5), dtypes=_XIU)
                for m in MODES
            ),
            Sample(((3, 2), (2, 2), (2, 2)), {"axis": 0, "mode": "set"}, integers=(0, 3), dtypes=("*", "int64", "*")),
        ),
        dtypes=NUMBERS,
        linear=True,
        rounding=Rounding.IN_PLACE,
        traps=may_be_outside,
        factors=index_factors.along_factors,
        part=index_factors.along_part,
        doc="Along an axis, each row of updates written into the same row of x at the positions in indices.",
    )
)
