"""Operators' strategies, adapted to the tensors that a call passes.

A strategy has an entry for each input. Inputs that are numbers have the entry ``()``, which says
nothing. Some operators are divided by what they give instead of what they take: a new axis
(`OneHot`), or copies (`Tile`). Their entries are rewritten for the input and the result.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mycel._src.compiler.ir.sharding.division import Division
from mycel._src.compiler.ir.sharding.strategies import Strategy
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["fitted"]


def fitted(kind: str, holder: Any, strategy: Strategy, given: Any) -> Strategy:
    """Return a strategy with an entry for each tensor that a call of an operator is given.

    `kind` is the operator's name, `holder` the object that has the strategy, `given` the arguments.
    A strategy that does not fit is returned as it is.
    """
    if strategy.inputs is None:
        return strategy
    leaves = list(_leaves(given))
    entries = strategy.inputs
    if len(entries) == len(leaves) and any(not isinstance(v, Tensor) for v in leaves):
        said = [d for v, d in zip(leaves, entries) if not isinstance(v, Tensor)]
        if all(d is None or not d.cuts for d in said):
            entries = tuple([d for v, d in zip(leaves, entries) if isinstance(v, Tensor)])
    rule = _RULES.get(kind)
    first = entries[0] if entries else None
    results = strategy.results
    if rule is not None and first is not None and leaves and isinstance(leaves[0], Tensor):
        changed = rule(holder, leaves[0], leaves[1:], first)
        if changed is not None:
            entries = (changed[0], *entries[1:])
            results = results if results is not None else (changed[1],)
    if entries is strategy.inputs and results is strategy.results:
        return strategy
    return Strategy(entries, results, strategy.stage, strategy.plan)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (Tensor, numbers.Number)):
        yield value
    elif type(value) in (tuple, list):
        for v in value:
            yield from _leaves(v)
    elif type(value) is dict:
        for v in value.values():
            yield from _leaves(v)


def _kept(division: Division, axes: Sequence[int], whole: Sequence[int] = ()) -> Division:
    """Return the division of a tensor that has these axes, of which some are whole."""
    cuts = tuple([1 if a in whole else division.cuts[a] for a in axes])
    names = tuple([() if a in whole else division.axes[a] for a in axes]) if division.mesh is not None else ()
    return Division(cuts, division.mesh, names)


Rule = Callable[[Any, Tensor, Sequence[Any], Division], tuple[Division, Division] | None]


def _one_hot(holder: Any, indices: Tensor, rest: Sequence[Any], division: Division) -> Any:
    """Return the entry of the indices, given as that of the result, which has one axis more."""
    if len(division.cuts) != indices.ndim + 1:
        return None
    axis = int(getattr(holder, "axis", -1)) % (indices.ndim + 1)
    return _kept(division, [a for a in range(indices.ndim + 1) if a != axis]), division


def _tile(holder: Any, x: Tensor, rest: Sequence[Any], division: Division) -> Any:
    """Return the entry of what is repeated, of which axes with copies are cut by these."""
    if len(rest) != len(division.cuts) or not all(isinstance(n, int) for n in rest):
        return None
    new = len(division.cuts) - x.ndim
    repeated = [a for a, n in enumerate(rest) if n != 1 and division.cuts[a] != 1]
    if new < 0 or not repeated:
        return None
    return _kept(division, range(new, len(division.cuts)), repeated), division


_RULES: dict[str, Rule] = {"OneHot": _one_hot, "Tile": _tile}
