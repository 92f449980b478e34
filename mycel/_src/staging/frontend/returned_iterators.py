"""Returned iterators: what a compiled function returns as an iterator is a tuple or a list.

A range, `zip` and `enumerate`, keys and values of a dict and `map` over anything but a list are
tuples; `filter`, generators, items of a dict and `map` over a list are lists.
"""

from __future__ import annotations

import types
from collections import OrderedDict
from typing import Any

from mycel._src.staging.frontend.control_flow.loop_unrolling import TensorRange, python_range
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.staging.frontend.graph_building.symbolic_sizes import SizeRange

__all__ = ["is_iterator", "members", "without_iterators"]

_LIST_ITERATOR: type = type(iter([0]))
_ORDERED: OrderedDict[Any, Any] = OrderedDict()
_KINDS: dict[type, type] = {
    **dict.fromkeys((range, SizeRange, zip, enumerate, type({}.keys()), type({}.values()), type(iter(()))), tuple),
    **dict.fromkeys((type(_ORDERED.keys()), type(_ORDERED.values())), tuple),
    **dict.fromkeys((filter, types.GeneratorType, type({}.items()), type(_ORDERED.items()), _LIST_ITERATOR), list),
    map: tuple,
}


def is_iterator(value: Any) -> bool:
    """Return whether a result is an iterator, a range or a view of a dict."""
    return type(value) in _KINDS


def members(value: Any) -> Any:
    """Return the tuple or list that a caller gets for an iterator."""
    kind = _KINDS[type(value)]
    if type(value) is map and type(value.__reduce__()[1][1]) is _LIST_ITERATOR:
        kind = list
    return kind(value)


def without_iterators(stage: Stage | None, value: Any) -> Any:
    """Return a result with the members of iterators in place of the iterators in it.

    `stage` has the values of tensors; it is None for what plain Python gave.
    """
    if stage is not None and isinstance(value, TensorRange):
        value = python_range(stage, value)
    if is_iterator(value):
        value = members(value)
    kind = type(value)
    if kind is tuple or kind is list:
        return _replaced(stage, value, kind, list(value))
    if kind is dict:
        return _replaced(stage, value, lambda items: dict(zip(value, items)), list(value.values()))
    return value


def _replaced(stage: Stage | None, value: Any, kind: Any, items: list[Any]) -> Any:
    found = [without_iterators(stage, v) for v in items]
    return value if all(a is b for a, b in zip(items, found)) else kind(found)
