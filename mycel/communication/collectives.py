"""Collective operations on tensors, composed of the operations of a group's transport.

An operation checks its arguments, asks the transport of its group, and writes the result into the
tensor it was given, as MindSpore does by default; after `set_comm_ops_inplace` (False), operations
that can do so return a new tensor and a handle instead. Results are available at once, so that a
handle's `wait` has nothing to wait for. Writing and returning are recorded and staged like any
other operation, so in a group of one process gradients pass through as through the identity.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import shape as S
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication.groups import Group, find_group, member
from mycel.communication.steps import (
    ReduceOp,
    copied,
    counted,
    finish,
    gathered,
    joined,
    operation_of,
    row_counts,
    scattered,
    send_counts,
    split,
    started,
    tensor_of,
    tensors_of,
    write,
    writes,
)

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_into_tensor_uneven",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "all_to_all_v_c",
    "barrier",
    "broadcast",
    "gather_into_tensor",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven",
    "scatter_tensor",
]


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False) -> Any:
    """Replace the values of a tensor by their reduction over all processes.

    Args:
        tensor (Tensor): The tensor.
        op (str): "sum", "prod", "max", "min" or "avg". Default: "sum".
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Raises:
        TypeError: For arguments of other types.
        ValueError: For an unknown group.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([1.0, 2.0])
        >>> ms.ops.all_reduce(x)
        >>> x.tolist()
        [1.0, 2.0]
    """
    name = "all_reduce"
    found, kind = find_group(name, group), operation_of(name, op)
    return finish(name, tensor, found.transport.reduce(tensor_of(name, "tensor", tensor), kind), async_op)


def reduce(tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False) -> Any:
    """Replace the values of a tensor, in one process only, by their reduction over all processes.

    Args:
        tensor (Tensor): The tensor.
        dst (int): The rank that it goes to.
        op (str): "sum", "prod", "max", "min" or "avg". Default: "sum".
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.reduce(ms.Tensor([1.0]), 0, async_op=True).wait()
    """
    name = "reduce"
    found, kind, handle = find_group(name, group), operation_of(name, op), started(name, async_op)
    target = member(name, "dst", dst, found)
    value = found.transport.reduce(tensor_of(name, "tensor", tensor), kind)
    write(name, tensor, found.transport.at(target, value, tensor))
    return handle


def broadcast(tensor: Tensor, src: int, group: str | None = None, async_op: bool = False) -> Any:
    """Replace the values of a tensor by those in one process.

    Args:
        tensor (Tensor): The tensor.
        src (int): The rank that it comes from.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.broadcast(ms.Tensor([1.0]), 0)
    """
    name = "broadcast"
    found, handle = find_group(name, group), started(name, async_op)
    write(name, tensor, found.transport.broadcast(tensor_of(name, "tensor", tensor), member(name, "src", src, found)))
    return handle


def barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> Any:
    """Wait until all processes of a group have called this.

    `group` names the group of processes, None all of them; with `async_op` a handle is returned.
    `device_ids` has no effect.

    >>> import mycel as ms
    >>> ms.ops.barrier()
    """
    find_group("barrier", group).transport.barrier()
    return started("barrier", async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: str | None = None, async_op: bool = False) -> Any:
    """Write the values of a tensor in each process into the tensors of a list.

    Args:
        tensor_list (list[Tensor]): A tensor for each process.
        tensor (Tensor): The tensor.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Raises:
        TypeError: Unless the list has one tensor for each process.
        ValueError: For different types or shapes.

    Examples:
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
    output_tensor: Tensor, input_tensor: Tensor, group: str | None = None, async_op: bool = False
) -> Any:
    """Write the values of all processes into one tensor, concatenated along the first axis.

    Args:
        output_tensor (Tensor): The tensor that is written to.
        input_tensor (Tensor): This process's tensor.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
        >>> import mycel as ms
        >>> out = ms.Tensor([0.0])
        >>> ms.ops.all_gather_into_tensor(out, ms.Tensor([5.0]))
        >>> out.tolist()
        [5.0]
    """
    name = "all_gather_into_tensor"
    found = find_group(name, group)
    value = gathered(tensor_of(name, "input_tensor", input_tensor), found)
    return finish(name, output_tensor, value, async_op)


