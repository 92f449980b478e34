"""`split`: disjoint parts of a dataset, such as training and validation data.

The part of each row is drawn once, from the seed at the time of `split`, and never changes. A
source that reads rows by number is split by number. Any other dataset is split by position in the
order of its first epoch, so it always runs as in epoch 0; a randomised part is then shuffled in
memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset import config
from mycel.dataset.arguments import check_count
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.nodes.node import Node
from mycel.dataset.nodes.sync_wait import end_early, give_back, leave_out
from mycel.dataset.random_numbers.random_streams import generator
from mycel.dataset.rows.column_blocks import Block, join

Places = np.ndarray[Any, np.dtype[np.int64]]


def part_sizes(sizes: Sequence[Any], rows: int) -> list[int]:
    """Return the sizes of the parts of `rows` rows, from counts or from fractions that sum to 1.

    Fractions are rounded. The first part takes the rows that are left over; rows in excess are
    taken from the first part that has more.
    """
    arguments.sequence("split", "sizes", sizes, "a list of counts or of fractions")
    if not sizes:
        raise ValueError("split: the list of sizes is empty")
    if all(isinstance(size, int) and not isinstance(size, bool) for size in sizes):
        counts = [check_count("split", "a size", size, 1) for size in sizes]
        if sum(counts) != rows:
            raise RuntimeError(f"split: the sizes {counts} sum to {sum(counts)}, but the dataset has {rows} rows")
        return counts
    if not all(isinstance(size, float) for size in sizes):
        raise ValueError(f"split: sizes must be all integers or all floats, not {sizes!r}")
    if any(not 0 < size <= 1 for size in sizes):
        raise ValueError(f"split: fractions must be within (0, 1], not {sizes!r}")
    if abs(sum(sizes) - 1) > 1e-9:
        raise ValueError(f"split: the fractions {sizes!r} sum to {sum(sizes)}, not to 1")
    counts = [round(size * rows) for size in sizes]
    if 0 in counts:
        raise RuntimeError(f"split: {rows} rows are too few for the fractions {sizes!r}: one part would be empty")
    surplus = sum(counts) - rows
    if surplus < 0:
        counts[0] -= surplus
    for place, count in enumerate(counts):
        if surplus > 0 and count > surplus:
            counts[place] -= surplus
            surplus = 0
    return counts


def draw_parts(dataset: Node, sizes: Sequence[Any], randomize: bool) -> list[Places]:
    """Return the positions of the rows in each part of a dataset; see `Dataset.split`."""
    arguments.flag("split", "randomize", randomize)
    rows = dataset._count()
    counts = part_sizes(sizes, rows)
    # A constant that no pass uses, so that parts do not follow a shuffle with the same seed.
    order = generator(config.fresh_seed(), 0, 7).permutation(rows) if randomize else np.arange(rows)
    ends = np.cumsum(counts)
    return [order[end - count : end] for end, count in zip(ends, counts)]


class PartNode(Node):
    """The rows at some positions in the first epoch of a dataset."""

    def __init__(self, input_dataset: Node, part: Places, randomize: bool) -> None:
        super().__init__(input_dataset)
        if randomize and input_dataset.is_synced:
            raise RuntimeError(
                "split: rows cannot be shuffled after sync_wait, whose order they have; split first, or use "
                "randomize=False"
            )
        self.part = np.sort(part)
        self.randomize = randomize

    def _count(self) -> int:
        return len(self.part)

    def _count_is_fixed(self) -> bool:
        return True

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return leave_out(self, run, self._shuffled(run) if self.randomize else self._chosen(run), skip)

    def _chosen(self, run: Run) -> Iterator[Block]:
        start = 0
        last = int(self.part[-1])
        blocks = self.children[0]._blocks(run.first(), 0)
        for block in blocks:
            low, high = np.searchsorted(self.part, (start, start + block.count))
            give_back(self.children[0], run, block.count - int(high - low))
            if high > low:
                yield block.select((self.part[low:high] - start).tolist())
            start += block.count
            if start > last:
                end_early(self.children[0], run, blocks)
                return

    def _shuffled(self, run: Run) -> Iterator[Block]:
        blocks = list(self._chosen(run))
        if not blocks:
            return
        everything = join(blocks)
        order = run.generator(self._height, 8).permutation(everything.count).tolist()
        for start in range(0, len(order), run.block):
            yield everything.select(order[start : start + run.block])

    def is_shuffled(self) -> bool:
        return self.randomize
