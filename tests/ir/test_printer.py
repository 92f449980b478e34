"""The text of graphs."""

from __future__ import annotations

import textwrap

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Where, at, input_node
from mycel._src.compiler.ir.printer import node_text, to_text
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import sort_and_scan
from mycel._src.compiler.prims.base import constant
from mycel._src.foundation.dtype import float32
from tests.ir.graphs import F23, conditional, effects, linear, mapped, unary_graph


def same(actual: str, expected: str) -> None:
    assert actual == textwrap.dedent(expected).strip("\n")


def test_statements_types_and_positions() -> None:
    same(
        to_text(linear()),
        """
        def linear(x: float32[n, 4], w: float32[4, 2]) -> (float32[2], float32[n, 2]):
            v0: float32[n, 2] = matmul(x, w)  # model.py:3
            v1: float32[n, 2] = add(v0, 1.0)  # model.py:3
            v2: float32[2] = constant([0.0, 0.5])  # model.py:3
            v3: float32[n, 2] = maximum(v1, v2)  # model.py:3
            v4: float32[2] = reduce_sum(v3, axes=(0,), keepdims=False)
            return v4, v3
        """,
    )


def test_nested_graphs_are_indented_functions() -> None:
    same(
        to_text(conditional()),
        """
        def f(p: bool[], x: float32[2, 3]) -> float32[2, 3]:
            def then(x_1: float32[2, 3]) -> float32[2, 3]:
                v0: float32[2, 3] = exp(x_1)
                return v0
            def orelse(x_2: float32[2, 3]) -> float32[2, 3]:
                v1: float32[2, 3] = neg(x_2)
                return v1
            v2: float32[2, 3] = choose(p, x, branches=(then, orelse))
            return v2
        """,
    )


def test_a_graph_used_twice_is_printed_once() -> None:
    body = unary_graph("body", E.exp)
    x = input_node(F23, "x")
    text = to_text(Graph([x], [mapped(mapped(x, body=body), body=body)], "f"))
    assert text.count("def body") == 1
    assert text.count("body=body") == 2


def test_parts_of_tuples_and_tokens() -> None:
    x = input_node(tensor_type((3,), float32), "x")
    values, places = sort_and_scan.sort(x, axis=0, descending=True)
    same(
        to_text(Graph([x], [places, values], "f")),
        """
        def f(x: float32[3]) -> (int32[3], float32[3]):
            v0: (float32[3], int32[3]) = sort(x, axis=0, descending=True)
            return v0[1], v0[0]
        """,
    )
    assert "v1: (token, float32[2, 3]) = shout(v0[0], v0[1])" in to_text(effects()[0])


def test_names_never_clash() -> None:
    inputs = [input_node(F23, name) for name in ("v0", "v0", "lambda", "two words", "f")]
    total = inputs[0]
    for i in inputs[1:]:
        total = total + i
    same(
        to_text(Graph(inputs, [total], "f")).splitlines()[0],
        "def f(v0: float32[2, 3], v0_1: float32[2, 3], x: float32[2, 3], x_1: float32[2, 3], f_1: float32[2, 3]) -> "
        "float32[2, 3]:",
    )
    assert "v1: float32[2, 3] = add(v0, v0_1)" in to_text(Graph(inputs, [total], "f"))


def test_long_constants_are_left_out_and_other_parameters_shown() -> None:
    x = input_node(F23, "x")
    text = to_text(
        Graph(
            [x],
            [E.cast(x + constant(np.ones((2, 3)), float32), dtype=float32), x + constant(np.ones((9, 2, 3)), float32)],
        )
    )
    assert "constant([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])" in text
    assert "float32[9, 2, 3] = constant(...)" in text
    assert "dtype=float32" in text


def test_an_open_graph_still_prints() -> None:
    x = input_node(F23, "stray")
    assert "exp(<stray, which is not an input>)" in to_text(Graph([], [E.exp(x)], "f"))
    assert to_text(Graph([], [], "f")) == "def f() -> ():\n    return ()"


def test_one_node() -> None:
    x = input_node(F23, "x")
    with at(Where("a.py", 9)):
        y = x * 2.0
    assert node_text(y) == "float32[2, 3] = mul(<float32[2, 3]>, <float32[]>)  # a.py:9"
    assert node_text(x) == "input x: float32[2, 3]"
