"""The errors that tell where in a pipeline a user's function failed, and which file is damaged."""

from __future__ import annotations

import csv
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class InputValueError(ValueError, RuntimeError):
    """An input that an operation cannot compute with; MindSpore raises RuntimeError for it."""


class MissingFile(FileNotFoundError, RuntimeError):
    """A file that is not there; MindSpore raises RuntimeError for it."""


class InputIndexError(IndexError, RuntimeError):
    """An index that the input of an operation does not have."""


class InputTypeError(TypeError, RuntimeError):
    """An input of a type that an operation does not take; MindSpore raises RuntimeError for it."""


def input_refused(error: TypeError | ValueError | OverflowError) -> RuntimeError:
    """Return what an operation raises for its input, as an error that is a RuntimeError too."""
    kind = InputTypeError if isinstance(error, TypeError) else InputValueError
    return kind(str(error)).with_traceback(error.__traceback__)


def of_pipeline(error: Exception) -> Exception:
    """Return an error of a pipeline's rows as one that is a RuntimeError too, as in MindSpore.

    A ValueError or TypeError stays one, with its message, traceback and cause. Errors of other
    classes are returned as they are.
    """
    if type(error) not in (ValueError, TypeError):
        return error
    made = input_refused(error)  # type: ignore[arg-type]
    made.__cause__ = error.__cause__
    made.__context__ = error.__context__
    made.__suppress_context__ = error.__suppress_context__
    return made


@contextmanager
def in_pipeline() -> Iterator[None]:
    """Turn errors of rows within a block into those of `of_pipeline`."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise of_pipeline(error) from error.__cause__


def operation_name(operation: Any) -> str:
    """Return what messages call an operation: the name of its function, or of its class."""
    name = getattr(operation, "__name__", None)
    return name if isinstance(name, str) else type(operation).__name__


def said(error: BaseException) -> str:
    """Return the class and message of an error, also where its own `__str__` fails."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException as second:
        # Whatever the class of the user's raises: the first error is the one to tell.
        return f"{type(error).__name__}, whose message cannot be shown ({type(second).__name__} in __str__)"


def operation_failed(
    node: str, operation: Any, columns: Sequence[str], row: int | str, error: BaseException
) -> RuntimeError:
    """Return a RuntimeError that names the node, operation, columns and row.

    Raise it `from` the user's own error.
    """
    listed = ", ".join(map(repr, columns))
    place = f"row {row}" if isinstance(row, int) else row
    return RuntimeError(
        f"{node}: operation {operation_name(operation)!r} failed on column{'s' if len(columns) != 1 else ''} {listed}, "
        f"{place}: {said(error)}"
    )


# What parsing something else than was expected leads to.
_WRONG = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    EOFError,
    struct.error,
    zlib.error,
    csv.Error,
    # That of XML is one.
    SyntaxError,
)


@contextmanager
def reading(operation: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors within a block that parses a file into errors of that file.

    >>> from mycel.dataset.pipeline_errors import reading
    >>> try:
    ...     with reading("LettersDataset", "letters.txt"):
    ...         int("x")
    ... except ValueError as error:
    ...     print(error)
    LettersDataset: 'letters.txt' is damaged, or has another layout: invalid literal for int() ...
    """
    try:
        yield
    except _WRONG as error:
        if isinstance(error, ValueError) and str(error).startswith(f"{operation}: "):
            raise
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(
            f"{operation}: {os.fspath(path)!r} is damaged, or has another layout: {kind}{str(error)[:300]}"
        ) from error
