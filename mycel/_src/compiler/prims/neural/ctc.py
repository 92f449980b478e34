"""Connectionist temporal classification: the probability of labellings. Graves et al., 2006.

    ctc(log_probs, targets, inputs, lengths; blank, merge)
    ctc_grad(ct, log_probs, targets, inputs, lengths, total, alpha; blank, merge)

`log_probs` (T, N, C) holds logarithms of probabilities, `targets` (N, L) labels, which are classes,
`inputs` and `lengths` (N,) the numbers of steps and of labels. A labelling l_1 .. l_S stands for
the states b l_1 b l_2 .. l_S b (b the blank). alpha[t, s] is the log-probability of all paths that
are in state s after step t; a step stays, moves on by one, or by two over a blank between different
labels. Unless `merge`, a label does not last over several steps: equal labels in a row are labels
of their own.

The results are the log-probability of each labelling, below NEVER / 2 where there is no path, and
alpha (N, T, 2 L + 1), -inf for what is not reached and beyond the end of a sequence. The first step
is always taken. A large negative number stands for -inf inside, so that no derivative is NaN.

The derivative goes back over the times with beta[t, s], the log-probability of all ways from state
s after step t to an end. The cotangent of log_probs[t, n, c] is that of the result, `ct` (N,),
times the sum of exp(alpha + beta - total) over the states of class c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike, same
from mycel._src.compiler.ir.graph import Node, Number
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import SERVICES, Primitive, Sample, constant, need_kind, register
from mycel._src.compiler.prims.factors import Factor, named
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.neural.recurrence import entry_at, over_time
from mycel._src.compiler.prims.reduce import reduce_max, reduce_sum
from mycel._src.foundation.dtype import int32, int64
from mycel._src.foundation.errors import ShapeError

__all__ = ["NEVER", "ctc", "ctc_grad"]

NEVER = -1e30


def _infer(
    log_probs: TensorType, targets: TensorType, inputs: TensorType, lengths: TensorType, *, blank: int, merge: bool
) -> tuple[TensorType, TensorType]:
    need_kind("ctc", "f", log_probs)
    if log_probs.rank != 3 or targets.rank != 2 or inputs.rank != 1 or lengths.rank != 1:
        raise ShapeError(f"ctc: takes (T, N, C), (N, L), (N,), (N,), not {log_probs}, {targets}, {inputs}, {lengths}")
    if any(t.dtype is not int32 for t in (targets, inputs, lengths)):
        raise TypeError(f"ctc: labels and lengths must be int32, not {targets}, {inputs}, {lengths}")
    time, batch, classes = log_probs.shape
    if not all(same(batch, t.shape[0]) for t in (targets, inputs, lengths)):
        raise ShapeError(f"ctc: {log_probs}, {targets}, {inputs} and {lengths} are of different batches")
    if type(time) is int and time < 1:
        raise ShapeError(f"ctc: there are no steps in {log_probs}")
    if blank < 0 or type(classes) is int and blank >= classes:
        raise ValueError(f"ctc: blank {blank} is not one of {classes} classes")
    alpha = tensor_type((batch, time, 2 * targets.shape[1] + 1), log_probs.dtype)
    return tensor_type((batch,), log_probs.dtype), alpha


def _grad_infer(ct: TensorType, *types: TensorType, blank: int, merge: bool) -> TensorType:
    total, alpha = _infer(*types[:4], blank=blank, merge=merge)
    if ct is not total or types[4] is not total or types[5] is not alpha:
        raise ShapeError(f"ctc_grad: {ct}, {types[4]} and {types[5]} do not belong to {types[0]} and {types[1]}")
    return types[0]


def _factors(node: Node) -> tuple[Factor, ...]:
    """Return the examples as a factor; labels and lengths are filled up by 0, to be in range."""
    given = [(None, "example"), ("example",), ("example",), ("example",)]
    fill: tuple[Any, ...] = (None, 0, 0, 0)
    if node.prim is ctc:
        return named(node, given, [("example",)] * 2, padding={"example": fill})
    labels = [("example",), *given, ("example",), ("example",)]
    return named(node, labels, [(None, "example")], padding={"example": (None, *fill, None, None)})


# The definition in NumPy.


def _states(targets: Any, blank: int, merge: bool) -> tuple[Any, Any, Any]:
    """Return the classes of the states, which may be entered over a blank, and which last."""
    track = np.full((len(targets), 2 * targets.shape[1] + 1), blank, np.int32)
    track[:, 1::2] = targets
    says = track != blank
    skips = says.copy()
    if merge:
        skips[:, 2:] &= track[:, 2:] != track[:, :-2]
    return track, skips, np.ones_like(says) if merge else ~says


def _shifted(x: Any, steps: int) -> Any:
    """Return x[s - steps], or NEVER where there is none."""
    made = np.full_like(x, NEVER)
    if steps > 0:
        made[:, steps:] = x[:, :-steps]
    else:
        made[:, :steps] = x[:, -steps:]
    return made


def _log_sum(*values: Any) -> Any:
    top = np.maximum.reduce(values)
    return top + np.log(np.add.reduce([np.exp(v - top) for v in values]))


def _final(states: int, lengths: Any) -> Any:
    place, last = np.arange(states)[None], 2 * lengths[:, None]
    return (place == last) | (place == last - 1)


def _emitted(log_probs: Any, track: Any) -> Any:
    found = np.take_along_axis(log_probs, np.broadcast_to(track, (len(log_probs), *track.shape)), 2)
    return np.maximum(found, log_probs.dtype.type(NEVER))


def _reference(log_probs: Any, targets: Any, inputs: Any, lengths: Any, *, blank: int, merge: bool) -> Any:
    track, skips, lasts = _states(targets, blank, merge)
    time, states = len(log_probs), track.shape[1]
    emitted = _emitted(log_probs, track)
    never = log_probs.dtype.type(NEVER)
    place = np.arange(states)[None]
    begin = (place < 2) & ((lengths[:, None] != 0) | (place == 0))
    alpha = np.where(begin, emitted[0], never)
    rows = [alpha]
    with np.errstate(all="ignore"):
        for t in range(1, time):
            ways = np.where(lasts, alpha, never), _shifted(alpha, 1), np.where(skips, _shifted(alpha, 2), never)
            after = np.maximum(_log_sum(*ways) + emitted[t], never)
            alpha = np.where(t < inputs[:, None], after, alpha)
            rows.append(alpha)
        ends = np.where(_final(states, lengths), alpha, never)
        top = ends.max(1, keepdims=True)
        total = (top + np.log(np.exp(ends - top).sum(1, keepdims=True)))[:, 0]
    table = np.stack(rows, 1)
    times = np.arange(time)[None, :, None]
    reached = (place <= 2 * lengths[:, None])[:, None] & (table > never / 2) & (times < inputs[:, None, None])
    return total.astype(log_probs.dtype), np.where(reached, table, -np.inf).astype(log_probs.dtype)


def _grad_reference(
    ct: Any,
    log_probs: Any,
    targets: Any,
    inputs: Any,
    lengths: Any,
    total: Any,
    alpha: Any,
    *,
    blank: int,
    merge: bool,
) -> Any:
    track, skips, lasts = _states(targets, blank, merge)
    emitted, never = _emitted(log_probs, track), log_probs.dtype.type(NEVER)
    time, batch = log_probs.shape[:2]
    last = np.minimum(np.maximum(inputs, 1), time)[:, None] - 1
    final = np.where(_final(track.shape[1], lengths), log_probs.dtype.type(0), never)
    made, rows = np.zeros_like(log_probs), np.arange(batch)[:, None]
    after = np.full_like(final, never)
    with np.errstate(all="ignore"):
        for t in range(time - 1, -1, -1):
            two = np.where(_shifted(skips.astype(final.dtype), -2) > 0, _shifted(after, -2), never)
            beta = _log_sum(np.where(lasts, after, never), _shifted(after, -1), two)
            beta = np.where(t == last, final, beta)
            here = (t <= last) & ~(total[:, None] <= never / 2)
            share = np.where(here, np.exp(alpha[:, t] + beta - total[:, None]) * ct[:, None], 0)
            np.add.at(made[t], (rows, track), share)
            after = np.maximum(beta + emitted[t], never)
    return made


# The definition in primitives.


class _Track:
    """The states of the labellings as nodes.

    `wide` is a node of the floating type, `targets`, `lengths`, `blank` and `merge` are those of
    `ctc`.
    """

    def __init__(self, wide: Node, targets: Node, lengths: Node, blank: int, merge: bool) -> None:
        batch, labels = targets.shape
        states = 2 * labels + 1
        self.shape, self.dtype = (batch, states), wide.dtype
        pairs = S.concat([S.full((batch, labels, 1), blank, int32), S.reshape(targets, (batch, labels, 1))], 2)
        ends = S.full((batch, 1), blank, int32)
        self.classes = S.concat([S.reshape(pairs, (batch, 2 * labels)), ends], 1)
        self.place = S.iota(shape=self.shape, axis=1, dtype=int32)
        says = E.ne(self.classes, constant(blank, int32))
        self.skips, self.lasts = says, None if merge else E.logical_not(says)
        if merge:
            self.skips = E.logical_and(says, E.ne(self.classes, self.moved(self.classes, 2, blank)))
        self.last = E.mul(S.reshape(lengths, (batch, 1)), constant(2, int32))
        self.final = E.logical_or(E.eq(self.place, self.last), E.eq(self.place, E.sub(self.last, 1)))
        self.empty = E.eq(self.last, constant(0, int32))

    def moved(self, x: Node, steps: int, value: Any) -> Node:
        """Return x[s - steps], or a value where there is none."""
        states = self.shape[1]
        count = abs(steps)
        if type(states) is int:
            count = min(count, states)
        edge = S.full((self.shape[0], count), value, x.dtype)
        if steps > 0:
            return S.concat([edge, S.slice_axis(x, 1, 0, states - count)], 1)
        return S.concat([S.slice_axis(x, 1, count, states), edge], 1)

    def emitted(self, log_probs: Node) -> Node:
        """Return what each state says at each time (T, N, S)."""
        shape = (log_probs.shape[0], *self.shape)
        found = I.take_along(log_probs, S.broadcast_to(self.classes, shape), axis=2)
        return E.maximum(found, constant(NEVER, self.dtype))

    def or_never(self, condition: Node | None, x: Node) -> Node:
        return x if condition is None else E.select(condition, x, S.full(self.shape, NEVER, self.dtype))


def _joined(*values: Node) -> Node:
    """Return the logarithm of the sum of the values' exponentials."""
    top = values[0]
    for v in values[1:]:
        top = E.maximum(top, v)
    top = E.stop_gradient(top)
    total = E.exp(E.sub(values[0], top))
    for v in values[1:]:
        total = E.add(total, E.exp(E.sub(v, top)))
    return E.add(top, E.log(total))


