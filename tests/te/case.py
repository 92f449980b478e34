"""A case: an operator with arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mycel import te

__all__ = ["Case"]


@dataclass(frozen=True)
class Case:
    """An operator, its arguments, what NumPy gives for them, and whether it is smooth."""

    operator: te.Operator
    arguments: tuple[Any, ...]
    expected: Callable[..., Any]
    smooth: bool = True
