"""Counter-based random numbers, which depend only on where in the pipeline they are drawn.

Every draw is a hash of (seed, epoch, node, row, operation), computed by the SplitMix64 generator of
Steele, Lea and Flood ("Fast splittable pseudorandom number generators", OOPSLA 2014). So a row is
augmented in the same way whichever thread does it, whether alone or within a block, and whether or
not the rows before it were produced: this makes resuming exact. Permutations come from NumPy's
PCG64 generator, seeded with the same tuple. What a user's function draws from `np.random` and
`random` in a seeded pass starts from the same hash (`global_generators.py`).
"""

from __future__ import annotations

import math
import random
import secrets
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on, native_random_draws, routine
from mycel._src.engines.routines.routine_language import Doubles, Int, f64, low_product, low_sum, shifted_down
from mycel._src.foundation.system import locks
from mycel.dataset.random_numbers import global_generators

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_MULTIPLY_1 = 0xBF58476D1CE4E5B9
_MULTIPLY_2 = 0x94D049BB133111EB


def mix(state: int) -> int:
    """Apply SplitMix64's output function: a bijection of 64-bit integers with strong avalanche."""
    state &= _MASK
    state = ((state ^ (state >> 30)) * _MULTIPLY_1) & _MASK
    state = ((state ^ (state >> 27)) * _MULTIPLY_2) & _MASK
    return state ^ (state >> 31)


