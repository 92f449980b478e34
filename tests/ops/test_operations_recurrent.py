"""Recurrent cells and losses over alignments as objects: against steps in NumPy, sums over all
paths in float64, and stored results of MindSpore.
"""

from __future__ import annotations

import json
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
from scipy.special import expit, log_softmax, logsumexp

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Array, Checks

checks = Checks("NumPy")
add = checks.add


def N(values: Any) -> Array:
    """Given whole numbers."""
    return Array((), dtype="int32", values=np.array(values, np.int32))


# Cells.


def lstm_step(total: Any, c: Any, bias: float) -> Any:
    i, j, f, o = np.split(total, 4, -1)
    i, j, f, o = expit(i), np.tanh(j), expit(f + bias), expit(o)
    c = c * f + i * j
    return c, o * np.tanh(c), i, j, f, o, np.tanh(c)


def cell(x: Any, h: Any, c: Any, w: Any, b: Any, bias: float = 1.0) -> Any:
    return lstm_step(np.concatenate([x, h], 1) @ w + b, c, bias)


def dynamic_lstm(x: Any, w: Any, b: Any, _: Any, h: Any = None, c: Any = None, bias: float = 0.0) -> Any:
    hidden = w.shape[1] // 4
    h, c = (np.zeros((x.shape[1], hidden)) if v is None else v[0] for v in (h, c))
    rows = []
    for step in x:
        c, h, *gates = lstm_step(np.concatenate([step, h], 1) @ w + b, c, bias)
        rows.append((h, h, c, *gates))
    return tuple(np.stack(v) for v in zip(*rows))


def dynamic_gru(
    x: Any, wi: Any, wh: Any, bi: Any, bh: Any, _: Any, h: Any, order: str = "rzh", after: bool = True
) -> Any:
    bi, bh = (np.zeros(wh.shape[1]) if v is None else v for v in (bi, bh))
    rows = []
    for step in x:
        mine, its = (dict(zip(order, np.split(v, 3, -1))) for v in (step @ wi + bi, h @ wh + bh))
        r, z = expit(mine["r"] + its["r"]), expit(mine["z"] + its["z"])
        last = its["h"] if after else (r * h) @ np.split(wh, 3, 1)[2] + np.split(bh, 3)[2]
        n = np.tanh(mine["h"] + (r * last if after else last))
        h = (1 - z) * n + z * h
        rows.append((h, h, z, r, n, last))
    return tuple(np.stack(v) for v in zip(*rows))


for batch, inputs, hidden, length in ((2, 3, 2, 4), (1, 1, 1, 1), (3, 2, 3, 2)):
    state, w, b = A(batch, hidden), A(inputs + hidden, 4 * hidden), A(4 * hidden)
    some: dict[str, Any] = {} if length == 2 else {"grad": ()}
    add("ops.BasicLSTMCell", cell, (A(batch, inputs), state, state, w, b), tolerance=4, **some)
    add(
        "ops.BasicLSTMCell",
        lambda *v: cell(*v, 0.25),
        (A(batch, inputs), state, state, w, b),
        init={"forget_bias": 0.25},
        tolerance=4,
        grad=(),
    )
    x, first = A(length, batch, inputs), A(1, batch, hidden)
    add("ops.DynamicRNN", dynamic_lstm, (x, w, b, None, first, first), tolerance=10, **some)
    given = (x, A(inputs, 3 * hidden), A(hidden, 3 * hidden), A(3 * hidden), A(3 * hidden), None, state)
    add("ops.DynamicGRUV2", dynamic_gru, given, tolerance=10, **some)
add(
    "ops.DynamicRNN",
    lambda *v: dynamic_lstm(*v, bias=1.5),
    (x, w, b, None),
    init={"forget_bias": 1.5},
    tolerance=10,
    grad=(),
)
add(
    "ops.DynamicGRUV2",
    lambda *v: dynamic_gru(*v, "zrh", False),
    (*given[:3], None, None, None, state),
    init={"gate_order": "zrh", "reset_after": False},
    tolerance=10,
)


# Transducers: every path is an order of T - 1 blanks and U labels before the last blank.


def transducer(acts: Any, labels: Any, steps: Any, lengths: Any, blank: int = 0) -> Any:
    given, losses = log_softmax(acts, -1), []
    for b, (end, count) in enumerate(zip(steps, lengths)):
        ways = []
        for places in combinations(range(end - 1 + count), int(count)):
            t = u = 0
            total = 0.0
            for k in range(end - 1 + count):
                says = k in places
                total += given[b, t, u, labels[b, u] if says else blank]
                t, u = t + (not says), u + says
            ways.append(total + given[b, t, u, blank])
        losses.append(-logsumexp(ways))
    return np.array(losses)


