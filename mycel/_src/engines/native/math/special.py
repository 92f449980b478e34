"""Special functions: erf, erfc, erfinv, lgamma and digamma.

erf is an odd polynomial for |x| < 1; beyond, 1 - erfc(x). erfc(a) = e^(-a^2) C(q) / (1 + 2 a) with
q = (a - k) / (a + k), which maps [0, inf) to a bounded interval where C is smooth (M. M. Shepherd
and J. G. Laframboise, Chebyshev approximation of (1 + 2x) exp(x^2) erfc x, 1981); a^2 is taken to
twice the precision in float64. erfinv is a polynomial in w = -log(1 - x^2) or its root (M. Giles,
Approximating the erfinv function, 2010), in float64 followed by one step of Halley's method on erf
or erfc.

lgamma and digamma use Stirling's series at z >= 8 after z -> z + 8 by a product, and reflection
below 1/2; one formula for all lanes: with S Stirling's series and L = log(z (z + 1) ... (z + 7)),
lgamma(x) = S - L, or L + log(pi / |sin pi x|) - S when reflected. float32 arguments are computed in
float64, except erf.
"""

from __future__ import annotations

from math import log, pi

from mycel._src.engines.native.math.exponential import exp, exp_reduced, exp_short, reduce
from mycel._src.engines.native.math.expression_builder import (
    INF,
    NAN,
    Value,
    at_least,
    at_most,
    copysign,
    fabs,
    fma,
    horner,
    narrow,
    nearest,
    scale,
    select,
    sqrt,
    two_product,
    widen,
)
from mycel._src.engines.native.math.logarithm import log_, log_short
from mycel._src.engines.native.math.trigonometric import COS, SIN

# erf(x) / x - 1 in x^2 for |x| <= 1: 2^-29 (float32), 2^-62 (float64) of erf x.
ERF = {
    "f32": (
        0.12837916612625122,
        -0.3761262595653534,
        0.11283578723669052,
        -0.026853347197175026,
        0.005187162198126316,
        -0.0007997853099368513,
        7.806903886375949e-05,
    ),
    "f64": (
        0.1283791670955126,
        -0.3761263890318375,
        0.11283791670954851,
        -0.02686617064507204,
        0.005223977624774135,
        -0.0008548326978413812,
        0.00012055331026416056,
        -1.4925593281635117e-05,
        1.6460969535285323e-06,
        -1.634999324809288e-07,
        1.4657680343396625e-08,
        -1.1364945291607276e-09,
        5.944115461436861e-11,
    ),
}
# erfc(2.375 + t) for arguments in [1, 3.94], float32: 2^-25 absolute. Beyond the end, where it is
# 2^-27, erf is 1.
ERFC_TAIL_CENTRE, ERFC_TAIL_END = 2.375, 3.90625
ERFC_TAIL = (
    0.0007829104433767498,
    -0.004006592556834221,
    0.009516683407127857,
    -0.013728855177760124,
    0.013123167678713799,
    -0.008363849483430386,
    0.0031436728313565254,
    -0.00011415522749302909,
    -0.000636283599305898,
    0.00033411578624509275,
    -2.3364082153420895e-05,
    -3.469756484264508e-05,
    9.091671927308198e-06,
)
# (1 + 2 a) e^(a^2) erfc(a) in (a - 4) / (a + 4) for a in [0, 27.5], float64: 2^-56.
ERFC = (
    1.2329951186255526,
    -0.1396211168405629,
    0.015379652102620302,
    0.06809705425473664,
    -0.10103906603632629,
    0.09373283499682915,
    -0.0663303658120614,
    0.03716751556178818,
    -0.01619773405379846,
    0.0050319697631838675,
    -0.0007577733708594724,
    -0.00019925555092146962,
    0.00015062233887200885,
    -2.440301315022441e-05,
    -1.1224964129397007e-05,
    5.717543841327115e-06,
    3.0151041623259274e-07,
    -8.347137146457567e-07,
    6.268730598332319e-08,
    1.150339039584835e-07,
    -7.78936241453601e-09,
    -1.3580097319399602e-08,
    -1.7823930244874973e-09,
)
# The same in (a - 2) / (a + 2) for a in [0, 10.3]: 2^-30.
ERFC_SHORT = (
    1.2769783826919334,
    -0.09276382038492177,
    -0.16603052250648262,
    0.16405103138647179,
    -0.0542178219932027,
    -0.008030797062197193,
    0.008709117996331091,
    0.0012524917265236768,
    -0.0014209948779265321,
    -0.0004005897713903916,
    0.0001696925548839726,
    7.953892262741905e-05,
)
# erfinv(x) / x in w - 2.5 for w in [0, 5]: 2^-28.
ERFINV_CENTRE = (
    1.5014093534950494,
    0.24664028758237808,
    -0.004177339290045005,
    -0.0012527445828957556,
    0.0002182824969929805,
    -4.961939604912688e-06,
    -3.4345545764744906e-06,
    4.658952870229656e-07,
    1.8027048987192044e-08,
    -8.772901782166031e-09,
    3.3617970920092577e-10,
)
# erfinv(x) / x in sqrt(w) - 3 for sqrt(w) in [2.23, 4.05]: 2^-29; and in [2.23, 6.1]: 2^-20, where
# Halley's step follows.
ERFINV_TAIL = {
    "f32": (
        2.8329768009034,
        1.0016752339092054,
        0.009445340329604071,
        -0.007642674186039209,
        0.005687305814784485,
        -0.0035677370953575574,
        0.0014766062394115475,
        -0.00011848321162189466,
        -0.00027995362918659003,
        0.00015935049672651671,
        -2.7997682012447897e-05,
    ),
    "f64": (
        2.8329763053141894,
        1.0016895681458378,
        0.009459271523505909,
        -0.0077723113128232765,
        0.005699962243298978,
        -0.0032507868179714873,
        0.0012223886103878798,
        -0.0002718325904703717,
        3.0948633486810015e-05,
        -1.2625082449510772e-06,
    ),
}
# B_2k / (2k (2k - 1)) and B_2k / (2k), with Bernoulli's numbers: the series of lgamma and digamma
# in 1 / z^2.
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
SHIFT = 8
PI_LOW = 1.2246467991473532e-16


