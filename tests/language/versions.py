"""How often a function was compiled."""

from __future__ import annotations

from typing import Any


def versions(jitted: Any) -> int:
    return sum(map(len, jitted.versions.values()))


def graphs(jitted: Any) -> int:
    """How many graphs there are, none of them run in segments."""
    assert not jitted.lives
    return versions(jitted)
