"""Exponential functions: exp, exp2, expm1, sigmoid, sinh, cosh and tanh.

With n the integer nearest to x / ln 2 and r = x - n ln 2 (ln 2 in two parts, the first short enough
that n times it is exact), e^x = 2^n e^r and e^r = 1 + r + r^2 P(r) for |r| <= ln 2 / 2. 2^n is
applied in two factors, so that results become subnormal or overflow only where they should. The
hyperbolic functions use e^|x| away from zero and an odd polynomial, or e^x - 1, near it. The
coefficients are minimax fits, rounded to the format one after the other; each states its largest
relative error in the result.
"""

from __future__ import annotations

from math import log

from mycel._src.engines.native.math.expression_builder import (
    Value,
    at_least,
    at_most,
    copysign,
    fabs,
    fma,
    horner,
    nearest,
    power_of_two,
    scale,
    select,
)

LN2 = log(2.0)
# ln 2 in two parts: n * LN2_HIGH is exact for |n| < 2^15 in float32, 2^21 in float64.
LN2_HIGH = {"f32": 0.693359375, "f64": float.fromhex("0x1.62e42feep-1")}
LN2_LOW = {"f32": -0.00021219444005469057, "f64": float.fromhex("0x1.a39ef35793c76p-33")}
# (e^r - 1 - r) / r^2 on |r| <= 0.3501: 2^-28 (float32), 2^-57 (float64) of e^r.
EXP = {
    "f32": (0.4999999403953552, 0.16666516661643982, 0.041668280959129333, 0.008369247429072857, 0.0013820728054270148),
    "f64": (
        0.5000000000000012,
        0.16666666666666383,
        0.04166666666651937,
        0.008333333333509309,
        0.0013888888946880056,
        0.0001984126948303891,
        2.480148938086535e-05,
        2.7557599623687996e-06,
        2.7631680419867844e-07,
        2.499831703194652e-08,
    ),
}
# The same on the same interval: 2^-31 (float32), 2^-61 (float64) of e^r - 1.
EXPM1 = {
    "f32": (
        0.5,
        0.1666666567325592,
        0.041666485369205475,
        0.008333542384207249,
        0.0013933222508057952,
        0.00019766206969507039,
    ),
    "f64": (
        0.5,
        0.16666666666666677,
        0.04166666666666649,
        0.008333333333320737,
        0.0013888888888968346,
        0.0001984126988868654,
        2.4801587164782475e-05,
        2.755724136596425e-06,
        2.755740591066992e-07,
        2.5110110939640972e-08,
        2.0875327001665112e-09,
    ),
}
# (2^r - 1) / r on |r| <= 0.501: 2^-28 (float32), 2^-58 (float64) of 2^r.
EXP2 = {
    "f32": (
        0.6931471824645996,
        0.24022647738456726,
        0.05550359562039375,
        0.009618505835533142,
        0.0013391023967415094,
        0.0001532679598312825,
    ),
    "f64": (
        0.6931471805599453,
        0.24022650695910133,
        0.05550410866482005,
        0.00961812910759357,
        0.001333355814678022,
        0.00015403530457876123,
        1.525273348934938e-05,
        1.321543487107475e-06,
        1.0178200497516851e-07,
        7.0738585109843205e-09,
        4.434725733799398e-10,
    ),
}
# (e^r - 1 - r) / r^2 on |r| <= 0.3501 in float64: 2^-28 of e^r, for results that are rounded to
# float32.
EXP_SHORT = (0.4999999305034065, 0.16666514791121373, 0.04166845687636058, 0.008369418868116107, 0.0013813139904850361)
# (sinh x - x) / x^3 in x^2 for |x| <= 1: 2^-31 (float32), 2^-63 (float64) of sinh x.
SINH = {
    "f32": (0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822131869470468e-06),
    "f64": (
        0.16666666666666669,
        0.008333333333333148,
        0.00019841269841431843,
        2.7557319157083143e-06,
        2.5052123134803276e-08,
        1.605725991784984e-10,
        7.758744460198084e-13,
    ),
}
# (tanh x - x) / x^3 in x^2 for |x| <= 0.626, float32: 2^-27 of tanh x.
TANH = (-0.3333328068256378, 0.13331405818462372, -0.05373651534318924, 0.02062816731631756, -0.005692296661436558)
# Beyond these arguments e^x overflows, is zero.
EXP_LIMITS = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}


