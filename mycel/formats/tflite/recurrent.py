"""TensorFlow Lite's recurrent operators, as Mycel's primitive where it fits.

States begin with zeros in each call: TensorFlow Lite's interpreter keeps them from call to call
until its variables are reset, which converters do not mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mycel import ops
from mycel._src.foundation.errors import Unsupported
from mycel.formats.tflite.schema import Operator
from mycel.ops.sequences.recurrence import layer, recurrence

__all__ = ["RECURRENT"]


def _line(o: Operator, x: Any, parts: Sequence[Any], states: Sequence[Any], clip: float, back: bool) -> Any:
    """Return the states of an LSTM at all times of `x` (time, batch, size).

    `parts` are its weights of inputs, of states, of cells, its biases and projection, `states` the
    first ones (None: zeros), `clip` the limit of cells (0: none), and `back` says that it goes
    from the last time to the first. A cell grows by 1 in a step at most, so that it may be without
    effect.
    """
    weights, again, cells, biases, others = parts[:4], parts[4:8], parts[8:11], parts[11:15], parts[15:]
    named = (
        ("gates in common", any(w is None for w in (*weights, *again))),
        ("weights of cells", any(c is not None for c in cells)),
        ("a projection or normalisation", any(p is not None for p in others)),
    )
    for what, there in named:
        if there:
            raise Unsupported(f"load: the operator {o.name} of TensorFlow Lite with {what} is not supported")
    time, batch = x.shape[:2]
    w, r = ops.concat(tuple(weights), 0), ops.concat(tuple(again), 0)
    size = r.shape[1]
    bias = ops.concat(tuple(b if b is not None else ops.zeros((size,), w.dtype) for b in biases), 0)
    first = tuple(ops.zeros((batch, size), x.dtype) if s is None else s for s in states)
    given = ops.matmul(x, ops.transpose(w, (1, 0)))
    if clip <= 0 or (isinstance(time, int) and time <= clip and all(s is None for s in states)):
        return recurrence("lstm", given, first, r, bias, None, back)[0]
    if not isinstance(time, int):
        raise Unsupported(f"load: the operator {o.name} with limits of cells is not supported for an open length")
    h, c = first
    found: list[Any] = [None] * time
    for t in range(time - 1, -1, -1) if back else range(time):
        i, f, g, out = ops.split(given[t] + ops.matmul(h, ops.transpose(r, (1, 0))) + bias, size, 1)
        c = ops.clamp(ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g), -clip, clip)
        h = ops.sigmoid(out) * ops.tanh(c)
        found[t] = h
    return ops.stack(found, 0)


def _turned(x: Any, time_first: Any) -> Any:
    return x if time_first else ops.transpose(x, (1, 0, 2))


def _need_tanh(o: Operator) -> None:
    if o.option(0) != 4:
        raise Unsupported(f"load: the operator {o.name} of TensorFlow Lite with activation {o.option(0)}, not tanh (4)")


def _padded(inputs: Sequence[Any], count: int) -> list[Any]:
    return [*inputs, *[None] * (count - len(inputs))]


def _lstm(o: Operator, *inputs: Any) -> Any:
    x, *rest = _padded(inputs, 24)
    _need_tanh(o)
    parts = [*rest[:17], *rest[19:]]
    found = _line(o, _turned(x, o.option(3)), parts, rest[17:19], o.real(1), False)
    return _turned(found, o.option(3))


def _both_lstm(o: Operator, *inputs: Any) -> Any:
    x, *rest = _padded(inputs, 48)
    _need_tanh(o)
    if any(p is not None for p in rest[38:]):
        raise Unsupported(f"load: the operator {o.name} of TensorFlow Lite with further inputs is not supported")
    time_first, clip = o.option(4, default=1), o.real(1)
    x = _turned(x, time_first)
    found = [
        _turned(_line(o, x, rest[k : k + 17], rest[s : s + 2], clip, back), time_first)
        for k, s, back in ((0, 34, False), (17, 36, True))
    ]
    return ops.concat(tuple(found), 2) if o.option(3) else tuple(found)


def _rnn(o: Operator, x: Any, w: Any, again: Any, bias: Any, state: Any = None) -> Any:
    modes = {1: "relu", 4: "tanh"}
    if o.option(1) not in modes:
        raise Unsupported(f"load: the operator {o.name} of TensorFlow Lite with activation {o.option(1)}")
    x = _turned(x, o.option(0))
    first = ops.zeros((x.shape[1], again.shape[0]), x.dtype) if state is None else state
    return _turned(layer(modes[o.option(1)], x, (first,), (w, again, bias, ops.zeros_like(bias)))[0], o.option(0))


RECURRENT: Mapping[int, Any] = {35: _rnn, 44: _lstm, 52: _both_lstm}
