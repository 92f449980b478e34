"""Random draws (SplitMix64) as native methods of a Python class.

`given_to` gives a class with a slot `words`, an array of NumPy with two 64-bit words, the methods
`bits`, `uniform`, `integer` and `begin`. The first word is the state of Steele, Lea and Flood's
SplitMix64 generator, the second one the key from which it began. In Python a draw is ten operations
on integers of any length, and takes ten times as long.
"""

from __future__ import annotations

import ctypes
from typing import Any

from mycel._src.engines.native.llvm.jit import compile_objects, machine, python_symbols
from mycel._src.engines.routines.fastcall_entries import DATA, FASTCALL, Method, door

__all__ = ["given_to"]

_PYTHON = (
    *("PyNumber_AsSsize_t", "PyLong_AsUnsignedLongLongMask", "PyFloat_AsDouble", "PyErr_Occurred", "PyErr_Format"),
    *("PyLong_FromSsize_t", "PyLong_FromUnsignedLongLong", "PyFloat_FromDouble", "Py_IncRef", "PyExc_ValueError"),
    *("PyExc_TypeError", "PyExc_OverflowError"),
)
# What each method begins with: the words of the stream, and whether there are as many arguments.
_HEAD = """define ptr @mycel_draw_{name}(ptr %self, ptr %arguments, i64 %count) {{
  %p.slot = getelementptr i8, ptr %self, i64 {slot}
  %array = load ptr, ptr %p.slot
  %p.data = getelementptr i8, ptr %array, i64 {data}
  %words = load ptr, ptr %p.data
  %few = icmp uge i64 %count, {least}
  %fits = icmp ule i64 %count, {most}
  %right = and i1 %few, %fits
  br i1 %right, label %draws, label %wrong
wrong:
  %p.type = load ptr, ptr @PyExc_TypeError
  %text = getelementptr i8, ptr @mycel_draw_wrong, i64 0
  %refused = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %p.type, ptr %text, i64 %count)
  ret ptr null
failed:
  ret ptr null
draws:
"""
_TEXT = """; loops
@mycel_draw_wrong = private constant [35 x i8] c"a draw does not take %zd arguments\\00"
@mycel_draw_empty = private constant [39 x i8] c"integer: the range %zd .. %zd is empty\\00"
@PyExc_ValueError = external global ptr
@PyExc_TypeError = external global ptr
@PyExc_OverflowError = external global ptr
declare i64 @PyNumber_AsSsize_t(ptr, ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyLong_FromSsize_t(i64)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare ptr @PyFloat_FromDouble(double)
declare void @Py_IncRef(ptr)

define internal i64 @mycel_draw_next(ptr %words) {
  %before = load i64, ptr %words
  %state = add i64 %before, GAMMA
  store i64 %state, ptr %words
  %shift.1 = lshr i64 %state, 30
  %mixed.1 = xor i64 %state, %shift.1
  %times.1 = mul i64 %mixed.1, MULTIPLY_1
  %shift.2 = lshr i64 %times.1, 27
  %mixed.2 = xor i64 %times.1, %shift.2
  %times.2 = mul i64 %mixed.2, MULTIPLY_2
  %shift.3 = lshr i64 %times.2, 31
  %drawn = xor i64 %times.2, %shift.3
  ret i64 %drawn
}

HEAD_bits
  %drawn = call i64 @mycel_draw_next(ptr %words)
  %made = call ptr @PyLong_FromUnsignedLongLong(i64 %drawn)
  ret ptr %made
}

HEAD_uniform
  %some = icmp uge i64 %count, 1
  br i1 %some, label %one, label %draw
one:
  %first = load ptr, ptr %arguments
  %low = call double @PyFloat_AsDouble(ptr %first)
  %both = icmp uge i64 %count, 2
  br i1 %both, label %two, label %read
two:
  %p.second = getelementptr ptr, ptr %arguments, i64 1
  %second = load ptr, ptr %p.second
  %last = call double @PyFloat_AsDouble(ptr %second)
  br label %read
read:
  %high = phi double [ 1.0, %one ], [ %last, %two ]
  %low.fails = fcmp oeq double %low, -1.0
  %high.fails = fcmp oeq double %high, -1.0
  %fails = or i1 %low.fails, %high.fails
  br i1 %fails, label %perhaps, label %draw
perhaps:
  %error = call ptr @PyErr_Occurred()
  %none = icmp eq ptr %error, null
  br i1 %none, label %draw, label %failed
draw:
  %from = phi double [ 0.0, %draws ], [ %low, %read ], [ %low, %perhaps ]
  %to = phi double [ 1.0, %draws ], [ %high, %read ], [ %high, %perhaps ]
  %drawn = call i64 @mycel_draw_next(ptr %words)
  %upper = lshr i64 %drawn, 11
  %whole = uitofp i64 %upper to double
  %share = fmul double %whole, 0x3CA0000000000000
  %span = fsub double %to, %from
  %more = fmul double %span, %share
  %found = fadd double %from, %more
  %made = call ptr @PyFloat_FromDouble(double %found)
  ret ptr %made
}

HEAD_integer
  %type = load ptr, ptr @PyExc_OverflowError
  %first = load ptr, ptr %arguments
  %low = call i64 @PyNumber_AsSsize_t(ptr %first, ptr %type)
  %p.second = getelementptr ptr, ptr %arguments, i64 1
  %second = load ptr, ptr %p.second
  %high = call i64 @PyNumber_AsSsize_t(ptr %second, ptr %type)
  %low.fails = icmp eq i64 %low, -1
  %high.fails = icmp eq i64 %high, -1
  %fails = or i1 %low.fails, %high.fails
  br i1 %fails, label %perhaps, label %ordered
perhaps:
  %error = call ptr @PyErr_Occurred()
  %none = icmp eq ptr %error, null
  br i1 %none, label %ordered, label %failed
ordered:
  %empty = icmp slt i64 %high, %low
  br i1 %empty, label %refuse, label %draw
refuse:
  %value = load ptr, ptr @PyExc_ValueError
  %why = getelementptr i8, ptr @mycel_draw_empty, i64 0
  %said = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %value, ptr %why, i64 %low, i64 %high)
  ret ptr null
draw:
  %drawn = call i64 @mycel_draw_next(ptr %words)
  %low.wide = sext i64 %low to i128
  %high.wide = sext i64 %high to i128
  %span = sub i128 %high.wide, %low.wide
  %count.wide = add i128 %span, 1
  %drawn.wide = zext i64 %drawn to i128
  %product = mul i128 %drawn.wide, %count.wide
  %upper = lshr i128 %product, 64
  %more = trunc i128 %upper to i64
  %found = add i64 %low, %more
  %made = call ptr @PyLong_FromSsize_t(i64 %found)
  ret ptr %made
}

HEAD_begin
  %given = load ptr, ptr %arguments
  %key = call i64 @PyLong_AsUnsignedLongLongMask(ptr %given)
  %fails = icmp eq i64 %key, -1
  br i1 %fails, label %perhaps, label %set
perhaps:
  %error = call ptr @PyErr_Occurred()
  %none = icmp eq ptr %error, null
  br i1 %none, label %set, label %failed
set:
  store i64 %key, ptr %words
  %p.key = getelementptr i64, ptr %words, i64 1
  store i64 %key, ptr %p.key
  call void @Py_IncRef(ptr %self)
  ret ptr %self
}
"""
# The methods, with how many arguments they take at least and at most.
_METHODS = {"bits": (0, 0), "uniform": (0, 2), "integer": (2, 2), "begin": (1, 1)}
# Where a descriptor of a slot has its definition, and that the offset of the slot.
_DEFINITION, _OFFSET = 40, 16
_word = ctypes.c_uint64.from_address
_kept: list[Any] = []


