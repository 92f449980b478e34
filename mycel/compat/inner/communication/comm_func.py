"""`mindspore.communication.comm_func`: collectives that return their results.

Those of `mindspore.mint.distributed` write into tensors that they are given; these return new ones.
Functions with `async_op` return a pair of the result and a handle, which is None without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from mycel import ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication import collectives, groups
from mycel.communication.groups import HCCL_WORLD_COMM_GROUP, find_group, member
from mycel.communication.messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from mycel.communication.steps import (
    CommHandle,
    ReduceOp,
    copied,
    counted,
    gathered,
    joined,
    operation_of,
    row_counts,
    scattered,
    split,
    started,
    tensor_of,
)

__all__ = [
    "P2POp",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all_single_with_output_shape",
    "all_to_all_with_output_shape",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "gather_into_tensor",
    "irecv",
    "isend",
    "recv",
    "reduce",
    "reduce_scatter_tensor",
    "scatter_tensor",
    "send",
]

default_handle = CommHandle()


def _outcome(name: str, value: Tensor, async_op: Any) -> tuple[Tensor, CommHandle | None]:
    return copied(value), started(name, async_op)


def all_reduce(
    tensor: Tensor, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> tuple[Tensor, CommHandle | None]:
    """Return the reduction of a tensor over all processes of a group, and a handle.

    `op` is "sum", "prod", "max", "min" or "avg"; `group` names the group of processes; without
    `async_op` the handle is None.
    """
    name = "all_reduce"
    found, kind = find_group(name, group), operation_of(name, op)
    return _outcome(name, found.transport.reduce(tensor_of(name, "tensor", tensor), kind), async_op)


def all_gather_into_tensor(
    tensor: Tensor, group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> tuple[Tensor, CommHandle | None]:
    """Return the tensors of all processes of a group, joined along the first axis, and a handle."""
    name = "all_gather_into_tensor"
    return _outcome(name, gathered(tensor_of(name, "tensor", tensor), find_group(name, group)), async_op)


def reduce_scatter_tensor(
    tensor: Tensor, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> tuple[Tensor, CommHandle | None]:
    """Return this process's share of the rows of `tensor`, reduced over all processes.

    With it comes a handle.

    `op` is that of `all_reduce`; `group` names the group of processes; without `async_op` the
    handle is None.
    """
    name = "reduce_scatter_tensor"
    found, kind = find_group(name, group), operation_of(name, op)
    parts = split(name, tensor_of(name, "tensor", tensor), None, found, "")
    rows = [part.shape[0] for part in parts]
    return _outcome(name, found.transport.scatter_rows(tensor, rows, kind), async_op)


def reduce(tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """Return the reduction over all processes in the process `dst`, and the tensor in others.

    `op` is that of `all_reduce`; `group` names the group of processes.
    """
    name = "reduce"
    found, kind = find_group(name, group), operation_of(name, op)
    target = member(name, "dst", dst, found)
    value = found.transport.reduce(tensor_of(name, "tensor", tensor), kind)
    return copied(found.transport.at(target, value, tensor))


def broadcast(tensor: Tensor, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """Return the tensor of the process `src`."""
    name = "broadcast"
    found = find_group(name, group)
    source = member(name, "src", src, found)
    return copied(found.transport.broadcast(tensor_of(name, "tensor", tensor), source))


def gather_into_tensor(tensor: Tensor, dst: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """Return the tensors of all processes joined along the first axis, in the process `dst`; zeros
    in others.
    """
    name = "gather_into_tensor"
    found = find_group(name, group)
    values = found.transport.collect(tensor_of(name, "tensor", tensor), member(name, "dst", dst, found))
    if values:
        return copied(joined(values))
    rows = tensor if tensor.ndim else tensor.reshape((1,))
    return ops.zeros_like(joined([rows] * found.size))


def scatter_tensor(tensor: Tensor, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """Return this process's share of the rows of the tensor of the process `src`."""
    name = "scatter_tensor"
    found = find_group(name, group)
    source = member(name, "src", src, found)
    parts = split(name, tensor_of(name, "tensor", tensor), None, found, "")
    return copied(scattered(parts, tensor, parts[found.rank].shape, source, found))


def barrier(group: str = HCCL_WORLD_COMM_GROUP) -> None:
    """Wait until all processes of a group have called this."""
    collectives.barrier(group)


def all_to_all_with_output_shape(
    output_shape_list: Sequence[Any],
    input_tensor_list: Sequence[Tensor],
    group: str | None = None,
    async_op: bool = False,
) -> tuple[tuple[Tensor, ...], CommHandle | None]:
    """Return the tensors that the processes sent to this one, and a handle.

    `output_shape_list` has their shapes, or tensors of these shapes; `input_tensor_list` has the
    tensors to send, one for each process; `group` names the group of processes; without `async_op`
    the handle is None. Raises ValueError where another shape arrives.
    """
    name = "all_to_all_with_output_shape"
    found = find_group(name, group)
    given = [
        tensor_of(name, "an element of input_tensor_list", t)
        for t in counted(name, "input_tensor_list", input_tensor_list, found)
    ]
    shapes = [_shape_of(shape) for shape in counted(name, "output_shape_list", output_shape_list, found)]
    received = found.transport.exchange(given, shapes)
    for shape, value in zip(output_shape_list, received):
        _check_shape(name, shape, value)
    return tuple(copied(value) for value in received), started(name, async_op)


def all_to_all_single_with_output_shape(
    output_shape: Any,
    tensor: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: str | None = None,
    async_op: bool = False,
) -> tuple[Tensor, CommHandle | None]:
    """Return the rows that the processes sent to this one, joined, and a handle.

    `output_shape` is the shape of the result, or a tensor of that shape; `tensor` has the rows to
    send; `input_split_sizes` and `output_split_sizes` have the number of rows to and from each
    process, by default equal; `group` names the group of processes; without `async_op` the handle
    is None. Raises ValueError where another shape arrives.
    """
    name = "all_to_all_single_with_output_shape"
    found = find_group(name, group)
    parts = split(name, tensor_of(name, "tensor", tensor), input_split_sizes, found, "input_split_sizes")
    whole = tensor.shape if found.size == 1 else _shape_of(output_shape)
    rows = row_counts(name, whole[0], output_split_sizes, found, "output_split_sizes")
    value = joined(found.transport.exchange(parts, [(n, *tensor.shape[1:]) for n in rows]))
    _check_shape(name, output_shape, value)
    return _outcome(name, value, async_op)


def _shape_of(wanted: Any) -> tuple[Any, ...]:
    return tuple(wanted.shape if isinstance(wanted, Tensor) else wanted)


def _check_shape(name: str, wanted: Any, value: Tensor) -> None:
    shape = _shape_of(wanted)
    if shape != value.shape:
        raise ValueError(f"{name}: a tensor of shape {value.shape} arrived where {shape} was announced")


def get_cache_group_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the rank of this process in a group."""
    return groups.get_rank(group)


def get_cache_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of processes of a group."""
    return groups.get_group_size(group)
