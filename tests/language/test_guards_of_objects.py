"""Guards of objects and classes: attributes, methods, properties, slots, enums, dataclasses, and
operators that Python would run out of sight; and changes drawn by chance.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import operator
import random
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, Tensor, nn
from tests.language.guard_cases import ANY, Cases, agree
from tests.language.guard_objects import Color, Net, _defaults, _one, _two

cases = Cases()
case = cases.add


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


# Globals, closures, default arguments, code.

FACTOR: Any = 2.0
SCALE = 1.0


def put(name: str, value: Any) -> Callable[[], None]:
    """A change of a global of this module."""
    return lambda: globals().__setitem__(name, value)


class Box:
    """An object with a value."""

    count = 1.0
    items: list[float] = [1.0]

    def __init__(self, k: Any) -> None:
        self.k = k

    def scaled(self, x: Any) -> Any:
        return x * self.k

    @classmethod
    def counted(cls, x: Any) -> Any:
        return x * cls.count

    @staticmethod
    def fixed(x: Any) -> Any:
        return x * Box.items[0]

    @property
    def double(self) -> Any:
        return self.k * 2 * SCALE


class Special(Box):
    def scaled(self, x: Any) -> Any:
        return super().scaled(x) + 1


# Objects and classes.


@case(ANY)
def attributes() -> Any:
    box = Box(Box(2.0))
    return lambda x: box.k.scaled(x) * getattr(box, "extra", 1.0), [
        lambda: setattr(box.k, "k", 3.0),
        lambda: setattr(box, "extra", 4.0),
        lambda: setattr(box, "k", types.SimpleNamespace(scaled=lambda x: x)),
        lambda: (delattr(box, "extra"), setattr(box, "k", Box(2.0))),
        lambda: setattr(box.k, "k", 2.5),
    ]


@case(3)
def attributes_of_items_in_containers() -> Any:
    boxes = {"a": [Box(1.0), Box(2.0)]}
    return lambda x: [b.scaled(x) for b in boxes["a"]][-1] * boxes["a"][0].k, [
        lambda: setattr(boxes["a"][1], "k", 5.0),
        lambda: setattr(boxes["a"][0], "k", 7.0),
        lambda: (setattr(boxes["a"][1], "k", 2.0), setattr(boxes["a"][0], "k", 1.0)),
    ]


@case(ANY)
def class_attributes() -> Any:
    box = Special(2.0)
    return lambda x: x * Box.count * box.count * box.items[0], [
        lambda: setattr(Box, "count", 2.0),
        lambda: setattr(Special, "count", 3.0),
        lambda: setattr(box, "count", 4.0),
        lambda: Box.items.__setitem__(0, 5.0),
        lambda: (delattr(box, "count"), delattr(Special, "count")),
        lambda: (setattr(Box, "count", 1.0), Box.items.__setitem__(0, 1.0)),
    ]


@case(ANY)
def patched_methods() -> Any:
    box, first = Special(2.0), Box.scaled
    kept = {n: Box.__dict__[n] for n in ("counted", "fixed", "scaled", "double")}
    return lambda x: (box.scaled(x), box.counted(x), Special.fixed(x), box.fixed(x), box.double * x), [
        lambda: setattr(Box, "scaled", lambda self, x: x * 100),
        lambda: setattr(Box, "counted", classmethod(lambda cls, x: x * 7)),
        lambda: setattr(Box, "fixed", staticmethod(lambda x: x * 9)),
        lambda: setattr(Box, "double", property(lambda self: 11.0)),
        lambda: setattr(Box, "scaled", first),
        lambda: setattr(box, "scaled", lambda x: x * 3),
        lambda: delattr(box, "scaled"),
        lambda: [setattr(Box, n, v) for n, v in kept.items()],
    ]


@case(4)
def properties() -> Any:
    box = Box(1.0)
    return lambda x: x * box.double, [
        lambda: setattr(box, "k", 2.0),
        put("SCALE", 3.0),
        lambda: setattr(box, "k", 1.0),
        put("SCALE", 1.0),
    ]


@case(2)
def the_class_of_an_object() -> Any:
    box = Box(2.0)
    return lambda x: box.scaled(x) if isinstance(box, Special) else box.scaled(x) * 10, [
        lambda: setattr(box, "__class__", Special),
        lambda: setattr(box, "__class__", Box),
    ]


class Slotted:
    __slots__ = ("k",)

    def __init__(self) -> None:
        self.k = 1.0


@case(2)
def slots() -> Any:
    box = Slotted()
    return lambda x: x * box.k, [lambda: setattr(box, "k", 2.0), lambda: setattr(box, "k", 1.0)]


class Computed:
    """Attributes that are not stored."""

    def __init__(self) -> None:
        self.k = 1.0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("get_"):
            return len(name) * SCALE
        raise AttributeError(name)

    @functools.cached_property
    def cached(self) -> Any:
        return self.k * 2


class Describing:
    def __get__(self, target: Any, kind: Any) -> Any:
        return target.k * SCALE


class Described:
    d = Describing()

    def __init__(self) -> None:
        self.k = 1.0


@case(ANY)
def attributes_that_are_computed() -> Any:
    box, described = Computed(), Described()
    return (
        lambda x: (
            x * box.get_it * (2 if hasattr(box, "get_more") else 1) * (3 if hasattr(box, "none") else 1) * described.d
        ),
        [
            put("SCALE", 2.0),
            lambda: setattr(box, "get_it", 5.0),
            lambda: setattr(box, "none", 5.0),
            lambda: setattr(described, "k", 4.0),
            lambda: (delattr(box, "get_it"), delattr(box, "none")),
            put("SCALE", 1.0),
        ],
    )


@case(ANY)
def cached_properties() -> Any:
    box = Computed()
    return lambda x: x * box.cached, [
        lambda: setattr(box, "cached", 9.0),
        lambda: (delattr(box, "cached"), setattr(box, "k", 10.0)),
    ]


class Meta(type):
    @property
    def scale(cls) -> Any:
        return SCALE

    def __getattr__(cls, name: str) -> Any:
        if name == "twice":
            return SCALE * 2
        raise AttributeError(name)

    def __len__(cls) -> int:
        return int(SCALE) + 1

    def __getitem__(cls, i: Any) -> Any:
        return SCALE * i


class WithMeta(metaclass=Meta):
    def __class_getitem__(cls, i: Any) -> Any:
        return -SCALE


@case(2)
def metaclasses() -> Any:
    return lambda x: x * WithMeta.scale * WithMeta.twice * len(WithMeta) * WithMeta[3], [
        put("SCALE", 3.0),
        put("SCALE", 1.0),
    ]


COLOR = Color.RED


@case(2)
def enum_values() -> Any:
    return lambda x: x * COLOR.value if COLOR is Color.RED else -x * COLOR.value, [
        put("COLOR", Color.BLUE),
        put("COLOR", Color.RED),
    ]


@dataclasses.dataclass
class Options:
    k: float = 1.0
    sizes: list[float] = dataclasses.field(default_factory=lambda: [SCALE])

    def __post_init__(self) -> None:
        self.extra = SCALE


@case(ANY)
def dataclasses_outside_and_made_inside() -> Any:
    options = Options()
    return (
        lambda x: (
            x
            * options.k
            * options.sizes[0]
            * Options().extra
            * Options().sizes[0]
            * (2.0 if options == Options() else 3.0)
        ),
        [
            lambda: setattr(options, "k", 3.0),
            lambda: options.sizes.append(2.0),
            put("SCALE", 2.0),
            lambda: setattr(options, "k", 1.0),
            lambda: options.sizes.pop(),
            put("SCALE", 1.0),
        ],
    )


# Operators of classes, which Python would run out of sight.


class Number:
    """A number of a class of its own."""

    def __init__(self, k: float) -> None:
        self.k = k

    def value(self) -> float:
        return self.k * SCALE

    def __add__(self, other: Any) -> Any:
        return other + self.value()

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        return other * self.value()

    def __rpow__(self, other: Any) -> Any:
        return other**2 * self.value()

    def __imatmul__(self, other: Any) -> Any:
        return other - self.value()

    def __neg__(self) -> Any:
        return -self.value()

    def __abs__(self) -> Any:
        return self.value()

    def __float__(self) -> float:
        return self.value()

    def __int__(self) -> int:
        return int(self.value())

    def __index__(self) -> int:
        return int(self.value()) % 3

    def __bool__(self) -> bool:
        return self.value() > 2

    def __len__(self) -> int:
        return int(self.value())

    def __eq__(self, other: object) -> bool:
        return self.value() == other

    def __lt__(self, other: Any) -> bool:
        return self.value() < other

    def __contains__(self, item: Any) -> bool:
        return item == self.value()

    def __iter__(self) -> Any:
        return iter([self.k, SCALE])

    def __getitem__(self, i: Any) -> Any:
        return i * self.value()

    def __call__(self, x: Any) -> Any:
        return x * self.value()

    def __enter__(self) -> Any:
        return self.value()

    def __exit__(self, *error: Any) -> bool:
        return False

    def __str__(self) -> str:
        return "k" * int(self.value())


def _with(o: Any, x: Any) -> Any:
    with o as k:
        return x * k


def _matmul(o: Any, x: Any) -> Any:
    o @= x
    return o


@contextlib.contextmanager
def _managed(o: Any) -> Any:
    yield o.k * SCALE


def _in_manager(o: Any, x: Any) -> Any:
    with _managed(o) as k:
        return x * k


def _steps(o: Any) -> Any:
    for i in range(3):
        yield o.k * SCALE * i


OPERATORS: dict[str, Any] = {
    "add": lambda o, x: o + x,
    "radd": lambda o, x: (1.0 + o) * x,
    "mul": lambda o, x: o * x,
    "rpow": lambda o, x: x * (2.0**o),
    "in place": _matmul,
    "neg": lambda o, x: x * -o,
    "abs": lambda o, x: x * abs(o),
    "float": lambda o, x: x * float(o),
    "int": lambda o, x: x * int(o),
    "index": lambda o, x: x * [1.0, 2.0, 3.0][o],
    "truth": lambda o, x: x if o else -x,
    "not": lambda o, x: x * (not o),
    "bool": lambda o, x: x * bool(o),
    "and": lambda o, x: x * ((o and 2) or 5) if o else x * 7,
    "len": lambda o, x: x * len(o),
    "eq": lambda o, x: x if o == 3.0 else -x,
    "ne": lambda o, x: x if o != 3.0 else -x,
    "eq on the right": lambda o, x: x if 3.0 == o else -x,
    "lt": lambda o, x: x if o < 2.5 else -x,
    "gt on the left": lambda o, x: x if 2.5 > o else -x,
    "in": lambda o, x: x if 3.0 in o else -x,
    "in a list": lambda o, x: x if o in [3.0] else -x,
    "iter": lambda o, x: [x * i for i in o],
    "star": lambda o, x: x * max(*o),
    "unpacked": lambda o, x: (lambda a, b: x * a + b)(*o),
    "item": lambda o, x: x * o[2],
    "call": lambda o, x: o(x),
    "with": _with,
    "managed": _in_manager,
    "generator": lambda o, x: [x * v for v in _steps(o)],
    "str": lambda o, x: x * len(str(o)),
    "f-string": lambda o, x: x * len(f"{o}"),
    "sum": lambda o, x: x * sum(o),
    "sorted": lambda o, x: x * sorted([2.0, 1.0], key=lambda v: v if o < 2.5 else -v)[0],
    "map": lambda o, x: list(map(o, [x])),
    "zip": lambda o, x: [x * a * b for a, b in zip(o, [1, 2])],
    "attrgetter": lambda o, x: x * operator.attrgetter("k")(o),
    "methodcaller": lambda o, x: operator.methodcaller("__call__", x)(o),
    "operator": lambda o, x: operator.add(o, x),
    "chain": lambda o, x: [x * v for v in itertools.chain(o, [1.0])],
    "vars": lambda o, x: x * vars(o)["k"],
    "dict": lambda o, x: x * o.__dict__["k"],
    "double star": lambda o, x: (lambda k: x * k)(**o.__dict__),
    "bound": lambda o, x: (lambda m: m(x))(o.__call__),
    "accumulate": lambda o, x: list(itertools.accumulate([x, x], lambda a, b: a * o.k + b)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_classes(name: str) -> None:
    f, box = OPERATORS[name], Number(1.0)
    jitted = ms.jit(lambda x: f(box, x))
    plainly = lambda x: f(box, x)
    method, kept = Number.value, {}
    try:
        for what, change in (
            ("as it was", lambda: None),
            ("another attribute", lambda: setattr(box, "k", 3.0)),
            ("another global", put("SCALE", 2.0)),
            ("another method", lambda: setattr(Number, "value", lambda self: 3.0)),
            ("back", put("SCALE", 1.0)),
            ("the method back", lambda: setattr(Number, "value", method)),
        ):
            change()
            agree(plainly, jitted, f"{name}: {what}")
    finally:
        Number.value = method
        globals().update(SCALE=1.0, **kept)


# A program, outside state and changes drawn by chance.


class State:
    """Everything outside that a random program reads."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.number, self.listed, self.table = 1.0, [1.0, 2.0, 3.0], {"a": 1.0, "b": 2.0}
        self.box, self.boxes = Box(1.5), [Box(1.0), Special(2.0)]
        self.number_object, self.net, self.array = Number(2.0), Net(), np.array([1.0, 2.0])
        self.tensor, self.tensors = Tensor([1.0, 2.0, 3.0]), [Tensor([1.0, 1.0, 1.0]), Tensor(2.0)]
        self.function: Any = lambda x: x + 1
        self.space = types.SimpleNamespace(k=2.0, deep=types.SimpleNamespace(k=[1.0]))
        self.flag, self.color = True, Color.RED

    def readers(self) -> list[Callable[[Any], Any]]:
        s = self
        cell = [1.0]
        self.cell = cell
        return [
            lambda x: x * s.number,
            lambda x: x * s.listed[0] + len(s.listed),
            lambda x: x + sum(s.listed),
            lambda x: x * s.table["a"] + len(s.table),
            lambda x: x + sum(s.table.values()),
            lambda x: s.box.scaled(x),
            lambda x: x * s.box.double,
            lambda x: s.box.counted(x) + s.box.items[0],
            lambda x: sum([b.scaled(x) for b in s.boxes]),
            lambda x: s.number_object + x,
            lambda x: x if s.number_object < 2.5 else -x,
            lambda x: x * len(s.number_object),
            lambda x: s.net(x),
            lambda x: x * float(s.array[0]) + s.array.shape[0],
            lambda x: x + s.tensor,
            lambda x: x * s.tensors[0] + s.tensors[-1],
            lambda x: s.function(x),
            lambda x: x * s.space.k + s.space.deep.k[0],
            lambda x: x if s.flag else x - 1,
            lambda x: x * s.color.value if s.color is Color.RED else x,
            lambda x: x * cell[0],
            lambda x: x * FACTOR + SCALE,
            lambda x: _one(x),
            lambda x: x + sum([v for v in _steps(s.box)]),
            lambda x: x * (1 if hasattr(s.space, "new") else 2),
            lambda x: x + max(s.listed, key=lambda v: v * SCALE),
            lambda x: x if "c" in s.table else x * 2,
            lambda x: _defaults(x),
        ]

    def changes(self) -> list[Callable[[], Any]]:
        s, r = self, self.rng
        v = lambda: float(r.randint(-3, 3))
        return [
            lambda: setattr(s, "number", v()),
            lambda: s.listed.append(v()),
            lambda: s.listed.pop() if len(s.listed) > 1 else None,
            lambda: s.listed.__setitem__(0, v()),
            lambda: setattr(s, "listed", [v(), v()]),
            lambda: s.table.__setitem__("a", v()),
            lambda: s.table.__setitem__("c", v()),
            lambda: s.table.pop("c", None),
            lambda: setattr(s.box, "k", v()),
            lambda: setattr(s, "box", Box(v())),
            lambda: setattr(s, "box", Special(v())),
            lambda: setattr(Box, "count", v()),
            lambda: Box.items.__setitem__(0, v()),
            lambda: setattr(s.boxes[0], "k", v()),
            lambda: s.boxes.append(Box(v())),
            lambda: s.boxes.pop() if len(s.boxes) > 1 else None,
            lambda: setattr(s.boxes[-1], "__class__", r.choice([Box, Special])),
            lambda: setattr(s.number_object, "k", abs(v())),
            lambda: setattr(s.net, "k", v()),
            lambda: s.net.set_train(r.random() < 0.5),
            lambda: s.net.values.__setitem__(0, v()),
            lambda: setattr(s.net.options, "k", v()),
            lambda: s.net.w.set_data(Tensor([v(), v(), v()])),
            lambda: s.net.inner.append(nn.ReLU()),
            lambda: setattr(s.net, "w", Parameter(Tensor([v(), v(), v()]), name="w")),
            lambda: s.array.__setitem__(0, v()),
            lambda: setattr(s, "array", np.array([v()])),
            lambda: setattr(s, "tensor", Tensor([v(), v(), v()])),
            lambda: s.tensor.__setitem__(0, v()) if isinstance(s.tensor, Tensor) else None,
            lambda: setattr(s, "tensor", v()),
            lambda: s.tensors.__setitem__(0, Tensor([v(), v(), v()])),
            lambda: s.tensors.reverse(),
            lambda: setattr(s, "function", r.choice([_two, lambda x: x * 3, abs, nn.ReLU()])),
            lambda: setattr(s.space, "k", v()),
            lambda: s.space.deep.k.__setitem__(0, v()),
            lambda: setattr(s.space, "deep", types.SimpleNamespace(k=[v()])),
            lambda: setattr(s, "flag", not s.flag),
            lambda: setattr(s, "color", r.choice(list(Color))),
            lambda: self.cell.__setitem__(0, v()),
            lambda: globals().update(FACTOR=v()),
            lambda: globals().update(SCALE=float(r.randint(1, 3))),
            lambda: globals().update(_one=r.choice([_two, lambda x: x * 2])),
            lambda: s.space.__dict__.pop("new", None) or setattr(s.space, "new", 1),
            lambda: _defaults.__defaults__[0].__setitem__(0, v()),
            lambda: setattr(_defaults, "__defaults__", ([v()],)),
        ]


@pytest.mark.parametrize("seed", range(12))
def test_random_changes_are_seen(seed: int) -> None:
    rng = random.Random(seed)
    state = State(rng)
    readers = rng.sample(state.readers(), 5)
    kept = {n: globals()[n] for n in ("FACTOR", "SCALE", "_one")}
    defaults, count, items = _defaults.__defaults__, Box.count, list(Box.items)
    first = list(defaults[0])

    def program(x: Any) -> Any:
        for reader in readers:
            x = reader(x)
        return x

    jitted = ms.jit(program)
    changes = state.changes()
    try:
        for i in range(14):
            agree(program, jitted, f"after change {i}")
            for _ in range(rng.randint(1, 8)):
                rng.choice(changes)()
    finally:
        globals().update(kept)
        _defaults.__defaults__, Box.count = defaults, count
        defaults[0][:] = first
        Box.items[:] = items


test_case = cases.test()
