"""compare_modes names the first operation at which eager and compiled execution disagree."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.graph import Graph, Node, substitute
from mycel._src.compiler.prims import elementwise as E
from mycel._src.engines.native.program import compiling
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core import eager

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def line_of(fn: Any) -> int:
    lines, first = inspect.getsourcelines(fn)
    return first + next(i for i, text in enumerate(lines) if "# here" in text)


@pytest.fixture
def broken_tanh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A pass that gets tanh wrong by a hundredth wherever it is compiled together with other
    operations.
    """
    optimize = compiling.optimize

    def wrong(graph: Graph) -> Graph:
        graph = optimize(graph)
        found = [n for n in graph.nodes if n.prim is E.tanh]
        image = {n: E.add(Node(n.prim, n.inputs, n.params, n.type), 0.01) for n in found}
        return Graph(graph.inputs, substitute(graph.outputs, image), graph.name)

    monkeypatch.setattr(compiling, "optimize", wrong)
    yield


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 4)
        self.calls = ms.Parameter(np.zeros((), np.float32), name="calls", requires_grad=False)

    def construct(self, x: Any) -> Any:
        self.calls += 1
        h = ops.relu(self.dense(x))
        n = ms.Tensor(0)
        while n < 3:
            h = h * 0.5 + 1
            n = n + 1
        return h.sum(), {"h": h}


def test_programs_that_agree_and_their_state() -> None:
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda x: net(x)[0], None, optimizer.parameters)

    def step(x: Any) -> Any:
        loss, grads = gradient(x)
        optimizer(grads)
        return loss

    before = [p.asnumpy().copy() for p in (*net.get_parameters(), *optimizer.get_parameters())]
    for fn in (net, gradient, step, ms.jit(step)):
        found = ms.compare_modes(fn, ms.Tensor(X))
        assert found and found.agrees and found.difference < 1e-4, str(found)
        assert "agree" in str(found)
    for a, p in zip(before, (*net.get_parameters(), *optimizer.get_parameters())):
        np.testing.assert_array_equal(a, p.asnumpy())


def test_a_defect_of_the_compiler(broken_tanh: None) -> None:
    def program(x: Any) -> Any:
        y = ops.exp(x) * 3
        z = 1 - ops.tanh(y - 3)  # here
        return (z * z).sum(), y

    found = ms.compare_modes(program, ms.Tensor(X))
    assert not found and (found.cause, found.operation) == ("compiler", "tanh")
    assert (found.where.file, found.where.line) == (__file__, line_of(program))
    text = str(found)
    assert "1 - ops.tanh(y - 3)" in text and "^^^" in text and "tanh(float32[2, 3])" in text
    assert found.difference > 0.001


def test_a_defect_in_a_derivative(broken_tanh: None) -> None:
    def program(x: Any) -> Any:
        return ops.tanh(x * 2).sum()  # here

    found = ms.compare_modes(ms.grad(program), ms.Tensor(X))
    assert (found.cause, found.operation) == ("compiler", "tanh")
    assert found.where.line == line_of(program)


def test_a_tolerance_decides(broken_tanh: None) -> None:
    def program(x: Any) -> Any:
        return ops.tanh(x * 2) + 5

    assert ms.compare_modes(program, ms.Tensor(X), rtol=0.1)
    assert not ms.compare_modes(program, ms.Tensor(X))


def test_a_program_that_is_different_when_compiled() -> None:
    def program(x: Any) -> Any:
        context = eager.current_context()
        y = x * 2
        if context is not None and context.is_staging:
            y = y + 1  # here
        return ops.sin(y)

    found = ms.compare_modes(program, ms.Tensor(X))
    assert (found.cause, found.operation) == ("staging", "add")
    assert found.where.line == line_of(program)


def test_a_function_that_is_not_one_graph() -> None:
    def program(x: Any) -> Any:
        return x * float(x.sum())

    with pytest.raises(Unsupported, match=r"not one graph; compare the parts between(.|\n)*float\(\) needs the value"):
        ms.compare_modes(program, ms.Tensor(X))


def test_integers_and_missing_numbers() -> None:
    def program(x: Any) -> Any:
        return (x * 10).astype(ms.int32), ops.log(x), x > 0

    assert ms.compare_modes(program, ms.Tensor(X)).agrees
