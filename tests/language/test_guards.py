"""Guards: whatever a compiled function read from outside and that changes is seen, and what it was before is found again.

Every case is a function with changes to make between calls. After each change it is called twice, compiled and plainly, and must agree. A case also says
how many versions may be made; None where the function must be run in segments, as what it reads cannot be watched.
"""

from __future__ import annotations

import array
import builtins
import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import operator
import os
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, Optional

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, Tensor, nn, ops
from tests.language.harness import same

X = Tensor([1.0, 2.0, 3.0])
CASES: list[Any] = []
ANY = -1


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def case(versions: Optional[int]) -> Any:
    """Declare a case: a function that returns the function to compile and the changes."""

    def declare(make: Any) -> Any:
        CASES.append(pytest.param(make, versions, id=make.__name__))
        return make

    return declare


def plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.asnumpy()
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def agree(f: Callable[..., Any], jitted: Any, what: str, x: Any = X) -> None:
    expected = plain(f(x))
    for turn in ("first", "second"):
        same(plain(jitted(x)), expected, 1e-5, f"{what}, {turn} call")


def versions_of(jitted: Any) -> Optional[int]:
    return None if jitted.lives else sum(map(len, jitted.versions.values()))


# Globals, closures, default arguments, code.

FACTOR: Any = 2.0
SCALE = 1.0
VALUES = [1.0, 2.0]
TABLE: dict[str, Any] = {"a": 1.0, "b": {"c": 2.0}}
NAMES = {"one", "two"}
NESTED = (1.0, [2.0, {"k": 3.0}])


def put(name: str, value: Any) -> Callable[[], None]:
    """A change of a global of this module."""
    return lambda: globals().__setitem__(name, value)


@case(5)
def a_global() -> Any:
    return lambda x: x * FACTOR, [put("FACTOR", v) for v in (3.0, 2.0, True, 1, -0.0, 2.0)]


@case(3)
def a_global_that_goes_back() -> Any:
    return lambda x: x * FACTOR, [put("FACTOR", v) for v in (5.0, 6.0, 5.0, 2.0, 6.0, 2.0)]


@case(4)
def a_list() -> Any:
    return lambda x: x * VALUES[0] * len(VALUES) + sum(VALUES), [
        lambda: VALUES.append(3.0), lambda: VALUES.__setitem__(0, 5.0), lambda: VALUES.reverse(), lambda: VALUES.reverse(),
        lambda: VALUES.__setitem__(slice(None), [1.0, 2.0]),
    ]  # fmt: skip


@case(4)
def a_dict() -> Any:
    return lambda x: [x * len(k) for k in TABLE] + [x * TABLE["b"]["c"], x * TABLE.get("z", 7.0)], [
        lambda: TABLE["b"].__setitem__("c", 4.0), lambda: TABLE.__setitem__("zz", 1.0), lambda: TABLE.__setitem__("z", 2.0),
        lambda: (TABLE.pop("z"), TABLE.pop("zz"), TABLE["b"].__setitem__("c", 2.0)),
    ]  # fmt: skip


@case(3)
def a_set() -> Any:
    return lambda x: x * len(NAMES) if "three" in NAMES else -x, [
        lambda: NAMES.add("three"), lambda: NAMES.add("four"), lambda: NAMES.difference_update({"three", "four"}),
    ]  # fmt: skip


@case(3)
def a_list_in_a_tuple() -> Any:
    return lambda x: x * NESTED[1][0] * NESTED[1][1]["k"], [
        lambda: NESTED[1].__setitem__(0, 9.0), lambda: NESTED[1][1].__setitem__("k", 4.0),
        lambda: (NESTED[1].__setitem__(0, 2.0), NESTED[1][1].__setitem__("k", 3.0)),
    ]  # fmt: skip


@case(4)
def closure_cells() -> Any:
    k, values = 1.0, [1.0]

    def more() -> None:
        nonlocal k
        k += 1.0

    def less() -> None:
        nonlocal k
        k -= 1.0

    return lambda x: x * k * values[0], [
        more,
        lambda: values.__setitem__(0, 3.0),
        more,
        lambda: (less(), less(), values.__setitem__(0, 1.0)),
    ]


def _defaults(x: Any, k: Any = [1.0], *, table: Any = {"a": 2.0}) -> Any:  # noqa: B006
    return x * k[0] * table["a"]


