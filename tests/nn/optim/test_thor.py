"""Second-order steps against Kronecker factors in NumPy, for each kind of layer; and that the
inverses are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops

CHECKED = dict.fromkeys(
    ("nn.thor", "nn.Conv2dThor", "nn.DenseThor", "nn.EmbeddingThor", "nn.EmbeddingLookupThor"), "NumPy"
)
LR, DAMPING = (0.1, 0.05, 0.2), (0.3, 0.2, 0.1)


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"], autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[int]:
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


def wave(*shape: int, phase: float = 0.0) -> Any:
    return np.cos(0.7 * np.arange(np.prod(shape)) + phase).reshape(shape)


def tensor(value: Any) -> ms.Tensor:
    return ms.Tensor(np.asarray(value, np.float32))


def damped(moment: Any, damping: float) -> Any:
    return np.linalg.inv(moment + np.sqrt(damping) * np.eye(len(moment)))


def trained(net: nn.Cell, x: ms.Tensor, y: Any, batch: int, steps: int = 3, **options: Any) -> Any:
    """The optimizer after steps on half the squared error, summed over outputs and averaged over
    examples.
    """
    scale = options.get("loss_scale", 1.0)
    optimizer = nn.thor(net, tensor(LR), tensor(DAMPING), 0.9, batch_size=batch, **{"frequency": 2, **options})
    label = tensor(y)

    def loss(out: Any, label: Any) -> Any:
        return ops.sum((out - label) ** 2) * (0.5 / batch)

    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer, scale)
    for _ in range(steps):
        step(x, label)
    return optimizer


@pytest.mark.parametrize("options", [{}, {"loss_scale": 8.0, "weight_decay": 0.1}, {"use_nesterov": True}])
def test_a_dense_layer(options: dict[str, Any]) -> None:
    x, y, w, b = wave(5, 3), wave(5, 2, phase=1.0), wave(2, 3, phase=2.0), np.zeros(2)
    net = nn.DenseThor(3, 2, tensor(w))
    optimizer = trained(net, tensor(x), y, 5, **options)
    assert [p.name for p in optimizer.parameters] == ["weight", "bias"] and optimizer.get_frequency() == 2
    decay, nesterov = options.get("weight_decay", 0.0), options.get("use_nesterov", False)
    v, u = np.zeros((2, 3)), np.zeros(2)
    for step, (lr, damping) in enumerate(zip(LR, DAMPING)):
        error = x @ w.T + b - y
        if step % 2 == 0:
            a_inv, g_inv = damped(x.T @ x / 5, damping), damped(error.T @ error / 5, damping)
        g, h = g_inv @ (error.T @ x / 5) @ a_inv + decay * w, error.sum(0) / 5 + decay * b
        v, u = 0.9 * v + g, 0.9 * u + h
        w, b = w - lr * (g + 0.9 * v if nesterov else v), b - lr * (h + 0.9 * u if nesterov else u)
    np.testing.assert_allclose(net.weight.asnumpy(), w, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(net.bias.asnumpy(), b, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(net.matrix_a.asnumpy(), x.T @ x / 5, rtol=1e-5, atol=1e-6)
    assert optimizer.cov_step.asnumpy().tolist() == [3]


@pytest.mark.parametrize(
    "options",
    [
        {"pad_mode": "valid"},
        {"pad_mode": "same", "stride": 2},
        {"pad_mode": "pad", "padding": (1, 0, 2, 1), "dilation": 2},
    ],
)
def test_a_convolution(options: dict[str, Any]) -> None:
    x, w = wave(3, 2, 6, 5), wave(4, 2, 2, 2, phase=2.0)
    net = nn.Conv2dThor(2, 4, 2, weight_init=tensor(w), **options)
    plain = nn.Conv2d(2, 4, 2, weight_init=tensor(w), **options)
    y = wave(*plain(tensor(x)).shape, phase=1.0)
    trained(net, tensor(x), y, 3, steps=1)
    # The patches are what the convolution is linear in: its answers to unit kernels.
    units = nn.Conv2d(2, 8, 2, weight_init=tensor(np.eye(8).reshape(8, 2, 2, 2)), **options)
    rows = units(tensor(x)).asnumpy().astype(np.float64).transpose(0, 2, 3, 1).reshape(-1, 8)
    error = (rows @ w.reshape(4, 8).T) - y.transpose(0, 2, 3, 1).reshape(-1, 4)
    count = len(rows) // 3
    a, g = rows.T @ rows / len(rows), error.T @ error / len(rows)
    a_inv, g_inv = (damped(m, DAMPING[0] / count) / np.sqrt(count) for m in (a, g))
    wanted = w - LR[0] * (g_inv @ (error.T @ rows / 3) @ a_inv).reshape(w.shape)
    np.testing.assert_allclose(net.weight.asnumpy(), wanted, rtol=2e-4, atol=1e-5)
    assert net.a_normalizer.asnumpy().tolist() == net.g_normalizer.asnumpy().tolist() == [count]


@pytest.mark.parametrize("kind", ["EmbeddingThor", "EmbeddingLookupThor", "one_hot"])
def test_an_embedding(kind: str) -> None:
    ids, table = np.array([[1, 3], [1, 0]]), wave(4, 3)
    net = nn.EmbeddingThor(4, 3, True, tensor(table)) if kind == "one_hot" else getattr(nn, kind)(4, 3)
    net.embedding_table.set_data(tensor(table))
    y = wave(2, 2, 3, phase=1.0)
    trained(net, ms.Tensor(ids.astype(np.int32)), y, 2, steps=1)
    error, hot = (table[ids] - y).reshape(-1, 3), np.eye(4)[ids.ravel()]
    gradient = hot.T @ error / 2
    scaled = gradient / (hot.sum(0) / 2 + np.sqrt(DAMPING[0]))[:, None]
    wanted = table - LR[0] * scaled @ damped(error.T @ error / 4, DAMPING[0])
    np.testing.assert_allclose(net.embedding_table.asnumpy(), wanted, rtol=2e-4, atol=1e-5)


def test_other_parameters() -> None:
    net = nn.SequentialCell(nn.LayerNorm((3,)), nn.Conv1d(2, 2, 1, has_bias=True))
    optimizer = nn.thor(net, ms.Tensor(0.5), ms.Tensor(0.25), 0.0, batch_size=4, enable_clip_grad=True, frequency=3)
    before = {p.name: p.asnumpy().copy() for p in optimizer.parameters}
    gradients = {p.name: wave(*p.shape, phase=k) for k, p in enumerate(optimizer.parameters)}
    optimizer(tuple(tensor(gradients[p.name]) for p in optimizer.parameters))
    for p in optimizer.parameters:
        g = gradients[p.name]
        g = g / (g * g / 4 + 0.5) if p.name.split(".")[-1] in ("gamma", "beta") else g
        g = g / max(np.linalg.norm(g), 1.0)
        np.testing.assert_allclose(p.asnumpy(), before[p.name] - 0.5 * g, rtol=1e-4, atol=1e-6)


def test_layers_give_what_their_plain_forms_give() -> None:
    x = tensor(wave(2, 4, 5, 5))
    grouped = nn.Conv2dThor(4, 4, 3, group=2, has_bias=True)
    plain = nn.Conv2d(4, 4, 3, group=2, has_bias=True)
    for name in ("weight", "bias"):
        getattr(plain, name).set_data(getattr(grouped, name))
    np.testing.assert_array_equal(grouped(x).asnumpy(), plain(x).asnumpy())
    np.testing.assert_array_equal(grouped.matrix_a.asnumpy(), np.eye(18))
    dense = nn.DenseThor(5, 2, "ones", activation="relu")
    np.testing.assert_allclose(dense(x).asnumpy()[..., 0], np.maximum(wave(2, 4, 5, 5).sum(-1), 0), atol=1e-5)
    dense.thor = False
    kept = dense.matrix_a.asnumpy().copy()
    dense(x * 2)
    np.testing.assert_array_equal(dense.matrix_a.asnumpy(), kept)


def test_a_network_learns_faster_than_by_gradients() -> None:
    x, y = wave(16, 4), np.tanh(wave(16, 4) @ wave(4, 2, phase=3.0))
    losses = []
    for second_order in (True, False):
        net = nn.SequentialCell(
            nn.DenseThor(4, 8, tensor(wave(8, 4)), activation="tanh"), nn.DenseThor(8, 2, tensor(wave(2, 8)))
        )
        parameters = net.trainable_params()
        optimizer = (
            nn.thor(net, tensor(0.1), tensor(0.03), 0.9, batch_size=16, frequency=5)
            if second_order
            else nn.Momentum(parameters, 0.1, 0.9)
        )
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
        losses.append([float(step(tensor(x), tensor(y))) for _ in range(30)])
    assert losses[0][0] == pytest.approx(losses[1][0]) and losses[0][-1] < losses[1][-1]


@pytest.mark.parametrize(
    "change, error, text",
    [
        ({"learning_rate": 0.1}, TypeError, "learning_rate must be a Tensor, not float"),
        ({"damping": 0.1}, TypeError, "damping must be a Tensor, not float"),
        ({"damping": ms.Tensor([[0.1]])}, ValueError, "damping must be one number or one for each step"),
        ({"momentum": -1.0}, ValueError, "momentum must be at least 0"),
        ({"frequency": 1}, ValueError, "frequency must be at least 2, not 1"),
        ({"frequency": 2.0}, TypeError, "frequency must be an int"),
        ({"net": 1}, TypeError, "net must be a Cell, not int"),
    ],
)
def test_bad_arguments(change: dict[str, Any], error: type[Exception], text: str) -> None:
    given = {"net": nn.DenseThor(2, 2), "learning_rate": ms.Tensor(0.1), "damping": ms.Tensor(0.1), "momentum": 0.9}
    with pytest.raises(error, match=text):
        nn.thor(**{**given, **change})
