"""Compiled functions: what they guard, what they change, how they fail, and how they sit with gradients and Cells."""

from __future__ import annotations

import gc
import linecache
import logging
import threading
import traceback
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.base.errors import CompileError
from mycel.base.log import logger
from mycel.compiled.jit import Jit

FACTOR = 2.0
WEIGHTS = [1.0, 2.0]
ARRAY = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=2)


@pytest.fixture
def warnings_logged() -> Iterator[list[str]]:
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: Any) -> None:
            lines.append(record.getMessage())

    handler = Keep(logging.WARNING)
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


def tensor(*values: float) -> Any:
    return ms.Tensor(list(values)) if len(values) != 1 else ms.Tensor(values[0])


def count(jitted: Any) -> int:
    return sum(map(len, jitted.versions.values()))


# Guards.


def test_a_changed_global_is_seen() -> None:
    global FACTOR
    f = ms.jit(lambda x: x * FACTOR)
    assert float(f(tensor(3.0))) == 6.0
    FACTOR = 5.0
    try:
        assert float(f(tensor(3.0))) == 15.0
    finally:
        FACTOR = 2.0
    assert float(f(tensor(3.0))) == 6.0
    assert count(f) == 2


def test_a_list_changed_in_place_is_seen() -> None:
    f = ms.jit(lambda x: x * sum(WEIGHTS))
    assert float(f(tensor(1.0))) == 3.0
    WEIGHTS.append(4.0)
    try:
        assert float(f(tensor(1.0))) == 7.0
    finally:
        WEIGHTS.pop()


def test_an_array_changed_in_place_is_seen() -> None:
    f = ms.jit(lambda x: x * float(ARRAY[0]))
    assert float(f(tensor(1.0))) == 1.0
    ARRAY[0] = 8
    try:
        assert float(f(tensor(1.0))) == 8.0
    finally:
        ARRAY[0] = 1


def test_a_changed_closure_cell_is_seen() -> None:
    k = 2.0
    f = ms.jit(lambda x: x * k)
    assert float(f(tensor(3.0))) == 6.0
    k = 7.0
    assert float(f(tensor(3.0))) == 21.0


def test_negative_zero_is_not_zero() -> None:
    f = ms.jit(lambda x, k: x / k)
    assert float(f(tensor(1.0), 0.0)) == np.inf
    assert float(f(tensor(1.0), -0.0)) == -np.inf


def test_numbers_of_different_types_are_different_constants() -> None:
    f = ms.jit(lambda x, k: (x * k, k))
    assert f(tensor(2.0), 1)[1] is not True
    assert f(tensor(2.0), True)[1] is True
    assert isinstance(f(tensor(2.0), 1.0)[1], float)


class Box:
    def __init__(self, k: Any) -> None:
        self.k = k

    def scaled(self, x: Any) -> Any:
        return x * self.k


def test_an_attribute_of_an_object_is_guarded() -> None:
    box = Box(2.0)
    f = ms.jit(lambda x: box.scaled(x))
    assert float(f(tensor(3.0))) == 6.0
    box.k = 4.0
    assert float(f(tensor(3.0))) == 12.0


def test_a_method_that_is_replaced_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box(2.0)
    f = ms.jit(lambda x: box.scaled(x))
    assert float(f(tensor(3.0))) == 6.0
    monkeypatch.setattr(Box, "scaled", lambda self, x: x - self.k)
    assert float(f(tensor(3.0))) == 1.0


def test_the_values_of_a_captured_tensor_are_not_constants() -> None:
    scale = tensor(2.0)
    f = ms.jit(lambda x: x * scale)
    assert float(f(tensor(3.0))) == 6.0
    scale.add_(1)
    assert float(f(tensor(3.0))) == 9.0
    assert count(f) == 1


def test_a_tensor_read_while_staging_is_guarded_by_its_contents() -> None:
    size = ms.Tensor([2, 3])
    f = ms.jit(lambda x: ops.broadcast_to(x, tuple(size.asnumpy().tolist())), fullgraph=True)
    assert f(tensor(1.0)).shape == (2, 3)
    size.add_(1)
    assert f(tensor(1.0)).shape == (3, 4)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        self.scale = 2.0
        self.sizes = [1, 2]
        self.seen: Any = 0

    def construct(cell, x: Any) -> Any:
        y = x * cell.w * cell.scale + len(cell.sizes)
        return y * 2 if cell.training else y


