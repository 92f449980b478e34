"""The source of a `construct`, divided into statements of one operation each.

Operands that are operations themselves become variables, in the order in which Python computes
them. Expressions that may be computed not at all or more than once stay where they are: the parts
of ``and``, ``or`` and conditional expressions, comprehensions, functions, the test of a ``while``.
An attribute or element that is read before a call in the same statement becomes a variable too, as
the call may change it.

A call of a function or method of the user's holds the statements of that function, one copy for
each call; functions of installed packages, with decorators or without source stay whole. A
container holds its members, each with the container's operands and targets.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import types
from collections.abc import Sequence
from typing import Any

from mycel._src.foundation.python_runtime.code_origins import is_installed, is_standard
from mycel._src.staging.frontend.source_code.function_source import NoSource, definition_of
from mycel._src.tensors.cells.cell import Cell
from mycel.nn.layer.container import CellList, SequentialCell
from mycel.ops.operations.primitive import Primitive
from mycel.rewrite.statements import Code, NodeType, Statement
from mycel.rewrite.values import ScopedValue, operand_of

__all__ = ["OPEN_PATHS", "WHOLE", "Flattener", "hold_members", "kind_of_cell"]

# Classes of Cells whose calls are single nodes, whatever their `construct` does.
WHOLE: list[type] = [CellList, SequentialCell]
# Beginnings of paths of installed packages whose functions are divided like the user's.
OPEN_PATHS: list[str] = []

_OPAQUE = (
    ast.BoolOp,
    ast.IfExp,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
    ast.JoinedStr,
    ast.NamedExpr,
    ast.Starred,
)
_SIMPLE = (ast.Name, ast.Constant)


def kind_of_cell(cell: Cell) -> NodeType:
    """Return the kind of a call of a Cell; the library's own Cells, and `WHOLE`, have no trees."""
    if isinstance(cell, (SequentialCell, CellList)):
        return NodeType.CellContainer
    is_whole = isinstance(cell, tuple(WHOLE)) or type(cell).__module__.split(".")[0] == "mycel"
    return NodeType.CallCell if is_whole else NodeType.Tree


