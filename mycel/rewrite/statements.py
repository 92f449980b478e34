"""Statements of one operation each, and Python code made from them.

A statement has targets, operands that it reads, and `compose`, which makes the expression of its
value from theirs. Blocks of statements are what control flow holds, the members of a container of
Cells, and the body of a function of the user's that is called. An ``else`` is a statement of its
own behind its ``if``. Code that is not divided is kept as it is written (`raw`).
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

from mycel._src.foundation.python_runtime import syntax_trees
from mycel.rewrite.values import ScopedValue, ValueType

__all__ = ["Code", "NodeType", "Statement", "objects_of", "python_of"]

Compose = Callable[[Sequence[ast.expr], dict[str, ast.expr]], ast.expr]


class NodeType(Enum):
    """The kind of a `Node`.

    CallCell, CallPrimitive and CallFunction call a Cell, an operator object and a function;
    CallMethod calls anything else (containers and their elements are CallMethod, too). CallModule
    is never used. Tree calls a Cell of the user's, whose own statements are in its sub tree;
    CellContainer is a `SequentialCell` or `CellList`, whose members are nodes too. MathOps computes
    with Python's operators; Input and Output are an argument and a return; ControlFlow holds
    statements; Python is code that is kept as it is written.
    """

    Unknown = 0
    CallCell = 1
    CallPrimitive = 2
    CallModule = 3
    CallFunction = 4
    CallMethod = 5
    Python = 6
    Input = 7
    Output = 8
    Tree = 9
    CellContainer = 10
    MathOps = 11
    ControlFlow = 12


class Code:
    """A function of the user's: the object, its definition, and the class that it is written in."""

    def __init__(self, function: types.FunctionType, definition: ast.FunctionDef, owner: str) -> None:
        self.function, self.definition, self.owner = function, definition, owner


class Statement:
    """One statement of a `construct`.

    It has a `kind`, a `name`, `targets` and the operands `args` and `kwargs`, of which `compose`
    makes the expression of the value. `instance` is the object that is called, if it is known;
    `raw` is code that is kept as it is written. `block` is the list that the statement is in, None
    while it is in no tree, and `parent` the statement that holds this block, None in `construct`.
    `blocks` are its own: "body" and "orelse" of control flow, "cells" of a container, "function"
    of a call of a function, which `code` describes.
    """

    def __init__(
        self,
        kind: NodeType,
        name: str,
        targets: Sequence[ScopedValue] = (),
        args: Sequence[ScopedValue] = (),
        kwargs: dict[str, ScopedValue] | None = None,
        compose: Compose | None = None,
        instance: Any = None,
        raw: ast.stmt | None = None,
    ) -> None:
        self.kind, self.name = kind, name
        self.targets, self.args, self.kwargs = list(targets), list(args), dict(kwargs or {})
        self.compose, self.instance, self.raw = compose, instance, raw
        self.function: ast.expr | None = None
        self.block: list[Statement] | None = None
        self.parent: Statement | None = None
        self.tree: Any = None
        self.blocks: dict[str, list[Statement]] = {}
        self.code: Code | None = None
        self.attributes: dict[str, Any] = {}
        self.is_edited = False
        self.orelse: Statement | None = None
        self.node: Any = None

    def get_belong_symbol_tree(self) -> Any:
        """Return the tree that the statement is in, None if it is in none."""
        return self.tree

    def call(self, args: Sequence[ast.expr], kwargs: dict[str, ast.expr]) -> ast.expr:
        """Return a call of `function` with these operands: the `compose` of a statement that calls
        it.
        """
        assert self.function is not None
        return ast.Call(self.function, list(args), [ast.keyword(name, v) for name, v in kwargs.items()])

    def hold(self, which: str, block: list[Statement]) -> None:
        """Make a block one of its own."""
        self.blocks[which] = block
        for s in block:
            s.block, s.parent = block, self

    def edit(self) -> None:
        """Note that a block which it is in, or holds, was changed."""
        holder: Statement | None = self
        while holder is not None:
            holder.is_edited, holder = True, holder.parent

    def inner(self) -> Iterator[Statement]:
        """Yield the statements in its blocks, at any depth."""
        for block in self.blocks.values():
            for s in block:
                yield s
                yield from s.inner()

    def reads(self) -> set[str]:
        """Return the names of the variables among its operands."""
        found: set[str] = set()
        for value in (*self.args, *self.kwargs.values()):
            found |= _names_in(value)
        return found

    def writes(self) -> list[str]:
        """Return its targets as source."""
        return [str(t) for t in self.targets]


def _names_in(value: ScopedValue) -> set[str]:
    if value.type is ValueType.NamingValue:
        return {str(value), str(value).split(".")[0]}
    if value.type is ValueType.UnsupportedValue:
        return {n.id for n in ast.walk(value.value) if isinstance(n, ast.Name)}
    if value.type is ValueType.DictValue:
        return {n for v in value.value.values() for n in _names_in(v)}
    if value.type in (ValueType.ListValue, ValueType.TupleValue):
        return {n for v in value.value for n in _names_in(v)}
    return set()


def objects_of(statement: Statement) -> list[Any]:
    """Return the objects among its operands that source cannot express."""
    return [o for v in (*statement.args, *statement.kwargs.values()) for o in v.objects()]


def python_of(statements: Sequence[Statement], names: dict[int, str]) -> list[ast.stmt]:
    """Return the Python code of statements.

    `names` has the variables that stand for objects, by identity.
    """
    found: list[ast.stmt] = []
    for s in statements:
        found += _one(s, names)
    return found


def _one(s: Statement, names: dict[int, str]) -> list[ast.stmt]:
    if s.kind is NodeType.Input or (s.kind is NodeType.ControlFlow and s.raw is None):
        return []
    args = [v.expression(names) for v in s.args]
    if s.kind is NodeType.ControlFlow:
        return [_control(s, args, names)]
    if s.compose is None:
        assert s.raw is not None
        return [s.raw]
    value = s.compose(args, {k: v.expression(names) for k, v in s.kwargs.items()})
    if s.kind is NodeType.Output:
        return [ast.Return(value if args else None)]
    if not s.targets:
        return [ast.Expr(value)]
    targets = [_target(str(t)) for t in s.targets]
    return [ast.Assign(targets if len(targets) == 1 else [ast.Tuple(targets, ast.Store())], value)]


def _target(text: str) -> ast.expr:
    statement = syntax_trees.module(f"{text} = 0").body[0]
    assert isinstance(statement, ast.Assign)
    return statement.targets[0]


def _control(s: Statement, args: Sequence[ast.expr], names: dict[int, str]) -> ast.stmt:
    def block(which: str) -> list[ast.stmt]:
        return python_of(s.blocks.get(which, ()), names)

    body = block("body") or [ast.Pass()]
    if isinstance(s.raw, ast.If):
        rest = [] if s.orelse is None else python_of(s.orelse.blocks["body"], names)
        return ast.If(args[0], body, rest)
    if isinstance(s.raw, ast.For):
        return ast.For(s.raw.target, args[0], body, block("orelse"))
    assert isinstance(s.raw, ast.While)
    return ast.While(args[0], body, block("orelse"))
