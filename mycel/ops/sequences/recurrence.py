"""Recurrences: steps h, c = f(p[t], h, c) over the first axis, for the recurrent layers.

The part of a step that does not depend on the state, p, is given for all times at once. Up to
`UNROLLED` steps become one straight graph. Longer sequences are cut into blocks of about the root
of their length: one loop runs over the blocks, and its body holds the steps of one block. So the
graph grows with the root of the length only. The memory that the derivative of the loop needs, in
proportion to the outputs, grows with that root too. Steps after the last whole block are straight
again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional

from mycel.base import dtype as D
from mycel.core import eager
from mycel.core.fused import fused, graph_of
from mycel.core.tensor import Tensor, scalar
from mycel.ops._operands import reshaped, run, select, take_slice
from mycel.ops.activation import relu
from mycel.ops.algebra.linalg import dense
from mycel.ops.creation import zeros
from mycel.ops.elementwise import sigmoid, tanh
from mycel.prims import control as C
from mycel.prims import index as I
from mycel.prims import shape as S

__all__ = ["GATES", "UNROLLED", "recurrence", "step"]

GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}
UNROLLED = 8
States = tuple[Tensor, ...]


def _gate(x: Tensor, i: int, count: int) -> Tensor:
    """Return the part of gate `i` of `count` gates."""
    size = x.shape[1] // count
    return take_slice(x, 1, i * size, (i + 1) * size)


def step(mode: str, p: Tensor, states: Sequence[Tensor], w_hh: Tensor, b_hh: Optional[Tensor]) -> States:
    """Return the next states.

    `p` = x @ w_ih.T + b_ih is (batch, gates * hidden), and `states` are (batch, hidden); `w_hh`
    (gates * hidden, hidden) and `b_hh` are the weight and the bias of the states. `mode` is that of
    `recurrence`.
    """
    h = states[0]
    q = dense(h, w_hh, b_hh)
    if mode == "gru":
        r, z = sigmoid(_gate(p, 0, 3) + _gate(q, 0, 3)), sigmoid(_gate(p, 1, 3) + _gate(q, 1, 3))
        n = tanh(_gate(p, 2, 3) + r * _gate(q, 2, 3))
        return (n + z * (h - n),)
    total = p + q
    if mode == "lstm":
        i, f, g, o = (_gate(total, k, 4) for k in range(4))
        c = sigmoid(f) * states[1] + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c
    return (tanh(total) if mode == "tanh" else relu(total),)


@fused
def recurrence(
    mode: str,
    p: Tensor,
    states: States,
    w_hh: Tensor,
    b_hh: Optional[Tensor] = None,
    mask: Optional[Tensor] = None,
    reverse: bool = False,
) -> States:
    """Return all outputs (time, batch, hidden) and the last states.

    `p` (time, batch, gates * hidden) is the part of the steps that does not depend on states, and
    `states` are the first ones (batch, hidden). `mode` is "tanh", "relu", "gru" or "lstm", whose
    states are (h, c); `w_hh` and `b_hh` are the weight (gates * hidden, hidden) and the bias of the
    states. Where the boolean `mask` (time, batch) does not hold, states stay and outputs are 0.
    With `reverse` time runs backwards.

    >>> import mycel as ms
    >>> from mycel.ops.sequences.recurrence import recurrence
    >>> states = (ms.ops.zeros((1, 1)),)
    >>> h, last = recurrence("relu", ms.ops.ones((3, 1, 1)), states, ms.ops.ones((1, 1)))
    >>> h.flatten().tolist(), last.tolist()
    ([1.0, 2.0, 3.0], [[3.0]])
    """
    length = int(p.shape[0])
    weights = (w_hh,) if b_hh is None else (w_hh, b_hh)
    if mask is not None:
        mask = reshaped(mask, (*mask.shape, 1))
    block = length if length <= UNROLLED else math.isqrt(length - 1) + 1
    count = 1 if length <= UNROLLED else length // block
    if count == 1:
        return _straight(mode, p, mask, states, weights, reverse)
    whole = count * block
    # The steps that come first in the direction of time are the blocks'.
    begin, rest = (length - whole, 0) if reverse else (0, whole)

    def part(x: Tensor, start: int, steps: int) -> Tensor:
        return take_slice(x, 0, start, start + steps)

    shown = None if mask is None else part(mask, begin, whole)
    outputs, *last = _blocks(mode, part(p, begin, whole), shown, states, weights, reverse, count)
    if whole == length:
        return outputs, *last
    shown = None if mask is None else part(mask, rest, length - whole)
    more, *last = _straight(mode, part(p, rest, length - whole), shown, tuple(last), weights, reverse)
    return run(S.CONCAT, *((more, outputs) if reverse else (outputs, more)), axis=0), *last


def _straight(mode: str, p: Tensor, mask: Optional[Tensor], states: States, weights: States, reverse: bool) -> States:
    """Return the outputs and the last states of all steps, one after the other."""
    length, batch = p.shape[0], p.shape[1]
    hidden = states[0].shape[1]
    b_hh = weights[1] if len(weights) > 1 else None
    if length == 0:
        return zeros((0, batch, hidden), p.dtype), *[s + scalar(0, s.dtype) for s in states]
    outputs: list[Tensor] = [states[0]] * length
    for t in reversed(range(length)) if reverse else range(length):
        after = step(mode, reshaped(take_slice(p, 0, t, t + 1), p.shape[1:]), states, weights[0], b_hh)
        shown = after[0]
        if mask is not None:
            here = reshaped(take_slice(mask, 0, t, t + 1), mask.shape[1:])
            shown = select(here, after[0], scalar(0, p.dtype))
            after = tuple([select(here, new, old) for new, old in zip(after, states)])
        states, outputs[t] = after, reshaped(shown, (1, batch, hidden))
    joined = run(S.CONCAT, *outputs, axis=0) if length > 1 else outputs[0]
    return joined, *states


def _blocks(
    mode: str, p: Tensor, mask: Optional[Tensor], states: States, weights: States, reverse: bool, count: int
) -> States:
    """Return the outputs and the last states by a loop whose body is the steps of one of `count`
    blocks.
    """
    length, batch = p.shape[0], p.shape[1]
    block, hidden, carried = length // count, states[0].shape[1], 2 + len(states)
    fixed = [reshaped(x, (count, block, *x.shape[1:])) for x in (p, mask) if x is not None]
    inputs = len(fixed)

    def body(i: Tensor, outputs: Tensor, *rest: Tensor) -> States:
        at = scalar(count - 1, D.int64) - i if reverse else i
        now, given = rest[: carried - 2], rest[carried - 2 :]
        parts = [run(I.take, x, at, axis=0, bounds="drop") for x in given[:inputs]]
        made, *after = _straight(mode, parts[0], parts[1] if inputs == 2 else None, now, given[inputs:], reverse)
        place, row = reshaped(at, (1, 1)), reshaped(made, (1, *made.shape))
        # Every row is written once, onto zeros, and the derivative of a sum is the simplest.
        return i + scalar(1, D.int64), run(I.scatter_nd, outputs, place, row, mode="add", bounds="drop"), *after

    def test(i: Tensor, *rest: Tensor) -> States:
        return (i < scalar(count, D.int64),)

    empty = zeros((count, block, batch, hidden), p.dtype)
    operands = (zeros((), D.int64), empty, *states, *fixed, *weights)
    types = [t._type for t in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    done: Any = eager.apply(C.while_loop, *operands, **graphs, carried=carried)
    return reshaped(done[1], (length, batch, hidden)), *done[2:]
