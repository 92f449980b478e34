"""Networks of integers that go on learning: values, gradients, what is trained, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.prims.neural.quantisation import straight_through
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.foundation.errors import Unsupported
from mycel.quantisation import learning, quantise
from tests.quantisation.digits import HELD_OUT, HELD_OUT_LABELS, IMAGES, LABELS, trained


class Residual(nn.Cell):
    """A block with a normalisation, a sum and an average over all positions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.second, self.depthwise = nn.Conv2d(8, 8, 1, has_bias=True), nn.Conv2d(8, 8, 3, group=8, has_bias=True)
        self.pool, self.last = nn.MaxPool2d(2, 2), nn.Dense(8, 5)

    def construct(self, x: Any) -> Any:
        x = ops.relu6(self.norm(self.first(x)))
        x = self.pool(x + ops.relu(self.depthwise(self.second(x))))
        return self.last(x.mean((2, 3)))


class Mixed(nn.Cell):
    """Dense layers with activations that are tables, a join and a soft-max."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Dense(12, 16), nn.Dense(16, 8), nn.Dense(16, 6)

    def construct(self, x: Any) -> Any:
        x = ops.gelu(self.a(x))
        x = ops.concat((ops.sigmoid(self.b(x)), ops.tanh(self.b(x))), 1)
        return ops.log_softmax(self.c(x), -1)


def _chain() -> nn.Cell:
    return nn.SequentialCell(
        nn.Conv2d(2, 6, 3, has_bias=True),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 8, 3, pad_mode="valid", has_bias=True),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dense(32, 16),
        nn.ReLU(),
        nn.Dense(16, 4),
    )


NETWORKS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "residual": (Residual, (3, 8, 8)),
    "mixed": (Mixed, (12,)),
    "chain": (_chain, (2, 8, 8)),
}


def _made(name: str) -> tuple[Any, Any]:
    ms.set_seed(3)
    make, shape = NETWORKS[name]
    net = make().set_train(False)
    random = np.random.default_rng(4)
    for p in net.get_parameters():
        if p.name.endswith(("bias", "beta", "moving_mean")):
            p.set_data(ms.Tensor(random.normal(0, 0.1, p.shape).astype(np.float32)))
    return net, ms.Tensor(random.normal(0, 1, (32, *shape)).astype(np.float32))


def _gradients(net: Any, x: Any) -> tuple[Any, dict[str, Any]]:
    parameters = net.trainable_params()
    weights = ms.Tensor(np.random.default_rng(5).normal(0, 1, net(x).shape).astype(np.float32))
    value, found = ms.jit(ms.value_and_grad(lambda x: (net(x) * weights).mean(), None, parameters))(x)
    return value, {p.name: g.asnumpy().astype(np.float64) for p, g in zip(parameters, found)}


def _alike(a: Any, b: Any) -> float:
    """The cosine of the angle between two gradients."""
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


@pytest.mark.parametrize("choice", range(4))
@pytest.mark.parametrize("name", NETWORKS)
def test_values_and_gradients_are_those_of_rounded_floats(name: str, choice: int) -> None:
    net, x = _made(name)
    every = net.trainable_params()
    biases = [p for p in every if p.name.endswith(("bias", "beta"))]
    some = [every[k] for k in np.random.default_rng(choice).permutation(len(every))[: len(every) // 2]]
    chosen = [every, biases, every[-2:], some][choice]
    small = learning(net, x, chosen, round_trained=choice != 1)
    assert [p.name for p in small.trainable_params()] == [p.name for p in every if any(p is c for c in chosen)]
    plain = net(x).asnumpy()
    reach = np.abs(plain).max()
    np.testing.assert_allclose(small(x).asnumpy(), small.simulated(x).asnumpy(), atol=0.02 * reach)
    np.testing.assert_allclose(small(x).asnumpy(), plain, atol=0.08 * reach)
    _, mine = _gradients(small, x)
    _, rounded = _gradients(small.simulated, x)
    eager = ms.grad(lambda x: small(x).sum(), None, small.trainable_params())(x)
    compiled = ms.jit(ms.grad(lambda x: small(x).sum(), None, small.trainable_params()))(x)
    for p, one, other in zip(small.trainable_params(), eager, compiled):
        assert _alike(mine[p.name], rounded[p.name]) > 0.98, p.name
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-4, atol=1e-4)


def test_nothing_is_computed_in_floats_forward() -> None:
    net, x = _made("chain")
    small = learning(net, x, [net[6].bias])
    assert small.report.floats == [] and small.report.bits == [8] * 4
    assert small.report.bytes < 0.6 * small.report.float_bytes
    whole = quantise(net, x)
    np.testing.assert_allclose(small(x).asnumpy(), whole(x).asnumpy(), atol=0.05 * float(ops.abs(whole(x)).max()))
    held = learning(net, x, net[6:].trainable_params(), round_trained=False)
    assert len(held.report.floats) == 2 and held.report.bits == [8, 8, 32, 32]


def test_the_derivative_of_a_value_is_that_of_its_stand_in() -> None:
    from mycel._src.compiler.ir.graph import input_node
    from mycel._src.compiler.ir.types import tensor_type
    from mycel._src.foundation.dtype import float32

    x, y, ct = (input_node(tensor_type((2,), float32), n) for n in "xyc")
    node = straight_through(x, y)
    assert vjp([node], [ct], [x, y]) == [None, ct]
    with pytest.raises(TypeError, match="straight_through: the operands must have one shape"):
        straight_through(x, input_node(tensor_type((3,), float32), "z"))


def test_clamps_pass_gradients_inside_only() -> None:
    net = nn.SequentialCell(nn.Dense(1, 4), nn.ReLU6(), nn.Dense(4, 1))
    net[0].weight.set_data(ms.Tensor(np.array([[1.0], [-1.0], [10.0], [0.5]], np.float32)))
    net[2].weight.set_data(ms.Tensor(np.ones((1, 4), np.float32)))
    net[0].bias.set_data(ops.zeros((4,)))
    x = ms.Tensor(np.linspace(-1, 1, 64, dtype=np.float32)[:, None])
    small = learning(net, x, [net[0].bias])
    (found,) = ms.grad(lambda x: small(x).sum(), None, small.trainable_params())(ms.Tensor([[0.8]], ms.float32))
    np.testing.assert_allclose(found.asnumpy(), [1, 0, 0, 1], atol=0.02)


def test_what_is_refused() -> None:
    net, x = _made("chain")
    with pytest.raises(ValueError, match="trained has no parameter"):
        learning(net, x, [])
    with pytest.raises(TypeError, match="must be a list of Parameters"):
        learning(net, x, [ops.ones((2,))])
    with pytest.raises(ValueError, match="is no parameter of SequentialCell"):
        learning(net, x, [nn.Dense(2, 2).weight])
    with pytest.raises(Unsupported, match="nothing of the network is computed with integers"):
        learning(net, x, net.trainable_params(), round_trained=False)
    with pytest.raises(ValueError, match="method must be one of"):
        learning(net, x, [net[6].bias], method="least")
    half = nn.Dense(4, 2).to_float(ms.float16)
    half.weight.set_dtype(ms.float16)
    with pytest.raises(TypeError, match="float32 is trained"):
        learning(half, ops.ones((4, 4)), [half.weight])


def _turned(images: Any, degrees: float) -> Any:
    turn = np.deg2rad(degrees)
    theta = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0]], np.float32)
    grid = ops.affine_grid(ms.Tensor(np.tile(theta, (len(images), 1, 1))), images.shape, align_corners=False)
    return ops.grid_sample(ms.Tensor(images), grid, align_corners=False).asnumpy()


def _trained_on(network: Any, parameters: Any, images: Any) -> None:
    """Train a network for some epochs."""
    update = nn.Momentum(parameters, 0.01, 0.9)
    derive = ms.value_and_grad(lambda x, y: ops.cross_entropy(network(x), y), None, parameters)

    @ms.jit
    def step(x: Any, y: Any) -> Any:
        loss, gradients = derive(x, y)
        update(gradients)
        return loss

    random = np.random.default_rng(0)
    for _ in range(4):
        for rows in random.permutation(len(images))[: len(images) // 16 * 16].reshape(-1, 16):
            step(ms.Tensor(images[rows]), ms.Tensor(LABELS[rows]))


@pytest.mark.parametrize("words", [("bias", "fc3"), ("conv2", "fc2", "fc3")])
def test_rotated_digits_are_learned_as_in_floats(words: tuple[str, ...]) -> None:
    net, turned, held = trained(epochs=4), _turned(IMAGES, 35), _turned(HELD_OUT, 35)

    def score(network: Any) -> float:
        return float((network(ms.Tensor(held)).asnumpy().argmax(1) == HELD_OUT_LABELS).mean())

    chosen = [p for p in net.trainable_params() if any(w in p.name for w in words)]
    small, start = learning(net, IMAGES[:256], chosen), score(net)
    _trained_on(small, small.trainable_params(), turned)
    _trained_on(net, chosen, turned)
    assert score(net) > start + 0.2
    assert score(small) > score(net) - 0.015, (start, score(net), score(small))
