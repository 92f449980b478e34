"""FFT planning: the factors of a size that take the least time.

What a pass costs is counted from the code of its factor, with a share for the memory that it reads
and writes.
"""

from __future__ import annotations

import functools

from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.operations.fourier.fourier_codelets import RADICES, Lanes

__all__ = ["radices_of", "sides_of"]

# Cycles that turning round and multiplying takes on the way through a table, and on the way of many
# sequences; of these, what it takes to bring them from memory.
TABLE, LINES, FAR = 16.0, 16.0, 10.0
# Vector instructions in the time of one cycle, cycles that a pass takes to move a complex vector,
# and values that registers hold.
PER_CYCLE, MOVED = 2, 5.0


@functools.cache
def _cost(radix: int) -> float:
    """Return the cycles of a pass for each complex vector."""
    code = Code()
    Lanes(code, "float", 1).transform([(f"%r{k}", f"%i{k}") for k in range(radix)])
    text = code.function("void", "f", "")
    operations = text.count(" = ") - text.count("fneg")
    return (operations + 4 * (radix - 1)) / radix / PER_CYCLE + MOVED


@functools.cache
def radices_of(size: int) -> tuple[int, ...]:
    """Return factors of a size, each of them one of `RADICES`, smallest first.

    There are none where a prime factor is larger.
    """
    found: tuple[int, ...] = ()
    least = float("inf")
    for radix in RADICES:
        if size % radix:
            continue
        rest = () if radix == size else radices_of(size // radix)
        if radix != size and not rest:
            continue
        candidate = tuple(sorted((radix, *rest)))
        cost = sum(map(_cost, candidate))
        if cost < least:
            found, least = candidate, cost
    return found


@functools.cache
def sides_of(size: int, lanes: int, sequences: int) -> tuple[int, int] | None:
    """Return the rows and columns of the table by which contiguous sequences are transformed.

    None says that `lanes` sequences at once take less time, or there is no table with sides of at
    least so many; there are `sequences` of them.
    """
    found, least = None, (_passes(size) + LINES + FAR) * max(lanes / sequences, 1)
    for down in range(lanes, size // lanes + 1):
        across = size // down
        if size % down or not radices_of(down) or not radices_of(across):
            continue
        cost = _passes(down) * _waste(across, lanes) + (_passes(across) + TABLE) * _waste(down, lanes)
        if cost < least:
            found, least = (down, across), cost
    return found


def _passes(size: int) -> float:
    return sum(map(_cost, radices_of(size)))


def _waste(size: int, lanes: int) -> float:
    """Return how many lanes are used for each that is needed."""
    return -(-size // lanes) * lanes / size
