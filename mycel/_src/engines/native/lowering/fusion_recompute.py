"""Recomputation in fusion: values that each user computes again, where cheaper than storing them.

After fusion a value that another group uses has to be stored. Element-wise values can instead be
computed by each group that uses them, from their own operands in memory (the *leaves*), if that
moves fewer bytes:

    storing:             bytes(value) * (1 + uses)   [+ what the value's own group reads, where it
                         has nothing else to store]
    computing again:     for each use, the bytes of the leaves that the using group does not read
                         anyway

So the deviations and the normalised values of a batch normalisation, which its backward pass uses,
are computed from the input, which is in memory anyway. Leaves are values in memory, or small ones
(a row's statistics), or ones of at most half the bytes (the 8 bits of what is widened for a sum),
which are then stored. Only cheap arithmetic is done twice, at most `MOST` operations for a value.
Windows that do not overlap read each value once, so they may compute it as well. Where memory is
scarce (not `Target.copies`) products and convolutions widen the integers of their second operand as
they read them. Values are
considered in order, so that later values know which earlier ones are recomputed, and a second time
where that changed their readers.
"""

from __future__ import annotations

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.base import Cost
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.lowering.fusion import Fusion, Unit
from mycel._src.engines.native.operations.convolution.channels_last_rules import is_channelled
from mycel._src.engines.native.operations.fusion_rules import SUMS_OF_PRODUCTS, is_reduction, reads_apart
from mycel._src.engines.native.steps.view_rules import NUMBERS, resolves, root_of

__all__ = ["choose"]

MOST = 12
# Operations from an integer to the float that it stands for.
WIDENING = 3
ROUNDS = 3
_SMALL = 16


def choose(fusion: Fusion) -> None:
    """Decide which values are recomputed.

    They are added to `again` of the fusion and removed from `stored`.
    """
    plan = _Plan(fusion)
    for _ in range(ROUNDS):
        before = len(fusion.again)
        for node in fusion.graph.nodes:
            if node in fusion.stored and node in plan.uses:
                plan.consider(node)
        if len(fusion.again) == before:
            break


def _is_cheap(node: Node) -> bool:
    """Return whether a value is arithmetic that takes no longer than reading its operands."""
    return node.prim is not None and node.prim.elementwise and node.prim.cost is Cost.LIGHT


def _reads_in_place(node: Node) -> bool:
    """Return whether a member of a group reads its operands at the group's positions."""
    return (node.prim is not None and node.prim.elementwise) or is_reduction(node) or reads_apart(node)


def _is_widened_by(node: Node, operand: Node) -> bool:
    """Return whether a product or convolution may widen the integers behind its operand."""
    if target().copies or node.op not in SUMS_OF_PRODUCTS or is_channelled(node):
        return False
    for _ in range(WIDENING):
        if not _is_cheap(operand):
            return False
        same_size = [root_of(i) for i in operand.inputs if hint(i.type.size) == hint(operand.type.size)]
        if len(same_size) != 1:
            return False
        operand = same_size[0]
        if operand.dtype.kind in "iu" and operand.dtype.itemsize <= 2:
            return True
    return False


def _bytes(node: Node) -> int:
    return int(hint(node.type.size)) * int(node.dtype.itemsize)


class _Plan:
    """The readers of each stored value, and the leaves that they need."""

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self.reads: dict[int, set[Node]] = {}
        self.uses: dict[Node, list[Unit]] = {}
        pinned: set[Node] = set(fusion.results)
        for unit in fusion.units:
            if unit.domain is None:
                assert unit.node is not None
                pinned.update(root_of(i) for i in unit.node.inputs)
                continue
            if fusion.stored.isdisjoint(unit.members):
                continue
            found = self.reads[unit.number] = set()
            pending = list(unit.members)
            while pending:
                node = pending.pop()
                direct = _reads_in_place(node)
                for k, i in enumerate(node.inputs):
                    root = root_of(i)
                    if root in unit.members:
                        continue
                    if root in fusion.again:
                        pending.append(root)
                        continue
                    found.add(root)
                    if not (direct or (k == 1 and _is_widened_by(node, root))) or not resolves(i):
                        pinned.add(root)
        for unit in fusion.units:
            for root in self.reads.get(unit.number, ()):
                if root not in pinned:
                    self.uses.setdefault(root, []).append(unit)

    def consider(self, node: Node) -> None:
        """Let all groups that use a stored value recompute it, if that moves fewer bytes."""
        fusion = self.fusion
        own = fusion.unit_of.get(node)
        if own is None or own.domain is None or node not in own.members or not _is_cheap(node):
            return
        steps: dict[Node, None] = {}
        leaves = self.leaves(node, steps, node)
        if leaves is None:
            return
        large = [leaf for leaf in leaves if _bytes(leaf) * _SMALL > _bytes(node)]
        units = self.uses[node]
        storing = _bytes(node) * (1 + len(units))
        if not any(m in fusion.stored for m in own.members if m is not node):
            storing += sum(_bytes(r) for r in self.reads[own.number])
        again = sum(_bytes(leaf) for u in units for leaf in large if leaf not in self.reads[u.number])
        again += sum(_bytes(leaf) for leaf in large if leaf in own.members and leaf not in fusion.stored)
        if again >= storing:
            return
        fusion.stored.discard(node)
        fusion.again.update(steps)
        fusion.stored.update(leaf for leaf in leaves if leaf in fusion.unit_of)
        for unit in units:
            reads = self.reads[unit.number]
            reads.discard(node)
            for leaf in leaves:
                if leaf not in unit.members and leaf not in reads:
                    reads.add(leaf)
                    if leaf in self.uses or leaf not in fusion.stored:
                        self.uses.setdefault(leaf, []).append(unit)
                    fusion.depend(unit, leaf)
        del self.uses[node]
        if not any(m in fusion.stored for m in own.members):
            # Nothing is left that this group computes for memory.
            for root in self.reads.pop(own.number):
                if own in self.uses.get(root, ()):
                    self.uses[root].remove(own)

    def leaves(self, node: Node, steps: dict[Node, None], top: Node) -> list[Node] | None:
        """Return the values in memory from which a value can be computed.

        Returns None where that is not cheap.
        """
        steps[node] = None
        if len(steps) > MOST:
            return None
        found: dict[Node, None] = {}
        for i in node.inputs:
            if not resolves(i):
                return None
            root = root_of(i)
            if root.op in NUMBERS:
                if root.is_constant and root.value.size > 1:
                    found[root] = None
                continue
            in_memory = root in self.fusion.stored or root.prim is None or root not in self.fusion.unit_of
            behind: list[Node] | None = None
            if in_memory or (_bytes(root) * _SMALL <= _bytes(top) and self._is_member(root)):
                behind = [root]
            elif _is_cheap(root):
                tried = dict(steps)
                behind = self.leaves(root, tried, top)
                if behind is not None:
                    steps.update(tried)
            if behind is None and _bytes(root) * 2 <= _bytes(top) and self._is_member(root):
                behind = [root]
            if behind is None:
                return None
            found.update(dict.fromkeys(behind))
        return list(found)

    def _is_member(self, node: Node) -> bool:
        """Return whether a group computes a value, and could store it."""
        return node in self.fusion.unit_of[node].members
