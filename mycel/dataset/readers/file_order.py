"""Order of the rows of many files: expanded patterns, shuffling and shards.

Files come in the order of their names and rows in the order of the files. All shards have equally
many rows: consecutive ones, from the first again after the last. All shards of a run see the same
shuffled order.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation.files import fsspec_files
from mycel.dataset.arguments import check_count, check_counts
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.execution.remaining_rows import taken_of, undone
from mycel.dataset.execution_options import kept
from mycel.dataset.readers.coalesced_reads import Pieces
from mycel.dataset.readers.sharded_files import partial_order, remote_files
from mycel.dataset.samplers import BuiltinSampler, Indices, Labels, Shuffle, wants_shuffle


class FileOrder(BuiltinSampler):
    """The order of the rows of files, or of one shard of consecutive rows.

    * `operation`: the name in messages.
    * `shuffle`: how rows are shuffled, if they are.
    * `sizes`: the number of rows of each file.
    * `num_samples`: the largest number of rows.
    * `shards`: the number of shards and the number of this one.
    * `in_pieces`: whether the source can read files in pieces, which Shuffle.PARTIAL permutes.
    * `whole_files`: of how many shards these files are one, where files are divided instead.
    """

    def __init__(
        self,
        operation: str,
        shuffle: Any,
        sizes: list[int],
        num_samples: int | None,
        shards: tuple[int, int] | None,
        in_pieces: bool = False,
        whole_files: int = 0,
    ) -> None:
        super().__init__(num_samples)
        kinds = (Shuffle.FILES, Shuffle.INFILE, *([Shuffle.PARTIAL] if in_pieces else []))
        self.by_file = shuffle if shuffle in kinds else None
        self.shuffles = self.by_file is not None or wants_shuffle(operation, shuffle, kinds)
        self.parts, self.whole_files = shards, whole_files
        # The source fills these when it reads its files.
        self.sizes = sizes
        self.pieces: Pieces | None = None

    def is_sharded(self) -> bool:
        return self.parts is not None or self.whole_files > 0

    def shards(self) -> tuple[int, int] | None:
        return self.parts if self.num_samples is None else None

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        common = run if run.seeded or self.parts is None else Run(0, run.epoch)
        random = common.generator(depth, 7)
        ends = np.cumsum(self.sizes, dtype=np.int64)
        parts = (
            []
            if self.by_file is Shuffle.PARTIAL
            else [np.arange(end - size, end, dtype=np.int64) for end, size in zip(ends, self.sizes)]
        )
        if self.by_file is Shuffle.FILES:
            parts = [parts[i] for i in random.permutation(len(parts))]
        elif self.by_file is Shuffle.INFILE:
            parts = [random.permutation(part) for part in parts]
        order = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        if self.by_file is Shuffle.PARTIAL and rows:
            assert self.pieces is not None
            order = partial_order(random, self.pieces.groups.tolist(), self.pieces.mixed)
        if self.shuffles and self.by_file is None:
            order = random.permutation(order)
        if self.parts is None or not rows:
            return order
        count, shard = self.parts
        chosen: Indices
        if not run.stretches:
            each = -(-rows // count)
            chosen = order[(shard * each + np.arange(each)) % rows]
            return chosen
        order = undone(_left(order, run), run.stretches[1:], run)
        # What other numbers of shards have left is dealt out in turn, so that none is without rows
        # before all are.
        places = np.arange(shard, -(-len(order) // count) * count, count)
        chosen = order[places % max(1, len(order))]
        return chosen


def _left(order: Indices, run: Run) -> Indices:
    """Return the rows of an order that its first stretch leaves, each shard of it its own."""
    first = run.stretches[0]
    each = -(-len(order) // first[0])
    taken = np.zeros(each, bool)
    taken[taken_of(first, each, run)] = True
    rows: Indices = order[~np.resize(taken, len(order))]
    return rows


def find_files(operation: str, patterns: str | Sequence[str]) -> list[str]:
    """Return the files that match names or patterns, in order; ValueError if one matches none."""
    wanted: list[Any] = [patterns] if not isinstance(patterns, (tuple, list)) else list(patterns)
    if not wanted or not all(isinstance(pattern, (str, os.PathLike)) for pattern in wanted):
        raise TypeError(f"{operation}: dataset_files must be text or a list of text, at least one, not {patterns!r}")
    found: list[str] = []
    for pattern in wanted:
        name = fsspec_files.local_name(os.fspath(pattern))
        matches = remote_files(operation, name, ("",)) if fsspec_files.is_remote(name) else glob.glob(name)
        if not matches:
            raise ValueError(f"{operation}: no file matches {os.fspath(pattern)!r}")
        found += matches
    return [kept(operation, name) for name in sorted(found)]


def check_files(
    operation: str, shuffle: Any, num_samples: Any, num_shards: int | None, shard_id: int | None
) -> tuple[int, int] | None:
    """Check the arguments that sources of files have in common, before any file is looked for.

    `operation` is named in messages; `shuffle`, `num_samples`, `num_shards` and `shard_id` are
    those of `TextFileDataset`. Returns (number of shards, shard), or None. Raises TypeError,
    RuntimeError or ValueError.
    """
    check_counts(operation, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id)
    if not isinstance(shuffle, Shuffle):
        wants_shuffle(operation, shuffle)
    return check_shards(operation, num_shards, shard_id)


def check_shards(operation: str, num_shards: int | None, shard_id: int | None) -> tuple[int, int] | None:
    """Return (number of shards, shard), or None.

    Raises RuntimeError where one is missing, and ValueError where it is out of range.
    """
    if num_shards is None and shard_id is None:
        return None
    if num_shards is None or shard_id is None:
        raise RuntimeError(
            f"{operation}: num_shards and shard_id must be given together, not {num_shards} and {shard_id}"
        )
    check_count(operation, "num_shards", num_shards, 1)
    check_count(operation, "shard_id", shard_id, 0)
    if shard_id >= num_shards:
        raise ValueError(f"{operation}: shard_id {shard_id} is not below num_shards {num_shards}")
    return num_shards, shard_id