@case(5)
def default_arguments() -> Any:
    first, named = _defaults.__defaults__, _defaults.__kwdefaults__
    return lambda x: _defaults(x), [
        lambda: first[0].__setitem__(0, 4.0), lambda: named["table"].__setitem__("a", 5.0),
        lambda: setattr(_defaults, "__defaults__", ([8.0],)), lambda: setattr(_defaults, "__kwdefaults__", {"table": {"a": 3.0}}),
        lambda: (setattr(_defaults, "__defaults__", first), setattr(_defaults, "__kwdefaults__", named), first[0].__setitem__(0, 1.0),
                 named["table"].__setitem__("a", 2.0)),
    ]  # fmt: skip


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


@case(2)
def a_default_that_is_an_object() -> Any:
    box = Box(2.0)

    def f(x: Any, box: Any = box) -> Any:
        return x * box.k

    return lambda x: f(x), [lambda: setattr(box, "k", 3.0), lambda: setattr(box, "k", 2.0)]


def _one(x: Any) -> Any:
    return x + 1


def _two(x: Any) -> Any:
    return x + 2


@case(3)
def a_function_that_is_exchanged_or_gets_other_code() -> Any:
    first, code = _one, _one.__code__
    return lambda x: _one(x), [
        put("_one", lambda x: x * 5), put("_one", first), lambda: setattr(first, "__code__", _two.__code__),
        lambda: setattr(first, "__code__", code),
    ]  # fmt: skip


@case(3)
def attributes_of_functions() -> Any:
    _two.k = 1.0
    return lambda x: x * getattr(_two, "k", 9.0), [
        lambda: setattr(_two, "k", 2.0), lambda: delattr(_two, "k"), lambda: setattr(_two, "k", 1.0),
    ]  # fmt: skip


@case(3)
def decorated_functions() -> Any:
    def scaled(f: Any) -> Any:
        @functools.wraps(f)
        def run(*args: Any) -> Any:
            return f(*args) * SCALE

        return run

    g = scaled(lambda x: x * FACTOR)
    return lambda x: g(x), [put("SCALE", 3.0), put("FACTOR", 4.0), lambda: (put("SCALE", 1.0)(), put("FACTOR", 2.0)())]


@case(3)
def partial_functions() -> Any:
    values = [2.0]
    table = {"b": 1.0}
    g = functools.partial(lambda a, x, b: x * a[0] + b["b"], values, b=table)
    return lambda x: g(x), [lambda: values.__setitem__(0, 5.0), lambda: table.__setitem__("b", 2.0),
                            lambda: (values.__setitem__(0, 2.0), table.__setitem__("b", 1.0))]  # fmt: skip


# Objects and classes.


@case(ANY)
def attributes() -> Any:
    box = Box(Box(2.0))
    return lambda x: box.k.scaled(x) * getattr(box, "extra", 1.0), [
        lambda: setattr(box.k, "k", 3.0), lambda: setattr(box, "extra", 4.0), lambda: setattr(box, "k", types.SimpleNamespace(scaled=lambda x: x)),
        lambda: (delattr(box, "extra"), setattr(box, "k", Box(2.0))), lambda: setattr(box.k, "k", 2.5),
    ]  # fmt: skip


@case(3)
def attributes_of_items_in_containers() -> Any:
    boxes = {"a": [Box(1.0), Box(2.0)]}
    return lambda x: [b.scaled(x) for b in boxes["a"]][-1] * boxes["a"][0].k, [
        lambda: setattr(boxes["a"][1], "k", 5.0), lambda: setattr(boxes["a"][0], "k", 7.0),
        lambda: (setattr(boxes["a"][1], "k", 2.0), setattr(boxes["a"][0], "k", 1.0)),
    ]  # fmt: skip


@case(ANY)
def class_attributes() -> Any:
    box = Special(2.0)
    return lambda x: x * Box.count * box.count * box.items[0], [
        lambda: setattr(Box, "count", 2.0), lambda: setattr(Special, "count", 3.0), lambda: setattr(box, "count", 4.0),
        lambda: Box.items.__setitem__(0, 5.0), lambda: (delattr(box, "count"), delattr(Special, "count")),
        lambda: (setattr(Box, "count", 1.0), Box.items.__setitem__(0, 1.0)),
    ]  # fmt: skip


