"""How much of the host's memory there is and could be taken now.

What a program needs is compared with it before it is tried.

Systems promise memory that they do not have and end the process when it is touched, without a word.
So the allocator refuses what all of the machine's memory would not hold (`machine_memory`: what is
built in and can be swapped, or the container's share), and a program that needs more than that is
an error before its first run. Where it needs more than is available at the moment
(`available_memory`), the log says so, with what to look at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Optional

from mycel.base.log import logger
from mycel.base.system_memory import UNLIMITED, addresses, containers, machine_memory, swap_left, system_memory
from mycel.engines import buffers
from mycel.engines.failures import no_memory, out_of_memory, readable
from mycel.ir.graph import Graph

__all__ = ["available_memory", "check_needs", "need", "room_left"]

# What is asked for below this is not worth a look at the system.
WORTH_ASKING = 64 << 20


def check_needs(graph: Graph, nbytes: int, sizes: Optional[Mapping[str, int]] = None) -> None:
    """Raise MemoryError if a program takes more bytes beside its inputs than the machine has.

    A warning in the log if it takes more than are available.
    """
    if nbytes < WORTH_ASKING:
        return
    whole = machine_memory()
    if whole is not None and nbytes > whole:
        raise out_of_memory(graph, nbytes, sizes)
    left = available_memory()
    if left is not None and nbytes > left:
        logger.warning(
            "%s takes %s beside its inputs, but %s are available: the system may end the process; mycel.estimate says "
            "what is alive at the peak",
            graph.name,
            readable(nbytes),
            readable(left),
        )


def need(what: str, nbytes: int) -> None:
    """Raise MemoryError if something needs more bytes at once, outside of the allocator, than are
    available.
    """
    if nbytes < WORTH_ASKING:
        return
    left = available_memory()
    if left is not None and nbytes > left + swap_left():
        raise no_memory(what, nbytes)


def available_memory() -> Optional[int]:
    """Return the bytes that could be taken now: what the system has left, or the limits of the
    container, of the process or of `max_device_memory` leave; None where nothing tells.

    >>> available_memory() is None or available_memory() > 0
    True
    """
    return min((left for left, _ in _rooms()), default=None)


def room_left() -> str:
    """Return what is available, of what, for messages; "" where nothing tells.

    >>> "available" in room_left() or room_left() == ""
    True
    """
    left, bound = min(_rooms(), default=(None, ""))
    return "" if left is None else f"{readable(left)} are available of {bound}"


def _rooms() -> Iterator[tuple[int, str]]:
    """Yield the bytes that each bound leaves, and what it is."""
    account = buffers.account()
    if account.limit < UNLIMITED:
        yield account.limit - account.allocated, f"the {readable(account.limit)} of max_device_memory"
    idle = account.reserved - account.allocated
    left, whole = system_memory()
    if left is not None:
        yield left + idle, f"the machine's {readable(whole)}" if whole else "the machine's memory"
    for used, share in containers():
        yield max(share - used, 0) + idle, f"the {readable(share)} of this container"
    found = addresses()
    if found is not None:
        yield found[0] + idle, f"the {readable(found[1])} of addresses that this process may use (ulimit -v)"
