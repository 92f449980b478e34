"""Recurrences: steps h, c = f(p[t], h, c) over the first axis, for the recurrent layers.

The part of a step that does not depend on the state, p, is one product of all times. The steps are
one primitive (`prims.neural.recurrence`), so that the graph does not grow with their number.
"""

from __future__ import annotations

from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.neural import recurrence as recurrence_prims
from mycel._src.compiler.prims.neural.recurrence import GATES
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.ops._operands import apply, reshaped, run, select, take_slice
from mycel.ops.activation import relu
from mycel.ops.algebra.linalg import dense
from mycel.ops.creation import zeros
from mycel.ops.elementwise import sigmoid, tanh

__all__ = ["GATES", "layer", "recurrence", "step"]

States = tuple[Tensor, ...]


def _gate(x: Tensor, i: int, count: int) -> Tensor:
    """Return the part of gate `i` of `count` gates."""
    size = x.shape[1] // count
    return take_slice(x, 1, i * size, (i + 1) * size)


@fused
def step(mode: str, x: Tensor, states: States, weights: States) -> States:
    """Return the next states.

    `x` is (batch, inputs), and `states` are (batch, hidden); `weights` are those of `layer`, and
    `mode` is that of `recurrence`.

    >>> import mycel as ms
    >>> from mycel.ops.sequences.recurrence import step
    >>> ones = ms.ops.ones((1, 1))
    >>> step("relu", ones, (ones,), (ones, ones))[0].tolist()
    [[2.0]]
    """
    w_ih, w_hh, *biases = weights
    p, q = dense(x, w_ih, *biases[:1]), dense(states[0], w_hh, *biases[1:])
    if mode == "gru":
        r, z = sigmoid(_gate(p, 0, 3) + _gate(q, 0, 3)), sigmoid(_gate(p, 1, 3) + _gate(q, 1, 3))
        n = tanh(_gate(p, 2, 3) + r * _gate(q, 2, 3))
        return (n + z * (states[0] - n),)
    total = p + q
    if mode == "lstm":
        i, f, g, o = (_gate(total, k, 4) for k in range(4))
        c = sigmoid(f) * states[1] + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c
    return (tanh(total) if mode == "tanh" else relu(total),)


def recurrence(
    mode: str,
    p: Tensor,
    states: States,
    w_hh: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    reverse: bool = False,
) -> States:
    """Return all outputs (time, batch, hidden) and the last states.

    `p` (time, batch, gates * hidden) is the part of the steps that does not depend on states, and
    `states` are the first ones (batch, hidden). `mode` is "tanh", "relu", "gru" or "lstm", whose
    states are (h, c); `w_hh` is the weight (gates * hidden, hidden) of the states, and `bias` that
    of all gates, for a GRU in the order of `prims.neural.recurrence`. Where the boolean `mask`
    (time, batch) does not hold, states stay and outputs are 0. With `reverse` time runs backwards.
    16-bit floats are computed in float32.

    >>> import mycel as ms
    >>> from mycel.ops.sequences.recurrence import recurrence
    >>> states = (ms.ops.zeros((1, 1)),)
    >>> h, last = recurrence("relu", ms.ops.ones((3, 1, 1)), states, ms.ops.ones((1, 1)))
    >>> h.flatten().tolist(), last.tolist()
    ([1.0, 2.0, 3.0], [[3.0]])
    """
    given, kind = p.dtype, D.float32 if p.dtype.itemsize == 2 else p.dtype
    if bias is None:
        bias = zeros((recurrence_prims.PARTS[mode] * states[0].shape[1],), kind)
    operands = [cast(x, kind) for x in (p, w_hh, bias, *states)]
    masks = [] if mask is None else [mask]
    outputs, *rest = apply(
        recurrence_prims.recurrence, *operands, *masks, mode=mode, reverse=reverse, masked=mask is not None
    )
    if mask is not None:
        outputs = select(reshaped(mask, (*mask.shape, 1)), outputs, scalar(0, kind))
    return tuple([cast(x, given) for x in (outputs, *rest[: len(states)])])


@fused
def layer(
    mode: str,
    x: Tensor,
    states: States,
    weights: States,
    mask: Tensor | None = None,
    reverse: bool = False,
) -> States:
    """Return all outputs (time, batch, hidden) and the last states of a layer.

    `x` is (time, batch, inputs); `weights` are w_ih (gates * hidden, inputs), w_hh (gates * hidden,
    hidden) and, where the layer has biases, b_ih and b_hh (gates * hidden,). `mode`, `states`,
    `mask` and `reverse` are those of `recurrence`.

    >>> import mycel as ms
    >>> from mycel.ops.sequences.recurrence import layer
    >>> ones = ms.ops.ones((1, 1))
    >>> h, last = layer("relu", ms.ops.ones((3, 1, 1)), (ones,), (ones, ones))
    >>> last.tolist()
    [[4.0]]
    """
    w_ih, w_hh, *biases = weights
    bias = None
    if biases and mode == "gru":
        size = biases[0].shape[0] // 3
        ih, hh = ((take_slice(b, 0, 0, 2 * size), take_slice(b, 0, 2 * size, 3 * size)) for b in biases)
        bias = run(S.CONCAT, hh[1], ih[0] + hh[0], ih[1], axis=0)
    elif biases:
        bias = biases[0] + biases[1]
    return recurrence(mode, dense(x, w_ih), states, w_hh, bias, mask, reverse)