def test_attributes_of_cells_are_guarded() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    x = tensor(1.0, 1.0)

    def value() -> list[float]:
        return net(x).asnumpy().tolist()

    assert value() == [4.0, 6.0]
    net.scale = 3.0
    assert value() == [5.0, 8.0]
    net.sizes.append(3)
    assert value() == [6.0, 9.0]
    net.set_train()
    assert value() == [12.0, 18.0]
    compiled = net.__dict__["_compiled_call"]
    before = count(compiled)
    for _ in range(3):
        net.set_train(False)
        assert value() == [6.0, 9.0]
        net.set_train(True)
        assert value() == [12.0, 18.0]
    assert count(compiled) == before
    net.w.set_data(ms.Tensor([10.0, 10.0]))
    assert value() == [66.0, 66.0]
    assert count(compiled) == before


def test_a_replaced_parameter_is_seen() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    assert net(tensor(1.0, 1.0)).asnumpy().tolist() == [4.0, 6.0]
    net.w = ms.Parameter(ms.Tensor([0.0, 0.0]), name="w")
    assert net(tensor(1.0, 1.0)).asnumpy().tolist() == [2.0, 2.0]


def test_what_functions_without_source_read_is_never_stale() -> None:
    space: dict[str, Any] = {"k": 2.0}
    exec("def inner(x):\n    return x * k\n\ndef f(x):\n    return inner(x) + 1\n", space)
    f = ms.jit(space["f"])
    assert float(f(tensor(3.0))) == 7.0
    assert "cannot be followed" in str(ms.explain(f))
    space["k"] = 4.0
    assert float(f(tensor(3.0))) == 13.0


def test_what_generators_read_is_guarded() -> None:
    def parts(x: Any) -> Any:
        for i in range(2):
            yield x * i * FACTOR

    global FACTOR
    f = ms.jit(lambda x: sum(parts(x)), fullgraph=True)
    assert float(f(tensor(3.0))) == 6.0
    FACTOR = 5.0
    try:
        assert float(f(tensor(3.0))) == 15.0
    finally:
        FACTOR = 2.0


def test_functions_that_library_cells_call_are_guarded_and_interpreted() -> None:
    global FACTOR
    ms.set_context(mode=ms.GRAPH_MODE)
    seen: list[int] = []

    def loss(logits: Any, label: Any) -> Any:
        if ops.sum(logits) > 0:
            return ops.sum(logits - label) * FACTOR
        return ops.sum(label)

    net = nn.WithLossCell(nn.ReLU(), loss)
    net.register_forward_hook(lambda cell, inputs, output: seen.append(1))
    assert float(net(tensor(1.0, 2.0), tensor(0.0, 1.0))) == 4.0
    FACTOR = 5.0
    try:
        assert float(net(tensor(1.0, 2.0), tensor(0.0, 1.0))) == 10.0
    finally:
        FACTOR = 2.0
    assert float(net(tensor(-1.0, -2.0), tensor(0.0, 1.0))) == 1.0
    assert seen == [1, 1, 1]
    assert not net.__dict__["_compiled_call"].lives


def test_functions_given_to_library_functions_are_interpreted() -> None:
    def pick(t: Any) -> Any:
        return t * FACTOR if t > 0 else t - 1

    f = ms.jit(lambda x: sum(map(pick, [x, -x])), fullgraph=True)
    assert float(f(tensor(3.0))) == 2.0


def test_a_replaced_construct_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    assert net(tensor(1.0, 1.0)).asnumpy().tolist() == [4.0, 6.0]
    monkeypatch.setattr(Net, "construct", lambda self, x: x * 100)
    assert net(tensor(1.0, 1.0)).asnumpy().tolist() == [100.0, 100.0]


def test_changed_defaults_are_seen() -> None:
    def f(x: Any, scale: list[float] = [1.0]) -> Any:  # noqa: B006
        return x * scale[0]

    jitted = ms.jit(f)
    assert float(jitted(tensor(2.0))) == 2.0
    f.__defaults__[0][0] = 3.0
    assert float(jitted(tensor(2.0))) == 6.0


