"""Collective operations on tensors, composed of what a group's transport does.

An operation checks its arguments, asks the transport of its group, and writes what comes into the
tensor it was given, as MindSpore does by default; after `set_comm_ops_inplace` (False) those that
can give a new tensor and a handle instead. Results come at once: a handle's `wait` has nothing to
wait for. What is written and given is recorded and staged like any other operation, so in a group
of one process gradients pass through as through the identity.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from mycel.base import arguments
from mycel.base.errors import ShapeError
from mycel.communication.groups import Group, find_group, member
from mycel.communication.steps import (
    ReduceOp,
    copied,
    counted,
    finish,
    joined,
    operation_of,
    row_counts,
    send_counts,
    split,
    started,
    tensor_of,
    tensors_of,
    write,
    writes,
)
from mycel.core import eager
from mycel.core.tensor import Tensor
from mycel.prims import linalg as L
from mycel.prims import shape as S

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_into_tensor_uneven",
    "all_gather_matmul",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "all_to_all_v_c",
    "barrier",
    "broadcast",
    "gather_into_tensor",
    "matmul_reduce_scatter",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven",
    "scatter_tensor",
]


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Optional[str] = None, async_op: bool = False) -> Any:
    """Give `tensor` the sum ("prod", "max", "min", "avg") of its values in all processes; a handle
    if `async_op`.

    TypeError for arguments of other types, ValueError for a group that there is not.

    >>> import mycel as ms
    >>> x = ms.Tensor([1.0, 2.0])
    >>> ms.ops.all_reduce(x)
    >>> x.tolist()
    [1.0, 2.0]
    """
    name = "all_reduce"
    found, kind = find_group(name, group), operation_of(name, op)
    return finish(name, tensor, found.transport.reduce(tensor_of(name, "tensor", tensor), kind), async_op)


def reduce(
    tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: Optional[str] = None, async_op: bool = False
) -> Any:
    """Return `all_reduce` of which only the process `dst` gets the result.

    >>> import mycel as ms
    >>> ms.ops.reduce(ms.Tensor([1.0]), 0, async_op=True).wait()
    """
    name = "reduce"
    found, kind, handle = find_group(name, group), operation_of(name, op), started(name, async_op)
    target = member(name, "dst", dst, found)
    value = found.transport.reduce(tensor_of(name, "tensor", tensor), kind)
    if found.rank == target:
        write(name, tensor, value)
    return handle


def broadcast(tensor: Tensor, src: int, group: Optional[str] = None, async_op: bool = False) -> Any:
    """Give `tensor` the values that it has in the process `src`.

    >>> import mycel as ms
    >>> ms.ops.broadcast(ms.Tensor([1.0]), 0)
    """
    name = "broadcast"
    found, handle = find_group(name, group), started(name, async_op)
    write(name, tensor, found.transport.broadcast(tensor_of(name, "tensor", tensor), member(name, "src", src, found)))
    return handle


def barrier(group: Optional[str] = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Wait until all processes of a group are here.

    >>> import mycel as ms
    >>> ms.ops.barrier()
    """
    find_group("barrier", group).transport.barrier()
    return started("barrier", async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Optional[str] = None, async_op: bool = False) -> Any:
    """Give the tensors of a list the values that `tensor` has in each process.

    TypeError where the list has not one tensor for each process; ValueError where types and shapes
    differ.

    >>> import mycel as ms
    >>> out = [ms.Tensor([0.0])]
    >>> ms.ops.all_gather(out, ms.Tensor([5.0]))
    >>> out[0].tolist()
    [5.0]
    """
    name = "all_gather"
    found, handle = find_group(name, group), started(name, async_op)
    targets = tensors_of(name, "tensor_list", tensor_list, found)
    for target, value in zip(targets, found.transport.gather(tensor_of(name, "tensor", tensor))):
        write(name, target, value)
    return handle


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Optional[str] = None, async_op: bool = False
) -> Any:
    """Give `output_tensor` the values that `input_tensor` has in each process, one after the other
    along the first axis.

    >>> import mycel as ms
    >>> out = ms.Tensor([0.0])
    >>> ms.ops.all_gather_into_tensor(out, ms.Tensor([5.0]))
    >>> out.tolist()
    [5.0]
    """
    name = "all_gather_into_tensor"
    found = find_group(name, group)
    value = joined(found.transport.gather(tensor_of(name, "input_tensor", input_tensor)))
    return finish(name, output_tensor, value, async_op)


