"""Channel coupling: positions of axes (*channels*) that are removed together, joined as a
union-find.

Each position along an axis of a value belongs to a channel: a number, of which several may have
been joined. Positions that an operation meets together, as a channel of a result and that of what
is added to it, are joined. A channel that is locked cannot be removed, for a reason; what is joined
with it cannot either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Channels", "Axis"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Axis:
    """The channels along an axis.

    `zero` says that the value is zero at the positions of a channel whose parameters are.
    """

    channels: Array
    zero: bool = False


class Channels:
    """Channels, those that are joined as one, and the reasons why some are locked.

    >>> channels = Channels()
    >>> a, b = channels.fresh(2), channels.fresh(2)
    >>> channels.join(a, b)
    >>> channels.lock(b[:1], "it is seen outside")
    >>> channels.locked(a).tolist(), (channels.roots(a) == channels.roots(b)).all()
    ([True, False], np.True_)
    """

    def __init__(self) -> None:
        self._parent: Array = np.zeros(0, np.int64)
        self._reasons: dict[int, str] = {}

    def fresh(self, count: int) -> Array:
        """Return new channels."""
        made = np.arange(len(self._parent), len(self._parent) + count)
        self._parent = np.concatenate([self._parent, made])
        return made

    def roots(self, channels: Array) -> Array:
        """Return the one that stands for each channel and all that are joined with it."""
        found = self._parent[channels]
        while True:
            further = self._parent[found]
            if (further == found).all():
                self._parent[channels] = found
                return found
            found = further

    def join(self, a: Array, b: Array) -> None:
        """Join the channels of `a` with those of `b`, which broadcast."""
        a, b = np.broadcast_arrays(self.roots(np.asarray(a)), self.roots(np.asarray(b)))
        pairs = np.unique(np.stack([a.reshape(-1), b.reshape(-1)], 1)[(a != b).reshape(-1)], axis=0)
        for one, other in pairs.tolist():
            one, other = self._root(one), self._root(other)
            if one == other:
                continue
            low, high = min(one, other), max(one, other)
            self._parent[high] = low
            reason = self._reasons.pop(high, None)
            if reason is not None:
                self._reasons.setdefault(low, reason)

    def _root(self, channel: int) -> int:
        while self._parent[channel] != channel:
            channel = int(self._parent[channel])
        return channel

    def lock(self, channels: Array, reason: str) -> None:
        """Lock channels for a reason; the first one counts."""
        for root in np.unique(self.roots(np.asarray(channels))).tolist():
            self._reasons.setdefault(root, reason)

    def among(self, roots: Array) -> Array:
        """Return for each channel there is whether the one that stands for it is among `roots`."""
        chosen = np.zeros(len(self._parent), bool)
        chosen[np.asarray(roots, np.int64)] = True
        found: Array = chosen[self.roots(np.arange(len(self._parent)))]
        return found

    def locked(self, channels: Array) -> Array:
        """Return which channels are locked."""
        keys = np.fromiter(self._reasons, np.int64, len(self._reasons))
        return np.isin(self.roots(np.asarray(channels)), keys)

    def reason(self, channels: Array) -> str | None:
        """Return why the first locked one of `channels` is; None where none is."""
        for root in self.roots(np.asarray(channels)).tolist():
            if root in self._reasons:
                return self._reasons[root]
        return None
