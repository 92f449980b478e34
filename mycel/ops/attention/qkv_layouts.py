"""Layouts of queries, keys and values, and sequences packed end to end.

Every layout is brought to (batch, heads, length, size), which moves no element. Packed sequences
lie end to end along one axis; they are given by the ends of each, counted from the start of the
axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import array, sorting
from mycel.ops._operands import constant_like, iota, permuted, reshaped, sizes_of, take_slice

LAYOUTS = ("BSH", "BNSD", "SBH", "BSND", "TND")


def to_heads(name: str, x: Tensor, layout: str, heads: int) -> Tensor:
    """Return `x` of a `layout` with a batch as (batch, heads, length, size).

    `heads` is the number of heads where the layout joins them. `name` is the operation, for errors.
    """
    ranks = {"BSH": 3, "SBH": 3, "BNSD": 4, "BSND": 4}
    if x.ndim != ranks[layout]:
        raise ShapeError(f"{name}: the layout {layout} takes {ranks[layout]} dimensions, not {x._type}")
    if layout in ("BSH", "SBH"):
        if heads <= 0 or x.shape[2] % heads:
            raise ShapeError(f"{name}: {x.shape[2]} features do not divide into {heads} heads")
        x = reshaped(x, (*x.shape[:2], heads, x.shape[2] // heads))
    return permuted(x, {"BSH": (0, 2, 1, 3), "BSND": (0, 2, 1, 3), "SBH": (1, 2, 0, 3), "BNSD": (0, 1, 2, 3)}[layout])


def from_heads(x: Tensor, layout: str) -> Tensor:
    """Return `x` (batch, heads, length, size) in a layout."""
    order = {"BSH": (0, 2, 1, 3), "BSND": (0, 2, 1, 3), "SBH": (2, 0, 1, 3), "BNSD": (0, 1, 2, 3)}[layout]
    x = permuted(x, order)
    return reshaped(x, (*x.shape[:2], x.shape[2] * x.shape[3])) if layout in ("BSH", "SBH") else x


def check_heads(name: str, q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise ShapeError unless queries `q`, keys `k` and values `v`, each (batch, heads, length,
    size), go together.

    `name` is the operation, for errors.
    """
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise ShapeError(
            f"{name}: as (batch, heads, length, size), query {q.shape}, key {k.shape} and value {v.shape} do not go "
            "together: batches and lengths of key and value must be the same, and the sizes of query and key"
        )
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        raise ShapeError(f"{name}: {q.shape[1]} heads of the query are no multiple of the {k.shape[1]} of the key")


def same_types(name: str, *tensors: Tensor) -> None:
    """Raise TypeError unless all tensors are of one floating type."""
    kinds = [t.dtype for t in tensors]
    if len(set(kinds)) > 1 or not kinds[0].is_floating:
        raise TypeError(
            f"{name}: query, key and value must be of one floating type, not {', '.join(k.name for k in kinds)}"
        )


def ends_of(name: str, parameter: str, ends: Any, total: Any) -> list[int]:
    """Return the `ends` of packed sequences as a list.

    Raises ValueError, which names the operation `name` and its `parameter`, unless they never fall
    and the last one is `total`.
    """
    if ends is None:
        raise ValueError(f"{name}: packed sequences need {parameter}, the end of each, the last of them {total}")
    found = list(sizes_of(name, parameter, ends))
    if not found or found[-1] != total or any(a > b for a, b in itertools.pairwise([0, *found])):
        raise ValueError(f"{name}: {parameter} {found} must not fall, and end with {total}")
    return found


def pieces(ends: Sequence[int]) -> list[tuple[int, int]]:
    """Return the start and the end of each packed sequence."""
    return list(itertools.pairwise([0, *ends]))


def one_example(x: Tensor, start: Any, stop: Any) -> Tensor:
    """Return the packed sequence from `start` to `stop` of `x` (length, heads, size) as (1, heads,
    length, size).
    """
    part = take_slice(x, 0, start, stop)
    return permuted(reshaped(part, (1, *part.shape)), (0, 2, 1, 3))


def packed_rows(x: Tensor) -> Tensor:
    """Return (1, heads, length, size) as (length, heads, size)."""
    return reshaped(permuted(x, (0, 2, 1, 3)), (x.shape[2], x.shape[1], x.shape[3]))


def owners(ends: Tensor, total: Any) -> Tensor:
    """Return for each of `total` places which of the packed sequences that end at `ends` it belongs
    to.
    """
    return sorting.searchsorted(ends, iota((total,), 0, ends.dtype), right=True)


def starts_of(ends: Tensor) -> Tensor:
    """Return the starts of packed sequences that end at `ends`."""
    return array.concat((constant_like(0, ends)[None], take_slice(ends, 0, 0, ends.shape[0] - 1)), 0)
