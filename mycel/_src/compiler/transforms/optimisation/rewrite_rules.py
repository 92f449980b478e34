"""Rewrite rules: their form, the table of them, and their application to one node.

A rule takes a node whose inputs are simplified and returns a node of exactly the same type that
computes the same, or None. Rules of a primitive are tried in the order of their definition until
none applies; nodes that a rule makes go through the table too. Every rule makes its
expression smaller or moves it towards a normal form (constants to the right and outwards,
broadcasts late, reductions without `keepdims`), so the number of applications is proportional to
the number of nodes.

A rule may change a floating-point result in these ways only: the sign of a zero; and, where it
joins constant factors or moves one across a sum, the rounding and intermediate overflow (an
infinite factor may then give an infinity instead of a NaN, and leaves alone where no row is added).
Otherwise NaN and infinities are kept: ``x * 0``, ``x - x`` and ``x / x`` are not rewritten. Rules
that change the rounding do not apply to 16-bit floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import CONSTANT, Primitive, broadcast_shapes, constant

__all__ = ["RULES", "Context", "Rule", "is_close_under_rounding", "rule", "runs_of", "uniform"]

Rule = Callable[[Node, "Context"], Node | None]

RULES: dict[Primitive, list[Rule]] = {}
STEPS = 32


def rule(*primitives: Primitive) -> Callable[[Rule], Rule]:
    """Register the decorated function as a rule of `primitives`."""

    def enter(function: Rule) -> Rule:
        for primitive in primitives:
            RULES.setdefault(primitive, []).append(function)
        return function

    return enter


class Context:
    """The facts about a graph that rules use, and the way in which they make nodes.

    `applications` counts the rules applied.
    """

    def __init__(self, uses: Mapping[Node, int]) -> None:
        self.uses = dict(uses)
        self.applications = 0

    def is_single(self, node: Node) -> bool:
        """Return whether a node has only one user.

        Rewriting it into that user then computes nothing twice.
        """
        return self.uses.get(node, 1) <= 1

    def make(self, primitive: Primitive, *inputs: Node, **params: Any) -> Node:
        """Apply a primitive and simplify the result."""
        return self.simplify(primitive.node(*inputs, **params))

    def broadcast(self, x: Node, shape: tuple[DimLike, ...]) -> Node:
        return x if x.shape == shape else self.make(S.BROADCAST_TO, x, shape=shape)

    def reshape(self, x: Node, shape: tuple[DimLike, ...]) -> Node:
        return x if x.shape == shape else self.make(S.RESHAPE, x, shape=shape)

    def simplify(self, node: Node) -> Node:
        """Apply the rules to `node`, and to the results, until none applies."""
        for _ in range(STEPS):
            result = self.step(node)
            if result is None:
                return node
            if result.type is not node.type:
                raise AssertionError(f"a rule of {node.prim} turned {node.type} into {result.type}")
            self.applications += 1
            node = result
        return node

    def step(self, node: Node) -> Node | None:
        prim = node.prim
        if prim is None:
            return None
        for apply in RULES.get(prim, ()):
            result = apply(node, self)
            if result is not None:
                return result
        return broadcast_late(node, self) if prim.elementwise else None


def broadcast_late(node: Node, context: Context) -> Node | None:
    """Return element-wise work moved before the broadcast of its operands.

    Where another operand broadcasts the result anyway, the broadcast is dropped.
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
    """Return the value of a constant whose elements are all equal; None for any other node."""
    if node.prim is S.BROADCAST_TO:
        node = node.inputs[0]
    if node.prim is not CONSTANT:
        return None
    array = node.value
    if array.ndim == 0 or array.size == 1:
        return array.reshape(())[()]
    return None


def full(node: Node, value: Any, context: Context) -> Node:
    """Return a tensor of the type of `node`, filled with one value."""
    return context.broadcast(constant(value, node.dtype), node.shape)


def is_close_under_rounding(node: Node) -> bool:
    """Return whether a rule may change the rounding of a node.

    It may for integers, which are exact, and for floats wider than 16 bits.
    """
    return node.dtype.is_integer or node.dtype.name in ("float32", "float64")


def runs_of(old: tuple[DimLike, ...], new: tuple[DimLike, ...]) -> list[tuple[list[int], list[int]]] | None:
    """Return the axes of two shapes in the shortest runs that have the same number of elements.

    Axes of size 1 are left out; None where sizes cannot be compared.
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
