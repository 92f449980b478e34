"""Weights rounded by what they do to results, equalised channels, and corrected biases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.compiler.transforms.quantise.batch_norm_folding import fold_normalisations
from mycel._src.compiler.transforms.quantise.cross_layer_equalisation import equalised
from mycel._src.compiler.transforms.quantise.scales import levels_of, weight_scale
from mycel.quantisation import quantise
from mycel.quantisation.post_training import Batches
from mycel.quantisation.quantised_network import float_model
from mycel.quantisation.weight_rounding import adaround

RNG = np.random.default_rng(6)
X = RNG.normal(size=(64, 3, 8, 8)).astype(np.float32)


def network(uneven: bool = False) -> Any:
    ms.set_seed(4)
    net = nn.SequentialCell(
        *[nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, group=8), nn.ReLU()],
        *[nn.MaxPool2d(2, 2), nn.Conv2d(8, 6, 1, has_bias=True), nn.ReLU(), nn.Flatten()],
        *[nn.Dense(96, 20, activation="relu"), nn.Dense(20, 5)],
    )
    if uneven:
        net[1].gamma.set_data(ms.Tensor(np.float32([0.01, 1, 20, 0.3, 5, 0.05, 2, 0.7])))
    return net.set_train(False)


def test_adaround_is_nearer_in_results() -> None:
    x = RNG.normal(size=(300, 6)) @ RNG.normal(size=(6, 24)) + 0.1 * RNG.normal(size=(300, 24))
    w = RNG.normal(size=(24, 10)).astype(np.float32)
    for bits in (4, 3, 2):
        scale = weight_scale(w, -1, bits)
        nearest = levels_of(w, scale) * scale.size
        found = adaround(w, x.T @ x, scale)
        np.testing.assert_array_equal(levels_of(found, scale) * scale.size, found.astype(np.float32))
        assert ((x @ (found - w)) ** 2).mean() < 0.7 * ((x @ (nearest - w)) ** 2).mean()


@pytest.mark.parametrize("options", [{"weights": "adaround"}, {"weights": "gptq"}, {"correct_biases": True}], ids=str)
def test_results_are_nearer(options: dict[str, Any]) -> None:
    net = network()
    for p in net.get_parameters():
        if p.name.endswith("weight"):
            p.set_data(ms.Tensor((RNG.normal(size=p.shape) * np.sqrt(2 / np.prod(p.shape[1:]))).astype(np.float32)))
    wanted = net(ms.Tensor(X)).asnumpy()

    def error(**more: Any) -> float:
        made = quantise(net, X, weight_bits=3, **more)
        assert made.report.floats == []
        return float(((made(ms.Tensor(X)).asnumpy() - wanted) ** 2).mean())

    assert error(**options) < 0.9 * error()


def test_all_together_on_a_single_scale() -> None:
    net = network(uneven=True)
    wanted = net(ms.Tensor(X)).asnumpy()
    errors = []
    for equalise in (False, True):
        made = quantise(net, X, per_channel=False, equalise=equalise, correct_biases=equalise)
        errors.append(float(((made(ms.Tensor(X)).asnumpy() - wanted) ** 2).mean()))
    assert errors[1] < 0.5 * errors[0]


def test_equalising_keeps_the_function() -> None:
    net = network(uneven=True)
    batches = Batches(X)
    model = float_model(net, batches.examples())
    graph = fold_normalisations(model.graph)
    model.graph = equalised(graph)
    assert model.graph is not graph
    from mycel.formats.exporting import LoadedGraph

    np.testing.assert_allclose(
        LoadedGraph(model)(ms.Tensor(X)).asnumpy(), net(ms.Tensor(X)).asnumpy(), rtol=1e-3, atol=1e-4
    )


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="weights must be"):
        quantise(network(), X, weights="up")
    with pytest.raises(TypeError, match="correct_biases must be a bool"):
        quantise(network(), X, correct_biases=1)
