"""`mindspore.dataset.vision.py_transforms_util`: functions on images that libraries borrow."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["hwc_to_chw", "is_numpy"]


def is_numpy(img: Any) -> bool:
    """Return whether an image is a NumPy array."""
    return isinstance(img, np.ndarray)


def hwc_to_chw(img: Any) -> Any:
    """Return an image [H, W, C] as [C, H, W]; an array with another number of dimensions is
    unchanged.

    Raises TypeError for anything but an array.
    """
    if not is_numpy(img):
        raise TypeError(f"hwc_to_chw: img must be a NumPy array, not {type(img).__name__}")
    return img.transpose(2, 0, 1) if img.ndim == 3 else img
