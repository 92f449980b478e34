"""FFT factorisation: multi-axis complex transforms as one-axis steps on separate real parts.

A size that is a product of small primes (`PRIMES`) is one `fourier_parts`, which takes many
sequences side by side. A long sequence, or one of few, is cut: n = a b numbers are a table of a
rows, whose columns are transformed first, then turned and transformed along the rows, so that the
sequences side by side are those of the table. Any other size becomes a convolution (Bluestein,
1970): as k j = (k^2 + j^2 - (k - j)^2) / 2,

    X[k] = w[k] sum over j of (x[j] w[j]) conj w[k - j],    w[k] = exp(-pi i k^2 / n)

which two transforms of a larger size compute. Float32 of such sizes with factors up to 64 are
products of matrices (`transforms.fourier_matmul`).

n real numbers are n / 2 complex ones where n is even. What is not known here, as sizes that are
symbols, is left to others (None).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.fourier import PRIMES, fourier_parts
from mycel._src.compiler.transforms import fourier_matmul
from mycel._src.compiler.transforms.optimisation.rewrite_rules import uniform
from mycel._src.foundation import dtype as D
from mycel._src.foundation.bounded_caches import FEW, Remembered
from mycel._src.foundation.dtype import DType

__all__ = ["Parts", "from_half", "half", "joined", "split", "whole"]

# The largest size of one step.
LONGEST = 4096
# The least size of a table's rows and columns, and the largest size of a convolution.
LEAST_SIDE, LARGEST = 16, 1 << 24


class Parts(NamedTuple):
    """The real and imaginary parts of complex numbers."""

    re: Node
    im: Node


def split(node: Node) -> Parts:
    """Return the parts of an array that holds both along its last axis."""
    shape, last = node.shape[:-1], node.type.rank - 1
    re, im = (S.reshape(S.slice_axis(node, last, k, k + 1), shape) for k in (0, 1))
    return Parts(re, im)


def joined(re: Node, im: Node) -> Node:
    """Return an array that holds the parts along its last axis."""
    sources = [_source(x, k) for k, x in enumerate((re, im))]
    if sources[0] is not None and sources[0] is sources[1]:
        return sources[0]
    return S.concat([S.reshape(v, (*v.shape, 1)) for v in (re, im)], axis=re.type.rank)


def _source(part: Node, k: int) -> Node | None:
    """Return the array of which `split` made a node as part `k`."""
    if part.prim is not S.RESHAPE or part.inputs[0].prim is not S.SLICE:
        return None
    taken = part.inputs[0]
    (source,) = taken.inputs
    if not source.type.rank or part.shape != source.shape[:-1] or source.shape[-1] != 2:
        return None
    whole = S.slice_axis(source, source.type.rank - 1, k, k + 1)
    return source if whole.params == taken.params else None


# Sizes.


@functools.cache
def _is_smooth(size: int) -> bool:
    for prime in PRIMES:
        while size % prime == 0:
            size //= prime
    return size == 1


@functools.cache
def _sides(size: int) -> tuple[int, int] | None:
    """Return the rows and columns of a table, as near to each other as may be."""
    for a in range(math.isqrt(size), LEAST_SIDE - 1, -1):
        if size % a == 0 and size // a <= LONGEST and _is_smooth(a) and _is_smooth(size // a):
            return size // a, a
    return None


@functools.cache
def _larger(size: int) -> int:
    """Return the least size from `size` on that is a power of 2, or 3, 5, 9 or 15 times one."""
    return min(f << max(0, (-(-size // f) - 1).bit_length()) for f in (1, 3, 5, 9, 15))


# One axis.


def _constant(array: Any, kind: DType) -> Node:
    return constant(np.ascontiguousarray(array, kind.numpy), kind)


def _times(a: Sequence[Node | None], re: Any, im: Any, kind: DType) -> Parts:
    """Return the product of parts, of which the second may be zero (None), and constant numbers."""
    x, y = a
    c, s = _constant(re, kind), _constant(im, kind)
    assert x is not None
    if y is None:
        return Parts(E.mul(x, c), E.mul(x, s))
    return Parts(E.sub(E.mul(x, c), E.mul(y, s)), E.add(E.mul(x, s), E.mul(y, c)))


def _scaled(a: Parts, factor: float) -> Parts:
    return a if factor == 1.0 else Parts(E.mul(a.re, factor), E.mul(a.im, factor))


def _step(re: Node, im: Node | None, axis: int, kind: str, inverse: bool, factor: float, turn: int = 0) -> Node:
    """Return the node of one step; for the parameters see `fourier_parts`."""
    inputs = (re,) if im is None else (re, im)
    found: Node = fourier_parts(*inputs, axis=axis, kind=kind, inverse=inverse, factor=factor, turn=turn)
    return found


def _way(size: int, dtype: DType) -> str:
    """Return how so many complex numbers are transformed.

    It is "step", "table", "convolution", "products", or "" where nothing is known.
    """
    if _is_smooth(size):
        if size <= LONGEST:
            return "step"
        if _sides(size):
            return "table"
    elif dtype is D.float32 and fourier_matmul.is_product(size):
        return "products"
    return "convolution" if _larger(2 * size) <= LARGEST else ""


def _one(re: Node, im: Node | None, axis: int, inverse: bool, factor: float) -> Parts | None:
    """Return the transform along one axis."""
    size = re.shape[axis]
    if type(size) is not int or size < 1:
        return None
    if size == 1:
        return _scaled(Parts(re, S.zeros_like(re) if im is None else im), factor)
    way = _way(size, re.dtype)
    if way == "step":
        return split(_step(re, im, axis, "whole", inverse, factor))
    if not way:
        return None
    last = re.type.rank - 1
    if axis != last:
        re, im = S.move_axis(re, axis, last), None if im is None else S.move_axis(im, axis, last)
    if way == "products":
        found: Parts | None = _scaled(Parts(*fourier_matmul.transform(re, im, inverse, size)), factor)
    elif way == "table":
        found = _table(re, im, inverse, factor)
    else:
        found = _convolution(re, im, inverse, factor)
    if found is None or axis == last:
        return found
    return Parts(*(S.move_axis(part, last, axis) for part in found))


def _table(re: Node, im: Node | None, inverse: bool, factor: float) -> Parts:
    """Return the transform along the last axis by rows and columns of a table."""
    *lead, size = re.shape
    assert isinstance(size, int)
    sides = _sides(size)
    assert sides is not None
    a, b = sides
    shape, rank = (*lead, a, b), len(lead)
    columns = _step(S.reshape(re, shape), None if im is None else S.reshape(im, shape), rank, "whole", inverse, 1.0)
    rows = _step(*split(columns), rank + 1, "whole", inverse, factor, turn=size)
    permutation = (*range(rank), rank + 1, rank, rank + 2)
    return split(S.reshape(S.transpose(rows, permutation), (*lead, size, 2)))


@Remembered("convolutions in place of transforms", FEW).calls
def _chirp(size: int, inverse: bool, factor: float) -> tuple[Any, Any, int]:
    """Return w, the transform of what w is convolved with times `factor`, and their larger size."""
    from scipy import fft

    long = _larger(2 * size - 1)
    k = np.arange(size, dtype=np.int64)
    turns = np.exp((1j if inverse else -1j) * np.pi / size * (k * k % (2 * size)))
    other = np.zeros(long, np.complex128)
    other[:size] = np.conj(turns)
    other[long - size + 1 :] = other[size - 1 : 0 : -1]
    return turns, fft.fft(other) * (factor / long), long


def _convolution(re: Node, im: Node | None, inverse: bool, factor: float) -> Parts | None:
    """Return the transform along the last axis by Bluestein's convolution."""
    size: Any = re.shape[-1]
    kind, last = re.dtype, re.type.rank - 1
    turns, other, long = _chirp(size, inverse, factor)
    none = (0,) * (last + 1)
    high = (*none[1:], long - size)
    x = [S.pad(part, 0.0, low=none, high=high) for part in _times((re, im), turns.real, turns.imag, kind)]
    there = _one(x[0], x[1], last, False, 1.0)
    assert there is not None
    met = _times(there, other.real, other.imag, kind)
    back = _one(met.re, met.im, last, True, 1.0)
    assert back is not None
    return _times([S.slice_axis(part, last, 0, size) for part in back], turns.real, turns.imag, kind)


