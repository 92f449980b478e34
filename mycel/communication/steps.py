"""The common steps of collective operations: they check arguments, divide and join tensors, and
write or return results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication.groups import Group

__all__ = ["CommHandle", "ReduceOp", "set_comm_ops_inplace"]


class ReduceOp:
    """The names of reductions of the values of several processes.

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
    """The handle of a communication, which is complete at once, or where `finish` is given, when
    that has been called.

    >>> CommHandle().wait()
    """

    def __init__(self, finish: Callable[[], None] | None = None) -> None:
        self._finish = finish

    def wait(self) -> None:
        """Wait until the communication is complete."""
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()


def tensor_of(name: str, parameter: str, value: Any) -> Tensor:
    """Return `value`, checked to be a tensor; raises TypeError otherwise."""
    return arguments.instance(name, parameter, value, Tensor)


def tensors_of(name: str, parameter: str, values: Any, group: Group) -> list[Tensor]:
    """Return `values`, checked to be a list of tensors, one for each member of `group`.

    Raises TypeError otherwise; `name` and `parameter` are the function and its argument.
    """
    arguments.sequence(name, parameter, values, "a list of tensors")
    counted(name, parameter, values, group)
    return [tensor_of(name, f"an element of {parameter}", v) for v in values]


def counted(name: str, parameter: str, values: Any, group: Group) -> list[Any]:
    """Return `values`, checked to be a list of one element for each member of `group`.

    Raises TypeError otherwise; `name` and `parameter` are the function and its argument.
    """
    if not isinstance(values, (list, tuple)) or len(values) != group.size:
        count = len(values) if isinstance(values, (list, tuple)) else type(values).__name__
        raise TypeError(
            f"{name}: {parameter} must be a list of {group.size}, as many as the group has members, not {count}"
        )
    return values  # type: ignore[return-value]


def operation_of(name: str, op: Any) -> str:
    """Return `op`, checked to be the name of a reduction; raises TypeError otherwise."""
    if not isinstance(op, str) or op not in OPERATIONS:
        raise TypeError(f"{name}: op must be one of {', '.join(map(repr, OPERATIONS))}, not {op!r}")
    return op


