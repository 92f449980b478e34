"""Adam and its relatives: steps scaled by running averages of the gradient and of its square.

With m and v the averages of g and g**2 with weights beta1 and beta2, and the powers b1 = beta1**t
and b2 = beta2**t kept as parameters:

    Adam             p -= lr * sqrt(1 - b2) / (1 - b1) * m / (sqrt(v) + eps)
    AdamWeightDecay  p -= lr * (m / (sqrt(v) + eps) + weight_decay * p)
    Lamb             p -= lr * |p| / |u| * u,
                     u = m / (1 - b1) / (sqrt(v / (1 - b2)) + eps) + weight_decay * p
    AdaMax           p -= lr / (1 - b1) * m / (u + eps),  u = max(beta2 * u, |g|)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.settings.ignored_settings import asked_for_host
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.nn.assignment import store
from mycel.nn.optim.optimizer import Optimizer
from mycel.ops import optimizer_updates

__all__ = ["AdaMax", "Adam", "AdamOffload", "AdamWeightDecay", "Lamb", "LazyAdam"]


def _checked(name: str, beta1: Any, beta2: Any, eps: Any) -> tuple[float, float, float]:
    """Return `eps` and the betas, rounded to float32 so that ``1 - beta`` is that of a float32
    tensor.
    """
    betas = [
        float(np.float32(arguments.real(name, n, b, above=0, below=1))) for n, b in (("beta1", beta1), ("beta2", beta2))
    ]
    return betas[0], betas[1], arguments.real(name, "eps", eps, above=0)


def _power(name: str, one_element: bool = False) -> Parameter:
    return Parameter(Tensor([1.0] if one_element else 1.0, D.float32), name=name, requires_grad=False)


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014), with Nesterov's form (Dozat, 2016) or the maximum of the second
    moments (Reddi et al., 2018) on request.

    The states are named "moment1.<parameter>", "moment2.<parameter>" and, with `use_amsgrad`,
    "vhat.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 0.001.
        beta1 (float): The weight of the running average of the gradient. Default: 0.9.
        beta2 (float): The weight of the running average of the squared gradient. Default: 0.999.
        eps (float): Added to the denominator. Default: 1e-08.
        use_locking (bool): Has no effect, since gradients are dense here. Default: False.
        use_nesterov (bool): Whether Nesterov's form is computed. Default: False.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.
        use_amsgrad (bool): Whether the maximum of the second moments is used. Default: False.
        **kwargs (bool): `use_lazy` and `use_offload`, which have no effect.

    Raises:
        ValueError: For betas outside (0, 1) and eps <= 0.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.Adam([w], 0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_amsgrad: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        name = type(self).__name__
        unknown = sorted(set(kwargs) - {"use_lazy", "use_offload"})
        if unknown:
            raise KeyError(
                f"{name}: unknown arguments {', '.join(unknown)}; the keywords are 'use_lazy' and 'use_offload'"
            )
        for option, value in (
            ("use_locking", use_locking),
            ("use_nesterov", use_nesterov),
            ("use_amsgrad", use_amsgrad),
            *kwargs.items(),
        ):
            arguments.flag(name, option, value)
        if use_amsgrad and (use_nesterov or any(kwargs.values())):
            raise ValueError(f"{name}: use_amsgrad does not go with use_nesterov, use_lazy or use_offload")
        self.beta1, self.beta2, self.eps = _checked(name, beta1, beta2, eps)
        self.use_nesterov, self.use_amsgrad, self.use_locking = use_nesterov, use_amsgrad, use_locking
        if kwargs.get("use_offload"):
            asked_for_host(f"{name}(use_offload=True)")
        self.use_lazy, self.use_offload = kwargs.get("use_lazy", False), kwargs.get("use_offload", False)
        self.beta1_power, self.beta2_power = _power("beta1_power"), _power("beta2_power")
        self.moment1 = self.states("moment1")
        self.moment2 = self.states("moment2")
        if use_amsgrad:
            self.vhat = self.states("vhat")

    def _rule(self, lr: Tensor, p: Tensor, g: Tensor, m: Tensor, v: Tensor, *top: Tensor) -> Sequence[Tensor]:
        rate = optimizer_updates.adam_rate(lr, self.beta1_power, self.beta2_power)
        return optimizer_updates.adam(p, g, m, v, rate, self.beta1, self.beta2, self.eps, self.use_nesterov, *top)

    def _apply_adam(
        self,
        params: Sequence[Parameter],
        beta1_power: Tensor,
        beta2_power: Tensor,
        moment1: Sequence[Parameter],
        moment2: Sequence[Parameter],
        lr: Any,
        gradients: Sequence[Tensor],
    ) -> bool:
        """Assign a step to parameters and their moments, for classes that prepare it themselves.

        `params`, `moment1`, `moment2` and `gradients` belong together, `beta1_power` and
        `beta2_power` are the betas to the number of the step, and `lr` is one rate or one for each
        parameter.
        """
        rates = lr if isinstance(lr, (tuple, list)) else (lr,) * len(params)
        highest = ((v,) for v in self.vhat) if self.use_amsgrad else ((),) * len(params)
        for p, m, v, rate, g, top in zip(params, moment1, moment2, rates, gradients, highest):
            rate = optimizer_updates.adam_rate(rate, beta1_power, beta2_power)
            new = optimizer_updates.adam(p, g, m, v, rate, self.beta1, self.beta2, self.eps, self.use_nesterov, *top)
            for target, value in zip((p, m, v, *top), new):
                store(target, value)
        return True

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        store(self.beta1_power, self.beta1_power * self.beta1)
        store(self.beta2_power, self.beta2_power * self.beta2)
        states = (self.moment1, self.moment2, self.vhat) if self.use_amsgrad else (self.moment1, self.moment2)
        return self.update(gradients, self._rule, *states)


class _DenseAdam(Adam):
    """Adam under the names of forms that differ in where, or for which gradients, the step is
    computed.

    `params`, `learning_rate`, `beta1`, `beta2`, `eps`, `use_locking`, `use_nesterov`,
    `weight_decay` and `loss_scale` are those of `Adam`.
    """

    _wants_host = False

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale)
        if self._wants_host:
            asked_for_host(type(self).__name__)


class LazyAdam(_DenseAdam):
    """Adam for sparse gradients; it is `Adam`, with its arguments, since gradients are dense here.

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 0.001.
        beta1 (float): The weight of the running average of the gradient. Default: 0.9.
        beta2 (float): The weight of the running average of the squared gradient. Default: 0.999.
        eps (float): A small number that keeps the division from being by zero. Default: 1e-08.
        use_locking (bool): Has no effect. Default: False.
        use_nesterov (bool): Whether Nesterov's form is computed. Default: False.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.LazyAdam([w], 0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.5], dtype=float32)
    """


class AdamOffload(_DenseAdam):
    """Adam whose step is computed on the host; it is `Adam`, with its arguments, and computes where
    the engine does, which says so once.

    Mostly that is the host.

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 0.001.
        beta1 (float): The weight of the running average of the gradient. Default: 0.9.
        beta2 (float): The weight of the running average of the squared gradient. Default: 0.999.
        eps (float): A small number that keeps the division from being by zero. Default: 1e-08.
        use_locking (bool): Has no effect. Default: False.
        use_nesterov (bool): Whether Nesterov's form is computed. Default: False.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.AdamOffload([w], 0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.5], dtype=float32)
    """

    _wants_host = True


class _Decoupled(Optimizer):
    """Base of optimizers whose weight decay is part of the step instead of the gradient.

    It has no initializer of its own: ``super(AdamWeightDecay, self).__init__`` of a class derived
    from such an optimizer is that of `Optimizer`.
    """

    def _begin(self, states: str, beta1: float, beta2: float, eps: float) -> None:
        """Keep the weights of the averages and eps, and make states whose names begin alike."""
        self.beta1, self.beta2, self.eps = _checked(type(self).__name__, beta1, beta2, eps)
        self.moments1 = self.states(f"{states}_m")
        self.moments2 = self.states(f"{states}_v")

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return the gradients unchanged, as the weight decay is part of the step."""
        return tuple(gradients)

    def _decoupled_rule(self, lr: Tensor, p: Tensor, g: Tensor, m: Tensor, v: Tensor, decay: Any) -> Sequence[Tensor]:
        raise NotImplementedError(f"{type(self).__name__} must define its rule")

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        prepared, rates, decays = self.prepare(gradients), self._rates(), self._decays()
        self.advance()
        for i, (p, g, flag) in enumerate(zip(self.parameters, prepared, self.decay_flags)):
            targets = (p, self.moments1[i], self.moments2[i])
            decay = decays[i] if flag and self.exec_weight_decay else 0.0
            for target, value in zip(targets, self._decoupled_rule(rates[i], p, g, *targets[1:], decay)):
                store(target, value)
        return True


