"""Logarithms and functions made of them: log, log2, log10, log1p, asinh, acosh, atanh and pow.

x = 2^e m with sqrt(1/2) <= m < sqrt(2) by integer arithmetic on the bit pattern, subnormals scaled
first; f = m - 1 is exact. float32 uses log(1 + f) = f + f^2 P(f); float64 uses s = f / (2 + f),
log(1 + f) = 2 s + s^3 R(s^2), arranged as f - (f^2 / 2 - s (f^2 / 2 + s^2 R)) so that the largest
term is exact. Bases 2 and 10 multiply by a logarithm of two parts.

pow in float64 needs log|x| to about 2^-65, so s, s^3 and the product with y are sums of two doubles
(T. J. Dekker, A floating-point technique for extending the available precision, 1971); in float32
the same steps in plain float64 are enough.
"""

from __future__ import annotations

from mycel._src.engines.native.math.exponential import LN2, LN2_HIGH, LN2_LOW, exp_reduced, reduce
from mycel._src.engines.native.math.expression_builder import (
    INF,
    NAN,
    Value,
    at_least,
    at_most,
    bits,
    copysign,
    fabs,
    fma,
    from_bits,
    high_half,
    horner,
    narrow,
    nearest,
    power_of_two,
    scale,
    select,
    sqrt,
    two_product,
    two_sum,
    widen,
    with_sign_of,
)

# (log(1 + f) - f) / f^2 for |f| within sqrt(2), float32: 2^-27 of log(1 + f).
LOG32 = (
    -0.49999988079071045,
    0.33333325386047363,
    -0.25001609325408936,
    0.20002005994319916,
    -0.1660841852426529,
    0.14180836081504822,
    -0.1324794888496399,
    0.12912887334823608,
    -0.07619239389896393,
)
# (2 atanh s - 2 s) / s^3 in s^2 for |s| <= 0.1719, float64: 2^-59 of the logarithm.
LOG64 = (
    0.6666666666666736,
    0.3999999999940208,
    0.2857142874550512,
    0.2222219822301204,
    0.18183584019463722,
    0.15313510208340833,
    0.14801705473258994,
)
# The same to 2^-37, for results that are rounded to float32.
LOG_SHORT = (0.6666666563198139, 0.40000338659506657, 0.28537065310792264, 0.23587154322238416)
# 2 atanh(s) / (s ln 2) in s^2 on the same interval, float64: 2^-37.
LOG2_SHORT = (2.885390081790567, 0.9617966729057985, 0.5770836649039836, 0.41166789800008086, 0.3408209338134657)
# 2^r for |r| <= 0.501, float64: 2^-29.
EXP2_SHORT = (
    1.0000000005629375,
    0.6931472060355884,
    0.2402264684510814,
    0.055503281229862,
    0.009618491819502686,
    0.001340019615492007,
    0.00015345586572020547,
)
# (2 atanh s - 2 s - 2 s^3 / 3) / s^5 in s^2 on the same interval: 2^-73 of the logarithm.
LOG_TAIL = (
    0.39999999999999974,
    0.28571428571445534,
    0.2222222221743301,
    0.18181818883092885,
    0.15384555994228422,
    0.13336351319849335,
    0.11674127299912525,
    0.11994792349094818,
)
TWO_THIRDS = (2.0 / 3.0, 3.700743415417188e-17)
# 1 / ln b in two parts, the first of half the precision, and log_b 2 likewise with 11 trailing
# zeros or more.
BASES = {
    2: {
        "f32": ((1.4423828125, 0.00031222839606925845), (1.0, 0.0)),
        "f64": ((float.fromhex("0x1.71547652p+0"), 1.6751713164886512e-10), (1.0, 0.0)),
    },
    10: {
        "f32": ((0.434326171875, -3.168997136526741e-05), (0.301025390625, 4.605039066518657e-06)),
        "f64": (
            (float.fromhex("0x1.bcb7b15p-2"), 1.414982685385801e-10),
            (float.fromhex("0x1.34413509f6p-2"), 3.694239077158931e-13),
        ),
    },
}


def split(x: Value) -> tuple[Value, Value]:
    """Return e, as a number, and f with x = 2^e (1 + f), for x > 0; any finite f for other x."""
    f = x.format
    subnormal = x < f.tiny
    scaled = select(subnormal, x * 2.0 ** (f.mantissa + 1), x)
    root = f.bits(0.5**0.5)
    i = bits(scaled) + (f.bits(1.0) - root)
    offset = 2.0**f.mantissa + f.bias
    e = from_bits((i >> f.mantissa) | f.bits(2.0**f.mantissa)) - select(
        subnormal, offset + f.mantissa + 1, offset, x.kind
    )
    return e, from_bits((i & ((1 << f.mantissa) - 1)) + root) - 1.0


def _special(x: Value, y: Value) -> Value:
    """Return `y` where x is positive and finite, else the value of the logarithm there."""
    y = select(x < INF, y, x)
    return select(x < 0.0, NAN, select(x.equals(0.0), -INF, y))


