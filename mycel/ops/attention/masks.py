"""Masks of scores: tensors of truth values, True where a score is dropped, that broadcast to
(batch, heads, queries, keys).

Modes that MindSpore calls sparse are made from positions, so that the content of the 2048 x 2048
mask that they ask for is never read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops._operands import constant_like, iota, numbers_of, operand, reshaped, run

MOST = 2147483647
COMPRESSED = 2048


def truth(name: str, parameter: str, mask: Any) -> Tensor:
    """Return a mask of bool, whole numbers or float16 as truth values.

    `name` and `parameter` are for errors. Raises TypeError for other floating types, in which
    masks mean numbers that are added to scores.
    """
    m = operand(name, mask)
    if m.dtype.is_floating and m.dtype is not D.float16:
        raise TypeError(
            f"{name}: {parameter} must be of bool or uint8, True or 1 where a score is dropped, not {m.dtype.name}"
        )
    return m if m.dtype is D.bool_ else run(E.ne, m, constant_like(0, m))


def either(*masks: Tensor | None) -> Tensor | None:
    """Return which scores any of the masks drops, or None without a mask."""
    found: Tensor | None = None
    for m in masks:
        if m is not None:
            found = m if found is None else run(E.logical_or, found, m)
    return found


def positions(length: Any, axis: int) -> Tensor:
    """Return 0, 1, ..., `length` - 1 along the queries (axis 2) or the keys (axis 3) of scores."""
    return iota(tuple([length if a == axis else 1 for a in range(4)]), axis, D.int64)


def band(row: Tensor, column: Tensor, before: Any, after: Any) -> Tensor | None:
    """Return a mask that drops keys more than `before` places before a query's own place or more
    than `after` places after it.

    `row` and `column` are the positions of queries and keys. Returns None if nothing is dropped.
    """
    late = None if after >= MOST else run(E.gt, column, row + constant_like(after, row))
    early = None if before >= MOST else run(E.lt, column, row - constant_like(before, row))
    return either(late, early)


@dataclass(frozen=True)
class SparseMask:
    """A mask of one of MindSpore's sparse modes.

    `name` is the operation, for errors, and `mask` holds truth values. `mode` 0 drops the scores of
    `mask`; where there is a mask it also drops keys more than `before` places before the diagonal
    or more than `after` places after it. Mode 1 drops the scores of `mask`. Modes 2 to 4 ask for a
    mask of 2048 x 2048 and drop keys after a query's own place (2), the same counted from the ends
    of both sequences (3), or keys outside of the band around that place (4). Mode 5 drops the
    scores of `mask`, and those of mode 3 apart from the first `prefix` keys of an example.
    """

    name: str
    mode: int
    mask: Tensor | None = None
    before: int = MOST
    after: int = MOST
    prefix: Any = None

    def dropped(self, row: Tensor, column: Tensor, shift: Any) -> Tensor | None:
        """Return which scores are dropped, or None if none is.

        `row` and `column` are the positions of queries and of keys in their own sequences; `shift`
        is how many more keys than queries a sequence has.
        """
        self._check()
        mask = self.mask
        if self.mode == 0:
            return None if mask is None else either(mask, band(row, column, self.before, self.after))
        if self.mode == 1:
            return mask
        if self.mode == 2:
            return band(row, column, MOST, 0)
        corner = row + (shift if isinstance(shift, Tensor) else constant_like(shift, row))
        if self.mode == 3:
            return band(corner, column, MOST, 0)
        if self.mode == 4:
            return band(corner, column, self.before, self.after)
        late = run(E.gt, column, corner)
        return either(run(E.logical_and, late, self._beyond_prefix(column)), mask)

    def _check(self) -> None:
        """Raise ValueError where the mode needs another mask."""
        mask = self.mask
        if self.mode in (2, 3, 4) and (mask is None or mask.shape[-2:] != (COMPRESSED, COMPRESSED)):
            found = "none" if mask is None else f"one of shape {mask.shape}"
            raise ShapeError(
                f"{self.name}: sparse_mode {self.mode} takes a mask of shape ({COMPRESSED}, {COMPRESSED}), ones above "
                f"the diagonal, not {found}"
            )
        if self.mode in (1, 5) and mask is None:
            raise ValueError(f"{self.name}: sparse_mode {self.mode} needs a mask")

    def _beyond_prefix(self, column: Tensor) -> Tensor:
        """Return True for keys past the prefix of their example."""
        if self.prefix is None:
            raise ValueError(f"{self.name}: sparse_mode 5 needs prefix, a length for each example of the batch")
        lengths = numbers_of(self.name, "prefix", self.prefix)
        return run(E.ge, column, reshaped(lengths, (*lengths.shape, 1, 1, 1)))


def check_band(name: str, before: int, after: int, queries: Any, keys: Any) -> None:
    """Raise ValueError where no key lies in the band.

    The band goes from `before` places before the diagonal to `after` places after it, in a matrix
    of `queries` by `keys` scores. `name` is the operation, for errors.
    """
    empty = (
        (before < 0 and after < 0)
        or (before < 0 and (after < -before or -before >= keys))
        or (after < 0 and (-after > before or -after >= queries))
    )
    if empty:
        raise ValueError(
            f"{name}: pre_tokens {before} and next_tokens {after} leave no band in {queries} queries by {keys} keys"
        )
