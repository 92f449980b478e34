"""Names of `mindspore.dataset` that are its own affairs, but that programs take from it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from mycel.base import locks
from mycel.compat.dataset_checks import type_check, type_check_list
from mycel.dataset import DSCallback, pipeline
from mycel.dataset.sources import MappableDataset
from mycel.train import Callback

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


class WaitedDSCallback(Callback, DSCallback):
    """A callback of `map` and of training at once.

    MindSpore's pipelines wait in it for the training step before: `sync_step_begin` and
    `sync_epoch_begin` are called from the pipeline with the context of training.

    * `step_size`: how many steps of the pipeline there are from one call to the next.
    """

    def __init__(self, step_size: int = 1) -> None:
        DSCallback.__init__(self, step_size)
        self._done = locks.condition()
        self._steps = self._epochs = 0
        self._over = False
        self._context: Any = None

    def sync_epoch_begin(self, train_run_context: Any, ds_run_context: Any) -> None:
        """Do something before an epoch of the pipeline, after that of training before it."""

    def sync_step_begin(self, train_run_context: Any, ds_run_context: Any) -> None:
        """Do something before a step of the pipeline, after that of training before it."""

    def begin(self, run_context: Any) -> None:
        with self._done:
            self._over = False

    def end(self, run_context: Any) -> None:
        with self._done:
            self._over = True
            self._done.notify_all()

    def step_end(self, run_context: Any) -> None:
        with self._done:
            self._steps, self._context = self._steps + 1, run_context
            self._done.notify_all()

    def epoch_end(self, run_context: Any) -> None:
        with self._done:
            self._epochs, self._context = self._epochs + 1, run_context
            self._done.notify_all()

    def _wait(self, reached: Callable[[], bool]) -> Any:
        with self._done:
            self._done.wait_for(lambda: self._over or reached())
            return self._context

    def ds_epoch_begin(self, ds_run_context: Any) -> None:
        if ds_run_context.cur_epoch_num > 1:
            context = self._wait(lambda: self._epochs >= ds_run_context.cur_epoch_num - 1)
            self.sync_epoch_begin(context, ds_run_context)

    def ds_step_begin(self, ds_run_context: Any) -> None:
        if ds_run_context.cur_step_num > self.step_size:
            context = self._wait(lambda: self._steps >= ds_run_context.cur_step_num - self.step_size)
            self.sync_step_begin(context, ds_run_context)


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
