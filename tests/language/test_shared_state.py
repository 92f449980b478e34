"""State from outside of a compiled function: arguments and captured tensors that share elements,
parameters, random numbers, threads.
"""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops

from .harness import in_graph_mode


def tensor(values):
    return ms.Tensor(np.array(values, np.float32))


def breaks(fn):
    return bool(ms.explain(fn).breaks)


# Arguments and captured tensors.


def test_a_written_argument_shows_through_views_outside():
    @ms.jit(fullgraph=True)
    def f(x):
        x[0] = x[1] * 2
        return x + 0

    whole = tensor([[1, 2], [3, 4]])
    row, line = whole[1], whole.reshape(4)
    assert f(row).tolist() == [8, 4]
    assert whole.tolist() == [[1, 2], [8, 4]] and line.tolist() == [1, 2, 8, 4]
    assert f(whole.T).tolist() == [[4, 8], [2, 4]]
    assert row.tolist() == [8, 4] and line.tolist() == [4, 2, 8, 4]


def test_arguments_that_share_what_is_written():
    @ms.jit
    def f(x, v):
        v[0] = 9.0
        x[1] = x[0] * 2
        return x + v[0]

    for _ in range(2):
        x = tensor([1, 2, 3])
        v = x[:2]
        assert f(x, v).tolist() == [18, 27, 12]
        assert x.tolist() == [9, 18, 3] and v.tolist() == [9, 18]
        x, w = tensor([1, 2, 3]), tensor([5, 6])
        assert f(x, w).tolist() == [10, 11, 12]
        assert x.tolist() == [1, 2, 3] and w.tolist() == [9, 6]


def test_arguments_that_share_what_is_only_read_are_compiled():
    @ms.jit
    def f(x, v):
        return x * 2, v + 1

    x = tensor([1, 2, 3])
    assert [t.tolist() for t in f(x, x[1:])] == [[2, 4, 6], [3, 4]]
    assert not breaks(f)


def test_an_argument_that_is_part_of_a_captured_tensor():
    kept = tensor([1, 2, 3])

    @ms.jit
    def f(v):
        v[0] = 7.0
        return kept * 2

    assert f(tensor([1, 2])).tolist() == [2, 4, 6]
    assert f(kept[1:]).tolist() == [2, 14, 6]
    assert kept.tolist() == [1, 7, 3]
    assert f(tensor([1, 2])).tolist() == [2, 14, 6]


def test_a_captured_view_follows_its_base():
    base = tensor([1, 2, 3, 4])
    part = base[1:3]

    @ms.jit(fullgraph=True)
    def read(x):
        return part * x

    @ms.jit(fullgraph=True)
    def write(x):
        part[0] = part[0] + x
        return base * 1

    assert read(tensor(2)).tolist() == [4, 6]
    base[1] = 10.0
    assert read(tensor(2)).tolist() == [20, 6]
    assert write(tensor(1)).tolist() == [1, 11, 3, 4]
    assert base.tolist() == [1, 11, 3, 4] and part.tolist() == [11, 3] and read(tensor(1)).tolist() == [11, 3]
    part[1] = 0.0
    assert write(tensor(1)).tolist() == [1, 12, 0, 4]


def test_the_value_of_a_captured_view_is_guarded():
    base = ms.Tensor([3, 1])
    count = base[0]

    @ms.jit(fullgraph=True)
    def f(x):
        for _ in range(int(count)):
            x = x * 2
        return x

    assert f(tensor(1)).tolist() == 8
    base[0] = 1
    assert f(tensor(1)).tolist() == 2
    base[1] = 5
    assert f(tensor(1)).tolist() == 2


def test_results_share_with_arguments_and_with_each_other():
    @ms.jit(fullgraph=True)
    def f(x, i):
        y = x * 2
        return x[0], x.T, x, y[0], y.reshape(4), x[i]

    x = tensor([[1, 2], [3, 4]])
    row, turned, same, first, line, picked = f(x, ms.Tensor(1))
    assert same is x
    row[0] = 50.0
    assert x.tolist() == [[50, 2], [3, 4]] and turned.tolist() == [[50, 3], [2, 4]]
    picked[1] = 60.0
    assert x.tolist() == [[50, 2], [3, 60]] and turned.tolist() == [[50, 3], [2, 60]]
    first[1] = 70.0
    assert line.tolist() == [2, 70, 6, 8]
    line.zero_()
    assert first.tolist() == [0, 0] and row.tolist() == [50, 2]