@case(ANY)
def patched_methods() -> Any:
    box, first = Special(2.0), Box.scaled
    kept = {n: Box.__dict__[n] for n in ("counted", "fixed", "scaled", "double")}
    return lambda x: (box.scaled(x), box.counted(x), Special.fixed(x), box.fixed(x), box.double * x), [
        lambda: setattr(Box, "scaled", lambda self, x: x * 100), lambda: setattr(Box, "counted", classmethod(lambda cls, x: x * 7)),
        lambda: setattr(Box, "fixed", staticmethod(lambda x: x * 9)), lambda: setattr(Box, "double", property(lambda self: 11.0)),
        lambda: setattr(Box, "scaled", first), lambda: setattr(box, "scaled", lambda x: x * 3), lambda: delattr(box, "scaled"),
        lambda: [setattr(Box, n, v) for n, v in kept.items()],
    ]  # fmt: skip


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
        lambda: setattr(box, "__class__", Special), lambda: setattr(box, "__class__", Box),
    ]  # fmt: skip


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
    return lambda x: x * box.get_it * (2 if hasattr(box, "get_more") else 1) * (3 if hasattr(box, "none") else 1) * described.d, [
        put("SCALE", 2.0), lambda: setattr(box, "get_it", 5.0), lambda: setattr(box, "none", 5.0), lambda: setattr(described, "k", 4.0),
        lambda: (delattr(box, "get_it"), delattr(box, "none")), put("SCALE", 1.0),
    ]  # fmt: skip


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


class Color(enum.Enum):
    RED = 1.0
    BLUE = 2.0


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
    return lambda x: x * options.k * options.sizes[0] * Options().extra * Options().sizes[0] * (2.0 if options == Options() else 3.0), [
        lambda: setattr(options, "k", 3.0), lambda: options.sizes.append(2.0), put("SCALE", 2.0), lambda: setattr(options, "k", 1.0),
        lambda: options.sizes.pop(), put("SCALE", 1.0),
    ]  # fmt: skip


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
    "add": lambda o, x: o + x, "radd": lambda o, x: (1.0 + o) * x, "mul": lambda o, x: o * x, "rpow": lambda o, x: x * (2.0**o),
    "in place": _matmul, "neg": lambda o, x: x * -o, "abs": lambda o, x: x * abs(o), "float": lambda o, x: x * float(o),
    "int": lambda o, x: x * int(o), "index": lambda o, x: x * [1.0, 2.0, 3.0][o], "truth": lambda o, x: x if o else -x,
    "not": lambda o, x: x * (not o), "bool": lambda o, x: x * bool(o), "and": lambda o, x: x * ((o and 2) or 5) if o else x * 7,
    "len": lambda o, x: x * len(o), "eq": lambda o, x: x if o == 3.0 else -x, "ne": lambda o, x: x if o != 3.0 else -x,
    "eq on the right": lambda o, x: x if 3.0 == o else -x, "lt": lambda o, x: x if o < 2.5 else -x, "gt on the left": lambda o, x: x if 2.5 > o else -x,
    "in": lambda o, x: x if 3.0 in o else -x, "in a list": lambda o, x: x if o in [3.0] else -x, "iter": lambda o, x: [x * i for i in o],
    "star": lambda o, x: x * max(*o), "unpacked": lambda o, x: (lambda a, b: x * a + b)(*o), "item": lambda o, x: x * o[2], "call": lambda o, x: o(x),
    "with": _with, "managed": _in_manager, "generator": lambda o, x: [x * v for v in _steps(o)], "str": lambda o, x: x * len(str(o)),
    "f-string": lambda o, x: x * len(f"{o}"), "sum": lambda o, x: x * sum(o), "sorted": lambda o, x: x * sorted([2.0, 1.0], key=lambda v: v if o < 2.5 else -v)[0],
    "map": lambda o, x: list(map(o, [x])), "zip": lambda o, x: [x * a * b for a, b in zip(o, [1, 2])], "attrgetter": lambda o, x: x * operator.attrgetter("k")(o),
    "methodcaller": lambda o, x: operator.methodcaller("__call__", x)(o), "operator": lambda o, x: operator.add(o, x),
    "chain": lambda o, x: [x * v for v in itertools.chain(o, [1.0])], "vars": lambda o, x: x * vars(o)["k"], "dict": lambda o, x: x * o.__dict__["k"],
    "double star": lambda o, x: (lambda k: x * k)(**o.__dict__), "bound": lambda o, x: (lambda m: m(x))(o.__call__),
    "accumulate": lambda o, x: list(itertools.accumulate([x, x], lambda a, b: a * o.k + b)),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_classes(name: str) -> None:
    f, box = OPERATORS[name], Number(1.0)
    jitted = ms.jit(lambda x: f(box, x))
    plainly = lambda x: f(box, x)
    method, kept = Number.value, {}
    try:
        for what, change in (("as it was", lambda: None), ("another attribute", lambda: setattr(box, "k", 3.0)), ("another global", put("SCALE", 2.0)),
                             ("another method", lambda: setattr(Number, "value", lambda self: 3.0)), ("back", put("SCALE", 1.0)),
                             ("the method back", lambda: setattr(Number, "value", method))):  # fmt: skip
            change()
            agree(plainly, jitted, f"{name}: {what}")
    finally:
        Number.value = method
        globals().update(SCALE=1.0, **kept)


