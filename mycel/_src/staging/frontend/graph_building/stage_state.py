"""What a stage knows while it interprets a function: scopes, captured tensors and earlier calls.

A branch or loop body that depends on a tensor is staged in a `Scope` of its own, which knows the
nodes made in it and journals the changes made in it (`Effect`). `StageState` is what the parts of a
stage ask of it: views, derivatives, forward reuse and data-dependent sizes are typed by it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from mycel._src.compiler.ir.graph import Node, current_where
from mycel._src.compiler.prims.custom_derivatives import Rule
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.pytree import flatten
from mycel._src.tensors.core.execution_context import Context, Differentiating
from mycel._src.tensors.core.tensor import Tensor

__all__ = [
    "MISSING",
    "Capture",
    "Effect",
    "Scope",
    "StageState",
    "StagedCall",
    "attribute_now",
    "copy_container",
]


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


MISSING: Any = _Missing()


class Effect:
    """A change of an object that outlives a scope: its `kind` ("tensor", "container", "item" or
    "attribute"), its `target`, the `name` of the item or attribute, and the value `before`.
    """

    __slots__ = ("kind", "target", "name", "before", "where")

    def __init__(self, kind: str, target: Any, name: Any, before: Any) -> None:
        self.kind, self.target, self.name, self.before = kind, target, name, before
        self.where = current_where()

    def read(self, stage: StageState) -> Any:
        """Return the present value: a node for a tensor, a copy for a container."""
        if self.kind == "tensor":
            return stage.node_of(self.target)
        if self.kind == "container":
            return copy_container(self.target)
        if self.kind == "item":
            return self.target.get(self.name, MISSING)
        return attribute_now(self.target, self.name)

    def write(self, stage: StageState, value: Any) -> None:
        """Restore a value that `read` returned, without entering that in a journal."""
        if self.kind == "tensor":
            stage.set_node(self.target, value)
        else:
            self.put(value)

    def put(self, value: Any) -> None:
        """Restore a value that `read` returned for a target that is no tensor."""
        if self.kind == "container":
            fill_container(self.target, value)
        elif self.kind == "item":
            if value is MISSING:
                self.target.pop(self.name, None)
            else:
                self.target[self.name] = value
        elif value is MISSING:
            if attribute_now(self.target, self.name) is not MISSING:
                delattr(self.target, self.name)
        else:
            set_attribute(self.target, self.name, value)

    def __str__(self) -> str:
        if self.kind == "tensor":
            name = self.target.__dict__.get("name") if self.target._buf is not None else None
            return f"tensor {name!r}" if name else f"a tensor {self.target._type}"
        if self.kind == "container":
            return f"a {type(self.target).__name__}"
        return f"{self.name!r}" if self.kind == "item" else f"attribute {self.name!r} of {type(self.target).__name__}"


def attribute_now(target: Any, name: str) -> Any:
    own = getattr(target, "__dict__", None)
    if own is not None and not isinstance(target, type) and name in own:
        return own[name]
    try:
        return getattr(target, name)
    except (AttributeError, ValueError):
        return MISSING


def set_attribute(target: Any, name: str, value: Any) -> None:
    """Set an attribute as the program does; a plain entry of a Cell is not registered by that."""
    setattr(target, name, value)


def copy_container(target: Any) -> Any:
    if isinstance(target, (list, deque)):
        return list(target)
    if isinstance(target, dict):
        return dict(target)
    return target.copy()


def is_unchanged(before: Any, after: Any) -> bool:
    """Return whether a container holds the identical objects as before."""
    if isinstance(before, np.ndarray):
        return bool(before.tobytes() == after.tobytes())
    if isinstance(before, dict):
        return list(before) == list(after) and all(before[k] is after[k] for k in before)
    if isinstance(before, set):
        return bool(before == after)
    return len(before) == len(after) and all(a is b for a, b in zip(before, after))


def fill_container(target: Any, content: Any) -> None:
    if isinstance(target, np.ndarray):
        target[...] = content
        return
    target.clear()
    if isinstance(target, (list, deque)):
        target.extend(content)
    else:
        target.update(content)


class Scope:
    """The nodes, new objects and changes that were made while a piece of the program was staged."""

    __slots__ = ("own", "fresh", "journal", "is_branch")

    def __init__(self, is_branch: bool) -> None:
        self.own: set[Node] = set()
        self.fresh: dict[int, Any] = {}
        self.journal: dict[Any, Effect] = {}
        self.is_branch = is_branch

    def take_back(self, stage: StageState) -> dict[Any, tuple[Effect, Any]]:
        """Undo the journaled changes, and return them with their values at the end of the scope."""
        changes = {}
        for key, effect in self.journal.items():
            now = effect.read(stage)
            # Containers were journaled in case native code changes them; unchanged ones stay.
            if effect.kind != "container" or not is_unchanged(effect.before, now):
                changes[key] = effect, now
        for effect, _ in reversed(changes.values()):
            effect.write(stage, effect.before)
        return changes


class Capture:
    """A tensor from outside that the graph takes as an input."""

    __slots__ = ("tensor", "node", "type")

    def __init__(self, tensor: Tensor, node: Node) -> None:
        self.tensor, self.node, self.type = tensor, node, tensor._type


class StagedCall:
    """What a call of a Cell read and gave.

    It was made in `scope`, with `args`, whose tensors had the nodes `given`. `before` are the nodes
    that there were, and `parameters` pairs of a parameter and its node. `out` are the outputs, with
    the nodes `results`, and `after` the nodes of the parameters when it ended.
    """

    __slots__ = ("scope", "args", "given", "before", "parameters", "after", "out", "results")

    def __init__(self, stage: StageState, args: tuple[Any, ...], parameters: Sequence[Tensor]) -> None:
        self.scope: Scope = stage.scope
        self.args = args
        self.given = [stage.node_of(t) for t in flatten(args)[0] if isinstance(t, Tensor)]
        self.before = set(stage.scope.own)
        self.parameters = [(p, stage.current.get(id(p))) for p in parameters]

    def end(self, stage: StageState, out: Any) -> None:
        self.out = out
        self.results = [stage.node_of(t) for t in flatten(out)[0] if isinstance(t, Tensor)]
        self.after = [stage.current.get(id(p)) for p, _ in self.parameters]


class StageState(Protocol):
    """What the parts of a stage ask of it: its tables, and access to the nodes being staged.

    `scopes` are those that are open, the outermost first, and `scope` is the last of them. Tables
    by identity: `current` has the nodes of the present values of tensors, `captures` the tensors
    from outside, `parameters` the nodes of parameters by which derivatives are taken, `numbers` the
    tensors that stand for Python numbers, `mixed` weak references to tensors that may share
    elements with one, `derived` the nodes of views with what they were made of, and `earlier` the
    last calls of Cells. `literals` has nodes by what they stand for. `taken` are derivatives at
    recorded calls, `depth` counts the derivatives that are being taken, and `cells_open` the Cells
    whose calls are being staged. `outer` was in force where a live stage began.
    """

    is_live: ClassVar[bool]
    depth: int
    outer: Context | None
    scope: Scope
    scopes: list[Scope]
    current: dict[int, Node]
    captures: dict[int, Capture]
    parameters: dict[int, Node]
    numbers: dict[int, Tensor]
    literals: dict[Any, Node]
    derived: dict[int, tuple[Any, Node, Node]]
    mixed: dict[int, list[Any]]
    earlier: dict[int, StagedCall]
    taken: finalization.Living[Any]
    cells_open: int

    @property
    def context(self) -> Context:
        """The context that the stage is."""

    @property
    def differentiating(self) -> Differentiating:
        """What takes derivatives of what was staged."""

    @property
    def may_decide(self) -> bool:
        """Whether Python can have values here."""

    def set_node(self, t: Tensor, node: Node) -> None:
        """Make `node` the present value of a tensor, without entering that in the journal."""

    def adopt(self, roots: Sequence[Node]) -> None:
        """Enter nodes that rules made, and all unknown nodes on which they depend, into the present
        scope.
        """

    def knows(self, node: Node) -> bool:
        """Return whether a node was made in a scope that is still open."""

    def node_of(self, t: Tensor) -> Node:
        """Return the node of a tensor's present value; a tensor from outside is captured."""

    def plain_node_of(self, t: Tensor) -> Node:
        """Return the node of a tensor as `node_of` does, but of a view without regard to
        its root.
        """

    def decide(self, t: Tensor, what: str = "the truth of a tensor") -> bool:
        """Return the truth of a tensor on which Python's control flow depends."""

    def literal(self, value: Any, dtype: Any = None) -> Tensor:
        """Return a number or array as a constant."""

    def is_fresh(self, value: Any) -> bool:
        """Return whether an object was created while staging."""

    def track(self, t: Tensor) -> None:
        """Remember a tensor that has no value yet, so that it can be given one later."""

    def write(self, target: Tensor, new: Tensor) -> None:
        """Make `new` the value of `target`."""

    def with_rule(self, values: Sequence[Tensor], operands: Sequence[Tensor], rule: Rule) -> Sequence[Tensor]:
        """Return copies of `values` whose derivative by `operands` is `rule`, the program's own."""