class Flattener:
    """The division of one function's source into statements.

    `names` makes unique names of variables and nodes. ``self`` is the `network`, unless it is None:
    in functions that are no methods. `around` has the code of the functions that led here.
    """

    def __init__(
        self, network: Cell | None, function: types.FunctionType, names: Any, around: Sequence[types.CodeType] = ()
    ) -> None:
        self.network, self.names = network, names
        self.scope = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
        self.around = (*around, function.__code__)
        self.block: list[Statement] = []

    def function(self, function: types.FunctionType, definition: ast.FunctionDef) -> list[Statement]:
        """Return the statements of a function, which begin with its inputs."""
        made = []
        for name in list(inspect.signature(function).parameters)[self.network is not None :]:
            named = self.names.node(f"input_{name}")
            made.append(Statement(NodeType.Input, named, [ScopedValue.create_naming_value(name)]))
        return made + self.body(definition.body)

    def body(self, statements: Sequence[ast.stmt]) -> list[Statement]:
        """Return the statements of a block."""
        outer, self.block = self.block, []
        for s in statements:
            self._statement(s)
        made, self.block = self.block, outer
        return made

    def _add(self, statement: Statement) -> Statement:
        statement.name = self.names.node(statement.name)
        self.block.append(statement)
        if statement.kind is NodeType.CallFunction:
            self._enter(statement)
        elif statement.kind is NodeType.CellContainer:
            hold_members(statement, self.names)
        return statement

    def _enter(self, s: Statement) -> None:
        """Give a call of a function of the user's the statements of that function."""
        is_method = isinstance(s.instance, types.MethodType)
        if is_method and s.instance.__self__ is not self.network:
            return
        function = s.instance.__func__ if is_method else s.instance
        if not isinstance(function, types.FunctionType) or function.__code__ in self.around or _is_installed(function):
            return
        try:
            definition, owner = definition_of(function)
        except NoSource:
            return
        if not isinstance(definition, ast.FunctionDef) or definition.decorator_list or _is_generator(definition):
            return
        s.code = Code(function, definition, owner)
        self.names.variables.update(function.__globals__.keys() & set(_used(function.__code__)))
        self.names.variables.update([*function.__code__.co_varnames, *function.__code__.co_freevars])
        inner = Flattener(self.network if is_method else None, function, self.names, self.around)
        s.hold("function", inner.function(function, definition))

    def _statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant):
            return
        if _has_opaque_names(s):
            self._python(s)
        elif isinstance(s, ast.Assign) and len(s.targets) == 1 and _is_plain_target(s.targets[0]):
            self._assign(_targets(s.targets[0]), s.value)
        elif isinstance(s, ast.Assign) and all(isinstance(t, ast.Name) for t in s.targets):
            self._assign(_targets(s.targets[-1]), s.value)
            for target, value in zip(reversed(s.targets[:-1]), reversed(s.targets[1:])):
                assert isinstance(value, ast.Name)
                self._assign(_targets(target), ast.Name(value.id, ast.Load()))
        elif isinstance(s, ast.AnnAssign) and s.value is not None and _is_plain_target(s.target):
            self._assign(_targets(s.target), s.value)
        elif isinstance(s, ast.Expr):
            self._assign([], s.value)
        elif isinstance(s, ast.Return):
            args = [] if s.value is None else [operand_of(self._simple(s.value))]
            compose = lambda args, kwargs: args[0] if args else ast.Constant(None)
            self._add(Statement(NodeType.Output, "return", args=args, compose=compose))
        elif isinstance(s, ast.If):
            test = operand_of(self._simple(s.test))
            made = self._add(Statement(NodeType.ControlFlow, "if_node", args=[test], raw=s))
            made.hold("body", self.body(s.body))
            if s.orelse:
                rest = self._add(Statement(NodeType.ControlFlow, "else_node", args=[test]))
                rest.hold("body", self.body(s.orelse))
                made.orelse = rest
        elif isinstance(s, (ast.For, ast.While)):
            over = operand_of(self._iterated(s.iter) if isinstance(s, ast.For) else s.test)
            name = "for_node" if isinstance(s, ast.For) else "while_node"
            made = self._add(Statement(NodeType.ControlFlow, name, args=[over], raw=s))
            made.hold("body", self.body(s.body))
            made.hold("orelse", self.body(s.orelse))
        else:
            self._python(s)

    def _iterated(self, e: ast.expr) -> ast.expr:
        """Return what a ``for`` goes over; a container of the network's becomes a node first."""
        found = self._found(e)
        if not isinstance(found, (SequentialCell, CellList)):
            return self._simple(e)
        text = ast.unparse(e)
        variable = self.names.variable(re.sub(r"\W", "_", text))
        made = Statement(NodeType.CellContainer, text, [ScopedValue.create_naming_value(variable)], instance=found)
        made.function, made.compose = e, lambda args, kwargs: _function_of(made)
        self._add(made)
        return ast.Name(variable, ast.Load())

    def _python(self, s: ast.stmt) -> None:
        self._add(Statement(NodeType.Python, type(s).__name__, raw=s))

    def _assign(self, targets: list[ScopedValue], value: ast.expr) -> None:
        made = self._operation(value)
        if made is None:
            name = type(value).__name__.lower() if isinstance(value, (*_SIMPLE, ast.Attribute)) else "expression"
            made = Statement(NodeType.CallMethod, f"{name}_assign", args=[operand_of(value)], compose=_first)
        made.targets = targets
        self._add(made)

    def _simple(self, e: ast.expr, before_call: bool = False) -> ast.expr:
        """Return a name, a constant, an attribute, or an expression kept as written, with the value
        of `e`.
        """
        if isinstance(e, _SIMPLE):
            return e
        if isinstance(e, _OPAQUE):
            return self._held(e, "value") if before_call else e
        if isinstance(e, ast.Attribute):
            whole: ast.expr = ast.Attribute(self._simple(e.value), e.attr, ast.Load())
            return self._held(whole, "attribute") if before_call else whole
        made = self._operation(e)
        if made is None:
            return self._held(e, "value") if before_call else e
        name = self.names.variable(_variable_of(made.name))
        made.targets = [ScopedValue.create_naming_value(name)]
        self._add(made)
        return ast.Name(name, ast.Load())

    def _held(self, e: ast.expr, name: str) -> ast.expr:
        variable = self.names.variable(f"{name}_var")
        target = [ScopedValue.create_naming_value(variable)]
        self._add(Statement(NodeType.CallMethod, name, target, [operand_of(e)], compose=_first))
        return ast.Name(variable, ast.Load())

    def _operands(self, parts: Sequence[ast.expr]) -> list[ast.expr]:
        """Return simple operands; those that a later call could change become variables."""
        calls = [any(isinstance(n, ast.Call) for n in ast.walk(p)) for p in parts]
        return [self._simple(p, any(calls[i + 1 :])) for i, p in enumerate(parts)]

    def _operation(self, e: ast.expr) -> Statement | None:
        """Return one operation of simple operands, without targets; None for anything else."""
        if isinstance(e, ast.Call):
            return self._call(e)
        if isinstance(e, ast.BinOp):
            op = e.op
            parts = self._operands([e.left, e.right])
            return self._math(f"binop_{_spelled(op)}", parts, lambda a, k: ast.BinOp(a[0], op, a[1]))
        if isinstance(e, ast.UnaryOp) and not isinstance(e.operand, ast.Constant):
            unary = e.op
            parts = self._operands([e.operand])
            return self._math(f"unaryop_{_spelled(unary)}", parts, lambda a, k: ast.UnaryOp(unary, a[0]))
        if isinstance(e, ast.Compare) and len(e.ops) == 1:
            test = e.ops[0]
            parts = self._operands([e.left, e.comparators[0]])
            return self._math(f"compare_{_spelled(test)}", parts, lambda a, k: ast.Compare(a[0], [test], [a[1]]))
        if isinstance(e, (ast.Tuple, ast.List)) and not any(isinstance(v, ast.Starred) for v in e.elts):
            kind = type(e)
            values = [operand_of(v) for v in self._operands(e.elts)]
            compose = lambda a, k: kind(list(a), ast.Load())
            return Statement(NodeType.CallMethod, kind.__name__.lower(), args=values, compose=compose)
        if isinstance(e, ast.Subscript):
            whole = ast.Subscript(self._simple(e.value, _calls(e.slice)), e.slice, ast.Load())
            return Statement(NodeType.CallMethod, "subscript_var", args=[operand_of(whole)], compose=_first)
        return None

    def _math(self, name: str, parts: Sequence[ast.expr], compose: Any) -> Statement:
        return Statement(NodeType.MathOps, name, args=[operand_of(p) for p in parts], compose=compose)

    def _call(self, e: ast.Call) -> Statement | None:
        if any(isinstance(a, ast.Starred) for a in e.args) or any(k.arg is None for k in e.keywords):
            return None
        function = e.func
        if isinstance(function, ast.Attribute):
            function = ast.Attribute(self._simple(function.value), function.attr, ast.Load())
        elif not isinstance(function, ast.Name):
            function = self._simple(function)
        parts = self._operands([*e.args, *[k.value for k in e.keywords]])
        values = [operand_of(p) for p in parts]
        names = [k.arg for k in e.keywords if k.arg is not None]
        count = len(e.args)
        kind, name, instance = self._callee(function)
        kwargs = dict(zip(names, values[count:]))
        made = Statement(kind, name, args=values[:count], kwargs=kwargs, instance=instance)
        made.function, made.compose = function, made.call
        return made

    def _callee(self, function: ast.expr) -> tuple[NodeType, str, Any]:
        """Return the kind of callee, a name for the node, and the callee itself if it is known."""
        name = re.sub(r"\W", "", ast.unparse(function).split(".")[-1]) or "call"
        found = self._found(function)
        return (kind_of_cell(found) if isinstance(found, Cell) else _kind_of(found)), name, found

    def _found(self, e: ast.expr) -> Any:
        """Return what an expression such as ``self.net.layer`` is before anything runs, or None."""
        path = ast.unparse(e).split(".")
        found: Any = self.network if path[0] == "self" else self.scope.get(path[0])
        for part in path[1:]:
            found = getattr(found, part, None) if part.isidentifier() else None
        return found


