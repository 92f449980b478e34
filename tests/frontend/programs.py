"""Small programs over the language that graph mode compiles; `test_programs` runs each eagerly, compiled and under a gradient.

Each entry of PROGRAMS is a function, its argument lists (NumPy arrays become tensors), and whether its gradient by the first argument is compared.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np

import mycel as ms
from mycel import ops

PROGRAMS: list[Any] = []
X = np.array([0.5, -1.5, 2.0], np.float32)
Y = np.array([1.0, 3.0, -2.0], np.float32)
P, N = np.float32(2.5), np.float32(-1.5)
SCALE = 1.5
OFFSETS = [0.1, 0.2, 0.3]
TABLE = {"a": 2.0, "b": [1.0, 3.0]}
CONSTANT = ms.Tensor([1.0, 2.0, 3.0])
Point = namedtuple("Point", "x y")


def program(*calls: Any, grad: bool = True) -> Any:
    def add(fn: Any) -> Any:
        PROGRAMS.append((fn, calls, grad))
        return fn

    return add


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


class Accumulator:
    step = 2

    def __init__(self, start):
        self.total = start
        self.__hidden = 3

    @property
    def doubled(self):
        return self.total * 2

    @staticmethod
    def plus(a, b):
        return a + b

    @classmethod
    def make(cls, value):
        return cls(value)

    def __call__(self, t):
        self.total = self.plus(self.total, t * self.step) * self.__hidden
        return self

    def __add__(self, other):
        return self.total + other


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
