"""Joining groups that the order of the graph kept apart.

A node joins the group of one of its operands (`lower`). Where two operands are in groups of their own, over the same
positions, the other group's values are written and read back. Here such a group takes in the one that reads it, if
that reads just where the values are computed, and if no third group stands between them. So an optimizer's step,
whose averages do not depend on each other, becomes one pass over each parameter. A group that makes results of the
graph does not take in one that makes none, since results decide the order of axes in memory, which what follows may
not want.
"""

from __future__ import annotations

from typing import Any

from mycel.engines.native.lowering.rules import FULL_RULES
from mycel.ir.dims import same
from mycel.ir.graph import Node
from mycel.prims.base import GET_ITEM

__all__ = ["join_maps"]


def join_maps(lowering: Any, largest: int) -> None:
    """Join groups without reductions that read each other's values in place; groups have at most `largest` members."""
    users: dict[Node, list[Node]] = {}
    for node in lowering.graph.nodes:
        if node in lowering.unit_of:
            for i in node.inputs:
                users.setdefault(lowering.root(i), []).append(node)
    pending = list(lowering.units)
    gone: set[int] = set()
    for unit in pending:
        if unit.number in gone or not _is_map(unit):
            continue
        for other in _read_by(lowering, unit):
            if len(unit.members) + len(other.members) <= largest and _fits(lowering, other, unit):
                lowering.merge(other, unit)
                gone.add(unit.number)
                # What it reads now may be in place as well.
                pending.append(other)
                other.before &= ~(1 << other.number)
                for m in other.members:
                    if m in lowering.stored and m not in lowering.results:
                        if all(lowering.unit_of[u] is other for u in users.get(m, ())):
                            lowering.stored.discard(m)
                break


def _is_map(unit: Any) -> bool:
    return unit.domain is not None and unit.domain.kind == "map" and unit.domain.axes is None


def _read_by(lowering: Any, unit: Any) -> list[Any]:
    """The groups over the same positions whose values a group reads, latest first."""
    found: dict[int, Any] = {}
    for node in unit.members:
        for i in node.inputs:
            other = lowering.unit_of.get(lowering.root(i))
            if (
                other is not None
                and other is not unit
                and _is_map(other)
                and same(other.domain.shape, unit.domain.shape)
            ):
                found[other.number] = other
    return [found[k] for k in sorted(found, reverse=True)]


def _needed(lowering: Any, unit: Any) -> list[Any]:
    """The other groups and steps whose values a group reads."""
    found: dict[int, Any] = {}
    for node in unit.members:
        for i in node.inputs:
            root = lowering.root(i)
            other = lowering.unit_of.get(root.inputs[0] if root.prim is GET_ITEM else root)
            if other is not None and other is not unit:
                found[other.number] = other
    return list(found.values())


def _fits(lowering: Any, first: Any, second: Any) -> bool:
    """Whether one group may be computed together with a group that it comes before."""
    from mycel.engines.native.lowering.lower import broadcast_position

    if lowering.results.isdisjoint(second.members) and not lowering.results.isdisjoint(first.members):
        return False
    for u in _needed(lowering, second):
        if u is not first and u.before >> first.number & 1:
            return False
    if first.before >> second.number & 1:
        return False
    for node, position in second.members.items():
        if node.op in FULL_RULES:
            if any(lowering.unit_of.get(lowering.root(i)) is first for i in node.inputs):
                return False
        elif not lowering.inputs_meet(first, node, [broadcast_position(i, position) for i in node.inputs]):
            return False
    return True
