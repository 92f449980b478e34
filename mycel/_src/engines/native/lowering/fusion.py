"""Fusion: groups of nodes that one kernel computes together, and the order of the groups.

A group is one nest over a domain of positions, some axes of which reduce. Its members are "full" (a
value for each position) or "row" (one for each position of the other axes). A node joins the group
of a producer when it can be computed at the same position as the producer's value, and when joining
makes no cycle among groups. Only values that are needed outside a group are stored. Sizes may be
symbolic: conditions for correctness use their expressions, decisions about speed their hints.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import DimLike, same
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import GET_ITEM
from mycel._src.compiler.prims.control_flow.while_gradient import while_grad
from mycel._src.compiler.prims.indexing.index import take_add
from mycel._src.compiler.prims.shape import SLICE
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.operations.convolution.channels_last_rules import is_channelled
from mycel._src.engines.native.operations.dense_rules import is_dense
from mycel._src.engines.native.operations.fusion_rules import FULL_RULES, GROUP_RULES, Domain, is_fusible
from mycel._src.engines.native.steps.view_rules import (
    NUMBERS,
    Position,
    broadcast_position,
    is_view,
    resolve,
    root_of,
    same_place,
)

__all__ = ["LARGEST", "Fusion", "Unit"]

# Longer groups gain nothing, and their code would take ever longer to write.
LARGEST = 128


@dataclass(eq=False)
class Unit:
    """A group of fused nodes, or a single node that runs alone.

    `members` have the position in `domain` at which each is computed. `before` is the set of the
    units that this one needs, one bit for each number; `is_needed` says whether another unit needs
    this one.
    """

    number: int
    domain: Domain | None = None
    members: dict[Node, Position] = field(default_factory=dict)
    node: Node | None = None
    before: int = 0
    is_needed: bool = False


class Fusion:
    """The units of a graph, the values to be stored, and those computed `again` by each reader.

    `pairs` are loops and their gradients, which record states on one tape and read them back
    (`loop_pairs`); `results` are the nodes whose values the graph gives.
    """

    def __init__(self, graph: Graph, pairs: Mapping[Node, Node], results: Set[Node]) -> None:
        self.graph, self.pairs, self.results = graph, pairs, results
        self.units: list[Unit] = []
        self.unit_of: dict[Node, Unit] = {}
        self.stored: set[Node] = set()
        self.again: set[Node] = set()
        self._siblings: dict[Hashable, Unit] = {}
        for node in graph.nodes:
            self._place(node)
        self.stored.update(self.results)

    def producer(self, node: Node) -> Unit | None:
        """Return the unit that computes a node's value; None where there is none."""
        root = root_of(node)
        return self.unit_of.get(root.inputs[0] if root.prim is GET_ITEM else root)

    # Placing.

    def _place(self, node: Node) -> None:
        """Put a node into a group or into a separate unit."""
        if is_view(node) or node.op in NUMBERS or node.prim is GET_ITEM:
            return
        if isinstance(node.type, TensorType) and node.type.size == 0 and node.prim is not take_add:
            if node.prim is None or not node.prim.effect:
                return
        empty = any(isinstance(i.type, TensorType) and i.type.size == 0 for i in node.inputs)
        if not empty and not is_dense(node) and is_fusible(node):
            self._join(node)
            return
        unit = Unit(len(self.units), node=node)
        self.units.append(unit)
        self.unit_of[node] = unit
        for i in node.inputs:
            self.stored.add(root_of(i))
            self.depend(unit, i)
        other = self.pairs.get(node)
        if other is not None and other in self.unit_of:
            # The gradient of a loop comes after the loop itself, which records for it.
            gradient, loop = (node, other) if node.prim is while_grad else (other, node)
            self.depend(self.unit_of[gradient], loop)

    def depend(self, unit: Unit, node: Node) -> None:
        """Record that a unit, and all units that need it, need a node's value."""
        other = self.producer(node)
        if other is not None and other is not unit:
            before = unit.before | other.before | 1 << other.number
            other.is_needed = True
            if before != unit.before:
                unit.before = before
                for u in self.units if unit.is_needed else ():
                    if u.before >> unit.number & 1:
                        u.before |= before

    def _join(self, node: Node) -> None:
        """Put a node that kernels can compute into a group."""
        rule = GROUP_RULES.get(node.op)
        if rule is not None:
            self._join_reducing(node, rule(node))
            return
        for unit in self._producers(node):
            for position in () if unit.domain is None else unit.domain.position_of(node.type.shape):
                if self._fits(unit, node, position):
                    self._add(unit, node, position)
                    return
        domain = Domain(tuple(node.type.shape), None, "map")
        self._add(self._new_group(domain), node, domain.full_position())

    def _join_reducing(self, node: Node, domain: Domain) -> None:
        """Put a node that reduces over `domain` into a group with the same positions."""
        if is_channelled(node):
            self._add(self._new_group(domain), node, domain.row_position())
            return
        # Slices of one value are read apart, and may be needed at different times.
        source = node.inputs[0]
        source = source if source.prim is SLICE else root_of(source)
        key = (domain.shape, domain.axes, source, domain.kind)
        candidates = [self._siblings[key]] if key in self._siblings else []
        if domain.kind == "reduce":
            candidates += self._producers(node)
        for unit in candidates:
            if self._try_reduce(unit, node, domain):
                self._siblings[key] = unit
                return
        unit = self._siblings[key] = self._new_group(domain)
        self._add(unit, node, domain.row_position())

    def _producers(self, node: Node) -> list[Unit]:
        """Return the groups of the node's inputs, latest first."""
        found = {
            u.number: u for i in node.inputs if (u := self.unit_of.get(root_of(i))) is not None and u.domain is not None
        }
        return [found[k] for k in sorted(found, reverse=True)]

    def _new_group(self, domain: Domain) -> Unit:
        unit = Unit(len(self.units), domain=domain)
        self.units.append(unit)
        return unit

    def _try_reduce(self, unit: Unit, node: Node, domain: Domain) -> bool:
        """Put a reducing node into a group if it fits; return whether it does."""
        mine = unit.domain
        if len(unit.members) >= LARGEST:
            return False
        if mine is None or not same(mine.shape, domain.shape) or mine.axes not in (None, domain.axes):
            return False
        if mine.kind != domain.kind and (mine.kind, domain.kind) != ("map", "reduce"):
            return False
        if any(not self._is_acyclic(unit, i) for i in node.inputs):
            return False
        if domain.kind == "reduce":
            if not self.inputs_meet(unit, node, [domain.full_position()] * len(node.inputs)):
                return False
        elif any(self.unit_of.get(root_of(i)) is unit for i in node.inputs):
            return False
        mine.axes, mine.kind = domain.axes, domain.kind
        self._add(unit, node, domain.row_position())
        return True

    def _fits(self, unit: Unit, node: Node, position: Position) -> bool:
        """Return whether a node can be computed in a group at this position."""
        if len(unit.members) >= LARGEST or any(not self._is_acyclic(unit, i) for i in node.inputs):
            return False
        return self.reads_in_place(unit, node, position)

    def reads_in_place(self, unit: Unit, node: Node, position: Position) -> bool:
        """Return whether a node at `position` needs a group's values only at that position."""
        if node.op in FULL_RULES:
            return all(self.unit_of.get(root_of(i)) is not unit for i in node.inputs)
        return self.inputs_meet(unit, node, [broadcast_position(i, position) for i in node.inputs])

    def inputs_meet(self, unit: Unit, node: Node, positions: Sequence[Position]) -> bool:
        """Return whether every input that a group computes is needed at its position only."""
        for i, p in zip(node.inputs, positions):
            root = root_of(i)
            if self.unit_of.get(root) is unit:
                at = resolve(i, p)
                if at is None or not same_place(root, at, unit.members[root]):
                    return False
        return True

    def _is_acyclic(self, unit: Unit, node: Node) -> bool:
        """Return whether the units that compute a node's inputs do not need the unit."""
        other = self.producer(node)
        return other is None or other is unit or not other.before >> unit.number & 1

    def _add(self, unit: Unit, node: Node, position: Position) -> None:
        unit.members[node] = position
        self.unit_of[node] = unit
        for i in node.inputs:
            root = root_of(i)
            if self.unit_of.get(root) is not unit:
                self.stored.add(root)
                self.depend(unit, root)

    # Merging.

    def merge_siblings(self) -> None:
        """Merge reductions of one domain that read the same memory, to share one pass over it."""
        known: dict[tuple[tuple[DimLike, ...], tuple[int, ...]], list[Unit]] = {}
        for unit in list(self.units):
            domain = unit.domain
            if domain is None or domain.kind != "reduce" or not domain.axes:
                continue
            others = known.setdefault((domain.shape, domain.axes), [])
            reads = self._large_reads(unit)
            for other in others:
                apart = not (other.before >> unit.number | unit.before >> other.number) & 1
                small = len(unit.members) + len(other.members) <= LARGEST
                if apart and small and not reads.isdisjoint(self._large_reads(other)):
                    self.merge(other, unit)
                    break
            else:
                others.append(unit)

    def _large_reads(self, unit: Unit) -> set[Node]:
        """Return the values that a group reads and that are as large as its domain."""
        assert unit.domain is not None
        size = hint(math.prod(unit.domain.shape))
        found: set[Node] = set()

        def visit(node: Node) -> None:
            for i in node.inputs:
                root = root_of(i)
                if root in unit.members:
                    continue
                if root in self.again:
                    visit(root)
                elif isinstance(root.type, TensorType) and hint(root.type.size) == size:
                    found.add(root)

        for node in unit.members:
            visit(node)
        return found

    def merge(self, unit: Unit, other: Unit) -> None:
        """Merge another group into a group; neither may need the other."""
        unit.members.update(other.members)
        self.unit_of.update(dict.fromkeys(other.members, unit))
        self.units.remove(other)
        unit.before |= other.before
        unit.is_needed |= other.is_needed
        here, gone = 1 << unit.number, 1 << other.number
        for u in self.units:
            if u.before & gone:
                u.before = u.before & ~gone | here
            if u.before & here:
                u.before |= unit.before

    def ordered(self) -> list[Unit]:
        """Return the units in an order in which each comes after those that it needs.

        A group that took in a later one may have to wait. For other processors, where values should
        not wait with it, it comes as soon as it can.
        """
        order: list[Unit] = []
        done = 0
        pending = list(self.units)
        while pending and not target().threads:
            unit = next((u for u in pending if u.before & ~done == 0), None)
            if unit is None:
                break
            pending.remove(unit)
            order.append(unit)
            done |= 1 << unit.number
        while pending:
            rest = []
            for unit in pending:
                if unit.before & ~done == 0:
                    order.append(unit)
                    done |= 1 << unit.number
                else:
                    rest.append(unit)
            if len(rest) == len(pending):
                raise AssertionError("groups depend on each other in a cycle")
            pending = rest
        return order

    def reads(self, order: Sequence[Unit]) -> Iterator[tuple[Node, int]]:
        """Yield each value that a unit reads in memory, also to compute something again, with the
        number of the unit in `order`.
        """
        for number, unit in enumerate(order):
            pending = list(unit.members) or ([] if unit.node is None else [unit.node])
            while pending:
                for i in pending.pop().inputs:
                    root = root_of(i)
                    yield root, number
                    if root in self.again:
                        pending.append(root)
