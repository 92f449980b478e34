"""Resharding of checkpoints: slices (*boxes*) of one layout filled from those of another.

By its layout (`strategies`) a rank holds a box of each parameter: part k of n along each axis.
Ranks that hold the same box are interchangeable. Elements are moved, never computed with, and not
before they are asked for: what is put together here are values that lie in files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from mycel.train.checkpoint_format import CheckpointError
from mycel.train.stored_values import JoinedValues, StoredValues
from mycel.train.strategies import Layout

Layouts = Mapping[str, Layout] | None


# Boxes.


def box_of(layout: Layout, rank: int, shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the bounds (start, stop) of a rank's part along each axis of a whole parameter of this
    shape.
    """
    parts = [(size // n, k) for size, n, k in zip(shape, layout.cuts(), layout.place(rank))]
    return tuple([(length * k, length * (k + 1)) for length, k in parts])


def whole_shape(layout: Layout, part: Sequence[int]) -> tuple[int, ...]:
    return tuple([size * n for size, n in zip(part, layout.cuts())])


def unsharded(rank: int) -> Layout:
    return Layout((1,), ((),) * rank)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return max(one[0], other[0]), min(one[1], other[1])


def assembled(name: str, source: Layout, target: Layout, rank: int, parts: Mapping[int, StoredValues]) -> StoredValues:
    """Return the part of the parameter `name` that `rank` of the target has.

    `source` and `target` are layouts; `parts` are those that ranks of the source stage hold.
    """
    some = next(iter(parts.values()))
    if len(some.shape) != len(source.axes) or len(some.shape) != len(target.axes):
        count = len(some.shape)
        axes = len(source.axes) if count != len(source.axes) else len(target.axes)
        raise CheckpointError(f"parameter {name!r} has {count} axes in the checkpoint and {axes} in the strategy")
    shape = whole_shape(source, some.shape)
    for size, n in zip(shape, target.cuts()):
        if size % n:
            raise CheckpointError(
                f"parameter {name!r} of shape {list(shape)} cannot be cut into {list(target.cuts())} equal parts"
            )
    wanted = box_of(target, rank, shape)
    holders: dict[tuple[int, ...], list[int]] = {}
    for holder in range(source.count):
        holders.setdefault(source.place(holder), []).append(holder)
    boxes = []
    for ranks in holders.values():
        box = box_of(source, ranks[0], shape)
        common = [_overlap(w, b) for w, b in zip(wanted, box)]
        if any(start >= stop for start, stop in common):
            continue
        present = [r for r in ranks if r in parts]
        if not present:
            raise CheckpointError(
                f"parameter {name!r}: the checkpoint of rank {' or '.join(map(str, ranks))} of the stage is missing"
            )
        part = parts[_nearest(source, present, rank)]
        if part.shape != some.shape or part.kind != some.kind:
            raise CheckpointError(
                f"parameter {name!r} is {part.kind}{list(part.shape)} on one rank and {some.kind}{list(some.shape)} "
                "on another"
            )
        if tuple(common) == box == wanted:
            return part
        bounds = tuple([(start - w, stop - w) for (start, stop), (w, _) in zip(common, wanted)])
        boxes.append((bounds, tuple([start - b for (start, _), (b, _) in zip(common, box)]), part))
    return JoinedValues(tuple([stop - start for start, stop in wanted]), some.kind, boxes)


def _nearest(layout: Layout, ranks: Iterable[int], rank: int) -> int:
    """Return the rank among `ranks`, which hold the same values, that is nearest to `rank`.

    It is the one that agrees with `rank` along most of the device axes that cut nothing.
    """
    rank %= layout.count
    free = layout.unused()

    def distance(candidate: int) -> tuple[int, int]:
        strides = [math.prod(layout.devices[a + 1 :]) for a in free]
        differs = sum(
            candidate // s % layout.devices[a] != rank // s % layout.devices[a] for a, s in zip(free, strides)
        )
        return differs, candidate

    return min(ranks, key=distance)


def needed_ranks(source: Layout, target: Layout, rank: int) -> set[int]:
    """Return the ranks of the source stage whose parts make up the part of `rank` in the target."""
    # Parts are counted in common units of both cuttings, so that no size is needed.
    shape = [a * b for a, b in zip(source.cuts(), target.cuts())]
    wanted = box_of(target, rank, shape)
    holders: dict[tuple[int, ...], list[int]] = {}
    for holder in range(source.count):
        box = box_of(source, holder, shape)
        if all(start < stop for start, stop in [_overlap(w, b) for w, b in zip(wanted, box)]):
            holders.setdefault(source.place(holder), []).append(holder)
    return {_nearest(source, ranks, rank) for ranks in holders.values()}


def device_count(layouts: Layouts) -> int:
    return 1 if layouts is None else next(iter(layouts.values())).count


def stage_count(layouts: Layouts) -> int:
    if layouts is None:
        return 1
    found = sorted({s for entry in layouts.values() for s in entry.stages})
    if found != list(range(len(found))):
        raise CheckpointError(
            f"the strategy has the pipeline stages {found}; the files of all stages must be merged, see "
            "merge_pipeline_strategys"
        )
    return len(found)
