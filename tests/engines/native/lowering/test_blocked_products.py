"""Large products that an element-wise group reads are computed by blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.engines import buffers
from mycel._src.engines.native.lowering import blocked_products
from mycel._src.engines.native.lowering.lower import lower
from mycel._src.engines.native.onednn.dense_call import DenseCall
from mycel._src.engines.native.program.program import build
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.foundation import dtype as D

ROWS, COLUMNS, COMMON = 200, 96, 5
SHAPES = {
    "w": (ROWS, COLUMNS),
    "v": (ROWS, COLUMNS),
    "u": (ROWS, COLUMNS),
    "row": (1, COLUMNS),
    "vector": (COLUMNS,),
    "column": (ROWS, 1),
    "number": (),
    "a": (ROWS, COMMON),
    "at": (COMMON, ROWS),
    "b": (COMMON, COLUMNS),
    "wt": (COLUMNS, ROWS),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take products of this size for large ones."""
    monkeypatch.setattr(blocked_products, "LEAST", ROWS * COLUMNS * 4)
    monkeypatch.setattr(blocked_products, "BLOCK", 64 * COLUMNS * 4)
    monkeypatch.setattr(blocked_products, "LEAST_PART", 40 * COLUMNS * 4)


class Made:
    """A graph that is being made, of the inputs that it names."""

    def __init__(self) -> None:
        self.inputs: dict[str, Node] = {}

    def __getattr__(self, name: str) -> Node:
        return self.inputs.setdefault(name, input_node(tensor_type(SHAPES[name], D.float32), name))

    def gradient(self) -> Node:
        return matmul(S.transpose(self.at, (1, 0)), self.b)


def momentum(m: Made) -> tuple[list[Node], dict[int, str]]:
    state = E.add(E.mul(m.v, 0.9), m.gradient())
    return [E.sub(m.w, E.mul(state, m.number)), state], {0: "w", 1: "v"}


def without_aliases(m: Made) -> tuple[list[Node], dict[int, str]]:
    return momentum(m)[0], {}


def half_aliased(m: Made) -> tuple[list[Node], dict[int, str]]:
    return momentum(m)[0], {1: "v"}


def crossed(m: Made) -> tuple[list[Node], dict[int, str]]:
    return momentum(m)[0], {0: "v", 1: "w"}


def all_operands(m: Made) -> tuple[list[Node], dict[int, str]]:
    sums = E.mul(E.mul(E.add(E.mul(m.gradient(), m.row), m.vector), m.column), m.number)
    wide = S.broadcast_to(m.column, (ROWS, COLUMNS))
    return [E.add(E.add(E.tanh(sums), E.mul(wide, S.transpose(m.wt, (1, 0)))), m.u)], {0: "u"}


def two_products(m: Made) -> tuple[list[Node], dict[int, str]]:
    g, h = m.gradient(), matmul(m.a, m.b)
    state = E.add(m.v, E.mul(g, h))
    return [E.sub(m.w, state), state], {0: "w", 1: "v"}


def several_updates(m: Made) -> tuple[list[Node], dict[int, str]]:
    g, h = m.gradient(), E.tanh(matmul(m.a, m.b))
    return [E.sub(m.w, g), E.add(m.v, h), E.mul(m.u, 2.0)], {0: "w", 1: "v", 2: "u"}


def read_later(m: Made) -> tuple[list[Node], dict[int, str]]:
    (w, state), aliases = momentum(m)
    return [w, state, R.reduce_sum(E.exp(m.w), axes=(0,), keepdims=False)], aliases


def product_wanted(m: Made) -> tuple[list[Node], dict[int, str]]:
    g = m.gradient()
    return [E.sub(m.w, g), g], {0: "w"}


def norm_wanted(m: Made) -> tuple[list[Node], dict[int, str]]:
    g = m.gradient()
    norm = E.sqrt(R.reduce_sum(E.mul(g, g), axes=(0, 1), keepdims=False))
    return [E.sub(m.w, E.div(g, norm))], {0: "w"}


def turned(m: Made) -> tuple[list[Node], dict[int, str]]:
    return [E.add(S.transpose(m.gradient(), (1, 0)), m.wt)], {}


def factor_replaced(m: Made) -> tuple[list[Node], dict[int, str]]:
    return [E.sub(m.w, m.gradient()), E.mul(m.b, 2.0)], {0: "w", 1: "b"}


def factor_is_operand(m: Made) -> tuple[list[Node], dict[int, str]]:
    return [E.add(matmul(m.w, matmul(S.transpose(m.v, (1, 0)), m.u)), m.w)], {0: "w"}


