"""Gradient descent with momentum, in its two published forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.optim.optimizer import Optimizer
from mycel.ops import optimizer_updates

__all__ = ["Momentum", "SGD"]


class Momentum(Optimizer):
    """Gradient descent with momentum (Polyak, 1964; Sutskever et al., 2013).

    ``v = momentum * v + g``; then ``p -= lr * v``, or with `use_nesterov` ``p -= lr * (g + momentum
    * v)``. The states are named "moments.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float] | None): The learning
            rate: a number, a schedule, or a rate for each training step. Default: None.
        momentum (float | None): The weight of the steps before; must be given. Default: None.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.
        use_nesterov (bool): Whether Nesterov's form is computed. Default: False.
        lr (float | Tensor | None): Another name of `learning_rate`. Default: None.

    Raises:
        ValueError: For a negative momentum.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.Momentum([w], 0.5, 0.9)((ms.Tensor([1.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = None,
        momentum: float | None = None,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_nesterov: bool = False,
        *,
        lr: Any = None,
    ) -> None:
        if (learning_rate is None) == (lr is None):
            raise TypeError("Momentum: give the learning rate once, as learning_rate (or lr)")
        if momentum is None:
            raise TypeError("Momentum: the argument momentum is missing")
        super().__init__(learning_rate if lr is None else lr, params, weight_decay, loss_scale)
        factor = arguments.real("Momentum", "momentum", momentum, at_least=0)
        self.momentum = Parameter(Tensor(factor, D.float32), name="momentum", requires_grad=False)
        self.use_nesterov = arguments.flag("Momentum", "use_nesterov", use_nesterov)
        self.moments = self.states("moments")

    def _rule(self, lr: Tensor, p: Tensor, g: Tensor, v: Tensor) -> Sequence[Tensor]:
        return optimizer_updates.momentum(p, g, v, lr, self.momentum, self.use_nesterov)

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        return self.update(gradients, self._rule, self.moments)


class _NoMomentum(Parameter):
    """The momentum of an `SGD` that keeps none, which stays 0."""

    __slots__ = ()

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Take a 0; raise ValueError for any other number."""
        if np.any(np.asarray(data)):
            raise ValueError("SGD: was made without momentum; make one with a momentum above 0 to change it")
        return super().set_data(data, slice_shape)


class SGD(Optimizer):
    """Stochastic gradient descent with optional momentum, dampening and Nesterov's form, in
    PyTorch's definition.

    ``v = momentum * v + (1 - dampening) * g``, where the first step sets ``v = g``; then ``p -= lr
    * v``, or with `nesterov` ``p -= lr * (g + momentum * v)``. The states are named
    "accum.<parameter>" and "stat.<parameter>" (1 before the first step); a momentum of 0 leaves
    them alone.

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 0.1.
        momentum (float): The weight of the steps before. Default: 0.0.
        dampening (float): The part of the gradient that does not enter the momentum. Default: 0.0.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.
        nesterov (bool): Whether Nesterov's form is computed. Default: False.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.

    Raises:
        ValueError: For negative numbers, and for `nesterov` without momentum or with dampening.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.SGD([w], 0.5)((ms.Tensor([1.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: Any = 0.0,
        nesterov: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        factor = arguments.number("SGD", "momentum", momentum, at_least=0)
        self.dampening = arguments.number("SGD", "dampening", dampening, at_least=0)
        self.nesterov = arguments.flag("SGD", "nesterov", nesterov)
        if nesterov and (factor == 0 or dampening != 0):
            raise ValueError(
                f"SGD: nesterov needs a positive momentum and no dampening, but momentum is {momentum} and dampening "
                f"{dampening}"
            )
        self.keeps = factor > 0
        kind = Parameter if self.keeps else _NoMomentum
        self.momentum = kind(Tensor(factor, D.float32), name="momentum", requires_grad=False)
        self.accum = self.states("accum")
        self.stat = self.states("stat", "ones")

    def _rule(self, lr: Tensor, p: Tensor, g: Tensor, v: Tensor, first: Tensor) -> Sequence[Tensor]:
        return optimizer_updates.sgd(p, g, v, first, lr, self.momentum, 1 - self.dampening, self.nesterov)

    def _plain(self, lr: Tensor, p: Tensor, g: Tensor) -> Sequence[Tensor]:
        return optimizer_updates.descend(p, g, lr)

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        if self.keeps:
            return self.update(gradients, self._rule, self.accum, self.stat)
        return self.update(gradients, self._plain)
