"""Loss scales for training steps that are written as functions: they scale the loss, unscale the
gradients, and adjust themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.pytree import flatten, map_leaves
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.nn.assignment import store
from mycel.nn.loss_scale import finite
from mycel.ops.operations.primitive import Primitive

__all__ = ["AllFinite", "DynamicLossScaler", "LossScaler", "StaticLossScaler", "all_finite"]


class LossScaler(ABC):
    """Base of loss scales: a subclass defines `scale`, `unscale` and `adjust`."""

    @abstractmethod
    def scale(self, inputs: Any) -> Any:
        """Return the inputs, a tensor or a tuple of them, multiplied by the scale."""

    @abstractmethod
    def unscale(self, inputs: Any) -> Any:
        """Return the inputs, a tensor or a tuple of them, divided by the scale."""

    @abstractmethod
    def adjust(self, grads_finite: Any) -> Any:
        """Adjust the scale after a step, given whether all its gradients were finite; return
        whether it was adjusted.
        """


def _scale_parameter(owner: str, value: Any) -> Parameter:
    found = arguments.number(owner, "scale_value", value, numpy=False)
    if found < 1:
        raise arguments.wrong_value(owner, "scale_value", "at least 1", value)
    return Parameter(Tensor(found, D.float32), name="scale_value")


def _times(value: Any, scale: Parameter) -> Any:
    return map_leaves(lambda t: t * cast(scale, t.dtype) if isinstance(t, Tensor) else t * scale, value)


def _over(value: Any, scale: Parameter) -> Any:
    return map_leaves(lambda t: t / cast(scale, t.dtype) if isinstance(t, Tensor) else t / scale, value)


class StaticLossScaler(LossScaler):
    """A loss scale that stays `scale_value`.

    Raises TypeError for a scale that is no number, ValueError for one below 1.

    >>> import mycel as ms
    >>> scaler = ms.amp.StaticLossScaler(4.0)
    >>> float(scaler.scale(ms.Tensor(2.0))), float(scaler.unscale((ms.Tensor(2.0),))[0])
    (8.0, 0.5)
    """

    def __init__(self, scale_value: Any) -> None:
        self.scale_value = _scale_parameter("StaticLossScaler", scale_value)

    def scale(self, inputs: Any) -> Any:
        """Return the inputs multiplied by the scale."""
        return _times(inputs, self.scale_value)

    def unscale(self, inputs: Any) -> Any:
        """Return the inputs divided by the scale."""
        return _over(inputs, self.scale_value)

    def adjust(self, grads_finite: Any) -> bool:
        """Return False: the scale is fixed."""
        return False


class DynamicLossScaler(LossScaler):
    """A loss scale that is divided by `scale_factor` when gradients overflow, but not below 1, and
    multiplied by it after `scale_window` steps without an overflow.

    Raises TypeError or ValueError for a scale below 1, or a factor or window that is not a positive
    integer.

    >>> import mycel as ms
    >>> scaler = ms.amp.DynamicLossScaler(scale_value=2**10, scale_factor=2, scale_window=50)
    >>> grads = (ms.Tensor([1.0, float("inf")]),)
    >>> scaler.adjust(ms.amp.all_finite(grads)), float(scaler.scale_value)
    (True, 512.0)
    """

    def __init__(self, scale_value: Any, scale_factor: int, scale_window: int) -> None:
        self.scale_value = _scale_parameter("DynamicLossScaler", scale_value)
        self.scale_window = arguments.integer("DynamicLossScaler", "scale_window", scale_window, 1)
        self.scale_factor = arguments.integer("DynamicLossScaler", "scale_factor", scale_factor, 1)
        self.counter = Parameter(Tensor(0, D.int32), name="counter")

    def scale(self, inputs: Any) -> Any:
        """Return the inputs multiplied by the scale."""
        return _times(inputs, self.scale_value)

    def unscale(self, inputs: Any) -> Any:
        """Return the inputs divided by the scale."""
        return _over(inputs, self.scale_value)

    def adjust(self, grads_finite: Any) -> bool:
        """Adjust the scale after a step, and return True."""
        fine = ops.reshape(ops.cast(grads_finite, D.bool_), ())
        full = self.counter >= self.scale_window - 1
        grown = ops.where(full, self.scale_value * self.scale_factor, self.scale_value)
        # A scale that would overflow float32 is kept.
        grown = ops.where(ops.isfinite(grown), grown, self.scale_value)
        shrunk = ops.maximum(self.scale_value / self.scale_factor, 1.0)
        count = ops.where(ops.logical_and(fine, ops.logical_not(full)), self.counter + 1, 0)
        store(self.scale_value, ops.where(fine, grown, shrunk))
        store(self.counter, count)
        return True


def all_finite(inputs: Any) -> Tensor:
    """Return a bool tensor: whether all elements of the inputs, a tensor or a sequence of them, are
    neither infinite nor NaN. Integers are finite.

    >>> import mycel as ms
    >>> bool(ms.amp.all_finite((ms.Tensor([1.0, float("nan")]),)))
    False
    """
    leaves = flatten(inputs)[0]
    for leaf in leaves:
        arguments.instance("all_finite", "the inputs", leaf, Tensor, "tensors")
    return finite(leaves)


class AllFinite(Primitive):
    """``AllFinite()(gradients)``: a bool tensor, True where an element of a tuple of tensors is
    infinite or NaN.

    True means overflow, as in MindSpore's operation of this name.

    >>> import mycel as ms
    >>> bool(AllFinite()((ms.Tensor([1.0, float("inf")]), ms.Tensor([2.0]))))
    True
    """

    def __init__(self) -> None:
        super().__init__("AllFinite")

    def __call__(self, gradients: Any) -> Tensor:
        return ops.logical_not(all_finite(gradients))
