"""What a rewrite rule is, the table of them, and how they are applied to one node.

A rule takes a node whose inputs are simplified and gives a node of exactly the same type that
computes the same, or None. Rules of a primitive are tried in the order of their definition until
none applies; nodes that a rule makes on its way go through the table too. Every rule makes its
expression smaller or moves it towards a normal form (constants to the right and outwards,
broadcasts late, reductions without `keepdims`), so the number of applications is proportional to
the number of nodes.

What a rule may change of a floating-point result: the sign of a zero; the rounding, and overflow on
the way, where it joins constant factors or moves one across a sum (where an infinite one may give
an infinity instead of a NaN). NaN and infinities stay: ``x * 0``, ``x - x`` and ``x / x`` are not
rewritten. Rules that round differently leave 16-bit floats alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Optional

from mycel.ir.dims import Dim, DimLike
from mycel.ir.graph import Node
from mycel.prims import shape as S
from mycel.prims.base import CONSTANT, Primitive, broadcast_shapes, constant

__all__ = ["RULES", "Context", "Rule", "is_close_under_rounding", "rule", "runs_of", "uniform"]

Rule = Callable[[Node, "Context"], Optional[Node]]

RULES: dict[Primitive, list[Rule]] = {}
STEPS = 32


def rule(*primitives: Primitive) -> Callable[[Rule], Rule]:
    """Enter a function into the table as a rule of `primitives`."""

    def enter(function: Rule) -> Rule:
        for primitive in primitives:
            RULES.setdefault(primitive, []).append(function)
        return function

    return enter


class Context:
    """What rules know of the graph around a node, and how they make nodes.

    `applications` counts the rules applied.
    """

    def __init__(self, uses: Mapping[Node, int]) -> None:
        self.uses = dict(uses)
        self.applications = 0

    def is_single(self, node: Node) -> bool:
        """Return whether a node has no other user, so that rewriting it into its user computes
        nothing twice.
        """
        return self.uses.get(node, 1) <= 1

    def make(self, primitive: Primitive, *inputs: Node, **params: Any) -> Node:
        """Return the simplified application of a primitive."""
        return self.simplify(primitive.node(*inputs, **params))

    def broadcast(self, x: Node, shape: tuple[DimLike, ...]) -> Node:
        return x if x.shape == shape else self.make(S.BROADCAST_TO, x, shape=shape)

    def reshape(self, x: Node, shape: tuple[DimLike, ...]) -> Node:
        return x if x.shape == shape else self.make(S.RESHAPE, x, shape=shape)

    def simplify(self, node: Node) -> Node:
        """Return `node` after the rules of its primitive, of what they make of it, and so on."""
        for _ in range(STEPS):
            result = self.step(node)
            if result is None:
                return node
            if result.type is not node.type:
                raise AssertionError(f"a rule of {node.prim} turned {node.type} into {result.type}")
            self.applications += 1
            node = result
        return node

    def step(self, node: Node) -> Optional[Node]:
        prim = node.prim
        if prim is None:
            return None
        for apply in RULES.get(prim, ()):
            result = apply(node, self)
            if result is not None:
                return result
        return broadcast_late(node, self) if prim.elementwise else None


def broadcast_late(node: Node, context: Context) -> Optional[Node]:
    """Return element-wise work before the broadcast rather than after it; where an operand
    broadcasts it anyway, no broadcast at all.
    """
    for i in node.inputs:
        if i.prim is S.BROADCAST_TO:
            break
    else:
        return None
    assert node.prim is not None
    operands = [i.inputs[0] if i.prim is S.BROADCAST_TO else i for i in node.inputs]
    small = node.prim.node(*operands, **node.params)
    assert small.shape == broadcast_shapes(*[o.shape for o in operands])
    return small if small.type is node.type else context.broadcast(context.simplify(small), node.shape)


def uniform(node: Node) -> Any:
    """Return the value of a constant that is the same everywhere; None for anything else."""
    if node.prim is S.BROADCAST_TO:
        node = node.inputs[0]
    if node.prim is not CONSTANT:
        return None
    array = node.value
    if array.ndim == 0 or array.size == 1:
        return array.reshape(())[()]
    return None


def full(node: Node, value: Any, context: Context) -> Node:
    """Return a tensor of one value, of the type of `node`."""
    return context.broadcast(constant(value, node.dtype), node.shape)


def is_close_under_rounding(node: Node) -> bool:
    """Return whether another order of rounding is acceptable for a node's type: integers, which are
    exact, and wide floats.
    """
    return node.dtype.is_integer or node.dtype.name in ("float32", "float64")


def runs_of(old: tuple[DimLike, ...], new: tuple[DimLike, ...]) -> Optional[list[tuple[list[int], list[int]]]]:
    """Return axes other than those of size 1, as the shortest runs that have equal sizes in both
    shapes; None where that stays open.
    """
    left = [a for a, d in enumerate(old) if d != 1]
    right = [a for a, d in enumerate(new) if d != 1]
    if any(d == 0 for d in (*old, *new)):
        return None
    runs: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        a, b = [left[i]], [right[j]]
        p, q = old[left[i]], new[right[j]]
        i, j = i + 1, j + 1
        while p != q:
            if isinstance(p, Dim) or isinstance(q, Dim):
                return None
            if p < q:
                if i == len(left):
                    return None
                a.append(left[i])
                p, i = p * old[left[i]], i + 1
            else:
                if j == len(right):
                    return None
                b.append(right[j])
                q, j = q * new[right[j]], j + 1
        runs.append((a, b))
    return runs if i == len(left) and j == len(right) else None
