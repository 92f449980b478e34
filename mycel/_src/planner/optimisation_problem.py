"""The planner's optimisation problem: items with alternatives, and links with pairwise costs.

An *item* is a node of a graph or one of its inputs; its *alternatives* are the ways in which it may
be divided, each with the seconds it computes and the bytes it holds. A *link* is a value: its
source's choice says in which layout the value is, its users' choices say which layouts they want.
Each layout that is wanted is made once, whoever wants it, and costs seconds and bytes by the layout
it is made from. The seconds of an assignment are the sum over items and links. What is held, is
held from one *moment* to another; at no moment may it be more than the limit.

So a problem is a sum of functions of one choice and of functions of a few, with linear constraints;
it knows nothing of tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

__all__ = ["Hold", "Item", "Link", "Problem", "fixed", "quotient"]

Array = np.ndarray[Any, Any]
Choices = Sequence[int]


@dataclass(frozen=True, eq=False)
class Hold:
    """Bytes held from the moment `first` to the moment `last`, both included."""

    bytes: Array
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Item:
    """What is to be decided: `seconds` has one entry for each alternative, `holds` the bytes.

    `parts` says of each alternative, for each axis of the mesh, what is divided along it, -1 for
    nothing; it may be empty.
    """

    name: str
    seconds: Array
    holds: tuple[Hold, ...] = ()
    parts: tuple[tuple[int, ...], ...] = ()

    @property
    def count(self) -> int:
        """The number of alternatives."""
        return len(self.seconds)


@dataclass(frozen=True, eq=False)
class Link:
    """A value from `source` to `users`.

    `wants[k]` has the wanted layout of each alternative of user k. `seconds` and `bytes` have a row
    for each alternative of the source and a column for each layout; the copy in a layout is held
    from `first` to `last`.
    """

    source: int
    users: tuple[int, ...]
    wants: tuple[Array, ...]
    seconds: Array
    bytes: Array | None = None
    first: int = 0
    last: int = 0

    def asked(self, choices: Choices) -> list[int]:
        """Return the layouts that are wanted."""
        return sorted({int(w[choices[u]]) for u, w in zip(self.users, self.wants)})


@dataclass(frozen=True, eq=False)
class Problem:
    """Items, links between them and the bytes that may be held at a moment, None for any number."""

    items: tuple[Item, ...]
    links: tuple[Link, ...]
    limit: float | None = None
    _near: list[list[int]] = field(default_factory=list)

    def near(self, item: int) -> list[int]:
        """Return the links that an item takes part in."""
        if not self._near:
            self._near.extend([] for _ in self.items)
            for k, link in enumerate(self.links):
                for i in {link.source, *link.users}:
                    self._near[i].append(k)
        return self._near[item]

    def seconds(self, choices: Choices) -> float:
        """Return the seconds of an assignment of one alternative to each item."""
        items = sum(float(i.seconds[c]) for i, c in zip(self.items, choices))
        return items + sum(self.moving(k, choices) for k in range(len(self.links)))

    def moving(self, link: int, choices: Choices) -> float:
        """Return the seconds of a link."""
        one = self.links[link]
        row = one.seconds[choices[one.source]]
        return float(sum(row[l] for l in one.asked(choices)))

    def memory(self, choices: Choices) -> tuple[float, int]:
        """Return the most bytes that an assignment holds, and the first moment at which it does."""
        profile = self.profile(choices)
        moment = int(np.argmax(profile))
        return float(profile[moment]), moment

    def profile(self, choices: Choices) -> Array:
        """Return the bytes that an assignment holds at each moment."""
        changes = np.zeros(self.moments + 1)
        for item, c in zip(self.items, choices):
            for hold in item.holds:
                changes[hold.first] += hold.bytes[c]
                changes[hold.last + 1] -= hold.bytes[c]
        for link in self.links:
            if link.bytes is not None:
                row = link.bytes[choices[link.source]]
                held = float(sum(row[l] for l in link.asked(choices)))
                changes[link.first] += held
                changes[link.last + 1] -= held
        return np.cumsum(changes)[:-1]

    @property
    def moments(self) -> int:
        """The number of moments."""
        lasts = [h.last for i in self.items for h in i.holds]
        return 1 + max([*lasts, *[k.last for k in self.links if k.bytes is not None]], default=0)

    def fits(self, choices: Choices) -> bool:
        """Return whether an assignment holds no more than the limit."""
        return self.limit is None or self.memory(choices)[0] <= self.limit * (1 + 1e-9)


def fixed(problem: Problem, allowed: Sequence[Sequence[int] | None]) -> Problem:
    """Return the problem in which each item has the alternatives `allowed` only; None for all."""
    items, links = list(problem.items), []
    for i, keep in enumerate(allowed):
        if keep is not None:
            item, at = items[i], list(keep)
            holds = tuple(replace(h, bytes=h.bytes[at]) for h in item.holds)
            parts = tuple(item.parts[a] for a in at) if item.parts else ()
            items[i] = replace(item, seconds=item.seconds[at], holds=holds, parts=parts)
    for link in problem.links:
        keep = allowed[link.source]
        if keep is not None:
            moved = None if link.bytes is None else link.bytes[list(keep)]
            link = replace(link, seconds=link.seconds[list(keep)], bytes=moved)
        chosen = [allowed[u] for u in link.users]
        wants = tuple(w if k is None else w[list(k)] for w, k in zip(link.wants, chosen))
        links.append(replace(link, wants=wants))
    return Problem(tuple(items), tuple(links), problem.limit)


def quotient(problem: Problem, classes: Sequence[int]) -> Problem:
    """Return the problem in which the items of one class choose alike.

    `classes` numbers the class of each item from 0 on; the items of a class have the same number of
    alternatives. An assignment of the classes costs and holds what it does for all their items.
    """
    groups: list[list[int]] = [[] for _ in range(max(classes) + 1)]
    for i, c in enumerate(classes):
        groups[c].append(i)
    items = []
    for members in groups:
        first = problem.items[members[0]]
        seconds = np.sum([problem.items[m].seconds for m in members], axis=0)
        holds = tuple(h for m in members for h in problem.items[m].holds)
        items.append(Item(first.name, seconds, holds, first.parts))
    links: dict[Any, list[Link]] = {}
    for link in problem.links:
        # Users of one class that want the same are one user.
        ends: dict[Any, tuple[int, Array]] = {}
        for u, w in zip(link.users, link.wants):
            ends.setdefault((classes[u], w.tobytes()), (classes[u], w))
        users, wants = zip(*[ends[k] for k in sorted(ends)])
        made = replace(link, source=classes[link.source], users=users, wants=wants)
        # Copies with bytes keep their moments.
        own = None if link.bytes is None else (link.bytes.tobytes(), link.first, link.last)
        key = (made.source, tuple(sorted(ends)), link.seconds.shape, own)
        links.setdefault(key, []).append(made)
    joined = []
    for same in links.values():
        seconds = np.sum([k.seconds for k in same], axis=0)
        moved = same[0].bytes
        joined.append(replace(same[0], seconds=seconds, bytes=None if moved is None else moved * len(same)))
    return Problem(tuple(items), tuple(joined), problem.limit)
