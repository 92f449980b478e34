"""Numbers of beta distributions, each from a seed of its own, as NumPy's generators draw them.

`numpy.random.Generator(PCG64(seed))` takes 20 microseconds to make, nearly all for what surrounds
it. Here one generator of a thread is set to the states that PCG64 begins with, which a routine
computes for all seeds: those of NumPy's `SeedSequence`, which is O'Neill's "Developing a seed_seq
alternative" (2015).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on, routine
from mycel._src.engines.routines.routine_language import Int, Ints, i32

__all__ = ["betas"]

_MULTIPLY = 0x2360ED051FC65DA44385DF649FCCF645
_MASK = (1 << 128) - 1
_POOL = 4


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


# The numbers of the mixing, as integers of 32 bits.
_FIRST, _FACTOR = _signed(0x43B0D7E5), _signed(0x931E8875)
_LAST, _LAST_FACTOR = _signed(0x8B51F9DD), _signed(0x58F38DED)
_LEFT, _RIGHT = _signed(0xCA01F9DD), _signed(0x4973F715)


def _folded(value: Any) -> Any:
    """Return the upper half of a word mixed into the lower one."""
    return value ^ ((value >> 16) & 65535)


@routine
def spread(seeds: Ints, count: Int, pool: Ints, states: Ints) -> None:
    """Write the eight words that a sequence of seeds gives for each seed of two words.

    * `seeds`, `count`: the seeds, and how many there are.
    * `pool`: memory for four words.
    * `states`: the words.
    """
    for n in range(count):
        factor = i32(_FIRST)
        for i in range(4):
            value = i32(0)
            if i < 2:
                value = seeds[2 * n + i]
            value = value ^ factor
            factor = factor * i32(_FACTOR)
            pool[i] = _folded(value * factor)
        for source in range(4):
            for target in range(4):
                if source != target:
                    value = pool[source] ^ factor
                    factor = factor * i32(_FACTOR)
                    pool[target] = _folded(i32(_LEFT) * pool[target] - i32(_RIGHT) * _folded(value * factor))
        factor = i32(_LAST)
        for i in range(8):
            value = pool[i & 3] ^ factor
            factor = factor * i32(_LAST_FACTOR)
            states[8 * n + i] = _folded(value * factor)


_held = threading.local()


def _states(seeds: Sequence[int]) -> list[list[int]]:
    """Return the four words of 64 bits from which PCG64 begins, for each seed of 64 bits."""
    states = np.empty(8 * len(seeds), np.int32)
    spread(np.array(seeds, np.uint64).view(np.int32), len(seeds), np.empty(_POOL, np.int32), states)
    found: list[list[int]] = states.view(np.uint64).reshape(-1, 4).tolist()
    return found


def betas(seeds: Sequence[int], alpha: float) -> list[float]:
    """Return a number of the distribution Beta(alpha, alpha) for each seed of 64 bits.

    It is what `numpy.random.Generator(numpy.random.PCG64(seed)).beta(alpha, alpha)` gives.
    """
    if not are_on() or not seeds:
        return [float(np.random.Generator(np.random.PCG64(seed)).beta(alpha, alpha)) for seed in seeds]
    generator: np.random.Generator | None = getattr(_held, "generator", None)
    if generator is None:
        generator = _held.generator = np.random.Generator(np.random.PCG64(0))
    bits: Any = generator.bit_generator
    found = []
    for high, low, other_high, other_low in _states(seeds):
        step = ((other_high << 64 | other_low) << 1 | 1) & _MASK
        state = (((step + (high << 64 | low)) & _MASK) * _MULTIPLY + step) & _MASK
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": step},
            "has_uint32": 0,
            "uinteger": 0,
        }
        found.append(float(generator.beta(alpha, alpha)))
    return found