def all_gather_into_tensor_uneven(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> Any:
    """Write the values of all processes into one tensor, concatenated along the first axis.

    Args:
        output (Tensor): The tensor that is written to.
        input (Tensor): This process's tensor.
        output_split_sizes (list[int] | None): The number of rows from each process; None for as
            many of all. Default: None.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
        >>> import mycel as ms
        >>> out = ms.Tensor([0.0, 0.0])
        >>> ms.ops.all_gather_into_tensor_uneven(out, ms.Tensor([5.0, 6.0]), [2])
        >>> out.tolist()
        [5.0, 6.0]
    """
    name = "all_gather_into_tensor_uneven"
    found, handle = find_group(name, group), started(name, async_op)
    target = tensor_of(name, "output", output)
    if target.ndim == 0:
        raise ShapeError(f"{name}: a scalar has no rows to divide; give it an axis")
    rows = row_counts(name, target.shape[0], output_split_sizes, found, "output_split_sizes")
    own = rows[found.rank]
    if tensor_of(name, "input", input).shape[:1] != (own,):
        raise ValueError(f"{name}: input {input._type} must have the {own} rows that output has for this process")
    write(name, output, found.transport.gather_rows(input, rows))
    return handle


def gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, dst: int = 0, group: str | None = None, async_op: bool = False
) -> Any:
    """Write the values of all processes into a tensor of one process, concatenated along the first
    axis.

    Args:
        output_tensor (Tensor): The tensor that is written to.
        input_tensor (Tensor): This process's tensor.
        dst (int): The rank that it goes to. Default: 0.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
        >>> import mycel as ms
        >>> out = ms.Tensor([0.0])
        >>> ms.ops.gather_into_tensor(out, ms.Tensor([5.0]))
        >>> out.tolist()
        [5.0]
    """
    name = "gather_into_tensor"
    found, handle = find_group(name, group), started(name, async_op)
    target = member(name, "dst", dst, found)
    values = found.transport.collect(tensor_of(name, "input_tensor", input_tensor), target)
    if values:
        write(name, output_tensor, joined(values))
    return handle


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None,
    dst: int = 0,
    group: str | None = None,
    async_op: bool = False,
) -> Any:
    """Write the values of `tensor` in each process into the tensors of `gather_list` of the process
    `dst`.

    Other processes do not read the list. `group` names the group of processes, None all of them;
    with `async_op` a handle is returned.

    >>> import mycel as ms
    >>> out = [ms.Tensor([0.0])]
    >>> ms.mint.distributed.gather(ms.Tensor([5.0]), out)
    >>> out[0].tolist()
    [5.0]
    """
    name = "gather"
    found, handle = find_group(name, group), started(name, async_op)
    place = member(name, "dst", dst, found)
    targets = tensors_of(name, "gather_list", gather_list, found) if found.rank == place else []
    for target, value in zip(targets, found.transport.collect(tensor_of(name, "tensor", tensor), place)):
        write(name, target, value)
    return handle


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None,
    src: int = 0,
    group: str | None = None,
    async_op: bool = False,
) -> Any:
    """Write into `tensor` the element for this process of the `scatter_list` of the process `src`.

    Other processes do not read the list. `group` names the group of processes, None all of them;
    with `async_op` a handle is returned.

    >>> import mycel as ms
    >>> out = ms.Tensor([0.0])
    >>> ms.mint.distributed.scatter(out, [ms.Tensor([5.0])])
    >>> out.tolist()
    [5.0]
    """
    name = "scatter"
    found, handle = find_group(name, group), started(name, async_op)
    source, target = member(name, "src", src, found), tensor_of(name, "tensor", tensor)
    given = tensors_of(name, "scatter_list", scatter_list, found) if found.rank == source else []
    write(name, target, scattered(given, target, target.shape, source, found))
    return handle


