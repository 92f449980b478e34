"""Python itself in compiled functions: its containers, comprehensions, statements, classes and built-in functions."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import operator
from typing import Any, ClassVar, NamedTuple, Optional

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor
from tests.language.harness import F, N, P, Programs, X, Y, check

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


# with, try, raise, assert.


class Logged:
    """A context manager that keeps what happened."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __enter__(self) -> Logged:
        self.seen.append("in")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.seen.append("out" if kind is None else kind.__name__)
        return kind is ValueError


@add((X,))
def with_statements(x: Any) -> Any:
    with Logged() as a, Logged() as b:
        y = x * len(a.seen)
        a.seen.append("body")
    with Logged() as c:
        y = y + 1
        raise ValueError("left")
    return y, a.seen, b.seen, c.seen


@contextlib.contextmanager
def scaled(k: float, seen: list[str]) -> Any:
    seen.append("begin")
    try:
        yield k
    finally:
        seen.append("end")


@add((X,))
def context_managers_of_generators(x: Any) -> Any:
    seen: list[str] = []
    with scaled(2.0, seen) as k:
        y = x * k * len(seen)
    try:
        with scaled(3.0, seen) as k:
            raise KeyError("k")
    except KeyError as error:
        return y, seen, error.args


@add((X,))
def leaving_a_with_statement_early(x: Any) -> Any:
    kept = Logged()
    for i in range(5):
        with kept:
            if i == 1:
                continue
            if i == 3:
                break
            x = x * 2
    return x, kept.seen


@add((X, 0), (X, 1), (X, 2), (X, 3))
def try_statements(x: Any, kind: int) -> Any:
    seen = []
    try:
        if kind == 1:
            raise ValueError("one", kind)
        if kind == 2:
            x = x * {"a": 1}["b"]
        if kind == 3:
            x = x / [1, 2][kind]
    except ValueError as error:
        seen.append(str(error.args))
        x = x * 2
    except (KeyError, IndexError) as error:
        seen.append(type(error).__name__)
        x = x * 3
    else:
        x = x * 5
    finally:
        seen.append("end")
    return x, seen


@add((X,))
def nested_tries_and_reraises(x: Any) -> Any:
    seen = []

    def f(y: Any) -> Any:
        try:
            try:
                raise KeyError("inner")
            except KeyError as error:
                seen.append("first")
                raise RuntimeError("outer") from error
            finally:
                seen.append("finally")
        except RuntimeError as error:
            seen.append(type(error.__cause__).__name__)
            return y * 2
        finally:
            seen.append("last")

    return f(x), seen


class Missing(LookupError):
    """An error of the program's own."""

    def __init__(self, name: str, x: Any) -> None:
        super().__init__(f"no {name}")
        self.x = x


@add((X,))
def errors_that_carry_tensors(x: Any) -> Any:
    def find(name: str) -> Any:
        if name != "a":
            raise Missing(name, x * 2)
        return x

    try:
        return find("a") + find("b")
    except LookupError as error:
        return error.x, str(error), isinstance(error, Missing)


@add((X,))
def returns_from_finally_and_loops(x: Any) -> Any:
    def f() -> Any:
        for i in range(3):
            try:
                if i == 1:
                    return x * i
            finally:
                x_seen.append(i)
        return None

    x_seen: list[int] = []
    return f(), x_seen


