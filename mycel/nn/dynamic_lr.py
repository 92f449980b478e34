"""Learning rates as lists of one number for each step, constant within an epoch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mycel._src.foundation import arguments
from mycel.ops._operands import one_by_one

__all__ = [
    "cosine_decay_lr",
    "exponential_decay_lr",
    "inverse_decay_lr",
    "natural_exp_decay_lr",
    "piecewise_constant_lr",
    "polynomial_decay_lr",
    "warmup_lr",
]


# The bytes of a float in a list.
_EACH = 32


def _by_epoch(
    name: str, total_step: Any, step_per_epoch: Any, period_name: str, period: Any, rate: Callable[[int], float]
) -> list[float]:
    arguments.integer(name, "total_step", total_step, 1)
    one_by_one(name, "learning rates", total_step, _EACH)
    arguments.integer(name, "step_per_epoch", step_per_epoch, 1)
    arguments.integer(name, period_name, period, 1)
    return [rate(step // step_per_epoch) for step in range(total_step)]


def _check_decay(name: str, learning_rate: Any, decay_rate: Any, is_stair: Any) -> None:
    arguments.real(name, "learning_rate", learning_rate, above=0)
    arguments.real(name, "decay_rate", decay_rate, above=0)
    arguments.flag(name, "is_stair", is_stair)


def piecewise_constant_lr(milestone: Any, learning_rates: Any) -> list[float]:
    """Return a list with the rate ``learning_rates[i]`` for the steps before ``milestone[i]``;
    milestones must increase.

    >>> import mycel as ms
    >>> ms.nn.piecewise_constant_lr([2, 3], [0.1, 0.05])
    [0.1, 0.1, 0.05]
    """
    for word, value in (("milestone", milestone), ("learning_rates", learning_rates)):
        arguments.sequence("piecewise_constant_lr", word, value)
    if len(milestone) != len(learning_rates):
        raise ValueError(
            f"piecewise_constant_lr: there are {len(milestone)} milestones and {len(learning_rates)} learning rates; "
            "give one for each"
        )
    name, before = "piecewise_constant_lr", 0
    for i, (end, rate) in enumerate(zip(milestone, learning_rates)):
        arguments.integer(name, f"milestone[{i}]", end, 1)
        arguments.real(name, f"learning_rates[{i}]", rate, at_least=0)
        if end <= before:
            raise ValueError(f"{name}: milestones must grow, but milestone[{i}] is {end} after {before}")
        before = end
    one_by_one(name, "learning rates", before, _EACH)
    rates: list[float] = []
    for end, rate in zip(milestone, learning_rates):
        rates.extend([float(rate)] * (end - len(rates)))
    return rates


def exponential_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return ``learning_rate * decay_rate ** (epoch / decay_epoch)`` for each step.

    Args:
        learning_rate (float): The first rate.
        decay_rate (float): The rate of the decay.
        total_step (int): The number of rates.
        step_per_epoch (int): The number of training steps of an epoch.
        decay_epoch (int): The number of epochs of a decay.
        is_stair (bool): Whether ``epoch / decay_epoch`` is rounded down. Default: False.

    Returns:
        list[float]: `total_step` rates, `step_per_epoch` for each epoch.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.exponential_decay_lr(0.5, 0.5, 4, 2, 1)
        [0.5, 0.5, 0.25, 0.25]
    """
    _check_decay("exponential_decay_lr", learning_rate, decay_rate, is_stair)
    rate = lambda e: learning_rate * decay_rate ** (e // decay_epoch if is_stair else e / decay_epoch)
    return _by_epoch("exponential_decay_lr", total_step, step_per_epoch, "decay_epoch", decay_epoch, rate)


def natural_exp_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return ``learning_rate * exp(-decay_rate * epoch)`` for each step.

    Args:
        learning_rate (float): The first rate.
        decay_rate (float): The rate of the decay.
        total_step (int): The number of rates.
        step_per_epoch (int): The number of training steps of an epoch.
        decay_epoch (int): The number of epochs of a decay.
        is_stair (bool): Whether the epoch is rounded down to a multiple of `decay_epoch`, which has
            no effect otherwise. Default: False.

    Returns:
        list[float]: `total_step` rates, `step_per_epoch` for each epoch.

    Examples:
        >>> import mycel as ms
        >>> [round(r, 4) for r in ms.nn.natural_exp_decay_lr(0.1, 0.9, 4, 2, 2)]
        [0.1, 0.1, 0.0407, 0.0407]
    """
    _check_decay("natural_exp_decay_lr", learning_rate, decay_rate, is_stair)
    rate = lambda e: learning_rate * math.exp(-decay_rate * (e // decay_epoch * decay_epoch if is_stair else e))
    return _by_epoch("natural_exp_decay_lr", total_step, step_per_epoch, "decay_epoch", decay_epoch, rate)


def inverse_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """Return ``learning_rate / (1 + decay_rate * epoch / decay_epoch)`` for each step.

    Args:
        learning_rate (float): The first rate.
        decay_rate (float): The rate of the decay.
        total_step (int): The number of rates.
        step_per_epoch (int): The number of training steps of an epoch.
        decay_epoch (int): The number of epochs of a decay.
        is_stair (bool): Whether ``epoch / decay_epoch`` is rounded down. Default: False.

    Returns:
        list[float]: `total_step` rates, `step_per_epoch` for each epoch.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.inverse_decay_lr(0.5, 1.0, 3, 1, 1)[:2]
        [0.5, 0.25]
    """
    _check_decay("inverse_decay_lr", learning_rate, decay_rate, is_stair)
    rate = lambda e: learning_rate / (1 + decay_rate * (e // decay_epoch if is_stair else e / decay_epoch))
    return _by_epoch("inverse_decay_lr", total_step, step_per_epoch, "decay_epoch", decay_epoch, rate)


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """Return rates along half a cosine from `max_lr` to `min_lr` over `decay_epoch` epochs, then
    `min_lr`.

    Args:
        min_lr (float): The last rate.
        max_lr (float): The first rate.
        total_step (int): The number of rates.
        step_per_epoch (int): The number of training steps of an epoch.
        decay_epoch (int): The number of epochs of a decay.

    Returns:
        list[float]: `total_step` rates, `step_per_epoch` for each epoch.

    Examples:
        >>> import mycel as ms
        >>> [round(r, 3) for r in ms.nn.cosine_decay_lr(0.01, 0.1, 6, 2, 2)]
        [0.1, 0.1, 0.055, 0.055, 0.01, 0.01]
    """
    arguments.real("cosine_decay_lr", "min_lr", min_lr, at_least=0)
    arguments.real("cosine_decay_lr", "max_lr", max_lr, above=0)
    if not max_lr > min_lr:
        raise ValueError(f"cosine_decay_lr: max_lr must be above min_lr, but max_lr is {max_lr} and min_lr is {min_lr}")
    rate = lambda e: min_lr + 0.5 * (max_lr - min_lr) * (1 + math.cos(math.pi * min(e, decay_epoch) / decay_epoch))
    return _by_epoch("cosine_decay_lr", total_step, step_per_epoch, "decay_epoch", decay_epoch, rate)


def polynomial_decay_lr(
    learning_rate: float,
    end_learning_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    """Return rates from `learning_rate` to `end_learning_rate` along ``(1 - epoch / decay_epoch) **
    power``.

    Args:
        learning_rate (float): The first rate.
        end_learning_rate (float): The last rate.
        total_step (int): The number of rates.
        step_per_epoch (int): The number of training steps of an epoch.
        decay_epoch (int): The number of epochs of a decay.
        power (float): The exponent.
        update_decay_epoch (bool): Whether, after `decay_epoch` epochs, the period is stretched to
            the next multiple of itself instead of the rate staying `end_learning_rate`. Default:
            False.

    Returns:
        list[float]: `total_step` rates, `step_per_epoch` for each epoch.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.polynomial_decay_lr(0.5, 0.0, 3, 1, 2, 1.0)
        [0.5, 0.25, 0.0]
    """
    arguments.real("polynomial_decay_lr", "learning_rate", learning_rate, above=0)
    arguments.real("polynomial_decay_lr", "end_learning_rate", end_learning_rate, at_least=0)
    arguments.real("polynomial_decay_lr", "power", power, above=0)
    arguments.flag("polynomial_decay_lr", "update_decay_epoch", update_decay_epoch)

    def rate(epoch: int) -> float:
        period = decay_epoch * max(math.ceil(epoch / decay_epoch), 1) if update_decay_epoch else decay_epoch
        left: float = 1 - min(epoch, period) / period
        return (learning_rate - end_learning_rate) * left**power + end_learning_rate

    return _by_epoch("polynomial_decay_lr", total_step, step_per_epoch, "decay_epoch", decay_epoch, rate)


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """Return rates that rise linearly from 0 to `learning_rate` over `warmup_epoch` epochs, then
    stay constant.

    Args:
        learning_rate (float): The last rate.
        total_step (int): The number of rates.
        step_per_epoch (int): The number of training steps of an epoch.
        warmup_epoch (int): The number of epochs of the rise.

    Returns:
        list[float]: `total_step` rates, `step_per_epoch` for each epoch.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.warmup_lr(0.5, 6, 2, 2)
        [0.0, 0.0, 0.25, 0.25, 0.5, 0.5]
    """
    arguments.real("warmup_lr", "learning_rate", learning_rate, at_least=0)
    rate = lambda e: learning_rate * min(e, warmup_epoch) / warmup_epoch
    return _by_epoch("warmup_lr", total_step, step_per_epoch, "warmup_epoch", warmup_epoch, rate)
