"""Bijectors of single numbers: powers, the exponential, affine functions, softplus, Gumbel's
distribution function, inverses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.probability.bijector.base import Bijector

__all__ = ["Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]


class PowerTransform(Bijector):
    """The bijector y = (1 + c x)^(1 / c) for a power c > 0 and x > -1 / c, and its limit exp(x) for
    c = 0.

    Raises ValueError for a negative power.

    >>> import mycel as ms
    >>> ms.nn.probability.bijector.PowerTransform(0.5).forward(ms.Tensor([2.0])).tolist()
    [4.0]
    """

    _shown = ("power",)

    def __init__(self, power: float = 0.0, name: str = "PowerTransform") -> None:
        arguments.text(type(self).__name__, "name", name)
        found = arguments.real(name, "the power", power, at_least=0)
        super().__init__(False, True, name, None, {"power": power})
        self._power = found
        self.power = self._number("power", power)

    def _forward(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        c = self._power
        return ops.exp(ops.log1p(value * c) / c) if c else ops.exp(value)

    def _inverse(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        c = self._power
        return ops.expm1(ops.log(value) * c) / c if c else ops.log(value)

    def _forward_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        c = self._power
        return ops.log1p(value * c) * (1.0 / c - 1.0) if c else value * 1.0

    def _inverse_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return ops.log(value) * (self._power - 1.0)


class Exp(PowerTransform):
    """The bijector y = exp(x).

    >>> import mycel as ms
    >>> ms.nn.probability.bijector.Exp().forward(ms.Tensor([0.0])).tolist()
    [1.0]
    """

    def __init__(self, name: str = "Exp") -> None:
        super().__init__(0.0, name)

    def extend_repr(self) -> str:
        """Return the word "exp"."""
        return "exp"


class ScalarAffine(Bijector):
    """The bijector y = scale * x + shift; `scale` must not be zero.

    >>> import mycel as ms
    >>> ms.nn.probability.bijector.ScalarAffine(2.0, 1.0).forward(ms.Tensor([3.0])).tolist()
    [7.0]
    """

    _shown = ("scale", "shift")

    def __init__(self, scale: Any = 1.0, shift: Any = 0.0, name: str = "ScalarAffine") -> None:
        arguments.text("ScalarAffine", "name", name)
        super().__init__(True, True, name, None, {"scale": scale, "shift": shift})
        self.scale, self.shift = self._number("scale", scale), self._number("shift", shift)

    def _forward(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.scale * value + self.shift

    def _inverse(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return (value - self.shift) / self.scale

    def _forward_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return ops.log(ops.abs(self.scale))

    def _inverse_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return -ops.log(ops.abs(self.scale))

    def falls(self) -> Tensor:
        """Return where the scale is negative."""
        return ops.less(self.scale, 0)


class Softplus(Bijector):
    """The bijector y = log(1 + exp(k x)) / k for a sharpness k.

    >>> import mycel as ms
    >>> f"{ms.nn.probability.bijector.Softplus(2.0).forward(ms.Tensor(0.0)).item():.4f}"
    '0.3466'
    """

    _shown = ("sharpness",)

    def __init__(self, sharpness: Any = 1.0, name: str = "Softplus") -> None:
        arguments.text("Softplus", "name", name)
        super().__init__(False, True, name, None, {"sharpness": sharpness})
        self.sharpness = self._number("sharpness", sharpness)

    def _forward(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return -ops.logsigmoid(-self.sharpness * value) / self.sharpness

    def _inverse(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return value + ops.log(-ops.expm1(-self.sharpness * value)) / self.sharpness

    def _forward_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return ops.logsigmoid(self.sharpness * value)

    def _inverse_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return -ops.log(-ops.expm1(-self.sharpness * value))


class GumbelCDF(Bijector):
    """The bijector y = exp(-exp(-(x - loc) / scale)), the distribution function of Gumbel's
    distribution.

    `scale` must be positive.

    >>> import mycel as ms
    >>> f"{ms.nn.probability.bijector.GumbelCDF().forward(ms.Tensor(0.0)).item():.4f}"
    '0.3679'
    """

    _shown = ("loc", "scale")

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, name: str = "GumbelCDF") -> None:
        arguments.text("GumbelCDF", "name", name)
        super().__init__(False, True, name, None, {"loc": loc, "scale": scale})
        self.loc, self.scale = self._number("loc", loc), self._number("scale", scale)
        if not isinstance(scale, Tensor) and not np.all(np.asarray(scale) > 0):
            raise arguments.wrong_value(name, "scale", "above 0", scale)

    def _forward(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return ops.exp(-ops.exp((self.loc - value) / self.scale))

    def _inverse(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.loc - self.scale * ops.log(-ops.log(value))

    def _forward_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        z = (value - self.loc) / self.scale
        return -z - ops.exp(-z) - ops.log(self.scale)

    def _inverse_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return ops.log(self.scale / (-ops.log(value) * value))


class Invert(Bijector):
    """The inverse of another bijector.

    >>> import mycel as ms
    >>> from mycel.nn.probability.bijector import Exp, Invert
    >>> Invert(Exp()).forward(ms.Tensor([1.0])).tolist()
    [0.0]
    """

    def __init__(self, bijector: Bijector, name: str = "") -> None:
        arguments.instance("Invert", "the bijector", bijector, Bijector)
        if name is not None:
            arguments.text("Invert", "name", name)
        super().__init__(
            bijector.is_constant_jacobian,
            bijector.is_injective,
            name or f"Invert{bijector.name}",
            bijector.dtype,
            {"bijector": bijector},
        )
        self.bijector = bijector
        self.batch_shape = bijector.batch_shape

    def _forward(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.bijector.inverse(value, *args, **kwargs)

    def _inverse(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.bijector.forward(value, *args, **kwargs)

    def _forward_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.bijector.inverse_log_jacobian(value, *args, **kwargs)

    def _inverse_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return self.bijector.forward_log_jacobian(value, *args, **kwargs)

    def falls(self) -> Tensor:
        """Return where the inverted bijector decreases."""
        return self.bijector.falls()
