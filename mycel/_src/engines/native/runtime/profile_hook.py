"""A profile hook in native code, which calls Python only for code that is not registered as known.

A hook that is a Python function is called for every call and return of its thread, at some 100 ns
each; during staging that was more than half of the time. CPython calls this one directly
(``PyEval_SetProfile``). It looks up a frame's code, by address, in a hash table with open
addressing, which Python fills. The hook's object, as CPython passes it, is a Python function that
does the same, for code that saves the hook and sets it again with `sys.setprofile`.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable
from typing import Any

from mycel._src.engines import profile_hook
from mycel._src.engines.native.llvm import jit

__all__ = ["KnownCode"]

_TEXT = """
@word = private constant [5 x i8] c"call\\00"
@mycel_table = external global ptr
@mycel_none = external global i8
declare ptr @PyFrame_GetCode(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyUnicode_InternFromString(ptr)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)

define i32 @mycel_watch(ptr %callback, ptr %frame, i32 %what, ptr %argument) {
  %is_call = icmp eq i32 %what, 0
  br i1 %is_call, label %look, label %known
look:
  %code = call ptr @PyFrame_GetCode(ptr %frame)
  call void @Py_DecRef(ptr %code)
  %address = ptrtoint ptr %code to i64
  %slots = load ptr, ptr @mycel_table
  %mask_at = getelementptr ptr, ptr @mycel_table, i64 1
  %mask = load i64, ptr %mask_at
  %start = lshr i64 %address, 4
  br label %probe
probe:
  %k = phi i64 [ %start, %look ], [ %following, %next ]
  %place = and i64 %k, %mask
  %slot = getelementptr i64, ptr %slots, i64 %place
  %held = load i64, ptr %slot
  %found = icmp eq i64 %held, %address
  br i1 %found, label %known, label %other
other:
  %empty = icmp eq i64 %held, 0
  br i1 %empty, label %ask, label %next
next:
  %following = add i64 %k, 1
  br label %probe
ask:
  %text = call ptr @PyUnicode_InternFromString(ptr @word)
  %failed = icmp eq ptr %text, null
  br i1 %failed, label %error, label %go
go:
  %result = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %callback, ptr %frame, ptr %text, \
ptr @mycel_none, ptr null)
  call void @Py_DecRef(ptr %text)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %error, label %done
done:
  call void @Py_DecRef(ptr %result)
  ret i32 0
known:
  ret i32 0
error:
  ret i32 -1
}
"""
_PYTHON = ("PyFrame_GetCode", "Py_DecRef", "PyUnicode_InternFromString", "PyObject_CallFunctionObjArgs")


class KnownCode(profile_hook.KnownCode):
    """The code objects that the hook does not report, in a table that native code reads.

    >>> known = KnownCode()
    >>> known.add(KnownCode.add.__code__)
    >>> id(KnownCode.add.__code__) in known.codes, id(KnownCode.watch.__code__) in known.codes
    (True, False)
    """

    def __init__(self) -> None:
        super().__init__()
        self._table: Any = (ctypes.c_int64 * 2)()
        self._slots: Any = None
        self._hook: int | None = None
        self._resize(1 << 10)

    def _resize(self, size: int) -> None:
        slots = (ctypes.c_int64 * size)()
        for address in self.codes:
            _put(slots, size - 1, address)
        self._table[0], self._table[1] = ctypes.addressof(slots), size - 1
        self._slots = slots

    def add(self, code: types.CodeType) -> None:
        if id(code) not in self.codes:
            self.codes[id(code)] = code
            if 2 * len(self.codes) > len(self._slots):
                self._resize(2 * len(self._slots))
            else:
                _put(self._slots, len(self._slots) - 1, id(code))

    def watch(self, callback: Callable[[types.FrameType, str, Any], Any]) -> None:
        if self._hook is None:
            (code,) = jit.compile_objects([_TEXT])
            symbols = jit.python_symbols(_PYTHON)
            symbols.update(mycel_table=ctypes.addressof(self._table), mycel_none=id(None))
            self._hook = jit.machine().link(code, ["mycel_watch"], symbols)[0]
        _set_profile(self._hook, callback)


def _put(slots: Any, mask: int, address: int) -> None:
    k = address >> 4
    while slots[k & mask]:
        k += 1
    slots[k & mask] = address


_set_profile: Any = ctypes.pythonapi.PyEval_SetProfile
_set_profile.restype, _set_profile.argtypes = None, [ctypes.c_void_p, ctypes.py_object]
