"""The search against all assignments, on random problems without tensors."""

import itertools

import numpy as np
import pytest

from mycel._src.planner.optimisation_problem import Hold, Item, Link, Problem, quotient
from mycel._src.planner.plan_search import search
from mycel._src.planner.repeated_blocks import classes
from mycel._src.planner.variable_elimination import eliminated, nearly, refined
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


@pytest.mark.parametrize("largest", [1 << 22, 20])
@pytest.mark.parametrize("memory", [False, True])
def test_the_oracle_leaves_no_assignment_out(memory, largest, monkeypatch):
    """With joined tables and with many apart it finds the best of all assignments, one by one."""
    monkeypatch.setattr("tests.planner.exhaustive.LARGEST", largest)
    for seed in range(20):
        problem = random_problem(seed, items=5, memory=memory)
        everything = itertools.product(*(range(i.count) for i in problem.items))
        least = min((problem.seconds(c) for c in everything if problem.fits(c)), default=np.inf)
        seconds, choices = best(problem)
        assert seconds == pytest.approx(least, abs=1e-9) and (choices is None) == (least == np.inf)
        assert choices is None or problem.seconds(choices) == pytest.approx(least, abs=1e-9)
        assert best(problem, least - 1e-6)[1] is None


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


@pytest.mark.parametrize("seed", range(20))
def test_elimination_finds_the_best_assignment_without_a_limit(seed):
    problem = random_problem(seed, memory=False)
    seconds, _ = best(problem)
    assert problem.seconds(eliminated(problem)) == pytest.approx(seconds, abs=1e-9)
    again = refined(problem, [0] * len(problem.items))
    assert seconds - 1e-9 <= problem.seconds(again) <= problem.seconds([0] * len(problem.items))


def test_where_tables_are_too_large_some_links_are_left_out(monkeypatch):
    monkeypatch.setattr("mycel._src.planner.variable_elimination.LARGEST", 30)
    rough = 0
    for seed in range(20):
        problem = random_problem(seed, memory=False)
        apart = Problem(
            problem.items,
            tuple(Link(k.source, (u,), (w,), k.seconds) for k in problem.links for u, w in zip(k.users, k.wants)),
        )
        seconds, _ = best(apart)
        found = refined(apart, nearly(apart))
        assert apart.seconds(found) >= seconds - 1e-9
        rough += apart.seconds(found) > seconds * 1.1 + 1e-9
    assert rough <= 5


def stack(layers: int) -> Problem:
    """Layers of three items each, of which the middle ones hold what they compute."""
    rng = np.random.default_rng(0)
    tables = [rng.integers(0, 20, (4, 4)).astype(float) for _ in range(3)]
    seconds = [rng.integers(0, 20, 4).astype(float) for _ in range(3)]
    held = np.array([8.0, 4.0, 2.0, 1.0])
    items, links = [], []
    for k in range(3 * layers):
        holds = (Hold(held, k, 3 * layers),) if k % 3 == 1 else ()
        items.append(Item(f"v{k}", seconds[k % 3], holds))
        if k:
            links.append(Link(k - 1, (k,), (np.arange(4),), tables[k % 3]))
    return Problem(tuple(items), tuple(links))


def test_repeated_layers_choose_alike_at_no_cost():
    problem = stack(40)
    found = classes(problem, 30)
    assert max(found) < 30 and found[60] == found[63] == found[57] and found[0] != found[3]
    smaller = quotient(problem, found)
    choices = [k % 4 for k in range(len(smaller.items))]
    whole = [choices[c] for c in found]
    assert smaller.seconds(choices) == pytest.approx(problem.seconds(whole))
    assert smaller.memory(choices) == pytest.approx(problem.memory(whole))
    assert search(problem).seconds == pytest.approx(search(problem, small=1000).seconds)


def test_large_problems_keep_to_their_limit():
    free = stack(40)
    most = search(free).bytes
    for share in (0.95, 0.9):
        problem = Problem(free.items, free.links, most * share)
        large, exact = search(problem), search(problem, small=1000)
        assert large.bytes <= most * share and exact.exact
        assert exact.seconds - 1e-6 <= large.seconds <= exact.seconds * 1.15
    with pytest.raises(ValueError, match="no plan holds at most .* bytes on each device; the least"):
        search(Problem(free.items, free.links, 10.0))