def all_gather_into_tensor_uneven(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Optional[list[int]] = None,
    group: Optional[str] = None,
    async_op: bool = False,
) -> Any:
    """Return `all_gather_into_tensor` of tensors with as many rows as `output_split_sizes` says for
    each process.

    >>> import mycel as ms
    >>> out = ms.Tensor([0.0, 0.0])
    >>> ms.ops.all_gather_into_tensor_uneven(out, ms.Tensor([5.0, 6.0]), [2])
    >>> out.tolist()
    [5.0, 6.0]
    """
    name = "all_gather_into_tensor_uneven"
    found, handle = find_group(name, group), started(name, async_op)
    rows = split(name, tensor_of(name, "output", output), output_split_sizes, found, "output_split_sizes")
    own = rows[found.rank].shape[0]
    if tensor_of(name, "input", input).shape[:1] != (own,):
        raise ValueError(f"{name}: input {input._type} must have the {own} rows that output has for this process")
    write(name, output, joined(found.transport.gather(input)))
    return handle


def gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, dst: int = 0, group: Optional[str] = None, async_op: bool = False
) -> Any:
    """Return `all_gather_into_tensor` of which only the process `dst` gets the result.

    >>> import mycel as ms
    >>> out = ms.Tensor([0.0])
    >>> ms.ops.gather_into_tensor(out, ms.Tensor([5.0]))
    >>> out.tolist()
    [5.0]
    """
    name = "gather_into_tensor"
    found, handle = find_group(name, group), started(name, async_op)
    target = member(name, "dst", dst, found)
    value = joined(found.transport.gather(tensor_of(name, "input_tensor", input_tensor)))
    if found.rank == target:
        write(name, output_tensor, value)
    return handle


def gather(
    tensor: Tensor,
    gather_list: Optional[list[Tensor]],
    dst: int = 0,
    group: Optional[str] = None,
    async_op: bool = False,
) -> Any:
    """Give the tensors of a list, in the process `dst`, the values that `tensor` has in each
    process; elsewhere the list is not read.

    >>> import mycel as ms
    >>> out = [ms.Tensor([0.0])]
    >>> ms.mint.distributed.gather(ms.Tensor([5.0]), out)
    >>> out[0].tolist()
    [5.0]
    """
    name = "gather"
    found, handle = find_group(name, group), started(name, async_op)
    values = found.transport.gather(tensor_of(name, "tensor", tensor))
    if found.rank == member(name, "dst", dst, found):
        for target, value in zip(tensors_of(name, "gather_list", gather_list, found), values):
            write(name, target, value)
    return handle


def scatter(
    tensor: Tensor,
    scatter_list: Optional[list[Tensor]],
    src: int = 0,
    group: Optional[str] = None,
    async_op: bool = False,
) -> Any:
    """Give `tensor` this process's own of the tensors of a list that the process `src` has.

    Elsewhere the list is not read.

    >>> import mycel as ms
    >>> out = ms.Tensor([0.0])
    >>> ms.mint.distributed.scatter(out, [ms.Tensor([5.0])])
    >>> out.tolist()
    [5.0]
    """
    name = "scatter"
    found, handle = find_group(name, group), started(name, async_op)
    here = found.rank == member(name, "src", src, found)
    given = tensors_of(name, "scatter_list", scatter_list, found) if here else [tensor] * found.size
    whole = [found.transport.broadcast(t, src) for t in given]
    write(name, tensor_of(name, "tensor", tensor), whole[found.rank])
    return handle


