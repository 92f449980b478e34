"""Cache of recently read parts of files, limited in bytes.

Invariants: parts that are held have at most `most` bytes, or are one for each reading thread. Two
threads never read one part at once. Whether a part is held changes only the time that it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from mycel._src.foundation.system import locks

Part = TypeVar("Part")


class _Place(Generic[Part]):
    """A part, or where it will be."""

    def __init__(self) -> None:
        self.lock = locks.lock()
        self.part: Part | None = None
        self.bytes = 0


class Held(Generic[Part]):
    """The parts that were read last.

    * `read`: reads a part by its number, and says how many bytes it has.
    * `most`: how many bytes stay, about.
    """

    def __init__(self, read: Callable[[int], tuple[Part, int]], most: int) -> None:
        self.read, self.most = read, most
        self._lock = locks.lock()
        self.places: dict[int, _Place[Part]] = {}

    def part(self, number: int) -> Part:
        """Return a part, from memory or by reading it."""
        with self._lock:
            place = self.places.pop(number, None)
            if place is None:
                place = _Place()
            # The last one is the one that was used last.
            self.places[number] = place
        with place.lock:
            if place.part is None:
                part, place.bytes = self.read(number)
                place.part = part
                self._forget(number)
            return place.part

    def _forget(self, but: int) -> None:
        with self._lock:
            total = sum(place.bytes for place in self.places.values())
            for number, place in list(self.places.items()):
                if total <= self.most:
                    break
                if number != but and place.part is not None:
                    total -= place.bytes
                    del self.places[number]
