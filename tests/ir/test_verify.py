"""Each invariant of a graph, broken."""

from __future__ import annotations

from typing import Any

import pytest

from mycel._src.compiler.ir.graph import Graph, Node, Where, input_node
from mycel._src.compiler.ir.types import TOKEN, tensor_type
from mycel._src.compiler.ir.verify import verify
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import get_item
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.foundation.dtype import float32
from mycel._src.foundation.errors import VerifyError
from tests.ir.graphs import F23, choose, conditional, effects, linear, mapped, shout, unary_graph


@pytest.mark.parametrize("graph", [linear(), conditional(), effects()[0], Graph([], [], "empty")], ids=lambda g: g.name)
def test_sound_graphs_pass(graph: Graph) -> None:
    assert verify(graph) is None


def broken(graph: Graph, text: str) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(graph)
    assert text in str(caught.value)


def test_every_input_is_listed() -> None:
    x, y = input_node(F23, "x"), input_node(F23, "y")
    broken(Graph([x], [x + y], "f"), "f: `input y: float32[2, 3]` is reached but is not an input of the graph")


def test_inputs_are_distinct_input_nodes() -> None:
    x = input_node(F23, "x")
    broken(Graph([x, x], [x], "f"), "f: the graph lists an input twice")
    broken(
        Graph([E.exp(x)], [], "f"),
        "`float32[2, 3] = exp(<float32[2, 3]>)` is listed as an input but applies a primitive",
    )


def test_types_are_those_inferred() -> None:
    x = input_node(F23, "x")
    wrong = Node(E.exp, (x,), {}, tensor_type((3, 2), float32), Where("m.py", 4))
    broken(
        Graph([x], [wrong], "f"), "f: `float32[3, 2] = exp(<float32[2, 3]>)  # m.py:4` should have type float32[2, 3]"
    )


def test_inference_succeeds() -> None:
    x = input_node(F23, "x")
    broken(
        Graph([x], [Node(matmul, (x, x), {}, F23)]), "does not infer: matmul: inner dimensions differ: (2, 3) @ (2, 3)"
    )
    broken(Graph([x], [Node(E.add, (x,), {}, F23)]), "does not infer: add takes 2 operands, not 1")


def test_parameters_are_hashable() -> None:
    x = input_node(F23, "x")
    broken(Graph([x], [Node(E.exp, (x,), {"note": [1]}, F23)]), "has a parameter note that is not hashable, [1]")


def test_types_are_types() -> None:
    x: Any = input_node(F23, "x")
    broken(Graph([x], [Node(E.exp, (x,), {}, (2, 3))]), "has (2, 3) for a type")


def test_nested_graphs_are_checked_and_closed() -> None:
    p, x = conditional().inputs
    captured = Graph([], [E.exp(x)], "then")
    broken(
        Graph([p, x], [choose(p, x, branches=(captured, unary_graph("orelse", E.neg)))], "f"),
        "f.branches: `input x: float32[2, 3]` is reached but is not an input of the graph",
    )
    wrong = unary_graph("body", lambda v: Node(E.exp, (v,), {}, tensor_type((), float32)))
    broken(Graph([x], [mapped(x, body=wrong)], "f"), "f.body: `float32[] = exp(<float32[2, 3]>)` should have type")


def test_a_token_is_used_once() -> None:
    graph, tokens = effects()
    again = shout(tokens[0], graph.inputs[1])
    broken(Graph(graph.inputs, [*graph.outputs, again[0]], "f"), "`input token: token` is a token that is used twice")
    broken(Graph(graph.inputs, [*graph.outputs, graph.outputs[0]], "f"), "is a token that is used twice")


def test_a_token_is_taken_once() -> None:
    graph, tokens = effects(1)
    whole = tokens[1].inputs[0]
    twice = [get_item(whole, 0), get_item(whole, 0)]
    assert all(n.type is TOKEN for n in twice)
    broken(Graph(graph.inputs, twice, "f"), "takes a token that was taken already")
