"""Writes in place and views: the same in plain Python over NumPy arrays, eagerly, compiled and
under gradients.

NumPy's basic indexing, reshape and transpose give views as the tensors here do, so that it is the
oracle of what a write changes.
"""

from __future__ import annotations

import numpy as np

import mycel as ms
from tests.language.in_place import add_

from .harness import F, Programs, X, Y

programs = Programs()
M = np.array([[0.5, -1.5, 2.0], [1.0, 3.0, -2.0]], np.float32)
S = np.array([[1.5, -0.5, 2.0], [1.0, 2.5, -2.0], [0.25, -1.0, 3.0]], np.float32)
C = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 8 - 1


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


test_program = programs.test()
