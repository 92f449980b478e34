"""Resharding: the moves and collectives from one layout of a tensor to another, and their bytes.

`route` finds the moves, `apply` makes their nodes. The order keeps arrays small: first what is
sliced without sending anything, then reduce-scatters, exchanges (all-to-all), all-reduces, and the
gathers last; what did not fit beside a part that had to go is sliced at the end. A value becomes a
sum that is partial by a *mask*: it stays on the first ranks, and is zero on the others. Bytes are
those of rings: of n ranks each sends (n-1)/n of what a gather gives, of what a scatter or an
exchange takes, and twice that for an all-reduce.

A part is moved in a *view* of the local tensor, in which each stretch that matters is an axis of
its own. A size that does not divide is padded with zeros before ranks exchange it, and cut after.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.distributed import collectives
from mycel._src.compiler.prims.indexing.dynamic_slicing import dynamic_slice
from mycel._src.compiler.prims.indexing.index import take
from mycel._src.compiler.transforms.partition.tensor_sharding import Part, Sharding, elements, static
from mycel._src.foundation.dtype import int64
from mycel._src.foundation.errors import ShapeError

__all__ = ["Move", "apply", "route"]


@dataclass(frozen=True)
class Move:
    """One step: `kind` is slice, mask, permute, or the name of a collective.

    `before` and `after` are the layouts, `gone` the part that is joined and `new` the part that is
    divided, where there are such. `mesh_axes` are those along which ranks exchange, `op` is the
    reduction, `sent` the bytes that each rank sends.
    """

    kind: str
    before: Sharding
    after: Sharding
    mesh_axes: tuple[str, ...]
    gone: tuple[Part, ...] = ()
    new: tuple[Part, ...] = ()
    op: str = ""
    sent: float = 0.0


def route(start: Sharding, end: Sharding, type: TensorType, mesh: Mesh) -> list[Move]:
    """Return the moves that bring a tensor of `type` from the layout `start` to `end`.

    `type` is that of the whole tensor. `end` may leave partial what is partial in `start`, and sums
    besides. Raises ShapeError where it asks for more than that.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.transforms.partition import sharding
    >>> mesh = Mesh((4,), ("x",))
    >>> rows, columns = sharding(mesh, (8, 8), ("x",)), sharding(mesh, (8, 8), (None, "x"))
    >>> [(m.kind, m.sent) for m in route(rows, columns, tensor_type((8, 8), float32), mesh)]
    [('all_to_all', 48.0)]
    """
    new = sorted(set(end.partial) - set(start.partial))
    if any(op != "sum" for _, op in new) or (new and type.dtype.kind not in "fc"):
        raise ShapeError(f"a tensor laid out as {start} cannot become {end}: nothing makes a value partial so")
    way = _Route(start, end, type, mesh)
    way.slice()
    way.scatter()
    way.exchange()
    way.reduce()
    way.gather()
    way.slice()
    if new:
        way.mask(tuple([a for a, _ in new]))
    return way.moves


class _Route:
    def __init__(self, start: Sharding, end: Sharding, type: TensorType, mesh: Mesh) -> None:
        """Begin a route from the layout `start` to `end`, of a tensor of `type` on `mesh`."""
        self.now, self.end, self.mesh = start, end, mesh
        self.shape, self.item = static(type), type.dtype.itemsize
        self.moves: list[Move] = []

    def step(
        self,
        kind: str,
        after: Sharding,
        mesh_axes: tuple[str, ...],
        most: Sharding,
        gone: tuple[Part, ...] = (),
        new: tuple[Part, ...] = (),
        op: str = "",
        padded: tuple[Part, ...] = (),
    ) -> None:
        """Add a move; its fields but the bytes are given.

        `kind`, `after`, `mesh_axes`, `gone`, `new` and `op` are the fields. The bytes are those of
        the local elements that the layout `most` has, where the parts `padded` have padding.
        """
        n, share = self.mesh.count(mesh_axes), 0.0
        if kind == "permute":
            share = 1.0
        elif kind not in ("slice", "mask"):
            share = (n - 1) / n * (2 if kind == "all_reduce" else 1)
        sent = share * elements(self.shape, most) * self.item * _padding(padded)
        self.moves.append(Move(kind, self.now, after, mesh_axes, gone, new, op, sent))
        self.now = after

    def missing(self) -> list[Part]:
        return [q for q in self.end.parts if q not in self.now.parts]

    def stale(self) -> list[Part]:
        return [p for p in self.now.parts if p not in self.end.parts]

    def slice(self) -> None:
        for q in self.missing():
            if self.now.fits(q):
                after = Sharding((*self.now.parts, q), self.now.partial)
                self.step("slice", after, q.mesh_axes, after, new=(q,))

    def scatter(self) -> None:
        for q in self.missing():
            partial = dict(self.now.partial)
            ops = {partial.get(a, "") for a in q.mesh_axes}
            kept = {a for a, _ in self.end.partial}
            left = tuple((a, op) for a, op in self.now.partial if a not in q.mesh_axes)
            if len(ops) == 1 and "" not in ops and not kept & set(q.mesh_axes):
                if Sharding(self.now.parts, left).fits(q):
                    after = Sharding((*self.now.parts, q), left)
                    self.step("reduce_scatter", after, q.mesh_axes, self.now, new=(q,), op=ops.pop(), padded=(q,))

    def exchange(self) -> None:
        for p in self.stale():
            base = Sharding(tuple(r for r in self.now.parts if r != p), self.now.partial)
            for q in self.missing():
                if q.mesh_axes == p.mesh_axes and base.fits(q) and _nested(p, q):
                    after = Sharding((*base.parts, q), base.partial)
                    self.step("all_to_all", after, q.mesh_axes, self.now, gone=(p,), new=(q,), padded=(q,))
                    break
                if q.count == p.count and q.is_even and p.is_even and _same_place(p, q) and base.fits(q):
                    if not set(q.mesh_axes) & {*self.now.mesh_axes, *(a for a, _ in self.now.partial)}:
                        after = Sharding((*base.parts, q), base.partial)
                        self.step("permute", after, p.mesh_axes + q.mesh_axes, self.now, gone=(p,), new=(q,))
                        break

    def reduce(self) -> None:
        todo = [(a, op) for a, op in self.now.partial if (a, op) not in self.end.partial]
        for op in sorted({op for _, op in todo}):
            axes = tuple(a for a in self.mesh.names if (a, op) in todo)
            after = Sharding(self.now.parts, tuple(x for x in self.now.partial if x[0] not in axes))
            self.step("all_reduce", after, axes, self.now, op=op)

    def gather(self) -> None:
        while self.stale():
            first, *rest = self.stale()
            gone, joined = [first], first
            for p in rest:
                if p.is_even and joined.is_even and p.axis == joined.axis and p.before == joined.before * joined.size:
                    axes, count = joined.mesh_axes + p.mesh_axes, joined.count * p.count
                    joined = Part(p.axis, joined.before, count, p.after, axes, count)
                    gone.append(p)
            after = Sharding(tuple(p for p in self.now.parts if p not in gone), self.now.partial)
            self.step("all_gather", after, joined.mesh_axes, after, gone=(joined,), padded=(joined,))

    def mask(self, mesh_axes: tuple[str, ...]) -> None:
        self.step("mask", self.end, mesh_axes, self.end, op="sum")


def _padding(parts: Iterable[Part]) -> float:
    return math.prod((p.length * p.count / p.size for p in parts), start=1.0)


def _nested(p: Part, q: Part) -> bool:
    one, two = sorted((p, q))
    return p.axis != q.axis or two.before % (one.before * one.size) == 0


def _same_place(p: Part, q: Part) -> bool:
    return (p.axis, p.before, p.size) == (q.axis, q.before, q.size)


# The nodes of a move.


class _View:
    """A local tensor with each of `parts` as an axis of its own.

    `layout` has the other parts by which the tensor is divided; `shape` is that of the whole.
    """

    def __init__(self, shape: Sequence[int], parts: Sequence[Part], layout: Sharding) -> None:
        self.sizes: list[list[int]] = []
        self.at: dict[Part, tuple[int, int]] = {}
        for axis, size in enumerate(shape):
            stretches, end = [], 1
            for p in sorted(q for q in parts if q.axis == axis):
                stretches.append(_stretch(axis, end, p.before, layout))
                self.at[p] = (axis, len(stretches))
                stretches.append(p.size)
                end = p.before * p.size
            stretches.append(_stretch(axis, end, size, layout))
            self.sizes.append(stretches)

    def axis(self, part: Part) -> int:
        """Return the axis of a part in the view."""
        axis, k = self.at[part]
        return sum(len(s) for s in self.sizes[:axis]) + k

    def put(self, part: Part, size: int) -> None:
        axis, k = self.at[part]
        self.sizes[axis][k] = size

    def opened(self, x: Node) -> Node:
        return S.reshape(x, tuple(s for stretches in self.sizes for s in stretches))

    def closed(self, x: Node) -> Node:
        return S.reshape(x, tuple(math.prod(stretches) for stretches in self.sizes))


def _stretch(axis: int, low: int, high: int, layout: Sharding) -> int:
    """Return the local size of an axis's stretch between two products of its digits."""
    size = high // low
    for p in layout.parts:
        if p.axis == axis and low <= p.before and p.before * p.size <= high:
            size = size // p.size * p.length
    return size


