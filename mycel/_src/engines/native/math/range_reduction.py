"""Range reduction of large arguments of sin, cos and tan: x 2/pi mod 4 in integer arithmetic.

M. H. Payne and R. N. Hanek, Radian reduction for trigonometric functions, 1983. With x = m 2^E for
a whole number m, those bits of 2/pi which m 2^E makes multiples of 4 are left out; the 96 (float32)
or 192 (float64) bits from the one of weight 2 on are multiplied by m. The first two bits of the
product are the quadrant, the others the fraction, which is taken as signed, so that the multiple of
pi / 2 is the nearest one. No number of a format is nearer to a multiple than 2^-33 or 2^-62 of pi /
2, and the error of the product is below 2^-62 or 2^-125, so that the remainder is as accurate as
that of a small argument.
"""

from __future__ import annotations

from math import pi

from mycel._src.engines.native.math.expression_builder import (
    Value,
    bits,
    from_bits,
    narrow,
    number,
    two_product,
    two_sum,
    unsigned,
)

__all__ = ["TABLE", "remainder32", "remainder64"]

# 1184 bits of 2/pi behind the point.
_TWO_OVER_PI = (
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73e"
    "e88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b7"
    "4f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046"
)
# Zeros before them, so that no place is negative.
_BEFORE = 64
_NAME = "mycel.two_over_pi"
_WORDS = "0" * (_BEFORE // 4) + _TWO_OVER_PI
_ENTRIES = [int(_WORDS[k : k + 16], 16) for k in range(0, len(_WORDS) - 8, 8)]
# Every 64 bits that begin at a multiple of 32.
TABLE = f"@{_NAME} = private unnamed_addr constant [{len(_ENTRIES)} x i64] [{', '.join(f'i64 {n}' for n in _ENTRIES)}]"
HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_LOW = (1 << 32) - 1


def _words(exponent: Value, count: int) -> list[Value]:
    """Return `count` words of 32 bits of 2/pi, as int64.

    The first bit is the one whose product with 2^exponent has the weight 2.
    """
    place = exponent + (_BEFORE - 2)
    first, shift = place >> 5, place & 31
    builder = exponent.builder
    return [(builder.look_up(_NAME, first + k) << shift) >> 32 for k in range(count)]


def remainder32(a: Value) -> tuple[Value, Value]:
    """Return a - n pi / 2 in float64, and n mod 4 as int32, for a float32 from 2^20 on."""
    i = bits(a)
    m = unsigned((i & 0x7FFFFF) | 0x800000)
    first, second, third = _words(unsigned(i >> 23) - 150, 3)
    turn = ((m * first) << 32) + m * second + ((m * third) >> 32)
    return number(turn << 2) * (pi / 2 * 2.0**-64), narrow((turn + (1 << 61)) >> 62)


def _exact(word: Value) -> Value:
    """Return a word of 32 bits, held in an int64, as float64."""
    return from_bits(word | (0x433 << 52)) - 2.0**52


def remainder64(a: Value) -> tuple[Value, Value, Value]:
    """Return a - n pi / 2 as the sum of two doubles, and n mod 4 as int64.

    `a` is a double from 2^20 on.
    """
    i = bits(a)
    m = (i & ((1 << 52) - 1)) | (1 << 52)
    words = _words((i >> 52) - 1075, 6)
    low, high = [(m & _LOW) * w for w in words], [(m >> 32) * w for w in words]
    # The columns of the product from the right, of 32 bits each; what lies to the left of the first
    # is a multiple of 4.
    carry, columns = None, []
    for k in range(4, -1, -1):
        total = (low[k] & _LOW) + (low[k + 1] >> 32) + (high[k + 1] & _LOW)
        total = total + (high[k + 2] >> 32) if k < 4 else total
        total = total if carry is None else total + carry
        carry = total >> 32
        columns.append(total & _LOW)
    _, fourth, third, second, first = columns
    turn = (first << 32) | second
    fraction, rest = (turn << 2) | (third >> 30), ((third << 32) | fourth) << 2
    head, tail = two_sum(number(narrow(fraction >> 32)) * 2.0**32, _exact(fraction & _LOW))
    tail = tail + (_exact(rest >> 32) * 2.0**-32 + _exact(rest & _LOW) * 2.0**-64)
    head, tail = two_sum(head, tail)
    scale = 2.0**-64
    r, error = two_product(head, head * 0.0 + HALF_PI[0] * scale)
    error = error + (head * (HALF_PI[1] * scale) + tail * (HALF_PI[0] * scale))
    r, error = two_sum(r, error)
    return r, error, (turn + (1 << 61)) >> 62
