"""`mindspore.utils`: help for programs on clusters."""

from __future__ import annotations

from mycel.compat.elsewhere import __getattr__
from mycel.compat.fault_tolerance import _tft_handler

__all__: list[str] = []
