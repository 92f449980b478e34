"""Processes, groups of them, and the transport of values between them.

A `Group` is a name, the ranks of its members and a `Transport`; every collective operation is
composed of the few operations of a transport. There is one transport now, `Alone`, for a group of
one process: whatever it reduces, gathers or exchanges is its own value. Support for several
processes needs another transport, made where `_join` makes this one, and nothing else. Until then a
process that was started as one of several raises an error at once, since its results would be
wrong.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Protocol

from mycel.base import arguments
from mycel.base.log import logger
from mycel.core.tensor import Tensor

__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "Alone",
    "GlobalComm",
    "Group",
    "Transport",
    "create_group",
    "destroy_group",
    "find_group",
    "get_comm_name",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_process_group_ranks",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "member",
    "release",
]

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
WORLDS = {"hccl": HCCL_WORLD_COMM_GROUP, "nccl": NCCL_WORLD_COMM_GROUP, "mccl": MCCL_WORLD_COMM_GROUP}
COUNTS = ("RANK_SIZE", "WORLD_SIZE", "MS_WORKER_NUM", "OMPI_COMM_WORLD_SIZE")


class Transport(Protocol):
    """The movement of values between the members of a group; ranks are those in the group."""

    def reduce(self, value: Tensor, operation: str) -> Tensor:
        """Return the sum, product, largest, smallest or mean of all members' values."""

    def gather(self, value: Tensor) -> list[Tensor]:
        """Return every member's value, in the order of ranks."""

    def exchange(self, parts: Sequence[Tensor]) -> list[Tensor]:
        """Return the parts for this process, one from every member's parts."""

    def broadcast(self, value: Tensor, source: int) -> Tensor:
        """Return one member's value."""

    def gather_objects(self, value: Any) -> list[Any]:
        """Return copies of every member's object, made by pickling."""

    def barrier(self) -> None:
        """Wait until all members have called this."""


class Alone:
    """The transport of a group of one process: values stay where they are."""

    def reduce(self, value: Tensor, operation: str) -> Tensor:
        return value

    def gather(self, value: Tensor) -> list[Tensor]:
        return [value]

    def exchange(self, parts: Sequence[Tensor]) -> list[Tensor]:
        return list(parts)

    def broadcast(self, value: Tensor, source: int) -> Tensor:
        return value

    def gather_objects(self, value: Any) -> list[Any]:
        return [pickle.loads(pickle.dumps(value))]

    def barrier(self) -> None:
        return None


@dataclass(frozen=True)
class Group:
    """A group of processes: `ranks` are their ranks in the world, in the order of their ranks in
    the group.
    """

    name: str
    ranks: tuple[int, ...]
    rank: int
    transport: Transport

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.ranks)


class GlobalComm:
    """The facts about the communication between processes.

    >>> GlobalComm.WORLD_COMM_GROUP in WORLDS.values()
    True
    """

    BACKEND = "mccl"
    WORLD_COMM_GROUP = MCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


def _join(name: str, ranks: Sequence[int]) -> Group:
    return Group(name, tuple(ranks), 0, Alone())


_world = _join("world", (0,))
_groups: dict[str, Group] = {}


def check_alone(function: str) -> None:
    """Raise RuntimeError if the environment says that this process is one of several."""
    for variable in COUNTS:
        text = os.environ.get(variable, "").strip()
        if text and text != "1":
            raise RuntimeError(
                f"{function}: {variable} is {text}, but one process is supported now; start the program once, and "
                f"without {variable}"
            )


def known(group: Any) -> bool:
    """Return whether there is a group of that name."""
    return group in WORLDS.values() or group in _groups


def find_group(function: str, group: Optional[str]) -> Group:
    """Return a group by its name; the world for None.

    Raises TypeError unless it is a name, ValueError for an unknown one.
    """
    arguments.optional(function, "group", group, str)
    check_alone(function)
    if group is None or group in WORLDS.values():
        return _world
    if group not in _groups:
        raise ValueError(f"{function}: there is no group {group!r}; create_group or new_group makes one")
    return _groups[group]


