"""Evaluates symbolic dimensions, or substitutes in them, when sizes are given for their symbols."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mycel._src.compiler.ir.dims import Atom, Dim, DimLike, InconclusiveDimension, in_force, maximum, product

__all__ = ["evaluate", "hint", "settled_below", "substitute", "symbols_in"]


def substitute(value: DimLike, sizes: Mapping[str, DimLike]) -> DimLike:
    """Return a dimension with sizes, or other dimensions, in place of some of its symbols."""
    if not isinstance(value, Dim):
        return value
    total: DimLike = 0
    for mono, c in value.terms.items():
        part: DimLike = c
        for atom, power in mono:
            part = part * product([_substitute_atom(atom, sizes)] * power)
        total = total + part
    return total


def _substitute_atom(atom: Atom, sizes: Mapping[str, DimLike]) -> DimLike:
    if atom.operator == "symbol":
        size = sizes.get(atom.name)
        return Dim({((atom, 1),): 1}) if size is None else size
    left, right = (substitute(v, sizes) for v in atom.operands)
    if atom.operator == "max":
        return maximum(left, right)
    return left // right if atom.operator == "//" else left % right


def evaluate(value: DimLike, sizes: Mapping[str, int]) -> int:
    """Return the value of a dimension where each symbol's size is given.

    Raises KeyError with the name of a symbol whose size is missing.
    """
    if not isinstance(value, Dim):
        return int(value)
    total = 0
    for mono, c in value.terms.items():
        for atom, power in mono:
            c *= _evaluate_atom(atom, sizes) ** power
        total += c
    return total


def _evaluate_atom(atom: Atom, sizes: Mapping[str, int]) -> int:
    if atom.operator == "symbol":
        return sizes[atom.name]
    left, right = (evaluate(v, sizes) for v in atom.operands)
    if atom.operator == "max":
        return max(left, right)
    return left // right if atom.operator == "//" else left % right


def hint(value: DimLike) -> int:
    """Return the size that a dimension is expected to have.

    It may steer a choice whose result is correct for all sizes, and records no guard.
    """
    if not isinstance(value, Dim):
        return value
    found = in_force.decisions
    try:
        return evaluate(value, found.sizes if found is not None else {})
    except KeyError:
        return int(min(max(value.bounds()[0], -(2.0**62)), 2.0**62))


def settled_below(value: DimLike, bound: int) -> bool:
    """Return whether a dimension is less than `bound`, for a choice on which rounding depends.

    It is for choices among orders of adding up, of which each is right. Under decisions that settle
    orders the answer becomes a guard, so that every size is computed in the order in which a
    program for that size alone computes it. Otherwise the expected size decides.
    """
    if in_force.decisions is not None and in_force.decisions.settles_orders:
        with suppress(InconclusiveDimension):  # a size that the program computes as it runs
            return bool(value < bound)
    return hint(value) < bound


def symbols_in(*values: Any) -> dict[str, Atom]:
    """Return the symbols in dimensions, and in tuples of dimensions, by name.

    They are in the order in which they are met.
    """
    found: dict[str, Atom] = {}
    for value in values:
        if isinstance(value, Dim):
            for mono in value.terms:
                for atom, _ in mono:
                    if atom.operator == "symbol":
                        found.setdefault(atom.name, atom)
                    else:
                        found.update({k: v for k, v in symbols_in(*atom.operands).items() if k not in found})
        elif isinstance(value, tuple):
            found.update({k: v for k, v in symbols_in(*value).items() if k not in found})
    return found
