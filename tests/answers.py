"""What a program gives, as text: the form in which the real MindSpore's answers are stored and
compared.

The module knows neither package by import, so the scripts that ask the real one can use it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

_ITERATORS = ("map", "filter", "zip", "enumerate", "range", "reversed", "generator", "list_iterator", "tuple_iterator")


def answer(program: Callable[[], Any]) -> str:
    """Return what a call gives: its result's text, or the class of the exception that it raises."""
    try:
        return text_of(program())
    except RecursionError:
        return "raises RecursionError"
    except Exception as error:
        return f"raises {type(error).__name__}"


def agrees(program: Callable[[], Any], expected: str) -> str:
    """Return what a call gives, or `expected` itself where it raises a subclass of the exception
    there.
    """
    try:
        return text_of(program())
    except Exception as error:
        names = [base.__name__ for base in type(error).__mro__]
        return expected if expected[7:] in names and expected.startswith("raises ") else f"raises {names[0]}"


def text_of(value: Any, depth: int = 0) -> str:
    """Return the type and the values of a result."""
    name = type(value).__name__
    if depth > 6:
        return "..."
    if value is None or value is Ellipsis or isinstance(value, (bool, str, bytes)):
        return repr(value)
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({_numbers(value)})"
    if isinstance(value, (int, float, complex)):
        return f"{name} {_numbers(value)}"
    if isinstance(value, np.ndarray):
        return f"ndarray {value.dtype.name}{list(value.shape)} {_elements(value, depth)}"
    if hasattr(value, "asnumpy"):
        array = value.asnumpy()
        return f"{name} {str(value.dtype)}{list(value.shape)} {_elements(array, depth)}"
    if isinstance(value, dict):
        return f"{name}{{{', '.join(f'{text_of(k, depth + 1)}: {text_of(v, depth + 1)}' for k, v in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"{name}({_listed(value, depth)})"
    if isinstance(value, (set, frozenset)):
        return f"{name}({', '.join(sorted(text_of(v, depth + 1) for v in value))})"
    if name in _ITERATORS or name.endswith("_iterator"):
        return f"{name}({_listed(itertools.islice(value, 50), depth)})"
    return f"<{name}>"


def _listed(values: Iterable[Any], depth: int) -> str:
    return ", ".join(text_of(v, depth + 1) for v in values)


def _elements(array: np.ndarray[Any, Any], depth: int) -> str:
    if array.dtype == object:
        return f"[{_listed(array.ravel().tolist(), depth)}]"
    values = array.ravel()
    if values.dtype.kind not in "biufcSU":
        values = values.astype(np.float32)
    return f"[{' '.join(_numbers(v) for v in values[:40])}{' ...' if values.size > 40 else ''}]"


def _numbers(value: Any) -> str:
    """Return a number to five digits, so that rounding does not show."""
    if isinstance(value, (complex, np.complexfloating)):
        return f"{_numbers(value.real)}+{_numbers(value.imag)}j"
    if isinstance(value, (float, np.floating)):
        return f"{float(value) + 0.0:.5g}" if value == value else "nan"
    return str(value)
