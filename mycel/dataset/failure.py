"""The error that tells where in a pipeline a user's function failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def operation_name(operation: Any) -> str:
    """Return what messages call an operation: the name of its function, or of its class."""
    name = getattr(operation, "__name__", None)
    return name if isinstance(name, str) else type(operation).__name__


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
        f"{place}: {type(error).__name__}: {error}"
    )
