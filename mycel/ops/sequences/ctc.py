"""Connectionist temporal classification: the loss, and greedy decoding. Graves et al., 2006.

A labelling l_1 .. l_S stands for the states b l_1 b l_2 .. l_S b (b the blank). alpha[s] is the
log-probability of all paths that are in state s after a step; a step stays, moves on by one, or by
two over a blank between different labels. Time runs in one loop, whatever its length, and every
sequence of a batch keeps its alpha after its last step. A large negative number stands for -inf
until the end, so that no derivative is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel.base import arguments
from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.core import eager
from mycel.core.fused import fused, graph_of
from mycel.core.tensor import Tensor, as_tensor, cast, scalar
from mycel.ops import indexed, masks
from mycel.ops import reduction as reductions
from mycel.ops._operands import (
    broadcast,
    cast_index,
    constant_like,
    floating,
    iota,
    operand,
    permuted,
    reshaped,
    run,
    select,
    take_slice,
    wide,
)
from mycel.ops.creation import full
from mycel.ops.sorting import cumsum
from mycel.prims import control as C
from mycel.prims import elementwise as E
from mycel.prims import index as I
from mycel.prims import reduce as R
from mycel.prims import shape as S

__all__ = ["ctc_greedy_decoder", "ctc_loss"]

NEVER = -1e30


def _moved(alpha: Tensor, steps: int) -> Tensor:
    """Return alpha[s - steps], or NEVER for states that have no such state before them."""
    kept = take_slice(alpha, 1, 0, alpha.shape[1] - steps)
    low, high = (0, steps), (0, 0)
    return run(S.PAD, kept, constant_like(NEVER, alpha), low=low, high=high, interior=(0, 0))


def _joined(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """Return log(e^x + e^y + e^z)."""
    top = run(E.stop_gradient, run(E.maximum, run(E.maximum, x, y), z))
    return top + run(E.log, run(E.exp, x - top) + run(E.exp, y - top) + run(E.exp, z - top))


@fused
def _log_likelihoods(
    log_probs: Tensor, targets: Tensor, inputs: Tensor, lengths: Tensor, blank: int, merge: bool = True
) -> Any:
    """Return the log-probability of each labelling (N, S) under (T, N, C) of its length, and alpha
    (T, N, 2 S + 1).

    Unless `merge`, a label does not last over several steps: equal labels in a row are labels of
    their own.
    """
    steps, batch, classes = log_probs.shape
    labels = int(targets.shape[1])
    states = 2 * labels + 1
    # Labels beyond a target's length are never reached, but have to be classes.
    counted = iota((batch, labels), 1, D.int32) < reshaped(cast(lengths, D.int32), (batch, 1))
    known = select(counted, targets, constant_like(blank, targets))
    known = cast(run(I.checked, known, axis=2, size=classes, bounds="front"), D.int32)
    blanks = full((batch, labels), blank, dtype=D.int32)
    pairs = reshaped(
        run(S.CONCAT, reshaped(blanks, (batch, labels, 1)), reshaped(known, (batch, labels, 1)), axis=2),
        (batch, 2 * labels),
    )
    track = run(S.CONCAT, pairs, full((batch, 1), blank, dtype=D.int32), axis=1)
    emitted = indexed.gather(permuted(log_probs, (1, 2, 0)), track, 1, 1)
    emitted = run(E.maximum, permuted(emitted, (2, 0, 1)), constant_like(NEVER, emitted))
    two_back = run(
        S.PAD,
        take_slice(track, 1, 0, max(states - 2, 0)),
        constant_like(blank, track),
        low=(0, min(2, states)),
        high=(0, 0),
        interior=(0, 0),
    )
    says = run(E.ne, track, constant_like(blank, track))
    skips = run(E.logical_and, says, run(E.ne, track, two_back)) if merge else says
    place = iota((batch, states), 1, D.int32)
    begin = run(E.lt, place, constant_like(2, place))
    if labels:
        empty = run(E.eq, reshaped(cast(lengths, D.int32), (batch, 1)), scalar(0, D.int32))
        begin = run(E.logical_and, begin, run(E.logical_not, run(E.logical_and, empty, place > 0)))
    first = reshaped(take_slice(emitted, 0, 0, 1), (batch, states))
    alpha = select(begin, first, NEVER)
    ends = reshaped(cast(inputs, D.int64), (batch, 1))

    def body(
        t: Tensor, rows: Tensor, alpha: Tensor, emitted: Tensor, skips: Tensor, ends: Tensor, *says: Tensor
    ) -> Any:
        one = _moved(alpha, 1) if states > 1 else full((batch, states), NEVER, dtype=alpha.dtype)
        two = _moved(alpha, 2) if states > 2 else full((batch, states), NEVER, dtype=alpha.dtype)
        stay = select(says[0], NEVER, alpha) if says else alpha
        after = _joined(stay, one, select(skips, two, NEVER)) + run(I.take, emitted, t, axis=0, bounds="drop")
        after = run(E.maximum, after, constant_like(NEVER, after))
        after = select(t < ends, after, alpha)
        written = run(
            I.scatter_nd, rows, reshaped(t, (1, 1)), reshaped(after, (1, batch, states)), mode="add", bounds="drop"
        )
        return t + scalar(1, D.int64), written, after

    def test(t: Tensor, *rest: Tensor) -> Any:
        return (t < scalar(steps, D.int64),)

    rows = run(
        S.PAD,
        reshaped(alpha, (1, batch, states)),
        constant_like(0.0, alpha),
        low=(0, 0, 0),
        high=(steps - 1, 0, 0),
        interior=(0, 0, 0),
    )
    operands = (scalar(1, D.int64), rows, alpha, emitted, skips, ends, *(() if merge else (says,)))
    types = [x._type for x in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    _, rows, alpha = eager.apply(C.while_loop, *operands, **graphs, carried=3)
    last = reshaped(cast(lengths, D.int32) * scalar(2, D.int32), (batch, 1))
    final = run(E.logical_or, run(E.eq, place, last), run(E.eq, place, last - scalar(1, D.int32)))
    ways = select(final, alpha, NEVER)
    top = run(E.stop_gradient, run(R.reduce_max, ways, axes=(1,), keepdims=True))
    total = run(R.reduce_sum, run(E.exp, ways - top), axes=(1,), keepdims=True)
    reached = run(E.logical_and, run(E.le, place, last), rows > NEVER / 2)
    reached = run(E.logical_and, reached, iota((steps, batch, states), 0, D.int64) < ends)
    return reshaped(run(E.log, total) + top, (batch,)), select(reached, rows, -float("inf"))


def _counts(name: str, what: str, value: Any, batch: Any) -> Tensor:
    """Return lengths (batch,) from an argument, a tensor or a tuple, that may be one for all."""
    found = as_tensor(value, D.int64) if isinstance(value, tuple) else operand(name, value)
    if not found.dtype.is_integer:
        raise TypeError(f"{name}: {what} must be integers, not {found.dtype.name}")
    if found.ndim == 0:
        found = broadcast(found, (batch,))
    if found.shape != (batch,):
        raise ShapeError(f"{name}: {what} must have the shape ({batch},), not {found.shape}")
    return found


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the loss of connectionist temporal classification, and alpha (N, T, 2 S + 1), -inf
    beyond the end of a sequence.

    `log_probs` (T, N, C) holds logarithms of probabilities. `targets`, labels other than `blank`,
    are (N, S), or one after the other (sum of lengths,). `input_lengths` and `target_lengths` are
    (N,). `reduction` "mean" divides each loss by its target's length, at least 1, and averages;
    "sum" adds losses and "none" leaves them. A target that no path gives has the loss inf, or with
    `zero_infinity` 0, without derivative. Graves et al., 2006.

    >>> import mycel as ms
    >>> probabilities = ms.ops.log(ms.Tensor([[[0.5, 0.5]], [[0.5, 0.5]]]))
    >>> loss, _ = ms.ops.ctc_loss(probabilities, ms.Tensor([[1]]), ms.Tensor([2]), ms.Tensor([1]))
    >>> round(ms.ops.exp(-loss).item(), 4)
    0.75
    """
    name = "ctc_loss"
    x = floating(name, log_probs)
    arguments.one_of(name, "reduction", reduction, ("mean", "sum", "none"))
    if x.ndim != 3:
        raise ShapeError(f"{name}: log_probs must be (T, N, C), not {x._type}")
    steps, batch, classes = x.shape
    if not 0 <= blank < classes:
        raise ValueError(f"{name}: blank {blank} is not one of {classes} classes")
    labels, inputs, lengths = (
        cast_index(name, targets),
        *(
            _counts(name, what, value, batch)
            for what, value in (("input_lengths", input_lengths), ("target_lengths", target_lengths))
        ),
    )
    if labels.ndim == 1:
        labels = _rows(labels, lengths, batch)
    if labels.ndim != 2 or labels.shape[0] != batch:
        raise ShapeError(f"{name}: targets must be ({batch}, S) or one-dimensional, not {labels._type}")

    likelihood, alpha = _log_likelihoods(wide(x), labels, inputs, lengths, blank)
    impossible = likelihood < NEVER / 2
    each = cast(select(impossible, 0.0 if zero_infinity else float("inf"), -likelihood), x.dtype)
    if reduction == "mean":
        share = cast(run(E.maximum, lengths, constant_like(1, lengths)), x.dtype)
        each = run(R.reduce_sum, each / share, axes=(0,), keepdims=False) / batch
    elif reduction == "sum":
        each = run(R.reduce_sum, each, axes=(0,), keepdims=False)
    return each, cast(permuted(alpha, (1, 0, 2)), x.dtype)


