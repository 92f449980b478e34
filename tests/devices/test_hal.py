"""Which devices there are, as MindSpore's CPU build answers."""

from __future__ import annotations

import pytest

import mycel as ms
from mycel._src.devices import hal


def test_devices() -> None:
    assert hal.device_count() == hal.device_count("CPU") == 1 and hal.device_count("GPU") == 0
    assert hal.is_available("CPU") and not hal.is_available("Ascend") and hal.is_initialized("CPU")
    assert hal.get_device_name(0, "CPU") == "CPU" and hal.get_arch_list("CPU") is None
    assert hal.get_device_properties(0) is None and hal.get_device_capability(0, "CPU") is None
    assert hal.synchronize() is None and ms.runtime.synchronize() is None


def test_devices_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="device_target must be"):
        hal.is_available("TPU")
    with pytest.raises(ValueError, match="there is one device, 0, and no 1"):
        hal.get_device_name(1)
    with pytest.raises(ValueError, match="'GPU' is not available"):
        hal.get_device_properties(0, "GPU")
