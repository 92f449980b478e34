"""Random numbers that depend on nothing but where in the pipeline they are drawn.

Every draw is a hash of (seed, epoch, node, row, operation), computed by the SplitMix64 generator of Steele, Lea and
Flood ("Fast splittable pseudorandom number generators", OOPSLA 2014). So a row is augmented in the same way whichever
thread does it, whether alone or within a block, and whether or not the rows before it were produced: that is what makes
resuming exact. Permutations come from NumPy's PCG64 generator, seeded with the same tuple.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_MULTIPLY_1 = 0xBF58476D1CE4E5B9
_MULTIPLY_2 = 0x94D049BB133111EB


def mix(state: int) -> int:
    """SplitMix64's output function: a bijection of 64-bit integers with strong avalanche."""
    state &= _MASK
    state = ((state ^ (state >> 30)) * _MULTIPLY_1) & _MASK
    state = ((state ^ (state >> 27)) * _MULTIPLY_2) & _MASK
    return state ^ (state >> 31)


def mix_array(states: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """`mix` of every element of a uint64 array."""
    states = (states ^ (states >> np.uint64(30))) * np.uint64(_MULTIPLY_1)
    states = (states ^ (states >> np.uint64(27))) * np.uint64(_MULTIPLY_2)
    result: np.ndarray[Any, np.dtype[np.uint64]] = states ^ (states >> np.uint64(31))
    return result


def key_of(*parts: int) -> int:
    """One 64-bit key from several integers, depending on all of them and on their order."""
    key = 0
    for part in parts:
        key = mix(key + _GAMMA + mix(part + _GAMMA))
    return key


def row_keys(key: int, start: int, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The keys of rows `start` .. `start + count - 1` of the node that owns `key`."""
    rows = np.arange(start, start + count, dtype=np.uint64)
    return mix_array(np.uint64(key) + (rows + np.uint64(1)) * np.uint64(_GAMMA))


def operation_keys(keys: np.ndarray[Any, np.dtype[np.uint64]], operation: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The keys of the rows for the operation at this position in a list."""
    return mix_array(keys + np.uint64(((operation + 1) * _MULTIPLY_1) & _MASK))


def first_uniform(keys: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """For every key, the number in [0, 1) that `Stream(key).uniform()` draws first."""
    states = mix_array(keys + np.uint64(_GAMMA))
    result: np.ndarray[Any, np.dtype[np.float64]] = (states >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return result


class Stream:
    """A sequence of random numbers that starts from a key.

    >>> from mycel.dataset.randomness import Stream
    >>> Stream(3).uniform() == Stream(3).uniform()
    True
    """

    __slots__ = ("state",)

    def __init__(self, key: int) -> None:
        self.state = key & _MASK

    def bits(self) -> int:
        """64 random bits."""
        self.state = (self.state + _GAMMA) & _MASK
        return mix(self.state)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """A number uniform in [low, high)."""
        return low + (high - low) * ((self.bits() >> 11) * 2.0**-53)

    def integer(self, low: int, high: int) -> int:
        """An integer uniform in low .. high, both included; ValueError if there is none."""
        if high < low:
            raise ValueError(f"integer: the range {low} .. {high} is empty")
        return low + (self.bits() * (high - low + 1) >> 64)

    def normal(self) -> float:
        """A standard normal number (Box and Muller, 1958)."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())

    def permutation(self, count: int) -> list[int]:
        """A uniform permutation of 0 .. count - 1 (Fisher and Yates)."""
        order = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self.integer(0, last)
            order[last], order[other] = order[other], order[last]
        return order

    def choice(self, items: Sequence[Any]) -> Any:
        """One of the items, each equally likely."""
        return items[self.integer(0, len(items) - 1)]


_eager = Stream(secrets.randbits(64))
_local = threading.local()


def reseed_eager(seed: int) -> None:
    """Restart the stream that random transforms draw from outside of pipelines."""
    _eager.state = key_of(seed)


def current_stream() -> Stream:
    """The stream of the row being processed in this thread; outside of pipelines, the process's own."""
    stream: Stream | None = getattr(_local, "stream", None)
    return _eager if stream is None else stream


@contextmanager
def using(stream: Stream | None) -> Iterator[Stream | None]:
    """Make `stream` this thread's current one; None stands for the process's own."""
    before = getattr(_local, "stream", None)
    _local.stream = stream
    try:
        yield stream
    finally:
        _local.stream = before


def generator(*parts: int) -> np.random.Generator:
    """NumPy's PCG64 generator for permutations, seeded with several integers."""
    return np.random.Generator(np.random.PCG64(key_of(*parts)))
