"""Datasets as `Model` sees them: epochs of batches, each a tuple of tensors in column order.

A dataset is anything with `get_dataset_size` and `create_tuple_iterator` or `create_dict_iterator`,
whose iterator gives one epoch for each ``for`` over it. Epochs of `sink_size` batches continue in
the dataset where the previous epoch stopped.

Batches are read, and made into tensors, by a thread (`_background.Ahead`) while steps run; it reads
no further than the epochs that were asked for. In the dataset's debug mode
(`mycel.dataset.config.set_debug_mode`) they are read when they are used.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mycel._src.tensors.core.tensor import Tensor
from mycel.dataset import config
from mycel.dataset.execution_options import sending
from mycel.dataset.iteration.iterators import tensor_of
from mycel.dataset.pipeline import Dataset
from mycel.train._background import Ahead

__all__ = ["Epochs", "OneBatch", "check_dataset"]

LONGEST = 1024
_END = object()


def check_dataset(dataset: Any, function: str, argument: str) -> None:
    """Raise TypeError unless `dataset` can be iterated over as described above."""
    makes = hasattr(dataset, "create_tuple_iterator") or hasattr(dataset, "create_dict_iterator")
    if not makes or not hasattr(dataset, "get_dataset_size"):
        raise TypeError(
            f"{function}: {argument} must be a dataset (with get_dataset_size and create_tuple_iterator or "
            "create_dict_iterator), "
            f"not {type(dataset).__name__}; arrays become one with mycel.dataset.NumpySlicesDataset((x, y)).batch(size)"
        )


class OneBatch:
    """A dataset of a single batch, given as tensors."""

    def __init__(self, *columns: Tensor) -> None:
        self._columns = columns

    def get_dataset_size(self) -> int:
        """Return 1, the number of batches."""
        return 1

    def create_tuple_iterator(self, num_epochs: int = -1) -> Any:
        """Return the batch, again in every epoch."""
        return _Again(self._columns)


class _Again:
    def __init__(self, columns: tuple[Tensor, ...]) -> None:
        self._columns = columns

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        return iter([self._columns])


class Epochs:
    """The epochs of a dataset: `epoch()` gives the batches of the next one, `begin()` and
    `take(most)` those of it that are ready.

    There are `count` epochs (None: without end) of `sink_size` batches (-1: the whole dataset), the
    first of `first` batches if that is given. At most `most` batches are read ahead, or the
    dataset's prefetch size if that is larger. A dataset of Mycel's own begins after `had` batches,
    those of an earlier run, so that it is not shuffled again as in the first epochs.
    """

    def __init__(
        self,
        dataset: Any,
        sink_size: int = -1,
        count: int | None = 1,
        first: int | None = None,
        most: int = 0,
        had: int = 0,
    ) -> None:
        self._rows: Any
        if isinstance(dataset, Dataset):
            self._rows = dataset.create_tuple_iterator(num_epochs=-1, output_numpy=True)
            self._rows.begin_after(had)
        elif hasattr(dataset, "create_tuple_iterator"):
            self._rows = dataset.create_tuple_iterator(num_epochs=-1)
        else:
            self._rows = dataset.create_dict_iterator(num_epochs=-1)
        self._closed = False
        closed = weakref.ref(self)
        items = _items(self._rows, sink_size, count, first, isinstance(dataset, Dataset) and dataset.hands_over())
        if most:
            items = _limited(items, lambda: (owner := closed()) is None or owner._closed)
        self._items: Iterator[tuple[Any, int]] | None = items
        self._ahead: Ahead | None = None
        self._most = max(most, config.get_prefetch_size())
        self._inline = config.get_debug_mode() or isinstance(self._rows, _Again)
        if not self._inline and hasattr(self._rows, "produce_here"):
            # One thread reads and converts.
            self._rows.produce_here()
        self._over = False

    def begin(self) -> None:
        """Go to the next epoch after the end of this one."""
        self._over = False

    def take(self, most: int) -> list[tuple[Any, ...]]:
        """Return the batches of this epoch that are ready, at most `most`, waiting for at least
        one.

        The result is empty when the epoch is over. Raises what the dataset raises.
        """
        if self._over:
            return []
        if self._inline:
            assert self._items is not None
            found: list[Any] = [next(self._items, (_END, 0))[0]]
        else:
            if self._ahead is None:
                assert self._items is not None
                self._ahead, self._items = Ahead(self._items, self._most), None
            found = self._ahead.take(most, lambda item: item is _END)
        if not found or found[-1] is _END:
            self._over = True
            return found[:-1]
        return found

    def epoch(self) -> Iterator[tuple[Any, ...]]:
        """Yield the batches of the next epoch."""
        self.begin()
        while True:
            found = self.take(1)
            if not found:
                return
            yield from found

    def close(self) -> None:
        """End the thread, and release the dataset's workers."""
        self._closed = True
        if self._ahead is not None:
            if hasattr(self._rows, "cancel"):
                # The thread may wait for steps that will not come.
                self._rows.cancel()
            self._ahead.close()
        if hasattr(self._rows, "stop"):
            self._rows.stop()


def _items(rows: Any, sink_size: int, count: int | None, first: int | None, shared: bool) -> Iterator[tuple[Any, int]]:
    """Yield the batches of some epochs with their bytes, and a mark after each epoch.

    * `rows`, `sink_size`, `count`, `first`: as in `Epochs`.
    * `shared`: whether tensors may have the memory of arrays.
    """
    done = 0
    current: Iterator[Any] = iter(())
    while count is None or done < count:
        if sink_size == -1:
            for row in rows:
                yield _columns(row, shared)
        else:
            for _ in range(first if done == 0 and first is not None else sink_size):
                row = next(current, None)
                if row is None:
                    current = iter(rows)
                    row = next(current, None)
                    if row is None:
                        raise ValueError("Model: the dataset has no batches")
                yield _columns(row, shared)
        done += 1
        yield _END, 0


def _limited(items: Iterator[tuple[Any, int]], stopped: Callable[[], bool]) -> Iterator[tuple[Any, int]]:
    """Yield the batches, of each epoch no more than `config.set_sending_batches` allows."""
    number = 0
    for item in items:
        if item[0] is _END:
            number = 0
        elif not sending.wait(number, stopped):
            return
        else:
            number += 1
        yield item


def _columns(row: Any, shared: bool) -> tuple[tuple[Any, ...], int]:
    columns = tuple(row.values()) if isinstance(row, dict) else tuple(row) if isinstance(row, (tuple, list)) else (row,)
    made = tuple(
        [tensor_of(c, shared) if isinstance(c, np.ndarray) and c.dtype.kind not in "USO" else c for c in columns]
    )
    return made, sum(int(getattr(c, "nbytes", 0)) for c in made)
