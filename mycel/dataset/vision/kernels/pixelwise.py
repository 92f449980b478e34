"""Pointwise loops over pixels: of whole images, of regions to fill, and of regions to copy."""

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import Bytes, Const, Elements, Int, f32, f64, least, most, within
from mycel.dataset.vision.kernels.border_filling import _filled


@routine
def invert(source: Elements, count: Int, result: Elements) -> None:
    """Write 255 less each value, in its type, whose integers wrap.

    * `source`, `count`: the values, and how many there are.
    * `result`: the same number of values.
    """
    for i in range(count):
        result[i] = 255 - source[i]


@routine
def cut_bits(source: Bytes, count: Int, kept: Int, result: Bytes) -> None:
    """Write the bits of each byte that are also in `kept`.

    * `source`, `count`: the bytes, and how many there are.
    * `result`: as many bytes.
    """
    for i in range(count):
        result[i] = source[i] & kept


@routine
def convert(source: Elements, count: Int, element: Const, result: Elements) -> None:
    """Write each value as a float.

    * `source`, `count`: the values, and how many there are.
    * `element`, `result`: the type of the result, "float32" or "float64", and the result.
    """
    for i in range(count):
        if element == "float32":
            result[i] = f32(source[i])
        else:
            result[i] = f64(source[i])


@routine
def window(
    source: Bytes,
    height: Int,
    width: Int,
    each: Const,
    top: Int,
    left: Int,
    above: Int,
    before: Int,
    rows: Int,
    columns: Int,
    fill: Bytes,
    even: Const,
    result: Bytes,
) -> None:
    """Write a part of an image, which may reach beyond it.

    * `source`, `height`, `width`, `each`: the image, and how many bytes a pixel has.
    * `top`, `left`, `above`, `before`: where the part begins, counted from so many rows above and
      columns before the image.
    * `rows`, `columns`: the size of the part.
    * `fill`, `even`: the bytes of pixels outside of the image, and whether all are the same.
    * `result`: the part.
    """
    x = left - before
    first = within(-x, 0, columns)
    last = within(width - x, first, columns)
    for i in range(rows):
        y = i + top - above
        into = i * columns * each
        if y < 0 or y >= height:
            _filled(fill, even, each, each, 0, columns, result, into)
        else:
            _filled(fill, even, each, each, 0, first, result, into)
            _filled(fill, even, each, each, last, columns, result, into)
            at = (y * width + x) * each
            for j in range(first * each, last * each):
                result[into + j] = source[at + j]


@routine
def erase(
    result: Elements,
    planes: Int,
    height: Int,
    width: Int,
    each: Int,
    top: Int,
    left: Int,
    back: Int,
    rows: Int,
    columns: Int,
    values: Elements,
    by_plane: Int,
    by_value: Int,
) -> None:
    """Set a rectangle of an image, as much of it as lies within, to values.

    * `result`, `planes`, `height`, `width`, `each`: the image [planes, height, width, each].
    * `top`, `left`, `back`: where the rectangle begins, so many places before these.
    * `rows`, `columns`: its size.
    * `values`, `by_plane`, `by_value`: the values, and the steps between those of planes and of the
      values of a pixel.
    """
    first, last = most(left - back, 0) * each, least(left - back + columns, width) * each
    for p in range(planes):
        for y in range(most(top - back, 0), least(top - back + rows, height)):
            row = (p * height + y) * width * each
            if each == 1 or by_value == 0:
                for i in range(first, last):
                    result[row + i] = values[p * by_plane]
            else:
                for x in range(most(left - back, 0), least(left - back + columns, width)):
                    for i in range(each):
                        result[row + x * each + i] = values[p * by_plane + i * by_value]
