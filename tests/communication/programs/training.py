"""Data parallel training of several processes against one that has all data.

``mycel launch -n 4 training.py`` runs it. Each rank trains on its rows, and trains a second network
alone on the rows of all; losses and parameters must agree.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init

init()
RANK, SIZE = get_rank(), get_group_size()
ROWS, STEPS = 8, 5
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(STEPS, SIZE * ROWS, 6)).astype(np.float32)
Y = DRAW.integers(0, 3, (STEPS, SIZE * ROWS)).astype(np.int32)
MINE = slice(RANK * ROWS, (RANK + 1) * ROWS)


def network(seed):
    draw = np.random.default_rng(seed)
    net = nn.SequentialCell(nn.Dense(6, 16), nn.Tanh(), nn.Dense(16, 3))
    for p in net.get_parameters():
        p.set_data(Tensor(draw.normal(size=p.shape).astype(np.float32) * 0.3))
    return net


class Losses(ms.Callback):
    def __init__(self):
        self.found = []

    def on_train_step_end(self, run_context):
        self.found.append(float(run_context.original_args().net_outputs))


def batches(rows):
    def give():
        for x, y in zip(X, Y):
            yield x[rows], y[rows]

    return ms.dataset.GeneratorDataset(give, ["x", "y"], shuffle=False)


def trained(net, rows):
    optimizer = nn.Adam(net.trainable_params(), 0.05)
    losses = Losses()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    ms.train.Model(net, loss, optimizer).train(2, batches(rows), losses)
    return losses.found, [p.asnumpy() for p in optimizer.get_parameters()]


def mean_of_all(values):
    return ops.AllReduce("avg")(Tensor(np.array(values, np.float32))).asnumpy()


def models():
    one_losses, one = trained(network(0), slice(None))
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, parameter_broadcast=True)
    losses, found = trained(network(RANK), MINE)  # of other values, until they are broadcast
    ms.reset_auto_parallel_context()
    np.testing.assert_allclose(mean_of_all(losses), one_losses, rtol=1e-5)
    for a, b in zip(found, one):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def steps():
    """The functional way: gradients, a reducer, the optimizer, in one graph."""

    def run(net, rows, reduce):
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        gradient = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, optimizer.parameters)
        reducer = nn.DistributedGradReducer(optimizer.parameters, mean=True) if reduce else lambda g: g

        @ms.jit
        def step(x, y):
            loss, grads = gradient(x, y)
            optimizer(reducer(grads))
            return loss

        return [float(step(Tensor(x[rows]), Tensor(y[rows]))) for x, y in zip(X, Y)]

    one = run(network(1), slice(None), False)
    np.testing.assert_allclose(mean_of_all(run(network(1), MINE, True)), one, rtol=1e-5)


def scaled():
    """Gradients that overflow in one process are left out in all."""
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    net = network(2)
    manager = nn.DynamicLossScaleUpdateCell(2.0**10, 2, 1000)
    loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    step = nn.TrainOneStepWithLossScaleCell(loss, nn.SGD(net.trainable_params(), 0.1), manager)
    before = [p.asnumpy() for p in net.get_parameters()]
    x = X[0][MINE].copy()
    x[0, 0] = np.inf if RANK == 2 else 0
    _, overflow, scale = step(Tensor(x), Tensor(Y[0][MINE]))
    assert bool(overflow) and float(scale) == 2.0**10
    for a, b in zip(before, net.get_parameters()):
        np.testing.assert_array_equal(a, b.asnumpy())
    ms.reset_auto_parallel_context()


def statistics():
    """Batch normalisation over the batches of all, and its gradients."""
    whole = Tensor(X[0].reshape(-1, 3, 2, 1))
    part = Tensor(X[0][MINE].reshape(-1, 3, 2, 1))
    scale = DRAW.normal(size=whole.shape).astype(np.float32)
    one, several = nn.BatchNorm2d(3).set_train(), nn.SyncBatchNorm(3).set_train()
    wanted, by_one = ms.value_and_grad(lambda x: (one(x) * Tensor(scale)).sum())(whole)
    mine = Tensor(scale[2 * 0 + RANK * ROWS : (RANK + 1) * ROWS])
    found, by_all = ms.value_and_grad(lambda x: (several(x) * mine).sum())(part)
    np.testing.assert_allclose(ops.AllReduce()(found).asnumpy(), wanted.asnumpy(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(by_all.asnumpy(), by_one.asnumpy()[MINE], rtol=1e-3, atol=1e-5)
    for a, b in zip(several.get_parameters(), one.get_parameters()):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)
    pairs = nn.SyncBatchNorm(3, process_groups=[[0, 1], [2, 3]]).set_train()
    first = RANK // 2 * 2 * ROWS
    both = nn.BatchNorm2d(3).set_train()(Tensor(X[0][first : first + 2 * ROWS].reshape(-1, 3, 2, 1))).asnumpy()
    start = RANK % 2 * ROWS
    np.testing.assert_allclose(pairs(part).asnumpy(), both[start : start + ROWS], rtol=1e-4, atol=1e-5)


CHECKS = (models, steps, scaled, statistics)

if __name__ == "__main__":
    for check in CHECKS:
        check()
    print(f"rank {RANK}: {len(CHECKS)} checks", flush=True)
