"""`mindspore.nn.layer.rnn_cells`: single steps of recurrent networks as functions."""

from __future__ import annotations

from typing import Optional

from mycel import ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops.sequences.recurrence import step

__all__: list[str] = []


def _weights(w_ih: Tensor, w_hh: Tensor, *biases: Tensor | None) -> tuple[Tensor, ...]:
    """Return weights and biases as one tuple, without biases where there are none."""
    if all(b is None for b in biases):
        return w_ih, w_hh
    return w_ih, w_hh, *[ops.zeros((w.shape[0],), w.dtype) if b is None else b for b, w in zip(biases, (w_ih, w_hh))]


def _rnn_tanh_cell(
    inputs: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> Tensor:
    """Return the next state of an Elman network with tanh.

    `inputs` and `hidden` are the inputs and the state, `w_ih`, `w_hh`, `b_ih` and `b_hh` the
    weights and biases of either.
    """
    return step("tanh", inputs, (hidden,), _weights(w_ih, w_hh, b_ih, b_hh))[0]


def _rnn_relu_cell(
    inputs: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> Tensor:
    """Return the next state of an Elman network with relu.

    `inputs` and `hidden` are the inputs and the state, `w_ih`, `w_hh`, `b_ih` and `b_hh` the
    weights and biases of either.
    """
    return step("relu", inputs, (hidden,), _weights(w_ih, w_hh, b_ih, b_hh))[0]


def _gru_cell(
    inputs: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> Tensor:
    """Return the next state of a gated recurrent unit.

    `inputs` and `hidden` are the inputs and the state, `w_ih`, `w_hh`, `b_ih` and `b_hh` the
    weights and biases of either.
    """
    return step("gru", inputs, (hidden,), _weights(w_ih, w_hh, b_ih, b_hh))[0]


def _lstm_cell(
    inputs: Tensor,
    hidden: tuple[Tensor, Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> tuple[Tensor, ...]:
    """Return the next state and memory of a long short-term memory.

    `inputs` are the inputs, `hidden` is the pair of state and memory, `w_ih`, `w_hh`, `b_ih` and
    `b_hh` are the weights and biases of either.
    """
    return step("lstm", inputs, tuple(hidden), _weights(w_ih, w_hh, b_ih, b_hh))
