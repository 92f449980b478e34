"""What tests of the search for values that are not finite share."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import NonFiniteError


def t(*values: float, dtype: Any = np.float32) -> ms.Tensor:
    return ms.Tensor(np.array(values, dtype))


def graph_mode(fn: Any) -> Any:
    class Holder(nn.Cell):
        def construct(self, *args: Any) -> Any:
            return fn(*args)

    def run(*args: Any) -> Any:
        ms.set_context(mode=ms.GRAPH_MODE)
        try:
            return Holder()(*args)
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)

    return run


def failure(run: Any, *args: Any) -> NonFiniteError:
    with pytest.raises(NonFiniteError) as found:
        run(*args)
    return found.value


def check(error: NonFiniteError, fn: Any, operation: str, kind: str, at: str, mark: str = "# here") -> None:
    """Assert what an error names, and that it shows the marked line of a function with a caret
    under a piece of it.
    """
    lines, first = inspect.getsourcelines(fn)
    file = inspect.getsourcefile(fn)
    number = next(i for i, text in enumerate(lines) if mark in text)
    assert (error.operation, error.kind) == (operation, kind), str(error)
    assert (error.where.file, error.where.line) == (file, first + number), str(error)
    line, text = lines[number].rstrip("\n"), str(error)
    assert f"  {file}:{first + number}\n    {line.strip()}\n" in text, text
    if error.where.end_column:
        below = text.split(line.strip() + "\n")[1].split("\n")[0]
        lead = len(line) - len(line.lstrip())
        assert len(below) - len(below.lstrip()) - 4 + lead == line.index(at), text


def logarithm(x: Any) -> Any:
    y = x * 2
    return (y + ops.log(x - 1)).sum()  # here
