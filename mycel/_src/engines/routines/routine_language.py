"""The routine language: parameter types and built-in functions that routines may use.

The types stand in annotations: `Int` and `Double` are numbers, the others arrays, in C order, of an
element type; `Elements` are arrays of any type that a routine has code for, and a `Const` is known
when code is made. The functions mean here what they mean in code, so that a routine may also be run
as Python, element by element, where NumPy checks every index.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

Int: TypeAlias = Any
Double: TypeAlias = Any
Const: TypeAlias = Any
Elements: TypeAlias = Any
Bytes: TypeAlias = Any
Shorts: TypeAlias = Any
Ints: TypeAlias = Any
Longs: TypeAlias = Any
Floats: TypeAlias = Any
Doubles: TypeAlias = Any


def i32(value: Any) -> Any:
    """Convert to int32: the lower bits of an integer, or a float rounded towards zero."""
    return np.int32(np.int64(value) & 0xFFFFFFFF) if isinstance(value, int) else np.int32(value)


def i64(value: Any) -> Any:
    """Convert to int64, rounding towards zero."""
    return np.int64(value)


def i16(value: Any) -> Any:
    """Convert to int16: the lower bits of an integer, or a float rounded towards zero."""
    return np.int16(np.int64(value) - ((np.int64(value) + 32768) & ~65535))


def f32(value: Any) -> Any:
    """Convert to float32."""
    return np.float32(value)


def f64(value: Any) -> Any:
    """Convert to float64."""
    return np.float64(value)


def rint(value: Any) -> Any:
    """Round a float to the nearest integer, halves to the even one, as a float."""
    return np.rint(value)


def floor(value: Any) -> Any:
    """Round a float down, as a float."""
    return np.floor(value)


def sqrt(value: Any) -> Any:
    """Return the square root of a float."""
    return type(value)(math.sqrt(value))


def fused(one: Any, other: Any, more: Any) -> Any:
    """Return one * other + more of float64, rounded once."""
    return np.float64(Fraction(float(one)) * Fraction(float(other)) + Fraction(float(more)))


def log(value: Any) -> Any:
    """Return the natural logarithm of a float, by the C library, as Python does."""
    return type(value)(math.log(value))


def cos(value: Any) -> Any:
    """Return the cosine of a float, by the C library, as Python does."""
    return type(value)(math.cos(value))


def least(one: Any, other: Any) -> Any:
    """Return the smaller one of two numbers of a type."""
    return one if one < other else other


def most(one: Any, other: Any) -> Any:
    """Return the larger one of two numbers of a type."""
    return one if one > other else other


def within(value: Any, low: Any, high: Any) -> Any:
    """Return a number limited to a range."""
    return least(most(value, low), high)


def soon(array: Any, place: Any) -> None:
    """Ask memory for an element that is read soon, if there is one at this place."""


def upper_half(one: Any, other: Any) -> Any:
    """Return the upper 16 bits of the product of two numbers of int16, as int16."""
    return np.int16(int(one) * int(other) >> 16)


def _signed(value: int) -> Any:
    return np.int64((value & (1 << 64) - 1) - ((value & 1 << 63) << 1))


def low_sum(one: Any, other: Any) -> Any:
    """Return the lower 64 bits of a sum of integers."""
    return _signed(int(one) + int(other))


def low_product(one: Any, other: Any) -> Any:
    """Return the lower 64 bits of a product of integers."""
    return _signed(int(one) * int(other))


def shifted_down(value: Any, bits: Any) -> Any:
    """Return the 64 bits of an integer shifted down, with zeros above."""
    return _signed((int(value) & (1 << 64) - 1) >> int(bits))


def taken(array: Any, place: Any, count: int, order: tuple[int, ...]) -> Any:
    """Read `count` elements from a place on, and return a vector of those numbered `order`.

    Its elements are int16 where an array has bytes, and int32 where it has uint16.
    """
    found = np.asarray(array[place : place + count])[list(order)]
    return found.astype(
        {"u1": np.int16, "i1": np.int16, "b1": np.int16, "u2": np.int32}.get(found.dtype.str[1:], found.dtype)
    )


def placed(array: Any, place: Any, vector: Any) -> None:
    """Write a vector from a place on, cut to the bits of the array's elements."""
    array[place : place + len(vector)] = vector.astype(array.dtype)


def neighbours(one: Any, other: Any) -> Any:
    """Multiply two vectors of int16; return sums of the products of neighbours, in int32."""
    products = one.astype(np.int32) * other
    return products[0::2] + products[1::2]


def looked_up_at_once() -> int:
    """Return how many bytes `looked_up` takes, or 0 where there are no instructions for it."""
    return 0


def looked_up(
    source: Any, place: Any, table: Any, channels: int, first: int, result: Any, into: Any, count: int = 64
) -> None:
    """Look 64 bytes up in tables of 256 bytes, one for each channel.

    * `source`, `place`: the bytes begin there.
    * `table`, `channels`, `first`: the tables, how many there are, and that of the first byte.
    * `result`, `into`: where the bytes found go.
    * `count`: how many there are; routines know 64.
    """
    for i in range(count):
        result[into + i] = table[(first + i) % channels * 256 + int(source[place + i])]
