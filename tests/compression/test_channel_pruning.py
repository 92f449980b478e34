"""Channels removed: smaller networks compute what masked ones do, for every kind of network."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import Unsupported
from mycel.compression import (
    GroupLasso,
    Structure,
    cost_of,
    load_pruned,
    prune_channels,
    save_pruned,
    taylor_importance,
)
from mycel.compression.channel_removal import mask_removed
from tests.compression.networks import NETWORKS, Hard, Residual


def made(name: str) -> tuple[nn.Cell, ms.Tensor]:
    ms.set_seed(3)
    net, x = NETWORKS[name][0](), NETWORKS[name][1]()
    # Statistics and factors as after training, so that a channel is not zero with its weights.
    rng = np.random.default_rng(0)
    for p in net.get_parameters():
        if p.ndim == 1:
            p.set_data(ms.Tensor(rng.uniform(0.5, 1.5, p.shape).astype(np.float32)))
    net.set_train(False)
    return net, x


@pytest.mark.parametrize(("name", "scope"), list(zip(NETWORKS, ["global", "group"] * len(NETWORKS))))
def test_a_smaller_network_is_the_masked_one(name: str, scope: str) -> None:
    net, x = made(name)
    before = {p.name: p.asnumpy().copy() for p in net.get_parameters()}
    small = prune_channels(net, x, ratio=0.5, scope=scope, form="graph")
    report = small.pruned
    assert report.removed and report.after.parameters < 0.8 * report.before.parameters
    masked = copy.deepcopy(net)
    mask_removed(masked, report.removed)
    np.testing.assert_allclose(small(x).asnumpy(), masked(x).asnumpy(), rtol=1e-4, atol=1e-4)
    # Batches of other sizes.
    more = ops.cat([x, x[:1]])
    np.testing.assert_allclose(small(more).asnumpy(), masked(more).asnumpy(), rtol=1e-4, atol=1e-4)
    if NETWORKS[name][2]:
        cell = prune_channels(net, x, ratio=0.5, scope=scope)
        assert type(cell) is type(net) and cell.pruned.removed == report.removed
        np.testing.assert_allclose(cell(x).asnumpy(), masked(x).asnumpy(), rtol=1e-4, atol=1e-4)
        assert sum(p.size for p in cell.get_parameters()) == report.after.parameters
        assert cost_of(cell, x).macs == report.after.macs
    else:
        with pytest.raises(Unsupported, match="form='graph'"):
            prune_channels(net, x, ratio=0.5, scope=scope)
    for p in net.get_parameters():
        np.testing.assert_array_equal(p.asnumpy(), before[p.name])


def test_what_goes_together() -> None:
    net, x = made("residual")
    found = Structure(net, (x,))
    sizes = {group.members[0][0]: len(group.roots) for group in found.groups}
    assert sizes == {
        "stem.weight": 8,
        "blocks.0.first.weight": 8,
        "blocks.1.first.weight": 16,
        "blocks.1.second.weight": 16,
        "blocks.2.first.weight": 16,
    }
    assert found.fixed["head.weight", 0] == "it is a result of the network"
    heads = Structure(*[made("attending")[0]], (made("attending")[1],))
    assert {(g.members[0][0], len(g.roots)) for g in heads.groups} == {("qkv.weight", 4), ("up.weight", 24)}


@pytest.mark.parametrize("budget", ["macs", "parameters"])
def test_budgets_are_met_and_used(budget: str) -> None:
    net, x = made("residual")
    small = prune_channels(net, x, **{budget: 0.5})
    share = getattr(small.pruned.after, budget) / getattr(small.pruned.before, budget)
    assert 0.4 < share <= 0.5
    with pytest.raises(ValueError, match=r"cannot go to 0.001 of what it was, but to 0\.\d"):
        prune_channels(net, x, **{budget: 0.001})


def test_a_latency_is_measured() -> None:
    net, x = made("residual")
    wide = ops.randn(4, 3, 32, 32)
    small = prune_channels(net, wide, latency=0.9)
    assert small.pruned.speed is not None and small.pruned.speed > 0 and x.shape


def test_sizes_that_are_wanted() -> None:
    net, x = made("residual")
    small = prune_channels(net, x, ratio=0.6, round_to=4, exclude=["blocks.0", "stem"])
    assert all(kept % 4 == 0 for _, _, kept in small.pruned.groups)
    assert small.stem.weight.shape[0] == 8 and small.blocks[0].first.weight.shape == (8, 8, 3, 3)
    assert small.blocks[2].first.weight.shape[0] < 16
    few = prune_channels(net, x, ratio=0.9, at_most=0.25)
    assert all(kept >= 0.75 * of for _, of, kept in few.pruned.groups)


def test_the_least_important_ones_go() -> None:
    net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
    rows = np.array([[5, 5, 5], [0.1, 0, 0], [4, 4, 4], [0, 0.2, 0]], np.float32)
    net[0].weight.set_data(ms.Tensor(rows))
    net[2].weight.set_data(ops.ones((2, 4)))
    x = ops.ones((1, 3))
    assert prune_channels(net, x, ratio=0.5).pruned.removed["0.weight"] == {0: [1, 3]}
    given = {"2.weight": np.array([[0, 1, 0, 1]] * 2)}
    assert prune_channels(net, x, ratio=0.5, importance=given).pruned.removed["0.bias"] == {0: [0, 2]}
    slopes = taylor_importance(net, lambda x: net(x).sum(), [x, x])
    np.testing.assert_allclose(
        slopes["0.weight"], np.abs(rows) * 2 * 2 * (rows.sum(1) + net[0].bias.asnumpy() > 0)[:, None]
    )


def test_a_group_lasso_empties_groups() -> None:
    ms.set_seed(0)
    net = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1))
    x = ops.randn(64, 4)
    y = x[:, :1] * 0.5
    lasso = GroupLasso(net, x[:1], strength=0.02)
    w, v = net[0].weight.asnumpy(), net[2].weight.asnumpy()
    wanted = 0.02 * np.sqrt(5 * ((w**2).sum(1) + (v**2).sum(0))).sum()
    np.testing.assert_allclose(float(lasso()), wanted, rtol=1e-5)
    step = ms.value_and_grad(lambda: ((net(x) - y) ** 2).mean() + lasso(), None, net.trainable_params())
    optimizer = nn.Adam(net.trainable_params(), 0.02)
    for _ in range(150):
        optimizer(step()[1])
    norms = np.sqrt((net[0].weight.asnumpy() ** 2).sum(1) + (net[2].weight.asnumpy() ** 2).sum(0))
    assert (norms < 0.1).sum() >= 4 and norms.max() > 0.2


def test_pruned_networks_train_and_are_kept(tmp_path: Any) -> None:
    net, x = made("residual")
    small = prune_channels(net, x, macs=0.5)
    data = (
        ms.dataset.NumpySlicesDataset(
            {"x": np.random.default_rng(1).normal(size=(16, 3, 8, 8)).astype(np.float32), "y": np.arange(16) % 5},
            shuffle=False,
        )
        .map(lambda y: y.astype(np.int32), "y")
        .batch(8)
    )
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    ms.Model(small, loss, nn.Momentum(small.trainable_params(), 0.01, 0.9)).train(2, data)
    small.set_train(False)
    save_pruned(small, tmp_path / "small.ckpt")
    again = load_pruned(Residual(), tmp_path / "small.ckpt").set_train(False)
    np.testing.assert_array_equal(again(x).asnumpy(), small(x).asnumpy())
    assert again.pruned.after.macs == small.pruned.after.macs
    other = NETWORKS["dense"][0]()
    weights = {p.name: p.shape for p in other.get_parameters()}
    with pytest.raises(ValueError, match="build the network that was pruned"):
        load_pruned(other, tmp_path / "small.ckpt")
    assert {p.name: p.shape for p in other.get_parameters()} == weights
    ms.save_checkpoint(net, str(tmp_path / "whole.ckpt"))
    with pytest.raises(ValueError, match="does not say what was removed"):
        load_pruned(Residual(), tmp_path / "whole.ckpt")
    with pytest.raises(ValueError, match="a Cell that prune_channels gave"):
        save_pruned(net, tmp_path / "no.ckpt")


def test_graphs_are_exported_and_train(tmp_path: Any) -> None:
    net, x = made("layer of transformers")
    small = prune_channels(net, x, ratio=0.5, form="graph")
    ms.export(small, x, file_name=str(tmp_path / "small"), file_format="MINDIR")
    np.testing.assert_allclose(ms.load(str(tmp_path / "small.mindir"))(x).asnumpy(), small(x).asnumpy(), atol=2e-6)
    step = ms.value_and_grad(lambda: (small(x) ** 2).mean(), None, small.trainable_params())
    optimizer = nn.Adam(small.trainable_params(), 0.01)
    losses = []
    for _ in range(5):
        value, slopes = step()
        optimizer(slopes)
        losses.append(float(value))
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "give one of ratio, macs"),
        ({"ratio": 0.5, "macs": 0.5}, "give one of ratio, macs"),
        ({"ratio": 1.5}, "ratio must be a share between 0 and 1"),
        ({"ratio": float("nan")}, "ratio must be a share"),
        ({"ratio": 0.5, "exclude": ["nothing"]}, "no layer or parameter has that name"),
        ({"ratio": 0.5, "importance": "l3"}, "importance must be"),
        ({"ratio": 0.5, "importance": {"conv.weight": np.zeros(3)}}, "must be finite, of shape"),
        ({"ratio": 0.5, "importance": {"other": np.zeros(3)}}, "no parameter that the network reads"),
        ({"ratio": 0.5, "scope": "all"}, "scope must be"),
        ({"ratio": 0.5, "at_most": 0}, "at_most must be"),
        ({"ratio": 0.5, "round_to": 0}, "round_to must be"),
    ],
)
def test_arguments_that_mean_nothing(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        prune_channels(Hard(), ops.ones((1, 3, 8, 8)), **given)


def test_a_network_without_channels_of_its_own() -> None:
    with pytest.raises(ValueError, match="nothing of Dense can be removed: .*result of the network"):
        prune_channels(nn.Dense(3, 4), ops.ones((1, 3)), ratio=0.5)