def member(function: str, parameter: str, rank: Any, group: Group) -> int:
    """Return the rank in `group` of the process of rank `rank` in the world.

    `function` and `parameter` are the names in errors. Raises ValueError for a rank that is not a
    member.
    """
    if arguments.integer(function, parameter, rank, numpy=False) not in group.ranks:
        raise ValueError(f"{function}: there is no rank {rank}: this process is alone, with rank 0")
    return group.ranks.index(rank)


def init(backend_name: Optional[str] = None) -> None:
    """Begin communication, which with one process does nothing but log that.

    Raises ValueError for a backend other than "hccl", "nccl" and "mccl", RuntimeError if the
    environment says that there are several processes.

    >>> init()
    >>> get_rank(), get_group_size()
    (0, 1)
    """
    name = "mccl" if backend_name is None else backend_name
    if name not in WORLDS:
        raise ValueError(f"init: backend_name must be 'hccl', 'nccl' or 'mccl', not {backend_name!r}")
    check_alone("init")
    GlobalComm.BACKEND, GlobalComm.WORLD_COMM_GROUP, GlobalComm.INITED = name, WORLDS[name], True
    logger.info("communication: this process is alone: rank 0 of 1")


def release() -> None:
    """End communication and forget all groups.

    >>> release()
    """
    GlobalComm.INITED = False
    _groups.clear()


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the rank of this process in a group: 0.

    >>> get_rank()
    0
    """
    return find_group("get_rank", group).rank


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of processes in a group: 1.

    >>> get_group_size()
    1
    """
    return find_group("get_group_size", group).size


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the rank of this process among those of its machine: 0.

    >>> get_local_rank()
    0
    """
    return find_group("get_local_rank", group).rank


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of processes of a group on this machine: 1.

    >>> get_local_rank_size()
    1
    """
    return find_group("get_local_rank_size", group).size


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Return the rank in the world of a member of a group.

    Raises ValueError for a rank other than 0.

    >>> get_world_rank_from_group_rank(GlobalComm.WORLD_COMM_GROUP, 0)
    0
    """
    name = "get_world_rank_from_group_rank"
    found = find_group(name, group)
    if not 0 <= arguments.integer(name, "group_rank_id", group_rank_id, numpy=False) < found.size:
        raise ValueError(f"{name}: there is no rank {group_rank_id}: this process is alone, with rank 0")
    return found.ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """Return the rank in a group of a process of the world.

    Raises ValueError for a rank other than 0.

    >>> get_group_rank_from_world_rank(0, GlobalComm.WORLD_COMM_GROUP)
    0
    """
    name = "get_group_rank_from_world_rank"
    return member(name, "world_rank_id", world_rank_id, find_group(name, group))


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """Return the ranks in the world of a group's members: [0].

    >>> get_process_group_ranks()
    [0]
    """
    return list(find_group("get_process_group_ranks", group).ranks)


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """Return the name of a group in the communication library: its own.

    >>> get_comm_name("hccl_world_group")
    'hccl_world_group'
    """
    find_group("get_comm_name", group)
    return group


def create_group(group: str, rank_ids: Sequence[int], options: Any = None) -> None:
    """Create a group of this process.

    Raises ValueError for other members or a name that is taken.

    >>> create_group("mine", [0])
    >>> get_group_size("mine")
    1
    >>> destroy_group("mine")
    """
    arguments.text("create_group", "group", group)
    check_alone("create_group")
    if list(rank_ids) != [0]:
        raise ValueError(
            f"create_group: rank_ids {list(rank_ids)} is not possible: this process is alone, with rank 0; use [0]"
        )
    if known(group):
        raise ValueError(f"create_group: there is a group {group!r} already")
    _groups[group] = _join(group, rank_ids)


def destroy_group(group: str) -> None:
    """Forget a group.

    Raises ValueError for one that was not created.

    >>> create_group("mine", [0])
    >>> destroy_group("mine")
    """
    arguments.text("destroy_group", "group", group)
    if group not in _groups:
        raise ValueError(f"destroy_group: there is no group {group!r} that create_group made")
    del _groups[group]
