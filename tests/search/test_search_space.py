"""Spaces: points, their neighbours, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel.search.search_space import Space, key_of


def space() -> Space:
    choices = {"depth": (1, 2), "kernel": (3, 5, 7), "act": ("relu", "none")}
    return Space(choices, lambda point: ["kernel"] if point["depth"] == 1 else [])


def test_points_that_are_equal_networks_are_one() -> None:
    made = list(space().points())
    assert len(made) == 2 + 6 and space().size == 12
    assert len({key_of(p) for p in made}) == len(made)
    assert space().plain({"depth": 1, "kernel": 7, "act": "none"}) == {"depth": 1, "kernel": 3, "act": "none"}


def test_draws_mutations_and_crossings_are_points_by_seed() -> None:
    one = space()
    known = {key_of(p) for p in one.points()}
    runs = []
    for _ in range(2):
        random = np.random.default_rng(3)
        drawn = [one.draw(random) for _ in range(200)]
        moved = [one.mutate(p, random) for p in drawn]
        crossed = [one.cross(p, q, random) for p, q in zip(drawn, moved)]
        runs.append([key_of(p) for p in (*drawn, *moved, *crossed)])
    assert runs[0] == runs[1] and set(runs[0]) <= known
    assert {key_of(p) for p in drawn} == known, "each point can be drawn"


def test_a_mutation_changes_something_where_it_can() -> None:
    one, random = Space({"a": (1, 2, 3), "b": (5,)}), np.random.default_rng(0)
    assert all(one.mutate({"a": 2, "b": 5}, random, 0.0)["a"] != 2 for _ in range(20))
    assert Space({"b": (5,)}).mutate({"b": 5}, random) == {"b": 5}


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ({}, "at least one choice"),
        ({"a": ()}, "different ones"),
        ({"a": (1, 1)}, "different ones"),
        ({"a": "word"}, "must be a sequence"),
        ({"a": ((1,),)}, "numbers or words"),
    ],
)
def test_spaces_that_are_none(choices: Any, text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=text):
        Space(choices)


@pytest.mark.parametrize("point", [{}, {"depth": 1, "kernel": 4, "act": "relu"}, {"depth": 1}])
def test_points_that_are_none(point: Any) -> None:
    with pytest.raises(ValueError, match="Space: "):
        space().plain(point)
