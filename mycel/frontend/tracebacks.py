"""Showing the user's own lines where an error passes through interpreted code.

While an error travels up, each interpreted function notes its file, line and name. `show_user_lines` then replaces the traceback: those lines as if Python had
run them, followed by the frames of native code in which the error arose.
"""

from __future__ import annotations

import sys
import types
from typing import Any, Optional

from mycel.frontend.source import line_of

__all__ = ["describe_place", "place_of", "show_user_lines"]

Place = tuple[str, int, str, int]


def places_of(error: BaseException) -> list[Place]:
    """The noted places, innermost first."""
    found: list[Place] = error.__dict__.get("_mycel_trace", [])
    return found


def place_of(error: BaseException) -> Optional[Place]:
    """The innermost place in the user's source."""
    found = places_of(error)
    return found[0] if found else None


def describe_place(place: Optional[Place]) -> str:
    """File, line and the line itself with a caret, for a message."""
    if place is None:
        return ""
    file, line, name, column = place
    text = line_of(file, line)
    shown = f"  {file}:{line}, in {name}"
    if not text.strip():
        return shown
    lead = len(text) - len(text.lstrip())
    caret = " " * max(column - lead, 0) + "^"
    return f"{shown}\n    {text.strip()}\n    {caret}"


def show_user_lines(error: BaseException) -> BaseException:
    """The error itself, its traceback replaced by the user's lines."""
    places = error.__dict__.pop("_mycel_trace", [])
    if not places:
        return error
    tail: list[types.TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        name = entry.tb_frame.f_globals.get("__name__", "")
        if name.startswith("mycel.frontend"):
            tail.clear()
        else:
            tail.append(entry)
        entry = entry.tb_next
    if len(tail) > 0 and tail[0] is error.__traceback__:
        tail.clear()
    chain: Optional[types.TracebackType] = None
    for known in reversed(tail):
        chain = types.TracebackType(chain, known.tb_frame, known.tb_lasti, known.tb_lineno)
    for file, line, name, _ in places:
        chain = types.TracebackType(chain, _frame(file, name), -1, line)
    return error.with_traceback(chain)


def _frame(file: str, name: str) -> Any:
    """A frame that a traceback shows as a function of a file."""
    code = compile("frame = _getframe()", file, "exec").replace(co_name=name)
    namespace: dict[str, Any] = {"_getframe": sys._getframe, "__name__": "__main__"}
    exec(code, namespace)
    return namespace["frame"]
