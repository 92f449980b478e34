"""Recurrent cells, and losses over alignments of sequences, as objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.neural.ctc import NEVER
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.staging.derivatives import grad
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.fused import graph_of
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.ops import creation, random
from mycel.ops._operands import (
    cast_index,
    constant_like,
    floating,
    iota,
    reshaped,
    run,
    select,
    size_of,
    take_slice,
    wide,
)
from mycel.ops.activation import log_softmax
from mycel.ops.algebra.linalg import dense, matmul
from mycel.ops.arrange import flip
from mycel.ops.array import concat, stack
from mycel.ops.elementwise import sigmoid, tanh
from mycel.ops.operations.attributes import flag, integer, one_of, real
from mycel.ops.operations.primitive import Primitive, only, operations_of
from mycel.ops.sequences import ctc
from mycel.ops.sequences.recurrence import recurrence
from mycel.ops.sequences.transducer import rnnt_loss
from mycel.ops.sorting import cumsum

__all__: list[str] = []


Step = Callable[..., tuple[list[Tensor], list[Tensor]]]


def _parts(x: Tensor, count: int) -> list[Tensor]:
    size = x.shape[-1] // count
    return [take_slice(x, x.ndim - 1, k * size, (k + 1) * size) for k in range(count)]


def _scanned(
    step: Step, shown: int, p: Tensor, states: list[Tensor], weights: list[Tensor]
) -> tuple[list[Tensor], Sequence[Tensor]]:
    """Return the outputs of a recurrence at all times, and the last states.

    `step(p[t], states, weights)` returns the outputs of one time, of which there are `shown`, and
    the next states. Outputs are (time, batch, hidden), where hidden is that of the first state.
    """
    length, batch, hidden = p.shape[0], *states[0].shape
    carried = 2 + len(states)

    def body(t: Tensor, rows: Tensor, *rest: Tensor) -> Any:
        now, given = list(rest[: carried - 2]), rest[carried - 2 :]
        results, after = step(run(I.take, given[0], t, axis=0, bounds="drop"), now, list(given[1:]))
        row = reshaped(concat(results, 1), (1, batch, shown * hidden))
        # Every row is written once, onto zeros, and the derivative of a sum is the simplest.
        rows = run(I.scatter_nd, rows, reshaped(t, (1, 1)), row, mode="add", bounds="drop")
        return t + scalar(1, D.int64), rows, *after

    def test(t: Tensor, *rest: Tensor) -> Any:
        return (t < scalar(length, D.int64),)

    operands = (
        creation.zeros((), D.int64),
        creation.zeros((length, batch, shown * hidden), p.dtype),
        *states,
        p,
        *weights,
    )
    types = [v._type for v in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    done: Any = eager.apply(control.while_loop, *operands, **graphs, carried=carried)
    return _parts(done[1], shown), done[2:carried]


def _lstm_step(total: Tensor, c: Tensor, forget_bias: float) -> list[Tensor]:
    """Return the gates i, j, f, o, the next cell state, its tanh and the next hidden state."""
    i, j, f, o = _parts(total, 4)
    i, j, f, o = sigmoid(i), tanh(j), sigmoid(f + forget_bias), sigmoid(o)
    c = c * f + i * j
    top = tanh(c)
    return [i, j, f, o, c, top, o * top]


def _fits(p: Any, what: str, value: Tensor, shape: tuple[Any, ...]) -> None:
    if value.shape != shape:
        raise ShapeError(f"{p.name}: {what} must have the shape {shape}, not {value.shape}")


def _basic_cell(p: Any, x: Any, h: Any, c: Any, w: Any, b: Any) -> tuple[Tensor, ...]:
    only(p, keep_prob=1.0, activation="tanh")
    x, h, c, w, b = (floating(p.name, v) for v in (x, h, c, w, b))
    if (x.ndim, h.ndim) != (2, 2):
        raise ShapeError(f"{p.name}: takes x (batch, inputs) and h (batch, hidden), not {x._type} and {h._type}")
    hidden = h.shape[-1]
    _fits(p, "w", w, (x.shape[-1] + hidden, 4 * hidden))
    kind = c.dtype
    i, j, f, o, new, top, out = _lstm_step(
        matmul(concat((wide(x), wide(h)), 1), wide(w)) + wide(b), wide(c), p.forget_bias
    )
    return tuple(cast(v, kind) for v in (new, out, i, j, f, o, top))


def _dynamic_lstm(
    p: Any, x: Any, w: Any, b: Any, seq_length: Any = None, init_h: Any = None, init_c: Any = None
) -> tuple[Tensor, ...]:
    only(
        p,
        cell_type="LSTM",
        direction="UNIDIRECTIONAL",
        cell_depth=1,
        use_peephole=False,
        keep_prob=1.0,
        cell_clip=-1.0,
        num_proj=0,
        time_major=True,
        activation="tanh",
    )
    if seq_length is not None:
        raise ValueError("DynamicRNN: seq_length must be None; nn.LSTM takes lengths")
    x, w, b = (floating(p.name, v) for v in (x, w, b))
    if (x.ndim, w.ndim) != (3, 2):
        raise ShapeError(f"{p.name}: takes x (time, batch, inputs) and a matrix w, not {x._type} and {w._type}")
    kind, hidden = b.dtype, w.shape[-1] // 4
    _fits(p, "w", w, (x.shape[-1] + hidden, 4 * hidden))
    batch = x.shape[1]
    first = [
        creation.zeros((batch, hidden), wide(x).dtype)
        if v is None
        else reshaped(wide(floating(p.name, v)), (batch, hidden))
        for v in (init_h, init_c)
    ]
    full = wide(w)
    size = x.shape[-1]

    def step(now: Tensor, states: list[Tensor], weights: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        i, j, f, o, c, top, h = _lstm_step(now + matmul(states[0], weights[0]), states[1], p.forget_bias)
        return [h, c, i, j, f, o, top], [h, c]

    parts = matmul(wide(x), take_slice(full, 0, 0, size)) + wide(b)
    (h, *rest), _ = _scanned(step, 7, parts, first, [take_slice(full, 0, size, size + hidden)])
    return tuple(cast(v, kind) for v in (h, h, *rest))


def _dynamic_gru(
    p: Any,
    x: Any,
    weight_input: Any,
    weight_hidden: Any,
    bias_input: Any = None,
    bias_hidden: Any = None,
    seq_length: Any = None,
    init_h: Any = None,
) -> tuple[Tensor, ...]:
    only(
        p,
        direction="UNIDIRECTIONAL",
        cell_depth=1,
        keep_prob=1.0,
        cell_clip=-1.0,
        num_proj=0,
        time_major=True,
        activation="tanh",
    )
    arguments.one_of("DynamicGRUV2", "gate_order", p.gate_order, ("rzh", "zrh"))
    if seq_length is not None:
        raise ValueError("DynamicGRUV2: seq_length must be None; nn.GRU takes lengths")
    x, w_input, w_hidden, h = (floating(p.name, v) for v in (x, weight_input, weight_hidden, init_h))
    if x.ndim != 3 or h.ndim == 0:
        raise ShapeError(
            f"{p.name}: takes x (time, batch, inputs) and a state (batch, hidden), not {x._type} and {h._type}"
        )
    hidden = h.shape[-1]
    _fits(p, "weight_input", w_input, (x.shape[-1], 3 * hidden))
    _fits(p, "weight_hidden", w_hidden, (hidden, 3 * hidden))
    biases = [None if v is None else floating(p.name, v) for v in (bias_input, bias_hidden)]
    kind = next((v.dtype for v in biases if v is not None), h.dtype)
    parts = matmul(wide(x), wide(w_input))
    parts = parts if biases[0] is None else parts + wide(biases[0])
    bias = creation.zeros((3 * hidden,), parts.dtype) if biases[1] is None else wide(biases[1])
    first = 0 if p.gate_order == "rzh" else 1

    def step(now: Tensor, states: list[Tensor], weights: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        h, (w, b) = states[0], weights
        mine, its = _parts(now, 3), _parts(matmul(h, w) + b, 3)
        reset, update = sigmoid(mine[first] + its[first]), sigmoid(mine[1 - first] + its[1 - first])
        last = its[2] if p.reset_after else matmul(reset * h, _parts(w, 3)[2]) + _parts(b, 3)[2]
        new = tanh(mine[2] + (reset * last if p.reset_after else last))
        h = new + update * (h - new)
        return [h, update, reset, new, last], [h]

    (h, *rest), _ = _scanned(step, 5, parts, [wide(h)], [wide(w_hidden), bias])
    return tuple(cast(v, kind) for v in (h, h, *rest))


class BasicLSTMCell(
    Primitive, compute=_basic_cell, keep_prob=1.0, forget_bias=1.0, state_is_tuple=True, activation=one_of("tanh")
):
    """One step of an LSTM: called with (x, h, c, w, b), it gives the next c and h, the gates i, j,
    f and o, and tanh(c).

    `w` (inputs + hidden, 4 * hidden) has its columns in the order of the gates. Hochreiter and
    Schmidhuber, 1997.

    Args:
        keep_prob (float): Must be 1. Default: 1.0.
        forget_bias (float): Added to the gate f. Default: 1.0.
        state_is_tuple (bool): Has no effect. Default: True.
        activation (str | Cell | Callable[[Tensor], Tensor] | None): Must be "tanh". Default:
            "tanh".

    Examples:
        >>> import mycel as ms
        >>> x, state = ms.ops.ones((1, 3)), ms.ops.zeros((1, 2))
        >>> w, b = ms.ops.zeros((5, 8)), ms.ops.zeros(8)
        >>> ms.ops.BasicLSTMCell()(x, state, state, w, b)[0].tolist()
        [[0.0, 0.0]]
    """


class DynamicRNN(
    Primitive,
    compute=_dynamic_lstm,
    cell_type="LSTM",
    direction="UNIDIRECTIONAL",
    cell_depth=1,
    use_peephole=False,
    keep_prob=1.0,
    cell_clip=-1.0,
    num_proj=0,
    time_major=True,
    activation="tanh",
    forget_bias=0.0,
    is_training=True,
):
    """An LSTM over (time, batch, inputs): called with (x, w, b, None, init_h, init_c), it gives y,
    h, c, i, j, f, o and tanh(c) at all times.

    States are (1, batch, hidden). `w` (inputs + hidden, 4 * hidden) has its columns in the order of
    the gates i, j, f and o. Results have the type of `b`.

    Args:
        cell_type (str): Must be "LSTM". Default: "LSTM".
        direction (str): Must be "UNIDIRECTIONAL". Default: "UNIDIRECTIONAL".
        cell_depth (int): Must be 1. Default: 1.
        use_peephole (bool): Must be False. Default: False.
        keep_prob (float): Must be 1. Default: 1.0.
        cell_clip (float): Must be -1. Default: -1.0.
        num_proj (int): Must be 0. Default: 0.
        time_major (bool): Must be True. Default: True.
        activation (str | Cell | Callable[[Tensor], Tensor] | None): Must be "tanh". Default:
            "tanh".
        forget_bias (float): Added to the gate f. Default: 0.0.
        is_training (bool): Has no effect on results. Default: True.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.DynamicRNN()(ms.ops.ones((5, 1, 3)), ms.ops.zeros((5, 8)), ms.ops.zeros(8))[
        ...     0].shape
        (5, 1, 2)
    """


class DynamicGRUV2(
    Primitive,
    compute=_dynamic_gru,
    direction="UNIDIRECTIONAL",
    cell_depth=1,
    keep_prob=1.0,
    cell_clip=-1.0,
    num_proj=0,
    time_major=True,
    activation="tanh",
    gate_order="rzh",
    reset_after=True,
    is_training=True,
):
    """A GRU over (time, batch, inputs), called with (x, weight_input, weight_hidden, bias_input,
    bias_hidden, None, init_h).

    Results are y, h, the update and reset gates, the new state, and the part of the new state that
    comes from h, at all times. Cho et al., 2014.

    Args:
        direction (str): Must be "UNIDIRECTIONAL". Default: "UNIDIRECTIONAL".
        cell_depth (int): Must be 1. Default: 1.
        keep_prob (float): Must be 1. Default: 1.0.
        cell_clip (float): Must be -1. Default: -1.0.
        num_proj (int): Must be 0. Default: 0.
        time_major (bool): Must be True. Default: True.
        activation (str | Cell | Callable[[Tensor], Tensor] | None): Must be "tanh". Default:
            "tanh".
        gate_order (str): The order of the columns of the weights (inputs or hidden, 3 * hidden):
            "rzh" or "zrh". Default: "rzh".
        reset_after (bool): Whether the reset gate acts on h after it is multiplied instead of
            before. Default: True.
        is_training (bool): Has no effect on results. Default: True.

    Examples:
        >>> import mycel as ms
        >>> w, h = ms.ops.zeros((2, 6)), ms.ops.ones((1, 2))
        >>> ms.ops.DynamicGRUV2()(ms.ops.ones((3, 1, 2)), w, w, None, None, None, h)[0].shape
        (3, 1, 2)
    """


def _projected(parts: Tensor, states: list[Tensor], w_hh: Tensor, w_hr: Tensor, reverse: bool) -> tuple[Tensor, ...]:
    """Return the outputs and last states of an LSTM whose hidden state is projected.

    `parts` are the parts of the gates i, f, g and o that come from the inputs.
    """

    def step(now: Tensor, states: list[Tensor], weights: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        i, f, g, o = _parts(now + dense(states[0], weights[0]), 4)
        c = sigmoid(f) * states[1] + sigmoid(i) * tanh(g)
        h = dense(sigmoid(o) * tanh(c), weights[1])
        return [h], [h, c]

    (rows,), (h, c) = _scanned(step, 1, flip(parts, (0,)) if reverse else parts, states, [w_hh, w_hr])
    return flip(rows, (0,)) if reverse else rows, h, c


def _lstm(p: Any, input: Any, h: Any, c: Any, w: Any) -> tuple[Tensor, ...]:
    x, h, c, w = (floating(p.name, v) for v in (input, h, c, w))
    if x.ndim != 3:
        raise ShapeError(f"{p.name}: takes (time, batch, inputs), not {x._type}")
    ways, size, layers = 2 if p.bidirectional else 1, size_of(p.name, p.hidden_size), size_of(p.name, p.num_layers)
    projected = size_of(p.name, p.proj_size)
    out, count = projected or size, layers * ways
    _fits(p, "h", h, (count, x.shape[1], out))
    _fits(p, "c", c, (count, x.shape[1], size))
    first = size_of(p.name, p.input_size)
    inputs = [first if k < ways else out * ways for k in range(count)]
    shapes = [(4 * size, n) for n in inputs] + [(4 * size, out)] * count
    shapes += [(out, size)] * count if projected else []
    biases = 2 * count if p.has_bias else 0
    total = sum(m * n for m, n in shapes) + 4 * size * biases
    line = reshaped(w, (w.size,))
    if w.size != total:
        raise ShapeError(f"LSTM: w must have {total} elements for these sizes, not {w.size}")
    pieces, at = [], 0
    for shape in (*shapes, *((4 * size,),) * biases):
        length = shape[0] * (shape[1] if len(shape) > 1 else 1)
        pieces.append(reshaped(take_slice(line, 0, at, at + length), shape))
        at += length
    last_h, last_c = [], []
    for layer in range(layers):
        results = []
        for way in range(ways):
            k = layer * ways + way
            start = [reshaped(take_slice(v, 0, k, k + 1), v.shape[1:]) for v in (h, c)]
            bias = pieces[-biases + k] + pieces[-count + k] if biases else None
            parts = dense(x, pieces[k], bias)
            if projected:
                made: tuple[Tensor, ...] = _projected(parts, start, pieces[count + k], pieces[2 * count + k], way == 1)
            else:
                made = recurrence("lstm", parts, tuple(start), pieces[count + k], reverse=way == 1)
            results.append(made[0])
            last_h.append(made[1])
            last_c.append(made[2])
        x = concat(results, 2) if ways > 1 else results[0]
        if p.dropout and layer < layers - 1:
            x = random.dropout(x, p.dropout)
    nothing = creation.zeros((0, 1), x.dtype)
    return x, stack(last_h, 0), stack(last_c, 0), nothing, nothing


class LSTM(
    Primitive,
    compute=_lstm,
    input_size=integer(at_least=1),
    hidden_size=integer(at_least=1),
    num_layers=integer(at_least=1),
    has_bias=flag(),
    bidirectional=flag(),
    dropout=real(at_least=0, at_most=1),
    proj_size=integer(0, at_least=0),
):
    """Layers of LSTM over (time, batch, inputs): called with (input, h, c, w), they give the
    outputs, the last h and c, and two empty tensors.

    `w` holds, one after the other: for every layer and direction the weights of its input, (4 *
    hidden, inputs) with rows in the order of the gates i, f, g and o; for every one the weights of
    its state; with `proj_size` those of its projection (proj_size, hidden); with `has_bias` for
    every one the bias of its input, and then for every one the bias of its state, which is added to
    it. (MindSpore leaves the biases of states out on a CPU.) In place of the empty tensors other
    devices keep values for derivatives.

    Args:
        input_size (int): The size of the features that come in.
        hidden_size (int): The size of the states.
        num_layers (int): The number of layers.
        has_bias (bool): Whether there are biases.
        bidirectional (bool): Whether each layer also runs backwards.
        dropout (float): The probability of dropout between layers.
        proj_size (int): The size of a projection of the states; 0 for none. Default: 0.

    Examples:
        >>> import mycel as ms
        >>> state, w = ms.ops.zeros((1, 1, 2)), ms.ops.ones((40, 1, 1))
        >>> lstm = ms.ops.LSTM(3, 2, 1, False, False, 0.0)
        >>> lstm(ms.ops.ones((4, 1, 3)), state, state, w)[0].shape
        (4, 1, 2)
    """


# Losses over alignments.


def _rows(p: Any, indices: Tensor, values: Tensor, batch: int, steps: int, classes: int) -> tuple[Tensor, Tensor]:
    """Return sparse labels as rows (batch, steps + 1), and the number of each.

    Numbers above `steps` count as steps + 1. Labels at the end of a row that are none of the
    classes but the blank do not count.
    """
    width = steps + 1
    row, place = (reshaped(take_slice(indices, 1, k, k + 1), indices.shape[:1]) for k in (0, 1))
    row = run(I.checked, row, axis=0, size=batch, bounds="front")
    # Places beyond the width are dropped.
    goal = stack(
        (row, select(run(E.lt, place, constant_like(width, place)), place, constant_like(2**31 - 1, place))), 1
    )
    start = creation.zeros((batch, width), values.dtype) - 1
    labels = run(I.scatter_nd, start, goal, values, mode="set", bounds="drop")
    # What is no class ends the labels; a class behind it is found when all are checked.
    within = run(E.logical_and, labels >= 0, labels < classes - 1)
    reach = select(within, iota((batch, width), 1, D.int64) + 1, 0)
    counts = run(R.reduce_max, reach, axes=(1,), keepdims=False)
    kept = iota((batch, width), 1, D.int64) < reshaped(counts, (batch, 1))
    labels = run(I.checked, select(kept, labels, 0), axis=2, size=classes - 1, bounds="front")
    if p.preprocess_collapse_repeated:
        inside = iota((batch, width), 1, D.int64) < reshaped(counts, (batch, 1))
        before = run(
            S.PAD, take_slice(labels, 1, 0, steps), constant_like(-1, labels), low=(0, 1), high=(0, 0), interior=(0, 0)
        )
        kept = run(E.logical_and, inside, run(E.ne, labels, before))
        target = select(kept, cumsum(cast(kept, D.int64), 1) - 1, 2**31 - 1)
        goal = stack((iota((batch, width), 0, D.int64), target), 2)
        labels = run(I.scatter_nd, start, goal, labels, mode="set", bounds="drop")
        counts = run(R.reduce_sum, cast(kept, D.int64), axes=(1,), keepdims=False)
    return labels, run(E.minimum, counts, constant_like(width, counts))


def _ctc(p: Any, x: Any, labels_indices: Any, labels_values: Any, sequence_length: Any) -> tuple[Tensor, Tensor]:
    value = floating("CTCLoss", x)
    indices = cast(cast_index("CTCLoss", labels_indices), D.int64)
    words, lengths = cast_index("CTCLoss", labels_values), cast(cast_index("CTCLoss", sequence_length), D.int64)
    if value.ndim != 3 or indices.ndim != 2 or indices.shape[1] != 2 or words.shape != indices.shape[:1]:
        raise ShapeError(
            f"CTCLoss: takes x (T, N, C), indices (M, 2) and values (M,), not {value._type}, {indices._type} and "
            f"{words._type}"
        )
    steps, batch, classes = value.shape
    _fits(p, "sequence_length", lengths, (batch,))
    labels, counts = _rows(p, indices, words, int(batch), int(steps), int(classes))

    def losses(logits: Tensor) -> Tensor:
        found = ctc.log_likelihoods(log_softmax(logits, 2), labels, lengths, counts, classes - 1, p.ctc_merge_repeated)
        return select(found[0] < NEVER / 2, float("inf"), -found[0])

    def total(logits: Tensor) -> Tensor:
        each = losses(logits)
        return run(R.reduce_sum, select(run(E.is_finite, each), each, 0.0), axes=(0,), keepdims=False)

    full = wide(value)
    slope = run(E.stop_gradient, grad(total)(run(E.stop_gradient, full)))
    return cast(losses(full), value.dtype), cast(slope, value.dtype)


class CTCLoss(
    Primitive,
    compute=_ctc,
    preprocess_collapse_repeated=False,
    ctc_merge_repeated=True,
    ignore_longer_outputs_than_inputs=False,
):
    """The loss of connectionist temporal classification, and its derivative, a constant.

    It is called with logits x (T, N, C), whose last class is the blank, labels_indices (M, 2),
    labels_values (M,) and sequence_length (N,); labels stand at (sequence, place), and those at the
    end of a sequence that are no class, or the blank, are left out. `preprocess_collapse_repeated`
    joins equal neighbours of the labels; without `ctc_merge_repeated` equal outputs in a row are
    labels of their own. More labels than outputs have the loss inf, without derivative, whether
    they are to be ignored or not. Graves et al., 2006.

    >>> import mycel as ms
    >>> logits, labels = ms.ops.zeros((2, 1, 2)), (ms.Tensor([[0, 0]]), ms.Tensor([0]))
    >>> loss, _ = ms.ops.CTCLoss()(logits, *labels, ms.Tensor([2]))
    >>> round(ms.ops.exp(-loss).item(), 4)
    0.75
    """


class RNNTLoss(
    Primitive,
    compute=lambda p, acts, labels, input_lengths, label_lengths: rnnt_loss(
        acts, labels, input_lengths, label_lengths, p.blank_label
    ),
    blank_label=0,
):
    """The losses of transducers, and their derivatives by acts, which are logits.

    See `mycel.ops.sequences.transducer.rnnt_loss`.
    """


__all__.extend(operations_of(globals()))
