"""`mindspore.device_context.cpu`: the CPU."""

from __future__ import annotations

from mycel._src.devices import hal
from mycel.compat.inner.device_context.cpu.op_tuning import threads_num

__all__ = ["device_count", "is_available", "threads_num"]


def is_available() -> bool:
    """Return True: computations run on the CPU."""
    return hal.is_available("CPU")


def device_count() -> int:
    """Return the number of devices: 1."""
    return hal.device_count("CPU")
