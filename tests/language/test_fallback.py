"""Functions that go back to Python on the way: values asked for, and libraries."""

from __future__ import annotations

import functools
import json
import math
import random
import time
from collections import Counter, defaultdict, namedtuple
from typing import Any

import numpy as np
import scipy.special

import mycel as ms
from tests.language.harness import F, N, P, Programs, X, Y

programs = Programs()
add = functools.partial(programs.add, breaks=True)
Pair = namedtuple("Pair", "first second")
M = np.arange(6, dtype=np.float32).reshape(2, 3) / 4


def array_of(x: Any) -> Any:
    """The NumPy array of a tensor; an array itself."""
    return x.asnumpy() if isinstance(x, ms.Tensor) else np.asarray(x)


def number_of(x: Any) -> float:
    return float(x)


def constant(x: Any, like: Any) -> Any:
    """An array as whatever the program computes with."""
    return ms.Tensor(np.asarray(x, np.float32)) if isinstance(like, ms.Tensor) else np.asarray(x, np.float64)


# Values of tensors.


@add((X,), (Y,), grad=None)
def item_scales(x):
    return x * x.sum().item()


@add((P,), (N,))
def float_decides(x):
    y = x * 2
    if float(y) > 0:
        return y * y
    return y * 3


@add((np.float32(3.7),))
def int_repeats(x):
    y = x
    for _ in range(int(x)):
        y = y * x
    return y


@add((X,))
def bool_decides(x):
    flag = bool(x.sum() > 0)
    return x * 2 if flag else x / 2


@add((X,), grad=None)
def array_and_back(x):
    y = x * 2 + 1
    z = np.sort(array_of(y))
    return constant(z, x) + y


@add((X,), grad=None)
def tolist_indexes(x):
    values = (x * 4).tolist()
    return x + max(values) + values[0]


@add((X,), grad=None)
def format_of_a_value(x):
    text = f"{number_of(x.sum()):.3f}"
    return x * len(text), text


@add((X, Y))
def value_in_the_middle(x, y):
    a = F.sin(x) * y
    scale = 2.0 if number_of(a.sum()) > 100 else 3.0
    return F.exp(a) * scale


@add((X, Y))
def several_values(x, y):
    if float(x.sum()) > 0:
        x = x * 2
    if float(y.sum()) > 0:
        x = x + y
    if float((x * y).sum()) > 0:
        return x - y
    return x * y


@add((X,))
def value_of_a_constant_condition(x):
    y = x * 0
    n = 0
    while float(y.sum()) < 10 and n < 50:
        y = y + x * x
        n += 1
    return y * n


@add((X,), grad=None)
def values_as_dictionary_keys(x):
    table = {round(float(v)): float(v) for v in x.tolist()}
    return x * sum(table.values()), sorted(table)


@add((np.array([2, 0, 1]), X), grad=1)
def values_as_python_indices(i, x):
    order = i.tolist()
    return [x[k] * (p + 1) for p, k in enumerate(order)]


# Libraries.


@add((X,), grad=None)
def numpy_in_the_middle(x):
    a = array_of(x + 1)
    q, r = np.linalg.qr(np.outer(a, a) + np.eye(3))
    return constant(np.abs(q @ r).sum(), x) * x


@add((X,), grad=None)
def scipy_in_the_middle(x):
    a = array_of(x * x)
    return constant(scipy.special.gammaln(a + 1), x) + x


@add((P,), grad=None)
def math_of_a_value(x):
    return x * math.factorial(int(x)) + math.floor(float(x))


@add((X,), grad=None)
def json_of_values(x):
    text = json.dumps({"v": [round(float(v), 2) for v in x.tolist()]})
    return x + sum(json.loads(text)["v"])


@add((X,), grad=None)
def counters_of_values(x):
    signs = Counter("+" if v > 0 else "-" for v in x.tolist())
    return x * signs["+"] - signs["-"]


@add((X,), grad=None)
def numpy_functions_of_tensors(x):
    return np.cumsum(array_of(x * 2)).tolist()


@add((M,), grad=None)
def rows_by_numpy(x):
    best = int(np.argmax(array_of(x.sum(axis=1))))
    return x[best] * 2


@add((X,))
def clock_that_does_not_matter(x):
    start = time.perf_counter()
    y = F.tanh(x)
    took = time.perf_counter() - start
    return y if took >= 0 else -y


@add((X,))
def random_that_does_not_matter(x):
    k = random.random()
    return x * 2 if k < 2 else x * 3


# Loops and branches around values.


@add((X,))
def value_in_a_loop(x):
    total = x * 0
    for i in range(4):
        total = total + x * i
        if float(total.sum()) > 2:
            total = total / 2
    return total


