"""Source locations: finds the user's line that is running, and shows a line in a message.

`excerpt` shows a line with carets as Python's own tracebacks do: ``~~~^~~`` under an operation,
``^^^^`` under anything else. Of an expression of several lines it shows the first. Columns count
bytes of UTF-8, as in Python's syntax trees and code objects, and are converted to columns of the
screen.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import sys
import types
import unicodedata
from collections.abc import Iterator

from mycel._src.compiler.ir.graph import Where
from mycel._src.foundation.python_runtime import syntax_trees
from mycel._src.foundation.python_runtime.tracebacks import is_library

__all__ = ["annotate", "asked_by_program", "caller", "excerpt", "is_library", "position_in", "spelled"]


def caller(depth: int = 1) -> Where | None:
    """Return the place that the innermost frame outside this package is at.

    `depth` is the number of frames to skip first. Returns None where there is no such frame.
    """
    frame: types.FrameType | None = sys._getframe(depth)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else position_in(frame)


_RUNNING = frozenset(
    f"mycel._src.staging.frontend.{name}"
    for name in (
        *(
            f"ast_interpreter.{name}"
            for name in ("expressions", "name_lookup", "statements", "assignments", "interpret")
        ),
        "ast_interpreter.builtin_calls",
        "calls.native_calls",
    )
)
_TENSORS = frozenset(("mycel._src.tensors.core.tensor", "mycel._src.tensors.core.parameter"))
_DEBUGGERS = frozenset(("pdb", "bdb", "cmd", "code", "reprlib", "traceback", "_pytest", "IPython", "pydevd", "debugpy"))


def asked_by_program() -> bool:
    """Return whether the program being compiled asks for the text of a tensor.

    The others who may ask are messages of this package and debuggers.
    """
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__") in _TENSORS:
        frame = frame.f_back
    module = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    if module.startswith("mycel."):
        return module in _RUNNING
    return module.partition(".")[0] not in _DEBUGGERS


def position_in(frame: types.FrameType) -> Where:
    """Return the place that a frame is at.

    It has no columns before Python 3.11, which does not record them.
    """
    code = frame.f_code
    if hasattr(code, "co_positions") and frame.f_lasti >= 0:
        line, end_line, column, end_column = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None))
        if line is not None and column is not None:
            return Where(code.co_filename, line, column, end_line or line, end_column or 0)
    return Where(code.co_filename, frame.f_lineno)


def excerpt(where: Where, name: str = "", indent: str = "  ") -> str:
    """Return the file and line of a place and, below, the source line with carets.

    `name` is that of the function around it; carets appear where columns are known. `indent` goes
    before each line.
    """
    head = f"{indent}{where.file}:{where.line}{f', in {name}' if name else ''}"
    text = linecache.getline(where.file, where.line).rstrip()
    if not text.strip():
        return head
    if not where.column and not where.end_column:
        return f"{head}\n{indent}  {text.strip()}"
    data = text.encode()
    start = len(data[: where.column].decode(errors="ignore"))
    lead = len(text) - len(text.lstrip())
    if where.end_column and where.end_line > where.line:
        stop = len(text)
    elif where.end_column:
        stop = len(data[: where.end_column].decode(errors="ignore"))
    else:
        stop = start + 1
    start = max(start, lead)
    marks = _marks(text[start:stop]) if stop > start else "^"
    return f"{head}\n{indent}  {text.strip()}\n{indent}  {' ' * _width(text[lead:start])}{marks}"


def spelled(where: Where) -> str:
    """Return how the source calls the operation at a place.

    That is the name of a function, or "x[...]" for a subscript; empty where it cannot be found.
    """
    lines = [linecache.getline(where.file, n).encode() for n in range(where.line, max(where.end_line, where.line) + 1)]
    if not where.end_column or not all(lines):
        return ""
    lines[-1] = lines[-1][: where.end_column]
    lines[0] = lines[0][where.column :]
    try:
        node = syntax_trees.expression(f"({b''.join(lines).decode(errors='ignore')})")
    except (SyntaxError, ValueError):
        return ""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func)
    return f"{ast.unparse(node.value)}[...]" if isinstance(node, ast.Subscript) else ""


def annotate(error: BaseException, text: str) -> None:
    """Add lines to the text shown with an error.

    They are a note or, before Python 3.11, added to the end of the message.
    """
    if hasattr(error, "add_note"):
        error.add_note(text)
    elif error.args and isinstance(error.args[0], str) and not isinstance(error, KeyError):
        error.args = (f"{error.args[0]}\n{text}", *error.args[1:])


def _width(text: str) -> int:
    """Return the number of screen columns that a text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _marks(segment: str) -> str:
    """Return the line of carets to show below an expression."""
    span = _operator(segment)
    if span is None:
        return "^" * max(_width(segment), 1)
    begin, end = span
    return "~" * _width(segment[:begin]) + "^" * _width(segment[begin:end]) + "~" * _width(segment[end:])


def _operator(segment: str) -> tuple[int, int] | None:
    """Return the position of the operator in the text of a binary operation.

    For a subscript it is the position of the brackets; None for other expressions.
    """
    try:
        node = syntax_trees.expression(f"(\n{segment}\n)")
    except (SyntaxError, ValueError):
        return None
    data = segment.encode()
    if isinstance(node, ast.BinOp):
        behind = len(data[: node.left.end_col_offset].decode(errors="ignore"))
        while behind < len(segment) and (segment[behind].isspace() or segment[behind] in ")\\"):
            behind += 1
        return behind, behind + (2 if segment[behind : behind + 2] in ("**", "//", "<<", ">>") else 1)
    if isinstance(node, ast.Subscript):
        behind = len(data[: node.value.end_col_offset].decode(errors="ignore"))
        while behind < len(segment) and segment[behind] != "[":
            behind += 1
        return behind, len(segment)
    return None


def library_frames(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    """Yield the frames of this package from `frame` outwards, up to the first of the user's."""
    while frame is not None and is_library(frame.f_code.co_filename):
        yield frame
        frame = frame.f_back
