"""Options of compilation and of Cells, marks, and state of Cells."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, Tensor, nn, ops
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.log import logger
from tests.language.harness import Programs, X
from tests.language.versions import graphs

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


# jit and its options.


@pytest.mark.parametrize("mode", ["ast", "bytecode", "trace"])
def test_capture_modes_mean_the_same(mode: str) -> None:
    @ms.jit(capture_mode=mode, fullgraph=True)
    def f(x: Any) -> Any:
        return x * 2 if x > 0 else x - 1

    assert [float(f(Tensor(v))) for v in (3.0, -3.0)] == [6.0, -4.0]


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"capture_mode": "x"}, ValueError, "capture_mode must be one of 'ast', 'bytecode', 'trace'"),
        ({"jit_level": "O3"}, ValueError, "jit_level must be one of"),
        ({"dynamic": 2}, ValueError, "dynamic must be one of 0, 1"),
        ({"dynamic": "1"}, TypeError, "dynamic must be an int, not str"),
        ({"fullgraph": 1}, TypeError, "fullgraph must be a bool"),
        ({"backend": "x"}, ValueError, "backend must be one of"),
        ({"exec_order": "x"}, ValueError, "exec_order must be one of"),
        ({"disable_format_transform": 3}, TypeError, "must be a bool, not int"),
        ({"ge_options": 3}, TypeError, "must be a dict"),
        ({"jit_syntax_level": "HIGH"}, ValueError, "must be one of '', 'STRICT'"),
        ({"jit_config": 3}, TypeError, "must be a JitConfig"),
        ({"infer_boost": "x"}, ValueError, "infer_boost must be one of"),
    ],
)
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
        "jit_level": "",
        "exc_mode": "auto",
        "jit_syntax_level": "",
        "debug_level": "RELEASE",
        "infer_boost": "off",
    }
    cell = nn.ReLU()
    cell.set_jit_config(ms.JitConfig(jit_level="O1"))
    cell.set_jit_config(ms.JitConfig(jit_level="O0"))
    assert cell.jit_config_dict["jit_level"] == "O1" and "stay as they are" in logged[-1]
    assert any("jit_level='O1') has no effect" in line for line in logged)
    with pytest.raises(TypeError, match="jit_config must be a JitConfig, not dict"):
        cell.set_jit_config({})
    with pytest.raises(ValueError, match="the limit must be at least 1"):
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
    with pytest.raises(TypeError, match="fn must be a function, not int"):
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
        with pytest.raises(TypeError, match="fn must be a function, not int"):
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
    with pytest.raises(TypeError, match="state_dict must be a dict, not int"):
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
    for call, text in (
        (lambda: net.get_sub_cell("9"), "'9' in a SequentialCell does not exist"),
        (lambda: net.get_sub_cell("0.k"), "'k' in a _Stateful is not a Cell"),
        (lambda: net.get_buffer("0.k"), "'k' in a _Stateful is not a buffer"),
        (lambda: net.get_buffer("0.nope"), "'nope' in a _Stateful does not exist"),
    ):
        with pytest.raises(AttributeError, match=text):
            call()


test_programs = programs.test()
