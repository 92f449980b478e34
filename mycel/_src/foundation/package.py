"""The folder of the `mycel` package."""

from __future__ import annotations

import os

__all__ = ["FOLDER"]

FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
