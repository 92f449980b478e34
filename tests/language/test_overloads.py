"""Overloads and maps over sequences, in programs and in training steps."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, ParameterTuple, Tensor, nn, ops
from tests.language.harness import F, P, Programs, X, Y
from tests.language.versions import graphs

programs = Programs()


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=ms.LAX, jit_config={}, max_call_depth=1000)


# Overloads and maps in programs: run eagerly, compiled, in GRAPH_MODE and differentiated.

clip = ops.MultitypeFuncGraph("clip")


@clip.register("Number", "Tensor")
def _clip_number(limit: Any, g: Any) -> Any:
    return ops.clip(g, -limit, limit)


@clip.register("Tensor", "Tensor")
def _clip_tensor(limit: Any, g: Any) -> Any:
    return ops.minimum(ops.maximum(g, -limit), limit)


def _np_clip(limit: Any, g: Any) -> Any:
    return np.clip(g, -limit, limit)


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: (_np_clip(1.2, x), _np_clip(1.2, x * y)))
def clip_gradients_by_value(x: Any, y: Any) -> Any:
    return ops.HyperMap()(functools.partial(clip, 1.2), (x, x * y))


@programs.add((X, P), grad=(0,), oracle=lambda x, p: ((_np_clip(p, x),), _np_clip(p, x * 2)))
def clip_by_a_tensor_in_nested_sequences(x: Any, p: Any) -> Any:
    return ops.HyperMap(ops.Map().__class__(functools.partial(clip, p)))(((x,), x * 2))


mixed = ops.MultitypeFuncGraph("mixed")


@mixed.register("Tensor", "Tensor")
def _mixed_tensors(a: Any, b: Any) -> Any:
    return a * b


@mixed.register("Number", "Number")
def _mixed_numbers(a: Any, b: Any) -> Any:
    return a + b


@mixed.register("Bool", "Bool")
def _mixed_bools(a: Any, b: Any) -> Any:
    return 10.0 if a and b else 20.0


@mixed.register("Tuple", "Tuple")
def _mixed_tuples(a: Any, b: Any) -> Any:
    return a[0] * len(b)


@mixed.register("None", "Tensor")
def _mixed_none(a: Any, b: Any) -> Any:
    return -b


@mixed.register("String", "Tensor")
def _mixed_string(a: Any, b: Any) -> Any:
    return b * len(a)


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: [x * y, 3, 10.0, x * 2, -y, y * 3])
def overloads_by_kind(x: Any, y: Any) -> Any:
    return [mixed(x, y), mixed(1, 2), mixed(True, True), mixed((x,), (1, 2)), mixed(None, y), mixed("abc", y)]


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: {"a": x * y, "b": (5, (y * x,))})
def a_map_over_dicts_and_lists(x: Any, y: Any) -> Any:
    return ops.HyperMap(mixed)({"a": x, "b": (2, (y,))}, {"a": y, "b": (3, (x,))})


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: (x + y, x - y))
def a_flat_map_of_lambdas(x: Any, y: Any) -> Any:
    return ops.Map()(lambda a, b: a(b[0], b[1]), (lambda u, v: u + v, lambda u, v: u - v), ((x, y), (x, y)))


@programs.add((X,), grad=0, oracle=lambda x: (x * 12, x * 2))
def a_map_that_goes_backwards(x: Any) -> Any:
    seen = []

    def visit(a: Any) -> Any:
        seen.append(a)
        return seen[0] * a + len(seen)

    visited = ops.HyperMap(reverse=True)(lambda a: visit(a), (10, 1))
    return x * visited[0], x * visited[1]


@programs.add((X,), (-X,), grad=0, oracle=lambda x: (x * 2, x * 3) if x.sum() > 0 else (x * -1, x * -1))
def a_map_of_a_function_with_a_branch(x: Any) -> Any:
    return ops.HyperMap()(lambda a, k: a * k if x.sum() > 0 else -a, (x, x), (2, 3))


# Training code in MindSpore's style.


class _Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([1.0, -2.0]), name="w")
        self.b = Parameter(Tensor(0.5), name="b")

    def construct(self, x: Any) -> Any:
        return ops.sum((x * self.w + self.b) ** 2)


_scale = ops.MultitypeFuncGraph("scale")


@_scale.register("Tensor", "Tensor")
def _scale_tensor(scale: Any, g: Any) -> Any:
    return g * ops.reciprocal(scale)


class _Step(nn.Cell):
    """One training step with loss scaling and clipping, as MindSpore's tutorials write it."""

    def __init__(self, net: nn.Cell, limit: float) -> None:
        super().__init__(auto_prefix=False)
        self.net, self.limit = net, limit
        self.weights = ParameterTuple(net.trainable_params())
        self.hyper_map = ops.HyperMap()
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.scale = Tensor(8.0)

    def construct(self, x: Any) -> Any:
        loss = self.net(x)
        grads = self.grad(self.net, self.weights)(x, ops.ones_like(loss) * self.scale)
        grads = self.hyper_map(ops.partial(_scale, self.scale), grads)
        grads = self.hyper_map(ops.partial(clip, self.limit), grads)
        for p, g in zip(self.weights, grads):
            ops.assign_sub(p, g * 0.1)
        return loss


