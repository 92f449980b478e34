"""Common subexpressions: what is the same becomes one, and what only looks the same does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import Graph, Node, Where, at, input_node
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.ir.types import TOKEN, tensor_type
from mycel._src.compiler.ir.verify import verify
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, constant
from mycel._src.compiler.prims.random import random_bits
from mycel._src.compiler.transforms.optimisation.cse import eliminate_common_subexpressions as cse
from mycel._src.foundation.dtype import bool_, float32, float64, int32, uint32, uint64
from tests.ir.graphs import F23, choose, effects, mapped, shout, unary_graph
from tests.transforms.support import assert_same_values, graph_of, names, random_inputs, special_inputs

VECTOR = tensor_type((3,), float32)

# A primitive with a parameter of any kind.
tagged = Primitive("tagged", lambda x, *, tag: x, doc="A copy with a tag.")


def join(function: Any, *types: Any) -> Graph:
    graph = graph_of(function, *types)
    result = cse(graph)
    verify(result)
    assert result.output_types == graph.output_types
    return result


@pytest.mark.parametrize(
    "function, count",
    [
        (lambda x, y: (E.exp(x), E.exp(x)), 1),
        (lambda x, y: (x + y, y + x), 1),
        (lambda x, y: (x - y, x - y), 1),
        (lambda x, y: (E.sin(x) * E.cos(y), E.cos(y) * E.sin(x)), 3),
        (lambda x, y: (E.maximum(x, y), E.maximum(y, x)), 1),
        (lambda x, y: (R.reduce_sum(x, axes=(0,), keepdims=False), R.reduce_sum(x, keepdims=False, axes=(0,))), 1),
        (lambda x, y: (x * 2.0, x * 2.0), 1),
        (lambda x, y: (x + constant([1, 2, 3], float32), x + constant([1.0, 2.0, 3.0], float32)), 1),
    ],
)
def test_equal_expressions_are_computed_once(function: Any, count: int) -> None:
    result = join(function, F23, F23)
    assert len(names(result)) == count
    assert result.outputs[0] is result.outputs[1]
    before = graph_of(function, F23, F23)
    assert_same_values(before, result, special_inputs(before))
    assert structural_hash(cse(result)) == structural_hash(result)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (E.exp(x), E.exp(y)),
        lambda x, y: (x - y, y - x),
        lambda x, y: (E.lt(x, y), E.lt(y, x)),
        lambda x, y: (R.reduce_sum(x, axes=(0,), keepdims=False), R.reduce_sum(x, axes=(1,), keepdims=False)),
        lambda x, y: (x * 0.0, x * -0.0),
        lambda x, y: (x * constant([1.0], float32), x * 1.0),
        lambda x, y: (E.cast(x, dtype=float64), E.cast(x, dtype=int32)),
        lambda x, y: (tagged(x, tag=0.0), tagged(x, tag=-0.0)),
        lambda x, y: (tagged(x, tag=1), tagged(x, tag=True)),
        lambda x, y: (tagged(x, tag=1), tagged(x, tag=1.0)),
        lambda x, y: (tagged(x, tag=(1, 0.0)), tagged(x, tag=(1, -0.0))),
        lambda x, y: (tagged(x, tag=np.float32(0.0)), tagged(x, tag=np.float32(-0.0))),
    ],
)
def test_different_expressions_stay(function: Any) -> None:
    graph = graph_of(function, F23, F23)
    assert cse(graph) is graph


def test_dead_work_is_not_in_the_result_and_unused_inputs_stay() -> None:
    x, y = input_node(F23, "x"), input_node(F23, "y")
    E.exp(x)
    graph = Graph([x, y], [E.sin(x), E.sin(x)])
    result = cse(graph)
    assert result.inputs == (x, y)
    assert names(result) == ["sin"]


def test_the_first_position_wins() -> None:
    x = input_node(F23, "x")
    with at(Where("model.py", 1)):
        first = E.exp(x)
    with at(Where("model.py", 2)):
        second = E.exp(x)
    result = cse(Graph([x], [first, second]))
    assert [str(n.where) for n in result.nodes] == ["model.py:1"]


def test_nested_graphs_are_the_same_by_structure() -> None:
    result = join(lambda x: mapped(x, body=unary_graph("a", E.exp)) + mapped(x, body=unary_graph("b", E.exp)), F23)
    assert names(result) == ["mapped", "add"]
    graph = graph_of(lambda x: (mapped(x, body=unary_graph("a", E.exp)), mapped(x, body=unary_graph("b", E.sin))), F23)
    assert cse(graph) is graph


def test_work_in_nested_graphs_is_joined() -> None:
    result = join(
        lambda p, x: choose(p, x, branches=(unary_graph("t", lambda a: E.exp(a) + E.exp(a)), unary_graph("e", E.neg))),
        tensor_type((), bool_),
        F23,
    )
    branches = result.outputs[0].params["branches"]
    assert names(branches[0]) == ["exp", "add"]
    assert names(branches[1]) == ["neg"]


def test_a_nested_graph_that_two_nodes_hold_is_one_object_after_too() -> None:
    body = unary_graph("body", lambda a: E.exp(a) + E.exp(a))
    result = join(lambda x: mapped(mapped(x, body=body), body=body), F23)
    first, second = result.nodes
    assert first.params["body"] is second.params["body"]


def test_nested_graphs_of_different_sizes_are_different() -> None:
    n, m = symbol("n"), symbol("m")

    def body(size: Any) -> Graph:
        return unary_graph("body", lambda a: a * S.size_node(size, float32), VECTOR)

    graph = graph_of(
        lambda x, y, z: (mapped(x, body=body(n)), mapped(x, body=body(m))),
        VECTOR,
        tensor_type((n,), float32),
        tensor_type((m,), float32),
    )
    assert structural_hash(body(n)) == structural_hash(body(m))
    assert cse(graph) is graph
    same = graph_of(lambda x, y: (mapped(x, body=body(n)), mapped(x, body=body(n))), VECTOR, tensor_type((n,), float32))
    assert cse(same).outputs[0] is cse(same).outputs[1]


def test_a_nested_graph_without_lasting_identity_is_the_same_as_itself_only() -> None:
    callback = Primitive("callback", lambda x, *, function: x, doc="Python.")

    def function() -> None:
        return None

    def body() -> Graph:
        return unary_graph("body", lambda a: callback(a, function=function))

    shared = body()
    result = join(lambda x: (mapped(x, body=shared), mapped(x, body=shared), mapped(x, body=body())), F23)
    assert result.outputs[0] is result.outputs[1]
    assert result.outputs[2] is not result.outputs[0]


def test_effects_are_never_joined() -> None:
    graph, _ = effects(3)
    assert cse(graph) is graph
    quiet = Primitive("quiet", lambda x: x, effect=True, doc="An effect without a token.")
    twice = graph_of(lambda x: (quiet(x), quiet(x)), F23)
    assert cse(twice) is twice
    token, x = input_node(TOKEN, "token"), input_node(F23, "x")
    after, value = shout(token, E.exp(x))
    last, value = shout(after, value + E.exp(x))
    result = cse(Graph([token, x], [last, value]))
    verify(result)
    assert names(result).count("shout") == 2
    assert names(result).count("exp") == 1


def test_random_numbers_of_one_state_are_the_same() -> None:
    def draw(state: Node) -> Node:
        return random_bits(state, shape=(3,), dtype=uint32)

    result = join(lambda state: (draw(state), draw(state)), tensor_type((2,), uint64))
    assert result.outputs[0] is result.outputs[1]


def test_symbolic_shapes_are_compared_as_expressions() -> None:
    n = symbol("n")
    result = join(lambda x: (S.reshape(x, (2 * n,)), S.reshape(x, (n + n,))), tensor_type((n, 2), float32))
    assert result.outputs[0] is result.outputs[1]


def test_a_graph_that_calls_itself_keeps_doing_so() -> None:
    call = Primitive("call_in_test", lambda x, *, graph: x, doc="A call.")
    x = input_node(F23, "x")
    graph = Graph([x], [], "again")
    graph.outputs = (call(E.exp(x) + E.exp(x), graph=graph),)
    result = cse(graph)
    assert result.outputs[0].params["graph"] is result
    assert names(result) == ["exp", "add", "call_in_test"]
    outer = cse(Graph([x], [call(x, graph=graph)]))
    inner = outer.outputs[0].params["graph"]
    assert inner.outputs[0].params["graph"] is inner


def test_every_node_is_visited_once() -> None:
    def tower(height: int) -> Graph:
        def build(x: Node) -> Node:
            for _ in range(height):
                x = E.tanh(x) + E.tanh(x)
            return x

        return graph_of(build, VECTOR)

    result = cse(tower(500))
    assert len(names(result)) == 1000
    assert_same_values(tower(20), cse(tower(20)), random_inputs(tower(20)))
