"""Storing a computed pixel in the result, as it is or through a lookup table.

A result has its channels pixel by pixel or as planes, so there are four forms. The form is known
when a loop is compiled.
"""

from typing import Any

from mycel._src.engines.routines.routine_language import Const, Elements, Int

# As they are, or from a table; pixel by pixel, or channel by channel.
PIXELS, PLANES, FOUND_PIXELS, FOUND_PLANES = 0, 1, 2, 3


def put(
    result: Elements,
    place: Int,
    table: Elements,
    form: Const,
    channels: Const,
    height: Int,
    width: Int,
    y: Int,
    x: Int,
    c: Const,
    value: Any,
) -> None:
    """Put a value where a result has a pixel's channel.

    * `result`, `place`: the result, and where it begins.
    * `table`: 256 values for each channel, for the forms that look up.
    * `form`: one of the four above.
    * `channels`, `height`, `width`: the size of the result.
    * `y`, `x`, `c`: the row, column and channel.
    * `value`: what is put, or looked up.
    """
    if form == PIXELS:
        result[place + (y * width + x) * channels + c] = value
    elif form == PLANES:
        result[place + (c * height + y) * width + x] = value
    elif form == FOUND_PIXELS:
        result[place + (y * width + x) * channels + c] = table[c * 256 + value]
    else:
        result[place + (c * height + y) * width + x] = table[c * 256 + value]
