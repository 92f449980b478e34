"""The common base of engines whose buffers lie in the host's memory.

They share one allocator (`buffers`) and the machine's memory (`host_memory`).
"""

from __future__ import annotations

from typing import ClassVar

from mycel._src.engines import buffers, host_memory
from mycel._src.engines.base import Engine, MemoryAccount

__all__ = ["HostEngine"]


class HostEngine(Engine):
    """An engine whose buffers are those of `engines.buffers`."""

    device: ClassVar[str] = "CPU"

    def memory(self) -> MemoryAccount:
        return buffers.account()

    def reset_peak(self, *, allocated: bool = False, reserved: bool = False) -> None:
        buffers.reset_peak(allocated, reserved)

    def release_arenas(self) -> None:
        return None

    def empty_cache(self) -> None:
        buffers.empty_cache()

    def available_memory(self) -> int | None:
        return host_memory.available_memory()

    def room_left(self) -> str:
        return host_memory.room_left()

    def need(self, what: str, nbytes: int) -> None:
        host_memory.need(what, nbytes)