def _erf_near(x: Value) -> Value:
    z = x * x
    return fma(x, horner(z, ERF[x.kind]), x)


def erf(x: Value) -> Value:
    """Return the error function."""
    a = fabs(x)
    if x.kind == "f32":
        t = at_most(a, ERFC_TAIL_END) - ERFC_TAIL_CENTRE
        far = 1.0 - horner(t, ERFC_TAIL)
    else:
        far = 1.0 - _erfc_positive(a)
    return copysign(select(a < 1.0, _erf_near(a), far), x)


def _erfc_positive(a: Value) -> Value:
    """Return erfc for a >= 0 in float64.

    With a^2 = high + low, the factor e^(-high) comes last, so that small results keep their bits.
    """
    a = at_most(a, 27.5)
    high, low = two_product(a, a)
    n, shifted, r = reduce(-high)
    p = horner((a - 4.0) / (a + 4.0), ERFC) / fma(a, 2.0, 1.0)
    p = p * exp_reduced(r)
    return scale(fma(p, -low, p), n, shifted)


def erfc(x: Value) -> Value:
    """Return 1 - erf(x), accurate also where the result is small."""
    if x.kind == "f32":
        w = widen(x)
        a = at_most(fabs(w), 10.3)
        y = exp_short(-(a * a)) * horner((a - 2.0) / (a + 2.0), ERFC_SHORT) / fma(a, 2.0, 1.0)
        return narrow(select(w < 0.0, 2.0 - y, y))
    a = fabs(x)
    y = _erfc_positive(a)
    near = select(a < 0.25, (0.5 - _erf_near(x)) + 0.5, y)
    return select(x < 0.0, 2.0 - y, near)


