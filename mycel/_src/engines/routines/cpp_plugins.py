"""C++ plugins that compute columns, by MindSpore's plugin interface, version 0.5.

A library exports `GetInstance`, and the object that it returns names operations. An operation has
`ParseSerializedArgs` for its arguments as text, and `Compute`, which takes a vector of tensors and
makes another one. There is no C in it: the functions are virtual and their arguments are strings
and vectors of C++, which are written and read here as GNU's C++ library lays them out on x86-64.
Strings have an old and a new layout there, and the library was compiled for one of them. It is the
old one where only the first word of the memory for a returned string is written.

Memory passes from one side to the other, as a library may keep or exchange what it receives. So all
of it is taken and given back by the library's own `operator new` and `operator delete`, strings are
made and ended by the functions of its C++ library, and tensors are ended by machine code, which
needs no Python.
"""

from __future__ import annotations

import ctypes
import math
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mycel._src.engines.native.llvm.jit import compile_objects, machine
from mycel._src.foundation.system import locks

__all__ = ["Operation", "Plugins", "opened"]

Array = np.ndarray[Any, Any]

_WORD = 8
# The places of virtual functions in their table; the first two end an object.
_VERSION, _NAMES, _MODULE = 2, 3, 4
_PARSE, _COMPUTE = 2, 3
# A tensor: its table, then three vectors of three words (bytes, sizes and offsets), then its type.
_BYTES, _SIZES, _OFFSETS, _TYPE = 8, 32, 56, 80
# A status: its table, whether it is good, and a text.
_GOOD, _TEXT = 8, 16
# A node of a map or set: a colour, three addresses, and the value. The root is in the third word.
_LEFT, _RIGHT, _VALUE, _ROOT = 16, 24, 32, 16
# More than any object here takes.
_ROOM = 128
_UNTOUCHED = 0xA5A5A5A5A5A5A5A5

_TYPES = {
    np.dtype(name): name
    for name in (
        *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "float32", "float64"),
    )
}
_NUMERIC = {name: dtype for dtype, name in _TYPES.items()}

# Ends a tensor. Its table is followed by the addresses of `operator delete` and what ends strings.
_CODE = f"""; ends of tensors
define void @mycel_plugin_tensor_end(ptr %tensor) {{
  %table = load ptr, ptr %tensor
  %p.delete = getelementptr ptr, ptr %table, i64 2
  %delete = load ptr, ptr %p.delete
  %p.end = getelementptr ptr, ptr %table, i64 3
  %end = load ptr, ptr %p.end
  %p.bytes = getelementptr i8, ptr %tensor, i64 {_BYTES}
  %bytes = load ptr, ptr %p.bytes
  call void %delete(ptr %bytes)
  %p.sizes = getelementptr i8, ptr %tensor, i64 {_SIZES}
  %sizes = load ptr, ptr %p.sizes
  call void %delete(ptr %sizes)
  %p.offsets = getelementptr i8, ptr %tensor, i64 {_OFFSETS}
  %offsets = load ptr, ptr %p.offsets
  call void %delete(ptr %offsets)
  %type = getelementptr i8, ptr %tensor, i64 {_TYPE}
  call void %end(ptr %type)
  ret void
}}

define void @mycel_plugin_tensor_delete(ptr %tensor) {{
  %table = load ptr, ptr %tensor
  %p.delete = getelementptr ptr, ptr %table, i64 2
  %delete = load ptr, ptr %p.delete
  call void @mycel_plugin_tensor_end(ptr %tensor)
  call void %delete(ptr %tensor)
  ret void
}}
"""


class _Strings(NamedTuple):
    """A layout of strings: the bytes that one takes, and the functions that make and end one."""

    size: int
    make: str
    end: str


_OLD = _Strings(8, "_ZNSsC1EPKcmRKSaIcE", "_ZNSsD1Ev")
_NEW_NAME = "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
_NEW = _Strings(32, f"{_NEW_NAME}C1EPKcmRKS3_", f"{_NEW_NAME}D1Ev")


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _function(address: int, result: Any, *types: Any) -> Callable[..., Any]:
    return ctypes.CFUNCTYPE(result, *types)(address)


def _virtual(made: int, number: int, result: Any = None, *, takes: int = 1) -> Callable[..., Any]:
    """Return a virtual function of an object, which takes so many addresses."""
    return _function(_word(_word(made) + number * _WORD), result, *(ctypes.c_void_p,) * takes)


