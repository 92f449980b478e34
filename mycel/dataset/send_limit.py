"""Limit of how many batches of an epoch are sent ahead to a training in sink mode."""

from __future__ import annotations

import time
from collections.abc import Callable

from mycel._src.foundation.log import logger
from mycel._src.foundation.system import locks

# Seconds between looks at whether the sender is stopped, and before a warning.
_LOOK = 0.2
_PATIENCE = 30.0


class SendingLimit:
    """The limit of `config.set_sending_batches`; 0 is none."""

    def __init__(self) -> None:
        self.batches = 0
        self._changed = locks.condition(locks.reentrant())

    def set(self, batches: int) -> None:
        """Set the limit, and let those go on who wait for it."""
        with self._changed:
            self.batches = batches
            self._changed.notify_all()

    def wake(self) -> None:
        """Let those who wait see whether they are stopped."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, number: int, stopped: Callable[[], bool]) -> bool:
        """Wait until batch `number` of an epoch may be sent; return False where it is stopped."""
        if not 0 < self.batches <= number:
            return True
        begun, warned = time.monotonic(), False
        with self._changed:
            while 0 < self.batches <= number:
                if stopped():
                    return False
                if not warned and time.monotonic() - begun > _PATIENCE:
                    warned = True
                    logger.warning(
                        "set_sending_batches: sending has waited for %.0f s after %d batches of the epoch; "
                        "set a greater limit, or 0",
                        _PATIENCE,
                        self.batches,
                    )
                self._changed.wait(_LOOK)
        return True
