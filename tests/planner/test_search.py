"""The search against all assignments, on random problems without tensors."""

import numpy as np
import pytest

from mycel.planner.model import Hold, Item, Link, Problem
from mycel.planner.search import search
from tests.planner.exhaustive import best


def random_problem(seed: int, items: int = 7, memory: bool = True) -> Problem:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, items)
    made = []
    for i, n in enumerate(counts):
        first = int(rng.integers(0, 4))
        hold = Hold(rng.integers(0, 9, n).astype(float), first, first + int(rng.integers(0, 3)))
        made.append(Item(f"v{i}", rng.integers(0, 20, n).astype(float), (hold,) if memory else ()))
    links = []
    for i in range(items - 1):
        for _ in range(int(rng.integers(1, 3))):
            users = sorted(set(rng.integers(i, items, rng.integers(1, 4)).tolist()))
            layouts = int(rng.integers(1, 4))
            wants = tuple(rng.integers(0, layouts, counts[u]) for u in users)
            table = rng.integers(0, 15, (counts[i], layouts)).astype(float) * (rng.random((counts[i], layouts)) > 0.3)
            held = rng.integers(0, 5, table.shape).astype(float) if memory and rng.random() < 0.4 else None
            links.append(Link(i, tuple(users), wants, table, held, 1, 3))
    return Problem(tuple(made), tuple(links), float(rng.integers(10, 40)) if memory else None)


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_the_search_finds_the_best_assignment(first, memory):
    for seed in range(first, first + 10):
        problem = random_problem(seed, memory=memory)
        seconds, choices = best(problem)
        if choices is None:
            with pytest.raises(ValueError, match="no plan holds at most"):
                search(problem)
            continue
        answer = search(problem)
        assert answer.exact and problem.fits(answer.choices)
        assert answer.seconds == pytest.approx(seconds, abs=1e-6), seed
