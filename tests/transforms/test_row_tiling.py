"""Graphs in stripes of rows: the same numbers, fewer rows in memory."""

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
from mycel._src.compiler.prims.neural.quantisation import int_conv, requantize
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.compiler.transforms.row_tiling import peak_bytes, price, regions, striped
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.foundation.dtype import float32, int8, int32


def image(*shape: int, dtype: Any = float32) -> Node:
    return input_node(tensor_type(shape, dtype), "x")


def _conv(x: Node, w: Node, stride: int = 1, pads: tuple[int, int] = (1, 1), groups: int = 1) -> Node:
    return conv(x, w, strides=(stride, stride), padding=(pads, pads), dilation=(1, 1), groups=groups)


def values(graph: Graph, seed: int = 0) -> list[Any]:
    rng = np.random.RandomState(seed)
    return [
        rng.randint(-100, 100, n.type.shape).astype(n.dtype.numpy)
        if n.dtype.is_integer
        else rng.randn(*n.type.shape).astype(n.dtype.numpy)
        for n in graph.inputs
    ]


def check(graph: Graph, least: int = 1) -> None:
    """Every region in stripes of every height gives the same values."""
    arrays = values(graph)
    want = evaluate(graph, arrays)
    found = regions(graph)
    assert len(found) >= least
    for region in found:
        for height in range(1, region.height):
            got = evaluate(striped(graph, region, height), arrays)
            for a, b in zip(got, want):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5) if b.dtype.kind == "f" else (
                    np.testing.assert_array_equal(a, b)
                )


def test_convolutions_of_several_strides_and_paddings() -> None:
    x, a, b = image(2, 3, 13, 5), image(4, 3, 3, 3), image(4, 1, 4, 3)
    c = image(5, 4, 1, 1)
    y = E.maximum(_conv(_conv(x, a), b, 2, (1, 2), 4), 0.0)
    check(Graph([x, a, b, c], [_conv(y, c, pads=(0, 0))]), 2)


def test_residual_sums_and_branches() -> None:
    x, a, b = image(1, 4, 12, 6), image(4, 4, 3, 3), image(4, 4, 5, 5)
    y = _conv(x, a)
    z = E.add(_conv(E.tanh(_conv(y, b, pads=(2, 2))), a), y)
    both = S.concat([z, _conv(z, a)], 1)
    check(Graph([x, a, b], [window_max(both, window=(2, 2), strides=(2, 2), padding=((0, 0), (0, 0)))]))


def test_windows_with_padding_and_lines_of_time() -> None:
    x, w = image(2, 3, 17), image(6, 3, 3)
    y = conv(x, w, strides=(1,), padding=((2, 0),), dilation=(1,), groups=1)
    y = window_max(y, window=(3,), strides=(2,), padding=((1, 1),))
    y = window_sum(y, window=(2,), strides=(1,), padding=((1, 0),))
    check(Graph([x, w], [E.exp(E.neg(y))]))


def test_integers_are_the_same_bits_also_in_totals() -> None:
    x, w = image(1, 2, 11, 4, dtype=int8), image(3, 2, 3, 3, dtype=int8)
    y = int_conv(x, w, zero=3, strides=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1), groups=1)
    y = requantize(y, 1 << 30, -6, zero=1, low=-128, high=127, rounding="single", dtype=int8)
    wide = E.sub(E.cast(y, dtype=int32), 1)
    whole = window_sum(wide, window=(11, 2), strides=(1, 2), padding=((0, 0), (0, 0)))
    graph = Graph([x, w], [whole])
    assert any(r.total is not None for r in regions(graph))
    check(graph)
    check(Graph([x, w], [reduce_sum(wide, axes=(2, 3), keepdims=False)]))


def test_a_value_that_is_read_elsewhere_is_no_part_of_a_region() -> None:
    x, w = image(1, 2, 9, 4), image(2, 2, 3, 3)
    y = _conv(x, w)
    graph = Graph([x, w], [_conv(y, w), reduce_sum(y, axes=(1, 2, 3), keepdims=False)])
    assert all(y not in r.nodes or r.last is y for r in regions(graph))
    check(graph, 0)


def test_sums_of_floats_are_not_divided() -> None:
    x, w = image(1, 2, 9, 4), image(2, 2, 3, 3)
    graph = Graph([x, w], [reduce_sum(_conv(_conv(x, w), w), axes=(2, 3), keepdims=False)])
    assert all(r.total is None for r in regions(graph))


@pytest.mark.parametrize("height", [1, 2, 4])
def test_what_stripes_take_and_copy(height: int) -> None:
    x, w = image(1, 1, 32, 8), image(1, 1, 3, 3)
    y = _conv(_conv(_conv(_conv(x, w), w), w), w)
    region = regions(Graph([x, w], [y]))[-1]
    count, copied = price(region, height)
    row = 8 * 4
    assert count == 32 // height
    # Three values keep two rows from each stripe for the next one that computes rows of them.
    assert copied <= 3 * 2 * row * (count - 1)
    # And one of them is there twice for a while.
    assert peak_bytes(region, height) <= 32 * row + 4 * (height + 4) * row
