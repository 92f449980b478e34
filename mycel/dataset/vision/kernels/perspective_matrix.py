"""The matrix of a perspective transform, found from four points.

It is solved for by elimination with the largest pivots of columns, and inverted by its minors, in
OpenCV's order: the bits are the same.
"""

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import Double, Doubles, Int, f32, f64, i64

# Pivots below this are none: 100 times the distance of 1 to the next float64.
SINGULAR = 2.0**-52 * 100


def _equations(work: Doubles, at: Int, x: Double, y: Double, u: Double, v: Double) -> None:
    """Write the two equations of a point (x, y) that goes to (u, v), with 9 numbers each."""
    for n in range(9):
        work[at + n] = 0.0
        work[at + 36 + n] = 0.0
    work[at] = x
    work[at + 1] = y
    work[at + 2] = 1.0
    work[at + 6] = f64(f32(-x) * f32(u))
    work[at + 7] = f64(f32(-y) * f32(u))
    work[at + 8] = u
    work[at + 39] = x
    work[at + 40] = y
    work[at + 41] = 1.0
    work[at + 42] = f64(f32(-x) * f32(v))
    work[at + 43] = f64(f32(-y) * f32(v))
    work[at + 44] = v


@routine
def inverse_of_points(
    x0: Double,
    y0: Double,
    x1: Double,
    y1: Double,
    x2: Double,
    y2: Double,
    x3: Double,
    y3: Double,
    u0: Double,
    v0: Double,
    u1: Double,
    v1: Double,
    u2: Double,
    v2: Double,
    u3: Double,
    v3: Double,
    work: Doubles,
    result: Doubles,
) -> None:
    """Find the inverse of the matrix [3, 3] that takes four points (x, y) to four others (u, v).

    * `x0`, `y0`, `x1`, `y1`, `x2`, `y2`, `x3`, `y3`: the points.
    * `u0`, `v0`, `u1`, `v1`, `u2`, `v2`, `u3`, `v3`: where they go.
    * `work`: memory for 72 numbers.
    * `result`: the inverse, and then 1, or 0 where three points lie on a line and there is none.
    """
    _equations(work, 0, x0, y0, u0, v0)
    _equations(work, 9, x1, y1, u1, v1)
    _equations(work, 18, x2, y2, u2, v2)
    _equations(work, 27, x3, y3, u3, v3)
    fine = f64(1)
    for i in range(8):
        k = i64(i)
        for j in range(i + 1, 8):
            if abs(work[9 * j + i]) > abs(work[9 * k + i]):
                k = j
        if abs(work[9 * k + i]) < SINGULAR:
            fine = f64(0)
        for n in range(i, 9):
            one = work[9 * i + n]
            work[9 * i + n] = work[9 * k + n]
            work[9 * k + n] = one
        turned = -1.0 / work[9 * i + i]
        for r in range(i + 1, 8):
            alpha = work[9 * r + i] * turned
            for m in range(i + 1, 9):
                work[9 * r + m] = work[9 * r + m] + alpha * work[9 * i + m]
    for p in range(7, -1, -1):
        total = work[9 * p + 8]
        for q in range(p + 1, 8):
            total = total - work[9 * p + q] * work[9 * q + 8]
        work[9 * p + 8] = total / work[9 * p + p]
    a, b, c, d, e, f = work[8], work[17], work[26], work[35], work[44], work[53]
    g, h = work[62], work[71]
    # The last element of the matrix is 1.
    whole = (a * (e - f * h) - b * (d - f * g)) + c * (d * h - e * g)
    scale = 1.0 / whole
    result[0] = (e - f * h) * scale
    result[1] = (c * h - b) * scale
    result[2] = (b * f - c * e) * scale
    result[3] = (f * g - d) * scale
    result[4] = (a - c * g) * scale
    result[5] = (c * d - a * f) * scale
    result[6] = (d * h - e * g) * scale
    result[7] = (b * g - a * h) * scale
    result[8] = (a * e - b * d) * scale
    result[9] = fine if whole != 0.0 else f64(0)
