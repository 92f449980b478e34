"""Guards: whatever a compiled function read from outside and that changes is seen, and what it was
before is found again (`guard_cases`).
"""

from __future__ import annotations

import array
import builtins
import collections
import functools
import itertools
import math
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, Tensor, nn, ops
from tests.language.guard_cases import ANY, Cases
from tests.language.guard_objects import Color, Held, Net, _defaults, _one, _two

X = Tensor([1.0, 2.0, 3.0])
cases = Cases()
case = cases.add


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


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
        lambda: VALUES.append(3.0),
        lambda: VALUES.__setitem__(0, 5.0),
        lambda: VALUES.reverse(),
        lambda: VALUES.reverse(),
        lambda: VALUES.__setitem__(slice(None), [1.0, 2.0]),
    ]


@case(4)
def a_dict() -> Any:
    return lambda x: [x * len(k) for k in TABLE] + [x * TABLE["b"]["c"], x * TABLE.get("z", 7.0)], [
        lambda: TABLE["b"].__setitem__("c", 4.0),
        lambda: TABLE.__setitem__("zz", 1.0),
        lambda: TABLE.__setitem__("z", 2.0),
        lambda: (TABLE.pop("z"), TABLE.pop("zz"), TABLE["b"].__setitem__("c", 2.0)),
    ]


@case(3)
def a_set() -> Any:
    return lambda x: x * len(NAMES) if "three" in NAMES else -x, [
        lambda: NAMES.add("three"),
        lambda: NAMES.add("four"),
        lambda: NAMES.difference_update({"three", "four"}),
    ]


@case(3)
def a_list_in_a_tuple() -> Any:
    return lambda x: x * NESTED[1][0] * NESTED[1][1]["k"], [
        lambda: NESTED[1].__setitem__(0, 9.0),
        lambda: NESTED[1][1].__setitem__("k", 4.0),
        lambda: (NESTED[1].__setitem__(0, 2.0), NESTED[1][1].__setitem__("k", 3.0)),
    ]


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


@case(5)
def default_arguments() -> Any:
    first, named = _defaults.__defaults__, _defaults.__kwdefaults__
    return lambda x: _defaults(x), [
        lambda: first[0].__setitem__(0, 4.0),
        lambda: named["table"].__setitem__("a", 5.0),
        lambda: setattr(_defaults, "__defaults__", ([8.0],)),
        lambda: setattr(_defaults, "__kwdefaults__", {"table": {"a": 3.0}}),
        lambda: (
            setattr(_defaults, "__defaults__", first),
            setattr(_defaults, "__kwdefaults__", named),
            first[0].__setitem__(0, 1.0),
            named["table"].__setitem__("a", 2.0),
        ),
    ]


@case(2)
def a_default_that_is_an_object() -> Any:
    box = Held(2.0)

    def f(x: Any, box: Any = box) -> Any:
        return x * box.k

    return lambda x: f(x), [lambda: setattr(box, "k", 3.0), lambda: setattr(box, "k", 2.0)]


@case(3)
def a_function_that_is_exchanged_or_gets_other_code() -> Any:
    first, code = _one, _one.__code__
    return lambda x: _one(x), [
        put("_one", lambda x: x * 5),
        put("_one", first),
        lambda: setattr(first, "__code__", _two.__code__),
        lambda: setattr(first, "__code__", code),
    ]


@case(3)
def attributes_of_functions() -> Any:
    _two.k = 1.0
    return lambda x: x * getattr(_two, "k", 9.0), [
        lambda: setattr(_two, "k", 2.0),
        lambda: delattr(_two, "k"),
        lambda: setattr(_two, "k", 1.0),
    ]


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
    return lambda x: g(x), [
        lambda: values.__setitem__(0, 5.0),
        lambda: table.__setitem__("b", 2.0),
        lambda: (values.__setitem__(0, 2.0), table.__setitem__("b", 1.0)),
    ]


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
        collections.namedtuple("Pair", "a b")([1.0], Held(2.0)),
    )

    def f(x: Any) -> Any:
        return (
            x * listed[0] * len(listed),
            x * mapped["a"],
            x * deque[0] * len(deque),
            x * raw[0],
            x * counter["a"],
            x * chained["a"],
            x * typed[0],
            x * space.k[0],
            x * proxy["a"],
            x * pair.a[0] * pair.b.k,
        )

    return f, [
        lambda: listed.append(2.0),
        lambda: mapped.__setitem__("a", 3.0),
        lambda: deque.append(4.0),
        lambda: raw.__setitem__(0, 5),
        lambda: counter.update("aa"),
        lambda: chained.__setitem__("a", 6.0),
        lambda: typed.__setitem__(0, 7.0),
        lambda: space.k.__setitem__(0, 8.0),
        lambda: TABLE.__setitem__("a", 9.0),
        lambda: pair.a.__setitem__(0, 10.0),
        lambda: setattr(pair.b, "k", 11.0),
        lambda: TABLE.__setitem__("a", 1.0),
    ]


