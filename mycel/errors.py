"""The errors of the compiler: the public path of `mycel.base.errors`, which is this module."""

import sys

from mycel.base import errors
from mycel.base.errors import *  # noqa: F403

sys.modules[__name__] = errors
