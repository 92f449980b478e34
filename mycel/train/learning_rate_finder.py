"""`find_learning_rate`: the learning-rate range test (Smith, 2017).

The model trains for a number of steps while its learning rate grows by a constant factor. Losses
are averaged with exponentially falling weights, corrected for their beginning. The rate at which
the average falls fastest, per factor of the rate, is suggested: larger ones fall no faster, and
soon diverge. Afterwards the model is as before.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.generator import Generator, get_rng_state, set_rng_state
from mycel.train.callback.base import Callback, RunContext, step_loss
from mycel.train.callback.early_stopping import rate_of, set_rate
from mycel.train.model import Model

__all__ = ["LearningRateCurve", "find_learning_rate"]

KEPT = 0.9
DIVERGED = 4.0


@dataclass(frozen=True)
class LearningRateCurve:
    """The losses of training steps with growing learning rates, and the rate that they suggest.

    Args:
        rates (tuple[float, ...]): The learning rates.
        losses (tuple[float, ...]): The loss at each.
        smoothed (tuple[float, ...]): The losses, smoothed.
        suggestion (float): The rate that they suggest; NaN where the loss never falls.

    Examples:
        >>> LearningRateCurve((0.1, 1.0), (2.0, 1.0), (2.0, 1.5), 0.1).suggestion
        0.1
    """

    rates: tuple[float, ...]
    losses: tuple[float, ...]
    smoothed: tuple[float, ...]
    suggestion: float


class _Growing(Callback):
    """A callback that sets the rate before each step, and stops where the loss has diverged."""

    def __init__(self, rates: list[float]) -> None:
        super().__init__()
        self.rates, self.losses, self.smoothed = rates, list[float](), list[float]()
        self._average = 0.0

    def on_train_step_begin(self, run_context: RunContext) -> None:
        set_rate(rate_of(run_context, "find_learning_rate"), self.rates[len(self.losses)])

    def on_train_step_end(self, run_context: RunContext) -> None:
        loss = step_loss(run_context.original_args().get("net_outputs"))
        if not isinstance(loss, float):
            raise TypeError(f"find_learning_rate: the training step must give a loss, not {type(loss).__name__}")
        self.losses.append(loss)
        self._average = KEPT * self._average + (1 - KEPT) * loss
        self.smoothed.append(self._average / (1 - KEPT ** len(self.losses)))
        lowest, first = min(self.smoothed), self.smoothed[0]
        diverged = self.smoothed[-1] - lowest > (DIVERGED - 1) * max(abs(lowest), abs(first - lowest))
        if not math.isfinite(loss) or diverged or len(self.losses) == len(self.rates):
            run_context.request_stop()


def find_learning_rate(
    model: Model, train_dataset: Any, low: float = 1e-7, high: float = 10.0, steps: int = 100
) -> LearningRateCurve:
    """Return the course of the loss while a model trains with growing learning rates.

    The optimizer must have one constant learning rate; its value is not used. The trial ends early
    where the loss is not finite, or much larger than at its best. Weights, states of the optimizer,
    modes of the Cells and states of random numbers are afterwards as before.

    Args:
        model (Model): The model.
        train_dataset (Dataset): As in `Model.train`; begins again as often as needed.
        low (float): The first rate. Default: 1e-07.
        high (float): The last rate. Default: 10.0.
        steps (int): The number of training steps. Default: 100.

    Returns:
        LearningRateCurve: The course of the loss.

    Raises:
        ValueError, TypeError: For arguments that do not fit, and what the training raises.

    Examples:
        >>> import numpy as np, mycel as ms, mycel.dataset as ds
        >>> from mycel.train import Model, find_learning_rate
        >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(32, 2)
        >>> columns = (x, x @ np.float32([[1], [2]]))
        >>> data = ds.NumpySlicesDataset(columns, ["x", "y"], shuffle=False).batch(32)
        >>> net = ms.nn.Dense(2, 1, weight_init="zeros")
        >>> model = Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params()))
        >>> curve = find_learning_rate(model, data, 1e-4, 10.0, steps=40)
        >>> 1e-3 < curve.suggestion < 3, net.weight.tolist()
        (True, [[0.0, 0.0]])
    """
    name = "find_learning_rate"
    arguments.instance(name, "model", model, Model)
    low, high = arguments.number(name, "low", low, above=0), arguments.number(name, "high", high, above=0)
    if not low < high < math.inf:
        raise ValueError(f"{name}: high must be greater than low and finite; {high} is not > {low}")
    arguments.integer(name, "steps", steps, 2, numpy=False)
    growing = _Growing([low * (high / low) ** (k / (steps - 1)) for k in range(steps)])
    network = model.train_network
    kept = _Kept(network)
    try:
        model.train(steps, train_dataset, growing, progress=False)
    finally:
        kept.restore()
    taken = [k for k, loss in enumerate(growing.losses) if math.isfinite(loss)]
    smoothed = [growing.smoothed[k] for k in taken]
    # Slopes by equal factors of the rate, up to the lowest loss; the first steps average too few.
    slopes = np.gradient(smoothed) if len(smoothed) > 1 else np.zeros(1)
    begin = min(len(slopes) // 10, 10)
    end = max(int(np.argmin(smoothed)) if smoothed else 0, begin + 1)
    best = begin + int(np.argmin(slopes[begin:end]))
    suggestion = growing.rates[best] if slopes[best] < 0 else math.nan
    rates = tuple(growing.rates[: len(growing.losses)])
    return LearningRateCurve(rates, tuple(growing.losses), tuple(growing.smoothed), suggestion)


class _Kept:
    """The state of a network and of random numbers at one moment."""

    def __init__(self, network: Any) -> None:
        self._values = [(p, p.asnumpy().copy()) for p in network.get_parameters()]
        self._modes = [(cell, cell.training) for _, cell in network.cells_and_names()]
        owned = [value for cell, _ in self._modes for value in vars(cell).values() if isinstance(value, Generator)]
        self._generators = [(g, g.get_state()) for g in owned]
        self._random = get_rng_state(), np.random.get_state(), random.getstate()

    def restore(self) -> None:
        """Put all back."""
        for parameter, value in self._values:
            parameter.set_data(Tensor(value, parameter.dtype))
        for cell, mode in self._modes:
            if cell.training != mode:
                cell.training = mode
        for generator, state in self._generators:
            generator.set_state(state)
        ours, numbers, plain = self._random
        set_rng_state(ours)
        np.random.set_state(numbers)
        random.setstate(plain)
