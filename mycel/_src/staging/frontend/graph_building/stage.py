"""The stage: the tracing context in which applying a primitive makes a node.

A `Stage` is one staging of one function. Tensors that existed before are *captured*: each gets an
input node, and `current` holds the node of its present value, which a write in place replaces. A
branch or loop body that depends on a tensor is staged in a `Scope` of its own. The scope knows the
nodes that were made in it (`own`), so that nodes that it uses from outside become explicit
operands, and has a journal of its changes (of tensors, attributes, containers, variables of other
frames), so that they can be undone and joined with those of the other branch. The journal of the
outermost scope has the changes of Python objects that outlive the function; compiled code repeats
them after each call.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from mycel._src.compiler.ir.graph import Node, current_where, input_node
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM, Primitive, constant
from mycel._src.compiler.prims.custom_derivatives import Rule
from mycel._src.compiler.prims.indexing.index_bounds import place_checked
from mycel._src.engines import buffers
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import CompileError, NeedsValue
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.pytree import map_leaves
from mycel._src.staging.frontend.graph_building import staged_views
from mycel._src.staging.frontend.graph_building.data_dependent_sizes import staged_positions
from mycel._src.staging.frontend.graph_building.stage_state import (
    MISSING,
    Capture,
    Effect,
    Scope,
    StagedCall,
    attribute_now,
    copy_container,
)
from mycel._src.staging.frontend.graph_building.staged_derivatives import StagedDerivatives, assigned_node
from mycel._src.staging.frontend.source_code.tracebacks import note_operands
from mycel._src.staging.frontend.specialization.guards import Guards
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.saved_tensors import staged
from mycel._src.tensors.core.execution_context import Context, Following, SavedHooks, Staging
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, make_staged
from mycel._src.tensors.core.views import root_of

__all__ = ["Stage", "current_stage", "is_constant", "is_staged"]

V = TypeVar("V")
_READABLE = 1024
_MENDS = {
    "the truth of a tensor": "use ops.where, or write the condition in the function's own `if`",
    "item()": "keep it a tensor, or return it and call item() outside",
    "asnumpy()": "use operations of ops, or return the tensor and convert it outside",
    "float()": "keep it a tensor; .astype(ms.float32) converts",
    "int()": "keep it a tensor; .astype(ms.int64) converts",
    "showing a tensor": "return the tensor and show it outside",
    "an f-string": "return the tensor and show it outside",
    "formatting": "return the tensor and show it outside",
}


def mend_of(what: str) -> str:
    """Return advice on what to write instead of `what`, which needs a value."""
    return _MENDS.get(what, "compute with tensors, or do this outside the compiled function")


class Activation:
    """A call that is being staged: its arguments, and how many scopes were open when it began."""

    __slots__ = ("variables", "scopes")

    def __init__(self, variables: dict[str, Any], scopes: int) -> None:
        self.variables, self.scopes = variables, scopes


class Unfinished(CompileError):
    """Raised where a path through a recursive function calls it again, while its result is not
    known yet; it names the function.
    """

    def __str__(self) -> str:
        return str(self.args[0])


class Stage(Context, Staging, Following):
    """One staging of one function; see the module's description."""

    does = "makes nodes of operations and follows code"
    is_staging = True
    saving: SavedHooks | None = None
    outer: Context | None = None  # what was in force where a live stage began
    ended: Any = None  # the outermost function's name and where it ended

    def __init__(self) -> None:
        self.depth = self.calls = self.cells_open = 0
        self.operators = 0  # those that were marked
        self.taken = finalization.Living[Any]()  # derivatives at recorded calls, while their nodes are alive
        self.guards = Guards()
        self.scope = Scope(False)
        self.scopes = [self.scope]
        self.current: dict[int, Node] = {}
        self.captures: dict[int, Capture] = {}
        # the nodes of parameters by which derivatives are taken, by the identity of the parameters
        self.parameters: dict[int, Node] = {}
        self.sources: dict[int, Any] = {}
        self.literals: dict[Any, Node] = {}
        # those of Python numbers, which the tensors that meet them give a type
        self.literal_nodes: set[Node] = set()
        self.numbers: dict[int, Tensor] = {}
        self.anchored: list[Tensor] = []  # known by their identity, which they must keep
        self.derived: dict[int, tuple[Any, Node, Node]] = {}
        self.mixed: dict[int, list[Any]] = {}
        self.unseen: Any = None
        self.generators: list[Any] = []
        self.namespaces: dict[int, Any] = {}
        self.deferred: list[tuple[Any, Any, Any]] = []
        self.levels: list[Any] = []
        self.strategies: list[Any] = []  # how users divide the inputs of operators
        self.active: dict[Any, list[Activation]] = {}
        self.recurses = False  # whether a function called itself
        self.recursions: dict[Any, Any] = {}
        self.followed: set[Any] = set()
        self.earlier: dict[int, StagedCall] = {}

    # Roles.

    @property
    def context(self) -> Stage:
        return self

    @property
    def staging(self) -> Stage:
        return self

    @property
    def following(self) -> Stage:
        return self

    @property
    def differentiating(self) -> StagedDerivatives:
        return StagedDerivatives(self)

    # Nodes.

    def emit(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        nodes = tuple(
            [t._node if t._view is None and t._buf is None and t._node is not None else self.node_of(t) for t in inputs]
        )
        try:
            kind = primitive.type_of(*[n.type for n in nodes], **params)
        except Exception as error:
            note_operands(error, primitive.name, [n.type for n in nodes])
            raise
        node = Node(primitive, nodes, params, kind, place_checked(primitive.traps))
        own = self.scope.own
        own.add(node)
        if type(node.type) is tuple:
            parts = [Node(GET_ITEM, (node,), {"index": i}, t) for i, t in enumerate(node.type)]
            own.update(parts)
            several = tuple([make_staged(p) for p in parts])
            return several if self.saving is None else staged(self, primitive, inputs, params, several)
        made = make_staged(node)
        if self.saving is not None:
            made = staged(self, primitive, inputs, params, made)
        if self.numbers and not made._type.shape and nodes:
            if all(id(t) in self.numbers or n in self.literal_nodes for t, n in zip(inputs, nodes)):
                self.numbers[id(made)] = made
        return made

    def mark_number(self, t: Tensor) -> Tensor:
        """Note that a tensor stands for a Python number, which no assignment changes in place."""
        self.numbers[id(t)] = t
        return t

    def vary(self, numbers: Sequence[Tensor]) -> None:
        """Note that inputs stand for Python numbers that the caller marked as variable."""
        for t in numbers:
            self.mark_number(t)

    def adopt(self, roots: Sequence[Node]) -> None:
        """Enter nodes that rules made, and all unknown nodes on which they depend, into the present
        scope.
        """
        own = self.scope.own
        stack = [n for n in roots if not self.knows(n)]
        while stack:
            node = stack.pop()
            if node in own:
                continue
            own.add(node)
            stack.extend(i for i in node.inputs if i not in own and not self.knows(i))

    def knows(self, node: Node) -> bool:
        """Return whether a node was made in a scope that is still open."""
        return any(node in scope.own for scope in reversed(self.scopes))

    def node_of(self, t: Tensor) -> Node:
        """Return the node of a tensor's present value; a tensor from outside is captured."""
        return self.plain_node_of(t) if t._view is None else staged_views.node_of(self, t)

    def plain_node_of(self, t: Tensor) -> Node:
        """Return the node of a tensor as `node_of` does, but of a view without regard to
        its root.
        """
        if t._buf is None:
            if t._node is not None:
                return t._node
            t._need_value("a compiled function")
        found = self.current.get(id(t))
        return self._capture(t) if found is None else found

    def set_node(self, t: Tensor, node: Node) -> None:
        if t._buf is None:
            t._node = node
        else:
            self.current[id(t)] = node

    def capture(self, t: Tensor) -> Node:
        """Return the node of a tensor from outside."""
        return self.node_of(t)

    def _capture(self, t: Tensor) -> Node:
        if any(id(t) in scope.fresh for scope in self.scopes):
            node = constant(buffers.to_array(t._buf, t._type))
            self.scopes[0].own.add(node)
            self.anchored.append(t)
        else:
            node = input_node(t._type, t.__dict__.get("name") or "captured")
            self.scopes[0].own.add(node)
            self.captures[id(t)] = Capture(t, node)
        self.current[id(t)] = node
        return node

    def read_tensor(self, target: Any, name: str, t: Tensor) -> None:
        """Note that a tensor was read from an attribute.

        Compiled code reads the attribute again, so that the program may set it to other tensors.
        """
        known = self.sources.get(id(t))
        if known is None:
            self.sources[id(t)] = (target, name, t)
        elif known[0] is not target or known[1] != name:
            for owner, attribute in ((known[0], known[1]), (target, name)):
                self.guards.attribute(owner, attribute, t)

    def source_of(self, t: Tensor) -> tuple[Any, str] | None:
        """Return the attribute from which compiled code takes a captured tensor, if there is
        exactly one.
        """
        found = self.sources.get(id(t))
        if found is None or self.guards.has_attribute(found[0], found[1]):
            return None
        return found[0], found[1]

    def literal(self, value: Any, dtype: Any = None) -> Tensor:
        """Return a number or array as a constant of the graph."""
        kind = (
            D.from_any(dtype if dtype is not None else type(value))
            if not isinstance(value, (np.ndarray, np.generic))
            else None
        )
        if kind is None:
            array = np.asarray(value, dtype=None if dtype is None else D.from_any(dtype).numpy)
            return make_staged(constant(array))
        key = (repr(value), kind)
        found = self.literals.get(key)
        if found is None:
            found = self.literals[key] = constant(value, kind)
            self.scopes[0].own.add(found)
            self.literal_nodes.add(found)
        return self.created(make_staged(found))

    # Values.

    def need_value(self, t: Tensor, what: str) -> np.ndarray[Any, Any]:
        """Return the array of a tensor that is a constant here.

        Raises NeedsValue for a tensor that is computed when the graph runs.
        """
        if t._view is None:
            if t._buf is None and t._node is None:
                t._need_value(what)
                return buffers.to_array(t._buf, t._type)
            node = t._node if t._buf is None else self.current.get(id(t))
        else:
            array = staged_views.value_of(self, t)
            root = root_of(t)
            if array is not None and (self.is_fresh(root) or not isinstance(root, Parameter) and t.size <= _READABLE):
                if not self.is_fresh(root):
                    self.guards.value(t, array)
                return array
            node = self.node_of(t)
        if node is not None and is_constant(node):
            return np.array(node.value)
        if self.levels and node is not None:
            self.levels[-1].refuse(self, node, what)
        if t._buf is not None and t._view is None:
            if any(id(t) in scope.fresh for scope in self.scopes):
                return buffers.to_array(t._buf, t._type)
            unchanged = node is None or (id(t) in self.captures and self.captures[id(t)].node is node)
            if unchanged and not isinstance(t, Parameter) and t.size <= _READABLE:
                array = buffers.to_array(t._buf, t._type)
                self.guards.value(t, array)
                return array
            kind = "a parameter" if isinstance(t, Parameter) else "a tensor"
            text = f"{what} needs the value of {kind} ({t._type}) that may change between calls"
        else:
            text = f"{what} needs the value of a tensor ({t._type}) that is computed when the compiled function runs"
        where, mend = current_where(), mend_of(what)
        raise NeedsValue(f"{where}: {text}; {mend}" if where else f"{text}; {mend}")

    def has_positions(self) -> bool:
        """Return whether positions whose number depends on data can be made here.

        They cannot in a branch that depends on a tensor, nor where Python can have values instead.
        """
        return not self.is_live and not self.scope.is_branch

    def positions(self, mask: Tensor, least: int) -> Tensor:
        return staged_positions(self, mask, least)

    @property
    def runs_each_time(self) -> bool:
        """Whether code that runs here runs again at each call."""
        return False

    def decide(self, t: Tensor, what: str = "the truth of a tensor") -> bool:
        """Return the truth of a tensor on which Python's control flow depends."""
        return bool(np.asarray(self.need_value(t, what)).reshape(()))

    def attempt(self, where: Any, staged: Callable[[], Any], live: Callable[[], Any]) -> Any:
        """Stage a construct that depends on a tensor, by `staged`.

        `live` runs it as Python does, for a stage in which Python can have values.
        """
        return staged()

    def as_unit(self, fn: Any, inline: Callable[[], Any], args: Any, kwargs: Any) -> Any:
        """Call `fn` with `args` and `kwargs` in a way that a stage may choose.

        `inline` interprets the call.
        """
        return inline()

    # State.

    def write(self, target: Tensor, new: Tensor) -> None:
        """Make `new` the value of `target` from here on."""
        if target._view is not None:
            staged_views.write(self, target, new)
            return
        before = self.node_of(target)
        node = assigned_node(self, target, self.node_of(new))
        if target._buf is not None and id(target) in self.captures and self.captures[id(target)].type is not node.type:
            raise CompileError(
                f"{current_where()}: a compiled function cannot change the type of a tensor from {target._type} to "
                f"{node.type}; "
                "cast or reshape the new value, or assign outside"
            )
        self.note(("tensor", id(target)), "tensor", target, None, before)
        self.set_node(target, node)
        if self.mixed:
            staged_views.wrote(self, target)

    def track(self, t: Tensor) -> None:
        """Do nothing: the graph gives a value to what is returned."""

    def viewed(self, t: Tensor) -> None:
        """Note that a tensor made here is a view."""
        staged_views.viewed(self, t)

    def note(self, key: Any, kind: str, target: Any, name: Any, before: Any) -> None:
        """Journal a change, once for each scope and `key`, unless its target was created there.

        `kind`, `target`, `name` and `before` are those of `Effect`.
        """
        scope = self.scope
        if key in scope.journal or id(target) in scope.fresh:
            return
        if kind == "tensor" and (not scope.is_branch or before in scope.own):
            return
        scope.journal[key] = Effect(kind, target, name, before)

    def note_attribute(self, target: Any, name: str) -> None:
        self.note(("attribute", id(target), name), "attribute", target, name, attribute_now(target, name))

    def note_item(self, target: dict[str, Any], name: str) -> None:
        self.note(("item", id(target), name), "item", target, name, target.get(name, MISSING))

    def note_container(self, target: Any) -> None:
        key = ("container", id(target))
        if key not in self.scope.journal and id(target) not in self.scope.fresh:
            self.note(key, "container", target, None, copy_container(target))

    def defer(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call a function after each run of the compiled code, with the values that the arguments
        have at this point of the run.
        """
        if self.levels and self.scope is self.levels[-1].scope:
            self.levels[-1].defer(fn, args, kwargs)
            return
        if self.scope.is_branch:
            raise CompileError(
                f"{current_where()}: {fn.__name__}() where a tensor decides whether it is called is not compiled; "
                "return the values and call it outside"
            )
        keep = lambda v: make_staged(self.node_of(v)) if isinstance(v, Tensor) and not isinstance(v, Parameter) else v
        self.deferred.append((fn, map_leaves(keep, args), map_leaves(keep, kwargs)))

    @property
    def is_conditional(self) -> bool:
        """Whether it depends on a tensor if the code that is being staged runs at all."""
        own = [level.scope for level in self.levels]
        return any(s.is_branch and not any(s is o for o in own) for s in self.scopes)

    def before_draw(self, state: Tensor) -> None:
        for level in self.levels:
            level.split(self, state)

    def guard_attribute(self, target: Any, name: str, value: Any) -> None:
        self.guards.attribute(target, name, value)

    def was_changed(self, key: Any) -> bool:
        """Return whether the program itself has set this, so that reading it needs no guard."""
        return any(key in scope.journal for scope in self.scopes)

    def need_own_iterator(self, value: Any) -> None:
        """Raise CompileError for an iterator from outside, as staging would advance it."""
        if self.scope.is_branch and id(value) not in self.scope.fresh and hasattr(type(value), "__next__"):
            raise CompileError(
                f"{current_where()}: whether this {type(value).__name__} is advanced is decided by a tensor; "
                "take its items before the condition"
            )
        if not self.runs_each_time and hasattr(type(value), "__next__") and not self.is_fresh(value):
            raise CompileError(
                f"{current_where()}: this {type(value).__name__} comes from outside, and each call takes other items "
                "of it; take them outside and pass them"
            )

    def is_fresh(self, value: Any) -> bool:
        """Return whether an object was created while staging."""
        return any(id(value) in scope.fresh for scope in self.scopes)

    def created(self, value: V) -> V:
        """Remember that the program created an object here."""
        self.scope.fresh[id(value)] = value
        return value

    def written(self) -> list[Capture]:
        """Return the captured tensors whose value has changed."""
        return [c for i, c in self.captures.items() if self.current[i] is not c.node]

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[Scope]:
        """Return a context manager within which nodes and changes belong to `scope`."""
        self.scopes.append(scope)
        self.scope = scope
        try:
            yield scope
        finally:
            self.scopes.pop()
            self.scope = self.scopes[-1]

    # Interpretation of code, which subclasses define.

    @abstractmethod
    def invoke(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return ``fn(*args, **kwargs)``, interpreting the user's code."""

    @abstractmethod
    def with_rule(self, values: Sequence[Tensor], operands: Sequence[Tensor], rule: Rule) -> Sequence[Tensor]:
        """Return copies of `values` whose derivative by `operands` is `rule`, the program's own."""

    @abstractmethod
    def activate(self, frame: Any) -> Any:
        """Run the body of an interpreted function."""


def is_constant(node: Node) -> bool:
    return node.prim is CONSTANT


def is_staged(value: Any) -> bool:
    """Return whether a value is a tensor that has only a node."""
    return isinstance(value, Tensor) and value._buf is None and value._node is not None


def current_stage() -> Stage | None:
    """Return the stage in force in this thread, if any."""
    context = eager.local.context if eager.active else None
    return context if isinstance(context, Stage) else None
