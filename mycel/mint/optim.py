"""Optimizers under the names of PyTorch, which are those of `mycel.experimental.optim`."""

from __future__ import annotations

from typing import Any

from mycel.experimental import optim

__all__ = ["Adam", "AdamW", "FusedAdamW", "SGD"]


class Adam(optim.Adam):
    """Adam (Kingma and Ba, 2014), as `mycel.experimental.optim.Adam`, whose arguments it takes.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> _ = ms.mint.optim.Adam([w], lr=0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
    array([0.5], dtype=float32)
    """


class AdamW(optim.AdamW):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017), as
    `mycel.experimental.optim.AdamW`, whose arguments it takes.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> _ = ms.mint.optim.AdamW([w], lr=0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
    array([0.495], dtype=float32)
    """


class FusedAdamW(AdamW):
    """`AdamW`, with its arguments, whose step is always one program.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> _ = ms.mint.optim.FusedAdamW([w], lr=0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
    array([0.495], dtype=float32)
    """


class SGD(optim.SGD):
    """Stochastic gradient descent with momentum, dampening and Nesterov's form, as
    `mycel.experimental.optim.SGD`.

    `params` lists the parameters or groups of them, `weight_decay` adds ``weight_decay * p`` to the
    gradient, `nesterov` selects Nesterov's form, and `maximize` increases the loss instead of
    decreasing it.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> _ = ms.mint.optim.SGD([w], lr=0.5)((ms.Tensor([1.0]),)); w.asnumpy()
    array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        lr: Any,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, maximize=maximize)
