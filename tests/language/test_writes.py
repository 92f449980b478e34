"""Writes in place and views: the same in plain Python over NumPy arrays, eagerly, compiled and under gradients.

NumPy's basic indexing, reshape and transpose give views as the tensors here do, so that it is the oracle of what a write changes.
"""

from __future__ import annotations

import sys

import numpy as np

import mycel as ms

from .harness import F, Programs, X, Y

programs = Programs()
M = np.array([[0.5, -1.5, 2.0], [1.0, 3.0, -2.0]], np.float32)
S = np.array([[1.5, -0.5, 2.0], [1.0, 2.5, -2.0], [0.25, -1.0, 3.0]], np.float32)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8 - 1


def add_(x, value):
    """Add in place."""
    if isinstance(x, ms.Tensor):
        x.add_(value)
    else:
        x += value


def mul_(x, value):
    if isinstance(x, ms.Tensor):
        x.mul_(value)
    else:
        x *= value


def fill_(x, value):
    if isinstance(x, ms.Tensor):
        x.fill_(value)
    else:
        x[...] = value


def copy_(x, value):
    if isinstance(x, ms.Tensor):
        x.copy_(value)
    else:
        x[...] = value


# Views.


@programs.add((M, Y), grad=(0, 1))
def row_written(x, y):
    row = x[0]
    row[1] = y[2]
    return x * 2, row * x[1]


@programs.add((M, Y), grad=(0, 1))
def base_written(x, y):
    row = x[0]
    x[0] = y * 3
    return x * x, row * y


@programs.add((M, Y), grad=(0, 1))
def column_written(x, y):
    column = x[:, 1]
    column[:] = y[:2] * y[1:]
    return x * column[0]


@programs.add((C, X), grad=(0, 1))
def view_of_view(x, y):
    part = x[1]
    line = part[1:, ::2]
    line[0] = y[:2]
    part[2, 2] = y[2] * 2
    return x * x, part * 1, line * 3


@programs.add((C,))
def disjoint_views(x):
    a, b = x[0], x[1]
    a[0] = b[1] * 2
    b[2] = a[0] * a[1]
    return x * x


@programs.add((M, Y), grad=(0, 1))
def overlapping_views(x, y):
    a, b = x[:, :2], x[:, 1:]
    a[0, 1] = y[0] * y[1]
    b[1] = a[0] * 2
    return a * 1, b * 1, x * x


@programs.add((M,))
def reshape_written(x):
    line = x.reshape(6)
    line[4] = line[0] * line[1]
    x[0, 2] = x[1, 1] * 2
    return line * line


@programs.add((M, Y), grad=(0, 1))
def transpose_written(x, y):
    t = x.T
    t[1] = y[:2] * 2
    return x * x, t * 3


@programs.add((C,))
def swapped_axes(x):
    t = x.swapaxes(0, 2)
    t[1, :, 0] = t[0, :, 1] * 2
    return x * x


@programs.add((C,))
def permuted(x):
    t = F.transpose(x, (2, 0, 1))
    t[0] = t[1] * t[2]
    t[3, 1] = 4.0
    return x * x, t * 1


@programs.add((S,))
def reshape_of_a_transpose_copies(x):
    line = x.T.reshape(9)
    line[1] = 9.0
    return x * x, line * line


@programs.add((C,))
def reshape_of_leading_rows_is_a_view(x):
    line = x[1:].reshape(12)
    line[3] = line[4] * line[5]
    return x * x


@programs.add((C,))
def reshape_of_a_slice_copies(x):
    line = x[:, 1:, :2].reshape(8)
    line[0] = 100.0
    return x * x, line * 1


@programs.add((C,))
def new_axes(x):
    v = x[:, None, 1]
    v[0, 0, 2] = v[1, 0, 3] * 2
    w = F.expand_dims(x, 0)
    w[0, 1, 0] = w[0, 0, 1] * 3
    return x * x


@programs.add((M.reshape(1, 2, 3),))
def squeezed(x):
    v = F.squeeze(x)
    v[1] = v[0] * 2
    return x * x


@programs.add((X,))
def reversed_view(x):
    v = x[::-1]
    v[0] = v[1] * v[2]
    return x * x, v * 1


@programs.add((np.arange(10, dtype=np.float32) / 4,))
def strided_view(x):
    v = x[1:8:3]
    v[1:] = v[:2] * 2
    x[7] = x[7] + x[1]
    return x * x, v * 1


@programs.add((S,))
def diagonal_view(x):
    d = F.diagonal(x)
    y = x * 1
    y[0, 0] = d[1] * 2
    return y * y, d * 1


@programs.add((C,))
def parts_of_split(x):
    a, b, c = F.split(x, (1, 1, 1), 1) if isinstance(x, ms.Tensor) else np.split(x, 3, 1)
    a[:] = b * c
    return x * x


@programs.add((M,))
def rows_by_iteration(x):
    y = x * 1
    for row in y:
        row[0] = row[1] * row[2]
    return y * y


@programs.add((M,))
def broadcast_follows_its_base(x):
    wide = F.broadcast_to(x[0], (2, 3))
    x[0, 1] = x[1, 1] * 2
    return wide * x


