"""Optimizers that scale each coordinate's step by the squares of its past gradients."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel.experimental.optim.optimizer import Group, Optimizer, put, single
from mycel.ops import optimizer_updates

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012), whose steps are in proportion to the size of the steps before.

    ``s = rho * s + (1 - rho) * g**2; d = sqrt(a + eps) / sqrt(s + eps) * g; a = rho * a + (1 - rho)
    * d**2; p -= lr * d``. The states s are "accum.<parameter>", the states a
    "accum_update.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The learning rate. Default: 1.0.
        rho (float): The weight of the running averages, in [0, 1]. Default: 0.9.
        eps (float): Added under the roots. Default: 1e-06.
        weight_decay (float): The decay: ``weight_decay * p`` is added to the gradient of each
            parameter. Default: 0.0.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Raises:
        ValueError: For negative numbers and `rho` above 1.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.experimental.optim.Adadelta([w], lr=100.0)((ms.Tensor([3.0]),)); w.asnumpy(
        ...     ).round(3)
        array([0.684], dtype=float32)
    """

    _above_zero = ("lr", "eps")

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        arguments.real("Adadelta", "rho", rho)
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize})
        self._states("accum")
        self._states("accum_update")

    def _check_group(self, group: Group) -> None:
        self._checked(group, ("eps", "weight_decay"))
        arguments.number(type(self).__name__, "rho", group["rho"], at_least=0, at_most=1)

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        for group, rows in self._each(gradients, self.accum, self.accum_update):
            lr, rho, eps = group["lr"], group["rho"], group["eps"]
            for g, targets in rows:
                p, s, a = targets
                put(targets, *optimizer_updates.adadelta(p, g, s, a, lr, rho, eps))
        return True


class Adagrad(Optimizer):
    """AdaGrad (Duchi et al., 2011): ``a += g**2; p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(a)
    + eps)``.

    The states are "accum.<parameter>"; the steps are counted in "step_t".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The learning rate. Default: 0.01.
        lr_decay (float): The decay of the rate. Default: 0.0.
        weight_decay (float): The decay: ``weight_decay * p`` is added to the gradient of each
            parameter. Default: 0.0.
        initial_accumulator_value (float): The first value of the states. Default: 0.0.
        eps (float): Added to the denominator. Default: 1e-10.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Raises:
        ValueError: For negative numbers.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.experimental.optim.Adagrad([w], lr=0.5)((ms.Tensor([3.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    _above_zero = ("lr", "eps")

    def __init__(
        self,
        params: Any,
        lr: Any = 0.01,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "maximize": maximize,
            },
        )
        self._states("accum", lambda group: float(group["initial_accumulator_value"]))
        self._counter("step_t")

    def _check_group(self, group: Group) -> None:
        self._checked(group, ("lr_decay", "eps", "weight_decay", "initial_accumulator_value"))

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        t = self._count(self.step_t)
        for group, rows in self._each(gradients, self.accum):
            eps, rate = group["eps"], group["lr"] * single(1 / (1 + (t - 1) * group["lr_decay"]))
            for g, targets in rows:
                p, a = targets
                put(targets, *optimizer_updates.adagrad(p, g, a, rate, eps))
        return True


class RMSprop(Optimizer):
    """RMSProp (Tieleman and Hinton, 2012), with momentum, and centred (Graves, 2013) on request.

    ``s = alpha * s + (1 - alpha) * g**2; d = g / (sqrt(s) + eps)``; then ``p -= lr * d``, or with
    momentum ``v = momentum * v + d; p -= lr * v``. The states are "mean_square.<parameter>",
    "moment.<parameter>" and "mean_grad.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The learning rate. Default: 0.01.
        alpha (float): The weight of the running average. Default: 0.99.
        eps (float): Added to the denominator. Default: 1e-08.
        weight_decay (float): The decay: ``weight_decay * p`` is added to the gradient of each
            parameter. Default: 0.0.
        momentum (float): The weight of the steps before. Default: 0.0.
        centered (bool): Whether the square of the mean gradient is subtracted from s. Default:
            False.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Raises:
        ValueError: For negative numbers.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> step = ms.experimental.optim.RMSprop([w], lr=0.1, alpha=0.75)
        >>> _ = step((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.8], dtype=float32)
    """

    _above_zero = ("lr", "eps")

    def __init__(
        self,
        params: Any,
        lr: Any = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "maximize": maximize,
            },
        )
        self._states("mean_square")
        self._states("moment")
        self._states("mean_grad")

    def _check_group(self, group: Group) -> None:
        self._checked(group, ("alpha", "eps", "weight_decay", "momentum"))

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        for group, rows in self._each(gradients, self.mean_square, self.moment, self.mean_grad):
            lr, alpha, eps = group["lr"], group["alpha"], group["eps"]
            momentum, centered = group["momentum"], group["centered"]
            for g, targets in rows:
                p, s, v, mean = targets
                s = optimizer_updates.average(s, g * g, alpha)
                spread = s
                if centered:
                    mean = optimizer_updates.average(mean, g, alpha)
                    spread = s - mean * mean
                d = g / (ops.sqrt(spread) + eps)
                v = v * momentum + d if momentum > 0 else v
                put(targets, p - lr * (v if momentum > 0 else d), s, v, mean)
        return True
