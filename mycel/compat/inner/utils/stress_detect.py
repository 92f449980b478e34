"""`mindspore.utils.stress_detect`: tests of Ascend devices."""

from __future__ import annotations

from mycel.compat.elsewhere import __getattr__

__all__: list[str] = []
