"""Views and aliasing during staging, also where data decides which tensors share elements.

A view has a node that belongs to one node of its root: after a write to the root, or in another
branch, it is derived anew from the root's present node. Derived nodes belong to the outermost scope
that knows their inputs, so that all inner scopes can use them. A write to a view is a write to its
root, which scopes enter in their journals.

Where branches join, or a loop carries a variable, there may be a tensor that shares its elements
with others depending on data: its `_view` is a `Mixed`. It is read like any tensor until one of the
others is written to, and it cannot be written to while one of them is in use (they are known by
weak references, so that dropped tensors do not count); else the function is not one graph. A stage
in which Python can have values finds out instead which tensor it is: a `Mixed` keeps the
conditions, as a tree of `Either`s over `Origin`s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from mycel._src.compiler.ir.graph import Node, current_where
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import CONSTANT
from mycel._src.engines import buffers
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.python_runtime.reference_counts import ONE_OWNER
from mycel._src.staging.frontend.graph_building.stage_state import StageState
from mycel._src.tensors.core import eager, views
from mycel._src.tensors.core.tensor import Tensor
from mycel._src.tensors.core.views import View

__all__ = [
    "OWN",
    "Either",
    "Mixed",
    "Origin",
    "mix",
    "node_of",
    "origin",
    "parts",
    "settle",
    "value_of",
    "wrote",
    "write",
]


class Origin:
    """A root and the steps to the elements of a tensor.

    `held` keeps a root alive that several results share.
    """

    __slots__ = ("root", "steps", "held")

    def __init__(self, root: Tensor | None, steps: tuple[views.Step, ...] = ()) -> None:
        self.root: Callable[[], Tensor | None] = _nothing if root is None else ref(root)
        self.steps = steps
        self.held: Tensor | None = None


def _nothing() -> None:
    return None


class Either:
    """One of two origins, between which the tensor `pred` decides; None if that is not known."""

    __slots__ = ("pred", "true", "false")

    def __init__(self, pred: Tensor | None, true: Tree, false: Tree) -> None:
        self.pred, self.true, self.false = pred, true, false


Tree = Origin | Either
OWN = Origin(None)
LARGEST = 24


class Mixed:
    """The tree of origins of a tensor whose elements depend on data.

    `refuse`, if given, is called for a use that is not allowed.
    """

    __slots__ = ("tree", "is_stale", "refuse")

    def __init__(self, tree: Tree, refuse: Callable[[], None] | None = None) -> None:
        self.tree, self.is_stale, self.refuse = tree, False, refuse


def origin(value: Any) -> Tree:
    """Return the origin of a value's elements; a number has elements of its own."""
    if not isinstance(value, Tensor):
        return OWN
    view = value._view
    if type(view) is Mixed:
        return view.tree
    return Origin(view.root, view.steps) if type(view) is View else Origin(value)


def parts(tree: Tree) -> list[Tree]:
    """Return all parts of a tree, each once and after its own parts, as joins share parts."""
    order: list[Tree] = []
    seen: set[int] = set()
    stack: list[tuple[Tree, bool]] = [(tree, False)]
    while stack:
        part, done = stack.pop()
        if done:
            order.append(part)
        elif id(part) not in seen:
            seen.add(id(part))
            stack.append((part, True))
            if isinstance(part, Either):
                stack += [(part.false, False), (part.true, False)]
    return order


def leaves(tree: Tree) -> list[Origin]:
    return [part for part in parts(tree) if isinstance(part, Origin)]


def settle(stage: StageState, trees: Sequence[Tree]) -> list[Tree]:
    """Return the origins of results that are joined here, without unreachable ones.

    Roots that several results share are kept alive. A tensor made in a branch that has been left
    can be reached only through joined results. A stage that has to find out later what a result is
    raises CompileError if that will not be possible.
    """
    owners: dict[int, int] = {}
    shared: set[int] = set()
    for i, tree in enumerate(trees):
        for leaf in leaves(tree):
            root = leaf.root()
            if root is not None and owners.setdefault(id(root), i) != i:
                shared.add(id(root))
                leaf.held = root
    for tree in trees:
        for leaf in leaves(tree):
            root = leaf.root()
            if root is not None and id(root) in shared:
                leaf.held = root
    simple: dict[int, Tree] = {}
    found = [_simple(stage, tree, simple) for tree in trees]
    if stage.is_live and (shared or not all(_can_be_told(stage, tree) for tree in found)):
        where = current_where()
        raise CompileError(
            f"{where}: a tensor decides which tensors share their elements; take a copy() of what is to be on its own"
        )
    return found


def _simple(stage: StageState, tree: Tree, known: dict[int, Tree]) -> Tree:
    """Return a tree without unreachable origins; a large tree is reduced to its possible origins
    without their conditions.
    """
    for part in parts(tree):
        if id(part) in known:
            continue
        if isinstance(part, Either):
            true, false = known[id(part.true)], known[id(part.false)]
            known[id(part)] = true if true is false else _chained(stage, part.pred, true, false)
        else:
            root = part.root()
            gone = root is None or (part.held is None and is_left(stage, root))
            known[id(part)] = OWN if gone else part
    found = known[id(tree)]
    if len(parts(found)) > LARGEST:
        possible: Tree = OWN
        for leaf in {_place(leaf): leaf for leaf in leaves(found)}.values():
            possible = Either(None, leaf, possible)
        found = known[id(tree)] = possible
    return found