def test_which_parameters_are_trained_is_guarded() -> None:
    net = Net()

    def slopes(x: Any) -> Any:
        return ms.grad(lambda t: ops.sum(net(t)), None, weights=net.trainable_params())(x)

    jitted = ms.jit(slopes, fullgraph=True)
    assert len(jitted(tensor(1.0, 1.0))) == 1
    net.extra = ms.Parameter(ms.Tensor(1.0), name="extra")
    assert len(jitted(tensor(1.0, 1.0))) == 2
    net.extra.requires_grad = False
    assert len(jitted(tensor(1.0, 1.0))) == 1


def test_a_tensor_attribute_may_be_set_anew_on_each_call() -> None:
    class Average(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.value = ms.Tensor(0.0)

        def construct(self, x: Any) -> Any:
            self.value = self.value * 0.5 + x
            return self.value

    ms.set_context(mode=ms.GRAPH_MODE)
    net = Average()
    assert [float(net(tensor(1.0))) for _ in range(4)] == [1.0, 1.5, 1.75, 1.875]
    net.value = ms.Tensor(4.0)
    assert float(net(tensor(1.0))) == 3.0 and float(net.value) == 3.0
    assert count(net.__dict__["_compiled_call"]) == 1
    net.value = ms.Tensor([4.0, 2.0])
    assert net(tensor(1.0)).asnumpy().tolist() == [3.0, 2.0]


def test_an_argument_that_is_also_captured_and_written() -> None:
    shared = tensor(2.0)

    @ms.jit
    def f(x: Any) -> Any:
        x.add_(1)
        return shared * 10

    assert float(f(tensor(5.0))) == 20.0
    assert float(f(shared)) == 30.0


# State.


def test_training_is_the_same_in_both_modes() -> None:
    def losses(mode: int) -> tuple[list[float], list[Any]]:
        ms.set_context(mode=mode)
        rng = np.random.default_rng(0)
        draw = lambda *s: ms.Tensor(rng.normal(size=s).astype(np.float32))
        net = nn.SequentialCell(nn.Dense(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dense(8, 3))
        for p in net.get_parameters():
            if p.name.endswith(("weight", "bias")):
                p.set_data(draw(*p.shape) * 0.5)
        x, y = draw(6, 4), ms.Tensor(np.array([0, 1, 2, 0, 1, 2], np.int32))
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.1, 0.9))
        step.set_train()
        found = [float(step(x, y)) for _ in range(4)]
        if mode == ms.GRAPH_MODE:
            assert not step.__dict__["_compiled_call"].lives
            assert count(step.__dict__["_compiled_call"]) == 1
        return found, [p.asnumpy().copy() for p in net.get_parameters()]

    eager_losses, eager_weights = losses(ms.PYNATIVE_MODE)
    graph_losses, graph_weights = losses(ms.GRAPH_MODE)
    np.testing.assert_allclose(graph_losses, eager_losses, rtol=1e-5)
    assert eager_losses[-1] < eager_losses[0]
    for a, b in zip(graph_weights, eager_weights):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_writes_to_parameters_and_arguments_happen() -> None:
    w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")

    @ms.jit(fullgraph=True)
    def f(x: Any) -> Any:
        old = w * 1
        w.set_data(w + x)
        x.add_(10)
        return old, w * 2

    x = tensor(1.0, 1.0)
    for i in range(3):
        before = w.asnumpy().copy()
        x = tensor(1.0, 1.0)
        old, new = f(x)
        np.testing.assert_allclose(old.asnumpy(), before)
        np.testing.assert_allclose(w.asnumpy(), before + 1)
        np.testing.assert_allclose(new.asnumpy(), 2 * (before + 1))
        np.testing.assert_allclose(x.asnumpy(), [11.0, 11.0])
        assert float(w.asnumpy()[0]) == 2.0 + i


def test_the_same_tensor_twice_is_one_tensor() -> None:
    def f(a: Any, b: Any) -> Any:
        a.add_(1)
        return a * b

    jitted = ms.jit(f)
    x = tensor(2.0)
    assert float(jitted(x, x)) == 9.0
    assert float(jitted(tensor(2.0), tensor(2.0))) == 6.0


