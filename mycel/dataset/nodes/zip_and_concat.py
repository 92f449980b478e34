"""The nodes that join several datasets: side by side, or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.nodes.node import Node
from mycel.dataset.nodes.sync_wait import end_early, give_back, leave_out
from mycel.dataset.pipeline_errors import InputValueError, operation_failed
from mycel.dataset.random_numbers.random_streams import row_key, using
from mycel.dataset.rows.column_blocks import Block, Column, Reader, plain
from mycel.dataset.samplers import DistributedSampler


def several(operation: str, datasets: Any) -> tuple[Node, ...]:
    """Return one or several datasets as several; TypeError for what is neither.

    `operation` is named in messages.
    """
    if isinstance(datasets, Node):
        return (datasets,)
    if not isinstance(datasets, Iterable):
        raise arguments.wrong_type(operation, "datasets", "a dataset or a list of them", datasets)
    return tuple(datasets)


class ZipNode(Node):
    """The columns of several datasets side by side, until the shortest ends."""

    _several = True

    def __init__(self, datasets: Sequence[Node]) -> None:
        super().__init__(datasets)
        if len(self.children) < 2:
            raise InputValueError(f"zip: there must be at least two datasets, not {len(self.children)}")
        self.columns = [name for child in self.children for name in child._columns()]
        if len(set(self.columns)) != len(self.columns):
            raise InputValueError(
                f"zip: the columns would be {self.columns}, with a name used twice; rename some first"
            )

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _count(self) -> int:
        finite = [child for child in self.children if not child._is_endless()]
        return min(child._count() for child in finite or self.children)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        if self.is_synced:
            # None may ask for more rows than one of the others has released.
            run = run.with_block(1)
        passes = [child._blocks(run, skip) for child in self.children]
        yield from _side_by_side([Reader(blocks) for blocks in passes], run.block)
        for child, blocks in zip(self.children, passes):
            end_early(child, run, blocks)

    def _is_endless(self) -> bool:
        return all(child._is_endless() for child in self.children)


def _side_by_side(readers: Sequence[Reader], most: int) -> Iterator[Block]:
    """Yield the columns of all readers, `most` rows at once, until one of them ends."""
    while True:
        first = readers[0].some(most)
        if first is None:
            return
        parts = [first]
        for reader in readers[1:]:
            part = reader.read(first.count)
            if part is None:
                return
            parts.append(part)
        count = min(part.count for part in parts)
        columns: list[Column] = [c for part in parts for c in part.slice(0, count).columns]
        yield Block(columns, count)
        if count < first.count:
            return


class ConcatNode(Node):
    """The rows of several datasets with the same columns, one dataset after the other."""

    _several = True

    def __init__(self, datasets: Sequence[Node]) -> None:
        super().__init__(datasets)
        if len(self.children) < 2:
            raise InputValueError(f"concat: there must be at least two datasets, not {len(self.children)}")
        first = self.children[0]._columns()
        for child in self.children[1:]:
            if child._columns() != first:
                raise InputValueError(
                    f"concat: the columns differ: {first} and {child._columns()}; use rename or project"
                )

        self._shard: tuple[int, int] | None = None

    def use_sampler(self, sampler: Any) -> None:
        """Keep the rows of one shard: every `num_shards`-th row of all, from `shard_id` on.

        `sampler` is a `DistributedSampler` without shuffling, number of samples or child. Raises
        TypeError or ValueError for others.
        """
        arguments.instance("use_sampler", "the sampler of concat", sampler, DistributedSampler)
        if sampler.shuffles or sampler.num_samples is not None or sampler.child_sampler is not None:
            raise ValueError(
                "use_sampler: the sampler of concat must have shuffle=False and neither num_samples nor a child"
            )
        self._shard = (sampler.num_shards, sampler.shard_id)
        self._counted = None

    def is_sharded(self) -> bool:
        return self._shard is not None or super().is_sharded()

    def _count(self) -> int:
        rows = sum(child._count() for child in self.children)
        if self._shard is None:
            return rows
        count, shard = self._shard
        return max(0, -(-(rows - shard) // count))

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        if self._shard is None:
            return self._whole(run, skip)
        return leave_out(self, run, self._of_shard(*self._shard, run), skip)

    def _of_shard(self, count: int, shard: int, run: Run) -> Iterator[Block]:
        start = 0
        for block in self._whole(run, 0):
            places = range((shard - start) % count, block.count, count)
            start += block.count
            give_back(self, run, block.count - len(places))
            if places:
                yield block.select(list(places))

    def _whole(self, run: Run, skip: int) -> Iterator[Block]:
        if skip and not all(child._count_is_fixed() for child in self.children):
            yield from leave_out(self, run, self._whole(run, 0), skip)
            return
        types: list[np.dtype[Any]] | None = None
        for child in self.children:
            if skip and not child._is_endless() and skip >= child._count():
                skip -= child._count()
                continue
            for position, block in enumerate(child._blocks(run, skip)):
                if position == 0:
                    found = [array.dtype for array in block.row(0)]
                    types = types or found
                    for name, a, b in zip(self._columns(), types, found):
                        if a != b and not (a.kind == b.kind and a.kind in "US"):
                            raise TypeError(
                                f"concat: column {name!r} has type {a} in one dataset and {b} in another; "
                                "convert with transforms.TypeCast"
                            )
                yield block
            skip = 0

    def _is_endless(self) -> bool:
        return any(child._is_endless() for child in self.children)


class FlatMapNode(Node):
    """The datasets that a function makes of the rows, one after the other."""

    def __init__(self, input_dataset: Node, func: Callable[..., Node]) -> None:
        super().__init__(input_dataset)
        arguments.function("flat_map", "func", func)
        self.func = func
        self._names: list[str] | None = None

    def called(self) -> Sequence[Any]:
        return (self.func,)

    def _count_is_fixed(self) -> bool:
        return False

    def _made(self, run: Run) -> Iterator[Node]:
        columns = self.children[0]._columns()
        number = 0
        key, stream = run.key(self._height, 9), run.stream()
        for block in self.children[0]._blocks(run, 0):
            for row in block.rows():
                try:
                    with using(stream.begin(row_key(key, number))):
                        result = self.func(*plain(row))
                except Exception as error:
                    raise operation_failed("flat_map", self.func, columns, number, error) from error
                if not isinstance(result, Node):
                    raise TypeError(
                        f"flat_map: the result of the function must be a dataset, not {result!r} for row {number}"
                    )
                number += 1
                yield result

    def _columns(self) -> list[str]:
        if self._names is None:
            first = next(self._made(self._probe().with_block(1)), None)
            if first is None:
                raise ValueError("flat_map: the dataset has no rows, so its columns are unknown")
            self._names = first._columns()
        return list(self._names)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return leave_out(self, run, self._joined(run), skip)

    def _joined(self, run: Run) -> Iterator[Block]:
        for dataset in self._made(run):
            count = 0
            for block in dataset._blocks(run, 0):
                count += block.count
                yield block
            give_back(self.children[0], run, 1 - count)

    def get_batch_size(self) -> int:
        return 1
