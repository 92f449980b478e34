"""Schedulers: each `step` sets the learning rates of an optimizer's groups.

The count of steps `last_epoch` and the rates are Parameters, and a rate is a function of tensors,
so that `step` may be called inside a compiled function, which is compiled once. Most rates follow
from the rate before (`get_lr`), so that several schedulers of one optimizer multiply their effects;
where the rate is also known from the step alone (`_get_closed_form_lr`), ``step(epoch)`` uses that.
Factors are computed in float64. The definitions are PyTorch's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.parameter import Parameter as Parameter
from mycel._src.tensors.core.tensor import Tensor as Tensor
from mycel._src.tensors.core.tensor import cast
from mycel.common.markers import jit_class as jit_class
from mycel.experimental.optim.lr_base import LRScheduler as LRScheduler
from mycel.experimental.optim.lr_base import Rates, at, called, optimizer_of, scalar_one, state_of, store_rates
from mycel.experimental.optim.optimizer import Optimizer as Optimizer
from mycel.nn.assignment import store

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class StepLR(LRScheduler):
    """A rate that is multiplied by a factor after every `step_size` steps.

    Args:
        optimizer (Optimizer): The optimizer whose learning rates are set.
        step_size (int): The number of steps.
        gamma (float): The factor. Default: 0.1.
        last_epoch (int): The last step before a resumed training, -1 for a new one. Default: -1.

    Examples:
        >>> import mycel as ms
        >>> from mycel.experimental.optim import lr_scheduler
        >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")],
        ...     lr=1.0)
        >>> scheduler = lr_scheduler.StepLR(optimizer, 1, 0.5)
        >>> scheduler.step(); scheduler.get_last_lr()[0].item()
        0.5
    """

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = arguments.integer("StepLR", "step_size", step_size, at_least=1)
        self.gamma = arguments.real("StepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the groups at `last_epoch`."""
        epoch = self._epoch()
        return self._scaled(at(ops.logical_and(epoch > 0, epoch % self.step_size == 0), self.gamma))

    def _get_closed_form_lr(self) -> Rates:
        return self._from_base(self.gamma ** ops.floor(self._epoch() / self.step_size))


