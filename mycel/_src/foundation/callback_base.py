"""The base class of training callbacks and what they are given, for modules below `train`."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from mycel._src.foundation import arguments

__all__ = ["Callback", "RunContext"]


class RunContext:
    """The state of a run, shared by all callbacks; any of them can ask the run to stop.

    >>> context = RunContext({"epoch_num": 2})
    >>> context.original_args()["epoch_num"], context.get_stop_requested()
    (2, False)
    """

    def __init__(self, original_args: dict[str, Any], *, later: Callable[..., None] | None = None) -> None:
        arguments.instance("RunContext", "original_args", original_args, dict)
        self._original_args = original_args
        self._stop_requested = False
        self._later = later

    def original_args(self) -> Any:
        """Return the parameters of the run.

        They are a dict; in a Model's run its items are attributes too (``cur_step_num``,
        ``net_outputs``, ...).
        """
        return self._original_args

    def request_stop(self) -> None:
        """Ask the run to stop after this step, or after this epoch's end."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Return whether a stop was asked for."""
        return self._stop_requested

    def later(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Do `task(*arguments)` in a thread beside the training, for writing logs and summaries.

        Tasks run in the order in which they were given, and all before the run ends. Steps do not
        wait for them; an error of a task ends the run at a later step. Outside of a Model's run the
        task is done at once.
        """
        if self._later is None:
            task(*arguments)
        else:
            self._later(task, *arguments)


class Callback:
    """The base of callbacks: subclasses override the hooks that they want.

    The older hooks without ``on_train`` or ``on_eval`` in their names are called by the newer ones,
    for both training and evaluation.

    >>> from mycel.train import Callback, RunContext
    >>> class Count(Callback):
    ...     steps = 0
    ...     def on_train_step_end(self, run_context):
    ...         self.steps += 1
    >>> Count().on_train_step_end(RunContext({}))
    """

    writes_later = False  # whether all that this class prints goes through `RunContext.later`

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return None

    def begin(self, run_context: RunContext) -> None:
        """Run before the first epoch."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Run before an epoch."""

    def epoch_end(self, run_context: RunContext) -> None:
        """Run after an epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Run before a step."""

    def step_end(self, run_context: RunContext) -> None:
        """Run after a step."""

    def end(self, run_context: RunContext) -> None:
        """Run after the last epoch."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Run before training."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Run before an epoch of training."""
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Run after an epoch of training and its validation."""
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Run before a training step; its batch is known as ``train_dataset_element``."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Run after a training step; its loss is known as ``net_outputs``."""
        self.step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Run after training."""
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Run before an evaluation."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Run before the pass over the data of an evaluation."""
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Run after the pass over the data of an evaluation."""
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Run before a batch of an evaluation."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Run after a batch of an evaluation."""
        self.step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """Run after an evaluation; its results are known as ``metrics``."""
        self.end(run_context)
