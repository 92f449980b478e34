"""`mindspore.utils`: help for programs on clusters."""

from __future__ import annotations

from mycel.compat.fault_tolerance import _tft_handler
from mycel.compat.unserved_top_level import __getattr__

__all__: list[str] = []