@programs.add((M,))
def whole_slices(x):
    a, b = x[:], x[...]
    a[0, 0] = b[1, 1] * 2
    return x * x, b * 1


@programs.add((M, X), grad=(0, 1))
def advanced_indices_copy(x, y):
    picked = x[[1, 0]]
    picked[0] = y
    return x * x, picked * picked


@programs.add((M,))
def copies_are_their_own(x):
    y = x.copy()
    v = y[0]
    v[1] = x[1, 1] * 2
    return x * x, y * y


@programs.add((M,))
def arithmetic_makes_new_tensors(x):
    before = x
    x = x + 1
    v = x[0]
    v[0] = before[0, 1] * 2
    return before * before, x * x


@programs.add((X, Y), grad=(0, 1))
def element_augmented(x, y):
    x[1] += y[0] * 2
    x[:2] *= y[1:]
    v = x[1:]
    v[0] -= 0.5
    return x * x


# Methods that write.


@programs.add((X, Y), grad=(0, 1))
def methods_in_place(x, y):
    z = x * 1
    add_(z, y * y)
    mul_(z, x)
    return z * y


@programs.add((M, Y), grad=(0, 1))
def methods_through_views(x, y):
    z = x * 1
    add_(z[0], y)
    mul_(z.T[1], 3.0)
    fill_(z[1, 1:], 0.25)
    return z * z


@programs.add((M, Y), grad=(0, 1))
def copied_into_a_view(x, y):
    z = x * 2
    copy_(z[1], y * y)
    return z * x


@programs.add((M,))
def a_write_of_itself(x):
    x[0] = x[0] * x[1]
    x[1] = x[0]
    x[0, 1:] = x[1, :2]
    return x * x


# Across functions.


def set_first(v, value):
    v[0] = value
    return v


@programs.add((M, Y), grad=(0, 1))
def written_by_a_callee(x, y):
    set_first(x[1], y[0] * y[1])
    same = set_first(x, y * 2)
    return same * x


@programs.add((M,))
def written_by_a_closure(x):
    v = x[0]

    def scale(k):
        v[k] = v[k] * x[1, k]

    scale(0)
    scale(2)
    return x * x


@programs.add((M,))
def views_in_containers(x):
    parts = {"rows": [x[0], x[1]], "whole": x.reshape(6)}
    parts["rows"][0][1] = parts["whole"][5] * 2
    parts["whole"][3] = parts["rows"][0][1]
    return [p * p for p in parts["rows"]], parts["whole"] * 1


@programs.add((M,))
def results_that_share(x):
    y = x * 2
    return y, y[0], y.T


@programs.add((M,))
def several_views_of_a_hidden_base(x):
    y = x * 2
    y[0, 0] = 1.5
    return y[0], y[:, 0], y[1]


# Branches.


@programs.add((M,), (-M,))
def view_written_in_a_branch(x):
    y = x * 1
    v = y[0]
    if F.sum(x) > 0:
        v[1] = v[0] * 2
    else:
        y[0] = v * v
    return y * y, v * 1


@programs.add((M,), (-M,))
def view_made_in_a_branch(x):
    y = x * 1
    if F.sum(x) > 0:
        v = y[1]
        v[:] = v * v
        w = v[1:]
        w[0] = y[0, 0]
    return y * y


@programs.add((M,), (-M,))
def early_return_after_a_write(x):
    y = x * 1
    v = y.reshape(6)
    if F.sum(x) > 0:
        v[2] = v[3] * v[4]
        return y * y
    y[1] = y[0] * 2
    return v.reshape(2, 3) * 3


@programs.add((M,), (-M,))
def nested_branches(x):
    y = x * 1
    v = y[:, 1]
    if F.sum(x) > 0:
        v[0] = v[1] * 2
        if v[0] > 1:
            y[1] = y[0] * v[0]
        else:
            v[1] = 5.0
    add_(v, 1.0)
    return y * v[0]


@programs.add((X,), (-X,))
def replaced_in_a_branch_and_written_after(x):
    y = x * 2
    if F.sum(x) > 0:
        y = y + 1
    y[0] = 7.0
    return y * x


@programs.add((X,), (-X,))
def conditional_expression_written(x):
    y = x * 2 if F.sum(x) > 0 else x * 3
    y[1] = y[0] * y[2]
    return y * x


@programs.add((X,), (-X,), breaks=True)
def views_of_two_bases(x):
    y, z = x * 1, x * 2
    if F.sum(x) > 0:
        v = y[:2]
    else:
        v = z[1:]
    v[0] = v[1] * 7
    return y * y, z * z, v * 1


@programs.add((X,), (-X,), breaks=True)
def either_of_two_names(x):
    y = x * 1
    z = y
    if F.sum(x) > 0:
        y = y + 1
    y[0] = z[1] * 2
    return y * y, z * z


@programs.add((X,), (-X,), breaks=True)
def base_written_after_a_choice(x):
    y = x * 1
    z = y if F.sum(x) > 0 else y * 2
    y[0] = 7.0
    return y * y, z * z


