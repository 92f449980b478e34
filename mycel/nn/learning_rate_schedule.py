"""Learning rates as functions of the step: cells that compute the rate from the step counter, a
tensor, inside the training step.

With step t, rate r, decay a and period n, where the quotient p = t / n is rounded down to a whole
number if `is_stair`:

    exponential     r * a**p
    natural         r * exp(-a * t), with t rounded down to a multiple of n if `is_stair`
    inverse         r / (1 + a * p)
    cosine          low + (high - low) / 2 * (1 + cos(pi * min(t, n) / n))
    polynomial      (r - end) * (1 - min(t, n) / n)**power + end,
                    with n stretched to the multiple that t has reached if asked for
    warm-up         r * min(t, n) / n
"""

from __future__ import annotations

import math
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import term

__all__ = [
    "CosineDecayLR",
    "ExponentialDecayLR",
    "InverseDecayLR",
    "LearningRateSchedule",
    "NaturalExpDecayLR",
    "PolynomialDecayLR",
    "WarmUpLR",
]


class LearningRateSchedule(Cell):
    """Base of schedules; a subclass defines ``construct(global_step)``, which returns the rate as a
    tensor of one element.

    >>> import mycel as ms
    >>> from mycel.nn.learning_rate_schedule import LearningRateSchedule
    >>> class Halving(LearningRateSchedule):
    ...     def construct(self, global_step):
    ...         return 0.1 / (1 + global_step)
    >>> Halving()(ms.Tensor(1))
    Tensor(shape=[], dtype=Float32, value= 0.05)
    """

    def construct(self, global_step: Tensor) -> Tensor:
        """Return the rate at a step."""
        raise NotImplementedError(f"{type(self).__name__} must define construct(global_step)")


def _step(global_step: Any) -> Tensor:
    return cast(term("a learning rate", global_step), D.float32)


def _common(owner: str, learning_rate: Any, decay_rate: Any, decay_steps: Any, is_stair: Any) -> None:
    arguments.real(owner, "learning_rate", learning_rate, at_least=0)
    arguments.real(owner, "decay_rate", decay_rate, above=0)
    arguments.integer(owner, "decay_steps", decay_steps, 1)
    arguments.flag(owner, "is_stair", is_stair)


class ExponentialDecayLR(LearningRateSchedule):
    """The rate ``learning_rate * decay_rate ** (step / decay_steps)``.

    Args:
        learning_rate (float): The first rate.
        decay_rate (float): The rate of the decay.
        decay_steps (int): The number of training steps of a decay.
        is_stair (bool): Whether ``step / decay_steps`` is rounded down. Default: False.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.ExponentialDecayLR(0.1, 0.5, 4)(ms.Tensor(8, ms.int32))
        Tensor(shape=[], dtype=Float32, value= 0.025)
    """

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        _common("ExponentialDecayLR", learning_rate, decay_rate, decay_steps, is_stair)
        self.learning_rate, self.decay_rate, self.decay_steps, self.is_stair = (
            learning_rate,
            decay_rate,
            decay_steps,
            is_stair,
        )

    def construct(self, global_step: Tensor) -> Tensor:
        """Return the rate at a step."""
        p = _step(global_step) / self.decay_steps
        return self.learning_rate * ops.exp(math.log(self.decay_rate) * (ops.floor(p) if self.is_stair else p))


class NaturalExpDecayLR(LearningRateSchedule):
    """The rate ``learning_rate * exp(-decay_rate * step)``.

    Args:
        learning_rate (float): The first rate.
        decay_rate (float): The rate of the decay.
        decay_steps (int): The number of training steps of a decay.
        is_stair (bool): Whether the step is rounded down to a multiple of `decay_steps`. Default:
            False.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.NaturalExpDecayLR(0.1, 0.9, 4, True)(ms.Tensor(3, ms.int32))
        Tensor(shape=[], dtype=Float32, value= 0.1)
    """

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        _common("NaturalExpDecayLR", learning_rate, decay_rate, decay_steps, is_stair)
        self.learning_rate, self.decay_rate, self.decay_steps, self.is_stair = (
            learning_rate,
            decay_rate,
            decay_steps,
            is_stair,
        )

    def construct(self, global_step: Tensor) -> Tensor:
        """Return the rate at a step."""
        p = _step(global_step)
        if self.is_stair:
            p = ops.floor(p / self.decay_steps) * self.decay_steps
        return self.learning_rate * ops.exp(-self.decay_rate * p)


