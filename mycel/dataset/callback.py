"""Callbacks of pipelines: what `map` calls when epochs and steps begin and end.

A `WaitedDSCallback` is a callback of the training, too, which notes each step and epoch that has
ended there. The pipeline's thread waits for the next one before it goes on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.callback_base import Callback
from mycel._src.foundation.system import locks
from mycel.dataset import config
from mycel.dataset.arguments import check_count
from mycel.dataset.execution.iterator_scope import Scope
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.execution.threaded_stages import is_cancelled
from mycel.dataset.pipeline_errors import said

__all__ = ["DSCallback", "RunContext", "WaitedDSCallback", "check_callbacks"]

# Seconds after which a thread that waits for the training looks whether its iterator is closed.
_LOOK = 0.2


class RunContext:
    """Where a pipeline is: numbers of the epoch, of the step, and of the step in the epoch.

    They count from 1; `ds_begin` sees zeros.
    """

    def __init__(self, cur_epoch_num: int = 0, cur_step_num_in_epoch: int = 0, cur_step_num: int = 0) -> None:
        self.cur_epoch_num = cur_epoch_num
        self.cur_step_num_in_epoch = cur_step_num_in_epoch
        self.cur_step_num = cur_step_num
        # What belongs to the iterator, which says when it is closed.
        self.scope: Scope | None = None


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

    # Whether steps wait for those of the training.
    awaits_steps = False

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


class WaitedDSCallback(Callback, DSCallback):
    """The base class of callbacks of `map` that wait for the training.

    Give an object of a subclass to `map` and to `Model.train`. The first epoch and the first step
    do not wait. Then `sync_epoch_begin` is called once the training's next epoch has ended, and
    `sync_step_begin` once its next step has; a subclass that does not define one does not wait for
    it.

    * `step_size`: how many rows of the `map` the training takes in a step, which is mostly the size
      of a batch.

    Raises RuntimeError where the training does not come within the seconds that
    `config.set_callback_timeout` says.

    >>> import mycel.dataset as ds
    >>> class Losses(ds.WaitedDSCallback):
    ...     def sync_step_begin(self, train_run_context, ds_run_context):
    ...         print(train_run_context.original_args().net_outputs)
    >>> Losses(step_size=32).step_size
    32
    """

    def __init__(self, step_size: int = 1) -> None:
        DSCallback.__init__(self, step_size)
        self.awaits_steps = self._defines("sync_step_begin")
        self.train_run_context: Any = None
        self._changed = locks.condition(locks.reentrant())
        self._over = {"step": False, "epoch": False}

    def sync_epoch_begin(self, train_run_context: Any, ds_run_context: RunContext) -> None:
        """Do something before an epoch of the pipeline, after one of the training has ended."""

    def sync_step_begin(self, train_run_context: Any, ds_run_context: RunContext) -> None:
        """Do something before a step of the pipeline, after one of the training has ended."""

    def epoch_end(self, run_context: Any) -> None:
        """Let the pipeline begin its next epoch."""
        self._has_ended("epoch", run_context)

    def step_end(self, run_context: Any) -> None:
        """Let the pipeline begin its next step."""
        self._has_ended("step", run_context)

    def _has_ended(self, what: str, run_context: Any) -> None:
        with self._changed:
            self.train_run_context = run_context
            self._over[what] = True
            self._changed.notify_all()

    def ds_begin(self, ds_run_context: RunContext) -> None:
        """Forget what an earlier training has done."""
        with self._changed:
            self._over = {"step": False, "epoch": False}

    def ds_epoch_begin(self, ds_run_context: RunContext) -> None:
        """Wait for the training's epoch, and call `sync_epoch_begin`."""
        if ds_run_context.cur_epoch_num > 1 and self._defines("sync_epoch_begin"):
            self._wait("ds_epoch_begin", "epoch", ds_run_context)
            self.sync_epoch_begin(self.train_run_context, ds_run_context)

    def ds_step_begin(self, ds_run_context: RunContext) -> None:
        """Wait for the training's step, and call `sync_step_begin`."""
        if ds_run_context.cur_step_num > self.step_size and self._defines("sync_step_begin"):
            self._wait("ds_step_begin", "step", ds_run_context)
            self.sync_step_begin(self.train_run_context, ds_run_context)

    def _defines(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(WaitedDSCallback, name)

    def _wait(self, name: str, what: str, context: RunContext) -> None:
        seconds = config.get_callback_timeout()
        end = time.monotonic() + seconds
        with self._changed:
            while not self._over[what]:
                if is_cancelled() or (context.scope is not None and context.scope.closed):
                    raise RuntimeError("the iterator was stopped")
                left = end - time.monotonic()
                if left <= 0:
                    raise RuntimeError(
                        f"{name} timed out after {seconds} seconds (config.set_callback_timeout): no {what} of the "
                        "training has ended meanwhile. Give the callback to Model.train, too, and let step_size be "
                        "the number of rows in a batch"
                    )
                self._changed.wait(min(left, _LOOK))
            self._over[what] = False


def check_callbacks(callbacks: Any) -> list[DSCallback]:
    """Return the callbacks of a `map` as a list; raise TypeError for other things."""
    found = [] if callbacks is None else list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for callback in found:
        arguments.instance("map", "each of callbacks", callback, DSCallback)
    return found


class Calls:
    """The calls of callbacks in one pass over a `map`.

    `run` is the pass, `node` the `map`, and `skip` how many of its rows are left out. An epoch is
    one of the consumer: below `repeat` its passes are counted together, as in MindSpore. Steps
    begin in the order of the rows, and end in it; where rows have workers, steps begin before
    earlier ones have ended, in another thread.
    """

    def __init__(self, callbacks: Sequence[DSCallback], node: Any, run: Run, skip: int) -> None:
        self.callbacks = callbacks
        self.run, self.scope = run, run.scope
        self.key = id(node)
        noted = None if self.scope is None else self.scope.notes.get(self.key)
        self.is_first = noted is None
        if noted is None:
            # Where an iterator begins: the rows before were those of an earlier run.
            rows = node._count() if callbacks and (run.epoch or run.passed) else 0
            noted = (run.round, run.passed * rows, run.epoch * rows)
        round_, in_epoch, total = noted
        in_epoch = skip + (in_epoch if round_ == run.round else 0)
        self.begun = self.ended = (in_epoch, total + skip)
        self._note()

    def _note(self) -> None:
        if self.scope is not None:
            self.scope.notes[self.key] = (self.run.round, *self.begun)

    def _call(self, name: str, at: tuple[int, int], of_step: bool = False) -> None:
        context = RunContext(self.run.round + 1, *at)
        context.scope = self.scope
        for callback in self.callbacks:
            if not of_step or (at[0] - 1) % callback.step_size == 0:
                self._one(callback, name, context)

    @staticmethod
    def _one(callback: DSCallback, name: str, context: RunContext) -> None:
        try:
            getattr(callback, name)(context)
        except Exception as error:
            raise RuntimeError(
                f"map: {name} of callback {type(callback).__name__} failed in epoch {context.cur_epoch_num}, "
                f"step {context.cur_step_num_in_epoch}: {said(error)}"
            ) from error

    def begin(self) -> None:
        """Call for the beginning of the pipeline, in its first pass, and of the epoch."""
        if self.is_first:
            context = RunContext()
            context.scope = self.scope
            for callback in self.callbacks:
                self._one(callback, "ds_begin", context)
        if self.is_first or not self.run.passed:
            self._call("ds_epoch_begin", self.begun)

    def step_begin(self) -> None:
        """Call for the beginning of the next step."""
        self.begun = (self.begun[0] + 1, self.begun[1] + 1)
        self._note()
        self._call("ds_step_begin", self.begun, of_step=True)

    def step_end(self) -> None:
        """Call for the end of the next step that ends."""
        self.ended = (self.ended[0] + 1, self.ended[1] + 1)
        self._call("ds_step_end", self.ended, of_step=True)

    def end(self) -> None:
        """Call for the end of the epoch where no pass follows in it."""
        if self.run.is_last:
            self._call("ds_epoch_end", self.begun)
