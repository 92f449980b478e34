"""The loss of recurrent neural network transducers: Graves, 2012.

alpha(t, u) is the log-probability of having said the first u labels before step t's blank; a path
goes on by a blank, to t + 1, or by the next label, to u + 1,

    alpha(t, u) = log(exp(alpha(t - 1, u) + blank(t - 1, u)) +
                      exp(alpha(t, u - 1) + label(t, u - 1))),

and ends by the blank at (T - 1, U). One loop runs over the diagonals t + u, each of which follows
from the one before, whatever the lengths; the tables are sheared so that a diagonal is a row. A
large negative number stands for -inf until the end.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.staging.derivatives import grad
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.fused import graph_of
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.ops._operands import (
    broadcast,
    cast_index,
    constant_like,
    floating,
    iota,
    permuted,
    reshaped,
    run,
    select,
    size_of,
    take_slice,
    wide,
)
from mycel.ops.activation import log_softmax
from mycel.ops.creation import zeros

__all__ = ["rnnt_loss"]

NEVER = -1e30


def _sheared(x: Tensor) -> Tensor:
    """Return (B, T, U) as (T + U - 1, B, U): element (b, t, u) moves to (t + u, b, u), and other
    elements are NEVER.
    """
    batch, steps, states = x.shape
    rows = permuted(x, (0, 2, 1))
    rows = run(S.PAD, rows, constant_like(NEVER, x), low=(0, 0, 0), high=(0, 0, states), interior=(0, 0, 0))
    line = take_slice(reshaped(rows, (batch, states * (steps + states))), 1, 0, states * (steps + states - 1))
    return permuted(reshaped(line, (batch, states, steps + states - 1)), (2, 0, 1))


def _likelihoods(acts: Tensor, labels: Tensor, steps: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """Return the log-probability of each labelling."""
    batch, longest, states, _ = acts.shape
    given = log_softmax(acts, 3)
    blanks = reshaped(take_slice(given, 3, blank, blank + 1), (batch, longest, states))
    place = broadcast(reshaped(labels, (batch, 1, states - 1, 1)), (batch, longest, states - 1, 1))
    said = run(I.take_along, take_slice(given, 2, 0, states - 1), place, axis=3)
    said = run(
        S.PAD,
        reshaped(said, (batch, longest, states - 1)),
        constant_like(NEVER, said),
        low=(0, 0, 0),
        high=(0, 0, 1),
        interior=(0, 0, 0),
    )
    ends, last = (reshaped(v, (batch, 1, 1)) for v in (steps, lengths))
    time, state = iota((1, longest, 1), 1, D.int64) < ends, iota((1, 1, states), 2, D.int64)
    blanks = select(run(E.logical_and, time, state <= last), blanks, NEVER)
    said = select(run(E.logical_and, time, state < last), said, NEVER)

    def body(d: Tensor, alpha: Tensor, total: Tensor, blanks: Tensor, said: Tensor, steps: Tensor, last: Tensor) -> Any:
        stay, move = (alpha + run(I.take, v, d, axis=0, bounds="drop") for v in (blanks, said))
        final = run(E.eq, iota((1, states), 1, D.int64), last)
        final = run(E.logical_and, final, run(E.eq, d, steps + last - scalar(1, D.int64)))
        total = total + run(R.reduce_sum, select(final, stay, 0.0), axes=(1,), keepdims=False)
        moved = run(
            S.PAD,
            take_slice(move, 1, 0, states - 1),
            constant_like(NEVER, move),
            low=(0, 1),
            high=(0, 0),
            interior=(0, 0),
        )
        top = run(E.stop_gradient, run(E.maximum, stay, moved))
        alpha = top + run(E.log, run(E.exp, stay - top) + run(E.exp, moved - top))
        return d + scalar(1, D.int64), run(E.maximum, alpha, constant_like(NEVER, alpha)), total

    def test(d: Tensor, *rest: Tensor) -> Any:
        return (d < scalar(longest + states - 1, D.int64),)

    begin = run(E.eq, iota((batch, states), 1, D.int64), scalar(0, D.int64))
    first = select(begin, zeros((batch, states), given.dtype), NEVER)
    columns = (reshaped(steps, (batch, 1)), reshaped(lengths, (batch, 1)))
    operands = (zeros((), D.int64), first, zeros((batch,), given.dtype), _sheared(blanks), _sheared(said), *columns)
    types = [x._type for x in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    return eager.apply(control.while_loop, *operands, **graphs, carried=3)[2]


def rnnt_loss(
    acts: Any, labels: Any, input_lengths: Any, label_lengths: Any, blank_label: int = 0
) -> tuple[Tensor, Tensor]:
    """Return the loss of each sequence (B,), and its derivative by `acts`, a constant.

    `acts` (B, T, U, V) are logits, or logarithms of probabilities, of the classes V after t steps
    and u labels. `labels` is (B, U - 1), of classes other than `blank_label`; `input_lengths`, from
    1 to T, and `label_lengths`, from 0 to U - 1, are (B,). The loss can be differentiated by `acts`
    too.

    >>> import mycel as ms
    >>> from mycel.ops.sequences.transducer import rnnt_loss
    >>> acts = ms.ops.log(ms.Tensor([[[[0.5, 0.5], [0.25, 0.75]]]]))
    >>> loss, _ = rnnt_loss(acts, ms.Tensor([[1]]), ms.Tensor([1]), ms.Tensor([1]))
    >>> round(ms.ops.exp(-loss).item(), 4)
    0.125
    """
    name = "RNNTLoss"
    x = floating(name, acts)
    if x.ndim != 4:
        raise ShapeError(f"{name}: acts must be (B, T, U, V), not {x._type}")
    batch, _, states, classes = x.shape
    blank = size_of(name, blank_label)
    if not 0 <= blank < classes:
        raise ValueError(f"{name}: blank_label {blank} is not one of {classes} classes")
    said, steps, lengths = (cast(cast_index(name, v), D.int64) for v in (labels, input_lengths, label_lengths))
    if said.shape != (batch, states - 1) or steps.shape != (batch,) or lengths.shape != (batch,):
        raise ShapeError(
            f"{name}: for {x._type} labels must be ({batch}, {states - 1}) and lengths ({batch},), not {said.shape}, "
            f"{steps.shape} and {lengths.shape}"
        )
    full = wide(x)

    def total(v: Tensor) -> Tensor:
        each = run(E.neg, _likelihoods(v, said, steps, lengths, blank))
        return run(R.reduce_sum, each, axes=(0,), keepdims=False)

    slope = run(E.stop_gradient, grad(total)(run(E.stop_gradient, full)))
    return cast(run(E.neg, _likelihoods(full, said, steps, lengths, blank)), x.dtype), cast(slope, x.dtype)
