"""Mean metrics over samples: the loss, the mean absolute error, the mean squared error."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from mycel.train.metrics.base import Metric, rearrange_inputs

__all__ = ["Loss", "MAE", "MSE"]


class Loss(Metric):
    """The mean of the losses of the batches.

    >>> import mycel as ms
    >>> metric = Loss()
    >>> metric.update(ms.Tensor(1.0)); metric.update(ms.Tensor(2.0)); metric.eval()
    1.5
    """

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._sum = 0.0
        self._batches = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add the loss of a batch; of a tensor with several elements the mean."""
        (loss,) = self._arrays(inputs, "loss")
        self._sum += float(loss.mean(dtype=np.float64))
        self._batches += 1

    def eval(self) -> float:
        """Return the mean.

        Raises RuntimeError if no loss was seen.
        """
        if self._batches == 0:
            raise self._nothing()
        return self._sum / self._batches


class _Error(Metric):
    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._sum = 0.0
        self._samples = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add a batch of predictions and targets of one shape [N, ...].

        Raises ValueError for different shapes.
        """
        predicted, target = self._arrays(inputs, "y_pred", "y")
        if predicted.size != target.size:
            raise ValueError(
                f"{type(self).__name__}.update: y_pred and y must have one shape, not {predicted.shape} and "
                f"{target.shape}"
            )
        difference = predicted.astype(np.float64) - target.astype(np.float64).reshape(predicted.shape)
        self._sum += float(self._error(difference).sum())
        self._samples += len(difference) if difference.ndim else 1

    @abstractmethod
    def _error(self, difference: Any) -> Any:
        """Return the error of each element."""

    def eval(self) -> float:
        """Return the error per sample.

        Raises RuntimeError if no sample was seen.
        """
        if self._samples == 0:
            raise self._nothing()
        return self._sum / self._samples


class MAE(_Error):
    """The sum of absolute errors per sample (first dimension): a sample's elements are summed, as
    MindSpore defines it.

    >>> import mycel as ms
    >>> MAE()(ms.Tensor([1.0, 2.0, 4.0]), ms.Tensor([1.0, 1.0, 2.0]))
    1.0
    """

    def _error(self, difference: Any) -> Any:
        return np.abs(difference)


class MSE(_Error):
    """The sum of squared errors per sample (first dimension): a sample's elements are summed, as
    MindSpore defines it.

    >>> import mycel as ms
    >>> MSE()(ms.Tensor([1.0, 2.0, 4.0, 0.0]), ms.Tensor([1.0, 1.0, 2.0, 0.0]))
    1.25
    """

    def _error(self, difference: Any) -> Any:
        return np.square(difference)
