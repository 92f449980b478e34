"""Names of parameters in nested cells, containers, and how cells print."""

from __future__ import annotations

import pathlib
from collections import OrderedDict
from typing import Any

import pytest

import mycel as ms
from mycel import nn


def parameter(name: Any = None) -> ms.Parameter:
    return ms.Parameter(ms.Tensor([1.0]), name=name)


def dense() -> nn.Dense:
    return nn.Dense(1, 1, has_bias=False)


def given(cell: nn.Cell) -> list[str]:
    return [p.name for p in cell.get_parameters()]


def names(cell: nn.Cell) -> list[str]:
    assert given(cell) == [name for name, _ in cell.parameters_and_names()]
    return given(cell)


class Inner(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = parameter("given")
        self.v = parameter()


class Outer(nn.Cell):
    def __init__(self, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix=auto_prefix)
        self.a = Inner()
        self.b = Inner()


def test_a_given_name_holds_until_the_cell_is_nested() -> None:
    assert [p.name for p in Inner().get_parameters()] == ["given", "v"]
    assert [name for name, _ in Inner().parameters_and_names()] == ["w", "v"]
    assert names(Outer()) == ["a.w", "a.v", "b.w", "b.v"]
    assert [p.name for p in Outer(auto_prefix=False).get_parameters()] == ["given", "v", "given", "v"]
    assert names(nn.SequentialCell(Outer())) == ["0.a.w", "0.a.v", "0.b.w", "0.b.v"]


def test_a_shared_cell_is_listed_once_under_its_last_name() -> None:
    class Shared(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.q = dense()
            self.r = self.q

    shared = Shared()
    assert [p.name for p in shared.get_parameters()] == ["r.weight"]
    assert [name for name, _ in shared.cells_and_names()] == ["", "q"]


def test_members_of_a_parameter_tuple_keep_their_names() -> None:
    class Holder(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.t = ms.ParameterTuple([parameter("x"), parameter("y")])
            self.w = parameter()

    assert names(Holder()) == ["x", "y", "w"]
    assert names(nn.SequentialCell(Holder())) == ["0.x", "0.y", "0.w"]


def test_cells_added_later_are_named_as_in_mindspore() -> None:
    class Sub(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.d = dense()

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.l = nn.CellList()
            self.l.append(dense())
            self.l.append(Sub())
            self.s = nn.SequentialCell(dense())
            self.s.append(Sub())
            self.d = nn.CellDict({"a": dense()})
            self.d["b"] = dense()
            self.o = Sub()
            self.o.extra = dense()

    # An empty list that is filled later names by position alone; one with members goes on as its
    # members are named (MindSpore 2.10's names).
    assert given(Net()) == [
        "0.weight",
        "1.d.weight",
        "s.0.weight",
        "s.1.d.weight",
        "d.a.weight",
        "b.weight",
        "o.d.weight",
        "extra.weight",
    ]
    outer = nn.SequentialCell(Net())
    assert given(outer) == [
        "0.l.0.weight",
        "0.l.1.d.weight",
        "0.s.0.weight",
        "0.s.1.d.weight",
        "0.d.a.weight",
        "0.d.b.weight",
        "0.o.d.weight",
        "0.o.extra.weight",
    ]
    outer[0].s.append(dense())
    assert given(outer)[4] == "0.s.2.weight"


def test_positions_that_repeat_in_given() -> None:
    """Where the path of a first member has its own position several times, MindSpore 2.10 takes the
    last one for the second member.
    """
    blocks = nn.CellList()
    for _ in range(3):
        blocks.append(nn.SequentialCell([nn.SequentialCell([dense()])]))
    assert given(blocks) == ["0.0.0.weight", "0.0.1.0.0.weight", "0.0.2.0.0.weight"]


def test_names_that_are_not_distinct_are_saved_as_paths(tmp_path: pathlib.Path) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.CellList(), nn.CellList()
            self.a.append(dense())
            self.b.append(dense())

    one, other = Net(), Net()
    assert given(one) == ["0.weight", "0.weight"]
    ms.save_checkpoint(one, str(tmp_path / "x.ckpt"))
    saved = ms.load_checkpoint(str(tmp_path / "x.ckpt"))
    assert list(saved) == ["a.0.weight", "b.0.weight"] and ms.load_param_into_net(other, saved) == ([], [])
    assert [p.asnumpy().tolist() for p in other.get_parameters()] == [
        p.asnumpy().tolist() for p in one.get_parameters()
    ]


def test_the_optimizers_parameters_are_named_as_the_networks_in_a_training_step() -> None:
    net = nn.SequentialCell(nn.Dense(2, 3))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    assert [p.name for p in step.get_parameters()] == [
        "0.weight",
        "0.bias",
        "global_step",
        "learning_rate",
        "momentum",
        "moments.0.weight",
        "moments.0.bias",
    ]


def test_cell_list() -> None:
    cells = nn.CellList([nn.ReLU()])
    cells.append(dense())
    cells.insert(0, dense())
    cells.extend([nn.Tanh()])
    assert [type(c).__name__ for c in cells] == ["Dense", "ReLU", "Dense", "Tanh"]
    assert names(cells) == ["0.weight", "2.weight"]
    assert isinstance(cells[-1], nn.Tanh) and len(cells[0:2]) == 2 and names(cells) == ["0.weight", "2.weight"]
    del cells[0]
    assert names(cells) == ["1.weight"] and len(cells) == 3
    cells[0] = dense()
    assert names(cells) == ["0.weight", "1.weight"]
    assert not nn.CellList() and cells
    with pytest.raises(IndexError, match="index 3 is out of range for 3 cells"):
        cells[3]
    with pytest.raises(TypeError, match="every member must be a Cell, not int"):
        cells.append(1)
    with pytest.raises(TypeError, match="extend takes a list of cells, not int"):
        cells.extend(1)
    with pytest.raises(IndexError, match="out of range for an insertion into 3 cells"):
        cells.insert(9, nn.ReLU())
    with pytest.raises(NotImplementedError, match="loop over it"):
        cells(ms.Tensor(1.0))


def test_sequential_cell() -> None:
    cells = nn.SequentialCell(OrderedDict([("a", nn.ReLU()), ("b", dense())]))
    assert names(cells) == ["b.weight"] and isinstance(cells[0], nn.ReLU)
    assert nn.SequentialCell([nn.ReLU(), nn.ReLU6()])(ms.Tensor([-1.0, 9.0])).asnumpy().tolist() == [0, 6]
    plain = nn.SequentialCell(dense(), dense(), dense())
    part = plain[1:]
    assert (
        len(part) == 2 and isinstance(part, nn.SequentialCell) and names(plain) == ["0.weight", "1.weight", "2.weight"]
    )
    del plain[0]
    assert names(plain) == ["0.weight", "1.weight"]
    relu = nn.ReLU()
    assert len(nn.SequentialCell(relu, relu)) == 2
    with pytest.raises(TypeError, match="must be a Cell, not int"):
        nn.SequentialCell(1)
    with pytest.raises(TypeError, match="index must be an int or a slice"):
        plain["a"]


def test_cell_dict() -> None:
    cells = nn.CellDict([("act", nn.ReLU())])
    cells["fc"] = dense()
    assert list(cells) == ["act", "fc"] and len(cells) == 2 and "fc" in cells and "x" not in cells
    assert [k for k, _ in cells.items()] == list(cells.keys()) and isinstance(list(cells.values())[0], nn.ReLU)
    cells.update({"act": nn.Tanh()})
    assert isinstance(cells["act"], nn.Tanh)
    assert isinstance(cells.pop("fc"), nn.Dense) and names(cells) == []
    del cells["act"]
    cells.clear()
    assert not cells
    with pytest.raises(TypeError, match="value of 'a' must be a Cell, not int"):
        cells["a"] = 1
    with pytest.raises(TypeError, match="key must be a string, not int"):
        cells[1] = nn.ReLU()
    for key, text in (("a.b", "nor hold a dot"), ("keys", "attribute of every CellDict")):
        with pytest.raises(KeyError, match=text):
            cells[key] = nn.ReLU()
    with pytest.raises(KeyError, match="there is no cell 'q'"):
        cells["q"]


@pytest.mark.parametrize(
    "cell, text",
    [
        (nn.Dense(3, 4), "Dense(input_channels=3, output_channels=4, has_bias=True)"),
        (nn.Dense(3, 4, has_bias=False), "Dense(input_channels=3, output_channels=4)"),
        (
            nn.Dense(3, 4, activation="relu"),
            "Dense(\n  input_channels=3, output_channels=4, has_bias=True, activation=ReLU()\n"
            "  (activation): ReLU()\n)",
        ),
        (nn.Linear(3, 4), "Linear(input_features=3, output_features=4, has_bias=True)"),
        (
            nn.Conv2d(3, 4, 3, weight_init="ones"),
            "Conv2d(input_channels=3, output_channels=4, kernel_size=(3, 3), stride=(1, 1), pad_mode=same, padding=0, "
            "dilation=(1, 1), group=1, has_bias=False, weight_init=ones, bias_init=None, format=NCHW)",
        ),
        (
            nn.Conv1d(3, 4, 3, weight_init="ones"),
            "Conv1d(input_channels=3, output_channels=4, kernel_size=(1, 3), stride=(1, 1), pad_mode=same, padding=(0, "
            "0, 0, 0), "
            "dilation=(1, 1), group=1, has_bias=False, weight_init=ones, bias_init=None, format=NCHW)",
        ),
        (nn.MaxPool2d(2, 2), "MaxPool2d(kernel_size=2, stride=2, pad_mode=VALID)"),
        (nn.AvgPool1d(2, 2), "AvgPool1d(kernel_size=(1, 2), stride=(1, 2), pad_mode=VALID)"),
        (nn.GroupNorm(1, 3), "GroupNorm(num_groups=1, num_channels=3)"),
        (nn.Dropout(p=0.3), "Dropout(p=0.3)"),
        (nn.Dropout2d(0.3), "Dropout2d(p=0.3)"),
        (nn.Linear(3, 4, bias=False), "Linear(input_features=3, output_features=4)"),
        (nn.BiDense(2, 3, 4), "BiDense(in1_channels=2, in2_channels=3, output_channels=4, has_bias=True)"),
        (
            nn.DenseBnAct(2, 3, activation="relu"),
            "DenseBnAct(\n  (dense): Dense(input_channels=2, output_channels=3, has_bias=True)\n  (activation): "
            "ReLU()\n)",
        ),
        (nn.Dropout(0.9), "Dropout(keep_prob=0.9)"),
        (nn.LeakyReLU(), "LeakyReLU()"),
        (nn.SequentialCell(nn.Tanh(), nn.ReLU()), "SequentialCell(\n  (0): Tanh()\n  (1): ReLU()\n)"),
        (nn.WithLossCell(nn.ReLU(), nn.L1Loss()), "WithLossCell(\n  (_backbone): ReLU()\n  (_loss_fn): L1Loss()\n)"),
        (
            nn.BatchNorm2d(3),
            "BatchNorm2d(num_features=3, eps=1e-05, momentum=0.9, "
            "gamma=Parameter (name=gamma, shape=(3,), dtype=Float32, requires_grad=True), "
            "beta=Parameter (name=beta, shape=(3,), dtype=Float32, requires_grad=True), "
            "moving_mean=Parameter (name=mean, shape=(3,), dtype=Float32, requires_grad=False), "
            "moving_variance=Parameter (name=variance, shape=(3,), dtype=Float32, requires_grad=False))",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_printing(cell: nn.Cell, text: str) -> None:
    assert repr(cell) == text


def test_hooks_see_and_change_inputs_and_outputs() -> None:
    cell = nn.ReLU()
    seen: list[Any] = []
    handles = [
        cell.register_forward_pre_hook(lambda c, inputs: (inputs[0] * -1,)),
        cell.register_forward_hook(lambda c, inputs, output: seen.append(inputs[0].asnumpy().tolist()) or output + 1),
    ]
    assert cell(ms.Tensor([-2.0, 3.0])).asnumpy().tolist() == [3, 1] and seen == [[2, -3]]
    for handle in handles:
        handle.remove()
    assert cell(ms.Tensor([-2.0, 3.0])).asnumpy().tolist() == [0, 3]


def test_a_list_of_cells_grows_in_place() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.l = nn.CellList([nn.Dense(1, 1)])
            known = self.l
            self.l += [nn.Dense(1, 1)]
            assert self.l is known

    assert [p.name for p in Net().trainable_params()] == ["l.0.weight", "l.0.bias", "l.1.weight", "l.1.bias"]
    cells: Any = nn.CellList([nn.ReLU()])
    for wrong in (nn.CellList([nn.ReLU()]), (nn.ReLU(),), nn.ReLU()):
        with pytest.raises(TypeError, match=r"\+= takes a list of cells"):
            cells += wrong
    assert len(cells) == 1
