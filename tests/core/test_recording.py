"""What recordings do for speed: derivatives inside of derivatives as calls, views and numbers,
detached values, transposed operands that are read as they lie, sizes that are new each time.
"""

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, mint, ops
from mycel._src.tensors.core.autograd import derivative_graph, recording


def A(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def _net(x, w, v):
    return mint.tanh(ops.matmul(mint.tanh(ops.matmul(x, w)), v))


def test_derivatives_inside_of_derivatives_are_the_same_each_time():
    """Operation by operation at first, and as calls of compiled graphs later."""
    x, w, v = A(5, 3), A(3, 4, seed=1), A(4, 1, seed=2)

    def slope(x, w, v):
        return ms.grad(lambda y: _net(y, w, v).sum())(x)

    def loss(x, w, v):
        return (slope(x, w, v) ** 2).sum() + ms.grad(lambda y: (slope(y, w, v)[:, 0]).sum())(x).sum()

    gradient = ms.value_and_grad(loss, (0, 1, 2))
    calls, before = [], derivative_graph.derived
    recording.derived = lambda *a, **k: calls.append(a[0]) or before(*a, **k)
    try:
        found = [gradient(x, w, v) for _ in range(6)]
    finally:
        recording.derived = before
    assert calls  # some were taken as graphs
    for value, gradients in found[1:]:
        np.testing.assert_allclose(float(value), float(found[0][0]), rtol=1e-5)
        for g, h in zip(gradients, found[0][1]):
            np.testing.assert_allclose(g.asnumpy(), h.asnumpy(), rtol=1e-4, atol=1e-5)
    step = 1e-2
    direction = [A(*t.shape, seed=9) for t in (x, w, v)]
    ahead, behind = ([t + s * d for t, d in zip((x, w, v), direction)] for s in (step, -step))
    slope_along = (float(loss(*ahead)) - float(loss(*behind))) / (2 * step)
    wanted = sum(float((g * d).sum()) for g, d in zip(found[-1][1], direction))
    np.testing.assert_allclose(slope_along, wanted, rtol=2e-2)


def test_two_inner_steps_of_learning_against_finite_differences():
    xs, ys = A(6, 2), A(6, 1, seed=3)

    def inner(w):
        return ((ops.matmul(mint.tanh(ops.matmul(xs, w)), mint.ones((3, 1))) - ys) ** 2).mean()

    def outer(w):
        for _ in range(2):
            w = w - 0.1 * ms.grad(inner)(w)
        return inner(w)

    w = A(2, 3, seed=4)
    for _ in range(5):
        found = ms.grad(outer)(w).asnumpy()
        for i, j in np.ndindex(2, 3):
            e = np.zeros((2, 3), np.float32)
            e[i, j] = 1e-2
            wanted = (float(outer(w + Tensor(e))) - float(outer(w - Tensor(e)))) / 2e-2
            np.testing.assert_allclose(found[i, j], wanted, rtol=2e-2, atol=2e-3)


def test_jvp_inside_of_grad_and_grad_inside_of_jvp():
    x, d = A(4), A(4, seed=1)
    for _ in range(4):
        found = ms.grad(lambda y: ms.jvp(lambda z: z**3, y, d)[1].sum())(x)
        np.testing.assert_allclose(found.asnumpy(), (6 * x * d).asnumpy(), rtol=1e-4, atol=1e-5)
        _, moved = ms.jvp(ms.grad(lambda z: (z**3).sum()), x, d)
        np.testing.assert_allclose(moved.asnumpy(), (6 * x * d).asnumpy(), rtol=1e-4, atol=1e-5)


def test_numbers_on_either_side_and_views_while_recording():
    x = A(6, 4)
    a = x.asnumpy().astype(np.float64)

    def loss(x):
        total = 0
        for k in range(6):
            row = x[k]
            total = total + 2.0 / (3 - row * 2 + 10) + 0.5 * row + x[k, 1:3].sum() - 1 + row.reshape(2, 2).sum()
        return total.sum() + (2.0 ** x[1]).sum() + x.T[2].sum()

    wanted = 4.0 / (13 - 2 * a) ** 2 + 0.5 + 4.0
    wanted[:, 1:3] += 4.0
    wanted[1] += np.log(2) * 2.0 ** a[1]
    wanted[:, 2] += 1
    for _ in range(4):
        np.testing.assert_allclose(ms.grad(loss)(x).asnumpy(), wanted, rtol=1e-4)


def test_views_that_are_written_while_recording():
    def loss(x):
        y = x * 1.0
        row = y[1]
        row[0] = x[0, 1] * 3.0
        y[2] = row * 2.0
        return (y * y).sum()

    x = A(3, 2)
    a = x.asnumpy().astype(np.float64)
    wanted = np.zeros((3, 2))
    wanted[0] = 2 * a[0]
    wanted[0, 1] += 2 * 9 * a[0, 1] + 4 * 2 * 9 * a[0, 1]
    wanted[1, 1] = 2 * a[1, 1] + 4 * 2 * a[1, 1]
    for _ in range(3):
        np.testing.assert_allclose(ms.grad(loss)(x).asnumpy(), wanted, rtol=1e-4)


def test_nothing_is_recorded_before_a_detached_value():
    def loss(x):
        y = x
        for _ in range(20):
            y = y * 0.5 + x
        return (ops.stop_gradient(y) * x).sum() + (ops.stop_gradient(y) * 2).sum()

    x = A(3)
    for _ in range(3):
        np.testing.assert_allclose(ms.grad(loss)(x).asnumpy(), 2 * x.asnumpy(), rtol=1e-4)
    inner = ms.grad(lambda x: (ms.grad(lambda y: (ops.stop_gradient(y * x) * y).sum())(x) * x).sum())
    np.testing.assert_allclose(inner(x).asnumpy(), (x * x).asnumpy(), rtol=1e-4)


def test_hooks_within_a_recording_keep_the_order():
    x, seen = A(3), []

    def loss(x):
        y = x * 2.0
        z = y * y
        y.register_hook(lambda g: seen.append(g.asnumpy().copy()) or g * 10)
        y.register_hook(lambda g: g + 1)
        return z.sum() + (y * 3).sum()

    for _ in range(3):
        found = ms.grad(loss)(x).asnumpy()
        np.testing.assert_allclose(found, 2 * (10 * (8 * x.asnumpy() / 2 + 3) + 1), rtol=1e-4)


@pytest.mark.parametrize("shape", [(300, 70), (70, 300), (2, 90, 110)])
def test_products_read_transposed_matrices_as_they_lie(shape):
    x, r = A(*shape), A(shape[-2], 5, seed=1)
    a, b = x.asnumpy().astype(np.float64), r.asnumpy().astype(np.float64)
    for _ in range(2):  # the way to a view is known from the second time on
        turned = mint.transpose(x, -1, -2)
    assert turned._buf is None
    for _ in range(2):
        np.testing.assert_allclose(mint.matmul(turned, r).asnumpy(), np.swapaxes(a, -1, -2) @ b, rtol=1e-3, atol=1e-3)
        found = (turned @ x).asnumpy()
        np.testing.assert_allclose(found, np.swapaxes(a, -1, -2) @ a, rtol=1e-3, atol=1e-3)
    assert turned._buf is None
    np.testing.assert_allclose((turned * 2).asnumpy(), np.swapaxes(a, -1, -2) * 2, rtol=1e-6)
    assert turned._buf is not None


def test_transposed_matrices_are_views_of_what_is_written():
    x = A(200, 150)
    turned = x.T
    x[3] = 1.0
    np.testing.assert_array_equal(turned.asnumpy(), x.asnumpy().T)
    again = x.T
    again[5] = 2.0
    assert (x.asnumpy()[:, 5] == 2).all()
    np.testing.assert_array_equal(x.T.T.asnumpy(), x.asnumpy())
    np.testing.assert_allclose((x.T @ x.T.T).asnumpy(), x.asnumpy().T @ x.asnumpy(), rtol=1e-3, atol=1e-3)
    # made before a recording, a compiled function and a write by an optimizer
    turned = x.T
    found = ms.grad(lambda w: ops.matmul(turned, w).sum())(A(200, 1))
    np.testing.assert_allclose(found.asnumpy()[:, 0], x.asnumpy().sum(1), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(ms.jit(lambda t: t + 0.0)(x.T).asnumpy(), x.asnumpy().T)
    w = ms.Parameter(A(200, 150))
    turned = w.T
    ms.nn.SGD([w], 1.0)((ops.ones_like(w),))
    np.testing.assert_array_equal(turned.asnumpy(), w.asnumpy().T)
    np.testing.assert_array_equal(Tensor(x.T).asnumpy(), x.asnumpy().T)
    np.testing.assert_array_equal(ms.Parameter(x.T).asnumpy(), x.asnumpy().T)
    np.testing.assert_array_equal(np.asarray(x.T), x.asnumpy().T)
    assert x.T.sum().shape == () and x.T[3].shape == (200,) and x.T.reshape(-1).shape == (30000,)
    np.testing.assert_array_equal(x.T.reshape(-1).asnumpy(), x.asnumpy().T.reshape(-1))
    np.testing.assert_array_equal(x.T.copy().asnumpy(), x.asnumpy().T)


def test_means_over_new_sizes():
    """Counts of elements are operands of programs that sizes share."""
    rng = np.random.default_rng(0)
    gradient = ms.value_and_grad(lambda x: (mint.mean(x * x) + mint.var(x) + x.mean(0).sum()).sum())
    for n in rng.integers(1, 400, 40):
        a = rng.standard_normal((int(n) + 1, 3))
        value, g = gradient(Tensor(a.astype(np.float32)))
        total, rows = a.size, a.shape[0]
        wanted = 2 * a / total + 2 * (a - a.mean()) / (total - 1) + 1 / rows
        np.testing.assert_allclose(g.asnumpy(), wanted, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(float(value), (a * a).mean() + a.var(ddof=1) + a.mean(0).sum(), rtol=1e-3)
