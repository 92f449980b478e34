"""Buffers: the memory behind tensors, as capsules of the native runtime.

All engines that use the host's memory share its allocator. A buffer made from a NumPy array can
share the array's memory; an array made from a buffer always does, and keeps the buffer alive.

An engine with a memory of its own has buffers of a class of its own (`Elsewhere`), which answers
for them. While it is in force, `wrapping` makes one of each new buffer of the host's.
"""

from __future__ import annotations

import builtins
import ctypes
import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.types import TensorType
from mycel._src.engines.base import MemoryAccount
from mycel._src.engines.error_messages import no_memory
from mycel._src.engines.native.runtime.allocator_ir import MEMORY
from mycel._src.engines.native.runtime.runtime import runtime
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import operation_called

__all__ = [
    "Elsewhere",
    "account",
    "address",
    "copy",
    "empty",
    "empty_cache",
    "from_array",
    "host_copy",
    "is_own",
    "is_shared",
    "look",
    "number",
    "reset_peak",
    "share",
    "to_array",
    "wrapping",
    "zeros",
]

_CAPSULE = type(datetime.datetime_CAPI)
# What makes an engine's own buffer of a new one of the host's; None where it has none of its own.
_wrap: list[Callable[[Any], Any] | None] = [None]


class Elsewhere(ABC):
    """A buffer that an engine keeps in a memory of its own; the functions here ask it."""

    __slots__ = ()

    @abstractmethod
    def array(self, type: TensorType) -> np.ndarray[Any, Any]:
        """Return the content as a writable array of the host's; what is written is the content."""

    @abstractmethod
    def number(self, type: TensorType) -> Any:
        """Return the first element as a Python number."""

    @abstractmethod
    def address(self) -> int:
        """Return the address at which the memory starts now."""

    @abstractmethod
    def copied(self, type: TensorType) -> Any:
        """Return a new buffer with the same contents."""

    @abstractmethod
    def is_own(self) -> bool:
        """Return whether the library allocated the memory."""

    @abstractmethod
    def is_shared(self) -> bool:
        """Return whether anybody else refers to the memory, such as an array of it."""


def wrapping(wrap: Callable[[Any], Any] | None) -> None:
    """Make an engine's own buffer of each new one of the host's from now on; None makes none."""
    _wrap[0] = wrap


def empty(nbytes: int) -> Any:
    """Return a new buffer of at least `nbytes`, its contents undefined."""
    made = _host_empty(nbytes)
    return made if _wrap[0] is None else _wrap[0](made)


def zeros(type: TensorType) -> Any:
    """Return a buffer of zeros of a static type."""
    made = empty(int(type.nbytes))
    to_array(made, type).fill(0)
    return made


def _host_empty(nbytes: int) -> Any:
    try:
        return runtime().new_buffer(nbytes)
    except MemoryError:
        name = operation_called()
        raise no_memory(f"{name}: a tensor" if name else "a tensor", nbytes) from None


def address(buffer: Any) -> int:
    """Return the address at which the buffer's memory starts."""
    if type(buffer) is not _CAPSULE:
        return int(buffer.address())
    found: int = runtime().data_address(buffer)
    return found


_NUMBERS = {D.float32: 0, D.float64: 1, D.int32: 2, D.int64: 3, D.bool_: 4}


def number(buffer: Any, type: TensorType) -> Any:
    """Return the first element as a Python number."""
    if builtins.type(buffer) is not _CAPSULE:
        return buffer.number(type)
    kind = _NUMBERS.get(type.dtype)
    return to_array(buffer, type).item(0) if kind is None else runtime().number(buffer, kind)


def from_array(array: np.ndarray[Any, Any]) -> Any:
    """Return a new buffer with a copy of an array's contents."""
    made = host_copy(array)
    return made if _wrap[0] is None else _wrap[0](made)


def host_copy(array: np.ndarray[Any, Any]) -> Any:
    """Return a new buffer of the host's with a copy of an array's contents."""
    array = np.ascontiguousarray(array)
    buffer = _host_empty(array.nbytes)
    if array.nbytes:
        ctypes.memmove(address(buffer), _start(array), array.nbytes)
    return buffer


