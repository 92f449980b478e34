"""Loops that pad an image: they copy it into a larger one and fill the border."""

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import Bytes, Const, Int, Longs, least, most

# What the other pixels are: a value, or pixels of the image, as `Border` says.
FILL, EDGE, REFLECT, SYMMETRIC = 0, 1, 2, 3


def _beyond(place: Int, count: Int, mode: Const) -> Int:
    """Return which place of an axis stands at a place before or after it."""
    if mode == EDGE or mode == FILL:
        found = most(least(place, count - 1), 0)
    else:
        period = most(2 * count - (2 if mode == REFLECT else 0), 1)
        inside = place % period
        found = inside if inside < count else period - (0 if mode == REFLECT else 1) - inside
    return found


def _filled(fill: Bytes, even: Const, each: Int, fixed: Const, first: Int, last: Int, result: Bytes, into: Int) -> None:
    if even:
        for j in range(first * each, last * each):
            result[into + j] = fill[0]
    else:
        for x in range(first, last):
            for i in range(each if fixed == 0 else fixed):
                result[into + x * each + i] = fill[i]


def _side(
    source: Bytes,
    row: Int,
    places: Longs,
    each: Int,
    fixed: Const,
    first: Int,
    last: Int,
    result: Bytes,
    into: Int,
) -> None:
    for x in range(first, last):
        at = row + places[x] * each
        for i in range(each if fixed == 0 else fixed):
            result[into + x * each + i] = source[at + i]


@routine
def pad(
    source: Bytes,
    height: Int,
    width: Int,
    each: Int,
    fixed: Const,
    left: Int,
    top: Int,
    right: Int,
    bottom: Int,
    mode: Const,
    fill: Bytes,
    even: Const,
    places: Longs,
    result: Bytes,
) -> None:
    """Put an image into a larger one.

    * `source`, `height`, `width`, `each`: the image, and how many bytes a pixel has; `fixed` is
      that, too, where it is small, else 0.
    * `left`, `top`, `right`, `bottom`: how many pixels there are at the sides.
    * `mode`, `fill`: what they are, one of the four above, and the bytes of a pixel for FILL, which
      are `even` where all are the same.
    * `places`, `result`: memory for a number for each column of the result, and the result.
    """
    if fixed != 0:
        each = fixed
    columns = left + width + right
    if mode != FILL:
        for x in range(left):
            places[x] = _beyond(x - left, width, mode)
        for x in range(left + width, columns):
            places[x] = _beyond(x - left, width, mode)
    for y in range(top + height + bottom):
        into = y * columns * each
        if mode == FILL and (y < top or y >= top + height):
            _filled(fill, even, each, fixed, 0, columns, result, into)
        else:
            row = _beyond(y - top, height, mode) * width * each
            if mode == FILL:
                _filled(fill, even, each, fixed, 0, left, result, into)
                _filled(fill, even, each, fixed, left + width, columns, result, into)
            else:
                _side(source, row, places, each, fixed, 0, left, result, into)
                _side(source, row, places, each, fixed, left + width, columns, result, into)
            for j in range(width * each):
                result[into + left * each + j] = source[row + j]
