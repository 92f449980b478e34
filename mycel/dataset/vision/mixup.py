"""MixUp with a share for every image (Zhang et al., 2018), and what all mixing computes.

`MixUpBatch` has one share for a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.arguments import check_count
from mycel.dataset.pipeline_errors import InputTypeError
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array, as_array
from mycel.dataset.transforms.base import Transform
from mycel.dataset.vision.base import is_read
from mycel.dataset.vision.color import check_factor, to_uint8
from mycel.dataset.vision.kernels import batch_mixing as nest


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
            raise ValueError("MixUp: alpha must be positive, not 0")
        arguments.flag("MixUp", "is_single", is_single)
        if not is_single:
            raise NotImplementedError("MixUp: is_single=False is not supported; use is_single=True")
        self.is_single = is_single

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) != 2:
            raise ValueError(f"MixUp: the input must be images and labels, not {len(inputs)} columns")
        images, labels = map(as_array, inputs)
        if len(images) != self.batch_size or len(labels) != self.batch_size or labels.ndim < 2:
            raise ValueError(
                f"MixUp: the input must be {self.batch_size} images and one-hot labels, not shapes {images.shape} and "
                f"{labels.shape}"
            )
        random = np.random.Generator(np.random.PCG64(current_stream().bits()))
        shares = random.beta(self.alpha, self.alpha, self.batch_size)
        others = np.roll(np.arange(self.batch_size), -1)
        return tuple(mixed(values, others, shares, np.dtype(np.float64)) for values in (images, labels))


def mixed(values: Array, others: Array, shares: Array, dtype: np.dtype[Any]) -> Array:
    """Return rows mixed with others, in a type.

    * `values`, `others`: the rows, and for each which other one.
    * `shares`: for each row its own share, of 1.
    * `dtype`: the type of the result. Integers are rounded to even and limited. The arithmetic is
      in float32 for results of at most 16 bits and float32, and in float64 for others.

    Raises TypeError for rows that are not real numbers.
    """
    if values.dtype.kind not in "biuf":
        raise InputTypeError(f"MixUp: images and labels must be real numbers, not {values.dtype}")
    narrow = dtype.newbyteorder("=") in _NARROW
    kind = np.dtype(np.float32 if narrow else np.float64)
    if is_read(values) and dtype in _MADE:
        made: Array = np.empty(values.shape, dtype)
        size = values.size // len(values)
        rows, rests = np.ascontiguousarray(values), 1 - shares
        nest.mix(rows, len(rows), size, others, shares, rests, kind.name, dtype.name, made)
        return made
    weights = shares.reshape(-1, *[1] * (values.ndim - 1))
    own, rest = weights.astype(kind), (1 - weights).astype(kind)
    wide = values.astype(kind)
    total: Array = own * wide + rest * wide[others]
    if dtype.kind == "f":
        return total.astype(dtype)
    if dtype.kind == "b":
        return to_uint8(np.rint(total)).astype(dtype)
    limits = np.iinfo(dtype)
    # The largest integers of 64 bits are none of float64's.
    most = float(limits.max) if limits.bits < 64 else float(limits.max - (1 << limits.bits - 53))
    return np.clip(np.rint(total), float(limits.min), most).astype(dtype)


_NARROW = frozenset(map(np.dtype, ("bool", "uint8", "int8", "uint16", "int16", "float16", "float32")))
# The types of results that the routine writes.
_MADE = frozenset(map(np.dtype, ("uint8", "int8", "uint16", "int16", "int32", "float32", "float64")))