def scatter_tensor(
    output_tensor: Tensor, input_tensor: Tensor, src: int = 0, group: str | None = None, async_op: bool = False
) -> Any:
    """Write into a tensor this process's share of the rows of a tensor of one process.

    Args:
        output_tensor (Tensor): The tensor that is written to.
        input_tensor (Tensor): This process's tensor.
        src (int): The rank that it comes from. Default: 0.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
        >>> import mycel as ms
        >>> out = ms.Tensor([0.0])
        >>> ms.ops.scatter_tensor(out, ms.Tensor([5.0]))
        >>> out.tolist()
        [5.0]
    """
    name = "scatter_tensor"
    found, handle = find_group(name, group), started(name, async_op)
    source, target = member(name, "src", src, found), tensor_of(name, "output_tensor", output_tensor)
    whole = tensor_of(name, "input_tensor", input_tensor)
    parts = split(name, whole, None, found, "") if found.rank == source else []
    write(name, target, scattered(parts, target, target.shape, source, found))
    return handle


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: str = ReduceOp.SUM,
    group: str | None = None,
    async_op: bool = False,
) -> Any:
    """Write into `output` the reduction, over all processes, of their rows for this process.

    Args:
        output (Tensor): The tensor that is written to.
        input_list (list[Tensor]): A tensor for each process.
        op (str): "sum", "prod", "max", "min" or "avg". Default: "sum".
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
        >>> import mycel as ms
        >>> out = ms.Tensor([0.0])
        >>> ms.ops.reduce_scatter(out, [ms.Tensor([5.0])])
        >>> out.tolist()
        [5.0]
    """
    name = "reduce_scatter"
    found, kind, handle = find_group(name, group), operation_of(name, op), started(name, async_op)
    parts = tensors_of(name, "input_list", input_list, found)
    if len({p.shape for p in parts}) > 1:
        write(name, output, [found.transport.reduce(x, kind) for x in parts][found.rank])
        return handle
    rows = joined([eager.apply(S.RESHAPE, p, shape=(1, *p.shape)) for p in parts])
    own = found.transport.scatter_rows(rows, (1,) * found.size, kind)
    write(name, output, eager.apply(S.RESHAPE, own, shape=parts[0].shape))
    return handle


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False
) -> Any:
    """Write into `output` the reduction, over all processes, of their rows for this process.

    Args:
        output (Tensor): The tensor that is written to.
        input (Tensor): This process's tensor.
        op (str): "sum", "prod", "max", "min" or "avg". Default: "sum".
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
        >>> import mycel as ms
        >>> out = ms.Tensor([0.0])
        >>> ms.ops.reduce_scatter_tensor(out, ms.Tensor([5.0]))
        >>> out.tolist()
        [5.0]
    """
    name = "reduce_scatter_tensor"
    found, kind = find_group(name, group), operation_of(name, op)
    return finish(name, output, share_of(name, tensor_of(name, "input", input), None, kind, found), async_op)


def reduce_scatter_tensor_uneven(
    output: Tensor,
    input: Tensor,
    input_split_sizes: list[int] | None = None,
    op: str = ReduceOp.SUM,
    group: str | None = None,
    async_op: bool = False,
) -> Any:
    """Write into `output` the reduction, over all processes, of their rows for this process.

    Args:
        output (Tensor): The tensor that is written to.
        input (Tensor): This process's tensor.
        input_split_sizes (list[int] | None): The number of rows to each process; None for as many
            to all. Default: None.
        op (str): "sum", "prod", "max", "min" or "avg". Default: "sum".
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
        >>> import mycel as ms
        >>> out = ms.Tensor([0.0, 0.0])
        >>> ms.ops.reduce_scatter_tensor_uneven(out, ms.Tensor([5.0, 6.0]), [2])
        >>> out.tolist()
        [5.0, 6.0]
    """
    name = "reduce_scatter_tensor_uneven"
    found, kind, handle = find_group(name, group), operation_of(name, op), started(name, async_op)
    write(name, output, share_of(name, tensor_of(name, "input", input), input_split_sizes, kind, found))
    return handle