# Containers of other kinds, arrays, tensors, parameters.


class Listed(list):
    pass


class Mapped(dict):
    pass


@case(ANY)
def containers_of_other_kinds() -> Any:
    listed, mapped, deque, raw = Listed([1.0]), Mapped(a=1.0), collections.deque([1.0]), bytearray(b"ab")
    counter, chained, typed = collections.Counter("aab"), collections.ChainMap({"a": 1.0}), array.array("d", [1.0])
    space, proxy, pair = (
        types.SimpleNamespace(k=[1.0]),
        types.MappingProxyType(TABLE),
        collections.namedtuple("Pair", "a b")([1.0], Box(2.0)),
    )

    def f(x: Any) -> Any:
        return (x * listed[0] * len(listed), x * mapped["a"], x * deque[0] * len(deque), x * raw[0], x * counter["a"], x * chained["a"], x * typed[0],
                x * space.k[0], x * proxy["a"], x * pair.a[0] * pair.b.k)  # fmt: skip

    return f, [
        lambda: listed.append(2.0), lambda: mapped.__setitem__("a", 3.0), lambda: deque.append(4.0), lambda: raw.__setitem__(0, 5),
        lambda: counter.update("aa"), lambda: chained.__setitem__("a", 6.0), lambda: typed.__setitem__(0, 7.0), lambda: space.k.__setitem__(0, 8.0),
        lambda: TABLE.__setitem__("a", 9.0), lambda: pair.a.__setitem__(0, 10.0), lambda: setattr(pair.b, "k", 11.0), lambda: TABLE.__setitem__("a", 1.0),
    ]  # fmt: skip


@case(ANY)
def numpy_arrays() -> Any:
    values, objects, scalar = np.array([1.0, 2.0, 3.0]), np.array([1.0, [2.0]], dtype=object), np.array(1.0)
    view = values[1:]
    return lambda x: (x * float(values[0]), x * Tensor(values, ms.float32), x * float(view.sum()), x * objects[0], x * objects[1][0], x * float(scalar)), [
        lambda: values.__setitem__(0, 5.0), lambda: view.__setitem__(0, 6.0), lambda: objects.__setitem__(0, 7.0), lambda: objects[1].__setitem__(0, 8.0),
        lambda: scalar.__setitem__((), 9.0), lambda: values.__setitem__(slice(None), [1.0, 2.0, 3.0]),
    ]  # fmt: skip


SHARED: Any = Tensor([2.0])


@case(ANY)
def tensors_as_globals() -> Any:
    return lambda x: x * SHARED, [
        put("SHARED", Tensor([3.0])), lambda: SHARED.__setitem__(0, 4.0), put("SHARED", 3.0), put("SHARED", Tensor([3.0], ms.float64)),
        put("SHARED", Tensor([1.0, 2.0, 3.0])), put("SHARED", Tensor([2.0])),
    ]  # fmt: skip


@case(ANY)
def tensors_in_containers_and_attributes() -> Any:
    listed, box = [Tensor([2.0])], Box(Tensor([3.0]))
    return lambda x: x * listed[0] + box.k + listed[-1].shape[0], [
        lambda: listed.__setitem__(0, Tensor([5.0])), lambda: listed[0].__setitem__(0, 6.0), lambda: listed.append(Tensor([7.0, 8.0, 9.0])),
        lambda: setattr(box, "k", Tensor([1.0, 1.0, 2.0])), lambda: setattr(box, "k", 2.0), lambda: listed.pop(),
    ]  # fmt: skip


