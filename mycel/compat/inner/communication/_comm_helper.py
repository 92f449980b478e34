"""`mindspore.communication._comm_helper`: facts about communication, for one process."""

from __future__ import annotations

from typing import Any

from mycel.communication import groups
from mycel.communication.groups import GlobalComm

__all__: list[str] = []

DEVICE_TO_BACKEND = {"Ascend": "hccl", "GPU": "nccl", "CPU": "mccl"}
DEFAULT_BACKEND = "hccl"
HCCL_LIB = "libhccl_plugin.so"


class Backend(str):
    """The name of a library that communicates, as text.

    Raises TypeError for anything but text, ValueError for a name other than "hccl", "nccl" and
    "mccl".
    """

    UNDEFINED = "undefined"
    HCCL = "hccl"
    NCCL = "nccl"
    MCCL = "mccl"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise TypeError(f"Backend: the name must be text, not {name!r}")
        if name.lower() not in DEVICE_TO_BACKEND.values():
            raise ValueError(f"Backend: the name must be 'hccl', 'nccl' or 'mccl', not {name!r}")
        return super().__new__(cls, name.lower())


def _is_initialized() -> bool:
    """Return whether communication was begun with `init`."""
    return GlobalComm.INITED


def _is_available() -> bool:
    """Return True: there are groups and collectives, for one process."""
    return True


def _is_hccl_available() -> bool:
    """Return False: there is no library for Ascend devices."""
    return False


def _is_nccl_available() -> bool:
    """Return False: there is no library for GPUs."""
    return False


def _is_mpi_available() -> bool:
    """Return False: processes are not started by MPI."""
    return False


def _check_mpi_envs() -> bool:
    """Return False: this process was not started by MPI."""
    return False


def _is_role_sched() -> bool:
    """Return False: this process schedules no others."""
    return False


def _get_backend() -> str:
    """Return the name of the library that `init` was given."""
    return GlobalComm.BACKEND


def _get_rank_helper(group: str) -> int:
    """Return the rank of this process in a group."""
    return groups.get_rank(group)


def _get_size_helper(group: str) -> int:
    """Return the number of processes of a group."""
    return groups.get_group_size(group)


def _get_local_rank_helper(group: str) -> int:
    """Return the rank of this process among those of its machine."""
    return groups.get_local_rank(group)


def _get_local_size_helper(group: str) -> int:
    """Return the number of processes of a group on this machine."""
    return groups.get_local_rank_size(group)


def _get_comm_name_helper(group: str) -> str:
    """Return the name of a group in the library that communicates."""
    return groups.get_comm_name(group)


def _get_group_ranks(group: str) -> list[int]:
    """Return the ranks of a group's processes."""
    return groups.get_process_group_ranks(group)


def _get_world_rank_from_group_rank_helper(group: str, group_rank_id: int) -> int:
    """Return the rank among all processes of a member of a group."""
    return groups.get_world_rank_from_group_rank(group, group_rank_id)


def _get_group_rank_from_world_rank_helper(world_rank_id: int, group: str) -> int:
    """Return the rank in a group of one of all processes."""
    return groups.get_group_rank_from_world_rank(world_rank_id, group)


_get_group_rank_from_world_rank_from_cache_helper = _get_group_rank_from_world_rank_helper


def _create_group_helper(group: str, rank_ids: list[int], options: Any = None) -> None:
    """Make a group of processes."""
    groups.create_group(group, rank_ids, options)


def _destroy_group_helper(group: str) -> None:
    """Forget a group of processes."""
    groups.destroy_group(group)


def _get_group_map() -> dict[str, list[int]]:
    """Return the groups with the ranks of their processes."""
    return {name: list(ranks) for name, ranks in groups.created().items()}


def _wait_all_comm_init() -> None:
    """Return at once: groups are ready when they are made."""


def check_parameter_available(func: Any) -> Any:
    """Return a function unchanged: each checks its group itself."""
    return func