@programs.add((X,), (-X,), breaks=True)
def base_and_view_of_each_branch(x):
    if F.sum(x) > 0:
        y = x * 1
        v = y[:2]
    else:
        y = x * 3
        v = y[1:]
    y[1] = v[0] * 2
    return y * y, v * v


@programs.add((X,), (-X,))
def choices_are_read_freely(x):
    y = x * 1
    z = y if F.sum(x) > 0 else y * 2
    w = y[:2] if F.sum(x) > 2 else z[1:]
    return z * z, w * w, y * 1


# Loops.


@programs.add((X,))
def view_written_in_a_loop(x):
    y = x * 1
    v = y[:2]
    total = F.sum(x) * 0
    while total < 5:
        v[0] = v[0] + 1
        total = total + y[0]
    return y * y, v * 1, total


@programs.add((X,))
def base_written_in_a_loop(x):
    y = x * 1
    v = y[1:]
    n = F.sum(x) * 0
    while n < 3:
        y[1] = y[1] * 0.5 + v[1]
        n = n + 1
    return y * y, v * v


@programs.add((X, Y), grad=(0, 1))
def view_made_in_a_loop(x, y):
    z = x * 1
    n = F.sum(x) * 0
    while n < 3:
        part = z[1:]
        add_(part, y[:2] * part)
        n = n + 1
    return z * z


@programs.add((S, np.int64(3)))
def rows_by_a_tensor(x, n):
    y = x * 1
    i = n * 0
    while i < n:
        row = y[i]
        row[1] = row[0] * row[2]
        i = i + 1
    return y * y


@programs.add((np.arange(40, dtype=np.float32).reshape(20, 2) / 16,))
def many_rows(x):
    y = x * 1
    for row in y:
        row[0] = row[0] * row[1]
    return y * y


@programs.add((X,))
def loop_in_a_branch_in_a_loop(x):
    y = x * 1
    v = y[::2]
    n = F.sum(x) * 0
    while n < 4:
        if v[0] > 0.7:
            k = n * 0
            while k < 2:
                v[1] = v[1] * 0.5 + y[0]
                k = k + 1
        else:
            y[0] = y[0] + 0.25
        n = n + 1
    return y * y, v * 1


@programs.add((X,))
def break_after_a_write(x):
    y = x * 1
    v = y[:1]
    while F.sum(y) < 20:
        v[0] = v[0] * 2 + 1
        if y[0] > 8:
            break
        y[1] = y[1] + 1
    return y * y


@programs.add((X,))
def replaced_in_a_loop_and_written_after(x):
    y = x * 1
    n = F.sum(x) * 0
    while n < 3:
        y = y * 2
        y[0] = n
        n = n + 1
    y[1] = y[0] * 3
    return y * x


@programs.add(
    (X,), breaks=sys.version_info < (3, 11)
)  # calls of Python 3.10 refer to their arguments, which so seem to be in use
def written_then_replaced_in_a_loop(x):
    y = x * 1
    n = F.sum(x) * 0
    while n < 3:
        y[0] = n + 1
        y = y * 2
        n = n + 1
    return y * x


@programs.add((X,), breaks=True)
def alias_written_in_a_loop_that_replaces(x):
    y = x * 1
    z = y
    n = F.sum(x) * 0
    while n < 3:
        z[0] = z[0] + n
        y = y * 2
        n = n + 1
    return y * y, z * z


@programs.add((M,), breaks=True)
def a_view_that_a_loop_picks(x):
    y = x * 1
    row = y[0]
    n = F.sum(x) * 0
    while n < 3:
        n = n + 1
        row = y[1]
    row[0] = 9.0
    return y * y, row * 1


@programs.add((M,))
def swapped_in_a_loop(x):
    a, b = x * 1, x * 2
    n = F.sum(x) * 0
    while n < 3:
        a, b = b, a
        n = n + 1
    return a * x, b * 3


@programs.add((M,))
def for_over_a_python_range(x):
    y = x * 1
    t = y.T
    for i in range(3):
        t[i] = t[i] * (i + 1)
        if t[i, 0] > 1:
            y[1, i] = y[0, i]
    return y * y


@programs.add((M,), breaks=True, grad=None)
def values_on_the_way(x):
    y = x * 1
    v = y[0]
    v[0] = float(y[1, 0]) * 2
    w = y.reshape(6)
    if float(v[0]) > 1:
        w[4] = float(v[0])
    y[0, 1] = float(w[4]) + 1
    return y * 1, v * 1, w * 1


# Attributes.


class Holder:
    def __init__(self, tensor):
        self.whole = tensor
        self.part = tensor[0]


@programs.add((M,))
def attributes_that_share(x):
    h = Holder(x * 1)
    h.part[1] = h.whole[1, 1] * 2
    h.whole[0] = h.part * h.part
    return h.whole * 1, h.part * 2


@programs.add((M,), (-M,))
def attributes_written_in_branches(x):
    h = Holder(x * 1)
    if F.sum(x) > 0:
        h.part[0] = 3.0
    else:
        h.whole[0, 1] = h.part[0] * 2
    return h.whole * h.whole, h.part * 1


test_program = programs.test()