@case(2)
def a_global_tensor_set_anew() -> Any:
    return lambda x: x * SHARED, [put("SHARED", Tensor([float(i)])) for i in range(20)] + [put("SHARED", Tensor(2.0))]


@case(ANY)
def views_of_dicts() -> Any:
    table = {"a": 1.0}
    values, keys = table.values(), table.keys()
    return lambda x: x * sum(values) + len(list(keys)), [
        lambda: table.update(a=2.0),
        lambda: table.update(b=1.0),
        lambda: table.pop("b"),
    ]


@case(ANY)
def methods_of_tensors() -> Any:
    Tensor._scaled_for_a_test = lambda self: self * 2
    kept = Tensor.abs
    return lambda x: x._scaled_for_a_test() + x.abs(), [
        lambda: setattr(Tensor, "_scaled_for_a_test", lambda self: self * 3), lambda: setattr(Tensor, "abs", lambda self: self * 9),
        lambda: (setattr(Tensor, "abs", kept), delattr(Tensor, "_scaled_for_a_test"), setattr(Tensor, "_scaled_for_a_test", lambda self: self)),
    ]  # fmt: skip


@case(2)
def the_value_of_a_tensor() -> Any:
    size = Tensor([2, 3])
    return lambda x: ops.broadcast_to(x, tuple(size.asnumpy().tolist())), [
        lambda: size.__setitem__(0, 4),
        lambda: size.__setitem__(0, 2),
    ]


@case(ANY)
def parameters() -> Any:
    p = Parameter(Tensor([2.0]), name="p")
    return lambda x: (x * p if p.requires_grad else x - p) * len(p.name), [
        lambda: p.set_data(Tensor([4.0])), lambda: setattr(p, "requires_grad", False), lambda: setattr(p, "name", "ppp"),
        lambda: (setattr(p, "requires_grad", True), setattr(p, "name", "p")),
    ]  # fmt: skip


# Modules, built-in functions, settings.


@case(ANY)
def attributes_of_modules() -> Any:
    module = types.ModuleType("a_module_of_a_test")
    module.k, module.f = 1.0, lambda x: x * 2
    sys.modules[module.__name__] = module

    def f(x: Any) -> Any:
        import a_module_of_a_test
        from a_module_of_a_test import k

        return x * a_module_of_a_test.k + k + module.f(x)

    other = types.ModuleType("a_module_of_a_test")
    other.k = 9.0
    return f, [
        lambda: setattr(module, "k", 2.0), lambda: setattr(module, "f", lambda x: x * 5), lambda: sys.modules.__setitem__(module.__name__, other),
        lambda: sys.modules.__setitem__(module.__name__, module),
    ]  # fmt: skip


@case(ANY)
def patched_library_functions() -> Any:
    kept = math.sqrt, ops.sin, np.prod
    return lambda x: ops.sin(x) * math.sqrt(4.0) * float(np.prod([2.0, 3.0])), [
        lambda: setattr(math, "sqrt", lambda v: 9.0), lambda: setattr(ops, "sin", lambda v: v * 7), lambda: setattr(np, "prod", lambda v: 5.0),
        lambda: (setattr(math, "sqrt", kept[0]), setattr(ops, "sin", kept[1]), setattr(np, "prod", kept[2])),
    ]  # fmt: skip


@case(2)
def built_in_functions_that_are_hidden() -> Any:
    return lambda x: x * len([1, 2]), [lambda: globals().__setitem__("len", lambda v: 9), lambda: globals().pop("len")]


@case(2)
def built_in_functions_that_are_patched() -> Any:
    kept = builtins.oct
    return lambda x: x * len(oct(8)), [
        lambda: setattr(builtins, "oct", lambda v: "nine char"),
        lambda: setattr(builtins, "oct", kept),
    ]


@case(2)
def settings() -> Any:
    return lambda x: x if ms.get_context("mode") == ms.GRAPH_MODE else -x, [
        lambda: ms.set_context(mode=ms.GRAPH_MODE), lambda: ms.set_context(mode=ms.PYNATIVE_MODE),
    ]  # fmt: skip


@case(None)
def what_belongs_to_the_process() -> Any:
    kept = ms.get_seed()
    return lambda x: x * (ms.get_seed() or 1), [lambda: ms.set_seed(5), lambda: ms.set_seed(kept or 1)]


