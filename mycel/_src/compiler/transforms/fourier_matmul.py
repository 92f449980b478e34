"""Discrete Fourier transforms as matrix products, for sizes and types where these are faster.

A transform of n = a b numbers is two rounds of smaller ones (Cooley and Tukey, 1965). With places
n = b i + j and terms k = p + a q,

    X[p + a q] = sum over j of W_b^(j q) W_n^(j p) sum over i of W_a^(i p) x[b i + j]

where W_m = exp(-2 pi i / m). Both sums are products with a constant matrix of the cosines and sines
of all terms, which the dense library does at its full speed, and one pass between them turns the
numbers by W_n^(j p). Real numbers need half of the first product, and of the second only whole rows
q up to the last term that is kept. Up to `DIRECT` numbers are one product.

Of sizes that are no products of small primes this takes less time than a convolution, and its
rounding errors grow as slowly. `fourier_factorisation` asks for it where `is_product`.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.matrix_product import matmul, swap_last
from mycel._src.foundation.dtype import float32

__all__ = ["DIRECT", "LARGEST", "is_product", "transform"]

DIRECT, LARGEST = 96, 64
Parts = tuple[Node, Node]


@functools.cache
def _factors(size: int) -> tuple[int, int] | None:
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


def _sum(*terms: Node | None) -> Node:
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


def is_product(size: int) -> bool:
    """Return whether a size has the factors."""
    return _factors(size) is not None


def transform(re: Node, im: Node | None, inverse: bool, kept: int) -> Parts:
    """Return the first `kept` terms along the last axis.

    `re` and `im` are the parts of the numbers; real numbers have the first alone. It is the other
    direction with `inverse`.
    """
    *lead, size = re.shape
    sign = 1 if inverse else -1
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
