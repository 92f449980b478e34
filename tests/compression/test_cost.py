"""What networks cost, against counts by hand."""

from __future__ import annotations

import pytest

import mycel as ms
from mycel import nn
from mycel.compression import cost_of


def test_convolutions_and_dense_layers() -> None:
    net = nn.SequentialCell(
        nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.Conv2d(8, 16, 3, group=4), nn.Flatten(), nn.Dense(256, 5)
    )
    found = cost_of(net, ms.ops.ones((2, 3, 8, 8)))
    macs = {layer.name: layer.macs for layer in found.layers}
    assert macs == {"0": 2 * 8 * 3 * 9 * 16, "1": 0, "2": 2 * 16 * 2 * 9 * 16, "4": 2 * 256 * 5}
    assert found.macs == sum(macs.values())
    assert found.parameters == sum(p.size for p in net.get_parameters())
    assert found.bytes == 4 * found.parameters
    assert "all layers" in str(found) and net.training is False


def test_modes_stay_as_they_are() -> None:
    net = nn.SequentialCell(nn.Dense(4, 4), nn.Dropout(p=0.5))
    net.set_train()
    net[0].set_train(False)
    cost_of(net, ms.ops.ones((1, 4)))
    assert net.training and not net[0].training and net[1].training


class Looped(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Dense(4, 4)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        while x.sum() < 100:
            x = self.layer(x) + 1
        return x


def test_a_loop_counts_once_and_says_so() -> None:
    found = cost_of(Looped(), ms.ops.ones((2, 4)))
    assert found.macs == 32 and len(found.once) == 1 and "while_loop" in found.once[0]


class Chosen(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Dense(4, 64), nn.Dense(4, 2)
        self.back = nn.Dense(64, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.back(self.wide(x)) if x.sum() > 0 else self.narrow(x)


def test_the_dearer_branch_counts() -> None:
    found = cost_of(Chosen(), ms.ops.ones((1, 4)))
    assert found.macs == 4 * 64 + 64 * 2 and not found.once


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(layer: type) -> None:
    net = layer(5, 6, batch_first=True)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[layer.__name__]
    found = cost_of(net, ms.ops.ones((2, 7, 5)))
    assert found.macs == 2 * 7 * gates * 6 * (5 + 6)
