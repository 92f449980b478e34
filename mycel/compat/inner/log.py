"""`mindspore.log`: parts of its logger."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from mycel._src.foundation.log import logger as _logger

__all__: list[str] = []

VLOG_INDEX = 0
_name_to_level = {"ERROR": 40, "WARNING": 30, "INFO": 20, "DEBUG": 10}
_gloglevel_to_name = {"3": "ERROR", "2": "WARNING", "1": "INFO", "0": "DEBUG"}


class _LogActionOnce:
    """A decorator of functions that log: the first call's messages appear, and no later ones.

    `logger` is the module that logs, `key` the name under which it is remembered; with `no_warning`
    no message appears at all.
    """

    _done: set[str] = set()

    def __init__(self, logger: Any, key: str, no_warning: bool = False) -> None:
        self.logger, self.key, self.no_warning = logger, key, no_warning

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def run(*args: Any, **kwargs: Any) -> Any:
            if not self.no_warning and self.key not in self._done:
                self._done.add(self.key)
                return func(*args, **kwargs)
            _logger.addFilter(_silent)
            try:
                return func(*args, **kwargs)
            finally:
                _logger.removeFilter(_silent)

        return run


def _silent(record: logging.LogRecord) -> bool:
    return False


def _get_logger() -> logging.Logger:
    """Return the logger."""
    return _logger


def _get_rank_id() -> str:
    """Return the rank of this process as text: "0"."""
    return "0"


def vlog_print(level: str, module: str, file: str, line: int, message: str) -> None:
    """Log a message at the level "debug".

    `level` is its own level in MindSpore, `module`, `file` and `line` its place.
    """
    _logger.debug("%s:%s: %s", file, line, message)
