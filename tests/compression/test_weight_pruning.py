"""Masks on weights: chosen by size, score and pattern, kept by any optimizer, taken off again."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.compression import (
    GradualPruning,
    prune_weights,
    remove_masks,
    sensitivity,
    size_report,
    update_masks,
)
from mycel.compression.weight_pruning import MaskedLayer, masked_layers
from mycel.quantisation import quantise


def network() -> nn.SequentialCell:
    ms.set_seed(2)
    return nn.SequentialCell(
        nn.Conv2d(4, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dense(8 * 16, 12, activation="relu"),
        nn.Dense(12, 3),
    )


X = np.random.default_rng(0).normal(size=(16, 4, 4, 4)).astype(np.float32)
Y = (np.arange(16) % 3).astype(np.int32)


def weights(net: Any) -> dict[str, np.ndarray]:
    return {n: c.weight().asnumpy() for n, c in masked_layers(net).items()}


def test_the_smallest_of_each_layer_go() -> None:
    net = network()
    before = net(ms.Tensor(X))
    whole = {k: net[k].weight.asnumpy() for k in (0, 4, 5)}
    prune_weights(net, 0.0)
    np.testing.assert_array_equal(net(ms.Tensor(X)).asnumpy(), before.asnumpy())
    prune_weights(net, 0.75)
    for k, array in whole.items():
        found = weights(net)[str(k)]
        assert (found != 0).sum() == round(array.size * 0.25)
        assert np.abs(array[found == 0]).max() <= np.abs(found[found != 0]).min()
    # What is masked still has its value.
    update_masks(net, 0.5)
    np.testing.assert_array_equal(net[4].layer.weight.asnumpy(), whole[4])


def test_the_smallest_of_all_and_shares_by_layer() -> None:
    net = network()
    net[5].weight.set_data(net[5].weight * 100)
    prune_weights(net, 0.5, scope="global")
    found = weights(net)
    assert (found["5"] != 0).all()
    assert sum((a == 0).sum() for a in found.values()) == round(0.5 * sum(a.size for a in found.values()))
    net = prune_weights(network(), {"4": 0.9, "5": 0.25})
    found = weights(net)
    assert set(found) == {"4", "5"} and (found["5"] == 0).mean() == 0.25


@pytest.mark.parametrize("pattern", [(2, 4), (4, 8), (1, 4)])
def test_n_of_m_neighbours(pattern: tuple[int, int]) -> None:
    n, m = pattern
    net = prune_weights(network(), pattern=pattern, exclude=["0", "5"] if m == 8 else [])
    for layer in masked_layers(net).values():
        full, left = layer.layer.weight.asnumpy(), layer.weight().asnumpy()
        groups = np.moveaxis(left, 1, -1).reshape(-1, m)
        assert ((groups != 0).sum(1) == n).all()
        ranked = np.sort(np.abs(np.moveaxis(full, 1, -1).reshape(-1, m)), 1)[:, -n:]
        np.testing.assert_array_equal(np.sort(np.abs(groups), 1)[:, -n:], ranked)
    assert size_report(net).zeros > 0.0


@pytest.mark.parametrize("compiled", [False, True])
def test_zeros_stay_whatever_the_optimizer_does(compiled: bool) -> None:
    net = prune_weights(network(), pattern=(2, 4))
    zeros = {n: a == 0 for n, a in weights(net).items()}
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9, weight_decay=0.01)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    step.set_train()
    run = ms.jit(step) if compiled else step
    first = float(run(ms.Tensor(X), ms.Tensor(Y)))
    for _ in range(15):
        last = float(run(ms.Tensor(X), ms.Tensor(Y)))
    assert last < first
    for name, array in weights(net).items():
        assert (array[zeros[name]] == 0).all() and (array[~zeros[name]] != 0).all()
    net.set_train(False)
    masked = net(ms.Tensor(X)).asnumpy()
    remove_masks(net)
    np.testing.assert_array_equal(net(ms.Tensor(X)).asnumpy(), masked)
    assert not masked_layers(net) and (net[4].weight.asnumpy()[zeros["4"]] == 0).all()
    # Zeros are zero steps as well.
    small = quantise(net, X)
    assert small.report.floats == []


def trained(net: Any, callback: Any, epochs: int) -> None:
    data = ms.dataset.NumpySlicesDataset({"x": X, "y": Y}, shuffle=False).batch(8)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    ms.Model(net, loss, optimizer).train(epochs, data, callbacks=[callback], dataset_sink_mode=False)


def test_sparsity_grows_while_a_model_trains() -> None:
    net = prune_weights(network(), 0.0)
    seen: list[float] = []

    class See(ms.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            seen.append(size_report(net).zeros)

    callback = GradualPruning(net, 0.8, begin=2, end=10, every=3)
    data = ms.dataset.NumpySlicesDataset({"x": X, "y": Y}, shuffle=False).batch(8)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    ms.Model(net, loss, nn.SGD(net.trainable_params(), 0.05)).train(7, data, callbacks=[callback, See()])
    wanted = [0, callback.at(2), *[callback.at(2)] * 2, *[callback.at(5)] * 3, *[callback.at(8)] * 2, *[0.8] * 5]
    np.testing.assert_allclose(seen, wanted, atol=2e-3)


def test_movement_learns_what_stays() -> None:
    net = nn.SequentialCell(nn.Dense(2, 1, ms.Tensor([[1.0, 0.1]]), has_bias=False))
    prune_weights(net, 0.0, method="movement")
    layer = net[0]
    # The slope of a score is that of the product, times the weight.
    slopes = ms.grad(lambda: (net(ms.Tensor([[3.0, 5.0]])) * 2).sum(), None, [layer.scores, layer.layer.weight])()
    np.testing.assert_allclose(slopes[0].asnumpy(), [[6.0, 1.0]], rtol=1e-6)
    np.testing.assert_allclose(slopes[1].asnumpy(), [[6.0, 10.0]])
    # A large weight that moves towards zero goes, a small one that grows stays.
    layer.scores.set_data(ms.Tensor([[-1.0, 1.0]]))
    update_masks(net, 0.5)
    assert layer.mask.asnumpy().tolist() == [[0, 1]]
    net = prune_weights(network(), 0.0, method="movement")
    trained(net, GradualPruning(net, 0.6, begin=2, end=8), 5)
    assert all(abs((a == 0).mean() - 0.6) < 0.02 for a in weights(net).values())
    assert all(np.abs(c.scores.asnumpy()).max() > 0 for c in masked_layers(net).values())


def test_training_that_ends_too_early_says_so(caplog: Any) -> None:
    net = prune_weights(network(), 0.0)
    with caplog.at_level(logging.WARNING):
        trained(net, GradualPruning(net, 0.8, begin=1, end=100), 1)
    assert "training ended at step 2 of 100" in caplog.text


def test_masks_are_saved_with_the_network(tmp_path: Any) -> None:
    net = prune_weights(network(), 0.5)
    ms.save_checkpoint(net, str(tmp_path / "n.ckpt"))
    other = prune_weights(network(), 0.0)
    ms.load_param_into_net(other, ms.load_checkpoint(str(tmp_path / "n.ckpt")))
    np.testing.assert_array_equal(other(ms.Tensor(X)).asnumpy(), net(ms.Tensor(X)).asnumpy())


def test_what_layers_bear() -> None:
    net = network()
    before = {p.name: p.asnumpy() for p in net.get_parameters()}
    found = sensitivity(net, lambda n: float(ops.abs(n(ms.Tensor(X))).sum()), (0.0, 0.99))
    assert set(found) == {"0", "4", "5"} and found["0"][0] == found["4"][0]
    for p in net.get_parameters():
        np.testing.assert_array_equal(p.asnumpy(), before[p.name])


def test_sizes() -> None:
    net = nn.SequentialCell(nn.Dense(64, 64), nn.Dense(64, 8))
    prune_weights(net, 0.5)
    report = size_report(net)
    assert report.parameters == 64 * 65 + 8 * 65 and report.bytes == 4 * report.parameters
    assert report.sparse == 4 * 72 + (64 * 64 + 8 * 64) // 8 + 2 * (64 * 64 + 8 * 64)
    assert report.compressed < report.bytes and "products take as long" in str(report)
    assert size_report(remove_masks(net)) == report


def test_a_layer_that_is_used_twice_has_one_mask() -> None:
    shared = nn.Dense(4, 4)
    net = prune_weights(nn.SequentialCell(shared, nn.ReLU(), shared), 0.5)
    assert net[0] is net[2] and isinstance(net[0], MaskedLayer)
    remove_masks(net)
    assert net[0] is shared and net[2] is shared


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "give a sparsity or a pattern"),
        ({"sparsity": 0.5, "pattern": (2, 4)}, "give a sparsity or a pattern"),
        ({"sparsity": 1.0}, "from 0 to below 1"),
        ({"sparsity": float("nan")}, "from 0 to below 1"),
        ({"sparsity": {"9": 0.5}}, "'9' is no dense layer"),
        ({"sparsity": {"0": 0.5}, "scope": "global"}, "go with scope 'layer'"),
        ({"sparsity": 0.5, "method": "movement"}, "begin with sparsity=0"),
        ({"pattern": (4, 4)}, "0 < n < m"),
        ({"pattern": (3, 5)}, "do not divide into groups of 5; exclude it"),
        ({"sparsity": 0.5, "exclude": ["0", "4", "5"]}, "no dense layer or convolution to prune"),
    ],
)
def test_arguments_that_mean_nothing(given: dict[str, Any], words: str) -> None:
    net = network()
    with pytest.raises(ValueError, match=words):
        prune_weights(net, **given)
    assert not masked_layers(net)


def test_schedules_that_mean_nothing() -> None:
    net = prune_weights(network(), pattern=(2, 4))
    with pytest.raises(ValueError, match="masks without patterns"):
        GradualPruning(net, 0.5, 0, 10)
    with pytest.raises(ValueError, match="end must be an int above begin 10"):
        GradualPruning(prune_weights(network(), 0.0), 0.5, 10, 10)
    with pytest.raises(ValueError, match="has no masks"):
        update_masks(network(), 0.5)
