"""Bounds of rounds are never below the rounds that loops run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mycel as ms
from mycel import ops
from mycel._src.compiler.ir.dim_values import evaluate
from mycel._src.compiler.transforms.trip_count_bounds import most_rounds
from mycel.formats.exporting import model_of

KINDS: dict[str, tuple[Callable[[Any, Any], Any], int, int]] = {
    # The condition, the first number, and the step.
    "below": (lambda k, n: k < n, 0, 1),
    "at most": (lambda k, n: k <= n, 0, 1),
    "above": (lambda k, n: n > k, 2, 3),
    "at least": (lambda k, n: n - 1 >= k, 1, 2),
    "both": (lambda k, n: (k < n) & (k < 5), 0, 1),
    "late": (lambda k, n: k < n, 40, 1),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sized", [False, True])
def test_bounds_are_those_of_the_rounds(kind: str, sized: bool) -> None:
    goes_on, first, step = KINDS[kind]

    def program(x: Any) -> Any:
        k, total = ops.full((), first, dtype=ms.int32), x.sum()
        while goes_on(k, x.shape[0] if sized else 9):
            total = total * 2
            k = k + step
        return total

    symbol = ms.Symbol(max=12, min=3, unique=True)
    model = model_of(program, (ms.Tensor(shape=[symbol if sized else 9, 2], dtype=ms.float32),))
    (loop,) = [n for n in model.graph.nodes if n.op == "while_loop"]
    found = most_rounds(loop)
    assert found is not None
    for n in range(3, 13) if sized else (9,):
        rounds, k = 0, first
        while goes_on(k, n):
            rounds, k = rounds + 1, k + step
        name = next(iter(model.sizes), "")
        least = evaluate(found, {name: n})
        assert rounds <= least <= max(rounds, 1) if kind != "both" else rounds <= least <= 9


def test_loops_that_data_end_have_no_bound() -> None:
    def by_value(x: Any) -> Any:
        while x.sum() < 10:
            x = x * 2
        return x

    def by_limit(x: Any) -> Any:
        k = ops.full((), 0, dtype=ms.int32)
        while k < x.sum():
            x, k = x * 2, k + 1
        return x

    def backwards(x: Any) -> Any:
        k = ops.full((), 8, dtype=ms.int32)
        while k < 9:
            x, k = x * 2, k - 1
        return x

    for program in (by_value, by_limit, backwards):
        model = model_of(program, (ms.Tensor(shape=[3], dtype=ms.float32),))
        (loop,) = [n for n in model.graph.nodes if n.op == "while_loop"]
        assert most_rounds(loop) is None
