"""Callbacks that report a run: losses, times, histories, and plain functions as hooks.

A thread of the run (`RunContext.later`) prints their output in order, so that steps do not wait for
a terminal.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor
from mycel.train.callback.base import HOOKS, Callback, RunContext, step_loss

__all__ = ["History", "LambdaCallback", "LossMonitor", "TimeMonitor"]

Hook = Callable[[RunContext], Any] | None


def _print(stream: Any, text: str) -> None:
    print(text, file=stream, flush=True)


def _write(stream: Any, where: str, loss: Any) -> None:
    print(f"{where}, loss is {loss}", file=stream, flush=True)


class LossMonitor(Callback):
    """A callback that prints the loss every `per_print_times` steps (0: never), and in Model.fit
    the metrics of each validation.

    A loss that is not finite ends the training with ValueError. Raises ValueError for a negative
    `per_print_times`.

    >>> import numpy as np, mycel as ms, mycel.dataset as ds
    >>> from mycel.train import LossMonitor, Model
    >>> ones = np.ones((4, 1), np.float32)
    >>> data = ds.NumpySlicesDataset((ones, ones), ["x", "y"]).batch(2)
    >>> net = ms.nn.Dense(1, 1, weight_init="zeros", bias_init="zeros")
    >>> optimizer = ms.nn.SGD(net.trainable_params(), 0.0)
    >>> model = Model(net, ms.nn.MSELoss(), optimizer, metrics={"loss"})
    >>> _ = model.train(1, data, LossMonitor())
    epoch: 1 step: 1, loss is 1.0
    epoch: 1 step: 2, loss is 1.0
    """

    writes_later = True

    def __init__(self, per_print_times: int = 1) -> None:
        super().__init__()
        arguments.integer("LossMonitor", "per_print_times", per_print_times, 0, numpy=False)
        self._per_print_times = per_print_times
        self._last_print_time = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        """Start counting."""
        self._last_print_time = run_context.original_args().get("cur_step_num", 0)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Print the loss if it is due."""
        self._show(run_context)

    def _show(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        # The steps of a sink are shown one by one, as they are without.
        outputs = params.get("sink_outputs") or [params.get("net_outputs")]
        for number, output in enumerate(outputs, params.cur_step_num - len(outputs) + 1):
            loss = step_loss(output)
            where = f"epoch: {params.get('cur_epoch_num', 1)} step: {(number - 1) % params.batch_num + 1}"
            if isinstance(loss, float) and not math.isfinite(loss):
                raise ValueError(
                    f"LossMonitor: {where}, loss is {loss}; training stops because it cannot recover from that"
                )
            if self._per_print_times and number - self._last_print_time >= self._per_print_times:
                self._last_print_time = number
                run_context.later(_write, sys.stdout, where, loss)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Print the metrics if this epoch was validated."""
        params = run_context.original_args()
        if params.get("eval_results"):
            text = f"Eval result: epoch {params.cur_epoch_num}, metrics: {params.metrics}"
            run_context.later(_print, sys.stdout, text)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Start counting; a validation within a training is not shown step by step."""
        if "train_network" not in run_context.original_args():
            self._last_print_time = 0

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Print the loss if it is due, unless this is a validation within a training."""
        if "train_network" not in run_context.original_args():
            self._show(run_context)


class TimeMonitor(Callback):
    """A callback that prints the milliseconds of each epoch and of its mean step.

    With `data_time` it also prints the milliseconds spent waiting for batches. `data_size` is the
    number of steps of an epoch; it is read, and checked, only in runs that do not know it.
    """

    writes_later = True

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        super().__init__()
        arguments.flag("TimeMonitor", "data_time", data_time)
        self.data_size = data_size
        self.data_time = data_time
        self._epoch = _Clock()
        self._validation = _Clock()

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Start the epoch's clock."""
        self._epoch = _Clock()

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Note that the batch has arrived."""
        self._epoch.arrived()

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Note that waiting for the next batch begins."""
        self._epoch.waits()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Print the times of an epoch of training."""
        self._show("Train", self._epoch, run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Start the evaluation's clock."""
        self._validation = _Clock()

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Note that the batch has arrived."""
        self._validation.arrived()

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Note that waiting for the next batch begins."""
        self._validation.waits()

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Print the times of an evaluation."""
        self._show("Eval", self._validation, run_context)

    def _show(self, run: str, clock: _Clock, run_context: RunContext) -> None:
        milliseconds = (time.perf_counter() - clock.begun) * 1000
        steps = run_context.original_args().get("batch_num")
        if not steps and self.data_size is None:
            raise ValueError("TimeMonitor: the run does not tell the number of steps of an epoch; give it as data_size")
        if not steps:
            steps = arguments.integer("TimeMonitor", "data_size", self.data_size, 1)
        text = f"{run} epoch time: {milliseconds:5.3f} ms, per step time: {milliseconds / steps:5.3f} ms"
        if self.data_time:
            text += f" (data time: {clock.waited * 1000 / steps:5.3f} ms)"
        run_context.later(_print, sys.stdout, text)


class _Clock:
    """The seconds since the beginning, and of those the seconds spent waiting for batches."""

    def __init__(self) -> None:
        self.begun = self._since = time.perf_counter()
        self.waited = 0.0

    def arrived(self) -> None:
        self.waited += time.perf_counter() - self._since

    def waits(self) -> None:
        self._since = time.perf_counter()


class History(Callback):
    """A callback that keeps the output of each epoch's last step as ``history["net_output"]``, each
    metric of validations, and the epochs' numbers.

    >>> import numpy as np, mycel as ms, mycel.dataset as ds
    >>> from mycel.train import History, Model
    >>> ones = np.ones((4, 1), np.float32)
    >>> data = ds.NumpySlicesDataset((ones, ones), ["x", "y"]).batch(2)
    >>> net = ms.nn.Dense(1, 1, weight_init="zeros", bias_init="zeros")
    >>> optimizer = ms.nn.SGD(net.trainable_params(), 0.0)
    >>> model = Model(net, ms.nn.MSELoss(), optimizer, metrics={"loss"})
    >>> history = History()
    >>> _ = model.train(2, data, history)
    >>> [float(loss) for loss in history.history["net_output"]]
    [1.0, 1.0]
    """

    writes_later = True

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] = {"epoch": []}

    def begin(self, run_context: RunContext) -> None:
        """Reset the list of epochs, but not the history."""
        self.epoch = {"epoch": []}

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Do nothing: a validation begins no new history."""

    def epoch_end(self, run_context: RunContext) -> None:
        """Keep the results of this epoch."""
        params = run_context.original_args()
        self.epoch["epoch"].append(params.get("cur_epoch_num", 1))
        self.history.setdefault("net_output", []).append(_plain(params.get("net_outputs")))
        for name, value in (params.get("metrics") or {}).items():
            self.history.setdefault(name, []).append(value)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Do nothing: the results of a validation are kept at its training epoch's end."""


def _plain(outputs: Any) -> Any:
    if isinstance(outputs, (tuple, list)):
        return [_plain(output) for output in outputs]
    return np.array(outputs.asnumpy())[()] if isinstance(outputs, Tensor) else outputs


class LambdaCallback(Callback):
    """A callback made of functions, each called with the run context at the hook of its name.

    Args:
        on_train_epoch_begin (Callable[[RunContext], Any] | None): Called before each epoch of a
            training. Default: None.
        on_train_epoch_end (Callable[[RunContext], Any] | None): Called after each epoch of a
            training. Default: None.
        on_train_step_begin (Callable[[RunContext], Any] | None): Called before each training step.
            Default: None.
        on_train_step_end (Callable[[RunContext], Any] | None): Called after each training step.
            Default: None.
        on_train_begin (Callable[[RunContext], Any] | None): Called before the training. Default:
            None.
        on_train_end (Callable[[RunContext], Any] | None): Called after the training. Default: None.
        on_eval_epoch_begin (Callable[[RunContext], Any] | None): Called before each epoch of an
            evaluation. Default: None.
        on_eval_epoch_end (Callable[[RunContext], Any] | None): Called after each epoch of an
            evaluation. Default: None.
        on_eval_step_begin (Callable[[RunContext], Any] | None): Called before each batch of an
            evaluation. Default: None.
        on_eval_step_end (Callable[[RunContext], Any] | None): Called after each batch of an
            evaluation. Default: None.
        on_eval_begin (Callable[[RunContext], Any] | None): Called before the evaluation. Default:
            None.
        on_eval_end (Callable[[RunContext], Any] | None): Called after the evaluation. Default:
            None.

    Examples:
        >>> callback = LambdaCallback(on_train_begin=lambda run_context: print("begins"))
        >>> callback.on_train_begin(RunContext({}))
        begins
    """

    def __init__(
        self,
        on_train_epoch_begin: Hook = None,
        on_train_epoch_end: Hook = None,
        on_train_step_begin: Hook = None,
        on_train_step_end: Hook = None,
        on_train_begin: Hook = None,
        on_train_end: Hook = None,
        on_eval_epoch_begin: Hook = None,
        on_eval_epoch_end: Hook = None,
        on_eval_step_begin: Hook = None,
        on_eval_step_end: Hook = None,
        on_eval_begin: Hook = None,
        on_eval_end: Hook = None,
    ) -> None:
        super().__init__()
        given = locals()
        for hook in HOOKS:
            function = given[hook]
            if function is not None:
                arguments.function("LambdaCallback", hook, function, "a function of the run context or None")
            if function is not None:
                setattr(self, hook, function)
