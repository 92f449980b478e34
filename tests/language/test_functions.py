"""Functions: how they are defined, bound, chosen and called in compiled code."""

from __future__ import annotations

import functools
import linecache
import math
import operator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.foundation.errors import CompileError
from tests.language.harness import F, N, P, Programs, X, Y, same

programs = Programs()
I0, I1, I2 = (np.int64(i) for i in range(3))


@programs.add((X,))
def closure_over_an_argument(x):
    def scaled(k):
        return x * k

    return scaled(2.0) + scaled(0.5)


@programs.add((X,))
def nonlocal_counter(x):
    calls = 0

    def step(v):
        nonlocal calls
        calls += 1
        return F.sin(v) * calls

    return step(x) + step(x) + step(x), calls


@programs.add((P, X), (N, X), grad=(0, 1))
def nonlocal_in_a_tensor_branch(p, x):
    total = x

    def add(v):
        nonlocal total
        total = total + v

    if p > 0:
        add(x * p)
        add(p)
    else:
        add(p * 2)
    return total


@programs.add((X, Y), grad=(0, 1))
def lambdas_on_one_line(x, y):
    f, g, h = (lambda a: a * 2), (lambda a: a + y), lambda a, b=3.0: a - b
    return f(x) + g(x) * h(y) + h(x, b=1.0)


@programs.add((X,))
def lambdas_in_a_comprehension(x):
    steps = [lambda a, k=k: F.sin(a) * k for k in range(3)]
    return sum([s(x) for s in steps[1:]], steps[0](x))


@programs.add((X,))
def late_binding(x):
    steps = [lambda a: a * k for k in range(3)]  # noqa: B023
    return steps[0](x) + steps[1](x)


@programs.add((X,))
def immediately_called(x):
    return (lambda a, b: a * b)(x, x + 1.0)


@programs.add((X, Y), grad=(0, 1))
def keyword_only(x, y):
    def mix(a, *, weight=0.25, bias):
        return a * weight + bias

    return mix(x, bias=y) + mix(y, weight=2.0, bias=x)


@programs.add((X, Y), grad=(0, 1))
def positional_only(x, y):
    def mix(a, b, /, c=1.0):
        return a * c - b

    return mix(x, y) + mix(y, x, c=0.5)


@programs.add((X, Y), grad=(0, 1))
def variadic(x, y):
    def total(first, *rest, scale=1.0, **named):
        result = first
        for r in rest:
            result = result + r * scale
        for name, value in named.items():
            result = result + value * len(name)
        return result

    return total(x) + total(x, y, x, scale=0.5) + total(x, y, extra=y, ab=x)


@programs.add((X, Y), grad=(0, 1))
def spread_arguments(x, y):
    def mix(a, b, c=1.0, d=0.0):
        return a * b + c - d

    pair, options = (x, y), {"c": x, "d": y}
    return mix(*pair) + mix(*pair, **options) + mix(x, *[y], **{"d": 1.0})


@programs.add((X,))
def defaults_are_evaluated_once(x):
    scale = 2.0

    def f(a, s=scale, extra=x):
        return a * s + extra

    scale = 5.0
    return f(x) * scale


@programs.add((X,))
def nested_definitions(x):
    def outer(a):
        def middle(b):
            def inner(c):
                return a + b * c

            return inner(a) + inner(x)

        return middle(a * 2.0)

    return outer(x)


def doubled(fn):
    @functools.wraps(fn)
    def run(*args, **kwargs):
        return fn(*args, **kwargs) * 2.0

    return run


def scaled_by(k):
    def decorate(fn):
        def run(x):
            return fn(x) * k

        return run

    return decorate


@doubled
@scaled_by(0.5)
def decorated(x):
    return F.sin(x)


@programs.add((X,))
def calls_a_decorated_function(x):
    return decorated(x) + 1.0


@programs.add((X,))
def decorates_inside(x):
    @scaled_by(3.0)
    @doubled
    def f(a):
        return F.cos(a)

    return f(x)