def _slot_of(kind: type, sample: Any) -> int | None:
    """Return where objects of a class have the slot `words`; None where that is not to be seen."""
    if door() is None:
        return None
    found = _word(_word(id(kind.__dict__["words"]) + _DEFINITION).value + _OFFSET).value
    inside = 0 < found <= kind.__basicsize__ - 8
    return found if inside and _word(id(sample) + found).value == id(sample.words) else None


def given_to(kind: type, sample: Any, gamma: int, multiply: tuple[int, int]) -> bool:
    """Give a class its methods; return whether that can be done here.

    * `kind`, `sample`: the class, and an object of it. All others have the array in their slot when
      a method is called.
    * `gamma`, `multiply`: the numbers of the generator.
    """
    slot = _slot_of(kind, sample)
    if slot is None:
        return False
    text = _TEXT.replace("GAMMA", str(gamma))
    for number, factor in enumerate(multiply, 1):
        text = text.replace(f"MULTIPLY_{number}", str(factor))
    for name, (least, most) in _METHODS.items():
        text = text.replace(f"HEAD_{name}\n", _HEAD.format(name=name, slot=slot, data=DATA, least=least, most=most))
    names = [f"mycel_draw_{name}" for name in _METHODS]
    found = machine().link(compile_objects([text])[0], names, python_symbols(_PYTHON))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_void_p)(
        ("PyDescr_NewMethod", ctypes.pythonapi)
    )
    for name, code in zip(_METHODS, found):
        method = Method(name.encode(), code, FASTCALL, (getattr(kind, name).__doc__ or "").encode())
        _kept.append(method)
        setattr(kind, name, new(kind, ctypes.addressof(method)))
    return True
