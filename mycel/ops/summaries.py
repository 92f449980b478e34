"""The values that a program's summary operations (`ScalarSummary` and so on) report in a step, on
their way to the records.

A recorder opens a `Collected`. While any is open, each value is copied into all that are open,
under its plugin and name, and removed by the next ``take``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.foundation.python_runtime import finalization
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Collected", "note"]

_open: finalization.Living[Collected] = finalization.Living()


class Collected:
    """The values reported since the last ``take``, by plugin and name."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], Any] = {}
        _open.add(self)

    def put(self, plugin: str, name: str, value: Any) -> None:
        """Enter a value; it replaces one with the same plugin and name."""
        self._values.pop((plugin, name), None)
        self._values[plugin, name] = value

    def take(self) -> list[tuple[str, str, Any]]:
        """Return the plugin, name and value of each entry, and remove them."""
        taken = [(plugin, name, value) for (plugin, name), value in self._values.items()]
        self._values.clear()
        return taken

    def close(self) -> None:
        """Stop collecting."""
        _open.discard(self)
        self._values.clear()


def note(plugin: str, name: str, value: Any) -> None:
    """Report a value to every open `Collected`."""
    if not _open:
        return
    kept = np.array(value.asnumpy()) if isinstance(value, Tensor) else value
    for collected in list(_open):
        collected.put(plugin, name, kept)
