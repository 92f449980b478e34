"""Adam and its relatives: steps scaled by running averages of the gradient and of its square.

With m and v the averages of g and g**2 of weights beta1 and beta2, and powers b1 = beta1**t and b2 = beta2**t kept as parameters:

    Adam             p -= lr * sqrt(1 - b2) / (1 - b1) * m / (sqrt(v) + eps)
    AdamWeightDecay  p -= lr * (m / (sqrt(v) + eps) + weight_decay * p)
    Lamb             p -= lr * |p| / |u| * u,  u = m / (1 - b1) / (sqrt(v / (1 - b2)) + eps) + weight_decay * p
    AdaMax           p -= lr / (1 - b1) * m / (u + eps),  u = max(beta2 * u, |g|)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel import dtype as D
from mycel import ops
from mycel.nn import checks
from mycel.nn.optim.optimizer import Optimizer
from mycel.nn.state import store
from mycel.parameter import Parameter
from mycel.tensor import Tensor, cast

__all__ = ["AdaMax", "Adam", "AdamWeightDecay", "Lamb", "LazyAdam"]


def _checked(name: str, beta1: Any, beta2: Any, eps: Any) -> tuple[float, float, float]:
    """The betas as float32 holds them, so that ``1 - beta`` is that of a float32 tensor, and eps."""
    betas = [
        float(np.float32(checks.number(name, n, b, above=0, below=1))) for n, b in (("beta1", beta1), ("beta2", beta2))
    ]
    return betas[0], betas[1], checks.number(name, "eps", eps, above=0)


def _power(name: str, one_element: bool = False) -> Parameter:
    return Parameter(Tensor([1.0] if one_element else 1.0, D.float32), name=name, requires_grad=False)


def _mean(average: Tensor, value: Tensor, beta: float) -> Tensor:
    return beta * average + (1 - beta) * value  # type: ignore[no-any-return]


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014), with Nesterov's form (Dozat, 2016) or the maximum of the second moments (Reddi et al., 2018) on request.

    The states are named "moment1.<parameter>", "moment2.<parameter>" and, with `use_amsgrad`, "vhat.<parameter>". `use_locking` and the keywords
    `use_lazy` and `use_offload` change nothing, since gradients are dense here. Raises ValueError for betas outside (0, 1) and eps <= 0.

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
            checks.boolean(name, option, value)
        if use_amsgrad and (use_nesterov or any(kwargs.values())):
            raise ValueError(f"{name}: use_amsgrad does not go with use_nesterov, use_lazy or use_offload")
        self.beta1, self.beta2, self.eps = _checked(name, beta1, beta2, eps)
        self.use_nesterov, self.use_amsgrad = use_nesterov, use_amsgrad
        self.beta1_power, self.beta2_power = _power("beta1_power"), _power("beta2_power")
        self.moment1 = self.states("moment1")
        self.moment2 = self.states("moment2")
        if use_amsgrad:
            self.vhat = self.states("vhat")

    def _rule(self, lr: Tensor, p: Tensor, g: Tensor, m: Tensor, v: Tensor, *largest: Tensor) -> Sequence[Tensor]:
        m, v = _mean(m, g, self.beta1), _mean(v, g * g, self.beta2)
        rate = lr * ops.sqrt(1 - self.beta2_power) / (1 - self.beta1_power)
        direction = _mean(m, g, self.beta1) if self.use_nesterov else m
        if not largest:
            return p - rate * direction / (ops.sqrt(v) + self.eps), m, v
        top = ops.maximum(largest[0], v)
        return p - rate * direction / (ops.sqrt(top) + self.eps), m, v, top

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        store(self.beta1_power, self.beta1_power * self.beta1)
        store(self.beta2_power, self.beta2_power * self.beta2)
        states = (self.moment1, self.moment2, self.vhat) if self.use_amsgrad else (self.moment1, self.moment2)
        return self.update(gradients, self._rule, *states)


class LazyAdam(Adam):
    """Adam for sparse gradients; gradients are dense here, for which it is `Adam`.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> _ = ms.nn.LazyAdam([w], 0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
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
    ) -> None:
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale)


