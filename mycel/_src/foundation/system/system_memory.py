"""Memory sizes: of the machine, of the container, and of the process's address space."""

from __future__ import annotations

import os
from collections.abc import Iterator

__all__ = ["UNLIMITED", "addresses", "addresses_left", "containers", "machine_memory", "swap_left", "system_memory"]

# Limits from here on are none.
UNLIMITED = 1 << 60


def machine_memory() -> int | None:
    """Return the bytes of the machine's memory with its swap, or of the container's share.

    Returns None where the system does not tell.

    >>> machine_memory() is None or machine_memory() > 0
    True
    """
    found = [whole for whole in (system_memory()[1], *(most for _, most in containers())) if whole]
    return min(found, default=None)


def system_memory() -> tuple[int | None, int | None]:
    """Return the bytes of memory that are available, and all that the machine has.

    Both are None where the system does not tell.
    """
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


def addresses_left() -> int | None:
    """Return how many bytes of addresses this process may still use; None without a limit."""
    found = addresses()
    return None if found is None else found[0]


def swap_left() -> int:
    try:
        with open("/proc/meminfo") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("SwapFree:")), 0)
    except (OSError, ValueError, IndexError):
        return 0


def containers() -> Iterator[tuple[int, int]]:
    """Yield the bytes used and allowed in each control group around this process with a limit."""
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
    """Yield the paths of this process's control groups for memory, innermost first."""
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


def addresses() -> tuple[int, int] | None:
    """Return how many bytes of addresses this process has left, and how many it may use in all.

    Returns None where they are not limited.
    """
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY or most >= UNLIMITED:
        return None
    taken = _number_in("/proc/self/statm")
    return None if taken is None else (max(most - taken * os.sysconf("SC_PAGE_SIZE"), 0), most)


def _number_in(path: str) -> int | None:
    """Return the first number in a file; None where there is none."""
    try:
        with open(path) as file:
            text = file.read().split()
    except OSError:
        return None
    return int(text[0]) if text and text[0].isdigit() else None
