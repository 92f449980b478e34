"""Programs in which tensors decide: branches, loops, and what they carry."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

import mycel as ms
from mycel import ops
from tests.frontend.programs import Accumulator, N, P, Point, X, Y, program


@program((P,), (N,))
def tensor_if(x):
    if x > 0:
        y = x * x
    else:
        y = -x + 1
    return y * 2


@program((P,), (N,))
def tensor_if_without_else(x):
    y = x * 2
    if x < 0:
        y = ops.exp(x)
    return y


@program((P,), (N,))
def early_return(x):
    if x > 0:
        return x * 2
    y = x - 1
    return y * y


@program((P,), (N,), (np.float32(0.5),))
def several_returns(x):
    if x > 2:
        return x * x
    if x > 0:
        return ops.sin(x)
    elif x > -10:
        z = x * 3
        return z
    return x - 1


@program((P,), (N,), (np.float32(0.5),))
def nested_ifs(x):
    y = x
    if x > 0:
        if x > 2:
            y = x * 5
        else:
            y = y + 1
        y = y * 2
    else:
        y = y - 1
    return y


@program((P,), (N,), (np.float32(0.5),))
def return_inside_nested(x):
    y = x * 1
    if x > 0:
        if x > 2:
            return x * 5
        y = y + 1
    y = y * 3
    return y


@program((P,), (N,))
def conditional_expression(x):
    return (x * 2 if x > 0 else ops.exp(x)) + (1 if x > 0 else 3)


@program((P, N), (N, P))
def boolean_operators(x, y):
    z = x
    if x > 0 and y > 0 or not y < -1:
        z = x + 1
    if x > 0 or y > 0:
        z = z * 2
    return z


@program((P,), (N,), (np.float32(0.0),))
def and_gives_operands(x):
    return (x and x + 1) + (x or x - 5) + (x > 0 and 2)


@program((P,), (N,))
def tensor_chain(x):
    if 0 < x < 10:
        x = x * 3
    return x


@program((P,), (N,))
def joined_containers(x):
    if x > 0:
        d = {"a": x, "b": [x * 2, 1]}
    else:
        d = {"a": x + 1, "b": [x, 2]}
    return d["a"] + d["b"][0] * d["b"][1]


@program((P,), (N,))
def mutated_in_branch(x):
    items = [x, x]
    table = {"k": x}
    if x > 0:
        items[0] = x * 10
        table["k"] = x * 7
    else:
        items[1] = x - 3
    return items[0] + items[1] * table["k"]


@program((P,), (N,))
def attribute_in_branch(x):
    box = Accumulator(x)
    if x > 0:
        box.total = x * 4
    return box.total


@program((P,), (N,))
def in_place_in_branch(x):
    y = x * 1
    if x > 0:
        y.add_(5)
    return y * y


@program((P,), (N,))
def chosen_function(x):
    f = (lambda t: t * 2) if x > 0 else (lambda t: t - 7)
    return f(x)


@program((P,), (N,))
def nonlocal_in_branch(x):
    total = x

    def add(t):
        nonlocal total
        total = total + t

    if x > 0:
        add(x * 3)
    return total


@program((np.float32(1.0),), (np.float32(30.0),))
def tensor_while(x):
    n = 0
    while x < 20:
        x = x * 2
        n += 1
    return x + n


@program((np.float32(1.0),), (np.float32(9.0),))
def while_break(x):
    while True:
        x = x * 2
        if x > 10:
            break
    return x


@program((np.float32(1.0),), (np.float32(9.0),))
def while_return(x):
    i = 0
    while i < 10:
        x = x * 2
        if x > 15:
            return x + i
        i += 1
    return -x


@program((np.float32(1.0),), (np.float32(9.0),))
def while_continue_else(x):
    n = x * 0
    while x < 20:
        x = x + 3
        if x > 10:
            continue
        n = n + 1
    else:
        n = n + 100
    return n


@program((np.int32(5), X), (np.int32(0), X))
def range_of_tensor(n, x):
    for i in range(n):
        x = x + i
    return x


@program((np.int32(9), X), (np.int32(2), X), grad=False)
def range_of_tensor_break(n, x):
    count = 0
    for i in range(1, n, 2):
        if i > 4:
            break
        if i == 3:
            continue
        x = x * 2
        count = count + i
    else:
        x = x - 50
    return x, count


@program((np.arange(40, dtype=np.float32),))
def long_rows(x):
    best = x[0]
    for v in x:
        if v > best:
            best = v
    return best


@program((np.float32(3.0),), (np.float32(40.0),))
def nested_loops(x):
    total = x * 0
    while x > 1:
        y = x
        while y > 2:
            y = y / 2
            total = total + y
        x = x - 5
    return total


@program((P,), (N,))
def static_loop_dynamic_break(x):
    y = x
    for i in range(5):
        if y > 10:
            break
        y = y * 2 + i
    else:
        y = y - 100
    return y


@program((P,), (N,))
def static_loop_dynamic_return(x):
    for i in range(4):
        x = x * 2
        if x > 9:
            return x + i
    return x


@program((P,), (N,))
def static_loop_dynamic_continue(x):
    total = x * 0
    for i in range(4):
        if x * i > 3:
            continue
        total = total + x + i
    return total


@program((np.float32(1.0),), grad=False)
def loop_carries_containers(x):
    state = {"a": x, "n": [0, x]}
    while state["a"] < 10:
        state["a"] = state["a"] + 2
        state["n"][0] = state["n"][0] + 1
        state["n"][1] = state["n"][1] * 2
    return state["a"], state["n"]


@program((np.int32(2), X), (np.int32(0), X))
def tensor_index_of_list(i, x):
    layers = [lambda t: t * 2, lambda t: t + 1, lambda t: t - x]
    return ops.sum(layers[i](x) * 1.0)


@program((X, Y))
def second_derivative(x, y):
    return ms.grad(lambda t: ops.sum(ms.grad(lambda s: ops.sum(s * s * s * y))(t)))(x)


@program((X,))
def value_and_gradient_inside(x):
    value, slope = ms.value_and_grad(lambda t: ops.sum(ops.tanh(t) * 2))(x)
    return slope * value


@dataclass
class Pair:
    a: Any
    b: Any

    def total(self):
        return self.a + self.b


@program((X, Y), grad=False)
def structured_results(x, y):
    return {"p": Point(x + 1, 2), "l": [x * y, (x, None, "s")], "o": OrderedDict(z=y)}, Pair(x, 3).total()


@program((np.float32(2.0), np.float32(3.0)), (np.float32(5.0), np.float32(3.0)))
def max_of_tensors(x, y):
    return max(x, y) * min(x, 4.0, y)


@program((P, N), (P, P))
def any_and_all(x, y):
    z = x
    if any([x > 5, y > 0]):
        z = z * 2
    if all(v > 0 for v in (x, y)):
        z = z + 1
    return z


@program((np.array([3, 1], np.int32),), grad=False)
def integers(x):
    return x // 2, x % 2, x << 1, ~x, x == 3


@program((X,))
def global_import(x):
    import math as m
    from math import pi

    return x * m.floor(pi)


@program((X,))
def conditional_default(x):
    y = None
    if x.shape[0] == 3:
        y = x
    return y * 2 if y is not None else x


@program((np.float32(1.0),), grad=False)
def numbers_are_not_changed_in_place(x):
    n = 0
    seen = 0
    while x < 10:
        seen = n
        n += 1
        before = n
        n += 1
        x = x * 2 + before * 0
    return n, seen


@program((P,), (N,))
def branch_numbers_are_not_changed_in_place(x):
    n = 1 if x > 0 else 2
    m = n
    n += 5
    return x * n * m


@program((np.float32(1.0),), grad=False)
def tensors_are_changed_in_place(x):
    y = x * 1
    z = y
    while y < 10:
        y.add_(3)
    return y, z


@program((X,))
def lists_from_operators(x):
    b = [x + 1] * 3
    b[1] = x
    c = [x] + b
    c[0] = x * 5
    return b[0] + b[1] * c[0]


@program((X,))
def numpy_values(x):
    a = np.zeros(3, np.float32)
    a[0] = 5
    a += 1
    return x * ms.Tensor(a)
