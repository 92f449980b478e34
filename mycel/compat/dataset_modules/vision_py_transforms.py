"""`mindspore.dataset.vision.py_transforms`: image transforms of the Python kind, whose arrays are
[C, H, W] after `ToTensor`.

`Normalize` and `Cutout` therefore take channels first; all other transforms are today's transforms
of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence

from mycel.dataset import vision

__all__ = ["Cutout", "Normalize"]


class Normalize(vision.Normalize):
    """The transform `(image - mean) / std` for each channel of [C, H, W]."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(mean, std, is_hwc=False)


class Cutout(vision.CutOut):
    """The transform that zeroes `num_patches` random squares of side `length` of [C, H, W]."""

    def __init__(self, length: int, num_patches: int = 1) -> None:
        super().__init__(length, num_patches, is_hwc=False)