class AdamWeightDecay(_Decoupled):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017) and without bias correction.

    The states are named "adam_m.<parameter>" and "adam_v.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 0.001.
        beta1 (float): The weight of the running average of the gradient. Default: 0.9.
        beta2 (float): The weight of the running average of the squared gradient. Default: 0.999.
        eps (float): Added to the denominator. Default: 1e-06.
        weight_decay (float | Cell): The factor of the decoupled decay. Default: 0.0.

    Raises:
        ValueError: For betas outside (0, 1) and eps <= 0.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.AdamWeightDecay([w], 0.1)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.6838], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self._begin("adam", beta1, beta2, eps)

    def _decoupled_rule(self, lr: Tensor, p: Tensor, g: Tensor, m: Tensor, v: Tensor, decay: Any) -> Sequence[Tensor]:
        return optimizer_updates.adam_decayed(p, g, m, v, lr, self.beta1, self.beta2, self.eps, decay)


class Lamb(_Decoupled):
    """Adam with a step for each parameter in proportion to its norm (You et al., "Large batch
    optimization", 2019).

    The states are named "lamb_m.<parameter>" and "lamb_v.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate,
            which must be given: a number, a schedule, or a rate for each training step.
        beta1 (float): The weight of the running average of the gradient. Default: 0.9.
        beta2 (float): The weight of the running average of the squared gradient. Default: 0.999.
        eps (float): A small number that keeps the division from being by zero. Default: 1e-06.
        weight_decay (float | Cell): The factor of the decoupled decay. Default: 0.0.

    Raises:
        ValueError: For betas outside (0, 1) and eps <= 0.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.Lamb([w], 0.1)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.9], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self._begin("lamb", beta1, beta2, eps)

    def _decoupled_rule(self, lr: Tensor, p: Tensor, g: Tensor, m: Tensor, v: Tensor, decay: Any) -> Sequence[Tensor]:
        step = ops.reshape(cast(self.global_step, D.float32), ())
        correct1, correct2 = 1 - ops.pow(self.beta1, step), 1 - ops.pow(self.beta2, step)
        return optimizer_updates.lamb(p, g, m, v, lr, self.beta1, self.beta2, self.eps, decay, correct1, correct2)


class AdaMax(Optimizer):
    """Adam with the largest absolute gradient instead of the root mean square (Kingma and Ba, 2014,
    section 7).

    The states are named "moment1.<parameter>" and "moment2.<parameter>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float]): The learning rate:
            a number, a schedule, or a rate for each training step. Default: 0.001.
        beta1 (float): The weight of the running average of the gradient. Default: 0.9.
        beta2 (float): The weight of the running maximum of its absolute values. Default: 0.999.
        eps (float): Added to the denominator. Default: 1e-08.
        weight_decay (float | Cell): The decay: ``weight_decay * p`` is added to the gradient of
            each parameter. Default: 0.0.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.

    Raises:
        ValueError: For betas outside (0, 1) and eps <= 0.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.nn.AdaMax([w], 0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.beta1, self.beta2, self.eps = _checked("AdaMax", beta1, beta2, eps)
        self.beta1_power = _power("beta1_power", True)
        self.moment1 = self.states("moment1")
        self.moment2 = self.states("moment2")

    def _rule(self, lr: Tensor, p: Tensor, g: Tensor, m: Tensor, u: Tensor) -> Sequence[Tensor]:
        rate = lr / (1 - ops.reshape(self.beta1_power, ()))
        return optimizer_updates.adamax(p, g, m, u, rate, self.beta1, self.beta2, self.eps)

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        store(self.beta1_power, self.beta1_power * self.beta1)
        return self.update(gradients, self._rule, self.moment1, self.moment2)
