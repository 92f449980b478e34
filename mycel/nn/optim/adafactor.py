"""Adafactor: adaptive steps whose second moments are kept as means of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter, ParameterTuple
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.assignment import store
from mycel.nn.optim.optimizer import Optimizer
from mycel.ops import optimizer_updates

__all__ = ["AdaFactor"]


def _named(prefix: str, p: Parameter, shape: tuple[int, ...], dtype: Any = np.float32) -> Parameter:
    return Parameter(Tensor(np.zeros(shape, dtype)), name=f"{prefix}_{p.name}", requires_grad=False)


class AdaFactor(Optimizer):
    """Adafactor (Shazeer and Stern, "Adaptive learning rates with sublinear memory cost", 2018).

    The second moment of a parameter of two or more dimensions is the product of the running means
    of ``g**2 + eps[0]`` over its rows and over its columns, divided by the mean of the former;
    their weight at step t is ``1 - t**-decay_rate``. The rate is `learning_rate`, or with
    `relative_step` ``min(0.01, 1 / sqrt(t))``, where `warmup_init` replaces 0.01 by ``1e-6 * t``.
    The update u is divided by ``max(1, rms(u) / clip_threshold)`` and multiplied by the rate, then
    averaged with weight `beta1`.

    The states are "exp_avg.<parameter>", "exp_avg_sq_row_<parameter>",
    "exp_avg_sq_col_<parameter>", "exp_avg_sq_<parameter>" and "afactor_step".

    Args:
        params (Iterable[Parameter] | list[dict[str, Any]]): The parameters, or groups of them as
            dicts; see `Optimizer`.
        learning_rate (float | Tensor | LearningRateSchedule | Iterable[float] | None): The learning
            rate; None with `relative_step`. Default: None.
        eps (tuple[float, float]): What is added to squared gradients, and the least root mean
            square of a parameter. Default: (1e-30, 0.001).
        clip_threshold (float): The root mean square above which an update is scaled down. Default:
            1.0.
        decay_rate (float): The exponent of the weight of the running means. Default: 0.8.
        beta1 (float | None): The weight of the average of the updates; None for no average.
            Default: 0.9.
        weight_decay (float): The decay: it times the rate times the parameter is subtracted from
            the parameter. Default: 0.0.
        scale_parameter (bool): Whether the rate is multiplied by the parameter's root mean square,
            at least ``eps[1]``. Default: True.
        relative_step (bool): Whether the rate follows from the number of the training step.
            Default: True.
        warmup_init (bool): Whether the relative rate rises from ``1e-6 * t``. Default: False.
        compression (bool): Whether second moments that are not factored are kept in float16.
            Default: False.
        loss_scale (float): What gradients are divided by before all else, as the loss was
            multiplied by it. Default: 1.0.

    Raises:
        ValueError: For a `learning_rate` with `relative_step` and for none without it.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
        >>> step = ms.nn.AdaFactor([w], 0.5, beta1=None, relative_step=False)
        >>> _ = step((ms.Tensor([3.0]),)); w.asnumpy()
        array([0.5], dtype=float32)
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = None,
        eps: tuple[float, float] = (1e-30, 1e-3),
        clip_threshold: float = 1.0,
        decay_rate: float = 0.8,
        beta1: float | None = 0.9,
        weight_decay: float = 0.0,
        scale_parameter: bool = True,
        relative_step: bool = True,
        warmup_init: bool = False,
        compression: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        if bool(relative_step) == (learning_rate is not None):
            raise ValueError(
                "AdaFactor: give a learning_rate where relative_step=False, and none where it is True, but "
                "learning_rate is "
                f"{learning_rate!r} and relative_step {relative_step}"
            )
        if warmup_init and not relative_step:
            raise ValueError("AdaFactor: warmup_init needs relative_step=True")
        for name, flag in (
            ("scale_parameter", scale_parameter),
            ("relative_step", relative_step),
            ("compression", compression),
        ):
            arguments.flag("AdaFactor", name, flag)
        if len(arguments.sequence("AdaFactor", "eps", eps)) != 2:
            raise arguments.wrong_value("AdaFactor", "eps", "two numbers", eps)
        super().__init__(0.0 if learning_rate is None else learning_rate, params, weight_decay, loss_scale)
        if not isinstance(weight_decay, Cell):
            arguments.real("AdaFactor", "weight_decay", weight_decay, at_least=0, below=1)
        first, second = (arguments.real("AdaFactor", "each of eps", e, at_least=0) for e in eps)
        self.eps = (first, second)
        self.clip_threshold = arguments.real("AdaFactor", "clip_threshold", clip_threshold, at_least=0)
        self.decay_rate = arguments.real("AdaFactor", "decay_rate", decay_rate, above=0, below=1)
        self.beta1 = None if beta1 is None else arguments.number("AdaFactor", "beta1", beta1, at_least=0)
        self.scale_parameter, self.relative_step, self.warmup_init = scale_parameter, relative_step, bool(warmup_init)
        self.compression = compression
        if beta1 is not None:
            self.exp_avg = self.states("exp_avg")
        full = np.float16 if compression else np.float32
        one, many = (1,), [p.ndim >= 2 for p in self.parameters]
        members = list(zip(self.parameters, many))
        self.exp_avg_sq_row = ParameterTuple(
            [_named("exp_avg_sq_row", p, p.shape[:-1] if m else one) for p, m in members]
        )
        self.exp_avg_sq_col = ParameterTuple(
            [_named("exp_avg_sq_col", p, (*p.shape[:-2], p.shape[-1]) if m else one) for p, m in members]
        )
        self.exp_avg_sq = ParameterTuple(
            [_named("exp_avg_sq", p, one if m else p.shape, np.float32 if m else full) for p, m in members]
        )
        self.afactor_step = Parameter(Tensor(np.zeros(1, np.float32)), name="afactor_step", requires_grad=False)

    def decay_weight(self, gradients: Any) -> tuple[Tensor, ...]:
        """Return the gradients unchanged, as the weight decay is part of the step."""
        return tuple(gradients)

    def _relative_rate(self, step: Tensor) -> Tensor:
        most = 1e-6 * step if self.warmup_init else 1e-2
        return ops.minimum(most, 1 / ops.sqrt(step))

    def construct(self, gradients: Any) -> bool:
        """Take one step."""
        prepared, rates, decays = self.prepare(gradients), self._rates(), self._decays()
        self.advance()
        store(self.afactor_step, self.afactor_step + 1.0)
        step = ops.reshape(self.afactor_step, ())
        beta2 = 1 - ops.pow(step, -self.decay_rate)
        for i, (p, g) in enumerate(zip(self.parameters, prepared)):
            mean = self.exp_avg[i] if self.beta1 is not None else None
            row, column = (self.exp_avg_sq_row[i], self.exp_avg_sq_col[i]) if p.ndim >= 2 else (None, None)
            square = self.exp_avg_sq[i] if p.ndim < 2 else None
            rate = self._relative_rate(step) if self.relative_step else rates[i]
            numbers = (rate, self.eps, self.clip_threshold, self.beta1, beta2, decays[i], self.scale_parameter)
            found = optimizer_updates.adafactor(p, g, mean, row, column, square, *numbers)
            for target, value in zip((p, mean, row, column, square), found):
                if target is not None and value is not None:
                    store(target, value)
        return True
