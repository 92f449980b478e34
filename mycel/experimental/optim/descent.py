"""Gradient descent: with momentum, with averaged parameters, and by the signs of gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.experimental.optim.optimizer import Group, Optimizer, put, single
from mycel.nn.assignment import store
from mycel.ops import optimizer_updates

__all__ = ["ASGD", "Rprop", "SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent with optional momentum (Polyak, 1964), dampening and Nesterov's
    form (Sutskever et al., 2013).

    ``v = momentum * v + (1 - dampening) * g``, where the first step sets ``v = g``; then ``p -= lr
    * v``, or with `nesterov` ``p -= lr * (g + momentum * v)``. The states are "accum.<parameter>"
    and "stat.<parameter>" (1 before the first step).

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The learning rate.
        momentum (float): The weight of the steps before. Default: 0.
        dampening (float): The part of the gradient that does not enter the momentum. Default: 0.
        weight_decay (float): The decay: ``weight_decay * p`` is added to the gradient of each
            parameter. Default: 0.0.
        nesterov (bool): Whether Nesterov's form is computed. Default: False.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Raises:
        ValueError: For negative numbers, and for `nesterov` without momentum or with dampening.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.experimental.optim.SGD([w], lr=0.5)((ms.Tensor([1.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        lr: Any,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )
        self._states("accum")
        self._states("stat", "ones")

    def _check_group(self, group: Group) -> None:
        self._checked(group, ("momentum", "weight_decay"))
        for key in ("nesterov", "maximize"):
            arguments.flag(type(self).__name__, key, group[key])
        arguments.number(type(self).__name__, "dampening", group["dampening"])
        if group["nesterov"] and (group["momentum"] == 0 or group["dampening"] != 0):
            raise ValueError(
                f"{type(self).__name__}: nesterov needs a positive momentum and no dampening, but momentum is "
                f"{group['momentum']} "
                f"and dampening {group['dampening']}"
            )

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        for group, rows in self._each(gradients, self.accum, self.stat):
            lr, momentum, fresh, nesterov = group["lr"], group["momentum"], 1 - group["dampening"], group["nesterov"]
            for g, targets in rows:
                p, v, first = targets
                if momentum == 0:
                    put(targets, p - lr * g)
                    continue
                put(targets, *optimizer_updates.sgd(p, g, v, first, lr, momentum, fresh, nesterov))
        return True


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

    ``p -= eta * (g + lambd * p)`` with ``eta = lr / (1 + lambd * lr * t)**alpha`` of the step
    before; "ax.<parameter>" is the average of p over the steps after `t0`. The other states are
    "step_t" and "eta_<group>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The learning rate. Default: 0.01.
        lambd (float): The decay of the parameters towards 0. Default: 0.0001.
        alpha (float): The exponent by which the rate falls. Default: 0.75.
        t0 (float): The step from which the average begins. Default: 1000000.0.
        weight_decay (float): The decay: ``weight_decay * p`` is added to the gradient of each
            parameter. Default: 0.0.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Raises:
        ValueError: For a negative `weight_decay`.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> step = ms.experimental.optim.ASGD([w], lr=0.5, lambd=0.1)
        >>> _ = step((ms.Tensor([1.0]),)); w.asnumpy().round(4)
        array([0.45], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 0.01,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize},
        )
        self._states("ax")
        self._counter("step_t")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with its own options."""
        super().add_param_group(param_group)
        rate = Tensor(np.float32(self.param_groups[-1]["lr"].asnumpy()))
        held = Parameter(rate, name=f"eta_{len(self.param_groups) - 1}", requires_grad=False)
        setattr(self, held.name, held)

    def _check_group(self, group: Group) -> None:
        self._checked(group, ("weight_decay",))
        for key in ("lambd", "alpha", "t0"):
            arguments.number(type(self).__name__, key, group[key])

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        t = self._count(self.step_t)
        for number, (group, rows) in enumerate(self._each(gradients, self.ax)):
            held, lambd = getattr(self, f"eta_{number}"), group["lambd"]
            eta = held + 0.0
            # As in PyTorch, the weight of the average is that of the previous step.
            share = single(1 / ops.maximum(t - 1 - group["t0"], ops.ones_like(t)))
            for g, targets in rows:
                p, mean = targets
                p = p * (1 - lambd * eta) - eta * g
                put(targets, p, mean + (p - mean) * share)
            lr = cast(group["lr"], D.float64)
            store(held, lr / (1 + lambd * lr * t) ** group["alpha"])
        return True


class Rprop(Optimizer):
    """Resilient propagation (Riedmiller and Braun, 1993): steps whose sizes grow while the sign of
    the gradient stays, and shrink when it changes.

    After a change of sign a coordinate stays where it is for one step. The states are
    "prev.<parameter>", "step_size.<parameter>" and "step_t".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The size of the first steps. Default: 0.01.
        etas (tuple[float, float]): The factors by which sizes shrink and grow. Default: (0.5, 1.2).
        step_sizes (tuple[float, float]): The lower and upper bound of the sizes. Default: (1e-06,
            50).
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Raises:
        ValueError: Unless ``0 < etas[0] < 1 < etas[1]``.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.experimental.optim.Rprop([w], lr=0.5)((ms.Tensor([3.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    _above_zero = ("lr",)

    def __init__(
        self,
        params: Any,
        lr: Any = 0.01,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize})
        self._states("prev")
        self._states("step_size", lambda group: float(group["lr"].asnumpy()))
        self._counter("step_t")

    def _check_group(self, group: Group) -> None:
        etas, sizes = group["etas"], group["step_sizes"]
        arguments.sequence("Rprop", "etas", etas)
        if not (isinstance(etas, (list, tuple)) and len(etas) == 2 and 0 < etas[0] < 1 < etas[1]):
            raise ValueError(f"Rprop: etas must be a number in (0, 1) and one above 1, not {etas!r}")
        if not (isinstance(sizes, (list, tuple)) and len(sizes) == 2 and 0 <= sizes[0] <= sizes[1]):
            raise ValueError(f"Rprop: step_sizes must be a smallest and a largest size, not {sizes!r}")

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        self._count(self.step_t)
        for group, rows in self._each(gradients, self.prev, self.step_size):
            (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
            for g, targets in rows:
                p, before, size = targets
                put(targets, *optimizer_updates.rprop(p, g, before, size, shrink, grow, least, most))
        return True
