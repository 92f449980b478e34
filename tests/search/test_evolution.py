"""Searches: the front against every point, limits that hold, seeds, and interruptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mycel.search import Cost, Limits, NothingFits, Space, search
from mycel.search.evolution import front

SPACE = Space({"width": tuple(range(1, 9)), "depth": (1, 2, 3, 4), "kernel": (3, 5, 7)})


def score(point: Any) -> float:
    return 1 - 1 / (1 + point["width"] * point["depth"]) + 0.01 * point["kernel"] - 0.002 * point["width"]


def cost(point: Any) -> Cost:
    work = point["width"] ** 2 * point["depth"] * point["kernel"]
    return Cost(100 * work, 500 + 3 * work, 64 * point["width"] + 100, 500, 100, work)


def roughly(point: Any) -> dict[str, float]:
    """A prediction that is off by up to a fifth."""
    found = cost(point).record()
    off = 1 + 0.2 * np.sin(point["width"] * 7 + point["kernel"])
    return {"instructions": found["instructions"] * off, "error": 0.2, "ram": found["ram"] * 0.8}


class Failing:
    """A score that is interrupted after so many calls."""

    def __init__(self, stop: int) -> None:
        self.left = stop

    def __call__(self, point: Any) -> float:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return score(point)


def best(limits: Limits) -> list[Any]:
    fit = [p for p in SPACE.points() if not limits.excess(cost(p).record())]
    return [fit[k] for k in front([(-score(p), cost(p).instructions) for p in fit])]


@pytest.mark.parametrize("predict", [None, roughly])
def test_the_front_is_that_of_all_points(predict: Any) -> None:
    limits = Limits(ram=450, instructions=60_000)
    found = search(SPACE, score, cost, limits, predict, population=24, generations=12, seed=3)
    assert all(limits.excess(one.cost.record()) == 0 and one.cost == cost(one.point) for one in found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    wanted = best(limits)
    assert found[0].score == pytest.approx(max(map(score, wanted)))
    if predict is None:
        assert len([one for one in found if one.point in wanted]) > 0.6 * len(wanted)
    rows = [(-one.score, one.cost.instructions) for one in found]
    assert front(rows) == list(range(len(rows)))


def test_what_does_not_fit_when_built_is_not_returned() -> None:
    def wrong(point: Any) -> dict[str, float]:
        return {"instructions": 1.0 + point["width"], "error": 0.0, "ram": 1.0}

    limits = Limits(ram=300)
    found = search(SPACE, score, cost, limits, wrong, population=12, generations=4)
    assert found and all(one.cost.ram <= 300 for one in found)


def test_equal_seeds_are_equal_and_interrupted_searches_go_on(tmp_path: Path) -> None:
    limits, options = Limits(instructions=80_000), {"population": 10, "generations": 5, "seed": 7}
    whole = search(SPACE, score, cost, limits, roughly, **options)  # type: ignore[arg-type]
    assert search(SPACE, score, cost, limits, roughly, **options) == whole  # type: ignore[arg-type]
    for stop in (3, 25, 47):
        path, failing = tmp_path / f"{stop}.json", Failing(stop)
        with pytest.raises(KeyboardInterrupt):
            search(SPACE, failing, cost, limits, roughly, path=path, **options)  # type: ignore[arg-type]
        assert search(SPACE, score, cost, limits, roughly, path=path, **options) == whole  # type: ignore[arg-type]
    again = search(SPACE, failing, cost, limits, roughly, path=path, **options)  # type: ignore[arg-type]
    assert again == whole, "a search that is done scores nothing more"


def test_nothing_fits_says_what_comes_nearest() -> None:
    with pytest.raises(NothingFits, match=r"the nearest is .* above a limit .*measured.*'?ram 164") as caught:
        search(SPACE, score, cost, Limits(ram=100), population=8, generations=2)
    assert '"width": 1' in str(caught.value)
    with pytest.raises(NothingFits, match="predicted"):
        search(SPACE, score, cost, Limits(ram=10), roughly, population=8, generations=2)


def test_a_space_smaller_than_the_population_ends() -> None:
    space = Space({"width": (1, 2), "depth": (1,), "kernel": (3,)})
    assert len(search(space, score, cost, population=20, generations=3)) == 2


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": "other"}', None])
def test_files_of_other_searches_are_refused(tmp_path: Path, damage: str | None) -> None:
    path = tmp_path / "search.json"
    search(SPACE, score, cost, population=4, generations=1, path=path)
    if damage is None:
        state = json.loads(path.read_text())
        state["parents"] = ["nothing"]
        damage = json.dumps(state)
    kept = path.read_text()
    path.write_text(damage)
    with pytest.raises(ValueError, match="is not the file of this search"):
        search(SPACE, score, cost, population=4, generations=1, path=path)
    assert path.read_text() == damage
    path.write_text(kept)
    with pytest.raises(ValueError, match="other seed"):
        search(SPACE, score, cost, population=4, generations=1, seed=1, path=path)


def test_arguments_that_are_none() -> None:
    with pytest.raises(ValueError, match="objectives must be some of"):
        search(SPACE, score, cost, objectives=("beauty",))
    with pytest.raises(ValueError, match="population must be"):
        search(SPACE, score, cost, population=1)
    with pytest.raises(ValueError, match="predict must give the objectives"):
        search(SPACE, score, cost, predict=lambda point: {"ram": 1})
    with pytest.raises((ValueError, TypeError), match="ram must be"):
        Limits(ram=-1)


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="score must give finite numbers, and gave nan"):
        search(SPACE, lambda point: float("nan"), cost, population=4, generations=1)
