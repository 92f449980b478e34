"""Layers of several inputs and outputs whose outputs and gradients with MindSpore 2.10 are recorded
in ``expected_sequences.json``.

As in `cases`, the modules are arguments, so that the same code ran with MindSpore to record the
numbers. A case's inputs may be nested tuples and None; its outputs are taken in order without their
nesting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.nn.cases import fix_parameters, wave


class Case(NamedTuple):
    """A cell made of `ms.nn`, what it is called with, and which outputs and inputs take part in
    gradients.
    """

    make: Callable[[Any], Any]
    inputs: tuple[Any, ...]
    kwargs: dict[str, Any] = {}
    outputs: Any = None
    gradient: bool = True


LONG = wave(5, 2, 3)
STEP = wave(2, 3)
LENGTHS = np.array([3, 5], np.int32)
X = wave(5, 2, 8)
Y = wave(3, 2, 8, phase=1.2)
AHEAD = np.triu(np.ones((3, 3), bool), 1)
PADDED = np.array([[0, 0, 0, 1, 1], [0, 1, 0, 0, 0]], bool)


def state(layers: int, phase: float = 0.7, batch: int = 2) -> Any:
    """First states of four features."""
    return wave(layers, batch, 4, phase=phase)


CASES: dict[str, Case] = {
    "RNNCell": Case(lambda nn: nn.RNNCell(3, 4), (STEP, state(1)[0])),
    "RNNCell_relu": Case(lambda nn: nn.RNNCell(3, 4, has_bias=False, nonlinearity="relu"), (STEP, state(1)[0])),
    "GRUCell": Case(lambda nn: nn.GRUCell(3, 4), (STEP, state(1)[0])),
    "GRUCell_no_bias": Case(lambda nn: nn.GRUCell(3, 4, False), (STEP, state(1)[0])),
    "LSTMCell": Case(lambda nn: nn.LSTMCell(3, 4), (STEP, (state(1)[0], state(1, 1.9)[0]))),
    "LSTMCell_no_bias": Case(lambda nn: nn.LSTMCell(3, 4, has_bias=False), (STEP, (state(1)[0], state(1, 1.9)[0]))),
    "RNN": Case(lambda nn: nn.RNN(3, 4), (LONG,)),
    "RNN_relu": Case(lambda nn: nn.RNN(3, 4, 2, False, nonlinearity="relu"), (LONG, state(2))),
    "RNN_lengths": Case(lambda nn: nn.RNN(3, 4, bidirectional=True), (LONG, state(2), LENGTHS)),
    "RNN_batch_first": Case(lambda nn: nn.RNN(3, 4, batch_first=True), (LONG, state(1, batch=5))),
    "GRU": Case(lambda nn: nn.GRU(3, 4), (LONG,)),
    "GRU_layers": Case(lambda nn: nn.GRU(3, 4, 2, bidirectional=True), (LONG, state(4))),
    "GRU_no_bias": Case(lambda nn: nn.GRU(3, 4, 2, has_bias=False), (LONG,)),
    "GRU_lengths": Case(lambda nn: nn.GRU(3, 4, bidirectional=True), (LONG, state(2), LENGTHS)),
    "LSTM": Case(lambda nn: nn.LSTM(3, 4), (LONG,)),
    "LSTM_layers": Case(lambda nn: nn.LSTM(3, 4, 2, bidirectional=True), (LONG, (state(4), state(4, 1.9)))),
    "LSTM_no_bias": Case(lambda nn: nn.LSTM(3, 4, has_bias=False), (LONG,)),
    "LSTM_batch_first": Case(lambda nn: nn.LSTM(3, 4, batch_first=True, bidirectional=True), (LONG,)),
    "LSTM_lengths": Case(lambda nn: nn.LSTM(3, 4, bidirectional=True), (LONG, (state(2), state(2, 1.9)), LENGTHS)),
    "LSTM_long": Case(lambda nn: nn.LSTM(3, 4, bidirectional=True), (wave(23, 2, 3), (state(2), state(2, 1.9)))),
    "GRU_long_lengths": Case(
        lambda nn: nn.GRU(3, 4, bidirectional=True), (wave(23, 2, 3), state(2), np.array([23, 11], np.int32))
    ),
    "MultiheadAttention": Case(lambda nn: nn.MultiheadAttention(8, 2), (X, X, X)),
    "MultiheadAttention_cross": Case(
        lambda nn: nn.MultiheadAttention(8, 4), (Y, X, X), {"average_attn_weights": False}
    ),
    "MultiheadAttention_sizes": Case(
        lambda nn: nn.MultiheadAttention(8, 2, kdim=3, vdim=6), (Y, LONG, wave(5, 2, 6)), {"key_padding_mask": PADDED}
    ),
    "MultiheadAttention_appended": Case(
        lambda nn: nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True),
        (Y, X, X),
        {"key_padding_mask": PADDED},
    ),
    "MultiheadAttention_ahead": Case(
        lambda nn: nn.MultiheadAttention(8, 2, has_bias=False), (Y, Y, Y), {"attn_mask": AHEAD}
    ),
    "MultiheadAttention_added": Case(
        lambda nn: nn.MultiheadAttention(8, 2),
        (Y, X, X),
        {"attn_mask": wave(3, 5, phase=2.2), "key_padding_mask": wave(2, 5, phase=3.0)},
    ),
    "MultiheadAttention_heads": Case(
        lambda nn: nn.MultiheadAttention(8, 2), (Y, X, X), {"attn_mask": wave(4, 3, 5, phase=2.2)}
    ),
    "MultiheadAttention_batch_first": Case(
        lambda nn: nn.MultiheadAttention(8, 2, batch_first=True),
        (wave(2, 3, 8), wave(2, 5, 8), wave(2, 5, 8)),
        {"need_weights": False},
    ),
    "MultiheadAttention_single": Case(
        lambda nn: nn.MultiheadAttention(8, 2), (Y[:, 0], X[:, 0], X[:, 0]), {"key_padding_mask": PADDED[0]}
    ),
    "TransformerEncoderLayer": Case(lambda nn: nn.TransformerEncoderLayer(8, 2, 6, 0.0), (X,)),
    "TransformerEncoderLayer_first": Case(
        lambda nn: nn.TransformerEncoderLayer(8, 2, 6, 0.0, "gelu", 1e-3, norm_first=True),
        (Y, AHEAD),
    ),
    "TransformerEncoderLayer_batch_first": Case(
        lambda nn: nn.TransformerEncoderLayer(8, 2, 6, 0.0, batch_first=True), (wave(2, 5, 8), None, PADDED)
    ),
    "TransformerDecoderLayer": Case(
        lambda nn: nn.TransformerDecoderLayer(8, 2, 6, 0.0),
        (Y, X),
        {"tgt_mask": AHEAD, "memory_key_padding_mask": PADDED},
    ),
    "TransformerDecoderLayer_first": Case(
        lambda nn: nn.TransformerDecoderLayer(8, 2, 6, 0.0, norm_first=True),
        (Y, X),
        {
            "memory_mask": np.triu(np.ones((3, 5), bool), 3),
            "tgt_key_padding_mask": np.array([[0, 0, 1], [0, 0, 0]], bool),
        },
    ),
    "TransformerEncoder": Case(
        lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 6, 0.0), 2, nn.LayerNorm((8,))), (X,)
    ),
    "TransformerDecoder": Case(lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 6, 0.0), 2), (Y, X)),
    "Transformer": Case(lambda nn: nn.Transformer(8, 2, 1, 1, 6, 0.0), (X, Y), {"tgt_mask": AHEAD}),
    "Transformer_single": Case(lambda nn: nn.Transformer(8, 2, 1, 1, 6, 0.0), (X[:, 0], Y[:, 0])),
}


def _given(ms: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_given(ms, v) for v in value)
    return ms.Tensor(value) if isinstance(value, np.ndarray) else value


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in _leaves(v)]
    return [] if value is None else [value]


def _flat(values: Any) -> list[float]:
    return [float(v) for v in np.asarray(values, np.float64).ravel()]


def run(ms: Any, case: Case) -> dict[str, Any]:
    """The names and shapes of parameters, the outputs, and the gradients by floating inputs and
    parameters.
    """
    cell = case.make(ms.nn)
    fix_parameters(ms, cell)
    inputs, kwargs = _given(ms, case.inputs), {k: _given(ms, v) for k, v in case.kwargs.items()}
    outs = _leaves(cell(*inputs, **kwargs))
    found: dict[str, Any] = {
        "parameters": [[p.name, list(p.shape)] for p in cell.get_parameters()],
        "shapes": [list(o.shape) for o in outs],
        "outputs": [_flat(o.asnumpy()) for o in outs],
    }
    if not case.gradient:
        return found
    weights = [ms.Tensor(wave(*o.shape, phase=2.0 + k)) for k, o in enumerate(outs)]
    smooth = [k for k, o in enumerate(outs) if o.asnumpy().dtype.kind == "f"]

    def loss(*args: Any) -> Any:
        got = _leaves(cell(*args, **kwargs))
        total = ms.ops.sum(got[smooth[0]] * weights[smooth[0]])
        for k in smooth[1:]:
            total = total + ms.ops.sum(got[k] * weights[k])
        return total

    positions = tuple(k for k, v in enumerate(case.inputs) if isinstance(v, np.ndarray) and v.dtype.kind == "f")
    parameters = list(cell.trainable_params())
    gradients = ms.grad(loss, positions or None, parameters or None)(*inputs)
    found["gradients"] = [_flat(g.asnumpy()) for g in _leaves(gradients)]
    return found