def hold_members(s: Statement, names: Any) -> None:
    """Give a container the calls of its members; those of an inner container follow it."""
    made = []
    for cell in s.instance:
        kind = kind_of_cell(cell)
        member = Statement(kind, names.node(type(cell).__name__), s.targets, s.args, s.kwargs, instance=cell)
        if kind is NodeType.CellContainer:
            hold_members(member, names)
        made.append(member)
    s.hold("cells", made)


def _is_installed(function: types.FunctionType) -> bool:
    """Return whether a function comes from this library, Python's own or an installed package."""
    path = os.path.realpath(function.__code__.co_filename)
    if function.__module__ and function.__module__.split(".")[0] == "mycel":
        return True
    if any(path.startswith(opened) for opened in OPEN_PATHS):
        return False
    return is_standard(path) or is_installed(path)


def _is_generator(definition: ast.FunctionDef) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global)) for n in ast.walk(definition))


def _used(code: types.CodeType) -> list[str]:
    """Return the names of variables outside that a function uses, and those of its inner ones."""
    return [*code.co_names, *[n for c in code.co_consts if isinstance(c, types.CodeType) for n in _used(c)]]


def _function_of(s: Statement) -> ast.expr:
    assert s.function is not None
    return s.function


def _kind_of(found: Any) -> NodeType:
    return NodeType.CallPrimitive if isinstance(found, Primitive) else NodeType.CallFunction


def _spelled(operator: ast.AST) -> str:
    return type(operator).__name__.lower()


def _first(args: Sequence[ast.expr], kwargs: Any) -> ast.expr:
    return args[0]


def _variable_of(name: str) -> str:
    """Return the variable for the value of a node: ``add_var`` of "binop_add"."""
    if name.startswith("compare_"):
        return "compare_var"
    name = name.split("op_", 1)[1] if name.startswith(("binop_", "unaryop_")) else name
    return name if name == "subscript_var" else f"{name}_var"


def _calls(e: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(e))


def _has_opaque_names(s: ast.stmt) -> bool:
    """Return whether a simple statement binds names inside its expressions, so that its order must
    stay.
    """
    if isinstance(s, (ast.If, ast.For, ast.While)):
        tested = s.iter if isinstance(s, ast.For) else s.test
        return any(isinstance(n, ast.NamedExpr) for n in ast.walk(tested))
    return any(isinstance(n, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)) for n in ast.walk(s))


def _is_plain_target(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple):
        return all(isinstance(t, (ast.Name, ast.Attribute)) and _is_plain_target(t) for t in target.elts)
    return isinstance(target, ast.Name) or (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name))


def _targets(target: ast.expr) -> list[ScopedValue]:
    return [operand_of(t) for t in (target.elts if isinstance(target, ast.Tuple) else [target])]
