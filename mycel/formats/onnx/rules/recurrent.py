"""ONNX's recurrent layers, as Mycel's primitive where it fits, else step by step.

A layer with the default activations, without peepholes and limits, is one recurrence for each
direction, in which the number of steps may be open; a GRU only where its reset comes after the
product. Gates lie in another order in ONNX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel import ops
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import (
    Operation,
    apply,
    as_type,
    broadcast,
    reshaped,
    rule,
    same,
    scalar,
    select,
    sliced,
    transposed,
)
from mycel.formats.onnx.rules import elementwise as acts
from mycel.ops.sequences.recurrence import layer as recurrent_layer

__all__: list[str] = []
Function = Callable[[Tensor], Tensor]
_DEFAULTS = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}
# Our gates by the places that they have in ONNX.
_GATES = {"tanh": (0,), "relu": (0,), "gru": (1, 0, 2), "lstm": (0, 2, 3, 1)}


def _activation(op: Operation, name: str, alpha: Any, beta: Any) -> Function:
    """Return an activation by its name; `alpha` and `beta` are its numbers or None."""

    def given(value: Any, default: float) -> float:
        return default if value is None else float(value)

    known: dict[str, Function] = {
        "relu": lambda x: ops.relu(x),
        "tanh": lambda x: apply(E.tanh, x),
        "sigmoid": lambda x: apply(E.sigmoid, x),
        "affine": lambda x: apply(E.add, apply(E.mul, x, scalar(given(alpha, 1), x)), scalar(given(beta, 0), x)),
        "leakyrelu": lambda x: acts.leaky(x, given(alpha, 0.01)),
        "thresholdedrelu": lambda x: acts.thresholded(x, given(alpha, 1.0)),
        "scaledtanh": lambda x: apply(
            E.mul, apply(E.tanh, apply(E.mul, x, scalar(given(beta, 1), x))), scalar(given(alpha, 1), x)
        ),
        "hardsigmoid": lambda x: acts.hard_sigmoid(x, given(alpha, 0.2), given(beta, 0.5)),
        "elu": lambda x: acts.elu(x, given(alpha, 1.0)),
        "softsign": lambda x: apply(E.div, x, apply(E.add, scalar(1, x), apply(E.abs_, x))),
        "softplus": lambda x: acts.softplus(x),
    }
    if name.lower() not in known:
        raise op.refused(f"the activation {name!r}; {sorted(known)} are supported")
    return known[name.lower()]


def _functions(op: Operation, default: list[str], directions: int) -> list[list[Function]]:
    """Return the activations of each direction."""
    names = op.get("activations") or default * directions
    alphas, betas = list(op.get("activation_alpha") or []), list(op.get("activation_beta") or [])
    wants = ("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu")
    wants_beta = ("affine", "scaledtanh", "hardsigmoid")
    found: list[Function] = []
    for name in names:
        low = name.lower()
        alpha = alphas.pop(0) if low in wants and alphas else None
        beta = betas.pop(0) if low in wants_beta and betas else None
        found.append(_activation(op, name, alpha, beta))
    each = len(default)
    if len(found) != each * directions:
        raise op.wrong(f"{len(found)} activations for {directions} directions of {each}")
    return [found[i * each : (i + 1) * each] for i in range(directions)]


def _part(x: Tensor, axis: int, number: int, size: Any) -> Tensor:
    return sliced(x, axis, number * size, (number + 1) * size)


def _row(x: Tensor, number: int) -> Tensor:
    return reshaped(sliced(x, 0, number, number + 1), x.shape[1:])


def _product(x: Tensor, w: Tensor) -> Tensor:
    return ops.matmul(x, transposed(w, (1, 0)))


def _layer(
    op: Operation, x: Tensor, w: Tensor, r: Tensor, b: Any, lengths: Any, states: Any, step: Any
) -> tuple[Tensor, list[Tensor]]:
    """Return the states at all times of all directions, and the last ones.

    `x` is (time, batch, size); `w`, `r` and `b` have an axis of directions in front, `lengths` (or
    None) are those of examples, `states` the first states, and ``step(direction, x, states, r, b,
    limit)`` gives the next states of a node `op`.
    """
    direction = op.get("direction", "forward")
    if direction not in _TURNED:
        raise op.wrong(f"direction must be one of {', '.join(_TURNED)}, not {direction!r}")
    turned = _TURNED[direction]
    if len(turned) != w.shape[0]:
        raise op.wrong(f"direction={direction!r} has {len(turned)} directions, and the weights {w.shape[0]}")
    time, batch = x.shape[:2]
    hidden = r.shape[2]
    mode = _mode(op)
    if mode is not None:
        return _whole(mode, turned, x, w, r, b, lengths, states)
    if not isinstance(time, int):
        raise op.refused(
            "a number of steps that is open, with activations, limits or gates that are not the default ones; "
            "call it with one length, or write those in the graph"
        )
    limit = op.get("clip")
    outputs, ends = [], []
    for number, back in enumerate(turned):
        weight, again = _row(w, number), _row(r, number)
        bias = None if b is None else _row(b, number)
        now = [broadcast(scalar(0, x), (batch, hidden)) if s is None else _row(s, number) for s in states]
        line: list[Any] = [None] * time
        for t in range(time - 1, -1, -1) if back else range(time):
            given = _product(_row(x, t), weight)
            new = step(number, given, now, again, bias, limit)
            if lengths is not None:
                kept = reshaped(apply(E.lt, same(t, D.int64), as_type(lengths, D.int64)), (batch, 1))
                line[t] = select(kept, new[0], scalar(0, x))
                new = [select(kept, a, o) for a, o in zip(new, now)]
            else:
                line[t] = new[0]
            now = new
        outputs.append(apply(S.CONCAT, *[reshaped(y, (1, 1, *y.shape)) for y in line], axis=0))
        ends.append(now)
    whole = outputs[0] if len(outputs) == 1 else apply(S.CONCAT, *outputs, axis=1)
    last = []
    for column in zip(*ends):
        parts = [reshaped(y, (1, *y.shape)) for y in column]
        last.append(parts[0] if len(parts) == 1 else apply(S.CONCAT, *parts, axis=0))
    return whole, last


_TURNED = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}


def _mode(op: Operation) -> str | None:
    """Return the mode of the recurrence that a layer is; None where it is none."""
    names = [n.lower() for n in op.get("activations") or _DEFAULTS[op.operator]]
    each = len(_DEFAULTS[op.operator])
    if len(names) % each or names != names[:each] * (len(names) // each) or op.get("clip") is not None:
        return None
    if op.operator == "RNN":
        return names[0] if names[0] in ("tanh", "relu") else None
    if names[:each] != _DEFAULTS[op.operator]:
        return None
    if op.operator == "GRU":
        return "gru" if op.get("linear_before_reset", 0) else None
    looks = len(op.inputs) > 7 and bool(op.inputs[7])
    return "lstm" if not op.get("input_forget", 0) and not looks else None


def _whole(
    mode: str, turned: list[bool], x: Tensor, w: Tensor, r: Tensor, b: Any, lengths: Any, states: list[Any]
) -> tuple[Tensor, list[Tensor]]:
    """Return what `_layer` does, by recurrences of a mode; `turned` says which go backwards."""
    time, batch = x.shape[:2]
    hidden = r.shape[2]

    def gates(value: Tensor) -> Tensor:
        order = _GATES[mode]
        if order == tuple(range(len(order))):
            return value
        return apply(S.CONCAT, *[_part(value, 0, i, hidden) for i in order], axis=0)

    mask = None
    if lengths is not None:
        places = reshaped(apply(S.iota, shape=(time,), axis=0, dtype=D.int64), (time, 1))
        mask = apply(E.lt, places, reshaped(as_type(lengths, D.int64), (1, batch)))
    outputs, ends = [], []
    for number, back in enumerate(turned):
        weights = [gates(_row(v, number)) for v in (w, r)]
        if b is not None:
            bias, size = _row(b, number), len(_GATES[mode]) * hidden
            weights += [gates(sliced(bias, 0, 0, size)), gates(sliced(bias, 0, size, 2 * size))]
        now = [broadcast(scalar(0, x), (batch, hidden)) if s is None else _row(s, number) for s in states]
        line, *last = recurrent_layer(mode, x, tuple(now), tuple(weights), mask, back)
        outputs.append(reshaped(line, (time, 1, batch, hidden)))
        ends.append([reshaped(v, (1, batch, hidden)) for v in last])
    if len(outputs) == 1:
        return outputs[0], ends[0]
    return apply(S.CONCAT, *outputs, axis=1), [apply(S.CONCAT, *parts, axis=0) for parts in zip(*ends)]


def _clipped(x: Tensor, limit: Any) -> Tensor:
    if limit is None:
        return x
    return apply(E.minimum, apply(E.maximum, x, scalar(-limit, x)), scalar(limit, x))


def _sum(*terms: Any) -> Tensor:
    given = [term for term in terms if term is not None]
    found: Tensor = given[0]
    for term in given[1:]:
        found = apply(E.add, found, term)
    return found


def _laid_out(op: Operation, x: Tensor, states: list[Any]) -> tuple[Tensor, list[Any]]:
    if not op.get("layout", 0):
        return x, states
    return transposed(x, (1, 0, 2)), [None if s is None else transposed(s, (1, 0, 2)) for s in states]


def _given_back(op: Operation, whole: Tensor, last: list[Tensor]) -> Any:
    if not op.get("layout", 0):
        return (whole, *last)
    return (transposed(whole, (2, 0, 1, 3)), *[transposed(y, (1, 0, 2)) for y in last])


def _bias_part(bias: Any, number: int, hidden: Any) -> Any:
    return None if bias is None else _part(bias, 0, number, hidden)


@rule("RNN")
def _rnn(op: Operation, x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None) -> Any:
    x, states = _laid_out(op, x, [h])
    hidden = r.shape[2]
    functions = _functions(op, ["Tanh"], w.shape[0])

    def step(number: int, given: Tensor, now: Any, again: Tensor, bias: Any, limit: Any) -> list[Tensor]:
        total = _sum(given, _product(now[0], again), _bias_part(bias, 0, hidden), _bias_part(bias, 1, hidden))
        return [functions[number][0](_clipped(total, limit))]

    return _given_back(op, *_layer(op, x, w, r, b, lengths, states, step))


@rule("GRU")
def _gru(op: Operation, x: Tensor, w: Tensor, r: Tensor, b: Any = None, lengths: Any = None, h: Any = None) -> Any:
    x, states = _laid_out(op, x, [h])
    hidden, after = r.shape[2], op.get("linear_before_reset", 0)
    functions = _functions(op, ["Sigmoid", "Tanh"], w.shape[0])

    def step(number: int, given: Tensor, now: Any, again: Tensor, bias: Any, limit: Any) -> list[Tensor]:
        f, g = functions[number]
        old = now[0]

        def gate(i: int) -> Tensor:
            read = _product(old, _part(again, 0, i, hidden))
            total = _sum(_part(given, 1, i, hidden), read, _bias_part(bias, i, hidden), _bias_part(bias, 3 + i, hidden))
            return f(_clipped(total, limit))

        z, reset = gate(0), gate(1)
        weight = _part(again, 0, 2, hidden)
        if after:
            read = apply(E.mul, reset, _sum(_product(old, weight), _bias_part(bias, 5, hidden)))
            total = _sum(_part(given, 1, 2, hidden), read, _bias_part(bias, 2, hidden))
        else:
            read = _product(apply(E.mul, reset, old), weight)
            total = _sum(_part(given, 1, 2, hidden), read, _bias_part(bias, 2, hidden), _bias_part(bias, 5, hidden))
        new = g(_clipped(total, limit))
        return [apply(E.add, new, apply(E.mul, z, apply(E.sub, old, new)))]

    return _given_back(op, *_layer(op, x, w, r, b, lengths, states, step))


@rule("LSTM")
def _lstm(
    op: Operation,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Any = None,
    lengths: Any = None,
    h: Any = None,
    c: Any = None,
    peep: Any = None,
) -> Any:
    x, states = _laid_out(op, x, [h, c])
    hidden = r.shape[2]
    functions = _functions(op, ["Sigmoid", "Tanh", "Tanh"], w.shape[0])

    def step(number: int, given: Tensor, now: Any, again: Tensor, bias: Any, limit: Any) -> list[Tensor]:
        f, g, out = functions[number]
        old, cell = now
        read = _product(old, again)
        look = None if peep is None else _row(peep, number)

        def total(i: int, seen: Any = None) -> Tensor:
            return _clipped(
                _sum(
                    _part(given, 1, i, hidden),
                    _part(read, 1, i, hidden),
                    _bias_part(bias, i, hidden),
                    _bias_part(bias, 4 + i, hidden),
                    seen,
                ),
                limit,
            )

        def seen(i: int, value: Tensor) -> Any:
            return None if look is None else apply(E.mul, _part(look, 0, i, hidden), value)

        enter = f(total(0, seen(0, cell)))
        if op.get("input_forget", 0):
            forget = apply(E.sub, scalar(1, enter), enter)
        else:
            forget = f(total(2, seen(2, cell)))
        new = apply(E.add, apply(E.mul, forget, cell), apply(E.mul, enter, g(total(3))))
        shown = f(total(1, seen(1, new)))
        return [apply(E.mul, shown, out(new)), new]

    return _given_back(op, *_layer(op, x, w, r, b, lengths, states, step))
