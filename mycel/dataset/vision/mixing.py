"""MixUp with a share for every image (Zhang et al., 2018).

`MixUpBatch` has one share for a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel.dataset.arguments import check_count
from mycel.dataset.blocks import as_array
from mycel.dataset.randomness import current_stream
from mycel.dataset.transforms.base import Transform
from mycel.dataset.vision.color import check_factor


class MixUp(Transform):
    """Images and one-hot labels of a batch mixed with those of the next, the last with the first.

    Each pair is mixed by its own share, drawn from the distribution Beta(alpha, alpha). Takes two
    columns, images [batch_size, ...] and labels [batch_size, ..., classes], and returns both as
    float64. `is_single` False, which mixes with the batch before, is not supported, as it would
    make a batch depend on earlier ones. Raises ValueError for batches of another size.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> images, labels = vision.MixUp(2, 1.0)(np.zeros((2, 4, 4, 3), np.uint8), np.eye(2))
    >>> images.shape, labels.sum(1).tolist()
    ((2, 4, 4, 3), [1.0, 1.0])
    """

    random = True

    def __init__(self, batch_size: int, alpha: float, is_single: bool = True) -> None:
        self.batch_size = check_count("MixUp", "batch_size", batch_size, 1)
        self.alpha = check_factor("MixUp", alpha)
        if not self.alpha:
            raise ValueError("MixUp: alpha must be positive, got 0")
        if not isinstance(is_single, bool):
            raise TypeError(f"MixUp: is_single must be a bool, got {is_single!r}")
        if not is_single:
            raise NotImplementedError("MixUp: is_single=False is not supported; use is_single=True")
        self.is_single = is_single

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) != 2:
            raise ValueError(f"MixUp: takes images and labels, got {len(inputs)} columns")
        images, labels = (as_array(value).astype(np.float64) for value in inputs)
        if len(images) != self.batch_size or len(labels) != self.batch_size or labels.ndim < 2:
            raise ValueError(
                f"MixUp: expected {self.batch_size} images and one-hot labels, got shapes {images.shape} and "
                f"{labels.shape}"
            )
        random = np.random.Generator(np.random.PCG64(current_stream().bits()))
        shares = random.beta(self.alpha, self.alpha, self.batch_size)
        results = []
        for values in (images, labels):
            weights = shares.reshape(-1, *[1] * (values.ndim - 1))
            results.append(weights * values + (1 - weights) * np.roll(values, -1, 0))
        return tuple(results)
