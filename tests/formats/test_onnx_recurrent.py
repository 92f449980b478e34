"""Recurrent layers of ONNX files, whole, against one step after another in NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel._src.compiler.ir.printer import to_text
from mycel.formats import onnx as ours
from mycel.formats.exporting import model_of
from tests.formats.test_onnx import FLOAT, helper, model

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
TIME, BATCH, SIZE, HIDDEN = 5, 3, 2, 4


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def step(kind: str, p: Any, r: Any, b: Any, states: Any, after: bool) -> list[Any]:
    """The next states of one example, from the part of the input and both biases."""
    h, n = states[0], HIDDEN
    if kind == "RNN":
        return [np.tanh(p + r @ h + b[:n] + b[n:])]
    if kind == "GRU":
        parts = [slice(i * n, (i + 1) * n) for i in range(3)]
        z, again = [sigmoid(p[s] + r[s] @ h + b[s] + b[3 * n :][s]) for s in parts[:2]]
        s = parts[2]
        inner = again * (r[s] @ h + b[3 * n :][s]) if after else r[s] @ (again * h) + b[3 * n :][s]
        return [(1 - z) * np.tanh(p[s] + inner + b[s]) + z * h]
    i, o, f, c = np.split(p + r @ h + b[: 4 * n] + b[4 * n :], 4)
    cell = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(c)
    return [sigmoid(o) * np.tanh(cell), cell]


def expected(kind: str, x: Any, w: Any, r: Any, b: Any, lengths: Any, states: Any, turned: Any, after: bool) -> Any:
    directions = len(turned)
    whole = np.zeros((len(x), directions, BATCH, HIDDEN))
    last = [s.astype(np.float64).copy() for s in states]
    for d, back in enumerate(turned):
        for n in range(BATCH):
            now = [s[d, n] for s in last]
            times = range(lengths[n])
            for t in reversed(times) if back else times:
                now = step(kind, w[d] @ x[t, n], r[d], b[d], now, after)
                whole[t, d, n] = now[0]
            for s, v in zip(last, now):
                s[d, n] = v
    return [whole, *last]


CASES = list(itertools.product(GATES, ("forward", "reverse", "bidirectional"), (False, True), (0, 1)))


@pytest.mark.parametrize("kind, direction, with_lengths, layout", CASES)
def test_layers_are_those_of_their_steps(kind: str, direction: str, with_lengths: bool, layout: int) -> None:
    turned = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    d, rows = len(turned), GATES[kind] * HIDDEN
    draw = np.random.default_rng(len(direction) + layout)
    w, r, b = [draw.normal(size=s).astype(np.float32) for s in ((d, rows, SIZE), (d, rows, HIDDEN), (d, 2 * rows))]
    count = 2 if kind == "LSTM" else 1
    names = ["x", "w", "r", "b", "lengths" if with_lengths else "", *["h", "c"][:count]]
    outputs = ["y", "yh", "yc"][: count + 1]
    more: dict[str, Any] = {"linear_before_reset": 1} if kind == "GRU" else {}
    node = helper.make_node(kind, names, outputs, hidden_size=HIDDEN, direction=direction, layout=layout, **more)
    states = [draw.normal(size=(d, BATCH, HIDDEN)).astype(np.float32) for _ in range(count)]
    held = [("w", w), ("r", r), ("b", b)]
    held += [("lengths", np.array([2, TIME, 0], np.int32))] * with_lengths
    inputs = [("x", FLOAT, ["n", "m", SIZE]), *[(n, FLOAT, None) for n in ["h", "c"][:count]]]
    net = ours.loads(model([node], inputs, [(n, FLOAT, None) for n in outputs], held, version=22))
    compiled = ms.jit(net.construct, fullgraph=True, dynamic=1)
    for time in (TIME, TIME + 3):
        x = draw.normal(size=(time, BATCH, SIZE)).astype(np.float32)
        lengths = [2, TIME, 0] if with_lengths else [time] * BATCH
        wanted = expected(kind, x.astype(np.float64), w, r, b, lengths, states, turned, True)
        given = [x, *states]
        if layout:
            given = [v.swapaxes(0, 1) for v in given]
            wanted = [wanted[0].transpose(2, 0, 1, 3), *[v.swapaxes(0, 1) for v in wanted[1:]]]
        tensors = [ms.Tensor(np.ascontiguousarray(v)) for v in given]
        for run in (net, compiled):
            for a, v in zip(run(*tensors), wanted):
                np.testing.assert_allclose(a.asnumpy(), v, atol=1e-5)


def test_what_has_no_recurrence_goes_step_by_step() -> None:
    """A reset in front of the product, a limit: as steps, whose number has to be known."""
    draw = np.random.default_rng(0)
    w, r, b = [draw.normal(size=s).astype(np.float32) for s in ((1, 12, SIZE), (1, 12, HIDDEN), (1, 24))]
    node = helper.make_node("GRU", ["x", "w", "r", "b"], ["y", "h"], hidden_size=HIDDEN)
    content = model(
        [node],
        [("x", FLOAT, ["n", BATCH, SIZE])],
        [("y", FLOAT, None), ("h", FLOAT, None)],
        [("w", w), ("r", r), ("b", b)],
    )
    net = ours.loads(content)
    x = draw.normal(size=(TIME, BATCH, SIZE)).astype(np.float32)
    zero = [np.zeros((1, BATCH, HIDDEN))]
    wanted = expected("GRU", x.astype(np.float64), w, r, b, [TIME] * BATCH, zero, [False], False)
    for a, v in zip(net(ms.Tensor(x)), wanted):
        np.testing.assert_allclose(a.asnumpy(), v, atol=1e-5)
    with pytest.raises(ms.errors.CompileError, match="GRU .version 18.*a number of steps that is open"):
        ms.jit(net.construct, fullgraph=True)(ms.Tensor(shape=[None, BATCH, SIZE], dtype=ms.float32))


def test_a_layer_is_one_recurrence() -> None:
    """A long layer is a graph of a few nodes."""
    w, r = np.ones((1, 16, SIZE), np.float32), np.ones((1, 16, HIDDEN), np.float32)
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=HIDDEN)
    content = model([node], [("x", FLOAT, [500, 1, SIZE])], [("y", FLOAT, None)], [("w", w), ("r", r)])
    text = to_text(model_of(ours.loads(content), [ms.Tensor(np.ones((500, 1, SIZE), np.float32))]).graph)
    assert text.count("recurrence(") == 1 and len(text.splitlines()) < 30


def test_contradictions_are_named() -> None:
    w, r = np.ones((1, 16, SIZE), np.float32), np.ones((1, 16, HIDDEN), np.float32)
    x = ms.Tensor(np.ones((2, 1, SIZE), np.float32))
    for direction, what in (
        ("bidirectional", "has 2 directions, and the weights 1"),
        ("up", "direction must be one of"),
    ):
        node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=HIDDEN, direction=direction)
        content = model([node], [("x", FLOAT, [2, 1, SIZE])], [("y", FLOAT, None)], [("w", w), ("r", r)])
        with pytest.raises(ValueError, match=what):
            ours.loads(content)(x)