@case(ANY)
def numpy_arrays() -> Any:
    values, objects, scalar = np.array([1.0, 2.0, 3.0]), np.array([1.0, [2.0]], dtype=object), np.array(1.0)
    view = values[1:]
    return lambda x: (
        x * float(values[0]),
        x * Tensor(values, ms.float32),
        x * float(view.sum()),
        x * objects[0],
        x * objects[1][0],
        x * float(scalar),
    ), [
        lambda: values.__setitem__(0, 5.0),
        lambda: view.__setitem__(0, 6.0),
        lambda: objects.__setitem__(0, 7.0),
        lambda: objects[1].__setitem__(0, 8.0),
        lambda: scalar.__setitem__((), 9.0),
        lambda: values.__setitem__(slice(None), [1.0, 2.0, 3.0]),
    ]


SHARED: Any = Tensor([2.0])


@case(ANY)
def tensors_as_globals() -> Any:
    return lambda x: x * SHARED, [
        put("SHARED", Tensor([3.0])),
        lambda: SHARED.__setitem__(0, 4.0),
        put("SHARED", 3.0),
        put("SHARED", Tensor([3.0], ms.float64)),
        put("SHARED", Tensor([1.0, 2.0, 3.0])),
        put("SHARED", Tensor([2.0])),
    ]


@case(ANY)
def tensors_in_containers_and_attributes() -> Any:
    listed, box = [Tensor([2.0])], Held(Tensor([3.0]))
    return lambda x: x * listed[0] + box.k + listed[-1].shape[0], [
        lambda: listed.__setitem__(0, Tensor([5.0])),
        lambda: listed[0].__setitem__(0, 6.0),
        lambda: listed.append(Tensor([7.0, 8.0, 9.0])),
        lambda: setattr(box, "k", Tensor([1.0, 1.0, 2.0])),
        lambda: setattr(box, "k", 2.0),
        lambda: listed.pop(),
    ]


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
        lambda: setattr(Tensor, "_scaled_for_a_test", lambda self: self * 3),
        lambda: setattr(Tensor, "abs", lambda self: self * 9),
        lambda: (
            setattr(Tensor, "abs", kept),
            delattr(Tensor, "_scaled_for_a_test"),
            setattr(Tensor, "_scaled_for_a_test", lambda self: self),
        ),
    ]


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
        lambda: p.set_data(Tensor([4.0])),
        lambda: setattr(p, "requires_grad", False),
        lambda: setattr(p, "name", "ppp"),
        lambda: (setattr(p, "requires_grad", True), setattr(p, "name", "p")),
    ]


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
        lambda: setattr(module, "k", 2.0),
        lambda: setattr(module, "f", lambda x: x * 5),
        lambda: sys.modules.__setitem__(module.__name__, other),
        lambda: sys.modules.__setitem__(module.__name__, module),
    ]


@case(ANY)
def patched_library_functions() -> Any:
    kept = math.sqrt, ops.sin, np.prod
    return lambda x: ops.sin(x) * math.sqrt(4.0) * float(np.prod([2.0, 3.0])), [
        lambda: setattr(math, "sqrt", lambda v: 9.0),
        lambda: setattr(ops, "sin", lambda v: v * 7),
        lambda: setattr(np, "prod", lambda v: 5.0),
        lambda: (setattr(math, "sqrt", kept[0]), setattr(ops, "sin", kept[1]), setattr(np, "prod", kept[2])),
    ]


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
        lambda: ms.set_context(mode=ms.GRAPH_MODE),
        lambda: ms.set_context(mode=ms.PYNATIVE_MODE),
    ]


@case(None)
def what_belongs_to_the_process() -> Any:
    kept = ms.get_seed()
    return lambda x: x * (ms.get_seed() or 1), [lambda: ms.set_seed(5), lambda: ms.set_seed(kept or 1)]


@case(ANY)
def environment_variables() -> Any:
    return (
        lambda x: x * len(os.environ.get("MYCEL_TEST_OF_GUARDS", "a")) * len(os.getenv("MYCEL_TEST_OF_GUARDS", "a")),
        [
            lambda: os.environ.__setitem__("MYCEL_TEST_OF_GUARDS", "abc"),
            lambda: os.environ.pop("MYCEL_TEST_OF_GUARDS"),
        ],
    )


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


@case(ANY)
def everything_in_a_cell() -> Any:
    net, w = Net(), Parameter(Tensor([4.0, 4.0, 4.0]), name="other")
    construct, handles = Net.construct, []
    return lambda x: net(x), [
        lambda: setattr(net, "k", 2.0),
        lambda: net.values.__setitem__(0, 3.0),
        lambda: setattr(net.options, "k", 5.0),
        lambda: net.table.update(f=7.0),
        lambda: net.set_train(),
        lambda: net.set_train(False),
        lambda: net.inner.append(nn.Tanh()),
        lambda: net.inner.__setitem__(0, nn.Sigmoid()),
        lambda: setattr(net, "w", w),
        lambda: w.set_data(Tensor([0.0, 1.0, 0.0])),
        lambda: handles.append(net.register_forward_hook(lambda cell, args, out: out * 2 * SCALE)),
        put("SCALE", 3.0),
        lambda: handles.append(net.inner[0].register_forward_pre_hook(lambda cell, args: (args[0] + 1,))),
        lambda: handles[0].remove(),
        put("SCALE", 1.0),
        lambda: setattr(Net, "construct", lambda self, x: x * 123),
        lambda: setattr(net, "construct", lambda x: x * 77),
        lambda: delattr(net, "construct"),
        lambda: setattr(Net, "construct", construct),
    ]


