"""Callbacks of pipelines: what `map` calls when epochs and steps begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel.dataset.arguments import check_count

__all__ = ["DSCallback", "RunContext", "check_callbacks"]


class RunContext:
    """Where a pipeline is: numbers of the epoch, of the step, and of the step in the epoch.

    They count from 1; `ds_begin` sees zeros.
    """

    def __init__(self, cur_epoch_num: int = 0, cur_step_num_in_epoch: int = 0, cur_step_num: int = 0) -> None:
        self.cur_epoch_num = cur_epoch_num
        self.cur_step_num_in_epoch = cur_step_num_in_epoch
        self.cur_step_num = cur_step_num


class DSCallback:
    """The base class of callbacks of `map`, which calls them from the pipeline's thread.

    * `step_size`: how many steps, which are rows of the `map`, there are from one call of
      `ds_step_begin` to the next; the first step is one of those.

    >>> import mycel.dataset as ds
    >>> class Epochs(ds.DSCallback):
    ...     def ds_epoch_begin(self, ds_run_context):
    ...         print("epoch", ds_run_context.cur_epoch_num)
    >>> data = ds.NumpySlicesDataset([1, 2], ["x"]).map(lambda x: x, "x", callbacks=Epochs())
    >>> _ = list(data.create_tuple_iterator(num_epochs=1))
    epoch 1
    """

    def __init__(self, step_size: int = 1) -> None:
        self.step_size = check_count(type(self).__name__, "step_size", step_size, 1)

    def ds_begin(self, ds_run_context: RunContext) -> None:
        """Do something when a pipeline starts."""

    def ds_epoch_begin(self, ds_run_context: RunContext) -> None:
        """Do something when an epoch begins."""

    def ds_epoch_end(self, ds_run_context: RunContext) -> None:
        """Do something when an epoch has ended."""

    def ds_step_begin(self, ds_run_context: RunContext) -> None:
        """Do something before a step, once in every `step_size` steps."""

    def ds_step_end(self, ds_run_context: RunContext) -> None:
        """Do something after a step, once in every `step_size` steps."""


def check_callbacks(callbacks: Any) -> list[DSCallback]:
    """Return the callbacks of a `map` as a list; raise TypeError for other things."""
    found = [] if callbacks is None else list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for callback in found:
        if not isinstance(callback, DSCallback):
            raise TypeError(f"map: callbacks must be DSCallbacks, got {callback!r} of type {type(callback).__name__}")
    return found


class Calls:
    """The calls of callbacks in one pass over a `map`.

    `epoch` is the number of the pass, `before` how many steps the passes before it had, and `step`
    how many steps of this one are over.
    """

    def __init__(self, callbacks: Sequence[DSCallback], epoch: int, before: int, step: int) -> None:
        self.callbacks = callbacks
        self.epoch, self.before, self.step = epoch, before, step

    def _call(self, name: str, of_step: bool = False) -> None:
        context = RunContext(self.epoch + 1, self.step, self.before + self.step)
        for callback in self.callbacks:
            if not of_step or (self.step - 1) % callback.step_size == 0:
                getattr(callback, name)(context)

    def begin(self) -> None:
        """Call for the beginning of the pipeline, in its first epoch, and of the epoch."""
        if not self.epoch and not self.step:
            for callback in self.callbacks:
                callback.ds_begin(RunContext())
        self._call("ds_epoch_begin")

    def step_begin(self) -> None:
        """Call for the beginning of the next step."""
        self.step += 1
        self._call("ds_step_begin", of_step=True)

    def step_end(self) -> None:
        """Call for the end of this step."""
        self._call("ds_step_end", of_step=True)

    def end(self) -> None:
        """Call for the end of the epoch."""
        self._call("ds_epoch_end")
