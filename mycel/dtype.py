"""Data types under MindSpore's names: those of elements (`foundation.dtype`), and those of other
objects of Python's (`foundation.object_types`).
"""

from mycel._src.foundation.dtype import *  # noqa: F403
from mycel._src.foundation.object_types import *  # noqa: F403