def _room() -> tuple[Any, int]:
    """Return memory for an object that a function returns, to be held, and its address."""
    memory = (ctypes.c_uint64 * (_ROOM // _WORD))(*(_UNTOUCHED,) * (_ROOM // _WORD))
    return memory, ctypes.addressof(memory)


class Plugins:
    """The operations of a library, by its path.

    Raises RuntimeError where the file is no library or not one of this interface.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        if platform.machine() not in ("x86_64", "AMD64") or not sys.platform.startswith("linux"):
            here = f"{sys.platform} on {platform.machine()}"
            self._refuse(f"the layout of C++ objects is known for Linux on x86-64, not for {here}")
        if not path:
            # The system would take it for this process.
            self._refuse("it is no path")
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise RuntimeError(f"Plugin: cannot load {path!r}: {error}") from None
        self._new = _function(self._address("_Znwm"), ctypes.c_void_p, ctypes.c_size_t)
        self._delete = _function(self._address("_ZdlPv"), None, ctypes.c_void_p)
        instance = _function(self._address("GetInstance"), ctypes.c_void_p, ctypes.c_void_p)(None)
        if not instance:
            self._refuse("its GetInstance returns no object")
        self._instance: int = instance
        memory, place = _room()
        _virtual(instance, _VERSION, takes=2)(place, instance)
        self._strings = _OLD if memory[1] == _UNTOUCHED else _NEW
        self._make = _function(
            self._address(self._strings.make), None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p
        )
        self._end = _function(self._address(self._strings.end), None, ctypes.c_void_p)
        self.version = self._taken(place)
        self._table = self._made_table()
        self._tensor = _TYPE + self._strings.size

    def operation(self, name: str, arguments: str) -> Operation:
        """Return an operation with its arguments.

        Raises RuntimeError where the library has none of this name, or refuses the arguments.
        """
        _held, text = self._text(name)
        made = _virtual(self._instance, _MODULE, ctypes.c_void_p, takes=2)(self._instance, text)
        self._end(text)
        if not made:
            known = ", ".join(map(repr, self.names())) or "none"
            raise RuntimeError(f"Plugin: {self.path!r} has no operation {name!r}; it names {known}")
        _held, text = self._text(arguments)
        _status, place = _room()
        _virtual(made, _PARSE, takes=3)(place, made, text)
        self._end(text)
        self.check(place, f"Plugin: {name!r} of {self.path!r} refuses its arguments {arguments!r}")
        return Operation(self, name, made)

    def names(self) -> list[str]:
        """Return the names of the operations; the few bytes of the list stay in use."""
        _kinds, place = _room()
        _virtual(self._instance, _NAMES, takes=2)(place, self._instance)
        found: list[str] = []

        def walk(node: int, visit: Callable[[int], None]) -> None:
            if node:
                walk(_word(node + _LEFT), visit)
                visit(node + _VALUE)
                walk(_word(node + _RIGHT), visit)

        def kind(value: int) -> None:
            walk(_word(value + self._strings.size + _ROOT), lambda name: found.append(self._read(name)))

        walk(_word(place + _ROOT), kind)
        return found

    def check(self, status: int, prefix: str) -> None:
        """Raise what a status says, if it is not good, and end it."""
        good = ctypes.c_bool.from_address(status + _GOOD).value
        said = self._taken(status + _TEXT)
        if not good:
            raise RuntimeError(f"{prefix}: {said or 'it gives no reason'}")

    def row_of(self, arrays: Sequence[tuple[str, tuple[int, ...], int, int]]) -> Any:
        """Return a vector of tensors, given by type, shape, and a number of bytes at an address."""
        size = self._tensor * len(arrays)
        begin = self._new(size)
        for k, (kind, shape, count, address) in enumerate(arrays):
            tensor = begin + k * self._tensor
            ctypes.c_uint64.from_address(tensor).value = self._table
            sizes = (ctypes.c_int64 * len(shape))(*shape)
            self._vector(tensor + _BYTES, address, count)
            self._vector(tensor + _SIZES, ctypes.addressof(sizes), len(shape) * _WORD)
            self._vector(tensor + _OFFSETS, 0, 0)
            self._make(tensor + _TYPE, kind.encode(), len(kind), b"")
        return (ctypes.c_uint64 * 3)(begin, begin + size, begin + size)

    def tensors(self, row: Any) -> list[int]:
        """Return the addresses of the tensors of a vector."""
        return list(range(row[0], row[1], self._tensor))

    def array(self, tensor: int, operation: str) -> Array:
        """Return a copy of a tensor.

        Raises RuntimeError where its bytes are not an array of its type and shape.
        """
        kind = self._read(tensor + _TYPE)
        dtype = _NUMERIC.get(kind)
        if dtype is None:
            raise RuntimeError(f"Plugin: {operation!r} returned type {kind!r}; types are {', '.join(_NUMERIC)}")
        begin, end = (_word(tensor + _SIZES + k * _WORD) for k in (0, 1))
        shape = tuple((ctypes.c_int64 * ((end - begin) // _WORD)).from_address(begin)) if begin else ()
        first, last = (_word(tensor + _BYTES + k * _WORD) for k in (0, 1))
        if any(d < 0 for d in shape):
            raise RuntimeError(f"Plugin: {operation!r} returned shape {shape}; sizes are not negative")
        needed = math.prod(shape) * dtype.itemsize
        if needed > last - first:
            raise RuntimeError(
                f"Plugin: {operation!r} returned {last - first} bytes for shape {shape} of {kind}, which takes {needed}"
            )
        made = np.empty(shape, dtype)
        ctypes.memmove(made.ctypes.data, first, needed)
        return made

    def give_back(self, row: Any) -> None:
        """End the tensors of a vector, and its memory."""
        for tensor in self.tensors(row):
            _virtual(tensor, 0)(tensor)
        self._delete(row[0])

    # Strings and vectors.

    def _text(self, text: str) -> tuple[Any, int]:
        """Return a string in memory of ours, and its address."""
        content = text.encode()
        memory, place = _room()
        self._make(place, content, len(content), b"")
        return memory, place

    def _read(self, place: int) -> str:
        address = _word(place)
        length = _word(address - 3 * _WORD) if self._strings is _OLD else _word(place + _WORD)
        return ctypes.string_at(address, length).decode(errors="replace")

    def _taken(self, place: int) -> str:
        """Return the text of a string, and end it."""
        text = self._read(place)
        self._end(place)
        return text

    def _vector(self, place: int, source: int, count: int) -> None:
        begin = self._new(count) if count else 0
        if count:
            ctypes.memmove(begin, source, count)
        for k, value in enumerate((begin, begin + count, begin + count)):
            ctypes.c_uint64.from_address(place + k * _WORD).value = value

    # The library.

    def _refuse(self, why: str) -> NoReturn:
        raise RuntimeError(f"Plugin: cannot use {self.path!r}: {why}")

    def _address(self, name: str) -> int:
        try:
            address = ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value
        except AttributeError:
            self._refuse(
                f"it has no {name}; a library has GetInstance of MindSpore's shared_include.h, and is linked with "
                "GNU's C++ library as a shared one"
            )
        assert address
        return address

    def _made_table(self) -> int:
        """Return the table of virtual functions of our tensors, which is kept for good."""
        names = ["mycel_plugin_tensor_end", "mycel_plugin_tensor_delete"]
        code = machine().link(compile_objects([_CODE])[0], names, {})
        words = [0, 0, *code, self._address("_ZdlPv"), self._address(self._strings.end)]
        table = self._new(len(words) * _WORD)
        ctypes.memmove(table, (ctypes.c_uint64 * len(words))(*words), len(words) * _WORD)
        made: int = table + 2 * _WORD
        return made


class Operation:
    """An operation of a library, with its arguments."""

    def __init__(self, plugins: Plugins, name: str, made: int) -> None:
        self._plugins, self.name = plugins, name
        self._made = made
        self._compute = _virtual(made, _COMPUTE, takes=4)

    def compute(self, arrays: Sequence[Array]) -> list[Array]:
        """Return what the operation makes of arrays.

        Raises TypeError and ValueError for arrays that the interface has no form for, RuntimeError
        where the operation says so or returns what is no array.
        """
        # What is given by address is held by this list.
        held = [self._given(array) for array in arrays]
        row = self._plugins.row_of([(kind, shape, len(data), data.ctypes.data) for kind, shape, data in held])
        made = (ctypes.c_uint64 * 3)()
        _status, place = _room()
        try:
            self._compute(place, self._made, ctypes.addressof(row), ctypes.addressof(made))
            self._plugins.check(place, f"Plugin: {self.name!r} failed")
            return [self._plugins.array(tensor, self.name) for tensor in self._plugins.tensors(made)]
        finally:
            self._plugins.give_back(row)
            self._plugins.give_back(made)

    def _given(self, array: Array) -> tuple[str, tuple[int, ...], np.ndarray[Any, np.dtype[np.uint8]]]:
        """Return the type, shape and bytes of an array."""
        if array.dtype.kind in "US":
            if array.size != 1:
                raise ValueError(f"Plugin: {self.name!r} takes texts one at a time, got an array of {array.size}")
            (text,) = array.ravel().tolist()
            content = text if isinstance(text, bytes) else text.encode()
            return "string", array.shape, np.frombuffer(content, np.uint8)
        kind = _TYPES.get(array.dtype.newbyteorder("="))
        if kind is None:
            raise TypeError(f"Plugin: {self.name!r} takes {', '.join(_NUMERIC)} and text, got {array.dtype}")
        data = np.ascontiguousarray(array, _NUMERIC[kind]).reshape(-1).view(np.uint8)
        return kind, array.shape, data


_OPENED: dict[str, Plugins] = {}
_OPENING = locks.lock()


def opened(path: str) -> Plugins:
    """Return the library of a path; it stays loaded."""
    with _OPENING:
        if path not in _OPENED:
            _OPENED[path] = Plugins(path)
        return _OPENED[path]
