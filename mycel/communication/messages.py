"""Messages: tensors and Python objects from one process to another, and objects among all.

A message from a process to itself has no receiver and is an error, except in a batch, which has
both the sending and the receiving side. Objects are pickled, so that the receiver gets a copy and
must trust the sender.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import DType
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication.groups import Group, find_group, member
from mycel.communication.steps import CommHandle, counted, tensor_of, write, writes

__all__ = [
    "P2POp",
    "all_gather_object",
    "batch_isend_irecv",
    "broadcast_object_list",
    "gather_object",
    "irecv",
    "isend",
    "recv",
    "recv_object_list",
    "scatter_object_list",
    "send",
    "send_object_list",
]


def other_end(name: str, parameter: str, rank: Any, group: str | None) -> Group:
    """Return the group of a message to or from the process `rank` of the group named `group`.

    Raises ValueError, naming the function `name` and its argument `parameter`, if that is this
    process itself.
    """
    found = find_group(name, group)
    if member(name, parameter, rank, found) == found.rank:
        raise ValueError(
            f"{name}: {parameter} {rank} is this process itself; batch_isend_irecv can send to it, {name} cannot"
        )
    return found


def send(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> None:
    """Send a tensor to a process.

    Args:
        tensor (Tensor): The tensor.
        dst (int): The rank that it goes to. Default: 0.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        tag (int): A number from 0 to 65536 that tells messages apart: one is received with the tag
            with which it was sent. Default: 0.

    Raises:
        ValueError: If `dst` is this process or does not exist; with one process one of both is
            always true.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.send(ms.Tensor([1.0]), 1)
        Traceback (most recent call last):
        ...
        ValueError: send: there is no rank 1: this process is alone, with rank 0
    """
    _send("send", tensor, dst, group, tag)


def isend(tensor: Tensor, dst: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Do what `send` does, and return a handle.

    Args:
        tensor (Tensor): The tensor.
        dst (int): The rank that it goes to. Default: 0.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        tag (int): A number from 0 to 65536 that tells messages apart: one is received with the tag
            with which it was sent. Default: 0.

    Returns:
        CommHandle: The handle.
    """
    _send("isend", tensor, dst, group, tag)
    return CommHandle()


def _send(name: str, tensor: Any, dst: Any, group: str | None, tag: Any) -> None:
    tensor_of(name, "tensor", tensor)
    found = other_end(name, "dst", dst, group)
    found.transport.send(tensor, member(name, "dst", dst, found), _tag(name, tag))


def _tag(name: str, tag: Any) -> int:
    return arguments.integer(name, "tag", tag, 0, 2**16, numpy=False)


def recv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> Any:
    """Write into a tensor the values that a process sent.

    Args:
        tensor (Tensor): The tensor.
        src (int): The rank that it comes from. Default: 0.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        tag (int): A number from 0 to 65536 that tells messages apart: one is received with the tag
            with which it was sent. Default: 0.

    Returns:
        Any: 0; after ``set_comm_ops_inplace(False)`` the values.

    Raises:
        ValueError: If `src` is this process or does not exist; with one process one of both is
            always true.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.recv(ms.Tensor([1.0]), 1)
        Traceback (most recent call last):
        ...
        ValueError: recv: there is no rank 1: this process is alone, with rank 0
    """
    value = _receiver("recv", tensor, src, group, tag)()
    if not writes("recv"):
        return value
    write("recv", tensor, value)
    return 0


def _receiver(name: str, tensor: Any, src: Any, group: str | None, tag: Any) -> Callable[[], Tensor]:
    tensor_of(name, "tensor", tensor)
    found = other_end(name, "src", src, group)
    source, number = member(name, "src", src, found), _tag(name, tag)
    return lambda: found.transport.receive(tensor, source, number)


def irecv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> Any:
    """Do what `recv` does when the handle that is returned is waited for.

    Args:
        tensor (Tensor): The tensor.
        src (int): The rank that it comes from. Default: 0.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        tag (int): A number from 0 to 65536 that tells messages apart: one is received with the tag
            with which it was sent. Default: 0.

    Returns:
        CommHandle: The handle.
    """
    receive = _receiver("irecv", tensor, src, group, tag)
    return CommHandle(lambda: write("irecv", tensor, receive()))


