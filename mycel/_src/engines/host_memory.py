"""The host's memory: how much there is, how much is available, and checks of a program's needs.

Operating systems promise more memory than they have, and kill a process that uses it, without a
message. So the allocator refuses more than the machine has (`machine_memory`: built-in memory and
swap, or the container's share), and a program that needs more raises an error before its first run.
Where it needs more than is available at the moment (`available_memory`), a warning in the log says
so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mycel._src.compiler.ir.graph import Graph
from mycel._src.engines import buffers
from mycel._src.engines.error_messages import no_memory, out_of_memory
from mycel._src.foundation.log import logger
from mycel._src.foundation.readable_sizes import readable
from mycel._src.foundation.system.system_memory import (
    UNLIMITED,
    addresses,
    containers,
    machine_memory,
    swap_left,
    system_memory,
)

__all__ = ["available_memory", "check_needs", "need", "room_left"]

# What is asked for below this is not worth a look at the system.
WORTH_ASKING = 64 << 20


def check_needs(graph: Graph, nbytes: int, sizes: Mapping[str, int] | None = None) -> None:
    """Raise MemoryError if a program needs more bytes beside its inputs than the machine has.

    Logs a warning if it needs more than are available. `sizes` are those of the graph's symbols.
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
    """Raise MemoryError if more bytes are needed at once than are available.

    The bytes are taken outside of the allocator, by `what`.
    """
    if nbytes < WORTH_ASKING:
        return
    left = available_memory()
    if left is not None and nbytes > left + swap_left():
        raise no_memory(what, nbytes)


def available_memory() -> int | None:
    """Return the bytes that could be taken now; None where the system does not tell.

    It is the least of what the system, the container, the process's limit and `max_device_memory`
    leave.

    >>> available_memory() is None or available_memory() > 0
    True
    """
    return min((left for left, _ in _rooms()), default=None)


def room_left() -> str:
    """Return the available memory as text for messages; "" where the system does not tell.

    >>> "available" in room_left() or room_left() == ""
    True
    """
    left, bound = min(_rooms(), default=(None, ""))
    return "" if left is None else f"{readable(left)} are available of {bound}"


def _rooms() -> Iterator[tuple[int, str]]:
    """Yield the bytes that each limit leaves, and the limit's name."""
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
