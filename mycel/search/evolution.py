"""Evolutionary multi-objective search of a space of networks, under limits.

A population of points is scored. The next one is made of the better half by crossing and mutation:
points are ranked by the fronts that they are on (no point of a front is worse than another in all
objectives) and within a front by how far their neighbours are, as in NSGA-II (Deb et al., 2002).
Candidates whose predicted cost is outside of the limits by more than the prediction's error are not
scored. In the end the points of the front are really built and measured; one that does not fit is
struck out, and the front is drawn anew, until all that is returned was measured and fits.

Generation `g` draws from the generator of (seed, g) alone and depends on those before only by what
was scored. So a search that goes on from its file returns what an uninterrupted one returns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.atomic_files import write
from mycel.search.cost_measurement import Cost
from mycel.search.search_space import Option, Point, Space, key_of

__all__ = ["Found", "Limits", "NothingFits", "front", "search"]

FORMAT = "mycel-search-1"
TRIES = 50


class NothingFits(Unsupported):
    """An error: no network that was seen fits the limits; the message has the nearest."""


@dataclass(frozen=True)
class Limits:
    """What a network may cost at most, None for no limit.

    Args:
        ram (int | None): Bytes of RAM. Default: None.
        flash (int | None): Bytes of flash. Default: None.
        instructions (int | None): Instructions of a call. Default: None.
        macs (int | None): Products of a call. Default: None.
    """

    ram: int | None = None
    flash: int | None = None
    instructions: int | None = None
    macs: int | None = None

    def __post_init__(self) -> None:
        for name, value in self.__dict__.items():
            if value is not None:
                arguments.integer("Limits", name, value, at_least=0)

    def excess(self, cost: Mapping[str, float]) -> float:
        """Return by how much a cost exceeds the limits: the largest share above one, 0 if none.

        >>> Limits(ram=100).excess({"ram": 150, "flash": 10})
        0.5
        """
        over = [
            (cost[name] - limit) / max(1, limit)
            for name, limit in self.__dict__.items()
            if limit is not None and name in cost
        ]
        return float(max([0.0, *over]))


@dataclass(frozen=True)
class Found:
    """A network that a search found: its point, its score, and its cost as measured."""

    point: Point
    score: float
    cost: Cost


Predict = Callable[[Point], Mapping[str, float]]


def front(rows: Sequence[Sequence[float]]) -> list[int]:
    """Return the numbers of rows that no other is better than, all columns to be small.

    Of equal rows the first is taken.

    >>> front([(1, 4), (2, 2), (3, 3), (2, 2)])
    [0, 1]
    """
    values = np.asarray(rows, np.float64).reshape(len(rows), -1)
    kept = []
    for k, row in enumerate(values):
        no_worse = (values <= row).all(1)
        better = no_worse & (values < row).any(1)
        if not better.any() and not (no_worse & (values == row).all(1))[:k].any():
            kept.append(k)
    return kept


def search(
    space: Space,
    score: Callable[[Point], float],
    measure: Callable[[Point], Cost],
    limits: Limits = Limits(),
    predict: Predict | None = None,
    objectives: Sequence[str] = ("instructions",),
    population: int = 24,
    generations: int = 8,
    margin: float = 0.1,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
) -> list[Found]:
    """Return the front of the networks of a space that fit, from the highest score down.

    Args:
        space (Space): The points to choose from.
        score (Callable[[dict[str, int | float | str | bool]], float]): How good the network of a
            point is; larger is better.
        measure (Callable[[dict[str, int | float | str | bool]], Cost]): Builds the network of a
            point and returns its cost as measured.
        limits (Limits): What a network may cost. Default: Limits(ram=None, flash=None,
            instructions=None, macs=None).
        predict (Callable[[dict[str, int | float | str | bool]], Mapping[str, float]] | None):
            Figures of a point by the names of `Cost`, and ``"error"``, by how much of themselves
            they may be off; by default everything is measured at once. Default: None.
        objectives (Sequence[str]): Names of figures that are to be small, beside a high score.
            Default: ('instructions',).
        population (int): Points of a generation. Default: 24.
        generations (int): How many generations follow the first. Default: 8.
        margin (float): How far above its limit a predicted figure may be, beside its error.
            Default: 0.1.
        seed (int): The seed of all that is drawn. Default: 0.
        path (str | os.PathLike[str] | None): A file that has the state after each generation, from
            which an interrupted search goes on; None for no file. Default: None.

    Returns:
        list[Found]: The networks that were found.

    Raises:
        NothingFits: Where no point that was seen fits.
        ValueError: For a file of another search and for scores that are not finite.
    """
    arguments.integer("search", "population", population, at_least=2)
    arguments.integer("search", "generations", generations, at_least=0)
    known = {"instructions", "flash", "ram", "macs"}
    if not objectives or not set(objectives) <= known:
        raise ValueError(f"search: objectives must be some of {sorted(known)}, not {tuple(objectives)}")
    run = _Run(space, score, measure, limits, predict, tuple(objectives), population, margin, seed)
    if path is not None and Path(path).exists():
        run.load(path)
    while run.generation <= generations:
        run.advance()
        if path is not None:
            run.save(path)
    made = run.found()
    if path is not None:
        run.save(path)
    return made


@dataclass
class _Run:
    """The state of a search, whose options are as for `search`.

    It has what was scored, what was measured, what was predicted, and the generation.
    """

    space: Space
    score: Callable[[Point], float]
    measure: Callable[[Point], Cost]
    limits: Limits
    predict: Predict | None
    objectives: tuple[str, ...]
    population: int
    margin: float
    seed: int
    generation: int = 0
    points: dict[str, Point] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)
    seen: dict[str, Mapping[str, float]] = field(default_factory=dict)
    parents: list[str] = field(default_factory=list)

    def _header(self) -> dict[str, Any]:
        choices = {name: list(options) for name, options in self.space.choices.items()}
        limits = dict(self.limits.__dict__)
        settings = {"objectives": list(self.objectives), "population": self.population, "margin": self.margin}
        return {"format": FORMAT, "seed": self.seed, "space": choices, "limits": limits, **settings}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, whole or not at all."""
        state = {
            **self._header(),
            "generation": self.generation,
            "points": self.points,
            "scores": self.scores,
            "costs": {key: cost.record() for key, cost in self.costs.items()},
            "parents": self.parents,
        }
        write(path, json.dumps(state).encode())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Take up the state of a file.

        Raises ValueError where it is none, or that of another search.
        """
        try:
            state = json.loads(Path(path).read_bytes())
            mine = self._header()
            other = [name for name in mine if state.get(name) != json.loads(json.dumps(mine[name]))]
            if other:
                raise ValueError(f"it is of a search with other {', '.join(other)}")
            self.generation, self.parents = int(state["generation"]), [str(k) for k in state["parents"]]
            self.points = {key: self.space.plain(point) for key, point in state["points"].items()}
            self.scores = {key: float(value) for key, value in state["scores"].items()}
            self.costs = {key: Cost(**cost) for key, cost in state["costs"].items()}
            if not {*self.parents, *self.scores, *self.costs} <= set(self.points):
                raise ValueError("it names points that it has not")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"search: {os.fspath(path)} is not the file of this search: {error}") from error

    def figures(self, key: str) -> Mapping[str, float]:
        """Return the figures of a point: those measured, else those predicted."""
        if key in self.costs:
            return {**self.costs[key].record(), "error": 0.0}
        if self.predict is None:
            self.costs[key] = self.measure(dict(self.points[key]))
            return self.figures(key)
        if key not in self.seen:
            found = dict(self.predict(dict(self.points[key])))
            missing = [name for name in self.objectives if name not in found]
            if missing:
                raise ValueError(f"search: predict must give the objectives, and gave no {', '.join(missing)}")
            self.seen[key] = found
        return self.seen[key]

    def _may_fit(self, key: str) -> bool:
        figures = self.figures(key)
        slack = self.margin if key not in self.costs else 0.0
        return self.limits.excess(figures) <= figures.get("error", 0.0) + slack

    def _known(self, point: Mapping[str, Option]) -> str:
        key = key_of(point)
        self.points.setdefault(key, dict(point))
        return key

    def advance(self) -> None:
        """Score one more generation."""
        random = np.random.default_rng([self.seed, self.generation])
        drawn: dict[str, None] = {}
        nearest: list[tuple[float, str]] = []
        for draws in range(TRIES * self.population):
            if len(drawn) >= self.population:
                break
            key = self._known(self._drawn(random, draws))
            if key in drawn or key in self.scores:
                continue
            if self._may_fit(key):
                drawn[key] = None
            else:
                nearest.append((self.limits.excess(self.figures(key)), key))
        for key in drawn:
            scored = float(self.score(dict(self.points[key])))
            if not np.isfinite(scored):
                raise ValueError(f"search: score must give finite numbers, and gave {scored} for {key}")
            self.scores[key] = scored
        if not self.scores:
            # Nothing fits yet: what is nearest to the limits has children.
            self.parents = [key for _, key in sorted(set(nearest))[: self.population]]
        else:
            self.parents = self._ranked(list(self.scores))[: max(2, self.population // 2)]
        kept = {*self.parents, *self.scores, *self.costs}
        self.points = {key: point for key, point in self.points.items() if key in kept}
        self.generation += 1

    def _drawn(self, random: np.random.Generator, draws: int) -> Point:
        """Return a point for a generation of which `draws` were drawn; the first has both ends."""
        if not self.parents:
            return self.space.extreme(-draws) if draws < 2 else self.space.draw(random)
        one, other = (self.points[self.parents[random.integers(len(self.parents))]] for _ in range(2))
        if random.random() < 0.5:
            return self.space.mutate(one, random)
        return self.space.mutate(self.space.cross(one, other, random), random, 0.05)

    def _rows(self, keys: Iterable[str]) -> list[tuple[float, ...]]:
        return [(-self.scores[k], *[float(self.figures(k)[name]) for name in self.objectives]) for k in keys]

    def _ranked(self, keys: list[str]) -> list[str]:
        """Return points from the best to the worst: by fronts, and by the room around them."""
        made: list[str] = []
        while keys:
            rows = np.array(self._rows(keys))
            best = front(rows.tolist())
            room = np.zeros(len(best))
            for column in rows[best].T:
                order = np.argsort(column, kind="stable")
                span = max(float(column.max() - column.min()), 1e-12)
                room[order[[0, -1]]] = np.inf
                room[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / span
            made += [keys[best[k]] for k in np.argsort(-room, kind="stable")]
            chosen = set(best)
            keys = [key for k, key in enumerate(keys) if k not in chosen]
        return made

    def found(self) -> list[Found]:
        """Return the front, every point of which was measured and fits."""
        while True:
            fit = [key for key in sorted(self.scores) if self._may_fit(key)]
            if not fit:
                raise NothingFits(self._nearest())
            best = [fit[k] for k in front(self._rows(fit))]
            unknown = [key for key in best if key not in self.costs]
            if not unknown:
                made = [Found(dict(self.points[k]), self.scores[k], self.costs[k]) for k in best]
                return sorted(made, key=lambda one: (-one.score, one.cost.instructions))
            for key in unknown:
                self.costs[key] = self.measure(dict(self.points[key]))

    def _nearest(self) -> str:
        if not self.points:
            return f"search: no network was seen that could fit {self.limits}"
        excess, key = min((self.limits.excess(self.figures(key)), key) for key in self.points)
        figures = self.figures(key)
        kind = "measured" if key in self.costs else "predicted"
        shown = ", ".join(f"{n} {figures[n]:,.0f}" for n in ("ram", "flash", "instructions", "macs") if n in figures)
        return (
            f"search: no network of {len(self.points)} that were seen fits {self.limits}; the nearest is {excess:.0%} "
            f"above a limit ({kind}: {shown}): {key}"
        )