@add((X,))
def suppressed_errors(x: Any) -> Any:
    with contextlib.suppress(ZeroDivisionError):
        x = x * (1 // 0)
    return x + 1


@add((X,))
def assertions(x: Any) -> Any:
    assert x.shape == (3,), "the shape"
    try:
        assert len(x) > 5, f"only {len(x)}"
    except AssertionError as error:
        return x * 2, str(error).split("\n")[0]


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
    return list(itertools.accumulate([x, y, x], lambda a, b: a * b)), list(itertools.starmap(lambda a, k: a * k, [(x, 2), (y, 3)])), \
        functools.reduce(lambda a, b: a + F.tanh(b), [x, y, x * y]), list(itertools.product([1, 2], "a"))  # fmt: skip


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


# Named tuples, dataclasses, enums, classes made inside.


class Point(NamedTuple):
    """Two tensors."""

    a: Any
    b: Any = 2.0

    def total(self) -> Any:
        return self.a + self.b


Pair = collections.namedtuple("Pair", ["left", "right"], defaults=[1.0])


@dataclasses.dataclass
class Space:
    """A place for values."""

    a: Any
    b: Any
    extra: float = 1.0
    sizes: list[Any] = dataclasses.field(default_factory=list)
    COUNT: ClassVar[int] = 3

    def __post_init__(self) -> None:
        self.sizes.append(self.extra)

    @property
    def product(self) -> Any:
        return self.a * self.b


@dataclasses.dataclass(frozen=True, order=True)
class Version:
    """A number with parts."""

    major: int
    minor: int = 0


@add((X, Y), grad=(0, 1))
def named_tuples(x: Any, y: Any) -> Any:
    p, q = Point(x, y), Pair(left=x)
    a, b = p
    return p._replace(b=x * y), q.left * q.right, p.total(), a * b, p[0], q._fields, Point(x).b, p == p


@add((X, Y), grad=(0, 1))
def dataclasses_inside(x: Any, y: Any) -> Any:
    s = Space(x, b=y)
    t = dataclasses.replace(s, a=x * 2, sizes=[])
    s.a = s.a * 3
    return (
        s,
        t.product,
        s.sizes,
        [f.name for f in dataclasses.fields(s)],
        Space.COUNT,
        Version(1, 2) < Version(2),
        Version(1) == Version(1, 0),
    )


@add((Point(Tensor(X), Tensor(Y)), 2.0), grad=None, oracle=lambda p, k: Point(X * Y * k, X.astype(float) + Y))
def a_named_tuple_as_argument_and_result(p: Any, k: float) -> Any:
    return Point(p.a * p.b * k, p.total())


@add((Space(Tensor(X), Tensor(Y)), X), oracle=lambda s, x: (X * Y * x, [1.0, 2.0 * X]), grad=None)
def a_dataclass_as_argument(s: Any, x: Any) -> Any:
    return s.product * x, [s.extra, s.a * 2]


class Mode(enum.Enum):
    """How to combine."""

    ADD = "add"
    MUL = "mul"

    def apply(self, a: Any, b: Any) -> Any:
        return a + b if self is Mode.ADD else a * b


class Level(enum.IntFlag):
    LOW = 1
    HIGH = 4


@add((X, Y, Mode.ADD), (X, Y, Mode.MUL), grad=(0, 1))
def enums(x: Any, y: Any, mode: Mode) -> Any:
    return (
        mode.apply(x, y),
        mode.value,
        Mode["ADD"] is Mode.ADD,
        Mode("mul").name,
        [m.name for m in Mode],
        (Level.LOW | Level.HIGH) * 1,
    )


@add((X, Y), grad=(0, 1))
def classes_made_inside(x: Any, y: Any) -> Any:
    class Base:
        k = 2.0

        def __init__(self, v: Any) -> None:
            self.v = v

        def scaled(self) -> Any:
            return self.v * self.k

        @staticmethod
        def plus(a: Any, b: Any) -> Any:
            return a + b

        @classmethod
        def doubled(cls, v: Any) -> Any:
            return cls(v * 2)

    class Derived(Base):
        k = Base.k + 1

        def __init__(self, v: Any, w: Any) -> None:
            super().__init__(v)
            self.w = w

        def scaled(self) -> Any:
            return super().scaled() + self.w

        @property
        def both(self) -> Any:
            return self.v * self.w

        def __call__(self, z: Any) -> Any:
            return self.plus(z, self.both)

    d = Derived(x, y)
    return d.scaled(), d.both, d(x), Base.doubled(y).scaled(), isinstance(d, Base), Derived.__name__


class Vector:
    """A pair with operators."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def __add__(self, other: Any) -> Any:
        return (
            Vector(self.a + other.a, self.b + other.b)
            if isinstance(other, Vector)
            else Vector(self.a + other, self.b + other)
        )

    __radd__ = __add__

    def __mul__(self, k: Any) -> Any:
        return Vector(self.a * k, self.b * k)

    def __matmul__(self, other: Any) -> Any:
        return self.a * other.a + self.b * other.b

    def __neg__(self) -> Any:
        return Vector(-self.a, -self.b)

    def __getitem__(self, i: int) -> Any:
        return (self.a, self.b)[i]

    def __setitem__(self, i: int, v: Any) -> None:
        if i:
            self.b = v
        else:
            self.a = v

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Any:
        yield self.a
        yield self.b

    def __contains__(self, v: Any) -> bool:
        return v is self.a or v is self.b

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector) and self.a is other.a and self.b is other.b

    def __gt__(self, other: Any) -> Any:
        return self.a.sum() > other.a.sum()


@add((X, Y), (Y, X), grad=(0, 1))
def operators_of_classes(x: Any, y: Any) -> Any:
    v, w = Vector(x, y), Vector(y, x * 2)
    v[0] = v[1] * 2
    v += w
    total = sum([v, w])
    chosen = x * 2 if v > w else y * 3
    return (-v * 3 + 1) @ w, total[1], list(v), len(w), x in w, v == v, v != w, chosen, [*w][0]


class Steps:
    """An iterator of the old kind."""

    def __init__(self, x: Any, n: int) -> None:
        self.x, self.n = x, n

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> Any:
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        self.x = self.x * 2
        return self.x


@add((X,))
def iterators_of_classes(x: Any) -> Any:
    total = x * 0
    for v in Steps(x, 3):
        total = total + v
    return total, list(Steps(x, 2)), next(Steps(x, 1)), next(iter(Steps(x, 0)), 5)


# Walrus, match, annotations, conditional expressions.


@add((X,), grad=0)
def walrus(x: Any) -> Any:
    if (y := x * 2).sum() > 0:
        z = y + 1
    else:
        z = y - 1
    while (n := len(str(z.shape))) < 3:
        z = z + 1
    return z, y, n, (lambda a: (b := a * 3) + b)(x)


def _matched(x: Any, value: Any) -> Any:
    match value:
        case 0 | 1:
            return x * 2
        case int(n) if n > 10:
            return x * n
        case str() as name:
            return x * len(name)
        case []:
            return x - 1
        case [a]:
            return x + a
        case [a, _, *rest]:
            return x * a + len(rest)
        case {"kind": "scale", "by": k, **rest}:
            return x * k + len(rest)
        case Version(major, minor=m):
            return x * major + m
        case Mode.ADD:
            return x + x
        case (None, b) | {"b": b}:
            return x * b
        case None:
            return x * 0
        case _:
            return x


@add(
    *[
        (X, v)
        for v in (
            0,
            1,
            12,
            5,
            "abc",
            [],
            [2.0],
            [2.0, 1, 2, 3],
            {"kind": "scale", "by": 3.0, "z": 1},
            Version(3, 4),
            Mode.ADD,
            {"b": 7.0},
            None,
            2.5,
        )
    ]
)
def match_statements(x: Any, value: Any) -> Any:
    return _matched(x, value)


@add((X, ("add", X)), (X, ("pair", X, Y)), oracle=lambda x, op: x + X if op[0] == "add" else x * X - Y)
def match_with_tensors_inside(x: Any, op: Any) -> Any:
    match op:
        case ("add", y):
            return x + y
        case ("pair", y, z) if y.shape == z.shape:
            return x * y - z
    return None


@add((X,))
def annotations(x: Any) -> Any:
    k: float = 2.0
    y: Optional[Any]
    items: list[Any] = [x]
    y = items[0] * k

    def f(a: Tensor, *, b: "int" = 3) -> Tensor:  # noqa: UP037
        return a * b

    return f(y)


@add((X, Y), grad=(0, 1))
def conditional_expressions_and_short_circuit(x: Any, y: Any) -> Any:
    table: dict[str, Any] = {}
    a = table.get("none") or x
    b = x.shape and y
    c = None if not table else 1 / 0
    return a * b, c, (x if len(x) > 2 else y), 1 < 2 < 3, not table, x is not None and y is not x


# Generators.


def doubling(x: Any, n: int) -> Any:
    for _ in range(n):
        x = x * 2
        yield x
    return "done"


def flat(tree: Any) -> Any:
    if isinstance(tree, (list, tuple)):
        for item in tree:
            yield from flat(item)
    else:
        yield tree


def averager() -> Any:
    total, count = 0.0, 0
    while True:
        value = yield (total / count if count else None)
        if value is None:
            return
        total, count = total + value, count + 1


@add((X,))
def generators(x: Any) -> Any:
    found = list(doubling(x, 3))
    steps = doubling(x, 5)
    first = next(steps)
    for v in steps:
        if v.shape != (3,):
            break
        first = first + v
    return found, first, sum(flat([x, [x * 2, (x * 3,)]])), dict(enumerate(doubling(x, 2)))


@add((X, Y), grad=(0, 1))
def generators_that_are_sent_values(x: Any, y: Any) -> Any:
    mean = averager()
    next(mean)
    a = mean.send(x)
    b = mean.send(y)
    ended = "no"
    try:
        mean.send(None)
    except StopIteration:
        ended = "yes"
    return a, b, ended


@add((X,))
def generators_with_try_and_results(x: Any) -> Any:
    seen: list[str] = []

    def guarded() -> Any:
        try:
            yield x
            yield x * 2
        except KeyError:
            seen.append("caught")
            yield x * 3
        finally:
            seen.append("closed")

    def outer() -> Any:
        result = yield from doubling(x, 1)
        yield x * len(result)

    g = guarded()
    a = next(g)
    b = g.throw(KeyError("k"))
    g.close()
    return a, b, seen, list(outer())


@add((X, Y), grad=(0, 1))
def closures_over_loop_variables(x: Any, y: Any) -> Any:
    late = [lambda: x * i for i in range(3)]  # noqa: B023
    early = [lambda i=i: y * i for i in range(3)]
    return [f() for f in late], [f() for f in early]


@add((X,))
def globals_and_nested_scopes(x: Any) -> Any:
    def outer(a: Any) -> Any:
        def inner() -> Any:
            nonlocal a
            a = a * 2
            return a

        inner()
        return inner() + a

    return outer(x), [(lambda: v)() for v in range(2)]


@add((X,), breaks=True, oracle=lambda x: (x * 3.0, 5, [("a", 1)]))
def namespaces_as_dicts(x: Any) -> Any:
    space = Space(x, 1)
    k = eval("1 + 2")
    scope: dict[str, Any] = {}
    exec("a = 5", scope)
    return x * k, scope["a"], [(n, v) for n, v in {"a": 1, **{}}.items() if n in vars(space)]


test_programs = programs.test()


def test_errors_of_a_program_are_its_own() -> None:
    def fails(x: Any, kind: int) -> Any:
        if kind == 0:
            raise Missing("it", x)
        if kind == 1:
            return x * undefined_name  # noqa: F821
        if kind == 2:
            a, b = [x, x, x]
            return a + b
        if kind == 3:
            return {"a": x}["b"]
        assert kind != 4, "four"
        return x.no_such_attribute

    f = ms.jit(fails, fullgraph=True)
    for kind, error, text in ((0, Missing, "no it"), (1, NameError, "undefined_name"), (2, ValueError, "too many values to unpack"), (3, KeyError, "b"),
                              (4, AssertionError, "four"), (5, AttributeError, "no_such_attribute")):  # fmt: skip
        for call in (fails, f, f):
            with pytest.raises(error, match=text):
                call(Tensor(X), kind)


def test_effects_on_outer_containers_happen_at_each_call() -> None:
    seen: list[Any] = []
    table: dict[str, Any] = {}

    def keep(x: Any) -> Any:
        seen.append(x * 2)
        table.setdefault("n", []).append(len(seen))
        return x

    f = ms.jit(keep)
    for i in range(3):
        f(Tensor(X) + i)
    assert len(seen) == 3 and table["n"] == [1, 2, 3]
    np.testing.assert_allclose(seen[2].asnumpy(), (X + 2) * 2)


def test_all_programs_are_counted() -> None:
    assert len(programs.all) >= 60 and callable(check)
