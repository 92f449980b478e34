"""Recurrent layers and transformers give MindSpore's parameters, outputs and gradients (see
`sequence_cases`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from tests.nn import sequence_cases as cases

EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "expected_sequences.json").read_text())
CHECKED = {f"nn.{name.split('_')[0]}": "MindSpore" for name in cases.CASES}


@pytest.fixture(autouse=True)
def restored_mode() -> Iterator[None]:
    before = ms.get_context("mode")
    yield
    ms.set_context(mode=before)


def test_every_case_is_recorded() -> None:
    assert set(EXPECTED) == set(cases.CASES)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
@pytest.mark.parametrize("name", list(cases.CASES))
def test_parameters_outputs_and_gradients_are_those_recorded(name: str, mode: int) -> None:
    ms.set_context(mode=mode)
    found, expected = cases.run(ms, cases.CASES[name]), EXPECTED[name]
    assert found["parameters"] == expected["parameters"]
    assert found["shapes"] == expected["shapes"]
    for got, wanted in zip(found["outputs"], expected["outputs"]):
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=5e-6)
    assert len(found["gradients"]) == len(expected["gradients"])
    for got, wanted in zip(found["gradients"], expected["gradients"]):
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=5e-5)


def attention_by_definition(cell: Any, x: Any, y: Any, mask: Any) -> Any:
    """Attention of one head in float64: the queries `x` (queries, features) to the keys and values
    `y`.
    """
    w, b = cell.in_proj_weight.asnumpy().astype(np.float64), cell.in_proj_bias.asnumpy()
    e = cell.embed_dim
    q, k, v = (a @ w[i * e : (i + 1) * e].T + b[i * e : (i + 1) * e] for i, a in enumerate((x, y, y)))
    s = q @ k.T / np.sqrt(e) + mask
    weights = np.exp(s - s.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights @ v @ cell.out_proj.weight.asnumpy().T + cell.out_proj.bias.asnumpy()


def test_masks_of_floats_and_of_booleans_may_be_mixed() -> None:
    cell = ms.nn.MultiheadAttention(8, 1)
    cases.fix_parameters(ms, cell)
    added = cases.wave(3, 5, phase=2.2)
    out, weights = cell(
        ms.Tensor(cases.Y), ms.Tensor(cases.X), ms.Tensor(cases.X), ms.Tensor(cases.PADDED), attn_mask=ms.Tensor(added)
    )
    assert not weights.asnumpy()[np.broadcast_to(cases.PADDED[:, None], (2, 3, 5))].any()
    for i in range(2):
        mask = added + np.where(cases.PADDED[i], -np.inf, 0)
        wanted = attention_by_definition(cell, cases.Y[:, i], cases.X[:, i], mask)
        np.testing.assert_allclose(out.asnumpy()[:, i], wanted, rtol=1e-4, atol=1e-5)


def lstm_by_definition(cell: Any, x: Any, suffix: str, times: Any) -> Any:
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    w, u, b, d = (
        getattr(cell, n + suffix).asnumpy().astype(np.float64) for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    h = c = np.zeros((x.shape[1], cell.hidden_size))
    out = np.zeros((*x.shape[:2], cell.hidden_size))
    for t in times:
        i, f, g, o = np.split(x[t] @ w.T + b + h @ u.T + d, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        out[t] = h = sigmoid(o) * np.tanh(c)
    return out


@pytest.mark.parametrize("length", [1, 2, 8, 9, 11, 16, 30])
def test_any_number_of_steps(length: int) -> None:
    cell = ms.nn.LSTM(3, 4, bidirectional=True)
    x = cases.wave(length, 2, 3)
    out, (h, _) = cell(ms.Tensor(x))
    forwards = lstm_by_definition(cell, x, "_l0", range(length))
    backwards = lstm_by_definition(cell, x, "_l0_reverse", reversed(range(length)))
    np.testing.assert_allclose(out.asnumpy(), np.concatenate((forwards, backwards), 2), rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(h.asnumpy(), np.stack((forwards[-1], backwards[0])), rtol=2e-5, atol=2e-6)


def test_the_derivative_of_a_long_recurrence_by_differences() -> None:
    cell = ms.nn.GRU(2, 3, dtype=ms.float64)
    x, way = np.sin(np.arange(40.0)).reshape(20, 1, 2), np.cos(np.arange(40.0)).reshape(20, 1, 2)

    def loss(v: ms.Tensor) -> ms.Tensor:
        return (cell(v, None, ms.Tensor([17], dtype=ms.int32))[0] ** 2).sum()

    gradient = ms.grad(loss)(ms.Tensor(x)).asnumpy()
    ends = [float(loss(ms.Tensor(x + s * 1e-5 * way))) for s in (1, -1)]
    np.testing.assert_allclose((gradient * way).sum(), (ends[0] - ends[1]) / 2e-5, rtol=1e-6)
    assert not gradient[17:].any()


def test_a_long_recurrence_under_vmap_and_twice_differentiated() -> None:
    cell = ms.nn.RNN(2, 3, dtype=ms.float64)
    x = ms.Tensor(np.sin(np.arange(60.0)).reshape(3, 10, 1, 2))
    each = ms.vmap(lambda v: cell(v)[0])(x)
    np.testing.assert_allclose(each.asnumpy(), np.stack([cell(v)[0].asnumpy() for v in x]), rtol=1e-12)
    first = ms.grad(lambda v: (cell(v)[0] ** 2).sum())
    way = np.cos(np.arange(20.0)).reshape(10, 1, 2)
    second = ms.grad(lambda v: (first(v) * ms.Tensor(way)).sum())(x[0]).asnumpy()
    ends = [first(ms.Tensor(x[0].asnumpy() + s * 1e-5 * way)).asnumpy() for s in (1, -1)]
    np.testing.assert_allclose(second, (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-7)


def test_dropout_lies_between_layers_and_in_training_alone() -> None:
    ms.set_seed(3)
    cell = ms.nn.LSTM(3, 4, 2, dropout=0.5)
    x = ms.Tensor(cases.LONG)
    plain, again = cell(x)[0].asnumpy(), cell(x)[0].asnumpy()
    np.testing.assert_array_equal(plain, again)
    cell.set_train()
    assert abs(cell(x)[0].asnumpy() - plain).max() > 1e-4
    single = ms.nn.LSTM(3, 4, 1, dropout=0.5).set_train()
    np.testing.assert_array_equal(single(x)[0].asnumpy(), single(x)[0].asnumpy())
    attention = ms.nn.MultiheadAttention(8, 2, dropout=0.5).set_train()
    assert (attention(*[ms.Tensor(cases.X)] * 3, average_attn_weights=False)[1].asnumpy() == 0).any()


def test_half_precision_inputs_give_half_precision_outputs() -> None:
    for make in (ms.nn.RNN, ms.nn.GRU, ms.nn.LSTM):
        cell = make(3, 4)
        x = ms.Tensor(cases.LONG)
        half = cell(x.astype(ms.float16))[0]
        assert half.dtype is ms.float16
        np.testing.assert_allclose(half.asnumpy(), cell(x)[0].asnumpy(), rtol=1e-2, atol=4e-3)


def test_first_values() -> None:
    ms.set_seed(1)
    for p in ms.nn.GRU(3, 16).get_parameters():
        assert 0.2 < float(abs(p.asnumpy()).max()) <= 0.25
    net = ms.nn.Transformer(8, 2, 2, 1, 16)
    weights = {p.name: p.asnumpy() for p in net.get_parameters()}
    assert 0.4 < abs(weights["encoder.layers.1.self_attn.in_proj_weight"]).max() <= np.sqrt(6 / 32)
    assert 0.45 < abs(weights["decoder.layers.0.dense1.weight"]).max() <= 0.5
    assert not weights["decoder.layers.0.multihead_attn.in_proj_bias"].any()
    encoder = ms.nn.TransformerEncoder(ms.nn.TransformerEncoderLayer(8, 2, 16), 2)
    first, second = ([p.asnumpy() for p in layer.get_parameters()] for layer in encoder.layers)
    assert len(first) == 12 and all(np.array_equal(a, b) for a, b in zip(first, second))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda nn, x: nn.RNN(3, 4, num_layers=0), ValueError, "num_layers must be at least 1"),
        (lambda nn, x: nn.RNN(3, 4, nonlinearity="sin"), ValueError, "nonlinearity must be one of"),
        (lambda nn, x: nn.GRU(3, 4, dropout=1.0), ValueError, "dropout must be below 1"),
        (lambda nn, x: nn.GRU(3, 4)(x[0]), ValueError, "x must be .time, batch, 3., not of shape"),
        (lambda nn, x: nn.GRU(3, 4)(x, x), ValueError, "hx must be of shape .1, 2, 4."),
        (lambda nn, x: nn.LSTM(3, 4)(x, x), TypeError, "hx must be the pair"),
        (lambda nn, x: nn.LSTM(3, 4)(x, None, ms.Tensor([1, 2, 3])), ValueError, "one length for each of 2"),
        (lambda nn, x: nn.LSTMCell(3, 4)(x[0], x[0]), TypeError, "LSTMCell: hx must be the pair"),
        (lambda nn, x: nn.RNNCell(3, 4)(x[0], x[0]), ValueError, "a state must be of shape"),
        (lambda nn, x: nn.MultiheadAttention(8, 3), ValueError, "embed_dim 8 does not divide into num_heads 3"),
        (lambda nn, x: nn.MultiheadAttention(8, 2)(x, x, x), ValueError, "query must be .* with 8 features"),
        (
            lambda nn, x: nn.MultiheadAttention(3, 1)(x, x, x, attn_mask=ms.Tensor([[True]])),
            ValueError,
            "attn_mask must be .5, 5. or .2, 5, 5.",
        ),
        (lambda nn, x: nn.TransformerEncoderLayer(8, 2, activation="tanh"), ValueError, "activation must be one of"),
        (lambda nn, x: nn.TransformerEncoder(nn.ReLU, 2), TypeError, "the layer must be a Cell"),
        (lambda nn, x: nn.Transformer(8, 2, 1, 1, 8)(x, x), ValueError, "must have 8 features"),
    ],
)
def test_arguments_that_do_not_fit(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(ms.nn, ms.Tensor(cases.LONG))