@add((X,))
def value_in_a_tensor_branch(x):
    if x.sum() > 0:
        scale = float(x[0])
        return x * (2 if scale > 0.2 else 3)
    return x * 5


@add((P,), (np.float32(-1.3),))
def value_in_a_tensor_loop(x):
    y = x
    while y * y < 50:
        step = 1.0 if float(y) > 0 else 2.0
        y = y * 2 + step
    return y


@add((P,))
def break_after_a_value(x):
    y = x
    for i in range(10):  # noqa: B007
        y = y * 1.5
        if float(y) > 10:
            break
    else:
        y = y * 0
    return y + i


@add((P,), (N,))
def return_after_a_value(x):
    y = x
    while y < 100:
        y = y * y + 1
        if float(y) > 30:
            return y * 2
    return y


@add((np.float32(4),), grad=None)
def range_of_a_tensor_with_values(x):
    seen = []
    n = (x * 1).astype(ms.int64) if isinstance(x, ms.Tensor) else int(x)
    for i in range(n):
        seen.append(float(x) * int(i))
    return seen


@add((M,), grad=None)
def iteration_over_rows_with_values(x):
    return [float(row.sum()) * 2 for row in x]


@add((X,))
def condition_on_a_list_of_values(x):
    seen = []
    y = x
    for _ in range(3):
        y = y * 2
        seen.append(float(y.max()))
    if any(v > 10 for v in seen):
        return y * len(seen)
    return y


@add((X, Y))
def compiled_branch_between_values(x, y):
    k = 2.0 if float(x.sum()) > 0 else 1.0
    if y.sum() > 0:
        z = F.exp(x) * k
    else:
        z = x - k
    if float(z.sum()) > 0:
        z = z * 2
    return z


@add((P,))
def compiled_loop_between_values(x):
    k = 1.0 if float(x) > 0 else 2.0
    y = x
    while y < 40:
        y = y * 2 + k
    return y * (1 if float(y) > 0 else 2)


@add((X,))
def break_of_a_tensor_before_a_value(x):
    for k, w in zip([1, 2, 3, 4, 5], "abcde"):
        x = x * 1.5 + k
        if x.sum() > 100:
            break
        if w == "d":
            x = x + float(x.sum()) * 0
    return x * k


@add((X,))
def return_of_a_tensor_before_a_value(x):
    for k in iter([1, 2, 3, 4]):
        x = x * 1.5 + k
        if x.sum() > 1000:
            return x
        if float(x.sum()) > 10:
            x = x / 2
    return x - 1


# Containers, classes and functions.


@add((X,))
def values_through_helpers(x):
    def scale(t):
        return 2.0 if float(t.sum()) > 0 else 0.5

    return x * scale(x) + x * scale(-x)


@add((X,))
def values_in_a_comprehension(x):
    return sum([x * k for k in range(3) if float(x.sum()) + k > 1.5])


@add((X,), grad=None)
def named_tuples_of_values(x):
    p = Pair(x * 2, float(x.sum()))
    return Pair(p.first + p.second, p.second)


@add((X,))
def memo_by_value(x):
    memo: Any = defaultdict(list)
    for v in x.tolist():
        memo[v > 0].append(v)
    return x * len(memo[True]) - len(memo[False])


class Accumulator:
    def __init__(self) -> None:
        self.seen: list[float] = []

    def take(self, t: Any) -> Any:
        self.seen.append(float(t.sum()))
        return t * len(self.seen)


@add((X,))
def objects_that_take_values(x):
    acc = Accumulator()
    y = acc.take(x)
    y = acc.take(y)
    return y * (1 if acc.seen[1] >= acc.seen[0] else 2)


@add((X,))
def exceptions_by_values(x):
    try:
        if float(x.sum()) > 0:
            raise ValueError("positive")
        y = x
    except ValueError as error:
        y = x * len(str(error))
    finally:
        y = y + 1
    return y


@add((X,))
def assertion_of_a_tensor(x):
    assert x.sum() > -100, "never"
    return x * 2


def generated(x: Any) -> Any:
    for v in x.tolist():
        yield v * 2


@add((X,), grad=None)
def generators_of_values(x):
    return x + sum(generated(x))


@add((X, Y), grad=(0, 1))
def lambdas_and_values(x, y):
    choose = lambda t: (lambda u: u * t) if float(t.sum()) > 0 else (lambda u: u + t)
    return choose(x)(y)


@add((np.array([3, 1, 2]),), grad=None)
def sorting_by_value(x):
    return sorted(x.tolist(), key=lambda v: -v), [int(v) for v in x]


test_program = programs.test()
