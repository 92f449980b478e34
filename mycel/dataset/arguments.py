"""Checks of the arguments that datasets, samplers and transforms have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel._src.foundation import arguments
from mycel.dataset.pipeline_errors import InputValueError

INT32_MAX = 2**31 - 1
# More threads or processes are a mistake; the system may have fewer to give.
MOST_WORKERS = 1024


def names(value: str | Sequence[str], argument: str) -> list[str]:
    """Return a list of column names, from one name or several.

    Raises TypeError for names that are not text, and ValueError if one is empty, repeated or
    missing. `argument` is what messages call the argument.
    """
    found = [value] if isinstance(value, str) else list(value)
    for name in found:
        arguments.text(argument, "each column name", name)
        if not name:
            raise ValueError(f"{argument}: a column name is empty")
    if not found:
        raise ValueError(f"{argument}: no column names given")
    if len(set(found)) != len(found):
        raise ValueError(f"{argument}: a column is named twice in {found}")
    return found


def positions(operation: str, wanted: Sequence[str], present: Sequence[str]) -> list[int]:
    """Return the positions of the wanted columns; raise InputValueError for missing ones."""
    # There may be very many.
    places = {name: place for place, name in enumerate(present)}
    missing = [name for name in wanted if name not in places]
    if missing:
        raise InputValueError(
            f"{operation}: there is no column {', '.join(map(repr, missing))}; the columns are {list(present)}"
        )
    return [places[name] for name in wanted]


def check_count(
    operation: str, argument: str, value: Any, low: int, extra: tuple[int, ...] = (), high: int = INT32_MAX
) -> int:
    """Return `value`, an integer from `low` to `high`, or one of `extra`.

    `operation` and `argument` are named in messages. Raises TypeError for other types and
    ValueError for integers out of range.
    """
    arguments.integer(operation, argument, value)
    if value not in extra and not low <= value <= high:
        also = f" or {' or '.join(map(str, extra))}" if extra else ""
        raise InputValueError(f"{operation}: {argument} must be within [{low}, {high}]{also}, not {value}")
    return int(value)


def check_workers(operation: str, value: Any) -> int:
    """Return how many workers there are to be; `operation` is named in messages.

    Raises TypeError for what is no integer, ValueError outside of [1, MOST_WORKERS].
    """
    return check_count(operation, "num_parallel_workers", value, 1, high=MOST_WORKERS)


def check_counts(operation: str, **counts: Any) -> None:
    """Raise TypeError unless each argument that is given by name is an integer or None.

    `operation` is named in messages.
    """
    for argument, value in counts.items():
        if value is not None:
            arguments.integer(operation, argument, value)


def is_hidden(name: str) -> bool:
    """Return whether a column is internal: iterators omit it unless it is named or renamed."""
    return name.startswith("_meta")
