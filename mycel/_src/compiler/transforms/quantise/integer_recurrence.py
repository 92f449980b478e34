"""Quantised recurrent layers: integer products of states and weights, and gates in floats.

The states of LSTMs, GRUs and recurrences by tanh lie between -1 and 1, so their scale is known: 127
levels each way. Each time the state is rounded, and its products with the weights are sums of
integers; a sum times the both scales enters the gates. The gates and the state c of an LSTM
are not quantised: they are as many as states, where weights are as many as pairs of states.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.neural.quantisation import dequantize, int_matmul, quantize
from mycel._src.compiler.prims.neural.recurrence import steps_of
from mycel._src.compiler.transforms.quantise.graph_freezing import literal
from mycel._src.compiler.transforms.quantise.scales import Scale, levels_of
from mycel._src.foundation.dtype import float32, int8

__all__ = ["recurrent"]

Array = np.ndarray[Any, Any]
HIGHEST = 127


def recurrent(node: Node, weight: Array, scale: Scale, operands: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the results of a recurrence by products of integers, but for what derivatives read.

    * `node`: the recurrence; `operands`: its operands in floats, without the weights.
    * `weight`: its weights (gates * hidden, hidden), which get the levels of a `scale`.
    """
    held = literal(np.ascontiguousarray(levels_of(weight, scale).T), node)
    size = np.broadcast_to(np.asarray(scale.size, np.float64).reshape(-1), (weight.shape[0],)) / HIGHEST
    sizes = literal(size.astype(np.float32))
    spacing, none = constant(np.array(1 / HIGHEST, np.float32)), constant(0.0, float32)

    def product(state: Node) -> Node:
        levels = quantize(state, spacing, none, low=-HIGHEST, high=HIGHEST, ties="even", dtype=int8)
        return dequantize(int_matmul(levels, held, a_zero=0, b_zero=0), sizes, none)

    p, b, h, *rest = operands
    return steps_of(p, product, b, h, *rest, **node.params)
