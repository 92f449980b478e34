"""Sums of products of bytes by instructions of four at once, against NumPy's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel.base.dtype import int8, uint8
from mycel.engines import buffers
from mycel.engines.native.dense.dots import has_dots, tile_of
from mycel.engines.native.lowering.dot_rules import is_dot
from mycel.engines.native.program.compiling import compile_native
from mycel.engines.reference import evaluate
from mycel.ir.graph import Graph, Node, input_node
from mycel.ir.types import tensor_type
from mycel.prims.base import constant
from mycel.prims.quantisation import int_conv, int_matmul
from mycel.prims.shape import transpose

RNG = np.random.default_rng(4)
needs_dots = pytest.mark.skipif(not has_dots(), reason="this processor has no products of four bytes")


def bytes_of(shape: tuple[int, ...], kind: Any = np.int8) -> np.ndarray:
    ends = np.iinfo(kind)
    # The ends of the type, too: products of these are the largest.
    return RNG.choice([ends.min, ends.max, *range(-9 if ends.min else 0, 9)], shape).astype(kind)


def images() -> list[dict[str, Any]]:
    found = []
    for k in range(24):
        rows, columns = (int(v) for v in RNG.integers(1, 4, 2))
        found.append(
            {
                "x": (
                    int(RNG.integers(1, 4)),
                    int(RNG.integers(1, 19)),
                    int(RNG.integers(7, 15)),
                    int(RNG.integers(4, 31)),
                ),
                "outputs": int(RNG.choice([6, 15, 16, 17, 33, 48, 64, 70])),
                "kernel": (rows, columns),
                "strides": tuple(int(v) for v in RNG.integers(1, 4, 2)),
                "padding": tuple((int(a), int(b)) for a, b in RNG.integers(0, 3, (2, 2))),
                "dilation": (int(RNG.integers(1, 3)), 1),
                "zero": int(RNG.integers(-128, 128)) if k % 2 else int(RNG.integers(0, 256)),
                "signed": bool(k % 2),
            }
        )
    return found


@needs_dots
@pytest.mark.parametrize("case", images(), ids=lambda c: f"{c['x']}-{c['outputs']}-{c['kernel']}")
def test_images(case: dict[str, Any]) -> None:
    kind = int8 if case["signed"] else uint8
    x = input_node(tensor_type(case["x"], kind), "x")
    w = constant(bytes_of((case["outputs"], case["x"][1], *case["kernel"])))
    p = {k: case[k] for k in ("strides", "padding", "dilation", "zero")}
    y = int_conv(x, w, groups=1, **p)
    assert is_dot(y)
    check(Graph([x], [y]), bytes_of(case["x"], kind.numpy))


@needs_dots
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (47, 64), (48, 65), (97, 7), (3, 2, 20), (2, 3, 25, 9)])
@pytest.mark.parametrize("outputs", [6, 16, 40, 130])
def test_matrices(shape: tuple[int, ...], outputs: int) -> None:
    a = input_node(tensor_type(shape, int8), "a")
    y = int_matmul(a, constant(bytes_of((shape[-1], outputs))), a_zero=-7, b_zero=0)
    assert is_dot(y)
    check(Graph([a], [y]), bytes_of(shape))


@needs_dots
def test_operands_lie_anyhow() -> None:
    a = input_node(tensor_type((9, 30), int8), "a")
    y = int_matmul(transpose(a, (1, 0)), constant(bytes_of((9, 20))), a_zero=3, b_zero=0)
    check(Graph([a], [y]), bytes_of((9, 30)))


def test_what_has_no_such_kernel_is_a_nest() -> None:
    x, w = input_node(tensor_type((1, 4, 5, 5), int8), "x"), constant(bytes_of((8, 2, 2, 2)))
    p: dict[str, Any] = {"strides": (1, 1), "padding": ((0, 0), (0, 0)), "zero": 0}
    grouped = int_conv(x, w, groups=2, dilation=(1, 1), **p)
    apart = int_conv(x, constant(bytes_of((8, 4, 2, 2))), groups=1, dilation=(1, 2), **p)
    free = input_node(tensor_type((4, 8), int8), "b")
    both: list[Node] = [grouped, apart]
    assert not any(map(is_dot, both))
    assert not is_dot(int_matmul(input_node(tensor_type((2, 4), int8), "a"), free, a_zero=0, b_zero=0))
    check(Graph([x], both), bytes_of((1, 4, 5, 5)))


def test_tiles_waste_little() -> None:
    assert [tile_of(n).vectors for n in (6, 16, 17, 40, 64, 80, 96)] == [1, 1, 2, 3, 4, 1, 3]


def check(graph: Graph, value: np.ndarray) -> None:
    program = compile_native(graph)
    made = program.entry(buffers.from_array(value))
    made = made if isinstance(made, tuple) else (made,)
    for found, wanted, kind in zip(made, evaluate(graph, [value]), graph.output_types):
        np.testing.assert_array_equal(buffers.to_array(found, kind), wanted)
