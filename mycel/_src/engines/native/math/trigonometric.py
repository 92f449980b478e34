"""Circular functions and their inverses: sin, cos, tan, asin, acos, atan and atan2.

sin, cos and tan subtract n pi / 2 with pi / 2 in parts so short that each product with n is exact
(W. J. Cody and W. Waite, Software manual for the elementary functions, 1980), then choose by the
quadrant n mod 4 between polynomials on |r| <= pi / 4. float32 reduces in float64 with two parts;
float64 uses four, of which the first three have exact products and the first two exact differences,
and keeps the rounding error of r, so that n pi / 2 is accurate to 2^-119. Arguments beyond `LARGE`
have separate definitions, which reduce with as many bits of 2/pi as necessary (`range_reduction`).

atan2 divides once: of the smaller and the larger magnitude, or of difference and sum when the
quotient exceeds tan(pi / 8), so the polynomial sees |t| <= tan(pi / 8); the multiple of pi / 4 to
be added has two parts.
"""

from __future__ import annotations

from math import pi

from mycel._src.engines.native.math.expression_builder import (
    INF,
    NAN,
    Value,
    bits,
    copysign,
    fabs,
    fma,
    from_bits,
    horner,
    narrow,
    nearest,
    select,
    sqrt,
    widen,
    with_sign_of,
)
from mycel._src.engines.native.math.range_reduction import remainder32, remainder64

# pi / 2 in parts: 33 bits and the rest; and 33, 20, 33 bits and the rest, the first two of which
# end at 2^-32 and 2^-52.
HALF_PI_2 = (1.5707963267341256, 6.077100506506192e-11)
HALF_PI_4 = (1.5707963267341256, 6.077094383272197e-11, 6.12323399409214e-17, 1.6446256936324258e-26)
# (sin r - r) / r^3 in r^2 for |r| <= 0.787: 2^-27 (float32), 2^-57 (float64) of sin r.
SIN = {
    "f32": (-0.16666653752326965, 0.008332106284797192, -0.00019507882825564593),
    "f64": (
        -0.1666666666666663,
        0.0083333333333219,
        -0.00019841269829406759,
        2.7557313555519534e-06,
        -2.505073708881052e-08,
        1.5895591832639458e-10,
    ),
}
# (cos r - 1 + r^2 / 2) / r^4 in r^2 on the same interval: 2^-33 (float32), 2^-63 (float64) of cos
# r.
COS = {
    "f32": (0.04166664555668831, -0.0013887308305129409, 2.4432101781712845e-05),
    "f64": (
        0.04166666666666659,
        -0.0013888888888872733,
        2.4801587288644357e-05,
        -2.7557314117887735e-07,
        2.087569229990156e-09,
        -1.1358084612670954e-11,
    ),
}
# The same two, 2^-37 and 2^-42, in float64 for results that are rounded to float32.
SIN_SHORT = (-0.16666666640379585, 0.008333329256069309, -0.00019839296511889556, 2.7179709253789506e-06)
COS_SHORT = (0.041666666618745705, -0.0013888883436003405, 2.479944326016286e-05, -2.7204358360893836e-07)
# (asin x - x) / x^3 in x^2 for |x| <= 0.5: 2^-27 (float32), 2^-55 (float64) of asin x.
ASIN = {
    "f32": (0.16666752099990845, 0.074953094124794, 0.04546914994716644, 0.024184778332710266, 0.042158305644989014),
    "f64": (
        0.16666666666665408,
        0.07500000000336969,
        0.044642856828359674,
        0.030381959135831558,
        0.0223717580750245,
        0.017359704423228848,
        0.013885238583107395,
        0.01216919247110663,
        0.006528053439820093,
        0.0195280625277722,
        -0.016223950190843023,
        0.03191207163935117,
    ),
}
# (atan t - t) / t^3 in t^2 for |t| <= 0.4151: 2^-30 (float32), 2^-59 (float64) of atan t.
ATAN = {
    "f32": (-0.3333331346511841, 0.19998358190059662, -0.1424126923084259, 0.10576282441616058, -0.06032029911875725),
    "f64": (
        -0.3333333333333319,
        0.19999999999951606,
        -0.1428571427999363,
        0.11111110773169172,
        -0.09090897457883011,
        0.07692054813092233,
        -0.06663041879481896,
        0.05847431410031228,
        -0.05037216963848536,
        0.03801090866945416,
        -0.01784780671450861,
    ),
}
# pi / 2 and, for sums, pi / 4 in two parts, the first with three trailing zeros or more.
HALF_PI = {"f32": (1.5707963705062866, -4.371138828673793e-08), "f64": (1.5707963267948966, 6.123233995736766e-17)}
QUARTER_PI = {"f32": (0.7853975296020508, 6.337954232549237e-07), "f64": (0.7853981633974474, 9.18794589678809e-16)}
TAN_EIGHTH_PI = 2.0**0.5 - 1.0
# Arguments beyond have definitions of their own.
LARGE = 2.0**20


