"""Cells: registration, names by the rule of MindSpore 2.10, walks, modes, hooks, copies."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, ParameterTuple, Tensor, nn

X = Tensor([[1.0, 2.0]])


def parameter(name: str | None = None, value: Any = (1.0,), **options: Any) -> Parameter:
    return Parameter(Tensor(list(value)), name=name, **options)


def dense() -> nn.Dense:
    return nn.Dense(2, 2)


def names(cell: nn.Cell) -> list[str]:
    return [p.name for p in cell.get_parameters()]


def paths(cell: nn.Cell) -> list[str]:
    return [path for path, _ in cell.parameters_and_names()]


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Dense(2, 2)
        self.fc2 = nn.Dense(2, 2)
        self.scale = parameter()
        self.kind = "net"

    def construct(self, x: Any, factor: Any = 1.0) -> Any:
        return self.fc2(self.fc1(x)) * self.scale * factor


NET = ["scale", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]


def within(attribute: str, cell: nn.Cell, auto_prefix: bool = True) -> nn.Cell:
    outer = nn.Cell(auto_prefix=auto_prefix)
    setattr(outer, attribute, cell)
    return outer


# Registration.


def test_parameters_and_cells_are_registered_by_assignment() -> None:
    net = Net()
    assert (
        names(net) == paths(net) == NET
        and list(net.name_cells()) == ["fc1", "fc2"]
        and list(net.cells()) == [net.fc1, net.fc2]
    )
    assert [path for path, _ in net.cells_and_names()] == ["", "fc1", "fc2"]
    net.fc1 = nn.Dense(2, 2, has_bias=False)
    assert names(net) == ["scale", "fc1.weight", "fc2.weight", "fc2.bias"]
    del net.fc2
    assert names(net) == ["scale", "fc1.weight"] and not hasattr(net, "fc2")
    net.scale = parameter("other")
    assert names(net) == ["other", "fc1.weight"] and paths(net) == ["scale", "fc1.weight"]
    del net.scale
    net.fc1 = None
    assert names(net) == [] and net.fc1 is None
    net.fc1 = 3
    assert net.fc1 == 3
    with pytest.raises(AttributeError, match="Net has no attribute 'scale'"):
        net.scale
    with pytest.raises(AttributeError, match="Net has no attribute 'nothing'"):
        del net.nothing


def test_a_parameter_takes_the_values_of_a_tensor_assigned_to_it() -> None:
    net = Net()
    before = net.scale
    net.scale = Tensor([5.0])
    assert net.scale is before and before.tolist() == [5] and isinstance(net.scale, Parameter)
    net.scale = Tensor([5])
    assert net.scale.dtype is ms.float32
    net.scale = Tensor([1.0, 2.0])
    assert net.scale is before and before.shape == (2,)


@pytest.mark.parametrize("value", [3, "s", [], nn.ReLU])
def test_what_is_registered_is_not_dropped_unasked(value: Any) -> None:
    net = Net()
    for name, kind in (("scale", "parameter"), ("fc1", "cell")):
        with pytest.raises(
            TypeError, match=f"Net.{name} is a {kind}; a value of type {type(value).__name__} would drop it"
        ):
            setattr(net, name, value)
    assert names(net) == NET


def test_what_becomes_something_else() -> None:
    net = Net()
    for name, value, kind in (("scale", dense(), "parameter"), ("fc1", parameter(), "cell")):
        with pytest.raises(KeyError, match=f"Net.{name} is a {kind}; delete it"):
            setattr(net, name, value)
        delattr(net, name)
        setattr(net, name, value)
    assert set(names(net)) == {"fc1", "scale.weight", "scale.bias", "fc2.weight", "fc2.bias"}
    net.kind = parameter()
    assert "kind" in names(net)


def test_a_cell_needs_its_initialization_first() -> None:
    class Early(nn.Cell):
        def __init__(self, value: Any) -> None:
            self.number = 3
            self.value = value
            super().__init__()

    for value in (parameter(), dense()):
        with pytest.raises(AttributeError, match=re.escape("Early: call super().__init__() before assigning 'value'")):
            Early(value)
    assert Early(4).value == 4

    class Never(nn.Cell):
        def __init__(self) -> None:
            self.number = 3

        def construct(self, x: Any) -> Any:
            return x

    with pytest.raises(AttributeError, match=re.escape("Never: super().__init__() was not called")):
        Never()(X)


def test_insertion_by_name() -> None:
    cell = nn.Cell()
    cell.insert_param_to_cell("w", parameter())
    cell.insert_param_to_cell("z", parameter("given"))
    cell.insert_child_to_cell("child", dense())
    assert paths(cell) == ["w", "z", "child.weight", "child.bias"] and names(cell) == ["w", "given", "weight", "bias"]
    assert names(within("n", cell)) == ["n.w", "n.z", "n.child.weight", "n.child.bias"]
    cell.number = 3
    for call, error, text in [
        (lambda: cell.insert_param_to_cell("a.b", parameter()), KeyError, "'a.b' must not contain a dot"),
        (lambda: cell.insert_param_to_cell("", parameter()), KeyError, "must not be empty"),
        (lambda: cell.insert_param_to_cell("q", 3), TypeError, "'q' must be a Parameter, not int"),
        (lambda: cell.insert_param_to_cell("number", parameter()), KeyError, "already has an attribute 'number'"),
        (lambda: cell.insert_child_to_cell("q", 3), TypeError, "'q' must be a Cell, not int"),
        (lambda: cell.insert_child_to_cell(3, dense()), TypeError, "the name must be a string, not int"),
        (lambda: cell.insert_child_to_cell("w", dense()), KeyError, "already has an attribute 'w'"),
    ]:
        with pytest.raises(error, match=re.escape(text)):
            call()


def test_buffers_are_state_that_is_not_trained() -> None:
    cell = nn.Cell()
    cell.register_buffer("mean", Tensor([1.0]))
    cell.register_buffer("none", None)
    outer = within("inner", cell)
    assert names(outer) == [] and [path for path, _ in outer.named_buffers()] == ["inner.mean"]
    cell.mean = Tensor([2.0])
    assert [b.tolist() for b in outer.buffers()] == [[2.0]] and list(outer.buffers(recurse=False)) == []
    cell.number = 3
    for name, value, error in (
        ("a.b", Tensor(1.0), KeyError),
        ("x", 3, TypeError),
        ("number", Tensor(1.0), KeyError),
        ("", Tensor(1.0), KeyError),
    ):
        with pytest.raises(error, match="register_buffer"):
            cell.register_buffer(name, value)


# Names.


class Inner(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = parameter("given")
        self.v = parameter()


@pytest.mark.parametrize(
    "build, want",
    [
        (lambda c: c, ["given", "v"]),
        (lambda c: within("a", c), ["a.w", "a.v"]),
        (lambda c: within("b", within("a", c)), ["b.a.w", "b.a.v"]),
        (lambda c: within("c", within("b", within("a", c))), ["c.b.a.w", "c.b.a.v"]),
        (lambda c: within("a", nn.SequentialCell(c)), ["a.0.w", "a.0.v"]),
        (lambda c: nn.SequentialCell(within("a", c)), ["0.a.w", "0.a.v"]),
        (lambda c: within("a", c, auto_prefix=False), ["given", "v"]),
        (lambda c: within("b", within("a", c, auto_prefix=False)), ["b.a.w", "b.a.v"]),
        (lambda c: within("b", within("a", c), auto_prefix=False), ["a.w", "a.v"]),
        (lambda c: within("l", nn.CellList([c, nn.ReLU()])), ["l.0.w", "l.0.v"]),
        (lambda c: within("d", nn.CellDict({"k": c})), ["d.k.w", "d.k.v"]),
    ],
)
def test_the_path_of_attributes_names_parameters(build: Any, want: list[str]) -> None:
    assert names(build(Inner())) == want


def test_a_cell_in_two_networks_has_the_name_of_the_last() -> None:
    net = Net()
    within("a", net)
    assert names(net) == [f"a.{n}" for n in NET]
    within("b", net)
    assert names(net) == [f"b.{n}" for n in NET] and paths(net) == NET


def test_shared_parameters_are_listed_once() -> None:
    cell = nn.Cell()
    cell.embedding = nn.Embedding(3, 2)
    cell.head = nn.Dense(2, 3, has_bias=False)
    cell.head.weight = cell.embedding.embedding_table
    assert names(cell) == ["embedding.embedding_table"] and names(within("net", cell)) == [
        "net.embedding.embedding_table"
    ]
    twice = nn.Cell()
    twice.a = twice.b = parameter("p")
    assert names(twice) == ["p"]


class Step(nn.Cell):
    """The training step of a program that is written with cells alone."""

    def __init__(self, network: nn.Cell, optimizer: Any, loss: nn.Cell) -> None:
        super().__init__()
        self.network = network
        self.loss = loss
        self.optimizer = optimizer(network) if callable(optimizer) and not isinstance(optimizer, nn.Cell) else optimizer
        self.grad_fn = ms.value_and_grad(self.forward, None, self.optimizer.parameters)

    def forward(self, x: Any, label: Any) -> Any:
        return self.loss(self.network(x), label)

    def construct(self, x: Any, label: Any) -> Any:
        value, grads = self.grad_fn(x, label)
        self.optimizer(grads)
        return value


def sgd(network: nn.Cell) -> nn.Optimizer:
    return nn.SGD(network.trainable_params(), 0.1)


def adam(network: nn.Cell) -> nn.Optimizer:
    return nn.Adam(network.trainable_params(), 0.1)


def test_names_in_a_training_step_whose_optimizer_was_made_before() -> None:
    """The optimizer's parameters keep the names under which it took them, so the network's lose the
    attribute `network`.
    """
    net = nn.SequentialCell(dense(), nn.ReLU(), dense())
    step = Step(net, sgd(net), nn.MSELoss())
    weights = ["0.weight", "0.bias", "2.weight", "2.bias"]
    want = [
        *weights,
        "global_step",
        "learning_rate",
        "momentum",
        *(f"accum.{w}" for w in weights),
        *(f"stat.{w}" for w in weights),
    ]
    assert names(step) == [f"optimizer.{n}" for n in want]
    assert paths(step) == [*(f"network.{w}" for w in weights), *(f"optimizer.{n}" for n in want[4:])]
    assert names(net) == [f"optimizer.{w}" for w in weights] and paths(net) == weights
    assert names(nn.SequentialCell(step)) == [
        *(f"0.network.{w}" for w in weights),
        *(f"0.optimizer.{n}" for n in want[4:]),
    ]
    assert paths(step.optimizer) == ["global_step", "learning_rate", *want[:4], *want[6:]]


def test_names_in_a_training_step_that_makes_its_optimizer() -> None:
    step = Step(Net(), adam, nn.MSELoss())
    weights = [f"network.{n}" for n in NET]
    state = [
        "global_step",
        "learning_rate",
        "beta1_power",
        "beta2_power",
        *(f"moment1.{w}" for w in weights),
        *(f"moment2.{w}" for w in weights),
    ]
    assert names(step) == [f"optimizer.{n}" for n in (*weights, *state)]
    assert names(nn.SequentialCell(step)) == [*(f"0.{w}" for w in weights), *(f"0.optimizer.{n}" for n in state)]


def test_names_in_a_training_step_whose_network_comes_last() -> None:
    class Reversed(nn.Cell):
        def __init__(self, network: nn.Cell) -> None:
            super().__init__()
            self.optimizer = sgd(network)
            self.network = network

    cell = Reversed(Net())
    assert names(cell.network) == [f"network.{n}" for n in NET]
    assert [n for n in names(cell) if not n.startswith("network.")][:2] == [
        "optimizer.global_step",
        "optimizer.learning_rate",
    ]
    assert paths(cell)[2:7] == [f"optimizer.{n}" for n in NET] and "optimizer.accum.fc1.weight" in names(cell)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_the_training_step_learns(mode: int) -> None:
    before = ms.get_context("mode")
    try:
        ms.set_context(mode=mode)
        ms.set_seed(3)
        net = nn.SequentialCell(dense(), nn.ReLU(), dense())
        step = Step(net, sgd(net), nn.MSELoss())
        x, label = Tensor(np.eye(2, dtype=np.float32)), Tensor([[0.5, -0.5], [0.25, 1.0]])
        losses = [float(step(x, label)) for _ in range(30)]
    finally:
        ms.set_context(mode=before)
    assert losses[-1] < 0.5 * losses[0] and int(step.optimizer.global_step.asnumpy()[0]) == 30


def test_parameter_tuples_keep_the_names_that_they_came_with() -> None:
    net = Net()
    cell = nn.Cell()
    cell.weights = ParameterTuple(net.trainable_params())
    cell.net = net
    assert (
        names(cell) == [f"net.{n}" for n in NET]
        and paths(cell) == NET
        and names(within("m", cell)) == [f"m.{n}" for n in NET]
    )
    average = nn.Cell()
    average.net = Net()
    average.average = ParameterTuple(average.net.trainable_params()).clone("average")
    assert names(average) == [*(f"average.net.{n}" for n in NET), *(f"net.{n}" for n in NET)]
    average.average = None
    assert names(average) == [f"net.{n}" for n in NET]
    lists = nn.Cell()
    lists.plain = [parameter("x"), dense()]
    assert names(lists) == []


def test_renaming() -> None:
    net = Net()
    net.update_parameters_name("pre.")
    assert names(net) == [f"pre.{n}" for n in NET]
    net.update_parameters_name("q.")
    assert names(net) == [f"q.{n}" for n in NET] and names(within("z", net)) == [f"z.{n}" for n in NET]
    net.fc1.weight.name = "mine"
    assert "mine" in names(net) and list(net.parameters_dict())[1] == "mine"
    with pytest.raises(TypeError, match="the prefix must be a string"):
        net.update_parameters_name(3)


# Walks.


def test_walks() -> None:
    net = Net()
    assert [p.name for p in net.get_parameters(expand=False)] == ["scale"]
    assert [n for n, _ in net.parameters_and_names("z")] == [f"z.{n}" for n in NET]
    assert [n for n, _ in net.parameters_and_names(expand=False)] == ["scale"]
    assert [n for n, _ in net.cells_and_names(name_prefix="z")] == ["z", "z.fc1", "z.fc2"]
    net.scale.requires_grad = False
    assert [p.name for p in net.untrainable_params()] == ["scale"] and [p.name for p in net.trainable_params()] == NET[
        1:
    ]
    assert net.trainable_params(recurse=False) == [] and list(net.parameters_dict()) == NET
    seen: list[str] = []
    assert net.apply(lambda cell: seen.append(type(cell).__name__)) is net and seen == ["Dense", "Dense", "Net"]
    loop = nn.Cell()
    loop.net = net
    net.__dict__["_cells"]["up"] = loop
    assert len(list(loop.cells_and_names())) == 4


def test_modes_and_flags() -> None:
    net = Net()
    assert (net.training, net.set_train().training, net.fc1.training, net.set_train(False).fc1.training) == (
        False,
        True,
        True,
        False,
    )
    assert net.set_train(np.bool_(True)).training is True and net.set_train(0).training is False
    with pytest.raises(TypeError, match="mode must be a bool, not str"):
        net.set_train("yes")
    assert net.set_grad().requires_grad is True
    assert (
        net.add_flags(fast=1) is net
        and net.fast == 1
        and net.get_flags() == {"fast": 1}
        and not hasattr(net.fc1, "fast")
    )
    assert net.add_flags_recursive(slow=2).fc1.slow == 2 and nn.Cell(flags={"a": 1}).get_flags() == {"a": 1}
    assert net.freeze() is net and net.trainable_params() == []
    net.update_cell_prefix()
    assert [cell.param_prefix for cell in (net, net.fc1)] == ["", "fc1"] and net.cls_name == "Net"
    with pytest.raises(ValueError, match="to_float: int32 is not supported; use float16, bfloat16 or float32"):
        net.to_float(ms.int32)


# Calling.


def test_calls() -> None:
    net = Net()
    assert net(x=X).shape == (1, 2)
    np.testing.assert_allclose(net(X, 3.0).asnumpy(), 3 * net(X).asnumpy(), rtol=1e-6)
    np.testing.assert_allclose(net(X, factor=2.0).asnumpy(), 2 * net(X).asnumpy(), rtol=1e-6)
    for call in (lambda: net(y=X), lambda: net(), lambda: net(X, 1, 2)):
        with pytest.raises(TypeError, match="argument"):
            call()
    with pytest.raises(AttributeError, match=re.escape("Cell does not define construct(); define it")):
        nn.Cell()(X)


class Double(nn.Cell):
    def construct(self, x: Any, *, offset: Any = 0) -> Any:
        return x * 2 + offset


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_hooks(mode: int) -> None:
    before = ms.get_context("mode")
    try:
        ms.set_context(mode=mode)
        cell, x = Double(), Tensor([1.0])
        assert cell(x).tolist() == [2]
        first = cell.register_forward_pre_hook(lambda c, inputs: inputs[0] + 1)
        assert cell(x).tolist() == [4]
        second = cell.register_forward_pre_hook(lambda c, inputs, kwargs: (inputs, {"offset": 10}), with_kwargs=True)
        assert cell(x).tolist() == [14]
        third = cell.register_forward_hook(lambda c, inputs, output: output * inputs[0])
        assert cell(x).tolist() == [28]
        fourth = cell.register_forward_hook(lambda c, inputs, kwargs, output: None, with_kwargs=True)
        assert cell(x).tolist() == [28]
        for handle in (second, third, first, fourth):
            handle.remove()
            handle.remove()
        assert cell(x).tolist() == [2]
    finally:
        ms.set_context(mode=before)
    for register in (cell.register_forward_hook, cell.register_forward_pre_hook):
        with pytest.raises(TypeError, match="a hook must be a function, not int"):
            register(3)


def test_hooks_run_in_order_and_gradients_pass_them() -> None:
    cell, order = Double(), []
    for i in range(3):
        cell.register_forward_hook(lambda c, inputs, output, i=i: order.append(i))
    cell(X)
    assert order == [0, 1, 2]
    cell.register_forward_hook(lambda c, inputs, output: output * 3)
    assert ms.grad(lambda x: cell(x).sum())(X).tolist() == [[6, 6]]


# Printing and copying.


def test_printing() -> None:
    assert repr(nn.Cell()) == "Cell()" and repr(Double()) == "Double()"
    text = (
        "Net(\n  (fc1): Dense(input_channels=2, output_channels=2, has_bias=True)\n"
        "  (fc2): Dense(input_channels=2, output_channels=2, has_bias=True)\n)"
    )
    assert repr(Net()) == str(Net()) == text
    nested = within("a", within("b", Double()))
    assert repr(nested) == "Cell(\n  (a): Cell(\n    (b): Double()\n  )\n)"


@pytest.mark.parametrize("how", [copy.deepcopy, lambda cell: pickle.loads(pickle.dumps(cell))])
def test_copies_are_independent(how: Any) -> None:
    net = nn.SequentialCell(dense(), nn.ReLU(), nn.BatchNorm1d(2))
    net.set_train()
    net(X)
    other = how(net)
    assert names(other) == names(net) and other[0].weight is not net[0].weight and other.training
    other.set_train(False)
    net.set_train(False)
    np.testing.assert_array_equal(other(X).asnumpy(), net(X).asnumpy())
    other[0].weight.set_data(other[0].weight * 0)
    assert np.abs(net[0].weight.asnumpy()).sum() > 0


def test_copies_of_a_compiled_cell_compute() -> None:
    before = ms.get_context("mode")
    try:
        ms.set_context(mode=ms.GRAPH_MODE)
        net = Double()
        assert net(X).tolist() == [[2, 4]]
        assert copy.deepcopy(net)(X).tolist() == [[2, 4]] and copy.copy(net)(X).tolist() == [[2, 4]]
    finally:
        ms.set_context(mode=before)


def test_cells_are_keys_and_true() -> None:
    a, b = Double(), Double()
    assert len({a, a, b}) == 2 and a != b and bool(nn.Cell())


def test_parameters_that_a_program_enters_itself_are_found() -> None:
    net = Net()
    net._params["own"] = Parameter(Tensor([7.0]), name="own")
    assert net.own.tolist() == [7] and "own" in names(net) and "own" in net.state_dict()
