"""Functions that call themselves where a tensor decides: values, gradients, forms of results, and
how deep they may go.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.foundation.errors import CompileError
from tests.language.harness import F, N, P, Programs, X, same

programs = Programs()
I5, I0, I7, I27, I48, I18 = (np.int64(i) for i in (5, 0, 7, 27, 48, 18))


def factorial(n):
    return 1 if n <= 0 else n * factorial(n - 1)


programs.add((I5,), (I0,), grad=None)(factorial)


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


programs.add((I7,), (I0,), grad=None)(fibonacci)


def divisor(a, b):
    return a if b == 0 else divisor(b, a % b)


programs.add((I48, I18), (I18, I0), grad=None)(divisor)


def collatz(n):
    if n == 1:
        return 0
    if n % 2 == 0:
        return 1 + collatz(n // 2)
    return 1 + collatz(3 * n + 1)


programs.add((I27,), grad=None)(collatz)


def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


programs.add((np.int64(2), np.int64(3)), grad=None)(ackermann)


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


programs.add((I7,), (I0,), grad=None)(is_even)
programs.add((I7,), grad=None)(is_odd)


def bisect(low, high, target, depth=0):
    middle = (low + high) * 0.5
    if high - low < 1e-3:
        return middle, depth
    if middle * middle < target:
        return bisect(middle, high, target, depth + 1)
    return bisect(low, middle, target, depth + 1)


programs.add((np.float32(0.0), np.float32(2.0), np.float32(2.1)), grad=(0, 1))(bisect)


def power(x, n):
    return x * 0 + 1.0 if n <= 0 else x * power(x, n - 1)


programs.add((P, I5), (N, I0), (X, I5), grad=0)(power)


def halved(x):
    """Multiply by a sine on the way down, add on the way up; every level needs the primal."""
    if F.sum(x * x) < 0.5:
        return F.sin(x)
    return halved(x * 0.5) * F.cos(x) + x


programs.add((X,), (X * 4,), grad=0)(halved)


def tree_sum(x, n):
    """Two calls of itself in one expression."""
    if n <= 0:
        return F.sin(x)
    return tree_sum(x * 0.5, n - 1) * tree_sum(x + 0.25, n - 2)


programs.add((P, I5), (X, np.int64(4)), grad=0)(tree_sum)


def loop_inside(x):
    total = x
    while total < 8.0:
        total = total * 1.5
    if total > 40.0:
        return total
    for i in range(2):
        total = total + i * x
    return loop_inside(total)


programs.add((P,), (np.float32(0.7),), grad=0)(loop_inside)


def calls_in_a_loop(x, n):
    if n <= 0:
        return F.sin(x)
    total = x * 0
    for i in range(n):
        total = total + calls_in_a_loop(x * 0.5, n - 1 - i) * 0.5
    return total


programs.add((P, np.int64(4)), grad=0)(calls_in_a_loop)


@programs.add((P, I5), (N, I0), grad=0)
def inner_function(x, n):
    scale = x * 0.5

    def step(y, k):
        if k == 0:
            return y
        return step(y * scale, k - 1)

    return step(x, n) + scale


@programs.add((P, I7), grad=0)
def mutual_inner_functions(x, n):
    def ping(y, k):
        return y if k <= 0 else pong(y * 1.1 + x, k - 1)

    def pong(y, k):
        return F.sin(y) if k <= 0 else ping(F.tanh(y), k - 2)

    return ping(x, n)


@programs.add((P, I5), grad=0)
def results_in_a_dictionary(x, n):
    def walk(y, k, names):
        if k <= 0:
            return {"value": y, "steps": 0, "names": names}
        found = walk(y * 0.5 + 0.1, k - 1, names)
        return {"value": found["value"] + y, "steps": found["steps"] + 1, "names": names}

    return walk(x, n, ("a", "b"))


class Pair(NamedTuple):
    low: Any
    high: Any


@programs.add((X, I5), grad=0)
def named_results(x, n):
    def widen(pair, k):
        if k <= 0:
            return pair
        return widen(Pair(pair.low - x, pair.high + pair.low * 0.1), k - 1)

    return widen(Pair(x, x + 1.0), n)


@programs.add((P, I5), grad=0)
def accumulator_in_a_list(x, n):
    def push(items, k):
        if k <= 0:
            return items
        return push([items[1] * 0.9, items[0] + x], k - 1)

    return push([x, x * 2], n)


@programs.add((P, I5), grad=0)
def optional_number(x, n):
    """The first call passes a Python number, later ones tensors."""

    def total(k, so_far=0):
        if k == 0:
            return so_far
        return total(k - 1, so_far + x * k)

    return total(n + 1)


@programs.add((P,), (np.float32(0.3),), grad=0)
def under_a_condition(x):
    def shrink(y):
        return y if y < 1.0 else shrink(y - 0.75)

    if x > 1.0:
        return shrink(x * 2) * x
    return x


@programs.add((P, I5), grad=0)
def inside_a_loop(x, n):
    def root(y, k):
        return y if k <= 0 else root(F.sqrt(y * y + 1.0), k - 1)

    total = x
    for i in range(n):
        total = F.sin(total) + root(total, i)
    return total


@programs.add((P, I5), grad=0)
def by_lambda(x, n):
    step = lambda y, k: y if k <= 0 else step(y * 0.9 + 0.1, k - 1)
    return step(x, n)


@programs.add((P, np.int64(3)), grad=0)
def static_depth_in_a_tensor_branch(x, n):
    """A recursion that Python's own values end, in a branch that a tensor decides."""

    def polynomial(y, coefficients):
        if not coefficients:
            return y * 0.0
        return coefficients[0] + y * polynomial(y, coefficients[1:])

    if n > 2:
        return polynomial(x, [1.0, -2.0, 0.5, 3.0])
    return x


