"""The package's logger: the public path of `mycel.base.log`, which is this module."""

import sys

from mycel.base import log
from mycel.base.log import *  # noqa: F403

sys.modules[__name__] = log