class P2POp:
    """One `isend` or `irecv` of `batch_isend_irecv`.

    Args:
        op (Callable[..., Any] | str): `isend`, `irecv` or its name.
        tensor (Tensor | tuple[int, ...]): The tensor to send or to fill; to receive it may be a
            shape.
        peer (int): The other process, which may be this one.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        tag (int): Must be 0. Default: 0.
        recv_dtype (DType | None): The element type, where `tensor` is a shape. Default: None.

    Raises:
        TypeError: For other types.
        NotImplementedError: For a `tag` other than 0.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.P2POp("isend", ms.Tensor([1.0]), 0).op
        'isend'
    """

    def __init__(
        self,
        op: Any,
        tensor: Tensor | tuple[int, ...],
        peer: int,
        group: str | None = None,
        tag: int = 0,
        *,
        recv_dtype: DType | None = None,
    ) -> None:
        names: dict[Any, str] = {isend: "isend", irecv: "irecv", "isend": "isend", "irecv": "irecv"}
        if not isinstance(op, str) and not callable(op) or op not in names:
            raise TypeError(f"P2POp: op must be isend or irecv, or their names, not {op!r}")
        if tag != 0:
            raise NotImplementedError(f"P2POp: tag must be 0, not {tag!r}")
        self.op = names[op]
        if self.op == "irecv" and isinstance(tensor, tuple) and recv_dtype is not None:
            tensor = Tensor(np.zeros(tensor, recv_dtype.numpy))
        self.tensor = tensor_of("P2POp", "tensor", tensor)
        self.peer = arguments.integer("P2POp", "peer", peer, numpy=False)
        self.group = group
        self.tag = tag


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[CommHandle]:
    """Send and receive several tensors at once, and return a list of one handle for all.

    Tensors sent to a process arrive in the order in which they were sent; the tensors to fill are
    written. Raises TypeError for other lists, ValueError if sent and received tensors do not match.

    >>> import mycel as ms
    >>> x, y = ms.Tensor([5.0]), ms.Tensor([0.0])
    >>> batch = [ms.ops.P2POp("irecv", y, 0), ms.ops.P2POp("isend", x, 0)]
    >>> for handle in ms.ops.batch_isend_irecv(batch):
    ...     handle.wait()
    >>> y.tolist()
    [5.0]
    """
    name = "batch_isend_irecv"
    if not isinstance(p2p_op_list, (list, tuple)) or not p2p_op_list:
        raise TypeError(f"{name}: p2p_op_list must be a list of P2POp that is not empty")
    if not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise TypeError(f"{name}: all elements of p2p_op_list must be P2POp")
    if len({p.group for p in p2p_op_list}) > 1:
        raise TypeError(f"{name}: all elements of p2p_op_list must be of one group")
    found = find_group(name, p2p_op_list[0].group)
    for p in p2p_op_list:
        member(name, "peer", p.peer, found)
    if found.size > 1:
        _batch(name, p2p_op_list, found)
        return [CommHandle()]
    sent, awaited = ([p.tensor for p in p2p_op_list if p.op == kind] for kind in ("isend", "irecv"))
    for target, value in zip(awaited, to_oneself(name, sent, len(awaited), found)):
        write(name, target, value)
    return [CommHandle()]


def _batch(name: str, operations: Sequence[P2POp], group: Group) -> None:
    """Send everything, which waits for nobody, and then receive in order."""
    for p in operations:
        if p.op == "isend":
            group.transport.send(p.tensor, group.ranks.index(p.peer), _BATCH)
    for p in operations:
        if p.op == "irecv":
            write(name, p.tensor, group.transport.receive(p.tensor, group.ranks.index(p.peer), _BATCH))


_BATCH = 2**17


def to_oneself(name: str, sent: Sequence[Tensor], awaited: int, group: Group) -> list[Tensor]:
    """Return the tensors that a process gets from itself, in order.

    `sent` are its tensors to send, `awaited` is the number of tensors to fill, `group` is its
    group, and `name` the function in errors. Raises ValueError unless both numbers are equal.
    """
    if len(sent) != awaited:
        raise ValueError(
            f"{name}: {len(sent)} tensors are sent to this process and {awaited} awaited from it; both must be as many"
        )
    return [group.transport.exchange([x], [x.shape])[0] for x in sent]


