"""The factors of data-movement primitives.

Operand and result of a reshape have common factors where their axes, read from the front or from
the back, have a common divisor: [6, 4] and [24] have 6 and 4, [4, 6] and [6, 4] have 2 in front and
2 behind. Axes are read in groups, which end where the products of both sides meet.

An axis along which there is any movement is no factor: a stretch of the result needs another
stretch of the operand, and filling up at the end would not stay at the end. But where elements move
by multiples of a number, as a third of an axis is cut off, that number is a factor inside of it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mycel._src.compiler.ir.dims import Dim, DimLike, InconclusiveDimension, is_one, is_zero, same
from mycel._src.compiler.prims.factors import Factor, Place, named, other_axes_factors

if TYPE_CHECKING:
    from mycel._src.compiler.ir.graph import Node

__all__ = [
    "broadcast_factors",
    "concat_factors",
    "iota_factors",
    "pad_factors",
    "reshape_factors",
    "reverse_factors",
    "slice_factors",
    "transpose_factors",
]

Shape = tuple[DimLike, ...]
Found = list[tuple[DimLike, Place, Place]]


def reshape_factors(node: Node) -> tuple[Factor, ...]:
    """Return the common factors of both shapes."""
    made = []
    for size, source, target in _common(node.inputs[0].shape, node.type.shape):
        made.append(Factor(size, (source,), (target,), sizes=(("shape", target.axis),)))
    return tuple(made)


def _common(old: Shape, new: Shape) -> Found:
    """Return the common factors of two shapes of as many elements, and their places in both."""
    if any(map(is_zero, (*old, *new))):
        return _equal_ends(old, new)
    found: Found = []
    a, b = 0, 0
    while a < len(old) or b < len(new):
        i, j = a, b
        left: DimLike = 1
        right: DimLike = 1
        while i < len(old) or j < len(new):
            if not is_one(left) and same(left, right):
                break
            if i < len(old) and (j == len(new) or is_one(left) or _divides(left, right)):
                left = left * old[i]
                i += 1
            elif j < len(new):
                right = right * new[j]
                j += 1
            else:
                left = left * old[i]
                i += 1
        found += _group([(k, old[k]) for k in range(a, i)], [(k, new[k]) for k in range(b, j)])
        a, b = i, j
    return found


def _equal_ends(old: Shape, new: Shape) -> Found:
    """Return the sizes that shapes of no elements share at their beginnings and ends."""
    front = next((k for k, (p, q) in enumerate(zip(old, new)) if not same(p, q)), min(len(old), len(new)))
    room = min(len(old), len(new)) - front
    back = next((k for k in range(room) if not same(old[-1 - k], new[-1 - k])), room)
    pairs = [(k, k) for k in range(front)]
    pairs += [(len(old) - k, len(new) - k) for k in range(back, 0, -1)]
    return [(old[p], Place(p), Place(q)) for p, q in pairs if not is_one(old[p])]


def _divides(small: DimLike, large: DimLike) -> bool:
    """Return whether a size is smaller and divides another for certain."""
    return not same(small, large) and _quotient(large, small) is not None


def _quotient(size: DimLike, divisor: DimLike) -> DimLike | None:
    """Return an exact quotient, None where there is none for certain."""
    if is_one(divisor):
        return size
    try:
        rest, found = size % divisor, size // divisor
        return found if is_zero(rest) and same(found * divisor, size) else None
    except InconclusiveDimension:
        return None


def _shared(p: DimLike, q: DimLike) -> DimLike:
    """Return a common divisor of two sizes."""
    if same(p, q) or _quotient(q, p) is not None:
        return p
    if _quotient(p, q) is not None:
        return q
    return 1 if isinstance(p, Dim) or isinstance(q, Dim) else math.gcd(p, q)


class _Side:
    """The axes of one side of a group, of which factors are taken from the front or the back."""

    def __init__(self, axes: list[tuple[int, DimLike]]) -> None:
        self.axes = [(axis, size) for axis, size in axes if not is_one(size)]
        self.rest = [size for _, size in self.axes]
        self.taken: list[list[DimLike]] = [[1, 1] for _ in self.axes]
        self.low, self.high = 0, len(self.axes) - 1

    def end(self, back: bool) -> int | None:
        """Return the entry at an end that is not used up, None where there is none."""
        while self.low <= self.high:
            k = self.high if back else self.low
            if not is_one(self.rest[k]):
                return k
            self.high, self.low = (self.high - 1, self.low) if back else (self.high, self.low + 1)
        return None

    def take(self, k: int, factor: DimLike, back: bool) -> Place:
        """Take a factor off an entry; return its place."""
        rest = _quotient(self.rest[k], factor)
        assert rest is not None
        before, after = self.taken[k]
        self.rest[k] = rest
        self.taken[k][back] = self.taken[k][back] * factor
        return Place(self.axes[k][0], before * rest, after) if back else Place(self.axes[k][0], before, rest * after)


def _group(old: list[tuple[int, DimLike]], new: list[tuple[int, DimLike]]) -> Found:
    """Return the common factors of axes whose products are equal, from the front and the back."""
    sides = _Side(old), _Side(new)
    ends: list[Found] = [[], []]
    for back in (False, True):
        while True:
            p, q = (side.end(back) for side in sides)
            if p is None or q is None:
                break
            factor = _shared(sides[0].rest[p], sides[1].rest[q])
            if is_one(factor):
                break
            ends[back].append((factor, sides[0].take(p, factor, back), sides[1].take(q, factor, back)))
    return ends[0] + ends[1][::-1]


def transpose_factors(node: Node) -> tuple[Factor, ...]:
    """Return a factor for each axis."""
    return named(node, [range(node.type.rank)], [node.params["permutation"]])


def broadcast_factors(node: Node) -> tuple[Factor, ...]:
    """Return a factor for each axis of the result; the operand lacks those that are repeated."""
    rank = node.type.rank
    return named(node, [range(rank - node.inputs[0].type.rank, rank)], [range(rank)], sizes=_own("shape", rank))


def _own(parameter: str, rank: int) -> dict[Any, tuple[tuple[str, int], ...]]:
    return {a: ((parameter, a),) for a in range(rank)}


def slice_factors(node: Node) -> tuple[Factor, ...]:
    """Return a factor for each axis that is read as a whole."""
    starts, stops, steps = (node.params[k] for k in ("starts", "stops", "steps"))
    shape = node.inputs[0].shape
    whole = [is_zero(a) and is_one(s) and same(b, d) for a, b, s, d in zip(starts, stops, steps, shape)]
    labels = [a if w else None for a, w in enumerate(whole)]
    inner = []
    for a, (start, stop, step, size) in enumerate(zip(starts, stops, steps, shape)):
        if whole[a] or not is_one(step) or is_zero(stop - start):
            continue
        if (unit := _unit(start, stop, size)) > 1:
            places = (Place(a, size // unit),), (Place(a, (stop - start) // unit),)
            inner.append(Factor(unit, *places, sizes=(("starts", a), ("stops", a))))
    return (*named(node, [labels], [labels], sizes=_own("stops", len(labels))), *inner)


def _unit(*sizes: DimLike) -> int:
    """Return the largest number that divides all of `sizes`, 1 where one is not known."""
    known = [s for s in sizes if isinstance(s, int)]
    return math.gcd(*known) if len(known) == len(sizes) else 1


def pad_factors(node: Node) -> tuple[Factor, ...]:
    """Return a factor for each axis to which nothing is added."""
    moved = zip(*(node.params[k] for k in ("low", "high", "interior")))
    labels = [a if all(map(is_zero, amounts)) else None for a, amounts in enumerate(moved)]
    inner = []
    low, high, interior = (node.params[k] for k in ("low", "high", "interior"))
    for a, (before, size) in enumerate(zip(node.inputs[0].shape, node.type.shape)):
        if (
            labels[a] is None
            and interior[a] == 0
            and not is_zero(before)
            and (unit := _unit(before, low[a], high[a])) > 1
        ):
            places = (Place(a, before // unit), None), (Place(a, size // unit),)
            inner.append(Factor(unit, *places, sizes=(("low", a), ("high", a))))
    return (*named(node, [labels, ()], [labels]), *inner)


def concat_factors(node: Node) -> tuple[Factor, ...]:
    """Return a factor for each axis but the one along which tensors are joined."""
    labels = [None if a == node.params["axis"] else a for a in range(node.type.rank)]
    axis, sizes = node.params["axis"], [x.shape[node.params["axis"]] for x in node.inputs]
    found = named(node, [labels] * len(node.inputs), [labels])
    if (unit := _unit(*sizes)) > 1:
        places = tuple([None if is_zero(size) else Place(axis, size // unit) for size in sizes])
        found = (*found, Factor(unit, places, (Place(axis, node.type.shape[axis] // unit),)))
    return found


def reverse_factors(node: Node) -> tuple[Factor, ...]:
    """Return a factor for each axis that keeps its direction."""
    return other_axes_factors(node, node.params["axes"])


def iota_factors(node: Node) -> tuple[Factor, ...]:
    """Return a factor for each axis."""
    return named(node, (), [range(node.type.rank)], sizes=_own("shape", node.type.rank))
