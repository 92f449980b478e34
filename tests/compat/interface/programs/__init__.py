"""Programs that use MindSpore's inner modules, and what they print with MindSpore.

A program calls `say(label, function)`, which prints what the function gives, or the built-in class
of the error that it raises. `ask_programs.py` writes the answers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if path.stem != "__init__")


def answer(name: str) -> Path:
    """The file with what a program prints with MindSpore."""
    return HERE / f"{name}.txt"


def plain(value: Any) -> Any:
    """A value as one that prints alike in both packages."""
    if hasattr(value, "asnumpy"):
        return f"{value.dtype}{plain(value.asnumpy())}"
    if isinstance(value, np.ndarray):
        return np.round(value.astype(float), 5).tolist() if value.dtype.kind == "f" else value.tolist()
    if isinstance(value, np.generic):
        return plain(np.asarray(value))
    if isinstance(value, (list, tuple)):
        return type(value)(plain(v) for v in value) if type(value) in (list, tuple) else list(map(plain, value))
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return round(value, 6) if isinstance(value, float) else value


def builtin_class(error: BaseException) -> str:
    """The name of the first built-in class of an error."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def say(label: str, function: Callable[[], Any]) -> None:
    """Print what a function gives."""
    try:
        found = plain(function())
    except Exception as error:
        print(f"{label}: raises {builtin_class(error)}")
        return
    print(f"{label}: {found!r}")


def run(name: str) -> None:
    """Run a program."""
    exec(compile((HERE / f"{name}.py").read_text(encoding="utf-8"), name, "exec"), {"say": say, "__name__": name})