def test_copying_a_written_parameter_takes_its_present_value() -> None:
    a, b = (ms.Parameter(ms.Tensor(v), name=n) for v, n in ((1.0, "a"), (5.0, "b")))

    @ms.jit(fullgraph=True)
    def f(x: Any) -> Any:
        b.set_data(b + x)
        a.set_data(b)
        return ms.Tensor(b)

    assert float(f(tensor(1.0))) == 6.0
    assert float(a) == float(b) == 6.0
    assert float(f(tensor(1.0))) == 7.0
    assert float(a) == float(b) == 7.0


def test_attributes_set_while_compiled_are_set_on_each_call() -> None:
    box = Box(None)

    @ms.jit(fullgraph=True)
    def f(x: Any) -> Any:
        box.last = x * 2
        box.note = "seen"
        return x

    for v in (1.0, 4.0):
        f(tensor(v))
        assert float(box.last) == 2 * v and box.note == "seen"
    assert count(f) == 1


def test_a_python_counter_is_right_on_every_call(warnings_logged: list[str]) -> None:
    box = Box(0)

    @ms.jit
    def f(x: Any) -> Any:
        box.k += 1
        return x * box.k

    assert [float(f(tensor(1.0))) for _ in range(40)] == [float(i) for i in range(1, 41)]
    assert box.k == 40
    assert any("changed more than" in line for line in warnings_logged)


def test_a_python_list_is_appended_to_on_every_call() -> None:
    history: list[Any] = []

    @ms.jit
    def f(x: Any) -> Any:
        history.append(x * 2)
        return x

    for v in (1.0, 2.0, 3.0):
        f(tensor(v))
    assert [float(h) for h in history] == [2.0, 4.0, 6.0]


def test_a_failed_compilation_leaves_no_trace() -> None:
    box = Box(1.0)
    w = ms.Parameter(ms.Tensor(1.0), name="w")

    @ms.jit
    def f(x: Any) -> Any:
        box.k = box.k + 1
        w.set_data(w + 1)
        return x.item()

    assert f(tensor(3.0)) == 3.0
    assert box.k == 2.0 and float(w) == 2.0


def test_state_written_in_a_branch() -> None:
    w = ms.Parameter(ms.Tensor(1.0), name="w")

    @ms.jit(fullgraph=True)
    def f(x: Any) -> Any:
        if x > 0:
            w.set_data(w + x)
        return w * 1

    assert float(f(tensor(2.0))) == 3.0
    assert float(f(tensor(-2.0))) == 3.0
    assert float(w) == 3.0


def test_state_written_in_a_loop() -> None:
    w = ms.Parameter(ms.Tensor(1.0), name="w")

    @ms.jit(fullgraph=True)
    def f(n: Any) -> Any:
        for _ in range(n):
            w.set_data(w * 2)
        return w + 0

    assert float(f(ms.Tensor(3))) == 8.0
    assert float(w) == 8.0


def test_print_shows_each_calls_values(capsys: pytest.CaptureFixture[str]) -> None:
    @ms.jit(fullgraph=True)
    def f(x: Any) -> Any:
        y = x * 2
        print("y", y)
        y += 1
        return y

    f(tensor(1.0))
    f(tensor(5.0))
    assert capsys.readouterr().out == "y 2.0\ny 10.0\n"


def test_arrays_and_lists_that_native_code_changes() -> None:
    table, order = np.zeros(2, np.float32), [3, 1, 2]

    @ms.jit
    def f(x: Any) -> Any:
        table[0] += 1
        np.add(table, 1, out=table)
        order.sort()
        return x * float(table[0]) + order[0]

    assert [float(f(tensor(1.0))) for _ in range(20)] == [2.0 * i + 1 for i in range(1, 21)]
    assert table.tolist() == [40.0, 20.0] and order == [1, 2, 3]


def test_an_iterator_that_a_tensor_would_advance_falls_back() -> None:
    def f(x: Any) -> Any:
        items = iter([1, 2, 3])
        first = next(items) if x > 0 else 0
        return next(items) * x + first

    assert [float(ms.jit(f)(tensor(v))) for v in (2.0, -2.0)] == [5.0, -2.0]
    assert "is decided by a tensor" in refused(f, tensor(1.0))


# Results.


def test_identity_of_results() -> None:
    w = ms.Parameter(ms.Tensor([1.0]), name="w")
    f = ms.jit(lambda x: (x, w, [x, 3], None), fullgraph=True)
    x = tensor(1.0, 2.0)
    a, b, c, d = f(x)
    assert a is x and b is w and c[0] is x and c[1] == 3 and d is None
    assert f(x)[2] is not c


