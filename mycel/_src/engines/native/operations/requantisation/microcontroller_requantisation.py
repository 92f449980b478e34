"""Requantisation on microcontrollers: constants in a table, and the code in LLVM IR.

With a multiplier m and a shift s, a sum x becomes (x m + 2**(30 - s)) >> (31 - s), plus the zero
point, between two ends. Let p = 31 - s. Where p > 32, the lower half of the product matters to no
bit of the result, so with h the upper half of x m

    ((x m + 2**(p - 1)) >> p) + z  =  (h + 2**(p - 33) + (z << (p - 32))) >> (p - 32)

which is one instruction of multiplication and addition, and a shift. Where p <= 32, x is moved left
by 33 - p places before, if 32 bits hold that; this is the way "high", with l = max(33 - p, 0)
places. Else the product has 64 bits ("wide"). "double" rounds twice, as TFLite's kernels do.
"sums" leaves sums as they are, for results of 32 bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mycel._src.engines.native.llvm.function_builder import Code

__all__ = ["HIGH", "SUMS", "Rescaling", "field_count", "rescaled", "rescaled_lanes", "rescaling"]

Array = np.ndarray[Any, Any]
HIGH, WIDE, DOUBLE, SUMS = "high", "wide", "double", "sums"
MOST = (1 << 31) - 1


class Rescaling(NamedTuple):
    """A way, whether sums are moved left before, and the numbers of each channel for it.

    `table` is (channels, fields), int32; the first field is what the sum begins with.
    """

    way: str
    moves: bool
    table: Array


def field_count(way: str, moves: bool) -> int:
    """Return how many numbers a channel has for a way, after what its sum begins with."""
    return 0 if way == SUMS else 3 + moves if way == HIGH else 2


def rescaling(first: Array, reach: Array, multiplier: Array, shift: Array, zero: int, double: bool) -> Rescaling:
    """Return how sums are rescaled.

    * `first`: what the sum of each channel begins with.
    * `reach`: the largest magnitude of each channel's sum.
    * `multiplier`, `shift`: those of `requantize`, for each channel.
    * `zero`: the zero point of the result; `double`: whether to round twice.
    """
    x, m, s = (a.astype(np.int64) for a in (first, multiplier, shift))
    if double:
        return Rescaling(DOUBLE, bool((s > 0).any()), np.stack([x, m, s], 1).astype(np.int32))
    left = np.maximum(s + 2, 0)
    down = 31 - s + left - 32
    known = np.abs(reach.astype(object)) * (1 << left.astype(object)) <= MOST
    small = (1 << 30) + (1 << np.maximum(down - 1, 0)) + (abs(zero) << np.minimum(down, 40)) <= MOST
    if not known.all() or not small.all() or (down > 31).any() or (m < 0).any():
        return Rescaling(WIDE, False, np.stack([x, m, s], 1).astype(np.int32))
    half = (1 << (down - 1)) + (zero << down)
    fields = [x, m, half, down] + ([left] if left.any() else [])
    return Rescaling(HIGH, bool(left.any()), np.stack(fields, 1).astype(np.int32))


def rescaled(c: Code, way: str, moves: bool, total: str, fields: list[str], zero: str) -> str:
    """Write the instructions that rescale a sum; return the number, which is not yet cut off.

    `c` writes them, `total` is the sum, `way` and `moves` are those of the `Rescaling`, `fields`
    the numbers of the channel after the first, and `zero` is the zero point. All are of 32 bits.
    """
    if way == HIGH:
        m, half, down, *left = fields
        x = c.op("shl i32", total, left[0]) if moves else total
        high = c.put(f"trunc i64 {c.op('lshr i64', _product(c, x, m), 32)} to i32")
        return c.op("ashr i32", c.op("add i32", high, half), down)
    m, s = fields
    if way == WIDE:
        places = c.op("sub i32", "31", s)
        half = c.op("shl i64", "1", _wide(c, c.op("sub i32", places, 1)))
        moved = c.op("ashr i64", c.op("add i64", _product(c, total, m), half), _wide(c, places))
        return _added(c, moved, zero)
    down = c.put(f"call i32 @llvm.smax.i32(i32 {c.op('sub i32', '0', s)}, i32 0)")
    x = c.op("shl i32", total, c.put(f"call i32 @llvm.smax.i32(i32 {s}, i32 0)")) if moves else total
    whole = c.op("ashr i64", c.op("add i64", _product(c, x, m), 1 << 30), 31)
    made = c.put(f"trunc i64 {c.put(f'call i64 @llvm.smin.i64(i64 {whole}, i64 {MOST})')} to i32")
    mask = c.op("sub i32", c.op("shl i32", "1", down), 1)
    rest = c.op("and i32", made, mask)
    limit = c.op("add i32", c.op("lshr i32", mask, 1), c.op("lshr i32", made, 31))
    above = c.put(f"zext i1 {c.op('icmp sgt i32', rest, limit)} to i32")
    found = c.op("add i32", c.op("ashr i32", made, down), above)
    return _added(c, _wide(c, found), zero)


def _wide(c: Code, value: str) -> str:
    return c.put(f"sext i32 {value} to i64")


def _product(c: Code, x: str, m: str) -> str:
    return c.op("mul nsw i64", _wide(c, x), _wide(c, m))


def _added(c: Code, found: str, zero: str) -> str:
    """Return a number of 64 bits plus the zero point, as one of 32 bits that is as far out."""
    total = c.op("add i64", found, _wide(c, zero))
    low = c.put(f"call i64 @llvm.smax.i64(i64 {total}, i64 {-MOST})")
    return c.put(f"trunc i64 {c.put(f'call i64 @llvm.smin.i64(i64 {low}, i64 {MOST})')} to i32")


def rescaled_lanes(c: Code, way: str, moves: bool, totals: str, fields: list[str], zero: str) -> str:
    """Write the instructions that rescale four sums in the lanes of a vector; return the vector.

    `totals` and `fields` are vectors; `c`, `way`, `moves` and `zero` are as for `rescaled`.
    """
    kind = "<4 x i32>"
    if way == HIGH:
        m, half, down, *left = fields
        x = c.op(f"shl {kind}", totals, left[0]) if moves else totals
        high = c.put(f"call {kind} @llvm.arm.mve.vmulh.v4i32({kind} {x}, {kind} {m}, i32 0)")
        # A shift to the left by what the table has: lanes move by the negative of a shift right.
        total = c.op(f"add {kind}", high, half)
        return c.put(
            f"call {kind} @llvm.arm.mve.vshl.vector.v4i32.v4i32({kind} {total}, {kind} {down}, i32 0, i32 0, i32 0)"
        )
    made = "poison"
    for k in range(4):
        parts = [c.put(f"extractelement {kind} {v}, i32 {k}") for v in (totals, *fields)]
        found = rescaled(c, way, moves, parts[0], parts[1:], zero)
        made = c.put(f"insertelement {kind} {made}, i32 {found}, i32 {k}")
    return made
