"""The metric interface: choice of inputs, conversion and checks of predictions and labels.

A metric is cleared before an evaluation, updated with every batch's outputs, and evaluated at the
end. It keeps sums in float64 or integers, so that apart from rounding the result does not depend on
how the samples were cut into batches.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["EvaluationBase", "Metric", "as_array", "rearrange_inputs"]

Update = TypeVar("Update", bound=Callable[..., Any])


def rearrange_inputs(func: Update) -> Update:
    """Return a decorated `update` of a metric that takes only the inputs chosen by `set_indexes`,
    in that order.

    >>> class Sum(Metric):
    ...     def clear(self):
    ...         self.total = 0
    ...     @rearrange_inputs
    ...     def update(self, *inputs):
    ...         self.total += sum(inputs)
    ...     def eval(self):
    ...         return self.total
    >>> Sum().set_indexes([2, 0])(1, 10, 100)
    101
    """

    @functools.wraps(func)
    def update(self: Metric, *inputs: Any) -> Any:
        if self.indexes:
            wrong = [index for index in self.indexes if not -len(inputs) <= index < len(inputs)]
            if wrong:
                raise IndexError(
                    f"{type(self).__name__}.update: set_indexes chose input {wrong[0]} of {len(inputs)} inputs"
                )
            inputs = tuple(inputs[index] for index in self.indexes)
        return func(self, *inputs)

    return cast(Update, update)


class Metric(ABC):
    """The base of metrics: subclasses define `clear`, `update` and `eval`."""

    def __init__(self) -> None:
        self._indexes: list[int] | None = None

    @property
    def indexes(self) -> list[int] | None:
        """The inputs of `update` that are used, in order; None for all."""
        return getattr(self, "_indexes", None)

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Choose which inputs of `update` are used, in which order, and return the metric itself.

        Raises ValueError for anything but integers.
        """
        if not isinstance(indexes, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in indexes):
            raise ValueError(f"{type(self).__name__}.set_indexes: indexes must be a list of integers, not {indexes!r}")
        self._indexes = indexes
        return self

    @abstractmethod
    def clear(self) -> None:
        """Forget everything seen."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Add a batch."""

    @abstractmethod
    def eval(self) -> Any:
        """Return the value over everything seen since `clear`."""

    def __call__(self, *inputs: Any) -> Any:
        """Return the value of one batch alone."""
        self.clear()
        self.update(*inputs)
        return self.eval()

    def _convert_data(self, data: Any) -> NDArray[Any]:
        """Return a tensor, an array or a list as an array, as `update` of a subclass needs it."""
        return as_array(data, type(self).__name__, "the data")

    def _arrays(self, inputs: Sequence[Any], *names: str) -> list[NDArray[Any]]:
        if len(inputs) != len(names):
            raise ValueError(
                f"{type(self).__name__}.update takes {len(names)} inputs ({', '.join(names)}), not {len(inputs)}"
            )
        return [as_array(value, f"{type(self).__name__}.update", name) for value, name in zip(inputs, names)]

    def _nothing(self) -> RuntimeError:
        return RuntimeError(f"{type(self).__name__}.eval: nothing to evaluate: update() saw no samples since clear()")


def as_array(value: Any, owner: str, parameter: str) -> NDArray[Any]:
    """Return a tensor, an array or a list as a NumPy array; bfloat16 as float32.

    Raises TypeError for anything else, with the names `owner` and `parameter` in its message.
    """
    arguments.instance(owner, parameter, value, (Tensor, np.ndarray, list))
    array = value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


class EvaluationBase(Metric):
    """The base of metrics of class predictions.

    `eval_type` "classification" takes scores float [N, C, ...] and classes int [N, ...] or one-hot
    [N, C, ...]; "multilabel" takes zeros and ones [N, C] (or [N, C, ...]) for both. Raises
    TypeError for other types.
    """

    def __init__(self, eval_type: str) -> None:
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise TypeError(
                f"{type(self).__name__}: eval_type must be 'classification' or 'multilabel', not {eval_type!r}"
            )
        self._type = eval_type
        self._class_num = 0

    def _predictions(self, inputs: Sequence[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return scores and labels, checked; one-hot labels become classes."""
        scores, labels = self._arrays(inputs, "y_pred", "y")
        name = f"{type(self).__name__}.update"
        if self._type == "multilabel":
            if scores.shape != labels.shape or scores.ndim < 2:
                raise ValueError(
                    f"{name}: multilabel y_pred and y have one shape [N, C], not {scores.shape} and {labels.shape}"
                )
            for title, array in (("y_pred", scores), ("y", labels)):
                if not ((array == 0) | (array == 1)).all():
                    raise ValueError(
                        f"{name}: multilabel {title} must hold zeros and ones only; compare scores with a threshold"
                    )
        elif scores.ndim >= 2 and scores.shape == labels.shape:
            labels = labels.argmax(axis=1)
        elif scores.ndim < 2 or scores.shape[:1] + scores.shape[2:] != labels.shape:
            raise ValueError(
                f"{name}: y_pred of shape {scores.shape} wants y of shape {scores.shape[:1] + scores.shape[2:]} "
                "(classes) or "
                f"{scores.shape} (one-hot), not {labels.shape}"
            )
        if self._class_num and self._class_num != scores.shape[1]:
            raise ValueError(f"{name}: y_pred has {scores.shape[1]} classes now and had {self._class_num} before")
        self._class_num = int(scores.shape[1])
        return scores, labels
