"""Expressions, and the forms that simplification gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.indexing.index import scatter_nd, take, take_add
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.foundation.dtype import DType, bool_, float16, float32, float64, int8, int32, int64, uint8

F = tensor_type((2, 13), float32)
D = tensor_type((2, 13), float64)
H = tensor_type((2, 13), float16)
I = tensor_type((2, 13), int32)
U = tensor_type((2, 13), uint8)
B = tensor_type((2, 13), bool_)
V = tensor_type((13,), float32)
N = tensor_type((4, 3, 5), float32)


def T(*shape: Any, dtype: DType = float32) -> Any:
    return tensor_type(shape, dtype)


def c(value: Any, dtype: DType = float32) -> Any:
    return constant(value, dtype)


def big(x: Any, shape: tuple[int, ...]) -> Any:
    return S.BROADCAST_TO(x, shape=shape)


def sum_(x: Any, *axes: int, keepdims: bool = False) -> Any:
    return R.reduce_sum(x, axes=axes, keepdims=keepdims)


Case = tuple[Callable[..., Any], Callable[..., Any], list[Any]]

EXACT: dict[str, Case] = {
    "joined axes behind a sum": (
        lambda x, y: S.reshape(E.exp(x) + y, (6, 5)),
        lambda x, y: E.exp(S.reshape(x, (6, 5))) + S.reshape(y, (1, 5)),
        [T(2, 3, 5), T(5)],
    ),
    "all rows in their order": (
        lambda x: take(x, S.iota(shape=(13,), axis=0, dtype=int32), axis=1),
        lambda x: x,
        [F],
    ),
    "all rows added in their order": (
        lambda x: take_add(x, S.iota(shape=(13,), axis=0, dtype=int32), axis=1, size=13),
        lambda x: x,
        [F],
    ),
    "neighbours among zeros": (
        lambda x, y, z: (
            S.pad(x, c(0), (0, 2), (0, 5)) + S.pad(y, c(0), (0, 1), (0, 7)) + S.pad(z, c(0), (0, 4), (0, 1))
        ),
        lambda x, y, z: S.pad(S.concat([y, x, z], 1), c(0), (0, 1), (0, 1)),
        [T(2, 2), T(2, 1), T(2, 4)],
    ),
    "x + 0": (lambda x: x + 0.0, lambda x: x, [F]),
    "0 + x": (lambda x: 0.0 + x, lambda x: x, [F]),
    "x + 0 that broadcasts": (lambda x: x + big(c(0), (2, 13)), lambda x: big(x, (2, 13)), [V]),
    "x + -y": (lambda x, y: x + E.neg(y), lambda x, y: x - y, [F, F]),
    "-x + y": (lambda x, y: E.neg(x) + y, lambda x, y: y - x, [F, F]),
    "integers x + 2 + 3": (lambda x: x + 2 + 3, lambda x: x + 5, [I]),
    "x - 0": (lambda x: x - 0.0, lambda x: x, [F]),
    "0 - x": (lambda x: 0.0 - x, E.neg, [F]),
    "x - -y": (lambda x, y: x - E.neg(y), lambda x, y: x + y, [F, F]),
    "integers x - x": (lambda x: x - x, lambda x: big(c(0, int32), (2, 13)), [I]),
    "x * 1": (lambda x: x * 1.0, lambda x: x, [F]),
    "1 * x": (lambda x: 1.0 * x, lambda x: x, [H]),
    "x * 1 that broadcasts": (lambda x: x * big(c(1), (2, 13)), lambda x: big(x, (2, 13)), [V]),
    "x * -1": (lambda x: x * -1.0, E.neg, [F]),
    "integers x * -1": (lambda x: x * -1, E.neg, [I]),
    "integers x * 0": (lambda x: x * 0, lambda x: big(c(0, int32), (2, 13)), [I]),
    "integers x * 5 * 7": (lambda x: x * 5 * 7, lambda x: x * 35, [I]),
    "integers that wrap": (lambda x: x * 25 * 25, lambda x: x * (625 % 256), [U]),
    "-x * 3": (lambda x: E.neg(x) * 3.0, lambda x: x * -3.0, [F]),
    "-x * -y": (lambda x, y: E.neg(x) * E.neg(y), lambda x, y: x * y, [F, F]),
    "-(x * 3)": (lambda x: E.neg(x * 3.0), lambda x: x * -3.0, [F]),
    "-(x - y)": (lambda x, y: E.neg(x - y), lambda x, y: y - x, [F, F]),
    "-(-x)": (lambda x: E.neg(E.neg(x)), lambda x: x, [F]),
    "unsigned -(-x)": (lambda x: E.neg(E.neg(x)), lambda x: x, [U]),
    "x / 1": (lambda x: x / 1.0, lambda x: x, [F]),
    "x / -1": (lambda x: x / -1.0, E.neg, [F]),
    "x / 8": (lambda x: x / 8.0, lambda x: x * 0.125, [F]),
    "-x / -y": (lambda x, y: E.neg(x) / E.neg(y), lambda x, y: x / y, [F, F]),
    "x ** 0": (lambda x: E.pow_(x, 0.0), lambda x: big(c(1), (2, 13)), [F]),
    "x ** 1": (lambda x: E.pow_(x, 1.0), lambda x: x, [F]),
    "x ** 2": (lambda x: E.pow_(x, 2.0), lambda x: x * x, [F]),
    "integers x ** 2": (lambda x: E.pow_(x, 2), lambda x: x * x, [I]),
    "x ** -1": (lambda x: E.pow_(x, -1.0), lambda x: 1.0 / x, [D]),
    "exp(x) ** 0.5": (lambda x: E.pow_(E.exp(x), 0.5), lambda x: E.sqrt(E.exp(x)), [D]),
    "(x * x + 1) ** 0.5": (lambda x: E.pow_(x * x + 1.0, 0.5), lambda x: E.sqrt(x * x + 1.0), [D]),
    "(x * x + 1) ** -0.5": (lambda x: E.pow_(x * x + 1.0, -0.5), lambda x: E.rsqrt(x * x + 1.0), [D]),
    "any x ** 0.5": (
        lambda x: E.pow_(x, 0.5),
        lambda x: E.select(E.eq(x, -np.inf), c(np.inf, float64), E.sqrt(x)),
        [D],
    ),
    "||x||": (lambda x: E.abs_(E.abs_(x)), E.abs_, [F]),
    "|-x|": (lambda x: E.abs_(E.neg(x)), E.abs_, [F]),
    "not not x": (lambda x: E.logical_not(E.logical_not(x)), lambda x: x, [B]),
    "not x == y": (lambda x, y: E.logical_not(E.eq(x, y)), E.ne, [F, F]),
    "not x != y": (lambda x, y: E.logical_not(E.ne(x, y)), E.eq, [F, F]),
    "integers not x < y": (lambda x, y: E.logical_not(E.lt(x, y)), E.ge, [I, I]),
    "integers not x >= y": (lambda x, y: E.logical_not(E.ge(x, y)), E.lt, [I, I]),
    "integers not x > y": (lambda x, y: E.logical_not(E.gt(x, y)), E.le, [U, U]),
    "integers not x <= y": (lambda x, y: E.logical_not(E.le(x, y)), E.gt, [I, I]),
    "max(x, x)": (lambda x: E.maximum(x, x), lambda x: x, [F]),
    "min(x, x)": (lambda x: E.minimum(x, x), lambda x: x, [F]),
    "x and x": (lambda x: E.logical_and(x, x), lambda x: x, [B]),
    "x and true": (lambda x: E.logical_and(x, c(True, bool_)), lambda x: x, [B]),
    "x and false": (lambda x: E.logical_and(x, c(False, bool_)), lambda x: big(c(False, bool_), (2, 13)), [B]),
    "x or true": (lambda x: E.logical_or(c(True, bool_), x), lambda x: big(c(True, bool_), (2, 13)), [B]),
    "x or false": (lambda x: E.logical_or(x, c(False, bool_)), lambda x: x, [B]),
    "bits x & x": (lambda x: E.bitwise_and(x, x), lambda x: x, [I]),
    "select true": (lambda x, y: E.select(c(True, bool_), x, y), lambda x, y: x, [F, F]),
    "select false": (lambda x, y: E.select(big(c(False, bool_), (2, 13)), x, y), lambda x, y: y, [F, F]),
    "select of one": (lambda p, x: E.select(p, x, x), lambda p, x: x, [B, F]),
    "select of one that broadcasts": (lambda p, x: E.select(p, x, x), lambda p, x: big(x, (2, 13)), [B, V]),
    "select not": (lambda p, x, y: E.select(E.logical_not(p), x, y), lambda p, x, y: E.select(p, y, x), [B, F, F]),
    "cast to the same": (lambda x: E.cast(x, dtype=float32), lambda x: x, [F]),
    "cast there and back": (lambda x: E.cast(E.cast(x, dtype=float64), dtype=float32), lambda x: x, [F]),
    "cast through a wider": (
        lambda x: E.cast(E.cast(x, dtype=float32), dtype=float64),
        lambda x: E.cast(x, dtype=float64),
        [H],
    ),
    "cast narrower through a wider": (
        lambda x: E.cast(E.cast(x, dtype=float64), dtype=float16),
        lambda x: E.cast(x, dtype=float16),
        [F],
    ),
    "integer cast through a wider": (
        lambda x: E.cast(E.cast(x, dtype=int64), dtype=int8),
        lambda x: E.cast(x, dtype=int8),
        [I],
    ),
    "boolean cast through a float": (
        lambda x: E.cast(E.cast(x, dtype=float32), dtype=int32),
        lambda x: E.cast(x, dtype=int32),
        [B],
    ),
    "identity": (E.identity, lambda x: x, [F]),
    "stop_gradient": (lambda x: E.exp(E.stop_gradient(x)), E.exp, [F]),
    "reshape to the same": (lambda x: S.RESHAPE(x, shape=(2, 13)), lambda x: x, [F]),
    "reshape of reshape": (
        lambda x: S.RESHAPE(S.RESHAPE(x, shape=(26,)), shape=(13, 2)),
        lambda x: S.RESHAPE(x, shape=(13, 2)),
        [F],
    ),
    "reshape there and back": (lambda x: S.RESHAPE(S.RESHAPE(x, shape=(26,)), shape=(2, 13)), lambda x: x, [F]),
    "reshape of a uniform value": (
        lambda x: S.RESHAPE(big(x, (2, 3)), shape=(6,)),
        lambda x: big(x, (6,)),
        [T()],
    ),
    "transpose by nothing": (lambda x: S.TRANSPOSE(x, permutation=(0, 1, 2)), lambda x: x, [N]),
    "transpose of transpose": (
        lambda x: S.transpose(S.transpose(x, (2, 0, 1)), (1, 0, 2)),
        lambda x: S.transpose(x, (0, 2, 1)),
        [N],
    ),
    "transpose there and back": (lambda x: S.transpose(S.transpose(x, (2, 0, 1)), (1, 2, 0)), lambda x: x, [N]),
    "transpose through element-wise work": (
        lambda x, y, a: S.transpose(E.exp(S.transpose(x, (2, 0, 1))) + S.transpose(y, (2, 0, 1)) * a, (1, 2, 0)),
        lambda x, y, a: E.exp(x) + y * a,
        [N, N, T()],
    ),
    "transpose of a uniform value": (lambda x: S.transpose(big(x, (2, 3)), (1, 0)), lambda x: big(x, (3, 2)), [T()]),
    "broadcast to the same": (lambda x: big(x, (2, 13)), lambda x: x, [F]),
    "broadcast of broadcast": (lambda x: big(big(x, (1, 13)), (2, 13)), lambda x: big(x, (2, 13)), [V]),
    "broadcast of a reshape that adds axes in front": (
        lambda x: big(S.reshape(x, (1, 1, 13)), (3, 2, 13)),
        lambda x: big(x, (3, 2, 13)),
        [V],
    ),
    "broadcast of a constant of one element": (
        lambda x: big(c([[2.5]]), (2, 3)),
        lambda x: big(S.reshape(c([[2.5]]), ()), (2, 3)),
        [V],
    ),
    "slice of everything": (
        lambda x: S.SLICE(x, starts=(0, 0), stops=(2, 13), steps=(1, 1)),
        lambda x: x,
        [F],
    ),
    "slice of slice": (
        lambda x: S.slice_(S.slice_(x, (0, 1), (2, 12), (1, 2)), (1, 1), (2, 6), (1, 3)),
        lambda x: S.slice_(x, (1, 3), (2, 10), (1, 6)),
        [F],
    ),
    "slice of what was padded": (
        lambda x: S.slice_(S.pad(x, 0, (1, 2), (3, 4)), (1, 2), (3, 15)),
        lambda x: x,
        [F],
    ),
    "slice within what was padded": (
        lambda x: S.slice_(S.pad(x, 0, (1, 2), (3, 4)), (2, 3), (3, 8)),
        lambda x: S.slice_(x, (1, 1), (2, 6)),
        [F],
    ),
    "slice that is one of the joined": (
        lambda x, y: S.slice_(S.concat([x, y], 0), (2, 0), (4, 13)),
        lambda x, y: y,
        [F, F],
    ),
    "slice of a uniform value": (lambda x: S.slice_(big(x, (5,)), (1,), (4,), (2,)), lambda x: big(x, (2,)), [T()]),
    "pad by nothing": (
        lambda x: S.PAD(x, c(0), low=(0, 0), high=(0, 0), interior=(0, 0)),
        lambda x: x,
        [F],
    ),
    "pad that crops": (
        lambda x: S.pad(x, 0, (0, -1), (-1, -2)),
        lambda x: S.slice_(x, (0, 1), (1, 11)),
        [F],
    ),
    "pad by the same value": (lambda x: S.pad(big(c(2.0), (3,)), 2.0, (1,), (2,)), lambda x: big(c(2.0), (6,)), [F]),
    "concat of one": (lambda x: S.CONCAT(x, axis=0), lambda x: x, [F]),
    "concat with nothing": (lambda x, y: S.concat([x, y], 0), lambda x, y: x, [F, T(0, 13)]),
    "reverse of no axis": (lambda x: S.reverse(x, axes=()), lambda x: x, [F]),
    "reverse of an axis of size 1": (lambda x: S.reverse(x, axes=(0, 1)), lambda x: S.reverse(x, axes=(1,)), [T(1, 5)]),
    "reverse of reverse": (
        lambda x: S.reverse(S.reverse(x, axes=(0, 1)), axes=(1, 2)),
        lambda x: S.reverse(x, axes=(0, 2)),
        [N],
    ),
    "reverse there and back": (lambda x: S.reverse(S.reverse(x, axes=(1,)), axes=(1,)), lambda x: x, [N]),
    "broadcast after work": (lambda x: E.exp(big(x, (2, 13))), lambda x: big(E.exp(x), (2, 13)), [V]),
    "broadcast after work of two": (
        lambda x, y: big(x, (2, 13)) * big(y, (2, 13)),
        lambda x, y: big(x * y, (2, 13)),
        [V, T(1)],
    ),
    "broadcast by the operation": (lambda x, y: big(x, (2, 13)) * y, lambda x, y: x * y, [V, F]),
    "broadcast by each other": (
        lambda x, y: big(x, (2, 13)) * big(y, (2, 13)),
        lambda x, y: x * y,
        [V, T(2, 1)],
    ),
    "broadcast below a cast": (
        lambda x: E.cast(big(x, (2, 13)), dtype=float64),
        lambda x: big(E.cast(x, dtype=float64), (2, 13)),
        [V],
    ),
    "reduce over nothing": (lambda x: sum_(x), lambda x: x, [F]),
    "reduce over axes of size 1": (lambda x: sum_(x, 0, 2), lambda x: S.reshape(x, (5,)), [T(1, 5, 1)]),
    "keepdims": (
        lambda x: R.reduce_max(x, axes=(1,), keepdims=True),
        lambda x: S.reshape(R.reduce_max(x, axes=(1,), keepdims=False), (4, 1, 5)),
        [N],
    ),
    "keepdims and a reshape": (
        lambda x: S.reshape(R.reduce_max(x, axes=(1,), keepdims=True), (4, 5)),
        lambda x: R.reduce_max(x, axes=(1,), keepdims=False),
        [N],
    ),
    "max of max": (
        lambda x: R.reduce_max(R.reduce_max(x, axes=(1,), keepdims=False), axes=(1,), keepdims=False),
        lambda x: R.reduce_max(x, axes=(1, 2), keepdims=False),
        [N],
    ),
    "max of a reshape": (
        lambda x: R.reduce_max(S.reshape(x, (4, 15)), axes=(1,), keepdims=False),
        lambda x: R.reduce_max(x, axes=(1, 2), keepdims=False),
        [N],
    ),
    "max of a reshape that splits": (
        lambda x: R.reduce_max(S.reshape(x, (2, 2, 3, 5)), axes=(0, 1), keepdims=False),
        lambda x: R.reduce_max(x, axes=(0,), keepdims=False),
        [N],
    ),
    "max over neighbours of a reshape": (
        lambda x: R.reduce_max(S.reshape(x, (2, 5, 6)), axes=(0, 1), keepdims=False),
        lambda x: R.reduce_max(S.reshape(x, (10, 6)), axes=(0,), keepdims=False),
        [N],
    ),
    "max of a broadcast": (
        lambda x: R.reduce_max(big(x, (4, 3, 5)), axes=(0, 2), keepdims=False),
        lambda x: R.reduce_max(x, axes=(1,), keepdims=False),
        [T(3, 5)],
    ),
    "any of a broadcast": (
        lambda x: R.reduce_any(big(x, (4, 3)), axes=(0,), keepdims=False),
        lambda x: x,
        [T(3, dtype=bool_)],
    ),
    "integer sum of a multiple": (lambda x: sum_(x * 3, 0), lambda x: sum_(x, 0) * 3, [I]),
    "sum of the negative": (lambda x: sum_(E.neg(x), 0), lambda x: E.neg(sum_(x, 0)), [F]),
    "sum of sums of integers": (lambda x: sum_(sum_(x, 0), 0), lambda x: sum_(x, 0, 1), [I]),
}

FACTORED: dict[str, Case] = {
    "sum of rows times a factor of each": (
        lambda x, y: sum_(x * E.exp(y), 1),
        lambda x, y: sum_(x, 1) * S.reshape(E.exp(y), (3,)),
        [T(3, 5), T(3, 1)],
    ),
    "factors inside a product and below a quotient": (
        lambda x, y, z: sum_(((x * y) * x) / z, 0),
        lambda x, y, z: sum_(x * x, 0) / z * y,
        [T(4, 5), T(5), T(5)],
    ),
}
ROUNDED: dict[str, Case] = {
    "rows added": (
        lambda x, y: x + take_add(y, c([0, 2, 0], int64), axis=0, size=4),
        lambda x, y: scatter_nd(x, S.reshape(c([0, 2, 0], int64), (3, 1)), y, mode="add"),
        [T(4, 5), T(3, 5)],
    ),
    "scaled rows taken away": (
        lambda x, y: x - take_add(y, c([0, 2, 0], int64), axis=0, size=4) * 2.0,
        lambda x, y: scatter_nd(x, S.reshape(c([0, 2, 0], int64), (3, 1)), y * -2.0, mode="add"),
        [T(4, 5), T(3, 5)],
    ),
    "a row of each example times one matrix": (
        lambda x, w: matmul(x, w),
        lambda x, w: S.reshape(matmul(S.reshape(x, (6, 13)), w), (2, 3, 1, 4)),
        [T(2, 3, 1, 13), T(13, 4)],
    ),
    "one matrix times a column of each example": (
        lambda x, w: matmul(w, x),
        lambda x, w: S.reshape(matmul(S.reshape(x, (3, 13)), S.transpose(w, (1, 0))), (3, 4, 1)),
        [T(3, 13, 1), T(4, 13)],
    ),
    "x ** 3": (lambda x: E.pow_(x, 3.0), lambda x: (x * x) * x, [F]),
    "x ** 4": (lambda x: E.pow_(x, 4.0), lambda x: E.mul(*[x * x] * 2), [D]),
    "x * 3 * 5": (lambda x: x * 3.0 * 0.7, lambda x: x * float(np.float32(3) * np.float32(0.7)), [F]),
    "3 * (x * 5)": (lambda x: 3.0 * (x * 5.0), lambda x: x * 15.0, [D]),
    "sum of a multiple": (lambda x: sum_(x * 3.0, 0), lambda x: sum_(x, 0) * 3.0, [F]),
    "sum of multiples and quotients": (
        lambda x: sum_(E.neg(x * 3.0 / 7.0), 0, 1),
        lambda x: E.neg(sum_(x, 0, 1) * 3.0 / 7.0),
        [D],
    ),
    "sum of sums": (lambda x: sum_(sum_(x, 1), 1), lambda x: sum_(x, 1, 2), [N]),
    "sum of sums with keepdims": (
        lambda x: sum_(sum_(x, 1, keepdims=True), 0, 1),
        lambda x: sum_(x, 0, 1),
        [N],
    ),
    "sum of a broadcast": (lambda x: sum_(big(x, (6, 13)), 0), lambda x: x * 6.0, [V]),
    "sum of a broadcast and more": (
        lambda x: sum_(big(x, (6, 4, 3, 5)), 0, 2),
        lambda x: big(S.reshape(sum_(x, 1), (1, 5)) * 6.0, (4, 5)),
        [T(1, 3, 5)],
    ),
    "sum of a broadcast, keepdims": (
        lambda x: sum_(big(x, (6, 13)), 0, keepdims=True),
        lambda x: S.reshape(x * 6.0, (1, 13)),
        [V],
    ),
    "product of products": (
        lambda x: R.reduce_prod(R.reduce_prod(x, axes=(0,), keepdims=False), axes=(0,), keepdims=False),
        lambda x: R.reduce_prod(x, axes=(0, 1), keepdims=False),
        [N],
    ),
}

# Expressions that look like the ones above and must stay.
KEPT: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "x + 1": (lambda x: x + 1.0, [F]),
    "x + 2 + 3 rounds": (lambda x: x + 2.0 + 3.0, [F]),
    "x - x is NaN for infinities": (lambda x: x - x, [F]),
    "x * 0 is NaN for infinities": (lambda x: x * 0.0, [F]),
    "x / x": (lambda x: x / x, [F]),
    "x / 3 rounds": (lambda x: x / 3.0, [F]),
    "x / 2**127 has no ordinary reciprocal": (lambda x: x / 2.0**127, [F]),
    "x / 2 of 16 bits": (lambda x: x / 2.0, [H]),
    "unsigned x * 255": (lambda x: x * 255, [U]),
    "16-bit x * 3 * 5": (lambda x: x * 3.0 * 5.0, [H]),
    "factors whose product overflows": (lambda x: x * 1e30 * 1e30, [F]),
    "factors whose product vanishes": (lambda x: x * 1e-30 * 1e-30, [F]),
    "a product with two users": (lambda x: (lambda y: (y * 5.0, y))(x * 3.0), [F]),
    "x ** 5": (lambda x: E.pow_(x, 5.0), [F]),
    "any x ** -0.5": (lambda x: E.pow_(x, -0.5), [F]),
    "max(x, 0) ** -0.5, which -0 may meet": (lambda x: E.pow_(E.maximum(x, 0.0), -0.5), [F]),
    "x ** y": (lambda x, y: E.pow_(x, y), [F, F]),
    "integers x ** -1": (lambda x: E.pow_(x, -1), [I]),
    "unsigned |-x|": (lambda x: E.abs_(E.neg(x)), [U]),
    "not x < y with NaN": (lambda x, y: E.logical_not(E.lt(x, y)), [F, F]),
    "not x >= y with NaN": (lambda x, y: E.logical_not(E.ge(x, y)), [F, F]),
    "max(x, y)": (lambda x, y: E.maximum(x, y), [F, F]),
    "x == x": (lambda x: E.eq(x, x), [F]),
    "x xor x": (lambda x: E.logical_xor(x, x), [B]),
    "select of data": (lambda p, x, y: E.select(p, x, y), [B, F, F]),
    "cast through a narrower": (lambda x: E.cast(E.cast(x, dtype=float16), dtype=float32), [F]),
    "cast through an integer": (lambda x: E.cast(E.cast(x, dtype=int32), dtype=float32), [F]),
    "cast of a large integer": (lambda x: E.cast(E.cast(x, dtype=float32), dtype=int32), [I]),
    "integer cast through a float": (lambda x: E.cast(E.cast(x, dtype=float64), dtype=int8), [I]),
    "cast through unsigned": (lambda x: E.cast(E.cast(x, dtype=uint8), dtype=int32), [I]),
    "reshape of transpose": (lambda x: S.reshape(S.transpose(x, (1, 0)), (26,)), [F]),
    "transpose of work that undoes nothing": (lambda x, y: S.transpose(x + y, (1, 0)), [F, F]),
    "transpose of work on one other tensor": (
        lambda x, y: S.transpose(S.transpose(x, (1, 0)) + y, (1, 0)),
        [F, T(13, 2)],
    ),
    "transpose of shared work": (
        lambda x: (lambda y: (S.transpose(y, (1, 0)), y))(E.exp(S.transpose(x, (1, 0)))),
        [F],
    ),
    "broadcast of a reshape that adds axes behind": (lambda x: big(S.reshape(x, (13, 1)), (13, 4)), [V]),
    "slice of a part": (lambda x: S.slice_(x, (0, 1), (2, 13)), [F]),
    "slice into the padding": (lambda x: S.slice_(S.pad(x, 0, (1, 2), (3, 4)), (0, 2), (3, 15)), [F]),
    "slice of pad with gaps": (lambda x: S.slice_(S.pad(x, 0, (0,), (0,), (1,)), (0,), (3,)), [V]),
    "slice across the joined": (lambda x, y: S.slice_(S.concat([x, y], 0), (1, 0), (3, 13)), [F, F]),
    "pad": (lambda x: S.pad(x, 0, (1, 0), (0, 0)), [F]),
    "pad that crops and grows": (lambda x: S.pad(x, 0, (-1, 0), (1, 0)), [F]),
    "pad by another value": (lambda x: S.pad(big(x, (3,)), 2.0, (1,), (2,)), [T()]),
    "pad by a zero of another sign": (lambda x: S.pad(big(c(0.0), (3,)), -0.0, (1,), (2,)), [F]),
    "concat of two": (lambda x, y: S.concat([x, y], 0), [F, F]),
    "reverse": (lambda x: S.reverse(x, axes=(1,)), [F]),
    "work on a smaller tensor": (lambda x, y: x * y, [V, F]),
    "reduce": (lambda x: sum_(x, 0), [F]),
    "max of min": (
        lambda x: R.reduce_max(R.reduce_min(x, axes=(1,), keepdims=False), axes=(1,), keepdims=False),
        [N],
    ),
    "sum of a shared sum": (lambda x: (lambda y: (sum_(y, 0), y))(sum_(x, 1)), [N]),
    "16-bit sum of sums": (lambda x: sum_(sum_(x, 1), 0), [H]),
    "16-bit sum of a multiple": (lambda x: sum_(x * 3.0, 1), [H]),
    "16-bit sum of a broadcast": (lambda x: sum_(big(x, (3, 2, 13)), 0), [H]),
    "sum of a broadcast to nothing": (lambda x: sum_(big(x, (0, 13)), 0), [V]),
    "small integers that cannot count": (lambda x: sum_(big(x, (300, 2)), 0), [T(2, dtype=int8)]),
    "sum of an infinite multiple": (lambda x: sum_(x * np.inf, 0), [F]),
    "sum of a multiple that is shared": (lambda x: (lambda y: (sum_(y, 0), y))(x * 3.0), [F]),
    "sum of a product": (lambda x, y: sum_(x * y, 0), [F, F]),
    "sum of a multiple by a tensor": (lambda x, a: sum_(x * a, 0), [F, T()]),
    "product of a broadcast": (lambda x: R.reduce_prod(big(x, (6, 13)), axes=(0,), keepdims=False), [V]),
    "max of a reshape that mixes": (
        lambda x: R.reduce_max(S.reshape(x, (6, 10)), axes=(0,), keepdims=False),
        [N],
    ),
}
