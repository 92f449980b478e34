"""The interfaces that MindSpore calls experimental."""

from __future__ import annotations

from mycel._src.foundation.public_names import listing as _listing
from mycel.experimental import optim as optim
from mycel.experimental.map_parameter import MapParameter as MapParameter

__dir__ = _listing(__name__)
