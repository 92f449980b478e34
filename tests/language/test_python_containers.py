"""Python's containers in compiled functions: comprehensions, unpacking, slices, strings, and the
built-in functions over them.
"""

from __future__ import annotations

import collections
import functools
import itertools
import math
import operator
from typing import Any

import numpy as np

from mycel import Tensor
from tests.language.harness import F, N, P, Programs, X, Y
from tests.language.python_support import Space

programs = Programs()
add = programs.add


# Comprehensions and generator expressions.


@add((X, Y), grad=(0, 1))
def list_comprehension(x: Any, y: Any) -> Any:
    return [x * i + y for i in range(4) if i % 2 == 0]


@add((X, Y), grad=(0, 1))
def nested_comprehension(x: Any, y: Any) -> Any:
    return [[a * b for a in (x, y) if a is not None] for b in (1.0, 2.0)]


@add((X, Y), grad=(0, 1))
def comprehension_with_two_loops(x: Any, y: Any) -> Any:
    return sum([a * b * k for a in (x, y) for b in (x, y) for k in range(3) if k])


@add((X, Y), grad=(0, 1))
def dict_comprehension(x: Any, y: Any) -> Any:
    found = {name: v * len(name) for name, v in zip(("a", "bb"), (x, y))}
    return found, {k: v for k, v in found.items() if k == "bb"}


@add((X,))
def set_comprehension(x: Any) -> Any:
    return x * sum({i % 3 for i in range(10)})


@add((X, Y), grad=(0, 1))
def generator_expressions(x: Any, y: Any) -> Any:
    return sum(v * v for v in (x, y)), list(F.sin(v) for v in (x, y)), dict((str(i), x * i) for i in range(2))


@add((X,))
def a_lazy_generator_expression(x: Any) -> Any:
    seen: list[int] = []
    items = (seen.append(i) or i for i in range(10))
    total = next(items) + next(items)
    return x * total * len(seen), sum(items), len(seen)


@add((X,))
def the_variable_of_a_comprehension_is_its_own(x: Any) -> Any:
    i = 10.0
    found = [x * i for i in range(3)]
    return x * i, found


@add((X,))
def walrus_in_a_comprehension(x: Any) -> Any:
    found = [last := x * i for i in range(3)]
    return last, found


@add((X, Y), grad=(0, 1))
def comprehension_over_tensors(x: Any, y: Any) -> Any:
    return [a * b for a, b in zip(x, y)]


# Unpacking.


@add((X, Y), grad=(0, 1))
def unpacking_with_a_star(x: Any, y: Any) -> Any:
    first, *middle, last = x, y, x * y, x - y
    [a, (b, *c)] = [1.0, (x, y, x)]
    return first * last, middle, a * b + c[1], len(c)


@add((X, Y), grad=(0, 1))
def stars_in_displays_and_calls(x: Any, y: Any) -> Any:
    def f(a: Any, b: Any, *rest: Any, k: float = 1.0, **more: Any) -> Any:
        return a * k - b + sum(rest) + sum(more.values())

    items, table = [x, y], {"k": 2.0, "z": 3.0}
    return [*items, x * y], (*items, *items)[3], {**table, "k": 5.0}, f(*items, *[1.0, 2.0], **table)


@add((X,))
def unpacking_the_rows_of_a_tensor(x: Any) -> Any:
    a, b, c = x
    return a * b - c


@add((X, Y), grad=(0, 1))
def swaps_and_chains_of_targets(x: Any, y: Any) -> Any:
    x, y = y * 2, x
    a = b = x + y
    items = [0, 0]
    items[0], items[1] = a, b * 2
    return x, y, items


# Slices and indices, read and written.


@add((X, Y), grad=(0, 1))
def slices_of_lists(x: Any, y: Any) -> Any:
    items = [x, y, x * y, x + y]
    items[1:3] = [x * 10]
    items[::2] = [y, x]
    return items, items[::-1][0], items[-1], items[0:1]


