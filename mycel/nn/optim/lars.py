"""Layer-wise adaptive rates around another optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.core.parameter import Parameter
from mycel.nn.optim.optimizer import Optimizer
from mycel.ops import optimizer_updates

__all__ = ["LARS"]


def _adapts(parameter: Parameter) -> bool:
    return "LayerNorm" not in parameter.name and "bias" not in parameter.name


class LARS(Optimizer):
    """Layer-wise adaptive rate scaling (You et al., "Large batch training of convolutional
    networks", 2017) around an optimizer.

    The gradient of each parameter that `lars_filter` accepts becomes ``r * (g + decay * p)`` with
    ``r = coefficient * |p| / (|g| + decay * |p| + epsilon)``, or 1 where a norm is 0. The weight
    decay is that of the inner optimizer, which then does not apply it a second time.

    Args:
        optimizer (Optimizer): The optimizer that takes the steps.
        epsilon (float): Added to the denominator. Default: 1e-05.
        coefficient (float): The trust coefficient. Default: 0.001.
        use_clip (bool): Whether r is limited to the learning rate and divided by it. Default:
            False.
        lars_filter (Callable[[Parameter], bool]): Which parameters are scaled. Default: _adapts.

    Raises:
        TypeError: For an `optimizer` of another type.

    Examples:
        >>> import mycel as ms
        >>> w = ms.Parameter(ms.Tensor([4.0]), name="w")
        >>> _ = ms.nn.LARS(ms.nn.SGD([w], 0.5), 0.0, 0.25)((ms.Tensor([3.0]),)); w.asnumpy()
        array([3.5], dtype=float32)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        epsilon: float = 1e-5,
        coefficient: float = 1e-3,
        use_clip: bool = False,
        lars_filter: Callable[[Parameter], bool] = _adapts,
    ) -> None:
        arguments.instance("LARS", "optimizer", optimizer, Optimizer)
        super().__init__(0.0, optimizer.parameters)
        self.epsilon = arguments.number("LARS", "epsilon", epsilon, at_least=0)
        self.coefficient = arguments.number("LARS", "coefficient", coefficient, at_least=0)
        self.use_clip = arguments.flag("LARS", "use_clip", use_clip)
        self.opt = optimizer
        self.lars_flag = tuple(bool(lars_filter(p)) for p in optimizer.parameters)
        # The inner optimizer's decay and loss scale move here.
        self.decayed = optimizer.decay_flags if optimizer.exec_weight_decay else (False,) * self.param_length
        optimizer.exec_weight_decay = False
        self.need_scale, self.reciprocal_scale = optimizer.need_scale, optimizer.reciprocal_scale
        optimizer.need_scale = False

    def construct(self, gradients: Any) -> Any:
        """Take one step."""
        found, inner = self.scale_grad(self._check_gradients(gradients)), self.opt
        rates, decays = inner._rates(), inner._decays()
        adapted = []
        for p, g, lr, decay, flag, decayed in zip(self.parameters, found, rates, decays, self.lars_flag, self.decayed):
            squares, slopes, weight = ops.sum(p * p), ops.sum(g * g), decay if decayed else 0.0
            scaled = (p, g, squares, slopes, weight, lr, self.coefficient, self.epsilon, self.use_clip)
            adapted.append(optimizer_updates.lars(*scaled) if flag else g)
        self.advance()
        return inner(tuple(adapted))
