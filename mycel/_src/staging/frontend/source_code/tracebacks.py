"""Tracebacks with the user's own lines for errors that pass through interpreted code.

While an error propagates, each interpreted function notes its place (`note_place`), which is the
position in force then. Code that restores an earlier position on the way keeps the position with
the error before (`keep_position`). Afterwards

* an error of the program, or of an operation that it calls, is raised as it is, its traceback
  replaced by one of the user's functions as if Python had run them (`show_user_lines`). Frames of
  this package are left out unless MYCEL_TRACEBACK=full is set in the environment;
* a refusal of the compiler becomes a message that shows the same lines, innermost last, each with a
  caret (`describe_places`).

An operation that does not accept its operands adds their types (`note_operands`), and an error in
the derivative, an optimization or the lowering of a node shows the line that the node comes from
(`note_origin`).
"""

from __future__ import annotations

import ast
import keyword
import sys
import types
from collections.abc import Sequence
from typing import Any, NamedTuple

from mycel._src.compiler.ir.graph import Where, current_where
from mycel._src.compiler.ir.source_locations import annotate, excerpt
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.python_runtime import syntax_trees
from mycel._src.foundation.python_runtime.tracebacks import is_library, shows_all
from mycel._src.staging.frontend.source_code.function_source import line_of

__all__ = [
    "Caught",
    "carry",
    "describe_place",
    "describe_places",
    "keep_position",
    "note_operands",
    "note_origin",
    "note_place",
    "place_of",
    "reason_of",
    "show_user_lines",
]

_FIRST, _LAST = 4, 12


class Place(NamedTuple):
    """The place at which a function was left: a `Where`, with the function's name, its variables
    then, and the line where it begins.
    """

    file: str
    line: int
    name: str
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    variables: dict[str, Any] | None = None
    first: int = 0


def note_place(error: BaseException, file: str, line: int, name: str, variables: dict[str, Any]) -> None:
    """Note that an error leaves the function `name`, which begins at `line` of `file`.

    `variables` are those of the function.
    """
    where = error.__dict__.pop("_mycel_at", None) or current_where() or Where(file, line)
    place = Place(file, where.line, name, where.column, where.end_line, where.end_column, dict(variables), line)
    error.__dict__.setdefault("_mycel_trace", []).append(place)


def note_end(error: BaseException, name: str, where: Where | None) -> None:
    """Note the place where the outermost function ended, for an error about its result that has no
    place yet.
    """
    if where is not None and not places_of(error):
        note_place_of(error, where, name)


def note_place_of(error: BaseException, where: Where, name: str = "") -> None:
    """Note a given place."""
    place = Place(where.file, where.line, name, where.column, where.end_line, where.end_column)
    error.__dict__.setdefault("_mycel_trace", []).append(place)


def keep_position(error: BaseException) -> None:
    """Keep the place of an error in the present function, before an earlier position is
    restored.
    """
    error.__dict__.setdefault("_mycel_at", current_where())


def carry(error: BaseException, text: str) -> CompileError:
    """Return a CompileError for an error of the program, with the places of that error."""
    made = CompileError(f"{type(error).__name__} {text}: {_message(error)}")
    for name in ("_mycel_trace", "_mycel_at", "_mycel_node"):
        if name in error.__dict__:
            made.__dict__[name] = error.__dict__[name]
    keep_position(made)
    return made


def _message(error: BaseException) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def note_operands(error: Exception, name: str, types: Sequence[Any]) -> None:
    """Add the operation and the types of its operands to an error that it raises."""
    if "_mycel_operation" not in error.__dict__:
        error.__dict__["_mycel_operation"] = name
        annotate(error, f"  in {name}({', '.join(map(str, types))})")


class Caught:
    """An error of the program that the program has caught.

    It loses its places, unless it is raised again unchanged.
    """

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.kept: dict[str, Any] = {
            name: error.__dict__.pop(name) for name in ("_mycel_trace", "_mycel_at") if name in error.__dict__
        }

    def leave(self, again: Exception, frame: Any) -> None:
        """Note that the error `again` leaves the handler: this one, or another one, with which this
        one is then shown.
        """
        keep_position(again)
        if again is self.error:
            again.__dict__.update(self.kept)
        elif self.error.__dict__.keys().isdisjoint(self.kept):
            self.error.__dict__.update(self.kept)
            code = frame.code
            note_place(self.error, code.file, code.line, code.name, frame.vars)
            show_user_lines(self.error)


def places_of(error: BaseException) -> list[Place]:
    """Return the noted places, innermost first."""
    found: list[Place] = error.__dict__.get("_mycel_trace", [])
    return found


def place_of(error: BaseException) -> Place | None:
    """Return the innermost place in the user's source."""
    found = places_of(error)
    return found[0] if found else None


