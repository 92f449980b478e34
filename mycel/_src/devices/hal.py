"""MindSpore's older names for devices, streams, and the memory figures of `mycel.runtime`.

The functions take the device that is asked about, which is the processor.
"""

from __future__ import annotations

from typing import Any

from mycel._src.devices import runtime
from mycel._src.devices.stream import Event as Event
from mycel._src.devices.stream import Stream as Stream
from mycel._src.devices.stream import StreamCtx as StreamCtx
from mycel._src.devices.stream import communication_stream as communication_stream
from mycel._src.devices.stream import current_stream as current_stream
from mycel._src.devices.stream import default_stream as default_stream
from mycel._src.devices.stream import set_cur_stream as set_cur_stream
from mycel._src.foundation.public_names import listing as _listing

__all__ = [
    "Event",
    "Stream",
    "StreamCtx",
    "communication_stream",
    "current_stream",
    "default_stream",
    "device_count",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "is_initialized",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "set_cur_stream",
    "synchronize",
]


def _check(name: str, device_target: str | None) -> None:
    if device_target is not None and device_target != "CPU":
        raise ValueError(f"{name}: device_target {device_target!r} is not available in this build; it runs on 'CPU'")


def memory_allocated(device_target: str | None = None) -> int:
    """Return the result of `mycel.runtime.memory_allocated`.

    >>> memory_allocated() == runtime.memory_allocated()
    True
    """
    _check("memory_allocated", device_target)
    return runtime.memory_allocated()


def memory_reserved(device_target: str | None = None) -> int:
    """Return the result of `mycel.runtime.memory_reserved`."""
    _check("memory_reserved", device_target)
    return runtime.memory_reserved()


def max_memory_allocated(device_target: str | None = None) -> int:
    """Return the result of `mycel.runtime.max_memory_allocated`."""
    _check("max_memory_allocated", device_target)
    return runtime.max_memory_allocated()


def max_memory_reserved(device_target: str | None = None) -> int:
    """Return the result of `mycel.runtime.max_memory_reserved`."""
    _check("max_memory_reserved", device_target)
    return runtime.max_memory_reserved()


def memory_stats(device_target: str | None = None) -> dict[str, Any]:
    """Return the result of `mycel.runtime.memory_stats`."""
    _check("memory_stats", device_target)
    return runtime.memory_stats()


def memory_summary(device_target: str | None = None) -> str:
    """Return the result of `mycel.runtime.memory_summary`."""
    _check("memory_summary", device_target)
    return runtime.memory_summary()


def reset_max_memory_allocated(device_target: str | None = None) -> None:
    """Call `mycel.runtime.reset_max_memory_allocated`."""
    _check("reset_max_memory_allocated", device_target)
    runtime.reset_max_memory_allocated()


def reset_max_memory_reserved(device_target: str | None = None) -> None:
    """Call `mycel.runtime.reset_max_memory_reserved`."""
    _check("reset_max_memory_reserved", device_target)
    runtime.reset_max_memory_reserved()


def reset_peak_memory_stats(device_target: str | None = None) -> None:
    """Call `mycel.runtime.reset_peak_memory_stats`."""
    _check("reset_peak_memory_stats", device_target)
    runtime.reset_peak_memory_stats()


def empty_cache() -> None:
    """Call `mycel.runtime.empty_cache`."""
    runtime.empty_cache()


_TARGETS = ("CPU", "GPU", "Ascend")


def _target(name: str, device_target: str | None) -> bool:
    """Return whether the device exists here.

    Raises ValueError for a name that is not a kind of device.
    """
    if device_target is not None and device_target not in _TARGETS:
        raise ValueError(f"{name}: device_target must be 'CPU', 'GPU' or 'Ascend', not {device_target!r}")
    return device_target in (None, "CPU")


def _numbered(name: str, device_id: int, device_target: str | None) -> None:
    _check(name, device_target)
    if isinstance(device_id, bool) or not isinstance(device_id, int) or device_id != 0:
        raise ValueError(f"{name}: there is one device, 0, and no {device_id!r}")


def is_available(device_target: str | None) -> bool:
    """Return whether programs can run on a device, which is true of the CPU.

    >>> is_available("CPU"), is_available("GPU")
    (True, False)
    """
    return _target("is_available", device_target)


def is_initialized(device_target: str) -> bool:
    """Return whether the device is set up, which the CPU always is.

    >>> is_initialized("CPU")
    True
    """
    return _target("is_initialized", device_target)


def device_count(device_target: str | None = None) -> int:
    """Return the number of devices of a kind: one CPU, however many cores it has.

    >>> device_count(), device_count("GPU")
    (1, 0)
    """
    return int(_target("device_count", device_target))


def get_device_name(device_id: int, device_target: str | None = None) -> str:
    """Return the name of a device: "CPU" for the CPU.

    `mycel info` shows which processor it is. Raises ValueError for devices that do not exist.

    >>> get_device_name(0)
    'CPU'
    """
    _numbered("get_device_name", device_id, device_target)
    return "CPU"


def get_device_capability(device_id: int, device_target: str | None = None) -> None:
    """Return the capability of a GPU; a CPU has none, so None.

    Raises ValueError for devices that do not exist.
    """
    _numbered("get_device_capability", device_id, device_target)


def get_device_properties(device_id: int, device_target: str | None = None) -> None:
    """Return the properties of a GPU or NPU; a CPU has none, so None.

    Raises ValueError for devices that do not exist.
    """
    _numbered("get_device_properties", device_id, device_target)


def get_arch_list(device_target: str | None = None) -> None:
    """Return the architectures of GPUs that a build is for; for the CPU None.

    Raises ValueError for devices that do not exist.
    """
    _check("get_arch_list", device_target)


def synchronize() -> None:
    """Wait until all operations that were started are complete."""
    current_stream().synchronize()


__dir__ = _listing(__name__)
