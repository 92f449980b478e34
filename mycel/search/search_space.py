"""Search spaces of networks: named choices, and points in them.

A space maps names to the options of each. A point has one option for every name. All that is random
is drawn from a generator that the caller gives, so that equal seeds give equal points. Names that
do not matter (the kernel of a block that is left out, say) are set to their first options by
`plain`, so that equal networks are equal points.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

import numpy as np

__all__ = ["Option", "Point", "Space", "key_of"]

Option = int | float | str | bool
Point = dict[str, Option]
Random = np.random.Generator


def key_of(point: Mapping[str, Option]) -> str:
    """Return a text that equal points share, and no others.

    >>> key_of({"b": 2, "a": 1})
    '{"a": 1, "b": 2}'
    """
    return json.dumps(dict(point), sort_keys=True)


class Space:
    """Named choices, of which a point has one option each.

    * `choices`: the options of each name, a sequence of numbers or words without repetition. Order
      them by size: a mutation moves to a neighbour as often as to any.
    * `plain`: gives the names of a point that do not matter in it; these take their first options.

    Raises TypeError and ValueError for choices without options and for options that are repeated.

    >>> space = Space({"width": (8, 16, 32), "kernel": (3, 5)})
    >>> space.size, next(space.points())
    (6, {'width': 8, 'kernel': 3})
    """

    def __init__(
        self,
        choices: Mapping[str, Sequence[Option]],
        plain: Callable[[Point], Sequence[str]] = lambda point: (),
    ) -> None:
        if not choices:
            raise ValueError("Space: choices must name at least one choice, not none")
        self.choices: dict[str, tuple[Option, ...]] = {}
        for name, options in choices.items():
            if isinstance(options, str) or not isinstance(options, Sequence):
                raise TypeError(f"Space: the options of {name!r} must be a sequence, not {options!r}")
            for option in options:
                if not isinstance(option, (bool, int, float, str)):
                    raise TypeError(f"Space: options of {name!r} must be numbers or words, not {option!r}")
            if not options or len(set(options)) < len(options):
                raise ValueError(f"Space: the options of {name!r} must be different ones, at least one, not {options}")
            self.choices[name] = tuple(options)
        self._plain = plain

    @property
    def size(self) -> int:
        """How many points there are, those that are equal networks counted apart."""
        return prod(len(options) for options in self.choices.values())

    def points(self) -> Iterator[Point]:
        """Yield every point once, those that are equal networks once together."""
        seen = set()
        for options in product(*self.choices.values()):
            point = self.plain(dict(zip(self.choices, options)))
            if (key := key_of(point)) not in seen:
                seen.add(key)
                yield point

    def plain(self, point: Mapping[str, Option]) -> Point:
        """Return a point with first options where it does not matter.

        Raises ValueError where it is no point of this space.
        """
        if set(point) != set(self.choices):
            missing, more = sorted(set(self.choices) - set(point)), sorted(set(point) - set(self.choices))
            raise ValueError(f"Space: a point has an option for every name; missing {missing}, unknown {more}")
        for name, options in self.choices.items():
            if point[name] not in options:
                raise ValueError(f"Space: {name!r} must be one of {options}, not {point[name]!r}")
        made = {name: point[name] for name in self.choices}
        return {**made, **{name: self.choices[name][0] for name in self._plain(made)}}

    def draw(self, random: Random) -> Point:
        """Return a point drawn at random."""
        return self.plain({name: options[random.integers(len(options))] for name, options in self.choices.items()})

    def extreme(self, which: int) -> Point:
        """Return the point of first options (``0``) or of last ones (``-1``)."""
        return self.plain({name: options[which] for name, options in self.choices.items()})

    def mutate(self, point: Mapping[str, Option], random: Random, rate: float = 0.2) -> Point:
        """Return a point in which each choice is another one with probability `rate`.

        At least one changes, if any can. Half of the changes are to a neighbour in the order of the
        options.
        """
        names = [name for name, options in self.choices.items() if len(options) > 1]
        if not names:
            return self.plain(point)
        changed = [name for name in names if random.random() < rate] or [names[random.integers(len(names))]]
        made = dict(point)
        for name in changed:
            options = self.choices[name]
            at = options.index(made[name])
            if random.random() < 0.5:
                others = [k for k in (at - 1, at + 1) if 0 <= k < len(options)]
            else:
                others = [k for k in range(len(options)) if k != at]
            made[name] = options[others[random.integers(len(others))]]
        return self.plain(made)

    def cross(self, one: Mapping[str, Option], other: Mapping[str, Option], random: Random) -> Point:
        """Return a point that has each option from one of two points."""
        return self.plain({name: (one if random.random() < 0.5 else other)[name] for name in self.choices})
