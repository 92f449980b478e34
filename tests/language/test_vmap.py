"""Vectorised programs: each is an ordinary function of one example, and its oracle applies it to
one example after another in plain Python.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import mycel as ms
from mycel._src.foundation.pytree import flatten, unflatten
from tests.language.harness import F, N, P, Programs, X, _has_tensor

programs = Programs()

A = np.array([[0.5, -1.5, 2.0], [1.0, 3.0, -2.0], [-0.25, 0.75, 1.25], [2.5, -0.5, -1.0]], np.float32)
B = np.array([[1.5, 0.5, -1.0], [-2.0, 1.0, 0.25], [0.75, -0.75, 2.0], [-1.25, 2.25, 0.5]], np.float32)
C = np.array([0.5, -1.5, 2.0, 0.25], np.float32)
W = np.array([[0.5, -1.0], [0.25, 2.0], [-0.75, 1.5]], np.float32)
T = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8 - 1
I = np.array([2, 0, 1, 2], np.int32)
ONES = ms.Tensor(np.ones(3, np.float32))


def each(fn: Any, in_axes: Any = 0, out_axes: Any = 0) -> Any:
    """`vmap` on tensors; on arrays, a loop over the examples."""

    def run(*args: Any) -> Any:
        return (
            ms.vmap(fn, in_axes, out_axes)(*args)
            if _has_tensor(flatten(args)[0])
            else loop(fn, in_axes, out_axes, args)
        )

    return run


def loop(fn: Any, in_axes: Any, out_axes: Any, args: Any) -> Any:
    axes = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
    given = [(*flatten(v), spread(a, v)) for v, a in zip(args, axes)]
    size = next(v.shape[a] for leaves, _, found in given for v, a in zip(leaves, found) if a is not None)
    results = []
    for i in range(size):
        one = [
            unflatten(s, [v if a is None else np.take(v, i, a) for v, a in zip(leaves, found)])
            for leaves, s, found in given
        ]
        results.append(fn(*one))
    outs = [flatten(r)[0] for r in results]
    places = spread(out_axes, results[0])
    stacked = [
        np.asarray(o[0]) if a is None else np.stack([np.asarray(p) for p in o], a) for o, a in zip(zip(*outs), places)
    ]
    return unflatten(flatten(results[0])[1], stacked)


def spread(axes: Any, value: Any) -> list[Any]:
    if axes is None or isinstance(axes, int):
        return [axes] * len(flatten(value)[0])
    if isinstance(axes, dict):
        return [a for k in value for a in spread(axes[k], value[k])]
    return [a for x, v in zip(axes, value) for a in spread(x, v)]


# Axes.


@programs.add((A,))
def elementwise(x: Any) -> Any:
    return each(lambda row: F.sin(row) * row)(x)


@programs.add((A, B), grad=(0, 1))
def two_mapped(x: Any, y: Any) -> Any:
    return each(lambda a, b: a * F.cos(b))(x, y)


@programs.add((A, X), grad=(0, 1))
def shared_argument(x: Any, y: Any) -> Any:
    return each(lambda a, b: a * b + F.sum(b), (0, None))(x, y)


@programs.add((A, T), grad=(0, 1))
def axes_in_the_middle(x: Any, t: Any) -> Any:
    return each(lambda row, m: F.sum(m) * row, (-2, 2))(x, t)


@programs.add((A,))
def batch_behind(x: Any) -> Any:
    return each(lambda row: row * 2, 0, 1)(x)


@programs.add((T,))
def negative_out_axis(t: Any) -> Any:
    return each(lambda m: m * m, 1, -1)(t)


@programs.add((A,))
def negative_in_axis(x: Any) -> Any:
    return each(lambda column: F.sum(column) * column, -1)(x)


@programs.add((A, B, X), grad=(0, 1, 2))
def nested_axes(x: Any, y: Any, z: Any) -> Any:
    def one(pair: Any, more: Any) -> Any:
        return pair[0] * more["k"] + pair[1][0]

    return each(one, ((0, [1]), {"k": None}))((x, [F.transpose(y, (1, 0))]), {"k": z})


@programs.add((A, B), grad=(0, 1))
def an_axis_for_a_whole_container(x: Any, y: Any) -> Any:
    return each(lambda d: d["a"] - d["b"][0])({"a": x, "b": [y]})


@programs.add((A,))
def outputs_in_containers(x: Any) -> Any:
    return each(lambda r: {"sum": F.sum(r), "parts": (r, [r * 2])}, 0, {"sum": 0, "parts": (1, [0])})(x)


@programs.add((A, X), grad=(0, 1))
def output_that_is_shared(x: Any, y: Any) -> Any:
    return each(lambda a, b: (a + b, F.exp(b)), (0, None), (0, None))(x, y)


@programs.add((A, X), grad=(0, 1))
def shared_output_is_repeated(x: Any, y: Any) -> Any:
    return each(lambda a, b: (a, b), (0, None))(x, y)


@programs.add((A,))
def number_among_outputs(x: Any) -> Any:
    return each(lambda a: (a, 2.5))(x)


# Functions.


@programs.add((A, X), grad=(0, 1))
def closure(x: Any, y: Any) -> Any:
    scale = F.sum(y)

    def one(row: Any) -> Any:
        return row * scale + y

    return each(one)(x)


@programs.add((A, B), grad=(0, 1))
def nested(x: Any, y: Any) -> Any:
    return each(lambda a: each(lambda b: F.sum(a * b))(y))(x)


@programs.add((T, X), grad=(0, 1))
def nested_axes_of_one_tensor(t: Any, k: Any) -> Any:
    return each(each(lambda a, s: F.sin(a) * s, (1, None), 1), (0, None))(t, F.sum(k))


@programs.add((C, X, A), grad=(0, 1, 2))
def three_deep(a: Any, b: Any, m: Any) -> Any:
    return each(lambda x: each(lambda y: each(lambda z: x * y + z * z)(m))(b))(a)


@programs.add((A,))
def partial(x: Any) -> Any:
    def one(k: float, row: Any, shift: float = 0.0) -> Any:
        return row * k + shift

    return each(functools.partial(one, 3.0, shift=1.5))(x)


@programs.add((C,))
def static_recursion(x: Any) -> Any:
    def power(v: Any, n: int) -> Any:
        return v if n == 1 else v * power(v, n - 1)

    return each(lambda v: power(v, 5))(x)


class _Affine:
    def __init__(self, k: Any) -> None:
        self.k = k

    def __call__(self, row: Any) -> Any:
        return row * self.k + 1.0

    def twice(self, row: Any) -> Any:
        return self(self(row))


@programs.add((A,))
def callable_object(x: Any) -> Any:
    return each(_Affine(2.0))(x) + each(_Affine(0.5).twice)(x)


@programs.add((A,))
def list_built_inside(x: Any) -> Any:
    def one(row: Any) -> Any:
        found = []
        for k in range(3):
            found.append(row[k] * (k + 1.0))
        return F.stack(found)

    return each(one)(x)


@programs.add((A,))
def unpacking(x: Any) -> Any:
    def one(row: Any) -> Any:
        a, *rest = row
        return a * rest[0] - rest[1]

    return each(one)(x)


# Operations.


@programs.add((A, W), grad=(0, 1))
def product_with_a_shared_matrix(x: Any, w: Any) -> Any:
    return each(lambda row: F.matmul(row, w))(x)


@programs.add((T, T), grad=(0, 1))
def products_of_matrices(s: Any, t: Any) -> Any:
    return each(lambda a, b: F.matmul(F.transpose(a, (1, 0)), b))(s, t)


@programs.add((A,))
def softmax_by_hand(x: Any) -> Any:
    def one(row: Any) -> Any:
        e = F.exp(row - F.amax(row))
        return e / F.sum(e)

    return each(one)(x)


@programs.add((A, I))
def index_that_differs(x: Any, i: Any) -> Any:
    return each(lambda row, k: row[k] * row)(x, i)


@programs.add((X, I))
def index_into_a_shared_tensor(x: Any, i: Any) -> Any:
    return each(lambda k: x[k] * 2)(i)


@programs.add((A,))
def slices(x: Any) -> Any:
    return each(lambda row: row[1:] * row[:-1] + row[0])(x)


@programs.add((A,))
def where(x: Any) -> Any:
    return each(lambda row: F.where(row > 0, row * row, -row))(x)


@programs.add((T,))
def reductions(t: Any) -> Any:
    return each(lambda m: (F.mean(m, 0), F.amax(m), F.sum(m * m)), 2)(t)


@programs.add((A,))
def cumulative(x: Any) -> Any:
    return each(lambda row: F.cumsum(row, 0) * F.cumprod(row, 0))(x)


@programs.add((A, B), grad=(0, 1))
def concat(x: Any, y: Any) -> Any:
    return each(lambda a, b: F.concat((a, b, X if isinstance(a, np.ndarray) else ms.Tensor(X))))(x, y)


@programs.add((A,))
def write(x: Any) -> Any:
    def one(row: Any) -> Any:
        out = row * 2
        out[1] = row[0] * row[2]
        return out

    return each(one)(x)


@programs.add((A, I))
def write_where_an_index_says(x: Any, i: Any) -> Any:
    def one(row: Any, k: Any) -> Any:
        out = row * 1
        out[k] = F.sum(row)
        return out

    return each(one)(x, i)


# Conditions.


@programs.add((C,))
def plain_if(x: Any) -> Any:
    def one(v: Any) -> Any:
        if v > 0:
            y = F.sin(v)
        else:
            y = v * v
        return y + v

    return each(one)(x)


@programs.add((A,))
def early_return(x: Any) -> Any:
    def one(row: Any) -> Any:
        if F.sum(row) > 1.1:
            return row * 3
        return F.exp(row)

    return each(one)(x)


@programs.add((C,), (np.abs(C),), (-np.abs(C),))
def untaken_side_is_not_finite(x: Any) -> Any:
    def one(v: Any) -> Any:
        if v > 0:
            return F.sqrt(v) + F.log(v)
        return -v

    return each(one)(x)


@programs.add((C, X), (-np.abs(C), X), grad=(0, 1))
def untaken_side_with_a_shared_operand(x: Any, y: Any) -> Any:
    def one(v: Any) -> Any:
        if v > 0:
            return F.log(v) * y
        return y

    return each(one)(x)


@programs.add((C,))
def plain_elif(x: Any) -> Any:
    def one(v: Any) -> Any:
        if v > 1:
            return v * 2
        elif v > 0.3:
            return 1 / v
        elif v > 0:
            return v
        return F.exp(v)

    return each(one)(x)


@programs.add((C, P), (C, N), grad=0)
def condition_that_is_shared(x: Any, p: Any) -> Any:
    def one(v: Any) -> Any:
        if p > 0:
            return F.sin(v)
        return v + p

    return each(one)(x)


@programs.add((C, C), grad=(0, 1))
def and_or(x: Any, y: Any) -> Any:
    def one(a: Any, b: Any) -> Any:
        return a * b if a > 0 and b < 1 or a < -1 else a - b

    return each(one)(x, y)


@programs.add((A,))
def numbers_in_branches(x: Any) -> Any:
    def one(row: Any) -> Any:
        k = 1.0
        if row[0] > 0.7:
            k = 3.0
        return row * k

    return each(one)(x)


@programs.add((I,), grad=None)
def division_by_zero_is_not_taken(i: Any) -> Any:
    def one(k: Any) -> Any:
        if k != 0:
            return 7 // k
        return k - 1

    return each(one)(i)


# Loops.


@programs.add((C,))
def plain_while(x: Any) -> Any:
    def one(v: Any) -> Any:
        while v < 10:
            v = v * v + 1
        return v

    return each(one)(x)


@programs.add((C,))
def rounds_are_counted(x: Any) -> Any:
    def one(v: Any) -> Any:
        n = 0
        while v < 20:
            v = v * 1.5 + 1
            n += 1
        return v, n

    return each(one)(x)


@programs.add((C, X), grad=(0, 1))
def while_with_a_shared_operand(x: Any, y: Any) -> Any:
    def one(v: Any) -> Any:
        state = y * v
        while F.sum(state * state) < 50:
            state = state * 1.5 + y
        return state

    return each(one)(x)


@programs.add((C, I), grad=0)
def for_over_a_range_that_differs(x: Any, i: Any) -> Any:
    def one(v: Any, n: Any) -> Any:
        for k in range(n):
            v = v * 1.5 + k
        return v

    return each(one)(x, i)


@programs.add((C, np.int32(3)), grad=0)
def for_over_a_shared_range(x: Any, n: Any) -> Any:
    def one(v: Any) -> Any:
        for k in range(n):
            v = F.sin(v) + k
        return v

    return each(one)(x)


@programs.add((C,))
def plain_break(x: Any) -> Any:
    def one(v: Any) -> Any:
        for _ in range(6):
            if v > 3:
                break
            v = v + 0.7
        return v

    return each(one)(x)


@programs.add((C,))
def break_and_continue_in_while(x: Any) -> Any:
    def one(v: Any) -> Any:
        n = 0
        total = v * 0
        while n < 8:
            n += 1
            if v * n < 0.4:
                continue
            total = total + v * n
            if total > 4:
                break
        return total

    return each(one)(x)


@programs.add((C,))
def return_from_a_loop(x: Any) -> Any:
    def one(v: Any) -> Any:
        n = 0
        while n < 5:
            v = v * 1.5
            if v > 2:
                return v * 10
            n += 1
        return v

    return each(one)(x)


@programs.add((C,))
def loops_in_loops(x: Any) -> Any:
    def one(v: Any) -> Any:
        while v < 8:
            w = v * 0 + 1
            while w < 2:
                w = w * 1.5
            v = v + w
        return v

    return each(one)(x)


@programs.add((C,))
def loop_in_a_branch(x: Any) -> Any:
    def one(v: Any) -> Any:
        if v > 0:
            while v < 5:
                v = v * 2
        return v

    return each(one)(x)


@programs.add((C,))
def branch_in_a_loop(x: Any) -> Any:
    def one(v: Any) -> Any:
        while v < 4.7:
            if v < 0:
                v = -v
            else:
                v = v * v + 1
        return v

    return each(one)(x)


@programs.add((np.array([3, 0, 5], np.int32),), grad=None)
def loop_that_would_not_end_on_the_other_side(i: Any) -> Any:
    def one(k: Any) -> Any:
        n = 0
        if k > 0:
            while k != 0:
                k = k - 1
                n += 2
        return n + k

    return each(one)(i)


@programs.add((A,))
def inside_a_loop(x: Any) -> Any:
    n = 0
    while F.sum(x * x) < 200 and n < 4:
        x = each(lambda row: row * 1.5 - F.mean(row))(x)
        n += 1
    return x


@programs.add((A, P), (A, N), grad=0)
def inside_a_branch(x: Any, p: Any) -> Any:
    if p > 0:
        return each(lambda row: F.sin(row))(x)
    return each(lambda row: row * p)(x)


@programs.add((A,))
def loop_over_rows_of_an_example(x: Any) -> Any:
    def one(row: Any) -> Any:
        total = row[0] * 0
        for v in row:
            if v > 0:
                total = total + v * v
        return total

    return each(one)(x)


@programs.add((C, C + 0.3), grad=(0, 1))
def nested_with_conditions(x: Any, y: Any) -> Any:
    def inner(a: Any, b: Any) -> Any:
        while a < b:
            a = a + 0.5 + a * a
        if a > 1:
            return a * b
        return a - b

    return each(lambda a: each(lambda b: inner(a, b))(y))(x)


test_programs = programs.test()
