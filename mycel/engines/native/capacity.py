"""How much memory could be taken now, and a word before a program takes more.

Systems promise memory that they do not have and end the process when it is touched, without a word. So before a program's first run its needs are compared with
what is available, and where they are more, the log says so, with what to look at.
"""

from __future__ import annotations

import os
from typing import Optional

from mycel.engines.failures import readable
from mycel.log import logger

__all__ = ["available_memory", "warn_beyond"]

# What is asked for below this is not worth a look at the system.
WORTH_ASKING = 64 << 20


def warn_beyond(name: str, nbytes: int) -> None:
    """Log a warning if a program of this name takes more bytes than are available."""
    if nbytes < WORTH_ASKING:
        return
    left = available_memory()
    if left is not None and nbytes > left:
        logger.warning(
            "%s takes %s beside its inputs, but %s are available: the system may end the process; mycel.estimate says what is alive at the peak",
            name, readable(nbytes), readable(left),
        )  # fmt: skip


def available_memory() -> Optional[int]:
    """The bytes that could be taken now: what the system has left, or the limits of the container or of `max_device_memory` leave; None where nothing tells.

    >>> available_memory() is None or available_memory() > 0
    True
    """
    from mycel.engines.native.memory_ir import MEMORY
    from mycel.engines.native.runtime import runtime

    account = dict(zip(MEMORY, runtime().account))
    left = [account["limit"] - account["allocated"]] if account["limit"] < (1 << 63) - 1 else []
    idle = account["reserved"] - account["allocated"]
    system = _system_memory()
    if system is not None:
        left.append(system + idle)
    for used, most in (
        ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.max"),
        ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    ):
        a, b = _number_in(used), _number_in(most)
        if a is not None and b is not None and b < 1 << 60:
            left.append(max(b - a, 0) + idle)
    return min(left) if left else None


def _system_memory() -> Optional[int]:
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _number_in(path: str) -> Optional[int]:
    try:
        with open(path) as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
