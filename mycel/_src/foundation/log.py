"""The package's logger, which writes warnings to the standard error stream.

The level comes from MYCEL_LOG (debug, info, warning, error), or from MindSpore's GLOG_v (0 to 4).
"""

from __future__ import annotations

import logging
import os

from mycel._src.foundation.public_names import listing as _listing

__all__ = ["critical", "debug", "error", "get_level", "get_log_config", "info", "logger", "warning"]

logger = logging.getLogger("mycel")
if not logger.handlers:
    _handler = logging.StreamHandler()
    _handler.setFormatter(logging.Formatter("mycel %(levelname)s: %(message)s"))
    logger.addHandler(_handler)
    logger.propagate = False
    _counted = dict(zip("01234", ("debug", "info", "warning", "error", "critical"))).get(os.environ.get("GLOG_v", ""))
    logger.setLevel(getattr(logging, os.environ.get("MYCEL_LOG", _counted or "warning").upper(), logging.WARNING))

# A program's own messages in the same place.
debug, info, warning = logger.debug, logger.info, logger.warning
error, critical = logger.error, logger.critical

_LEVELS = {logging.DEBUG: "0", logging.INFO: "1", logging.WARNING: "2", logging.ERROR: "3", logging.CRITICAL: "4"}


def get_level() -> str:
    """Return the logger's level as MindSpore counts.

    "0" is debug, "1" info, "2" warning, "3" error and "4" critical.
    """
    return _LEVELS[min((level for level in _LEVELS if level >= logger.level), default=logging.CRITICAL)]


def get_log_config() -> dict[str, str]:
    """Return the logger's settings under MindSpore's names.

    Logs are written to the standard error stream.
    """
    return {"GLOG_v": get_level(), "GLOG_logtostderr": "1"}


__dir__ = _listing(__name__)
