"""What compiled functions read from outside is guarded, and its changes are seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from tests.compiled.jit_support import Box, Net, count, tensor

FACTOR = 2.0
WEIGHTS = [1.0, 2.0]
ARRAY = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, jit_syntax_level=2)


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
