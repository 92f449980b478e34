"""The values of a step that a program gives by operations (`ScalarSummary` and so on) on their way
to the records that write them.

Whoever records opens a `Collected`; while any is open, a value is copied into each, under its
plugin and name, and taken out by the next ``take``.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from mycel.core.tensor import Tensor

__all__ = ["Collected", "note"]

_open: weakref.WeakSet[Collected] = weakref.WeakSet()


class Collected:
    """What was given since the last ``take``, by plugin and name."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], Any] = {}
        _open.add(self)

    def put(self, plugin: str, name: str, value: Any) -> None:
        """Enter a value, in the place of one with the same name."""
        self._values.pop((plugin, name), None)
        self._values[plugin, name] = value

    def take(self) -> list[tuple[str, str, Any]]:
        """Return the plugin, name and value of each, which are forgotten here."""
        taken = [(plugin, name, value) for (plugin, name), value in self._values.items()]
        self._values.clear()
        return taken

    def close(self) -> None:
        """Take nothing any more."""
        _open.discard(self)
        self._values.clear()


def note(plugin: str, name: str, value: Any) -> None:
    """Give a value to all that are open."""
    if not _open:
        return
    kept = np.array(value.asnumpy()) if isinstance(value, Tensor) else value
    for collected in list(_open):
        collected.put(plugin, name, kept)
