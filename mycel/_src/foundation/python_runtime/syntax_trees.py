"""The syntax trees of Python's text, read from any number of threads.

Python 3.11 keeps how deep it is in a tree in one place of the interpreter. Where a collection
lets another thread parse meanwhile, `ast.parse` finds that number changed and raises SystemError
although the text is right; such a text is read again here. All that parses uses these.
"""

from __future__ import annotations

import ast
from typing import Any


def _parsed(text: str, filename: str, mode: str) -> Any:
    while True:
        try:
            return ast.parse(text, filename, mode)
        except SystemError as error:
            if "recursion depth mismatch" not in str(error):
                raise


def module(text: str, filename: str = "<unknown>") -> ast.Module:
    """Return the tree of statements. SyntaxError and ValueError are raised as by `ast.parse`."""
    tree: ast.Module = _parsed(text, filename, "exec")
    return tree


def expression(text: str) -> ast.expr:
    """Return the tree of an expression; SyntaxError and ValueError are raised as by `ast.parse`."""
    tree: ast.expr = _parsed(text, "<unknown>", "eval").body
    return tree
