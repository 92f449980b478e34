"""Gradients that go back through an earlier call: they are those of another call, and the network
is called again where a value that the call read has changed. How often it runs is compared with
MindSpore in ``test_gradients_of_mindspore.py``.
"""

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, ParameterTuple, Tensor, nn, ops


@pytest.fixture(params=["PYNATIVE_MODE", "GRAPH_MODE"], autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test runs in both modes."""
    before = ms.get_context("mode")
    ms.set_context(mode=getattr(ms, request.param))
    yield request.param
    ms.set_context(mode=before)


X = Tensor(np.array([[1.0, 2.0], [3.0, 5.0]], np.float32))
Y = Tensor(np.array([[0.5, 1.0], [2.0, 4.0]], np.float32))
BY_LIST = ops.GradOperation(get_by_list=True)
BY_ALL = ops.GradOperation(get_all=True, get_by_list=True)


class Counting(nn.Cell):
    """A network that counts its calls in a parameter, with two weights."""

    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([2.0, 3.0]), name="w")
        self.v = Parameter(Tensor([5.0, 7.0]), name="v")
        self.count = Parameter(Tensor([0.0]), name="count", requires_grad=False)
        self.set_grad()

    def construct(self, x: Any, y: Any = None) -> Any:
        ops.assign_add(self.count, Tensor([1.0]))
        h = x * self.w * self.w + self.v
        return h if y is None else (h * y, y.sum())


class Step(nn.Cell):
    """A Cell that calls a network and then, after `between`, its gradient."""

    def __init__(self, net: nn.Cell, between: Callable[..., Any], gradient: Any = BY_ALL) -> None:
        super().__init__()
        self.net, self.between, self.gradient = net, between, gradient
        self.weights = ParameterTuple(net.trainable_params())

    def construct(self, *inputs: Any) -> Any:
        loss = self.net(*inputs)
        self.between(self.net, *inputs)
        return loss, self.gradient(self.net, self.weights)(*inputs)


def nothing(net: Any, *inputs: Any) -> None:
    pass


def assigned(net: Any, *inputs: Any) -> None:
    ops.assign(net.w, net.w * 2)


def plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return np.round(value.asnumpy(), 4).tolist()


def fresh(net: nn.Cell, *inputs: Any) -> Any:
    """Return the gradients of a network that was not called before."""
    return plain(BY_ALL(net, ParameterTuple(net.trainable_params()))(*inputs))


@pytest.mark.parametrize("inputs", [(X,), (X, Y)], ids=["one", "two"])
def test_gradients_are_those_of_another_call(inputs: Any) -> None:
    net = Counting()
    loss, grads = Step(net, nothing)(*inputs)
    assert plain(net.count) == [1] and plain(grads) == fresh(net, *inputs)
    assert plain(loss) == plain(Counting()(*inputs))


def test_parameters_that_changed_are_read_again() -> None:
    net = Counting()
    _, grads = Step(net, assigned)(X)
    assert plain(net.count) == [2] and plain(net.w) == [4, 6] and plain(grads) == fresh(net, X)
    net = Counting()
    net(X)
    net.w.set_data(Tensor([1.0, 1.0]))
    assert plain(BY_LIST(net)(X)) == [[8, 14], [2, 2]] and plain(net.count) == [2]


def test_inputs_that_changed_are_read_again() -> None:
    net, x = Counting(), Tensor(X.asnumpy())
    net(x)
    x[0] = 0.0
    assert plain(BY_LIST(net)(x)) == [[12, 30], [2, 2]] and plain(net.count) == [2]


def test_an_input_made_of_a_weight_is_a_constant() -> None:
    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = Counting()

        def construct(self, x: Any) -> Any:
            h = x * self.net.w
            loss = self.net(h)
            return loss, ms.grad(self.net, None, self.net.w)(h)

    outer = Outer()
    _, by_w = outer(X)
    assert plain(by_w) == [2 * 2 * 8.0, 2 * 3 * 21.0]
    assert plain(outer.net.count) == [1]


def test_the_same_tensor_twice_is_two_inputs() -> None:
    net = Counting()
    _, (by_inputs, _) = Step(net, nothing)(X, X)
    assert plain(by_inputs) == fresh(net, X, X)[0] and plain(by_inputs[0]) != plain(by_inputs[1])


def test_a_view_of_another_input_is_an_input_of_its_own(mode: str) -> None:
    net, x = Counting(), Tensor(X.asnumpy())
    column = x[:, :1]
    _, (by_inputs, _) = Step(net, nothing)(x, column)
    assert plain(by_inputs) == fresh(net, X, X[:, :1])[0]
    assert plain(column) == [[1], [3]]
    # In GRAPH_MODE inputs that share elements run in segments.
    assert plain(net.count) == [2 if mode == "PYNATIVE_MODE" else 3]


def test_a_node_from_outside_of_the_call_is_no_part_of_it() -> None:
    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.net = Counting()
            self.net.shift = None

        def construct(self, x: Any) -> Any:
            shift = x * x

            class Shifted:
                value = shift

            self.net.shift = Shifted.value
            loss = self.net(x) + self.net.shift
            return loss, ms.grad(self.net)(x)

    _, by_x = Outer()(X)
    assert plain(by_x) == [[4, 9], [4, 9]]


def test_hooks_and_derivatives_of_the_network_are_called_once() -> None:
    seen: list[Any] = []

    class Own(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * 2

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (dout * 100,)

    net = Own()
    net.register_backward_hook(lambda cell, grad_input, grad_output: seen.append(1))
    net.set_grad()
    net(X)
    assert plain(ms.grad(net)(X)) == [[100, 100], [100, 100]]


def test_random_masks_are_those_of_the_call() -> None:
    net = nn.SequentialCell(nn.Dropout(p=0.5))
    net.set_train()
    net.set_grad()
    x = ops.ones((64,))
    loss, (by_x,) = Step(net, nothing, lambda fn, weights: ops.GradOperation(get_all=True)(fn))(x)
    assert plain(loss) == plain(by_x) and 0 < float(loss.sum()) < 128


def test_a_recording_is_let_go_and_not_copied(mode: str) -> None:
    net = Counting()
    net(X)
    assert (net.__dict__["_recorded_call"] is not None) is (mode == "PYNATIVE_MODE")
    twin = copy.deepcopy(net)
    assert twin.__dict__["_recorded_call"] is None and plain(BY_LIST(twin)(X)) == fresh(Counting(), X)[1]
    assert pickle.loads(pickle.dumps(nn.Dense(2, 2).set_grad())).requires_grad
    BY_LIST(net)(X)
    assert net.__dict__["_recorded_call"] is None
    net.set_grad(False)
    net(X)
    assert net.__dict__["_recorded_call"] is None


def test_a_training_step_of_the_library_calls_the_network() -> None:
    net = Counting()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
    net(X)
    step(X)
    assert plain(net.count) == [2]
