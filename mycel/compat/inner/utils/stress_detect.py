"""`mindspore.utils.stress_detect`: tests of Ascend devices."""

from __future__ import annotations

from mycel.compat.unserved_top_level import __getattr__

__all__: list[str] = []
