"""How much memory there is and could be taken now; what a program needs is compared with it before it is tried.

Systems promise memory that they do not have and end the process when it is touched, without a word. So the allocator refuses what all of the machine's memory would not hold
(`machine_memory`: what is built in and can be swapped, or the container's share), and a program that needs more than that is an error before its first run. Where
it needs more than is available at the moment (`available_memory`), the log says so, with what to look at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Optional

from mycel.engines.failures import no_memory, out_of_memory, readable
from mycel.ir.graph import Graph
from mycel.log import logger

__all__ = ["addresses_left", "available_memory", "check_needs", "machine_memory", "need", "room_left"]

# What is asked for below this is not worth a look at the system.
WORTH_ASKING = 64 << 20
UNLIMITED = 1 << 60


def check_needs(graph: Graph, nbytes: int, sizes: Optional[Mapping[str, int]] = None) -> None:
    """MemoryError if a program takes more bytes beside its inputs than the machine has; a warning in the log if it takes more than are available."""
    if nbytes < WORTH_ASKING:
        return
    whole = machine_memory()
    if whole is not None and nbytes > whole:
        raise out_of_memory(graph, nbytes, sizes)
    left = available_memory()
    if left is not None and nbytes > left:
        logger.warning(
            "%s takes %s beside its inputs, but %s are available: the system may end the process; mycel.estimate says what is alive at the peak",
            graph.name, readable(nbytes), readable(left),
        )  # fmt: skip


def need(what: str, nbytes: int) -> None:
    """MemoryError if something needs more bytes at once, outside of the allocator, than are available."""
    if nbytes < WORTH_ASKING:
        return
    left = available_memory()
    if left is not None and nbytes > left + _swap_left():
        raise no_memory(what, nbytes)


def available_memory() -> Optional[int]:
    """The bytes that could be taken now: what the system has left, or the limits of the container, of the process or of `max_device_memory` leave; None where nothing tells.

    >>> available_memory() is None or available_memory() > 0
    True
    """
    return min((left for left, _ in _rooms()), default=None)


def room_left() -> str:
    """What is available, of what, for messages; "" where nothing tells.

    >>> "available" in room_left() or room_left() == ""
    True
    """
    left, bound = min(_rooms(), default=(None, ""))
    return "" if left is None else f"{readable(left)} are available of {bound}"


def machine_memory() -> Optional[int]:
    """The bytes of the machine's memory with its swap, or of the container's share; None where nothing tells.

    >>> machine_memory() is None or machine_memory() > 0
    True
    """
    found = [whole for whole in (_system_memory()[1], *(most for _, most in _containers())) if whole]
    return min(found, default=None)


def _rooms() -> Iterator[tuple[int, str]]:
    """The bytes that each bound leaves, and what it is."""
    from mycel.engines.native.memory_ir import MEMORY
    from mycel.engines.native.runtime import runtime

    account = dict(zip(MEMORY, runtime().account))
    if account["limit"] < UNLIMITED:
        yield account["limit"] - account["allocated"], f"the {readable(account['limit'])} of max_device_memory"
    idle = account["reserved"] - account["allocated"]
    left, whole = _system_memory()
    if left is not None:
        yield left + idle, f"the machine's {readable(whole)}" if whole else "the machine's memory"
    for used, share in _containers():
        yield max(share - used, 0) + idle, f"the {readable(share)} of this container"
    addresses = _addresses_left()
    if addresses is not None:
        yield addresses[0] + idle, f"the {readable(addresses[1])} of addresses that this process may use (ulimit -v)"


def _system_memory() -> tuple[Optional[int], Optional[int]]:
    """What is left, and all that there is."""
    found = {}
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name in ("MemTotal", "MemAvailable", "SwapTotal"):
                    found[name] = int(value.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    if "MemTotal" in found and "MemAvailable" in found:
        return found["MemAvailable"], found["MemTotal"] + found.get("SwapTotal", 0)
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page
    except (AttributeError, OSError, ValueError):
        return None, None


def addresses_left() -> Optional[int]:
    """The bytes of addresses that this process may still use; None where they are not limited."""
    found = _addresses_left()
    return None if found is None else found[0]


def _swap_left() -> int:
    try:
        with open("/proc/meminfo") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("SwapFree:")), 0)
    except (OSError, ValueError, IndexError):
        return 0


def _containers() -> Iterator[tuple[int, int]]:
    """What is used and allowed in each control group around this process that has a limit."""
    for used, most in _group_files():
        a, b = _number_in(used), _number_in(most)
        if a is not None and b is not None and b < UNLIMITED:
            yield a, b


def _group_files() -> Iterator[tuple[str, str]]:
    root = "/sys/fs/cgroup"
    for path in dict.fromkeys((*_group_paths(), "/")):
        yield f"{root}{path}/memory.current", f"{root}{path}/memory.max"
        yield f"{root}/memory{path}/memory.usage_in_bytes", f"{root}/memory{path}/memory.limit_in_bytes"


def _group_paths() -> Iterator[str]:
    """This process's control group for memory, and those that it is in."""
    try:
        with open("/proc/self/cgroup") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        kinds, _, path = rest.partition(":")
        if kinds in ("", "memory") or "memory" in kinds.split(","):
            while path not in ("", "/") and ".." not in path:
                yield path
                path = os.path.dirname(path)


def _addresses_left() -> Optional[tuple[int, int]]:
    """The bytes of addresses that this process has not used of those that it may, and these."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY or most >= UNLIMITED:
        return None
    taken = _number_in("/proc/self/statm")
    return None if taken is None else (max(most - taken * os.sysconf("SC_PAGE_SIZE"), 0), most)


def _number_in(path: str) -> Optional[int]:
    """The first number in a file."""
    try:
        with open(path) as file:
            text = file.read().split()
    except OSError:
        return None
    return int(text[0]) if text and text[0].isdigit() else None
