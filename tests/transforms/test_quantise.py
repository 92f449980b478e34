"""Arithmetic of levels against exact arithmetic, and graphs of integers against the rounded
ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.convolution.window import window_max, window_sum
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.quantisation import fake_quant, requantize
from mycel._src.compiler.transforms.quantise.batch_norm_folding import fold_normalisations
from mycel._src.compiler.transforms.quantise.fake_quantisation import inserted, points
from mycel._src.compiler.transforms.quantise.graph_freezing import frozen, literal
from mycel._src.compiler.transforms.quantise.integer_lowering import lowered
from mycel._src.compiler.transforms.quantise.quantisable_regions import Regions
from mycel._src.compiler.transforms.quantise.scales import levels_of, multipliers, scale_for, weight_scale
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import float32, int8, int32

RNG = np.random.default_rng(2)
WINDOW: dict[str, Any] = {"window": (2, 2), "strides": (2, 2), "padding": ((0, 0), (0, 0))}


def of_tflite(x: int, multiplier: int, shift: int) -> int:
    """`MultiplyByQuantizedMultiplier` of TFLite's reference kernels, in Python's integers."""
    left, right = max(shift, 0), max(-shift, 0)
    product = (x << left) * multiplier
    nudge = (1 << 30) if product >= 0 else 1 - (1 << 30)
    # The quotient of C is truncated.
    high = abs(product + nudge) >> 31
    high = high if product + nudge >= 0 else -high
    mask = (1 << right) - 1
    rest, limit = high & mask, (mask >> 1) + (high < 0)
    return (high >> right) + (rest > limit)


@pytest.mark.parametrize("rounding", ["single", "double"])
def test_rescaling_is_exact(rounding: str) -> None:
    totals = np.concatenate([RNG.integers(-(1 << 20), 1 << 20, 500), np.arange(-64, 65)]).astype(np.int32)
    for real in (0.75, 0.5, 0.0003, 1.9, 2.0**-9, 3e-11, -0.37):
        m, s = multipliers(np.asarray(real))
        p = {"zero": 3, "low": -30000, "high": 30000, "rounding": rounding, "dtype": int32}
        assert requantize.reference is not None
        found = requantize.reference(totals, m, s, **p)
        if rounding == "double":
            wanted = [of_tflite(int(t), int(m), int(s)) for t in totals]
        else:
            wanted = [(2 * int(t) * int(m) + (1 << (31 - int(s)))) >> (32 - int(s)) for t in totals]
        np.testing.assert_array_equal(found, np.clip(np.array(wanted) + 3, -30000, 30000))
        assert np.abs(found - 3 - np.clip(totals * real, -30003, 29997)).max() <= 1.0


def test_multipliers_stand_for_their_numbers() -> None:
    real = np.concatenate([10.0 ** RNG.uniform(-8, 8, 200), [1.0, 0.5, 1 - 2.0**-33]])
    whole, shift = multipliers(real)
    np.testing.assert_allclose(whole.astype(np.float64) * 2.0 ** (shift - 31.0), real, rtol=2.0**-30)
    assert (whole >= 1 << 30).all()
    assert multipliers(np.asarray(2.0**-40))[0] == 0
    with pytest.raises(ValueError, match="beyond 2\\*\\*30"):
        multipliers(np.asarray(2.0**31))


def test_scales_have_zero_as_a_step() -> None:
    for low, high in ((0.3, 2.0), (-1.0, -0.5), (-0.7, 1.9), (0.0, 0.0)):
        for bits in (2, 4, 8):
            scale = scale_for(low, high, bits)
            assert levels_of(np.zeros(1, np.float32), scale)[0] == scale.zero
            ends = (np.array([min(low, 0), max(high, 0)]) / float(scale.size)).round() + scale.zero
            assert scale.low <= ends[0] + 1 and ends[1] - 1 <= scale.high
    with pytest.raises(ValueError, match="infinity or NaN"):
        scale_for(0.0, np.inf)


def affine(y: Node, mean: Any, factor: Any, term: Any) -> Node:
    """A normalisation with known statistics."""
    return E.add(E.mul(E.sub(y, literal(mean)), literal(factor)), literal(term))


def weights(*shape: int) -> np.ndarray:
    return (RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def channels(count: int, low: float = -1.0) -> np.ndarray:
    return RNG.uniform(low, 1.0, (count, 1, 1)).astype(np.float32)


def image_graph() -> tuple[Graph, np.ndarray]:
    """A graph with every kind of anchor, move and map, and values for it."""
    x = input_node(tensor_type((2, 3, 9, 9), float32), "x")
    p: dict[str, Any] = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1)}
    first = conv(x, literal(weights(8, 3, 3, 3)), **p, groups=1)
    first = affine(first, channels(8), channels(8, 0.5), channels(8))
    first = E.select(E.le(first, 0.0), 0.0, first)
    depth = E.add(conv(first, literal(weights(8, 1, 3, 3)), **p, groups=8), literal(channels(8)))
    depth = E.minimum(E.maximum(depth, 0.0), 6.0)
    both = E.maximum(E.add(first, depth), 0.0)
    small = window_max(both, **WINDOW)
    odd = conv(small, literal(weights(4, 4, 2, 2)), strides=(2, 1), padding=((0, 1), (1, 0)), dilation=(1, 2), groups=2)
    mean = E.div(window_sum(E.tanh(odd), **{**WINDOW, "padding": ((1, 1), (0, 0))}), 4.0)
    flat = S.reshape(mean, (2, int(np.prod(mean.shape[1:]))))
    last = E.sub(matmul(flat, literal(weights(5, flat.shape[1]).T.copy())), E.sigmoid(S.slice_axis(flat, 1, 0, 5)))
    return Graph([x], [last]), RNG.normal(size=(2, 3, 9, 9)).astype(np.float32)


def quantised(graph: Graph, value: np.ndarray, bits: int = 8) -> Graph:
    chosen = points(graph)
    seen = evaluate(Graph(graph.inputs, chosen), [value])
    scales = {n: scale_for(float(v.min()), float(v.max()), bits) for n, v in zip(chosen, seen)}
    return inserted(graph, scales)


def test_folding_keeps_values() -> None:
    graph, value = image_graph()
    folded = fold_normalisations(graph)
    assert sum(n.prim is E.mul for n in folded.nodes) == 0
    np.testing.assert_allclose(evaluate(folded, [value])[0], evaluate(graph, [value])[0], rtol=1e-4, atol=1e-5)


def test_folding_goes_through_rounded_weights() -> None:
    x = input_node(tensor_type((1, 2, 4, 4), float32), "x")
    w, scale = weights(3, 2, 1, 1), weight_scale(weights(3, 2, 1, 1), 0)
    held = fake_quant(literal(w), literal(scale.size), literal(np.float32(0)), low=-127, high=127, ties="even")
    y = conv(x, held, strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1)
    graph = Graph([x], [affine(y, channels(3), channels(3), channels(3))])
    value = RNG.normal(size=(1, 2, 4, 4)).astype(np.float32)
    folded = fold_normalisations(graph)
    assert not any(n.prim is E.mul for n in folded.nodes)
    np.testing.assert_allclose(evaluate(folded, [value])[0], evaluate(graph, [value])[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rounding", ["single", "double"])
@pytest.mark.parametrize("bits", [8, 4])
def test_integers_are_the_rounded_graph(rounding: str, bits: int) -> None:
    graph, value = image_graph()
    rounded = quantised(fold_normalisations(graph), value, bits)
    made = lowered(rounded, rounding)
    assert made.floats == []
    assert not any(n.dtype.is_floating for n in made.graph.nodes if n.op not in ("quantize", "dequantize", "constant"))
    found, wanted = evaluate(made.graph, [value])[0], evaluate(rounded, [value])[0]
    step = np.abs(np.diff(np.unique(found))).min()
    # Halves may go to either side, and then the next layer sees a level more or less.
    assert np.abs(found - wanted).max() <= 2.01 * step
    exact = evaluate(graph, [value])[0]
    assert np.abs(found - exact).max() <= (0.12 if bits == 8 else 1.5) * np.abs(exact).max()


def test_ends_may_be_integers() -> None:
    graph, value = image_graph()
    rounded = quantised(fold_normalisations(graph), value)
    made = lowered(rounded, integer_ends=True)
    assert made.graph.inputs[0].dtype is int8 and made.graph.outputs[0].dtype is int8
    assert not any(n.dtype.is_floating for n in made.graph.nodes)
    levels = evaluate(made.graph, [levels_of(value, made.inputs[0])])[0].astype(np.float32)
    scale = made.outputs[0]
    wanted = evaluate(lowered(rounded).graph, [value])[0]
    np.testing.assert_allclose((levels - scale.zero) * scale.size, wanted, atol=1e-6)


def test_clamps_are_told_from_other_choices() -> None:
    x = input_node(tensor_type((3,), float32), "x")
    root = E.add(matmul(S.reshape(x, (1, 3)), literal(weights(3, 3))), literal(weights(3)))

    def ends(end: Node) -> Any:
        found = Regions(Graph([x], [end])).clamp(end, root)
        return found and (found.low, found.high)

    relu = E.select(E.le(root, 0.0), 0.0, root)
    assert ends(relu) == (0.0, np.inf)
    assert ends(E.minimum(relu, 6.0)) == (0.0, 6.0)
    assert ends(E.select(E.le(root, 0.0), 0.0, E.select(E.ge(root, 6.0), 6.0, root))) == (0.0, 6.0)
    # Not one: numbers that differ, the wrong side, a slope.
    assert ends(E.select(E.le(root, 0.5), 0.0, root)) is None
    assert ends(E.select(E.le(root, 0.0), root, 0.0)) is None
    assert ends(E.maximum(root, E.mul(root, 0.1))) is None


def test_biases_out_of_reach_make_larger_steps() -> None:
    x = input_node(tensor_type((1, 4), float32), "x")
    w = weights(3, 4).T.copy()
    w[:, 1] = 1e-12
    graph = Graph([x], [E.add(matmul(x, literal(w)), literal(np.array([0.1, 5.0, -0.2], np.float32)))])
    value = RNG.normal(size=(1, 4)).astype(np.float32)
    made = lowered(quantised(graph, value))
    np.testing.assert_allclose(evaluate(made.graph, [value])[0], evaluate(graph, [value])[0], atol=0.05)


def test_sums_that_may_not_fit_stay_in_floats() -> None:
    x = input_node(tensor_type((1, 70000), float32), "x")
    graph = Graph([x], [matmul(x, literal(np.ones((70000, 1), np.float32)))])
    value = np.ones((1, 70000), np.float32)
    made = lowered(quantised(graph, value))
    assert len(made.floats) == 1
    np.testing.assert_allclose(evaluate(made.graph, [value])[0], 70000.0, rtol=1e-2)


def test_freezing_leaves_no_parameters() -> None:
    x, w = (input_node(tensor_type((2, 2), float32), n) for n in "xw")
    graph = frozen(Graph([x, w], [matmul(x, E.exp(w))]), {w: np.zeros((2, 2), np.float32)})
    assert [i.params["name"] for i in graph.inputs] == ["x"]
    assert [n.op for n in graph.nodes] == ["constant", "matmul"]
