"""Random values of an array by their places, so that any part of it can be drawn by itself.

Elements are drawn in row-major order in blocks of `BLOCK`, each by a generator of its own: that of
the array's stream, advanced by a multiple of a fixed odd number, as ``PCG64.jumped`` does it. So
the ranks of a divided array draw the same numbers as one process that has all of it, each little
more than its part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

__all__ = ["BLOCK", "Law", "fill", "fill_part", "runs"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
# Fills an array of one axis with independent values.
Law = Callable[[np.random.Generator, Array], None]

BLOCK = 4096
# The number between the beginnings of blocks: odd and far from any power of two.
_APART = 0x9E3779B97F4A7C15F39CC0605CEDC835


class _Blocks:
    """The blocks of an array of `size` elements of a `dtype`, which `law` draws with generators of
    a `stream`; the last block asked for in part is kept.
    """

    def __init__(self, law: Law, stream: np.random.SeedSequence, size: int, dtype: np.dtype[np.generic]) -> None:
        self.law, self.size = law, size
        self.bits = np.random.PCG64(stream)
        self.start = self.bits.state
        self.generator = np.random.Generator(self.bits)
        self.kept = np.empty(min(size, BLOCK), dtype)
        self.number = -1

    def draw(self, number: int, out: Array) -> None:
        self.bits.state = self.start
        if number:
            self.bits.advance(number * _APART % (1 << 128))
        self.law(self.generator, out)

    def range(self, first: int, out: Array) -> None:
        """Fill `out` with the elements from number `first` on."""
        done, count = 0, len(out)
        while done < count:
            number, inside = divmod(first + done, BLOCK)
            length = min(BLOCK, self.size - number * BLOCK)
            taken = min(length - inside, count - done)
            if taken == length:
                self.draw(number, out[done : done + taken])
            else:
                if number != self.number:
                    self.draw(number, self.kept[:length])
                    self.number = number
                out[done : done + taken] = self.kept[inside : inside + taken]
            done += taken


def fill(law: Law, array: Array, stream: np.random.SeedSequence) -> None:
    """Fill an array with values that `law` draws, in float64 for float64 and in float32 else."""
    fill_part(law, array, array.shape, [None] * array.ndim, stream)


def fill_part(
    law: Law,
    part: Array,
    shape: Sequence[int],
    places: Sequence[Array | None],
    stream: np.random.SeedSequence,
) -> None:
    """Fill a part of an array of `shape`, whose values `law` draws with generators of a `stream`.

    `places` has for each axis the numbers, in ascending order, of what the part has of it; None
    stands for all.
    """
    precision = np.dtype(np.float64 if part.dtype == np.float64 else np.float32)
    if not part.flags.c_contiguous:
        values = np.empty(part.shape, part.dtype)
        fill_part(law, values, shape, places, stream)
        part[...] = values
        return
    blocks, flat, done = _Blocks(law, stream, math.prod(shape), precision), part.reshape(-1), 0
    room = None if part.dtype == precision and part.flags.aligned else np.empty(min(part.size, 1 << 20), precision)
    for first, length in runs(shape, places):
        if room is None:
            blocks.range(first, flat[done : done + length])
            done += length
            continue
        for start in range(first, first + length, len(room)):
            taken = min(len(room), first + length - start)
            blocks.range(start, room[:taken])
            flat[done : done + taken] = room[:taken]
            done += taken


def runs(shape: Sequence[int], places: Sequence[Array | None]) -> Iterator[tuple[int, int]]:
    """Yield the stretches of an array of `shape`, in row-major order, that a part consists of: the
    number of the first element, and how many follow each other.

    >>> list(runs((2, 6), [None, np.array([2, 3])]))
    [(2, 2), (8, 2)]
    """
    if 0 in shape or any(p is not None and not len(p) for p in places):
        return
    cut = max((axis for axis, p in enumerate(places) if p is not None), default=-1)
    if cut < 0:
        yield 0, math.prod(shape)
        return
    own = places[cut]
    assert own is not None
    tail = math.prod(shape[cut + 1 :])
    ends = np.flatnonzero(np.diff(own) != 1)
    firsts = own[np.concatenate([[0], ends + 1])]
    lengths = np.diff(np.concatenate([[0], ends + 1, [len(own)]]))
    inner = [(int(a) * tail, int(n) * tail) for a, n in zip(firsts, lengths)]
    for before in _rows(shape[:cut], places[:cut]):
        start = before * shape[cut] * tail
        for first, length in inner:
            yield start + first, length


def _rows(shape: Sequence[int], places: Sequence[Array | None]) -> Iterator[int]:
    """Yield the numbers of the leading rows of a part."""
    if not shape:
        yield 0
        return
    *outer, size = shape
    own = places[-1]
    for before in _rows(outer, places[:-1]):
        for number in range(size) if own is None else own.tolist():
            yield before * size + number
