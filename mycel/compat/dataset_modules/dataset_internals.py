"""Names of `mindspore.dataset` that are its own affairs, but that programs take from it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from mycel.compat.dataset_modules.dataset_checks import type_check, type_check_list
from mycel.dataset import WaitedDSCallback, pipeline
from mycel.dataset.basic_sources.mappable_source import MappableDataset

__all__ = [
    "Implementation",
    "SourceDataset",
    "UnionBaseDataset",
    "WaitedDSCallback",
    "_get_training_dataset",
    "_reset_training_dataset",
    "_set_training_dataset",
    "check_random_transform_ops",
    "check_transform_op_type",
    "sync_wait_for_dataset",
]

SourceDataset = MappableDataset
"""The base class of sources."""

UnionBaseDataset = pipeline.Dataset
"""The base class of datasets of any content."""


class Implementation(IntEnum):
    """Where MindSpore computes a transform: in C++ or in Python."""

    C = 0
    PY = 1


_training: list[Any] = []


def _set_training_dataset(dataset: Any) -> None:
    """Note the dataset that a program trains with, which goes on after a failure."""
    _training[:] = [dataset]


def _get_training_dataset() -> Any:
    """Return the dataset that was noted; None where there is none."""
    return _training[0] if _training else None


def _reset_training_dataset(global_step: int, dataset_size: int) -> None:
    """Let the dataset that was noted go on after `global_step` of its steps.

    Raises ValueError where `dataset_size`, its steps in an epoch, is not above 0.
    """
    dataset = _get_training_dataset()
    if dataset is None:
        raise RuntimeError("_reset_training_dataset: no dataset was noted; call _set_training_dataset first")
    if dataset_size <= 0:
        raise ValueError(f"_reset_training_dataset: dataset_size must be above 0, not {dataset_size!r}")
    dataset.set_init_step(global_step)


def sync_wait_for_dataset(rank_id: int, rank_size: int, current_epoch: int) -> None:
    """Return at once: MindSpore waits here for other processes to download their files."""
    type_check_list([rank_id, rank_size, current_epoch], (int,), ["rank_id", "rank_size", "current_epoch"])


def check_transform_op_type(ind: int, op: Any) -> None:
    """Raise TypeError for anything but an operation, the one of number `ind` in a list."""
    if not callable(op):
        raise TypeError(f"op_list[{ind}] is neither a transform op (TensorOperation) nor a callable pyfunc.")


def check_random_transform_ops(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a constructor that checks its list of transforms first."""

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        transforms = kwargs.get("transforms", args[0] if args else None)
        type_check(transforms, (list,), "op_list")
        if not transforms:
            raise ValueError("op_list can not be empty.")
        for number, operation in enumerate(transforms):
            check_transform_op_type(number, operation)
        return method(self, *args, **kwargs)

    return checked
