"""Connectionist temporal classification: the loss, and greedy decoding. Graves et al., 2006.

What a labelling's probability is, and its derivative, is in `prims.neural.ctc`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.neural.ctc import NEVER, ctc
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast, scalar
from mycel.ops import gather_scatter, masked_selection
from mycel.ops import reduction as reductions
from mycel.ops._operands import (
    broadcast,
    cast_index,
    constant_like,
    floating,
    iota,
    numbers_of,
    operand,
    permuted,
    reshaped,
    run,
    select,
    take_slice,
    wide,
)
from mycel.ops.sorting import cumsum

__all__ = ["ctc_greedy_decoder", "ctc_loss"]


def log_likelihoods(
    log_probs: Tensor, targets: Tensor, inputs: Tensor, lengths: Tensor, blank: int, merge: bool = True
) -> Any:
    """Return the log-probability of each labelling in `targets` (N, S), and alpha (N, T, 2 S + 1).

    `log_probs` is (T, N, C); `inputs` and `lengths` (N,) are the numbers of steps and of labels,
    and `blank` is the class of blanks. Unless `merge`, a label does not last over several steps:
    equal labels in a row are labels of their own.
    """
    classes = log_probs.shape[2]
    batch, labels = targets.shape
    # Labels beyond a target's length are never reached, but have to be classes.
    counted = iota((batch, labels), 1, D.int32) < reshaped(cast(lengths, D.int32), (batch, 1))
    known = select(counted, targets, constant_like(blank, targets))
    known = cast(run(I.checked, known, axis=2, size=classes, bounds="front"), D.int32)
    return run(ctc, log_probs, known, cast(inputs, D.int32), cast(lengths, D.int32), blank=int(blank), merge=merge)


def _counts(name: str, what: str, value: Any, batch: Any) -> Tensor:
    """Return lengths (batch,) from an argument that may be one for all."""
    found = operand(name, value) if isinstance(value, Tensor) else numbers_of(name, what, value)
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
    """Return the loss of connectionist temporal classification (Graves et al., 2006).

    Args:
        log_probs (Tensor): The logarithms of probabilities, (T, N, C).
        targets (Tensor): Labels other than `blank`, (N, S), or one after the other (sum of
            lengths,).
        input_lengths (Tensor): The lengths of the sequences, (N,).
        target_lengths (Tensor): The lengths of the targets, (N,).
        blank (int): The class of no label. Default: 0.
        reduction (str): "mean" (of each loss over its target's length, at least 1), "sum" or
            "none". Default: "mean".
        zero_infinity (bool): Whether a target that no path gives has the loss 0, without
            derivative, instead of inf. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The loss, and alpha, (N, T, 2 S + 1), -inf beyond the end of a
            sequence.

    Examples:
        >>> import mycel as ms
        >>> probabilities = ms.ops.log(ms.Tensor([[[0.5, 0.5]], [[0.5, 0.5]]]))
        >>> loss, _ = ms.ops.ctc_loss(probabilities, ms.Tensor([[1]]), ms.Tensor([2]), ms.Tensor([
        ...     1]))
        >>> round(ms.ops.exp(-loss).item(), 4)
        0.75
    """
    arguments.integer("ctc_loss", "blank", blank)
    arguments.flag("ctc_loss", "zero_infinity", zero_infinity)
    name = "ctc_loss"
    x = floating(name, log_probs)
    arguments.choice(name, "reduction", reduction, ("mean", "sum", "none"))
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

    return _loss(x, labels, inputs, lengths, blank, reduction, zero_infinity)


@fused
def _loss(
    x: Tensor, labels: Tensor, inputs: Tensor, lengths: Tensor, blank: int, reduction: str, zero_infinity: bool
) -> tuple[Tensor, Tensor]:
    """Return what `ctc_loss` does, for checked arguments.

    They are those of `ctc_loss`, with targets (N, S).
    """
    batch = x.shape[1]
    likelihood, alpha = log_likelihoods(wide(x), labels, inputs, lengths, blank)
    impossible = likelihood < NEVER / 2
    each = cast(select(impossible, 0.0 if zero_infinity else float("inf"), -likelihood), x.dtype)
    if reduction == "mean":
        share = cast(run(E.maximum, lengths, constant_like(1, lengths)), x.dtype)
        each = run(R.reduce_sum, each / share, axes=(0,), keepdims=False) / batch
    elif reduction == "sum":
        each = run(R.reduce_sum, each, axes=(0,), keepdims=False)
    return each, cast(alpha, x.dtype)


def _rows(labels: Tensor, lengths: Tensor, batch: Any) -> Tensor:
    """Return targets that lie one after the other as rows, each as long as all of them together."""
    ends = cumsum(cast(lengths, D.int64), 0)
    begins = reshaped(ends - cast(lengths, D.int64), (batch, 1))
    size = labels.shape[0]
    at = begins + iota((batch, size), 1, D.int64)
    return gather_scatter.gather(labels, run(E.minimum, at, constant_like(size - 1, at)), 0)


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
    operand("ctc_greedy_decoder", sequence_length)
    arguments.flag("ctc_greedy_decoder", "merge_repeated", merge_repeated)
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
    where = masked_selection.nonzero(kept)
    row = gather_scatter.gather(where, scalar(0, D.int64), 1)
    place = masked_selection.masked_select(order - constant_like(1, order), kept)
    found = run(S.CONCAT, reshaped(row, (row.shape[0], 1)), reshaped(place, (row.shape[0], 1)), axis=1)
    longest = run(
        R.reduce_max, run(R.reduce_sum, cast(kept, D.int64), axes=(1,), keepdims=False), axes=(0,), keepdims=False
    )
    shape = run(S.CONCAT, as_tensor(np.asarray([int(batch)])), reshaped(longest, (1,)), axis=0)
    total = -run(R.reduce_sum, select(inside, permuted(value, (1, 0)), 0.0), axes=(1,), keepdims=True)
    return cast(found, D.int64), masked_selection.masked_select(best, kept), shape, total
