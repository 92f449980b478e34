"""Share what collective operations have in common.

That is how they check their arguments, divide and join tensors, and write or return their results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from mycel.base import arguments
from mycel.base.errors import ShapeError
from mycel.communication.groups import Group
from mycel.core import eager
from mycel.core.tensor import Tensor
from mycel.prims import elementwise as E
from mycel.prims import shape as S

__all__ = ["CommHandle", "ReduceOp", "set_comm_ops_inplace"]


class ReduceOp:
    """Name how the values of several processes become one.

    >>> ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PROD, ReduceOp.AVG
    ('sum', 'max', 'min', 'prod', 'avg')
    """

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    AVG = "avg"


OPERATIONS = (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PROD, ReduceOp.AVG)


class CommHandle:
    """Wait for a communication that was begun; what one process does is done at once.

    >>> CommHandle().wait()
    """

    def wait(self) -> None:
        """Wait until it has ended."""


def tensor_of(name: str, parameter: str, value: Any) -> Tensor:
    """Check for a tensor; TypeError otherwise."""
    return arguments.instance(name, parameter, value, Tensor)


def tensors_of(name: str, parameter: str, values: Any, group: Group) -> list[Tensor]:
    """Check for a list of tensors, one for each member of the group; TypeError otherwise."""
    arguments.sequence(name, parameter, values, "a list of tensors")
    counted(name, parameter, values, group)
    return [tensor_of(name, f"an element of {parameter}", v) for v in values]


def counted(name: str, parameter: str, values: Any, group: Group) -> list[Any]:
    """Check for a list of one element for each member of the group; TypeError otherwise."""
    if not isinstance(values, (list, tuple)) or len(values) != group.size:
        count = len(values) if isinstance(values, (list, tuple)) else type(values).__name__
        raise TypeError(
            f"{name}: {parameter} must be a list of {group.size}, as many as the group has members, not {count}"
        )
    return values  # type: ignore[return-value]


def operation_of(name: str, op: Any) -> str:
    """Check for the name of a reduction; TypeError otherwise."""
    if not isinstance(op, str) or op not in OPERATIONS:
        raise TypeError(f"{name}: op must be one of {', '.join(map(repr, OPERATIONS))}, not {op!r}")
    return op


def copied(x: Tensor) -> Tensor:
    """Copy `x` to a tensor of its own."""
    return eager.apply(E.identity, x)


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Join tensors along the first axis; a scalar counts as a row of one."""
    rows = [x if x.ndim else eager.apply(S.RESHAPE, x, shape=(1,)) for x in parts]
    return rows[0] if len(rows) == 1 else eager.apply(S.CONCAT, *rows, axis=0)


def cut(x: Tensor, start: Any, stop: Any) -> Tensor:
    """Take the rows from `start` to `stop`."""
    if start == 0 and stop == x.shape[0]:
        return x
    rest = x.shape[1:]
    return eager.apply(S.SLICE, x, starts=(start, *(0 for _ in rest)), stops=(stop, *rest), steps=(1,) * x.ndim)


def split(name: str, x: Tensor, sizes: Optional[Sequence[int]], group: Group, parameter: str) -> list[Tensor]:
    """Divide the rows among the members: as `sizes` says, or evenly."""
    if x.ndim == 0:
        raise ShapeError(f"{name}: a scalar has no rows to divide; give it an axis")
    counts = row_counts(name, x.shape[0], sizes, group, parameter)
    ends = list(np.cumsum(counts))
    return [cut(x, int(e) - c, int(e)) for c, e in zip(counts, ends)]


