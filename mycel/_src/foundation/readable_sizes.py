"""Numbers of bytes as messages and reports show them."""

from __future__ import annotations

__all__ = ["readable"]


def readable(size: float) -> str:
    """Return a number of bytes as text with a unit.

    >>> readable(1536)
    '1.5 KiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TiB"
