"""Fast parsing of Parquet footers: where the columns of all row groups lie.

A footer is a tree of structures and lists in the compact form of Thrift, with some hundred bytes
for each column of each group. A compiled routine goes over it once, with a stack of its own, and
notes five numbers and the place of the path of each column. What differs from the form that writers
produce, be it by a byte, is left to the general parser, which also says what is wrong with it.

Source: the format's `parquet.thrift` (Apache Parquet 2.10).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on, routine
from mycel._src.engines.routines.routine_language import Bytes, Int, Longs, i64

__all__ = ["NUMBERS", "walked"]

Array = np.ndarray[Any, np.dtype[Any]]

# For each column: its type, sizes unpacked and packed, where its pages and its dictionary begin (0
# without one), and where its path begins and ends in the footer.
NUMBERS = 7
# No column takes fewer bytes.
_LEAST = 16
_LEVELS = 32


def _varint(content: Bytes, at: Int, end: Int) -> Any:
    """Return a number of up to nine groups of bits and where it ends; -1 where it is none."""
    value, after, shift, more = i64(0), at, 0, 1
    while more == 1 and after < end and shift < 63:
        byte = i64(content[after])
        value = value | ((byte & 127) << shift)
        shift += 7
        after += 1
        if byte < 128:
            more = 0
    return (-1 if more == 1 else value), after


def _head(content: Bytes, at: Int, end: Int, last: Int) -> Any:
    """Return the kind and number of the next field, and where its value begins.

    The kind is 0 behind the last field of a structure, and -1 where there is none.
    """
    kind, field, after = i64(-1), last, at
    if at < end:
        head = i64(content[at])
        after = at + 1
        kind = head & 15
        if (head >> 4) > 0:
            field = last + (head >> 4)
            if kind == 0:
                kind = i64(-1)
        elif kind > 0:
            zigzag, after = _varint(content, after, end)
            field = zigzag >> 1
            if zigzag < 0 or (zigzag & 1) == 1 or field > 32767:
                kind = i64(-1)
    return kind, field, after


def _simple(content: Bytes, at: Int, end: Int, kind: Int, within: Int) -> Any:
    """Return the number that a value is (0 for others) and where it ends; -1 where it is none."""
    value, after = i64(0), at
    if kind < 4:
        # In structures the kind says what a truth value is.
        if within == 1 or kind == 3:
            after = at + 1
    elif kind < 7:
        found, after = _varint(content, at, end)
        value = found >> 1
        if (found & 1) == 1:
            value = -1 - value
        if found < 0:
            after = end + 1
    elif kind == 7:
        after = at + 8
    else:
        size, after = _varint(content, at, end)
        if size < 0 or size > end - after:
            after = end + 1
        else:
            after += size
    return value, (-1 if after > end else after)


def _list(content: Bytes, at: Int, end: Int, kind: Int) -> Any:
    """Return how many elements a list has, their kind, and where they begin; -1 of none."""
    count, element, after = i64(-1), i64(0), at + 1
    if (kind == 9 or kind == 10) and at < end:
        count = i64(content[at]) >> 4
        element = i64(content[at]) & 15
        if count == 15:
            count, after = _varint(content, after, end)
        if element == 0 or element == 11 or element > 12 or count > end - after:
            count = i64(-1)
    return count, element, after


def _meaning(role: Int, field: Int, kind: Int, group: Int, listed: Int, told: Int) -> Any:
    """Return the role of a field's value, 0 for none, and whether it may be there, once."""
    child, fits = 0, 1
    if role == 1 and field == 4:
        child = 2
        if group > 0 or (kind != 9 and kind != 10):
            fits = 0
    if role == 3 and field == 1:
        child = 4
        if listed == 1 or (kind != 9 and kind != 10):
            fits = 0
    if role == 5 and field == 3:
        child = 6
        if told == 1 or kind != 12:
            fits = 0
    if role == 6 and field == 3:
        child = 7
        if kind != 9 and kind != 10:
            fits = 0
    return child, fits


def _number(field: Int) -> Any:
    """Return the place of a field among the numbers of a column, or -1, and its bit in `seen`."""
    into, bit = -1, 0
    if field == 1:
        into = 0
        bit = 1
    elif field == 6:
        into = 1
        bit = 4
    elif field == 7:
        into = 2
        bit = 8
    elif field == 9:
        into = 3
        bit = 16
    elif field == 11:
        into = 4
    return into, bit


