"""Interpreter checks: whether native code may read CPython and NumPy objects in memory directly.

Some code that is called for each row of data reads arrays of NumPy and objects of CPython where
they lie, as asking for it through Python takes longer than the work itself. That is done only with
the versions with which the tests were run, and where what is read there is what Python says.
Everything else takes the way through Python, which gives the same.
"""

from __future__ import annotations

import sys
import sysconfig
from functools import cache

import numpy as np

__all__ = ["NUMPYS", "PYTHONS", "is_known", "refuse_unfit"]

# The oldest and the newest version with which the tests were run.
PYTHONS = ((3, 10), (3, 15))
NUMPYS = ((1, 26), (2, 5))
# A reference count and a type, each a word. Free-threaded interpreters have more.
_HEAD = 16


def _numpy() -> tuple[int, ...]:
    return tuple(int(part) for part in np.__version__.split(".")[:2] if part.isdigit())


@cache
def is_known() -> bool:
    """Return whether this is an interpreter, with a NumPy, whose objects may be read in memory."""
    return (
        sys.implementation.name == "cpython"
        and sys.byteorder == "little"
        and sys.maxsize == (1 << 63) - 1
        and PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]
        and NUMPYS[0] <= _numpy() <= NUMPYS[1]
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and object.__basicsize__ == _HEAD
    )


def refuse_unfit() -> None:
    """Raise ImportError for an interpreter that cannot run compiled code safely."""
    if sys.implementation.name != "cpython":
        raise ImportError(
            f"mycel runs on CPython, not on {sys.implementation.name}: its compiled code calls CPython's C API"
        )
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError(
            "mycel relies on Python's global lock, which this free-threaded interpreter runs without: start it as "
            "python -X gil=1, or with PYTHON_GIL=1"
        )
