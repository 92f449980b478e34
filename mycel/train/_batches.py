"""Datasets as Model sees them: epochs of batches, each a tuple of tensors in the order of the columns.

A dataset is anything with `get_dataset_size` and `create_tuple_iterator` or `create_dict_iterator`, whose iterator gives one epoch for each
``for`` over it. Epochs of `sink_size` batches go on in the dataset where the epoch before stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mycel.tensor import Tensor

__all__ = ["Epochs", "OneBatch", "check_dataset"]


def check_dataset(dataset: Any, function: str, argument: str) -> None:
    """TypeError unless `dataset` can be iterated over as above."""
    makes = hasattr(dataset, "create_tuple_iterator") or hasattr(dataset, "create_dict_iterator")
    if not makes or not hasattr(dataset, "get_dataset_size"):
        raise TypeError(
            f"{function}: {argument} must be a dataset (with get_dataset_size and create_tuple_iterator or create_dict_iterator), "
            f"not {type(dataset).__name__}; arrays become one with mycel.dataset.NumpySlicesDataset((x, y)).batch(size)"
        )


class OneBatch:
    """A dataset of a single batch, given as tensors."""

    def __init__(self, *columns: Tensor) -> None:
        self._columns = columns

    def get_dataset_size(self) -> int:
        """One batch."""
        return 1

    def create_tuple_iterator(self, num_epochs: int = -1) -> Any:
        """The batch, again in every epoch."""
        return _Again(self._columns)


class _Again:
    def __init__(self, columns: tuple[Tensor, ...]) -> None:
        self._columns = columns

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        return iter([self._columns])


class Epochs:
    """The epochs of a dataset: `epoch()` gives the batches of the next one."""

    def __init__(self, dataset: Any, sink_size: int = -1) -> None:
        self._rows: Any
        if hasattr(dataset, "create_tuple_iterator"):
            self._rows = dataset.create_tuple_iterator(num_epochs=-1)
        else:
            self._rows = dataset.create_dict_iterator(num_epochs=-1)
        self._sink_size = sink_size
        self._current: Iterator[Any] = iter(())

    def epoch(self) -> Iterator[tuple[Any, ...]]:
        """The batches of the next epoch."""
        if self._sink_size == -1:
            for row in self._rows:
                yield _columns(row)
            return
        for _ in range(self._sink_size):
            row = next(self._current, None)
            if row is None:
                self._current = iter(self._rows)
                row = next(self._current, None)
                if row is None:
                    raise ValueError("Model: the dataset has no batches")
            yield _columns(row)

    def close(self) -> None:
        """Let the dataset's workers go."""
        if hasattr(self._rows, "stop"):
            self._rows.stop()


def _columns(row: Any) -> tuple[Any, ...]:
    columns = tuple(row.values()) if isinstance(row, dict) else tuple(row) if isinstance(row, (tuple, list)) else (row,)
    return tuple(Tensor(c) if isinstance(c, np.ndarray) and c.dtype.kind not in "USO" else c for c in columns)