@case(ANY)
def environment_variables() -> Any:
    return lambda x: x * len(os.environ.get("MYCEL_TEST_OF_GUARDS", "a")) * len(os.getenv("MYCEL_TEST_OF_GUARDS", "a")), [
        lambda: os.environ.__setitem__("MYCEL_TEST_OF_GUARDS", "abc"), lambda: os.environ.pop("MYCEL_TEST_OF_GUARDS"),
    ]  # fmt: skip


@case(ANY)
def single_dispatch() -> Any:
    @functools.singledispatch
    def kind(v: Any) -> float:
        return 1.0

    return lambda x: x * kind(3) * kind("a"), [
        lambda: kind.register(int, lambda v: 5.0 * SCALE),
        put("SCALE", 2.0),
        put("SCALE", 1.0),
    ]


@case(None)
def names_as_text() -> Any:
    return lambda x: x * eval("SCALE") * globals()["SCALE"], [put("SCALE", 3.0), put("SCALE", 1.0)]


# Cells.


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.k, self.values, self.options, self.table = 1.0, [1.0], types.SimpleNamespace(k=2.0), {"f": 2.0}
        self.inner = nn.CellList([nn.ReLU()])
        self.w = Parameter(Tensor([1.0, 2.0, 3.0]), name="w")

    def construct(self, x: Any) -> Any:
        y = x * self.k * self.values[0] * self.options.k * self.table["f"] + self.w
        if self.training:
            y = -y
        for cell in self.inner:
            y = cell(y)
        return y


@case(ANY)
def everything_in_a_cell() -> Any:
    net, w = Net(), Parameter(Tensor([4.0, 4.0, 4.0]), name="other")
    construct, handles = Net.construct, []
    return lambda x: net(x), [
        lambda: setattr(net, "k", 2.0), lambda: net.values.__setitem__(0, 3.0), lambda: setattr(net.options, "k", 5.0), lambda: net.table.update(f=7.0),
        lambda: net.set_train(), lambda: net.set_train(False), lambda: net.inner.append(nn.Tanh()), lambda: net.inner.__setitem__(0, nn.Sigmoid()),
        lambda: setattr(net, "w", w), lambda: w.set_data(Tensor([0.0, 1.0, 0.0])),
        lambda: handles.append(net.register_forward_hook(lambda cell, args, out: out * 2 * SCALE)), put("SCALE", 3.0),
        lambda: handles.append(net.inner[0].register_forward_pre_hook(lambda cell, args: (args[0] + 1,))), lambda: handles[0].remove(), put("SCALE", 1.0),
        lambda: setattr(Net, "construct", lambda self, x: x * 123), lambda: setattr(net, "construct", lambda x: x * 77), lambda: delattr(net, "construct"),
        lambda: setattr(Net, "construct", construct),
    ]  # fmt: skip


@case(ANY)
def cells_of_the_library() -> Any:
    dense, norm, chain = nn.Dense(3, 3), nn.BatchNorm1d(3), nn.SequentialCell(nn.ReLU(), nn.Tanh())
    return lambda x: chain(norm(dense(x.reshape(1, 3)))), [
        lambda: setattr(dense, "weight", Parameter(ops.ones((3, 3)), name="w")), lambda: dense.weight.set_data(-ops.ones((3, 3))),
        lambda: setattr(dense, "activation", nn.ReLU()), lambda: setattr(dense, "has_bias", False), lambda: setattr(norm, "eps", 0.5),
        lambda: norm.moving_variance.set_data(Tensor([4.0, 4.0, 4.0])), lambda: chain.append(nn.Sigmoid()), lambda: chain.__setitem__(0, nn.Tanh()),
    ]  # fmt: skip


@case(ANY)
def what_walks_over_cells() -> Any:
    dense, net = nn.Dense(3, 3), Net()
    return lambda x: x * len(dense.trainable_params()) * len(list(net.cells_and_names())) * (2 if net.get_flags().get("z") else 1), [
        lambda: setattr(dense.weight, "requires_grad", False), lambda: setattr(dense, "extra", Parameter(Tensor(1.0), name="e")),
        lambda: setattr(net, "more", nn.ReLU()), lambda: net.add_flags(z=True),
    ]  # fmt: skip


@case(ANY)
def weights_of_a_gradient() -> Any:
    dense = nn.Dense(3, 1)
    return lambda x: [ops.sum(g) for g in ms.grad(lambda v: dense(v.reshape(1, 3)).sum(), None, dense.trainable_params())(x)], [
        lambda: setattr(dense.bias, "requires_grad", False), lambda: setattr(dense.bias, "requires_grad", True),
    ]  # fmt: skip


