"""Scope analysis: which names a function binds, so which are local, enclosing or global.

The rules are those of the language reference, section "Naming and binding". Classes are scopes that
are not visible in their functions; comprehensions are functions of their own, whose assignment
expressions bind in the function around them.
"""

from __future__ import annotations

import ast
from typing import Any

__all__ = ["NameScope", "assigned_names", "contains_yield", "scope_of", "terminates"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class NameScope:
    """The names bound in one function, class body or comprehension, and the scope around it.

    `kind` is "function", "class" or "comprehension", and `parent` the scope around it. `bound` are
    the names that are bound in it, of which `globals_` and `nonlocals` are declared to belong to
    other scopes.
    """

    def __init__(
        self, kind: str, parent: NameScope | None, bound: set[str], globals_: set[str], nonlocals: set[str]
    ) -> None:
        self.kind, self.parent = kind, parent
        self.bound, self.globals, self.nonlocals = bound - globals_ - nonlocals, globals_, nonlocals

    def resolve(self, name: str, free: tuple[str, ...]) -> tuple[str, int]:
        """Return where a name is bound: ("frame", distance) for the frame so many frames further
        out, ("cell", 0) for a variable of the real function's closure, or ("global", 0).
        """
        if name in self.globals:
            return "global", 0
        scope: NameScope | None = self
        distance = 0
        while scope is not None:
            if name in scope.bound and (scope is self or scope.kind != "class"):
                return "frame", distance
            if scope is not self and name in scope.globals and scope.kind != "class":
                return "global", 0
            scope = scope.parent
            distance += 1
        return ("cell", 0) if name in free else ("global", 0)

    def target_of_walrus(self) -> tuple[NameScope, int]:
        """Return the scope in which an assignment expression binds, and its distance."""
        scope, distance = self, 0
        while scope.kind == "comprehension" and scope.parent is not None:
            scope, distance = scope.parent, distance + 1
        return scope, distance


def scope_of(node: Any, parent: NameScope | None) -> NameScope:
    """Return the scope of a function, lambda, class or comprehension."""
    if isinstance(node, _COMPREHENSIONS):
        bound: set[str] = set()
        for generator in node.generators:
            bound |= assigned_names([generator.target])
        return NameScope("comprehension", parent, bound, set(), set())
    globals_: set[str] = set()
    nonlocals: set[str] = set()
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    _declarations(body, globals_, nonlocals)
    bound = assigned_names(body)
    if isinstance(node, _FUNCTIONS):
        a = node.args
        bound |= {p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs]}
        bound |= {p.arg for p in (a.vararg, a.kwarg) if p is not None}
    return NameScope("class" if isinstance(node, ast.ClassDef) else "function", parent, bound, globals_, nonlocals)


def _declarations(body: list[Any], globals_: set[str], nonlocals: set[str]) -> None:
    for node in body:
        if isinstance(node, ast.Global):
            globals_.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            nonlocals.update(node.names)
        elif not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            _declarations(list(ast.iter_child_nodes(node)), globals_, nonlocals)


def assigned_names(body: list[Any]) -> set[str]:
    """Return the names that statements or targets bind, except those bound in inner functions and
    classes.
    """
    found: set[str] = set()
    for node in body:
        _assigned(node, found)
    return found


def _assigned(node: Any, found: set[str]) -> None:
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        return
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        found.add(node.name)
        for child in [*node.decorator_list, *getattr(node, "bases", [])]:
            _assigned(child, found)
        if not isinstance(node, ast.ClassDef):
            for child in [*node.args.defaults, *node.args.kw_defaults]:
                _assigned(child, found)
        return
    if isinstance(node, ast.Lambda):
        for child in [*node.args.defaults, *node.args.kw_defaults]:
            _assigned(child, found)
        return
    if isinstance(node, _COMPREHENSIONS):
        for child in ast.walk(node):
            if isinstance(child, ast.NamedExpr):
                found.add(child.target.id)
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        found.update((a.asname or a.name.split(".")[0]) for a in node.names)
        return
    if isinstance(node, ast.ExceptHandler) and node.name:
        found.add(node.name)
    if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
        found.add(node.name)
    if isinstance(node, ast.MatchMapping) and node.rest:
        found.add(node.rest)
    if node is not None:
        for child in ast.iter_child_nodes(node):
            _assigned(child, found)


def contains_yield(node: Any) -> bool:
    """Return whether a function is a generator or a coroutine."""
    if isinstance(node, ast.AsyncFunctionDef):
        return True
    stack = list(node.body) if isinstance(node.body, list) else [node.body]
    while stack:
        child = stack.pop()
        if isinstance(child, (ast.Yield, ast.YieldFrom, ast.Await)):
            return True
        if not isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(child))
    return False


def terminates(body: list[ast.stmt]) -> bool:
    """Return whether the end of these statements is never reached."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
        return True
    if isinstance(last, ast.If):
        return terminates(last.body) and terminates(last.orelse)
    return isinstance(last, ast.With) and terminates(last.body)