@add((X, Y), grad=(0, 1))
def slices_of_tensors(x: Any, y: Any) -> Any:
    return x[1:], y[::2], x[-1] * y[:2], x[..., 0], x[None, :] * y[:, None]


@add((X, Y), grad=(0, 1), oracle=lambda x, y: (x[np.array([0, 2, 0])], y[np.array([True, False, True])], x[[1, 0]]))
def fancy_indices(x: Any, y: Any) -> Any:
    return x[Tensor([0, 2, 0])], y[Tensor([True, False, True])], x[[1, 0]]


def _written(x: Any, y: Any) -> Any:
    z = x * 1
    z[0] = y[1] * 2
    z[1:] += y[1:]
    w = z * y
    w[-1] *= 3
    return z, w


@add((X, Y), grad=(0, 1))
def items_of_tensors_written(x: Any, y: Any) -> Any:
    return _written(x, y)


@add((X,))
def dicts_written_and_deleted(x: Any) -> Any:
    table: dict[str, Any] = {"a": x, "b": x * 2, "c": x * 3}
    del table["b"]
    table["d"] = table.pop("a") * 4
    table.setdefault("e", x * 5)
    table.update(f=x * 6, c=x * 7)
    table |= {"g": x}
    return table, "b" in table, len(table), list(table), table.get("zz", 1.0)


@add((X,))
def deletions(x: Any) -> Any:
    items = [x, x * 2, x * 3, x * 4]
    del items[0], items[1:]
    y = x + 1
    del y
    space = Space(x, 1)
    del space.extra
    return items, hasattr(space, "extra"), "y" in locals()


# Augmented assignment.


@add((X, Y), grad=(0, 1))
def augmented_assignments(x: Any, y: Any) -> Any:
    a = x
    a += y
    a -= 1
    a *= y
    a /= 2
    a **= 2
    k = 7
    k //= 2
    k %= 2
    k <<= 3
    k |= 1
    k ^= 3
    return a, k


@add((X, Y), grad=(0, 1))
def augmented_targets(x: Any, y: Any) -> Any:
    items, table, space = [x * 1, y], {"a": x * 1}, Space(x * 1, y)
    items[0] += y
    items += [x * y]
    table["a"] *= y
    space.a -= y
    space.extra += 2
    return items, table, space.a, space.extra


# Strings.


@add((X,))
def f_strings_and_methods_of_strings(x: Any) -> Any:
    name, n = "layer", 3
    text = f"{name.upper()}_{n:03d}_{n / 7:.2f}_{name!r:>8}{{}}"
    words = " a,b ,c ".strip().split(",")
    return (
        x * len(text),
        text,
        words,
        "-".join(w.strip() for w in words),
        "%s:%d".__mod__((name, n)),
        f"{1:>5}|{2}",
        "abc"[::-1],
    )


@add((X,))
def names_from_shapes(x: Any) -> Any:
    return x * 2, f"{x.shape} {x.ndim} {len(x)}", str(x.shape[0]).zfill(4)


@add((X,))
def attributes_by_name(x: Any) -> Any:
    space = Space(x, x * 2)
    for i, name in enumerate(("a", "b")):
        setattr(space, f"{name}_{i}", getattr(space, name) * (i + 1))
    return space.a_0, space.b_1, getattr(space, "none", x - 1), hasattr(space, "a_0"), hasattr(space, "a_1")


# Built-in functions.


@add((X, Y), grad=(0, 1))
def zip_enumerate_reversed(x: Any, y: Any) -> Any:
    total = x * 0
    for i, (a, b) in enumerate(zip([x, y], reversed([x, y])), start=1):
        total = total + a * b * i
    return total, [i for i, _ in enumerate("abc")]


@add((X, Y), grad=(0, 1))
def map_filter_sorted(x: Any, y: Any) -> Any:
    pairs = [("b", x), ("a", y), ("c", x * y)]
    kept = filter(lambda p: p[0] != "c", sorted(pairs, key=lambda p: p[0]))
    return list(map(lambda p: p[1] * 2, kept)), [
        name for name, _ in sorted(pairs, key=operator.itemgetter(0), reverse=True)
    ]


