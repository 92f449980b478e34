"""Thread-safe parsing of Python source to syntax trees.

Python 3.11 keeps how deep it is in a tree in one place of the interpreter. Where a collection
lets another thread parse meanwhile, `ast.parse` finds that number changed and raises SystemError
although the text is right; such a text is read again here. All that parses uses these.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def undisturbed(parses: Callable[[], T]) -> T:
    """Return what a function gives that has something parsed, as `numpy.load` has headers."""
    while True:
        try:
            return parses()
        except SystemError as error:
            if "recursion depth mismatch" not in str(error):
                raise


def module(text: str, filename: str = "<unknown>") -> ast.Module:
    """Return the tree of statements. SyntaxError and ValueError are raised as by `ast.parse`."""
    return undisturbed(lambda: ast.parse(text, filename))


def expression(text: str) -> ast.expr:
    """Return the tree of an expression; SyntaxError and ValueError are raised as by `ast.parse`."""
    return undisturbed(lambda: ast.parse(text, mode="eval")).body
