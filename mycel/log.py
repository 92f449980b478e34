"""The package's logger: the public path of `foundation.log`, which is this module."""

import sys

from mycel._src.foundation import log
from mycel._src.foundation.log import *  # noqa: F403

sys.modules[__name__] = log