@programs.add((X, Y), grad=(0, 1))
def partial_functions(x, y):
    def mix(a, b, c):
        return a * b + c

    f = functools.partial(mix, x, c=y)
    g = functools.partial(f, c=1.0)
    return f(y) + g(x) + functools.partial(mix)(x, y, x)


@programs.add((X, Y), grad=(0, 1))
def reduces(x, y):
    parts = [x, y, x * 2.0]
    a = functools.reduce(lambda s, v: s * 0.5 + v, parts)
    b = functools.reduce(lambda s, v: s + F.sin(v), parts, y)
    return a + b + functools.reduce(operator.add, parts)


@functools.cache
def binomial(n, k):
    return 1 if k in (0, n) else binomial(n - 1, k - 1) + binomial(n - 1, k)


@programs.add((X,))
def cached_function_of_numbers(x):
    return x * binomial(6, 3) + binomial(4, 2)


class Affine:
    """Callable, with methods of every kind."""

    rate = 0.5

    def __init__(self, scale, shift):
        self.scale, self.shift = scale, shift

    def __call__(self, x):
        return self.apply(x) * self.rate

    def apply(self, x):
        return self.stretch(x, self.scale) + self.shift

    @staticmethod
    def stretch(x, k):
        return x * k

    @classmethod
    def identity(cls):
        return cls(1.0, 0.0)

    @property
    def doubled(self):
        return Affine(self.scale * 2.0, self.shift * 2.0)


SHARED = Affine(1.5, -0.5)


@programs.add((X,))
def callable_object_from_outside(x):
    return SHARED(x) + SHARED.apply(x)


@programs.add((X, Y), grad=(0, 1))
def callable_object_made_inside(x, y):
    f = Affine(y, x)
    return f(x) + f.doubled(y) + Affine.identity()(x) + Affine.stretch(x, 3.0) + type(f).identity().apply(y)


@programs.add((X,))
def bound_methods_as_values(x):
    f, g = SHARED.apply, Affine(0.5, 1.0).apply
    return f(g(x)) + sum([m(x) for m in (f, g)])


class Base:
    def f(self, x):
        return x + 1.0

    def run(self, x):
        return self.f(x) * 2.0


class Derived(Base):
    def f(self, x):
        return super().f(x) * 3.0


@programs.add((X,))
def overridden_method_and_super(x):
    return Derived().run(x) + Base.f(Derived(), x)


@programs.add((P,), (N,))
def chosen_by_a_tensor(p):
    f = F.sin if p > 0 else F.cos
    return f(p) * 2.0


@programs.add((P, X), (N, X), grad=(0, 1))
def chosen_closures(p, x):
    def grow(v):
        return v * p

    def shrink(v):
        return v / (p * p + 1.0)

    f = grow if p > 1.0 else shrink
    g = (lambda v: v + 1.0) if p < 0 else grow
    return f(x) + g(f(x))


@programs.add((X, I0), (X, I1), (X, I2), grad=0)
def from_a_list_by_a_tensor(x, i):
    steps = [F.sin, lambda v: v * v, SHARED.apply]
    return steps[i](x) + 1.0


@programs.add((X, I0), (X, I1), grad=0)
def from_a_dict_by_a_number(x, i):
    table = {"sin": F.sin, "square": lambda v: v * v}
    total = x
    for name in table:
        total = total + table[name](x) * (i + 1)
    return total


@programs.add((P, I0), (P, I2), grad=0)
def chosen_in_a_loop(p, n):
    total = p
    steps = (F.sin, F.tanh, F.cos)
    for i in range(n + 2):
        total = steps[i % 3](total) + p
    return total


@programs.add((X,))
def functions_as_arguments(x):
    def twice(f, v):
        return f(f(v))

    def compose(*fs):
        def run(v):
            for f in fs:
                v = f(v)
            return v

        return run

    return twice(F.sin, x) + compose(F.cos, lambda v: v * 2.0, functools.partial(twice, F.tanh))(x)