class _Decoupled(Optimizer):
    """Weight decay goes into the step, not into the gradient."""

    def __init__(
        self, params: Any, learning_rate: Any, beta1: float, beta2: float, eps: float, weight_decay: Any
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.beta1, self.beta2, self.eps = _checked(type(self).__name__, beta1, beta2, eps)

    def decay_weight(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The gradients as they are: the decay is part of the step."""
        return tuple(gradients)

    def _decayed(self, update: Tensor, p: Tensor, decay: Any, flag: bool) -> Tensor:
        return update + decay * p if flag and self.exec_weight_decay else update  # type: ignore[no-any-return]


class AdamWeightDecay(_Decoupled):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017) and without bias correction.

    The states are named "adam_m.<parameter>" and "adam_v.<parameter>". Raises ValueError for betas outside (0, 1) and eps <= 0.

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
        super().__init__(params, learning_rate, beta1, beta2, eps, weight_decay)
        self.moments1 = self.states("adam_m")
        self.moments2 = self.states("adam_v")

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        prepared, rates, decays = self.prepare(gradients), self._rates(), self._decays()
        self.advance()
        for i, (lr, p, g) in enumerate(zip(rates, self.parameters, prepared)):
            m, v = _mean(self.moments1[i], g, self.beta1), _mean(self.moments2[i], g * g, self.beta2)
            update = self._decayed(m / (ops.sqrt(v) + self.eps), p, decays[i], self.decay_flags[i])
            store(self.moments1[i], m)
            store(self.moments2[i], v)
            store(p, p - lr * update)
        return True


class Lamb(_Decoupled):
    """Adam with a step for each parameter in proportion to its norm (You et al., "Large batch optimization", 2019).

    The states are named "lamb_m.<parameter>" and "lamb_v.<parameter>". Raises ValueError for betas outside (0, 1) and eps <= 0.

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
        super().__init__(params, learning_rate, beta1, beta2, eps, weight_decay)
        self.moments1 = self.states("lamb_m")
        self.moments2 = self.states("lamb_v")

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        prepared, rates, decays = self.prepare(gradients), self._rates(), self._decays()
        self.advance()
        step = ops.reshape(cast(self.global_step, D.float32), ())
        correct1, correct2 = 1 - ops.pow(self.beta1, step), 1 - ops.pow(self.beta2, step)
        for i, (lr, p, g) in enumerate(zip(rates, self.parameters, prepared)):
            m, v = _mean(self.moments1[i], g, self.beta1), _mean(self.moments2[i], g * g, self.beta2)
            update = m / correct1 / (ops.sqrt(v / correct2) + self.eps)
            update = self._decayed(update, p, decays[i], self.decay_flags[i])
            size, length = ops.sqrt(ops.sum(p * p)), ops.sqrt(ops.sum(update * update))
            usable = ops.logical_and(size > 0, length > 0)
            ratio = ops.where(usable, size / ops.where(usable, length, ops.ones_like(length)), ops.ones_like(length))
            store(self.moments1[i], m)
            store(self.moments2[i], v)
            store(p, p - lr * ratio * update)
        return True


class AdaMax(Optimizer):
    """Adam with the largest instead of the mean square (Kingma and Ba, 2014, section 7).

    The states are named "moment1.<parameter>" and "moment2.<parameter>". Raises ValueError for betas outside (0, 1) and eps <= 0.

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
        m, u = _mean(m, g, self.beta1), ops.maximum(self.beta2 * u, ops.abs(g))
        return p - lr / (1 - ops.reshape(self.beta1_power, ())) * m / (u + self.eps), m, u

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        store(self.beta1_power, self.beta1_power * self.beta1)
        return self.update(gradients, self._rule, self.moment1, self.moment2)