def apply(x: Node, moves: Iterable[Move], type: TensorType, mesh: Mesh) -> Node:
    """Return the node of a local tensor after `moves`.

    `x` is the rank's part, `type` the type of the whole tensor, and `moves` come from `route` on
    the same `mesh` with the layout that `x` has.
    """
    shape = static(type)
    for move in moves:
        x = _MAKERS[move.kind](x, move, shape, mesh)
    return x


def first_index(part: Part, mesh: Mesh) -> Node:
    """Return the first index of a part that this rank has."""
    return E.mul(collectives.mesh_position(mesh=mesh, axes=part.mesh_axes), constant(part.length, int64))


def _slice(x: Node, move: Move, shape: Sequence[int], mesh: Mesh) -> Node:
    (q,) = move.new
    view = _View(shape, (q,), move.before)
    x, axis, first = view.opened(x), view.axis(q), first_index(q, mesh)
    view.put(q, q.length)
    if q.is_even:
        starts = [first if k == axis else constant(0, int64) for k in range(x.type.rank)]
        sizes = tuple(q.length if k == axis else s for k, s in enumerate(x.shape))
        return view.closed(dynamic_slice(x, *starts, sizes=sizes))
    own = E.add(S.iota(shape=(q.length,), axis=0, dtype=int64), first)
    return view.closed(take(x, E.minimum(own, constant(q.size - 1, int64)), axis=axis))