def _expand(
    log_probs: Node, targets: Node, inputs: Node, lengths: Node, *, blank: int, merge: bool
) -> tuple[Node, Node]:
    track = _Track(log_probs, targets, lengths, blank, merge)
    (time, batch, _), states = log_probs.shape, track.shape[1]
    never, emitted = constant(NEVER, log_probs.dtype), track.emitted(log_probs)
    begin = E.logical_and(
        E.lt(track.place, constant(2, int32)),
        E.logical_not(E.logical_and(track.empty, E.gt(track.place, constant(0, int32)))),
    )
    ends = E.cast(S.reshape(inputs, (batch, 1)), dtype=int64)

    def step(k: Any, t: Any, now: list[Node], given: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        said, skips, ends, begin, *lasts = given
        alpha, says = now[0], entry_at(said, t)
        two = track.or_never(skips, track.moved(alpha, 2, NEVER))
        after = E.add(
            _joined(track.or_never(lasts[0] if lasts else None, alpha), track.moved(alpha, 1, NEVER), two), says
        )
        at = constant(t, int64) if isinstance(t, int) else t
        after = E.select(E.lt(at, ends), E.maximum(after, never), alpha)
        first = E.eq(at, constant(0, int64))
        alpha = E.select(S.broadcast_to(first, track.shape), track.or_never(begin, says), after)
        return [alpha], [alpha]

    whole = (batch, states)
    fixed = [emitted, track.skips, S.broadcast_to(ends, whole), begin, *([] if track.lasts is None else [track.lasts])]
    empty = S.full((time, *whole), 0, log_probs.dtype)
    start = S.full(whole, NEVER, log_probs.dtype)
    alpha, rows = over_time(time, False, [start], fixed, [empty], step)
    ways = track.or_never(track.final, alpha)
    top = E.stop_gradient(reduce_max(ways, axes=(1,), keepdims=True))
    total = E.add(E.log(reduce_sum(E.exp(E.sub(ways, top)), axes=(1,), keepdims=True)), top)
    shape = (time, batch, states)
    reached = E.logical_and(S.broadcast_to(E.le(track.place, track.last), shape), E.gt(rows, NEVER / 2))
    times = S.iota(shape=shape, axis=0, dtype=int64)
    reached = E.logical_and(reached, E.lt(times, S.broadcast_to(ends, shape)))
    table = E.select(reached, rows, S.full(shape, -float("inf"), log_probs.dtype))
    return S.reshape(total, (batch,)), S.transpose(table, (1, 0, 2))


def _grad_expand(
    ct: Node,
    log_probs: Node,
    targets: Node,
    inputs: Node,
    lengths: Node,
    total: Node,
    alpha: Node,
    *,
    blank: int,
    merge: bool,
) -> Node:
    track = _Track(log_probs, targets, lengths, blank, merge)
    time, batch, classes = log_probs.shape
    whole, dtype = track.shape, log_probs.dtype
    never = constant(NEVER, dtype)
    enters = track.moved(track.skips, -2, False)
    last = E.maximum(E.cast(inputs, dtype=int64), constant(1, int64))
    last = E.sub(E.minimum(last, constant(time, int64)), constant(1, int64))
    final = track.or_never(track.final, S.full(whole, 0, dtype))
    known = E.logical_not(E.le(total, constant(NEVER / 2, dtype)))
    columns = [S.broadcast_to(S.reshape(n, (batch, 1)), whole) for n in (last, total, known, ct)]
    table = S.transpose(alpha, (1, 0, 2))

    def step(k: Any, t: Any, now: list[Node], given: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        said, alphas, enters, final, last, total, known, ct, track_classes, *lasts = given
        after = now[0]
        two = track.or_never(enters, track.moved(after, -2, NEVER))
        beta = _joined(track.or_never(lasts[0] if lasts else None, after), track.moved(after, -1, NEVER), two)
        at = S.broadcast_to(constant(t, int64) if isinstance(t, int) else t, whole)
        beta = E.select(E.eq(at, last), final, beta)
        here = E.logical_and(E.le(at, last), known)
        zero = S.full(whole, 0, dtype)
        share = E.exp(E.select(here, E.sub(E.add(entry_at(alphas, t), beta), total), zero))
        share = E.select(here, E.mul(share, ct), zero)
        made = I.put_along(S.full((batch, classes), 0, dtype), track_classes, share, axis=1, mode="add")
        return [E.maximum(E.add(beta, entry_at(said, t)), never)], [made]

    fixed = [track.emitted(log_probs), table, enters, final, *columns, track.classes]
    fixed += [] if track.lasts is None else [track.lasts]
    empty = S.full((time, batch, classes), 0, dtype)
    _, made = over_time(time, True, [S.full(whole, NEVER, dtype)], fixed, [empty], step)
    return made


# Rules.


def _vjp(
    cts: Any, outs: Any, log_probs: Node, targets: Node, inputs: Node, lengths: Node, **params: Any
) -> Sequence[Node | None]:
    ct, of_alpha = cts
    operands = (targets, inputs, lengths)
    if of_alpha is not None:
        fresh = E.identity(log_probs)
        found = SERVICES.differentiate(list(_expand(fresh, *operands, **params)), list(cts), [fresh])
        return [found[0], None, None, None]
    return [ctc_grad(ct, log_probs, *operands, *outs, **params), None, None, None]


def _as_one_batch(size: DimLike, values: Sequence[Node], axes: Any, places: Sequence[int]) -> list[Node]:
    """Return values whose batches of examples, `size` of them, are one batch with their own.

    `axes` say where the examples lie in `values`, `places` where the batch does.
    """
    made = []
    for x, axis, place in zip(values, axes, places):
        x = S.broadcast_to(x, (size, *x.shape)) if axis is None else S.move_axis(x, axis, 0)
        x = S.move_axis(x, 0, place)
        shape = x.shape
        made.append(S.reshape(x, (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])))
    return made


def _parted(size: DimLike, x: Node, place: int) -> Node:
    shape = x.shape
    return S.reshape(x, (*shape[:place], size, shape[place] // size, *shape[place + 1 :]))


def _batch(size: DimLike, values: Sequence[Node], axes: Any, **params: Any) -> Any:
    made = ctc.outputs(*_as_one_batch(size, values, axes, (1, 0, 0, 0)), **params)
    return tuple([_parted(size, x, 0) for x in made]), (0, 0)


def _grad_batch(size: DimLike, values: Sequence[Node], axes: Any, **params: Any) -> Any:
    return _parted(size, ctc_grad(*_as_one_batch(size, values, axes, (0, 1, 0, 0, 0, 0, 0)), **params), 1), 1


# Records.


def _samples(grad: bool) -> tuple[Sample, ...]:
    found = []
    for time, batch, classes, labels, blank, merge in (
        (4, 2, 3, 2, 0, True),
        (3, 2, 4, 1, 3, False),
        (12, 3, 5, 4, 1, True),
        (5, 1, 2, 0, 0, True),
        (3, 0, 3, 2, 0, True),
    ):
        numbers = np.arange(batch * labels, dtype=np.int32).reshape(batch, labels)
        others = np.array([c for c in range(classes) if c != blank], np.int32)
        inputs = np.array([max(time - k, 1) for k in range(batch)], np.int32)
        lengths = np.array([max(labels - k, 0) for k in range(batch)], np.int32)
        shapes: tuple[Any, ...] = ((time, batch, classes), others[numbers % len(others)], inputs, lengths)
        if grad:
            shapes = ((batch,), *shapes, (batch,), (batch, time, 2 * labels + 1))
        kinds = tuple(["int32" if isinstance(s, np.ndarray) else "*" for s in shapes])
        found.append(
            Sample(shapes, {"blank": blank, "merge": merge}, domain=(-1.5, -0.5), dtypes=kinds, differentiable=grad)
        )
    return tuple(found)


def _work(node: Node, number: Number) -> int:
    log_probs, targets = (node.inputs[k + (node.prim is ctc_grad)].type for k in range(2))
    time, batch, _ = log_probs.shape
    return 60 * number(time) * number(batch) * (2 * number(targets.shape[1]) + 1)


ctc: Primitive = register(
    Primitive(
        "ctc",
        _infer,
        _reference,
        _vjp,
        _batch,
        _expand,
        samples=_samples(False),
        dtypes=("float32", "float64"),
        work=_work,
        factors=_factors,
        doc="The log-probability of each labelling, and of all paths to each of its states after each step.",
    )
)
ctc_grad: Primitive = register(
    Primitive(
        "ctc_grad",
        _grad_infer,
        _grad_reference,
        None,
        _grad_batch,
        _grad_expand,
        samples=_samples(True),
        dtypes=("float32", "float64"),
        work=_work,
        factors=_factors,
        doc="The cotangent of the logarithms of probabilities by that of their labellings' log-probabilities.",
    )
)
