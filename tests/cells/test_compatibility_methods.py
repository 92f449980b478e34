"""Conversions of all parameters of a Cell, checks of names, and marks, against what the definitions
say.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import nn


def network() -> nn.Cell:
    return nn.SequentialCell(nn.Dense(3, 2, weight_init="ones"), nn.BatchNorm1d(2))


@pytest.mark.parametrize("given", [(ms.float16,), ("CPU", ms.float16), (ms.Tensor(1.0, ms.float16),)])
def test_to(given) -> None:
    net = network()
    net.register_buffer("steps", ms.Tensor([1, 2]))
    net.register_buffer("scale", ms.Tensor([0.5]))
    before = {name: p.asnumpy().copy() for name, p in net.parameters_dict().items()}
    assert net.to(*given) is net
    for name, p in net.parameters_dict().items():
        np.testing.assert_array_equal(p.asnumpy(), before[name].astype(np.float16), strict=True)
    assert net.scale.dtype is ms.float16 and net.steps.dtype is ms.int64
    x = ms.Tensor(np.ones((4, 3), np.float16))
    assert net(x).dtype is ms.float16 and ms.jit(net)(x).dtype is ms.float16


def test_to_refuses() -> None:
    net = network()
    assert net.to("CPU") is net and net.to(device="cpu", dtype=ms.float64)[0].weight.dtype is ms.float64
    for error, given, named in (
        (ValueError, ("Ascend",), {}),
        (TypeError, (ms.int32,), {}),
        (TypeError, (), {"other": 1}),
        (TypeError, ("nothing",), {}),
    ):
        with pytest.raises(error):
            net.to(*given, **named)


def test_to_empty() -> None:
    net = network().to_empty(device="CPU")
    assert all((p.asnumpy() == 0).all() for p in net.get_parameters())
    with pytest.raises(ValueError, match="GPU"):
        net.to_empty(device="GPU")


def test_cast_inputs() -> None:
    made = nn.Cell().cast_inputs((ms.Tensor(1.5), (ms.Tensor([2]), 3)), ms.float16)
    assert made[0].dtype is made[1][0].dtype is ms.float16 and made[1][1] == 3 and float(made[0]) == 1.5


def test_names() -> None:
    net = nn.Cell()
    net.a, net.b = ms.Parameter(ms.Tensor(1), name="x"), ms.Parameter(ms.Tensor(2), name="y")
    net.check_names()
    net.check_names_and_refresh_name()
    assert list(net.parameters_broadcast_dict()) == ["x", "y"]
    net.b.name = "x"
    with pytest.raises(ValueError, match="two parameters are named 'x'"):
        net.check_names()


class Lists(nn.Cell):
    """Two lists that name what is appended alike."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.CellList(), nn.CellList()
        for cells in (self.a, self.b):
            cells.append(nn.Dense(2, 2, has_bias=False))

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.b[0](self.a[0](x))


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_the_first_call_names_by_paths_where_names_are_equal(mode: int) -> None:
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        x = ms.Tensor([[1.0, 2.0]])
        net = Lists()
        assert [p.name for p in net.get_parameters()] == ["0.weight", "0.weight"]
        net.a[0](x)
        assert [p.name for p in net.get_parameters()] == ["0.weight", "0.weight"]
        net(x)
        assert [p.name for p in net.get_parameters()] == ["a.0.weight", "b.0.weight"]
        nn.Adam(net.trainable_params())
        # Later calls leave names as they are, as do those of other cells whose names differ.
        net.a[0].weight.name = "b.0.weight"
        net(x)
        assert [p.name for p in net.get_parameters()] == ["b.0.weight", "b.0.weight"]
        own = Lists()
        own.a[0].weight.name = "mine"
        own(x)
        assert [p.name for p in own.get_parameters()] == ["mine", "0.weight"]
    finally:
        ms.set_context(mode=before)


def test_compiling_a_function_names_nothing() -> None:
    net = Lists()
    ms.jit(lambda x: net(x))(ms.Tensor([[1.0, 2.0]]))
    assert [p.name for p in net.get_parameters()] == ["0.weight", "0.weight"]
    ms.value_and_grad(lambda x: net(x).sum())(ms.Tensor([[1.0, 2.0]]))
    assert [p.name for p in net.get_parameters()] == ["a.0.weight", "b.0.weight"]


def test_marks() -> None:
    net = network()
    assert (net.phase, net.set_train().phase) == ("predict", "train")
    net.phase = "mine"
    assert net.phase == "mine" and net.cls_name == "SequentialCell" and net.bprop_debug is False
    net.update_cell_type("recompute")
    assert net.cell_type == "recompute"
    assert net.set_comm_fusion(2) is net and {p.comm_fusion for p in net.trainable_params()} == {2}
    assert net.set_broadcast_flag() is net and net.shard(((1, 1),)) is net
    assert net.set_data_parallel() is None and net.remove_redundant_parameters() is None
    for call in (lambda: net.set_comm_fusion(-1), lambda: net.set_broadcast_flag(1), lambda: net.shard([1])):
        with pytest.raises((TypeError, ValueError)):
            call()
    p = net.trainable_params()[0]
    assert (p.layerwise_parallel, p.parallel_optimizer, p.cache_enable, p.sliced) == (False, True, False, False)
    assert p.parallel_optimizer_comm_recompute is False and p.cache_shape == []
