"""Whether accesses are bounds-checked (``MYCEL_CHECK=bounds``), and a runtime that poisons memory.

That runtime fills memory without a value, so that reading it is noticed (`bounds_checking`).
"""

from __future__ import annotations

import os

__all__ = ["POISON", "is_on", "poisoned", "setting"]

POISON = 0x7FFB7FFB7FFB7FFB
_CHECKS = ("bounds",)

_POISON_IR = f"""
define internal void @poison(ptr %data, i64 %bytes) {{
entry:
  %up = add i64 %bytes, 7
  %count = lshr i64 %up, 3
  br label %check
check:
  %i = phi i64 [ 0, %entry ], [ %i1, %fill ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %fill, label %done
fill:
  %at = getelementptr i64, ptr %data, i64 %i
  store i64 {POISON}, ptr %at
  %i1 = add i64 %i, 1
  br label %check
done:
  ret void
}}

; words: address, bytes
define void @mycel_poison(ptr %args, i64 %begin, i64 %end) {{
  %data = load ptr, ptr %args
  %p1 = getelementptr i64, ptr %args, i64 1
  %bytes = load i64, ptr %p1
  call void @poison(ptr %data, i64 %bytes)
  ret void
}}
"""
# What stands in the allocator's text where memory is given and taken back.
_MARKS = {"; GIVEN": "call void @poison(ptr %data, i64 %n)", "; TAKEN": "call void @poison(ptr %data, i64 %size)"}


def poisoned(runtime: str) -> str:
    """Return the runtime's text with an allocator that fills the memory it gives and takes back."""
    for mark, call in _MARKS.items():
        if mark not in runtime:
            raise NotImplementedError(f"the allocator has no mark {mark!r}")
        runtime = runtime.replace(mark, call)
    return runtime + _POISON_IR


def _asked() -> bool:
    asked = [name for name in os.environ.get("MYCEL_CHECK", "").split(",") if name]
    for name in asked:
        if name not in _CHECKS:
            raise ValueError(f"MYCEL_CHECK={name}: there is no such check; there is {', '.join(_CHECKS)}")
    return "bounds" in asked


_on = _asked()


def is_on() -> bool:
    """Return whether programs are checked."""
    return _on


def setting() -> str:
    """Return the setting as a part of the keys of stored programs."""
    return "checked bounds" if _on else ""
