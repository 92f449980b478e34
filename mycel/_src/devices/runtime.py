"""Memory statistics and limits of tensors and compiled functions, and the in-memory caches.

Statistics are what is in use and the most that was in use.

All memory comes from one allocator. *Allocated* memory is in use by tensors and the arenas of
compiled functions; a compiled function keeps a small arena for its next run. *Reserved* memory is
all that the allocator holds from the operating system: there are four block sizes for each power of
two, and freed blocks wait to be used again. Not counted are arrays that tensors share with NumPy,
and memory that the dense library and Python take for themselves.

Results of compiling, searching and reading are kept in caches, each of which has a bound and evicts
the entries unused for longest: `caches` lists them, `forget` empties them.
"""

from __future__ import annotations

from typing import Any

from mycel._src.devices.stream import Event as Event
from mycel._src.devices.stream import Stream as Stream
from mycel._src.devices.stream import StreamCtx as StreamCtx
from mycel._src.devices.stream import communication_stream as communication_stream
from mycel._src.devices.stream import current_stream as current_stream
from mycel._src.devices.stream import default_stream as default_stream
from mycel._src.devices.stream import set_cur_stream as set_cur_stream
from mycel._src.devices.stream import set_kernel_launch_capture as set_kernel_launch_capture
from mycel._src.devices.stream import set_kernel_launch_group as set_kernel_launch_group
from mycel._src.engines.select import engine
from mycel._src.foundation import arguments, bounded_caches
from mycel._src.foundation.log import logger
from mycel._src.foundation.public_names import listing as _listing
from mycel._src.foundation.settings import config

__all__ = [
    "Event",
    "Stream",
    "StreamCtx",
    "communication_stream",
    "current_stream",
    "default_stream",
    "set_cur_stream",
    "set_kernel_launch_capture",
    "set_kernel_launch_group",
    "caches",
    "empty_cache",
    "forget",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "set_memory",
    "synchronize",
]


def memory_allocated() -> int:
    """Return the bytes that tensors and compiled functions have in use.

    >>> import mycel as ms
    >>> before = ms.runtime.memory_allocated()
    >>> x = ms.ops.zeros((1024, 1024), ms.float32)
    >>> ms.runtime.memory_allocated() - before
    4194304
    """
    return engine().memory().allocated


def memory_reserved() -> int:
    """Return the bytes that the allocator holds from the system, in use or waiting for use.

    >>> memory_reserved() >= memory_allocated()
    True
    """
    return engine().memory().reserved


def max_memory_allocated() -> int:
    """Return the most bytes allocated at one time, since the start or the last
    `reset_max_memory_allocated`.

    >>> max_memory_allocated() >= memory_allocated()
    True
    """
    return engine().memory().most_allocated


def max_memory_reserved() -> int:
    """Return the most bytes reserved at one time, since the start or the last
    `reset_max_memory_reserved`.

    >>> max_memory_reserved() >= memory_reserved()
    True
    """
    return engine().memory().most_reserved


def reset_max_memory_allocated() -> None:
    """Restart `max_memory_allocated` from the bytes allocated now."""
    engine().reset_peak(allocated=True)


def reset_max_memory_reserved() -> None:
    """Restart `max_memory_reserved` from the bytes reserved now."""
    engine().reset_peak(reserved=True)


def reset_peak_memory_stats() -> None:
    """Restart both maxima.

    >>> reset_peak_memory_stats()
    >>> max_memory_allocated() == memory_allocated()
    True
    """
    reset_max_memory_allocated()
    reset_max_memory_reserved()


def empty_cache() -> None:
    """Return unused memory to the operating system.

    It includes the arenas of compiled functions, which allocate new ones when they run again.

    >>> empty_cache()
    """
    engine().release_arenas()
    engine().empty_cache()


