"""Distances between the surfaces of two segmentations: Hausdorff, mean, and root mean square.

The surface of a set of cells is the part that erosion by the cross of neighbours removes. The
directed distances from A to B are those from every cell of A's surface to the nearest cell of B's
surface (Taha and Hanbury, "Metrics for evaluating 3D medical image segmentation", BMC Medical
Imaging 15, 2015). Cells are unit cubes; distances are "euclidean", "chessboard" (the largest
difference of coordinates) or "taxicab" (their sum).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation import arguments
from mycel.train.metrics.base import Metric, rearrange_inputs

__all__ = ["HausdorffDistance", "MeanSurfaceDistance", "RootMeanSquareDistance"]

Array = NDArray[Any]
_KINDS = ("euclidean", "chessboard", "taxicab")


class _SurfaceMetric(Metric):
    """A metric of the surfaces of the last pair of segmentations."""

    # What a label that is no number raises.
    _wrong_label: type[Exception] = ValueError

    def __init__(self, distance_metric: str) -> None:
        super().__init__()
        arguments.choice(type(self).__name__, "distance_metric", distance_metric, _KINDS)
        self.distance_metric = distance_metric
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._surfaces: tuple[Array, Array] | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Set the predicted and the true segmentation, of one shape, and the label whose cells are
        compared.
        """
        name = f"{type(self).__name__}.update"
        if len(inputs) != 3:
            raise ValueError(f"{name} takes 3 inputs (y_pred, y, label_idx), not {len(inputs)}")
        predicted, true = self._arrays(inputs[:2], "y_pred", "y")
        label = inputs[2]
        if not isinstance(label, (int, float, np.number)):
            raise arguments.wrong_type(name, "label_idx", "a number", label, self._wrong_label)
        if predicted.size == 0 or predicted.shape != true.shape:
            raise ValueError(
                f"{name}: y_pred and y have one shape with elements, not {predicted.shape} and {true.shape}"
            )
        if not (predicted == label).any() and not (true == label).any():
            raise ValueError(f"{name}: the label {label!r} is neither in y_pred nor in y")
        self._surfaces = _surface(predicted == label), _surface(true == label)

    def _pair(self) -> tuple[Array, Array]:
        if self._surfaces is None:
            raise self._nothing()
        return self._surfaces

    def _distances(self, of: Array, to: Array) -> Array:
        """Return the distance from every cell of one surface to the nearest cell of another.

        Distances are infinite if the second surface is empty; there are none if the first is.
        """
        from scipy import ndimage

        if not of.any():
            return np.zeros(0)
        if not to.any():
            return np.full(int(of.sum()), np.inf)
        if self.distance_metric == "euclidean":
            field = ndimage.distance_transform_edt(~to)
        else:
            field = ndimage.distance_transform_cdt(~to, metric=self.distance_metric)
        return np.asarray(field, np.float64)[of]


def _surface(cells: Array) -> Array:
    from scipy import ndimage

    return np.logical_and(cells, ~ndimage.binary_erosion(cells))


class HausdorffDistance(_SurfaceMetric):
    """The largest distance between two surfaces.

    The result is infinite if one set is empty. `update` takes y_pred, y [...] and the label.

    Args:
        distance_metric (str): "euclidean", "chessboard" or "taxicab". Default: "euclidean".
        percentile (float | None): The percentile of the distances that is given, from 0 to 100;
            None for the largest. Default: None.
        directed (bool): Whether only distances from the predicted to the true surface count.
            Default: False.
        crop (bool): Whether cells outside of both sets are left out, which changes no distance.
            Default: True.

    Raises:
        TypeError, ValueError: For other options.

    Examples:
        >>> import mycel as ms
        >>> HausdorffDistance()(ms.Tensor([[1, 1], [0, 0]]), ms.Tensor([[1, 1], [1, 0]]), 1)
        1.0
    """

    def __init__(
        self,
        distance_metric: str = "euclidean",
        percentile: float | None = None,
        directed: bool = False,
        crop: bool = True,
    ) -> None:
        super().__init__(distance_metric)
        arguments.optional("HausdorffDistance", "percentile", percentile, float)
        if percentile is not None and not 0 <= percentile <= 100:
            raise ValueError(f"HausdorffDistance: percentile must be from 0 to 100, not {percentile}")
        for name, value in (("directed", directed), ("crop", crop)):
            arguments.flag("HausdorffDistance", name, value)
        self.percentile, self.directed, self.crop = percentile, directed, crop

    def eval(self) -> float:
        """Return the distance."""
        predicted, true = self._pair()
        one_way = self._extreme(self._distances(predicted, true))
        return one_way if self.directed else max(one_way, self._extreme(self._distances(true, predicted)))

    def _extreme(self, distances: Array) -> float:
        if distances.size == 0:
            return float("inf")
        if self.percentile is None or np.isinf(distances).any():
            return float(distances.max())
        return float(np.percentile(distances, self.percentile))


class MeanSurfaceDistance(_SurfaceMetric):
    """The mean distance from the predicted surface to the true one, or with `symmetric` the mean of
    the mean distances in both directions.

    `update` takes y_pred, y [...] and the label. The result is infinite if one set is empty.

    >>> import mycel as ms
    >>> MeanSurfaceDistance()(ms.Tensor([[1, 1], [1, 1]]), ms.Tensor([[1, 1], [0, 0]]), 1)
    0.5
    """

    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean") -> None:
        super().__init__(distance_metric)
        arguments.flag(type(self).__name__, "symmetric", symmetric)
        self.symmetric = symmetric

    def eval(self) -> float:
        """Return the mean distance."""
        predicted, true = self._pair()
        one_way = _mean(self._distances(predicted, true))
        return (one_way + _mean(self._distances(true, predicted))) / 2 if self.symmetric else one_way


class RootMeanSquareDistance(MeanSurfaceDistance):
    """The root of the mean squared distance from the predicted surface to the true one, or with
    `symmetric` of the mean of both directions' means.

    `update` takes y_pred, y [...] and the label. The result is infinite if one set is empty.
    (MindSpore does not take the root unless `symmetric`.)

    >>> import mycel as ms
    >>> RootMeanSquareDistance()(ms.Tensor([[1, 1], [1, 1]]), ms.Tensor([[1, 1], [0, 0]]), 1) ** 2
    0.5000000000000001
    """

    _wrong_label = TypeError

    def eval(self) -> float:
        """Return the root of the mean squared distance."""
        predicted, true = self._pair()
        square = _mean(self._distances(predicted, true) ** 2)
        if self.symmetric:
            square = (square + _mean(self._distances(true, predicted) ** 2)) / 2
        return float(np.sqrt(square))


def _mean(distances: Array) -> float:
    return float(distances.mean()) if distances.size else float("inf")
