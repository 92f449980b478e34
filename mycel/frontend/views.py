"""Views while a function is staged, and tensors of which it depends on data with what they share their elements.

A view has a node for one node of its root: when the root has been written to, or another branch is being staged, it is derived anew from the root's
present node. Derived nodes belong to the outermost scope that knows what they need, so that one serves everything inside. A write to a view
is a write of its root, which is what scopes journal.

Where branches join, or a loop carries a variable, a tensor appears whose elements may be those of others, depending on data: its `_view` is a
`Mixed`. It is read like any tensor until one of those others is written to, and cannot be written to while one of them is in use (they
are known by weak references, so what the program dropped does not count): then the function is not one graph. A stage that can have values
finds out instead which tensor it is: a `Mixed` keeps the conditions, as a tree of `Either`s over `Origin`s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional, Union
from weakref import ref

import numpy as np

from mycel import eager, views
from mycel.engines import buffers
from mycel.errors import CompileError
from mycel.ir.graph import Node, current_where
from mycel.prims import shape as S
from mycel.prims.base import CONSTANT
from mycel.tensor import Tensor
from mycel.views import View

__all__ = ["Either", "Mixed", "Origin", "mix", "node_of", "origin", "settle", "value_of", "wrote", "write"]


class Origin:
    """A tensor with the steps to what is meant; `held` keeps one alive that several results share."""

    __slots__ = ("root", "steps", "held")

    def __init__(self, root: Tensor, steps: tuple[views.Step, ...]) -> None:
        self.root, self.steps = ref(root), steps
        self.held: Optional[Tensor] = None


class Either:
    """One of two origins, as a tensor decides; of one without a condition it cannot be said which."""

    __slots__ = ("pred", "true", "false")

    def __init__(self, pred: Optional[Tensor], true: Tree, false: Tree) -> None:
        self.pred, self.true, self.false = pred, true, false


Tree = Union[Origin, Either]


class Mixed:
    """What a tensor may share its elements with. `refuse`, where given, is told of a use that is not right."""

    __slots__ = ("tree", "is_stale", "refuse")

    def __init__(self, tree: Tree, refuse: Optional[Callable[[], None]] = None) -> None:
        self.tree, self.is_stale, self.refuse = tree, False, refuse


def origin(t: Tensor) -> Tree:
    """Where the elements of a tensor are."""
    view = t._view
    if type(view) is Mixed:
        return view.tree
    return Origin(view.root, view.steps) if type(view) is View else Origin(t, ())


def leaves(tree: Tree) -> Iterable[Origin]:
    if isinstance(tree, Origin):
        yield tree
    else:
        yield from leaves(tree.true)
        yield from leaves(tree.false)


def settle(stage: Any, trees: Sequence[Tree]) -> None:
    """Mark what several results share; a stage that must be able to tell them apart later is told now."""
    owners: dict[int, Tree] = {}
    for tree in trees:
        for leaf in leaves(tree):
            root = leaf.root()
            if root is None or owners.setdefault(id(root), tree) is tree:
                continue
            if stage.is_live:
                raise CompileError(
                    f"{current_where()}: a tensor decides which of two tensors several variables share; give each a copy()"
                )
            for other in trees:
                for same in leaves(other):
                    if same.root() is root:
                        same.held = root


def mix(stage: Any, t: Tensor, tree: Tree, refuse: Optional[Callable[[], None]] = None) -> Tensor:
    """`t` as a tensor that may share its elements with those of a tree."""
    t._view = Mixed(tree, refuse)
    for leaf in leaves(tree):
        root = leaf.root()
        if root is not None:
            stage.mixed.setdefault(id(root), []).append(ref(t))
    stage.mixtures.append(ref(t))
    return t


def _in_use(stage: Any, leaf: Origin) -> bool:
    """Whether the program can still reach an origin: more refers to it than this function and the stage's own tables."""
    root = leaf.root()
    if root is None:
        return False
    known = 2 + sum(id(root) in scope.fresh for scope in stage.scopes) + (id(root) in stage.numbers)
    return leaf.held is not None or sys.getrefcount(root) > known


def wrote(stage: Any, t: Tensor) -> None:
    """Note that a tensor has another value: what may share it is out of date."""
    for r in stage.mixed.get(id(t), ()):
        other = r()
        if other is not None and type(other._view) is Mixed and any(o.root() is t for o in leaves(other._view.tree)):
            other._view.is_stale = True


def _resolve(stage: Any, t: Tensor, what: str) -> None:
    """Find out what a mixed tensor is; CompileError where that is not known while staging."""
    mixed = t._view
    tree = mixed.tree
    while isinstance(tree, Either):
        if not stage.may_decide or tree.pred is None:
            where = current_where()
            raise CompileError(f"{where}: {what}, and a tensor decides with which other tensor it shares its elements; "
                               "take a copy() of it where it gets its value")  # fmt: skip
        tree = tree.true if stage.decide(tree.pred, "") else tree.false
    t._view = None
    root = tree.root()
    if root is not None and _in_use(stage, tree):
        views.attach(t, root, tree.steps)
        if mixed.is_stale:
            stage.derived.pop(id(t), None)


def node_of(stage: Any, t: Tensor) -> Node:
    """The node of a view's, or a mixed tensor's, present value."""
    view = t._view
    if type(view) is Mixed:
        if view.is_stale:
            if view.refuse is not None:
                view.refuse()
            else:
                _resolve(stage, t, "one of two tensors is written to and the other read")
                return stage.node_of(t)  # type: ignore[no-any-return]
        return stage.plain_node_of(t)  # type: ignore[no-any-return]
    root = stage.node_of(view.root)
    found = stage.derived.get(id(t))
    if found is not None and found[0]() is t and found[1] is root:
        return found[2]  # type: ignore[no-any-return]
    node = _derived(stage, root, view.steps)
    _remember(stage, t, root, node)
    return node


def _remember(stage: Any, t: Tensor, root: Node, node: Node) -> None:
    stage.derived[id(t)] = (ref(t), root, node)
    if t._node is not None and t._buf is None:
        t._node = node


def viewed(stage: Any, t: Tensor) -> None:
    """Note a view that has been made here: its node is that of the present root."""
    node = t._node if t._buf is None else stage.current.get(id(t))
    if node is not None:
        _remember(stage, t, stage.node_of(t._view.root), node)


def _derived(stage: Any, root: Node, steps: Sequence[views.Step]) -> Node:
    """The node to which steps lead, in the outermost scope that knows all that it needs."""
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


def write(stage: Any, target: Tensor, new: Tensor) -> None:
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


def is_unchanged(stage: Any, t: Tensor) -> bool:
    """Whether a tensor from outside has the value here that it had before."""
    if type(t._view) is View:
        return is_unchanged(stage, t._view.root)
    if t._buf is None:
        return False
    node = stage.current.get(id(t))
    if node is None:
        return True
    capture = stage.captures.get(id(t))
    return capture.node is node if capture is not None else stage.is_fresh(t) and node.prim is CONSTANT


def value_of(stage: Any, t: Tensor) -> Optional[np.ndarray[Any, Any]]:
    """The array of a view whose root was there before and has not changed; else None."""
    if type(t._view) is not View or not is_unchanged(stage, t):
        return None
    if t._buf is None:
        with eager.use_context(None):
            views.refresh(t)
    return buffers.to_array(t._buf, t._type)
