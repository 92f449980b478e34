"""LeNet-5 and its training: stochastic gradient descent with momentum, resumable to the bit.

All random values depend on the plan and the step only: the initial weights come from the seed, the
order of an epoch from (seed, epoch), and the shifts of a batch from (seed, epoch, batch). A
checkpoint therefore holds the parameters, the optimizer's state, the plan, and the losses so far,
whose number is the position. A resumed run takes exactly the steps that the uninterrupted run would
have taken.

The network is LeNet-5 as taught with rectifiers and max pooling (LeCun et al., "Gradient-based
learning applied to document recognition", 1998); the learning rate falls along half a cosine
(Loshchilov and Hutter, "SGDR", 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mycel as ms
from mycel import nn
from mycel.common.initializer import TruncatedNormal
from mycel.demo.data import DigitData

__all__ = ["MAX_STEPS", "CheckpointError", "LeNet5", "Plan", "Training"]

LEARNING_RATE = 0.03
MOMENTUM = 0.9
WEIGHT_DECAY = 1e-4
SHIFT = 2
MAX_STEPS = 10_000_000

_LOSSES = "demo.losses"
_PLAN = "demo.plan."


class CheckpointError(ValueError):
    """An error: a checkpoint cannot be resumed; the message is one line and names the file."""


class LeNet5(nn.Cell):
    """LeNet-5 for images float32 [N, 1, 32, 32].

    It returns the logits of the ten digits, float32 [N, 10].
    """

    def __init__(self) -> None:
        super().__init__()
        weights = TruncatedNormal(0.1)
        self.conv1 = nn.Conv2d(1, 6, 5, weight_init=weights, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, weight_init=weights, pad_mode="valid")
        self.fc1 = nn.Dense(16 * 5 * 5, 120, weight_init=weights, bias_init=weights)
        self.fc2 = nn.Dense(120, 84, weight_init=weights, bias_init=weights)
        self.fc3 = nn.Dense(84, 10, weight_init=weights, bias_init=weights)
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, x: Any) -> Any:
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


@dataclass(frozen=True)
class Plan:
    """The settings of a run from its first step to its last, which a checkpoint contains."""

    samples: int
    fingerprint: int
    epochs: int
    batch_size: int
    seed: int

    @property
    def steps_per_epoch(self) -> int:
        """The number of whole batches in an epoch; the remaining samples are left out.

        They are different ones in each epoch.
        """
        return self.samples // self.batch_size

    @property
    def steps(self) -> int:
        """The number of all steps of the run."""
        return self.epochs * self.steps_per_epoch

    def learning_rates(self) -> list[float]:
        """Return the learning rate of every step.

        >>> plan = Plan(samples=64, fingerprint=0, epochs=2, batch_size=32, seed=1)
        >>> [round(rate, 4) for rate in plan.learning_rates()]
        [0.03, 0.0256, 0.015, 0.0044]
        """
        return [LEARNING_RATE * (1 + math.cos(math.pi * step / self.steps)) / 2 for step in range(self.steps)]


class Training:
    """A run of `plan` over `data`: `advance` until `finished`, `save` at any step, `evaluate` at
    any step.
    """

    def __init__(self, plan: Plan, data: DigitData) -> None:
        self.plan = plan
        self.data = data
        self.losses: list[float] = []
        self._order: tuple[int, NDArray[np.int64]] = (-1, np.empty(0, np.int64))
        ms.set_seed(plan.seed)
        self.network = LeNet5()
        optimizer = nn.Momentum(
            self.network.trainable_params(), plan.learning_rates(), MOMENTUM, weight_decay=WEIGHT_DECAY
        )
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        self._step = nn.TrainOneStepCell(nn.WithLossCell(self.network, loss), optimizer)

    @classmethod
    def resume(cls, path: Path, data: DigitData) -> Training:
        """Return the run that `save` wrote to `path`, at its step.

        Raises CheckpointError if it cannot be resumed.
        """
        if not path.is_file():
            raise CheckpointError(f"no such checkpoint: {path}")
        try:
            stored = ms.load_checkpoint(str(path))
        except (ValueError, TypeError, OSError) as error:
            raise CheckpointError(f"{path}: cannot be loaded: {str(error).splitlines()[0]}") from error
        try:
            plan = Plan(**{field.name: _number(stored.pop(_PLAN + field.name)) for field in fields(Plan)})
            losses = _losses(stored.pop(_LOSSES))
        except KeyError as error:
            raise CheckpointError(f"{path}: not a checkpoint of this demonstration: it has no {error}") from error
        except ValueError as error:
            raise CheckpointError(f"{path}: not a checkpoint of this demonstration: {error}") from error
        if (plan.samples, plan.fingerprint) != (len(data.train_images), data.fingerprint()):
            raise CheckpointError(f"{path}: was trained on other digits than the {data.name}; give its --data folder")
        sound = 0 < plan.batch_size <= plan.samples and 0 < plan.steps <= MAX_STEPS and 0 <= plan.seed < 2**32
        if not sound or len(losses) > plan.steps:
            raise CheckpointError(f"{path}: no run has {plan} and {len(losses)} steps behind it")
        run = cls(plan, data)
        try:
            missing, _ = ms.load_param_into_net(run._step, stored)
        except (RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path}: does not fit LeNet-5: {str(error).splitlines()[0]}") from error
        if missing:
            raise CheckpointError(f"{path}: lacks the parameters {', '.join(map(str, missing))}")
        run.losses = losses
        return run

    @property
    def step(self) -> int:
        """The number of steps taken so far."""
        return len(self.losses)

    @property
    def finished(self) -> bool:
        """Whether every step of the plan was taken."""
        return self.step >= self.plan.steps

    def advance(self) -> float:
        """Take one step and return its loss."""
        images, labels = self._batch(self.step)
        self._step.set_train(True)
        loss = float(self._step(ms.Tensor(images), ms.Tensor(labels)).asnumpy())
        self.losses.append(loss)
        return loss

    def save(self, path: Path) -> None:
        """Write the checkpoint to `path`, which holds the previous checkpoint until the new one is
        complete.
        """
        extra: dict[str, Any] = {_PLAN + name: value for name, value in asdict(self.plan).items()}
        extra[_LOSSES] = ms.Tensor(np.array(self.losses, np.float32))
        ms.save_checkpoint(self._step, str(path), append_dict=extra)

    def evaluate(self, progress: Callable[[int], None] = lambda done: None) -> NDArray[np.int64]:
        """Return the predicted digits of the held-out images, int64 [N].

        `progress` is called with the number of images done.
        """
        self.network.set_train(False)
        images, size = self.data.held_out_images, 100
        predictions = []
        for start in range(0, len(images), size):
            batch = images[start : start + size]
            padded = np.zeros((size, *batch.shape[1:]), np.uint8)
            padded[: len(batch)] = batch
            logits = self.network(ms.Tensor(_normalised(padded))).asnumpy()
            predictions.append(logits[: len(batch)].argmax(axis=1))
            progress(start + len(batch))
        return np.concatenate(predictions)

    def _batch(self, step: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        plan = self.plan
        epoch, index = divmod(step, plan.steps_per_epoch)
        if self._order[0] != epoch:
            self._order = epoch, np.random.default_rng([plan.seed, epoch]).permutation(plan.samples)
        chosen = self._order[1][index * plan.batch_size : (index + 1) * plan.batch_size]
        shifts = np.random.default_rng([plan.seed, epoch, index]).integers(0, 2 * SHIFT + 1, (len(chosen), 2))
        return _normalised(_shifted(self.data.train_images[chosen], shifts, SHIFT)), self.data.train_labels[chosen]


def _shifted(images: NDArray[np.uint8], shifts: NDArray[np.int64], margin: int) -> NDArray[np.uint8]:
    height, width = images.shape[1:]
    padded = np.pad(images, [(0, 0), (margin, margin), (margin, margin)])
    rows = shifts[:, :1] + np.arange(height)
    columns = shifts[:, 1:] + np.arange(width)
    moved: NDArray[np.uint8] = padded[np.arange(len(images))[:, None, None], rows[:, :, None], columns[:, None, :]]
    return moved


def _normalised(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    pixels = images[:, None].astype(np.float32)
    pixels /= 255
    pixels -= 0.13
    pixels /= 0.31
    return pixels


def _number(value: Any) -> int:
    array = _array(value)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"its plan holds {array.dtype} numbers of shape {array.shape}, not whole numbers")
    return int(array.reshape(()))


def _losses(value: Any) -> list[float]:
    array = _array(value)
    if array.ndim != 1 or array.dtype != np.float32:
        raise ValueError(f"its losses are {array.dtype} numbers of shape {array.shape}, not float32 in one row")
    return [float(loss) for loss in array]


def _array(value: Any) -> NDArray[Any]:
    return np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)
