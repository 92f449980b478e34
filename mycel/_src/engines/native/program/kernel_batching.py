"""Kernel batching: independent kernels that run as one parallel step.

A step with little work is not worth waking threads for, and an optimizer takes one for each
parameter. So neighbouring kernels are ordered by their level, the number of kernels one after
another that each has to wait for, and those of one level are a batch: one range, in which each has
a share as long as its work, and which threads divide as they do any other (`mycel_batch`). The
members of a batch run at the same time: no member may write what another reads, also where an
output takes the place of an input, and buffers of one member live as long as the batch
(`Liveness`). Results do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from mycel._src.compiler.ir.dims import DimLike, product
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.loop_nest import Buffer, Nest
from mycel._src.engines.native.steps.step_types import Step

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
    """Return the steps, ordered so that the members of each batch are neighbours, and the batches.

    `aliases` maps outputs to the inputs that they replace. The members of a batch are given its
    number.
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


def _work(step: Step, number: Callable[[DimLike], int]) -> int | None:
    """Return the amount of a kernel's work; None for other steps."""
    data = step.data
    if isinstance(data, Nest):
        return number(product(loop.extent for loop in data.loops))
    return number(data.work) if isinstance(data, Kernel) else None


def _levels(run: Sequence[Step], aliases: Mapping[int, int]) -> list[list[Step]]:
    """Return the steps by level: how many others each has to wait for, one after another."""
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
    """Return a key of the memory that a buffer lies in."""
    if buffer.place is None or buffer.place[0] == "constant":
        return id(buffer)
    kind, k = buffer.place
    return ("input", aliases[k]) if kind == "output" and k in aliases else (kind, k)


def without_shared(
    takes: Mapping[int, list[tuple[Buffer, Buffer]]], found: Sequence[Sequence[Step]]
) -> dict[int, list[tuple[Buffer, Buffer]]]:
    """Return which results may overwrite buffers that end in their step.

    Those that another member of the batch reads are left out.
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
