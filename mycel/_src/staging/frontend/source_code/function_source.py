"""Finds the syntax tree of a function object's source.

A function is parsed by itself where its lines can be told from its code and indentation. Otherwise
its file (or notebook cell, or other source that `linecache` has) is parsed once; its functions and
lambdas are then found by the line at which their code starts, and by name and parameters. Lambdas
on one line are distinguished by the columns of their instructions, and where Python does not record
columns, by their order among the code objects of the file when it is compiled again.
"""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Iterator
from typing import Any

from mycel._src.foundation.bounded_caches import SOME, Remembered
from mycel._src.foundation.python_runtime import syntax_trees
from mycel._src.foundation.system import locks

__all__ = ["Definition", "NoSource", "definition_of", "line_of"]

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class NoSource(LookupError):
    """Raised where the source of a function is not found, or has changed since it was compiled."""


class _File:
    """A parsed file: its definitions by the line where their code starts."""

    def __init__(self, lines: list[str], tree: ast.Module) -> None:
        self.lines, self.tree = lines, tree
        self.by_line: dict[int, list[Definition]] = {}
        self.owner: dict[ast.AST, str] = {}
        stack: list[tuple[ast.AST, str]] = [(tree, "")]
        while stack:
            node, owner = stack.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
                self.by_line.setdefault(first, []).append(node)
                self.owner[node] = owner
            elif isinstance(node, ast.Lambda):
                self.by_line.setdefault(node.lineno, []).append(node)
                self.owner[node] = owner
            elif isinstance(node, ast.ClassDef):
                owner = node.name
            stack.extend((child, owner) for child in ast.iter_child_nodes(node))


_files = Remembered[str, _File]("files read", SOME)
_lock = locks.lock()


def _parsed(filename: str, lines: list[str]) -> _File:
    with _lock:
        found = _files.get(filename)
        if found is None or found.lines != lines:
            try:
                tree = syntax_trees.module("".join(lines), filename)
            except SyntaxError as error:
                raise NoSource(f"{filename} no longer parses: {error}") from None
            found = _File(list(lines), tree)
            _files.replace(filename, found)
        return found


def line_of(filename: str, line: int) -> str:
    """Return one line of a source file without its line break; "" if there is no such line."""
    return linecache.getline(filename, line).rstrip("\n")


def definition_of(function: types.FunctionType) -> tuple[Definition, str]:
    """Return the syntax tree of a function, and the name of the class that it is written in, which
    names such as ``__x`` depend on.

    Raises NoSource if there is none.
    """
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise NoSource(f"the source of {code.co_filename} is not available")
    is_lambda = code.co_name == "<lambda>"
    alone = None if is_lambda else _by_itself(code, lines)
    if alone is not None:
        return alone
    file = _parsed(code.co_filename, lines)
    found = [
        node
        for node in file.by_line.get(code.co_firstlineno, [])
        if isinstance(node, ast.Lambda) == is_lambda and _parameters(node) == _code_parameters(code)
    ]
    if not is_lambda:
        found = [node for node in found if node.name == code.co_name]  # type: ignore[union-attr]
    if len(found) > 1:
        found = list(_by_columns(found, code)) or _by_order(found, code, file)
    if len(found) != 1:
        raise NoSource(
            f"{code.co_filename} has changed since {code.co_name} (line {code.co_firstlineno}) was compiled from it"
        )
    return found[0], file.owner[found[0]]


def _by_itself(code: types.CodeType, lines: list[str]) -> tuple[Definition, str] | None:
    """Return what `definition_of` does, from the lines of the function alone.

    None where they are not all of it, or are of another function, or it is not known which class
    they are in.
    """
    first = code.co_firstlineno
    if not hasattr(code, "co_qualname") or not 0 < first <= len(lines):
        return None
    end, margin = max([first, *_last_lines(code)]), _margin(lines[first - 1])
    if margin and first == 1:
        return None
    while end < len(lines) and (_margin(lines[end]) > margin or lines[end].strip()[:1] in ("", "#")):
        end += 1
    # Empty lines, so that positions are those in the file.
    before = "\n" * (first - 1) if not margin else "\n" * (first - 2) + "if 1:\n"
    try:
        body = syntax_trees.module(before + "".join(lines[first - 1 : end]), code.co_filename).body
    except SyntaxError:
        return None
    if margin and len(body) == 1 and isinstance(body[0], ast.If):
        body = body[0].body
    node = body[0] if len(body) == 1 else None
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name != code.co_name:
        return None
    if min([node.lineno, *[d.lineno for d in node.decorator_list]]) != first:
        return None
    return (node, _owner(code.co_qualname)) if _parameters(node) == _code_parameters(code) else None


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_lines(code: types.CodeType) -> Iterator[int]:
    """Find the last line of the instructions of a code object, and of each that is nested in it."""
    yield max((line for *_, line in code.co_lines() if line is not None), default=0)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _last_lines(constant)


def _owner(qualname: str) -> str:
    """Return the innermost class that a qualified name is in; "" if there is none."""
    parts = qualname.split(".")
    # A name before "<locals>" is a function's.
    classes = [a for a, b in zip(parts, parts[1:]) if "<locals>" not in (a, b)]
    return classes[-1] if classes else ""


def _parameters(node: Definition) -> tuple[str, ...]:
    a = node.args
    given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *([a.vararg] if a.vararg else []), *([a.kwarg] if a.kwarg else [])]
    return tuple(arg.arg for arg in given)


def _code_parameters(code: types.CodeType) -> tuple[str, ...]:
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return tuple(_unmangled(name, code) for name in code.co_varnames[:count])


def _unmangled(name: str, code: types.CodeType) -> str:
    if name.startswith("_") and not name.startswith("__"):
        owner = getattr(code, "co_qualname", "").split(".")[-2:-1]
        if owner and name.startswith(f"_{owner[0].lstrip('_')}__"):
            return name[len(owner[0].lstrip("_")) + 1 :]
    return name


def _by_columns(candidates: list[Definition], code: types.CodeType) -> list[Any]:
    if not hasattr(code, "co_positions"):
        return []
    places = {(p[0], p[2]) for p in code.co_positions() if p[0] is not None and p[2] is not None}
    places.discard((code.co_firstlineno, 0))
    inside = [c for c in candidates if isinstance(c, ast.Lambda) and places and all(_spans(c.body, p) for p in places)]
    return inside if len(inside) == 1 else _innermost(inside)


def _innermost(found: list[Any]) -> list[Any]:
    """Return the innermost of lambdas that are nested in each other, which is the one whose body
    begins last.
    """
    return sorted(found, key=lambda c: (c.body.lineno, c.body.col_offset))[-1:]


def _spans(node: ast.expr, place: tuple[int, int]) -> bool:
    start, end = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return start <= place < end or place[0] < node.lineno


def _by_order(candidates: list[Definition], code: types.CodeType, file: _File) -> list[Definition]:
    whole = compile(file.tree, code.co_filename, "exec", dont_inherit=True)
    same_line = [
        c
        for c in _codes(whole)
        if c.co_name == code.co_name
        and c.co_firstlineno == code.co_firstlineno
        and _code_parameters(c) == _code_parameters(code)
    ]
    if len(same_line) != len(candidates):
        return []
    equal = [
        i
        for i, c in enumerate(same_line)
        if c.co_code == code.co_code and c.co_consts == code.co_consts and c.co_names == code.co_names
    ]
    ordered = sorted(candidates, key=lambda c: (c.lineno, c.col_offset))
    return [ordered[equal[0]]] if equal else []


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)