def test_a_view_kept_in_an_attribute():
    class Keeper:
        pass

    keeper = Keeper()

    @ms.jit(fullgraph=True)
    def f(x):
        keeper.part = x[1:]
        return x * 2

    x = tensor([1, 2, 3])
    f(x)
    keeper.part[0] = 9.0
    assert x.tolist() == [1, 9, 3]


def test_which_of_two_arguments_a_result_is_in_a_function_with_breaks():
    @ms.jit
    def f(x, y):
        float(x[0])
        return x if x[0] > y[0] else y

    x, y = tensor([1, 2]), tensor([3, 4])
    f(x, y)[0] = 0.0
    assert x.tolist() == [1, 2] and y.tolist() == [0, 4]
    f(x, y)[1] = 7.0
    assert x.tolist() == [1, 7] and y.tolist() == [0, 4]


def test_a_write_into_repeated_elements_is_an_error_compiled_too():
    @ms.jit
    def f(x):
        ops.broadcast_to(x, (2, 3))[0] = 1.0
        return x

    with pytest.raises(ValueError, match="repeats elements"):
        f(tensor([1, 2, 3]))


def choose(x, y):
    return x if x.sum() > y.sum() else y * 2


def choose_nested(x, y):
    if x.sum() > 0:
        if y.sum() > 0:
            return x
        return y[:1]
    return x[1:]


def choose_among_results(x, y):
    z = x * 2
    return (z[1:] if x.sum() > y.sum() else x[:2]), z


def after_a_loop(x, y):
    n = y.sum()
    z = x
    while n < 3:
        z = y
        n = n + 2
    return z


@pytest.mark.parametrize("fn", [choose, choose_nested, choose_among_results, after_a_loop])
def test_results_that_conditions_choose_are_what_they_are_eagerly(fn):
    jitted = ms.jit(fn)
    for x in ([1, 2, 3], [-1, -2, 3.5]):
        for y in ([4, 1, 2], [-4, 0, 1]):
            outcomes = []
            for call in (fn, jitted, jitted):
                given = tensor(x), tensor(y)
                found = call(*given)
                found = found if isinstance(found, tuple) else (found,)
                for i, t in enumerate(found):
                    t[0] = 100.0 + i
                outcomes.append([t.tolist() for t in (*given, *found)])
            assert outcomes[1] == outcomes[0] and outcomes[2] == outcomes[0]


# Parameters.


class Counter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(tensor([1, 2, 3]), name="w")
        self.n = ms.Parameter(tensor(0), name="n")
        self.buffer = tensor([0, 0])

    def construct(self, x):
        ops.assign_add(self.n, tensor(1))
        tail = self.w[1:]
        if x.sum() > 0:
            self.w = self.w + x
            tail[0] = self.n * 10
        else:
            ops.assign(self.w, x)
        k = self.n * 0
        while k < 2:
            ops.assign_add(self.n, self.n)
            self.buffer[0] = self.buffer[0] + self.n
            k = k + 1
        self.w.set_data(self.w * 2)
        return self.w * 1, tail * 1


def test_parameters_assigned_in_branches_and_loops():
    w, n, buffer = np.array([1.0, 2.0, 3.0]), 0.0, np.zeros(2)
    inputs = [np.array(v, np.float64) for v in ([1, 1, 1], [-1, 0, 0], [2, 0, 1], [-3, 1, 1])]
    expected = []
    for x in inputs:
        n += 1
        if x.sum() > 0:
            w[:] = w + x
            w[1] = n * 10
        else:
            w[:] = x
        for _ in range(2):
            n += n
            buffer[0] += n
        w *= 2
        expected.append((w.copy(), w[1:].copy(), n, buffer.copy()))
    plain, compiled, staged = Counter(), Counter(), Counter()
    jitted = ms.jit(compiled)
    for x, (whole, tail, count, held) in zip(inputs, expected):
        for net, call in ((plain, plain), (compiled, jitted), (staged, lambda v: in_graph_mode(staged, [v]))):
            found = call(tensor(x))
            np.testing.assert_allclose(found[0].asnumpy(), whole)
            np.testing.assert_allclose(found[1].asnumpy(), tail)
            np.testing.assert_allclose(net.w.asnumpy(), whole)
            assert float(net.n) == count
            np.testing.assert_allclose(net.buffer.asnumpy(), held)
    assert not breaks(jitted)


