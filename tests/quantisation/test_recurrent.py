"""Recurrent layers in 8 bits: products of integers, and gates in floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.printer import graphs_in
from mycel._src.compiler.prims.neural.quantisation import int_matmul
from mycel._src.compiler.prims.neural.recurrence import recurrence
from mycel.deploy import build
from mycel.quantisation import learning, quantise
from tests.deploy.loaded import Loaded

from .digits import IMAGES, accuracy, trained

Array = np.ndarray[Any, Any]


class Recurrent(nn.Cell):
    def __init__(self, kind: Any, size: int = 8, hidden: int = 16, **more: Any) -> None:
        super().__init__()
        self.layer = kind(size, hidden, batch_first=True, **more)
        self.last = nn.Dense(hidden * (2 if more.get("bidirectional") else 1), 10)

    def construct(self, x: Any) -> Any:
        states, _ = self.layer(x)
        return self.last(states[:, -1])


def primitives(graph: Graph) -> set[Any]:
    found = set()
    for node in graph.nodes:
        found.add(node.prim)
        for value in (node.params or {}).values():
            for inner in graphs_in(value):
                found |= primitives(inner)
    return found


def sample(*shape: int) -> Array:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("kind", (nn.LSTM, nn.GRU, nn.RNN))
@pytest.mark.parametrize("more", ({}, {"bidirectional": True}, {"num_layers": 2}, {"has_bias": False}))
def test_layers(kind: Any, more: dict[str, Any]) -> None:
    ms.set_seed(3)
    net = Recurrent(kind, **more).set_train(False)
    # As one straight graph, and as a loop.
    for times in (5, 20):
        x = sample(4, times, 8)
        small = quantise(net, x)
        assert small.report.floats == []
        assert recurrence not in primitives(small.model.graph)
        assert int_matmul in primitives(small.model.graph)
        wanted = net(ms.Tensor(x)).asnumpy()
        np.testing.assert_allclose(small(ms.Tensor(x)).asnumpy(), wanted, atol=0.02 * np.abs(wanted).max())
        assert small.report.bytes < 0.45 * small.report.float_bytes


def test_an_lstm_is_what_its_arithmetic_says() -> None:
    """The same in NumPy: weights and states in levels, sums in integers, gates in float64."""
    ms.set_seed(7)
    layer = nn.LSTM(3, 6, batch_first=True)
    x = sample(2, 11, 3)
    small = quantise(lambda x: layer(x)[0], x, integer_ends=True)
    w_in, w, *biases = (p.asnumpy().astype(np.float64) for p in layer.get_parameters())
    levels, scale = small.quantised_input(x), small.input_scales[0]

    def rounded(weight: Array) -> tuple[Array, Array]:
        size = (np.abs(weight).max(1) / 127).astype(np.float32).astype(np.float64)
        return np.rint(weight / size[:, None]), size

    (q_in, size_in), (q, size) = rounded(w_in), rounded(w)
    p = (levels.astype(np.float64) - scale.zero) @ q_in.T * size_in * float(scale.size)
    h, c = np.zeros((2, 6)), np.zeros((2, 6))
    wanted = []
    for t in range(11):
        gates = p[:, t] + np.clip(np.rint(h * 127), -127, 127) @ q.T * size / 127 + sum(biases)
        i, f, g, o = np.split(gates, 4, 1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        wanted.append(h)
    np.testing.assert_allclose(small(ms.Tensor(levels)).asnumpy(), np.stack(wanted, 1), atol=3e-3)


def test_batches_of_one() -> None:
    net = Recurrent(nn.LSTM).set_train(False)
    x = sample(1, 12, 8)
    small = quantise(net, x)
    np.testing.assert_allclose(small(ms.Tensor(x)).asnumpy(), net(ms.Tensor(x)).asnumpy(), atol=0.02)


def test_what_stays_in_floats() -> None:
    x = sample(4, 9, 8)
    unbounded = Recurrent(nn.RNN, nonlinearity="relu").set_train(False)
    assert any("recurrence" in f for f in quantise(unbounded, x).report.floats)
    layer = nn.GRU(8, 16, batch_first=True)
    states = sample(1, 4, 16)
    given = quantise(lambda x, h: layer(x, h)[0], [(x, states)])
    assert any("recurrence" in f for f in given.report.floats)
    wanted = layer(ms.Tensor(x), ms.Tensor(states))[0].asnumpy()
    np.testing.assert_allclose(given(ms.Tensor(x), ms.Tensor(states)).asnumpy(), wanted, atol=0.1)


def test_networks_that_learn_keep_floats() -> None:
    net = Recurrent(nn.LSTM)
    x = sample(4, 12, 8)
    small = learning(net, x, list(net.last.get_parameters()))
    assert any("recurrence" in f for f in small.report.floats)
    wanted = net(ms.Tensor(x)).asnumpy()
    np.testing.assert_allclose(small(ms.Tensor(x)).asnumpy(), wanted, atol=0.03 * np.abs(wanted).max())


@pytest.mark.parametrize("kind", (nn.LSTM, nn.GRU))
def test_libraries(kind: Any) -> None:
    net = Recurrent(kind, 8, 20).set_train(False)
    x = sample(1, 14, 8)
    small = quantise(net, x)
    wanted = small(ms.Tensor(x)).asnumpy()
    for target in ("x86-64", "x86-64-v3"):
        found = Loaded(build(small, ms.Tensor(x), target=target, name="recurrent"))(x)
        np.testing.assert_allclose(found, wanted, atol=0.02)


class Rows(nn.Cell):
    """An LSTM that reads an image row by row, all of them from the left."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Recurrent(nn.LSTM, IMAGES.shape[-1], 32)

    def construct(self, x: Any) -> Any:
        return self.net(x[:, 0])


def test_rows_of_digits() -> None:
    net = trained(Rows(), epochs=30)
    small = quantise(net, IMAGES[:256], measure=accuracy)
    assert small.report.float_measure is not None and small.report.measure is not None
    assert small.report.float_measure > 0.85
    assert small.report.measure >= small.report.float_measure - 0.01
