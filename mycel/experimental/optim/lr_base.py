"""The base of schedulers of learning rates: where the rates and the count of steps are kept, and
how a step is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.experimental.optim.optimizer import Optimizer
from mycel.nn.assignment import store

__all__ = ["LRScheduler", "Rates", "at", "called", "scalar_one", "optimizer_of", "state_of", "store_rates"]

Rates = list[Tensor]


def optimizer_of(name: str, optimizer: Any) -> Optimizer:
    what = "one of mycel.experimental.optim or mycel.mint.optim"
    return arguments.instance(name, "optimizer", optimizer, Optimizer, what)


def called(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of a user's function, which the compiler traces into the graph."""
    context: Any = eager.local.context if eager.active else None
    if context is not None and context.is_staging:
        return context.invoke(function, args, {})
    return function(*args)


def state_of(name: str, value: Any, kind: Any = np.float32) -> Parameter:
    return Parameter(Tensor(kind(value)), name=name, requires_grad=False)


def store_rates(holders: Sequence[Parameter], values: Sequence[Any]) -> None:
    if len(values) != len(holders):
        raise ValueError(f"get_lr gave {len(values)} rates for {len(holders)} parameter groups")
    for holder, value in zip(holders, values):
        store(holder, value if isinstance(value, Tensor) else Tensor(np.float32(value)))


class LRScheduler:
    """Base of schedulers; a subclass defines ``get_lr()``.

    ``get_lr()`` returns a list of one rate for each group, computed from ``self.last_epoch`` and
    ``self._last_lr``. The argument `last_epoch` is the last step before a resumed training, for
    which the groups must have "initial_lr", and -1 for a new training. The constructor takes the
    next step, which in a new training is step 0. Raises TypeError for an `optimizer` without
    groups, KeyError for a group without "initial_lr".

    >>> import mycel as ms
    >>> class Half(ms.experimental.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr * 0.5 for lr in self._last_lr]
    >>> optimizer = ms.experimental.optim.SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=1.0)
    >>> scheduler = Half(optimizer); scheduler.step(); scheduler.get_last_lr()[0].item()
    0.25
    """

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        name = type(self).__name__
        self.optimizer = optimizer_of(name, optimizer)
        arguments.integer(name, "last_epoch", last_epoch, at_least=-1)
        for number, group in enumerate(self.optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"].asnumpy().item())
            elif "initial_lr" not in group:
                raise KeyError(f"{name}: parameter group {number} has no 'initial_lr', from which to go on")
        self.base_lrs = [Tensor(np.float32(group["initial_lr"])) for group in self.optimizer.param_groups]
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]
        self.groups_num = len(self._last_lr)
        self.last_epoch = state_of(f"last_epoch_{name}", last_epoch)
        self.step()

    def get_lr(self) -> Any:
        """Return the rates of the groups at `last_epoch`; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def get_last_lr(self) -> Rates:
        """Return the rates of the groups after the last step."""
        return [lr + 0.0 for lr in self._last_lr]

    def step(self, epoch: Any = None) -> None:
        """Advance by one step, or to `epoch`, and set the rates."""
        if epoch is None:
            store(self.last_epoch, self.last_epoch + 1)
            values = called(self.get_lr)
        else:
            store(self.last_epoch, epoch if isinstance(epoch, Tensor) else Tensor(np.float32(epoch)))
            values = self._rates_at_epoch()
        store_rates(self._last_lr, values)

    def _rates_at_epoch(self) -> Any:
        closed = getattr(self, "_get_closed_form_lr", None)
        return called(self.get_lr if closed is None else closed)

    def _epoch(self) -> Tensor:
        return cast(self.last_epoch, D.float64)

    def _scaled(self, factor: Tensor) -> Rates:
        return [lr * factor for lr in self._last_lr]

    def _from_base(self, factor: Tensor) -> Rates:
        return [lr * factor for lr in self.base_lrs]

    def _proposed(self, enters: Tensor, active: Tensor) -> Any:
        """Return the rates after one more step where `active`, and those of step 0 where `enters`.

        Without `active` the step is not counted.
        """
        before = self.last_epoch + 0.0
        store(self.last_epoch, ops.where(enters, ops.zeros_like(before), before + 1))
        values = called(self.get_lr)
        if hasattr(self, "_get_closed_form_lr"):
            values = [ops.where(enters, a, b) for a, b in zip(self._rates_at_epoch(), values)]
        store(self.last_epoch, ops.where(active, self.last_epoch, before))
        return values


def scalar_one() -> Tensor:
    return Tensor(np.float64(1))


def at(condition: Tensor, value: Any, otherwise: Any = 1.0) -> Tensor:
    one = scalar_one()
    return ops.where(condition, one * value, one * otherwise)
