"""METH_FASTCALL built-ins that check arguments and call compiled routines without Python's lock.

There is one such function for each code of a routine. It checks that its arguments are those that
the code was made for, and calls it without Python's lock. Where they are not, it does nothing and
says so; who called it finds other code then. All functions have one native entry, which reads what
it expects from a table of words:

    0  how many arguments there are
    1  the address of the code, which takes an array of words
    2  the type of arrays
    3  for each argument what it is, one of the numbers below, and what of it is known: of an array
       the element type as NumPy's descriptor has it, of a constant the object

A second native entry is for calls that are made again and again with arrays of one type and shape.
Its functions take such an array, and maybe numbers, make the arrays of the result and those that
code works in, call one code after the other, and return the result; for anything else they return
None. Their table has

    0  the type of arrays
    1  the element type that is taken, 2 the number of axes, and 3 the address of their lengths
    4  how many arrays are made, and 5 the address of what says how: for each a Python function,
       its arguments, and how many bytes of the array that is given it begins with
    6  how many words code is given in all, and 7 their address
    8  how many of them are places in arrays, and 9 the address of these: for each which word it is,
       which array, where 0 is the one that is given, and how many bytes from its beginning
    10 how many codes are called, and 11 the address of these: for each the code and its first word
    12 how many of the arrays made are the result, a tuple of them where there are several, and 13
       None
    14 how many arguments there are: the array, and numbers
    15 how many words are such numbers, and 16 the address of these: for each which argument it is,
       whether it is an INTEGER or a DOUBLE, and which word

The entries read objects of CPython and arrays of NumPy in memory. Where these are not of a known
version (`python_runtime/interpreter_checks.py`), or do not lie as they should, there are no such
functions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mycel._src.engines.native.llvm.jit import compile_objects, machine, python_symbols
from mycel._src.foundation.python_runtime import interpreter_checks
from mycel._src.foundation.system import locks

__all__ = ["ARRAY", "CONSTANT", "DATA", "DOUBLE", "FASTCALL", "INTEGER", "MOST", "MOST_MADE"]
__all__ += ["Door", "Method", "Steps", "door", "element_of"]

# What an argument is.
ARRAY, INTEGER, DOUBLE, CONSTANT = range(4)
# No routine with a native entry has more arguments.
MOST = 32
# How many arrays a function of the second entry makes at most.
MOST_MADE = 24
# Offsets in an object, in an array, and of what says the element type in its descriptor, without
# the bits that are flags of the descriptor itself.
_TYPE, DATA, _AXES, _LENGTHS, _DESCRIPTOR, _FLAGS, _ELEMENT = 8, 16, 24, 32, 56, 64, 24
_ELEMENT_BITS = 0xFFFFFFFF00FFFFFF
FASTCALL = 0x80
_PYTHON = (
    *("PyLong_AsSsize_t", "PyFloat_AsDouble", "PyObject_RichCompareBool", "PyErr_Occurred", "PyErr_Clear"),
    *("PyBool_FromLong", "PyEval_SaveThread", "PyEval_RestoreThread"),
    *("PyObject_Call", "PyTuple_New", "PyTuple_SetItem", "Py_IncRef", "Py_DecRef"),
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
declare ptr @PyObject_Call(ptr, ptr, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)

define ptr @mycel_routine_door(ptr %self, ptr %arguments, i64 %count) {{
  %words = alloca [{MOST} x i64]
  %p.table = getelementptr i8, ptr %self, i64 {DATA}
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
  %p.data = getelementptr i8, ptr %argument, i64 {DATA}
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

define ptr @mycel_routine_kept(ptr %self, ptr %arguments, i64 %count) {{
  %made = alloca [{MOST_MADE} x ptr]
  %data = alloca [{MOST_MADE + 1} x i64]
  %p.table = getelementptr i8, ptr %self, i64 {DATA}
  %table = load ptr, ptr %p.table
  %t14 = getelementptr i64, ptr %table, i64 14
  %wanted.count = load i64, ptr %t14
  %one = icmp eq i64 %count, %wanted.count
  br i1 %one, label %typed, label %other
typed:
  %array = load ptr, ptr %arguments
  %p.type = getelementptr i8, ptr %array, i64 {_TYPE}
  %type = load ptr, ptr %p.type
  %type.array = load ptr, ptr %table
  %is.array = icmp eq ptr %type, %type.array
  br i1 %is.array, label %described, label %other
described:
  %p.descriptor = getelementptr i8, ptr %array, i64 {_DESCRIPTOR}
  %descriptor = load ptr, ptr %p.descriptor
  %p.element = getelementptr i8, ptr %descriptor, i64 {_ELEMENT}
  %element = load i64, ptr %p.element
  %element.bits = and i64 %element, {_ELEMENT_BITS - (1 << 64)}
  %t1 = getelementptr i64, ptr %table, i64 1
  %known = load i64, ptr %t1
  %of.type = icmp eq i64 %element.bits, %known
  %p.flags = getelementptr i8, ptr %array, i64 {_FLAGS}
  %flags = load i32, ptr %p.flags
  %in.order = trunc i32 %flags to i1
  %fits = and i1 %of.type, %in.order
  %p.axes = getelementptr i8, ptr %array, i64 {_AXES}
  %axes.short = load i32, ptr %p.axes
  %axes = sext i32 %axes.short to i64
  %t2 = getelementptr i64, ptr %table, i64 2
  %axes.known = load i64, ptr %t2
  %of.rank = icmp eq i64 %axes, %axes.known
  %is.one = and i1 %fits, %of.rank
  br i1 %is.one, label %shaped, label %other
shaped:
  %p.lengths = getelementptr i8, ptr %array, i64 {_LENGTHS}
  %lengths = load ptr, ptr %p.lengths
  %t3 = getelementptr i64, ptr %table, i64 3
  %lengths.known = load ptr, ptr %t3
  br label %axis
axis:
  %a = phi i64 [ 0, %shaped ], [ %a.next, %compared ]
  %a.more = icmp slt i64 %a, %axes
  br i1 %a.more, label %compared, label %right
compared:
  %p.length = getelementptr i64, ptr %lengths, i64 %a
  %length = load i64, ptr %p.length
  %p.wanted = getelementptr i64, ptr %lengths.known, i64 %a
  %wanted = load i64, ptr %p.wanted
  %a.next = add i64 %a, 1
  %as.long = icmp eq i64 %length, %wanted
  br i1 %as.long, label %axis, label %other
right:
  %p.data = getelementptr i8, ptr %array, i64 {DATA}
  %given = load ptr, ptr %p.data
  %given.word = ptrtoint ptr %given to i64
  store i64 %given.word, ptr %data
  %t4 = getelementptr i64, ptr %table, i64 4
  %makes = load i64, ptr %t4
  %t5 = getelementptr i64, ptr %table, i64 5
  %ways = load ptr, ptr %t5
  br label %make
make:
  %m = phi i64 [ 0, %right ], [ %m.next, %begun ]
  %m.more = icmp slt i64 %m, %makes
  br i1 %m.more, label %making, label %fill
making:
  %m.three = mul i64 %m, 3
  %p.maker = getelementptr i64, ptr %ways, i64 %m.three
  %maker = load ptr, ptr %p.maker
  %p.how = getelementptr i64, ptr %p.maker, i64 1
  %how = load ptr, ptr %p.how
  %new = call ptr @PyObject_Call(ptr %maker, ptr %how, ptr null)
  %none = icmp eq ptr %new, null
  br i1 %none, label %undo, label %keep
keep:
  %p.made = getelementptr ptr, ptr %made, i64 %m
  store ptr %new, ptr %p.made
  %p.new = getelementptr i8, ptr %new, i64 {DATA}
  %memory = load ptr, ptr %p.new
  %memory.word = ptrtoint ptr %memory to i64
  %m.next = add i64 %m, 1
  %p.place = getelementptr i64, ptr %data, i64 %m.next
  store i64 %memory.word, ptr %p.place
  %p.bytes = getelementptr i64, ptr %p.maker, i64 2
  %bytes = load i64, ptr %p.bytes
  br label %copy
copy:
  %b = phi i64 [ 0, %keep ], [ %b.next, %copying ]
  %b.more = icmp slt i64 %b, %bytes
  br i1 %b.more, label %copying, label %begun
copying:
  %p.from = getelementptr i8, ptr %given, i64 %b
  %byte = load i8, ptr %p.from
  %p.to = getelementptr i8, ptr %memory, i64 %b
  store i8 %byte, ptr %p.to
  %b.next = add i64 %b, 1
  br label %copy
begun:
  br label %make
fill:
  %t6 = getelementptr i64, ptr %table, i64 6
  %all = load i64, ptr %t6
  %t7 = getelementptr i64, ptr %table, i64 7
  %template = load ptr, ptr %t7
  %words = alloca i64, i64 %all
  br label %word
word:
  %w = phi i64 [ 0, %fill ], [ %w.next, %filling ]
  %w.more = icmp slt i64 %w, %all
  br i1 %w.more, label %filling, label %places
filling:
  %p.template = getelementptr i64, ptr %template, i64 %w
  %content = load i64, ptr %p.template
  %p.word = getelementptr i64, ptr %words, i64 %w
  store i64 %content, ptr %p.word
  %w.next = add i64 %w, 1
  br label %word
places:
  %t8 = getelementptr i64, ptr %table, i64 8
  %placed = load i64, ptr %t8
  %t9 = getelementptr i64, ptr %table, i64 9
  %patches = load ptr, ptr %t9
  br label %patch
patch:
  %p = phi i64 [ 0, %places ], [ %p.next, %patching ]
  %p.more = icmp slt i64 %p, %placed
  br i1 %p.more, label %patching, label %numbers
patching:
  %p.three = mul i64 %p, 3
  %p.which = getelementptr i64, ptr %patches, i64 %p.three
  %which = load i64, ptr %p.which
  %p.of = getelementptr i64, ptr %p.which, i64 1
  %of = load i64, ptr %p.of
  %p.offset = getelementptr i64, ptr %p.which, i64 2
  %offset = load i64, ptr %p.offset
  %p.base = getelementptr i64, ptr %data, i64 %of
  %base = load i64, ptr %p.base
  %at = add i64 %base, %offset
  %p.patched = getelementptr i64, ptr %words, i64 %which
  store i64 %at, ptr %p.patched
  %p.next = add i64 %p, 1
  br label %patch
numbers:
  %t15 = getelementptr i64, ptr %table, i64 15
  %numbered = load i64, ptr %t15
  %t16 = getelementptr i64, ptr %table, i64 16
  %uses = load ptr, ptr %t16
  br label %number
number:
  %n = phi i64 [ 0, %numbers ], [ %n.next, %said ]
  %n.more = icmp slt i64 %n, %numbered
  br i1 %n.more, label %asked, label %run
asked:
  %n.three = mul i64 %n, 3
  %p.use = getelementptr i64, ptr %uses, i64 %n.three
  %use = load i64, ptr %p.use
  %p.as = getelementptr i64, ptr %p.use, i64 1
  %as = load i64, ptr %p.as
  %p.into = getelementptr i64, ptr %p.use, i64 2
  %into = load i64, ptr %p.into
  %p.number = getelementptr ptr, ptr %arguments, i64 %use
  %object = load ptr, ptr %p.number
  %is.double = icmp eq i64 %as, {DOUBLE}
  br i1 %is.double, label %double, label %integer
double:
  %value = call double @PyFloat_AsDouble(ptr %object)
  %value.bits = bitcast double %value to i64
  %value.fails = fcmp oeq double %value, -1.0
  br i1 %value.fails, label %perhaps, label %said
integer:
  %whole = call i64 @PyLong_AsSsize_t(ptr %object)
  %whole.fails = icmp eq i64 %whole, -1
  br i1 %whole.fails, label %perhaps, label %said
perhaps:
  %spoken = phi i64 [ %value.bits, %double ], [ %whole, %integer ]
  %error = call ptr @PyErr_Occurred()
  %no.error = icmp eq ptr %error, null
  br i1 %no.error, label %said, label %undo
said:
  %answer.word = phi i64 [ %value.bits, %double ], [ %whole, %integer ], [ %spoken, %perhaps ]
  %p.said = getelementptr i64, ptr %words, i64 %into
  store i64 %answer.word, ptr %p.said
  %n.next = add i64 %n, 1
  br label %number
run:
  %t10 = getelementptr i64, ptr %table, i64 10
  %steps = load i64, ptr %t10
  %t11 = getelementptr i64, ptr %table, i64 11
  %codes = load ptr, ptr %t11
  %thread = call ptr @PyEval_SaveThread()
  br label %step
step:
  %s = phi i64 [ 0, %run ], [ %s.next, %stepping ]
  %s.more = icmp slt i64 %s, %steps
  br i1 %s.more, label %stepping, label %ran
stepping:
  %s.two = shl i64 %s, 1
  %p.code = getelementptr i64, ptr %codes, i64 %s.two
  %code = load ptr, ptr %p.code
  %p.first = getelementptr i64, ptr %p.code, i64 1
  %first = load i64, ptr %p.first
  %p.own = getelementptr i64, ptr %words, i64 %first
  call void %code(ptr %p.own)
  %s.next = add i64 %s, 1
  br label %step
ran:
  call void @PyEval_RestoreThread(ptr %thread)
  %t12 = getelementptr i64, ptr %table, i64 12
  %results = load i64, ptr %t12
  br label %drop
drop:
  %d = phi i64 [ %results, %ran ], [ %d.next, %dropping ]
  %d.more = icmp slt i64 %d, %makes
  br i1 %d.more, label %dropping, label %answer
dropping:
  %p.scratch = getelementptr ptr, ptr %made, i64 %d
  %scratch = load ptr, ptr %p.scratch
  call void @Py_DecRef(ptr %scratch)
  %d.next = add i64 %d, 1
  br label %drop
answer:
  %single = icmp eq i64 %results, 1
  br i1 %single, label %alone, label %several
alone:
  %result = load ptr, ptr %made
  ret ptr %result
several:
  %tuple = call ptr @PyTuple_New(i64 %results)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %undo, label %put
put:
  %u = phi i64 [ 0, %several ], [ %u.next, %putting ]
  %u.more = icmp slt i64 %u, %results
  br i1 %u.more, label %putting, label %full
putting:
  %p.part = getelementptr ptr, ptr %made, i64 %u
  %part = load ptr, ptr %p.part
  %done = call i32 @PyTuple_SetItem(ptr %tuple, i64 %u, ptr %part)
  %u.next = add i64 %u, 1
  br label %put
full:
  ret ptr %tuple
undo:
  %left = phi i64 [ %m, %making ], [ %makes, %perhaps ], [ %results, %several ]
  br label %again
again:
  %l = phi i64 [ 0, %undo ], [ %l.next, %ending ]
  %l.more = icmp slt i64 %l, %left
  br i1 %l.more, label %ending, label %failed
ending:
  %p.former = getelementptr ptr, ptr %made, i64 %l
  %former = load ptr, ptr %p.former
  call void @Py_DecRef(ptr %former)
  %l.next = add i64 %l, 1
  br label %again
failed:
  ret ptr null
other:
  %t13 = getelementptr i64, ptr %table, i64 13
  %nothing = load ptr, ptr %t13
  call void @Py_IncRef(ptr %nothing)
  ret ptr %nothing
}}
"""


