"""Fourier transforms as products of matrices.

A transform of n = a b numbers is two rounds of smaller ones (Cooley and Tukey, 1965). With places
n = b i + j and terms k = p + a q,

    X[p + a q] = sum over j of W_b^(j q) W_n^(j p) sum over i of W_a^(i p) x[b i + j]

where W_m = exp(-2 pi i / m). Both sums are products with a constant matrix of the cosines and sines
of all terms, which the dense library does at its full speed, and one pass between them turns the
numbers by W_n^(j p). Real numbers need half of the first product, and only the terms up to n / 2,
whole rows q, of the second; the way back from those is the adjoint, step by step. Up to `DIRECT`
numbers are one product.

With factors up to `LARGEST` this takes less time than a transform by halves on one thread, and its
rounding errors grow as slowly. Sizes without such factors, sizes that are symbols, and float64, for
which the dense library has no code, are left to others (None).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np

from mycel.base.dtype import float32
from mycel.ir.dims import DimLike
from mycel.ir.graph import Node
from mycel.prims import elementwise as E
from mycel.prims import shape as S
from mycel.prims.base import constant
from mycel.prims.linalg import matmul, swap_last
from mycel.transforms.rules import uniform

__all__ = ["DIRECT", "LARGEST", "from_half", "half", "whole"]

DIRECT, LARGEST = 96, 64
Parts = tuple[Node, Node]


@functools.cache
def _factors(size: int) -> Optional[tuple[int, int]]:
    """Return a and b of the smallest sum; (1, size) for what is one product."""
    if size <= DIRECT:
        return 1, size
    found = [(size // b, b) for b in range(2, LARGEST + 1) if size % b == 0 and size // b <= LARGEST]
    if found:
        return min(found, key=sum)
    return (1, size) if size <= 2 * LARGEST else None


def _waves(rows: int, columns: int, size: int, sign: int) -> tuple[Any, Any]:
    """Return the cosines and `sign` times the sines of 2 pi row column / size."""
    turns = np.outer(np.arange(rows), np.arange(columns)) % size * (2 * np.pi / size)
    return np.cos(turns), sign * np.sin(turns)


def _constant(array: Any) -> Node:
    return constant(np.ascontiguousarray(array, np.float32), float32)


def _sum(*terms: Optional[Node]) -> Node:
    first, *rest = [t for t in terms if t is not None]
    for term in rest:
        first = E.add(first, term)
    return first


def _part(x: Node, axis: int, start: DimLike, stop: DimLike) -> Node:
    return S.slice_axis(x, axis, start, stop)


def _turned(x: Node, cosines: Any, sines: Any) -> Node:
    """Return pairs along the last axis but one, multiplied by cosines + i sines."""
    apart = np.stack([-sines, sines], 1)
    return E.add(E.mul(x, _constant(cosines[:, None])), E.mul(S.reverse(x, axes=(x.type.rank - 2,)), _constant(apart)))


def _second(a: int, b: int, rows: int, sign: int) -> Any:
    """Return the matrix of the second sums: the real parts of `rows` terms, then the imaginary
    ones, from pairs.
    """
    cosines, sines = _waves(rows, b, b, sign)
    real, imaginary = np.stack([cosines, -sines], 2), np.stack([sines, cosines], 2)
    return np.concatenate([real.reshape(rows, 2 * b), imaginary.reshape(rows, 2 * b)])


def _transform(re: Node, im: Optional[Node], sign: int, kept: int) -> Parts:
    """Return the first `kept` terms along the last axis."""
    *lead, size = re.shape
    assert isinstance(size, int)
    a, b = _factors(size) or (1, size)
    last = len(lead)
    if a == 1:
        cosines, sines = _waves(size, kept, size, sign)
        found = matmul(_rows(re), _constant(np.concatenate([cosines, sines], 1)))
        if im is not None:
            found = E.add(found, matmul(_rows(im), _constant(np.concatenate([-sines, cosines], 1))))
        found = S.reshape(found, (*lead, 2 * kept))
        return _part(found, last, 0, kept), _part(found, last, kept, 2 * kept)
    cosines, sines = _waves(a, a, a, sign)
    columns = [None if x is None else swap_last(S.reshape(x, (*lead, a, b))) for x in (re, im)]
    first = [
        None if x is None else matmul(x, _constant(np.concatenate(m, 1)))
        for x, m in zip(columns, ((cosines, sines), (-sines, cosines)))
    ]
    pairs = _turned(S.reshape(_sum(*first), (*lead, b, 2, a)), *_waves(b, a, size, sign))
    rows = -(-kept // a)
    found = matmul(_constant(_second(a, b, rows, sign)), S.reshape(pairs, (*lead, 2 * b, a)))
    re, im = (S.reshape(_part(found, last, k * rows, (k + 1) * rows), (*lead, rows * a)) for k in (0, 1))
    return _part(re, last, 0, kept), _part(im, last, 0, kept)


def _rows(x: Node) -> Node:
    """Return a vector as a matrix of one row."""
    return x if x.type.rank > 1 else S.reshape(x, (1, x.shape[0]))


def _back(re: Node, im: Node, size: int) -> Node:
    """Return the real numbers whose first terms, along the last axis, are given."""
    *lead, kept = re.shape
    assert isinstance(kept, int)
    a, b = _factors(size) or (1, size)
    weights = np.full(kept, 2.0)
    weights[0] = 1.0
    if size % 2 == 0:
        weights[-1] = 1.0
    if a == 1:
        cosines, sines = (weights[:, None] * m for m in _waves(kept, size, size, -1))
        found = E.add(matmul(_rows(re), _constant(cosines)), matmul(_rows(im), _constant(sines)))
        return S.reshape(found, (*lead, size))
    rows = -(-kept // a)
    matrix, terms = _second(a, b, rows, -1).T, []
    for x, m in zip((re, im), (matrix[:, :rows], matrix[:, rows:])):
        x, none = E.mul(x, _constant(weights)), (0,) * (len(lead) + 1)
        x = S.pad(x, 0.0, low=none, high=(*none[1:], rows * a - kept), interior=none)
        terms.append(matmul(_constant(m), S.reshape(x, (*lead, rows, a))))
    pairs = S.reshape(_sum(*terms), (*lead, b, 2, a))
    cosines, sines = _waves(b, a, size, -1)
    pairs = _turned(pairs, cosines, -sines)
    first = np.concatenate(_waves(a, a, a, -1), 1).T
    found = matmul(S.reshape(pairs, (*lead, b, 2 * a)), _constant(first))
    return S.reshape(swap_last(found), (*lead, size))


def _along(axis: int, function: Callable[..., Parts], *parts: Optional[Node]) -> Parts:
    """Apply a function of the last axis along another."""
    moved = [None if x is None else S.move_axis(x, axis, x.type.rank - 1) for x in parts]
    re, im = function(*moved)
    return S.move_axis(re, re.type.rank - 1, axis), S.move_axis(im, im.type.rank - 1, axis)


def _fits(x: Node, axes: Sequence[int], *sizes: DimLike) -> bool:
    every = (*(x.shape[a] for a in axes), *sizes)
    return x.dtype is float32 and all(isinstance(d, int) and d > 0 and _factors(d) is not None for d in every)


def whole(re: Node, im: Node, axes: Sequence[int], inverse: bool) -> Optional[Parts]:
    """Return the parts of the transform over `axes` of numbers with the parts `re` and `im`.

    It is the other direction with `inverse`; neither is divided by its size.
    """
    if not _fits(re, axes):
        return None
    sign = 1 if inverse else -1
    given: Optional[Node] = im
    value = uniform(im)
    if value is not None and value == 0:
        given = None
    for axis in axes:
        size: Any = re.shape[axis]
        re, im = _along(axis, lambda r, i=None, n=size: _transform(r, i, sign, n), re, given)
        given = im
    return re, im


def half(x: Node, axes: Sequence[int]) -> Optional[Parts]:
    """Return the transform of real numbers, of the last axis the first half of its terms."""
    if not _fits(x, axes):
        return None
    *others, last = axes
    size: Any = x.shape[last]
    re, im = _along(last, lambda r: _transform(r, None, -1, size // 2 + 1), x)
    return whole(re, im, others, False)


def from_half(re: Node, im: Node, axes: Sequence[int], size: DimLike) -> Optional[Node]:
    """Return the `size` real numbers along the last of `axes` that have this half of a transform.

    `re` and `im` are its parts.
    """
    *others, last = axes
    if not isinstance(size, int) or not _fits(re, others, size):
        return None
    parts = whole(re, im, others, True)
    assert parts is not None
    end = re.type.rank - 1
    found = _back(S.move_axis(parts[0], last, end), S.move_axis(parts[1], last, end), size)
    return S.move_axis(found, end, last)