def reason_of(error: BaseException) -> str:
    """Return the message of a refusal without the position at its beginning, which
    `describe_places` shows.
    """
    text, place = _message(error), place_of(error)
    return text if place is None else text.removeprefix(f"{place.file}:{place.line}: ")


def describe_place(place: None | Where | Place | tuple[str, int, str, int]) -> str:
    """Return file, line and the line itself with a caret, for a message."""
    if place is None:
        return ""
    if isinstance(place, Where):
        return excerpt(place)
    known = Place(*place)
    return excerpt(Where(known.file, known.line, known.column, known.end_line, known.end_column), known.name)


def describe_places(error: BaseException) -> str:
    """Return the places of an error, innermost last, as lines of a message.

    Of many places only the first and the last are shown.
    """
    places = [describe_place(p) for p in reversed(places_of(error))]
    if len(places) > _FIRST + _LAST:
        left_out = len(places) - _FIRST - _LAST
        places[_FIRST:-_LAST] = [f"  ... {left_out} more calls ..."]
    node = error.__dict__.get("_mycel_node")
    if node is not None:
        places.append(_origin(node))
    return "\n".join(places)


def _origin(where: Where) -> str:
    what = f"in the derivative of {where.gradient}, from" if where.gradient else "in an operation from"
    return f"  {what}\n{excerpt(where)}"


def note_origin(error: Exception) -> Exception:
    """Return the error with the line of the node during whose treatment it was raised, if there is
    one.
    """
    node = error.__dict__.pop("_mycel_node", None)
    if node is not None and line_of(node.file, node.line):
        annotate(error, _origin(node))
    return error


# Modules that raise the errors for calls that do not fit, which are errors of the caller.
_CALLING = (
    "mycel._src.staging.frontend.ast_interpreter.interpret",
    "mycel._src.staging.frontend.calls.frames",
    "mycel._src.staging.frontend.calls.native_calls",
    "mycel._src.tensors.cells.cell",
)


def _innermost(error: BaseException) -> str:
    """Return the name of the module in which an error was raised."""
    name, entry = "", error.__traceback__
    while entry is not None:
        name, entry = entry.tb_frame.f_globals.get("__name__", ""), entry.tb_next
    return name


def show_user_lines(error: Exception) -> Exception:
    """Return the error itself, with a traceback of the user's lines."""
    places = error.__dict__.pop("_mycel_trace", [])
    full = shows_all()
    if not places and (full or _innermost(error) not in _CALLING):
        return note_origin(error)
    tail: list[types.TracebackType] = []
    in_library: Any = None
    entry = error.__traceback__
    while entry is not None:
        frame = entry.tb_frame
        interpreter = frame.f_globals.get("__name__", "").startswith("mycel._src.staging.frontend")
        if interpreter:
            tail.clear()
        elif full or not is_library(frame.f_code.co_filename):
            tail.append(entry)
        in_library = not interpreter and is_library(frame.f_code.co_filename)
        entry = entry.tb_next
    if tail and tail[0] is error.__traceback__:
        tail.clear()
    note_origin(error)
    if in_library and places and sys.version_info < (3, 11):
        annotate(error, describe_place(places[0]))
    chain: types.TracebackType | None = None
    for known in reversed(tail):
        chain = types.TracebackType(chain, known.tb_frame, known.tb_lasti, known.tb_lineno)
    for place in places:
        frame, instruction = _frame(place)
        chain = types.TracebackType(chain, frame, instruction, place.line)
    return error.with_traceback(chain)


def _frame(place: Place) -> tuple[types.FrameType, int]:
    """Return a frame, and the instruction in it, that a traceback shows as the place.

    The frame has the variables of the function.
    """
    variables = {n: v for n, v in (place.variables or {}).items() if n.isidentifier() and not keyword.iskeyword(n)}
    tree = syntax_trees.module(f"def f({', '.join(variables)}): _mycel_frame()")
    function: Any = tree.body[0]
    first = min(place.first or place.line, place.line)
    span = (place.line, place.column, max(place.end_line, place.line), place.end_column or place.column + 1)
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.expr, ast.arg)):
            inside = isinstance(node, ast.expr) or isinstance(node, ast.Expr)
            node.lineno, node.col_offset, node.end_lineno, node.end_col_offset = (
                span if inside else (first, 0, first, 1)
            )
    function.name = place.name
    code = next(c for c in compile(tree, place.file, "exec").co_consts if isinstance(c, types.CodeType))
    instruction = -1
    if hasattr(code, "co_positions"):
        wanted = (span[0], span[2], span[1], span[3])
        instruction = next((2 * i for i, p in enumerate(code.co_positions()) if p == wanted), -1)
    found: list[types.FrameType] = []
    namespace = {"__name__": "__main__", "_mycel_frame": lambda: found.append(sys._getframe(1))}
    types.FunctionType(code, namespace)(*variables.values())
    return found[0], instruction
