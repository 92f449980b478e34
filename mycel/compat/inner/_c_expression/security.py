"""`mindspore._c_expression.security`: whether the package was built without output of graphs."""

from __future__ import annotations

__all__: list[str] = []


def enable_security() -> bool:
    """Return False: nothing is held back."""
    return False
