"""The base of bijectors.

A subclass defines `_forward` and `_inverse` and the logarithm of the absolute derivative of one of
them, `_forward_log_jacobian` or `_inverse_log_jacobian`; the other one is its negative, taken at
the image of the point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import operand

__all__ = ["Bijector"]


class Bijector(Cell):
    """An invertible function of each element of a tensor.

    Called with the name of a method and its arguments it returns that method's result; called with
    a distribution it returns the transformed distribution.

    Args:
        is_constant_jacobian (bool): Whether its derivative is constant. Default: False.
        is_injective (bool): Whether it maps no two points to one. Default: True.
        name (str | None): Its name; None for that of the class. Default: None.
        dtype (DType | None): The element type that it computes in; None for that of its operand.
            Default: None.
        param (dict[str, Any] | None): The arguments that it was made with, kept as `parameters`.
            Default: None.

    Examples:
        >>> import mycel as ms
        >>> exp = ms.nn.probability.bijector.Exp()
        >>> exp("inverse", ms.Tensor([1.0])).tolist()
        [0.0]
    """

    # The parameters that `repr` shows.
    _shown: tuple[str, ...] = ()

    def __init__(
        self,
        is_constant_jacobian: bool = False,
        is_injective: bool = True,
        name: str | None = None,
        dtype: Any = None,
        param: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.name = owner if name is None else arguments.text(owner, "name", name)
        self.dtype = None if dtype is None else D.from_any(dtype)
        self.is_constant_jacobian = is_constant_jacobian
        self.is_injective = is_injective
        self.parameters: dict[str, Any] = dict(param or {})
        self.batch_shape: tuple[Any, ...] = ()

    def extend_repr(self) -> str:
        """Return the parameters, or where they are tensors the shape that they have in common."""
        if self._shown and self.batch_shape:
            return f"batch_shape = {self.batch_shape}"
        return ", ".join(f"{name} = {getattr(self, name)}" for name in self._shown)

    def _number(self, what: str, value: Any) -> Tensor:
        """Return a parameter as a tensor; raise TypeError unless it is one of floats, or a float, a
        list or an array of them.
        """
        given = np.asarray(value) if isinstance(value, (float, list, np.ndarray)) else value
        floats = given.dtype.kind == "f" if isinstance(given, np.ndarray) else isinstance(given, Tensor)
        if not floats:
            raise arguments.wrong_type(self.name, what, "a float, or a list, an array or a tensor of floats", value)
        made = given if isinstance(given, Tensor) else Tensor(given, self.dtype or D.float32)
        self.batch_shape = np.broadcast_shapes(self.batch_shape, tuple(made.shape))
        return made

    def _value(self, name: str, value: Any) -> Tensor:
        x = operand(f"{self.name}.{name}", value)
        kind = self.dtype or (x.dtype if x.dtype.is_floating else D.float32)
        return cast(x, kind)

    def forward(self, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the image of a point."""
        return self._forward(self._value("forward", value), *args, **kwargs)

    def inverse(self, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the point that `forward` maps to a value."""
        return self._inverse(self._value("inverse", value), *args, **kwargs)

    def forward_log_jacobian(self, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the logarithm of the absolute derivative of `forward` at a point."""
        x = self._value("forward_log_jacobian", value)
        if type(self)._forward_log_jacobian is Bijector._forward_log_jacobian:
            return -self._inverse_log_jacobian(self._forward(x, *args, **kwargs), *args, **kwargs)
        return self._forward_log_jacobian(x, *args, **kwargs)

    def inverse_log_jacobian(self, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        """Return the logarithm of the absolute derivative of `inverse` at a value."""
        y = self._value("inverse_log_jacobian", value)
        if type(self)._inverse_log_jacobian is Bijector._inverse_log_jacobian:
            return -self._forward_log_jacobian(self._inverse(y, *args, **kwargs), *args, **kwargs)
        return self._inverse_log_jacobian(y, *args, **kwargs)

    def _undefined(self, method: str) -> NotImplementedError:
        return NotImplementedError(f"{self.name} does not define {method}; define _{method} in the subclass")

    def _forward(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        raise self._undefined("forward")

    def _inverse(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        raise self._undefined("inverse")

    def _forward_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        raise self._undefined("forward_log_jacobian")

    def _inverse_log_jacobian(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        raise self._undefined("inverse_log_jacobian")

    def falls(self) -> Tensor:
        """Return where `forward` decreases: nowhere, unless a subclass defines otherwise."""
        return ops.zeros((), D.bool_)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from mycel.nn.probability.distribution.base import Distribution
        from mycel.nn.probability.distribution.transformed import TransformedDistribution

        if args and isinstance(args[0], Distribution):
            return TransformedDistribution(self, *args, **kwargs)
        return super().__call__(*args, **kwargs)

    def construct(self, name: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the method with this name, or the transformed distribution."""
        if name not in ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian"):
            raise ValueError(
                f"{self.name}: there is no method {name!r} to call; give forward, inverse or one's _log_jacobian"
            )
        return getattr(self, name)(*args, **kwargs)
