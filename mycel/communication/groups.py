"""Processes and groups of them.

A `Group` is a name and the ranks of its members in the world, in the order of their ranks in the
group. The world is that of the transport in force (`transport.current_transport`): a process alone,
or after `init` the processes that its environment names. Every collective operation is composed of
the few movements of tensors that a group's `transport` has (`mycel.communication.exchanges`).
"""

from __future__ import annotations

import atexit
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mycel._src.compiler.transport import rank_status, transport_selection
from mycel._src.compiler.transport.base import Transport
from mycel._src.compiler.transport.current_transport import put, transport
from mycel._src.compiler.transport.rank_environment import World, world
from mycel._src.compiler.transport.single_process import Alone as AloneWay
from mycel._src.compiler.transport.tcp_store import TCPStore
from mycel._src.engines.select import engine
from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.tensors.core import eager
from mycel.communication.exchanges import Alone, Exchanges, Several

__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "GlobalComm",
    "Group",
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


@dataclass(frozen=True)
class Group:
    """A group of processes: `ranks` are their ranks in the world, in the order of their ranks in
    the group.
    """

    name: str
    ranks: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.ranks)

    @property
    def is_member(self) -> bool:
        """Whether this process is a member."""
        return transport().rank in self.ranks

    @property
    def rank(self) -> int:
        """The rank of this process in the group.

        Raises RuntimeError for one that is no member.
        """
        own = transport().rank
        if own not in self.ranks:
            raise RuntimeError(
                f"communication: rank {own} is no member of the group {self.name!r}, which has the ranks "
                f"{list(self.ranks)}; only members may call its operations"
            )
        return self.ranks.index(own)

    @property
    def transport(self) -> Exchanges:
        """The operations between its members."""
        return Alone() if self.size == 1 and self.rank == 0 else Several(self.ranks, self.rank)


class GlobalComm:
    """The facts about the communication between processes.

    >>> GlobalComm.WORLD_COMM_GROUP in WORLDS.values()
    True
    """

    BACKEND = "mccl"
    WORLD_COMM_GROUP = MCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


class _Joined:
    """What `init` has made: the transport, the store, and what the environment said."""

    way: Transport | None = None
    store: Any = None
    found: World | None = None
    times: int = 0


class _Known:
    """What compiled functions have read of the world and of groups: an attribute for each, as it is
    in the thread that asks, since ranks may be threads.
    """

    def __getattr__(self, name: str) -> str:
        way = transport()
        if name == "world":
            return sys.intern(f"{way.rank} of {way.size}")
        ranks = way.groups.get(name.removeprefix("group "))
        return sys.intern("none" if ranks is None else str(ranks))


_joined = _Joined()
_known = _Known()


def _read(name: str) -> None:
    """Note that a staged graph is valid while a group, or the world, is what it is."""
    staging = eager.local.staging if eager.active else None
    if staging is not None:
        staging.following.guard_attribute(_known, name, getattr(_known, name))


def check_joined(function: str) -> None:
    """Raise RuntimeError if this process is one of several, and has not met the others yet."""
    if _joined.way is not None or transport().size > 1:
        return
    found = world()
    if found.size > 1:
        raise RuntimeError(
            f"{function}: this process is one of {found.size}, as its environment says, and has not met the others; "
            "call mycel.communication.init first"
        )


def known(group: Any) -> bool:
    """Return whether there is a group of that name."""
    return group in WORLDS.values() or group in transport().groups


def created() -> dict[str, tuple[int, ...]]:
    """Return the ranks of the groups that have been created, by name."""
    return dict(transport().groups)


def find_group(function: str, group: str | None) -> Group:
    """Return a group by its name; the world for None.

    Raises TypeError unless it is a name, ValueError for an unknown one.
    """
    arguments.optional(function, "group", group, str)
    check_joined(function)
    if group is None or group in WORLDS.values():
        _read("world")
        return Group("world", tuple(range(transport().size)))
    if group not in transport().groups:
        raise ValueError(f"{function}: there is no group {group!r}; create_group or new_group makes one")
    _read(f"group {group}")
    return Group(group, transport().groups[group])


def member(function: str, parameter: str, rank: Any, group: Group) -> int:
    """Return the rank in `group` of the process of rank `rank` in the world.

    `function` and `parameter` are the names in errors. Raises ValueError for a rank that is not a
    member.
    """
    if arguments.integer(function, parameter, rank, numpy=False) not in group.ranks:
        raise ValueError(f"{function}: there is no rank {rank}{_those_of(group)}")
    return group.ranks.index(rank)


def _those_of(group: Group) -> str:
    if transport().size == 1:
        return ": this process is alone, with rank 0"
    return f" in the group {group.name!r}, which has the ranks {list(group.ranks)}"


