"""Buffers that live on jax's device, or on the host while an array of them is in use.

The content of a `Held` is in one place at a time. It goes to the host when an array of it is asked
for, as such arrays may be written, and back when a program needs it and no such array is alive any
more. While one is alive, or where the memory belongs to an array from outside, the host has the
content: programs read a copy, and results that are written into the buffer are copied there.

An array of jax's belongs to one buffer only, so that a program may write into its memory (donation,
see `program`).
"""

from __future__ import annotations

import functools
import sys
import weakref
from queue import SimpleQueue
from typing import Any

import numpy as np

from mycel._src.compiler.ir.types import TensorType
from mycel._src.engines import buffers
from mycel._src.engines.base import MemoryAccount
from mycel._src.engines.xla.binding import device, jax, jnp
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.python_runtime.reference_counts import ONE_OWNER
from mycel._src.foundation.system import locks

__all__ = ["Held", "account", "array_of", "held", "placed", "reset_peak", "value_of", "wait", "write"]

_lock = locks.reentrant()
_bytes = [0, 0]  # on devices now, and at most
# What each buffer counts; those of buffers that are gone are taken off at the next count.
_gone: SimpleQueue[list[int]] = SimpleQueue()


def _count(nbytes: int, bytes: list[int] = _bytes) -> None:
    while not _gone.empty():
        bytes[0] -= _gone.get()[0]
    bytes[0] += nbytes
    if bytes[0] > bytes[1]:
        bytes[1] = bytes[0]


class Held(buffers.Elsewhere):
    """A buffer: `host` is one of the host's, `found` an array of jax's; one of the two is None."""

    __slots__ = ("host", "found", "_counted", "looks", "__weakref__")

    def __init__(self, host: Any = None, found: Any = None) -> None:
        self.host: Any = host
        self.found: Any = None
        # In a list, which outlives the buffer.
        self._counted = [0]
        # The memory of the last array that was given out, as long as it is alive.
        self.looks: weakref.ref[Any] | None = None
        if found is not None:
            self.found = found
            # What jax's `nbytes` says, which takes as long as all else here.
            self._counts(found.size * found.dtype.itemsize)
        finalization.at_end(self, functools.partial(_gone.put, self._counted))

    def _counts(self, nbytes: int) -> None:
        _count(nbytes - self._counted[0])
        self._counted[0] = nbytes

    def _keep(self, found: Any) -> None:
        self.host, self.found = None, found
        self._counts(found.size * found.dtype.itemsize)

    def _fetch(self) -> None:
        """Bring the content to the host."""
        if self.host is None:
            self.host, self.found = buffers.host_copy(np.asarray(self.found)), None
            self._counts(0)

    def _stays(self) -> bool:
        """Return whether the host has to keep the content."""
        return (self.looks is not None and self.looks() is not None) or not buffers.is_own(self.host)

    def on_device(self, type: TensorType) -> Any:
        """Return the content as an array of jax's, which belongs to this buffer unless the host has
        to keep it.
        """
        with _lock:
            if self.found is not None:
                if self.found.shape == type.shape and self.found.dtype == type.dtype.numpy:
                    return self.found
                # Seen as another type: the bytes are the same.
                self._fetch()
            made = placed(buffers.to_array(self.host, type))
            if not self._stays():
                self._keep(made)
            return made

    def put(self, found: Any, type: TensorType) -> None:
        """Replace the content by an array of jax's, which belongs to this buffer from now on."""
        with _lock:
            if self.host is not None and self._stays():
                buffers.to_array(self.host, type)[...] = np.asarray(found)
            else:
                self._keep(found)

    # What `engines.buffers` asks.

    def array(self, type: TensorType) -> np.ndarray[Any, Any]:
        with _lock:
            self._fetch()
            array, memory = buffers.look(self.host, type)
            self.looks = weakref.ref(memory)
            return array

    def number(self, type: TensorType) -> Any:
        with _lock:
            if self.found is not None:
                return np.asarray(self.found).item(0)
            return buffers.number(self.host, type)

    def address(self) -> int:
        with _lock:
            if self.host is None:
                return int(self.found.unsafe_buffer_pointer())
            return buffers.address(self.host)

    def copied(self, type: TensorType) -> Any:
        with _lock:
            if self.found is not None:
                return Held(found=jnp.copy(self.found))
            return Held(buffers.copy(self.host, type))

    def is_own(self) -> bool:
        with _lock:
            return self.host is None or buffers.is_own(self.host)

    def is_shared(self) -> bool:
        with _lock:
            host = self.host
            return host is not None and sys.getrefcount(host) > ONE_OWNER


def placed(array: np.ndarray[Any, Any]) -> Any:
    """Return a new array of jax's with the values of one of NumPy's."""
    # Of a copy that nobody writes, as the processor's device may use the memory itself.
    return jax.device_put(np.array(array, order="C"), device())


def held(found: Any) -> Held:
    """Return a buffer of an array of jax's, which belongs to it."""
    return Held(found=found)


def value_of(buffer: Any, type: TensorType) -> tuple[Any, bool]:
    """Return the content of any buffer as an array of jax's, and whether it is the buffer's own."""
    if isinstance(buffer, Held):
        found = buffer.on_device(type)
        return found, found is buffer.found
    return placed(buffers.to_array(buffer, type)), False


def array_of(buffer: Any, type: TensorType) -> Any:
    """Return the content of any buffer as an array of jax's that is only read."""
    found = buffer.found if buffer.__class__ is Held else None
    if found is not None and found.shape == type.shape and found.dtype == type.dtype.numpy:
        return found
    return value_of(buffer, type)[0]


def write(buffer: Any, found: Any, type: TensorType) -> None:
    """Write an array of jax's into any buffer; of a `Held` it becomes the content."""
    if isinstance(buffer, Held):
        buffer.put(found, type)
    else:
        buffers.to_array(buffer, type)[...] = np.asarray(found)


def wait() -> None:
    """Wait until every array on a device is computed."""
    jax.block_until_ready([a for a in jax.live_arrays() if not a.is_deleted()])


# The account.


def account() -> MemoryAccount:
    """Return the host's account, with the bytes of buffers on devices added."""
    host = buffers.account()
    _count(0)
    now, most = _bytes
    return host._replace(
        allocated=host.allocated + now,
        most_allocated=host.most_allocated + most,
        reserved=host.reserved + now,
        most_reserved=host.most_reserved + most,
    )


def reset_peak() -> None:
    """Reset the maximum of what is on devices to the amount in use now."""
    _count(0)
    _bytes[1] = _bytes[0]
