"""The structural digest: what it sees and what it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, constant
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.foundation.dtype import float32, float64
from tests.ir.graphs import F23, conditional, effects, linear, mapped, unary_graph

ROOT = Path(__file__).parents[2]


def build(function: Any, *types: Any) -> Graph:
    inputs = [input_node(t) for t in types or (F23, F23)]
    return Graph(inputs, [function(*inputs)])


def test_names_positions_and_identities_do_not_count() -> None:
    digest = structural_hash(linear())
    assert len(digest) == 64 and set(digest) <= set("0123456789abcdef")
    assert digest == structural_hash(linear("images", 77, "batch"))
    assert structural_hash(conditional()) == structural_hash(conditional())
    assert structural_hash(effects(2)[0]) == structural_hash(effects(2)[0])


def different() -> list[Graph]:
    n, m = symbol("n"), symbol("m")
    f = float32
    x = input_node(F23)
    stacked = E.exp(x)
    return [
        linear(),
        conditional(),
        conditional(E.neg, E.exp),
        conditional(E.exp, E.sin),
        effects(1)[0],
        effects(2)[0],
        build(E.add),
        build(E.mul),
        build(lambda a, b: E.add(b, a)),
        build(lambda a, b: E.add(a, a)),
        build(E.exp, F23),
        build(E.exp, tensor_type((3, 2), f)),
        build(E.exp, tensor_type((2, 3), float64)),
        build(E.exp, tensor_type((n, 3), f)),
        build(E.exp, tensor_type((n, n), f)),
        build(E.exp, tensor_type((n, m), f)),
        build(E.exp, tensor_type((symbol("even", 2), m), f)),
        build(E.exp, tensor_type((2 * n, m), f)),
        build(lambda a: a + 1.0, F23),
        build(lambda a: a + 2.0, F23),
        build(lambda a: a + 0.0, F23),
        build(lambda a: a + -0.0, F23),
        build(lambda a: a + constant(np.arange(30.0), f), tensor_type((30,), f)),
        build(lambda a: a + constant(np.arange(30.0) + 1, f), tensor_type((30,), f)),
        build(lambda a: reduce_sum(a, axes=(0,), keepdims=False), F23),
        build(lambda a: reduce_sum(a, axes=(1,), keepdims=False), F23),
        build(lambda a: reduce_sum(a, axes=(0,), keepdims=True), F23),
        build(lambda a: mapped(a, body=unary_graph("body", E.exp)), F23),
        build(lambda a: mapped(a, body=unary_graph("body", E.sin)), F23),
        Graph([x], [stacked, stacked]),
        Graph([x], [stacked, x]),
        Graph([x], []),
    ]


def test_structure_counts() -> None:
    digests = [structural_hash(g) for g in different()]
    assert len(set(digests)) == len(digests)
    assert digests == [structural_hash(g) for g in different()]


def test_symbols_are_renamed_throughout() -> None:
    def flat(a: str, b: str) -> Graph:
        n, m = symbol(a), symbol(b)
        return build(lambda x: S.reshape(x, (n * m + 0 * n, 1)), tensor_type((n, m), float32))

    assert structural_hash(flat("n", "m")) == structural_hash(flat("z", "a"))
    n, m = symbol("n"), symbol("m")
    one = build(lambda x: S.full((n + m,), 0, float32), tensor_type((n, m), float32))
    other = build(lambda x: S.full((n + n,), 0, float32), tensor_type((n, m), float32))
    assert structural_hash(one) != structural_hash(other)


def test_sharing_of_nested_graphs_does_not_count() -> None:
    body = unary_graph("body", E.exp)
    shared = build(lambda a: mapped(mapped(a, body=body), body=body), F23)
    separate = build(lambda a: mapped(mapped(a, body=unary_graph("b", E.exp)), body=unary_graph("c", E.exp)), F23)
    assert structural_hash(shared) == structural_hash(separate)


def test_deep_sharing_is_written_once_a_level() -> None:
    graph = unary_graph("leaf", E.exp)
    for _ in range(40):
        inner = graph
        graph = unary_graph("level", lambda a, inner=inner: mapped(mapped(a, body=inner), body=inner))
    assert len(structural_hash(graph)) == 64


def test_a_parameter_without_lasting_identity_is_an_error() -> None:
    callback = Primitive("callback", lambda x, *, function: x, doc="Python.")
    with pytest.raises(TypeError, match="a parameter of type function has no lasting identity"):
        structural_hash(build(lambda a: callback(a, function=lambda: 0), F23))


def test_an_open_graph_is_an_error() -> None:
    with pytest.raises(ValueError, match="is reached but is not an input of f"):
        structural_hash(Graph([], [E.exp(input_node(F23))], "f"))


def test_the_digest_is_that_of_another_process() -> None:
    code = (
        "from tests.ir.graphs import linear; from mycel._src.compiler.ir.structural_hash import structural_hash; "
        "print(structural_hash(linear()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == structural_hash(linear())


def test_it_is_linear_in_shared_structure() -> None:
    node: Node = input_node(F23)
    x = node
    for _ in range(2000):
        node = E.add(node, node)
    assert structural_hash(Graph([x], [node])) == structural_hash(Graph([x], [node]))
