"""`vmap` inside staging: stages a function for one example of a batch.

A `Level` is one such staging. The function is staged in a scope of its own, on inputs that stand
for one example; its results and changes are then vectorised (`transforms.vmap`) and become part of
the surrounding graph. A tensor from outside may be changed if the new value is the same for all
examples. Python's own objects must not keep a value of one example.

Random numbers: a generator that is used at a level has a state of its own for each example there,
with a key that is drawn from the state outside. So each example draws its own numbers, in the order
in which its control flow asks for them, and the state outside advances by one draw for each
example.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node, current_where, input_node, toposort
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.random import advance, random_bits
from mycel._src.compiler.transforms.vmap import batch
from mycel._src.foundation.dtype import uint64
from mycel._src.foundation.errors import VmapError
from mycel._src.foundation.pytree import flatten, unflatten
from mycel._src.staging.frontend.control_flow.conditionals import apply_effect
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.staging.frontend.graph_building.stage_state import MISSING, Effect, Scope
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["Level", "Mapped"]

Mapped = tuple[Node, int | None]
_MENDS = {
    "the truth of a tensor": "an `if` or `while` of the function itself, or ops.where, decides for each example",
    "": "write it so that both sides give tensors of one type, or use ops.where",
    "the positions at which a mask holds": (
        "each example would have a size of its own; use ops.where, or multiply by the mask"
    ),
    "item()": "keep it a tensor, or return it and call item() outside",
}


class Level:
    """One function being staged for one of `size` examples."""

    def __init__(self, size: DimLike) -> None:
        self.size = size
        self.scope = Scope(True)
        self.inputs: dict[Node, tuple[Node, int]] = {}
        self.states: dict[int, Tensor] = {}
        self.stand_ins: dict[int, Node] = {}
        self.deferred: list[tuple[Any, Any, Any]] = []

    def one_of(self, node: Node, axis: int, name: str) -> Tensor:
        """Return a tensor that stands for one example of a batch along an axis."""
        kind = node.type
        made = input_node(kind.with_shape((*kind.shape[:axis], *kind.shape[axis + 1 :])), name)
        self.scope.own.add(made)
        self.inputs[made] = (node, axis)
        return make_staged(made)

    def stand_in(self, stage: Stage, target: Tensor, node: Node) -> None:
        """Let a tensor from outside stand for one example of `node`, whose first axis is the batch,
        while this level is staged.
        """
        before = stage.node_of(target)
        key = ("tensor", id(target))
        if key not in self.scope.journal:
            self.scope.journal[key] = Effect("tensor", target, None, before)
        made = input_node(before.type, str(target.__dict__.get("name") or "parameter"))
        self.scope.own.add(made)
        self.inputs[made] = (node, 0)
        self.stand_ins[id(target)] = made
        stage.set_node(target, made)

    # Requests of the stage.

    def split(self, stage: Stage, state: Tensor) -> None:
        """Give each example a state of its own in place of the generator's state."""
        if id(state) in self.states:
            return
        outer = stage.scopes[stage.scopes.index(self.scope) - 1]
        before = stage.node_of(state)
        key = ("tensor", id(state))
        if outer.is_branch and key not in outer.journal and before not in outer.own:
            outer.journal[key] = Effect("tensor", state, None, before)
        keys = S.reshape(random_bits(before, shape=(self.size,), dtype=uint64), (self.size, 1))
        states = S.concat([keys, S.full((self.size, 1), 0, uint64)], 1)
        after = advance(before, self.size)
        inner, stage.scope = stage.scope, outer
        stage.adopt([states, after])
        stage.scope = inner
        stage.set_node(state, after)
        self.stand_in(stage, state, states)
        self.states[id(state)] = state

    def refuse(self, stage: Stage, node: Node, what: str) -> None:
        """Raise VmapError, which says that `what` needs a value, if it differs between examples."""
        known = {n for level in stage.levels for n in level.inputs}
        if any(n in known for n in toposort([node])):
            mend = _MENDS.get(what, "compute with tensors, or return the tensor and do this outside vmap")
            text = f"{what} needs the value of" if what else "what follows depends on"
            raise VmapError(
                f"{_place()}{text} a tensor ({node.type}) that differs between the examples of vmap; {mend}"
            )

    def defer(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call a function, such as print, once for each example when the values are known."""
        self.deferred.append((fn, args, kwargs))

    # The staging.

    def run(self, stage: Stage, function: Callable[[], Sequence[Tensor]]) -> tuple[list[Mapped], dict[int, Mapped]]:
        """Stage a function that returns tensors, and return the tensors for all examples.

        Returns as well the values of written tensors that had a stand-in, by their identity.
        """
        stage.levels.append(self)
        changes: dict[Any, tuple[Effect, Any]] = {}
        with stage.inside(self.scope):
            try:
                results = [stage.node_of(t) for t in function()]
                calls = [(fn, *flatten((args, kwargs))) for fn, args, kwargs in self.deferred]
                shown = [[_now(stage, v) for v in leaves] for _, leaves, _ in calls]
            finally:
                stage.levels.pop()
                changes = self.scope.take_back(stage)
        stage.scope.fresh.update(self.scope.fresh)
        written = [(e, node) for e, node in changes.values() if e.kind == "tensor" and id(e.target) not in self.states]
        others = [(e, v) for e, v in changes.values() if e.kind != "tensor" and not _is_same(e.before, v)]
        kept: dict[int, Node] = {}
        for _, value in others:
            _collect(stage, value, kept)
        nodes = [*results, *[n for _, n in written], *kept.values()]
        nodes += [v for leaves in shown for v in leaves if isinstance(v, Node)]
        found = batch(nodes, self.inputs, self.size)
        stage.adopt([v for v, _ in found])
        values = dict(zip(nodes, found))
        for effect, value in others:
            self._keep(stage, effect, value, values)
        stood: dict[int, Mapped] = {}
        for effect, node in written:
            if id(effect.target) in self.stand_ins:
                if node is not self.stand_ins[id(effect.target)]:
                    stood[id(effect.target)] = values[node]
            elif values[node][1] is None:
                stage.write(effect.target, make_staged(values[node][0]))
            else:
                raise VmapError(
                    f"{_place()}vmap: {effect} is written with a value that differs between examples; "
                    "return the value, or pass the tensor as a mapped argument"
                )
        for (fn, _, structure), leaves in zip(calls, shown):
            self._show(stage, fn, [values[v] if isinstance(v, Node) else v for v in leaves], structure)
        return [values[r] for r in results], stood

    def _keep(self, stage: Stage, effect: Effect, value: Any, values: dict[Node, Mapped]) -> None:
        """Make a change of a Python object again outside of the level.

        Raises VmapError if a value of one example would stay in it.
        """
        if value is MISSING:
            effect.write(stage, value)
            return
        found: dict[int, Any] = {}
        _collect(stage, value, found)
        for node in found.values():
            if values[node][1] is not None:
                raise VmapError(
                    f"{_place()}vmap: {effect} would keep a tensor ({node.type}) of one example, which means nothing "
                    "outside; "
                    "return it from the function instead"
                )
        apply_effect(stage, effect, value)

    def _show(self, stage: Stage, fn: Any, leaves: list[Any], structure: Any) -> None:
        tensors = [make_staged(v[0] if v[1] is None else S.move_axis(v[0], v[1], 0)) for v in leaves if _is_value(v)]
        stage.adopt([stage.node_of(t) for t in tensors])
        form = [(v[1] is not None) if _is_value(v) else _Plain(v) for v in leaves]
        stage.defer(_ForEach(fn, self.size, form, structure), tuple(tensors), {})


def _place() -> str:
    where = current_where()
    return f"{where}: " if where else ""


def _now(stage: Stage, value: Any) -> Any:
    return stage.node_of(value) if isinstance(value, Tensor) else value


def _is_value(v: Any) -> bool:
    return isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], Node)


class _Plain:
    """A part of deferred arguments that is no tensor."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _ForEach:
    """A function `fn` that is called once for each of `size` examples.

    `form` has an entry for each leaf of the arguments, whose `structure` is given: whether a tensor
    is mapped, or the value of another leaf.
    """

    __name__ = "print"

    def __init__(self, fn: Any, size: DimLike, form: list[Any], structure: Any) -> None:
        self.fn, self.size, self.form, self.structure = fn, size, form, structure

    def __call__(self, *tensors: Tensor) -> None:
        mapped = [t for t, f in zip(tensors, [f for f in self.form if isinstance(f, bool)]) if f]
        for i in range(mapped[0].shape[0] if mapped else int(self.size)):
            given = iter(tensors)
            leaves = [f.value if isinstance(f, _Plain) else next(given)[i] if f else next(given) for f in self.form]
            args, kwargs = unflatten(self.structure, leaves)
            self.fn(*args, **kwargs)


def _is_same(before: Any, after: Any) -> bool:
    """Return whether an object from outside is unchanged: the same object, or a container of the
    identical objects.
    """
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    if isinstance(before, np.ndarray):
        return bool(before.tobytes() == after.tobytes())
    if isinstance(before, dict):
        return list(before) == list(after) and all(before[k] is after[k] for k in before)
    if isinstance(before, list):
        return len(before) == len(after) and all(a is b for a, b in zip(before, after))
    return isinstance(before, (set, bytearray)) and before == after


def _collect(stage: Stage, value: Any, found: dict[int, Any]) -> None:
    """Add to `found` the nodes of the tensors in a value that have no value yet, by the identity of
    the tensors.
    """
    stack, seen = [value], set()
    while stack:
        v = stack.pop()
        if id(v) in seen:
            continue
        seen.add(id(v))
        if isinstance(v, Tensor):
            if v._buf is None and v._node is not None:
                found[id(v)] = v._node
        elif isinstance(v, (list, tuple, set, frozenset, deque)):
            stack.extend(v)
        elif isinstance(v, (dict, OrderedDict)):
            stack.extend(v.values())
        elif stage.is_fresh(v) and hasattr(v, "__dict__"):
            stack.extend(vars(v).values())