def slope_of(loss: Any, x: Any) -> Any:
    """The derivatives of sums by central differences."""
    found = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-5
        found[at] = (loss(x + step).sum() - loss(x - step).sum()) / 2e-5
    return found


TRANSDUCERS = [
    ((2, 3, 3, 4), [[1, 2], [3, 3]], [3, 2], [2, 1], 0),
    ((1, 1, 1, 2), np.zeros((1, 0)), [1], [0], 1),
    ((1, 3, 4, 3), [[0, 1, 0]], [3], [3], 2),
    ((3, 2, 2, 3), [[1], [2], [1]], [1, 2, 2], [1, 0, 1], 0),
]
for shape, labels, steps, lengths, blank in TRANSDUCERS:

    def both(a: Any, y: Any, t: Any, u: Any, blank: int = blank) -> Any:
        return transducer(a, y, t, u, blank), slope_of(lambda v: transducer(v, y, t, u, blank), a)

    given = (A(*shape), N(labels), N(steps), N(lengths))
    add("ops.RNNTLoss", both, given, init={"blank_label": blank}, tolerance=50, dtypes="float64", grad=())


# CTC: all sequences of classes that give the labels.


def collapsed(path: Any, blank: int, merge: bool) -> tuple[int, ...]:
    return tuple(c for k, c in enumerate(path) if c != blank and not (merge and k and path[k - 1] == c))


@cache
def paths(length: int, classes: int, target: tuple[int, ...], merge: bool) -> list[tuple[int, ...]]:
    return [p for p in product(range(classes), repeat=length) if collapsed(p, classes - 1, merge) == target]


def connectionist(x: Any, rows: Any, lengths: Any, merge: bool = True, collapse: bool = False) -> Any:
    given, losses = log_softmax(x, -1), []
    for n, (target, length) in enumerate(zip(rows, lengths)):
        words = tuple(w for k, w in enumerate(target) if not (collapse and k and target[k - 1] == w))
        ways = [sum(given[t, n, c] for t, c in enumerate(p)) for p in paths(int(length), x.shape[2], words, merge)]
        losses.append(-logsumexp(ways) if ways else np.inf)
    return np.array(losses)


ROWS = [((4, 2, 3), [[1, 1], [0]], [4, 3]), ((3, 1, 2), [[0]], [3]), ((4, 3, 4), [[0, 1], [], [2, 2, 1]], [3, 4, 4])]
for shape, rows, lengths in ROWS:
    indices = N([(n, k) for n, row in enumerate(rows) for k in range(len(row))])
    values = N([w for row in rows for w in row])
    for merge, collapse in ((True, False), (False, False), (True, True))[: 3 if len(rows) == 2 else 1]:

        def losses(
            x: Any, i: Any, v: Any, t: Any, rows: Any = rows, merge: bool = merge, collapse: bool = collapse
        ) -> Any:
            def finite(a: Any) -> Any:
                found = connectionist(a, rows, t, merge, collapse)
                return np.where(np.isfinite(found), found, 0)

            return connectionist(x, rows, t, merge, collapse), slope_of(finite, x)

        init = {"ctc_merge_repeated": merge, "preprocess_collapse_repeated": collapse}
        add(
            "ops.CTCLoss",
            losses,
            (A(*shape), indices, values, N(lengths)),
            init=init,
            dtypes="float64",
            tolerance=50,
            grad=(),
        )

test_values, test_gradients = checks.tests()
CHECKED = {"ops.LSTM": "MindSpore"}


@pytest.mark.parametrize("which", [0, 3])
def test_losses_of_transducers_differentiate_to_what_they_give(which: int) -> None:
    shape, labels, steps, lengths, blank = TRANSDUCERS[which]
    acts = Tensor(np.random.default_rng(6).normal(size=shape))
    call = ops.RNNTLoss(blank)

    def total(a: Tensor) -> Tensor:
        return call(a, Tensor(np.array(labels, np.int32)), Tensor(steps), Tensor(lengths))[0].sum()

    wanted = call(acts, Tensor(np.array(labels, np.int32)), Tensor(steps), Tensor(lengths))[1].asnumpy()
    for function in (ms.grad(total), ms.jit(ms.grad(total))):
        np.testing.assert_allclose(function(acts).asnumpy(), wanted, atol=1e-12)
    # Second derivatives, against differences of first ones.
    way = np.cos(np.arange(acts.size, dtype=float)).reshape(shape)
    second = ms.grad(lambda a: (ms.grad(total)(a) * Tensor(way)).sum())(acts).asnumpy()
    ends = [ms.grad(total)(acts + Tensor(s * 1e-5 * way)).asnumpy() for s in (1, -1)]
    np.testing.assert_allclose(second, (ends[0] - ends[1]) / 2e-5, atol=1e-8)


