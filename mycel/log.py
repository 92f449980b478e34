"""The package's logger: warnings to stderr; the level comes from MYCEL_LOG (debug, info, warning, error)."""

from __future__ import annotations

import logging
import os

__all__ = ["logger"]

logger = logging.getLogger("mycel")
if not logger.handlers:
    _handler = logging.StreamHandler()
    _handler.setFormatter(logging.Formatter("mycel %(levelname)s: %(message)s"))
    logger.addHandler(_handler)
    logger.propagate = False
    logger.setLevel(getattr(logging, os.environ.get("MYCEL_LOG", "warning").upper(), logging.WARNING))
