"""Mixed bits: sensitive layers keep theirs, and the budget is met."""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.quantisation import mixed_bits, quantise

X = np.random.default_rng(3).normal(size=(32, 20)).astype(np.float32)


def network() -> nn.SequentialCell:
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(20, 30), nn.ReLU(), nn.Dense(30, 30), nn.ReLU(), nn.Dense(30, 6))
    # Whole numbers of which three bits are enough.
    whole = np.random.default_rng(0).integers(-3, 4, (30, 30)).astype(np.float32)
    whole[:, 0] = 3
    net[2].weight.set_data(ms.Tensor(whole / 30))
    return net


def test_layers_that_lose_nothing_give_up_bits() -> None:
    net = network()
    found = mixed_bits(net, X, mean=5.5, choices=(8, 3))
    assert found.bits == (8, 3, 8)
    assert found.bytes == (600 * 8 + 900 * 3 + 180 * 8) / 8 <= 1680 * 5.5 / 8
    assert found.sensitivity[1][3] < 1e-9 < found.sensitivity[0][3]
    wanted = net(ms.Tensor(X)).asnumpy()

    def error(bits: object) -> float:
        made = quantise(net, X, weight_bits=bits)  # type: ignore[arg-type]
        return float(((made(ms.Tensor(X)).asnumpy() - wanted) ** 2).mean())

    assert error(found.bits) < 0.1 * error((3, 8, 3))


def test_budgets_are_met() -> None:
    for mean in (8, 6, 4.5, 3, 2):
        bits = mixed_bits(network(), X, mean=mean).bits
        assert sum(b * s for b, s in zip(bits, (600, 900, 180))) <= mean * 1680


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="below the fewest of a layer, 2"):
        mixed_bits(network(), X, mean=1)
    with pytest.raises(ValueError, match="choices must be ints from 2 to 8"):
        mixed_bits(network(), X, mean=8, choices=(16, 8))
    with pytest.raises(ValueError, match="weight_bits has 2 numbers, and the network 3 layers"):
        quantise(network(), X, weight_bits=(8, 8))
    with pytest.raises(ValueError, match="weight_bits must be an int from 2 to 8, not 1"):
        quantise(network(), X, weight_bits=(8, 1, 8))