def row_counts(name: str, rows: Any, sizes: Optional[Sequence[int]], group: Group, parameter: str) -> list[int]:
    """Count the rows of each member; ValueError where they do not add up to all rows."""
    if not sizes:
        if rows % group.size:
            raise ValueError(f"{name}: {rows} rows do not divide among the {group.size} members of the group")
        return [rows // group.size] * group.size
    counts = [
        arguments.integer(name, f"an element of {parameter}", s, numpy=False)
        for s in counted(name, parameter, sizes, group)
    ]
    if min(counts) < 0 or sum(counts) != rows:
        raise ValueError(f"{name}: {parameter} {counts} must not be negative and add up to the {rows} rows")
    return counts


def write(name: str, target: Any, value: Tensor) -> None:
    """Give a tensor the values of another; ValueError unless both are of one type and shape."""
    if tensor_of(name, "the output", target).shape != value.shape or target.dtype is not value.dtype:
        raise ShapeError(f"{name}: the output {target._type} must be of the type of the result, {value._type}")
    if target is not value:
        target._replace(copied(value))


def started(name: str, async_op: Any) -> Optional[CommHandle]:
    """Make a handle if one is asked for."""
    arguments.flag(name, "async_op", async_op)
    return CommHandle() if async_op else None


_CHOICE = (
    "all_reduce",
    "all_gather_into_tensor",
    "all_to_all",
    "all_to_all_single",
    "reduce_scatter_tensor",
    "irecv",
    "recv",
)


class _Writing:
    """Keep which functions write into the tensors they are given, an attribute for each."""

    def __init__(self) -> None:
        names = """all_gather all_gather_into_tensor all_gather_into_tensor_uneven all_gather_object all_reduce all_to_all all_to_all_single all_to_all_v_c barrier
    batch_isend_irecv broadcast broadcast_object_list gather_into_tensor gather_object irecv isend recv recv_object_list reduce reduce_scatter
    reduce_scatter_tensor reduce_scatter_tensor_uneven scatter_object_list scatter_tensor send send_object_list"""
        vars(self).update(dict.fromkeys(names.split(), True))


_writing = _Writing()


def writes(name: str) -> bool:
    """Tell whether a function writes into the tensors it is given.

    What is being staged holds as long as that stays so.
    """
    found: bool = getattr(_writing, name)
    staging = eager.local.staging if eager.active else None
    if staging is not None:
        staging.following.guard_attribute(_writing, name, found)
    return found


def set_comm_ops_inplace(is_enable: bool, func_list: Optional[list[str]] = None) -> None:
    """Choose whether functions write into the tensors they are given, or return new ones.

    `func_list` names the functions, None all of them. The choice exists for all_reduce,
    all_gather_into_tensor, all_to_all, all_to_all_single, reduce_scatter_tensor, irecv and recv;
    the others always write. Raises TypeError for other types, ValueError for other names.

    >>> import mycel as ms
    >>> ms.ops.set_comm_ops_inplace(False, ["all_reduce"])
    >>> ms.ops.all_reduce(ms.Tensor([1.0]))[0].tolist()
    [1.0]
    >>> ms.ops.set_comm_ops_inplace(True)
    """
    name = "set_comm_ops_inplace"
    arguments.flag(name, "is_enable", is_enable)
    arguments.optional(name, "func_list", func_list, (list, tuple), "a list of names")
    chosen = list(vars(_writing)) if func_list is None else list(func_list)
    unknown = [n for n in chosen if n not in vars(_writing)]
    if unknown:
        raise ValueError(f"{name}: there is no function {unknown[0]!r} for communication")
    for function in chosen:
        setattr(_writing, function, is_enable)


def finish(name: str, target: Any, value: Tensor, async_op: Any) -> Any:
    """Write a result and return the handle, or return both, as `set_comm_ops_inplace` says."""
    handle = started(name, async_op)
    if not writes(name):
        return copied(value), handle
    write(name, target, value)
    return handle


def send_counts(name: str, matrix: Any, group: Group) -> list[list[int]]:
    """Read a matrix of counts, one for each pair of members; TypeError or ValueError otherwise."""
    numbers = np.asarray(matrix.asnumpy() if isinstance(matrix, Tensor) else matrix)
    if numbers.dtype.kind not in "iu" or numbers.size != group.size**2:
        raise ValueError(
            f"{name}: send_count_matrix must hold {group.size**2} whole numbers, one for each pair of members"
        )
    return [[int(x) for x in row] for row in numbers.reshape(group.size, group.size)]
