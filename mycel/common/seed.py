"""The global seed of random operations, initializers and NumPy's global generator.

Without a seed initializers draw from the operating system. With one, array k that is initialized
after `set_seed(s)` takes a stream made of (s, k). An array whose values are drawn later takes its
stream when it is declared (`next_stream`), and is drawn with it (`drawing_with`).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.system import locks
from mycel.common import generator

__all__ = ["drawing_with", "get_seed", "initializer_rng", "next_stream", "set_seed"]

_lock = locks.lock()
_seed: int | None = None
_drawn: Iterator[int] = itertools.count()
_times = 0


def set_seed(seed: int) -> None:
    """Set the seed of random operations, initializers and NumPy's global generator, and restart all
    sequences.

    Raises TypeError unless the seed is an int, ValueError outside [0, 2**32).

    >>> import mycel as ms
    >>> from mycel.common.seed import set_seed
    >>> set_seed(1)
    """
    global _seed, _drawn, _times
    arguments.integer("set_seed", "the seed", seed)
    if not 0 <= seed < 2**32:
        raise ValueError(f"set_seed: the seed must lie in [0, 2**32), not {seed}")
    with _lock:
        _seed, _drawn, _times = int(seed), itertools.count(), _times + 1
    np.random.seed(int(seed))
    generator.restart(int(seed))


def get_seed() -> int | None:
    """Return the seed that `set_seed` set, or None.

    >>> from mycel.common.seed import get_seed, set_seed
    >>> set_seed(5)
    >>> get_seed()
    5
    """
    return _seed


def times_set() -> int:
    """Return how often `set_seed` was called: what goes on with each use begins anew after it."""
    return _times


class _Local(threading.local):
    stream: np.random.SeedSequence | None = None


_local = _Local()


def next_stream() -> np.random.SeedSequence:
    """Return what the generators of the next array to initialize are made of."""
    if _local.stream is not None:
        return _local.stream
    with _lock:
        return np.random.SeedSequence() if _seed is None else np.random.SeedSequence([_seed, next(_drawn)])


@contextmanager
def drawing_with(stream: np.random.SeedSequence | None) -> Iterator[None]:
    """Let what this thread draws in the block take a stream that was taken before, if any was."""
    before, _local.stream = _local.stream, stream
    try:
        yield
    finally:
        _local.stream = before


def initializer_rng() -> np.random.Generator:
    """Return a NumPy generator for the next array to initialize.

    >>> from mycel.common.seed import initializer_rng
    >>> initializer_rng().random() < 1.0
    True
    """
    return np.random.Generator(np.random.PCG64(next_stream()))
