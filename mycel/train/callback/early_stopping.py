"""Callbacks that control training by a watched quantity: early stopping and learning rates.

The watched quantity is ``loss`` (the loss of the epoch's last step), ``eval_loss`` (the mean loss
of the epoch's validation in Model.fit) or the name of a metric of that validation. Data parallel
ranks watch the mean of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.transport.current_transport import transport
from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings.parallel_settings import DATA, HYBRID, current
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.train.callback.base import Callback, RunContext, step_loss

__all__ = ["EarlyStopping", "LearningRateScheduler", "ReduceLROnPlateau", "Watcher", "rate_of", "set_rate"]

# What "auto" takes for errors, as MindSpore does; of all other names more is taken to be better.
_SMALLER_IS_BETTER = frozenset(
    "eval_loss hausdorff_distance loss mae mean_surface_distance mse perplexity root_mean_square_distance".split()
)


class Watcher(Callback):
    """A callback that compares a watched quantity with its best value so far after every epoch.

    `monitor` names the quantity, and `mode` ("min", "max" or "auto") says which values are better.
    A value counts as better if it differs from the best by more than `min_delta`. After `patience`
    epochs without a better value the subclass acts, and prints that with `verbose`. Messages name
    the `owner`, by default the class.
    """

    def __init__(
        self, monitor: str, min_delta: float, patience: int, verbose: bool, mode: str, owner: str = ""
    ) -> None:
        super().__init__()
        self._owner = name = owner or type(self).__name__
        arguments.text(name, "monitor", monitor)
        arguments.choice(name, "mode", mode, ("auto", "min", "max"))
        arguments.integer(name, "patience", patience, 0, numpy=False)
        arguments.number(name, "min_delta", min_delta)
        arguments.flag(name, "verbose", verbose)
        self.monitor = monitor
        self.min_delta = abs(min_delta)
        self.patience = patience
        self.verbose = verbose
        self.mode = mode if mode != "auto" else "min" if monitor in _SMALLER_IS_BETTER else "max"
        self._warned = False
        self._restart()

    def _restart(self) -> None:
        self.wait = 0
        self.best = math.inf if self.mode == "min" else -math.inf

    def _improves(self, current: float, reference: float) -> bool:
        return current < reference - self.min_delta if self.mode == "min" else current > reference + self.min_delta

    def _watched(self, run_context: RunContext) -> float | None:
        params = run_context.original_args()
        values = {"loss": step_loss(params.get("net_outputs"))}
        results = params.get("eval_results") or {}
        values.update({name: value for name, value in results.items() if name != "loss"})
        value = values.get(self.monitor)
        if value is None:
            if not self._warned and (results or not params.get("validates")):
                self._warned = True
                logger.warning(
                    "%s: there is no %r to watch; there are: %s", self._owner, self.monitor, ", ".join(values)
                )
            return None
        return _of_all(float(np.mean(value)))


def _of_all(value: float) -> float:
    """Return the mean of a value over data parallel ranks, so that all of them decide alike."""
    way = transport()
    if way.size == 1 or current().parallel_mode not in (DATA, HYBRID):
        return value
    return float(way.all_reduce(np.array([value]), "sum", range(way.size))[0]) / way.size


class EarlyStopping(Watcher):
    """A callback that stops training when a quantity has not improved for some epochs.

    Two things differ from MindSpore 2.10. There, a `patience` of 0 stops after the first epoch
    whatever its value; here after the first that does not improve. There, no improvement counts if
    a `baseline` is given.

    Args:
        monitor (str): The quantity: "loss", "eval_loss" or a metric. Default: "eval_loss".
        min_delta (float): The least improvement. Default: 0.
        patience (int): After how many epochs without improvement training stops. Default: 0.
        verbose (bool): Whether the stop is printed. Default: False.
        mode (str): Whether a quantity improves by falling ("min") or rising ("max"); "auto" is
            "min" for "loss", "eval_loss" and the metrics that are errors or distances, by their
            names in `mycel.train.names()`, and "max" for all other names. Default: "auto".
        baseline (float | None): Only values better than this count as improvements. Default: None.
        restore_best_weights (bool): Whether the parameters of the best epoch are restored when
            training is stopped. Default: False.

    Examples:
        >>> import numpy as np, mycel as ms, mycel.dataset as ds
        >>> from mycel.train import EarlyStopping, History, Model
        >>> ones = np.ones((4, 1), np.float32)
        >>> data = ds.NumpySlicesDataset((ones, ones), ["x", "y"]).batch(2)
        >>> net = ms.nn.Dense(1, 1, weight_init="zeros", bias_init="zeros")
        >>> optimizer = ms.nn.SGD(net.trainable_params(), 0.0)
        >>> model = Model(net, ms.nn.MSELoss(), optimizer, metrics={"loss"})
        >>> history = History()
        >>> _ = model.fit(9, data, data, callbacks=[EarlyStopping("eval_loss", patience=2),
        ...     history])
        >>> len(history.history["loss"])
        3
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: bool = False,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, min_delta, patience, verbose, mode)
        arguments.optional("EarlyStopping", "baseline", baseline, (int, float), "a number")
        arguments.flag("EarlyStopping", "restore_best_weights", restore_best_weights)
        self.baseline = baseline
        self.restore_best_weights = restore_best_weights
        self.stopped_epoch = 0
        self._best_weights: list[tuple[Parameter, Any]] = []

    def on_train_begin(self, run_context: RunContext) -> None:
        """Start from the beginning, without a best value."""
        self._restart()
        self.stopped_epoch = 0
        self._best_weights = []

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Compare the value, and ask to stop if patience has run out."""
        current = self._watched(run_context)
        if current is None:
            return
        params = run_context.original_args()
        self.wait += 1
        if self._improves(current, self.best):
            self.best = current
            if self.restore_best_weights:
                self._best_weights = [(p, np.array(p.asnumpy())) for p in params.train_network.get_parameters()]
            if self.baseline is None or self._improves(current, self.baseline):
                self.wait = 0
        if self.wait >= max(self.patience, 1):
            self.stopped_epoch = params.cur_epoch_num
            run_context.request_stop()

    def on_train_end(self, run_context: RunContext) -> None:
        """Restore the best parameters if asked to, and print that training was stopped."""
        if self._best_weights and self.stopped_epoch:
            if self.verbose:
                print("Restoring model weights from the end of the best epoch.", flush=True)
            for parameter, value in self._best_weights:
                parameter.set_data(Tensor.from_numpy(value))
        self._best_weights = []
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping", flush=True)


class ReduceLROnPlateau(Watcher):
    """A callback that multiplies the learning rate by a factor when a quantity has not improved for
    some epochs.

    Args:
        monitor (str): As in `EarlyStopping`. Default: "eval_loss".
        factor (float): What the rate is multiplied by. Default: 0.1.
        patience (int): After how many epochs without improvement. Default: 10.
        verbose (bool): Whether reductions are printed. Default: False.
        mode (str): As in `EarlyStopping`. Default: "auto".
        min_delta (float): The least improvement. Default: 0.0001.
        cooldown (int): How many epochs after a reduction do not count. Default: 0.
        min_lr (float): The least rate. Default: 0.

    Raises:
        ValueError: Unless the optimizer has one constant learning rate.
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        mode: str = "auto",
        min_delta: float = 0.0001,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        super().__init__(monitor, min_delta, patience, verbose, mode)
        arguments.real("ReduceLROnPlateau", "factor", factor, above=0, below=1)
        arguments.integer("ReduceLROnPlateau", "cooldown", cooldown, 0)
        arguments.number("ReduceLROnPlateau", "min_lr", min_lr)
        self.factor = factor
        self.cooldown = cooldown
        self.min_lr = min_lr
        self.cooldown_counter = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        """Start from the beginning, without a best value."""
        self._restart()
        self.cooldown_counter = 0

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Compare the value, and reduce the rate if patience has run out."""
        current = self._watched(run_context)
        if current is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._improves(current, self.best):
            self.best = current
            self.wait = 0
        elif self.cooldown_counter == 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(run_context)

    def _reduce(self, run_context: RunContext) -> None:
        rate = rate_of(run_context, "ReduceLROnPlateau")
        old = _decimal(rate)
        if old <= self.min_lr:
            return
        set_rate(rate, max(old * self.factor, self.min_lr))
        self.cooldown_counter = self.cooldown
        self.wait = 0
        if self.verbose:
            epoch = run_context.original_args().cur_epoch_num
            print(f"Epoch {epoch:05d}: ReduceLROnPlateau reducing learning rate to {_decimal(rate)}.", flush=True)


class LearningRateScheduler(Callback):
    """A callback that sets the learning rate after every step to ``learning_rate_function(rate,
    step)``, with the step counted from 1.

    Raises ValueError unless the optimizer has one constant learning rate.

    >>> import numpy as np, mycel as ms, mycel.dataset as ds
    >>> from mycel.train import LearningRateScheduler, Model
    >>> ones = np.ones((4, 1), np.float32)
    >>> data = ds.NumpySlicesDataset((ones, ones), ["x", "y"]).batch(2)
    >>> net = ms.nn.Dense(1, 1, weight_init="zeros", bias_init="zeros")
    >>> optimizer = ms.nn.SGD(net.trainable_params(), 0.0)
    >>> model = Model(net, ms.nn.MSELoss(), optimizer, metrics={"loss"})
    >>> _ = model.train(2, data, LearningRateScheduler(lambda rate, step: 0.1 * step))
    >>> round(float(model.train_network.optimizer.learning_rate), 3)
    0.4
    """

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        super().__init__()
        if not callable(learning_rate_function):
            raise TypeError(f"LearningRateScheduler takes a function of (rate, step), not {learning_rate_function!r}")
        self.learning_rate_function = learning_rate_function

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Set the rate of the next step."""
        rate = rate_of(run_context, "LearningRateScheduler")
        old = _decimal(rate)
        new = self.learning_rate_function(old, run_context.original_args().cur_step_num)
        if not isinstance(new, (int, float, np.number)):
            raise TypeError(f"LearningRateScheduler: the function must give a number, not {type(new).__name__}")
        if new != old:
            set_rate(rate, float(new))


def rate_of(run_context: RunContext, name: str) -> Parameter:
    """Return the learning rate of a training; raises ValueError, with `name`, where it is none."""
    params = run_context.original_args()
    optimizer = params.get("optimizer") or getattr(params.train_network, "optimizer", None)
    if optimizer is None:
        raise ValueError(f"{name}: the model has no optimizer whose learning rate could be set")
    rate = getattr(optimizer, "learning_rate", None)
    if not isinstance(rate, Parameter) or rate.shape != ():
        raise ValueError(f"{name}: the optimizer must have one constant learning rate, not a schedule or groups")
    return rate


def _decimal(rate: Parameter) -> float:
    # The shortest decimal number that is this float32, so that 0.01 reads as 0.01.
    return float(str(rate.asnumpy()[()]))


def set_rate(rate: Parameter, value: float) -> None:
    """Give a learning rate another value."""
    rate.set_data(Tensor(value, rate.dtype))
