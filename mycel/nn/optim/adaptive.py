"""Optimizers that scale each coordinate's step by the squares of its past gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.optim.optimizer import Optimizer
from mycel.ops import optimizer_updates

__all__ = ["Adadelta", "Adagrad", "FTRL", "ProximalAdagrad", "RMSProp"]


class Adagrad(Optimizer):
    """AdaGrad (Duchi et al., 2011): ``a += g**2; p -= lr * g / sqrt(a)``.

    The states are named "accum.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        accum (float): The first value of the states. Default: 0.1.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 0.001.
        update_slots (bool): Whether the states are updated. Default: True.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.

    Raises:
        ValueError: For a negative `accum`.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.Adagrad([w], 0.0, 0.5)((ms.Tensor([3.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 0.001,
        update_slots: bool = True,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        arguments.real("Adagrad", "accum", accum, at_least=0)
        self.update_slots = arguments.flag("Adagrad", "update_slots", update_slots)
        self.accum = self.states("accum", accum)

    def _rule(self, lr: Tensor, p: Tensor, g: Tensor, a: Tensor) -> Sequence[Tensor]:
        return optimizer_updates.adagrad(p, g, a, lr, accumulate=self.update_slots)

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        return self.update(gradients, self._rule, self.accum)


class RMSProp(Optimizer):
    """RMSProp (Tieleman and Hinton, 2012), with momentum, and centred (Graves, 2013) on request.

    ``s = decay * s + (1 - decay) * g**2; v = momentum * v + lr * g / sqrt(s + epsilon); p -= v``.

    The states are named "mean_square.<parameter>" (1 at first), "moment.<parameter>" and
    "mean_grad.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 0.1.
        decay (float): The weight of the running averages. Default: 0.9.
        momentum (float): The weight of the steps before. Default: 0.0.
        epsilon (float): Added under the root. Default: 1e-10.
        use_locking (bool): Has no effect. Default: False.
        centered (bool): Whether the square of the mean gradient is subtracted from s. Default:
            False.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.

    Raises:
        ValueError: For negative numbers and epsilon <= 0.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.RMSProp([w], 0.5)((ms.Tensor([1.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.decay = arguments.real("RMSProp", "decay", decay, at_least=0)
        self.momentum = arguments.real("RMSProp", "momentum", momentum, at_least=0)
        self.epsilon = arguments.real("RMSProp", "epsilon", epsilon, above=0)
        arguments.flag("RMSProp", "use_locking", use_locking)
        self.centered = arguments.flag("RMSProp", "centered", centered)
        self.ms = self.states("mean_square", "ones")
        self.moment = self.states("moment")
        if centered:
            self.mg = self.states("mean_grad")

    def _rule(self, lr: Tensor, p: Tensor, g: Tensor, s: Tensor, v: Tensor, *mean: Tensor) -> Sequence[Tensor]:
        numbers = (lr, self.decay, self.momentum, self.epsilon)
        return (
            optimizer_updates.centred_rmsprop(p, g, s, v, mean[0], *numbers)
            if mean
            else optimizer_updates.rmsprop(p, g, s, v, *numbers)
        )

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        return self.update(gradients, self._rule, self.ms, self.moment, *((self.mg,) if self.centered else ()))


class ProximalAdagrad(Optimizer):
    """AdaGrad with a proximal step for the penalty ``l1 * |p| + l2 / 2 * p**2`` (Duchi and Singer,
    2009).

    ``a += g**2; r = lr / sqrt(a); q = p - r * g; p = sign(q) * max(|q| - r * l1, 0) / (1 + r *
    l2)``. The states a are named "accum.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        accum (float): The first value of the states. Default: 0.1.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 0.001.
        l1 (float): The strength of the L1 regularisation. Default: 0.0.
        l2 (float): The strength of the L2 regularisation. Default: 0.0.
        use_locking (bool): Has no effect. Default: False.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.

    Raises:
        ValueError: For negative numbers.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.ProximalAdagrad([w], 0.0, 0.5)((ms.Tensor([3.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        accum: float = 0.1,
        learning_rate: Any = 0.001,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        arguments.real("ProximalAdagrad", "accum", accum, at_least=0)
        self.l1 = arguments.real("ProximalAdagrad", "l1", l1, at_least=0)
        self.l2 = arguments.real("ProximalAdagrad", "l2", l2, at_least=0)
        arguments.flag("ProximalAdagrad", "use_locking", use_locking)
        self.accum = self.states("accum", accum)

    def _rule(self, lr: Tensor, p: Tensor, g: Tensor, a: Tensor) -> Sequence[Tensor]:
        return optimizer_updates.proximal_adagrad(p, g, a, lr, self.l1, self.l2)

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        return self.update(gradients, self._rule, self.accum)


class FTRL(Optimizer):
    """Follow the regularized leader, proximal (McMahan et al., "Ad click prediction", 2013).

    With ``n' = n + g**2`` and ``s = (n'**-lr_power - n**-lr_power) / lr``: ``z += g - s * p``; p is
    0 where ``|z| <= l1``, else ``(sign(z) * l1 - z) / (n'**-lr_power / lr + 2 * l2)``.

    All parameters share one constant `learning_rate`. The states are named "moments.<parameter>"
    (n) and "linear.<parameter>" (z).

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        initial_accum (float): The first value of n. Default: 0.1.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 0.001.
        lr_power (float): The power of the learning rate, at most 0. Default: -0.5.
        l1 (float): The strength of the L1 regularisation. Default: 0.0.
        l2 (float): The strength of the L2 regularisation. Default: 0.0.
        use_locking (bool): Has no effect. Default: False.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.

    Raises:
        ValueError: For negative numbers and a positive `lr_power`.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([0.0]), name="w")
        >>> _ = ms.nn.FTRL([w], 0.0, 0.5)((ms.Tensor([3.0]),)); w.asnumpy()
        array([-0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        initial_accum: float = 0.1,
        learning_rate: Any = 0.001,
        lr_power: float = -0.5,
        l1: float = 0.0,
        l2: float = 0.0,
        use_locking: bool = False,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise ValueError("FTRL: one constant learning rate is supported; leave 'lr' out of the groups")
        arguments.real("FTRL", "learning_rate", learning_rate)
        if not self.is_group:
            self.decay_flags = (True,) * self.param_length
        arguments.real("FTRL", "initial_accum", initial_accum, at_least=0)
        self.lr_power = arguments.real("FTRL", "lr_power", lr_power, at_most=0)
        self.l1 = arguments.real("FTRL", "l1", l1, at_least=0)
        self.l2 = arguments.real("FTRL", "l2", l2, at_least=0)
        arguments.flag("FTRL", "use_locking", use_locking)
        self.moments = self.states("moments", initial_accum)
        self.linear = self.states("linear")

    def _rule(self, lr: Tensor, p: Tensor, g: Tensor, n: Tensor, z: Tensor) -> Sequence[Tensor]:
        return optimizer_updates.ftrl(p, g, n, z, lr, self.l1, self.l2, self.lr_power)

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        return self.update(gradients, self._rule, self.moments, self.linear)


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012), whose steps are in proportion to the size of the steps before.

    ``a = rho * a + (1 - rho) * g**2; d = sqrt(u + epsilon) / sqrt(a + epsilon) * g; u = rho * u +
    (1 - rho) * d**2; p -= lr * d``.

    The states are named "accum.<parameter>" and "accum_update.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 1.0.
        rho (float): The weight of the running averages, in [0, 1]. Default: 0.9.
        epsilon (float): Added under the roots. Default: 1e-06.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.

    Raises:
        ValueError: For `rho` outside [0, 1] and negative `epsilon`.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.Adadelta([w], 0.5, 0.0, 1e-6)((ms.Tensor([1.0]),)); w.asnumpy().round(4)
        array([0.9995], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1.0,
        rho: float = 0.9,
        epsilon: float = 1e-6,
        loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.rho = arguments.real("Adadelta", "rho", rho, at_least=0, at_most=1)
        self.epsilon = arguments.real("Adadelta", "epsilon", epsilon, at_least=0)
        self.accum = self.states("accum")
        self.accum_update = self.states("accum_update")

    def _rule(self, lr: Tensor, p: Tensor, g: Tensor, a: Tensor, u: Tensor) -> Sequence[Tensor]:
        return optimizer_updates.adadelta(p, g, a, u, lr, self.rho, self.epsilon)

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        return self.update(gradients, self._rule, self.accum, self.accum_update)