def _log64(e: Value, f: Value) -> Value:
    s = f / (f + 2.0)
    z = s * s
    square = f * f * 0.5
    tail = fma(s, fma(z, horner(z, LOG64), square), e * LN2_LOW["f64"])
    return fma(e, LN2_HIGH["f64"], f - (square - tail))


def _log32(e: Value, f: Value) -> Value:
    return fma(e, LN2_HIGH["f32"], fma(f * f, horner(f, LOG32), e * LN2_LOW["f32"]) + f)


def log_short(x: Value) -> Value:
    """Return log x in float64 to 2^-37, for positive normal x."""
    e, f = split(x)
    s = f / (f + 2.0)
    z = s * s
    return fma(e, LN2, fma(s * z, horner(z, LOG_SHORT), s + s))


def log_(x: Value) -> Value:
    """Return the natural logarithm."""
    e, f = split(x)
    return _special(x, _log32(e, f) if x.kind == "f32" else _log64(e, f))


def _log_base(x: Value, base: int) -> Value:
    (high, low), (unit_high, unit_low) = BASES[base][x.kind]
    e, f = split(x)
    if x.kind == "f32":
        head = high_half(f)
        small = fma(f, low, fma(f * f * horner(f, LOG32), high + low, (f - head) * high))
        small = fma(e, unit_low, small) if unit_low else small
        return _special(x, fma(e, unit_high, fma(head, high, small)))
    s = f / (f + 2.0)
    z = s * s
    square = f * f * 0.5
    head = high_half(f - square)
    tail = (f - head - square) + s * fma(z, horner(z, LOG64), square)
    small = fma(tail + head, low, tail * high)
    if unit_low:
        small = fma(e, unit_low, small)
    whole = e * unit_high
    total = fma(head, high, whole)
    return _special(x, total + (fma(head, high, whole - total) + small))


def log2(x: Value) -> Value:
    """Return the logarithm to base 2, exact for powers of two."""
    return _log_base(x, 2)


def log10(x: Value) -> Value:
    """Return the logarithm to base 10."""
    return _log_base(x, 10)


def log1p(x: Value) -> Value:
    """Return log(1 + x).

    With k the exponent of 1 + x, f = x 2^-k + (2^-k - 1) keeps the bits that 1 + x rounds away.
    """
    f = x.format
    large = x > 2.0**64
    scaled = select(large, x * 2.0**-64, x)
    i = bits(select(large, scaled, x + 1.0)) + (f.bits(1.0) - f.bits(0.5**0.5))
    exponent = (i >> f.mantissa) << f.mantissa
    k = from_bits((i >> f.mantissa) | f.bits(2.0**f.mantissa)) - (2.0**f.mantissa + f.bias)
    inverse = from_bits((2 * f.bias << f.mantissa) - exponent)
    rest = fma(scaled, inverse, select(large, 0.0, inverse) - 1.0)
    e = k + select(large, 64.0, 0.0, x.kind)
    y = select(x < INF, _log32(e, rest) if x.kind == "f32" else _log64(e, rest), x)
    return copysign(select(x > -1.0, y, select(x.equals(-1.0), -INF, x * NAN)), x)


def asinh(x: Value) -> Value:
    """Return log(|x| + sqrt(x^2 + 1)) with the sign of x.

    Where the cube is below half a unit in the last place, it is x itself.
    """
    a = fabs(x)
    if x.kind == "f32":
        d = widen(a)
        y = select(a < INF, select(a < 2.0**-12, a, narrow(log_short(d + sqrt(d * d + 1.0)))), a)
        return copysign(y, x)
    huge = a > 2.0**28
    bounded = at_most(a, 2.0**28)
    square = bounded * bounded
    y = log1p(select(huge, a - 1.0, bounded + square / (sqrt(square + 1.0) + 1.0)))
    return copysign(select(huge, y + LN2, y), x)


def acosh(x: Value) -> Value:
    """Return log(x + sqrt(x^2 - 1)); NaN below 1.

    It is computed from x - 1, which is exact near 1.
    """
    if x.kind == "f32":
        d = widen(x) - 1.0
        u = d + sqrt(d * (d + 2.0))
        # log1p(u) = log(1 + u) + correction for what 1 + u rounds away.
        whole = u + 1.0
        y = narrow(log_short(whole) + (u - (whole - 1.0)) / whole)
        return select(x < INF, select(x < 1.0, NAN, y), x)
    huge = x > 2.0**28
    d = at_most(x, 2.0**28) - 1.0
    y = log1p(select(huge, x - 1.0, d + sqrt(d * (d + 2.0))))
    return select(x < 1.0, NAN, select(huge, y + LN2, y))


def atanh(x: Value) -> Value:
    """Return log((1 + x) / (1 - x)) / 2; NaN beyond 1."""
    a = fabs(x)
    if x.kind == "f32":
        d = widen(a)
        y = narrow(log_short((d + 1.0) / (1.0 - d)) * 0.5)
        y = select(a < 2.0**-12, a, select(a < 1.0, y, select(a.equals(1.0), INF, a * NAN)))
    else:
        y = select(a < 2.0**-28, a, log1p((a + a) / (1.0 - a)) * 0.5)
    return copysign(y, x)


