"""Layers as products of smaller ones, and adapters: exact or near, as they must be."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.compression import add_adapters, cost_of, low_rank, merge_adapters, prune_channels
from mycel.quantisation import quantise

LAYERS: list[tuple[Any, tuple[int, ...], list[str]]] = [
    (lambda: nn.Dense(10, 7, activation="tanh"), (3, 10), ["channel"]),
    (lambda: nn.Dense(10, 7, has_bias=False), (2, 3, 10), ["channel"]),
    (lambda: nn.Conv2d(4, 6, 3, has_bias=True), (2, 4, 7, 8), ["channel", "spatial", "tucker"]),
    (
        lambda: nn.Conv2d(4, 6, (3, 5), (2, 1), "pad", (1, 0, 2, 3), (1, 2)),
        (2, 4, 9, 12),
        ["channel", "spatial", "tucker"],
    ),
    (lambda: nn.Conv2d(4, 6, 3, 2, "valid", has_bias=True), (2, 4, 9, 9), ["channel", "spatial", "tucker"]),
    (lambda: nn.Conv2d(4, 6, 4, 2, "pad", 1), (2, 4, 9, 9), ["channel", "spatial", "tucker"]),
    (lambda: nn.Conv2d(4, 6, 1), (2, 4, 5, 5), ["channel", "tucker"]),
    (lambda: nn.Conv1d(4, 6, 3, 2, "pad", (1, 2), has_bias=True), (2, 4, 9), ["channel", "tucker"]),
    (lambda: nn.Conv3d(3, 4, (2, 3, 1), (1, 2, 1), "same"), (1, 3, 4, 5, 3), ["channel", "tucker"]),
]
CASES = [(make, shape, form) for make, shape, forms in LAYERS for form in forms]


@pytest.mark.parametrize(("make", "shape", "form"), CASES)
def test_all_ranks_are_exact_and_few_are_best(make: Any, shape: tuple[int, ...], form: str) -> None:
    ms.set_seed(1)
    layer = make()
    x = ops.randn(*shape)
    whole = layer(x).asnumpy()
    full = low_rank(nn.SequentialCell(copy.deepcopy(layer)), ranks={"0": 1}, form=form)
    most = full.decompositions["0"]
    assert most.ranks == (1,) * len(most.ranks) and 0 < most.energy < 1
    assert full(x).shape == whole.shape
    limit = int(
        str(pytest.raises(ValueError, low_rank, nn.SequentialCell(layer), ranks={"0": 999}, form=form).value)
        .split("from 1 to ")[1]
        .split(",")[0]
    )
    exact = low_rank(nn.SequentialCell(copy.deepcopy(layer)), ranks={"0": limit}, form=form)
    # With all ranks nothing is lost.
    np.testing.assert_allclose(exact(x).asnumpy(), whole, rtol=1e-3, atol=2e-5)
    assert abs(exact.decompositions["0"].energy - 1) < 1e-9
    assert {p.name for p in exact.get_parameters()} >= {p.name for p in layer.get_parameters() if "bias" in p.name}


def test_the_rank_keeps_the_energy() -> None:
    rng = np.random.default_rng(0)
    u, v = np.linalg.qr(rng.normal(size=(30, 30)))[0], np.linalg.qr(rng.normal(size=(40, 40)))[0][:, :30]
    values = np.array([4.0, 2.0, 1.0] + [1e-4] * 27)
    weight = (u * values) @ v.T
    net = nn.SequentialCell(nn.Dense(40, 30, ms.Tensor(weight.astype(np.float32)), "zeros"))
    made = low_rank(copy.deepcopy(net), energy=0.96)
    assert made.decompositions["0"].ranks == (3,)
    assert low_rank(copy.deepcopy(net), energy=0.95).decompositions["0"].ranks == (2,)
    np.testing.assert_allclose(made.decompositions["0"].energy, 1.0, atol=1e-6)
    found = made[0][1].weight.asnumpy() @ made[0][0].weight.asnumpy()
    np.testing.assert_allclose(found, weight, atol=1e-3)
    # As many weights as before are no gain.
    same = low_rank(copy.deepcopy(net), energy=1.0)
    assert same.decompositions["0"].form == "" and isinstance(same[0], nn.Dense)
    assert "would have" in same.decompositions["0"].why


def network() -> nn.SequentialCell:
    ms.set_seed(4)
    return nn.SequentialCell(
        nn.Conv2d(3, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, group=16),
        nn.Conv2d(16, 24, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dense(24 * 16, 20),
        nn.Dense(20, 4),
    )


@pytest.mark.parametrize("form", ["channel", "spatial", "tucker"])
def test_a_share_of_the_weights(form: str) -> None:
    net = network()
    x = ops.randn(2, 3, 4, 4)
    made = low_rank(net, parameters=0.5, form=form)
    found = made.decompositions
    assert set(found) == {"0", "3", "4", "7", "8"} and found["3"].why == "its channels are in groups"
    share = sum(d.after for d in found.values()) / sum(d.before for d in found.values())
    assert 0.4 < share <= 0.5
    assert made is net and made(x).shape == (2, 4)
    assert cost_of(net, x).macs < cost_of(network(), x).macs
    with pytest.raises(ValueError, match="cannot go to 0.0001"):
        low_rank(network(), parameters=0.0001, form=form)


def test_with_training_pruning_and_integers() -> None:
    net = low_rank(network(), energy=0.6)
    x, y = ops.randn(8, 3, 4, 4), ms.Tensor(np.arange(8) % 4, ms.int32)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net.trainable_params(), 0.01)).set_train()
    first = float(step(x, y))
    for _ in range(10):
        last = float(step(x, y))
    assert last < first
    net.set_train(False)
    small = prune_channels(net, x, ratio=0.3)
    assert small.pruned.after.parameters < cost_of(net, x).parameters
    assert quantise(small, x).report.floats == []


ADAPTED: list[tuple[Any, tuple[int, ...]]] = [(m, s) for m, s, _ in LAYERS]


@pytest.mark.parametrize(("make", "shape"), ADAPTED)
def test_adapters_change_nothing_train_and_merge(make: Any, shape: tuple[int, ...]) -> None:
    ms.set_seed(2)
    net = nn.SequentialCell(make())
    x = ops.randn(*shape)
    before, weight = net(x).asnumpy(), net[0].weight.asnumpy()
    add_adapters(net, 3, alpha=6.0)
    np.testing.assert_allclose(net(x).asnumpy(), before, rtol=1e-5, atol=1e-6)
    assert [p.name.split(".")[-1] for p in net.trainable_params()] == ["down", "up"]
    slope = ms.value_and_grad(lambda: (net(x) ** 2).mean(), None, net.trainable_params())
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    for _ in range(3):
        optimizer(slope()[1])
    trained = net(x).asnumpy()
    assert np.abs(trained - before).max() > 1e-4
    np.testing.assert_array_equal(net[0].layer.weight.asnumpy(), weight)
    merge_adapters(net)
    np.testing.assert_allclose(net(x).asnumpy(), trained, rtol=1e-4, atol=1e-5)
    assert np.linalg.matrix_rank((net[0].weight.asnumpy() - weight).reshape(weight.shape[0], -1), 1e-5) <= 3
    assert all(p.requires_grad for p in net.get_parameters())


def test_what_is_trained() -> None:
    net = network()
    net[8].bias.requires_grad = False
    add_adapters(net, 2, layers=["7", "4"], train=["8", "1.gamma"])
    names = {p.name for p in net.trainable_params()}
    assert {n.split(".")[0] for n in names} == {"1", "4", "7", "8"} and "8.bias" not in names and "8.weight" in names
    with pytest.raises(ValueError, match="has adapters"):
        add_adapters(net, 2)
    merge_adapters(net)
    assert not net[8].bias.requires_grad and net[0].weight.requires_grad
    with pytest.raises(ValueError, match="has no adapters"):
        merge_adapters(net)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "give one of energy, parameters and ranks"),
        ({"energy": 0.5, "parameters": 0.5}, "give one of"),
        ({"energy": 0.0}, "energy must be a share"),
        ({"energy": float("nan")}, "energy must be a share"),
        ({"energy": 0.5, "form": "cp"}, "form must be"),
        ({"ranks": {"9": 2}}, "'9' is no Dense"),
        ({"ranks": {"3": 2}}, "in groups"),
        ({"ranks": {"7": 0}}, "from 1 to 20"),
        ({"energy": 0.5, "exclude": ["a"]}, "'a' is no Dense"),
    ],
)
def test_arguments_that_mean_nothing(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        low_rank(network(), **given)


def test_weights_that_are_not_finite() -> None:
    net = nn.SequentialCell(nn.Dense(8, 8))
    net[0].weight.set_data(net[0].weight * float("nan"))
    assert low_rank(net, energy=0.5).decompositions["0"].why == "its weights are not finite"
    with pytest.raises(ValueError, match="put it into a SequentialCell"):
        low_rank(nn.Dense(8, 8), energy=0.5)