def erfinv(x: Value) -> Value:
    """Return the inverse of erf: infinite at -1 and 1, NaN beyond."""
    a = fabs(x) if x.kind == "f64" else widen(fabs(x))
    product = (1.0 - a) * (a + 1.0)
    w = -log_short(product)
    root = sqrt(at_least(w, 1.0)) - 3.0
    y = a * select(w < 5.0, horner(w - 2.5, ERFINV_CENTRE), horner(root, ERFINV_TAIL[x.kind]))
    if x.kind == "f64":
        error = select(y < 0.5, _erf_near(y) - a, (1.0 - a) - _erfc_positive(y))
        step = error * exp(y * y) * (0.5 * pi**0.5)
        y = y - step / fma(y, step, 1.0)
    else:
        y = narrow(y)
    size = fabs(x)
    return copysign(select(size < 1.0, y, select(size.equals(1.0), INF, size * NAN)), x)


def _sin_cos_pi(x: Value) -> tuple[Value, Value]:
    """Return sin and cos of pi r, where r = x - n for the integer n nearest to x, |x| < 2^51.

    The signs are those for r, not for x.
    """
    n, _ = nearest(x)
    r = x - n
    a = fabs(r)
    folded = a > 0.25
    t = select(folded, 0.5 - a, a)
    angle = t * pi
    z = angle * angle
    s = fma(angle * z, horner(z, SIN["f64"]), fma(t, PI_LOW, angle))
    c = fma(z * z, horner(z, COS["f64"]), fma(z, -0.5, 1.0))
    return copysign(select(folded, c, s), r), select(folded, s, c)


def _reflected(x: Value) -> tuple[Value, Value]:
    """Return whether x < 1/2, and the larger of x and 1 - x."""
    below = x < 0.5
    return below, select(below, 1.0 - x, x)


def _lgamma(x: Value) -> Value:
    below, z = _reflected(x)
    product = z
    for i in range(1, SHIFT):
        product = product * (z + float(i))
    small = z < float(SHIFT)
    top = select(small, z + float(SHIFT), z)
    inverse = 1.0 / top
    series = inverse * horner(inverse * inverse, STIRLING)
    stirling = fma(top - 0.5, log_(top) - 1.0, series + (0.5 * log(2 * pi) - 0.5))
    sine, _ = _sin_cos_pi(x)
    tiny = fabs(x) < 2.0**-60
    ratio = select(small, product, 1.0) * select(below, pi / fabs(sine), 1.0)
    logarithm = log_(select(tiny, fabs(x), ratio))
    y = select(below, logarithm - stirling, stirling - logarithm)
    y = select(x.equals(1.0) | x.equals(2.0), 0.0, select(tiny, -logarithm, y))
    # Every double from -2^51 down is a half-integer or an integer, where nearest() no longer holds.
    pole = (x <= 0.0) & ((x <= -(2.0**51)) | nearest(x)[0].equals(x))
    return select(pole | fabs(x).equals(INF), INF, y)


def lgamma(x: Value) -> Value:
    """Return log|gamma(x)|: 0 at 1 and 2, infinite at infinities and integers up to 0."""
    return _lgamma(x) if x.kind == "f64" else narrow(_lgamma(widen(x)))


def _digamma(x: Value) -> Value:
    below, z = _reflected(x)
    # sum of 1 / (z + i) as numerator / denominator, the numerator being the derivative of the
    # denominator.
    denominator, numerator = z, z * 0.0 + 1.0
    for i in range(1, SHIFT):
        term = z + float(i)
        numerator = fma(numerator, term, denominator)
        denominator = denominator * term
    small = z < float(SHIFT)
    top = select(small, z + float(SHIFT), z)
    inverse = 1.0 / top
    square = inverse * inverse
    series = log_(top) - fma(inverse, 0.5, square * horner(square, DIGAMMA))
    y = series - select(small, numerator / denominator, 0.0)
    sine, cosine = _sin_cos_pi(x)
    y = select(below, y - pi * cosine / sine, y)
    pole = (x < 0.0) & ((x <= -(2.0**51)) | nearest(x)[0].equals(x))
    y = select(pole, NAN, select(x.equals(INF), INF, y))
    return select(x.equals(0.0), copysign(INF, -x), y)


def digamma(x: Value) -> Value:
    """Return the derivative of lgamma.

    It is NaN at the negative integers and -inf, -inf at 0 and +inf at -0.
    """
    return _digamma(x) if x.kind == "f64" else narrow(_digamma(widen(x)))
