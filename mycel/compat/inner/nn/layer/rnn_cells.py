"""`mindspore.nn.layer.rnn_cells`: single steps of recurrent networks as functions."""

from __future__ import annotations

from typing import Optional

from mycel import ops
from mycel.core.tensor import Tensor
from mycel.ops.sequences.recurrence import step

__all__: list[str] = []


def _rnn_tanh_cell(
    inputs: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]
) -> Tensor:
    """Return the next state of an Elman network with tanh.

    `inputs` and `hidden` are the inputs and the state, `w_ih`, `w_hh`, `b_ih` and `b_hh` the
    weights and biases of either.
    """
    return step("tanh", ops.dense(inputs, w_ih, b_ih), (hidden,), w_hh, b_hh)[0]


def _rnn_relu_cell(
    inputs: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]
) -> Tensor:
    """Return the next state of an Elman network with relu.

    `inputs` and `hidden` are the inputs and the state, `w_ih`, `w_hh`, `b_ih` and `b_hh` the
    weights and biases of either.
    """
    return step("relu", ops.dense(inputs, w_ih, b_ih), (hidden,), w_hh, b_hh)[0]


def _gru_cell(
    inputs: Tensor, hidden: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]
) -> Tensor:
    """Return the next state of a gated recurrent unit.

    `inputs` and `hidden` are the inputs and the state, `w_ih`, `w_hh`, `b_ih` and `b_hh` the
    weights and biases of either.
    """
    return step("gru", ops.dense(inputs, w_ih, b_ih), (hidden,), w_hh, b_hh)[0]


def _lstm_cell(
    inputs: Tensor,
    hidden: tuple[Tensor, Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Optional[Tensor],
    b_hh: Optional[Tensor],
) -> tuple[Tensor, ...]:
    """Return the next state and memory of a long short-term memory.

    `inputs` are the inputs, `hidden` is the pair of state and memory, `w_ih`, `w_hh`, `b_ih` and
    `b_hh` are the weights and biases of either.
    """
    return step("lstm", ops.dense(inputs, w_ih, b_ih), tuple(hidden), w_hh, b_hh)
