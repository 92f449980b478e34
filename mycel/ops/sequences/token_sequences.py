"""Sequences of words: the distance between two, and words that would repeat earlier ones."""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.fused import graph_of
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.ops._operands import (
    cast_index,
    constant_like,
    finfo,
    floating,
    iota,
    operand,
    reshaped,
    run,
    select,
    sizes_of,
    take_slice,
)
from mycel.ops.array import concat
from mycel.ops.creation import full, ones, zeros
from mycel.ops.gather_scatter import tensor_scatter_elements
from mycel.ops.sorting import argsort, cummin, searchsorted

__all__ = ["edit_distance", "no_repeat_ngram"]


def _sequences(indices: Any, values: Any, lead: tuple[int, ...], longest: int) -> tuple[Tensor, Tensor]:
    """Return a sparse tensor as one row of words for each sequence, in the order of their places,
    and the lengths (N,).
    """
    at, words = cast_index("EditDistance", indices), operand("EditDistance", values)
    if at.ndim != 2 or at.shape[1] != len(lead) + 1 or words.shape != at.shape[:1]:
        raise ShapeError(
            f"EditDistance: indices and values must be (N, {len(lead) + 1}) and (N,), not {at._type} and {words._type}"
        )
    count, groups = at.shape[0], 1
    number = zeros((count,), D.int64)
    for axis, size in enumerate(lead):
        number = number * size + reshaped(take_slice(at, 1, axis, axis + 1), (count,))
        groups *= size
    order = argsort(number * (longest + 1) + reshaped(take_slice(at, 1, len(lead), len(lead) + 1), (count,)))
    number = run(I.take, number, order, axis=0)
    starts = searchsorted(number, iota((groups,), 0, D.int64))
    place = iota((count,), 0, D.int64) - run(I.take, starts, number, axis=0)
    lengths = run(I.take_add, ones((count,), D.int64), number, axis=0, size=groups)
    rows = zeros((groups * longest,), words.dtype)
    goal = reshaped(number * longest + place, (count, 1))
    rows = run(I.scatter_nd, rows, goal, run(I.take, words, order, axis=0), mode="set")
    return reshaped(rows, (groups, longest)), lengths


def edit_distance(
    hypothesis_indices: Any,
    hypothesis_values: Any,
    hypothesis_shape: Any,
    truth_indices: Any,
    truth_values: Any,
    truth_shape: Any,
    normalize: bool = True,
) -> Tensor:
    """Return the number of insertions, deletions and replacements that lead from each sequence of
    one sparse tensor to that of another; Levenshtein, 1966.

    `hypothesis_indices` and `truth_indices` are (N, R), `hypothesis_values` and `truth_values`
    (N,). `hypothesis_shape` and `truth_shape`, whose values are needed, say how many sequences
    there are and how long they may be. The result is float32 and has R - 1 dimensions. With
    `normalize` it is divided by the length of the true sequence: inf where that is empty and the
    other is not, 0 where both are.

    >>> import mycel as ms
    >>> from mycel.ops.sequences.token_sequences import edit_distance
    >>> one = (ms.Tensor([[0, 0], [0, 1]]), ms.Tensor([1, 2]), (1, 2))
    >>> edit_distance(*one, ms.Tensor([[0, 0]]), ms.Tensor([2]), (1, 1)).tolist()
    [1.0]
    """
    sizes = [list(sizes_of("EditDistance", "a shape", s)) for s in (hypothesis_shape, truth_shape)]
    if len(sizes[0]) != len(sizes[1]) or not sizes[0]:
        raise ShapeError(f"EditDistance: the two shapes must have equally many sizes, not {sizes[0]} and {sizes[1]}")
    lead = tuple(max(m, n) for m, n in zip(sizes[0][:-1], sizes[1][:-1]))
    longest = [max(s[-1], 1) for s in sizes]
    said, said_lengths = _sequences(hypothesis_indices, hypothesis_values, lead, longest[0])
    true, true_lengths = _sequences(truth_indices, truth_values, lead, longest[1])
    groups = said.shape[0]
    first = iota((groups, longest[1] + 1), 1, D.int64)
    ends = reshaped(said_lengths, (groups, 1))

    def body(i: Tensor, row: Tensor, kept: Tensor, said: Tensor, true: Tensor, ends: Tensor) -> Any:
        word = run(I.take, said, reshaped(i, (1,)), axis=1, bounds="drop")
        other = cast(run(E.ne, word, true), D.int64)
        begin, before = row + scalar(1, D.int64), take_slice(row, 1, 0, longest[1])
        replaced = run(E.minimum, take_slice(begin, 1, 1, longest[1] + 1), before + other)
        best = concat((take_slice(begin, 1, 0, 1), replaced), 1)
        place = iota((1, longest[1] + 1), 1, D.int64)
        # d[j] = min over k <= j of best[k] + j - k.
        row = cummin(best - place, 1)[0] + place
        i = i + scalar(1, D.int64)
        return i, row, select(run(E.eq, ends, i), row, kept)

    def test(i: Tensor, *rest: Tensor) -> Any:
        return (i < scalar(longest[0], D.int64),)

    operands = (zeros((), D.int64), first, first, said, true, ends)
    types = [x._type for x in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    table: Any = eager.apply(control.while_loop, *operands, **graphs, carried=3)
    last = run(I.take_along, table[2], reshaped(true_lengths, (groups, 1)), axis=1)
    found = cast(reshaped(last, (groups,)), D.float32)
    if normalize:
        length = cast(true_lengths, D.float32)
        both = run(
            E.logical_and, run(E.eq, found, constant_like(0, found)), run(E.eq, length, constant_like(0, length))
        )
        found = select(both, 0.0, found / select(both, 1.0, length))
    return reshaped(found, lead)


def no_repeat_ngram(state_seq: Any, log_probs: Any, ngram_size: int = 1) -> Tensor:
    """Return `log_probs` (batch, beams, words) with the type's lowest number for words that would
    repeat a run of `ngram_size` words.

    The runs are those of `state_seq` (batch, beams, m), the words so far.

    >>> import mycel as ms
    >>> from mycel.ops.sequences.token_sequences import no_repeat_ngram
    >>> (no_repeat_ngram(ms.Tensor([[[1, 2, 1]]]), ms.ops.zeros((1, 1, 3)), 2) < 0).tolist()
    [[[False, False, True]]]
    """
    name = "NoRepeatNGram"
    said, x = cast_index(name, state_seq), floating(name, log_probs)
    if said.ndim != 3 or x.ndim != 3 or said.shape[:2] != x.shape[:2]:
        raise ShapeError(f"{name}: takes (batch, beams, m) and (batch, beams, words), not {said._type} and {x._type}")
    length = said.shape[2]
    if not 0 < ngram_size <= length:
        raise ValueError(f"{name}: ngram_size must lie in [1, {length}], the length of state_seq, not {ngram_size}")
    count, before = length - ngram_size + 1, ngram_size - 1
    same = full((*said.shape[:2], count), True, dtype=D.bool_)
    for k in range(before):
        last = take_slice(said, 2, length - before + k, length - before + k + 1)
        same = run(E.logical_and, same, run(E.eq, take_slice(said, 2, k, k + count), last))
    ends = take_slice(said, 2, before, length)
    marks = tensor_scatter_elements(zeros(x.shape, D.int32), ends, cast(same, D.int32), 2, "add")
    lowest = -float(finfo(x.dtype.numpy).max)
    return select(run(E.gt, marks, constant_like(0, marks)), constant_like(lowest, x), x)
