"""The interfaces that MindSpore calls experimental."""

from __future__ import annotations

from mycel.experimental import optim as optim
from mycel.experimental.map_parameter import MapParameter as MapParameter
