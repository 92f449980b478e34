"""State of compiled functions: writes to parameters and arguments, effects on Python's objects, and
identity of results.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.foundation.log import logger
from tests.compiled.jit_support import Box, count, refused, tensor


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
