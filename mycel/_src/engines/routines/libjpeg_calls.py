"""Calls of libjpeg-turbo from machine code, with its errors caught by a long jump.

The library reports errors by a function that must not return, so what calls it has a long jump. Its
interface is that of version 6.2 on machines of 64 bits; a library of another one refuses the sizes
that it is told, and this is an error like others.

A call has a state: the library's structure, then its manager of errors, where to jump to, the
message of the last error, and from `OWN` on what a caller keeps. Errors jump with 1.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.engines.native.llvm.jit import compile_objects, machine
from mycel._src.engines.routines.array_address import address
from mycel._src.foundation.system import locks

__all__ = [
    "CHANNELS",
    "ERRORS",
    "HEIGHT",
    "JUMP",
    "MESSAGE",
    "OWN",
    "VERSION",
    "WARNINGS",
    "WIDTH",
    "Calls",
    "message_of",
]

VERSION = 62
# Offsets in both of the library's structures.
WIDTH, HEIGHT, CHANNELS = 48, 52, 56
# Offsets in its manager of errors.
_EXIT, _EMIT, _OUTPUT, _FORMAT, WARNINGS = 0, 8, 16, 24, 128
# Where the parts of a state are.
ERRORS, JUMP, MESSAGE, OWN = 1024, 1280, 1536, 2048
_LONGEST = 200

_COMMON = f"""; loops
declare i32 @_setjmp(ptr) returns_twice
declare void @longjmp(ptr, i32) noreturn

define internal void @leave(ptr %state) {{
  %manager = load ptr, ptr %state
  %p.format = getelementptr i8, ptr %manager, i64 {_FORMAT}
  %format = load ptr, ptr %p.format
  %message = getelementptr i8, ptr %state, i64 {MESSAGE}
  call void %format(ptr %state, ptr %message)
  %jump = getelementptr i8, ptr %state, i64 {JUMP}
  call void @longjmp(ptr %jump, i32 1)
  unreachable
}}

define internal void @note(ptr %state, i32 %level) {{
  %warns = icmp slt i32 %level, 0
  %place = getelementptr i8, ptr %state, i64 {ERRORS + WARNINGS}
  %before = load i64, ptr %place
  %more = zext i1 %warns to i64
  %now = add i64 %before, %more
  store i64 %now, ptr %place
  ret void
}}

define internal void @quiet(ptr %state) {{
  ret void
}}

"""

# How a function begins: with the library's functions, its manager of errors, and the place to which
# errors jump.
_BEGIN = f"""  %errors = getelementptr i8, ptr %state, i64 {ERRORS}
FUNCTIONS
  %manager = call ptr %f.std_error(ptr %errors)
  store ptr %manager, ptr %state
  %p.exit = getelementptr i8, ptr %errors, i64 {_EXIT}
  store ptr @leave, ptr %p.exit
  %p.emit = getelementptr i8, ptr %errors, i64 {_EMIT}
  store ptr @note, ptr %p.emit
  %p.output = getelementptr i8, ptr %errors, i64 {_OUTPUT}
  store ptr @quiet, ptr %p.output
  %jump = getelementptr i8, ptr %state, i64 {JUMP}
  %came = call i32 @_setjmp(ptr %jump) returns_twice"""


class Calls:
    """A function of machine code that calls functions of a library.

    Raises OSError where the file is no library, and AttributeError where it lacks a function.
    """

    def __init__(self, path: str, names: Sequence[str], text: str, types: Sequence[Any]) -> None:
        """Find the functions.

        * `path`: the library's.
        * `names`: those of its functions, without "jpeg_", "std_error" among them.
        * `text`: LLVM IR with a function NAME of (functions, state, ...) that has a
          line BEGIN and gives a number; %came is 0, or how a jump came back.
        * `types`: those of the other parameters.
        """
        library = ctypes.CDLL(path)
        addresses = [ctypes.cast(getattr(library, f"jpeg_{name}"), ctypes.c_void_p).value for name in names]
        self._library, self._names, self._text, self._types = library, names, text, types
        self._functions = np.array(addresses, np.uint64)
        self._place: int = address(self._functions)
        self._code: Any = None
        self._making = locks.lock()

    @staticmethod
    def fit() -> bool:
        """Return whether the layout is that of this machine."""
        return sys.platform.startswith("linux") and sys.maxsize > 2**32 and sys.byteorder == "little"

    def __call__(self, state: np.ndarray[Any, Any], *given: int) -> int:
        """Call the function with a state, of zeros if it is a new one, and the other arguments."""
        code = self._code or self._made()
        found: int = code(self._place, address(state), *given)
        return found

    def _made(self) -> Any:
        with self._making:
            if self._code is None:
                functions = []
                for number, name in enumerate(self._names):
                    functions += [
                        f"  %p.{name} = getelementptr ptr, ptr %functions, i64 {number}",
                        f"  %f.{name} = load ptr, ptr %p.{name}",
                    ]
                begin = _BEGIN.replace("FUNCTIONS", "\n".join(functions))
                text = _COMMON + self._text.replace("BEGIN", begin)
                name = f"mycel_jpeg_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
                (address,) = machine().link(compile_objects([text.replace("@NAME(", f"@{name}(")])[0], [name], {})
                self._code = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *self._types)(address)
        return self._code


def message_of(state: np.ndarray[Any, Any]) -> str:
    """Return what the library said of its last error."""
    said = state.view(np.uint8)[MESSAGE : MESSAGE + _LONGEST].tobytes()
    return said.split(b"\0")[0].decode("utf-8", "replace")
