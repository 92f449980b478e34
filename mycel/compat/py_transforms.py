"""`mindspore.dataset.transforms.py_transforms`: the names of the Python kind of transforms that
differ from today's.
"""

from __future__ import annotations

from mycel.dataset.transforms import OneHot

__all__ = ["OneHotOp"]

OneHotOp = OneHot
