"""Exact integer feasibility by isl, where it is installed, for what elimination leaves undecided.

Fourier-Motzkin elimination finds a solution in fractions where there may be none in whole numbers.
The library (isl, by the package islpy) then decides.
"""

from __future__ import annotations

import importlib
import importlib.util

from mycel._src.compiler.loops.inequalities import Linear, System

__all__ = ["is_certainly_empty", "is_exact"]


def is_exact() -> bool:
    """Return whether the library is installed."""
    found = importlib.util.find_spec("islpy")
    return found is not None and found.origin is not None  # a folder of that name is no package


def is_certainly_empty(system: System) -> bool:
    """Return whether no whole numbers satisfy a system; False where the library is not there."""
    if not is_exact():
        return False
    library = importlib.import_module("islpy")
    names = sorted({n for form in (*system.zero, *system.positive) for n in form if n})
    known = {n: f"x{k}" for k, n in enumerate(names)}
    parts = [f"{_text(form, known)} = 0" for form in system.zero]
    parts += [f"{_text(form, known)} >= 0" for form in system.positive]
    text = f"{{ [{', '.join(known.values())}] : {' and '.join(parts) or 'true'} }}"
    return bool(library.BasicSet(text).is_empty())


def _text(form: Linear, known: dict[str, str]) -> str:
    return " + ".join([f"{c} {known[n]}" if n else f"{c}" for n, c in form.items()]) or "0"
