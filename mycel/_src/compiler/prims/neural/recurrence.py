"""Recurrent layers (RNN, LSTM, GRU) over all times as one primitive, and their derivatives.

    recurrence(p, w, b, h, *rest; mode, reverse, masked)
    recurrence_grad(w, h, *rest, *kept, *cts; mode, reverse, masked, given)

`p` (time, batch, gates * hidden) is the part of the gates that does not depend on the state h
(batch, hidden), `w` (gates * hidden, hidden) the weights of the state, and `b` a bias. With q = h @
w.T, split into the gates, and p and q with their biases, a step of a mode is

    tanh, relu   h' = tanh(p + q), or relu
    gru          r, z = sigmoid(p_r + q_r), sigmoid(p_z + q_z)
                 n = tanh(p_n + r * m), m = q_n;  h' = n + z * (h - n)
    lstm         i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of p + q
                 c' = f * c + i * g;  h' = o * tanh(c')

The bias has (hidden,) for each gate; that of a GRU for m, r, z and p_n. `rest` is the state c of an
LSTM, and where `masked` a boolean (time, batch): where it does not hold, states stay. `reverse`
goes from the last time to the first. The results are the states h after each step (time, batch,
hidden), and the last h; then

    lstm         the last c, the states c after each step, and the gates i, f, g, o at all times
    gru          r, z, n, m at all times

which only the derivative reads (`KEPT`). It goes back over the times and gives the cotangents of
what goes into the gates, (time, batch, gates * hidden), from which those of `p` and `w` are single
products over all times. In a GRU there are four such parts, those of m, r, z and p_n: what meets
`w` is the first three, what belongs to `p` the last three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import product, same
from mycel._src.compiler.ir.graph import Graph, Node, Number, input_node, substitute
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import (
    SERVICES,
    Primitive,
    Sample,
    constant,
    get_item,
    need_kind,
    outputs_of,
    register,
    same_dtype,
)
from mycel._src.compiler.prims.control_flow.control import while_loop
from mycel._src.compiler.prims.factors import Factor, named
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.matrix_product import matmul, swap_last
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.foundation.dtype import bool_, int64
from mycel._src.foundation.errors import ShapeError

__all__ = [
    "GATES",
    "KEPT",
    "PARTS",
    "entry_at",
    "given_to_grad",
    "over_time",
    "recurrence",
    "recurrence_grad",
    "steps_of",
]

GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}
# The results that only the derivative reads, by number; and the parts of the gates' cotangents.
KEPT = {"tanh": (), "relu": (), "gru": (2,), "lstm": (3, 4)}
PARTS = {"tanh": 1, "relu": 1, "gru": 4, "lstm": 4}
# Up to so many steps become one straight graph where the definition is asked for.
STRAIGHT = 8


class _Algebra(NamedTuple):
    """The operations of a step, on arrays or on nodes."""

    sigmoid: Any
    tanh: Any
    relu: Any
    matmul: Any
    select: Any
    join: Any
    zero: Any
    positive: Any


def _logistic(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-x))).astype(x.dtype)


_ARRAYS = _Algebra(
    _logistic,
    np.tanh,
    lambda x: np.maximum(x, 0),
    np.matmul,
    np.where,
    lambda parts: np.concatenate(parts, 1),
    np.zeros_like,
    lambda x: x > 0,
)
_NODES = _Algebra(
    lambda x: E.sigmoid(x),
    lambda x: E.tanh(x),
    lambda x: E.maximum(x, 0.0),
    lambda a, b: matmul(a, b),
    E.select,
    lambda parts: S.concat(parts, 1),
    S.zeros_like,
    lambda x: E.gt(x, 0.0),
)


def _cut(x: Any, count: int) -> list[Any]:
    """Return the `count` parts of the columns of an array or node."""
    size = x.shape[1] // count
    if isinstance(x, Node):
        return [S.slice_axis(x, 1, k * size, (k + 1) * size) for k in range(count)]
    return [x[:, k * size : (k + 1) * size] for k in range(count)]


def _step(a: _Algebra, mode: str, p: Any, w: Any, b: Any, h: Any, extra: Any) -> tuple[Any, ...]:
    """Return the next h, and c and the gates that the derivative reads.

    `p`, `w` and the row `b` are the operands at one time, `w` already transposed, `h` is the state
    and `extra` the state c of an LSTM.
    """
    q = a.matmul(h, w)
    if mode == "gru":
        (pr, pz, pn), (qr, qz, qn), (bm, br, bz, bn) = _cut(p, 3), _cut(q, 3), _cut(b, 4)
        r, z, m = a.sigmoid(pr + (qr + br)), a.sigmoid(pz + (qz + bz)), qn + bm
        n = a.tanh((pn + bn) + r * m)
        return n + z * (h - n), a.join([r, z, n, m])
    q = q + b
    if mode == "lstm":
        i, f, g, o = _cut(p + q, 4)
        i, f, g, o = a.sigmoid(i), a.sigmoid(f), a.tanh(g), a.sigmoid(o)
        c = f * extra + i * g
        return o * a.tanh(c), c, a.join([i, f, g, o])
    return ((a.tanh if mode == "tanh" else a.relu)(p + q),)


def _back(a: _Algebra, mode: str, dh: Any, dc: Any, before: Any, now: Any, gates: Any) -> tuple[Any, Any, Any]:
    """Return the cotangents of one step: of its gates, of h beside them, and of c.

    `dh` and `dc` are those of its results. `before` is the state h of a GRU or c of an LSTM before
    the step, `now` h or c after it, and `gates` are what the step kept.
    """
    if mode == "gru":
        r, z, n, m = _cut(gates, 4)
        dn = dh * (1.0 - z) * (1.0 - n * n)
        dz = dh * (before - n) * z * (1.0 - z)
        return a.join([dn * r, dn * m * r * (1.0 - r), dz, dn]), dh * z, None
    if mode == "lstm":
        i, f, g, o = _cut(gates, 4)
        t = a.tanh(now)
        inner = dc + dh * o * (1.0 - t * t)
        parts = [
            inner * g * i * (1.0 - i),
            inner * before * f * (1.0 - f),
            inner * i * (1.0 - g * g),
            dh * t * o * (1.0 - o),
        ]
        return a.join(parts), a.zero(dh), inner * f
    slope = dh * (1.0 - now * now) if mode == "tanh" else a.select(a.positive(now), dh, a.zero(dh))
    return slope, a.zero(dh), None


# Types.


def _infer(
    p: TensorType,
    w: TensorType,
    b: TensorType,
    h: TensorType,
    *rest: TensorType,
    mode: str,
    reverse: bool,
    masked: bool,
) -> tuple[TensorType, ...]:
    if mode not in GATES:
        raise ValueError(f"recurrence: mode must be one of {', '.join(GATES)}, not {mode!r}")
    if (p.rank, w.rank) != (3, 2):
        raise ShapeError(f"recurrence: takes parts (time, batch, gates) and a matrix, not {p} and {w}")
    (time, batch, columns), (rows, hidden) = p.shape, w.shape
    cells = rest[: mode == "lstm"]
    dtype = same_dtype("recurrence", p, w, b, h, *cells)
    need_kind("recurrence", "f", p)
    wanted = [(GATES[mode] * hidden, hidden), (PARTS[mode] * hidden,), *[(batch, hidden)] * (1 + len(cells))]
    wanted += [(time, batch)] * masked
    found = (w, b, h, *rest)
    if len(found) != len(wanted) or (masked and rest[-1].dtype is not bool_):
        raise TypeError(f"recurrence: {mode} takes other operands than {', '.join(map(str, found))}")
    fits = [t.rank == len(s) and all(map(same, t.shape, s)) for t, s in zip(found, wanted)]
    if not all(fits) or not same(columns, rows):
        raise ShapeError(f"recurrence: sizes of {mode} do not fit: {', '.join(map(str, (p, *found)))}")
    states, last = tensor_type((time, batch, hidden), dtype), tensor_type((batch, hidden), dtype)
    kept = tensor_type((time, batch, 4 * hidden), dtype)
    if mode == "lstm":
        return states, last, last, states, kept
    return (states, last, kept) if mode == "gru" else (states, last)


class _Given(NamedTuple):
    """The operands of `recurrence_grad`; None where there is none."""

    w: Any
    h: Any
    c: Any
    mask: Any
    states: Any
    cells: Any
    gates: Any
    ct_states: Any
    ct_h: Any
    ct_c: Any


def given_to_grad(operands: Sequence[Any], mode: str, masked: bool, given: Sequence[bool]) -> _Given:
    """Return the operands of `recurrence_grad` by name.

    `mode`, `masked` and `given` are its parameters.
    """
    rest = list(operands)
    w, h = rest.pop(0), rest.pop(0)
    lstm = mode == "lstm"
    c, mask = rest.pop(0) if lstm else None, rest.pop(0) if masked else None
    states, cells = rest.pop(0), rest.pop(0) if lstm else None
    gates = rest.pop(0) if mode in ("lstm", "gru") else None
    cts = [rest.pop(0) if there else None for there in (*given, False)[:3]]
    return _Given(w, h, c, mask, states, cells, gates, *cts)


def _grad_infer(
    *types: TensorType, mode: str, reverse: bool, masked: bool, given: tuple[bool, ...]
) -> tuple[TensorType, ...]:
    x = given_to_grad(types, mode, masked, given)
    time, batch, hidden = x.states.shape
    for t, s in ((x.ct_states, x.states), (x.cells, x.states), (x.ct_h, x.h), (x.ct_c, x.h), (x.c, x.h)):
        if t is not None and t != s:
            raise ShapeError(f"recurrence_grad: operands must be of the types of the states, {s}, not {t}")
    made = tensor_type((time, batch, PARTS[mode] * hidden), x.states.dtype)
    return (made, x.h, x.h) if mode == "lstm" else (made, x.h)


def _of_rank(types: Sequence[TensorType]) -> list[Any]:
    """Return the labels of values (time, batch, ...) at all times and of states (batch, hidden)."""
    return [(None, "example") if t.rank == 3 else ("example",) for t in types]


def _factors(node: Node) -> tuple[Factor, ...]:
    p, _, _, *states = [i.type for i in node.inputs]
    masks = [(None, "example")] * node.params["masked"]
    labels = [*_of_rank([p]), (), (), *_of_rank(states[: len(states) - len(masks)]), *masks]
    return named(node, labels, _of_rank(node.type))


def _grad_factors(node: Node) -> tuple[Factor, ...]:
    labels = [(), *_of_rank([i.type for i in node.inputs[1:]])]
    if node.params["masked"]:
        labels[3 if node.params["mode"] == "lstm" else 2] = (None, "example")
    return named(node, labels, _of_rank(node.type))


# Definitions: arrays.


def _times(time: int, reverse: bool) -> range:
    return range(time - 1, -1, -1) if reverse else range(time)


def _reference(p: Any, w: Any, b: Any, h: Any, *rest: Any, mode: str, reverse: bool, masked: bool) -> Any:
    (time, batch, _), hidden = p.shape, w.shape[1]
    extra, mask = rest[0] if mode == "lstm" else None, rest[-1] if masked else None
    states = np.zeros((time, batch, hidden), p.dtype)
    cells, gates = np.zeros_like(states), np.zeros((time, batch, 4 * hidden), p.dtype)
    for t in _times(time, reverse):
        new, *kept = _step(_ARRAYS, mode, p[t], w.T, b[None], h, extra)
        if kept:
            gates[t] = kept[-1]
        shown = None if mask is None else mask[t][:, None]
        h = states[t] = new if shown is None else np.where(shown, new, h)
        if mode == "lstm":
            extra = cells[t] = kept[0] if shown is None else np.where(shown, kept[0], extra)
    h = np.array(h)
    if mode == "lstm":
        return states, h, np.array(extra), cells, gates
    return (states, h, gates) if mode == "gru" else (states, h)


def _recurrent_rows(mode: str, w: Any) -> Any:
    """Return the weights with their rows in the order of the cotangents that they meet."""
    hidden = w.shape[1]
    if mode != "gru":
        return w
    if isinstance(w, Node):
        return S.concat([S.slice_axis(w, 0, 2 * hidden, 3 * hidden), S.slice_axis(w, 0, 0, 2 * hidden)], 0)
    return np.concatenate([w[2 * hidden :], w[: 2 * hidden]])


def _grad_reference(*arrays: Any, mode: str, reverse: bool, masked: bool, given: Any) -> Any:
    x = given_to_grad(arrays, mode, masked, given)
    time, batch, hidden = x.states.shape
    w, h, c = _recurrent_rows(mode, x.w), x.h, x.c
    parts = np.zeros((time, batch, PARTS[mode] * hidden), x.states.dtype)
    dh = np.zeros_like(h) if x.ct_h is None else x.ct_h
    dc = np.zeros_like(h) if x.ct_c is None else x.ct_c
    order = list(_times(time, reverse))
    for k in reversed(range(time)):
        t, source = order[k], x.cells if mode == "lstm" else x.states
        before = source[order[k - 1]] if k else c if mode == "lstm" else h
        dh = dh if x.ct_states is None else dh + x.ct_states[t]
        made, beside, inner = _back(_ARRAYS, mode, dh, dc, before, source[t], None if x.gates is None else x.gates[t])
        if x.mask is not None:
            shown = x.mask[t][:, None]
            made, beside = np.where(shown, made, 0), np.where(shown, beside, dh)
            inner = None if inner is None else np.where(shown, inner, dc)
        parts[t] = made
        dh, dc = beside + parts[t][:, : len(w)] @ w, inner
    return (parts, np.array(dh), np.array(dc)) if mode == "lstm" else (parts, np.array(dh))


# Definitions: graphs.


def entry_at(x: Node, t: Any) -> Node:
    """Return the entry of a time, a number or a node."""
    if isinstance(t, int):
        return S.reshape(S.slice_axis(x, 0, t, t + 1), x.shape[1:])
    return I.take(x, t, axis=0, bounds="drop")


def _column(mask: Node) -> Node:
    return S.reshape(mask, (*mask.shape, 1))


def _written(entries: Node, t: Node, value: Node) -> Node:
    update = S.reshape(value, (1, *value.shape))
    return I.scatter_nd(entries, S.reshape(t, (1, 1)), update, mode="set", bounds="drop")


def over_time(
    length: Any, reverse: bool, state: Sequence[Node], fixed: Sequence[Node], empty: Sequence[Node], step: Any
) -> tuple[Node, ...]:
    """Return the final state of a loop over the times, and what its steps give, by time.

    ``step(k, t, state, fixed)`` returns the next state and a list of results, for the number `k` of
    the step and its time `t`. It begins with `state`, and `fixed` stays. `empty` are zeros for all
    times of the results, `length` is the number of times, and `reverse` begins with the last.
    """
    count = len(state)
    if isinstance(length, int) and length <= STRAIGHT:
        found: list[list[Node]] = [[] for _ in empty]
        now = list(state)
        for k, t in enumerate(_times(length, reverse)):
            now, made = step(k, t, now, fixed)
            for entries, value in zip(found, made):
                entries.insert(0 if reverse else k, S.reshape(value, (1, *value.shape)))
        return (*now, *[S.concat(f, 0) if f else e for f, e in zip(found, empty)])
    total = constant(length, int64)

    def body(inputs: Sequence[Node]) -> list[Node]:
        k, now, tables, given = inputs[0], inputs[1 : count + 1], inputs[count + 1 : carried], inputs[carried + 1 :]
        t = E.sub(E.sub(inputs[carried], 1), k) if reverse else k
        after, made = step(k, t, list(now), given)
        return [E.add(k, 1), *after, *[_written(e, t, v) for e, v in zip(tables, made)]]

    carried = 1 + count + len(empty)
    operands = [constant(0, int64), *state, *empty, total, *fixed]
    graphs = []
    for name, build in (("test", lambda x: [E.lt(x[0], x[carried])]), ("body", body)):
        inputs = [input_node(n.type, "carried") for n in operands]
        graphs.append(Graph(inputs, build(inputs), name))
    done = outputs_of(while_loop.node(*operands, test=graphs[0], body=graphs[1], carried=carried))
    return tuple(done[1:])


def _expand(
    p: Node, w: Node, b: Node, h: Node, *rest: Node, mode: str, reverse: bool, masked: bool
) -> tuple[Node, ...]:
    return steps_of(p, swap_last(w), b, h, *rest, mode=mode, reverse=reverse, masked=masked)


def steps_of(
    p: Node, w: Any, b: Node, h: Node, *rest: Node, mode: str, reverse: bool, masked: bool
) -> tuple[Node, ...]:
    """Return the results of a recurrence by its definition, a loop over the times.

    * `p`, `b`, `h`, `rest`, `mode`, `reverse`, `masked`: as for `recurrence`.
    * `w`: the transposed weights; or a function that gives, of the state h, its product with them,
      and then there are no results that only the derivative reads.
    """
    (time, batch, _), hidden = p.shape, h.shape[1]
    lstm, given_product = mode == "lstm", not isinstance(w, Node)
    states = S.full((time, batch, hidden), 0, p.dtype)
    kept = [] if mode in ("tanh", "relu") else [S.full((time, batch, 4 * hidden), 0, p.dtype)]
    algebra = _NODES._replace(matmul=lambda h, _: w(h)) if given_product else _NODES

    def step(k: Any, t: Any, now: list[Node], given: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        weights = None if given_product else given[2]
        new, *more = _step(algebra, mode, entry_at(given[0], t), weights, given[1], now[0], now[-1])
        after = [new, more[0]] if lstm else [new]
        if masked:
            shown = _column(entry_at(given[-1], t))
            after = [E.select(shown, a, b) for a, b in zip(after, now)]
        return after, after[:1] if given_product else [*after, *more[-1:]]

    first = [h, rest[0]] if lstm else [h]
    row = S.reshape(b, (1, b.shape[0]))
    fixed = [p, row, *([] if given_product else [w]), *rest[lstm:]]
    empty = [states] if given_product else [states, states, *kept] if lstm else [states, *kept]
    found = over_time(time, reverse, first, fixed, empty, step)
    if given_product:
        return (found[-1], *found[:-1])
    if lstm:
        last, c, outputs, cells, gates = found
        return outputs, last, c, cells, gates
    return (found[1], found[0], *found[2:])


def _grad_expand(*operands: Node, mode: str, reverse: bool, masked: bool, given: tuple[bool, ...]) -> tuple[Node, ...]:
    x = given_to_grad(operands, mode, masked, given)
    time, batch, hidden = x.states.shape
    lstm, source = mode == "lstm", x.cells if mode == "lstm" else x.states
    rows = _recurrent_rows(mode, x.w)
    # The states before each step, as a whole.
    first = S.reshape(x.c if lstm else x.h, (1, batch, hidden))
    joined = S.concat([source, first] if reverse else [first, source], 0)
    before = S.slice_axis(joined, 0, 1, time + 1) if reverse else S.slice_axis(joined, 0, 0, time)
    fixed = [rows, before, source, *[n for n in (x.gates, x.ct_states, x.mask) if n is not None]]

    def step(k: Any, t: Any, now: list[Node], entries: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        w, earlier, later, *more = entries
        dh, dc = now[0], now[1] if lstm else None
        gates = entry_at(more.pop(0), t) if x.gates is not None else None
        dh = E.add(dh, entry_at(more.pop(0), t)) if x.ct_states is not None else dh
        made, beside, inner = _back(_NODES, mode, dh, dc, entry_at(earlier, t), entry_at(later, t), gates)
        if masked:
            shown = _column(entry_at(more[0], t))
            made, beside = E.select(shown, made, S.zeros_like(made)), E.select(shown, beside, dh)
            inner = None if inner is None else E.select(shown, inner, dc)
        met = S.slice_axis(made, 1, 0, w.shape[0])
        dh = E.add(beside, matmul(met, w))
        return [dh, inner] if inner is not None else [dh], [made]

    state = [S.zeros_like(x.h) if n is None else n for n in ((x.ct_h, x.ct_c) if lstm else (x.ct_h,))]
    empty = S.full((time, batch, PARTS[mode] * hidden), 0, x.states.dtype)
    *ends, parts = over_time(time, not reverse, state, fixed, [empty], step)
    return parts, *ends


# Derivatives.


def _vjp(ct: Any, out: Any, *inputs: Node, mode: str, reverse: bool, masked: bool) -> Sequence[Node | None]:
    params: dict[str, Any] = {"mode": mode, "reverse": reverse, "masked": masked}
    if any(ct[k] is not None for k in KEPT[mode]):
        # Derivatives of derivatives: what is kept is differentiated like any other result.
        free = [input_node(i.type) for i in inputs]
        made = SERVICES.differentiate(_expand(*free, **params), ct, free)
        images = dict(zip(free, inputs))
        return [None if n is None else substitute((n,), images)[0] for n in made]
    w, _, h, *rest = inputs[1:]
    lstm = mode == "lstm"
    cts = [ct[k] for k in range(3 if lstm else 2)]
    operands = [
        w,
        h,
        *(rest[:1] if lstm else []),
        *(rest[-1:] if masked else []),
        out[0],
        *[out[k] for k in KEPT[mode]],
    ]
    given = tuple([c is not None for c in cts])
    whole = recurrence_grad.node(*operands, *[c for c in cts if c is not None], **params, given=given)
    parts, hidden = get_item(whole, 0), w.shape[1]
    dp = S.slice_axis(parts, 2, hidden, 4 * hidden) if mode == "gru" else parts
    db = reduce_sum(parts, axes=(0, 1), keepdims=False)
    result = [dp, _weight_gradient(mode, parts, out[0], h, reverse), db, get_item(whole, 1)]
    if lstm:
        result.append(get_item(whole, 2))
    return (*result, None) if masked else result


def _weight_gradient(mode: str, parts: Node, states: Node, h: Node, reverse: bool) -> Node:
    """Return the cotangent of the weights: one product of all times.

    `parts` are the cotangents of the gates, `states` the states after each step and `h` is the
    first one; `mode` and `reverse` are those of the recurrence.
    """
    time, batch, hidden = states.shape
    rows = GATES[mode] * hidden
    met = S.slice_axis(parts, 2, 0, rows)

    def over(a: Node, b: Node) -> Node:
        count = product(a.shape[:2])
        return matmul(swap_last(S.reshape(a, (count, rows))), S.reshape(b, (count, hidden)))

    first = S.reshape(h, (1, batch, hidden))
    if not isinstance(time, int) or time < 2:
        joined = S.concat([states, first] if reverse else [first, states], 0)
        made = over(met, S.slice_axis(joined, 0, 1, time + 1) if reverse else S.slice_axis(joined, 0, 0, time))
    elif reverse:
        made = E.add(
            over(S.slice_axis(met, 0, 0, time - 1), S.slice_axis(states, 0, 1, time)),
            over(S.slice_axis(met, 0, time - 1, time), first),
        )
    else:
        made = E.add(
            over(S.slice_axis(met, 0, 1, time), S.slice_axis(states, 0, 0, time - 1)),
            over(S.slice_axis(met, 0, 0, 1), first),
        )
    if mode != "gru":
        return made
    return S.concat([S.slice_axis(made, 0, hidden, 3 * hidden), S.slice_axis(made, 0, 0, hidden)], 0)


# Records.


def _samples(grad: bool) -> tuple[Sample, ...]:
    found = []
    for mode, time, batch, hidden, reverse, masked in (
        ("tanh", 3, 2, 3, False, False),
        ("relu", 2, 1, 2, True, False),
        ("gru", 3, 2, 3, False, False),
        ("gru", 10, 1, 2, True, True),
        ("lstm", 3, 2, 3, False, True),
        ("lstm", 10, 1, 2, True, False),
        ("lstm", 0, 2, 3, False, False),
    ):
        lstm, state, all_ = mode == "lstm", (batch, hidden), (time, batch, hidden)
        mask = [np.arange(time * batch).reshape(time, batch) % 3 > 0] if masked else []
        params: dict[str, Any] = {"mode": mode, "reverse": reverse, "masked": masked}
        if grad:
            kept = [(time, batch, 4 * hidden)] if mode in ("lstm", "gru") else []
            shapes: list[Any] = [(GATES[mode] * hidden, hidden), state, *([state] if lstm else []), *mask, all_]
            shapes += [*([all_] if lstm else []), *kept, all_, *([] if masked else [state])]
            params["given"] = (True, not masked, False) if lstm else (True, not masked)
        else:
            shapes = [
                (time, batch, GATES[mode] * hidden),
                (GATES[mode] * hidden, hidden),
                (PARTS[mode] * hidden,),
                state,
            ]
            shapes += [*([state] if lstm else []), *mask]
        # Gates lie between -1 and 1, and so do products of many of them.
        found.append(Sample(tuple(shapes), params, domain=(-0.9, 0.9)))
    return tuple(found)


def _work(node: Node, number: Number) -> int:
    w = node.inputs[node.prim is recurrence]
    time, batch, _ = node.type[0].shape
    return 2 * number(time) * number(batch) * number(w.type.size)


recurrence: Primitive = register(
    Primitive(
        "recurrence",
        _infer,
        _reference,
        _vjp,
        expand=_expand,
        samples=_samples(False),
        dtypes=("float32", "float64"),
        work=_work,
        factors=_factors,
        doc="The states of a recurrent layer after each step, from the part of its gates that does not depend on them.",
    )
)
recurrence_grad: Primitive = register(
    Primitive(
        "recurrence_grad",
        _grad_infer,
        _grad_reference,
        expand=_grad_expand,
        samples=_samples(True),
        dtypes=("float32", "float64"),
        work=_work,
        factors=_grad_factors,
        doc="The cotangents of a recurrence's gates at all times, and of its first states.",
    )
)
