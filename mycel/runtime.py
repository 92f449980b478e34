"""The memory behind tensors and compiled functions: the public path of `devices.runtime`,
which is this module.
"""

import sys

from mycel._src.devices import runtime
from mycel._src.devices.runtime import *  # noqa: F403

sys.modules[__name__] = runtime
