"""Optimizers under the names of PyTorch, which are those of `mycel.experimental.optim`."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.public_names import listing as _listing
from mycel.experimental import optim

__all__ = ["Adam", "AdamW", "FusedAdamW", "SGD"]


def _check(name: str, betas: Any, amsgrad: Any, maximize: Any, **numbers: Any) -> None:
    """Check that `betas` is a tuple of two floats in [0, 1), that `amsgrad` and `maximize` are
    bools, and that each of `numbers` is a float of at least 0.
    """
    arguments.flag(name, "amsgrad", amsgrad)
    arguments.flag(name, "maximize", maximize)
    if len(arguments.instance(name, "betas", betas, tuple)) != 2:
        raise arguments.wrong_value(name, "betas", "two floats", betas)
    for beta in betas:
        arguments.real(name, "each of betas", beta, at_least=0, below=1)
    for key, value in numbers.items():
        arguments.real(name, key, value, at_least=0)


class Adam(optim.Adam):
    """Adam (Kingma and Ba, 2014), as `mycel.experimental.optim.Adam`, whose arguments it takes.

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float): The learning rate, a float (a group may have an int). Default: 0.001.
        betas (tuple[float, float]): The weights of the running averages. Default: (0.9, 0.999).
        eps (float): Added to the denominator. Default: 1e-08.
        weight_decay (float): The decay: ``weight_decay * p`` is added to the gradient of each
            parameter. Default: 0.0.
        amsgrad (bool): Whether the largest second moment so far is used. Default: False.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.mint.optim.Adam([w], lr=0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        _check(type(self).__name__, betas, amsgrad, maximize, lr=lr, eps=eps, weight_decay=weight_decay)
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class AdamW(optim.AdamW):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017), as
    `mycel.experimental.optim.AdamW`, whose arguments it takes.

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float): The learning rate, a float (a group may have an int). Default: 0.001.
        betas (tuple[float, float]): The weights of the running averages. Default: (0.9, 0.999).
        eps (float): Added to the denominator. Default: 1e-08.
        weight_decay (float): The factor of the decoupled decay. Default: 0.01.
        amsgrad (bool): Whether the largest second moment so far is used. Default: False.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.mint.optim.AdamW([w], lr=0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.495], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        _check(type(self).__name__, betas, amsgrad, maximize, lr=lr, eps=eps, weight_decay=weight_decay)
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class FusedAdamW(AdamW):
    """`AdamW`, with its arguments, whose step is always one program.

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float): The learning rate, a float (a group may have an int). Default: 0.001.
        betas (tuple[float, float]): The weights of the running averages. Default: (0.9, 0.999).
        eps (float): Added to the denominator. Default: 1e-08.
        weight_decay (float): The factor of the decoupled decay. Default: 0.01.
        amsgrad (bool): Whether the largest second moment so far is used. Default: False.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> _ = ms.mint.optim.FusedAdamW([w], lr=0.5)((ms.Tensor([3.0]),)); w.asnumpy().round(4)
        array([0.495], dtype=float32)
    """


class SGD(optim.SGD):
    """Stochastic gradient descent with momentum, dampening and Nesterov's form, as
    `mycel.experimental.optim.SGD`.

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts.
        lr (float | Tensor): The learning rate, a float (a group may have an int).
        momentum (float): The weight of the steps before. Default: 0.
        dampening (float): The part of the gradient that does not enter the momentum. Default: 0.
        weight_decay (float): The decay: ``weight_decay * p`` is added to the gradient of each
            parameter. Default: 0.
        nesterov (bool): Whether Nesterov's form is computed. Default: False.
        maximize (bool): Whether the loss is increased instead of decreased. Default: False.

    Examples:
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
        if params is None:
            raise arguments.wrong_type("SGD", "params", "a list of Parameters or of groups", params)
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, maximize=maximize)


__dir__ = _listing(__name__)