def copied(x: Tensor) -> Tensor:
    """Return a copy of `x`."""
    return eager.apply(E.identity, x)


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Return tensors concatenated along the first axis; a scalar counts as a row of one."""
    rows = [x if x.ndim else eager.apply(S.RESHAPE, x, shape=(1,)) for x in parts]
    return rows[0] if len(rows) == 1 else eager.apply(S.CONCAT, *rows, axis=0)


def row_of(x: Tensor) -> Tensor:
    """Return a tensor that has rows: a scalar is a row of one."""
    return x if x.ndim else eager.apply(S.RESHAPE, x, shape=(1,))


def gathered(x: Tensor, group: Group) -> Tensor:
    """Return the rows of `x` in all members of `group`, which have as many."""
    rows = row_of(x)
    return group.transport.gather_rows(rows, (rows.shape[0],) * group.size)


def nothing(x: Tensor) -> Tensor:
    """Return no element of the type of `x`."""
    x = eager.apply(E.stop_gradient, x)
    return eager.apply(S.SLICE, eager.apply(S.RESHAPE, x, shape=(x.size,)), starts=(0,), stops=(0,), steps=(1,))


def scattered(parts: Sequence[Tensor], like: Tensor, shape: tuple[int, ...], source: int, group: Group) -> Tensor:
    """Return the element for this process of the `parts` of one member, where the others have none.

    The result has the type of `like` and the given `shape`; `source` is the member's rank in
    `group`. It has no derivative between processes.
    """
    if group.size == 1:
        return parts[0]
    given = [eager.apply(E.stop_gradient, p) for p in parts] if group.rank == source else [nothing(like)] * group.size
    shapes = [tuple(shape) if k == source else (0,) for k in range(group.size)]
    return group.transport.exchange(given, shapes)[source]


def cut(x: Tensor, start: Any, stop: Any) -> Tensor:
    """Return the rows from `start` to `stop`."""
    if start == 0 and stop == x.shape[0]:
        return x
    rest = x.shape[1:]
    return eager.apply(S.SLICE, x, starts=(start, *(0 for _ in rest)), stops=(stop, *rest), steps=(1,) * x.ndim)


def split(name: str, x: Tensor, sizes: Sequence[int] | None, group: Group, parameter: str) -> list[Tensor]:
    """Return the rows of `x` divided among the members of `group`.

    `sizes` has the number of rows of each; None divides them evenly. `name` and `parameter` are the
    function and the argument with the sizes, for errors.
    """
    if x.ndim == 0:
        raise ShapeError(f"{name}: a scalar has no rows to divide; give it an axis")
    counts = row_counts(name, x.shape[0], sizes, group, parameter)
    ends = list(np.cumsum(counts))
    return [cut(x, int(e) - c, int(e)) for c, e in zip(counts, ends)]


def row_counts(name: str, rows: Any, sizes: Sequence[int] | None, group: Group, parameter: str) -> list[int]:
    """Return the number of rows of each member of `group`, from `sizes`, or None for equal numbers.

    Raises ValueError, naming the function `name` and the argument `parameter`, unless they add up
    to `rows`.
    """
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
    """Write the values of one tensor into another.

    Raises ValueError unless both have the same type and shape.
    """
    if tensor_of(name, "the output", target).shape != value.shape or target.dtype is not value.dtype:
        raise ShapeError(f"{name}: the output {target._type} must be of the type of the result, {value._type}")
    if target is not value:
        target._replace(copied(value))


def started(name: str, async_op: Any) -> CommHandle | None:
    """Return a handle if `async_op` asks for one."""
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


_FUNCTIONS = """
    all_gather all_gather_into_tensor all_gather_into_tensor_uneven all_gather_object all_reduce
    all_to_all all_to_all_single all_to_all_v_c barrier batch_isend_irecv broadcast
    broadcast_object_list gather_into_tensor gather_object irecv isend recv recv_object_list reduce
    reduce_scatter reduce_scatter_tensor reduce_scatter_tensor_uneven scatter_object_list
    scatter_tensor send send_object_list
""".split()


class _Writing:
    """A flag for each function: whether it writes into the tensors it is given."""

    def __init__(self) -> None:
        vars(self).update(dict.fromkeys(_FUNCTIONS, True))


_writing = _Writing()


def writes(name: str) -> bool:
    """Return whether a function writes into the tensors it is given.

    A staged graph is valid while the answer stays the same.
    """
    found: bool = getattr(_writing, name)
    staging = eager.local.staging if eager.active else None
    if staging is not None:
        staging.following.guard_attribute(_writing, name, found)
    return found


def set_comm_ops_inplace(is_enable: bool, func_list: list[str] | None = None) -> None:
    """Set whether functions write into the tensors they are given, or return new ones.

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
    """Write `value` into `target` and return the handle, or return `value` and the handle.

    `set_comm_ops_inplace` decides for the function `name`; `async_op` asks for the handle.
    """
    handle = started(name, async_op)
    if not writes(name):
        return copied(value), handle
    write(name, target, value)
    return handle


def send_counts(name: str, matrix: Any, group: Group) -> list[list[int]]:
    """Return a matrix of counts, one for each pair of members.

    Raises TypeError or ValueError for another matrix.
    """
    numbers = np.asarray(matrix.asnumpy() if isinstance(matrix, Tensor) else matrix)
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"{name}: send_count_matrix must hold whole numbers, not {numbers.dtype}")
    if numbers.size != group.size**2:
        raise ValueError(
            f"{name}: send_count_matrix must hold {group.size**2} whole numbers, one for each pair of members"
        )
    return [[int(x) for x in row] for row in numbers.reshape(group.size, group.size)]