class MultiStepLR(LRScheduler):
    """A rate that is multiplied by a factor at some steps.

    Args:
        optimizer (Optimizer): The optimizer whose learning rates are set.
        milestones (Sequence[int]): The steps.
        gamma (float): The factor. Default: 0.1.
        last_epoch (int): The last step before a resumed training, -1 for a new one. Default: -1.

    Examples:
        >>> import mycel as ms
        >>> from mycel.experimental.optim import lr_scheduler
        >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")],
        ...     lr=1.0)
        >>> scheduler = lr_scheduler.MultiStepLR(optimizer, [1], 0.5)
        >>> scheduler.step(); scheduler.get_last_lr()[0].item()
        0.5
    """

    def __init__(self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        arguments.sequence("MultiStepLR", "milestones", milestones, "a list of steps")
        self.milestones = Counter(arguments.integer("MultiStepLR", "each milestone", m, at_least=0) for m in milestones)
        self.gamma = arguments.number("MultiStepLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the groups at `last_epoch`."""
        epoch, factor = self._epoch(), scalar_one()
        for milestone, count in self.milestones.items():
            factor = factor * at(epoch == milestone, self.gamma**count)
        return self._scaled(factor)

    def _get_closed_form_lr(self) -> Rates:
        epoch, factor = self._epoch(), scalar_one()
        for milestone, count in self.milestones.items():
            factor = factor * at(epoch >= milestone, self.gamma**count)
        return self._from_base(factor)


class ConstantLR(LRScheduler):
    """A rate that is multiplied by `factor` for the first `total_iters` steps.

    Args:
        optimizer (Optimizer): The optimizer whose learning rates are set.
        factor (float): The factor. Default: 0.3333333333333333.
        total_iters (int): The number of steps. Default: 5.
        last_epoch (int): The last step before a resumed training, -1 for a new one. Default: -1.

    Examples:
        >>> import mycel as ms
        >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")],
        ...     lr=1.0)
        >>> ms.experimental.optim.lr_scheduler.ConstantLR(optimizer, 0.5).get_last_lr()[0].item()
        0.5
    """

    def __init__(self, optimizer: Any, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.factor = arguments.number("ConstantLR", "factor", factor, above=0, at_most=1)
        self.total_iters = arguments.integer("ConstantLR", "total_iters", total_iters, at_least=0)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the groups at `last_epoch`."""
        epoch = self._epoch()
        return self._scaled(at(epoch == 0, self.factor, at(epoch == self.total_iters, 1 / self.factor)))

    def _get_closed_form_lr(self) -> Rates:
        return self._from_base(at(self._epoch() < self.total_iters, self.factor))


class LinearLR(LRScheduler):
    """A rate multiplied by a factor that changes linearly from `start_factor` to `end_factor`
    within `total_iters` steps.

    Args:
        optimizer (Optimizer): The optimizer whose learning rates are set.
        start_factor (float): The first factor. Default: 0.3333333333333333.
        end_factor (float): The last factor. Default: 1.0.
        total_iters (int): The number of steps. Default: 5.
        last_epoch (int): The last step before a resumed training, -1 for a new one. Default: -1.

    Examples:
        >>> import mycel as ms
        >>> from mycel.experimental.optim import lr_scheduler
        >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")],
        ...     lr=1.0)
        >>> scheduler = lr_scheduler.LinearLR(optimizer, 0.5, 1.0, 2)
        >>> scheduler.step(); scheduler.get_last_lr()[0].item()
        0.75
    """

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = arguments.number("LinearLR", "start_factor", start_factor, above=0, at_most=1)
        self.end_factor = arguments.number("LinearLR", "end_factor", end_factor, at_least=0, at_most=1)
        self.total_iters = arguments.integer("LinearLR", "total_iters", total_iters, at_least=1)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the groups at `last_epoch`."""
        epoch, way = self._epoch(), self.end_factor - self.start_factor
        # The step is limited to the end, as the factor may be 0 after it.
        inside = ops.minimum(epoch, scalar_one() * self.total_iters)
        later = 1 + way / (self.total_iters * self.start_factor + (inside - 1) * way)
        return self._scaled(at(epoch == 0, self.start_factor, at(epoch > self.total_iters, 1.0, later)))

    def _get_closed_form_lr(self) -> Rates:
        done = ops.minimum(self._epoch(), scalar_one() * self.total_iters) / self.total_iters
        return self._from_base(self.start_factor + (self.end_factor - self.start_factor) * done)


class ExponentialLR(LRScheduler):
    """A rate that is multiplied by `gamma` at each step.

    >>> import mycel as ms
    >>> from mycel.experimental.optim import lr_scheduler
    >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=1.0)
    >>> scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> scheduler.step(); scheduler.get_last_lr()[0].item()
    0.5
    """

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = arguments.real("ExponentialLR", "gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the groups at `last_epoch`."""
        return self._scaled(at(self._epoch() > 0, self.gamma))

    def _get_closed_form_lr(self) -> Rates:
        return self._from_base(self.gamma ** self._epoch())


class PolynomialLR(LRScheduler):
    """A rate multiplied by ``(1 - step / total_iters) ** power``, and 0 after `total_iters` steps.

    Args:
        optimizer (Optimizer): The optimizer whose learning rates are set.
        total_iters (int): The number of steps. Default: 5.
        power (float): The exponent. Default: 1.0.
        last_epoch (int): The last step before a resumed training, -1 for a new one. Default: -1.

    Examples:
        >>> import mycel as ms
        >>> from mycel.experimental.optim import lr_scheduler
        >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")],
        ...     lr=1.0)
        >>> scheduler = lr_scheduler.PolynomialLR(optimizer, 2)
        >>> scheduler.step(); scheduler.get_last_lr()[0].item()
        0.5
    """

    def __init__(self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = arguments.integer("PolynomialLR", "total_iters", total_iters, at_least=1)
        self.power = arguments.real("PolynomialLR", "power", power, at_least=0)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the groups at `last_epoch`."""
        epoch, total = self._epoch(), self.total_iters
        inside = ops.minimum(epoch, scalar_one() * total)
        factor = ((total - inside) / (total - inside + 1)) ** self.power
        return self._scaled(at(ops.logical_or(epoch == 0, epoch > total), 1.0, factor))

    def _get_closed_form_lr(self) -> Rates:
        done = ops.minimum(self._epoch(), scalar_one() * self.total_iters) / self.total_iters
        return self._from_base((1 - done) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """A rate that follows half a cosine from the first rate to the last, and back (Loshchilov and
    Hutter, 2016).

    Args:
        optimizer (Optimizer): The optimizer whose learning rates are set.
        T_max (int): The number of steps.
        eta_min (float): The last rate. Default: 0.0.
        last_epoch (int): The last step before a resumed training, -1 for a new one. Default: -1.

    Examples:
        >>> import mycel as ms
        >>> from mycel.experimental.optim import lr_scheduler
        >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")],
        ...     lr=1.0)
        >>> scheduler = lr_scheduler.CosineAnnealingLR(optimizer, 1)
        >>> scheduler.step(); scheduler.get_last_lr()[0].item()
        0.0
    """

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = arguments.integer("CosineAnnealingLR", "T_max", T_max, at_least=1)
        self.eta_min = arguments.number("CosineAnnealingLR", "eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the groups at `last_epoch`."""
        epoch, total, low = self._epoch(), self.T_max, self.eta_min
        start = epoch == 0
        turns = (epoch - 1 - total) % (2 * total) == 0
        angle = math.pi / total
        before = ops.where(turns, scalar_one(), 1 + ops.cos(angle * (epoch - 1)))
        factor = (1 + ops.cos(angle * epoch)) / before
        rise = (1 - math.cos(angle)) / 2
        return [
            ops.where(start, lr, ops.where(turns, lr + (base - low) * rise, factor * (lr - low) + low))
            for lr, base in zip((cast(lr, D.float64) for lr in self._last_lr), self.base_lrs)
        ]

    def _get_closed_form_lr(self) -> Rates:
        part = (1 + ops.cos(math.pi / self.T_max * self._epoch())) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """A rate that follows half a cosine from the first rate to the last, then starts again
    (Loshchilov and Hutter, 2016).

    Args:
        optimizer (Optimizer): The optimizer whose learning rates are set.
        T_0 (int): The number of steps of the first cycle.
        T_mult (int): How many times as many steps each further cycle has. Default: 1.
        eta_min (float): The last rate. Default: 0.
        last_epoch (int): The last step before a resumed training, -1 for a new one. Default: -1.

    Examples:
        >>> import mycel as ms
        >>> from mycel.experimental.optim import lr_scheduler
        >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")],
        ...     lr=1.0)
        >>> scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)
        >>> scheduler.step(); scheduler.get_last_lr()[0].item()
        0.5
    """

    def __init__(self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0, last_epoch: int = -1) -> None:
        name = "CosineAnnealingWarmRestarts"
        self.T_0 = arguments.integer(name, "T_0", T_0, at_least=1)
        self.T_mult = arguments.integer(name, "T_mult", T_mult, at_least=1)
        self.eta_min = arguments.number(name, "eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the groups at `last_epoch`."""
        epoch = self._epoch()
        if self.T_mult == 1:
            part = epoch % self.T_0 / self.T_0
        else:
            grown = epoch * ((self.T_mult - 1) / self.T_0) + 1
            cycle = ops.floor(ops.log(grown) / math.log(self.T_mult))
            # Rounding may put the logarithm on the wrong side of a restart.
            cycle = cycle + ops.where(self._start(cycle + 1) <= epoch, scalar_one(), scalar_one() * 0)
            cycle = cycle - ops.where(self._start(cycle) > epoch, scalar_one(), scalar_one() * 0)
            part = (epoch - self._start(cycle)) / (self.T_0 * self.T_mult**cycle)
        height = (1 + ops.cos(math.pi * part)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def _start(self, cycle: Tensor) -> Tensor:
        return ops.round((self.T_mult**cycle - 1) / (self.T_mult - 1) * self.T_0)


class LambdaLR(LRScheduler):
    """The first rate multiplied by a function of the step.

    `lr_lambda` is a function, or a list of one for each group. It is called with a tensor.

    >>> import mycel as ms
    >>> from mycel.experimental.optim import lr_scheduler
    >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=1.0)
    >>> scheduler = lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> scheduler.step(); scheduler.get_last_lr()[0].item()
    0.5
    """

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _functions("LambdaLR", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the groups at `last_epoch`."""
        return [base * called(f, self.last_epoch + 0.0) for base, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(LRScheduler):
    """A rate that is multiplied at each step by a function of the step.

    `lr_lambda` is a function, or a list of one for each group. It is called with a tensor.

    >>> import mycel as ms
    >>> from mycel.experimental.optim import lr_scheduler
    >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=1.0)
    >>> scheduler = lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> scheduler.step(); scheduler.get_last_lr()[0].item()
    0.5
    """

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _functions("MultiplicativeLR", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the groups at `last_epoch`."""
        epoch = self.last_epoch + 0.0
        # At step 0 the functions are called with 1, as they may be undefined at 0.
        later = ops.maximum(epoch, ops.ones_like(epoch))
        return [ops.where(epoch > 0, lr * called(f, later), lr) for lr, f in zip(self._last_lr, self.lr_lambdas)]


def _functions(name: str, optimizer: Any, given: Any) -> list[Callable[[Tensor], Any]]:
    count = len(optimizer_of(name, optimizer).param_groups)
    functions = list(given) if isinstance(given, (list, tuple)) else [given] * count
    if len(functions) != count:
        raise ValueError(f"{name}: there are {len(functions)} functions for {count} parameter groups")
    for function in functions:
        arguments.function(name, "lr_lambda", function, "a function or a list of them")
    return functions


class CyclicLR(LRScheduler):
    """A rate that rises and falls, again and again (Smith, 2015).

    Args:
        optimizer (Optimizer): The optimizer whose learning rates are set.
        base_lr (float | Sequence[float]): The lowest rate, one or one for each group.
        max_lr (float | Sequence[float]): The highest rate, one or one for each group.
        step_size_up (int): The number of steps of a rise. Default: 2000.
        step_size_down (int | None): The number of steps of a fall; None for as many. Default: None.
        mode (str): How the height of a cycle is scaled: "triangular" not at all, "triangular2"
            halves it with each cycle, "exp_range" multiplies it by ``gamma ** step``. Default:
            "triangular".
        gamma (float): The factor of "exp_range". Default: 1.0.
        scale_fn (Callable[[Tensor], Any] | None): Replaces `mode`: a function of a tensor, the
            number of the cycle or the step. Default: None.
        scale_mode (str): What it is called with: "cycle", from 1, or "iterations". Default:
            "cycle".
        last_epoch (int): The last step before a resumed training, -1 for a new one. Default: -1.

    Examples:
        >>> import mycel as ms
        >>> from mycel.experimental.optim import lr_scheduler
        >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")],
        ...     lr=1.0)
        >>> scheduler = lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, 2)
        >>> scheduler.step(); scheduler.get_last_lr()[0].item()
        0.5
    """

    def __init__(
        self,
        optimizer: Any,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[Tensor], Any] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer_of("CyclicLR", optimizer).param_groups)
        lows = _per_group("base_lr", base_lr, count)
        self.max_lrs = [Tensor(np.float32(v)) for v in _per_group("max_lr", max_lr, count)]
        up = arguments.number("CyclicLR", "step_size_up", step_size_up, above=0)
        down = up if step_size_down is None else arguments.number("CyclicLR", "step_size_down", step_size_down, above=0)
        self.total_step_size, self.step_up_ratio = up + down, up / (up + down)
        self.gamma = arguments.number("CyclicLR", "gamma", gamma)
        self.mode = mode
        if scale_fn is None:
            self.mode = arguments.one_of("CyclicLR", "mode", mode, ("triangular", "triangular2", "exp_range"))
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        else:
            arguments.function("CyclicLR", "scale_fn", scale_fn, "a function or None")
        self.scale_mode = arguments.choice("CyclicLR", "scale_mode", scale_mode, ("cycle", "iterations"))
        self._scale_fn = scale_fn
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows):
                group["lr"] = low
                group["initial_lr"] = low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = [Tensor(np.float32(v)) for v in lows]

    def scale_fn(self, x: Tensor) -> Any:
        """Return the factor of a cycle's height, given the number of the cycle or the step."""
        if self._scale_fn is not None:
            return called(self._scale_fn, x)
        if self.mode == "triangular":
            return 1.0
        return 0.5 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> Rates:
        """Return the rates of the groups at `last_epoch`."""
        epoch, total, ratio = self._epoch(), self.total_step_size, self.step_up_ratio
        inside = epoch % total
        part = inside / total
        rise = ops.where(part <= ratio, part / ratio, (part - 1) / (ratio - 1))
        cycle = ops.floor((epoch - inside) / total + 0.5) + 1
        scale = self.scale_fn(cast(cycle if self.scale_mode == "cycle" else epoch, D.float32))
        return [base + (top - base) * rise * scale for base, top in zip(self.base_lrs, self.max_lrs)]


def _per_group(name: str, value: Any, count: int) -> list[float]:
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise ValueError(f"there are {len(values)} values of {name} for {count} parameter groups")
    return [arguments.number("a scheduler", name, v) for v in values]


class SequentialLR:
    """Several schedulers of one optimizer, one after the other.

    Args:
        optimizer (Optimizer): The optimizer whose learning rates are set.
        schedulers (Sequence[LRScheduler]): The schedulers.
        milestones (Sequence[int]): The steps at which the next one takes over, at its own step 0.
        last_epoch (int): The last step before a resumed training, -1 for a new one. Default: -1.

    Raises:
        ValueError: Unless there is one milestone fewer than schedulers, and all are of `optimizer`.

    Examples:
        >>> import mycel as ms
        >>> from mycel.experimental.optim import lr_scheduler
        >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")],
        ...     lr=1.0)
        >>> parts = [lr_scheduler.ConstantLR(optimizer, 0.5)]
        >>> parts.append(lr_scheduler.ExponentialLR(optimizer, 0.5))
        >>> scheduler = lr_scheduler.SequentialLR(optimizer, parts, [1])
        >>> scheduler.step(); scheduler.get_last_lr()[0].item()
        1.0
    """

    def __init__(
        self, optimizer: Any, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        self.optimizer = optimizer_of("SequentialLR", optimizer)
        for word, given in (("schedulers", schedulers), ("milestones", milestones)):
            arguments.sequence("SequentialLR", word, given, "a list")
        self._schedulers = list(schedulers)
        self.milestones = [arguments.integer("SequentialLR", "each milestone", m, at_least=1) for m in milestones]
        if not self._schedulers or len(self.milestones) != len(self._schedulers) - 1:
            raise ValueError(
                f"SequentialLR: {len(self._schedulers)} schedulers need one milestone less, not {len(self.milestones)}"
            )
        if sorted(set(self.milestones)) != self.milestones:
            raise ValueError(f"SequentialLR: milestones must increase, not be {self.milestones}")
        for scheduler in self._schedulers:
            if not isinstance(scheduler, LRScheduler):
                raise TypeError(f"SequentialLR: {type(scheduler).__name__} cannot be one of several schedulers")
            if scheduler.optimizer is not optimizer:
                raise ValueError(f"SequentialLR: {type(scheduler).__name__} is a scheduler of another optimizer")
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]
        self.last_epoch = state_of("last_epoch_SequentialLR", last_epoch + 1)
        # Undo the first steps that the schedulers took themselves, and repeat the first one's.
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:
            store(scheduler.last_epoch, scheduler.last_epoch - 1)
        self._schedulers[0].step()

    def get_last_lr(self) -> Rates:
        """Return the rates of the groups after the last step."""
        return [lr + 0.0 for lr in self._last_lr]

    def step(self) -> None:
        """Advance by one step, and set the rates."""
        store(self.last_epoch, self.last_epoch + 1)
        epoch = self.last_epoch + 0.0
        rates: list[Any] = [lr + 0.0 for lr in self._last_lr]
        bounds = [-math.inf, *self.milestones, math.inf]
        for scheduler, start, end in zip(self._schedulers, bounds, bounds[1:]):
            active = ops.logical_and(epoch >= start, epoch < end)
            proposed = scheduler._proposed(epoch == start, active)
            rates = [ops.where(active, new, old) for new, old in zip(proposed, rates)]
        store_rates(self._last_lr, rates)


class ReduceLROnPlateau:
    """A rate that is multiplied by a factor when a metric has not improved for some steps.

    Args:
        optimizer (Optimizer): The optimizer whose learning rates are set.
        mode (str): "min" where to improve is to fall, "max" where it is to rise. Default: "min".
        factor (float): The factor. Default: 0.1.
        patience (int): For how many steps it need not improve. Default: 10.
        threshold (float): By how much it has to improve. Default: 0.0001.
        threshold_mode (str): "rel", relative to the best value so far, or "abs". Default: "rel".
        cooldown (int): How many steps after a reduction do not count. Default: 0.
        min_lr (float | Sequence[float]): The least rate, one or one for each group. Default: 0.
        eps (float): The change of the rate at or below which it stays. Default: 1e-08.

    Examples:
        >>> import mycel as ms
        >>> from mycel.experimental.optim import lr_scheduler
        >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")],
        ...     lr=1.0)
        >>> scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, "min", 0.5, patience=0)
        >>> scheduler.step(3.0); scheduler.step(4.0); scheduler.get_last_lr()[0].item()
        0.5
    """

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        name = "ReduceLROnPlateau"
        self.optimizer = optimizer_of(name, optimizer)
        self.mode = arguments.choice(name, "mode", mode, ("min", "max"))
        self.threshold_mode = arguments.choice(name, "threshold_mode", threshold_mode, ("rel", "abs"))
        self.factor = arguments.number(name, "factor", factor, below=1)
        self.patience = arguments.integer(name, "patience", patience, at_least=0)
        self.cooldown = arguments.integer(name, "cooldown", cooldown, at_least=0)
        self.threshold = arguments.number(name, "threshold", threshold)
        self.eps = arguments.number(name, "eps", eps, at_least=0)
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]
        self.min_lrs = [Tensor(np.float32(v)) for v in _per_group("min_lr", min_lr, len(self._last_lr))]
        self.best = state_of("best", math.inf if mode == "min" else -math.inf)
        self.wait = state_of("wait", 0)
        self.cooldown_counter = state_of("cooldown_counter", 0)
        self.last_epoch = state_of("last_epoch_ReduceLROnPlateau", 0, np.int32)

    def get_last_lr(self) -> Rates:
        """Return the rates of the groups after the last step."""
        return [lr + 0.0 for lr in self._last_lr]

    @property
    def in_cooldown(self) -> Tensor:
        """Whether the last reduction is so recent that steps do not count."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any) -> None:
        """Advance by one step with a metric, a number or a tensor of one element."""
        value = metrics if isinstance(metrics, Tensor) else Tensor(np.float32(metrics))
        value = ops.reshape(cast(value, D.float32), ())
        store(self.last_epoch, self.last_epoch + 1)
        best = self.best + 0.0
        better = self._is_improvement(value, best)
        store(self.best, ops.where(better, value, best))
        wait, cooling = self.wait + 0.0, self.cooldown_counter + 0.0
        none = ops.zeros_like(wait)
        cools = cooling > 0
        wait = ops.where(ops.logical_or(better, cools), none, wait + 1)
        cooling = ops.where(cools, cooling - 1, cooling)
        reduces = wait > self.patience
        store(self.cooldown_counter, ops.where(reduces, none + self.cooldown, cooling))
        store(self.wait, ops.where(reduces, none, wait))
        rates = []
        for old, least in zip(self._last_lr, self.min_lrs):
            new = ops.maximum(old * self.factor, least)
            rates.append(ops.where(ops.logical_and(reduces, old - new > self.eps), new, old + 0.0))
        store_rates(self._last_lr, rates)

    def _is_improvement(self, value: Tensor, best: Tensor) -> Tensor:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "rel":
            bound = best * (1 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return value < bound if self.mode == "min" else value > bound