def _place(leaf: Origin) -> Any:
    """Return a key for the elements of an origin."""
    steps = [(id(kind), repr(params), tuple(map(id, operands))) for kind, params, operands in leaf.steps]
    return id(leaf.root()), tuple(steps)


def _chained(stage: StageState, pred: Tensor | None, true: Tree, false: Tree) -> Either:
    """Return either of two trees.

    Two conditions are joined to one if all but one of the origins are elements of the tensor's own,
    so that chains do not grow.
    """
    inner = false if true is OWN else true if false is OWN else OWN
    if not isinstance(inner, Either) or (inner.true is not OWN and inner.false is not OWN):
        return Either(pred, true, false)
    also = inner.pred
    if pred is None or also is None or any(p._buf is not None or is_left(stage, p) for p in (pred, also)):
        return Either(pred, true, false)
    first = pred if true is OWN else eager.apply(E.logical_not, pred)
    second = also if inner.true is OWN else eager.apply(E.logical_not, also)
    return Either(eager.apply(E.logical_or, first, second), OWN, inner.false if inner.true is OWN else inner.true)


def is_left(stage: StageState, t: Tensor) -> bool:
    """Return whether a tensor was made in a branch that has been left."""
    return t._buf is None and t._node is not None and t._node.prim is not CONSTANT and not stage.knows(t._node)


def _can_be_told(stage: StageState, tree: Tree) -> bool:
    for part in parts(tree):
        if isinstance(part, Origin):
            if any(is_left(stage, o) for _, _, operands in part.steps for o in operands):
                return False
        elif part.pred is None or is_left(stage, part.pred):
            return False
    return True


def mix(stage: StageState, t: Tensor, tree: Tree, refuse: Callable[[], None] | None = None) -> Tensor:
    """Return `t` as a tensor whose elements have one of the origins in `tree`.

    `refuse` is that of `Mixed`; `stage` keeps the tensor among its mixed ones.
    """
    if tree is OWN:
        return t
    t._view = Mixed(tree, refuse)
    if stage.is_live:
        for pred in _conditions(tree):
            stage.track(pred)
    for leaf in leaves(tree):
        root = leaf.root()
        if root is not None:
            stage.mixed.setdefault(id(root), []).append(ref(t))
    return t


def _conditions(tree: Tree) -> list[Tensor]:
    return [p.pred for p in parts(tree) if isinstance(p, Either) and p.pred is not None and p.pred._buf is None]


def decided(stage: StageState | None, t: Tensor, tree: Tree) -> Tensor:
    """Return `t` as a view, or as a tensor of its own, as the values of a tree's conditions say.

    While staging, the result is a mixed tensor.
    """
    if stage is not None:
        return mix(stage, t, tree)
    while isinstance(tree, Either):
        tree = tree.true if bool(tree.pred) else tree.false
    root = tree.root()
    return t if root is None else views.attach(t, root, tree.steps)


def resolve_all(stage: StageState) -> None:
    """Find out what every mixed tensor in use is, from the values of all conditions."""
    for t in _mixtures(stage):
        # others are left over from attempts that were given up
        if type(t._view) is Mixed and t._buf is not None:
            _resolve(stage, t, "it outlives the call")


def tidy(stage: StageState) -> None:
    """Forget mixed tensors that are no longer in use."""
    for key, known in list(stage.mixed.items()):
        known[:] = [r for r in known if r() is not None]
        if not known:
            del stage.mixed[key]


def _mixtures(stage: StageState) -> list[Tensor]:
    found = {id(t): t for known in stage.mixed.values() for t in [r() for r in known] if t is not None}
    return list(found.values())


def _in_use(stage: StageState, leaf: Origin) -> bool:
    """Return whether the program can still reach an origin, because there are more references to it
    than those of this function and the stage's tables.
    """
    root = leaf.root()
    if root is None:
        return False
    tables = _tables_with(stage, id(root)) + (id(root) in stage.numbers)
    return leaf.held is not None or sys.getrefcount(root) >= ONE_OWNER + tables


def _tables_with(stage: StageState, number: int) -> int:
    """Return how many tables of fresh objects have one with an identity."""
    # A function of its own, as what a generator reads is counted otherwise than a variable.
    return sum(number in scope.fresh for scope in stage.scopes)


def is_sole(stage: StageState, variables: dict[str, Any], name: str) -> bool:
    """Return whether only a variable refers to its tensor, and to the tensors that share elements
    with it.
    """
    t = variables[name]
    if not isinstance(t, Tensor) or t._view is not None or t._buf is not None:
        return False
    if t._views is not None and t._views.alive():
        return False
    return sys.getrefcount(t) <= ONE_OWNER + _tables_with(stage, id(t))


