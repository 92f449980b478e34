"""A Python profile hook that reports unknown frames, so that staging notices calls from native
code.

This one uses Python's own profiler and serves every engine; an engine that generates code may
provide a faster one (`Engine.known_code`).
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

__all__ = ["KnownCode"]


class KnownCode:
    """The code objects that the hook does not report; they stay alive.

    >>> known = KnownCode()
    >>> known.add(KnownCode.add.__code__)
    >>> id(KnownCode.add.__code__) in known.codes, id(KnownCode.watch.__code__) in known.codes
    (True, False)
    """

    def __init__(self) -> None:
        self.codes: dict[int, types.CodeType] = {}

    def add(self, code: types.CodeType) -> None:
        """Register a code object as known."""
        self.codes[id(code)] = code

    def watch(self, callback: Callable[[types.FrameType, str, Any], Any]) -> None:
        """Call ``callback(frame, "call", None)`` for every new frame of unknown code in this
        thread.

        It ends with the next call of `sys.setprofile`.
        """
        codes = self.codes

        def hook(frame: types.FrameType, event: str, argument: Any) -> None:
            if event == "call" and id(frame.f_code) not in codes:
                callback(frame, "call", None)

        sys.setprofile(hook)