@case(ANY)
def cells_of_the_library() -> Any:
    dense, norm, chain = nn.Dense(3, 3), nn.BatchNorm1d(3), nn.SequentialCell(nn.ReLU(), nn.Tanh())
    return lambda x: chain(norm(dense(x.reshape(1, 3)))), [
        lambda: setattr(dense, "weight", Parameter(ops.ones((3, 3)), name="w")),
        lambda: dense.weight.set_data(-ops.ones((3, 3))),
        lambda: setattr(dense, "activation", nn.ReLU()),
        lambda: setattr(dense, "has_bias", False),
        lambda: setattr(norm, "eps", 0.5),
        lambda: norm.moving_variance.set_data(Tensor([4.0, 4.0, 4.0])),
        lambda: chain.append(nn.Sigmoid()),
        lambda: chain.__setitem__(0, nn.Tanh()),
    ]


@case(ANY)
def what_walks_over_cells() -> Any:
    dense, net = nn.Dense(3, 3), Net()
    return (
        lambda x: (
            x
            * len(dense.trainable_params())
            * len(list(net.cells_and_names()))
            * (2 if net.get_flags().get("z") else 1)
        ),
        [
            lambda: setattr(dense.weight, "requires_grad", False),
            lambda: setattr(dense, "extra", Parameter(Tensor(1.0), name="e")),
            lambda: setattr(net, "more", nn.ReLU()),
            lambda: net.add_flags(z=True),
        ],
    )


@case(ANY)
def weights_of_a_gradient() -> Any:
    dense = nn.Dense(3, 1)
    return lambda x: [
        ops.sum(g) for g in ms.grad(lambda v: dense(v.reshape(1, 3)).sum(), None, dense.trainable_params())(x)
    ], [
        lambda: setattr(dense.bias, "requires_grad", False),
        lambda: setattr(dense.bias, "requires_grad", True),
    ]


test_case = cases.test()


# Static arguments.


@pytest.mark.parametrize(
    "values",
    [
        (1, 2, 1),
        (1, 1.0, True),
        (0.0, -0.0),
        ("a", "b"),
        (ms.float32, ms.float16),
        ((1, 2), (1, 3)),
        ([1], [1, 2]),
        ({"a": 1}, {"a": 2}, {"b": 1}),
        (None, 1),
        ({1}, {1, 2}),
        (slice(1), slice(2)),
        (np.array([1.0]), np.array([2.0])),
        (Color.RED, Color.BLUE),
        (bytearray(b"a"), bytearray(b"b")),
    ],
    ids=str,
)
def test_static_arguments_are_constants(values: Any) -> None:
    def f(x: Any, v: Any) -> Any:
        return x, repr(v), type(v).__name__

    jitted = ms.jit(f)
    for v in (*values, *values):
        assert jitted(X, v)[1:] == f(X, v)[1:]


def test_changes_in_arguments_are_seen() -> None:
    box, listed, names, raw = Held(1.0), Listed([1.0]), {"a"}, bytearray(b"a")
    f = lambda x, box, listed, names, raw: x * box.k * listed[0] * len(listed) * len(names) * raw[0]
    jitted = ms.jit(f)
    for change in (
        lambda: None,
        lambda: setattr(box, "k", 2.0),
        lambda: listed.append(1.0),
        lambda: listed.__setitem__(0, 3.0),
        lambda: names.add("b"),
        lambda: raw.__setitem__(0, 5),
    ):
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


def test_an_optimizer_is_compiled_once_though_cells_are_made_between_its_steps() -> None:
    weight = Parameter(Tensor([1.0, 2.0]), name="weight")
    optimizer = nn.Adam([weight], 0.1)
    for _ in range(20):
        nn.CrossEntropyLoss()
        optimizer((Tensor([1.0, 1.0]),))
    jitted = optimizer._compiled()
    assert not jitted.lives and sum(map(len, jitted.versions.values())) == 1
    np.testing.assert_allclose(weight.asnumpy(), [-1.0, 0.0], atol=1e-4)


def test_types_and_shapes_of_tensors_choose_versions() -> None:
    f = ms.jit(lambda x: x * 2 if x.dtype == ms.float32 else x + 1)
    for value in ([1.0], np.array([1.0]), [1], [[1.0]], [1.0]):
        x = Tensor(value)
        np.testing.assert_allclose(f(x).asnumpy(), (x * 2 if x.dtype == ms.float32 else x + 1).asnumpy())
