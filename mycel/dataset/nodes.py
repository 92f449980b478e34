"""The nodes that choose, order and combine rows without changing what they hold.

Each `_blocks` hands `skip` on to its children where the rows skipped are known in advance, and drops them itself
otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mycel.dataset.blocks import Block, Column, Reader, Row, drop
from mycel.dataset.core import Dataset, Run, check_count, names, positions
from mycel.dataset.failure import operation_failed
from mycel.dataset.randomness import row_key, using


class ShuffleDataset(Dataset):
    """Rows in random order from a buffer of `buffer_size`; see `Dataset.shuffle`."""

    def __init__(self, input_dataset: Dataset, buffer_size: int) -> None:
        super().__init__(input_dataset)
        self.buffer_size = check_count("shuffle", "buffer_size", buffer_size, 2)

    def _count(self) -> int:
        return self.children[0]._count()

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return drop(self._shuffled(run), skip)

    def _shuffled(self, run: Run) -> Iterator[Block]:
        random = run.generator(self._height)
        reader = Reader(self.children[0]._blocks(run, 0))
        first = reader.read(self.buffer_size)
        if first is None:
            return
        upcoming = reader.read(run.block)
        if upcoming is None:
            order = random.permutation(first.count)
            for start in range(0, first.count, run.block):
                yield first.select(order[start : start + run.block])  # type: ignore[arg-type]
            return
        # Copies, so that one row waiting in the buffer does not keep the memory of its whole block.
        buffer: list[Row] = [tuple(a.copy() for a in row) for row in first.rows()]
        del first
        while upcoming is not None:
            places = random.integers(0, len(buffer), upcoming.count).tolist()
            out: list[Row] = []
            for place, row in zip(places, upcoming.rows()):
                out.append(buffer[place])
                buffer[place] = tuple(a.copy() for a in row)
            yield Block.from_rows(out)
            upcoming = reader.read(run.block)
        rest = random.permutation(len(buffer)).tolist()
        for start in range(0, len(rest), run.block):
            yield Block.from_rows([buffer[i] for i in rest[start : start + run.block]])

    def is_shuffled(self) -> bool:
        return True


class RepeatDataset(Dataset):
    """The rows `count` times over: pass i of epoch e is what epoch e * count + i of the input would be."""

    def __init__(self, input_dataset: Dataset, count: int | None = None) -> None:
        super().__init__(input_dataset)
        self.count = -1 if count is None else check_count("repeat", "count", count, 1, (-1,))

    def _count(self) -> int:
        return self.children[0]._count() * max(1, self.count)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        child = self.children[0]
        if skip and not child._count_is_fixed():
            yield from drop(self._blocks(run, 0), skip)
            return
        number = 0
        if skip:
            size = child._count()
            number, skip = divmod(skip, size) if size else (0, 0)
        base = run.epoch * max(1, self.count)
        while self.count == -1 or number < self.count:
            empty = True
            for block in child._blocks(run.with_epoch(base + number), skip):
                empty = False
                yield block
            if empty and not skip:
                return
            number, skip = number + 1, 0

    def get_repeat_count(self) -> int:
        inner = self.children[0].get_repeat_count()
        return -1 if self.count == -1 or inner == -1 else inner * self.count


class TakeDataset(Dataset):
    """The first `count` rows."""

    def __init__(self, input_dataset: Dataset, count: int) -> None:
        super().__init__(input_dataset)
        self.count = check_count("take", "count", count, 1)

    def _count(self) -> int:
        child = self.children[0]
        if child.get_repeat_count() == -1:
            return self.count if child._count() else 0
        return min(self.count, child._count())

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        left = self.count - skip
        if left <= 0:
            return
        for block in self.children[0]._blocks(run.with_block(min(run.block, left)), skip):
            yield block.slice(0, left)
            left -= block.count
            if left <= 0:
                return

    def get_repeat_count(self) -> int:
        return max(1, self.children[0].get_repeat_count())


class SkipDataset(Dataset):
    """All but the first `count` rows."""

    def __init__(self, input_dataset: Dataset, count: int) -> None:
        super().__init__(input_dataset)
        self.count = check_count("skip", "count", count, 0)

    def _count(self) -> int:
        return max(0, self.children[0]._count() - self.count)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return self.children[0]._blocks(run, skip + self.count)


class FilterDataset(Dataset):
    """The rows that satisfy a predicate."""

    operation = "filter"

    def __init__(
        self,
        input_dataset: Dataset,
        predicate: Callable[..., Any],
        input_columns: str | Sequence[str] | None = None,
        num_parallel_workers: int | None = None,
    ) -> None:
        super().__init__(input_dataset, num_parallel_workers)
        if not callable(predicate):
            raise TypeError(f"filter: expected a function, got {predicate!r} of type {type(predicate).__name__}")
        self.predicate = predicate
        self.input_columns = None if input_columns is None else names(input_columns, "filter: input_columns")

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return drop(self._kept(run), skip)

    def _count_is_fixed(self) -> bool:
        return False

    def _kept(self, run: Run) -> Iterator[Block]:
        present = self.children[0]._columns()
        wanted = self.input_columns or present
        places = positions("filter", wanted, present)
        number = 0
        key, stream = run.key(self._height, 9), run.stream()
        for block in self.children[0]._blocks(run, 0):
            keep: list[int] = []
            with using(stream):
                for index, row in enumerate(block.pick(places).rows()):
                    stream.begin(row_key(key, number + index))
                    try:
                        verdict = bool(self.predicate(*row))
                    except Exception as error:
                        raise operation_failed("filter", self.predicate, wanted, number + index, error) from error
                    if verdict:
                        keep.append(index)
            number += block.count
            if keep:
                yield block if len(keep) == block.count else block.select(keep)


class ProjectDataset(Dataset):
    """Some of the columns, in a given order."""

    def __init__(self, input_dataset: Dataset, columns: str | Sequence[str]) -> None:
        super().__init__(input_dataset)
        self.columns = names(columns, "project: columns")
        self._places = positions("project", self.columns, input_dataset._columns())

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _count(self) -> int:
        return self.children[0]._count()

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return (block.pick(self._places) for block in self.children[0]._blocks(run, skip))


class RenameDataset(Dataset):
    """The same rows under other column names."""

    def __init__(
        self, input_dataset: Dataset, input_columns: str | Sequence[str], output_columns: str | Sequence[str]
    ) -> None:
        super().__init__(input_dataset)
        old = names(input_columns, "rename: input_columns")
        new = names(output_columns, "rename: output_columns")
        if len(old) != len(new):
            raise ValueError(f"rename: {len(old)} input columns {old} but {len(new)} output columns {new}")
        self.columns = input_dataset._columns()
        for place, name in zip(positions("rename", old, self.columns), new):
            self.columns[place] = name
        if len(set(self.columns)) != len(self.columns):
            raise ValueError(f"rename: the columns would be {self.columns}, with a name used twice")

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _count(self) -> int:
        return self.children[0]._count()

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return self.children[0]._blocks(run, skip)


class ZipDataset(Dataset):
    """The columns of several datasets side by side, until the shortest ends."""

    _several = True

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        super().__init__(datasets)
        if len(self.children) < 2:
            raise ValueError(f"zip: expected at least two datasets, got {len(self.children)}")
        self.columns = [name for child in self.children for name in child._columns()]
        if len(set(self.columns)) != len(self.columns):
            raise ValueError(f"zip: the columns would be {self.columns}, with a name used twice; rename some first")

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _count(self) -> int:
        finite = [child for child in self.children if child.get_repeat_count() != -1]
        return min(child._count() for child in finite or self.children)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        readers = [Reader(child._blocks(run, skip)) for child in self.children]
        while True:
            parts: list[Block] = []
            for reader in readers:
                part = reader.read(run.block)
                if part is None:
                    return
                parts.append(part)
            count = min(part.count for part in parts)
            columns: list[Column] = [c for part in parts for c in part.slice(0, count).columns]
            yield Block(columns, count)
            if count < run.block:
                return

    def get_repeat_count(self) -> int:
        return 1 if any(child.get_repeat_count() != -1 for child in self.children) else -1


class ConcatDataset(Dataset):
    """The rows of several datasets with the same columns, one dataset after the other."""

    _several = True

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        super().__init__(datasets)
        if len(self.children) < 2:
            raise ValueError(f"concat: expected at least two datasets, got {len(self.children)}")
        first = self.children[0]._columns()
        for child in self.children[1:]:
            if child._columns() != first:
                raise ValueError(f"concat: the columns differ: {first} and {child._columns()}; use rename or project")

    def _count(self) -> int:
        return sum(child._count() for child in self.children)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        if skip and not self._count_is_fixed():
            yield from drop(self._blocks(run, 0), skip)
            return
        types: list[np.dtype[Any]] | None = None
        for child in self.children:
            if skip and child.get_repeat_count() != -1 and skip >= child._count():
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

    def get_repeat_count(self) -> int:
        return -1 if any(child.get_repeat_count() == -1 for child in self.children) else 1


class FlatMapDataset(Dataset):
    """The datasets that a function makes of every row, one after the other."""

    def __init__(self, input_dataset: Dataset, func: Callable[..., Dataset]) -> None:
        super().__init__(input_dataset)
        if not callable(func):
            raise TypeError(f"flat_map: expected a function, got {func!r} of type {type(func).__name__}")
        self.func = func
        self._names: list[str] | None = None

    def _count_is_fixed(self) -> bool:
        return False

    def _made(self, run: Run) -> Iterator[Dataset]:
        columns = self.children[0]._columns()
        number = 0
        key, stream = run.key(self._height, 9), run.stream()
        for block in self.children[0]._blocks(run, 0):
            for row in block.rows():
                try:
                    with using(stream.begin(row_key(key, number))):
                        result = self.func(*row)
                except Exception as error:
                    raise operation_failed("flat_map", self.func, columns, number, error) from error
                if not isinstance(result, Dataset):
                    raise TypeError(f"flat_map: the function must return a dataset, got {result!r} for row {number}")
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
        return drop((block for dataset in self._made(run) for block in dataset._blocks(run, 0)), skip)

    def get_batch_size(self) -> int:
        return 1


def zip_datasets(datasets: Sequence[Dataset]) -> Dataset:
    """Put the columns of several datasets side by side; see `Dataset.zip`.

    >>> import mycel.dataset as ds
    >>> x = ds.NumpySlicesDataset([1, 2], ["x"], shuffle=False)
    >>> y = ds.NumpySlicesDataset([3, 4], ["y"], shuffle=False)
    >>> ds.zip((x, y)).get_col_names()
    ['x', 'y']
    """
    return ZipDataset(datasets)