@programs.add((X,))
def function_attributes(x):
    def f(v):
        return v * f.scale

    f.scale = 3.0
    return f(x)


@programs.add((X,))
def returns_from_several_places(x):
    def sign(v, k):
        if k == 0:
            return v
        for i in range(k):
            if i == 2:
                return v * i
        return -v

    return sign(x, 0) + sign(x, 1) + sign(x, 5)


@programs.add((P,), (N,))
def returns_where_a_tensor_decides(p):
    def clipped(v):
        if v > 1.0:
            return v * 0.0 + 1.0
        if v < -1.0:
            return v * 0.0 - 1.0
        return v

    return clipped(p) + clipped(p * 0.1) * clipped(p + 4.0)


@programs.add((X,))
def maps_and_filters(x):
    squares = list(map(lambda v: v * v, [x, x + 1.0]))
    odd = list(filter(lambda k: k % 2, range(6)))
    pairs = [a * b for a, b in zip(squares, odd)]
    return sum(pairs[1:], pairs[0])


@programs.add((X,))
def sorted_by_a_key(x):
    names = sorted(["ccc", "a", "bb"], key=lambda s: -len(s))
    return x * len(names[0]) + max([1, 5, 3], key=lambda k: k % 5)


@programs.add((X,))
def shadows_a_builtin(x):
    def sum(a, b):
        return a * 2.0 + b

    abs = F.cos
    return sum(x, abs(x))


@programs.add((X,))
def default_that_is_a_list(x):
    def collect(v, seen=None):
        seen = [] if seen is None else seen
        seen.append(v)
        return seen

    first = collect(x)
    second = collect(x * 2.0, first)
    return second[0] * second[1], len(first)


@programs.add((X, Y), grad=(0, 1))
def generator_function(x, y):
    def steps(v, n):
        for _ in range(n):
            v = v * 0.5 + y
            yield v

    total = x
    for v in steps(x, 3):
        total = total + v
    return total


@programs.add((X,))
def functions_of_the_standard_library(x):
    return x * math.sqrt(16.0) + operator.mul(x, math.pi) + operator.itemgetter(1)([x, x * 2.0])


@programs.add((X,))
def class_defined_inside(x):
    class Twice:
        def __init__(self, v):
            self.v = v

        def __add__(self, other):
            return Twice(self.v + other.v)

        def get(self):
            return self.v * 2.0

    return (Twice(x) + Twice(x * 3.0)).get()


@programs.add((X,))
def star_arguments_through_layers(x):
    def outer(*args, **kwargs):
        return inner(*args, **kwargs)

    def inner(a, b=1.0, *, c=2.0):
        return a * b + c

    return outer(x) + outer(x, 3.0) + outer(x, c=x)


@programs.add((X,))
def recursion_by_python_values(x):
    def power(v, n):
        return v if n == 1 else v * power(v, n - 1)

    def depth(tree):
        return x * 0.0 if not tree else sum([depth(t) + 1.0 for t in tree], x)

    return power(x, 5) + depth([[], [[]]])


@programs.add((P,), (N,))
def short_circuit_calls(p):
    calls = []

    def note(v):
        calls.append(1)
        return v > 0

    result = p if True or note(p) else -p
    return result, len(calls)


@programs.add((X,))
def walrus_in_arguments(x):
    def mix(a, b):
        return a - b * 0.5

    return mix((y := x * 2.0), y + 1.0) + y


test_programs = programs.test()


# What the harness cannot say: other names for self, sources without files, errors, state.


@pytest.mark.parametrize("name", ["self", "this", "cell", "_", "me"])
def test_any_name_for_the_first_parameter_of_construct(name: str) -> None:
    text = f"def construct({name}, x):\n    return {name}.scale * x if x > 0 else {name}.other(x)\n"
    construct = _defined(text, "construct")
    kind: Any = type("Named", (nn.Cell,), {"construct": construct, "other": lambda own, x: x - own.scale})
    cell = kind()
    cell.scale = 3.0
    for value, expected in ((2.0, 6.0), (-2.0, -5.0)):
        same(ms.jit(cell)(ms.Tensor(value)), np.float64(expected), 1e-6, name)
    assert not ms.explain(cell, ms.Tensor(1.0)).breaks