def _remainder32(x: Value, large: bool) -> tuple[Value, Value]:
    """Return |x| - n pi / 2 in float64 for a float32, and the integer whose low bits are n."""
    if large:
        r, quadrant = remainder32(_at_least_large(x))
        return r, quadrant
    a = widen(fabs(x))
    n, shifted = nearest(a, 2.0 / pi)
    r = a
    for part in HALF_PI_2:
        r = fma(n, -part, r)
    return r, narrow(bits(shifted))


def _remainder64(x: Value, large: bool) -> tuple[Value, Value, Value]:
    """Return |x| - n pi / 2 as the sum of two doubles, and the integer whose low bits are n."""
    if large:
        return remainder64(_at_least_large(x))
    a = fabs(x)
    n, shifted = nearest(a, 2.0 / pi)
    first, second, third, fourth = HALF_PI_4
    exact = fma(n, -second, fma(n, -first, a))
    term = n * third
    r = exact - term
    low = (exact - r) - term - n * fourth
    head = r + low
    return head, (r - head) + low, bits(shifted)


def _at_least_large(x: Value) -> Value:
    """Return |x|, or `LARGE` where that is less or NaN.

    Indices into tables made of it are in range.
    """
    a = fabs(x)
    return select(a > LARGE, a, LARGE)


def _sin_poly(r: Value, z: Value, coefficients: tuple[float, ...], low: Value | None = None) -> Value:
    p = horner(z, coefficients)
    return fma(r * z, p, r) if low is None else fma(r * z, p, low) + r


def _cos_poly(r: Value, z: Value, coefficients: tuple[float, ...], low: Value | None = None) -> Value:
    rest = z * z * horner(z, coefficients)
    if low is None:
        return fma(z, -0.5, 1.0) + rest
    half = z * 0.5
    head = 1.0 - half
    return head + (((1.0 - head) - half) + (rest - r * low))


def _quadrant(x: Value, turn: int, large: bool) -> Value:
    """Return sin(|x| + turn pi / 2)."""
    if x.kind == "f32":
        wide, n = _remainder32(x, large)
        r = narrow(wide)
        z = r * r
        s, c = _sin_poly(r, z, SIN["f32"]), _cos_poly(r, z, COS["f32"])
    else:
        r, low, n = _remainder64(x, large)
        z = r * r
        s, c = _sin_poly(r, z, SIN["f64"], low), _cos_poly(r, z, COS["f64"], low)
    if turn:
        n = n + turn
    y = select((n & 1).equals(0), s, c)
    return from_bits(bits(y) ^ ((n & 2) << (x.format.width - 2)))


def sin(x: Value, large: bool = False) -> Value:
    """Return the sine."""
    return with_sign_of(_quadrant(x, 0, large), x)


def cos(x: Value, large: bool = False) -> Value:
    """Return the cosine."""
    return _quadrant(x, 1, large)


