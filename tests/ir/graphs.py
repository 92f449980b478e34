"""Graphs and unregistered primitives that the tests of the representation share."""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import Graph, Node, Where, at, input_node
from mycel._src.compiler.ir.types import TOKEN, TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import Primitive, constant
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.foundation.dtype import bool_, float32

F23 = tensor_type((2, 3), float32)

# A primitive that holds graphs, and one that is ordered by a token.
choose = Primitive("choose", lambda p, x, *, branches: branches[0].output_types[0], doc="One of two graphs.")
mapped = Primitive("mapped", lambda x, *, body: x, doc="A graph for each element.")
shout = Primitive("shout", lambda token, x: (TOKEN, x), effect=True, doc="An effect.")


def linear(x_name: str = "x", line: int = 3, rows: str = "n") -> Graph:
    """sum(max(x @ w + 1, 0)) with a symbolic number of rows."""
    n = symbol(rows)
    x = input_node(tensor_type((n, 4), float32), x_name)
    w = input_node(tensor_type((4, 2), float32), "w")
    with at(Where("model.py", line)):
        y = matmul(x, w)
        y = E.maximum(y + 1.0, constant([0.0, 0.5], float32))
    return Graph([x, w], [reduce_sum(y, axes=(0,), keepdims=False), y], "linear")


def unary_graph(name: str, function: Any, type: TensorType = F23) -> Graph:
    """A graph of one input."""
    x = input_node(type, "x")
    return Graph([x], [function(x)], name)


def conditional(first: Any = E.exp, second: Any = E.neg) -> Graph:
    """choose(p, x) between two nested graphs."""
    p, x = input_node(tensor_type((), bool_), "p"), input_node(F23, "x")
    return Graph([p, x], [choose(p, x, branches=(unary_graph("then", first), unary_graph("orelse", second)))], "f")


def effects(count: int = 2) -> tuple[Graph, list[Node]]:
    """A chain of effects, and the tokens on it."""
    token, x = input_node(TOKEN, "token"), input_node(F23, "x")
    tokens = [token]
    value = x
    for _ in range(count):
        token, value = shout(token, value)
        tokens.append(token)
    return Graph([tokens[0], x], [token, value], "loud"), tokens