def scatter_tensor(
    output_tensor: Tensor, input_tensor: Tensor, src: int = 0, group: Optional[str] = None, async_op: bool = False
) -> Any:
    """Give `output_tensor` this process's share of the rows that `input_tensor` has in the process
    `src`.

    >>> import mycel as ms
    >>> out = ms.Tensor([0.0])
    >>> ms.ops.scatter_tensor(out, ms.Tensor([5.0]))
    >>> out.tolist()
    [5.0]
    """
    name = "scatter_tensor"
    found, handle = find_group(name, group), started(name, async_op)
    whole = found.transport.broadcast(tensor_of(name, "input_tensor", input_tensor), member(name, "src", src, found))
    write(name, output_tensor, split(name, whole, None, found, "")[found.rank])
    return handle


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: str = ReduceOp.SUM,
    group: Optional[str] = None,
    async_op: bool = False,
) -> Any:
    """Give `output` the sum over all processes of their tensors for this one.

    `input_list` has one for each process.

    >>> import mycel as ms
    >>> out = ms.Tensor([0.0])
    >>> ms.ops.reduce_scatter(out, [ms.Tensor([5.0])])
    >>> out.tolist()
    [5.0]
    """
    name = "reduce_scatter"
    found, kind, handle = find_group(name, group), operation_of(name, op), started(name, async_op)
    parts = tensors_of(name, "input_list", input_list, found)
    write(name, output, [found.transport.reduce(x, kind) for x in parts][found.rank])
    return handle


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = ReduceOp.SUM, group: Optional[str] = None, async_op: bool = False
) -> Any:
    """Give `output` this process's share of the rows of the sum of `input` over all processes.

    >>> import mycel as ms
    >>> out = ms.Tensor([0.0])
    >>> ms.ops.reduce_scatter_tensor(out, ms.Tensor([5.0]))
    >>> out.tolist()
    [5.0]
    """
    name = "reduce_scatter_tensor"
    found, kind = find_group(name, group), operation_of(name, op)
    parts = split(name, tensor_of(name, "input", input), None, found, "")
    return finish(name, output, [found.transport.reduce(x, kind) for x in parts][found.rank], async_op)


def reduce_scatter_tensor_uneven(
    output: Tensor,
    input: Tensor,
    input_split_sizes: Optional[list[int]] = None,
    op: str = ReduceOp.SUM,
    group: Optional[str] = None,
    async_op: bool = False,
) -> Any:
    """Return `reduce_scatter_tensor` with shares of as many rows as `input_split_sizes` says.

    >>> import mycel as ms
    >>> out = ms.Tensor([0.0, 0.0])
    >>> ms.ops.reduce_scatter_tensor_uneven(out, ms.Tensor([5.0, 6.0]), [2])
    >>> out.tolist()
    [5.0, 6.0]
    """
    name = "reduce_scatter_tensor_uneven"
    found, kind, handle = find_group(name, group), operation_of(name, op), started(name, async_op)
    parts = split(name, tensor_of(name, "input", input), input_split_sizes, found, "input_split_sizes")
    write(name, output, [found.transport.reduce(x, kind) for x in parts][found.rank])
    return handle


def _new(name: str, wanted: Any, value: Tensor) -> None:
    """Raise ValueError unless a shape, or a tensor's shape, is that of a result."""
    shape = tuple(wanted.shape if isinstance(wanted, Tensor) else wanted)
    if shape != value.shape:
        raise ShapeError(f"{name}: the output of shape {shape} must be of the shape of the result, {value.shape}")


def all_to_all(
    output_tensor_list: list[Any], input_tensor_list: list[Tensor], group: Optional[str] = None, async_op: bool = False
) -> Any:
    """Send each process its tensor of a list, and give the tensors of another list what each
    process sent.

    >>> import mycel as ms
    >>> out = [ms.Tensor([0.0])]
    >>> ms.ops.all_to_all(out, [ms.Tensor([5.0])])
    >>> out[0].tolist()
    [5.0]
    """
    name = "all_to_all"
    found, handle = find_group(name, group), started(name, async_op)
    values = found.transport.exchange(tensors_of(name, "input_tensor_list", input_tensor_list, found))
    targets = counted(name, "output_tensor_list", output_tensor_list, found)
    for target, value in zip(targets, values):
        if writes(name):
            write(name, target, value)
        else:
            _new(name, target, value)
    return handle if writes(name) else ([copied(v) for v in values], handle)


def all_to_all_single(
    output: Any,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Optional[str] = None,
    async_op: bool = False,
) -> Any:
    """Send each process its rows of `input`, and give `output` what each process sent, one after
    the other.

    >>> import mycel as ms
    >>> out = ms.Tensor([0.0])
    >>> ms.ops.all_to_all_single(out, ms.Tensor([5.0]))
    >>> out.tolist()
    [5.0]
    """
    name = "all_to_all_single"
    found = find_group(name, group)
    parts = split(name, tensor_of(name, "input", input), input_split_sizes, found, "input_split_sizes")
    value = joined(found.transport.exchange(parts))
    row_counts(name, value.shape[0], output_split_sizes, found, "output_split_sizes")
    if not writes(name):
        _new(name, output, value)
    return finish(name, output, value, async_op)


