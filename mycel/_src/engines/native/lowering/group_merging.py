"""Merges fused groups over the same positions that the graph's order kept apart.

A node joins the group of one of its operands (`fusion`). Where two operands are in different groups
over the same positions, the values of the other group would be written and read back. Here such a
group takes in a group that reads it, if that reads each value at the position where it is computed,
and if no third group has to run between them. So an optimizer's step, whose averages do not depend
on each other, becomes one pass over each parameter. A group that computes results of the graph does
not take in one that computes none, since results decide the order of axes in memory, which may be
wrong for later steps.
"""

from __future__ import annotations

from mycel._src.compiler.ir.dims import same
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.lowering.fusion import LARGEST, Fusion, Unit
from mycel._src.engines.native.steps.view_rules import root_of

__all__ = ["join_maps"]


def join_maps(fusion: Fusion) -> None:
    """Join groups without reductions that read each other's values in place."""
    users: dict[Node, list[Node]] = {}
    for node in fusion.graph.nodes:
        if node in fusion.unit_of:
            for i in node.inputs:
                users.setdefault(root_of(i), []).append(node)
    pending = list(fusion.units)
    gone: set[int] = set()
    for unit in pending:
        if unit.number in gone or not _is_map(unit):
            continue
        for other in _read_by(fusion, unit):
            if len(unit.members) + len(other.members) <= LARGEST and _fits(fusion, other, unit):
                fusion.merge(other, unit)
                gone.add(unit.number)
                # What it reads now may be in place as well.
                pending.append(other)
                other.before &= ~(1 << other.number)
                for m in other.members:
                    if m in fusion.stored and m not in fusion.results:
                        if all(fusion.unit_of[u] is other for u in users.get(m, ())):
                            fusion.stored.discard(m)
                break


def _is_map(unit: Unit) -> bool:
    return unit.domain is not None and unit.domain.kind == "map" and unit.domain.axes is None


def _are_alike(unit: Unit, other: Unit) -> bool:
    """Return whether two groups without reductions have the same positions."""
    if unit.domain is None or other.domain is None:
        return False
    return _is_map(unit) and _is_map(other) and same(other.domain.shape, unit.domain.shape)


def _read_by(fusion: Fusion, unit: Unit) -> list[Unit]:
    """Return the groups over the same positions whose values a group reads, latest first."""
    found: dict[int, Unit] = {}
    for node in unit.members:
        for i in node.inputs:
            other = fusion.unit_of.get(root_of(i))
            if other is not None and other is not unit and _are_alike(unit, other):
                found[other.number] = other
    return [found[k] for k in sorted(found, reverse=True)]


def _needed(fusion: Fusion, unit: Unit) -> list[Unit]:
    """Return the other units whose values a group reads."""
    found: dict[int, Unit] = {}
    for node in unit.members:
        for i in node.inputs:
            other = fusion.producer(i)
            if other is not None and other is not unit:
                found[other.number] = other
    return list(found.values())


def _fits(fusion: Fusion, first: Unit, second: Unit) -> bool:
    """Return whether a group may be computed together with a later one."""
    if fusion.results.isdisjoint(second.members) and not fusion.results.isdisjoint(first.members):
        return False
    if any(u is not first and u.before >> first.number & 1 for u in _needed(fusion, second)):
        return False
    if first.before >> second.number & 1:
        return False
    return all(fusion.reads_in_place(first, node, position) for node, position in second.members.items())