@pytest.mark.parametrize("make, versions", CASES)
def test_case(make: Any, versions: Optional[int]) -> None:
    f, changes = make()
    jitted = ms.jit(f)
    agree(f, jitted, "at first")
    left = list(changes)
    try:
        while left:
            left.pop(0)()
            agree(f, jitted, f"after change {len(changes) - len(left)}")
    finally:
        # What was changed is put back by the last changes.
        for change in left:
            change()
    made = versions_of(jitted)
    if versions is None:
        assert made is None
    elif versions is not ANY:
        assert made == versions
    else:
        assert made is None or made <= len(changes) + 1


# Static arguments.


@pytest.mark.parametrize("values", [
    (1, 2, 1), (1, 1.0, True), (0.0, -0.0), ("a", "b"), (ms.float32, ms.float16), ((1, 2), (1, 3)), ([1], [1, 2]), ({"a": 1}, {"a": 2}, {"b": 1}),
    (None, 1), ({1}, {1, 2}), (slice(1), slice(2)), (np.array([1.0]), np.array([2.0])), (Color.RED, Color.BLUE), (bytearray(b"a"), bytearray(b"b")),
], ids=str)  # fmt: skip
def test_static_arguments_are_constants(values: Any) -> None:
    def f(x: Any, v: Any) -> Any:
        return x, repr(v), type(v).__name__

    jitted = ms.jit(f)
    for v in (*values, *values):
        assert jitted(X, v)[1:] == f(X, v)[1:]


def test_changes_in_arguments_are_seen() -> None:
    box, listed, names, raw = Box(1.0), Listed([1.0]), {"a"}, bytearray(b"a")
    f = lambda x, box, listed, names, raw: x * box.k * listed[0] * len(listed) * len(names) * raw[0]
    jitted = ms.jit(f)
    for change in (lambda: None, lambda: setattr(box, "k", 2.0), lambda: listed.append(1.0), lambda: listed.__setitem__(0, 3.0), lambda: names.add("b"),
                   lambda: raw.__setitem__(0, 5)):  # fmt: skip
        change()
        for _ in range(2):
            np.testing.assert_allclose(
                jitted(X, box, listed, names, raw).asnumpy(), f(X, box, listed, names, raw).asnumpy()
            )


def test_iterators_from_outside_go_on() -> None:
    counts, rows = itertools.count(1), iter([Tensor(1.0), Tensor(2.0), Tensor(3.0), Tensor(4.0)])
    f = ms.jit(lambda x: x * next(counts))
    assert [float(f(Tensor(2.0))) for _ in range(3)] == [2.0, 4.0, 6.0]

    def two(x: Any) -> Any:
        for i, row in enumerate(rows):
            x = x + row
            if i == 1:
                return x
        return -x

    g = ms.jit(two)
    assert [float(g(Tensor(0.0))) for _ in range(3)] == [3.0, 7.0, 0.0]