class Method(ctypes.Structure):
    """CPython's description of a native function (PyMethodDef)."""

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
    if not interpreter_checks.is_known():
        return False
    word = ctypes.c_uint64.from_address
    for array in (np.zeros((3, 4), np.uint8), np.zeros((2, 3), np.float64)[:, 1:]):
        at = id(array)
        if (
            word(at + _TYPE).value != id(np.ndarray)
            or word(at + DATA).value != array.ctypes.data
            or word(at + _DESCRIPTOR).value != id(array.dtype)
            or word(at + _AXES).value & 0xFFFFFFFF != array.ndim
            or tuple(word(word(at + _LENGTHS).value + 8 * axis).value for axis in range(array.ndim)) != array.shape
            or bool(word(at + _FLAGS).value & 1) != array.flags.c_contiguous
        ):
            return False
        content = word(id(array.dtype) + _ELEMENT).value.to_bytes(8, "little")
        if content[:2] != f"{array.dtype.kind}{array.dtype.char}".encode() or content[4] != array.dtype.num:
            return False
    return True


class Steps(NamedTuple):
    """What a function of the second entry does; see above.

    * `given`: an array like those that it takes.
    * `ways`: for each array that it makes, the results first, a function, its arguments, and how
      many bytes of the given array it begins with.
    * `words`, `places`, `codes`: the tables of words, places and codes.
    * `takes`, `numbers`: how many arguments there are, and the table of words that are numbers.
    * `results`: how many arrays are the result.
    * `held`: what has to stay in memory as long as the function.
    """

    given: np.ndarray[Any, Any]
    ways: list[tuple[Callable[..., Any], tuple[Any, ...], int]]
    words: list[int]
    places: list[tuple[int, int, int]]
    codes: list[tuple[int, int]]
    takes: int
    numbers: list[tuple[int, int, int]]
    results: int
    held: list[Any]


