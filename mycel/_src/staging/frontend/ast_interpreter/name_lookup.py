"""Interprets names, as closures that find the frame in which to look up or store."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.graph import Where, current_where, set_where
from mycel._src.foundation.errors import CompileError
from mycel._src.staging.frontend.calls.attribute_access import load_cell, load_global
from mycel._src.staging.frontend.calls.frames import Code, Frame, mangled
from mycel._src.staging.frontend.source_code.scope_analysis import NameScope
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Evaluate", "NameBuilder", "missing", "visible"]

Evaluate = Callable[[Frame], Any]


class NameBuilder:
    """The builder of the closures of names in one scope of a function, which also dispatches other
    expressions to the methods that build them.
    """

    def __init__(self, code: Code, scope: NameScope) -> None:
        self.code, self.scope = code, scope
        self.file = code.file

    def expression(self, node: ast.expr) -> Evaluate:
        """Return the closure of an expression."""
        build: Callable[[Any], Evaluate] | None = getattr(self, f"_{type(node).__name__}", None)
        return self.unsupported(node, f"{type(node).__name__} expressions") if build is None else build(node)

    def unsupported(self, node: Any, what: str) -> Evaluate:
        """Return the closure of a construct that is not supported, which raises an error when it
        is run.
        """
        where = self.where(node)

        def fail(f: Frame) -> Any:
            set_where(where)
            raise CompileError(f"{where}: {what} are not compiled; move this line out of the compiled function")

        return fail

    def where(self, node: Any) -> Where:
        """Return the place of an expression or statement.

        The place of an attribute on a later line than its object is its name, as in Python.
        """
        line, column = node.lineno, node.col_offset
        named = node.func if isinstance(node, ast.Call) else node
        if isinstance(named, ast.Attribute) and named.end_lineno is not None and named.end_lineno > line:
            line, column = named.end_lineno, (named.end_col_offset or 0) - len(named.attr.encode())
        return Where(self.file, line, column, node.end_lineno or line, node.end_col_offset or 0)

    def _Name(self, node: ast.Name) -> Evaluate:
        name = mangled(node.id, self.code.class_name)
        kind, distance = self.scope.resolve(node.id, self.code.free)
        where = self.where(node)
        if kind != "frame":
            load = load_cell if kind == "cell" else load_global

            def from_outside(f: Frame) -> Any:
                try:
                    return load(f, name)
                except NameError:
                    set_where(where)
                    raise

            return from_outside
        if distance == 0 and self.scope.kind != "class":

            def local(f: Frame) -> Any:
                try:
                    return f.vars[name]
                except KeyError:
                    return missing(f, name, where)

            return local
        if self.scope.kind == "class" and distance == 0:

            def in_class(f: Frame) -> Any:
                return f.vars[name] if name in f.vars else self._beyond(name, where)(f)

            return in_class

        def outer(f: Frame) -> Any:
            g = f
            for _ in range(distance):
                assert g.outer is not None
                g = g.outer
            try:
                return g.vars[name]
            except KeyError:
                return missing(g, name, where)

        return outer

    def _beyond(self, name: str, where: Where) -> Evaluate:
        """Return the closure of a name in a class body that the class itself has not bound yet."""
        scope, distance = self.scope.parent, 1
        while scope is not None and (name not in scope.bound or scope.kind == "class"):
            scope, distance = scope.parent, distance + 1
        if scope is not None:

            def outer(f: Frame) -> Any:
                for _ in range(distance):
                    assert f.outer is not None
                    f = f.outer
                return f.vars[name] if name in f.vars else missing(f, name, where)

            return outer
        if name in self.code.free:
            return lambda f: load_cell(f, name)
        return lambda f: load_global(f, name)

    def _NamedExpr(self, node: ast.NamedExpr) -> Evaluate:
        value = self.expression(node.value)
        scope, distance = self.scope.target_of_walrus()
        store = self.store_name(node.target.id, scope, distance)

        def run(f: Frame) -> Any:
            result = value(f)
            store(f, result)
            return result

        return run

    def store_name(self, name: str, scope: NameScope, distance: int = 0) -> Callable[[Frame, Any], None]:
        """Return the closure that binds a name, `distance` frames further out, by the rules of
        `scope`.
        """
        kind, further = scope.resolve(name, self.code.free)
        name = mangled(name, self.code.class_name)
        if kind == "cell":

            def in_cell(f: Frame, value: Any) -> None:
                cell = f.cells[name]
                if f.stage is not None:
                    f.stage.note_attribute(cell, "cell_contents")
                cell.cell_contents = value

            return in_cell
        if kind == "global":

            def in_globals(f: Frame, value: Any) -> None:
                if f.stage is not None:
                    f.stage.note_item(f.globals, name)
                f.globals[name] = value

            return in_globals
        distance += further
        if distance == 0:

            def local(f: Frame, value: Any) -> None:
                f.vars[name] = value

            return local

        def outer(f: Frame, value: Any) -> None:
            stage = f.stage
            for _ in range(distance):
                assert f.outer is not None
                f = f.outer
            if stage is not None and stage.scope.is_branch:
                stage.note_item(f.vars, name)
            f.vars[name] = value

        return outer

    # Data.


def visible(f: Frame) -> dict[str, Any]:
    """Return the variables of a frame and of those around it."""
    found = {n: c.cell_contents for n, c in (f.cells or {}).items() if _is_set(c)}
    frames = [f]
    while frames[-1].outer is not None:
        frames.append(frames[-1].outer)
    for frame in reversed(frames):
        found.update(frame.vars)
    return found


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def missing(f: Frame, name: str, where: Where) -> Any:
    set_where(where)
    found = f.undefined.get(name) if f.undefined else None
    if found is not None:
        stage = f.stage
        if stage is None or found.flag is None or not stage.may_decide:
            error = CompileError(f"{current_where()}: {found.text}")
            error.undecided = found.where
            raise error
        flag = found.flag
        if stage.decide(flag, f"whether {name!r} is set") if isinstance(flag, Tensor) else flag:
            f.vars[name] = found.value
            return found.value
    raise UnboundLocalError(f"cannot access local variable {name!r} where it is not associated with a value")
