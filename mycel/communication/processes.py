"""Groups of processes under the names of `mindspore.ops.communication`, which are PyTorch's.

A group is given by its name, or None for all processes.
"""

from __future__ import annotations

import itertools
from typing import Any

from mycel._src.compiler.transport.rank_environment import World, world
from mycel._src.foundation import arguments
from mycel.communication import groups
from mycel.communication.groups import GlobalComm, find_group
from mycel.communication.store import TCPStore

__all__ = [
    "destroy_process_group",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
    "new_group",
]

_numbers = itertools.count(1)


def is_available() -> bool:
    """Return whether there are functions for communication: True.

    >>> is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Return whether `init_process_group` (or `mycel.communication.init`) was called.

    >>> init_process_group()
    >>> is_initialized()
    True
    """
    return GlobalComm.INITED


def init_process_group(
    backend: str = "hccl",
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Begin communication among processes, as `mycel.communication.init` does.

    The processes meet where their environment says, at `store`, or at the place that `init_method`
    names. With one of both, size and rank must be given.

    Args:
        backend (str): "hccl", "nccl" or "mccl". Default: "hccl".
        init_method (str | None): Where rank 0 is, "tcp://HOST:PORT". Default: None.
        timeout (timedelta | None): Has no effect. Default: None.
        world_size (int): The number of processes; -1 for what the environment says. Default: -1.
        rank (int): The number of this one; -1 for what the environment says. Default: -1.
        store (TCPStore | None): Where the processes meet. Default: None.
        group_name (str): Has no effect. Default: "".
        pg_options (object | None): Has no effect. Default: None.
        device_id (int | None): Has no effect. Default: None.

    Raises:
        ValueError: For other sizes and ranks and for a `backend` other than "hccl", "nccl" and
            "mccl".
        TypeError: For a store that is not a `TCPStore`.

    Examples:
        >>> init_process_group(world_size=1, rank=0)
    """
    name = "init_process_group"
    size = arguments.integer(name, "world_size", world_size, numpy=False)
    own = arguments.integer(name, "rank", rank, numpy=False)
    if init_method is not None and store is not None:
        raise ValueError(f"{name}: init_method and store exclude each other; give one of them")
    arguments.optional(name, "store", store, TCPStore)
    if (init_method is not None or store is not None) and (size < 1 or own < 0):
        raise ValueError(f"{name}: init_method and store need world_size and rank, not {size} and {own}")
    if own >= max(size, 1) and size != -1:
        raise ValueError(f"{name}: rank {own} is not in a world of {size} processes")
    if init_method is None and store is None:
        found = world()
        if size not in (-1, found.size):
            raise ValueError(f"{name}: world_size is {size}, but this process is one of {found.size}; use {found.size}")
        if own not in (-1, found.rank or 0):
            raise ValueError(f"{name}: rank {own} is not that of this process, {found.rank or 0}")
        groups.init(backend)
        return
    host, port = "127.0.0.1", 0
    if init_method is not None:
        place, _, text = init_method.removeprefix("tcp://").rpartition(":")
        if not init_method.startswith("tcp://") or not place or not text.isdigit():
            raise ValueError(f"{name}: init_method must be 'tcp://HOST:PORT', not {init_method!r}")
        host, port = place, int(text)
    groups.begin(backend, World(size, own, None, host, port, False, False, "sockets"), store)


def destroy_process_group(group: str | None = None) -> None:
    """Forget a group; for None or the world, all groups and communication as a whole.

    Raises ValueError for an unknown group.

    >>> destroy_process_group()
    >>> is_initialized()
    False
    """
    if group is None or group in groups.WORLDS.values():
        groups.release()
    else:
        groups.destroy_group(group)


def new_group(
    ranks: list[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
) -> str:
    """Create a group of processes.

    Args:
        ranks (list[int] | None): The processes; None for all. Default: None.
        timeout (timedelta | None): Has no effect. Default: None.
        backend (str | None): "hccl", "nccl" or "mccl"; None for any. Default: None.
        pg_options (object | None): Has no effect. Default: None.
        use_local_synchronization (bool): Has no effect. Default: False.
        group_desc (str | None): Has no effect. Default: None.

    Returns:
        str: Its name.

    Raises:
        TypeError: Unless the ranks are a list of different ints.
        ValueError: For unknown ranks or a `backend` other than "hccl", "nccl" and "mccl".

    Examples:
        >>> get_world_size(new_group([0]))
        1
    """
    name = "new_group"
    if backend is not None and (not isinstance(backend, str) or backend not in groups.WORLDS):
        raise ValueError(f"{name}: backend must be 'hccl', 'nccl' or 'mccl', not {backend!r}")
    if ranks is None:
        find_group(name, None)
        return GlobalComm.WORLD_COMM_GROUP
    arguments.sequence(name, "ranks", ranks, "a list of ints")
    for rank in ranks:
        arguments.integer(name, "a rank", rank, numpy=False)
    if len(set(ranks)) != len(ranks):
        raise TypeError(f"{name}: ranks {list(ranks)} has a rank twice")
    made = f"group_{next(_numbers)}"
    groups.create_group(made, ranks)
    return made


def get_rank(group: str | None = None) -> int:
    """Return the rank of this process in a group: 0; -1 for an unknown group.

    >>> get_rank()
    0
    """
    return -1 if _absent(group) else find_group("get_rank", group).rank


def get_world_size(group: str | None = None) -> int:
    """Return the number of processes in a group: 1; -1 for an unknown group.

    >>> get_world_size()
    1
    """
    return -1 if _absent(group) else find_group("get_world_size", group).size


def _absent(group: Any) -> bool:
    return isinstance(group, str) and not groups.known(group)


def get_backend(group: str | None = None) -> str:
    """Return the name of the backend that carries values between the processes of a group.

    >>> get_backend() in ("hccl", "mccl", "nccl")
    True
    """
    find_group("get_backend", group)
    return GlobalComm.BACKEND


def get_global_rank(group: str | None, group_rank: int) -> int:
    """Return the rank in the world of a member of a group.

    Raises ValueError for a rank that is not a member.

    >>> get_global_rank(None, 0)
    0
    """
    name = "get_global_rank"
    found = find_group(name, group)
    if not 0 <= arguments.integer(name, "group_rank", group_rank, numpy=False) < found.size:
        raise ValueError(f"{name}: there is no rank {group_rank} in a group of {found.size}")
    return found.ranks[group_rank]


def get_group_rank(group: str | None, global_rank: int) -> int:
    """Return the rank in a group of a process of the world.

    Raises ValueError for a process that is not a member.

    >>> get_group_rank(None, 0)
    0
    """
    return groups.member("get_group_rank", "global_rank", global_rank, find_group("get_group_rank", group))


def get_process_group_ranks(group: str | None = None) -> list[int]:
    """Return the ranks in the world of a group's members: [0].

    >>> get_process_group_ranks()
    [0]
    """
    return list(find_group("get_process_group_ranks", group).ranks)