class Door:
    """The native entries of this process, of which it makes functions."""

    def __init__(self) -> None:
        names = ["mycel_routine_door", "mycel_routine_kept"]
        address, kept = machine().link(compile_objects([_TEXT])[0], names, python_symbols(_PYTHON))
        self._method = Method(b"routine", address, FASTCALL, None)
        self._kept = Method(b"kept", kept, FASTCALL, None)
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

    def steps(self, steps: Steps) -> Callable[..., Any]:
        """Return a function that does steps for an array like the one they are for, and numbers.

        It returns the result, or None where it is given anything else.
        """
        lengths = np.array(steps.given.shape, np.int64)
        ways = [number for way in steps.ways for number in (id(way[0]), id(way[1]), way[2])]
        rows: tuple[Sequence[Sequence[int]], ...] = steps.places, steps.codes, steps.numbers
        tables = [_words(part) for part in (ways, steps.words, *map(_flat, rows))]
        makes, words, places, codes, numbers = tables
        table = [id(np.ndarray), element_of(steps.given.dtype), len(lengths), lengths.ctypes.data]
        table += [len(steps.ways), makes.ctypes.data, len(words), words.ctypes.data]
        table += [len(steps.places), places.ctypes.data, len(steps.codes), codes.ctypes.data]
        table += [steps.results, id(None), steps.takes, len(steps.numbers), numbers.ctypes.data]
        held = [lengths, *tables, steps.ways, steps.held]
        made: Callable[..., Any] = self._new(ctypes.addressof(self._kept), _words(table), held)
        return made


def _words(numbers: Sequence[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.array([number & _ALL for number in numbers], np.uint64)


def _flat(rows: Sequence[Sequence[int]]) -> list[int]:
    return [number for row in rows for number in row]


_ALL = (1 << 64) - 1
_doors: list[Door | None] = []
_making = locks.lock()


def door() -> Door | None:
    """Return the entry of this process, or None where objects lie in memory otherwise."""
    if not _doors:
        with _making:
            if not _doors:
                _doors.append(Door() if _layout() else None)
    return _doors[0]
