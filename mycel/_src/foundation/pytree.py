"""Pytrees: nested containers as a flat list of leaves and a hashable structure, and back.

Containers are tuples, named tuples, lists, dicts (in insertion order) and dataclass instances;
everything else is a leaf. A dataclass that names fields in `TREE_LEAVES` has these alone as
children; its other fields are part of the structure, as the positions of a sparse tensor's
values are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["LEAF", "fixed_in", "flatten", "map_fixed", "map_leaves", "unflatten"]


class Structure:
    """The structure of nested containers: a kind, its extra data, and the children's structures."""

    __slots__ = ("kind", "data", "children", "_hash")

    def __init__(self, kind: Any, data: Any, children: tuple[Structure, ...]) -> None:
        self.kind, self.data, self.children = kind, data, children
        self._hash = hash((kind, data, children))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Structure)
            and self.kind is other.kind
            and self.data == other.data
            and self.children == other.children
        )

    def __repr__(self) -> str:
        if self is LEAF:
            return "*"
        return f"{self.kind.__name__}({', '.join(map(repr, self.children))})"


class Fixed:
    """The fields of a dataclass that belong to the structure.

    Two are equal where each field is the same object, or an equal tuple.
    """

    __slots__ = ("fields",)

    def __init__(self, fields: tuple[tuple[str, Any], ...]) -> None:
        self.fields = fields

    def __hash__(self) -> int:
        return hash(tuple([(k, v if type(v) is tuple else id(v)) for k, v in self.fields]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and all(
            a == b and (v is w or (type(v) is tuple and v == w))
            for (a, v), (b, w) in zip(self.fields, other.fields, strict=True)
        )


class _Leaf:
    pass


LEAF = Structure(_Leaf, None, ())


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of `value`, left to right, and its structure."""
    leaves: list[Any] = []
    return leaves, _flatten(value, leaves)


def _flatten(value: Any, leaves: list[Any]) -> Structure:
    kind = type(value)
    if kind is tuple or kind is list:
        return Structure(kind, None, tuple([_flatten(v, leaves) for v in value]))
    if kind is dict:
        return Structure(dict, tuple(value), tuple([_flatten(v, leaves) for v in value.values()]))
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return Structure(kind, None, tuple([_flatten(v, leaves) for v in value]))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(f.name for f in dataclasses.fields(value))
        chosen = getattr(kind, "TREE_LEAVES", None)
        if chosen is not None:
            fixed = Fixed(tuple([(n, getattr(value, n)) for n in names if n not in chosen]))
            return Structure(kind, (chosen, fixed), tuple([_flatten(getattr(value, n), leaves) for n in chosen]))
        return Structure(kind, names, tuple([_flatten(getattr(value, n), leaves) for n in names]))
    leaves.append(value)
    return LEAF


def unflatten(structure: Structure, leaves: Any) -> Any:
    """Build the value with this structure and these leaves."""
    return _unflatten(structure, iter(leaves))


def _unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    if structure is LEAF or structure.kind is _Leaf:
        return next(leaves)
    children = [_unflatten(c, leaves) for c in structure.children]
    kind = structure.kind
    if kind is tuple:
        return tuple(children)
    if kind is list:
        return children
    if kind is dict:
        return dict(zip(structure.data, children))
    if structure.data is not None:
        made = object.__new__(kind)
        names, fixed = (structure.data[0], structure.data[1].fields) if _with_fixed(structure) else (structure.data, ())
        for name, child in (*zip(names, children), *fixed):
            object.__setattr__(made, name, child)
        return made
    return kind(*children)


def map_leaves(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply `function` to every leaf of `value`."""
    leaves, structure = flatten(value)
    return unflatten(structure, [function(v) for v in leaves])


def _with_fixed(structure: Structure) -> bool:
    return bool(structure.data) and isinstance(structure.data, tuple) and isinstance(structure.data[-1], Fixed)


def fixed_in(structure: Structure) -> list[Any]:
    """List the fields that belong to a structure, from left to right."""
    own = [v for _, v in structure.data[1].fields] if _with_fixed(structure) else []
    return own + [v for c in structure.children for v in fixed_in(c)]


def map_fixed(function: Callable[[Any], Any], structure: Structure) -> Structure:
    """Apply `function` to every field that belongs to a structure."""
    data = structure.data
    if _with_fixed(structure):
        data = (data[0], Fixed(tuple([(n, function(v)) for n, v in data[1].fields])))
    return (
        Structure(structure.kind, data, tuple([map_fixed(function, c) for c in structure.children]))
        if structure is not LEAF
        else LEAF
    )
