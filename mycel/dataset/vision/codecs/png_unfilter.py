"""Loops over the lines of PNG files."""

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import Bytes, Const, Int, Longs, i32


def _predicted(left: Int, above: Int, corner: Int) -> Int:
    """Return which of three neighbours is closest to left + above - corner (Paeth, 1991)."""
    over, down = abs(above - corner), abs(left - corner)
    both = abs(left + above - 2 * corner)
    return left if (over <= down) & (over <= both) else (above if down <= both else corner)


@routine
def unfilter(raw: Bytes, height: Int, size: Int, each: Const, result: Bytes, state: Longs) -> None:
    """Write lines of an image, each behind the number of its filter, to `result`.

    * `raw`, `height`, `size`: the lines, how many, and how many bytes each has without the number.
    * `each`: how many bytes a pixel has.
    * `state`: becomes other than 0 where a filter is unknown.
    """
    for y in range(height):
        given = y * (size + 1) + 1
        to = y * size
        kind = raw[given - 1]
        if (kind == 0) | ((kind == 2) & (y == 0)):
            for i in range(size):
                result[to + i] = raw[given + i]
        else:
            if kind == 2:
                for i in range(size):
                    result[to + i] = i32(raw[given + i]) + i32(result[to - size + i])
            else:
                if (kind == 1) | ((kind == 4) & (y == 0)):
                    for i in range(each):
                        result[to + i] = raw[given + i]
                    for x in range(1, size // each):
                        for c in range(each):
                            i = x * each + c
                            result[to + i] = i32(raw[given + i]) + i32(result[to + i - each])
                else:
                    if kind == 3:
                        # Both sides of a choice are read.
                        up = to - size if y > 0 else to
                        for i in range(each):
                            above = i32(result[up + i]) if y > 0 else 0
                            result[to + i] = i32(raw[given + i]) + above // 2
                        for i in range(each, size):
                            above = i32(result[up + i]) if y > 0 else 0
                            result[to + i] = i32(raw[given + i]) + (i32(result[to + i - each]) + above) // 2
                    else:
                        if kind == 4:
                            for i in range(each):
                                result[to + i] = i32(raw[given + i]) + i32(result[to - size + i])
                            for x in range(1, size // each):
                                for c in range(each):
                                    i = x * each + c
                                    left = i32(result[to + i - each])
                                    above = i32(result[to - size + i])
                                    corner = i32(result[to - size + i - each])
                                    result[to + i] = i32(raw[given + i]) + _predicted(left, above, corner)
                        else:
                            state[0] = 1
