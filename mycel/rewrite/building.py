"""Statements to source, and to a Cell that computes it.

The new Cell is of a new subclass of the original's class, with the new `construct` and the
attributes of the original: they share parameters and inner Cells. The source is registered in
`linecache`, so that errors show its lines and it can be compiled like source from a file. The new
function has the globals, closure and defaults of the original.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import types
from collections import OrderedDict
from typing import Optional

from mycel.cells.cell import Cell, state_epoch
from mycel.rewrite.statements import NodeType, Statement, python_of
from mycel.rewrite.tree import Tree

__all__ = ["build", "source_of"]

_numbers = itertools.count(1)


def _variables(tree: Tree) -> dict[int, str]:
    return {id(value): name for name, value in tree.bound.items()}


def _function(tree: Tree) -> ast.FunctionDef:
    made = ast.FunctionDef(
        name="construct",
        args=tree.definition.args,
        body=python_of(tree.block, _variables(tree)) or [ast.Pass()],
        decorator_list=[],
        returns=None,
        type_comment=None,
    )
    if "type_params" in ast.FunctionDef._fields:
        setattr(made, "type_params", [])  # noqa: B010
    return ast.fix_missing_locations(made)


def source_of(tree: Tree) -> str:
    """Return the source of the network's class, and of the classes of changed inner Cells."""
    parts = [source_of(t) for t in tree.subtrees.values() if t.has_changed()]
    name = type(tree.network).__name__
    lines = [f"class {name}Opt({name}):"]
    lines += ["    " + line if line else "" for line in ast.unparse(_function(tree)).splitlines()]
    return "\n\n\n".join([*parts, "\n".join(lines)]) + "\n"


def build(tree: Tree, path: str = "") -> Cell:
    """Return a Cell that computes the tree.

    `path` is its path from the outermost Cell, which names the parameters of new Cells.
    """
    network = tree.network
    places = {
        id(s.instance): ast.unparse(s.function).partition(".")[2] for s in tree.statements() if s.function is not None
    }
    changed = {key: build(t, f"{path}{places.get(key, '')}.") for key, t in tree.subtrees.items() if t.has_changed()}
    replaced: dict[str, Cell] = {}
    for s in tree.statements():
        if s.kind is NodeType.Tree and id(s.instance) in changed:
            _call_instead(tree, s, changed[id(s.instance)], replaced)
    name = f"{type(network).__name__}Opt"
    construct = _compiled(tree, name)
    kind = type(
        name,
        (type(network),),
        {"construct": construct, "__module__": type(network).__module__, "__doc__": type(network).__doc__},
    )
    made: Cell = object.__new__(kind)
    own = {k: OrderedDict(v) if isinstance(v, OrderedDict) else v for k, v in network.__dict__.items()}
    own.pop("construct", None)
    made.__dict__.update(
        {**own, "_compiled_call": None, "_flags": dict(own["_flags"]), "_tuples": dict(own["_tuples"])}
    )
    for attribute, cell in tree.new_cells.items():
        setattr(made, attribute, changed.get(id(cell), cell))
        if path and own["_auto_prefix"]:
            cell.update_parameters_name(f"{path}{attribute}.")
    for attribute, cell in replaced.items():
        made.insert_child_to_cell(attribute, cell)
    state_epoch.value += 1
    return made


def _call_instead(tree: Tree, s: Statement, cell: Cell, replaced: dict[str, Cell]) -> None:
    """Let a statement call another Cell.

    The Cell replaces the attribute, or gets an attribute of its own if the original is one of an
    inner Cell.
    """
    assert s.function is not None
    path = ast.unparse(s.function).split(".")
    attribute = path[1]
    if attribute in tree.new_cells:
        return
    if len(path) > 2:
        attribute = tree.names.free(path[-1])
        s.function = ast.parse(f"self.{attribute}", mode="eval").body
    replaced[attribute] = cell


def _compiled(tree: Tree, name: str) -> types.FunctionType:
    original = tree.function
    free = list(dict.fromkeys([*original.__code__.co_freevars, *tree.bound]))
    function = ast.unparse(_function(tree)).splitlines()
    owner = tree.owner or name
    lines = [f"def _make({', '.join(free)}):", f"    class {owner}:", *["        " + line for line in function]]
    text = "\n".join(lines) + "\n"
    filename = f"<rewritten {name} {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    code = _code_of(compile(text, filename, "exec", dont_inherit=True))
    assert code is not None
    cells = dict(zip(original.__code__.co_freevars, original.__closure__ or ()))
    closure = tuple([cells[n] if n in cells else types.CellType(tree.bound[n]) for n in code.co_freevars])
    made = types.FunctionType(code, original.__globals__, "construct", original.__defaults__, closure)
    made.__kwdefaults__, made.__doc__ = original.__kwdefaults__, original.__doc__
    made.__qualname__, made.__module__ = f"{name}.construct", original.__module__
    return made


def _code_of(code: types.CodeType) -> Optional[types.CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found = inner if inner.co_name == "construct" else _code_of(inner)
            if found is not None:
                return found
    return None
