"""Data types: the public path of `mycel.base.dtype`, which is this module."""

import sys

from mycel.base import dtype
from mycel.base.dtype import *  # noqa: F403

sys.modules[__name__] = dtype