# A level of the stack has its role, the last field (of a list: how many are left), and for a list
# the kind of its elements. Roles: 1 the file, 2 its row groups, 3 one of them, 4 its columns, 5 one
# of them, 6 what is said of it, 7 its path, 0 anything else.
@routine
def _walk(
    content: Bytes, total: Int, stack: Longs, numbers: Longs, most: Int, counts: Longs, groups: Int, state: Longs
) -> None:
    at, depth, good, chunk, group, listed, told, seen = i64(0), 1, 1, 0, 0, 0, 0, i64(0)
    stack[0] = 1
    stack[1] = 0
    stack[2] = 0
    while good == 1 and depth > 0:
        base = (depth - 1) * 3
        role, kind, field, child, within = stack[base], i64(0), i64(0), 0, 0
        if stack[base + 2] > 0:
            within = 1
            if stack[base + 1] == 0:
                depth -= 1
                if role == 7:
                    numbers[chunk * 7 + 6] = at
            else:
                stack[base + 1] = stack[base + 1] - 1
                kind = stack[base + 2]
                if role == 2:
                    child = 3
                    listed = 0
                    group += 1
                if role == 4:
                    child = 5
                    told = 0
                if child > 0 and (kind != 12 or group > groups or chunk >= most):
                    good = 0
        else:
            kind, field, at = _head(content, at, total, stack[base + 1])
            stack[base + 1] = field
            if kind < 0:
                good = 0
            elif kind == 0:
                depth -= 1
                if (role == 5 and told == 0) or (role == 6 and (seen & 31) != 31):
                    good = 0
                if role == 5:
                    chunk += 1
                    counts[group - 1] = counts[group - 1] + 1
            else:
                child, good = _meaning(role, field, kind, group, listed, told)
                if child == 4:
                    listed = 1
                elif child == 6:
                    told = 1
                    seen = i64(0)
                    numbers[chunk * 7 + 4] = 0
                elif child == 7:
                    seen = seen | 2
                    numbers[chunk * 7 + 5] = at
        if good == 1 and kind > 0:
            into, bit, count, element = -1, 0, i64(0), i64(0)
            if role == 6 and within == 0:
                into, bit = _number(field)
            if kind < 9:
                value, at = _simple(content, at, total, kind, within)
                if into >= 0:
                    numbers[chunk * 7 + into] = value
                    seen = seen | bit
                if at < 0 or (into >= 0 and (kind < 4 or kind > 6)):
                    good = 0
            else:
                if kind != 12:
                    count, element, at = _list(content, at, total, kind)
                if into >= 0 or depth >= 31 or count < 0 or (child == 7 and element != 8):
                    good = 0
                else:
                    stack[depth * 3] = child
                    stack[depth * 3 + 1] = count
                    stack[depth * 3 + 2] = element
                    depth += 1
    state[0] = good
    state[1] = chunk
    state[2] = group


@routine
def _alike(content: Bytes, numbers: Longs, columns: Int, chunks: Int, state: Longs) -> None:
    good, chunk = 1, columns
    while good == 1 and chunk < chunks:
        at, end = numbers[chunk * 7 + 5], numbers[chunk * 7 + 6]
        first = numbers[(chunk % columns) * 7 + 5]
        if numbers[(chunk % columns) * 7 + 6] - first != end - at:
            good = 0
        while good == 1 and at < end:
            if content[at] != content[first]:
                good = 0
            at += 1
            first += 1
        chunk += 1
    state[0] = good


def walked(content: bytes, groups: int, columns: int) -> Array | None:
    """Return the numbers of all columns of all row groups, int64 [groups, columns, NUMBERS].

    * `content`: the footer.
    * `groups`, `columns`: how many there are, as pyarrow has found.

    Returns None for a footer of another form, and one whose groups have other columns than the
    first.
    """
    most = groups * columns
    if not are_on() or not most or most > len(content) // _LEAST:
        return None
    stack, numbers = np.empty(3 * _LEVELS, np.int64), np.empty(most * NUMBERS, np.int64)
    counts, state = np.zeros(groups, np.int64), np.empty(3, np.int64)
    _walk(content, len(content), stack, numbers, most, counts, groups, state)
    if not state[0] or state[2] != groups or (counts != columns).any():
        return None
    _alike(content, numbers, columns, most, state)
    return numbers.reshape(groups, columns, NUMBERS) if state[0] else None
