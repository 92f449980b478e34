"""`Callback`: the base class of training callbacks, for modules below `train` that need it."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mycel.train.callback.base import RunContext


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