_number = 0


def _defined(text: str, name: str, with_lines: bool = True) -> Any:
    """A function from a text, with its lines known as a notebook's are."""
    global _number
    _number += 1
    filename = f"<cell {_number}>"
    if with_lines:
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {"ms": ms}
    exec(compile(text, filename, "exec"), namespace)
    return namespace[name]


def test_source_from_a_notebook() -> None:
    f = _defined("def f(x):\n    while x < 10:\n        x = x * 2\n    return x\n", "f")
    assert ms.jit(f)(ms.Tensor(3.0)).item() == 12
    assert not ms.explain(f, ms.Tensor(3.0)).breaks


def test_two_cells_of_a_notebook_define_one_name() -> None:
    first = _defined("def f(x):\n    return x + 1 if x > 0 else x\n", "f")
    second = _defined("def f(x):\n    return x + 2 if x > 0 else x\n", "f")
    assert ms.jit(first)(ms.Tensor(1.0)).item() == 2
    assert ms.jit(second)(ms.Tensor(1.0)).item() == 3


def test_a_function_without_source_still_runs() -> None:
    f = _defined("def f(x):\n    return x * 3\n", "f", with_lines=False)
    assert ms.jit(lambda x: f(x) + 1)(ms.Tensor(2.0)).item() == 7
    branching = _defined("def f(x):\n    return x * 3 if x > 0 else x\n", "f", with_lines=False)
    jitted = ms.jit(lambda x: branching(x) + 1)
    assert [jitted(ms.Tensor(v)).item() for v in (2.0, -2.0, 3.0)] == [7, -1, 10]
    assert ms.explain(jitted, ms.Tensor(2.0)).breaks


def test_a_function_of_exec_calls_one_of_a_file() -> None:
    f = _defined("def f(g, x):\n    return g(x) * 2 if x > 0 else g(-x)\n", "f")
    jitted = ms.jit(functools.partial(f, lambda v: v + 1))
    assert [jitted(ms.Tensor(v)).item() for v in (1.0, -1.0)] == [4, 2]


def test_jitted_functions_call_each_other() -> None:
    @ms.jit
    def inner(x: Any, k: Any) -> Any:
        return x * k if x > 0 else -x

    @ms.jit
    def outer(x: Any) -> Any:
        return inner(x, 2) + inner(-x, 3)

    assert [outer(ms.Tensor(v)).item() for v in (1.0, -2.0)] == [3, 8]
    assert ms.grad(outer)(ms.Tensor(1.0)).item() == 3
    assert not ms.explain(outer, ms.Tensor(1.0)).breaks


def test_a_chosen_function_is_not_a_result() -> None:
    with pytest.raises(CompileError, match="return"):
        ms.jit(lambda x: F.sin if x > 0 else F.cos, fullgraph=True)(ms.Tensor(1.0))


def test_calls_that_do_not_fit_fail_as_in_python() -> None:
    def f(a: Any, b: Any = 1, *, c: Any = 2) -> Any:
        return a + b + c

    for call in (
        lambda x: f(),
        lambda x: f(x, 1, 2),
        lambda x: f(x, d=1),
        lambda x: f(x, a=x),
    ):
        with pytest.raises(TypeError, match=r"f\(\)"):
            ms.jit(call)(ms.Tensor(1.0))


def test_a_method_of_an_instance_is_compiled_in_place() -> None:
    class Model:
        def __init__(self) -> None:
            self.scale = 2.0

        @ms.jit
        def run(self, x: Any) -> Any:
            return x * self.scale if x > 0 else x

    model = Model()
    assert model.run(ms.Tensor(3.0)).item() == 6
    model.scale = 5.0
    assert model.run(ms.Tensor(3.0)).item() == 15