def test_ctc_of_mindspore() -> None:
    """Results of MindSpore 2.10 on a CPU."""
    x = Tensor(np.cos(np.arange(24, dtype=np.float32)).reshape(4, 2, 3))
    given = (Tensor([[0, 0], [0, 1], [1, 0]]), Tensor([1, 1, 0], ms.int32))
    for settings, losses, corner in (
        ((), [3.37640285, 1.32589817], [0.315876931, -0.405755818, 0.0898787528]),
        ((False, False), [3.55497122, 1.61099958], [0.315876931, 0.0118782818, -0.327755153]),
        ((True,), [2.67904758, 1.32589817], [0.315876931, -0.110194921, -0.205681965]),
    ):
        loss, slope = ops.CTCLoss(*settings)(x, *given, Tensor([4, 3], ms.int32))
        np.testing.assert_allclose(loss.asnumpy(), losses, rtol=1e-6)
        np.testing.assert_allclose(slope.asnumpy()[3, 0], corner, atol=1e-6)
        assert not slope.asnumpy()[3, 1].any()
    loss, slope = ops.CTCLoss(False, True, True)(x, *given, Tensor([2, 3], ms.int32))
    assert loss.tolist()[0] == np.inf and not slope.asnumpy()[:, 0].any()
    gradient = ms.grad(lambda v: ops.CTCLoss()(v, *given, Tensor([2, 3], ms.int32))[0][1])(x)
    np.testing.assert_allclose(gradient.asnumpy()[:, 1], slope.asnumpy()[:, 1], atol=1e-6)


# Results of MindSpore 2.10 for the labels 1, 2 and those in their places.
@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize(("given", "same"), [([1, 4], [1]), ([1, 5], [1]), ([1, -1], [1]), ([1, 2, 9], [1, 2])])
def test_ctc_leaves_out_labels_at_the_end_that_are_no_class(merge: bool, given: Any, same: Any) -> None:
    x = Tensor(np.cos(np.arange(60, dtype=np.float64)).reshape(6, 2, 5))

    def found(labels: Any) -> Any:
        places = Tensor([*[[0, k] for k in range(len(labels))], [1, 0]])
        call = ops.CTCLoss(ctc_merge_repeated=merge)
        return [t.asnumpy() for t in call(x, places, Tensor([*labels, 0], ms.int32), Tensor([6, 6], ms.int32))]

    for one, other in zip(found(given), found(same)):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(IndexError, match="CTCLoss: index 4 is out of range for axis 2 of size 4"):
        found([4, 1])


STORED = json.loads((Path(__file__).parent / "expected_lstm.json").read_text())


@pytest.mark.parametrize("case", STORED, ids=lambda c: c["name"])
def test_lstm(case: Any) -> None:
    """Results of MindSpore 2.10 on a CPU, with biases of states that are 0."""
    x, h, c, w = (Tensor(np.array(case[k], np.float32)) for k in ("x", "h", "c", "w"))
    call = ops.LSTM(*case["settings"])
    for function in (call, ms.jit(lambda *v: call(*v))):
        out, last_h, last_c, *nothing = function(x, h, c, w)
        for found, want in zip((out, last_h, last_c), (case["out"], case["last_h"], case["last_c"])):
            np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-5, atol=1e-6)
        assert [v.shape for v in nothing] == [(0, 1), (0, 1)]


