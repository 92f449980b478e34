"""The way from Python into routines: a function of Python's own for each code of a routine.

Such a function checks that its arguments are those that the code was made for, and calls it
without Python's lock. Where they are not, it does nothing and says so; who called it finds other
code then. All functions have one native entry, which reads what it expects from a table of words:

    0  how many arguments there are
    1  the address of the code, which takes an array of words
    2  the type of arrays
    3  for each argument what it is, one of the numbers below, and what of it is known: of an array
       the element type as NumPy's descriptor has it, of a constant the object

The entry reads objects of CPython and arrays of NumPy in memory. Their layout is looked at once;
where it is another one there are no such functions.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np

from mycel.base import locks

__all__ = ["ARRAY", "CONSTANT", "DOUBLE", "INTEGER", "MOST", "Door", "door", "element_of"]

# What an argument is.
ARRAY, INTEGER, DOUBLE, CONSTANT = range(4)
# No routine with a door has more arguments.
MOST = 32
# Offsets in an object, in an array, and of what says the element type in its descriptor, without
# the bits that are flags of the descriptor itself.
_TYPE, _DATA, _DESCRIPTOR, _FLAGS, _ELEMENT = 8, 16, 56, 64, 24
_ELEMENT_BITS = 0xFFFFFFFF00FFFFFF
_FASTCALL = 0x80
_PYTHON = (
    *("PyLong_AsSsize_t", "PyFloat_AsDouble", "PyObject_RichCompareBool", "PyErr_Occurred", "PyErr_Clear"),
    *("PyBool_FromLong", "PyEval_SaveThread", "PyEval_RestoreThread"),
)
_TEXT = f"""; loops
declare i64 @PyLong_AsSsize_t(ptr)
declare double @PyFloat_AsDouble(ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare ptr @PyBool_FromLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

define ptr @mycel_routine_door(ptr %self, ptr %arguments, i64 %count) {{
  %words = alloca [{MOST} x i64]
  %p.table = getelementptr i8, ptr %self, i64 {_DATA}
  %table = load ptr, ptr %p.table
  %wanted = load i64, ptr %table
  %enough = icmp eq i64 %count, %wanted
  %p.code = getelementptr i64, ptr %table, i64 1
  %code = load ptr, ptr %p.code
  %p.array = getelementptr i64, ptr %table, i64 2
  %type.array = load ptr, ptr %p.array
  br i1 %enough, label %again, label %other
again:
  %i = phi i64 [ 0, %0 ], [ %next, %kept ]
  %given = phi i64 [ 0, %0 ], [ %given.next, %kept ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %run
one:
  %p.argument = getelementptr ptr, ptr %arguments, i64 %i
  %argument = load ptr, ptr %p.argument
  %twice = shl i64 %i, 1
  %at.kind = add i64 %twice, 3
  %at.known = add i64 %twice, 4
  %p.kind = getelementptr i64, ptr %table, i64 %at.kind
  %kind = load i64, ptr %p.kind
  %p.known = getelementptr i64, ptr %table, i64 %at.known
  %known = load i64, ptr %p.known
  switch i64 %kind, label %other [ i64 {ARRAY}, label %array i64 {INTEGER}, label %integer
                                   i64 {DOUBLE}, label %double i64 {CONSTANT}, label %constant ]
array:
  %p.type = getelementptr i8, ptr %argument, i64 {_TYPE}
  %type = load ptr, ptr %p.type
  %is.array = icmp eq ptr %type, %type.array
  br i1 %is.array, label %described, label %other
described:
  %p.descriptor = getelementptr i8, ptr %argument, i64 {_DESCRIPTOR}
  %descriptor = load ptr, ptr %p.descriptor
  %p.element = getelementptr i8, ptr %descriptor, i64 {_ELEMENT}
  %element = load i64, ptr %p.element
  %element.bits = and i64 %element, {_ELEMENT_BITS - (1 << 64)}
  %of.type = icmp eq i64 %element.bits, %known
  %p.flags = getelementptr i8, ptr %argument, i64 {_FLAGS}
  %flags = load i32, ptr %p.flags
  %in.order = trunc i32 %flags to i1
  %fits = and i1 %of.type, %in.order
  %p.data = getelementptr i8, ptr %argument, i64 {_DATA}
  %data = load i64, ptr %p.data
  br i1 %fits, label %keep, label %other
integer:
  %number = call i64 @PyLong_AsSsize_t(ptr %argument)
  %number.fails = icmp eq i64 %number, -1
  br i1 %number.fails, label %perhaps, label %keep
double:
  %value = call double @PyFloat_AsDouble(ptr %argument)
  %bits = bitcast double %value to i64
  %value.fails = fcmp oeq double %value, -1.0
  br i1 %value.fails, label %perhaps, label %keep
perhaps:
  %asked = phi i64 [ %number, %integer ], [ %bits, %double ]
  %error = call ptr @PyErr_Occurred()
  %right = icmp eq ptr %error, null
  br i1 %right, label %keep, label %wrong
constant:
  %object = inttoptr i64 %known to ptr
  %itself = icmp eq ptr %object, %argument
  br i1 %itself, label %kept, label %compared
compared:
  %equal = call i32 @PyObject_RichCompareBool(ptr %object, ptr %argument, i32 2)
  %same = icmp eq i32 %equal, 1
  br i1 %same, label %kept, label %differ
differ:
  %refused = icmp slt i32 %equal, 0
  br i1 %refused, label %wrong, label %other
keep:
  %word = phi i64 [ %data, %described ], [ %number, %integer ], [ %bits, %double ], [ %asked, %perhaps ]
  %p.word = getelementptr i64, ptr %words, i64 %given
  store i64 %word, ptr %p.word
  %given.more = add i64 %given, 1
  br label %kept
kept:
  %given.next = phi i64 [ %given, %constant ], [ %given, %compared ], [ %given.more, %keep ]
  %next = add i64 %i, 1
  br label %again
run:
  %thread = call ptr @PyEval_SaveThread()
  call void %code(ptr %words)
  call void @PyEval_RestoreThread(ptr %thread)
  %yes = call ptr @PyBool_FromLong(i64 1)
  ret ptr %yes
wrong:
  call void @PyErr_Clear()
  br label %other
other:
  %no = call ptr @PyBool_FromLong(i64 0)
  ret ptr %no
}}
"""


class _Method(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def element_of(dtype: np.dtype[Any]) -> int:
    """Return the word by which NumPy's descriptor says the element type."""
    return ctypes.c_uint64.from_address(id(dtype) + _ELEMENT).value & _ELEMENT_BITS


def _layout() -> bool:
    """Return whether objects and arrays lie in memory as the entry reads them."""
    if sys.implementation.name != "cpython" or sys.byteorder != "little" or object.__basicsize__ != _DATA:
        return False
    word = ctypes.c_uint64.from_address
    for array in (np.zeros((3, 4), np.uint8), np.zeros((2, 3), np.float64)[:, 1:]):
        at = id(array)
        if (
            word(at + _TYPE).value != id(np.ndarray)
            or word(at + _DATA).value != array.ctypes.data
            or word(at + _DESCRIPTOR).value != id(array.dtype)
            or bool(word(at + _FLAGS).value & 1) != array.flags.c_contiguous
        ):
            return False
        content = word(id(array.dtype) + _ELEMENT).value.to_bytes(8, "little")
        if content[:2] != f"{array.dtype.kind}{array.dtype.char}".encode() or content[4] != array.dtype.num:
            return False
    return True


class Door:
    """The native entry of this process, of which it makes functions."""

    def __init__(self) -> None:
        from mycel.engines.native.llvm.jit import compile_objects, machine, python_symbols

        name = "mycel_routine_door"
        (address,) = machine().link(compile_objects([_TEXT])[0], [name], python_symbols(_PYTHON))
        self._method = _Method(b"routine", address, _FASTCALL, None)
        # The last argument is what the function keeps as its module, which may be any object.
        self._new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
            ("PyCFunction_NewEx", ctypes.pythonapi)
        )

    def function(self, code: int, arguments: Sequence[tuple[int, Any]]) -> Callable[..., bool]:
        """Return a function that calls code with the words of its arguments where they are right.

        * `code`: the address of code that takes an array of words.
        * `arguments`: what each is, with an array or a constant that is right.

        It returns whether they were right.
        """
        words = [len(arguments), code, id(np.ndarray)]
        for kind, right in arguments:
            words += [kind, id(right) if kind == CONSTANT else element_of(right.dtype) if kind == ARRAY else 0]
        constants = [right for kind, right in arguments if kind == CONSTANT]
        made: Callable[..., bool] = self._new(ctypes.addressof(self._method), np.array(words, np.uint64), constants)
        return made


_doors: list[Optional[Door]] = []
_making = locks.lock()


def door() -> Optional[Door]:
    """Return the entry of this process, or None where objects lie in memory otherwise."""
    if not _doors:
        with _making:
            if not _doors:
                _doors.append(Door() if _layout() else None)
    return _doors[0]
