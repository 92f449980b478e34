"""`mindspore.dataset.transforms.py_transforms`: names of Python transforms that differ from
today's.
"""

from __future__ import annotations

from mycel.compat.dataset_modules.data_engine import PyTensorOperation
from mycel.dataset.transforms import OneHot

__all__ = ["OneHotOp", "PyTensorOperation"]

OneHotOp = OneHot
