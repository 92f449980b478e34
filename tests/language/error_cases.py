"""Cases of errors: a program in which ``# here`` marks the line that is to be shown.

`at` is the piece of that line under which the caret has to begin, `says` what else has to be shown.
Errors of operations and of the program keep the type that they have eagerly; what cannot be
compiled is a CompileError.
"""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.foundation.errors import CompileError

_HERE = Path(__file__).parent
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def failure(fn: Any, args: Any) -> BaseException:
    """What compiling a function as one graph raises."""
    given = [ms.Tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(BaseException) as found:
        ms.jit(fn, fullgraph=True)(*given)
    return found.value


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def marked_line(fn: Any, mark: str = "# here") -> tuple[int, str]:
    source = type(fn) if isinstance(fn, nn.Cell) else fn
    lines, first = inspect.getsourcelines(source)
    number = next(i for i, text in enumerate(lines) if mark in text)
    return first + number, lines[number].rstrip("\n")


def source_file(fn: Any) -> str:
    file = inspect.getsourcefile(type(fn) if isinstance(fn, nn.Cell) else fn)
    assert file is not None
    return file


def caret_column(text: str, line: str) -> int:
    """The column of the source line over the first mark of the line of carets below it, where it is
    last shown.
    """
    rows = text.split("\n")
    positions = [i for i, row in enumerate(rows) if row.strip() == line.strip()]
    assert positions, text
    below = rows[positions[-1] + 1]
    assert re.fullmatch(r" *[~^]+ *", below), text
    shift = (len(line) - len(line.lstrip())) - (len(rows[positions[-1]]) - len(rows[positions[-1]].lstrip()))
    return len(below) - len(below.lstrip()) + shift


def check_place(file: str, error: BaseException, number: int, line: str, at: str, caret: bool) -> None:
    text = shown(error)
    places = (f"{file}:{number}", f'"{file}", line {number}')
    assert any(p in text for p in places), text
    assert line.strip() in text, text
    if caret and (sys.version_info >= (3, 11) or isinstance(error, CompileError)):
        assert caret_column(text, line) == line.index(at), text


def user_entries(error: BaseException) -> list[Any]:
    """The entries of a traceback in the files of this folder."""
    return [e for e in traceback.extract_tb(error.__traceback__) if Path(e.filename).parent == _HERE]


class Cases:
    """The cases of one test file."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def add(
        self, error: type[BaseException], at: str, *says: str, args: Any = (X,), caret: bool = True
    ) -> Callable[[Any], Any]:
        """Declare a program that fails; `caret=False` for errors whose line alone is shown."""

        def declare(fn: Any) -> Any:
            self.all.append(
                pytest.param(fn, args, error, at, says, caret, id=getattr(fn, "__name__", type(fn).__name__))
            )
            return fn

        return declare

    def test(self) -> Any:
        """A parametrized test of what is shown of all cases declared so far."""

        @pytest.mark.parametrize("fn, args, kind, at, says, caret", self.all)
        def test_cases(fn: Any, args: Any, kind: Any, at: str, says: tuple[str, ...], caret: bool) -> None:
            error = failure(fn, args)
            assert type(error) is kind, shown(error)
            check_place(source_file(fn), error, *marked_line(fn), at, caret)
            for piece in says:
                assert piece in shown(error), shown(error)

        return test_cases

    def test_positions(self) -> Any:
        """A parametrized test of the positions of all errors that there are eagerly, too."""
        like_python = [pytest.param(c.values[:3], id=c.id) for c in self.all if c.values[2] is not CompileError]

        @pytest.mark.skipif(
            sys.version_info < (3, 12),
            reason="columns are recorded from 3.11 on, and comprehensions are frames before 3.12",
        )
        @pytest.mark.parametrize("program", like_python)
        def test_positions_are_those_of_python(program: Any) -> None:
            """Compiled and eagerly the same functions, lines and columns, to the end of the
            expression.
            """
            fn, args, kind = program
            with pytest.raises(kind) as eagerly:
                fn(*[ms.Tensor(a) if isinstance(a, np.ndarray) else a for a in args])
            error = failure(fn, args)
            places = [
                [(e.name, e.lineno, e.end_lineno, e.colno, e.end_colno) for e in user_entries(found)]
                for found in (error, eagerly.value)
            ]
            inside = [p[next(i for i, e in enumerate(p) if e[0] not in _AROUND) :] for p in places]
            assert inside[0] == inside[1]

        return test_positions_are_those_of_python


_AROUND = ("failure", "test_positions_are_those_of_python")