def _rows(labels: Tensor, lengths: Tensor, batch: Any) -> Tensor:
    """Return targets that lie one after the other as rows, each as long as all of them together."""
    ends = cumsum(cast(lengths, D.int64), 0)
    begins = reshaped(ends - cast(lengths, D.int64), (batch, 1))
    size = labels.shape[0]
    at = begins + iota((batch, size), 1, D.int64)
    return indexed.gather(labels, run(E.minimum, at, constant_like(size - 1, at)), 0)


def ctc_greedy_decoder(inputs: Any, sequence_length: Any, merge_repeated: bool = True) -> tuple[Tensor, ...]:
    """Return the most probable class of each step of (T, N, C) without blanks (the last class), and
    with `merge_repeated` without repetitions.

    There are four results: the positions (row, place) of the labels found (M, 2), the labels (M,),
    the shape (N, longest), all int64, and for each sequence the sum of its best logits with its
    sign changed (N, 1).

    >>> import mycel as ms
    >>> logits = ms.Tensor([[[0.9, 0.1, 0.0]], [[0.0, 0.1, 0.9]], [[0.9, 0.1, 0.0]]])
    >>> ms.ops.ctc_greedy_decoder(logits, ms.Tensor([3], ms.int32))[1].tolist()
    [0, 0]
    """
    name = "ctc_greedy_decoder"
    x = floating(name, inputs)
    if x.ndim != 3:
        raise ShapeError(f"{name}: inputs must be (T, N, C), not {x._type}")
    steps, batch, classes = x.shape
    lengths = _counts(name, "sequence_length", sequence_length, batch)
    value, best = reductions.max(x, 2)
    best = permuted(cast(best, D.int64), (1, 0))
    inside = iota((batch, steps), 1, D.int64) < reshaped(cast(lengths, D.int64), (batch, 1))
    kept = run(E.logical_and, inside, run(E.ne, best, constant_like(classes - 1, best)))
    if merge_repeated:
        before = run(
            S.PAD, take_slice(best, 1, 0, steps - 1), constant_like(-1, best), low=(0, 1), high=(0, 0), interior=(0, 0)
        )
        kept = run(E.logical_and, kept, run(E.ne, best, before))
    order = cumsum(cast(kept, D.int64), 1)
    where = masks.nonzero(kept)
    row = indexed.gather(where, scalar(0, D.int64), 1)
    place = masks.masked_select(order - constant_like(1, order), kept)
    found = run(S.CONCAT, reshaped(row, (row.shape[0], 1)), reshaped(place, (row.shape[0], 1)), axis=1)
    longest = run(
        R.reduce_max, run(R.reduce_sum, cast(kept, D.int64), axes=(1,), keepdims=False), axes=(0,), keepdims=False
    )
    shape = run(S.CONCAT, as_tensor(np.asarray([int(batch)])), reshaped(longest, (1,)), axis=0)
    total = -run(R.reduce_sum, select(inside, permuted(value, (1, 0)), 0.0), axes=(1,), keepdims=True)
    return cast(found, D.int64), masks.masked_select(best, kept), shape, total