def test_a_training_step_with_maps_is_the_same_in_both_modes() -> None:
    found = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = _Net()
        step = _Step(net, 3.0)
        losses = [float(step(Tensor([1.0, 2.0]))) for _ in range(3)]
        found.append((losses, net.w.asnumpy(), float(net.b)))
    w, b, x = np.array([1.0, -2.0]), 0.5, np.array([1.0, 2.0])
    losses = []
    for _ in range(3):
        r = x * w + b
        losses.append((r**2).sum())
        w, b = w - 0.1 * np.clip(2 * r * x, -3, 3), b - 0.1 * np.clip((2 * r).sum(), -3, 3)
    for got in found:
        np.testing.assert_allclose(got[0], losses, rtol=1e-5)
        np.testing.assert_allclose(got[1], w, rtol=1e-5)
        np.testing.assert_allclose(got[2], b, rtol=1e-5)


def test_an_overload_registered_later_is_used() -> None:
    choose = ops.MultitypeFuncGraph("choose")
    choose.register("Tensor")(lambda x: x + 1)
    f = ms.jit(lambda x: choose(x), fullgraph=True)
    assert float(f(Tensor(1.0))) == 2.0
    choose.register("Tensor[Float32]")(lambda x: x + 10)
    assert float(f(Tensor(1.0))) == 11.0


def test_another_function_in_a_map_is_used() -> None:
    mapping = ops.HyperMap(lambda x: x + 1)
    f = ms.jit(lambda x: mapping((x, x)), fullgraph=True)
    assert [float(v) for v in f(Tensor(1.0))] == [2.0, 2.0]
    mapping.ops = lambda x: x * 5
    assert [float(v) for v in f(Tensor(1.0))] == [5.0, 5.0]


@pytest.mark.parametrize(
    "types, args, expected",
    [
        (("Number",), (True,), "wide"),
        (("Int",), (3,), "wide"),
        (("Int64",), (3,), "wide"),
        (("Float",), (3.0,), "wide"),
        ((ms.float32,), (Tensor(1.0),), "wide"),
        (("Tensor[Float32]",), (Tensor(1.0),), "wide"),
        ((str,), ("a",), "wide"),
        ((Tensor,), (Tensor(1),), "wide"),
        (("Parameter",), (Parameter(Tensor(1.0)),), "wide"),
        (("Function",), (len,), "wide"),
        (("Dictionary",), ({},), "wide"),
        (("Slice",), (slice(1),), "wide"),
        (("List",), ([1],), "wide"),
        (("Type",), (ms.int8,), "wide"),
    ],
)
def test_types_that_fit(types: Any, args: Any, expected: str) -> None:
    found = ops.MultitypeFuncGraph("found")
    found.register(*types)(lambda *a: "wide")
    assert found(*args) == expected


def test_the_closest_overload_wins() -> None:
    found = ops.MultitypeFuncGraph("found")
    for kind in ("Number", "Int", "Bool", "Tensor", "Parameter"):
        found.register(kind)(lambda x, kind=kind: kind)
    assert [found(v) for v in (1.5, 3, False)] == ["Number", "Int", "Bool"]
    assert [found(v) for v in (Tensor(1.0), Parameter(Tensor(1.0)))] == ["Tensor", "Parameter"]


def test_what_maps_and_overloads_refuse() -> None:
    found = ops.MultitypeFuncGraph("found")
    found.register("Tensor", "Number")(lambda a, b: a)
    assert found(1, "a") == 1  # a single one takes all
    found.register("Tensor", "Tensor")(lambda a, b: b)
    with pytest.raises(
        ValueError,
        match=r"found: no implementation is registered for \(Int64, String\); there are: \(Tensor, Number\); \(Tensor",
    ):
        found(1, "a")
    with pytest.raises(RuntimeError, match="'Foo' is no type name"):
        found.register("Foo")
    with pytest.raises(TypeError, match="must be a name, a MindSpore type or a class, not int"):
        found.register(3)
    with pytest.raises(TypeError, match="the name must be a string"):
        ops.MultitypeFuncGraph(3)
    with pytest.raises(TypeError, match="ops must be a function or None, not int"):
        ops.HyperMap(3)
    with pytest.raises(TypeError, match="there is nothing to map over"):
        ops.HyperMap(lambda x: x)()
    with pytest.raises(TypeError, match="must all be tuples of 2 members there, not tuple of 1"):
        ms.jit(lambda x: ops.HyperMap()(lambda a, b: a + b, (x, x), (x,)))(Tensor(1.0))


def test_functions_of_functions_in_the_numbers_of_a_map() -> None:
    @ms.jit(fullgraph=True)
    def f(x: Any, values: Any) -> Any:
        return ops.HyperMap(mixed)((x, values[0]), (x, values[1]))

    for a, b in ((1, 2), (5, 7)):
        got = f(Tensor(3.0), ms.mutable((a, b)))
        assert float(got[0]) == 9.0 and got[1] == a + b
    assert graphs(f) == 1


@programs.add((X,), grad=0)
def a_sum_by_reduction(x: Any) -> Any:
    return functools.reduce(lambda a, b: a * 0.5 + b, [F.sin(x), F.cos(x), x])


test_programs = programs.test()