# Python objects.


def all_gather_object(object_list: list[Any], obj: Any, group: str | None = None) -> None:
    """Fill `object_list` with copies (by pickling) of every process's `obj`.

    Raises TypeError unless the list has one place for each process.

    >>> import mycel as ms
    >>> out = [None]
    >>> ms.ops.all_gather_object(out, {"a": 1})
    >>> out
    [{'a': 1}]
    """
    found = find_group("all_gather_object", group)
    counted("all_gather_object", "object_list", object_list, found)[:] = found.transport.gather_objects(obj)


def broadcast_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> None:
    """Replace the elements of a list by those in one process.

    Args:
        object_list (list[Any]): The objects, which are replaced.
        src (int): The rank that it comes from. Default: 0.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        device (str | None): Has no effect. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.broadcast_object_list([1, "a"])
    """
    name = "broadcast_object_list"
    found = find_group(name, group)
    source = member(name, "src", src, found)
    arguments.instance(name, "object_list", object_list, list)
    values = found.transport.gather_objects(object_list if found.rank == source else None)
    if found.rank != source:
        object_list[:] = values[source]


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: str | None = None
) -> None:
    """Fill a list of one process with copies of every process's object.

    Args:
        obj (object): This process's object.
        object_gather_list (list[Any] | None): The list that is filled, in the process `dst` only.
            Default: None.
        dst (int): The rank that it goes to. Default: 0.
        group (str | None): The name of the group of processes; None for all of them. Default: None.

    Examples:
        >>> import mycel as ms
        >>> out = [None]
        >>> ms.ops.gather_object("a", out)
        >>> out
        ['a']
    """
    found = find_group("gather_object", group)
    target = member("gather_object", "dst", dst, found)
    values = found.transport.gather_objects(obj)
    if found.rank == target:
        counted("gather_object", "object_gather_list", object_gather_list, found)[:] = values


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None,
    src: int = 0,
    group: str | None = None,
) -> None:
    """Set the first element of a list to this process's element of the list of one process.

    Args:
        scatter_object_output_list (list[Any]): Its first element is set.
        scatter_object_input_list (list[Any] | None): An element for each process, in the process
            `src` only.
        src (int): The rank that it comes from. Default: 0.
        group (str | None): The name of the group of processes; None for all of them. Default: None.

    Examples:
        >>> import mycel as ms
        >>> out = [None]
        >>> ms.ops.scatter_object_list(out, ["a"])
        >>> out
        ['a']
    """
    name = "scatter_object_list"
    found = find_group(name, group)
    source = member(name, "src", src, found)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise TypeError(f"{name}: scatter_object_output_list must be a list that is not empty")
    if found.rank == source:
        counted(name, "scatter_object_input_list", scatter_object_input_list, found)
    given = scatter_object_input_list if found.rank == source else None
    scatter_object_output_list[0] = found.transport.gather_objects(given)[source][found.rank]


def send_object_list(object_list: list[Any], dst: int, group: str | None = None, device: Any = None) -> None:
    """Send objects to a process, as `send` sends a tensor.

    Args:
        object_list (list[Any]): The objects.
        dst (int): The rank that it goes to.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        device (str | None): Has no effect. Default: None.
    """
    arguments.instance("send_object_list", "object_list", object_list, list)
    found = other_end("send_object_list", "dst", dst, group)
    found.transport.send_object(object_list, found.ranks.index(dst))


def recv_object_list(object_list: list[Any], src: int = 0, group: str | None = None, device: Any = None) -> int:
    """Replace the elements of a list by the objects that a process sent, as `recv` does.

    Args:
        object_list (list[Any]): The objects, which are replaced.
        src (int): The rank that it comes from. Default: 0.
        group (str | None): The name of the group of processes; None for all of them. Default: None.
        device (str | None): Has no effect. Default: None.

    Returns:
        int: 0.
    """
    arguments.instance("recv_object_list", "object_list", object_list, list)
    found = other_end("recv_object_list", "src", src, group)
    object_list[:] = found.transport.receive_object(found.ranks.index(src))
    return 0
