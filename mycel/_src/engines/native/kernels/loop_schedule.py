"""The schedule of a nest's loops: the choice of tiles, copies of vectors and shares of threads.

Choices depend on the structure of a nest and, where every choice is correct, on the expected sizes
(hints). Few different numbers are chosen, and become part of a kernel's text, so that many shapes
still share a kernel.

* A *tile* transposes loads that are contiguous along another loop than the lanes
  (`register_transpose`). It costs about as much as the vectors that it yields, while a gather costs
  several times that, so it pays unless a tile is mostly edge.
* *Copies* are vectors computed side by side in one iteration. They hide latency. Where columns are
  walked down row by row, each visit of a row moves that many vectors of one page of memory: a visit
  takes the time of about `VISIT` vectors and of the vectors moved. Remaining vectors are computed
  one at a time.
* A *grain* is the share of a range below which another thread costs more than it gains:
  `GRAIN_WORK` operations, some 20 microseconds of one core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from mycel._src.compiler.ir.dim_values import hint, settled_below
from mycel._src.compiler.ir.dims import DimLike, is_one, is_zero
from mycel._src.engines.native.kernels.loop_nest import Access, Nest
from mycel._src.engines.native.kernels.strided_access import small_step
from mycel._src.engines.native.llvm.target import target

__all__ = [
    "better_lanes",
    "column_work",
    "copies",
    "describe",
    "grain",
    "is_transposed",
    "pays_to_copy",
    "row_work",
    "tile_of",
    "transposable",
]

NARROW = 4
GRAIN_WORK = 65536
# The bytes of a line of the cache, and the most parts of columns that all rows are written to.
LINE, MOST_SHARES = 64, 8
# Elements above which an operand leaves the nearest cache before its lines have been used up.
LARGE = 4096
# A loop for lanes: long enough that most vectors are full.
WIDE = 32
VISIT = 4
COLUMN_COPIES = (16, 8, 4, 2, 1)
# More expressions than these need the registers for themselves.
LIGHT, HEAVY = 8, 16
# What a vector under a mask takes: such loads are not fetched ahead.
MASKED = 4


def is_transposed(access: Access, tile: int, vector: int) -> bool:
    """Return whether a load is contiguous along the loop `tile`, and strided along `vector`."""
    step = access.offset.coefficient(vector)
    return (
        not access.guards
        and not access.dynamic
        and is_one(access.offset.coefficient(tile))
        and not is_zero(step)
        and not is_one(step)
        and not small_step(step)
    )


def transposable(nest: Nest, loads: Sequence[Access]) -> list[Access]:
    """Return the loads that may be read a tile ahead.

    No store may write at the same place (`inplace`).
    """
    written = {s.target.offset for s in nest.stores}
    return [a for a in loads if a.offset not in written]


def tile_of(nest: Nest, loads: Sequence[Access]) -> int | None:
    """Return the loop to tile for the loads that are contiguous along it.

    Returns None where there is none or it does not pay.
    """
    vector = len(nest.loops) - 1
    if target().scalar or nest.scalar or nest.reduces or any(loop.kind != "p" for loop in nest.loops):
        return None
    if hint(nest.loops[vector].extent) < NARROW:
        return None
    best, most = None, 0
    for k in range(vector):
        count = sum(is_transposed(a, k, vector) for a in transposable(nest, loads))
        if count > most and hint(nest.loops[k].extent) >= NARROW:
            best, most = k, count
    return best


def better_lanes(extents: Sequence[DimLike], steps: Sequence[DimLike]) -> bool:
    """Return whether the last parallel loop but one should be the lanes instead of the last.

    It should where the last is too short and elements along the other are near each other.
    """
    short = hint(extents[-1]) < NARROW and hint(extents[-2]) >= WIDE
    return short and all(is_zero(s) or is_one(s) or small_step(s) for s in steps)


def pays_to_copy(steps: Mapping[int, DimLike], sizes: Mapping[int, DimLike], inner: int) -> bool:
    """Return whether an operand read along the loop `inner` is worth a copy in that order.

    `steps` and `sizes` are its strides and sizes by loop. It is where it is contiguous along
    another loop, and large.
    """
    step = steps[inner]
    if is_one(step) or small_step(step) or not any(is_one(s) and hint(sizes[k]) >= NARROW for k, s in steps.items()):
        return False
    return hint(sizes[inner]) >= NARROW and prod(hint(d) for d in sizes.values()) >= LARGE


def copies(nest: Nest, lanes: int, weight: int, across: bool, looped: bool) -> int:
    """Return how many vectors one iteration of `nest` computes.

    `lanes` is the vector width; `weight` counts expressions. `looped` says whether a loop runs
    inside that of the lanes, `across` whether it is that of the lanes itself.
    """
    if nest.tile is not None:
        return 1
    if nest.reduces:
        if not across and not looped:
            return 1
        if not across and len(nest.reduces) == 1 and weight < LIGHT:
            return _fewest(nest, lanes, COLUMN_COPIES, VISIT)
        most = 4 if len(nest.reduces) <= 2 and weight < HEAVY else 2
        if across:
            return _accumulators(nest.loops[-1].extent, lanes, most)
        return _fewest(nest, lanes, [c for c in (4, 2, 1) if c <= most], 1)
    return _fewest(nest, lanes, (2, 1), 1) if weight <= LIGHT and all(loop.kind == "p" for loop in nest.loops) else 1


def _accumulators(extent: DimLike, lanes: int, most: int) -> int:
    """Return the number of vectors that keep a sum of `extent` elements along the lanes.

    The order of the sum depends on it, so it is `most` for all sizes; but rows that do not fill so
    many vectors use the first alone, and are faster where the others do not exist.
    """
    return 1 if hint(extent) < most * lanes and settled_below(extent, most * lanes) else most


def _fewest(nest: Nest, lanes: int, choices: Sequence[int], visit: int) -> int:
    """Return the number of copies for which the vector loop takes the least time.

    The vectors that make no whole group run under a mask.
    """
    whole, rest = divmod(hint(nest.loops[-1].extent), lanes)
    masked = visit + MASKED
    return min(choices, key=lambda c: whole // c * (visit + c) + (whole % c + (rest > 0)) * masked)


def describe(nest: Nest, lanes: int, count: int, extent: DimLike) -> str:
    """Return a description of a nest's loops with their kinds, its lanes and its threads.

    `count` is the number of copies of a vector of `lanes`, `extent` the range that threads divide.
    For example ``64p 32r 1024p: 16 lanes of 1024, 16 copies; threads share 64``.
    """
    loops = " ".join(f"{loop.extent}{loop.kind}{'!' if loop.unroll else ''}" for loop in nest.loops)
    parts = [f"{lanes} lanes of {nest.loops[-1].extent}" if lanes > 1 else "one by one"]
    if count > 1:
        parts.append(f"{count} copies")
    if nest.tile is not None:
        parts.append(f"tiles of {nest.loops[nest.tile].extent} for {len(nest.turned)}")
    return f"{loops}: {', '.join(parts)}; " + ("one thread" if is_one(extent) else f"threads share {extent}")


def row_work(nest: Nest, shared: Sequence[int]) -> int:
    """Return the number of iterations for each iteration of the loops that threads divide.

    It is 0 where it depends on unknown sizes.
    """
    inner = [loop.extent for k, loop in enumerate(nest.loops) if k not in shared]
    return prod(inner) if all(type(d) is int for d in inner) else 0  # type: ignore[arg-type]


def column_work(nest: Nest, extent: DimLike, work: DimLike) -> DimLike:
    """Return the work by which threads share columns that all rows of a sequence are written to.

    Each part goes through all rows, so that many narrow ones are slower than one, and two in one
    line of the cache wait for each other. `extent` is the number of columns, `work` is all work.
    """
    if type(extent) is not int or type(work) is not int or not any(loop.kind == "s" for loop in nest.loops):
        return work
    line = max(LINE // min(s.target.buffer.dtype.itemsize for s in nest.stores), -(-extent // MOST_SHARES))
    return min(work, max(GRAIN_WORK * extent // line, 1))


def grain(extent: int, work: int) -> int:
    """Return the smallest part of a range that one thread takes; 0 where it stays whole."""
    return 0 if extent == 1 else max(1, -(-GRAIN_WORK * extent // max(work, 1)))
