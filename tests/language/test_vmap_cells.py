"""Cells, random numbers and other transformations under `vmap`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import VmapError
from tests.language.harness import in_graph_mode
from tests.language.vmap_support import close, tensor

A = np.array([[0.5, -1.5, 2.0], [1.0, 3.0, -2.0], [-0.25, 0.75, 1.25], [2.5, -0.5, -1.0]], np.float32)
C = np.array([0.5, -1.5, 2.0, 0.25], np.float32)
Y = np.array([0.5, 2.0, -1.0], np.float32)


def modes(fn: Any) -> list[Any]:
    """A function as it is, compiled, and in GRAPH_MODE."""
    return [fn, ms.jit(fn), lambda *args: in_graph_mode(fn, list(args))]


# Random numbers.


def draws(v: Any) -> Any:
    if v > 0:
        first = ops.rand(2)
    else:
        first = ops.randn(2)
    n = 0
    while n < ops.abs(v):
        n = n + 1
        first = first + ops.rand(2)
    return first, ops.rand(3)


def test_each_example_draws_its_own_numbers() -> None:
    ms.set_seed(5)
    first, again = ms.vmap(draws)(tensor(C)), ms.vmap(draws)(tensor(C))
    values = np.concatenate([t.asnumpy().ravel() for t in (*first, *again)])
    assert len(np.unique(values)) == values.size
    ms.set_seed(5)
    for expected, found in zip(first, ms.vmap(draws)(tensor(C))):
        np.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())
    for run in modes(ms.vmap(draws)):
        ms.set_seed(5)
        for expected, found in zip(first, run(tensor(C))):
            np.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())


def test_random_numbers_are_spread_as_they_should_be() -> None:
    ms.set_seed(1)
    x = ms.vmap(lambda v: ops.rand(64) + 0 * v)(ops.ones(512)).asnumpy()
    assert abs(x.mean() - 0.5) < 0.01 and abs(x.std() - 12**-0.5) < 0.01
    # Neither examples nor places are related.
    assert np.abs(np.corrcoef(x) - np.eye(512)).max() < 0.7
    assert np.abs(np.corrcoef(x.T) - np.eye(64)).max() < 0.25


def test_nested_draws_are_all_different() -> None:
    ms.set_seed(2)
    fn = ms.vmap(lambda a: ms.vmap(lambda b: ops.rand(2) + 0 * a * b)(tensor(Y)))
    values = fn(tensor(C)).asnumpy()
    assert values.shape == (4, 3, 2) and len(np.unique(values)) == values.size


def test_the_sequence_outside_goes_on() -> None:
    def both(c: Any) -> Any:
        return ops.rand(2), ms.vmap(lambda v: ops.rand(2) + 0 * v)(c), ops.rand(2)

    results = []
    for run in (both, ms.jit(both)):
        ms.set_seed(3)
        results.append(np.concatenate([t.asnumpy().ravel() for t in run(tensor(C))]))
    np.testing.assert_array_equal(results[0], results[1])
    assert len(np.unique(results[0])) == results[0].size


def test_dropout_and_its_gradient() -> None:
    drop = nn.Dropout(p=0.5)
    drop.set_train()
    ms.set_seed(4)
    kept = ms.vmap(drop)(ops.ones((6, 32))).asnumpy()
    assert set(np.unique(kept)) == {0.0, 2.0} and len({tuple(r) for r in kept}) == 6
    ms.set_seed(4)
    close(ms.grad(lambda x: ms.vmap(drop)(x).sum())(ops.ones((6, 32))), kept)


# Cells.


class _Net(nn.Cell):
    def __init__(self, seed: int) -> None:
        super().__init__()
        rng = np.random.default_rng(seed)
        self.hidden = nn.Dense(3, 4, weight_init=tensor(rng.normal(size=(4, 3)).astype(np.float32)))
        self.out = nn.Dense(4, 2, weight_init=tensor(rng.normal(size=(2, 4)).astype(np.float32)))
        self.count = ms.Parameter(tensor(np.zeros(3, np.float32)), name="count", requires_grad=False)

    def construct(self, x: Any) -> Any:
        self.count = self.count + x.sum(0) if x.ndim > 1 else self.count + x
        return self.out(ops.tanh(self.hidden(x)))


class _Plain(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 2)

    def construct(self, x: Any) -> Any:
        return ops.sin(self.dense(x))


def test_a_cell_and_the_gradients_of_its_weights() -> None:
    net = _Plain()
    x = tensor(A)
    close(ms.vmap(net)(x), net(x).asnumpy())
    weights = net.trainable_params()
    expected = [g.asnumpy() for g in ms.grad(lambda x: net(x), None, weights)(x)]
    for run in modes(ms.grad(lambda x: ms.vmap(net)(x), None, weights)):
        for found, wanted in zip(run(x), expected):
            close(found, wanted)


def test_gradients_of_every_example() -> None:
    net = _Plain()
    weights = net.trainable_params()
    one = ms.grad(lambda row, k: (net(row) * k).sum(), None, weights)
    rows = [one(tensor(a), tensor(c)) for a, c in zip(A, C)]
    for run in modes(ms.vmap(one)):
        for i, found in enumerate(run(tensor(A), tensor(C))):
            close(found, np.stack([r[i].asnumpy() for r in rows]))


class _LeNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(3, 4, 3, pad_mode="same", has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc = nn.Dense(4 * 6 * 6, 5)

    def construct(self, x: Any) -> Any:
        x = self.pool(ops.relu(self.conv1(x)))
        x = ops.relu(self.conv2(x))
        return self.fc(x.reshape(x.shape[0], -1))


def test_gradients_of_every_image() -> None:
    ms.set_seed(8)
    net = _LeNet()
    rng = np.random.default_rng(3)
    images = tensor(rng.normal(size=(5, 1, 16, 16)).astype(np.float32))
    labels = tensor(np.array([0, 3, 1, 4, 2], np.int32))
    one = ms.grad(lambda x, y: ops.cross_entropy(net(x[None]), y[None]), None, net.trainable_params())
    found = ms.vmap(one)(images, labels)
    rows = [one(images[i], labels[i]) for i in range(5)]
    for k, g in enumerate(found):
        close(g, np.stack([r[k].asnumpy() for r in rows]), 1e-4)


def test_an_ensemble() -> None:
    nets = nn.CellList([_Net(i) for i in range(4)])
    x = tensor(A)
    rows = np.stack([n(x[i]).asnumpy() for i, n in enumerate(nets)])
    shared = np.stack([n(x).asnumpy() for n in nets])
    for run in modes(ms.vmap(nets)):
        close(run(x), rows)
    close(ms.vmap(nets, None)(x), shared)
    close(ms.vmap(list(nets), (None,), 1)(x), shared.transpose(1, 0, 2))
    with pytest.raises(VmapError, match="3 on axis 1 .* but 4 cells"):
        ms.vmap(nets, 1)(x)


def test_gradients_and_state_of_an_ensemble() -> None:
    nets = [_Net(i) for i in range(4)]
    x = tensor(A)
    weights = [p for n in nets for p in n.trainable_params()]
    for i, p in enumerate(weights):
        p.name = f"weight{i}"
    found = ms.grad(lambda x: ms.vmap(nets)(x).sum(), None, weights)(x)
    expected = [
        g for i, n in enumerate(nets) for g in ms.grad(lambda r, n=n: n(r).sum(), None, n.trainable_params())(x[i])
    ]
    assert [n.count.asnumpy().tolist() for n in nets] == [(2 * a).tolist() for a in A]
    for f, e in zip(found, expected):
        close(f, e.asnumpy())


def test_members_of_an_ensemble_must_be_alike() -> None:
    x = tensor(A[:2])
    with pytest.raises(VmapError, match="one structure"):
        ms.vmap([_Plain(), nn.Dense(3, 2)])(x)
    with pytest.raises(VmapError, match="same names and types"):
        ms.vmap([nn.Dense(3, 2), nn.Dense(3, 4)])(x)
    trained = nn.Dense(3, 2)
    trained.set_train()
    with pytest.raises(VmapError, match="not in training"):
        ms.vmap([trained, nn.Dense(3, 2)])(x)


# Other transformations.


def curve(v: Any) -> Any:
    return ops.sin(v) * v * v


def test_derivatives_of_derivatives() -> None:
    first = 2 * C * np.sin(C) + C * C * np.cos(C)
    second = (2 - C * C) * np.sin(C) + 4 * C * np.cos(C)
    total = lambda f: lambda c: ms.vmap(f)(c).sum()
    for fn, wanted in (
        (ms.vmap(ms.grad(curve)), first),
        (ms.grad(total(curve)), first),
        (ms.vmap(ms.grad(ms.grad(curve))), second),
        (ms.grad(total(ms.grad(curve))), second),
        (ms.vmap(ms.jit(ms.grad(ms.grad(curve)))), second),
        (ms.grad(lambda c: ms.grad(total(curve))(c).sum()), second),
    ):
        for run in modes(fn):
            close(run(tensor(C)), wanted)


def test_jacobians_and_tangents() -> None:
    first = 2 * C * np.sin(C) + C * C * np.cos(C)
    close(ms.jacrev(ms.vmap(curve))(tensor(C)), np.diag(first))
    close(ms.jacfwd(ms.vmap(curve))(tensor(C)), np.diag(first))
    one = lambda r: r * r.sum()
    wanted = np.stack([np.eye(3) * a.sum() + a[:, None] for a in A])
    close(ms.vmap(ms.jacrev(one))(tensor(A)), wanted)
    close(ms.vmap(ms.jacfwd(one))(tensor(A)), wanted)
    value, tangent = ms.vmap(lambda v: ms.jvp(curve, v, ops.ones_like(v)))(tensor(C))
    close(value, np.sin(C) * C * C)
    close(tangent, first)
    close(ms.jvp(ms.vmap(curve), tensor(C), tensor(np.array([1, 2, 3, 4], np.float32)))[1], first * [1, 2, 3, 4])


class _Scaled(nn.Cell):
    def construct(self, x: Any, w: Any) -> Any:
        return x * w

    def bprop(self, x: Any, w: Any, out: Any, dout: Any) -> Any:
        return dout * w * 10, dout * x * 100


def test_a_derivative_of_the_programs_own() -> None:
    cell = _Scaled()
    for run in modes(ms.vmap(ms.grad(lambda x, w: cell(x, w).sum(), (0, 1)), (0, None))):
        by_x, by_w = run(tensor(A), tensor(Y))
        close(by_x, np.broadcast_to(Y * 10, A.shape))
        close(by_w, A * 100)
    for run in modes(ms.grad(lambda x, w: ms.vmap(cell, (0, None))(x, w).sum(), (0, 1))):
        by_x, by_w = run(tensor(A), tensor(Y))
        close(by_x, np.broadcast_to(Y * 10, A.shape))
        close(by_w, A.sum(0) * 100)


def test_a_recursion_that_each_example_ends() -> None:
    def power(n: Any, x: Any) -> Any:
        if n <= 0:
            return x * 0 + 1
        return x * power(n - 1, x)

    n, x = np.array([0, 3, 5, 1], np.int32), np.array([2.0, 3.0, -1.0, 4.0], np.float32)
    slope = np.where(n > 0, n * x ** np.maximum(n - 1, 0), 0)
    for run in modes(ms.vmap(power)):
        close(run(tensor(n), tensor(x)), x**n)
    close(ms.vmap(ms.grad(power, 1))(tensor(n), tensor(x)), slope)
    close(ms.grad(lambda x: ms.vmap(power)(tensor(n), x).sum())(tensor(x)), slope)


def test_what_has_no_finite_derivative_beside_an_example() -> None:
    """The derivative of sqrt and log at 0 and below must not reach other examples, nor what they
    share.
    """

    def one(v: Any, w: Any) -> Any:
        if v > 0:
            return (ops.sqrt(v) * w).sum() + ops.log(v)
        return (w * v).sum()

    c = np.array([0.0, 4.0, -1.0, 1.0], np.float32)
    for run in modes(ms.grad(lambda c, w: ms.vmap(one, (0, None))(c, w).sum(), (0, 1))):
        by_c, by_w = run(tensor(c), tensor(Y))
        close(by_c, [Y.sum(), Y.sum() / 4 + 0.25, Y.sum(), Y.sum() / 2 + 1])
        close(by_w, np.full(3, 0 + 2 - 1 + 1, np.float32))


# The values of another framework (PyTorch 2.13, torch.func).

PER_EXAMPLE = [
    [[-0.21857932, 0.21857935], [0.428131, -0.42813107], [-0.45598066, 0.45598072]],
    [[0.63044685, -0.63044685], [0.82370526, -0.8237053], [-0.79802096, 0.798021]],
    [[-0.0080058, 0.00800579], [0.02076148, -0.02076146], [0.02772833, -0.02772831]],
    [[-0.0177069, 0.01770692], [0.00829368, -0.00829369], [0.01366844, -0.01366845]],
]
HESSIANS = [
    [[0.05854152, 0.00855267, -0.06562293], [0.00855267, 1.4069422, 1.4546746], [-0.06562294, 1.4546747, 3.8724949]],
    [[0.00199819, -0.0039692, 0.00001783], [-0.0039692, 2.2370307, 0.15944707], [0.00001783, 0.15944707, 0.11971495]],
]
JACOBIANS = [
    [[0.9182168, 0.0, 0.0], [-0.07927817, 0.0353686, 0.0], [0.83001924, 0.0353686, -0.20807342]],
    [[1.3817732, 0.0, 0.0], [1.5228933, -0.9899925, 0.0], [0.6135959, -0.9899925, -0.41614684]],
]


def test_values_of_another_framework() -> None:
    w = tensor(np.array([[0.5, -1.0], [0.25, 2.0], [-0.75, 1.5]], np.float32))
    labels = tensor(np.array([0, 1, 1, 0], np.int32))
    loss = lambda w, x, y: ops.cross_entropy(ops.matmul(ops.tanh(x), w)[None], y[None])
    close(ms.vmap(ms.grad(loss), (None, 0, 0))(w, tensor(A), labels), PER_EXAMPLE)
    bowl = lambda r: ops.logsumexp(r * r, 0)
    close(ms.vmap(ms.jacfwd(ms.jacrev(bowl)))(tensor(A[:2])), HESSIANS, 1e-4)
    close(ms.vmap(ms.jacrev(lambda r: ops.cumsum(ops.sin(r), 0) * r[0]))(tensor(A[:2])), JACOBIANS)
