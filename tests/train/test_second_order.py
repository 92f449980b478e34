"""Networks and models made ready for second-order training: they compute what they computed, from
the same parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import Tensor, nn, ops, train

CHECKED = dict.fromkeys(("train.ConvertModelUtils", "train.ConvertNetUtils"), "the network before")

rng = np.random.default_rng(4)


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, (3, 2), 2, "pad", 1, dilation=(1, 2), has_bias=True)
        self.grouped = nn.Conv2d(4, 4, 3, group=2)
        self.body = nn.SequentialCell(nn.Flatten(), nn.Dense(48, 6, activation="tanh"), nn.Dense(6, 5, has_bias=False))
        self.words = nn.Embedding(7, 5, padding_idx=1)
        self.lookup = nn.EmbeddingLookup(7, 5, max_norm=0.5)
        self.wide = nn.Dense(5, 5)
        self.frozen = nn.Dense(5, 3)
        self.frozen.weight.requires_grad = False
        self.again = self.body[2]

    def construct(self, x: Any, ids: Any) -> Any:
        found = self.body(self.grouped(self.conv(x))) + ops.sum(self.words(ids) + self.lookup(ids), 1)
        return self.frozen(self.wide(found))


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_converted_network_is_the_same_function(batch: int) -> None:
    net = Net()
    x = Tensor(rng.normal(size=(batch, 2, 6, 8)).astype(np.float32))
    ids = Tensor(rng.integers(0, 7, (batch, 3)).astype(np.int32))
    parameters = {p.name: p for p in net.get_parameters()}
    gradient = ms.value_and_grad(lambda x, ids: ops.sum(net(x, ids) ** 2), None, list(parameters.values()))
    before, slopes = gradient(x, ids)
    train.ConvertNetUtils().convert_to_thor_net(net)
    kinds = {
        name: type(cell).__name__ for name, cell in net.cells_and_names() if not isinstance(cell, nn.SequentialCell)
    }
    expected = {
        "conv": "Conv2dThor",
        "grouped": "Conv2dThor",
        "body.1": "DenseThor",
        "body.2": "DenseThor",
        "words": "EmbeddingThor",
        "lookup": "EmbeddingLookupThor",
        "wide": "Dense",
        "frozen": "Dense",
    }
    assert expected.items() <= kinds.items()
    assert net.again is net.body[2]
    assert net.cell_type == "second-order"
    for name, parameter in parameters.items():
        assert any(parameter is p for p in net.get_parameters()), name
    found = [p.name for p in net.get_parameters()]
    assert len(set(found)) == len(found)
    assert {"conv.matrix_a", "body.1.matrix_g"} <= set(found)
    after, new_slopes = ms.value_and_grad(lambda x, ids: ops.sum(net(x, ids) ** 2), None, list(parameters.values()))(
        x, ids
    )
    np.testing.assert_allclose(after.asnumpy(), before.asnumpy(), rtol=1e-6)
    for a, b in zip(slopes, new_slopes):
        np.testing.assert_allclose(b.asnumpy(), a.asnumpy(), rtol=1e-5, atol=1e-6)


def test_the_optimizer_converts_and_models_train() -> None:
    x = rng.normal(size=(64, 4)).astype(np.float32)
    y = np.tanh(x @ rng.normal(size=(4, 2))).astype(np.float32)
    data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(32)
    losses = {}
    for name in ("plain", "thor"):
        ms.set_seed(1)
        net = nn.SequentialCell(nn.Dense(4, 16, activation="tanh"), nn.Dense(16, 2))
        optimizer: Any = nn.SGD(net.trainable_params(), 0.05)
        if name == "thor":
            rate, damping = Tensor(np.full(8, 0.05, np.float32)), Tensor(np.full(8, 0.03, np.float32))
            optimizer = nn.thor(net, rate, damping, 0.9, batch_size=32, frequency=2)
            assert [type(cell).__name__ for cell in net] == ["DenseThor", "DenseThor"]
        model = train.Model(net, nn.MSELoss(), optimizer, metrics={"loss"})
        converted = train.ConvertModelUtils.convert_to_thor_model(model, net, nn.MSELoss(), optimizer, {"loss"})
        assert (converted is model) == (name == "plain")
        first = converted.eval(data)["loss"]
        converted.train(10, data)
        losses[name] = converted.eval(data)["loss"] / first
    assert losses["thor"] < 0.5 * losses["plain"] < 0.5


def test_refusals() -> None:
    with pytest.raises(TypeError, match="net must be a Cell, not int"):
        train.ConvertNetUtils().convert_to_thor_net(3)
    with pytest.raises(TypeError, match="model must be a Model, not int"):
        train.ConvertModelUtils.convert_to_thor_model(3, nn.ReLU())
