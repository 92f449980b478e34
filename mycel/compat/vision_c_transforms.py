"""`mindspore.dataset.vision.c_transforms`: today's image transforms under the path of the kind that takes [H, W, C] arrays."""

from __future__ import annotations

from mycel.dataset import vision as _vision
from mycel.dataset.vision import *  # noqa: F403
from mycel.dataset.vision import Inter as Inter

__all__ = list(_vision.__all__)
