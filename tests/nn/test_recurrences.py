"""Recurrent layers of random sizes and options against their definition in NumPy, and their
gradients against differences along random directions, in both modes.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor
from mycel.ops.sequences.recurrence import recurrence

Array = np.ndarray[Any, Any]
KINDS = ("LSTM", "GRU", "RNN", "relu")


class Case(NamedTuple):
    kind: str
    time: int
    batch: int
    inputs: int
    hidden: int
    layers: int
    bidirectional: bool
    has_bias: bool
    batch_first: bool
    lengths: Array | None
    states: bool
    staged: bool


def draw(seed: int) -> Case:
    rng = random.Random(seed)
    time, batch = rng.choice((1, 2, 3, 9, 20)), rng.choice((1, 2, 5, 6, 7, 13))
    hidden = rng.choice((1, 3, 8, 15, 16, 17, 32, 33, 48, 64, 65, 80))
    kind = KINDS[seed % 4]
    if seed % 20 == 19:
        # Threads share panels of weights.
        kind, time, batch, hidden = KINDS[seed // 20], 3, 3, 512
    lengths = np.array([rng.randint(0, time) for _ in range(batch)]) if rng.random() < 0.4 else None
    options = [rng.random() < 0.5 for _ in range(5)]
    inputs, layers = rng.choice((1, 4, 20)), rng.choice((1, 1, 2))
    return Case(kind, time, batch, inputs, hidden, layers, *options[:3], lengths, *options[3:])


def made(case: Case, dtype: Any) -> Any:
    kind = "RNN" if case.kind == "relu" else case.kind
    named: dict[str, Any] = {"nonlinearity": "relu"} if case.kind == "relu" else {}
    layer = getattr(ms.nn, kind)(
        case.inputs,
        case.hidden,
        case.layers,
        case.has_bias,
        case.batch_first,
        bidirectional=case.bidirectional,
        dtype=dtype,
        **named,
    )
    rng = np.random.default_rng(case.hidden)
    for p in layer.trainable_params():
        p.set_data(Tensor(rng.normal(size=p.shape) / np.sqrt(case.hidden), dtype))
    return layer


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def one_step(kind: str, x: Array, h: Array, c: Array, w: dict[str, Array]) -> tuple[Array, Array]:
    p, q = x @ w["weight_ih"].T + w["bias_ih"], h @ w["weight_hh"].T + w["bias_hh"]
    if kind == "LSTM":
        i, f, g, o = np.split(p + q, 4, 1)
        c = logistic(f) * c + logistic(i) * np.tanh(g)
        return logistic(o) * np.tanh(c), c
    if kind == "GRU":
        (pr, pz, pn), (qr, qz, qn) = np.split(p, 3, 1), np.split(q, 3, 1)
        z = logistic(pz + qz)
        return (1 - z) * np.tanh(pn + logistic(pr + qr) * qn) + z * h, c
    return (np.tanh(p + q) if kind == "RNN" else np.maximum(p + q, 0)), c


def expected(case: Case, layer: Any, x: Array, first: list[Array]) -> list[Array]:
    """Return the outputs and the last states, computed in float64."""
    x = x.swapaxes(0, 1) if case.batch_first else x
    values = {p.name: p.asnumpy().astype(np.float64) for p in layer.trainable_params()}
    ends: list[list[Array]] = [[], []]
    for k in range(case.layers):
        outputs = []
        for way in range(1 + case.bidirectional):
            suffix = f"_l{k}{'_reverse' if way else ''}"
            zero = np.zeros(1)
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            w = {n: values.get(n + suffix, zero) for n in names}
            h, c = (s[len(ends[0])] for s in first)
            out = np.zeros((case.time, case.batch, case.hidden))
            for t in range(case.time)[:: -1 if way else 1]:
                shown = np.ones(case.batch, bool) if case.lengths is None else t < case.lengths
                new = one_step(case.kind, x[t], h, c, w)
                h, c = (np.where(shown[:, None], a, b) for a, b in zip(new, (h, c)))
                out[t] = np.where(shown[:, None], h, 0)
            outputs.append(out)
            ends[0].append(h)
            ends[1].append(c)
        x = np.concatenate(outputs, 2)
    x = x.swapaxes(0, 1) if case.batch_first else x
    return [x, np.stack(ends[0]), *([np.stack(ends[1])] if case.kind == "LSTM" else [])]


def operands(case: Case, rng: np.random.Generator) -> tuple[Array, list[Array]]:
    lead = (case.batch, case.time) if case.batch_first else (case.time, case.batch)
    shape = (case.layers * (1 + case.bidirectional), case.batch, case.hidden)
    states = [rng.normal(size=shape) * case.states for _ in range(2)]
    return rng.normal(size=(*lead, case.inputs)), states


def called(case: Case, layer: Any, x: Tensor, first: list[Tensor]) -> tuple[Tensor, ...]:
    hx: Any = None
    if case.states:
        hx = tuple(first) if case.kind == "LSTM" else first[0]
    out, last = layer(x, hx, None if case.lengths is None else Tensor(case.lengths, ms.int32))
    return (out, *last) if case.kind == "LSTM" else (out, last)


@pytest.mark.parametrize("dtype, most", [(ms.float32, 1e-5), (ms.float64, 1e-13)], ids=["float32", "float64"])
@pytest.mark.parametrize("seed", range(40))
def test_outputs_and_last_states(seed: int, dtype: Any, most: float) -> None:
    case = draw(seed)
    layer, (x, first) = made(case, dtype), operands(case, np.random.default_rng(seed))
    given = [Tensor(v, dtype) for v in (x, *first)]

    def run(x: Tensor, h: Tensor, c: Tensor) -> Any:
        return called(case, layer, x, [h, c])

    found = (ms.jit(run) if case.staged else run)(*given)
    for got, wanted in zip(found, expected(case, layer, x, first)):
        np.testing.assert_allclose(got.asnumpy(), wanted, rtol=most, atol=most)


@pytest.mark.parametrize("seed", range(40, 72))
def test_gradients_along_a_direction(seed: int) -> None:
    case = draw(seed)
    rng = np.random.default_rng(seed)
    layer, (x, first) = made(case, ms.float64), operands(case, rng)
    weights = [rng.normal(size=v.shape) for v in expected(case, layer, x, first)]
    used = [rng.random() < 0.7 for _ in weights]
    used[0] |= not any(used)
    parameters = layer.trainable_params()

    def loss(x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        found = called(case, layer, x, [h, c])
        return sum(
            (ms.ops.reduce_sum(v * Tensor(w)) for v, w, u in zip(found, weights, used) if u), Tensor(0.0, ms.float64)
        )

    gradient = ms.grad(loss, (0, 1, 2), parameters)
    given, of_parameters = (ms.jit(gradient) if case.staged else gradient)(*[Tensor(v) for v in (x, *first)])
    values = [x, *first, *[p.asnumpy() for p in parameters]]
    # States that are not given are zeros, which have no direction.
    directions = [rng.normal(size=v.shape) * (case.states or k not in (1, 2)) for k, v in enumerate(values)]
    slopes = [float((g.asnumpy() * d).sum()) for g, d in zip((*given, *of_parameters), directions)]

    def at(step: float) -> float:
        moved = [v + step * d for v, d in zip(values, directions)]
        for p, v in zip(parameters, moved[3:]):
            p.set_data(Tensor(v))
        found = expected(case, layer, moved[0], moved[1 : 1 + len(first)])
        return sum(float((v * w).sum()) for v, w, u in zip(found, weights, used) if u)

    step = 1e-5
    difference = (8 * (at(step / 2) - at(-step / 2)) - (at(step) - at(-step))) / (6 * step)
    scale = max(1.0, *map(abs, slopes))
    assert abs(sum(slopes) - difference) <= 2e-6 * scale


def test_rows_do_not_depend_on_their_batch() -> None:
    """Threads share rows of large batches, and panels of weights of small ones: same bits."""
    rng = np.random.default_rng(0)
    time, batch, hidden = 3, 50, 512
    p = rng.normal(size=(time, batch, 4 * hidden)).astype(np.float32)
    w = Tensor((rng.normal(size=(4 * hidden, hidden)) / 20).astype(np.float32))
    states = rng.normal(size=(2, batch, hidden)).astype(np.float32)
    parts = []
    for count in (batch, 3):
        given = [Tensor(v[:, :count]) for v in (p, *states[:, None])]
        given[1:] = [v[0] for v in given[1:]]
        outputs = recurrence("lstm", given[0], (given[1], given[2]), w)
        slopes = ms.grad(lambda p, h, c: recurrence("lstm", p, (h, c), w)[0].sum(), (0, 1, 2))(*given)
        parts.append([v[:, :3] if v.ndim == 3 else v[:3] for v in (*outputs, *slopes)])
    for a, b in zip(*parts):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


@pytest.mark.parametrize("time, batch", [(0, 2), (3, 0), (0, 0)])
@pytest.mark.parametrize("mode, gates", [("lstm", 4), ("gru", 3), ("tanh", 1)])
def test_no_time_and_no_batch(mode: str, gates: int, time: int, batch: int) -> None:
    states = tuple(ms.ops.ones((batch, 5)) for _ in range(2 if mode == "lstm" else 1))
    w, p = ms.ops.ones((gates * 5, 5)), ms.ops.ones((time, batch, gates * 5))
    outputs, *last = recurrence(mode, p, states, w)
    assert outputs.shape == (time, batch, 5)
    for got in last if time == 0 else ():
        np.testing.assert_array_equal(got.asnumpy(), np.ones((batch, 5)))
    slopes = ms.grad(lambda p, w, h: recurrence(mode, p, (h, *states[1:]), w)[1].sum(), (0, 1, 2))(p, w, states[0])
    assert [g.shape for g in slopes] == [p.shape, w.shape, (batch, 5)]
    if time == 0:
        np.testing.assert_array_equal(slopes[2].asnumpy(), np.ones((batch, 5)))


def test_half_floats_are_computed_in_float32() -> None:
    layer = ms.nn.LSTM(4, 24, 2)
    x = Tensor(np.random.default_rng(1).normal(size=(7, 3, 4)), ms.float16)
    found, wanted = layer(x)[0], layer(x.astype(ms.float32))[0]
    assert found.dtype is ms.float16
    np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), atol=3e-3)


def test_one_program_for_all_lengths() -> None:
    layer = ms.nn.GRU(3, 8, bidirectional=True)
    net = ms.jit(lambda x: layer(x)[0], input_signature=Tensor(shape=[None, 2, 3], dtype=ms.float32))
    for time in (1, 4, 11, 30):
        x = Tensor(np.random.default_rng(time).normal(size=(time, 2, 3)), ms.float32)
        np.testing.assert_allclose(net(x).asnumpy(), layer(x)[0].asnumpy(), rtol=1e-5, atol=1e-6)


def test_examples_of_a_batch_and_second_derivatives() -> None:
    layer = ms.nn.GRU(2, 3, dtype=ms.float64)
    x = Tensor(np.random.default_rng(2).normal(size=(4, 10, 1, 2)))
    found = ms.vmap(lambda v: layer(v)[0])(x)
    for k in range(4):
        np.testing.assert_allclose(found[k].asnumpy(), layer(x[k])[0].asnumpy(), rtol=1e-12)
    slope = ms.grad(lambda v: (layer(v)[0] ** 2).sum())
    curve = ms.grad(lambda v: (slope(v) * x[1]).sum())(x[0]).asnumpy()
    step = Tensor(1e-5, ms.float64)
    difference = (slope(x[0] + step * x[1]) - slope(x[0] - step * x[1])) / (2 * step)
    np.testing.assert_allclose(curve, difference.asnumpy(), rtol=1e-6, atol=1e-8)
