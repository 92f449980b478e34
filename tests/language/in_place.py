"""Writes in place into tensors and NumPy arrays alike."""

from __future__ import annotations

import mycel as ms


def add_(x, value):
    """Add in place."""
    if isinstance(x, ms.Tensor):
        x.add_(value)
    else:
        x += value