def mix_array(states: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Apply `mix` to every element of a uint64 array."""
    states = (states ^ (states >> np.uint64(30))) * np.uint64(_MULTIPLY_1)
    states = (states ^ (states >> np.uint64(27))) * np.uint64(_MULTIPLY_2)
    result: np.ndarray[Any, np.dtype[np.uint64]] = states ^ (states >> np.uint64(31))
    return result


def key_of(*parts: int) -> int:
    """Return a 64-bit key that depends on all of these integers and on their order."""
    key = 0
    for part in parts:
        key = mix(key + _GAMMA + mix(part + _GAMMA))
    return key


# As many keys take less time one by one than as an array.
_FEW = 8


def row_keys(key: int, start: int, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the keys of rows `start` .. `start + count - 1` of the node that owns `key`."""
    if count <= _FEW:
        return np.array([row_key(key, start + row) for row in range(count)], np.uint64)
    rows = np.arange(start, start + count, dtype=np.uint64)
    return mix_array(np.uint64(key) + (rows + np.uint64(1)) * np.uint64(_GAMMA))


def row_key(key: int, row: int) -> int:
    """Return the key of one row, equal to the one in `row_keys`."""
    return mix(key + (row + 1) * _GAMMA)


def operation_keys(keys: np.ndarray[Any, np.dtype[np.uint64]], operation: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the keys of rows for the operation at this position in a list."""
    more = ((operation + 1) * _MULTIPLY_1) & _MASK
    if len(keys) <= _FEW:
        return np.array([mix(key + more) for key in keys.tolist()], np.uint64)
    return mix_array(keys + np.uint64(more))


def first_uniform(keys: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the number in [0, 1) that `Stream(key).uniform()` draws first, for every key."""
    states = mix_array(keys + np.uint64(_GAMMA))
    result: np.ndarray[Any, np.dtype[np.float64]] = (states >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return result


def drawn_integers(
    keys: np.ndarray[Any, np.dtype[np.uint64]], most: Sequence[int]
) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """Return what `Stream(key).integer(0, m)` draws, for every key, for one m of `most` after the
    other.

    Each is less than 2**32.
    """
    found = []
    for number, last in enumerate(most, 1):
        bits = mix_array(keys + np.uint64((number * _GAMMA) & _MASK))
        # The upper half of a product of 128 bits.
        count, half = np.uint64(last + 1), np.uint64(32)
        upper = (bits >> half) * count + (((bits & np.uint64(0xFFFFFFFF)) * count) >> half)
        found.append((upper >> half).astype(np.int64))
    return found


# The numbers of the generator with their signs, for routines.
_SIGNED_GAMMA, _SIGNED_1, _SIGNED_2 = (n - (n >> 63 << 64) for n in (_GAMMA, _MULTIPLY_1, _MULTIPLY_2))


def _mixed(state: Int) -> Int:
    first = low_product(state ^ shifted_down(state, 30), _SIGNED_1)
    second = low_product(first ^ shifted_down(first, 27), _SIGNED_2)
    return second ^ shifted_down(second, 31)


@routine
def _uniforms(state: Int, count: Int, result: Doubles) -> None:
    """Write what a stream draws from `state` on, `count` numbers from 0 to 1, to `result`."""
    for i in range(count):
        drawn = _mixed(low_sum(state, low_product(i + 1, _SIGNED_GAMMA)))
        result[i] = f64(shifted_down(drawn, 11)) * 1.1102230246251565e-16


# The first draws of a process, each as a None: code for more of them takes as long as thousands.
_first: list[None] = []
_FIRST = 256
_drawing = locks.lock()


class Stream:
    """A sequence of random numbers that starts from a key.

    While a thread uses it, `np.random` and `random` start from the key as well, unless `seeded` is
    False.

    >>> from mycel.dataset.random_numbers.random_streams import Stream
    >>> Stream(3).uniform() == Stream(3).uniform()
    True
    """

    __slots__ = ("words", "seeded", "drawn", "numpy", "_python", "_python_key")

    def __init__(self, key: int = 0, seeded: bool = False) -> None:
        # The state and the key; see `draws.given_to`.
        self.words = np.array([key & _MASK] * 2, np.uint64)
        self.seeded = seeded
        # What the program's generators have given so far, and for which key; see
        # `global_generators.py`.
        self.drawn: int | None = None
        self.numpy: Any = None
        self._python: random.Random | None = None
        self._python_key: int | None = None

    @property
    def state(self) -> int:
        """The state of the generator."""
        return int(self.words[0])

    @state.setter
    def state(self, state: int) -> None:
        self.words[0] = state & _MASK

    @property
    def key(self) -> int:
        """The key from which the stream began."""
        return int(self.words[1])

    def begin(self, key: int) -> Stream:
        """Start again from another key, and return the stream itself."""
        self.words[:] = key & _MASK
        return self

    def python(self) -> random.Random:
        """Return a generator of the module `random` that started from the key."""
        if self._python_key != self.key or self._python is None:
            # NumPy's generator is of the same kind, and begins from the key itself.
            self._python, self._python_key = random.Random(self.key ^ _MASK), self.key
        return self._python

    def bits(self) -> int:
        """Draw 64 random bits."""
        if len(_first) < _FIRST:
            _first.append(None)
            if len(_first) == _FIRST and are_on():
                # From now on native code draws the same numbers in a tenth of the time.
                native_random_draws.given_to(Stream, self, _GAMMA, (_MULTIPLY_1, _MULTIPLY_2))
        # Two threads that share a stream draw no number both; native code keeps Python's lock.
        with _drawing:
            self.state = state = (self.state + _GAMMA) & _MASK
        return mix(state)

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """Draw a number uniformly from [low, high)."""
        return low + (high - low) * ((self.bits() >> 11) * 2.0**-53)

    def integer(self, low: int, high: int) -> int:
        """Draw an integer uniformly from low .. high, both included.

        Raises ValueError if there is none.
        """
        if high < low:
            raise ValueError(f"integer: the range {low} .. {high} is empty")
        return low + (self.bits() * (high - low + 1) >> 64)

    def normal(self) -> float:
        """Draw a standard normal number (Box and Muller, 1958)."""
        # As `uniform` draws them.
        radius = math.sqrt(-2.0 * math.log(1.0 - (self.bits() >> 11) * 2.0**-53))
        return radius * math.cos(2.0 * math.pi * ((self.bits() >> 11) * 2.0**-53))

    def uniforms(self, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Draw what `count` calls of `uniform` draw."""
        with _drawing:
            before = self.state
            self.state = before + count * _GAMMA
        if are_on():
            found: np.ndarray[Any, np.dtype[np.float64]] = np.empty(count)
            _uniforms(before - (before >> 63 << 64), count, found)
            return found
        drawn = mix_array(np.uint64(before) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GAMMA))
        found = (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return found

    def permutation(self, count: int) -> list[int]:
        """Draw a permutation of 0 .. count - 1 uniformly (Fisher and Yates)."""
        order = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self.integer(0, last)
            order[last], order[other] = order[other], order[last]
        return order

    def choice(self, items: Sequence[Any]) -> Any:
        """Draw one of the items, each equally likely."""
        return items[self.integer(0, len(items) - 1)]


class _Local(threading.local):
    """What a thread draws from."""

    stream: Stream | None = None


_local = _Local()
_eager = Stream(secrets.randbits(64))
_generators = global_generators.local


def reseed_eager(seed: int) -> None:
    """Restart the stream that random transforms draw from outside of pipelines."""
    _eager.state = key_of(seed)


def current_stream() -> Stream:
    """Return the stream of the row that this thread processes, or the process's own.

    The process's own stream serves transforms that are called outside of pipelines.
    """
    return _local.stream or _eager


class using:
    """A context in which `stream` is the current one of this thread.

    Built-in transforms draw from it and, if it is seeded, `np.random` and `random` do. None stands
    for the process's own stream.
    """

    __slots__ = ("stream", "before")

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> Stream | None:
        stream = self.stream
        self.before = _local.stream, _generators.rows
        seeded = stream is not None and stream.seeded
        if seeded:
            global_generators.install()
        _local.stream, _generators.rows = stream, stream if seeded else None
        return stream

    def __exit__(self, *error: object) -> None:
        _local.stream, _generators.rows = self.before


def generator(*parts: int) -> np.random.Generator:
    """Return NumPy's PCG64 generator for permutations, seeded with several integers."""
    return np.random.Generator(np.random.PCG64(key_of(*parts)))
