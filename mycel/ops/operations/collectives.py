"""Collective operations as objects.

Groups and types of parameters are checked when an object is made; ranks and tensors, of which there
may be as many as the group has members, when it is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication.groups import HCCL_WORLD_COMM_GROUP, Group, find_group, member
from mycel.communication.messages import P2POp, batch_isend_irecv, other_end, to_oneself
from mycel.communication.steps import (
    ReduceOp,
    copied,
    counted,
    gathered,
    joined,
    nothing,
    operation_of,
    row_counts,
    scattered,
    send_counts,
    split,
    tensor_of,
)
from mycel.ops import array, creation
from mycel.ops._operands import take_slice
from mycel.ops.operations.attributes import anything, integer, optional
from mycel.ops.operations.inputs import SIZES
from mycel.ops.operations.primitive import NEEDED, Primitive, operations_of

__all__: list[str] = []

WORLD = HCCL_WORLD_COMM_GROUP


def checked(check: Callable[[Any], None] | None = None) -> Callable[[type[Primitive]], type[Primitive]]:
    """Return a decorator for classes whose objects check their parameters when they are made, by
    `check` too.
    """

    def decorate(cls: type[Primitive]) -> type[Primitive]:
        start: Callable[..., None] = cls.__init__
        parameters = inspect.signature(cls).parameters

        def begin(self: Any, *args: Any, **named: Any) -> None:
            start(self, *args, **named)
            _group(self)
            if "op" in parameters:
                operation_of(self.name, self.op)
            if check is not None:
                check(self)

        setattr(cls, "__init__", begin)  # noqa: B010
        return cls

    return decorate


def _group(p: Any) -> Group:
    return find_group(p.name, p.attrs["group"])


def _sizes(value: Any) -> Any:
    """Return the numbers of a list, a tuple or a tensor."""
    return [int(n) for n in value.tolist()] if isinstance(value, Tensor) else value


def _flat(p: Any, x: Any) -> Tensor:
    if tensor_of(p.name, "the input", x).ndim != 1:
        raise ShapeError(f"{p.name}: takes a tensor of one dimension, not {x._type}; flatten it")
    return x


def _numbers(p: Any, x: Any) -> Tensor:
    if tensor_of(p.name, "the input", x).dtype is D.bool_:
        raise TypeError(f"{p.name}: truth values have no sum; convert them, to int32")
    return x


def _all_reduce(p: Any, x: Any) -> Tensor:
    return copied(_group(p).transport.reduce(_numbers(p, x), p.op))


def _all_gather(p: Any, x: Any) -> Tensor:
    return copied(gathered(tensor_of(p.name, "the input", x), _group(p)))


def _all_gather_v(p: Any, x: Any, output_split_sizes: Any) -> Tensor:
    group, sizes, line = _group(p), _sizes(output_split_sizes), _flat(p, x)
    if len(sizes) != group.size or sizes[group.rank] != line.shape[0]:
        raise ValueError(
            f"{p.name}: output_split_sizes {list(sizes)} must have {group.size} sizes, this process's being "
            f"{line.shape[0]}"
        )
    return copied(group.transport.gather_rows(line, sizes))


def _reduce_scatter(p: Any, x: Any, sizes: Any = None) -> Tensor:
    group = _group(p)
    if _numbers(p, x).ndim == 0:
        raise ShapeError(f"{p.name}: a scalar has no rows to divide; give it an axis")
    rows = row_counts(p.name, x.shape[0], _sizes(sizes), group, "input_split_sizes")
    return copied(group.transport.scatter_rows(x, rows, p.op))


@checked()
class AllReduce(Primitive, compute=_all_reduce, op=ReduceOp.SUM, group=WORLD):
    """The sum of a tensor over all processes, or another reduction: `op` is sum, prod, max, min or
    avg.
    """


@checked()
class AllGather(Primitive, compute=_all_gather, group=WORLD):
    """The tensors of all processes, concatenated along the first axis."""


@checked()
class AllGatherV(Primitive, compute=_all_gather_v, group=WORLD, inputs=(Tensor, SIZES)):
    """Vectors of all processes, concatenated; `output_split_sizes` has the number of elements of
    each.
    """


@checked()
class ReduceScatter(Primitive, compute=lambda p, x: _reduce_scatter(p, x), op=ReduceOp.SUM, group=WORLD):
    """The share of this process of the rows of the sum of a tensor over all processes."""


@checked()
class ReduceScatterV(
    Primitive,
    compute=lambda p, x, sizes: _reduce_scatter(p, _flat(p, x), sizes),
    op=ReduceOp.SUM,
    group=WORLD,
    inputs=(Tensor, SIZES),
):
    """The share of this process of the sum of a vector over all processes; `input_split_sizes` has
    the number of elements of each share.
    """


def _reduce(p: Any, x: Any) -> Tensor:
    member(p.name, "dest_rank", p.dest_rank, _group(p))
    return _all_reduce(p, x)


def _gather(p: Any, x: Any) -> Tensor:
    member(p.name, "dest_rank", p.dest_rank, _group(p))
    return _all_gather(p, x)


@checked()
class Reduce(Primitive, compute=_reduce, dest_rank=NEEDED, op=ReduceOp.SUM, group=WORLD):
    """The sum of a tensor over all processes, for the process `dest_rank`."""


@checked()
class CollectiveGather(Primitive, compute=_gather, dest_rank=NEEDED, group=WORLD):
    """The tensors of all processes, concatenated along the first axis, for the process
    `dest_rank`.
    """


def _scatter(p: Any, x: Any) -> Tensor:
    group = _group(p)
    source = member(p.name, "src_rank", p.src_rank, group)
    parts = split(p.name, tensor_of(p.name, "the input", x), None, group, "")
    return copied(scattered(parts, x, parts[group.rank].shape, source, group))


def _broadcast(p: Any, values: Any) -> tuple[Tensor, ...]:
    group = _group(p)
    root = member(p.name, "root_rank", p.root_rank, group)
    given = values if isinstance(values, (tuple, list)) else (values,)
    return tuple([copied(group.transport.broadcast(tensor_of(p.name, "the input", x), root)) for x in given])


@checked()
class CollectiveScatter(Primitive, compute=_scatter, src_rank=0, group=WORLD):
    """The share of this process of the rows that the process `src_rank` has."""


@checked()
class Broadcast(Primitive, compute=_broadcast, root_rank=integer(), group=WORLD, inputs=(object,)):
    """The tensors, given as a tuple, of the process `root_rank`."""


@checked()
class Barrier(Primitive, compute=lambda p: _group(p).transport.barrier(), group=anything(WORLD)):
    """A wait until all processes of the group are here."""


def _check_all_to_all(p: Any) -> None:
    size = _group(p).size
    if p.split_count != size:
        raise ValueError(f"{p.name}: split_count is {p.split_count}, but the group has {size} members")


def _all_to_all(p: Any, x: Any) -> Tensor:
    _check_all_to_all(p)
    group, rank = _group(p), tensor_of(p.name, "the input", x).ndim
    for axis in (p.split_dim, p.concat_dim):
        if not -rank <= axis < rank:
            raise ShapeError(f"{p.name}: axis {axis} is out of range for a tensor of {rank} dimensions")
    axis = p.split_dim % rank
    if x.shape[axis] % p.split_count:
        raise ShapeError(f"{p.name}: axis {axis} of {x._type} does not divide into {p.split_count}")
    step = x.shape[axis] // p.split_count
    parts = [take_slice(x, axis, i * step, (i + 1) * step) for i in range(p.split_count)]
    return copied(array.concat(group.transport.exchange(parts, [part.shape for part in parts]), p.concat_dim))


@checked()
class AlltoAll(
    Primitive, compute=_all_to_all, split_count=integer(), split_dim=integer(), concat_dim=integer(), group=WORLD
):
    """The parts of tensors for this process, joined along `concat_dim`, where each process cuts its
    tensor along `split_dim` into a part for each other one.

    Args:
        split_count (int): The number of parts, one for each process.
        split_dim (int): The axis that is cut.
        concat_dim (int): The axis along which parts are joined.
        group (str | None): The name of the group of processes. Default: "hccl_world_group".
    """


def _check_block(p: Any) -> None:
    if p.block_size < 1:
        raise ValueError(f"{p.name}: block_size must be positive, not {p.block_size}")


def _exchanged(p: Any, x: Tensor, sent: list[int], awaited: list[int]) -> Tensor:
    group = _group(p)
    parts = split(p.name, x, [n * p.block_size for n in sent], group, "the sizes sent")
    shapes = [(int(n) * p.block_size,) for n in counted(p.name, "the sizes awaited", awaited, group)]
    found = joined(group.transport.exchange(parts, shapes))
    row_counts(p.name, found.shape[0], [n for (n,) in shapes], group, "the sizes awaited")
    return copied(found)


def _by_matrix(p: Any, x: Any, matrix: Any) -> Tensor:
    group = _group(p)
    counts = np.asarray(send_counts(p.name, matrix, group))
    counts = counts.T if p.transpose else counts
    return _exchanged(p, _flat(p, x), counts[group.rank].tolist(), counts[:, group.rank].tolist())


@checked(_check_block)
class AlltoAllV(
    Primitive,
    compute=lambda p, x, sent, awaited: _exchanged(p, _flat(p, x), _sizes(sent), _sizes(awaited)),
    group=optional(WORLD),
    block_size=1,
    inputs=(Tensor, SIZES, SIZES),
):
    """The parts of vectors that all processes sent to this one; a call says how many blocks go to
    each process and come from it.
    """


@checked(_check_block)
class AlltoAllVC(
    Primitive,
    compute=_by_matrix,
    group=optional(WORLD),
    block_size=1,
    transpose=anything(False),
    inputs=(Tensor, SIZES),
):
    """`AlltoAllV` whose call takes a matrix of the blocks that each process sends to each other
    one, or its transpose.
    """


# From one process to another.


def _send(p: Any, x: Any) -> None:
    tensor_of(p.name, "the input", x)
    group = other_end(p.name, "dest_rank", p.dest_rank, p.group)
    group.transport.send(x, group.ranks.index(p.dest_rank), p.sr_tag)


def _receive(p: Any, *_: Any) -> Tensor:
    group = other_end(p.name, "src_rank", p.src_rank, p.group)
    like = creation.zeros(tuple(p.shape), D.from_any(p.dtype))
    return group.transport.receive(like, group.ranks.index(p.src_rank), p.sr_tag)


@checked()
class Send(Primitive, compute=_send, sr_tag=NEEDED, dest_rank=NEEDED, group=WORLD, group_back=WORLD):
    """A message with a tensor to the process `dest_rank`.

    Args:
        sr_tag (int): A number that tells messages apart.
        dest_rank (int): The process that receives.
        group (str | None): The name of the group of processes. Default: "hccl_world_group".
        group_back (str): Has no effect. Default: "hccl_world_group".

    Raises:
        ValueError: If the other process is this one, which has no other end.
    """


@checked()
class Receive(
    Primitive,
    compute=_receive,
    sr_tag=NEEDED,
    src_rank=NEEDED,
    shape=NEEDED,
    dtype=NEEDED,
    group=WORLD,
    group_back=WORLD,
    inputs=(object,),
):
    """The tensor that the process `src_rank` sent.

    Args:
        sr_tag (int): A number that tells messages apart.
        src_rank (int): The process that sends.
        shape (Sequence[int]): The shape of the tensor.
        dtype (DType): The element type of the tensor.
        group (str | None): The name of the group of processes. Default: "hccl_world_group".
        group_back (str): Has no effect. Default: "hccl_world_group".

    Raises:
        ValueError: If the other process is this one, which has no other end.
    """


def _check_batch(p: Any) -> None:
    group = _group(p)
    for name in ("op_types", "remote_ranks", "receive_shapes", "receive_dtypes"):
        given = p.attrs[name]
        if not isinstance(given, (tuple, list)) and not (given is None and name.startswith("receive")):
            raise TypeError(f"{p.name}: {name} must be a tuple or a list, not {type(given).__name__}")
    if set(p.op_types) - {"isend", "irecv"} or len(p.op_types) != len(p.remote_ranks):
        raise ValueError(
            f"{p.name}: op_types are 'isend' and 'irecv', and as many as remote_ranks, not {p.op_types} for "
            f"{p.remote_ranks}"
        )
    awaited = sum(op == "irecv" for op in p.op_types)
    if not len(p.receive_shapes or ()) == len(p.receive_dtypes or ()) == awaited:
        raise ValueError(
            f"{p.name}: receive_shapes and receive_dtypes must have one element for each of the {awaited} 'irecv'"
        )
    for rank in p.remote_ranks:
        member(p.name, "an element of remote_ranks", rank, group)


def _batch(p: Any, values: Any = ()) -> tuple[Tensor, ...]:
    given = (values,) if isinstance(values, Tensor) else tuple([v for v in values or () if v is not None])
    sent = [tensor_of(p.name, "an element of the input", v) for v in given]
    if len(sent) != sum(op == "isend" for op in p.op_types):
        raise RuntimeError(f"{p.name}: {len(sent)} tensors are not one for each 'isend' of {p.op_types}")
    shapes, group = list(zip(p.receive_shapes or (), p.receive_dtypes or ())), _group(p)
    if group.size > 1:
        return _batch_of_several(p, sent, shapes, group)
    found = iter(_agreeing(p, to_oneself(p.name, sent, len(shapes), _group(p)), shapes))
    return tuple([next(found) if op == "irecv" else creation.zeros((), D.float32) for op in p.op_types])


def _batch_of_several(p: Any, sent: list[Tensor], shapes: Any, group: Group) -> tuple[Tensor, ...]:
    given, awaited, ops = iter(sent), iter(shapes), []
    for op, rank in zip(p.op_types, p.remote_ranks):
        if op == "isend":
            ops.append(P2POp(op, next(given), rank, p.group))
        else:
            shape, kind = next(awaited)
            ops.append(P2POp(op, creation.zeros(tuple(shape), D.from_any(kind)), rank, p.group))
    batch_isend_irecv(ops)
    return tuple([creation.zeros((), D.float32) if o.op == "isend" else o.tensor for o in ops])


def _agreeing(p: Any, values: list[Tensor], wanted: Any) -> list[Tensor]:
    for value, (shape, kind) in zip(values, wanted):
        if value.shape != tuple(shape) or value.dtype is not D.from_any(kind):
            raise ValueError(f"{p.name}: {value._type} came, where {tuple(shape)} of {kind} is awaited")
    return [copied(v) for v in values]


@checked(_check_batch)
class BatchISendIRecv(
    Primitive,
    compute=_batch,
    op_types=NEEDED,
    remote_ranks=NEEDED,
    receive_shapes=None,
    receive_dtypes=None,
    group=anything(WORLD),
    inputs=(object,),
):
    """Tensors sent and received at once: a result for each of `op_types`, which is a zero for a
    tensor that is sent.

    A process may send to itself.

    Args:
        op_types (Sequence[str]): What is done for each: "isend" or "irecv".
        remote_ranks (Sequence[int]): The other end of each.
        receive_shapes (Sequence[tuple[int, ...]]): The shapes of the tensors that are received.
            Default: None.
        receive_dtypes (Sequence[DType]): Their element types. Default: None.
        group (str | None): The name of the group of processes. Default: "hccl_world_group".
    """


def _check_neighbors(p: Any) -> None:
    group = _group(p)
    for name in ("send_rank_ids", "recv_rank_ids"):
        arguments.sequence(p.name, name, p.attrs[name], "a list of ranks")
        for rank in p.attrs[name]:
            member(p.name, f"an element of {name}", rank, group)
    if len(p.send_rank_ids) != len(p.send_shapes) or len(p.recv_rank_ids) != len(p.recv_shapes):
        raise ValueError(f"{p.name}: there must be as many shapes as ranks, to send and to receive")


def _neighbors(p: Any, values: Any) -> tuple[Tensor, ...]:
    _check_neighbors(p)
    given = [tensor_of(p.name, "an element of the input", v) for v in values]
    if [tuple(v.shape) for v in given] != [tuple(s) for s in p.send_shapes]:
        raise ValueError(
            f"{p.name}: the input must be tensors of the shapes {list(p.send_shapes)}, not {[v.shape for v in given]}"
        )
    shapes = [tuple(shape) for shape in p.recv_shapes]
    found = _among(p, given, p.send_rank_ids, shapes, p.recv_rank_ids)
    return tuple(_agreeing(p, found, [(shape, p.recv_type) for shape in shapes]))


def _among(p: Any, sent: list[Tensor], targets: Any, shapes: Any, sources: Any) -> list[Tensor]:
    """Send tensors to processes, and return those of `shapes` that come from `sources`.

    What goes between two processes goes in the order of the lists.
    """
    group = _group(p)
    if group.size == 1:
        return to_oneself(p.name, sent, len(sources), group)
    if not sent:
        raise ValueError(f"{p.name}: a process of several sends something, if only no elements: the type is not known")
    flat = [array.reshape(x, (-1,)) for x in sent]
    empty = nothing(sent[0])
    parts = [array.concat([empty, *(f for f, t in zip(flat, targets) if t == rank)]) for rank in group.ranks]
    sizes = [int(np.prod(shape)) for shape in shapes]
    counts = [(sum(n for n, s in zip(sizes, sources) if s == rank),) for rank in group.ranks]
    lines = dict(zip(group.ranks, group.transport.exchange(parts, counts)))
    found, starts = [], dict.fromkeys(group.ranks, 0)
    for shape, size, source in zip(shapes, sizes, sources):
        start = starts[source]
        starts[source] = start + size
        found.append(array.reshape(take_slice(lines[source], 0, start, start + size), shape))
    return found


@checked()
class NeighborExchange(
    Primitive,
    compute=_neighbors,
    send_rank_ids=NEEDED,
    recv_rank_ids=NEEDED,
    recv_shapes=NEEDED,
    send_shapes=NEEDED,
    recv_type=NEEDED,
    group=anything(WORLD),
    inputs=(object,),
):
    """The tensors that come from `recv_rank_ids`, as a tuple, while others are sent to
    `send_rank_ids`.

    A process may be its own neighbour.

    Args:
        send_rank_ids (list[int]): The processes that get something.
        recv_rank_ids (list[int]): The processes that something comes from.
        recv_shapes (tuple[tuple[int, ...], ...]): The shapes of what comes.
        send_shapes (tuple[tuple[int, ...], ...]): The shapes of what is sent.
        recv_type (DType): The element type of what comes.
        group (str | None): The name of the group of processes. Default: "hccl_world_group".
    """


# Directions of NeighborExchangeV2, clockwise from the top: which border of the height (0 the first,
# 1 the last, None all) and of the width.
_BORDERS = ((0, None), (0, 1), (None, 1), (1, 1), (1, None), (1, 0), (None, 0), (0, 0))


def _check_borders(p: Any) -> None:
    group = _group(p)
    for name, count in (("send_rank_ids", 8), ("recv_rank_ids", 8), ("send_lens", 4), ("recv_lens", 4)):
        given = p.attrs[name]
        arguments.instance(p.name, name, given, list)
        if len(given) != count or min(
            arguments.integer(p.name, f"an element of {name}", n, numpy=False) for n in given
        ) < (-1 if count == 8 else 0):
            raise ValueError(
                f"{p.name}: {name} must have {count} elements, ranks or -1, or lengths that are not negative, not "
                f"{given}"
            )
        if count == 8:
            there = [rank for rank in given if rank != -1]
            if len(set(there)) != len(there):
                raise ValueError(f"{p.name}: {name} {given} has a rank twice")
            for rank in there:
                member(p.name, f"an element of {name}", rank, group)
    if p.data_format != "NCHW":
        raise ValueError(f"{p.name}: data_format must be 'NCHW', not {p.data_format!r}")


def _length(side: int | None, lengths: Any) -> Any:
    """Return a border's length: the first or last of `lengths`, or the one between."""
    return lengths[1] if side is None else lengths[2 * side]


