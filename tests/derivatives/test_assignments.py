"""Gradients where a network assigns to its parameters: a parameter is a variable of the derivative
wherever it is read, and none goes back through an assignment, as in MindSpore.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, Tensor, nn, ops

MODES = {"eager": ms.PYNATIVE_MODE, "graph": ms.GRAPH_MODE}


@pytest.fixture(autouse=True)
def _mode() -> Iterator[None]:
    before = ms.get_context("mode")
    yield
    ms.set_context(mode=before)


def _set(net: Any, value: Any) -> None:
    net.p = value


def _set_sum(net: Any, value: Any) -> None:
    net.p += value


def _item(net: Any, value: Any) -> None:
    net.p[1] = value[0]


def _view(net: Any, value: Any) -> None:
    part = net.p[0:1]
    part[:] = value[1:]


# Each assigns what depends on the inputs and on the other parameter.
ASSIGNMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "p = v": _set,
    "p += v": _set_sum,
    "p[1] = v": _item,
    "a view of p": _view,
    "assign": lambda net, value: ops.assign(net.p, value),
    "assign_add": lambda net, value: ops.assign_add(net.p, value),
    "Assign": lambda net, value: net.assign(net.p, value),
    "set_data": lambda net, value: net.p.set_data(value),
    "copy_": lambda net, value: net.p.copy_(value),
    "mul_": lambda net, value: net.p.mul_(value),
    "scatter_update": lambda net, value: ops.scatter_update(net.p, net.places, value),
    "ScatterNdAdd": lambda net, value: ops.ScatterNdAdd()(net.p, net.places.reshape(2, 1), value),
}


class _Net(nn.Cell):
    """Reads `p`, assigns to it where `flow` says, and reads it again."""

    def __init__(self, change: Callable[[Any, Any], Any], flow: str) -> None:
        super().__init__()
        self.p = Parameter(Tensor([5.0, 6.0]), name="p")
        self.q = Parameter(Tensor([7.0, 8.0]), name="q")
        self.places = Tensor([1, 0], ms.int32)
        self.assign, self.change, self.flow = ops.Assign(), change, flow

    def construct(self, x: Any, y: Any) -> Any:
        before = self.p * 2.0
        if self.flow == "straight":
            self.change(self, x * self.q)
        elif self.flow == "branch":
            if x.sum() > 0:
                self.change(self, x * self.q)
            else:
                before = before + 1.0
        else:
            i = x.sum() * 0
            while i < 2:
                self.change(self, x * self.q)
                i = i + 1
        return before + self.p * y


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", ASSIGNMENTS)
def test_a_parameter_stays_a_variable_and_what_is_assigned_gets_nothing(form: str, mode: str) -> None:
    ms.set_context(mode=MODES[mode])
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    net = _Net(ASSIGNMENTS[form], "straight")
    (by_x, by_y), (by_p, by_q) = ms.grad(net, (0, 1), net.trainable_params())(x, y)
    assert by_x.tolist() == by_q.tolist() == [0.0, 0.0]
    assert by_p.tolist() == [2.0 + 3.0, 2.0 + 4.0]
    assert by_y.tolist() == net.p.tolist() != [5.0, 6.0]
    # Without the parameters as variables nothing else changes.
    net = _Net(ASSIGNMENTS[form], "straight")
    by_x, by_y = ms.grad(net, (0, 1))(x, y)
    assert by_x.tolist() == [0.0, 0.0] and by_y.tolist() == net.p.tolist()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form, flow", [*itertools.product(("p = v", "p += v"), ("branch", "loop"))])
def test_assignments_in_branches_and_loops(form: str, flow: str, mode: str) -> None:
    ms.set_context(mode=MODES[mode])
    net = _Net(ASSIGNMENTS[form], flow)
    (by_x, _), (by_p, by_q) = ms.grad(net, (0, 1), net.trainable_params())(Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))
    assert by_x.tolist() == by_q.tolist() == [0.0, 0.0] and by_p.tolist() == [5.0, 6.0]


@pytest.mark.parametrize("mode", MODES)
def test_what_was_assigned_has_its_gradient_where_it_is_used_itself(mode: str) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.p = Parameter(Tensor([5.0, 6.0]), name="p")

        def construct(self, x: Any) -> Any:
            value = self.p * x
            self.p = value
            return value * 3.0

    ms.set_context(mode=MODES[mode])
    net = Net()
    by_x, by_p = ms.grad(net, 0, net.p)(Tensor([1.0, 2.0]))
    assert by_x.tolist() == [15.0, 18.0] and by_p.tolist() == [3.0, 6.0] and net.p.tolist() == [5.0, 12.0]


def test_gradients_inside_of_gradients_and_through_compiled_functions() -> None:
    p = Parameter(Tensor([5.0]), name="p")

    def f(x: Any) -> Any:
        before = p * p
        ops.assign(p, x * x)
        return (before * p * x).sum()

    def value() -> Any:
        p.set_data(Tensor([5.0]))
        return np.float64(25.0 * 4.0 * 2.0)

    for g in (f, ms.jit(f)):
        assert float(value()) == 200.0
        # before is 25 and p is 4: by p it is 2 * 5 * 4 * 2 + 25 * 2, by x 25 * 4
        by_x, by_p = ms.grad(g, 0, p)(Tensor([2.0]))
        assert by_x.tolist() == [100.0] and by_p.tolist() == [130.0]
        value()
        second = ms.grad(lambda x, g=g: ms.grad(g, 0)(x).sum(), 0, p)(Tensor([2.0]))
        assert second[0].tolist() == [0.0] and second[1].tolist() == [2 * 5 * 4 + 25.0]


def test_a_tensor_that_is_no_parameter_passes_gradients_on() -> None:
    def f(x: Any) -> Any:
        held = ops.zeros(2)
        held[0] = x[1] * 3
        return held * held

    for g in (f, ms.jit(f)):
        assert ms.grad(g)(Tensor([1.0, 2.0])).tolist() == [0.0, 36.0]
