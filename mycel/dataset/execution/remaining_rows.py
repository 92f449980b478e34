"""Rows of an epoch that are left after runs with other numbers of shards.

A stretch says that so many shards took so many rows each: the first ones of theirs, or those that a
shuffle of theirs gave first. All of them shuffle alike, so one simulation of the buffer tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel.dataset.execution.pass_context import Run, Stretch

Places = np.ndarray[Any, np.dtype[np.int64]]


def undone(order: Places, stretches: Sequence[Stretch], run: Run) -> Places:
    """Return what stretches leave of an order whose rows are dealt out to shards in turn.

    * `order`: the rows.
    * `stretches`, `run`: what was taken, one after the other, and in which pass.
    """
    for stretch in stretches:
        count = stretch[0]
        if len(stretch) == 2:
            order = order[count * stretch[1] :]
            continue
        taken = np.zeros(-(-len(order) // count), bool)
        taken[taken_of(stretch, len(taken), run)] = True
        order = order[~np.repeat(taken, count)[: len(order)]]
    return order


def taken_of(stretch: Stretch, length: int, run: Run) -> Places:
    """Return which of its `length` rows a shard took in a stretch.

    * `stretch`, `run`: what was taken, and in which pass.
    * `length`: how many rows it had.
    """
    if len(stretch) == 2:
        return np.arange(min(stretch[1], length))
    _, rows, buffer, height = stretch
    return buffered_order(run.generator(height), length, buffer)[:rows]


def buffered_order(random: np.random.Generator, count: int, buffer: int) -> Places:
    """Return in which order a shuffle through a buffer gives `count` rows.

    `random` is what it draws from, `buffer` how many rows the buffer has.

    >>> import numpy as np
    >>> from mycel.dataset.execution.remaining_rows import buffered_order
    >>> sorted(buffered_order(np.random.default_rng(0), 5, 2).tolist())
    [0, 1, 2, 3, 4]
    """
    if count <= buffer:
        return random.permutation(count).astype(np.int64)
    waiting = list(range(buffer))
    order: list[int] = []
    for number, place in enumerate(random.integers(0, buffer, count - buffer).tolist(), buffer):
        order.append(waiting[place])
        waiting[place] = number
    return np.array(order + [waiting[place] for place in random.permutation(buffer).tolist()], np.int64)
