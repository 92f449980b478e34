"""Adam and its relatives: steps scaled by running averages m of the gradient g and v of its square.

The averages have the weights b1 and b2, and start at 0, for which they are corrected. With t the
number of the step, M = m / (1 - b1**t) and V = v / (1 - b2**t):

    Adam, AdamW  p -= lr * M / (sqrt(V) + eps), with amsgrad V of the largest v so far;
                 AdamW first p *= 1 - lr * weight_decay
    Adamax       p -= lr * M / u, u = max(b2 * u, |g| + eps)
    NAdam        p -= lr * ((1 - c) / (1 - C) * g + c' / (1 - C c') * m) / (sqrt(V) + eps),
                 with c = b1 * (1 - 0.96**(t * momentum_decay) / 2), c' that of the next step
                 and C the product of all c
    RAdam        p -= lr * M * r / (sqrt(V) + eps) where the variance of the rate is finite
                 (rho > 5), p -= lr * M where not

The factors that depend on the step are computed in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.experimental.optim.optimizer import Group, Optimizer, check_betas, put, single
from mycel.nn.assignment import store
from mycel.ops import optimizer_updates

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014), or its form with the largest second moment so far (Reddi et al.,
    2018).

    The states are "exp_avg.<parameter>", "exp_avg_sq.<parameter>", with `amsgrad`
    "max_exp_avg_sq.<parameter>", and "state_step".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The learning rate. Default: 0.001.
        betas (tuple[float, float]): The weights of the running averages of the gradient and of its
            square. Default: (0.9, 0.999).
        eps (float): Added to the denominator. Default: 1e-08.
        weight_decay (float): The decay: ``weight_decay * p`` is added to the gradient of each
            parameter. Default: 0.0.
        amsgrad (bool): Whether the largest second moment so far is used. Default: False.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Raises:
        ValueError: For numbers below 0 and betas outside [0, 1).

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.experimental.optim.Adam([w], lr=0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.5], dtype=float32)
    """

    _decoupled = False

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
            },
        )
        self._states("exp_avg")
        self._states("exp_avg_sq")
        self._states("max_exp_avg_sq")
        self._counter("state_step")

    def _check_group(self, group: Group) -> None:
        self._checked(group, ("eps", "weight_decay"), "betas")
        group["amsgrad"] = bool(group["amsgrad"])

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        t = self._count(self.state_step)
        states = (self.exp_avg, self.exp_avg_sq, self.max_exp_avg_sq)
        for group, rows in self._each(gradients, *states, decay=not self._decoupled):
            lr, eps, (b1, b2) = group["lr"], group["eps"], group["betas"]
            rate, spread = lr * single(1 / (1 - b1**t)), single(1 / ops.sqrt(1 - b2**t))
            kept = 1 - lr * group["weight_decay"] if self._decoupled and group["weight_decay"] else None
            amsgrad = group["amsgrad"]
            for g, targets in rows:
                p, m, v, top = targets
                p = p if kept is None else p * kept
                put(
                    targets,
                    *optimizer_updates.adam(p, g, m, v, rate, b1, b2, eps, False, top if amsgrad else None, spread),
                )
        return True


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017): ``p *= 1 - lr *
    weight_decay`` before the step.

    The states are those of `Adam`.

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The learning rate. Default: 0.001.
        betas (tuple[float, float]): The weights of the running averages of the gradient and of its
            square. Default: (0.9, 0.999).
        eps (float): Added to the denominator. Default: 1e-08.
        weight_decay (float): The factor of the decoupled decay. Default: 0.01.
        amsgrad (bool): Whether the largest second moment so far is used. Default: False.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.experimental.optim.AdamW([w], lr=0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.495], dtype=float32)
    """

    _decoupled = True

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class Adamax(Optimizer):
    """Adam with the largest absolute gradient instead of the root mean square (Kingma and Ba, 2014,
    section 7).

    The states are "exp_avg.<parameter>", "exp_inf.<parameter>" and "step_t".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The learning rate. Default: 0.002.
        betas (tuple[float, float]): The weights of the running average and of the running maximum.
            Default: (0.9, 0.999).
        eps (float): Added to the denominator. Default: 1e-08.
        weight_decay (float): The decay: ``weight_decay * p`` is added to the gradient of each
            parameter. Default: 0.0.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Raises:
        ValueError: For numbers below 0 and betas outside [0, 1).

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.experimental.optim.Adamax([w], lr=0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.5], dtype=float32)
    """

    _above_zero = ("lr", "eps")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        check_betas("Adamax", betas)
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        )
        self._states("exp_avg")
        self._states("exp_inf")
        self._counter("step_t")

    def _check_group(self, group: Group) -> None:
        self._checked(group, ("eps", "weight_decay"), "betas")

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        t = self._count(self.step_t)
        for group, rows in self._each(gradients, self.exp_avg, self.exp_inf):
            eps, (b1, b2) = group["eps"], group["betas"]
            rate = group["lr"] * single(1 / (1 - b1**t))
            for g, targets in rows:
                p, m, u = targets
                put(targets, *optimizer_updates.adamax(p, g, m, u, rate, b1, b2, eps, within=True))
        return True


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, whose weight changes with the step (Dozat, 2016).

    The states are "exp_avg.<parameter>", "exp_avg_sq.<parameter>", "step_t" and for each group the
    product of the weights of its momentum, "mu_product_<group>".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The learning rate. Default: 0.002.
        betas (tuple[float, float]): The weights of the running averages. Default: (0.9, 0.999).
        eps (float): Added to the denominator. Default: 1e-08.
        weight_decay (float): The decay: ``weight_decay * p`` is added to the gradient of each
            parameter. Default: 0.0.
        momentum_decay (float): How fast the weight of the momentum changes: the larger, the sooner
            it reaches ``betas[0]``. Default: 0.004.

    Raises:
        ValueError: For numbers below 0 and betas outside [0, 1).

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.experimental.optim.NAdam([w], lr=0.1)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.8944], dtype=float32)
    """

    _above_zero = ("lr", "eps")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
    ) -> None:
        check_betas("NAdam", betas)
        super().__init__(
            params,
            {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay},
        )
        self._states("exp_avg")
        self._states("exp_avg_sq")
        self._counter("step_t")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with its own options."""
        super().add_param_group(param_group)
        held = Parameter(Tensor(np.float64(1)), name=f"mu_product_{len(self.param_groups) - 1}", requires_grad=False)
        setattr(self, held.name, held)

    def _check_group(self, group: Group) -> None:
        self._checked(group, ("eps", "weight_decay", "momentum_decay"), "betas")

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        t = self._count(self.step_t)
        for number, (group, rows) in enumerate(self._each(gradients, self.exp_avg, self.exp_avg_sq)):
            eps, (b1, b2), slowing = group["eps"], group["betas"], group["momentum_decay"]
            product = getattr(self, f"mu_product_{number}")
            now, after = (b1 * (1 - 0.5 * 0.96 ** (step * slowing)) for step in (t, t + 1))
            store(product, product * now)
            total = cast(product, D.float64)
            fresh = group["lr"] * single((1 - now) / (1 - total))
            momentum = group["lr"] * single(after / (1 - total * after))
            spread = single(1 / ops.sqrt(1 - b2**t))
            for g, targets in rows:
                p, m, v = targets
                m, v = optimizer_updates.average(m, g, b1), optimizer_updates.average(v, g * g, b2)
                put(targets, p - (fresh * g + momentum * m) / (ops.sqrt(v) * spread + eps), m, v)
        return True


class RAdam(Optimizer):
    """Adam that rectifies the variance of its rate, and omits the second moment until that variance
    is finite (Liu et al., 2019).

    The states are "exp_avg.<parameter>", "exp_avg_sq.<parameter>" and "step_t".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The learning rate. Default: 0.001.
        betas (tuple[float, float]): The weights of the running averages. Default: (0.9, 0.999).
        eps (float): Added to the denominator. Default: 1e-08.
        weight_decay (float): The decay: ``weight_decay * p`` is added to the gradient of each
            parameter. Default: 0.0.

    Raises:
        ValueError: For numbers below 0 and betas outside [0, 1).

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.experimental.optim.RAdam([w], lr=0.1)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.7], dtype=float32)
    """

    _above_zero = ("lr", "eps")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        check_betas("RAdam", betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self._states("exp_avg")
        self._states("exp_avg_sq")
        self._counter("step_t")

    def _check_group(self, group: Group) -> None:
        self._checked(group, ("eps", "weight_decay"), "betas")

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        t = self._count(self.step_t)
        for group, rows in self._each(gradients, self.exp_avg, self.exp_avg_sq):
            eps, (b1, b2) = group["eps"], group["betas"]
            rate = group["lr"] * single(1 / (1 - b1**t))
            most = 2 / (1 - b2) - 1
            rho = most - 2 * t * b2**t / (1 - b2**t)
            known = rho > 5
            # Where rho is too small, 6 replaces it, so that the root exists; it is not used there.
            length = ops.where(known, rho, ops.full_like(rho, 6.0))
            rectified = ops.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length) * (1 - b2**t))
            scale = single(rectified)
            for g, targets in rows:
                p, m, v = targets
                m, v = optimizer_updates.average(m, g, b1), optimizer_updates.average(v, g * g, b2)
                put(targets, p - rate * m * ops.where(known, scale / (ops.sqrt(v) + eps), ops.ones_like(v)), m, v)
        return True
