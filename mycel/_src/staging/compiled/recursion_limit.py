"""A raised recursion limit for the interpreter of functions that are compiled."""

from __future__ import annotations

import sys

from mycel._src.foundation.python_runtime.scoped_process_settings import Block, WhileOpen

__all__ = ["deep_stack"]

_STACK = 1_000_000 if sys.version_info >= (3, 11) else 12_000
_depth = WhileOpen(sys.getrecursionlimit, sys.setrecursionlimit, lambda limit: max(limit, _STACK))


def deep_stack() -> Block:
    """Make room for the interpreter, which makes several Python calls for each of the program's."""
    return _depth.block()
