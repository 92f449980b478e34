"""Devices, streams and memory under MindSpore's older names: the public path of
`mycel.devices.hal`, which is this module.
"""

import sys

from mycel.devices import hal
from mycel.devices.hal import *  # noqa: F403

sys.modules[__name__] = hal
