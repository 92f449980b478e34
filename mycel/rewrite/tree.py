"""The statements of one network's `construct`, their names, and edits of them.

A tree owns blocks of statements, the first of which begins with the inputs. Names of nodes and
names of variables are each unique in it. Each call of a Cell of the user's has a tree of its own,
made at the first access. Producers and users of values are searched in a statement's own block, as
it is not known which branch runs.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Iterator, Sequence
from typing import Any

from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.python_runtime import syntax_trees
from mycel._src.staging.frontend.source_code.function_source import NoSource, definition_of
from mycel._src.tensors.cells.cell import Cell
from mycel.ops.operations.primitive import Primitive
from mycel.rewrite.flattening import Flattener, hold_members
from mycel.rewrite.statements import NodeType, Statement, objects_of
from mycel.rewrite.values import ScopedValue, ValueType, operand_of

__all__ = ["Names", "Tree"]


class Names:
    """A source of names that are not used: ``x``, ``x_1``, ``x_2``."""

    def __init__(self, taken: set[str]) -> None:
        self.variables, self.nodes = set(taken), set[str]()

    def variable(self, name: str) -> str:
        """Return a name for a variable."""
        return _free(name, self.variables)

    def node(self, name: str) -> str:
        """Return a name for a node."""
        return _free(name, self.nodes)

    def free(self, name: str) -> str:
        """Return a name that neither a variable nor a node has."""
        both = self.variables | self.nodes
        made = _free(name, both)
        self.variables.add(made)
        return made


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


class Tree:
    """The statements of one network."""

    def __init__(self, network: Cell) -> None:
        self.network = network
        self.function = _construct_of(network)
        try:
            definition, self.owner = definition_of(self.function)
        except NoSource as error:
            raise Unsupported(
                f"SymbolTree: the source of {type(network).__name__}.construct is needed: {error}"
            ) from None
        assert isinstance(definition, ast.FunctionDef)
        if definition.decorator_list:
            raise Unsupported(
                f"SymbolTree: {type(network).__name__}.construct has decorators; take them off, or put the code into a "
                "function that it calls"
            )
        self.definition = definition
        taken = {n.id for n in ast.walk(definition) if isinstance(n, ast.Name)} | set(
            inspect.signature(self.function).parameters
        )
        self.names = Names(taken)
        self.subtrees: dict[Statement, Tree] = {}
        self.new_cells: dict[str, Cell | Primitive] = {}
        self.bound: dict[str, Any] = {}
        self.is_changed = False
        self.file_name = "./network_define.py"
        self._changed_names: dict[Statement, str] = {}
        self.block = Flattener(network, self.function, self.names).function(self.function, definition)
        for s in self.block:
            s.block = self.block
        for s in self.statements():
            s.tree = self

    def statements(self) -> Iterator[Statement]:
        """Yield all statements; those inside others follow these."""
        for s in list(self.block):
            yield s
            yield from s.inner()

    def find(self, name: str) -> Statement | None:
        """Return the statement of a name, or None."""
        return next((s for s in self.statements() if s.name == name), None)

    def subtree(self, s: Statement) -> Tree:
        """Return the tree of a Cell of the user's that a statement calls; each call has its own."""
        found = self.subtrees.get(s)
        if found is None:
            found = self.subtrees[s] = Tree(s.instance)
        return found

    def changed_subtrees(self) -> dict[int, Tree]:
        """Return the trees below this one that differ from the source, by the identity of the Cell;
        of a Cell that is called several times, that of the last call that was changed.
        """
        calls = [s for s in self.statements() if s in self.subtrees]
        return {id(s.instance): self.subtrees[s] for s in calls if self.subtrees[s].has_changed()}

    def has_changed(self) -> bool:
        """Return whether this tree or one below it differs from the source."""
        return self.is_changed or bool(self.changed_subtrees())

    # Where values come from.

    def producer(self, s: Statement, value: ScopedValue) -> tuple[Statement, int] | None:
        """Return the last statement before `s` in its block that assigns a named value, and the
        number of the target.
        """
        if value.type is not ValueType.NamingValue or s.block is None:
            return None
        wanted = (str(value), str(value).split(".")[0]) if not value.scope.startswith("self") else (str(value),)
        for other in reversed(s.block[: s.block.index(s)]):
            for i, text in enumerate(other.writes()):
                if text in wanted:
                    return other, i
        return None

    def providers(self, s: Statement) -> dict[int, tuple[Statement, int]]:
        """Return, for each operand by number, the statement that assigns it and the number of its
        target.
        """
        values = [*s.args, *s.kwargs.values()]
        found = {i: self.producer(s, v) for i, v in enumerate(values)}
        return {i: p for i, p in found.items() if p is not None}

    def users(self, s: Statement) -> dict[int, list[tuple[Statement, int]]]:
        """Return, for each target by number, the statements that read it and the number of the
        operand.
        """
        found: dict[int, list[tuple[Statement, int]]] = {}
        for other in s.block or ():
            for operand, (source, target) in self.providers(other).items():
                if source is s:
                    found.setdefault(target, []).append((other, operand))
        return found

    # Changes.

    def enter(self, s: Statement, beside: Statement, block: list[Statement], place: int) -> None:
        """Insert a statement that is in no tree into a block.

        A Cell becomes an attribute or a member of a container, other objects become variables.

        Args:
            s: The new statement.
            beside: A statement of the same block.
            block: The block.
            place: The number that the new statement has in it.
        """
        in_container = beside.parent is not None and beside.parent.kind is NodeType.CellContainer
        if in_container and not isinstance(s.instance, Cell):
            raise TypeError(f"insert: a container holds Cells, so {s.name!r} cannot be inserted into it")
        if isinstance(s.instance, (Cell, Primitive)):
            taken = set(dir(self.network)) | set(self.new_cells) | self.names.nodes
            s.name = _free(s.name, taken)
            self.names.nodes.add(s.name)
            if not in_container:
                self.new_cells[s.name] = s.instance
                s.function = syntax_trees.expression(f"self.{s.name}")
        else:
            s.name = self.names.node(s.name)
            if s.kind is NodeType.CallFunction and s.function is None:
                s.function = ast.Name(
                    self.variable_of(s.instance, str(getattr(s.instance, "__name__", "function"))), ast.Load()
                )
        if s.kind is NodeType.CellContainer:
            hold_members(s, self.names)
        for value in objects_of(s):
            self.variable_of(value, type(value).__name__.lower())
        self.names.variables.update(t for t in s.writes() if t.isidentifier())
        s.block, s.parent = block, beside.parent
        for inside in (s, *s.inner()):
            inside.tree = self
        block.insert(place, s)
        self.changed(s)

    def changed(self, s: Statement) -> None:
        """Note that a statement, or the block that it is in, was changed."""
        s.edit()
        self.is_changed = True

    def variable_of(self, value: Any, name: str) -> str:
        """Return the variable that stands for an object."""
        for known, other in self.bound.items():
            if other is value:
                return known
        taken = self.names.variables | set(self.function.__globals__)
        made = _free(name if name.isidentifier() else "value", taken)
        self.names.variables.add(made)
        self.bound[made] = value
        return made

    def name_of_changed(self, s: Statement) -> str:
        """Return the name of the function that a call gets when its statements are changed."""
        found = self._changed_names.get(s)
        if found is None:
            taken = self.names.variables | self.names.nodes | set(dir(self.network)) | set(self.function.__globals__)
            found = self._changed_names[s] = _free(f"{s.name}_opt", taken)
            self.names.variables.add(found)
        return found

    def erase(self, s: Statement) -> None:
        """Remove a statement; the ``else`` of an ``if`` is removed with it."""
        assert s.block is not None
        if s.kind is NodeType.ControlFlow and s.raw is None:
            for other in s.block:
                if other.orelse is s:
                    other.orelse = None
        elif s.orelse is not None:
            self.erase(s.orelse)
        self.changed(s)
        s.block.remove(s)
        s.block = s.parent = s.tree = None

    # Conditions that the network's attributes decide.

    def flatten_static(self) -> None:
        """Replace each ``if`` whose test depends only on the network's attributes by the statements
        of the branch that will run.
        """
        self._flatten_block(self.block)
        for t in list(self.subtrees.values()):
            t.flatten_static()

    def _flatten_block(self, block: list[Statement]) -> None:
        place = 0
        while place < len(block):
            s = block[place]
            for inner in s.blocks.values():
                self._flatten_block(inner)
            known, value = self._static(s, s.args[0]) if isinstance(s.raw, ast.If) else (False, None)
            if not known:
                place += 1
                continue
            taken = s.blocks["body"] if value else s.orelse.blocks["body"] if s.orelse is not None else []
            if s.orelse is not None:
                block.remove(s.orelse)
            for other in taken:
                other.block, other.parent = block, s.parent
            block[place : place + 1] = taken
            self.changed(s)
            ends = [i for i, other in enumerate(block) if other.kind is NodeType.Output]
            if ends:
                del block[ends[0] + 1 :]

    def _static(self, s: Statement, value: ScopedValue) -> tuple[bool, Any]:
        """Return whether a value depends only on the network's attributes, and the value."""
        if value.type is ValueType.ConstantValue:
            return True, value.value
        if value.type is not ValueType.NamingValue:
            return False, None
        if value.scope.split(".")[0] == "self":
            found: Any = self.network
            for part in str(value).split(".")[1:]:
                found = getattr(found, part, None)
            return (True, found) if found is None or isinstance(found, (bool, int, float, str)) else (False, None)
        source = self.producer(s, value)
        if source is None or source[0].kind is not NodeType.MathOps or source[0].compose is None:
            return False, None
        operands = [self._static(source[0], v) for v in source[0].args]
        if not all(known for known, _ in operands):
            return False, None
        expression = ast.Expression(source[0].compose([ast.Constant(v) for _, v in operands], {}))
        return True, eval(compile(ast.fix_missing_locations(expression), "<condition>", "eval"), {})


def _construct_of(network: Cell) -> types.FunctionType:
    found: Any = network.__dict__.get("construct", type(network).construct)
    found = getattr(found, "__func__", found)
    if not isinstance(found, types.FunctionType):
        raise Unsupported(
            f"SymbolTree: {type(network).__name__}.construct must be a plain function, not a {type(found).__name__}"
        )
    return found


def targets_of(values: Sequence[Any]) -> list[ScopedValue]:
    """Return targets that are given as values or as text such as "x" or "self.x"."""
    return [v if isinstance(v, ScopedValue) else operand_of(syntax_trees.expression(v)) for v in values]