def test_layers_of_lstm() -> None:
    """Two layers of two directions are those of `nn.LSTM`, whose biases add up."""
    random = np.random.default_rng(8)
    net = ms.nn.LSTM(3, 2, 2, True, False, 0.0, True)
    x, h, c = (random.normal(size=s).astype(np.float32) for s in ((5, 2, 3), (4, 2, 2), (4, 2, 2)))
    names = [(layer, way) for layer in range(2) for way in ("", "_reverse")]
    parts: list[Any] = []
    for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        for layer, way in names:
            [parameter] = [p for p in net.get_parameters() if p.name.endswith(f"{kind}_l{layer}{way}")]
            parameter.set_data(Tensor(random.normal(size=parameter.shape).astype(np.float32)))
            parts.append(parameter.asnumpy().ravel())
    out, (last_h, last_c) = net(Tensor(x), (Tensor(h), Tensor(c)))
    found = ops.LSTM(3, 2, 2, True, True, 0.0)(Tensor(x), Tensor(h), Tensor(c), Tensor(np.concatenate(parts)))
    for a, b in zip(found, (out, last_h, last_c)):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="w must have"):
        ops.LSTM(3, 2, 1, False, False, 0.0)(Tensor(x), Tensor(h[:1]), Tensor(c[:1]), Tensor(np.zeros(7, np.float32)))


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_types(name: str) -> None:
    def ones(*shape: int) -> Tensor:
        return ops.ones(shape, getattr(ms, name)) * 0.5

    for found in ops.DynamicRNN()(ones(3, 2, 4), ones(6, 8), ones(8), None, ones(1, 2, 2), ones(1, 2, 2)):
        assert found.dtype is getattr(ms, name) and found.shape == (3, 2, 2)
    for found in ops.DynamicGRUV2()(ones(3, 2, 4), ones(4, 6), ones(2, 6), None, None, None, ones(2, 2)):
        assert found.dtype is getattr(ms, name) and found.shape == (3, 2, 2)
    loss, slope = ops.RNNTLoss()(ones(1, 2, 2, 3), Tensor([[1]]), Tensor([2]), Tensor([1]))
    assert loss.dtype is slope.dtype is getattr(ms, name)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: ops.DynamicRNN(direction="BIDIRECTIONAL")(ops.ones((1, 1, 1)), ops.ones((2, 4)), ops.ones(4)),
            ValueError,
            "direction must be 'UNIDIRECTIONAL'",
        ),
        (
            lambda: ops.DynamicRNN()(ops.ones((1, 1, 1)), ops.ones((2, 4)), ops.ones(4), Tensor([1])),
            ValueError,
            "seq_length must be None",
        ),
        (
            lambda: ops.DynamicGRUV2(gate_order="hzr")(*[ops.ones((1, 1, 1))] * 7),
            ValueError,
            "gate_order must be one of 'rzh', 'zrh'",
        ),
        (
            lambda: ops.BasicLSTMCell()(*[ops.ones((1, 2))] * 3, ops.ones((3, 8)), ops.ones(8)),
            ValueError,
            r"w must have the shape \(4, 8\)",
        ),
        (
            lambda: ops.RNNTLoss(3)(ops.ones((1, 1, 1, 2)), ops.ones((1, 0), ms.int32), Tensor([1]), Tensor([0])),
            ValueError,
            "blank_label 3",
        ),
        (
            lambda: ops.RNNTLoss()(ops.ones((1, 2, 2, 2)), Tensor([1]), Tensor([2]), Tensor([1])),
            ValueError,
            r"labels must be \(1, 1\)",
        ),
        (
            lambda: ops.CTCLoss()(ops.ones((2, 1)), Tensor([[0, 0]]), Tensor([0]), Tensor([2])),
            ValueError,
            r"takes x \(T, N, C\)",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_projected_states_run_both_ways():
    random = np.random.default_rng(3)
    x, h, c = random.normal(size=(4, 2, 2)), random.normal(size=(2, 2, 2)), random.normal(size=(2, 2, 3))
    shapes = [(12, 2)] * 2 + [(12, 2)] * 2 + [(2, 3)] * 2
    weights = [random.normal(size=s) for s in shapes]
    found = ops.LSTM(2, 3, 1, False, True, 0.0, 2)(
        Tensor(x), Tensor(h), Tensor(c), Tensor(np.concatenate([w.reshape(-1) for w in weights]))
    )
    sigmoid = scipy.special.expit
    for way in (0, 1):
        w_ih, w_hh, w_hr = weights[way::2]
        state, cell = h[way], c[way]
        for t in (range(4), reversed(range(4)))[way]:
            i, f, g, o = np.split(x[t] @ w_ih.T + state @ w_hh.T, 4, 1)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            state = (sigmoid(o) * np.tanh(cell)) @ w_hr.T
            np.testing.assert_allclose(found[0].asnumpy()[t, :, 2 * way : 2 * way + 2], state, rtol=1e-9)
        np.testing.assert_allclose(found[1].asnumpy()[way], state, rtol=1e-9)
        np.testing.assert_allclose(found[2].asnumpy()[way], cell, rtol=1e-9)
