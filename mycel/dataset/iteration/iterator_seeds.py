"""Seeds of successive iterators over one dataset, as in a program that makes one for each epoch.

With a seed, the first of them gives the same rows in every run of the program, and each that
follows goes on: it draws from a seed of its own, which is made of the seed that was set and of how
many iterators went before. So epochs differ, also in what users' functions draw, and setting the
seed begins anew. An iterator from which one row was taken, to look at it, does not count, so that
ranks of which only one does so go on to take shards of the same order.
"""

from __future__ import annotations

from typing import Any

from mycel.dataset import config
from mycel.dataset.config import UINT32_MAX
from mycel.dataset.nodes.node import Node
from mycel.dataset.random_numbers.random_streams import key_of


def number(dataset: Node) -> int:
    """Return how many iterators over a dataset went before a new one, since the seed was set."""
    since, count = dataset._iterated
    return count if since == config.times_seeded() else 0


def seed_of(number: int) -> int:
    """Return the seed of the iterator of this number, at random where none is set."""
    seed = config.fresh_seed()
    return key_of(seed, number) & UINT32_MAX if number else seed


def begin(dataset: Node, number: int) -> None:
    """Note that iterators go on from one of this number."""
    dataset._iterated = config.times_seeded(), number


def train(dataset: Node, seed: int, number: int) -> None:
    """Note the seed and number of the iterator that a training reads a dataset by."""
    dataset._trained = config.times_seeded(), seed, number


def of_training(dataset: Node) -> tuple[int, int]:
    """Return what `train` noted, or what the first training would."""
    known = dataset._trained
    return known[1:] if known is not None and known[0] == config.times_seeded() else (config.get_seed(), 0)


def with_number(state: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the state of an iterator with its number."""
    return {**state, "before": number} if number and state["seeded"] else state
