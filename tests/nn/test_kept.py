"""Subclasses of layers, losses, optimizers and training steps that call the operations which
MindSpore's keep as attributes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops

R = np.random.default_rng(3)


def image(*shape: int) -> Tensor:
    return Tensor(R.normal(size=shape).astype(np.float32))


IMAGE, LINE, VOLUME, ROWS = image(2, 4, 6, 6), image(2, 4, 6), image(2, 4, 5, 5, 5), image(3, 4)
LABELS = Tensor(np.array([0, 3, 1], np.int32))


def biased(self: Any, y: Tensor) -> Tensor:
    return self.bias_add(y, self.bias)


def normalized(self: Any, x: Tensor) -> Tensor:
    return self.layer_norm(x, self.gamma, self.beta)[0]


def embedded(self: Any, ids: Tensor) -> Tensor:
    return self.reshape(
        self.gather(self.embedding_table, self.reshape_flat(ids, self.shp_flat), 0), self.get_shp(ids) + (2,)
    )


def inferred(self: Any, x: Tensor) -> Tensor:
    return self.bn_infer(x, self.gamma, self.beta, self.moving_mean, self.moving_variance)[0]


CASES: dict[str, tuple[Callable[[type], Any], type, Callable[..., Any], tuple[Any, ...]]] = {
    "Conv2d": (
        lambda c: c(4, 8, 3, 2, "same", group=2, has_bias=True),
        nn.Conv2d,
        lambda self, x: biased(self, self.conv2d(x, self.weight)),
        (IMAGE,),
    ),
    "padded Conv2d": (
        lambda c: c(4, 8, 3, pad_mode="pad", padding=(1, 2, 0, 1), dilation=2),
        nn.Conv2d,
        lambda self, x: self.conv2d(x, self.weight),
        (IMAGE,),
    ),
    "Conv1d": (
        lambda c: c(4, 8, 3, has_bias=True),
        nn.Conv1d,
        lambda self, x: self.squeeze(biased(self, self.conv2d(self.expand_dims(x, 2), self.weight))),
        (LINE,),
    ),
    "Conv3d": (
        lambda c: c(4, 8, 3, has_bias=True),
        nn.Conv3d,
        lambda self, x: biased(self, self.conv3d(x, self.weight)),
        (VOLUME,),
    ),
    "Conv2dTranspose": (
        lambda c: c(4, 8, 3, 2, has_bias=True),
        nn.Conv2dTranspose,
        lambda self, x: biased(self, self.conv2d_transpose(x, self.weight, (2, 8, 12, 12))),
        (IMAGE,),
    ),
    "Dense": (
        lambda c: c(4, 5),
        nn.Dense,
        lambda self, x: self.bias_add(self.matmul(x, self.weight), self.bias),
        (ROWS,),
    ),
    "LayerNorm": (lambda c: c((4,), epsilon=1e-3), nn.LayerNorm, normalized, (ROWS,)),
    "BatchNorm2d": (lambda c: c(4, eps=1e-3).set_train(False), nn.BatchNorm2d, inferred, (IMAGE,)),
    "Embedding": (lambda c: c(4, 2), nn.Embedding, embedded, (LABELS,)),
    "MaxPool2d": (lambda c: c(2, 2), nn.MaxPool2d, lambda self, x: self.max_pool(x), (IMAGE,)),
    "AvgPool2d": (lambda c: c(2, 2), nn.AvgPool2d, lambda self, x: self.avg_pool(x), (IMAGE,)),
    "ReLU": (lambda c: c(), nn.ReLU, lambda self, x: self.relu(x), (ROWS,)),
    "Sigmoid": (lambda c: c(), nn.Sigmoid, lambda self, x: self.sigmoid(x), (ROWS,)),
    "Tanh": (lambda c: c(), nn.Tanh, lambda self, x: self.tanh(x), (ROWS,)),
    "PReLU": (lambda c: c(4), nn.PReLU, lambda self, x: self.prelu(x, self.w), (ROWS,)),
    "Softmax": (lambda c: c(0), nn.Softmax, lambda self, x: self.softmax(x), (ROWS,)),
    "LogSoftmax": (lambda c: c(0), nn.LogSoftmax, lambda self, x: self.log_softmax(x), (ROWS,)),
    "MSELoss": (
        lambda c: c(),
        nn.MSELoss,
        lambda self, x, y: self.reduce_mean((x - y) ** 2) if self.average and self.reduce else x,
        (ROWS, ROWS + 1),
    ),
    "SmoothL1Loss": (
        lambda c: c(0.5, "sum"),
        nn.SmoothL1Loss,
        lambda self, x, y: self.smooth_l1_loss(x, y),
        (ROWS, ROWS + 1),
    ),
    "SoftmaxCrossEntropyWithLogits": (
        lambda c: c(True, "mean"),
        nn.SoftmaxCrossEntropyWithLogits,
        lambda self, x, y: self.reduce_mean(
            self.softmax_cross_entropy(x, self.one_hot(y, 4, self.on_value, self.off_value))[0]
        ),
        (ROWS, LABELS),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_subclass_computes_with_the_operations_of_its_layer(name: str) -> None:
    make, base, construct, inputs = CASES[name]
    layer = make(base)
    mine = copy.deepcopy(make(type("Mine", (base,), {"construct": construct})))
    for own, other in zip(mine.get_parameters(), layer.get_parameters()):
        own.set_data(Tensor(other.asnumpy()))
    expected = layer(*inputs).asnumpy()
    np.testing.assert_allclose(mine(*inputs).asnumpy(), expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(ms.jit(mine)(*inputs).asnumpy(), expected, rtol=2e-5, atol=2e-6)


def test_an_optimizer_of_ones_own() -> None:
    step = ops.MultitypeFuncGraph("step")

    @step.register("Tensor", "Tensor", "Tensor", "Bool")
    def _update(rate: Any, weight: Any, gradient: Any, wanted: Any) -> Any:
        return ops.assign_sub(weight, rate * gradient) if wanted else weight

    class Plain(nn.Optimizer):
        def __init__(self, params: Any, rate: float) -> None:
            super().__init__(rate, params)

        def construct(self, gradients: Any) -> Any:
            rate = self.get_lr()
            self.assignadd(self.global_step, self.global_step_increase_tensor)
            return self.hyper_map(ops.partial(step, rate), self.parameters, gradients, self.optim_filter)

    net = nn.Dense(2, 2)
    before = [p.asnumpy().copy() for p in net.get_parameters()]
    optimizer = Plain(net.trainable_params(), 0.5)
    optimizer((ops.ones((2, 2)), ops.ones((2,))))
    for p, old in zip(net.get_parameters(), before):
        np.testing.assert_allclose(p.asnumpy(), old - 0.5, rtol=1e-6)


def test_a_training_step_of_ones_own() -> None:
    class Step(nn.TrainOneStepCell):
        def construct(self, *inputs: Any) -> Any:
            loss = self.network(*inputs)
            sens = ops.fill(loss.dtype, loss.shape, self.sens)
            grads = self.grad(self.network, self.weights)(*inputs, sens)
            return ops.depend(loss, self.optimizer(grads))

    losses = []
    for kind in (Step, nn.TrainOneStepCell):
        ms.set_seed(1)
        net = nn.Dense(4, 1)
        step = kind(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
        losses.append([float(step(ROWS, ROWS[:, :1])) for _ in range(4)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-6)
    assert losses[0][3] < losses[0][0]