def share_of(name: str, x: Tensor, sizes: list[int] | None, kind: str, group: Group) -> Tensor:
    """Return this process's share of the rows of the reduction of `x` over a `group`, by `kind`.

    `sizes` has the number of rows of each process, or is None for equal ones; `name` is the
    function in errors.
    """
    if x.ndim == 0:
        raise ShapeError(f"{name}: a scalar has no rows to divide; give it an axis")
    return group.transport.scatter_rows(x, row_counts(name, x.shape[0], sizes, group, "input_split_sizes"), kind)


def _shape_of(wanted: Any) -> tuple[Any, ...]:
    return tuple(wanted.shape if isinstance(wanted, Tensor) else wanted)


def _new(name: str, wanted: Any, value: Tensor) -> None:
    """Raise ValueError unless a shape, or a tensor's shape, is that of a result."""
    shape = _shape_of(wanted)
    if shape != value.shape:
        raise ShapeError(f"{name}: the output of shape {shape} must be of the shape of the result, {value.shape}")


def all_to_all(
    output_tensor_list: list[Any], input_tensor_list: list[Tensor], group: str | None = None, async_op: bool = False
) -> Any:
    """Send each process its tensor, and write what each process sent into other tensors.

    Args:
        output_tensor_list (list[Any]): What each process sent is written into these.
        input_tensor_list (list[Tensor]): A tensor for each process.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
        >>> import mycel as ms
        >>> out = [ms.Tensor([0.0])]
        >>> ms.ops.all_to_all(out, [ms.Tensor([5.0])])
        >>> out[0].tolist()
        [5.0]
    """
    name = "all_to_all"
    found, handle = find_group(name, group), started(name, async_op)
    given = tensors_of(name, "input_tensor_list", input_tensor_list, found)
    targets = counted(name, "output_tensor_list", output_tensor_list, found)
    values = found.transport.exchange(given, [_shape_of(t) for t in targets])
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
    group: str | None = None,
    async_op: bool = False,
) -> Any:
    """Send each process its rows, and write the rows that the processes sent into a tensor,
    concatenated in the order of ranks.

    Args:
        output (Tensor): The tensor that is written to.
        input (Tensor): This process's tensor.
        output_split_sizes (list[int] | None): The number of rows from each process; None for as
            many of all. Default: None.
        input_split_sizes (list[int] | None): The number of rows to each process; None for as many
            to all. Default: None.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
        >>> import mycel as ms
        >>> out = ms.Tensor([0.0])
        >>> ms.ops.all_to_all_single(out, ms.Tensor([5.0]))
        >>> out.tolist()
        [5.0]
    """
    name = "all_to_all_single"
    found = find_group(name, group)
    parts = split(name, tensor_of(name, "input", input), input_split_sizes, found, "input_split_sizes")
    if found.size == 1:
        value = joined(found.transport.exchange(parts, ()))
        row_counts(name, value.shape[0], output_split_sizes, found, "output_split_sizes")
    else:
        rows = row_counts(name, _shape_of(output)[0], output_split_sizes, found, "output_split_sizes")
        value = joined(found.transport.exchange(parts, [(n, *input.shape[1:]) for n in rows]))
    if not writes(name):
        _new(name, output, value)
    return finish(name, output, value, async_op)


def all_to_all_v_c(
    output: Tensor, input: Tensor, send_count_matrix: Any, group: str | None = None, async_op: bool = False
) -> Any:
    """Send each process its rows, and write the rows that the processes sent into a tensor,
    concatenated in the order of ranks.

    Args:
        output (Tensor): The tensor that is written to.
        input (Tensor): This process's tensor.
        send_count_matrix (list[int]): The numbers of rows between all processes, in row-major
            order: element i * size + j from i to j.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        async_op (bool): Whether to return at once with a handle. Default: False.

    Returns:
        Any: A handle with `async_op`, else None; after ``set_comm_ops_inplace(False)`` the values,
            and this.

    Examples:
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
    shapes = [(row[found.rank], *input.shape[1:]) for row in counts]
    write(name, output, joined(found.transport.exchange(parts, shapes)))
    return handle


# Products of matrices of which processes have parts.
