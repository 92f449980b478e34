"""Data types under MindSpore's names: those of elements (`mycel.base.dtype`), and those of other
objects of Python's (`mycel.base.object_types`).
"""

from mycel.base.dtype import *  # noqa: F403
from mycel.base.object_types import *  # noqa: F403
