"""Writes in place and views in branches, loops and attributes: the same in plain Python over NumPy
arrays, eagerly, compiled and under gradients.
"""

from __future__ import annotations

import sys

import numpy as np

from tests.language.in_place import add_

from .harness import F, Programs, X, Y

programs = Programs()
M = np.array([[0.5, -1.5, 2.0], [1.0, 3.0, -2.0]], np.float32)
S = np.array([[1.5, -0.5, 2.0], [1.0, 2.5, -2.0], [0.25, -1.0, 3.0]], np.float32)


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