def parts(m: Made) -> tuple[list[Node], dict[int, str]]:
    top, rest = (E.tanh(S.slice_axis(m.u, 0, *ends)) for ends in ((0, 50), (50, ROWS)))
    return [E.sub(m.w, E.mul(S.concat([top, rest], 0), m.number))], {0: "w"}


def parts_and_moments(m: Made) -> tuple[list[Node], dict[int, str]]:
    cuts = [E.exp(S.slice_axis(m.u, 0, first, first + 40)) for first in range(0, ROWS, 40)]
    state = E.add(E.mul(m.v, 0.9), S.concat(cuts, 0))
    return [E.sub(m.w, E.mul(state, m.row)), state], {0: "w", 1: "v"}


def parts_of_what_is_replaced(m: Made) -> tuple[list[Node], dict[int, str]]:
    ends = (120, ROWS), (0, 120)
    return [E.sub(m.w, S.concat([S.slice_axis(m.w, 0, *e) for e in ends], 0))], {0: "w"}


def parts_of_unlike_heights(m: Made) -> tuple[list[Node], dict[int, str]]:
    one, two = (
        S.concat([E.exp(S.slice_axis(x, 0, 0, k)), E.tanh(S.slice_axis(x, 0, k, ROWS))], 0)
        for x, k in ((m.u, 50), (m.v, 80))
    )
    return [E.sub(m.w, E.mul(one, two))], {0: "w"}


def parts_and_products(m: Made) -> tuple[list[Node], dict[int, str]]:
    halves = [E.exp(S.slice_axis(m.u, 0, *ends)) for ends in ((0, 100), (100, ROWS))]
    return [E.sub(m.w, E.mul(S.concat(halves, 0), m.gradient()))], {0: "w"}


def parts_wanted(m: Made) -> tuple[list[Node], dict[int, str]]:
    joined = S.concat([E.exp(S.slice_axis(m.u, 0, *ends)) for ends in ((0, 100), (100, ROWS))], 0)
    return [E.sub(m.w, joined), joined], {0: "w"}


BLOCKED = [momentum, half_aliased, crossed, all_operands, two_products, several_updates, read_later, parts_and_products]
WHOLE = [without_aliases, product_wanted, norm_wanted, turned, factor_replaced, factor_is_operand]
# How many steps update the parameter.
IN_PARTS = {parts: 2, parts_and_moments: 5, parts_of_unlike_heights: 2}
TOGETHER = [parts_of_what_is_replaced, parts_wanted]


@pytest.mark.parametrize("case", [*BLOCKED, *WHOLE, *IN_PARTS, *TOGETHER], ids=lambda case: case.__name__)
def test_results_are_those_of_the_reference(case: Any) -> None:
    made = Made()
    outputs, replaced = case(made)
    graph, names = Graph(list(made.inputs.values()), outputs), list(made.inputs)
    aliases = {output: names.index(name) for output, name in replaced.items()}
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(-1, 1, SHAPES[name]).astype(np.float32) for name in names]
    want = evaluate(graph, arrays)
    lowered = lower(graph, aliases)
    steps = lowered.steps
    products = [s for s in steps if isinstance(s.data, DenseCall)]
    if case in [*IN_PARTS, *TOGETHER]:
        updates = sum(lowered.outputs[0].buffer in s.writes for s in steps)
        assert updates == IN_PARTS.get(case, 1)
    sizes = {tuple(s.data.node.type.shape) for s in products}
    assert ((64, COLUMNS) in sizes and (ROWS % 64, COLUMNS) in sizes) == (case in BLOCKED)
    given = [buffers.from_array(a) for a in arrays]
    found = build(graph, aliases).entry(*given)
    for number, (value, expected, kind) in enumerate(
        zip(found if isinstance(found, tuple) else (found,), want, graph.output_types)
    ):
        got = buffers.to_array(value, kind)
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)
        if number in aliases:
            np.testing.assert_array_equal(buffers.to_array(given[aliases[number]], kind), got)
    for name, array, buffer in zip(names, arrays, given):
        if name not in replaced.values():
            np.testing.assert_array_equal(buffers.to_array(buffer, tensor_type(SHAPES[name], D.float32)), array)


def test_a_product_of_few_long_rows_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked_products, "BLOCK", 1)
    for rows, count in ((100, 1), (128, 2), (200, 4)):
        a, b, w = (input_node(tensor_type(s, D.float32)) for s in ((rows, 3), (3, 300), (rows, 300)))
        graph = Graph([a, b, w], [E.sub(w, matmul(a, b))])
        products = [s for s in lower(graph, {0: 2}).steps if isinstance(s.data, DenseCall)]
        assert len(products) == count
