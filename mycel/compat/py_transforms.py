"""`mindspore.dataset.transforms.py_transforms`: today's transforms under the path and names of the Python kind."""

from __future__ import annotations

from mycel.dataset.transforms import Compose, OneHot, RandomApply, RandomChoice, RandomOrder

__all__ = ["Compose", "OneHotOp", "RandomApply", "RandomChoice", "RandomOrder"]

OneHotOp = OneHot
