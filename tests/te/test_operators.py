"""Operators in programs: graphs, sizes, types, their own derivatives, and what is refused."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import ops, te
from mycel._src.foundation.errors import Unsupported
from tests.te.definitions import convolution, product, softmax

# mypy: disable-error-code="name-defined,no-untyped-def"
# ruff: noqa: B007, F821


def ones(*shape: int) -> ms.Tensor:
    return ms.ops.ones(shape, ms.float32)


def test_graphs() -> None:
    """In a compiled function, with gradients, and in a Cell in both modes."""
    a, b = ones(2, 3), ones(3, 4)

    @ms.jit
    def total(a: Any, b: Any) -> Any:
        return ops.relu(product(a, b) + 1).sum()

    assert float(total(a, b)) == 32.0
    gradient = ms.jit(ms.grad(lambda a: (product(a, b) ** 2).sum()))
    np.testing.assert_allclose(gradient(a).asnumpy(), np.full((2, 3), 24.0))
    second = ms.grad(lambda a: (ms.grad(lambda a: (product(a, b) ** 2).sum())(a) ** 2).sum())
    np.testing.assert_allclose(second(a).asnumpy(), np.full((2, 3), 2 * 24.0 * 8 * 3))


def test_open_sizes() -> None:
    """One compiled function serves several sizes, and agrees with the sizes' own."""
    function = ms.jit(lambda a: softmax(product(a, ones(3, 4))))
    for n in (1, 2, 5, 9):
        np.testing.assert_allclose(function(ones(n, 3)).asnumpy(), np.full((n, 4), 0.25))


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32, ms.float64, ms.int32])
def test_types(dtype: Any) -> None:
    a, b = ms.Tensor([[1, 2], [3, 4]], dtype), ms.Tensor([[1, 0], [0, 1]], dtype)

    @te.operator
    def multiplied(a, b):
        c = te.zeros(a.shape, a.dtype)
        c[i, j] += a[i, k] * b[k, j]
        return c

    found = multiplied(a, b)
    assert found.dtype == dtype
    assert found.astype(ms.float32).tolist() == [[1, 2], [3, 4]]


def test_own_derivative() -> None:
    """A derivative that the user gives is used, and may use the result."""
    calls = []

    @te.operator
    def sigmoid(x):
        y = te.empty(x.shape)
        y[i] = 1 / (1 + te.exp(-x[i]))
        return y

    @sigmoid.derivative
    def backward(x, y, dy):
        dx = te.empty(x.shape)
        dx[i] = dy[i] * y[i] * (1 - y[i]) * 2
        return dx

    calls.append(backward)
    x = ms.Tensor([0.0, 1.0, -2.0])
    y = sigmoid(x).asnumpy()
    np.testing.assert_allclose(ms.grad(lambda x: sigmoid(x).sum())(x).asnumpy(), 2 * y * (1 - y), rtol=1e-6)


def test_own_derivative_that_does_not_fit() -> None:
    @te.operator
    def twice(x):
        y = te.empty(x.shape)
        y[i] = x[i] * 2
        return y

    @twice.derivative
    def wrong(x, dy):
        return dy

    with pytest.raises(TypeError, match="its derivative takes 2 arguments, and 3 are there"):
        twice(ones(3))


def test_static_arguments() -> None:
    """Numbers are known when an operator is compiled; another one compiles it anew."""
    x, w = ms.Tensor(np.arange(8.0)), ms.Tensor([1.0, 1.0])
    assert convolution(x, w, 1).shape == (7,)
    assert convolution(x, w, 3).tolist() == [1.0, 7.0, 13.0]


def test_hybrid() -> None:
    """MindSpore's kernels are compiled, and have derivatives."""

    @ops.kernel
    def scaled(a, b):
        c = output_tensor(a.shape, a.dtype)
        for i, j in grid(a.shape):
            held = allocate((1,), a.dtype)
            held[0] = a[i, j] * b[i, j]
            c[i, j] = held[0] + float32(1)
        return c

    operation = ops.Custom(scaled, func_type="hybrid")
    a, b = ones(2, 3) * 2, ones(2, 3) * 3
    assert operation(a, b).tolist() == [[7.0] * 3] * 2
    gradients = ms.grad(lambda a, b: operation(a, b).sum(), (0, 1))(a, b)
    assert [g.tolist() for g in gradients] == [[[3.0] * 3] * 2, [[2.0] * 3] * 2]
    np.testing.assert_array_equal(scaled(a.asnumpy(), b.asnumpy()), np.full((2, 3), 7.0))