def init(backend_name: str | None = None) -> None:
    """Begin communication: meet the other processes that the environment names, if there are any.

    The processes are started by `mycel launch`, `msrun`, `mpirun` or `srun`, whose variables say
    which rank this one is. A second call does nothing. Raises ValueError for a backend other than
    "hccl", "nccl" and "mccl", RuntimeError if the others do not come or the environment makes no
    sense.

    >>> init()
    >>> get_rank(), get_group_size()
    (0, 1)
    """
    begin(backend_name, None, None)


def begin(backend_name: str | None, found: World | None, store: TCPStore | None) -> None:
    """Do what `init` does, with `found` in place of what the environment says, and `store` as the
    place where processes meet, where they are given.
    """
    name = "mccl" if backend_name is None else backend_name
    if not isinstance(name, str) or name not in WORLDS:
        raise ValueError(f"init: backend_name must be 'hccl', 'nccl' or 'mccl', not {backend_name!r}")
    if _joined.way is None and transport().size == 1:
        _join(world() if found is None else found, store)
    GlobalComm.BACKEND, GlobalComm.WORLD_COMM_GROUP, GlobalComm.INITED = name, WORLDS[name], True


def _join(found: World, store: TCPStore | None) -> None:
    if found.scheduler:
        transport_selection.serve(found)
        sys.exit(0)
    if found.size == 1:
        logger.info("communication: this process is alone: rank 0 of 1")
        return
    rank_status.begin()
    _joined.times += 1
    _joined.way, _joined.store = transport_selection.connect(found, store, f"ranks-{_joined.times}")
    _joined.found = found
    put(_joined.way)
    meeting = _joined.store or store
    engine().meet(socket.gethostname() if meeting is None else meeting.own_address())
    # What is registered last runs first: others are told before the engine waits for them.
    atexit.unregister(_leave)
    atexit.register(_leave)
    logger.info("communication: this process is rank %d of %d", _joined.way.rank, found.size)


@atexit.register
def _leave() -> None:
    way, _joined.way = _joined.way, None
    if way is not None:
        put(AloneWay())
        rank_status.alone()
        way.close()
    if _joined.store is not None:
        _joined.store.close()
        _joined.store = None


def release() -> None:
    """End communication and forget all groups; other processes that wait for this one are told.

    >>> release()
    """
    _leave()
    GlobalComm.INITED = False
    transport().groups.clear()


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the rank of this process in a group: 0 where it is alone.

    Raises RuntimeError for a process that is no member.

    >>> get_rank()
    0
    """
    return find_group("get_rank", group).rank


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of processes in a group: 1 where this one is alone.

    >>> get_group_size()
    1
    """
    return find_group("get_group_size", group).size


def _local(function: str, group: str) -> tuple[int, ...]:
    """Return the members of a group that are on this machine."""
    ranks = find_group(function, group).ranks
    local = None if _joined.found is None else _joined.found.local
    if local is None:
        return ranks
    first = transport().rank - local[0]
    return tuple([r for r in ranks if first <= r < first + local[1]])


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the rank of this process among those of its machine.

    >>> get_local_rank()
    0
    """
    return _local("get_local_rank", group).index(transport().rank)


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of processes of a group on this machine.

    >>> get_local_rank_size()
    1
    """
    return len(_local("get_local_rank_size", group))


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Return the rank in the world of a member of a group.

    Raises ValueError for a rank other than 0.

    >>> get_world_rank_from_group_rank(GlobalComm.WORLD_COMM_GROUP, 0)
    0
    """
    name = "get_world_rank_from_group_rank"
    found = find_group(name, group)
    if not 0 <= arguments.integer(name, "group_rank_id", group_rank_id, numpy=False) < found.size:
        raise ValueError(f"{name}: there is no rank {group_rank_id}{_those_of(found)}")
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
    """Create a group of some processes, `rank_ids`; `options` have no effect.

    Raises ValueError for ranks that are none of the world's or come twice, and for a name that is
    taken.

    >>> create_group("mine", [0])
    >>> get_group_size("mine")
    1
    >>> destroy_group("mine")
    """
    arguments.text("create_group", "group", group)
    check_joined("create_group")
    ranks, size = list(rank_ids), transport().size
    if not ranks or len(set(ranks)) != len(ranks) or any(r not in range(size) for r in ranks):
        known_ranks = "this process is alone, with rank 0; use [0]" if size == 1 else f"the ranks are 0 to {size - 1}"
        raise ValueError(f"create_group: rank_ids {ranks} is not possible: {known_ranks}")
    if known(group):
        raise ValueError(f"create_group: there is a group {group!r} already")
    transport().groups[group] = tuple(ranks)


def destroy_group(group: str) -> None:
    """Forget a group.

    Raises ValueError for one that was not created.

    >>> create_group("mine", [0])
    >>> destroy_group("mine")
    """
    arguments.text("destroy_group", "group", group)
    if group not in transport().groups:
        raise ValueError(f"destroy_group: there is no group {group!r} that create_group made")
    del transport().groups[group]
