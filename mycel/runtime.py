"""The memory behind tensors and compiled functions: the public path of `mycel.devices.runtime`,
which is this module.
"""

import sys

from mycel.devices import runtime
from mycel.devices.runtime import *  # noqa: F403

sys.modules[__name__] = runtime
