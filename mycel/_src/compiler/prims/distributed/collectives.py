"""Collectives: primitives by which the ranks of a mesh exchange values.

Every rank runs the same graph, and a collective along `axes` of `mesh` joins the ranks whose
coordinates differ on these axes only. The derivative is that of the program of all ranks together:
a value that a rank sends to others gathers their cotangents. All ranks meet the collectives in one
order, as engines schedule equal graphs equally; so none may stand where only some ranks go.

The reference, which engines on the host use, carries them out with the transport in force.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Sample, constant, register
from mycel._src.compiler.transport.base import alike
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.foundation.dtype import int64
from mycel._src.foundation.errors import ShapeError

__all__ = [
    "COLLECTIVES",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "exchange",
    "mesh_position",
    "permute",
    "reduce_scatter",
    "spread",
]

Axes = tuple[str, ...]
_ONE = {"mesh": Mesh((1,), ("x",)), "axes": ("x",)}
_NUMBERS = ("float16", "bfloat16", "float32", "float64", "int32", "int64")


def _peers(mesh: Mesh, axes: Axes) -> tuple[int, ...]:
    return mesh.peers(transport().rank, axes)


def _divided(name: str, size: DimLike, count: int) -> DimLike:
    if isinstance(size, Dim):
        return size if count == 1 else size // count
    if size % count:
        raise ShapeError(f"{name}: an axis of {size} does not divide among {count} ranks")
    return size // count


def _axis(name: str, x: TensorType, axis: int) -> int:
    if not 0 <= axis < x.rank:
        raise ShapeError(f"{name}: axis {axis} is none of the {x.rank} axes of {x}")
    return axis


def _resized(x: TensorType, axis: int, size: DimLike) -> TensorType:
    return tensor_type((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)


def _moved(value: Node, axis: int | None) -> Node:
    assert axis is not None
    return S.move_axis(value, axis, 0)


# Sums and other reductions.


def _all_reduce_infer(x: TensorType, *, mesh: Mesh, axes: Axes, op: str) -> TensorType:
    mesh.count(axes)
    return x


def _all_reduce_vjp(ct: Node, out: Node, x: Node, *, mesh: Mesh, axes: Axes, op: str) -> tuple[Node]:
    whole = all_reduce(ct, mesh=mesh, axes=axes, op="sum")
    if op == "sum":
        return (whole,)
    if op in ("max", "min"):
        mine = E.cast(E.eq(x, out), dtype=x.dtype)
        return (E.mul(mine, E.div(whole, all_reduce(mine, mesh=mesh, axes=axes, op="sum"))),)
    raise NotImplementedError(f"all_reduce: {op!r} has no derivative; sum, max and min have")


def _all_reduce_batch(size: Any, values: Any, axes_of: Any, *, mesh: Mesh, axes: Axes, op: str) -> Any:
    return all_reduce(values[0], mesh=mesh, axes=axes, op=op), axes_of[0]


all_reduce: Primitive = register(
    Primitive(
        "all_reduce",
        _all_reduce_infer,
        lambda x, *, mesh, axes, op: transport().all_reduce(x, op, _peers(mesh, axes)),
        _all_reduce_vjp,
        _all_reduce_batch,
        samples=(Sample(((2, 3),), {**_ONE, "op": "sum"}), Sample(((),), {**_ONE, "op": "max"})),
        dtypes=_NUMBERS,
        exchanges=True,
        doc="The values of all ranks along axes of a mesh, combined element by element.",
    )
)


# Parts joined, and reduced values divided.


def _all_gather_infer(x: TensorType, *, mesh: Mesh, axes: Axes, axis: int) -> TensorType:
    return _resized(x, _axis("all_gather", x, axis), x.shape[axis] * mesh.count(axes))


def _all_gather_batch(size: Any, values: Any, axes_of: Any, *, mesh: Mesh, axes: Axes, axis: int) -> Any:
    return all_gather(_moved(values[0], axes_of[0]), mesh=mesh, axes=axes, axis=axis + 1), 0


all_gather: Primitive = register(
    Primitive(
        "all_gather",
        _all_gather_infer,
        lambda x, *, mesh, axes, axis: transport().all_gather(x, axis, _peers(mesh, axes)),
        lambda ct, out, x, *, mesh, axes, axis: (reduce_scatter(ct, mesh=mesh, axes=axes, axis=axis, op="sum"),),
        _all_gather_batch,
        samples=(Sample(((2, 3),), {**_ONE, "axis": 1}),),
        dtypes=_NUMBERS,
        exchanges=True,
        doc="The parts of all ranks along axes of a mesh, concatenated along `axis`.",
    )
)


def _reduce_scatter_infer(x: TensorType, *, mesh: Mesh, axes: Axes, axis: int, op: str) -> TensorType:
    size = x.shape[_axis("reduce_scatter", x, axis)]
    return _resized(x, axis, _divided("reduce_scatter", size, mesh.count(axes)))


def _reduce_scatter_vjp(
    ct: Node, out: Node, x: Node, *, mesh: Mesh, axes: Axes, axis: int, op: str
) -> tuple[Node | None]:
    if op != "sum":
        raise NotImplementedError(f"reduce_scatter: {op!r} has no derivative; the sum has")
    return (all_gather(ct, mesh=mesh, axes=axes, axis=axis),)


def _reduce_scatter_batch(size: Any, values: Any, axes_of: Any, *, mesh: Mesh, axes: Axes, axis: int, op: str) -> Any:
    return reduce_scatter(_moved(values[0], axes_of[0]), mesh=mesh, axes=axes, axis=axis + 1, op=op), 0


reduce_scatter: Primitive = register(
    Primitive(
        "reduce_scatter",
        _reduce_scatter_infer,
        lambda x, *, mesh, axes, axis, op: transport().reduce_scatter(x, axis, op, _peers(mesh, axes)),
        _reduce_scatter_vjp,
        _reduce_scatter_batch,
        samples=(Sample(((2, 3),), {**_ONE, "axis": 0, "op": "sum"}),),
        dtypes=_NUMBERS,
        exchanges=True,
        doc="This rank's part, along `axis`, of the combined values of all ranks along axes of a mesh.",
    )
)


# Parts exchanged.


def _all_to_all_infer(x: TensorType, *, mesh: Mesh, axes: Axes, split: int, concat: int) -> TensorType:
    count = mesh.count(axes)
    cut = _resized(x, split, _divided("all_to_all", x.shape[_axis("all_to_all", x, split)], count))
    return _resized(cut, _axis("all_to_all", x, concat), cut.shape[concat] * count)


def _all_to_all_batch(size: Any, values: Any, axes_of: Any, *, mesh: Mesh, axes: Axes, split: int, concat: int) -> Any:
    return all_to_all(_moved(values[0], axes_of[0]), mesh=mesh, axes=axes, split=split + 1, concat=concat + 1), 0


all_to_all: Primitive = register(
    Primitive(
        "all_to_all",
        _all_to_all_infer,
        lambda x, *, mesh, axes, split, concat: transport().all_to_all(x, split, concat, _peers(mesh, axes)),
        lambda ct, out, x, *, mesh, axes, split, concat: (
            all_to_all(ct, mesh=mesh, axes=axes, split=concat, concat=split),
        ),
        _all_to_all_batch,
        samples=(Sample(((2, 3),), {**_ONE, "split": 0, "concat": 1}),),
        dtypes=_NUMBERS,
        exchanges=True,
        doc="The parts along `split` that the ranks have for this one, concatenated along `concat`.",
    )
)


def _permute_infer(x: TensorType, *, mesh: Mesh, axes: Axes, pairs: tuple[tuple[int, int], ...]) -> TensorType:
    count = mesh.count(axes)
    for ends in zip(*pairs):
        if len(set(ends)) != len(ends) or not all(0 <= e < count for e in ends):
            raise ShapeError(f"permute: {pairs} must name each of the positions 0 to {count - 1} once at most")
    return x


def _permute_reference(x: Any, *, mesh: Mesh, axes: Axes, pairs: tuple[tuple[int, int], ...]) -> Any:
    way, peers = transport(), _peers(mesh, axes)
    own, tag = peers.index(way.rank), _PERMUTED + zlib.crc32(repr((peers, pairs)).encode()) % _PERMUTED
    for source, target in pairs:
        if source == own:
            way.send(x, peers[target], tag)
    for source, target in pairs:
        if target == own:
            return alike("permute", [x, way.receive(peers[source], tag)], (way.rank, peers[source]))[1]
    return np.zeros_like(x)


_PERMUTED = 1 << 19  # from here on the tags of messages of this primitive, by what is permuted


def _permute_batch(size: Any, values: Any, axes_of: Any, *, mesh: Mesh, axes: Axes, pairs: Any) -> Any:
    return permute(values[0], mesh=mesh, axes=axes, pairs=pairs), axes_of[0]


permute: Primitive = register(
    Primitive(
        "permute",
        _permute_infer,
        _permute_reference,
        lambda ct, out, x, *, mesh, axes, pairs: (
            permute(ct, mesh=mesh, axes=axes, pairs=tuple((target, source) for source, target in pairs)),
        ),
        _permute_batch,
        samples=(Sample(((2, 3),), {**_ONE, "pairs": ((0, 0),)}),),
        dtypes=_NUMBERS,
        exchanges=True,
        doc="Values sent from position to position along axes of a mesh; zeros where none arrives.",
    )
)


def _exchange_infer(
    x: TensorType, *, mesh: Mesh, axes: Axes, sent: tuple[int, ...], received: tuple[int, ...]
) -> TensorType:
    count = mesh.count(axes)
    if len(sent) != count or len(received) != count or min(*sent, *received) < 0:
        raise ShapeError(f"exchange: {sent} and {received} must be rows to and from each of {count} ranks")
    if not x.shape or (not isinstance(x.shape[0], Dim) and x.shape[0] != sum(sent)):
        raise ShapeError(f"exchange: {sent} must add up to the rows of {x}")
    return _resized(x, 0, sum(received))


def _exchange_reference(x: Any, *, mesh: Mesh, axes: Axes, sent: tuple[int, ...], received: tuple[int, ...]) -> Any:
    way, peers = transport(), _peers(mesh, axes)
    found = way.exchange(np.split(x, np.cumsum(sent)[:-1]), peers)
    for peer, rows, part in zip(peers, received, found):
        if part.shape != (rows, *x.shape[1:]) or part.dtype != x.dtype:
            raise ShapeError(
                f"exchange: {part.dtype.name} {part.shape} came from rank {peer}, where {x.dtype.name} "
                f"{(rows, *x.shape[1:])} is awaited; both sides must say the same"
            )
    return np.concatenate(found)


def _exchange_batch(size: Any, values: Any, axes_of: Any, **params: Any) -> Any:
    inner = exchange(S.move_axis(values[0], axes_of[0], 1), **params)
    return inner, 1


exchange: Primitive = register(
    Primitive(
        "exchange",
        _exchange_infer,
        _exchange_reference,
        lambda ct, out, x, *, mesh, axes, sent, received: (
            exchange(ct, mesh=mesh, axes=axes, sent=received, received=sent),
        ),
        _exchange_batch,
        samples=(Sample(((2, 3),), {**_ONE, "sent": (2,), "received": (2,)}),),
        dtypes=_NUMBERS,
        effect=True,
        exchanges=True,
        doc="Rows for each rank along axes of a mesh, as many as `sent` says; those received, in the order of ranks.",
    )
)


def _spread_infer(x: TensorType, *, mesh: Mesh, axes: Axes, source: int) -> TensorType:
    count = mesh.count(axes)
    if not 0 <= source < count:
        raise ShapeError(f"spread: there is no position {source} among {count}")
    return x


def _spread_reference(x: Any, *, mesh: Mesh, axes: Axes, source: int) -> Any:
    peers = _peers(mesh, axes)
    return transport().broadcast(x, peers[source], peers)


def _spread_vjp(ct: Node, out: Node, x: Node, *, mesh: Mesh, axes: Axes, source: int) -> tuple[Node]:
    here = E.eq(mesh_position(mesh=mesh, axes=axes), constant(source, int64))
    whole = all_reduce(ct, mesh=mesh, axes=axes, op="sum")
    return (E.select(here, whole, 0),)


def _spread_batch(size: Any, values: Any, axes_of: Any, **params: Any) -> Any:
    return spread(values[0], **params), axes_of[0]


spread: Primitive = register(
    Primitive(
        "spread",
        _spread_infer,
        _spread_reference,
        _spread_vjp,
        _spread_batch,
        samples=(Sample(((2, 3),), {**_ONE, "source": 0}),),
        dtypes=_NUMBERS,
        exchanges=True,
        doc="The value of the rank at the position `source` along axes of a mesh.",
    )
)


def _position_infer(*, mesh: Mesh, axes: Axes) -> TensorType:
    mesh.count(axes)
    return tensor_type((), int64)


mesh_position: Primitive = register(
    Primitive(
        "mesh_position",
        _position_infer,
        lambda *, mesh, axes: np.asarray(mesh.position(transport().rank, axes), np.int64),
        lambda ct, out, **_: (),
        lambda size, values, axes_of, **params: (mesh_position(**params), None),
        samples=(Sample((), _ONE),),
        doc="The position of this rank among its peers along axes of a mesh.",
    )
)

COLLECTIVES = (all_reduce, all_gather, reduce_scatter, all_to_all, permute, exchange, spread)