def tan(x: Value, large: bool = False) -> Value:
    """Return sin / cos, or -cos / sin in odd quadrants, from one reduction."""
    if x.kind == "f32":
        r, n = _remainder32(x, large)
        z = r * r
        s, c = _sin_poly(r, z, SIN_SHORT), _cos_poly(r, z, COS_SHORT)
    else:
        r, low, n = _remainder64(x, large)
        z = r * r
        s, c = _sin_poly(r, z, SIN["f64"], low), _cos_poly(r, z, COS["f64"], low)
    even = (n & 1).equals(0)
    y = select(even, s, -c) / select(even, c, s)
    return with_sign_of(narrow(y) if x.kind == "f32" else y, x)


def _asin_half(a: Value) -> tuple[Value, Value, Value]:
    """Return t, asin(t) - t, and whether a <= 1/2.

    There t is a; beyond, it is sqrt((1 - a) / 2).
    """
    inner = a < 0.5
    z = select(inner, a * a, fma(a, -0.5, 0.5))
    t = select(inner, a, sqrt(z))
    return t, t * z * horner(z, ASIN[a.kind]), inner


def asin(x: Value) -> Value:
    """Return the arc sine; beyond one half it is pi / 2 - 2 asin(sqrt((1 - |x|) / 2))."""
    t, tail, inner = _asin_half(fabs(x))
    high, low = HALF_PI[x.kind]
    return copysign(select(inner, t + tail, high - ((t + t) - (low - (tail + tail)))), x)


def acos(x: Value) -> Value:
    """Return the arc cosine; beyond one half it is twice the arc sine of a half angle."""
    t, tail, inner = _asin_half(fabs(x))
    high, low = HALF_PI[x.kind]
    signed = copysign(t, x)
    middle = high - (signed - (low - copysign(tail, x)))
    twice = (t + tail) * 2.0
    outer = select(x < 0.0, 2.0 * high - ((t + t) - (2.0 * low - (tail + tail))), twice)
    return select(inner, middle, outer)


def _arc(y: Value, x: Value, negative: Value | None) -> Value:
    """Return the angle in [0, pi] of the point with magnitudes |x| and |y|.

    It is mirrored where `negative` holds.
    """
    f = y.format
    steep = x < y
    large, little = select(steep, y, x), select(steep, x, y)
    # Both infinite: 45 degrees; both zero: 0.
    infinite = large.equals(INF)
    little = select(infinite, select(little.equals(INF), 1.0, 0.0, y.kind), little)
    large = select(infinite | large.equals(0.0), 1.0, large)
    shrink = select(large > 2.0 ** (f.bias - 1), 0.25, 1.0, y.kind)
    large, little = large * shrink, little * shrink
    wide = little > large * TAN_EIGHTH_PI
    t = select(wide, little - large, little) / select(wide, little + large, large)
    z = t * t
    tail = t * z * horner(z, ATAN[y.kind])
    # The angle is quarters * pi / 4 + sign * atan t.
    quarters = select(wide, 1.0, 0.0, y.kind)
    quarters, sign = select(steep, 2.0 - quarters, quarters), select(steep, -1.0, 1.0, y.kind)
    if negative is not None:
        quarters, sign = select(negative, 4.0 - quarters, quarters), select(negative, -sign, sign)
    high, low = QUARTER_PI[y.kind]
    return fma(quarters, high, fma(sign, tail, quarters * low) + sign * t)


def atan(x: Value) -> Value:
    """Return the arc tangent."""
    a = fabs(x)
    steep = a > 1.0
    wide = select(steep, a * TAN_EIGHTH_PI < 1.0, a > TAN_EIGHTH_PI)
    t = select(wide, a - 1.0, select(steep, -1.0, a)) / select(wide, a + 1.0, select(steep, a, 1.0))
    z = t * t
    tail = t * z * horner(z, ATAN[x.kind])
    high, low = HALF_PI[x.kind]
    half_turns = select(wide, 0.5, select(steep, 1.0, 0.0, x.kind))
    return copysign(fma(half_turns, high, fma(half_turns, low, tail) + t), x)


def atan2(y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y) in [-pi, pi].

    Signed zeros and infinities are treated as in Annex F of C.
    """
    negative = copysign(1.0, x) < 0.0
    angle = copysign(_arc(fabs(y), fabs(x), negative), y)
    return select(x.is_nan() | y.is_nan(), NAN, angle)
