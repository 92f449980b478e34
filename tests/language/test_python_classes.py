"""Python's classes in compiled functions: named tuples, dataclasses, enums, and classes made
inside.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
from typing import Any, NamedTuple

from mycel import Tensor
from tests.language.harness import Programs, X, Y
from tests.language.python_support import Mode, Space, Version

programs = Programs()
add = programs.add


# Named tuples, dataclasses, enums, classes made inside.


class Point(NamedTuple):
    """Two tensors."""

    a: Any
    b: Any = 2.0

    def total(self) -> Any:
        return self.a + self.b


Pair = collections.namedtuple("Pair", ["left", "right"], defaults=[1.0])


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


@dataclasses.dataclass
class Output(collections.OrderedDict[str, Any]):
    """Results by name and as attributes, as those of model libraries."""

    logits: Any = None
    states: Any = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                self[field.name] = value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)


@add((X, Y), grad=(0, 1))
def dictionaries_that_are_dataclasses(x: Any, y: Any) -> Any:
    made = Output(logits=x * 2)
    made.logits = x * y
    return made.logits, made["logits"], list(made), made.states is None, len(made)


@add((Point(Tensor(X), Tensor(Y)), 2.0), grad=None, oracle=lambda p, k: Point(X * Y * k, X.astype(float) + Y))
def a_named_tuple_as_argument_and_result(p: Any, k: float) -> Any:
    return Point(p.a * p.b * k, p.total())


@add((Space(Tensor(X), Tensor(Y)), X), oracle=lambda s, x: (X * Y * x, [1.0, 2.0 * X]), grad=None)
def a_dataclass_as_argument(s: Any, x: Any) -> Any:
    return s.product * x, [s.extra, s.a * 2]


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


test_programs = programs.test()