class InverseDecayLR(LearningRateSchedule):
    """The rate ``learning_rate / (1 + decay_rate * step / decay_steps)``.

    Args:
        learning_rate (float): The first rate.
        decay_rate (float): The rate of the decay.
        decay_steps (int): The number of training steps of a decay.
        is_stair (bool): Whether ``step / decay_steps`` is rounded down. Default: False.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.InverseDecayLR(0.1, 1.0, 4)(ms.Tensor(4, ms.int32))
        Tensor(shape=[], dtype=Float32, value= 0.05)
    """

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        _common("InverseDecayLR", learning_rate, decay_rate, decay_steps, is_stair)
        self.learning_rate, self.decay_rate, self.decay_steps, self.is_stair = (
            learning_rate,
            decay_rate,
            decay_steps,
            is_stair,
        )

    def construct(self, global_step: Tensor) -> Tensor:
        """Return the rate at a step."""
        p = _step(global_step) / self.decay_steps
        return self.learning_rate / (1 + self.decay_rate * (ops.floor(p) if self.is_stair else p))


class CosineDecayLR(LearningRateSchedule):
    """A rate along half a cosine from `max_lr` to `min_lr` over `decay_steps` (Loshchilov and
    Hutter, "SGDR", 2017), then `min_lr`.

    >>> import mycel as ms
    >>> float(ms.nn.CosineDecayLR(0.0, 0.5, 4)(ms.Tensor(4, ms.int32)))
    0.0
    """

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        arguments.real("CosineDecayLR", "min_lr", min_lr, at_least=0)
        arguments.real("CosineDecayLR", "max_lr", max_lr, above=0)
        if not max_lr > min_lr:
            raise ValueError(
                f"CosineDecayLR: max_lr must be above min_lr, but max_lr is {max_lr} and min_lr is {min_lr}"
            )
        arguments.integer("CosineDecayLR", "decay_steps", decay_steps, 1)
        self.min_lr, self.max_lr, self.decay_steps = min_lr, max_lr, decay_steps

    def construct(self, global_step: Tensor) -> Tensor:
        """Return the rate at a step."""
        p = ops.minimum(_step(global_step), float(self.decay_steps))
        return self.min_lr + 0.5 * (self.max_lr - self.min_lr) * (1 + ops.cos(p * (math.pi / self.decay_steps)))


class PolynomialDecayLR(LearningRateSchedule):
    """A rate from `learning_rate` to `end_learning_rate` over `decay_steps` along ``(1 - step /
    decay_steps) ** power``.

    Args:
        learning_rate (float): The first rate.
        end_learning_rate (float): The last rate.
        decay_steps (int): The number of training steps of a decay.
        power (float): The exponent.
        update_decay_steps (bool): Whether the period is stretched to the next multiple of itself
            instead of ending. Default: False.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.PolynomialDecayLR(0.5, 0.0, 4, 1.0)(ms.Tensor(2, ms.int32))
        Tensor(shape=[], dtype=Float32, value= 0.25)
    """

    def __init__(
        self,
        learning_rate: float,
        end_learning_rate: float,
        decay_steps: int,
        power: float,
        update_decay_steps: bool = False,
    ) -> None:
        super().__init__()
        arguments.real("PolynomialDecayLR", "learning_rate", learning_rate, above=0)
        arguments.real("PolynomialDecayLR", "end_learning_rate", end_learning_rate, at_least=0)
        arguments.integer("PolynomialDecayLR", "decay_steps", decay_steps, 1)
        arguments.real("PolynomialDecayLR", "power", power, above=0)
        arguments.flag("PolynomialDecayLR", "update_decay_steps", update_decay_steps)
        self.learning_rate, self.end_learning_rate = learning_rate, end_learning_rate
        self.decay_steps, self.power, self.update_decay_steps = decay_steps, power, update_decay_steps

    def construct(self, global_step: Tensor) -> Tensor:
        """Return the rate at a step."""
        t = _step(global_step)
        n = float(self.decay_steps)
        if self.update_decay_steps:
            left = 1 - t / (n * ops.maximum(ops.ceil(t / n), 1.0))
        else:
            left = 1 - ops.minimum(t, n) / n
        return (self.learning_rate - self.end_learning_rate) * ops.pow(left, self.power) + self.end_learning_rate


class WarmUpLR(LearningRateSchedule):
    """A rate that rises linearly from 0 to `learning_rate` over `warmup_steps`, then stays
    constant.

    >>> import mycel as ms
    >>> ms.nn.WarmUpLR(0.5, 4)(ms.Tensor(2, ms.int32))
    Tensor(shape=[], dtype=Float32, value= 0.25)
    """

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        arguments.real("WarmUpLR", "learning_rate", learning_rate, at_least=0)
        arguments.integer("WarmUpLR", "warmup_steps", warmup_steps, 1)
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps

    def construct(self, global_step: Tensor) -> Tensor:
        """Return the rate at a step."""
        n = float(self.warmup_steps)
        return self.learning_rate * ops.minimum(_step(global_step), n) / n