def test_a_parameter_argument_is_itself() -> None:
    w = ms.Parameter(ms.Tensor([1.0]), name="w")

    @ms.jit(fullgraph=True)
    def f(p: Any, x: Any) -> Any:
        p.set_data(p + x)
        return p

    assert f(w, ms.Tensor([1.0])) is w
    assert w.asnumpy().tolist() == [2.0]


def test_objects_with_tensors_are_rebuilt() -> None:
    f = ms.jit(lambda x: Box(x * 2), fullgraph=True)
    first, second = f(tensor(1.0)), f(tensor(2.0))
    assert isinstance(first, Box) and float(first.k) == 2.0 and float(second.k) == 4.0


def test_constants_alone() -> None:
    f = ms.jit(lambda x: (1, "two"), fullgraph=True)
    assert f(tensor(1.0)) == (1, "two")


# Gradients.


def test_gradients_go_through_compiled_functions() -> None:
    w = ms.Parameter(ms.Tensor([2.0, 3.0]), name="w")
    inner = ms.jit(lambda x: ops.sum(x * x * w), fullgraph=True)

    def loss(x: Any) -> Any:
        return inner(x * 2) + ops.sum(x)

    x = tensor(1.0, 2.0)
    by_input, by_weight = ms.grad(loss, 0, weights=[w])(x)
    np.testing.assert_allclose(by_input.asnumpy(), 8 * x.asnumpy() * w.asnumpy() + 1)
    np.testing.assert_allclose(by_weight[0].asnumpy(), 4 * x.asnumpy() ** 2)
    second = ms.grad(lambda t: ops.sum(ms.grad(loss)(t)))(x)
    np.testing.assert_allclose(second.asnumpy(), 8 * w.asnumpy())


def test_graph_mode_gradients_are_compiled_as_a_whole() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    step = ms.value_and_grad(lambda x: ops.sum(net(x)), None, net.trainable_params())
    value, (slope,) = step(tensor(1.0, 3.0))
    assert float(value) == 18.0
    np.testing.assert_allclose(slope.asnumpy(), [2.0, 6.0])
    assert count(step._compiled) == 1 and not step._compiled.lives


def test_compiled_functions_are_part_of_compiled_functions() -> None:
    inner = ms.jit(lambda x: x * 3)
    outer = ms.jit(lambda x: inner(x) + 1, fullgraph=True)
    assert float(outer(tensor(2.0))) == 7.0
    assert count(inner) == 0


# Failures.


def test_a_fallback_is_visible_and_right(warnings_logged: list[str]) -> None:
    def needs_value(x: Any) -> Any:
        y = x * 2
        return float(y) + 1

    f = ms.jit(needs_value)
    assert f(tensor(2.0)) == 5.0
    assert f(tensor(3.0)) == 7.0
    assert len(warnings_logged) == 1
    text = warnings_logged[0]
    assert "needs_value" in text and "float(y) + 1" in text and "test_jit.py" in text and "compiled segments" in text
    (fallback,) = ms.explain(f, tensor(2.0)).breaks
    assert "float()" in fallback.reason and "^" in str(fallback)


@pytest.mark.parametrize("strict", [False, True])
def test_full_graphs_refuse_instead(strict: bool) -> None:
    f = ms.jit(lambda x: x.item(), fullgraph=not strict)
    if strict:
        ms.set_context(jit_syntax_level=0)
    with pytest.raises(CompileError, match=r"item\(\) needs the value of a tensor(.|\n)*test_jit.py:\d+"):
        f(tensor(2.0))


def refused(fn: Any, *args: Any) -> str:
    with pytest.raises(CompileError) as found:
        ms.jit(fn, fullgraph=True)(*args)
    return str(found.value)


