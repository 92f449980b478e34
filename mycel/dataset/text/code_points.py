"""Text as arrays of code points, for texts that are long enough to be worth it.

A text is cut where the *kinds* of its characters change. Kinds are numbers of 8 bits, from tables
of all code points that are made of sets of characters. Tokens are copied into an array of text by a
routine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.foundation.bounded_caches import FEW, SOME, Remembered
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.text import text_kernels
from mycel.dataset.text.unicode_sets import LAST, Ranges

# Characters from which on arrays are faster than strings.
LONG = 24
WORD, BLANK, SINGLE = 0, 1, 2
_RANGE = r"\\U[0-9a-f]{8}(?:-\\U[0-9a-f]{8})?"
_SET = re.compile(rf"\[((?:{_RANGE})+)\](\+?)")

Sets = tuple[Ranges, ...]
_tables = Remembered[tuple[str, ...], Array]("kinds of characters", FEW)
_sets = Remembered[str, tuple[Ranges, bool] | tuple[()]]("sets of characters", SOME)


def codes_of(text: str) -> Array:
    """Return the code points of a text, int32."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.int32)


def text_of(codes: Array) -> str:
    """Return the text of code points."""
    return codes.tobytes().decode("utf-32-le", "surrogatepass")


def kinds_of(codes: Array, name: tuple[str, ...], sets: Callable[[], Sets]) -> Array:
    """Return the number of the set that each character is in, from 1 on, or 0.

    `name` names the sets, which are asked for where they are not known yet. Of several sets that
    have a character the last one counts.
    """
    return np.take(_tables.recall(name, lambda: _table(sets())), codes)


def _table(sets: Sets) -> Array:
    table = np.zeros(LAST + 1, np.uint8)
    for number, ranges in enumerate(sets, 1):
        for first, last in ranges:
            table[first : last + 1] = number
    return table


def set_of(pattern: re.Pattern[str]) -> tuple[Ranges, bool] | None:
    """Return the set of characters that a compiled pattern matches one of, or with True, some of.

    None where it is another pattern.
    """
    if pattern.flags != re.UNICODE:
        return None
    return _sets.recall(pattern.pattern, lambda: _set_of(pattern.pattern)) or None


def _set_of(pattern: str) -> tuple[Ranges, bool] | tuple[()]:
    found = _SET.fullmatch(pattern)
    if found is None:
        return ()
    ends = (part.split("-") for part in re.findall(_RANGE, found[1]))
    return tuple((int(part[0][2:], 16), int(part[-1][2:], 16)) for part in ends), bool(found[2])


def runs(kinds: Array, single: int = SINGLE) -> tuple[Array, Array]:
    """Return where runs of one kind start and end, in an array that is not empty.

    Those of the kind `single` are cut into characters.
    """
    first = np.empty(len(kinds), np.bool_)
    first[0] = True
    np.not_equal(kinds[1:], kinds[:-1], out=first[1:])
    first |= kinds == single
    starts = np.flatnonzero(first)
    ends = np.empty_like(starts)
    ends[:-1], ends[-1] = starts[1:], len(kinds)
    return starts, ends


def cut(codes: Array, starts: Array, ends: Array) -> Array:
    """Return the tokens between `starts` and `ends` as an array of text."""
    width = max(1, int((ends - starts).max()))
    result = np.empty((len(starts), width), np.int32)
    text_kernels.cut(codes, starts, ends, len(starts), width, result)
    return result.view(f"<U{width}")[:, 0]


def bytes_before(codes: Array) -> Array:
    """Return how many bytes of UTF-8 come before each character, and all of them, uint32."""
    before = np.zeros(len(codes) + 1, np.uint32)
    sizes = 1 + (codes >= 0x80).view(np.uint8)
    sizes += codes >= 0x800
    sizes += codes >= 0x10000
    np.cumsum(sizes, out=before[1:])
    return before


def whole_numbers(array: Array) -> Array | None:
    """Return the numbers, int64, of an array of text that has but signs and up to 18 digits.

    None where a text is of another form.
    """
    codes, count, width = _plain(array)
    result = np.empty(count, np.int64)
    state = np.zeros(1, np.int64)
    text_kernels.whole_numbers(codes, count, width, result, state)
    return None if state[0] else result


def are_numerals(array: Array) -> bool:
    """Return whether all texts of an array are numerals of the form 12, -1.5 or 2e-3."""
    codes, count, width = _plain(array)
    state = np.zeros(1, np.int64)
    text_kernels.check_numerals(codes, count, width, state)
    return not state[0]


def _plain(array: Array) -> tuple[Array, int, int]:
    given: Any = np.ascontiguousarray(array)
    if given.dtype.byteorder == ">":
        given = given.astype(given.dtype.newbyteorder("<"))
    width = given.dtype.itemsize // 4
    return given.reshape(-1).view(np.int32), given.size, width
