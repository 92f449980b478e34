"""Loops that crop every image of a block, each at a place of its own."""

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import Bytes, Const, Elements, Int, Longs, i64, within
from mycel.dataset.vision.kernels.pixel_store import put


@routine
def take(
    source: Bytes,
    count: Int,
    height: Int,
    width: Int,
    channels: Const,
    tops: Longs,
    lefts: Longs,
    mirrored: Bytes,
    turned: Bytes,
    rows: Int,
    columns: Int,
    fill: Bytes,
    table: Elements,
    form: Const,
    result: Elements,
) -> None:
    """Put a part of each image, which may reach beyond it, into a result.

    * `source`, `count`, `height`, `width`, `channels`: the images.
    * `tops`, `lefts`: where the part of each begins.
    * `mirrored`, `turned`: for each whether its columns and rows are in reverse order.
    * `rows`, `columns`: the size of the parts.
    * `fill`: what the channels are outside of an image.
    * `table`, `form`, `result`: as in `put`.
    """
    for n in range(count):
        top, left = tops[n], lefts[n]
        first = within(-left, 0, columns)
        last = within(width - left, first, columns)
        across, down = 1 - 2 * i64(mirrored[n]), 1 - 2 * i64(turned[n])
        x_start, y_start = (columns - 1) * i64(mirrored[n]), (rows - 1) * i64(turned[n])
        place = n * rows * columns * channels
        for y in range(rows):
            y_in = top + y
            y_out = y_start + y * down
            for c in range(channels):
                if y_in < 0 or y_in >= height:
                    for x in range(columns):
                        put(result, place, table, form, channels, rows, columns, y_out, x, c, fill[c])
                else:
                    for x in range(first):
                        put(
                            result, place, table, form, channels, rows, columns, y_out, x_start + x * across, c, fill[c]
                        )
                    for x in range(last, columns):
                        put(
                            result, place, table, form, channels, rows, columns, y_out, x_start + x * across, c, fill[c]
                        )
                    at = ((n * height + y_in) * width + left) * channels + c
                    for x in range(first, last):
                        x_out = x_start + x * across
                        value = source[at + x * channels]
                        put(result, place, table, form, channels, rows, columns, y_out, x_out, c, value)
