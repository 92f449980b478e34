"""XLA rules of windows that slide over the spatial axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.engines.xla.binding import lax
from mycel._src.engines.xla.rules.elementwise import is_floating, wide

__all__ = ["RULES"]


def _slide(x: Any, start: Any, combine: Any, window: Any, strides: Any, padding: Any) -> Any:
    start = np.asarray(start, x.dtype)[()]
    return lax.reduce_window(x, start, combine, (1, 1, *window), (1, 1, *strides), ((0, 0), (0, 0), *padding))


@wide
def _window_sum(x: Any, *, window: Any, strides: Any, padding: Any) -> Any:
    return _slide(x, 0, lax.add, window, strides, padding)


@wide
def _window_max(x: Any, *, window: Any, strides: Any, padding: Any) -> Any:
    lowest = -np.inf if is_floating(x) else np.iinfo(x.dtype).min
    return _slide(x, lowest, lax.max, window, strides, padding)


RULES: dict[str, Callable[..., Any]] = {"window_sum": _window_sum, "window_max": _window_max}
