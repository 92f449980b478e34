"""Resilient backpropagation and averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.parameter import Parameter, ParameterTuple
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.nn.assignment import store
from mycel.nn.optim.optimizer import Optimizer
from mycel.ops import optimizer_updates

__all__ = ["ASGD", "Rprop"]


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993), which uses only the signs of the
    gradient.

    Each coordinate's step grows by ``etas[1]`` while its gradient keeps its sign and shrinks by
    ``etas[0]`` where it changes, within the bounds `step_sizes`; where it changed, that coordinate
    stays where it is for one training step.

    The states are named "prev.<parameter>" and "step_size.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The size of the
            first steps. Default: 0.1.
        etas (tuple[float, float]): The factors by which a coordinate's step shrinks and grows.
            Default: (0.5, 1.2).
        step_sizes (tuple[float, float]): The bounds of a coordinate's step. Default: (1e-06, 50.0).
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.

    Raises:
        ValueError: For etas not on both sides of 1 and for an empty range of step sizes.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.Rprop([w], 0.5)((ms.Tensor([3.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        for name, value in (("etas", etas), ("step_sizes", step_sizes)):
            if len(arguments.instance("Rprop", name, value, tuple)) != 2:
                raise arguments.wrong_value("Rprop", name, "two numbers", value)
        self.shrink = arguments.real("Rprop", "etas[0]", etas[0], above=0, below=1)
        self.grow = arguments.real("Rprop", "etas[1]", etas[1], above=1)
        arguments.real("Rprop", "step_sizes[0]", step_sizes[0])
        arguments.number("Rprop", "step_sizes[1]", step_sizes[1])
        if step_sizes[0] > step_sizes[1]:
            raise ValueError(f"Rprop: the smallest step size {step_sizes[0]} is above the largest {step_sizes[1]}")
        self.smallest, self.largest = step_sizes
        self.prev = self.states("prev")
        self.step_size = self.states("step_size")

    def _rule(self, lr: Tensor, p: Tensor, g: Tensor, before: Tensor, size: Tensor) -> Sequence[Tensor]:
        size = ops.where(ops.reshape(self.global_step, ()) <= 1, ops.ones_like(size) * lr, size)
        return optimizer_updates.rprop(p, g, before, size, self.shrink, self.grow, self.smallest, self.largest)

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        return self.update(gradients, self._rule, self.prev, self.step_size)


def _number(name: str, value: float) -> Parameter:
    return Parameter(Tensor(value, D.float32), name=name, requires_grad=False)


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992; Bottou, 2012).

    ``p = p * (1 - lambd * eta) - eta * g; ax += mu * (p - ax)`` with ``eta = lr / (1 + lambd * lr *
    t)**alpha`` and ``mu = 1 / max(1, t - t0)``.

    The states are named "eta_<parameter>", "mu_<parameter>" and "ax_.<parameter>" (the average).

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 0.1.
        lambd (float): The decay of the parameters towards 0. Default: 0.0001.
        alpha (float): The exponent by which the rate falls. Default: 0.75.
        t0 (float): The training step from which the average begins. Default: 1000000.0.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.ASGD([w], 0.5, 0.0)((ms.Tensor([1.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.lambd = arguments.number("ASGD", "lambd", lambd)
        self.alpha = arguments.number("ASGD", "alpha", alpha)
        self.t0 = arguments.number("ASGD", "t0", t0)
        self.mu = ParameterTuple([_number(f"mu_{p.name}", 1.0) for p in self.parameters])
        self.eta = ParameterTuple([_number(f"eta_{p.name}", 0.0) for p in self.parameters])
        self.ax = self.states("ax_")

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        prepared, rates = self.prepare(gradients), self._rates()
        first = ops.reshape(self.global_step, ()) == 0
        self.advance()
        step = ops.reshape(cast(self.global_step, D.float32), ())
        for i, (lr, p, g) in enumerate(zip(rates, self.parameters, prepared)):
            eta = ops.where(first, lr, self.eta[i])
            p_new = p * (1 - self.lambd * eta) - eta * g
            store(self.ax[i], self.ax[i] + (p_new - self.ax[i]) * self.mu[i])
            store(p, p_new)
            store(self.eta[i], lr / ops.pow(1 + self.lambd * lr * step, self.alpha))
            store(self.mu[i], 1 / ops.maximum(step - self.t0, 1.0))
        return True
