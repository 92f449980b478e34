"""Cosine similarity, Dice coefficient, and occlusion sensitivity.

The last is the sensitivity of a prediction to parts of its input.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor
from mycel.train.metrics.base import Metric, rearrange_inputs

__all__ = ["CosineSimilarity", "Dice", "OcclusionSensitivity"]

Array = NDArray[Any]


class CosineSimilarity(Metric):
    """The similarities between all rows of a matrix [N, D]: cosines of angles ("cosine") or inner
    products ("dot").

    `similarity` is "cosine" or "dot". `reduction` "none" gives all similarities [N, N], "sum" and
    "mean" reduce those of each row. `zero_diagonal` sets the similarity of each row to itself to 0.
    Only the matrix of the last `update` counts. A row of zeros has no cosine and gives NaN. Raises
    ValueError for other options.

    >>> import mycel as ms
    >>> CosineSimilarity()(ms.Tensor([[1.0, 0.0], [0.0, 2.0]])).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, similarity: str = "cosine", reduction: str = "none", zero_diagonal: bool = True) -> None:
        super().__init__()
        arguments.choice("CosineSimilarity", "similarity", similarity, ("cosine", "dot"))
        arguments.choice("CosineSimilarity", "reduction", reduction, ("none", "sum", "mean"))
        arguments.flag("CosineSimilarity", "zero_diagonal", zero_diagonal)
        self.similarity, self.reduction, self.zero_diagonal = similarity, reduction, zero_diagonal
        self.clear()

    def clear(self) -> None:
        """Forget the matrix."""
        self._rows: Array | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Set the matrix."""
        (rows,) = self._arrays(inputs, "inputs")
        if rows.ndim != 2:
            raise ValueError(f"CosineSimilarity.update: takes a matrix, not an array of shape {rows.shape}")
        self._rows = rows.astype(np.result_type(rows.dtype, np.float32) if rows.dtype.kind == "f" else np.float64)

    def eval(self) -> Array:
        """Return the similarities."""
        if self._rows is None:
            raise self._nothing()
        rows = self._rows
        if self.similarity == "cosine":
            norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
            rows = rows / np.where(norms == 0, np.nan, norms)
        found: Array = rows @ rows.T
        if self.zero_diagonal:
            np.fill_diagonal(found, 0)
        if self.reduction == "none":
            return found
        return found.sum(axis=-1) if self.reduction == "sum" else found.mean(axis=-1)


class Dice(Metric):
    """The mean over samples of Dice coefficients 2 x.y / (x.x + y.y + smooth) of predictions x and
    labels y.

    Each `update` gives one coefficient; their sum is divided by the number of samples, the size of
    the first dimension, as in MindSpore. A call with one sample gives its coefficient. Raises
    ValueError for different shapes.

    >>> import mycel as ms
    >>> round(Dice()(ms.Tensor([[1.0, 0.0, 1.0]]), ms.Tensor([[1.0, 0.0, 0.0]])), 4)
    0.6667
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        arguments.real("Dice", "smooth", smooth, above=0)
        self.smooth = smooth
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._sum, self._samples = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add a batch of predictions and labels of one shape [N, ...]."""
        predicted, true = (a.astype(np.float64) for a in self._arrays(inputs, "y_pred", "y"))
        if predicted.shape != true.shape or predicted.ndim == 0:
            raise ValueError(
                f"Dice.update: y_pred and y have one shape [N, ...], not {predicted.shape} and {true.shape}"
            )
        both = 2 * float((predicted * true).sum())
        self._sum += both / (float((predicted * predicted).sum() + (true * true).sum()) + self.smooth)
        self._samples += predicted.shape[0]

    def eval(self) -> float:
        """Return the sum of the coefficients over the number of samples."""
        if self._samples == 0:
            raise self._nothing()
        return self._sum / self._samples


class OcclusionSensitivity(Metric):
    """The fall of a class's score when a part of the input is covered, for every place of the part
    (Zeiler and Fergus, ECCV 2014).

    Around each element, the elements from `margin` before it to `margin` - 1 behind it along every
    dimension are covered. `update` takes the model, an input [1, ...] and the class; the result has
    the shape of the input without the batch, or of the box. Only the last `update` counts.

    Args:
        pad_val (float): What covers elements. Default: 0.0.
        margin (int | Sequence[int]): How far the part reaches around each element, a number or one
            for each dimension behind the batch. Default: 2.
        n_batch (int): How many covered inputs go through the model at once. Default: 128.
        b_box (Sequence[int] | None): The first and last place to be covered for each dimension, -1
            for all. Default: None.

    Raises:
        TypeError, ValueError: For inputs that do not fit.

    Examples:
        >>> import mycel as ms
        >>> metric = OcclusionSensitivity(margin=1)
        >>> metric(lambda x: x, ms.Tensor([[1.0, 2.0, 3.0]]), ms.Tensor(1)).tolist()
        [0.0, 2.0, 2.0]
    """

    def __init__(self, pad_val: float = 0.0, margin: Any = 2, n_batch: int = 128, b_box: Any = None) -> None:
        super().__init__()
        arguments.instance("OcclusionSensitivity", "pad_val", pad_val, float)
        margins = margin if isinstance(margin, (list, tuple)) and margin else [margin]
        for m in margins:
            arguments.integer("OcclusionSensitivity", "margin", m, 0, numpy=False)
        arguments.integer("OcclusionSensitivity", "n_batch", n_batch, 1, numpy=False)
        arguments.optional("OcclusionSensitivity", "b_box", b_box, (list, tuple), "a list")
        self.pad_val, self.margin, self.n_batch, self.b_box = pad_val, margin, n_batch, b_box
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._found: Array | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Cover the input part by part, and keep how much the score of the class falls."""
        if len(inputs) != 3:
            raise ValueError(f"OcclusionSensitivity.update takes 3 inputs (model, y_pred, label), not {len(inputs)}")
        model, (data, label) = inputs[0], self._arrays(inputs[1:], "y_pred", "label")
        if data.ndim < 2 or data.shape[0] != 1:
            raise ValueError(
                f"OcclusionSensitivity.update: takes one input [1, ...] at a time, not one of shape {data.shape}"
            )
        if label.size != 1 or label.dtype.kind not in "iu":
            raise ValueError(f"OcclusionSensitivity.update: label must be one integer, not {label.tolist()!r}")
        chosen = int(label.reshape(()))
        low, high = self._box(data.shape[1:])
        margins = self.margin if isinstance(self.margin, (list, tuple)) else [self.margin] * (data.ndim - 1)
        if len(margins) != data.ndim - 1:
            raise ValueError(f"OcclusionSensitivity.update: {len(margins)} margins for {data.ndim - 1} dimensions")
        whole = self._score(model, data, chosen)[0]
        sizes = [b - a + 1 for a, b in zip(low, high)]
        found = np.empty(int(np.prod(sizes)), whole.dtype)
        places = list(np.ndindex(*sizes))
        for first in range(0, len(places), self.n_batch):
            part = places[first : first + self.n_batch]
            covered = np.repeat(data, len(part), axis=0)
            for row, place in enumerate(part):
                window = tuple([slice(max(a + p - m, 0), max(a + p + m, 0)) for a, p, m in zip(low, place, margins)])
                covered[row][window] = self.pad_val
            found[first : first + len(part)] = whole - self._score(model, covered, chosen)
        self._found = found.reshape(sizes)

    def _box(self, shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
        if self.b_box is None:
            return [0] * len(shape), [n - 1 for n in shape]
        if len(self.b_box) != 2 * len(shape):
            raise ValueError(
                f"OcclusionSensitivity.update: b_box holds the first and last place of each of the {len(shape)} "
                f"dimensions, not {self.b_box!r}"
            )
        low = [0 if a == -1 else a for a in self.b_box[::2]]
        high = [n - 1 if b == -1 else b for b, n in zip(self.b_box[1::2], shape)]
        if not all(0 <= a <= b < n for a, b, n in zip(low, high, shape)):
            raise ValueError(
                f"OcclusionSensitivity.update: b_box {self.b_box!r} does not lie in an input of shape {shape}"
            )
        return low, high

    def _score(self, model: Any, data: Array, label: int) -> Array:
        (scores,) = self._arrays([model(Tensor(data))], "the model's result")
        if scores.ndim != 2 or not 0 <= label < scores.shape[1]:
            raise ValueError(
                f"OcclusionSensitivity.update: the model gives scores [N, C] with label {label} among the classes, not "
                f"of shape {scores.shape}"
            )
        return np.asarray(scores[:, label])

    def eval(self) -> Array:
        """Return the falls of the score."""
        if self._found is None:
            raise self._nothing()
        return self._found