def reduce(x: Value) -> tuple[Value, Value, Value]:
    """Return n, its shifted sum and r, with x = n ln 2 + r and |r| <= ln 2 / 2."""
    n, shifted = nearest(x, 1 / LN2)
    return n, shifted, fma(n, -LN2_LOW[x.kind], fma(n, -LN2_HIGH[x.kind], x))


def exp_reduced(r: Value) -> Value:
    """Return e^r for |r| <= ln 2 / 2."""
    return fma(r * r, horner(r, EXP[r.kind]), r) + 1.0


def exp_short(x: Value) -> Value:
    """Return e^x in float64 to 2^-28, for x from -700 to 700."""
    _, shifted, r = reduce(x)
    return (fma(r * r, horner(r, EXP_SHORT), r) + 1.0) * power_of_two(shifted)


def exp(x: Value) -> Value:
    """Return e^x."""
    low, high = EXP_LIMITS[x.kind]
    n, shifted, r = reduce(at_least(at_most(x, high), low))
    return scale(exp_reduced(r), n, shifted)


def exp2(x: Value) -> Value:
    """Return 2^x."""
    f = x.format
    x = at_least(at_most(x, f.bias + 1.5), -float(f.bias + f.mantissa + 1))
    n, shifted = nearest(x)
    return scale(fma(x - n, horner(x - n, EXP2[x.kind]), 1.0), n, shifted)


def _expm1_parts(x: Value) -> tuple[Value, Value]:
    """Return e^r - 1 and 2^(n-1).

    `x` must be above -50, and its exponential must overflow by a factor of two at most.
    """
    _, shifted, r = reduce(x)
    return fma(r * r, horner(r, EXPM1[x.kind]), r), power_of_two(shifted - 1.0)


def expm1(x: Value) -> Value:
    """Return e^x - 1.

    The scale is halved so that 2^n is finite for the largest results.
    """
    high = EXP_LIMITS[x.kind][1]
    p, half = _expm1_parts(at_least(at_most(x, high), -50.0))
    y = fma(half, p, half - 0.5) * 2.0
    return copysign(select(fabs(x) < x.format.tiny * 4, x, y), x)


def sigmoid(x: Value) -> Value:
    """Return 1 / (1 + e^-x).

    It is computed from e^-|x|, so that neither end overflows or cancels; the rounding error of 1 +
    e^-|x| is corrected.
    """
    e = exp(-fabs(x))
    divisor = e + 1.0
    y = select(x < 0.0, e, 1.0) / divisor
    # 1 - e / 2 is near enough to 1 / (1 + e) for so small a correction.
    return fma(y, (divisor - 1.0 - e) * fma(e, -0.5, 1.0), y)


def _half_exp(a: Value) -> Value:
    """Return e^a / 2 for a >= 0, finite wherever sinh and cosh are."""
    n, shifted, r = reduce(at_most(a, EXP_LIMITS[a.kind][1] + 1.0))
    return scale(exp_reduced(r), n - 1.0, shifted - 1.0)


def sinh(x: Value) -> Value:
    """Return (e^x - e^-x) / 2."""
    z = x * x
    half = _half_exp(fabs(x))
    return select(fabs(x) < 1.0, odd(x, z, SINH[x.kind]), copysign(half - 0.25 / half, x))


def cosh(x: Value) -> Value:
    """Return (e^x + e^-x) / 2."""
    half = _half_exp(fabs(x))
    return half + 0.25 / half


def odd(x: Value, z: Value, coefficients: tuple[float, ...]) -> Value:
    """Return x + x^3 P(z) with z = x^2, keeping the sign of zero."""
    return copysign(fma(x * z, horner(z, coefficients), x), x)


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent.

    Away from zero it is 1 - 2 / (e^2x + 1); near it, an odd polynomial (float32) or (e^2x - 1) /
    (e^2x + 1) (float64).
    """
    a = at_most(fabs(x), 10.0 if x.kind == "f32" else 20.0)
    if x.kind == "f64":
        p, half = _expm1_parts(a + a)
        e = fma(half, p, half - 0.5) * 2.0
        y = select(a < 0.5, e, 2.0)
        y = y / (e + 2.0)
        return copysign(select(a < 2.0**-28, a, select(a < 0.5, y, 1.0 - y)), x)
    _, shifted, r = reduce(a + a)
    e = exp_reduced(r) * power_of_two(shifted)
    near = fma(a * (a * a), horner(a * a, TANH), a)
    return copysign(select(a < 0.625, near, 1.0 - 2.0 / (e + 1.0)), x)
