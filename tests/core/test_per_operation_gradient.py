"""Gradients taken operation by operation, against those of whole recordings and compiled code."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.engines import shape_sharing
from mycel._src.tensors.core.autograd import compile_threshold, per_operation_gradient, recording
from mycel._src.tensors.core.tensor import Tensor


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every recording of a test be taken for a new one until it comes again."""
    monkeypatch.setattr(compile_threshold, "usual", compile_threshold.History())


def both(f: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """Return gradients taken operation by operation and those of the whole recording."""
    compiled = len(recording._derived)
    first = ms.grad(f, **kwargs)(*args)
    assert len(recording._derived) == compiled
    second = ms.grad(f, **kwargs)(*args)
    assert len(recording._derived) == compiled + 1
    return first, second


def close(first: Any, second: Any, tolerance: float = 1e-5) -> None:
    for a, b in zip(
        first if isinstance(first, tuple) else (first,), second if isinstance(second, tuple) else (second,)
    ):
        assert a.dtype is b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=tolerance, atol=tolerance)


def values(r: np.random.RandomState, *shape: int) -> Tensor:
    return Tensor(r.uniform(-1, 1, shape).astype(np.float32))


def random_function(seed: int) -> Any:
    """Return a function of a matrix x, a matrix w and a row b, of random operations."""

    def f(x: Any, w: Any, b: Any) -> Any:
        r = random.Random(seed)
        known = [x, ops.matmul(x, w)]
        for _ in range(12):
            a, c = r.choice(known), r.choice(known)
            kind = r.randrange(10)
            if kind == 0:
                made = a + c
            elif kind == 1:
                made = a * c - b
            elif kind == 2:
                made = ops.tanh(ops.matmul(a, w) + b)
            elif kind == 3:
                made = ops.softmax(a, -1)
            elif kind == 4:
                made = ops.cat((a[:, :2], c[:, 2:]), 1)
            elif kind == 5:
                made = ops.where(a > c, a, c * 2)
            elif kind == 6:
                made = a.reshape(-1)[: a.size].reshape(a.shape)
            elif kind == 7:
                made = ops.relu(a) / (1 + c * c)
            elif kind == 8:
                made = (a * a).astype(ms.float64).astype(ms.float32)
            else:
                made = ops.maximum(a, ops.stop_gradient(c))
            known.append(made)
        return sum((k.mean() for k in known[-4:]), Tensor(0.0))

    return f


@pytest.mark.parametrize("seed", range(12))
def test_random_structures(seed: int) -> None:
    r = np.random.RandomState(seed)
    rows, width = int(r.choice([1, 2, 3, 7, 16])), int(r.choice([3, 4, 9]))
    args = values(r, rows, width), values(r, width, width), values(r, width)
    f = random_function(seed)
    first, second = both(f, *args, grad_position=(0, 1, 2))
    close(first, second)
    close(first, ms.jit(ms.grad(f, grad_position=(0, 1, 2)))(*args))


def test_finite_differences_in_float64() -> None:
    r = np.random.RandomState(3)
    x, w = Tensor(r.uniform(-1, 1, (3, 4))), Tensor(r.uniform(-1, 1, (4, 4)))

    def f(x: Any, w: Any) -> Any:
        for _ in range(9):
            x = ops.tanh(ops.matmul(x, w)) + x
        return (x * x).sum()

    found = ms.grad(f, grad_position=(0, 1))(x, w)
    for position, gradient in enumerate(found):
        direction = r.uniform(-1, 1, gradient.shape)
        moved = [[t.asnumpy() for t in (x, w)] for _ in range(2)]
        moved[0][position] = moved[0][position] + 1e-6 * direction
        moved[1][position] = moved[1][position] - 1e-6 * direction
        ends = [float(f(*map(Tensor, m))) for m in moved]
        assert abs((ends[0] - ends[1]) / 2e-6 - (gradient.asnumpy() * direction).sum()) < 1e-5


