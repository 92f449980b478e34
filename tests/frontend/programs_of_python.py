"""Programs over Python's own values, containers, statements and classes."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from mycel import ops
from tests.frontend.programs import CONSTANT, OFFSETS, SCALE, TABLE, Accumulator, Point, X, Y, program


@program((X, Y))
def straight(x, y):
    a = x * y + 1
    b = -a / 2.0
    return ops.exp(b) - x**2


@program((X,))
def numbers_on_both_sides(x):
    return 2 * x - x / 4 + (1 - x) * 3 + 2.0 / (x * x + 1)


@program((X,), (Y,))
def globals_and_constants(x):
    return x * SCALE + CONSTANT + sum(OFFSETS) + TABLE["b"][1]


@program((X, 3), (X, 5))
def static_argument(x, n):
    return x * n


@program((X, Y))
def defaults_and_keywords(x, y):
    def inner(a, b=2.0, *rest, c, d=4.0, **more):
        return a * b + sum(rest) + c - d + more.get("e", 0)

    return inner(x, c=y) + inner(x, 3.0, y, y, c=1.0, d=0.5, e=y)


@program((X,))
def positional_only(x):
    def inner(a, /, b, *, c):
        return a + b * c

    return inner(x, b=2, c=3)


@program((X,))
def lambdas(x):
    f, g = lambda t: t * 2, lambda t: t + 3
    return f(g(x)) - g(f(x)) * x


@program((X,))
def closures(x):
    k = 2.0

    def scale(t):
        return t * k

    k = 3.0
    return scale(x)


@program((X,))
def nonlocal_counter(x):
    total = x * 0

    def add(t):
        nonlocal total
        total = total + t

    for i in range(3):
        add(x * i)
    return total


@program((X,))
def late_binding(x):
    fs = [lambda t: t * i for i in range(3)]  # noqa: B023
    gs = [lambda t, i=i: t * i for i in range(3)]
    return sum(f(x) for f in fs) + gs[1](x)


def decorated_with(times: int) -> Any:
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs) * times

        return wrapper

    return decorate


@decorated_with(3)
def tripled(x):
    return x + 1


@program((X,))
def decorators(x):
    @decorated_with(2)
    def inner(t):
        return t * t

    return inner(x) + tripled(x)


@program((X, Y))
def partials(x, y):
    f = functools.partial(lambda a, b, c: a * b - c, x, c=1.0)
    return f(y)


@program((X,))
def comprehensions(x):
    a = [x * i for i in range(4) if i % 2]
    b = {k: x + i for i, k in enumerate("pq")}
    c = sum(v for v in b.values())
    d = {i for i in range(3)}
    return a[0] + a[1] * 2 + c * len(d) + [p * q for p in (1, 2) for q in (x, x * 2)][3]


@program((X,))
def generators_are_lazy(x):
    first = next(x * i for i in itertools.count(2) if i % 5 == 0)
    return first


@program((X, Y))
def f_strings_and_dictionaries(x, y):
    names = {f"w{i}": v for i, v in enumerate((x, y))}
    return names["w0"] * 2 + names[f"w{1:d}"] + len(f"{x.shape}")


@program((X, Y))
def starred(x, y):
    first, *middle, last = [x, y, x * 2, y * 2]
    values = [*middle, first]
    (a, b), c = (values[0], values[1]), last
    return a + b * 2 + c * 3 + len(values)


@program((X,))
def walrus(x):
    if (n := 3) > 2 and (z := x * n) is not None:
        return z + n
    return x


@program((X,))
def augmented(x):
    y = x * 1.0
    y += 2
    y *= x
    n = 1
    n += 2
    items = [1]
    items += [2, 3]
    return y - n + items[2]


@program((X,))
def chained_comparisons(x):
    n = 3
    return x * 2 if 1 < n <= 3 else x


@program((X,))
def static_while(x):
    i = 0
    while i < 5:
        i += 1
        if i == 2:
            continue
        if i == 4:
            break
        x = x * i
    else:
        x = x * 100
    return x


@program((X,))
def for_else(x):
    for i in range(3):
        x = x + i
    else:
        x = x * 2
    return x


@program((X, Y))
def zip_and_enumerate(x, y):
    total = x * 0
    for i, (a, b) in enumerate(zip((x, y), (y, x))):
        total = total + a * b * i
    return total


@program((X,))
def map_filter_reduce(x):
    parts = list(map(lambda i: x * i, filter(lambda i: i > 1, range(4))))
    order = sorted(range(3), key=lambda i: -i)
    return functools.reduce(lambda a, b: a + b, parts) * order[0]


@program((X,))
def loop_over_a_tensor(x):
    total = 0.0
    for v in x:
        total = total + v * v
    return total


@program((X, Y))
def try_and_raise(x, y):
    def check(n):
        if n > 2:
            raise ValueError("too large", n)
        return n

    try:
        check(5)
        scale = 1.0
    except (KeyError, ValueError) as error:
        scale = error.args[1]
    else:
        scale = 7.0
    finally:
        x = x + 1
    return x * scale


@program((X,))
def return_in_finally(x):
    def inner(t):
        try:
            return t * 2
        finally:
            pass

    return inner(x)


class Scaled:
    def __init__(self, k):
        self.k = k

    def __enter__(self):
        self.k = self.k * 2
        return self

    def __exit__(self, kind, value, trace):
        self.k = 0
        return kind is ZeroDivisionError


@program((X,))
def with_statement(x):
    with Scaled(3) as s:
        y = x * s.k
        y = y + 1 / 0
    return y + s.k


@program((X,))
def match_statement(x):
    def kind(v):
        match v:
            case 0:
                return 1.0
            case [a, b, *rest] if len(rest) == 1:
                return a + b
            case {"key": k, **others}:
                return k + len(others)
            case Point(x=px, y=0):
                return px * 10
            case str() | bytes():
                return 5.0
            case _:
                return 7.0

    return x * (kind(0) + kind([1, 2, 3]) + kind({"key": 4, "o": 1}) + kind(Point(2, 0)) + kind("s") + kind(1.5))


@program((X,))
def assertions_and_delete(x):
    a = {"k": x, "l": 2}
    assert len(x.shape) == 1, "one dimension"
    del a["l"]
    b = a["k"]
    del a
    return b * 2


@program((X,))
def objects(x):
    acc = Accumulator.make(x)
    acc(x)(x * 2)
    return acc.doubled + (acc + 1)


class Child(Accumulator):
    def __init__(self, start):
        super().__init__(start)
        self.extra = 1

    def __call__(self, t):
        super().__call__(t)
        return self.total + self.extra


@program((X,))
def inheritance(x):
    return Child(x)(x)


@program((X,))
def local_class(x):
    class Local:
        k = 4

        def run(self, t):
            return t * self.k + self.shift()

        def shift(self):
            return x

    class Deeper(Local):
        def run(self, t):
            return super().run(t) * 2

    return Deeper().run(x)


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


@program((X,))
def static_recursion(x):
    return x * factorial(5)


@program((X,))
def native_python(x):
    return x * math.sqrt(16) + np.float32(2) * int(np.prod((2, 3)))


@program((X, Y))
def min_and_max_of_shapes(x, y):
    return x * max(x.shape[0], 2) + min([4, 5]) * y
