"""Ways of compression one after the other: a network that is pruned, of integers, and a library."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.compression import (
    Distilled,
    add_adapters,
    cost_of,
    low_rank,
    merge_adapters,
    prune_channels,
    prune_weights,
    remove_masks,
)
from mycel.deploy import build
from mycel.quantisation import quantisation_aware, quantise
from tests.deploy.loaded import Loaded
from tests.quantisation.digits import IMAGES, accuracy, trained, training


@pytest.fixture(scope="module")
def lenet() -> Any:
    return trained()


def test_pruned_trained_on_of_integers_and_a_library(lenet: Any) -> None:
    x = ms.Tensor(IMAGES[:2])
    small = prune_channels(lenet, x, macs=0.5, round_to=2)
    training(small, 3)
    small.set_train(False)
    assert accuracy(small) > 0.95
    integers = quantise(small, IMAGES[:256], integer_ends=True)
    whole = quantise(lenet, IMAGES[:256], integer_ends=True)
    assert integers.report.floats == [] and integers.report.bytes < 0.6 * whole.report.bytes
    steps = integers.quantised_input(IMAGES[:1])
    library = build(integers, ms.Tensor(steps), target="x86-64-v2", name="digits")
    found = Loaded(library)(steps)
    np.testing.assert_array_equal(found, integers(ms.Tensor(steps)).asnumpy())
    board = build(integers, ms.Tensor(steps), target="cortex-m4", name="digits")
    before = build(whole, ms.Tensor(steps), target="cortex-m4", name="digits")
    assert board.flash_bytes < 0.6 * before.flash_bytes and board.ram_bytes <= before.ram_bytes


def network() -> nn.SequentialCell:
    ms.set_seed(5)
    return nn.SequentialCell(
        nn.Conv2d(4, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dense(16 * 36, 24, activation="relu"),
        nn.Dense(24, 4),
    )


X = np.random.default_rng(0).normal(size=(16, 4, 6, 6)).astype(np.float32)
Y = (np.arange(16) % 4).astype(np.int32)
LOSS = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


def channels(net: Any) -> Any:
    return prune_channels(net, ms.Tensor(X), ratio=0.25)


def masked(net: Any) -> Any:
    return remove_masks(prune_weights(net, 0.5))


def ranked(net: Any) -> Any:
    return low_rank(net, parameters=0.6)


def adapted(net: Any) -> Any:
    add_adapters(net, 2)
    step(net)
    return merge_adapters(net)


def distilled(net: Any) -> Any:
    step(Distilled(net, copy.deepcopy(net), LOSS), loss=None)
    return net


def step(net: Any, loss: Any = LOSS) -> None:
    whole = net if loss is None else nn.WithLossCell(net, loss)
    run = nn.TrainOneStepCell(whole, nn.Adam(net.trainable_params(), 1e-3)).set_train()
    run(ms.Tensor(X), ms.Tensor(Y))
    net.set_train(False)


WAYS = [channels, masked, ranked, adapted, distilled]


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 0, 1)])
def test_ways_one_after_the_other(order: tuple[int, ...]) -> None:
    net: Any = network().set_train(False)
    costs = [cost_of(net, ms.Tensor(X))]
    for k in order:
        net = WAYS[k](net)
        costs.append(cost_of(net, ms.Tensor(X)))
        assert costs[-1].parameters <= costs[-2].parameters
        step(net)
    plain = net(ms.Tensor(X)).asnumpy()
    assert np.isfinite(plain).all() and costs[-1].parameters < 0.7 * costs[0].parameters
    np.testing.assert_allclose(ms.jit(net)(ms.Tensor(X)).asnumpy(), plain, rtol=1e-4, atol=1e-5)
    assert quantise(net, X).report.floats == []


def test_channels_of_networks_with_masks_and_that_round() -> None:
    # Of a network with masks what is left of the weights counts.
    net = prune_weights(network(), 0.5)
    net[0].mask.set_data(ms.Tensor(np.repeat(np.arange(16) % 2, 36).reshape(16, 4, 3, 3).astype(np.float32)))
    small = prune_channels(net, ms.Tensor(X), ratio=0.25)
    assert small[0].mask.shape == small[0].layer.weight.shape != net[0].mask.shape
    assert set(prune_channels(net, ms.Tensor(X), ratio=0.25, scope="group").pruned.removed["0.mask"][0]) <= set(
        range(0, 16, 2)
    )
    # Ranges of weights are of all of them, so these are pruned before.
    with pytest.raises(ValueError, match="reduce_min combines all of them"):
        prune_channels(quantisation_aware(network(), bn_fold=False), ms.Tensor(X), ratio=0.25)
    aware = quantisation_aware(channels(network()), bn_fold=False)
    step(aware)
    assert quantise(aware, X).report.floats == []
