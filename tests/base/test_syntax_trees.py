"""Text is parsed whatever other threads do."""

from __future__ import annotations

import ast
import gc
import io
import sys
from typing import Any

import numpy as np
import pytest

from mycel._src.foundation.python_runtime import syntax_trees


@pytest.fixture
def disturbed() -> Any:
    """A parse within collections of another, as by a thread that gets its turn there."""
    times = []

    def deeper(n: int) -> None:
        if n:
            deeper(n - 1)
        else:
            ast.parse("0")

    def collected(phase: str, _: Any) -> None:
        if phase == "start" and len(times) < 100:
            times.append(phase)
            deeper(5)

    threshold = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(10)
    yield times
    gc.set_threshold(*threshold)
    gc.callbacks.remove(collected)


TEXT = "[" + "x, " * 5000 + "]"


def test_a_parse_within_another_disturbs_nothing(disturbed: Any) -> None:
    tree = syntax_trees.expression(TEXT)
    assert disturbed and isinstance(tree, ast.List) and len(tree.elts) == 5000
    disturbed.clear()
    (statement,) = syntax_trees.module(TEXT, "text.py").body
    assert disturbed and isinstance(statement, ast.Expr)


def test_headers_of_arrays_are_read_whatever_is_parsed(disturbed: Any) -> None:
    kind = [(f"field{n}", "<i4") for n in range(400)]
    file = io.BytesIO()
    np.save(file, np.zeros(2, kind))
    found = syntax_trees.undisturbed(lambda: np.load(io.BytesIO(file.getvalue())))
    assert disturbed and found.dtype.names is not None and len(found.dtype.names) == 400


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="what Python 3.11 does")
def test_python_alone_is_disturbed(disturbed: Any) -> None:
    with pytest.raises(SystemError, match="recursion depth mismatch"):
        ast.parse(TEXT)


def test_wrong_text_is_an_error() -> None:
    with pytest.raises(SyntaxError):
        syntax_trees.expression("x = 1")
    with pytest.raises(SyntaxError):
        syntax_trees.module("def f(:")
