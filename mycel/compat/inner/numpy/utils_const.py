"""`mindspore.numpy.utils_const`: an error, and arithmetic on shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

from mycel.compat.inner._checkparam import (
    check_axis_in_range,
    check_axis_valid,
    expanded_shape,
    infer_out_shape,
    max_,
    min_,
    tuple_slice,
)

__all__: list[str] = []

_infer_out_shape, _expanded_shape, _tuple_slice = infer_out_shape, expanded_shape, tuple_slice
_check_axis_in_range, _check_axis_valid = check_axis_in_range, check_axis_valid
_max, _min = max_, min_


def _raise_value_error(info: str, param: Any = None) -> NoReturn:
    """Raise ValueError with a message, and a value after it if there is one."""
    raise ValueError(info if param is None else f"{info}{param}")


def _is_shape_empty(shp: Sequence[int]) -> bool:
    """Return whether tensors of a shape have no elements."""
    return math.prod(shp) == 0


def _seq_prod(seq1: Sequence[int], seq2: Sequence[int]) -> tuple[int, ...]:
    """Return the products of two sequences' elements."""
    return tuple(a * b for a, b in zip(seq1, seq2))
