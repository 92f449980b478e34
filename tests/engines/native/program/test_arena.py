"""Places in the arena: the search for a smaller one places each order as if it were the first."""

from __future__ import annotations

import random

import pytest

from mycel._src.engines.native.program import arena


@pytest.mark.parametrize("seed", range(8))
def test_moved_lives_are_placed_as_in_a_new_order(seed: int) -> None:
    draw = random.Random(seed)
    order = []
    for key in range(10 + 8 * seed):
        first = draw.randrange(30)
        order.append((key, draw.choice([0, 1, 16, 100, draw.randrange(4000)]), first, first + draw.randrange(12)))
    search = arena._Search(order, 16)
    places, moved = {}, list(order)
    for _ in range(20):
        places = search.place(order, places, moved)
        offsets, total = arena._place(order, 16)
        assert {key: start for key, (start, _) in places.items()} == offsets
        assert max(end for _, end in places.values()) == total
        order, moved = list(order), draw.sample(order, 2)
        for life in moved:
            order.remove(life)
            order.insert(draw.randrange(len(order) + 1), life)