_first_byte: Callable[[Any], ctypes.c_char] = ctypes.c_char.from_buffer


# NumPy's own numbers, which arrays export to others; types that packages add have other letters.
_EXPORTED = frozenset("?bBhHiIlLqQefdgFDG")


def _start(array: np.ndarray[Any, Any]) -> int:
    """Return the address of the memory of a C-contiguous array that has elements."""
    if array.flags.writeable and array.dtype.char in _EXPORTED:
        # A quarter of the time that the interface takes.
        return ctypes.addressof(_first_byte(array))
    return int(array.__array_interface__["data"][0])


def share(array: np.ndarray[Any, Any]) -> Any:
    """Return a buffer that shares a writable C-contiguous array's memory; else one with a copy."""
    if array.flags.c_contiguous and array.flags.writeable and array.nbytes:
        made = runtime().wrap(array, _start(array))
        return made if _wrap[0] is None else _wrap[0](made)
    return from_array(array)


def is_own(buffer: Any) -> bool:
    """Return whether the library allocated a buffer's memory, rather than an array from outside."""
    return not _context_of(buffer) if type(buffer) is _CAPSULE else bool(buffer.is_own())


def is_shared(buffer: Any) -> bool:
    """Return whether others refer to the memory of a buffer beside those that have the buffer."""
    return type(buffer) is not _CAPSULE and bool(buffer.is_shared())


_context_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetContext", ctypes.pythonapi))


class _Memory:
    """An object that gives NumPy a buffer's memory and keeps the buffer alive."""

    __slots__ = ("__array_interface__", "__weakref__", "buffer")

    def __init__(self, buffer: Any, interface: dict[str, Any]) -> None:
        self.buffer = buffer
        self.__array_interface__ = interface


def to_array(buffer: Any, type: TensorType) -> np.ndarray[Any, Any]:
    """Return the buffer's memory as a writable NumPy array of a static type; raise ValueError for
    None, as programs do where an operand has no value yet.
    """
    if builtins.type(buffer) is not _CAPSULE:
        if buffer is None:
            raise ValueError(f"a buffer of {type} is missing")
        found: np.ndarray[Any, Any] = buffer.array(type)
        return found
    return look(buffer, type)[0]


def look(buffer: Any, type: TensorType) -> tuple[np.ndarray[Any, Any], Any]:
    """Return the memory of a buffer of the host's as an array, and what lives as long as it."""
    kind = type.dtype.numpy
    plain = kind.str if kind.isbuiltin == 1 else f"<u{kind.itemsize}"
    interface = {"version": 3, "shape": type.shape, "typestr": plain, "data": (address(buffer), False)}
    memory = _Memory(buffer, interface)
    array = np.asarray(memory)
    return array if plain == kind.str else array.view(kind), memory


def copy(buffer: Any, type: TensorType) -> Any:
    """Return a new buffer with the same contents."""
    if builtins.type(buffer) is not _CAPSULE:
        return buffer.copied(type)
    nbytes = int(type.nbytes)
    made = _host_empty(nbytes)
    if nbytes:
        ctypes.memmove(address(made), address(buffer), nbytes)
    return made if _wrap[0] is None else _wrap[0](made)


# The allocator.

_ACCOUNT = [MEMORY.index(name) for name in MemoryAccount._fields]


def account() -> MemoryAccount:
    """Return what the allocator has given out and holds."""
    words = runtime().account
    return MemoryAccount(*[words[k] for k in _ACCOUNT])


def reset_peak(allocated: bool, reserved: bool) -> None:
    """Reset the maxima of the account to the amounts in use now."""
    words = runtime().account
    for name, chosen in (("allocated", allocated), ("reserved", reserved)):
        if chosen:
            words[MEMORY.index(f"most_{name}")] = words[MEMORY.index(name)]


def empty_cache() -> None:
    """Give memory that waits for new buffers back to the system."""
    runtime().empty_cache()