def all_to_all_v_c(
    output: Tensor, input: Tensor, send_count_matrix: Any, group: Optional[str] = None, async_op: bool = False
) -> Any:
    """Return `all_to_all_single` with the rows that each process sends to each other one in a
    matrix, row-major: element i * size + j from i to j.

    >>> import mycel as ms
    >>> out = ms.Tensor([0.0])
    >>> ms.ops.all_to_all_v_c(out, ms.Tensor([5.0]), [1])
    >>> out.tolist()
    [5.0]
    """
    name = "all_to_all_v_c"
    found, handle = find_group(name, group), started(name, async_op)
    counts = send_counts(name, send_count_matrix, found)
    parts = split(name, tensor_of(name, "input", input), counts[found.rank], found, "send_count_matrix")
    write(name, output, joined(found.transport.exchange(parts)))
    return handle


# Products of matrices of which processes have parts.


def _factors(
    name: str, input: Any, x2: Any, group: Any, world_size: Any, trans_x2: Any, **fixed: Any
) -> tuple[Tensor, Tensor, Group]:
    found = find_group(name, group)
    if arguments.integer(name, "world_size", world_size, numpy=False) != found.size:
        raise ValueError(f"{name}: world_size is {world_size}, but the group has {found.size} members")
    for parameter, (value, only) in fixed.items():
        if value != only:
            raise ValueError(f"{name}: {parameter} must be {only!r}, not {value!r}")
    a, b = tensor_of(name, "input", input), tensor_of(name, "x2", x2)
    if a.ndim != 2 or b.ndim != 2 or a.dtype is not b.dtype or not a.dtype.is_floating:
        raise ShapeError(f"{name}: takes two matrices of one floating type, not {a._type} and {b._type}")
    b = eager.apply(S.TRANSPOSE, b, permutation=(1, 0)) if trans_x2 else b
    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"{name}: inner dimensions differ: {a.shape} @ {b.shape}; transpose x2 by trans_x2?")
    return a, b, found


def all_gather_matmul(
    input: Tensor,
    x2: Tensor,
    group: str,
    world_size: int,
    *,
    bias: Any = None,
    gather_index: int = 0,
    gather_output: bool = True,
    comm_turn: int = 0,
    trans_input: bool = False,
    trans_x2: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the rows that all processes have of a matrix times `x2`, and those rows themselves, an
    empty tensor without `gather_output`.

    ValueError for another `world_size` than the group's, sizes that do not fit, and options that
    have no other value.

    >>> import mycel as ms
    >>> x = ms.Tensor([[1.0, 2.0]])
    >>> ms.ops.all_gather_matmul(x, x, ms.communication.GlobalComm.WORLD_COMM_GROUP, 1, trans_x2=True)[0].tolist()
    [[5.0]]
    """
    a, b, found = _factors(
        "all_gather_matmul",
        input,
        x2,
        group,
        world_size,
        trans_x2,
        bias=(bias, None),
        gather_index=(gather_index, 0),
        comm_turn=(comm_turn, 0),
        trans_input=(trans_input, False),
    )
    whole = joined(found.transport.gather(a))
    kept = copied(whole) if gather_output else Tensor(np.zeros((0,), np.float32)).astype(a.dtype)
    return eager.apply(L.matmul, whole, b), kept


def matmul_reduce_scatter(
    input: Tensor,
    x2: Tensor,
    group: str,
    world_size: int,
    *,
    reduce_op: str = ReduceOp.SUM,
    bias: Any = None,
    comm_turn: int = 0,
    trans_input: bool = False,
    trans_x2: bool = False,
) -> Tensor:
    """This process's share of the rows of the sum over all processes of `input` times `x2`.

    ValueError for another `world_size` than the group's, sizes that do not fit, and options that
    have no other value.

    >>> import mycel as ms
    >>> x = ms.Tensor([[1.0, 2.0]])
    >>> ms.ops.matmul_reduce_scatter(x, x, ms.communication.GlobalComm.WORLD_COMM_GROUP, 1, trans_x2=True).tolist()
    [[5.0]]
    """
    name = "matmul_reduce_scatter"
    a, b, found = _factors(
        name,
        input,
        x2,
        group,
        world_size,
        trans_x2,
        reduce_op=(reduce_op, ReduceOp.SUM),
        bias=(bias, None),
        comm_turn=(comm_turn, 0),
        trans_input=(trans_input, False),
    )
    parts = split(name, eager.apply(L.matmul, a, b), None, found, "")
    return [found.transport.reduce(x, ReduceOp.SUM) for x in parts][found.rank]
