"""Sums of products of levels with channels last, and what follows them, against NumPy's
integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.neural.quantisation import int_conv, int_matmul
from mycel._src.compiler.prims.shape import transpose
from mycel._src.engines import buffers
from mycel._src.engines.native.kernels.dot_product_instructions import unit_for
from mycel._src.engines.native.operations.convolution.channels_last_rules import is_channelled
from mycel._src.engines.native.operations.convolution.depthwise_channels_last_float_kernel import Line, stretches_of
from mycel._src.engines.native.operations.convolution.depthwise_channels_last_int8_kernel import order
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import int8

from .channels_last_cases import Case, bytes_of, image_cases, matrix_cases

RNG = np.random.default_rng(4)
has_units = pytest.mark.skipif(unit_for(int8) is None, reason="this processor has no products of bytes")


@has_units
@pytest.mark.parametrize("case", [*image_cases(54, 1), *matrix_cases(2)], ids=lambda c: c.name)
def test_integers(case: Case) -> None:
    sums = [n for n in case.graph.nodes if n.prim in (int_conv, int_matmul)]
    assert all(map(is_channelled, sums))
    check(case.graph, *case.values)


@has_units
def test_operands_lie_anyhow() -> None:
    a = input_node(tensor_type((9, 30), int8), "a")
    y = int_matmul(transpose(a, (1, 0)), constant(bytes_of(RNG, (9, 20))), a_zero=3, b_zero=0)
    check(Graph([a], [y]), bytes_of(RNG, (9, 30)))


def test_what_has_no_such_kernel_is_a_nest() -> None:
    x, w = input_node(tensor_type((1, 4, 5, 5), int8), "x"), constant(bytes_of(RNG, (8, 2, 2, 2)))
    p: dict[str, Any] = {"strides": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "zero": 0}
    grouped = int_conv(x, w, groups=2, **p)
    free = input_node(tensor_type((4, 8), int8), "b")
    assert not is_channelled(grouped)
    assert not is_channelled(int_matmul(input_node(tensor_type((2, 4), int8), "a"), free, a_zero=0, b_zero=0))
    check(Graph([x], [grouped]), bytes_of(RNG, (1, 4, 5, 5)))


def test_lines_are_covered_by_their_tiles() -> None:
    for count in range(1, 20):
        line = Line(count, 2, 1, 2 * count, 3, 1)
        for height in range(1, min(count, 8) + 1):
            found = [
                start + k * height + m
                for start, tiles, _ in stretches_of(line, height)
                for k in range(tiles)
                for m in range(height)
            ]
            assert sorted(set(found)) == list(range(count))


def test_orders_of_blocks_are_permutations() -> None:
    for lanes in (4, 8, 16):
        for elements in (2, 4):
            assert sorted(order(lanes, elements)) == list(range(lanes * elements))
    assert order(4, 4) == list(range(16))


def check(graph: Graph, *values: np.ndarray) -> None:
    program = compile_native(graph)
    made = program.entry(*[buffers.from_array(v) for v in values])
    made = made if isinstance(made, tuple) else (made,)
    for found, wanted, kind in zip(made, evaluate(graph, list(values)), graph.output_types):
        np.testing.assert_array_equal(buffers.to_array(found, kind), wanted)