@add((X, Y), (Y, X), grad=(0, 1))
def sum_min_max(x: Any, y: Any) -> Any:
    return (
        sum([x, y], 1.0),
        max(x[0], y[0]),
        min(x[0], 2.0, y[2]),
        max([3, 1, 2]),
        min((1, 2), key=lambda v: -v),
        max([], default=7),
    )


@add((X,), (-X,))
def any_all_len(x: Any) -> Any:
    values = [1, 2, 3]
    return (
        x * len(values),
        any(v > 2 for v in values),
        all(v > 2 for v in values),
        any([]),
        all(v > 0 for v in values if v > 1),
    )


@add((P,), (N,), grad=0)
def any_and_all_of_tensors(p: Any) -> Any:
    a = p * 2 if any([p > 0, p > 5]) else p * 3
    return a + 1 if all([p > -5, p < 1]) else a - 1


@add((X,))
def numbers(x: Any) -> Any:
    return (
        x * abs(-2),
        divmod(7, 2),
        pow(2, 5),
        pow(2, 5, 7),
        round(2.567, 1),
        int("7"),
        float("2.5"),
        bin(5),
        hex(255),
        ord("a"),
        chr(98),
        complex(1, 2).imag,
    )


@add((X,))
def types_of_values(x: Any) -> Any:
    return (
        x * 2,
        isinstance(3, (int, str)),
        type([]) is list,
        issubclass(bool, int),
        callable(len),
        isinstance(x, (list, tuple)),
        type(x.shape).__name__,
    )


@add((X,))
def iterators(x: Any) -> Any:
    items = iter([x, x * 2, x * 3])
    first = next(items)
    rest = list(items)
    return (
        first,
        rest,
        next(items, "end"),
        list(itertools.chain([1], (2, 3))),
        list(itertools.islice(itertools.count(3), 2)),
        list(zip("ab", itertools.cycle([1]))),
    )


@add((X, Y), grad=(0, 1))
def iterators_with_functions(x: Any, y: Any) -> Any:
    return (
        list(itertools.accumulate([x, y, x], lambda a, b: a * b)),
        list(itertools.starmap(lambda a, k: a * k, [(x, 2), (y, 3)])),
        functools.reduce(lambda a, b: a + F.tanh(b), [x, y, x * y]),
        list(itertools.product([1, 2], "a")),
    )


@add((X,))
def math_functions(x: Any) -> Any:
    return x * math.sqrt(4.0) + math.pi, math.gcd(12, 18), math.floor(2.7), math.inf > 3, math.prod([1, 2, 3])


@add((X,))
def ranges_and_slices_as_values(x: Any) -> Any:
    r, s = range(10, 0, -3), slice(0, 2)
    return x[s], len(r), 7 in r, r[1], list(r), s.stop


@add((X, Y), grad=(0, 1))
def copies_of_lists(x: Any, y: Any) -> Any:
    a = [x, y]
    b, c = a, a.copy()
    b.append(x * y)
    a.insert(0, y)
    a.extend([x, x])
    last = a.pop()
    a.reverse()
    return a, b is a, c, last, len(c)


@add((X,))
def sets_and_their_operators(x: Any) -> Any:
    a, b = {1, 2, 3}, frozenset((2, 3, 4))
    a.add(5)
    a.discard(1)
    return x * len(a | b), sorted(a & b), sorted(a ^ b), sorted(a - b), {2} <= a, a.isdisjoint({9})


@add((X,))
def other_containers(x: Any) -> Any:
    queue, counts, table = collections.deque([x], maxlen=2), collections.Counter("aab"), collections.defaultdict(list)
    queue.append(x * 2)
    queue.appendleft(x * 3)
    table["a"].append(x)
    table["a"].append(x * 2)
    ordered = collections.OrderedDict(b=x, a=x * 2)
    ordered.move_to_end("b")
    return list(queue), counts["a"], counts.most_common(1), table["a"], list(ordered)


test_programs = programs.test()


def test_all_programs_are_counted() -> None:
    assert len(programs.all) >= 30
