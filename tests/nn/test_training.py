"""Training steps: cells around networks, and small networks that learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.common.seed import set_seed
from tests.nn.cases import labels, wave

CHECKED = dict.fromkeys(
    """nn.ForwardValueAndGrad nn.ParameterUpdate nn.TrainOneStepCell nn.WithEvalCell
    nn.WithGradCell nn.WithLossCell""".split(),
    "NumPy",
)
X, Y = wave(6, 3), wave(6, 2, phase=1.0)


def linear() -> nn.Dense:
    weight = ms.Tensor(np.array([[0.1, 0.2, 0.3], [-0.1, 0.4, 0.0]], np.float32))
    return nn.Dense(3, 2, weight_init=weight, bias_init="zeros")


def expected_gradients(w: Any, b: Any) -> tuple[float, Any, Any]:
    """Of the mean squared error."""
    error = X @ w.T + b - Y
    return float((error**2).mean()), 2 * error.T @ X / error.size, 2 * error.sum(axis=0) / error.size


def test_a_training_step_takes_the_gradients_step() -> None:
    net = linear()
    w, b = net.weight.asnumpy().copy(), net.bias.asnumpy().copy()
    loss, dw, db = expected_gradients(w, b)
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5), return_grad=True
    )
    found, gradients = step(ms.Tensor(X), ms.Tensor(Y))
    assert float(found) == pytest.approx(loss, rel=1e-5)
    assert list(gradients) == ["weight", "bias"]
    np.testing.assert_allclose(gradients["weight"].asnumpy(), dw, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(net.weight.asnumpy(), w - 0.5 * dw, rtol=1e-5)
    np.testing.assert_allclose(net.bias.asnumpy(), b - 0.5 * db, rtol=1e-5)


def test_sens_scales_the_gradients_and_the_optimizer_divides() -> None:
    plain, scaled = linear(), linear()
    for net, sens in ((plain, None), (scaled, 128.0)):
        optimizer = nn.Momentum(net.trainable_params(), 0.5, 0.9, weight_decay=0.1, loss_scale=sens or 1.0)
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer, sens)
        for _ in range(2):
            step(ms.Tensor(X), ms.Tensor(Y))
    np.testing.assert_allclose(scaled.weight.asnumpy(), plain.weight.asnumpy(), rtol=1e-5)


def test_sens_keeps_gradients_that_vanish_in_float16() -> None:
    x = ms.Tensor(np.ones((1, 2), np.float32))
    for sens, wanted in ((1.0, 0.0), (2.0**15, 1e-9)):
        net = nn.Dense(2, 1, weight_init="ones", has_bias=False).to_float(ms.float16)
        network = nn.WithLossCell(net, lambda out, label: ops.sum(out * 1e-5) * 1e-4)
        found = nn.WithGradCell(network, None, sens)(x, x)[0].asnumpy()[0, 0] / sens
        assert found == pytest.approx(wanted, rel=2e-2)
        nn.TrainOneStepCell(network, nn.SGD([net.weight], 2.0**16, loss_scale=sens), sens)(x, x)
        np.testing.assert_allclose(1 - net.weight.asnumpy(), np.full((1, 2), wanted * 2.0**16), rtol=2e-2)


def test_only_the_optimizers_parameters_train() -> None:
    net = linear()
    bias = net.bias.asnumpy().copy()
    nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD([net.weight], 0.5))(ms.Tensor(X), ms.Tensor(Y))
    np.testing.assert_array_equal(net.bias.asnumpy(), bias)


def test_value_and_gradients() -> None:
    net = linear()
    w, b = net.weight.asnumpy(), net.bias.asnumpy()
    loss, dw, db = expected_gradients(w, b)
    dx = 2 * (X @ w.T + b - Y) @ w / Y.size
    network, data = nn.WithLossCell(net, nn.MSELoss()), (ms.Tensor(X), ms.Tensor(Y))
    value, gradient = nn.ForwardValueAndGrad(network)(*data)
    assert float(value) == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(gradient.asnumpy(), dx, rtol=1e-4, atol=1e-6)
    _, by_weight = nn.ForwardValueAndGrad(network, net.trainable_params(), get_by_list=True)(*data)
    np.testing.assert_allclose(by_weight[0].asnumpy(), dw, rtol=1e-4, atol=1e-6)
    _, (by_input, by_weight) = nn.ForwardValueAndGrad(network, net.trainable_params(), get_all=True, get_by_list=True)(
        *data
    )
    assert len(by_input) == 2
    np.testing.assert_allclose(by_weight[1].asnumpy(), db, rtol=1e-4, atol=1e-6)
    value, gradient = nn.ForwardValueAndGrad(network, sens_param=True)(*data, ms.Tensor(2.0))
    assert float(value) == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(gradient.asnumpy(), 2 * dx, rtol=1e-4, atol=1e-6)
    by_weight = nn.WithGradCell(net, nn.MSELoss(), 3.0)(*data)
    np.testing.assert_allclose(by_weight[0].asnumpy(), 3 * dw, rtol=1e-4, atol=1e-6)


def test_a_compiled_step_is_the_eager_one_and_sees_a_changed_rate() -> None:
    before = ms.get_context("mode")
    results = []
    try:
        for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
            ms.set_context(mode=mode)
            net = nn.SequentialCell(linear(), nn.BatchNorm1d(2))
            # The bias before the normalisation has a gradient of rounding errors alone.
            optimizer = nn.Adam(net.trainable_params(), 0.05, eps=1e-3, weight_decay=0.01)
            step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
            losses = []
            for i in range(5):
                if i == 3:
                    optimizer.learning_rate.set_data(ms.Tensor(0.5))
                losses.append(float(step(ms.Tensor(X), ms.Tensor(Y))))
            results.append([losses, *(p.asnumpy().ravel().tolist() for p in step.get_parameters())])
    finally:
        ms.set_context(mode=before)
    for eager, compiled in zip(*results):
        np.testing.assert_allclose(compiled, eager, rtol=1e-4, atol=1e-5)


def test_evaluation_and_updates() -> None:
    net = linear()
    loss, out, label = nn.WithEvalCell(net, nn.MSELoss())(ms.Tensor(X), ms.Tensor(Y))
    assert float(loss) == pytest.approx(expected_gradients(net.weight.asnumpy(), net.bias.asnumpy())[0], rel=1e-5)
    np.testing.assert_allclose(out.asnumpy(), X @ net.weight.asnumpy().T, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(label.asnumpy(), Y)
    _, out, _ = nn.WithEvalCell(nn.Identity(), nn.MSELoss(), add_cast_fp32=True)(
        ms.Tensor(X.astype(np.float16)), ms.Tensor(X)
    )
    assert out.dtype is ms.float32
    nn.ParameterUpdate(net.bias)(ms.Tensor([1.0, 2.0]))
    assert net.bias.asnumpy().tolist() == [1, 2]


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match="WithLossCell: backbone must be a Cell, not int"):
        nn.WithLossCell(1, nn.MSELoss())
    with pytest.raises(TypeError, match="optimizer must be a Cell, not int"):
        nn.TrainOneStepCell(nn.ReLU(), 1)
    with pytest.raises(TypeError, match="optimizer must be an Optimizer, not ReLU"):
        nn.TrainOneStepCell(nn.ReLU(), nn.ReLU())
    with pytest.raises(TypeError, match="sens must be a number, not str"):
        net = linear()
        nn.TrainOneStepCell(net, nn.SGD(net.trainable_params()), sens="a")
    with pytest.raises(ValueError, match="get_by_list=True needs weights"):
        nn.ForwardValueAndGrad(nn.ReLU(), get_by_list=True)
    with pytest.raises(TypeError, match="get_all must be a bool"):
        nn.ForwardValueAndGrad(nn.ReLU(), get_all=1)


OPTIMIZERS: dict[str, Any] = {
    "SGD": lambda w: nn.SGD(w, 0.1, momentum=0.9),
    "Momentum": lambda w: nn.Momentum(w, nn.WarmUpLR(0.1, 5), 0.9),
    "Adam": lambda w: nn.Adam(w, 0.02),
    "AdamWeightDecay": lambda w: nn.AdamWeightDecay(w, 0.02),
    "Lamb": lambda w: nn.Lamb(w, 0.02),
    "RMSProp": lambda w: nn.RMSProp(w, 0.01),
    "Adagrad": lambda w: nn.Adagrad(w, learning_rate=0.1),
    "LARS": lambda w: nn.LARS(nn.Momentum(w, 1.0, 0.9), coefficient=0.02),
}


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_a_small_network_learns_a_function(name: str) -> None:
    set_seed(1)
    net = nn.SequentialCell(nn.Dense(3, 16, activation="tanh"), nn.Dense(16, 2))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), OPTIMIZERS[name](net.trainable_params())).set_train()
    losses = [float(step(ms.Tensor(X), ms.Tensor(Y))) for _ in range(150)]
    assert losses[-1] < 0.5 * losses[0]


class LeNet5(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.norm = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.drop = nn.Dropout(p=0.1)
        self.fc = nn.SequentialCell(nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10))

    def construct(self, x: Any) -> Any:
        x = self.pool(self.relu(self.norm(self.conv1(x))))
        x = self.pool(self.relu(self.conv2(x)))
        return self.fc(self.drop(self.flatten(x)))


def test_lenet_learns_a_batch() -> None:
    set_seed(1)
    rng = np.random.default_rng(0)
    images, classes = (
        ms.Tensor(rng.standard_normal((8, 1, 32, 32)).astype(np.float32)),
        ms.Tensor(labels(8, classes=10)),
    )
    net = LeNet5()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.05, 0.9)).set_train()
    losses = [float(step(images, classes)) for _ in range(30)]
    assert losses[0] == pytest.approx(np.log(10), abs=0.4)
    assert losses[-1] < 0.5 * losses[0]
    assert net.norm.moving_mean.asnumpy().any() and step.optimizer.global_step.asnumpy().tolist() == [30]
    net.set_train(False)
    assert float((net(images).asnumpy().argmax(axis=1) == classes.asnumpy()).mean()) > 0.5
    assert net(images).asnumpy().tolist() == net(images).asnumpy().tolist()