def test_messages_say_what_differs() -> None:
    def shapes(x: Any) -> Any:
        if ops.sum(x) > 0:
            y = x
        else:
            y = ops.sum(x)
        return y

    def missing(x: Any) -> Any:
        if x > 0:
            y = x
        return y

    def texts(x: Any) -> Any:
        return "a" if x > 0 else "b"

    def growing(x: Any) -> Any:
        items = []
        while x < 3:
            items.append(x)
            x = x + 1
        return items

    def raising(x: Any) -> Any:
        if x > 0:
            raise ValueError("positive")
        return x

    assert "has shape (2,) where the condition holds and ()" in refused(shapes, tensor(1.0, 2.0))
    assert "'y' is set on only one side" in refused(missing, tensor(1.0))
    assert "'a' (str) where the condition holds and 'b' (str)" in refused(texts, tensor(1.0))
    assert "changes its form in a loop" in refused(growing, tensor(1.0))
    assert "whether this is raised is decided by a tensor" in refused(raising, tensor(1.0))
    assert "numpy.random" in refused(lambda x: x * np.random.rand(), tensor(1.0))
    assert "another result at each call" in refused(lambda x: x * np.random.rand(), tensor(1.0))


def endless(x: Any) -> Any:
    return x if x < 1 else endless(x / 2)


def test_recursion_that_a_tensor_decides_is_one_graph() -> None:
    assert float(ms.jit(endless, fullgraph=True)(tensor(8.0))) == 0.5


def test_errors_of_the_program_show_its_lines() -> None:
    def inner(x: Any) -> Any:
        return ops.matmul(x, x[:1])

    def outer(x: Any) -> Any:
        return inner(x) + 1

    with pytest.raises(ValueError, match="matmul|shape|size") as found:
        ms.jit(outer)(ms.Tensor(np.ones((2, 3), np.float32)))
    shown = "".join(traceback.format_exception(found.type, found.value, found.tb))
    assert "return ops.matmul(x, x[:1])" in shown and "return inner(x) + 1" in shown
    assert "statements.py" not in shown


def test_exceptions_are_the_programs_own() -> None:
    @ms.jit
    def f(x: Any, n: int) -> Any:
        if n > 3:
            raise KeyError("n")
        return x * n

    with pytest.raises(KeyError, match="n"):
        f(tensor(1.0), 5)
    assert float(f(tensor(1.0), 2)) == 2.0


def test_attributes_set_through_object_are_effects() -> None:
    holder = Box(0)

    def keep(x: Any) -> Any:
        y = x * 2
        object.__setattr__(holder, "value", y)
        return y

    f = ms.jit(keep, fullgraph=True)
    for v in (1.0, 2.0, 3.0):
        f(tensor(v))
        assert float(holder.value) == 2 * v
        assert float(ms.jit(lambda x: x + holder.value, fullgraph=True)(tensor(1.0))) == 2 * v + 1


# Ways to write it.


def test_decorator_forms() -> None:
    @ms.jit
    def a(x: Any) -> Any:
        return x + 1

    @ms.jit(jit_level="O1", capture_mode="bytecode", backend="ms_backend", fullgraph=True)
    def b(x: Any) -> Any:
        """Adds two."""
        return x + 2

    class Holder:
        k = 3

        @ms.jit
        def method(self, x: Any) -> Any:
            return x * self.k

        @staticmethod
        @ms.jit
        def static(x: Any) -> Any:
            return x * 4

        @ms.jit
        @classmethod
        def of_class(cls, x: Any) -> Any:
            return x * cls.k

    x = tensor(1.0)
    holder = Holder()
    assert float(a(x)) == 2.0 and float(b(x)) == 3.0 and b.__doc__ == "Adds two." and b.__name__ == "b"
    assert float(holder.method(x)) == 3.0 and float(Holder.static(x)) == 4.0 and float(Holder.of_class(x)) == 3.0
    holder.k = 9
    assert float(holder.method(x)) == 9.0
    assert float(ms.jit(fn=lambda x: x - 1)(x)) == 0.0
    assert float(ms.jit(Net().construct)(tensor(1.0, 1.0))[0]) == 4.0
    with pytest.raises(ValueError, match="jit_level must be one of"):
        ms.jit(a, jit_level="O9")
    with pytest.raises(TypeError, match="must be a function"):
        ms.jit(3)


def test_a_decorated_construct() -> None:
    class Inner(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor(2.0), name="w")

        @ms.jit
        def construct(self, x: Any) -> Any:
            return x * self.w

    net = Inner()
    assert float(net(tensor(3.0))) == 6.0
    assert float(ms.grad(net, None, weights=net.trainable_params())(tensor(3.0))[0]) == 3.0