def whole(re: Node, im: Node, axes: Sequence[int], inverse: bool, factor: float) -> Parts | None:
    """Return the parts of the transform over `axes` of numbers with the parts `re` and `im`.

    It is the other direction with `inverse`, and multiplied by `factor`.
    """
    value = uniform(im)
    given: Node | None = None if value is not None and value == 0 else im
    for number, axis in enumerate(axes):
        found = _one(re, given, axis, inverse, factor if number == len(axes) - 1 else 1.0)
        if found is None:
            return None
        re, given = found
    return Parts(re, im if given is None else given)


# Real numbers.


def half(x: Node, axes: Sequence[int], factor: float) -> Parts | None:
    """Return the transform of real numbers, of the last axis the first half of its terms."""
    *others, last = axes
    found = _half(x, last, 1.0 if others else factor)
    return found and (whole(*found, others, False, factor) if others else found)


def _half(x: Node, axis: int, factor: float) -> Parts | None:
    size = x.shape[axis]
    if type(size) is not int or size < 1:
        return None
    if x.dtype is D.float32 and not _is_smooth(size) and fourier_matmul.is_product(size):
        end = x.type.rank - 1
        made = fourier_matmul.transform(S.move_axis(x, axis, end), None, False, size // 2 + 1)
        return _scaled(Parts(*(S.move_axis(part, end, axis) for part in made)), factor)
    if size % 2:
        found = _one(x, None, axis, False, factor)
        return found and Parts(*(S.slice_axis(part, axis, 0, size // 2 + 1) for part in found))
    count = size // 2
    pairs = S.reshape(x, (*x.shape[:axis], count, 2, *x.shape[axis + 1 :]))
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    even, odd = (S.reshape(S.slice_axis(pairs, axis + 1, k, k + 1), shape) for k in (0, 1))
    if count == 1 or _way(count, x.dtype) == "step":
        if count > 1:
            return split(_step(even, odd, axis, "half", False, factor))
        total = S.concat([E.add(even, odd), E.sub(even, odd)], axis)
        return _scaled(Parts(total, S.zeros_like(total)), factor)
    z = _one(even, odd, axis, False, 0.5 * factor)
    if z is None:
        return None
    # Z[k] and, in reverse, Z[m - k], both for k from 0 to m.
    ahead = [S.concat([part, S.slice_axis(part, axis, 0, 1)], axis) for part in z]
    back = [S.reverse(part, axes=(axis,)) for part in ahead]
    return _parted(ahead, back, axis, size, -1)


def _parted(a: Sequence[Node], b: Sequence[Node], axis: int, size: int, sign: int) -> Parts:
    """Return (a + conj b) + sign i w (a - conj b) for w[k] = exp(sign 2 pi i k / size)."""
    even = E.add(a[0], b[0]), E.sub(a[1], b[1])
    gap = E.sub(a[0], b[0]), E.add(a[1], b[1])
    count: Any = a[0].shape[axis]
    angles = np.arange(count).reshape(*(-1 if k == axis else 1 for k in range(a[0].type.rank))) * (2 * np.pi / size)
    # sign i (cos + sign i sin)
    odd = _times(gap, -np.sin(angles), sign * np.cos(angles), a[0].dtype)
    return Parts(E.add(even[0], odd.re), E.add(even[1], odd.im))


def from_half(re: Node, im: Node, axes: Sequence[int], size: DimLike, factor: float) -> Node | None:
    """Return the `size` real numbers along the last of `axes` that have this half of a transform.

    `re` and `im` are its parts, and the result is multiplied by `factor`.
    """
    *others, last = axes
    if type(size) is not int:
        return None
    parts: Parts | None = whole(re, im, others, True, 1.0) if others else Parts(re, im)
    if parts is None:
        return None
    count = size // 2
    if size % 2 or (fourier_matmul.is_product(size) and re.dtype is D.float32 and not _is_smooth(size)):
        rest = [S.reverse(S.slice_axis(part, last, 1, (size + 1) // 2), axes=(last,)) for part in parts]
        both = [S.concat([a, b], last) for a, b in zip(parts, (rest[0], E.neg(rest[1])))] if size > 1 else parts
        found = _one(both[0], both[1], last, True, factor)
        return found and found.re
    if count == 1:
        low, high = (S.slice_axis(parts.re, last, k, k + 1) for k in (0, 1))
        total: Node = S.concat([E.add(low, high), E.sub(low, high)], last)
        return total if factor == 1.0 else E.mul(total, factor)
    end = parts.re.type.rank - 1
    moved = [part if last == end else S.move_axis(part, last, end) for part in parts]
    if _way(count, re.dtype) == "step":
        pairs = _step(moved[0], moved[1], end, "from_half", True, factor)
    else:
        inner = np.arange(count + 1) % count > 0
        moved[1] = E.select(_constant(inner, D.bool_), moved[1], S.zeros_like(moved[1]))
        ahead = [S.slice_axis(part, end, 0, count) for part in moved]
        back = [S.slice_axis(S.reverse(part, axes=(end,)), end, 0, count) for part in moved]
        there = _parted(ahead, back, end, size, 1)
        z = _one(there.re, there.im, end, True, factor)
        if z is None:
            return None
        pairs = joined(*z)
    found_all = S.reshape(pairs, (*pairs.shape[:-2], size))
    return found_all if last == end else S.move_axis(found_all, end, last)
