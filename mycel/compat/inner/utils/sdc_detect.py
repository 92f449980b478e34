"""`mindspore.utils.sdc_detect`: a watch over the arithmetic of Ascend devices."""

from __future__ import annotations

from mycel.compat.unserved_top_level import __getattr__

__all__: list[str] = []