def _padded(x: Node, axis: int, part: Part) -> Node:
    more = [part.count * part.length - part.size if k == axis else 0 for k in range(x.type.rank)]
    return S.pad(x, 0, (0,) * x.type.rank, tuple(more))


def _cut(x: Node, axis: int, part: Part) -> Node:
    return S.slice_axis(x, axis, 0, part.size)


def _reduce_scatter(x: Node, move: Move, shape: Sequence[int], mesh: Mesh) -> Node:
    (q,) = move.new
    view = _View(shape, (q,), move.before)
    x, axis = _padded(view.opened(x), view.axis(q), q), view.axis(q)
    view.put(q, q.length)
    return view.closed(collectives.reduce_scatter(x, mesh=mesh, axes=move.mesh_axes, axis=axis, op=move.op))


def _all_to_all(x: Node, move: Move, shape: Sequence[int], mesh: Mesh) -> Node:
    (p,), (q,) = move.gone, move.new
    others = Sharding(tuple(r for r in move.before.parts if r != p))
    view = _View(shape, (p, q), others)
    view.put(p, p.length)
    x, split, concat = view.opened(x), view.axis(q), view.axis(p)
    x = collectives.all_to_all(_padded(x, split, q), mesh=mesh, axes=move.mesh_axes, split=split, concat=concat)
    view.put(p, p.size)
    view.put(q, q.length)
    return view.closed(_cut(x, concat, p))


def _all_gather(x: Node, move: Move, shape: Sequence[int], mesh: Mesh) -> Node:
    (p,) = move.gone
    view = _View(shape, (p,), move.after)
    view.put(p, p.length)
    x, axis = view.opened(x), view.axis(p)
    view.put(p, p.size)
    return view.closed(_cut(collectives.all_gather(x, mesh=mesh, axes=move.mesh_axes, axis=axis), axis, p))


def _permute(x: Node, move: Move, shape: Sequence[int], mesh: Mesh) -> Node:
    n = mesh.count(move.gone[0].mesh_axes)
    pairs = tuple((i * n + j, j * n + i) for i in range(n) for j in range(n))
    return collectives.permute(x, mesh=mesh, axes=move.mesh_axes, pairs=pairs)


def _all_reduce(x: Node, move: Move, shape: Sequence[int], mesh: Mesh) -> Node:
    return collectives.all_reduce(x, mesh=mesh, axes=move.mesh_axes, op=move.op)


def _mask(x: Node, move: Move, shape: Sequence[int], mesh: Mesh) -> Node:
    first = E.eq(collectives.mesh_position(mesh=mesh, axes=move.mesh_axes), constant(0, int64))
    return E.select(first, x, constant(0, x.dtype))


_MAKERS = {
    "slice": _slice,
    "mask": _mask,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "all_gather": _all_gather,
    "permute": _permute,
    "all_reduce": _all_reduce,
}
