"""Ctrl-C during training: stops between steps, not within one; at once while nothing is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from mycel._src.foundation.log import logger

__all__ = ["DeferredInterrupt"]

T = TypeVar("T")


class DeferredInterrupt:
    """A context that only notes the first Ctrl-C, for `check`.

    The second raises KeyboardInterrupt at once, as does the first within `awaited`.

    Where Ctrl-C does not raise KeyboardInterrupt anyway (another handler, another thread) nothing
    changes.
    """

    def __init__(self) -> None:
        self.requested = self.waits = False
        self._former: Any = None

    def __enter__(self) -> DeferredInterrupt:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._former = signal.signal(signal.SIGINT, self._receive)
        return self

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.requested or self.waits:
            self.requested = True
            raise KeyboardInterrupt
        self.requested = True
        logger.warning("Ctrl-C: training stops after this step; press it again to stop at once")

    def awaited(self, call: Callable[[int], T], argument: int) -> T:
        """Return what a call gives that may wait for long and may be interrupted anywhere."""
        self.waits = True
        self.check()
        found = call(argument)
        self.waits = False
        return found

    def check(self) -> None:
        """Raise the KeyboardInterrupt that was noted."""
        if self.requested:
            raise KeyboardInterrupt

    def __exit__(self, *exception: Any) -> None:
        if self._former is not None:
            signal.signal(signal.SIGINT, self._former)
            self._former = None
