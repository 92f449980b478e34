"""A profile hook that tells of frames whose code is not known yet: how staging notices what native
code calls.

This one is Python's own and serves every engine; an engine that generates code may give one that
costs less (`Engine.known_code`).
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

__all__ = ["KnownCode"]


class KnownCode:
    """Code objects of which the hook need not tell; they stay alive.

    >>> known = KnownCode()
    >>> known.add(KnownCode.add.__code__)
    >>> id(KnownCode.add.__code__) in known.codes, id(KnownCode.watch.__code__) in known.codes
    (True, False)
    """

    def __init__(self) -> None:
        self.codes: dict[int, types.CodeType] = {}

    def add(self, code: types.CodeType) -> None:
        """Know a code object from now on."""
        self.codes[id(code)] = code

    def watch(self, callback: Callable[[types.FrameType, str, Any], Any]) -> None:
        """Call ``callback(frame, "call", None)`` for every frame of this thread that begins with
        code that is not known, until `sys.setprofile`.
        """
        codes = self.codes

        def hook(frame: types.FrameType, event: str, argument: Any) -> None:
            if event == "call" and id(frame.f_code) not in codes:
                callback(frame, "call", None)

        sys.setprofile(hook)
