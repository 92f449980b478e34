"""The memory of the networks of MLPerf Tiny beside weights, and stripes in libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.engines.aot.library_plan import plan_for
from mycel._src.engines.aot.striping import WORTH
from mycel._src.engines.aot.targets import named
from mycel.deploy import build
from mycel.formats.exporting import model_of
from tests.deploy.loaded import Loaded
from tests.deploy.networks import LeNet, images, padded
from tests.deploy.tiny import NETWORKS, quantised


@pytest.mark.parametrize("name", ["keywords", "image classification", "anomaly"])
def test_networks_of_integers_take_half_of_the_memory(name: str) -> None:
    net, x = quantised(name)
    plan = plan_for(model_of(net, (ms.Tensor(x),)).graph, {}, named("cortex-m4"), WORTH)
    assert plan.arena_bytes <= NETWORKS[name].ram_bytes // 2


def test_stripes_give_the_same_integers() -> None:
    net, x = quantised("keywords")
    want = net(ms.Tensor(x)).asnumpy()
    plain, divided = (build(net, ms.Tensor(x), target="x86-64", stripes=s) for s in (None, True))
    assert plain.account.stripes == 0 and divided.account.stripes > 1 and divided.account.copied_bytes > 0
    assert divided.arena_bytes < plain.arena_bytes / 2
    for library in (plain, divided):
        np.testing.assert_array_equal(Loaded(library)(ms.Tensor(x)), want)


class Branches(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 3)
        self.pool = nn.MaxPool2d(2, 2)

    def construct(self, x: Any) -> Any:
        y = ops.relu(self.a(x))
        return self.pool(ops.concat([y, ops.relu(self.b(y) + y)], 1)).sum((2, 3))


@pytest.mark.parametrize(
    "make, shape", [(LeNet, (1, 1, 28, 28)), (lambda: padded(8), (1, 2, 80, 12)), (Branches, (1, 2, 40, 12))]
)
def test_stripes_of_floats(make: Any, shape: tuple[int, ...]) -> None:
    ms.set_seed(3)
    net = make()
    net.set_train(False)
    x = images(*shape)
    plain, divided = (build(net, x, target="x86-64-v3", stripes=s) for s in (False, True))
    assert divided.account.stripes > 1 and divided.arena_bytes < plain.arena_bytes
    np.testing.assert_allclose(Loaded(divided)(x), Loaded(plain)(x), rtol=1e-5, atol=1e-6)


def test_stripes_are_a_flag() -> None:
    with pytest.raises(TypeError, match="build: stripes must be a bool"):
        build(nn.Dense(2, 2), ops.ones((1, 2)), target="x86-64", stripes=2)  # type: ignore[arg-type]