def wrote(stage: StageState, t: Tensor) -> None:
    """Note that a tensor has another value, so that tensors that may share it are out of date."""
    for other in [r() for r in stage.mixed.get(id(t), ())]:
        if other is not None and type(other._view) is Mixed:
            for leaf in leaves(other._view.tree):
                if leaf.root() is t:
                    leaf.held = t
                    other._view.is_stale = True


def _resolve(stage: StageState, t: Tensor, what: str) -> None:
    """Find out what a mixed tensor is. Raises CompileError if that is not known while staging."""
    mixed = t._view
    tree = mixed.tree
    while isinstance(tree, Either):
        if not stage.may_decide or tree.pred is None:
            where = current_where()
            raise CompileError(
                f"{where}: {what}, and a tensor decides with which other tensor it shares its elements; "
                "take a copy() of it where it gets its value"
            )
        tree = tree.true if stage.decide(tree.pred, "") else tree.false
    t._view = None
    root = tree.root()
    if root is not None and _in_use(stage, tree):
        views.attach(t, root, tree.steps)
        if mixed.is_stale:
            stage.derived.pop(id(t), None)
            if t._buf is not None:
                t._buf = t._node = None


def node_of(stage: StageState, t: Tensor) -> Node:
    """Return the node of the present value of a view or of a mixed tensor."""
    view = t._view
    if type(view) is Mixed:
        if view.is_stale:
            if view.refuse is not None:
                view.refuse()
            else:
                _resolve(stage, t, "one of two tensors is written to and the other read")
                return stage.node_of(t)
        return stage.plain_node_of(t)
    root = stage.node_of(view.root)
    found = stage.derived.get(id(t))
    if found is not None and found[0]() is t and found[1] is root:
        return found[2]
    node = _derived(stage, root, view.steps)
    _remember(stage, t, root, node)
    return node


def _remember(stage: StageState, t: Tensor, root: Node, node: Node) -> None:
    stage.derived[id(t)] = (ref(t), root, node)
    if t._node is not None and t._buf is None:
        t._node = node


def viewed(stage: StageState, t: Tensor) -> None:
    """Note a view that was made here, whose node belongs to the present node of its root."""
    node = t._node if t._buf is None else stage.current.get(id(t))
    if node is not None:
        _remember(stage, t, stage.node_of(t._view.root), node)


def _derived(stage: StageState, root: Node, steps: Sequence[views.Step]) -> Node:
    """Return the node to which steps lead, in the outermost scope that knows its inputs."""
    operands = [[stage.node_of(o) for o in given] for _, _, given in steps]
    level = 0
    for node in (root, *[o for given in operands for o in given]):
        if node.prim is not CONSTANT:
            level = max(level, next((i for i, s in enumerate(stage.scopes) if node in s.own), len(stage.scopes) - 1))
    own = stage.scopes[level].own
    for (kind, params, _), given in zip(steps, operands):
        if kind is views.DIAGONAL:
            line, part = views.diagonal_steps(root.type)
            root = S.RESHAPE(root, **line)
            own.add(root)
            kind, params = S.SLICE, part
        root = kind(root, *given, **params)
        own.add(root)
    return root


def write(stage: StageState, target: Tensor, new: Tensor) -> None:
    """Make `new` the value of a view or of a mixed tensor."""
    view = target._view
    if type(view) is Mixed:
        used = [o for o in leaves(view.tree) if _in_use(stage, o)]
        if used and view.refuse is not None:
            view.refuse()
        elif used:
            _resolve(stage, target, "it is written to")
        else:
            target._view = None
        if type(target._view) is Mixed:
            target._view = None
        stage.write(target, new)
        return
    stage.write(view.root, views.put(view.root, view.steps, new))
    _remember(stage, target, stage.node_of(view.root), stage.node_of(new))
    wrote(stage, target)


def is_unchanged(stage: StageState, t: Tensor) -> bool:
    """Return whether a tensor from outside still has the value that it had before staging."""
    if type(t._view) is View:
        return is_unchanged(stage, t._view.root)
    if t._buf is None or (type(t._view) is Mixed and t._view.is_stale):
        return False
    node = stage.current.get(id(t))
    if node is None:
        return True
    capture = stage.captures.get(id(t))
    return capture.node is node if capture is not None else stage.is_fresh(t) and node.prim is CONSTANT


def is_open(t: Tensor) -> bool:
    """Return whether the root of a view is not known yet."""
    view = t._view
    while type(view) is View:
        view = view.root._view
        if type(view) is Mixed and view.is_stale:
            return True
    return False


def value_of(stage: StageState, t: Tensor) -> np.ndarray[Any, Any] | None:
    """Return the array of a view whose root existed before and has not changed; else None."""
    if type(t._view) is not View or not is_unchanged(stage, t):
        return None
    if t._buf is None:
        with eager.use_context(None):
            t._view.refresh(t)
    return buffers.to_array(t._buf, t._type)