def test_gradients_by_parameters_written_on_the_way():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = ms.Parameter(tensor([1, 2, 3]), name="w")

        def construct(self, x):
            h = self.w * x
            v = h[1:]
            if x > 0:
                v[0] = h[0] * h[2]
            else:
                h[2] = v[0] * 3
            return (h * h).sum()

    def expected(w, x):
        if x > 0:
            return [2 * w[0] * x**2 + 2 * w[0] * w[2] ** 2 * x**4, 0, 2 * w[2] * x**2 + 2 * w[2] * w[0] ** 2 * x**4]
        return [2 * w[0] * x**2, 2 * w[1] * x**2 + 18 * w[1] * x**2, 0]

    for wrap in (lambda f: f, ms.jit):
        net = Net()
        slope = wrap(ms.grad(net, None, net.trainable_params()))
        for x in (0.5, -2.0):
            np.testing.assert_allclose(slope(tensor(x))[0].asnumpy(), expected([1.0, 2.0, 3.0], x), rtol=1e-5)


# Random numbers.


def noisy(x, n):
    y = x * 1
    row = y[0]
    row.uniform_()
    if x.sum() > 0:
        y[1] = ops.standard_normal((3,))
        row.normal_()
    k = n * 0
    while k < n:
        y.add_(ops.rand(2, 3))
        if y.sum() > 4:
            row.mul_(ops.rand(1))
        k = k + 1
    return y * 1, ops.rand(2)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("rounds", [0, 3])
def test_random_numbers_in_branches_and_loops_are_those_of_eager_code(sign, rounds):
    x, n = sign * np.ones((2, 3), np.float32), ms.Tensor(rounds)
    jitted = ms.jit(noisy)
    results = []
    for call in (noisy, jitted, jitted):
        ms.set_seed(11)
        results.append([t.asnumpy() for t in (*call(ms.Tensor(x), n), ops.rand(3))])
    for found in results[1:]:
        for a, b in zip(found, results[0]):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    assert not breaks(jitted)
    again = [t.asnumpy() for t in jitted(ms.Tensor(x), n)]
    assert not np.array_equal(again[1], results[0][1])


# Threads.


def in_threads(count, work):
    errors = []
    barrier = threading.Barrier(count)

    def run(i):
        try:
            barrier.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


def test_threads_compile_and_call_the_same_function():
    scale = tensor([1, 2, 3])

    def f(x, n):
        y = x * scale
        v = y[1:]
        k = n * 0
        while k < n:
            v[0] = v[0] + y[0]
            k = k + 1
        if y.sum() > 10:
            v.mul_(2.0)
        return y, v

    def expected(x, n):
        y = x * np.array([1, 2, 3], np.float32)
        y[1] += n * y[0]
        if y.sum() > 10:
            y[1:] *= 2
        return y

    jitted = ms.jit(f)

    def work(i):
        for round_ in range(6):
            x = np.full(3, i + round_, np.float32)
            for fn in (jitted, f):
                y, v = fn(ms.Tensor(x), ms.Tensor(i))
                np.testing.assert_allclose(y.asnumpy(), expected(x, i))
                v[1] = -1.0
                assert y[2].item() == -1.0

    in_threads(4, work)
    assert not breaks(jitted)


def test_threads_differentiate_and_write_at_the_same_time():
    def f(x):
        y = x * x
        y[0] = y[1] * x[2]
        return (y * x).sum()

    def slope(a):
        return np.array([0, 2 * a[0] * a[1] * a[2] + 3 * a[1] ** 2, a[0] * a[1] ** 2 + 3 * a[2] ** 2]) + np.array(
            [a[1] ** 2 * a[2], 0, 0]
        )

    compiled = ms.jit(ms.grad(f))

    def work(i):
        a = np.array([1.0, 2.0, i], np.float32)
        for run in (ms.grad(f), compiled, ms.grad(ms.jit(f))) * 2:
            np.testing.assert_allclose(run(ms.Tensor(a)).asnumpy(), slope(a), rtol=1e-5)

    in_threads(4, work)


def test_threads_make_views_of_one_tensor():
    x = ms.Tensor(np.arange(64, dtype=np.float32).reshape(16, 4))
    kept = [[] for _ in range(4)]

    def work(i):
        for k in range(200):
            v = x[(i * 4 + k) % 16]
            assert v[1].item() == ((i * 4 + k) % 16) * 4 + 1
            if k % 8 == 0:
                kept[i].append(((i * 4 + k) % 16, v))

    in_threads(4, work)
    x.mul_(2.0)
    for views in kept:
        for row, v in views:
            np.testing.assert_array_equal(v.asnumpy(), 2 * (np.arange(4) + 4 * row))


def test_parameters_are_counted_right_by_turns():
    net = Counter()
    jitted = ms.jit(net)
    lock = threading.Lock()

    def work(i):
        for _ in range(3):
            with lock:
                jitted(tensor([1, 1, 1]))

    in_threads(3, work)
    n = 0.0
    for _ in range(9):
        n = (n + 1) * 4
    assert float(net.n) == n