def _log_pair(x: Value) -> tuple[Value, Value]:
    """Return log x as the sum of two doubles, to about 2^-66."""
    e, f = split(x)
    divisor, divisor_low = two_sum(f * 0.0 + 2.0, f)
    s = f / divisor
    product, error = two_product(s, divisor)
    s_low = ((f - product) - error - s * divisor_low) / divisor
    z, z_low = two_product(s, s)
    z_low = fma(s * 2.0, s_low, z_low)
    q, q_low = two_sum(z * 0.0 + TWO_THIRDS[0], fma(z, horner(z, LOG_TAIL), TWO_THIRDS[1]))
    # s^3 Q in two parts; what the second lacks is below 2^-104 of the first.
    zq, zq_low = two_product(z, q)
    zq_low = zq_low + fma(z, q_low, z_low * q)
    szq, szq_low = two_product(s, zq)
    szq_low = szq_low + fma(s, zq_low, s_low * zq)
    head, head_low = two_sum(s * 2.0, szq)
    head_low = head_low + (s_low * 2.0 + szq_low)
    whole = e * LN2_HIGH["f64"]
    total = whole + head
    # Neither summand is always the larger one: Knuth's two-sum.
    back = total - whole
    low = (whole - (total - back)) + (head - back)
    low = low + fma(e, LN2_LOW["f64"], head_low)
    return two_sum(total, low)


def _power(a: Value, y: Value) -> Value:
    """Return a^y in float64 with an error of one unit in the last place.

    `a` is positive and finite, `y` finite and bounded.
    """
    high, low = _log_pair(a)
    product, error = two_product(y, high)
    error = fma(y, low, error)
    inside = at_least(at_most(product, 710.0), -746.0)
    n, shifted, _ = reduce(inside)
    r = fma(n, -LN2_HIGH["f64"], inside)
    r_low = fma(n, -LN2_LOW["f64"], select(product.equals(inside), error, 0.0))
    return scale(exp_reduced(r + r_low), n, shifted)


def _power_short(a: Value, y: Value) -> Value:
    """Return a^y with an error of 2^-28, computed in float64."""
    e, f = split(a)
    s = f / (f + 2.0)
    p = y * fma(s, horner(s * s, LOG2_SHORT), e)
    p = at_least(at_most(p, 200.0), -200.0)
    n, shifted = nearest(p)
    return horner(p - n, EXP2_SHORT) * power_of_two(shifted)


def power(x: Value, y: Value) -> Value:
    """Return x^y with the special cases of IEEE 754's pow (IEEE 754-2019, 9.2.1)."""
    a = fabs(x)
    if x.kind == "f32":
        result = narrow(_power_short(widen(a), widen(at_least(at_most(y, 2.0**40), -(2.0**40)))))
    else:
        result = _power(a, at_least(at_most(y, 2.0**70), -(2.0**70)))
    infinite = a.equals(INF)
    result = select(infinite | a.equals(0.0), select(infinite ^ (y < 0.0), INF, 0.0, x.kind), result)
    # Beyond 2^mantissa every number is an integer, beyond twice that an even one; adding it leaves
    # the parity in the last bit.
    f = x.format
    size = fabs(y)
    shifted = size + 2.0**f.mantissa
    integer = (size >= 2.0**f.mantissa) | (shifted - 2.0**f.mantissa).equals(size)
    parity = bits(select(size < 2.0**f.mantissa, shifted, size)) & 1
    odd = integer & parity.equals(1) & (size < 2.0 ** (f.mantissa + 1))
    result = select(odd, with_sign_of(result, x), result)
    undefined = (x < 0.0) & ~infinite & ~integer
    result = select(undefined | x.is_nan() | y.is_nan(), NAN, result)
    return select(x.equals(1.0) | y.equals(0.0), 1.0, result)


def reciprocal_sqrt(x: Value) -> Value:
    """Return 1 / sqrt(x): infinite at zero, NaN below."""
    return 1.0 / sqrt(x)


def two_norm(x: Value, y: Value) -> Value:
    """Return sqrt(x^2 + y^2) without intermediate overflow or underflow.

    It is infinite if either operand is.
    """
    if x.kind == "f32":
        u, v = widen(x), widen(y)
        root = narrow(sqrt(fma(u, u, v * v)))
    else:
        a, b = fabs(x), fabs(y)
        large, little = select(a < b, b, a), select(a < b, a, b)
        up, down = large < 2.0**-450, large > 2.0**500
        factor = select(up, 2.0**600, select(down, 2.0**-600, 1.0, x.kind))
        back = select(up, 2.0**-600, select(down, 2.0**600, 1.0, x.kind))
        large, little = large * factor, little * factor
        square, error = two_product(large, large)
        root = sqrt(square + fma(little, little, error)) * back
    infinite = fabs(x).equals(INF) | fabs(y).equals(INF)
    return select(infinite, INF, root)
