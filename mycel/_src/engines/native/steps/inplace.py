"""In-place rules: which buffers a kernel reads and may overwrite with its results.

A kernel may write a result over a buffer if it reads that buffer only at the position that it is
about to write, and no more after it has written there. Kernels visit their positions in any order,
on several threads and in vectors, but at each position they load before they store. Kernels with
reductions visit the inner positions once for each stage (`stage_of`: the number of consecutive
reductions that a value depends on), so a buffer must not be read in a later stage than that in
which the result is stored. Results of rows are stored after the last stage, once for each position
of the outer loops, when all of them have been computed. A schedule that computes a position twice,
or reads ahead of what it writes, has to be taken into account here.
"""

from __future__ import annotations

from collections.abc import Sequence

from mycel._src.engines.native.kernels.loop_nest import Access, Buffer, Expr, Nest
from mycel._src.engines.native.steps.step_types import Step

__all__ = ["may_overwrite", "possible_overwrites"]


def possible_overwrites(steps: Sequence[Step]) -> dict[int, list[tuple[Buffer, Buffer]]]:
    """Return, by the id of each kernel's step, pairs of a result and a buffer it may overwrite.

    The sizes still have to agree, and no later step may need the buffer.
    """
    found: dict[int, list[tuple[Buffer, Buffer]]] = {}
    for step in steps:
        if isinstance(step.data, Nest):
            pairs = _pairs(step.data)
            if pairs:
                found[id(step)] = pairs
    return found


def may_overwrite(step: Step, output: Buffer, source: Buffer) -> bool:
    """Return whether a step may overwrite `source` with its result `output`."""
    if not isinstance(step.data, Nest):
        return False
    return any(b is output and a is source for b, a in _pairs(step.data))


def _pairs(nest: Nest) -> list[tuple[Buffer, Buffer]]:
    if any(loop.kind not in ("p", "r") for loop in nest.loops):
        return []
    stages: dict[int, int] = {}
    loads: dict[int, list[tuple[Access, int]]] = {}
    buffers: dict[int, Buffer] = {}

    def stage_of(x: Expr) -> int:
        known = stages.get(id(x))
        if known is None:
            known = stages[id(x)] = max([stage_of(a) for a in x.args], default=0) + (x.kind == "reduced")
        return known

    seen_in: dict[int, set[int]] = {}

    def reads(value: Expr, stage: int) -> None:
        """Note what is loaded for a value that is computed in a stage."""
        seen = seen_in.setdefault(stage, set())
        pending = [value]
        while pending:
            x = pending.pop()
            if id(x) in seen:
                continue
            seen.add(id(x))
            if x.kind == "load":
                access = x.data[0]
                buffers[id(access.buffer)] = access.buffer
                loads.setdefault(id(access.buffer), []).append((access, stage))
                pending += [i for i, *_ in access.dynamic]
            if x.kind != "reduced":
                pending += x.args

    last = 0
    for r in nest.reduces:
        stage = stage_of(r.value)
        reads(r.value, stage)
        if r.valid is not None:
            reads(r.valid, stage)
        last = max(last, stage)
    for s in nest.stores:
        last = max(last, stage_of(s.value))
    for s in nest.stores:
        stage = stage_of(s.value) if s.full else last + 1
        reads(s.value, stage)
        for x, *_ in s.target.dynamic:
            reads(x, stage)
    written: dict[int, int] = {}
    for s in nest.stores:
        written[id(s.target.buffer)] = written.get(id(s.target.buffer), 0) + 1
    found = []
    for s in nest.stores:
        target = s.target
        if target.dynamic or target.guards or s.mode != "set" or written[id(target.buffer)] > 1:
            continue
        # What is written once for a row is written after all that the row reads.
        stage = stage_of(s.value) if s.full else last + 1
        for key, at in loads.items():
            source = buffers[key]
            if key in written or source.dtype.itemsize != target.buffer.dtype.itemsize:
                continue
            if all(access.offset == target.offset and not access.dynamic and when <= stage for access, when in at):
                found.append((target.buffer, source))
    return found