def test_types_and_shapes_of_tensors_choose_versions() -> None:
    f = ms.jit(lambda x: x * 2 if x.dtype == ms.float32 else x + 1)
    for value in ([1.0], np.array([1.0]), [1], [[1.0]], [1.0]):
        x = Tensor(value)
        np.testing.assert_allclose(f(x).asnumpy(), (x * 2 if x.dtype == ms.float32 else x + 1).asnumpy())


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
            lambda x: x * s.number, lambda x: x * s.listed[0] + len(s.listed), lambda x: x + sum(s.listed), lambda x: x * s.table["a"] + len(s.table),
            lambda x: x + sum(s.table.values()), lambda x: s.box.scaled(x), lambda x: x * s.box.double, lambda x: s.box.counted(x) + s.box.items[0],
            lambda x: sum([b.scaled(x) for b in s.boxes]), lambda x: s.number_object + x, lambda x: x if s.number_object < 2.5 else -x,
            lambda x: x * len(s.number_object), lambda x: s.net(x), lambda x: x * float(s.array[0]) + s.array.shape[0], lambda x: x + s.tensor,
            lambda x: x * s.tensors[0] + s.tensors[-1], lambda x: s.function(x), lambda x: x * s.space.k + s.space.deep.k[0],
            lambda x: x if s.flag else x - 1, lambda x: x * s.color.value if s.color is Color.RED else x, lambda x: x * cell[0],
            lambda x: x * FACTOR + SCALE, lambda x: _one(x), lambda x: x + sum([v for v in _steps(s.box)]), lambda x: x * (1 if hasattr(s.space, "new") else 2),
            lambda x: x + max(s.listed, key=lambda v: v * SCALE), lambda x: x if "c" in s.table else x * 2, lambda x: _defaults(x),
        ]  # fmt: skip

    def changes(self) -> list[Callable[[], Any]]:
        s, r = self, self.rng
        v = lambda: float(r.randint(-3, 3))
        return [
            lambda: setattr(s, "number", v()), lambda: s.listed.append(v()), lambda: s.listed.pop() if len(s.listed) > 1 else None,
            lambda: s.listed.__setitem__(0, v()), lambda: setattr(s, "listed", [v(), v()]), lambda: s.table.__setitem__("a", v()),
            lambda: s.table.__setitem__("c", v()), lambda: s.table.pop("c", None), lambda: setattr(s.box, "k", v()), lambda: setattr(s, "box", Box(v())),
            lambda: setattr(s, "box", Special(v())), lambda: setattr(Box, "count", v()), lambda: Box.items.__setitem__(0, v()),
            lambda: setattr(s.boxes[0], "k", v()), lambda: s.boxes.append(Box(v())), lambda: s.boxes.pop() if len(s.boxes) > 1 else None,
            lambda: setattr(s.boxes[-1], "__class__", r.choice([Box, Special])), lambda: setattr(s.number_object, "k", abs(v())),
            lambda: setattr(s.net, "k", v()), lambda: s.net.set_train(r.random() < 0.5), lambda: s.net.values.__setitem__(0, v()),
            lambda: setattr(s.net.options, "k", v()), lambda: s.net.w.set_data(Tensor([v(), v(), v()])), lambda: s.net.inner.append(nn.ReLU()),
            lambda: setattr(s.net, "w", Parameter(Tensor([v(), v(), v()]), name="w")), lambda: s.array.__setitem__(0, v()),
            lambda: setattr(s, "array", np.array([v()])), lambda: setattr(s, "tensor", Tensor([v(), v(), v()])), lambda: s.tensor.__setitem__(0, v()) if isinstance(s.tensor, Tensor) else None,
            lambda: setattr(s, "tensor", v()), lambda: s.tensors.__setitem__(0, Tensor([v(), v(), v()])), lambda: s.tensors.reverse(),
            lambda: setattr(s, "function", r.choice([_two, lambda x: x * 3, abs, nn.ReLU()])), lambda: setattr(s.space, "k", v()),
            lambda: s.space.deep.k.__setitem__(0, v()), lambda: setattr(s.space, "deep", types.SimpleNamespace(k=[v()])),
            lambda: setattr(s, "flag", not s.flag), lambda: setattr(s, "color", r.choice(list(Color))), lambda: self.cell.__setitem__(0, v()),
            lambda: globals().update(FACTOR=v()), lambda: globals().update(SCALE=float(r.randint(1, 3))),
            lambda: globals().update(_one=r.choice([_two, lambda x: x * 2])), lambda: s.space.__dict__.pop("new", None) or setattr(s.space, "new", 1),
            lambda: _defaults.__defaults__[0].__setitem__(0, v()), lambda: setattr(_defaults, "__defaults__", ([v()],)),
        ]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_random_changes_are_seen(seed: int) -> None:
    rng = random.Random(seed)
    state = State(rng)
    readers = rng.sample(state.readers(), 5)
    kept = {n: globals()[n] for n in ("FACTOR", "SCALE", "_one")}
    defaults, count, items = _defaults.__defaults__, Box.count, list(Box.items)

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
        Box.items[:] = items


def test_an_optimizer_is_compiled_once_though_cells_are_made_between_its_steps() -> None:
    weight = Parameter(Tensor([1.0, 2.0]), name="weight")
    optimizer = nn.Adam([weight], 0.1)
    for _ in range(20):
        nn.CrossEntropyLoss()
        optimizer((Tensor([1.0, 1.0]),))
    jitted = optimizer._compiled()
    assert not jitted.lives and sum(map(len, jitted.versions.values())) == 1
    np.testing.assert_allclose(weight.asnumpy(), [-1.0, 0.0], atol=1e-4)
