"""`nn.summary`: shapes, parameters and products of layers, against counts by hand and by graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.compression import cost_of

CHECKED = {
    "nn.summary": "counts by hand, and the products of the staged graph",
    "nn.Summary": "counts by hand",
    "nn.LayerSummary": "counts by hand",
}


def ones(*shape: int) -> ms.Tensor:
    return ms.Tensor(np.ones(shape, np.float32))


class Shared(nn.Cell):
    """A layer that is called twice, and once more under another name."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(4, 4)
        self.again = self.first
        self.last = nn.Dense(4, 2, has_bias=False)

    def construct(self, x):
        return self.last(self.again(self.first(self.first(x))))


class Two(nn.Cell):
    """Two inputs, of which one is a dictionary, and two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Dense(3, 5), nn.Dense(2, 5)

    def construct(self, x, named):
        y = self.a(x) + self.b(named["y"])
        return y, {"sum": y.sum()}


class ByValue(nn.Cell):
    """How often a layer runs depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Dense(2, 2, weight_init="ones")

    def construct(self, x):
        while float(x.sum()) < 100:
            x = self.layer(x)
        return x


class Writes(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.count = ms.Parameter(ms.Tensor(0.0), name="count", requires_grad=False)
        self.layer = nn.Dense(2, 2)

    def construct(self, x):
        self.count += 1.0
        y = self.layer(x)
        y[0, 0] = 3.0
        return y


NETS: dict[str, tuple[Callable[[], nn.Cell], tuple[Any, ...]]] = {
    "dense": (lambda: nn.Dense(3, 2), (ones(5, 3),)),
    "convolutions": (
        lambda: nn.SequentialCell(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3, group=4)),
        (ones(2, 2, 6, 6),),
    ),
    "transposed": (lambda: nn.Conv2dTranspose(2, 3, 3), (ones(1, 2, 5, 5),)),
    "recurrent": (lambda: nn.LSTM(3, 4, batch_first=True), (ones(2, 5, 3),)),
    "shared": (Shared, (ones(3, 4),)),
    "two": (Two, (ones(4, 3), {"y": ones(4, 2)})),
    "no products": (lambda: nn.SequentialCell(nn.ReLU(), nn.Dropout(p=0.5)), (ones(4),)),
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_totals(name: str, mode: int) -> None:
    ms.set_context(mode=mode)
    make, inputs = NETS[name]
    net = make()
    found = nn.summary(net, *inputs)
    assert found.macs == cost_of(net, *inputs).macs
    assert found.parameters == sum(p.size for p in net.get_parameters())
    assert found.trainable == sum(p.size for p in net.trainable_params())
    assert found.parameter_bytes == 4 * found.parameters
    assert [layer.path for layer in found.layers] == [path for path, _ in net.cells_and_names()]
    assert found.layers[0].macs == found.macs and found.layers[0].calls == 1
    assert found.peak is not None and found.peak >= found.parameter_bytes


def test_layers_that_are_called_again() -> None:
    found = nn.summary(Shared(), ones(3, 4))
    by_path = {layer.path: layer for layer in found.layers}
    assert by_path["first"].calls == 3 and by_path["first"].macs == 3 * 3 * 16
    assert by_path["first"].parameters == 20 and found.parameters == 28
    assert by_path["last"].outputs == [(3, 2)]
    assert " x 3" in str(found)


def test_several_inputs_and_outputs() -> None:
    found = nn.summary(Two(), np.ones((4, 3), np.float32), {"y": np.ones((4, 2), np.float32)})
    assert found.layers[0].outputs == [(4, 5), ()] and found.macs == 4 * 5 * (3 + 2)


def test_what_depends_on_data() -> None:
    found = nn.summary(ByValue(), ones(1, 2))
    assert found.layers[1].calls > 2 and found.macs == 4 * found.layers[1].calls and found.peak is None


def test_depth_and_text() -> None:
    net = nn.SequentialCell(nn.SequentialCell(nn.Dense(3, 3), nn.ReLU()), nn.Dense(3, 2))
    net[1].weight.requires_grad = False
    assert [layer.depth for layer in nn.summary(net, ones(1, 3)).layers] == [0, 1, 2, 2, 1]
    found = nn.summary(net, ones(1, 3), depth=1)
    assert [layer.kind for layer in found.layers] == ["SequentialCell", "SequentialCell", "Dense"]
    assert found.layers[1].macs == 9 and found.layers[1].parameters == 12
    assert "8 (6 fixed)" in str(found) and "of them trained: 14" in repr(found)


def test_sizes_that_are_open_are_one() -> None:
    given = ms.Tensor(shape=[None, 3], dtype=ms.float32)
    assert nn.summary(nn.Dense(3, 2), given).layers[0].outputs == [(1, 2)]


def test_nothing_is_left_changed() -> None:
    net = nn.SequentialCell(nn.Dense(4, 4), nn.BatchNorm1d(4), nn.Dropout(p=0.5), Writes2())
    net.set_train()
    before = {p.name: p.asnumpy().copy() for p in net.get_parameters()}
    ms.set_seed(3)
    state = ms.get_rng_state()
    nn.summary(net, ones(2, 4))
    assert all(np.array_equal(p.asnumpy(), before[p.name]) for p in net.get_parameters())
    assert all(cell.training for _, cell in net.cells_and_names())
    np.testing.assert_array_equal(np.asarray(ms.get_rng_state()), np.asarray(state))
    assert not net._hooks and not net._pre_hooks


class Writes2(Writes):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Dense(4, 2)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(TypeError, match="summary: net must be"):
        nn.summary(lambda x: x, ones(1))
    with pytest.raises(ValueError, match="summary: depth must be"):
        nn.summary(nn.ReLU(), ones(1), depth=-1)
    layer = nn.Dense(3, 2)
    with pytest.raises(ValueError, match="Dense"):
        nn.summary(layer, ones(1, 4))
    assert not layer._hooks and not layer._pre_hooks
