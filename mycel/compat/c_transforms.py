"""`mindspore.dataset.transforms.c_transforms`: today's transforms under the path that they had while they came in two kinds."""

from __future__ import annotations

from mycel.dataset import transforms as _transforms
from mycel.dataset.transforms import *  # noqa: F403

__all__ = list(_transforms.__all__)
