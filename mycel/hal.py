"""Devices, streams and memory under MindSpore's older names: the public path of
`devices.hal`, which is this module.
"""

import sys

from mycel._src.devices import hal
from mycel._src.devices.hal import *  # noqa: F403

sys.modules[__name__] = hal
