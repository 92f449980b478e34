"""The interfaces that MindSpore calls experimental."""

from __future__ import annotations

from mycel.experimental import optim as optim
