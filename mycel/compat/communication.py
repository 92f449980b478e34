"""`mindspore.communication`: the answers of a process that is alone.

There is one process of rank 0; groups hold it and nothing else. Asking for more is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from mycel.log import logger

__all__ = [
    "GlobalComm",
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "create_group",
    "destroy_group",
    "get_comm_name",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_process_group_ranks",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "release",
]

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
_WORLD = {"hccl": HCCL_WORLD_COMM_GROUP, "nccl": NCCL_WORLD_COMM_GROUP, "mccl": MCCL_WORLD_COMM_GROUP}
_groups: set[str] = set()


class GlobalComm:
    """What is known of the communication between processes."""

    BACKEND = "mccl"
    WORLD_COMM_GROUP = MCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


def init(backend_name: Optional[str] = None) -> None:
    """Begin communication; with one process there is nobody to talk to, which the log says.

    Raises ValueError for a backend other than "hccl", "nccl" and "mccl".
    """
    name = "mccl" if backend_name is None else backend_name
    if name not in _WORLD:
        raise ValueError(f"init: backend_name must be 'hccl', 'nccl' or 'mccl', not {backend_name!r}")
    GlobalComm.BACKEND, GlobalComm.WORLD_COMM_GROUP, GlobalComm.INITED = name, _WORLD[name], True
    logger.info("communication: this process is alone: rank 0 of 1")


def release() -> None:
    """End communication and forget all groups."""
    GlobalComm.INITED = False
    _groups.clear()


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The rank of this process in a group: 0.

    >>> get_rank(), get_group_size()
    (0, 1)
    """
    _check_group("get_rank", group)
    return 0


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The number of processes in a group: 1."""
    _check_group("get_group_size", group)
    return 1


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The rank of this process among those of its machine: 0."""
    _check_group("get_local_rank", group)
    return 0


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The number of processes on this machine: 1."""
    _check_group("get_local_rank_size", group)
    return 1


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The rank in the world of a member of a group; ValueError for a rank other than 0."""
    return _only_rank("get_world_rank_from_group_rank", group, group_rank_id)


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The rank in a group of a process of the world; ValueError for a rank other than 0."""
    return _only_rank("get_group_rank_from_world_rank", group, world_rank_id)


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """The ranks in the world of a group's members: [0]."""
    _check_group("get_process_group_ranks", group)
    return [0]


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """The name of a group in the layer that communicates: its own."""
    _check_group("get_comm_name", group)
    return group


def create_group(group: str, rank_ids: Sequence[int], options: Any = None) -> None:
    """Make a group of this process; ValueError for other members or a name that is taken."""
    _check_group("create_group", group)
    if list(rank_ids) != [0]:
        raise ValueError(
            f"create_group: rank_ids {list(rank_ids)} is not possible: this process is alone, with rank 0; use [0]"
        )
    if group in _groups or group in _WORLD.values():
        raise ValueError(f"create_group: there is a group {group!r} already")
    _groups.add(group)


def destroy_group(group: str) -> None:
    """Forget a group; ValueError for one that was not created."""
    _check_group("destroy_group", group)
    if group not in _groups:
        raise ValueError(f"destroy_group: there is no group {group!r} that create_group made")
    _groups.remove(group)


def _check_group(function: str, group: Any) -> None:
    if not isinstance(group, str):
        raise TypeError(f"{function}: group must be a string, not {type(group).__name__}")


def _only_rank(function: str, group: Any, rank: Any) -> int:
    _check_group(function, group)
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise TypeError(f"{function}: the rank must be an integer, not {type(rank).__name__}")
    if rank != 0:
        raise ValueError(f"{function}: there is no rank {rank}: this process is alone, with rank 0")
    return 0
