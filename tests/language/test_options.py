"""MindSpore's helpers for graph code: options of compilation, overloads and maps, variable numbers, marks, and state of Cells."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, ParameterTuple, Tensor, nn, ops
from mycel.base.errors import CompileError
from mycel.base.log import logger
from tests.language.harness import F, P, Programs, X, Y

programs = Programs()


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=ms.LAX, jit_config={}, max_call_depth=1000)


@pytest.fixture
def logged() -> Iterator[list[str]]:
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: Any) -> None:
            lines.append(record.getMessage())

    handler, level = Keep(logging.DEBUG), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)


def versions(jitted: Any) -> int:
    return sum(map(len, jitted.versions.values()))


def graphs(jitted: Any) -> int:
    """How many graphs there are, none of them run in segments."""
    assert not jitted.lives
    return versions(jitted)


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


@programs.add((X, P), grad=(0,), oracle=lambda x, p: ([_np_clip(p, x)], _np_clip(p, x * 2)))
def clip_by_a_tensor_in_nested_sequences(x: Any, p: Any) -> Any:
    return ops.HyperMap(ops.Map().__class__(functools.partial(clip, p)))(([x], x * 2))


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


@programs.add((X, Y), grad=(0, 1), oracle=lambda x, y: {"a": x * y, "b": [5, (y * x,)]})
def a_map_over_dicts_and_lists(x: Any, y: Any) -> Any:
    return ops.HyperMap(mixed)({"a": x, "b": [2, (y,)]}, {"a": y, "b": [3, (x,)]})


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


@pytest.mark.parametrize("types, args, expected", [
    (("Number",), (True,), "wide"), (("Int",), (3,), "wide"), (("Int64",), (3,), "wide"), (("Float",), (3.0,), "wide"),
    ((ms.float32,), (Tensor(1.0),), "wide"), (("Tensor[Float32]",), (Tensor(1.0),), "wide"), ((str,), ("a",), "wide"),
    ((Tensor,), (Tensor(1),), "wide"), (("Parameter",), (Parameter(Tensor(1.0)),), "wide"), (("Function",), (len,), "wide"),
    (("Dictionary",), ({},), "wide"), (("Slice",), (slice(1),), "wide"), (("List",), ([1],), "wide"), (("Type",), (ms.int8,), "wide"),
])  # fmt: skip
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
    with pytest.raises(
        ValueError, match=r"found: no implementation is registered for \(Int64, String\); there are: \(Tensor, Number\)"
    ):
        found(1, "a")
    with pytest.raises(RuntimeError, match="'Foo' is no type name"):
        found.register("Foo")
    with pytest.raises(TypeError, match="must be a name, a MindSpore type or a class, not int"):
        found.register(3)
    with pytest.raises(TypeError, match="the name must be a string"):
        ops.MultitypeFuncGraph(3)
    with pytest.raises(TypeError, match="ops must be a function, not int"):
        ops.HyperMap(3)
    with pytest.raises(TypeError, match="there is nothing to map over"):
        ops.HyperMap(lambda x: x)()
    with pytest.raises(TypeError, match="must all be tuples of 2 members there, not tuple of 1"):
        ms.jit(lambda x: ops.HyperMap()(lambda a, b: a + b, (x, x), (x,)))(Tensor(1.0))


# Variable numbers.


def test_another_mutable_number_does_not_compile_again() -> None:
    f = ms.jit(lambda x, n: x * n + n, fullgraph=True)
    for n in (2, -3, 7):
        assert float(f(Tensor(1.5), ms.mutable(n))) == 1.5 * n + n
    for n in (2.5, -0.25):
        assert float(f(Tensor(1.5), ms.mutable(n))) == 1.5 * n + n
    assert graphs(f) == 2
    assert [float(f(Tensor(1.5), n)) for n in (2, 3)] == [5.0, 7.5]
    assert graphs(f) == 4


def test_mutable_numbers_behave_as_numbers() -> None:
    @ms.jit(fullgraph=True)
    def f(n: Any, k: Any, flag: Any) -> Any:
        return (n + 1, n // 2, n % 3, n**2, -n, n > 2, k * 2, isinstance(n, int), isinstance(k, float), type(n), int(k), float(n),
                abs(n), max(n, 2), n if flag else k, flag, not flag, n, divmod(7, 2))  # fmt: skip

    for n, k, flag in ((5, 1.75, True), (-4, -2.5, False)):
        got = f(ms.mutable(n), ms.mutable(k), ms.mutable(flag))
        want = (n + 1, n // 2, n % 3, n**2, -n, n > 2, k * 2, True, True, int, int(k), float(n), abs(n), max(n, 2))
        assert got[:14] == want and [type(v) for v in got[:8]] == [type(v) for v in want[:8]]
        assert float(got[14]) == (n if flag else k)
        assert got[15:18] == (flag, not flag, n) and type(got[17]) is int
    assert graphs(f) == 1


@pytest.mark.parametrize("dtype", [ms.float16, ms.float32, ms.float64, ms.int32, ms.bfloat16])
def test_mutable_numbers_adapt_to_tensors(dtype: Any) -> None:
    x = Tensor([1, 2], dtype)
    f = ms.jit(lambda x, n: x + n, fullgraph=True)
    for n in (3, 2.5, True):
        assert f(x, ms.mutable(n)).dtype == (x + n).dtype
        np.testing.assert_allclose(f(x, ms.mutable(n)).float().asnumpy(), (x + n).float().asnumpy())


def test_mutable_numbers_decide_branches_and_loops() -> None:
    @ms.jit(fullgraph=True)
    def f(x: Any, n: Any) -> Any:
        s = x
        for i in range(n):
            s = s + x * i
        while n > 4:
            s, n = s * 2, n - 1
        return s if n > 1 else -s

    def plain(x: float, n: int) -> float:
        s = x
        for i in range(n):
            s = s + x * i
        while n > 4:
            s, n = s * 2, n - 1
        return s if n > 1 else -s

    for n in (0, 1, 3, 6):
        assert float(f(Tensor(1.5), ms.mutable(n))) == plain(1.5, n)
    assert graphs(f) == 1


def test_mutable_containers() -> None:
    @ms.jit(fullgraph=True)
    def f(x: Any, sizes: Any, options: Any) -> Any:
        total = sum(sizes)
        return x * total + options["k"], len(sizes), sizes[0], x[sizes[1]]

    x = Tensor([1.0, 2.0, 3.0])
    for a, b, k in ((1, 2, 0.5), (4, 0, 2.5)):
        got = f(x, ms.mutable([a, b]), ms.mutable({"k": k}))
        np.testing.assert_allclose(got[0].asnumpy(), np.array([1, 2, 3]) * (a + b) + k)
        assert got[1:3] == (2, a) and float(got[3]) == [1, 2, 3][b]
    assert graphs(f) == 1


def test_mutable_tensors_in_containers() -> None:
    f = ms.jit(lambda pair: (pair[0] * pair[1][0], pair[1][1]), fullgraph=True)
    for k in (2, 3):
        got = f(ms.mutable((Tensor(2.0), [k, Tensor(1.0)])))
        assert float(got[0]) == 2.0 * k and float(got[1]) == 1.0
    assert graphs(f) == 1


def test_gradients_with_mutable_numbers() -> None:
    f = ms.jit(lambda x, n: ops.sum(x * x * n), fullgraph=True)
    for n in (2, 5):
        for slope in (ms.grad(f), ms.jit(ms.grad(f)), ms.grad(lambda x, n: ops.sum(x * x * n))):
            np.testing.assert_allclose(slope(Tensor([1.0, 3.0]), ms.mutable(n)).asnumpy(), [2 * n, 6 * n])
    assert graphs(f) == 1


def test_a_mutable_number_where_its_value_is_needed_runs_in_segments() -> None:
    f = ms.jit(lambda x, shape: x.reshape(shape))
    for shape in ((3, 2), (6, 1)):
        assert f(ops.ones((2, 3)), ms.mutable(shape)).shape == shape
    assert "mutable" in str(ms.explain(f))


def test_a_mutable_number_too_large_for_a_tensor_is_a_constant() -> None:
    f = ms.jit(lambda x, n: x + (n >> 64), fullgraph=True)
    assert float(f(Tensor(1.0), ms.mutable(3 << 64))) == 4.0


def test_mutable_data_is_what_it_was() -> None:
    for value in (3, 2.5, True, (1, 2.0), [1, (2, 3)], {"a": 1}):
        made = ms.mutable(value)
        assert made == value and repr(made) == repr(value) and isinstance(made, (int, type(value)))
    t = Tensor(1.0)
    assert ms.mutable(t) is t
    assert ms.mutable((1, 2), True) == (1, 2)
    assert float(ms.jit(lambda x: x * ms.mutable(2))(t)) == 2.0


def test_lengths_of_dynamic_length_compile_once_each() -> None:
    f = ms.jit(lambda values: (sum(values), len(values)), fullgraph=True)
    for values in ([1, 2], [3, 4], [1, 2, 3], [4, 5, 6]):
        assert f(ms.mutable(values, dynamic_len=True)) == (sum(values), len(values))
    assert graphs(f) == 2


@pytest.mark.parametrize("value", ["a", None, (1, "a"), np.ones(2), {1: {2}}])
def test_what_cannot_be_mutable(value: Any) -> None:
    with pytest.raises(TypeError, match="mutable: takes a bool, int, float, Tensor"):
        ms.mutable(value)


def test_what_mutable_refuses() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    with pytest.raises(TypeError, match="without itself inside"):
        ms.mutable(cyclic)
    with pytest.raises(TypeError, match="dynamic_len must be a bool"):
        ms.mutable((1,), 3)
    with pytest.raises(TypeError, match="dynamic_len needs a tuple or list, not int"):
        ms.mutable(3, True)
    with pytest.raises(ValueError, match="of one type and shape"):
        ms.mutable((1, 2.0), True)


# jit and its options.


@pytest.mark.parametrize("mode", ["ast", "bytecode", "trace"])
def test_capture_modes_mean_the_same(mode: str) -> None:
    @ms.jit(capture_mode=mode, fullgraph=True)
    def f(x: Any) -> Any:
        return x * 2 if x > 0 else x - 1

    assert [float(f(Tensor(v))) for v in (3.0, -3.0)] == [6.0, -4.0]


@pytest.mark.parametrize("options, error, text", [
    ({"capture_mode": "x"}, ValueError, "capture_mode must be one of 'ast', 'bytecode', 'trace'"),
    ({"jit_level": "O3"}, ValueError, "jit_level must be one of"), ({"dynamic": 2}, ValueError, "dynamic must be one of 0, 1"),
    ({"dynamic": "1"}, TypeError, "dynamic must be an int, not str"), ({"fullgraph": 1}, TypeError, "fullgraph must be a bool"),
    ({"backend": "x"}, ValueError, "backend must be one of"), ({"exec_order": "x"}, ValueError, "exec_order must be one of"),
    ({"disable_format_transform": 3}, TypeError, "must be a bool, not int"), ({"ge_options": 3}, TypeError, "must be a dict"),
    ({"jit_syntax_level": "HIGH"}, ValueError, "must be one of '', 'STRICT'"), ({"jit_config": 3}, TypeError, "must be a JitConfig"),
    ({"infer_boost": "x"}, ValueError, "infer_boost must be one of"),
])  # fmt: skip
def test_options_of_jit_are_checked(options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        ms.jit(lambda x: x, **options)


def test_options_without_effect_say_so(logged: list[str]) -> None:
    f = ms.jit(lambda x: x + 1, exec_order="dfs", ge_options={"a": 1}, no_such_option=3)
    assert float(f(Tensor(1.0))) == 2.0
    text = "\n".join(logged)
    assert "exec_order='dfs') has no effect" in text and "ge_options" in text and "no option 'no_such_option'" in text
    ms.mutable((1, 2), dynamic_len=True)
    assert "each length is compiled once" in logged[-1]
    ms.no_inline(lambda x: x)
    assert "no_inline has no effect" in logged[-1]


class _Methods:
    k = 3.0

    @ms.jit
    def method(self, x: Any) -> Any:
        return x * self.k

    @staticmethod
    @ms.jit
    def static(x: Any) -> Any:
        return x + 1

    @ms.jit
    @staticmethod
    def static_below(x: Any) -> Any:
        return x + 2

    @classmethod
    @ms.jit
    def of_class(cls, x: Any) -> Any:
        return x * cls.k

    @ms.jit
    @classmethod
    def of_class_below(cls, x: Any) -> Any:
        return x * cls.k + 1

    @property
    @ms.jit
    def prop(self) -> Any:
        return Tensor(2.0) * self.k


def test_methods_of_every_kind() -> None:
    made, x = _Methods(), Tensor(2.0)
    assert float(made.method(x)) == 6.0
    assert [float(o.static(x)) for o in (made, _Methods)] == [3.0, 3.0]
    assert [float(o.static_below(x)) for o in (made, _Methods)] == [4.0, 4.0]
    assert [float(o.of_class(x)) for o in (made, _Methods)] == [6.0, 6.0]
    assert [float(o.of_class_below(x)) for o in (made, _Methods)] == [7.0, 7.0]
    assert float(made.prop) == 6.0
    made.k = 5.0
    assert float(made.method(x)) == 10.0 and float(made.of_class(x)) == 6.0 and float(made.prop) == 10.0


class _Decorated(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor(3.0), name="w")

    @ms.jit
    def construct(self, x: Any) -> Any:
        if x.sum() > 0:
            return x * self.w
        return x - self.w


def test_a_decorated_construct_in_both_modes_and_differentiated() -> None:
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = _Decorated()
        assert [float(net(Tensor(v))) for v in (2.0, -2.0)] == [6.0, -5.0]
        slopes = ms.grad(net, 0, net.trainable_params())(Tensor(2.0))
        assert float(slopes[0]) == 3.0 and float(slopes[1][0]) == 2.0


def test_jit_of_jit_and_of_cells() -> None:
    inner = ms.jit(lambda x: x * 2)
    outer = ms.jit(ms.jit(lambda x: inner(x) + 1, fullgraph=True), fullgraph=True)
    assert float(outer(Tensor(2.0))) == 5.0 and graphs(outer) == 1
    net = _Decorated()
    assert float(ms.jit(net)(Tensor(2.0))) == 6.0
    assert float(ms.jit(net.construct)(Tensor(2.0))) == 6.0
    with pytest.raises(TypeError, match="must be a function, a method or a Cell, not int"):
        ms.jit(3)


# Options of Cells and of the context.


class _Breaking(nn.Cell):
    def construct(self, x: Any) -> Any:
        return x * x.asnumpy().max()


def test_the_syntax_level_of_a_cell() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    strict, lax = _Breaking(), _Breaking()
    strict.set_jit_config(ms.JitConfig(jit_syntax_level="STRICT"))
    assert strict.jit_config_dict["jit_syntax_level"] == "STRICT" and lax.jit_config_dict == {}
    with pytest.raises(CompileError, match=r"asnumpy\(\) needs the value"):
        strict(Tensor([2.0]))
    assert float(lax(Tensor([2.0]))[0]) == 4.0


def test_the_nearest_syntax_level_wins() -> None:
    ms.set_context(jit_config={"jit_syntax_level": "STRICT"})
    breaking = lambda x: x * x.item()
    with pytest.raises(CompileError, match=r"item\(\) needs the value"):
        ms.jit(breaking)(Tensor(2.0))
    assert float(ms.jit(breaking, jit_syntax_level="LAX")(Tensor(2.0))) == 4.0
    assert float(ms.jit(breaking, jit_config=ms.JitConfig(jit_syntax_level="LAX"))(Tensor(2.0))) == 4.0
    ms.set_context(jit_config={})
    assert float(ms.jit(breaking)(Tensor(2.0))) == 4.0


def test_a_level_that_becomes_strict_is_seen() -> None:
    f = ms.jit(lambda x: x * x.item())
    assert float(f(Tensor(2.0))) == 4.0
    ms.set_context(jit_syntax_level=ms.STRICT)
    with pytest.raises(CompileError, match=r"item\(\) needs the value"):
        f(Tensor(2.0))
    ms.set_context(jit_syntax_level=ms.LAX)
    assert float(f(Tensor(2.0))) == 4.0


def test_options_are_checked_and_set_once(logged: list[str]) -> None:
    for options in (
        {"jit_level": "O9"},
        {"exc_mode": "x"},
        {"jit_syntax_level": "x"},
        {"debug_level": "x"},
        {"infer_boost": "x"},
    ):
        with pytest.raises(ValueError, match=f"JitConfig: {next(iter(options))} must be one of"):
            ms.JitConfig(**options)
    assert ms.JitConfig().jit_config_dict == {
        "jit_level": "", "exc_mode": "auto", "jit_syntax_level": "", "debug_level": "RELEASE", "infer_boost": "off"
    }  # fmt: skip
    cell = nn.ReLU()
    cell.set_jit_config(ms.JitConfig(jit_level="O1"))
    cell.set_jit_config(ms.JitConfig(jit_level="O0"))
    assert cell.jit_config_dict["jit_level"] == "O1" and "stay as they are" in logged[-1]
    assert any("jit_level='O1') has no effect" in line for line in logged)
    with pytest.raises(TypeError, match="takes a JitConfig, not dict"):
        cell.set_jit_config({})
    with pytest.raises(ValueError, match="greater than 0"):
        ms.set_recursion_limit(0)
    with pytest.raises(TypeError, match="must be an int, not str"):
        ms.set_recursion_limit("a")
    ms.set_recursion_limit(2000)
    assert ms.get_context("max_call_depth") == 2000


# Marks.

FACTOR = 2


@ms.constexpr
def _doubled(shape: Any) -> Any:
    return tuple(FACTOR * n for n in shape)


def test_constexpr() -> None:
    global FACTOR
    assert _doubled((1, 2)) == (2, 4)
    f = ms.jit(lambda x: ops.broadcast_to(x, _doubled(x.shape[:0] + (1,)) + x.shape), fullgraph=True)
    assert f(Tensor([1.0, 2.0, 3.0])).shape == (2, 3)
    FACTOR = 5
    assert f(Tensor([1.0, 2.0, 3.0])).shape == (5, 3)
    FACTOR = 2
    kind = ms.constexpr(lambda x: x + 1, get_instance=False, name="Increment")
    assert kind.__name__ == "Increment" and kind()(3) == 4
    assert ms.ops.constexpr(get_instance=True)(lambda x: x * 2)(4) == 8
    with pytest.raises(TypeError, match="takes a function, not int"):
        ms.constexpr(3)


def test_primexpr_with_variable_numbers() -> None:
    from mycel.common.markers import _primexpr

    half = _primexpr(lambda n: n // 2)
    f = ms.jit(lambda x, n: x * half(n), fullgraph=True)
    assert [float(f(Tensor(1.0), ms.mutable(n))) for n in (4, 9)] == [2.0, 4.0] and graphs(f) == 1


@ms.jit_class
class _Scaler:
    offset = Tensor(1.0)

    def __init__(self, k: Any) -> None:
        self.k = k

    def scaled(self, x: Any) -> Any:
        return x * self.k + self.offset

    def __call__(self, x: Any) -> Any:
        return self.scaled(x) - 1


shared = _Scaler(4.0)


@programs.add((X,), grad=0, oracle=lambda x: (x * 3 + x * 3 + 1, 3, x * 4))
def objects_made_and_used_inside(x: Any) -> Any:
    made = _Scaler(3)
    return made(x) + made.scaled(x), made.k, shared(x)


def test_an_object_that_changes() -> None:
    box = _Scaler(2.0)
    f = ms.jit(lambda x: box(x), fullgraph=True)
    assert float(f(Tensor(3.0))) == 6.0
    box.k = 5.0
    assert float(f(Tensor(3.0))) == 15.0


def test_what_jit_class_refuses() -> None:
    assert _Scaler.__ms_class__
    with pytest.raises(TypeError, match="takes a class, not function"):
        ms.jit_class(lambda x: x)
    with pytest.raises(TypeError, match="is a Cell, which needs no mark"):
        ms.jit_class(nn.ReLU)


class _Block(nn.Cell):
    @ms.lazy_inline(policy="front")
    def __init__(self, k: float) -> None:
        super().__init__()
        self.k = k

    @ms.no_inline
    def construct(self, x: Any) -> Any:
        return x * self.k


def test_marks_that_change_nothing() -> None:
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = nn.SequentialCell(_Block(2.0), _Block(3.0))
        assert float(net(Tensor(1.0))) == 6.0 and float(ms.grad(net)(Tensor(1.0))) == 6.0
    assert _Block.construct.no_inline
    for mark in (ms.lazy_inline, ms.no_inline):
        with pytest.raises(TypeError, match="takes a function, not int"):
            mark(3)


# Cells: parts by path, and state.


class _Stateful(nn.Cell):
    def __init__(self, k: int) -> None:
        super().__init__()
        self.dense = nn.Dense(2, 3)
        self.k = k
        self.register_buffer("steps", Tensor([1.0]))
        self.register_buffer("scratch", Tensor([2.0]), persistent=False)

    def get_extra_state(self) -> Any:
        return {"k": self.k}

    def set_extra_state(self, state: Any) -> None:
        self.k = state["k"]

    def construct(self, x: Any) -> Any:
        return self.dense(x) * self.k + self.steps


def test_state_dicts_go_round() -> None:
    first, second = nn.SequentialCell(_Stateful(3)), nn.SequentialCell(_Stateful(4))
    second[0].steps = Tensor([5.0])
    state = first.state_dict()
    assert list(state) == ["0.steps", "0._extra_state", "0.dense.weight", "0.dense.bias"]
    assert (
        list(first.state_dict(prefix="p.")) == [f"p.{k}" for k in state]
        and state["0.dense.weight"] is first[0].dense.weight
    )
    x = ops.ones((1, 2))
    ms.set_context(mode=ms.GRAPH_MODE)
    before = second(x).asnumpy()
    assert str(second.load_state_dict(state)) == "<All keys matched successfully>"
    np.testing.assert_array_equal(second(x).asnumpy(), first(x).asnumpy())
    assert second[0].k == 3 and float(second[0].steps[0]) == 1.0 and not np.allclose(before, first(x).asnumpy())
    assert second[0].dense.weight is not first[0].dense.weight


def test_states_that_do_not_fit() -> None:
    net = nn.Dense(2, 3)
    with pytest.raises(
        RuntimeError, match="Dense cannot take this state:\n  missing: weight, bias\n  not expected: other"
    ):
        net.load_state_dict({"other": Tensor(1.0)})
    found = net.load_state_dict({"other": Tensor(1.0), "bias": Tensor([1.0, 2.0, 3.0])}, strict=False)
    assert found.missing_keys == ["weight"] and found.unexpected_keys == ["other"] and float(net.bias[2]) == 3.0
    with pytest.raises(RuntimeError, match=r"weight: the value has shape \(3, 3\), the Cell's \(3, 2\)"):
        net.load_state_dict({"weight": ops.ones((3, 3)), "bias": Tensor([1.0, 2.0, 3.0])})
    with pytest.raises(TypeError, match="takes a mapping, not int"):
        net.load_state_dict(3)
    with pytest.raises(RuntimeError, match="does not define get_extra_state"):
        net.get_extra_state()


def test_hooks_of_states() -> None:
    net, seen = nn.Dense(2, 3), []
    handles = [
        net.register_state_dict_pre_hook(lambda cell, prefix, keep: seen.append(("pre", prefix, keep))),
        net.register_state_dict_post_hook(lambda cell, state, prefix, meta: state.update(extra=1)),
        net.register_load_state_dict_pre_hook(lambda cell, state, *rest: state.pop("extra")),
        net.register_load_state_dict_post_hook(lambda cell, keys: seen.append(("loaded", keys.missing_keys))),
    ]
    state = net.state_dict()
    assert state["extra"] == 1
    net.load_state_dict(state)
    assert seen == [("pre", "", False), ("loaded", [])]
    for handle in handles:
        handle.remove()
    assert "extra" not in net.state_dict() and len(seen) == 2


def test_parts_by_path() -> None:
    net = nn.SequentialCell(_Stateful(3), nn.ReLU())
    assert net.get_sub_cell("") is net and net.get_sub_cell("0.dense") is net[0].dense
    assert float(net.get_buffer("0.steps")[0]) == 1.0
    for call, text in ((lambda: net.get_sub_cell("9"), "'9' in a SequentialCell does not exist"),
                       (lambda: net.get_sub_cell("0.k"), "'k' in a _Stateful is not a Cell"),
                       (lambda: net.get_buffer("0.k"), "'k' in a _Stateful is not a buffer"),
                       (lambda: net.get_buffer("0.nope"), "'nope' in a _Stateful does not exist")):  # fmt: skip
        with pytest.raises(AttributeError, match=text):
            call()


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