def caches() -> dict[str, tuple[int, int]]:
    """Return the caches by name, each as (number of entries, bound on that number).

    They speed up repeated work: operations by types and parameters, views, derivatives, kernels,
    and so on. Caches that belong to one graph each, such as its programs by sizes, are counted
    together. Those of libraries that are not loaded yet are missing.

    >>> import mycel as ms
    >>> _ = ms.Tensor([1.0, 2.0]) + ms.Tensor([3.0, 4.0])
    >>> entries, most = caches()["operations"]
    >>> 0 < entries <= most
    True
    """
    return bounded_caches.sizes()


def forget() -> None:
    """Empty all caches that `caches` lists, to free memory or to start from the beginning.

    Entries that are needed again are computed or compiled again, or read from the folder of
    compiled programs. Objects that a program holds itself stay as they are: tensors, and compiled
    functions with their programs. The code of kernels stays in memory.

    >>> forget()
    >>> caches()["operations"][0]
    0
    """
    bounded_caches.forget()


def memory_stats() -> dict[str, Any]:
    """Return all figures, by MindSpore's names, in bytes.

    >>> sorted(memory_stats())[:3]
    ['common_mem_pool_stats', 'max_allocated_memory', 'max_reserved_memory']
    """
    allocated, reserved = memory_allocated(), memory_reserved()
    return {
        "total_reserved_memory": reserved,
        "total_allocated_memory": allocated,
        "total_idle_memory": reserved - allocated,
        "total_eager_free_memory": 0,
        "max_reserved_memory": max_memory_reserved(),
        "max_allocated_memory": max_memory_allocated(),
        "common_mem_pool_stats": {"block_unit_size": 64, "block_counts": engine().memory().blocks, "blocks_info": {}},
        "persistent_mem_pool_stats": {"block_unit_size": 64, "block_counts": 0, "blocks_info": {}},
    }


def memory_summary() -> str:
    """Return the figures as a table.

    >>> print(memory_summary().splitlines()[0])
    memory                      now        most
    """
    rows = [
        ("allocated", memory_allocated(), max_memory_allocated()),
        ("reserved", memory_reserved(), max_memory_reserved()),
    ]
    lines = [f"{'memory':<20}{'now':>11}{'most':>12}"]
    lines += [f"{name:<20}{now / 2**20:>7.1f} MiB{most / 2**20:>8.1f} MiB" for name, now, most in rows]
    lines.append(f"{'blocks':<20}{engine().memory().blocks:>11}")
    limit = config.get_context("max_device_memory")
    lines.append(f"{'limit':<20}{limit or 'none':>11}")
    return "\n".join(lines)


def set_memory(
    init_size: str = "2GB",
    increase_size: str = "2GB",
    max_size: str = "1024GB",
    optimize_level: str = "O0",
    huge_page_reserve_size: str = "0GB",
) -> None:
    """Limit the memory that tensors and compiled functions may take from the system; an allocation
    beyond it raises MemoryError.

    Memory is taken as it is needed and always planned by liveness.

    Args:
        init_size (str): Has no effect. Default: "2GB".
        increase_size (str): Has no effect. Default: "2GB".
        max_size (str): The limit, such as "4GB". Default: "1024GB".
        optimize_level (str): Has no effect. Default: "O0".
        huge_page_reserve_size (str): Has no effect. Default: "0GB".

    Raises:
        ValueError: For an invalid size.

    Examples:
        >>> import mycel as ms
        >>> ms.runtime.set_memory(max_size="1024GB")
    """
    for name, value in (("init_size", init_size), ("increase_size", increase_size), ("max_size", max_size)):
        try:
            config.memory_size(value)
        except ValueError as error:
            raise ValueError(f"set_memory: {name}: {error}") from None
    arguments.one_of("set_memory", "optimize_level", optimize_level, ("O0", "O1"))
    if (init_size, increase_size, optimize_level, huge_page_reserve_size) != ("2GB", "2GB", "O0", "0GB"):
        logger.info("set_memory: only max_size has an effect; memory is taken from the system as needed")
    config.set_context(max_device_memory=max_size)


def synchronize() -> None:
    """Wait until all operations that were started are complete.

    >>> synchronize()
    """
    current_stream().synchronize()


__dir__ = _listing(__name__)
