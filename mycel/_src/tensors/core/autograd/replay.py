"""Derivatives of a tape applied eagerly, one operation at a time, so that they can nest.

They are taken this way inside another context, inside the recording itself (so that the derivative
can be differentiated again), and where the program defines derivatives of its own
(`Differentiating.attach`), which are called with values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node, at, input_node, toposort
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import GET_ITEM, constant
from mycel._src.compiler.prims.custom_derivatives import custom
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.compiler.transforms.jacobian import columns, rows
from mycel._src.compiler.transforms.jvp import jvp
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.recorded_node import Recorded, Tape
from mycel._src.tensors.core.execution_context import Optionals
from mycel._src.tensors.core.tensor import Tensor, make

__all__ = ["Replay", "along_units", "is_whole", "nodes_of"]


def nodes_of(
    kind: str, roots: Sequence[Node], seeds: Sequence[Node], wrt: Sequence[Node], pull: Any = None, push: Any = None
) -> list[Node | None]:
    """Return the nodes of a derivative of the nodes `roots` by the nodes `wrt`.

    `kind` is "pull" (gradients for the cotangents `seeds`), "push" (tangents for the tangents
    `seeds`), "rows" or "columns" (Jacobians). `pull` and `push` are rules that come before those of
    the primitives, for derivatives that the program defines.
    """
    if kind == "pull":
        return vjp(roots, seeds, wrt, pull, promoted=True)
    if kind == "push":
        return jvp(roots, wrt, seeds, push)[1]
    return rows(roots[0], wrt) if kind == "rows" else columns(roots, wrt[0])


class Replay:
    """A derivative whose operations are applied one by one by `emit`.

    With `linked` it is taken inside its own recording: recorded values keep their nodes, so that
    the derivative is recorded too.
    """

    def __init__(self, recorder: Tape, emit: Callable[..., Any], linked: bool) -> None:
        self.recorder, self.emit, self.linked = recorder, emit, linked
        self.known: dict[Node, Any] = {}

    def __contains__(self, node: object) -> bool:
        """Return whether a node has a value, so that its inputs are not needed."""
        return node in self.known or (self.recorder.holds(node) and is_whole(node))

    def run(self, kind: str, roots: Sequence[Node], given: Sequence[Tensor], wrt: Sequence[Node]) -> Optionals:
        """Return the values of `nodes_of` for this `kind`, `roots` and `wrt`; `given` are the
        seeds.
        """
        seeds = [self.node(g) for g in given]
        derived = nodes_of(kind, roots, seeds, wrt, self._pull, self._push)
        return [None if n is None else self.value(n) for n in derived]

    def node(self, t: Tensor) -> Node:
        """Return a node that has the value of a tensor."""
        node = self.recorder.node_of(t) if self.linked else None
        node = input_node(t._type) if node is None else node
        self.known[node] = t
        return node

    def value(self, root: Node) -> Tensor:
        """Return the value of a node, after applying the operations that it depends on."""
        known = self.known
        for node in toposort([root], stop=self):
            if node in known:
                continue
            if self.recorder.holds(node) and is_whole(node):
                known[node] = self._recorded(node)
            elif node.prim is GET_ITEM:
                known[node] = known[node.inputs[0]][node.params["index"]]
            else:
                with nullcontext() if node.where is None else at(node.where):
                    known[node] = self.emit(node.prim, [known[i] for i in node.inputs], dict(node.params))
        result: Tensor = known[root]
        return result

    def _recorded(self, node: Any) -> Any:
        if type(node.type) is tuple:
            return tuple([self._recorded(i) for i in node.items()])
        value = make(node.type, node.buffer)
        if self.linked:
            value._node = node
        return value

    def _pull(self, node: Node, ct: Any) -> Sequence[Node | None] | None:
        """Return the cotangents that the program's own derivative gives; None for other nodes."""
        if node.prim is not custom or node.params["backward"] is not None:
            return None
        count, rule = node.params["count"], node.params["rule"]
        if rule.removed:
            return [None] * count + list(ct)
        values = self._recorded(node)
        given = [
            None if c is None and not rule.fills else self._or_zeros(c, v)
            for c, v in zip(ct, values)
            if v.dtype.is_differentiable
        ]
        with at(None):
            cotangents = rule.function(values, given)
        found = [None if t is None else self.node(t) for t in cotangents]
        return [None] * count + found + [None] * (len(node.inputs) - count - len(found))

    def _or_zeros(self, ct: Node | None, like: Tensor) -> Tensor:
        if ct is None:
            ct = S.broadcast_to(constant(0, like.dtype), like.shape)
        return self.value(ct)

    def _push(self, node: Node, tangents: Sequence[Node | None]) -> Any:
        if node.prim is not custom or node.params["backward"] is not None or node.params["rule"].is_hook:
            return None
        count, rule = node.params["count"], node.params["rule"]
        recorder = self.recorder
        assert recorder.holds(node)
        values = tuple([self._linked(item) for item in node.items()])
        dummies = [recorder.mark(self._zeros(v)) if v.dtype.is_differentiable else None for v in values]
        with eager.use_context(recorder.context), at(None):
            found = rule.function(values, [d for d in dummies if d is not None])
        pairs = []
        for gradient, tangent in zip(found, tangents[count:]):
            root = None if gradient is None else recorder.node_of(gradient)
            if root is not None and tangent is not None:
                pairs.append((root, tangent))
        by: Any = [recorder.node_of(d) for d in dummies if d is not None]
        moved = iter(vjp([g for g, _ in pairs], [t for _, t in pairs], by, self._pull))
        return [None if d is None else next(moved) for d in dummies]

    def _linked(self, node: Recorded) -> Tensor:
        """Return a tensor with the value of a recorded node, and with that node."""
        value = make(node.type, node.buffer)
        value._node = node
        return value

    def _zeros(self, like: Tensor) -> Tensor:
        with eager.use_context(None):
            return Replay(self.recorder, eager.execute, False)._or_zeros(None, like)


def is_whole(node: Recorded) -> bool:
    """Return whether all values of a recorded node were kept."""
    return node.buffer is not None and (type(node.buffer) is not tuple or None not in node.buffer)


def along_units(along: Callable[..., Optionals], direction: Any, columns: bool, count: int) -> Optionals:
    """Return Jacobians that are computed one unit vector after another.

    `along` maps a unit vector of the type `direction` to `count` derivatives, each of which is one
    row of a Jacobian, or with `columns` one column.
    """
    size = math.prod(direction.shape)
    parts = [along(unit.reshape(direction.shape)) for unit in np.eye(size, dtype=direction.dtype.numpy)]
    result: Optionals = []
    for found in zip(*parts) if parts else [(None,)] * count:
        if any(t is None for t in found):
            result.append(None)
            continue
        inner = found[0].shape
        whole = eager.apply(S.CONCAT, *[eager.apply(S.RESHAPE, t, shape=(1, *inner)) for t in found], axis=0)
        shape = (*direction.shape, *inner)
        if columns:
            whole = eager.apply(S.TRANSPOSE, whole, permutation=(*range(1, len(inner) + 1), 0))
            shape = (*inner, *direction.shape)
        result.append(eager.apply(S.RESHAPE, whole, shape=shape))
    return result
