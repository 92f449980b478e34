"""Once-for-all networks: a sub-network is the plain network made of it; how they are trained."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.search import ElasticNetwork, Stage, operators_of, recalibrate, sort_channels, train_elastic
from mycel.search.once_for_all import _Kernels


def image_network() -> ElasticNetwork:
    ms.set_seed(1)
    stages = [Stage(8, 2), Stage(12, 2, 2)]
    return _moved(ElasticNetwork((2, 10, 8), 3, stages, stem=8, kernels=(3, 5, 7), resolutions=(5, 10)))


def signal_network() -> ElasticNetwork:
    ms.set_seed(1)
    stages = [Stage(8, 3, 2), Stage(8, 1)]
    return _moved(ElasticNetwork((3, 1, 20), 4, stages, stem=4, stem_stride=2, kernels=(1, 5), widths=(0.5, 1)))


def _moved(net: ElasticNetwork) -> ElasticNetwork:
    """Return a network whose matrices of kernels and normalisations have moved."""
    random = np.random.default_rng(0)
    for parameter in net.trainable_params():
        values = parameter.asnumpy()
        parameter.set_data(ms.Tensor(values + 0.2 * random.normal(size=values.shape).astype("f4")))
    return net


@pytest.mark.parametrize("make", [image_network, signal_network])
def test_a_sub_network_is_the_plain_network_of_its_weights(make: Any) -> None:
    net, random = make(), np.random.default_rng(5)
    x = random.normal(size=(6, *net.shape)).astype("f4")
    points = [net.space.extreme(0), net.space.extreme(-1), *[net.space.draw(random) for _ in range(6)]]
    for point in points:
        net.choose(point)
        small = net.resized(x)
        recalibrate(net, [small[:3], small[3:]])
        plain = net.extract()
        assert plain.architecture == net.architecture(point) and small.shape[1:] == plain.architecture.shape
        wanted = net(ms.Tensor(small)).asnumpy()
        np.testing.assert_allclose(plain(ms.Tensor(small)).asnumpy(), wanted, rtol=1e-5, atol=1e-5)
        assert len(plain.blocks) == sum(int(point[f"stage{s}.depth"]) for s in range(len(net.stages)))
    sizes = [sum(o.macs for o in operators_of(net.architecture(p).cell(), net.architecture(p).shape)) for p in points]
    assert sizes[0] == min(sizes) and sizes[1] == max(sizes)


def test_what_is_not_active_changes_nothing() -> None:
    net, x = image_network(), ms.Tensor(np.random.default_rng(1).normal(size=(4, 2, 5, 4)).astype("f4"))
    net.choose(net.space.extreme(0))
    recalibrate(net, [x])
    before = net(x).asnumpy()
    active = net.architecture(net.point).blocks[0]
    for cell in net.blocks:
        values = cell.project.weight.asnumpy().copy()
        values[:, active.middle :], values[active.out :] = 7, 7
        cell.project.weight.set_data(ms.Tensor(values) if cell is net.blocks[0] else cell.project.weight)
    for cell in (net.blocks[1], net.blocks[3]):
        cell.project.weight.set_data(cell.project.weight + 3)
    assert (net(x).asnumpy() == before).all()


def test_smaller_kernels_begin_as_the_middle_of_larger_ones() -> None:
    ms.set_seed(0)
    cell = _Kernels(4, (3, 5), 1, False)
    large = cell.chosen(1)
    np.testing.assert_allclose(cell.chosen(0), large[:, :, 1:4, 1:4], rtol=1e-6)


def test_sorted_channels_compute_the_same() -> None:
    net = image_network()
    x = ms.Tensor(np.random.default_rng(1).normal(size=(4, 2, 10, 8)).astype("f4"))
    recalibrate(net, [x])
    before = net(x).asnumpy()
    sort_channels(net)
    np.testing.assert_allclose(net(x).asnumpy(), before, rtol=1e-4, atol=1e-5)
    weight = np.abs(net.blocks[0].project.weight.asnumpy()).sum((0, 2, 3))
    assert (np.diff(weight) <= 0).all()


def test_statistics_are_those_of_one_large_batch() -> None:
    net = nn.SequentialCell(nn.BatchNorm2d(3))
    x = np.random.default_rng(2).normal(2, 3, (12, 3, 4, 4)).astype("f4")
    recalibrate(net, [x[:4], x[4:8], x[8:]])
    np.testing.assert_allclose(net[0].moving_mean.asnumpy(), x.mean((0, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(net[0].moving_variance.asnumpy(), x.var((0, 2, 3)), rtol=0.03)
    assert not net.training and net[0].momentum == nn.BatchNorm2d(3).momentum
    with pytest.raises(ValueError, match="at least one batch"):
        recalibrate(net, [])


def rows(count: int) -> tuple[Any, Any]:
    """Return images of which one half is bright, and which half it is."""
    random = np.random.default_rng(0)
    labels = (np.arange(count) % 4).astype(np.int32)
    x = random.normal(0, 0.6, (count, 1, 8, 8)).astype("f4")
    for k, label in enumerate(labels):
        side = x[k, 0] if label % 2 else x[k, 0].T
        side[:4] += 1 if label > 1 else -1
    return x, labels


def test_all_sub_networks_learn_and_equal_seeds_are_equal() -> None:
    x, y = rows(256)
    weights = []
    for _ in range(2):
        ms.set_seed(4)
        net = ElasticNetwork((1, 8, 8), 4, [Stage(8, 2, 2)], stem=8, kernels=(3, 5), expands=(1, 2))
        losses = train_elastic(net, x, y, epochs=10, seed=1, rate=1e-2)
        weights.append(net.head.weight.asnumpy())
    assert (weights[0] == weights[1]).all() and np.mean(losses[-4:]) < 0.3 * losses[0]
    held_x, held_y = rows(400)
    random = np.random.default_rng(9)
    for point in (net.space.extreme(-1), net.space.extreme(0), *[net.space.draw(random) for _ in range(3)]):
        net.choose(point)
        recalibrate(net, [x])
        assert (net(ms.Tensor(held_x)).asnumpy().argmax(1) == held_y).mean() > 0.8, point


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kernels": (4,)}, "odd sizes"),
        ({"kernels": (5, 3)}, "odd sizes"),
        ({"expands": ()}, "whole numbers that ascend"),
        ({"widths": (0.5,)}, "ascend to 1"),
        ({"resolutions": (4, 16)}, "at most 8"),
        ({"stages": []}, "stages at least one"),
        ({"shape": (1, 8)}, "channels, height, width"),
        ({"classes": 0}, "classes must be"),
    ],
)
def test_networks_that_are_none(options: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ElasticNetwork(**{"shape": (1, 8, 8), "classes": 2, "stages": [Stage(8, 1)], **options})


def test_rows_that_do_not_belong_together_are_refused() -> None:
    x, y = rows(40)
    net = ElasticNetwork((1, 8, 8), 4, [Stage(4, 1)], stem=4)
    with pytest.raises(ValueError, match="equally many rows"):
        train_elastic(net, x, y[:3])
    with pytest.raises(ValueError, match="at least one batch"):
        train_elastic(net, x, y, batch=64)
    with pytest.raises(ValueError, match="inputs must have the shape"):
        net.resized(x[:, :, :7])
    with pytest.raises(ValueError, match="'stem' must be one of"):
        net.choose({**net.point, "stem": 5})
