"""Compiled loops over the characters of texts."""

from __future__ import annotations

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import Int, Ints, Longs

__all__ = ["check_numerals", "cut", "whole_numbers"]


@routine
def cut(codes: Ints, starts: Longs, ends: Longs, count: Int, width: Int, result: Ints) -> None:
    """Write `count` parts of a text to `result`, each `width` characters long, with zeros behind.

    * `codes`: the code points of the text.
    * `starts`, `ends`: where the parts start, and where they end.
    """
    for t in range(count):
        first = starts[t]
        size = ends[t] - first
        for i in range(size):
            result[t * width + i] = codes[first + i]
        for i in range(size, width):
            result[t * width + i] = 0


@routine
def whole_numbers(codes: Ints, count: Int, width: Int, result: Longs, state: Longs) -> None:
    """Write the whole numbers that `count` texts of `width` `codes` stand for to `result`.

    `state` becomes other than 0 where a text is not a sign, if any, and 1 to 18 digits.
    """
    for t in range(count):
        at = t * width
        sign = codes[at] == 45
        first = 1 if sign | (codes[at] == 43) else 0
        number = 0
        digits = 0
        wrong = 0
        ended = 0
        for i in range(first, width):
            code = codes[at + i]
            if code == 0:
                ended = 1
            else:
                digit = (code >= 48) & (code <= 57) & (ended == 0) & (digits < 18)
                wrong = wrong if digit else 1
                number = number * 10 + (code - 48) if digit else number
                digits = digits + 1
        if (digits == 0) | (wrong == 1):
            state[0] = 1
        result[t] = -number if sign else number


@routine
def check_numerals(codes: Ints, count: Int, width: Int, state: Longs) -> None:
    """Make `state` other than 0 where one of `count` texts of `width` `codes` is no numeral.

    A numeral is a sign, if any, digits with a point among them or not, and maybe an e and a whole
    number.
    """
    for t in range(count):
        at = t * width
        # Where in a numeral the next character is: 0 its start, 1 before a point, 2 behind it, 3
        # behind an e, 4 behind its sign, 5 in its digits, 6 behind the end, 7 nowhere.
        place = 0
        digits = 0
        for i in range(width):
            code = codes[at + i]
            if (code >= 48) & (code <= 57):
                place = 1 if place <= 1 else (2 if place == 2 else (5 if place <= 5 else 7))
                digits = digits + (1 if place <= 2 else 0)
            else:
                if (code == 43) | (code == 45):
                    place = 1 if place == 0 else (4 if place == 3 else 7)
                else:
                    if code == 46:
                        place = 2 if place <= 1 else 7
                    else:
                        if (code == 101) | (code == 69):
                            place = 3 if ((place == 1) | (place == 2)) & (digits > 0) else 7
                        else:
                            place = 6 if (code == 0) & ((place <= 2) | (place >= 5)) & (place < 7) else 7
        if (digits == 0) | (place == 7) | (place == 3) | (place == 4):
            state[0] = 1