@programs.add((P, I5), (P, I0), grad=0)
def unused_branch_of_recursion(x, n):
    def f(y, k):
        if k <= 0:
            return y * y
        if y > 100.0:
            return f(y * 0.1, k - 1) + 1.0
        return f(y + 0.5, k - 1)

    return f(x, n) + f(x * 3, n)


test_programs = programs.test()


class Horner(nn.Cell):
    """A Cell whose construct calls itself, with a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor([0.5, -0.25], ms.float32), name="w")

    def construct(self, x: Any, n: Any) -> Any:
        if n <= 0:
            return x
        return self.construct(x * self.w, n - 1) + self.w


def test_a_cell_calls_itself_and_its_parameter_gets_a_gradient() -> None:
    x, n = ms.Tensor([1.0, 2.0], ms.float32), ms.Tensor(3, ms.int64)
    w = np.array([0.5, -0.25])
    expected = np.array([1.0, 2.0]) * w**3 + 3 * w
    cell = Horner()
    same(ms.jit(cell)(x, n), expected, 1e-6, "compiled")
    assert not ms.explain(cell, x, n).breaks
    gradient = ms.jit(ms.grad(lambda x, n: ms.ops.sum(cell(x, n)), None, cell.trainable_params()))
    same(gradient(x, n), (np.array([1.0, 2.0]) * 3 * w**2 + 3,), 1e-5, "the gradient")


def test_a_class_method_and_a_callable_object_call_themselves() -> None:
    class Counter:
        def __call__(self, x: Any) -> Any:
            return x if x < 1.0 else self(x * 0.5) + 1.0

        @staticmethod
        def down(x: Any) -> Any:
            return x if x < 0.5 else Counter.down(x - 0.5) * 2.0

        @classmethod
        def up(cls, x: Any) -> Any:
            return x if x > 3.0 else cls.up(x + 1.5)

    counter = Counter()
    program = lambda x: (counter(x), counter.down(x), Counter.up(x))
    expected = tuple(np.asarray(v) for v in program(np.float64(5.25)))
    jitted = ms.jit(program)
    same(jitted(ms.Tensor(5.25)), expected, 1e-6, "compiled")
    assert not ms.explain(jitted, ms.Tensor(5.25)).breaks


def test_second_derivatives_go_through_recursions() -> None:
    cube = lambda x: power(x, ms.Tensor(3, ms.int64))
    x = ms.Tensor(1.5, ms.float32)
    first, second = ms.grad(cube), ms.grad(ms.grad(cube))
    same(ms.jit(first)(x), np.float64(3 * 1.5**2), 1e-5, "the first derivative")
    same(ms.jit(second)(x), np.float64(6 * 1.5), 1e-5, "the second derivative")


def sums(x: Any, n: Any) -> Any:
    return x if n <= 0 else sums(x * 0.9999 + 0.001, n - 1)


def test_ten_thousand_levels() -> None:
    x, n = ms.Tensor(1.0, ms.float64), ms.Tensor(10_000, ms.int64)
    power_of = 0.9999**10_000
    same(ms.jit(sums)(x, n), np.float64(power_of + 10.0 * (1 - power_of)), 1e-6, "compiled")
    same(ms.jit(ms.grad(sums))(x, n), np.float64(power_of), 1e-6, "the gradient")


def test_a_million_levels_are_an_error_that_says_so() -> None:
    jitted = ms.jit(sums)
    with pytest.raises(RecursionError, match="levels deep"):
        jitted(ms.Tensor(1.0, ms.float64), ms.Tensor(1_000_000, ms.int64))
    same(jitted(ms.Tensor(1.0, ms.float64), ms.Tensor(0, ms.int64)), np.float64(1.0), 1e-9, "the next call")


def test_a_recursion_that_never_ends_is_named() -> None:
    def endless(x: Any) -> Any:
        if x > 0:
            return endless(x + 1)
        return endless(x - 1)

    with pytest.raises(CompileError, match="calls itself on every path"):
        ms.jit(endless, fullgraph=True)(ms.Tensor(1.0))


def test_results_of_different_shapes_are_an_error() -> None:
    def grows(x: Any, n: Any) -> Any:
        if n <= 0:
            return x
        return ms.ops.concat((grows(x, n - 1), x))

    with pytest.raises(CompileError, match="one shape"):
        ms.jit(grows, fullgraph=True)(ms.Tensor([1.0]), ms.Tensor(3, ms.int64))


def test_the_graph_does_not_grow_with_the_depth() -> None:
    jitted = ms.jit(sums)
    for n in (1, 50, 5000):
        jitted(ms.Tensor(1.0), ms.Tensor(n, ms.int64))
    assert len(jitted.versions) == 1
    (graph,) = ms.explain(jitted).graphs
    assert len(graph.nodes) < 40


def test_vmap_calls_a_recursion_for_each_example() -> None:
    x = np.array([0.5, 1.0, 2.0])
    n = np.array([0, 3, 5])
    found = ms.vmap(power)(ms.Tensor(x, ms.float32), ms.Tensor(n, ms.int64))
    same(found, x**n, 1e-5, "vmap")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="each call takes a piece of the stack of the thread")
def test_three_thousand_levels_that_python_values_decide() -> None:
    def down(x: Any, n: int) -> Any:
        return x if n == 0 else down(x + 1.0, n - 1)

    assert ms.jit(down, fullgraph=True)(ms.Tensor(0.0), 3000).item() == 3000
