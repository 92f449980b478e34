"""MindSpore's older names for the figures of `mycel.runtime`, with the device that they are asked of, which is the processor."""

from __future__ import annotations

from typing import Any, Optional

from mycel import runtime
from mycel.stream import Event as Event
from mycel.stream import Stream as Stream
from mycel.stream import StreamCtx as StreamCtx
from mycel.stream import communication_stream as communication_stream
from mycel.stream import current_stream as current_stream
from mycel.stream import default_stream as default_stream
from mycel.stream import set_cur_stream as set_cur_stream

__all__ = [
    "Event",
    "Stream",
    "StreamCtx",
    "communication_stream",
    "current_stream",
    "default_stream",
    "set_cur_stream",
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
]


def _check(name: str, device_target: Optional[str]) -> None:
    if device_target is not None and device_target != "CPU":
        raise ValueError(f"{name}: device_target {device_target!r} is not available in this build; it runs on 'CPU'")


def memory_allocated(device_target: Optional[str] = None) -> int:
    """`mycel.runtime.memory_allocated`.

    >>> memory_allocated() == runtime.memory_allocated()
    True
    """
    _check("memory_allocated", device_target)
    return runtime.memory_allocated()


def memory_reserved(device_target: Optional[str] = None) -> int:
    """`mycel.runtime.memory_reserved`."""
    _check("memory_reserved", device_target)
    return runtime.memory_reserved()


def max_memory_allocated(device_target: Optional[str] = None) -> int:
    """`mycel.runtime.max_memory_allocated`."""
    _check("max_memory_allocated", device_target)
    return runtime.max_memory_allocated()


def max_memory_reserved(device_target: Optional[str] = None) -> int:
    """`mycel.runtime.max_memory_reserved`."""
    _check("max_memory_reserved", device_target)
    return runtime.max_memory_reserved()


def memory_stats(device_target: Optional[str] = None) -> dict[str, Any]:
    """`mycel.runtime.memory_stats`."""
    _check("memory_stats", device_target)
    return runtime.memory_stats()


def memory_summary(device_target: Optional[str] = None) -> str:
    """`mycel.runtime.memory_summary`."""
    _check("memory_summary", device_target)
    return runtime.memory_summary()


def reset_max_memory_allocated(device_target: Optional[str] = None) -> None:
    """`mycel.runtime.reset_max_memory_allocated`."""
    _check("reset_max_memory_allocated", device_target)
    runtime.reset_max_memory_allocated()


def reset_max_memory_reserved(device_target: Optional[str] = None) -> None:
    """`mycel.runtime.reset_max_memory_reserved`."""
    _check("reset_max_memory_reserved", device_target)
    runtime.reset_max_memory_reserved()


def reset_peak_memory_stats(device_target: Optional[str] = None) -> None:
    """`mycel.runtime.reset_peak_memory_stats`."""
    _check("reset_peak_memory_stats", device_target)
    runtime.reset_peak_memory_stats()


def empty_cache() -> None:
    """`mycel.runtime.empty_cache`."""
    runtime.empty_cache()
