"""The errors of the compiler: the public path of `foundation.errors`, which is this module."""

import sys

from mycel._src.foundation import errors
from mycel._src.foundation.errors import *  # noqa: F403

sys.modules[__name__] = errors