def test_lambdas_on_one_line() -> None:
    fs = [lambda x: x + 1, lambda x: x + 2, lambda x: x + 3]; gs = [lambda x, k: x * k, lambda x: (lambda y: y * 5)(x)]  # fmt: skip  # noqa: E702
    assert [float(ms.jit(f, fullgraph=True)(tensor(1.0))) for f in fs] == [2.0, 3.0, 4.0]
    assert float(ms.jit(gs[1], fullgraph=True)(tensor(1.0))) == 5.0
    assert [
        float(ms.jit(f)(tensor(1.0)) if True else 0)
        for f in (lambda x: x if x > 0 else -x, lambda x: -x if x > 0 else x)
    ] == [1.0, -1.0]


def test_lambdas_are_told_apart_without_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    from mycel.frontend import source

    monkeypatch.setattr(source, "_by_columns", lambda found, code: [])
    fs = [lambda x: x + 1, lambda x: x - 2, lambda x: x * 3]
    found = [source.definition_of(f)[0].body.op.__class__.__name__ for f in fs]
    assert found == ["Add", "Sub", "Mult"]


def test_source_from_a_notebook_cell_and_from_nowhere() -> None:
    text = "def f(x):\n    while x < 10:\n        x = x * 2\n    return x\n"
    name = "<ipython-input-7-abc>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {}
    exec(compile(text, name, "exec"), namespace)
    assert float(ms.jit(namespace["f"], fullgraph=True)(tensor(3.0))) == 12.0
    hidden: dict[str, Any] = {}
    exec("def g(x):\n    return x * 2 + 1\n", hidden)
    assert float(ms.jit(hidden["g"])(tensor(3.0))) == 7.0
    exec("def h(x):\n    return x * 2 if x > 0 else x\n", hidden)
    assert float(ms.jit(hidden["h"])(tensor(3.0))) == 6.0
    assert "the truth of a tensor" in ms.explain(hidden["h"], tensor(3.0)).breaks[0].reason


def test_containers_of_arguments() -> None:
    @ms.jit(fullgraph=True)
    def f(d: Any, *rest: Any, scale: Any = 1.0, **more: Any) -> Any:
        return d["x"] * scale + rest[0][1] + more["z"]

    x = tensor(2.0)
    y, z = tensor(5.0), tensor(1.0)
    assert float(f({"x": x}, [1, y], scale=3.0, z=z)) == 12.0
    assert float(f({"x": y}, [1, x], scale=3.0, z=z)) == 18.0
    assert count(f) == 1


def test_changing_an_argument_list_falls_back() -> None:
    @ms.jit
    def f(items: list[Any]) -> Any:
        items.append(items[0] * 2)
        return items[-1]

    items = [tensor(2.0)]
    assert float(f(items)) == 4.0
    assert len(items) == 2


def test_many_shapes_and_types() -> None:
    f = ms.jit(lambda x: x + x)
    for n in (1, 2, 3):
        for dtype in (np.float32, np.int32):
            x = np.arange(n, dtype=dtype)
            found = f(ms.Tensor(x))
            assert found.asnumpy().dtype == dtype
            np.testing.assert_array_equal(found.asnumpy(), 2 * x)
    assert count(f) == 6


def test_threads() -> None:
    f = ms.jit(lambda x: ops.sum(x * 2))
    results: dict[int, float] = {}

    def work(n: int) -> None:
        results[n] = float(f(ms.Tensor(np.full(n + 1, 1.0, np.float32))))

    threads = [threading.Thread(target=work, args=(n % 4,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {n: 2.0 * (n + 1) for n in range(4)}


def test_instances_are_not_kept_alive() -> None:
    class Holder:
        @ms.jit
        def method(self, x: Any) -> Any:
            return x * 2

    holder = Holder()
    holder.method(tensor(1.0))
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_explain_shows_graph_captures_and_guards() -> None:
    w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="weight")

    def f(x: Any) -> Any:
        w.set_data(w + x)
        return w * FACTOR

    account = ms.explain(f, tensor(1.0, 1.0))
    assert w.asnumpy().tolist() == [1.0, 2.0]
    assert account.captures == [[w]] and account.writes == [[w]]
    assert (
        "def f(x: float32[2]" in account.text and "FACTOR is 2.0" in account.text and "changes weight" in account.text
    )
    assert account.breaks == []
    assert isinstance(ms.jit(f), Jit)