def _borders(p: Any, x: Any) -> Tensor:
    if tensor_of(p.name, "the input", x).ndim != 4:
        raise ShapeError(f"{p.name}: takes (N, C, H, W), not {x._type}")

    def sent(direction: int) -> Tensor:
        part = x
        for axis, side, lengths in zip((2, 3), _BORDERS[direction], (p.send_lens[:2], p.send_lens[2:])):
            if side is not None:
                size = part.shape[axis]
                part = (
                    take_slice(part, axis, 0, lengths[0])
                    if side == 0
                    else take_slice(part, axis, size - lengths[1], size)
                )
        return part

    ways = [i for i, rank in enumerate(p.send_rank_ids) if rank != -1]
    places = [i for i, rank in enumerate(p.recv_rank_ids) if rank != -1]
    heights = (p.recv_lens[0], x.shape[2], p.recv_lens[1])
    widths = (p.recv_lens[2], x.shape[3], p.recv_lens[3])
    shapes = [(*x.shape[:2], *(_length(s, n) for s, n in zip(_BORDERS[i], (heights, widths)))) for i in places]
    values = [sent(i) for i in ways] or [nothing(x)]
    targets = [p.send_rank_ids[i] for i in ways] or [_group(p).ranks[_group(p).rank]]
    if _group(p).size == 1:
        came = to_oneself(p.name, [sent(i) for i in ways], len(places), _group(p))
    else:
        came = _among(p, values, targets, shapes, [p.recv_rank_ids[i] for i in places])
    found = dict(zip(places, came))

    def piece(i: int, j: int) -> Tensor:
        side = tuple(None if k == 1 else k // 2 for k in (i, j))
        shape = (*x.shape[:2], heights[i], widths[j])
        value = x if side == (None, None) else found.get(_BORDERS.index(side))
        if value is None:
            return creation.zeros(shape, x.dtype)
        if value.shape != shape:
            raise ValueError(
                f"{p.name}: a border of shape {value.shape} came, where {shape} is awaited; send_lens must agree with "
                "recv_lens"
            )
        return value

    rows = [array.concat([piece(i, j) for j in range(3) if widths[j]], 3) for i in range(3) if heights[i]]
    return copied(array.concat(rows, 2))


@checked(_check_borders)
class NeighborExchangeV2(
    Primitive,
    compute=_borders,
    send_rank_ids=NEEDED,
    send_lens=NEEDED,
    recv_rank_ids=NEEDED,
    recv_lens=NEEDED,
    data_format=NEEDED,
    group=WORLD,
):
    """An image (N, C, H, W) with the borders that neighbours sent; they get borders of this
    process's image.

    Borders that nobody sends are zeros.

    Args:
        send_rank_ids (list[int]): The ranks in the eight directions, clockwise from the top, -1 for
            none.
        send_lens (list[int]): The widths of the borders that are sent, at top, bottom, left and
            right.
        recv_rank_ids (list[int]): The ranks in the eight directions, clockwise from the top, -1 for
            none.
        recv_lens (list[int]): The widths of the borders that come, at top, bottom, left and right.
        data_format (str): Must be "NCHW".
        group (str | None): The name of the group of processes. Default: "hccl_world_group".
    """


__all__.extend(operations_of(globals()))
