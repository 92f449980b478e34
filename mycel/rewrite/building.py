"""Statements to source, and to a Cell that computes it.

The new Cell is of a new subclass of the original's class, with the new `construct` and the
attributes of the original: they share parameters and inner Cells. Functions and containers whose
statements were edited, or hold edited ones, are made anew; the network gets new methods under names
of their own, as other calls of the same method stay. The source is registered in `linecache`, so
that errors show its lines and it can be compiled like source from a file. A new function has the
globals, closure and defaults of the original.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import types
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from mycel._src.foundation.python_runtime import syntax_trees
from mycel._src.tensors.cells.cell import Cell, state_epoch
from mycel.rewrite.statements import Code, NodeType, Statement, python_of
from mycel.rewrite.tree import Tree

__all__ = ["build", "source_of"]

_numbers = itertools.count(1)


def _definition(name: str, code: Code, block: Sequence[Statement], names: dict[int, str]) -> ast.FunctionDef:
    """Return the source of a function with the statements of a block.

    Args:
        name: Its name.
        code: The original.
        block: Its statements.
        names: The variables that stand for objects, by identity.
    """
    made = ast.FunctionDef(
        name=name,
        args=_arguments(code, block),
        body=python_of(block, names) or [ast.Pass()],
        decorator_list=[],
        returns=None,
        type_comment=None,
    )
    if "type_params" in ast.FunctionDef._fields:
        setattr(made, "type_params", [])  # noqa: B010
    return ast.fix_missing_locations(made)


def _added(code: Code, block: Sequence[Statement]) -> list[Statement]:
    """Return the inputs of a block that the original function does not have."""
    written = code.definition.args
    known = {a.arg for a in (*written.posonlyargs, *written.args, *written.kwonlyargs)}
    known |= {a.arg for a in (written.vararg, written.kwarg) if a is not None}
    return [s for s in block if s.kind is NodeType.Input and str(s.targets[0]) not in known]


def _arguments(code: Code, block: Sequence[Statement]) -> ast.arguments:
    """Return the parameters with those that were added, behind others with or without a default."""
    written, added = code.definition.args, _added(code, block)
    place = len(written.args) - min(len(written.defaults), len(written.args))
    plain, later = ([ast.arg(str(s.targets[0])) for s in added if bool(s.args) is d] for d in (False, True))
    return ast.arguments(
        written.posonlyargs,
        [*written.args[:place], *plain, *written.args[place:], *later],
        written.vararg,
        written.kwonlyargs,
        written.kw_defaults,
        written.kwarg,
        [*written.defaults, *[s.args[0].expression({}) for s in added if s.args]],
    )


class _Function(NamedTuple):
    """A function to make: its name, the original, its statements, and what calls it."""

    name: str
    code: Code
    block: Sequence[Statement]
    call: Statement | None

    def definition(self, names: dict[int, str]) -> ast.FunctionDef:
        """Return its source."""
        return _definition(self.name, self.code, self.block, names)

    @property
    def is_method(self) -> bool:
        """Whether it becomes a method of the new class."""
        return self.call is None or isinstance(self.call.instance, types.MethodType)


def _functions(tree: Tree) -> list[_Function]:
    """Return the functions of a tree that have to be made: inner ones first, `construct` last."""
    found = [
        _Function(tree.name_of_changed(s), s.code, s.blocks["function"], s)
        for s in tree.statements()
        if s.code is not None and s.is_edited
    ]
    own = Code(tree.function, tree.definition, tree.owner)
    return [*reversed(found), _Function("construct", own, tree.block, None)]


def _is_edited(s: Statement, tree: Tree) -> bool:
    """Return whether the members of a container, or their own trees, were changed."""
    changed = tree.changed_subtrees()
    return s.is_edited or any(id(m.instance) in changed for m in s.inner() if m.kind is NodeType.Tree)


def source_of(tree: Tree) -> str:
    """Return the source of the network's class, of the functions that it calls and that were
    changed, and of the classes of changed inner Cells.
    """
    calls = _Calls(tree)
    parts = [source_of(t) for t in tree.changed_subtrees().values()]
    name = type(tree.network).__name__
    lines = [f"class {name}Opt({name}):"]
    for f in _functions(tree):
        calls.renamed(f)
        text = ast.unparse(f.definition(calls.names))
        if f.is_method:
            lines += [("    " + line) if line else "" for line in text.splitlines()]
            lines.append("")
        else:
            parts.append(text)
    calls.undo()
    return "\n\n\n".join([*parts, "\n".join(lines[:-1])]) + "\n"


class _Calls:
    """What statements call while a network is made: new functions and Cells instead of the
    originals, which `undo` puts back, as the tree may be edited further.
    """

    def __init__(self, tree: Tree) -> None:
        self.names = {id(value): name for name, value in tree.bound.items()}
        self.bound: dict[str, Any] = dict(tree.bound)
        self._before: list[tuple[Statement, ast.expr | None]] = []

    def instead(self, s: Statement, path: str) -> None:
        """Let a statement call what `path` names."""
        self._before.append((s, s.function))
        s.function = syntax_trees.expression(path)

    def renamed(self, f: _Function) -> None:
        """Let the call of a function that is made anew name the new one."""
        if f.call is not None:
            self.instead(f.call, f"self.{f.name}" if f.is_method else f.name)

    def undo(self) -> None:
        """Put the original callees back."""
        for s, function in reversed(self._before):
            s.function = function


def build(tree: Tree, path: str = "") -> Cell:
    """Return a Cell that computes the tree.

    `path` is its path from the outermost Cell, which names the parameters of new Cells.
    """
    network = tree.network
    places = _places(tree)
    below = tree.changed_subtrees().items()
    changed = {key: build(t, f"{path}{places.get(key, '')}.") for key, t in below}
    replaced: dict[str, Cell] = {}
    calls = _Calls(tree)
    for s in list(tree.statements()):
        in_container = s.parent is not None and s.parent.kind is NodeType.CellContainer
        if s.kind is NodeType.Tree and id(s.instance) in changed and not in_container:
            _call_instead(tree, s, changed[id(s.instance)], replaced, calls)
        elif s.kind is NodeType.CellContainer and not in_container and _is_edited(s, tree):
            made = _container(s, tree, changed, f"{path}{places.get(id(s.instance), '')}.")
            _call_instead(tree, s, made, replaced, calls)
    name = f"{type(network).__name__}Opt"
    members = {"__module__": type(network).__module__, "__doc__": type(network).__doc__}
    kind = type(name, (type(network),), {**members, **_compiled(tree, name, calls)})
    calls.undo()
    made_cell = _copy(network, kind)
    made_cell.__dict__.pop("construct", None)
    for attribute, callee in tree.new_cells.items():
        setattr(made_cell, attribute, replaced.pop(attribute, changed.get(id(callee), callee)))
        if isinstance(callee, Cell) and path and network._auto_prefix:
            callee.update_parameters_name(f"{path}{attribute}.")
    for attribute, cell in replaced.items():
        made_cell.insert_child_to_cell(attribute, cell)
    state_epoch.value += 1
    return made_cell


def _copy(network: Cell, kind: type[Cell]) -> Cell:
    """Return a Cell of class `kind` with the attributes of another."""
    made: Cell = object.__new__(kind)
    own = {k: OrderedDict(v) if isinstance(v, OrderedDict) else v for k, v in network.__dict__.items()}
    made.__dict__.update(
        {**own, "_compiled_call": None, "_flags": dict(own["_flags"]), "_tuples": dict(own["_tuples"])}
    )
    return made


def _places(tree: Tree) -> dict[int, str]:
    """Return where in the network the Cells are that statements call, by identity."""
    found: dict[int, str] = {}
    for s in tree.statements():
        if s.function is not None:
            found[id(s.instance)] = ast.unparse(s.function).partition(".")[2]
        if s.kind is NodeType.CellContainer:
            for i, member in enumerate(s.blocks["cells"]):
                found[id(member.instance)] = f"{found.get(id(s.instance), '')}.{i}"
    return found


def _container(s: Statement, tree: Tree, changed: dict[int, Cell], path: str) -> Cell:
    """Return a container with the members that its statement holds.

    Args:
        s: The statement.
        tree: The tree that it is in.
        changed: New Cells of changed trees, by the identity of the originals.
        path: Where the container is in the outermost network; parameters of members that are new,
            or moved, are named by it.
    """
    before = s.instance._cells
    keys = list(before)
    made = _copy(s.instance, type(s.instance))
    made.__dict__["_cells"] = OrderedDict()
    for key in keys:
        made.__dict__.pop(key, None)
    kept = {id(cell): key for key, cell in before.items()}
    numbered = all(key.isdigit() for key in keys)
    for i, member in enumerate(s.blocks["cells"]):
        cell = member.instance
        old = kept.get(id(cell))
        key = str(i) if numbered else old or member.name
        if member.kind is NodeType.CellContainer and _is_edited(member, tree):
            cell = _container(member, tree, changed, f"{path}{key}.")
        made.insert_child_to_cell(key, changed.get(id(cell), cell))
        if key != old and s.instance._auto_prefix:
            cell.update_parameters_name(f"{path}{key}.")
    return made


def _call_instead(tree: Tree, s: Statement, cell: Cell, replaced: dict[str, Cell], calls: _Calls) -> None:
    """Let a statement call another Cell.

    The Cell replaces the attribute, or gets an attribute of its own if the original is one of an
    inner Cell.

    Args:
        tree: The tree of the statement.
        s: The statement.
        cell: What it calls from now on.
        replaced: The new Cells by attribute, to which this one is added.
        calls: What is called meanwhile.
    """
    assert s.function is not None
    path = ast.unparse(s.function).split(".")
    attribute = path[1]
    if len(path) > 2:
        attribute = tree.names.free(path[-1])
        calls.instead(s, f"self.{attribute}")
        s.edit()
    replaced[attribute] = cell


def _compiled(tree: Tree, name: str, calls: _Calls) -> dict[str, types.FunctionType]:
    """Return the new methods by name; other new functions become variables of those that call."""
    methods: dict[str, types.FunctionType] = {}
    for f in _functions(tree):
        calls.renamed(f)
        made = _function(f, name, calls)
        if f.is_method:
            methods[f.name] = made
        else:
            calls.bound[f.name] = made
    return methods


def _function(f: _Function, name: str, calls: _Calls) -> types.FunctionType:
    original = f.code.function
    free = list(dict.fromkeys([*original.__code__.co_freevars, *calls.bound]))
    function = ast.unparse(f.definition(calls.names)).splitlines()
    owner = f.code.owner or name
    lines = [f"def _make({', '.join(free)}):", f"    class {owner}:", *["        " + line for line in function]]
    text = "\n".join(lines) + "\n"
    filename = f"<rewritten {name} {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    code = _code_of(compile(text, filename, "exec", dont_inherit=True), f.name)
    assert code is not None
    cells = dict(zip(original.__code__.co_freevars, original.__closure__ or ()))
    closure = tuple([cells[n] if n in cells else types.CellType(calls.bound[n]) for n in code.co_freevars])
    defaults = (*(original.__defaults__ or ()), *[s.args[0].constant() for s in _added(f.code, f.block) if s.args])
    made = types.FunctionType(code, original.__globals__, f.name, defaults, closure)
    made.__kwdefaults__, made.__doc__ = original.__kwdefaults__, original.__doc__
    made.__qualname__, made.__module__ = f"{name}.{f.name}", original.__module__
    return made


def _code_of(code: types.CodeType, name: str) -> types.CodeType | None:
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found = inner if inner.co_name == name else _code_of(inner, name)
            if found is not None:
                return found
    return None
