"""Kernels that do not depend on each other, run as one parallel step.

A step that has little to do is not worth waking threads for, and an optimizer takes one for each
parameter. So neighbouring kernels are ordered by how many of them each has to wait for, and those
that wait for equally many are a batch: one range, in which each has a share as long as its work,
and which threads split as they do any other (`mycel_batch`). The members of a batch run at one
time: what one reads must not be written by another, also where an output takes the place of an
input, and what one of them needs lives as long as the batch (`Liveness`). Nothing that is computed
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Optional

from mycel.engines.native.kernels.codegen import Kernel
from mycel.engines.native.kernels.nest import Buffer, Nest
from mycel.engines.native.lowering.steps import Step
from mycel.ir.dims import DimLike, product

__all__ = ["UNIT", "batches", "without_shared"]

# The elements of a kernel that needs no company, the bytes of the arena that a batch may keep alive
# for longer, and the work that is worth a second thread.
LARGE = 1 << 22
ROOM = 1 << 22
LEAST = 1 << 17
UNIT = 64


def batches(
    steps: Sequence[Step], aliases: Mapping[int, int], number: Callable[[DimLike], int]
) -> tuple[list[Step], list[list[Step]]]:
    """Return the steps in an order in which the members of each batch are neighbours, and the
    batches.

    `aliases` are the inputs that outputs replace. The members of a batch are given its number.
    """
    order: list[Step] = []
    found: list[list[Step]] = []
    run: list[Step] = []
    room = 0

    def close() -> None:
        for level in _levels(run, aliases):
            order.extend(level)
            if len(level) > 1 and sum(_work(s, number) or 0 for s in level) >= LEAST:
                for s in level:
                    s.batch = len(found)
                found.append(level)
        run.clear()

    for step in steps:
        work = _work(step, number)
        if work is None or work > LARGE:
            close()
            room = 0
            order.append(step)
            continue
        room += sum(number(b.size) * b.dtype.itemsize for b in step.writes if b.place is None)
        if room > ROOM:
            close()
            room = 0
        run.append(step)
    close()
    return order, found


def _work(step: Step, number: Callable[[DimLike], int]) -> Optional[int]:
    """Return how much a kernel has to do; None for other steps."""
    data = step.data
    if isinstance(data, Nest):
        return number(product(loop.extent for loop in data.loops))
    return number(data.work) if isinstance(data, Kernel) else None


def _levels(run: Sequence[Step], aliases: Mapping[int, int]) -> list[list[Step]]:
    """Return the steps by how many of the others each has to wait for."""
    written: dict[Hashable, int] = {}
    read: dict[Hashable, int] = {}
    levels: list[list[Step]] = []
    for step in run:
        reads, writes = ([_memory(b, aliases) for b in side] for side in (step.reads, step.writes))
        level = max([written.get(m, -1) for m in (*reads, *writes)] + [read.get(m, -1) for m in writes], default=-1) + 1
        for m in reads:
            read[m] = max(read.get(m, -1), level)
        for m in writes:
            written[m] = level
        while len(levels) <= level:
            levels.append([])
        levels[level].append(step)
    return levels


def _memory(buffer: Buffer, aliases: Mapping[int, int]) -> Hashable:
    """Return what stands for the memory that a buffer is in."""
    if buffer.place is None or buffer.place[0] == "constant":
        return id(buffer)
    kind, k = buffer.place
    return ("input", aliases[k]) if kind == "output" and k in aliases else (kind, k)


def without_shared(
    takes: Mapping[int, list[tuple[Buffer, Buffer]]], found: Sequence[Sequence[Step]]
) -> dict[int, list[tuple[Buffer, Buffer]]]:
    """Return which results may be written over what ends in their step, less what another member of
    the batch reads.
    """
    kept = dict(takes)
    for members in found:
        readers: dict[int, int] = {}
        for step in members:
            for buffer in step.reads:
                readers[id(buffer)] = readers.get(id(buffer), 0) + 1
        for step in members:
            if id(step) in kept:
                kept[id(step)] = [(a, b) for a, b in kept[id(step)] if readers[id(b)] == 1]
    return kept