@te.operator
def beyond(x):
    y = te.empty(x.shape)
    for i in range(x.shape[0]):
        y[i] = x[i + 1]
    return y


@te.operator
def meeting(x):
    y = te.zeros((1,))
    for i in te.parallel(x.shape[0]):
        y[0] += x[i]
    return y


@te.operator
def unwritten(x):
    y = te.empty(x.shape)
    for i in range(x.shape[0]):
        y[i] += x[i]
    return y


@te.operator
def into_input(x):
    x[0] = 1
    return x


@te.operator
def endless(x):
    y = te.zeros(x.shape)
    while True:
        y[0] += 1
    return y


@te.operator
def unknown(x):
    y = te.zeros(x.shape)
    y[i] = missing(x[i])
    return y


@te.operator
def untouched(x):
    return x


@te.operator
def flat(x):
    y = te.zeros(x.shape)
    y[i] = x[i, 0]
    return y


@te.operator
def looked_up(x, places):
    y = te.zeros(places.shape)
    for i in range(places.shape[0]):
        y[i] = x[places[i]]
    return y


@te.operator
def under_condition(x):
    y = te.empty(x.shape)
    for i in range(x.shape[0]):
        if x[i] > 0:
            y[i] = x[i + 5]
        else:
            y[i] = 0
    return y


REFUSED = {
    "beyond": (
        beyond,
        (3,),
        IndexError,
        r"x: index 3 is outside of axis 0, which has size 3\n.*y\[i\] = x\[i \+ 1\]|:\d+",
    ),
    "meeting": (meeting, (3,), ValueError, "iterations of this parallel loop cannot be shown not to meet in y"),
    "unwritten": (unwritten, (3,), ValueError, "y is read before it is written; make it with zeros or full"),
    "into_input": (into_input, (3,), TypeError, "x is an input; write to an array that zeros, full or empty make"),
    "endless": (endless, (3,), Unsupported, "While is no statement of operators"),
    "unknown": (unknown, (3,), NameError, "missing is not defined"),
    "untouched": (untouched, (3,), TypeError, "returns arrays that it made"),
    "flat": (flat, (3,), IndexError, "x has 1 axes and 2 indices"),
    "under_condition": (under_condition, (3,), IndexError, "under_condition: index 5 is out of range"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """Wrong definitions are refused with the operator's name."""
    operator, shape, error, text = REFUSED[name]
    with pytest.raises(error, match=text) as found:
        operator(ones(*shape))
    assert name in str(found.value)


def test_refused_lines() -> None:
    """The line of the definition is named."""
    with pytest.raises(IndexError) as found:
        beyond(ones(3))
    line = beyond.function.__code__.co_firstlineno + 4
    assert str(found.value).endswith(f"in {__file__}:{line}")


@pytest.mark.parametrize("index", [3, -1])
def test_indices_out_of_range(index: int) -> None:
    """Indices that data decide are tested as the program runs."""
    with pytest.raises(IndexError, match=f"looked_up: index {index} is out of range for axis 0 of size 3"):
        looked_up(ones(3), ms.Tensor([0, index]))


def test_sizes_that_do_not_agree() -> None:
    with pytest.raises(ValueError, match="product: k runs along axes of different sizes, 3 and 4"):
        product(ones(2, 3), ones(4, 2))


def test_what_is_no_operator() -> None:
    with pytest.raises(TypeError, match="operator: function must be defined with def"):
        te.operator(lambda x: x)
    with pytest.raises(TypeError, match="product: arguments that are no tensors .* make tensors of arrays"):
        product(np.ones((2, 2)), ones(2, 2))
    with pytest.raises(TypeError, match="product: missing a required argument: 'b'"):
        product(ones(2, 2))


@te.operator
def endless_sum(x):
    y = te.zeros((1,))
    s = 0.0
    for i, j, k in te.grid(x.shape[0], x.shape[0], x.shape[0]):
        s = te.sin(s + x[k])
    y[0] = s
    return y


class Ended(Exception):
    """Raised by a signal."""


def end(*_: Any) -> None:
    raise Ended


def test_signals_are_heard() -> None:
    """Loops in their order ask on the way whether they are to end; this one would take hours."""
    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(Ended):
            endless_sum(ones(20_000)).asnumpy()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_words_outside() -> None:
    with pytest.raises(TypeError, match="te.exp is a word of operators"):
        te.exp(1.0)