def test_parameters_that_are_used_often() -> None:
    for times in (1, 3, 4, 5, 21, 90):
        r = np.random.RandomState(times)
        net, table = nn.Dense(5, 5), ms.Parameter(values(r, 11, 5), name="table")
        weights = [*net.trainable_params(), table]
        x = values(r, 2, 5)

        def f(x: Any, times: int = times, net: Any = net, table: Any = table) -> Any:
            for k in range(times):
                x = ops.tanh(net(x) + ops.gather(table, Tensor([k % 11, k // 2 % 11]), 0) + table[k % 11])
            return (x * x).sum()

        first, second = both(f, x, grad_position=None, weights=weights)
        close(first, second, 2e-5)


def test_gradients_share_no_memory() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    sens = Tensor([5.0, 6.0])
    a, b = ms.grad(lambda x, y: x + y, grad_position=(0, 1), sens_param=True)(x, y, sens)
    a.asnumpy()[0] = 9.0
    assert b.tolist() == [5.0, 6.0] and sens.tolist() == [5.0, 6.0]


def test_integers_and_booleans() -> None:
    def f(x: Any, k: Any) -> Any:
        return (x * (x > 0) * k + x.astype(ms.int32) * 2).sum()

    x, k = Tensor([-1.5, 0.5, 2.5]), Tensor([1, 2, 3])
    first, second = both(f, x, k, grad_position=(0, 1))
    assert [t.dtype for t in first] == [t.dtype for t in second]
    close(first, second)


def test_sums_of_cotangents_of_integers_keep_their_type() -> None:
    def f(k: Any) -> Any:
        a, b = k / 2, k * 3
        return (a * 1.7 + b.astype(ms.float32) * 0.4 + ops.sqrt(k.astype(ms.float32))).sum()

    first, second = both(f, Tensor([4, 9, 25]))
    assert first.dtype is second.dtype and first.tolist() == second.tolist()


def test_weights_of_operations_that_are_not_split() -> None:
    r = np.random.RandomState(4)
    gamma, beta, w = (ms.Parameter(values(r, *s), name=n) for n, s in (("g", (6,)), ("b", (6,)), ("w", (6, 6))))

    def f(x: Any) -> Any:
        for _ in range(7):
            x = ops.layer_norm(ops.matmul(x, w) * w[0] + x, (6,), gamma, beta)
        return (x * x * x).mean()

    first, second = both(f, values(r, 3, 6), grad_position=None, weights=[gamma, beta, w])
    close(first, second, 2e-5)


def test_second_derivatives() -> None:
    def f(x: Any) -> Any:
        return (ops.sin(x) * x * x).sum()

    x = Tensor([0.3, -1.2, 2.0])
    found = ms.grad(ms.grad(f))(x)
    v = x.asnumpy().astype(np.float64)
    np.testing.assert_allclose(found.asnumpy(), -np.sin(v) * v * v + 4 * v * np.cos(v) + 2 * np.sin(v), rtol=1e-5)


def test_operations_without_gradients_give_none() -> None:
    def f(x: Any, y: Any) -> Any:
        return (ops.stop_gradient(x) * y + ops.floor(x)).sum()

    first, second = both(f, Tensor([1.5, 2.5]), Tensor([2.0, 3.0]), grad_position=(0, 1))
    assert first[0].tolist() == second[0].tolist() == [0.0, 0.0] and first[1].tolist() == [1.5, 2.5]


def test_a_structure_is_compiled_when_it_comes_again() -> None:
    f = ms.grad(lambda a, n: sum((ops.exp(a) * k for k in range(n)), a * 1.0).sum())
    before = len(recording._derived)
    for n in range(2, 20):
        f(Tensor([1.0, 2.0]), n)
    assert len(recording._derived) == before
    for _ in range(compile_threshold.OFTEN):
        f(Tensor([1.0, 2.0]), 5)
    assert len(recording._derived) == before + 1


# Programs that graphs of many sizes share.


def test_new_sizes_share_programs() -> None:
    shape_sharing._structures.forget()
    r = np.random.RandomState(0)
    w = values(r, 6, 6)

    def f(x: Any) -> Any:
        y = ops.softmax(ops.matmul(x, w) + x[:, :1], -1)
        return (y[1:] * ops.cat((x, x), 0)[1 : x.shape[0]]).sum() + ops.flip(x, (0,)).mean()

    for n in (9, 14, 11, 10, 13, 8, 15, 12, 2, 1, 33, 40, 35):
        x = values(r, n, 6)
        close(ms.grad(f)(x), ms.jit(ms.grad(f))(x))
    made = [graph for _, s in shape_sharing._structures.items() for _, _, graph in s.made]
    assert len(made) >= 5


def test_indices_of_loops_share_programs() -> None:
    shape_sharing._structures.forget()
    for length in (5, 9, 12, 7):
        x = Tensor(np.arange(2.0 * length * 3).reshape(2, length, 3).astype(np.float32))
        for t in range(length):
            assert x[:, t].tolist() == x.asnumpy()[:, t].tolist()
            found = ms.grad(lambda x, t=t: (x[:, t] * x[:, -1]).sum())(x).asnumpy()
            wanted = np.zeros(x.shape)
            wanted[:, t] += x.asnumpy()[:, -1]
            wanted[:, -1] += x.asnumpy()[:, t]
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_pieces_forget_with_settings() -> None:
    f = ms.grad(lambda x: (x * 3.0).sum())
    f(Tensor([1.0]))
    assert len(per_operation_gradient._pieces)
    ms.set_context(wide_intermediates=True)
    try:
        assert not len(per_operation_gradient._pieces)
        assert f(Tensor([1.0])).tolist() == [3.0]
    finally:
        ms.set_context(wide_intermediates=False)
