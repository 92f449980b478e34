"""The reference engine's own promises: checked types, solved sizes, clear errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import TOKEN, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims import sort_and_scan
from mycel._src.compiler.prims.base import Primitive, constant
from mycel._src.compiler.prims.reduce import reduce_mean
from mycel._src.engines.reference import apply, evaluate
from mycel._src.foundation.dtype import bool_, float32, float64, int64
from mycel._src.foundation.errors import ShapeError, Unsupported, VerifyError

N = symbol("n")


def rows() -> Graph:
    x = input_node(tensor_type((N, 3), float32), "x")
    mean = reduce_mean(x, axes=(0,), keepdims=True)
    return Graph([x], [x - mean, constant(N), S.iota(shape=(N, 2 * N), axis=1, dtype=int64)], "rows")


@pytest.mark.parametrize("n", [1, 2, 5])
def test_symbols_take_the_sizes_of_the_inputs(n: int) -> None:
    x = np.arange(3.0 * n, dtype=np.float32).reshape(n, 3)
    centred, size, line = evaluate(rows(), [x])
    np.testing.assert_allclose(centred, x - x.mean(axis=0), rtol=1e-6)
    assert size.item() == n and size.dtype == np.int64
    np.testing.assert_array_equal(line, np.tile(np.arange(2 * n), (n, 1)))


def test_symbols_are_solved_from_multiples() -> None:
    x = input_node(tensor_type((2 * N + 1,), float32), "x")
    assert evaluate(Graph([x], [constant(N)]), [np.zeros(7, np.float32)])[0] == 3
    with pytest.raises(ShapeError, match="the size n does not follow from the shapes of the inputs"):
        evaluate(Graph([x], [constant(N)]), [np.zeros(6, np.float32)])


def test_sizes_must_agree() -> None:
    x, y = input_node(tensor_type((N,), float32), "x"), input_node(tensor_type((N,), float32), "y")
    with pytest.raises(ShapeError, match=r"<y: float32\[n\]> was given a size of 3 where n is 2"):
        evaluate(Graph([x, y], [x + y]), [np.zeros(2, np.float32), np.zeros(3, np.float32)])


def test_results_are_contiguous_and_typed() -> None:
    x = input_node(tensor_type((2, 3), float32))
    outputs = evaluate(
        Graph([x], [S.transpose(x, (1, 0)), S.broadcast_to(x, (4, 2, 3)), x]), [np.ones((3, 2), np.float32).T]
    )
    assert all(o.flags.c_contiguous for o in outputs)
    assert [o.shape for o in outputs] == [(3, 2), (4, 2, 3), (2, 3)]


def test_several_outputs_and_repeats() -> None:
    x = input_node(tensor_type((3,), float64))
    values, places = sort_and_scan.sort(x, axis=0, descending=False)
    a, b, c = evaluate(Graph([x], [places, values, values]), [np.array([2.0, 1.0, 3.0])])
    assert a.tolist() == [1, 0, 2] and b.tolist() == c.tolist() == [1, 2, 3]


def test_nodes_need_no_graph() -> None:
    x = input_node(tensor_type((), float64))
    assert evaluate(constant(2.0, float64) * 3.0) == (6.0,)
    assert evaluate([x * x, x], {x: np.array(3.0)}) == (9.0, 3.0)
    with pytest.raises(TypeError, match="given as a mapping from input node to array"):
        evaluate([x], [np.array(3.0)])
    with pytest.raises(VerifyError, match="is reached but is not among the inputs"):
        evaluate([x * 2.0])


def test_inputs_must_fit() -> None:
    graph = rows()
    with pytest.raises(TypeError, match="rows takes 1 inputs, 0 were given"):
        evaluate(graph, [])
    with pytest.raises(TypeError, match="was given an array of float64; pass float32"):
        evaluate(graph, [np.zeros((2, 3))])
    with pytest.raises(ShapeError, match=r"was given an array of shape \(3,\)"):
        evaluate(graph, [np.zeros(3, np.float32)])


def lying(**record: Any) -> Any:
    primitive = Primitive("lying", lambda x: x, **record)
    x = input_node(tensor_type((2,), float32))
    return evaluate(Graph([x], [primitive.node(x)]), [np.ones(2, np.float32)])


def test_a_wrong_infer_rule_shows_at_its_node() -> None:
    with pytest.raises(VerifyError, match=r"lying: infer promises float32\[2\], the reference gave float64\[2\]"):
        lying(reference=lambda x: x.astype(np.float64))
    with pytest.raises(VerifyError, match=r"lying: infer promises float32\[2\], the reference gave float32\[1\]"):
        lying(reference=lambda x: x[:1])
    pair = Primitive("pair", lambda x: (x, x), reference=lambda x: x)
    with pytest.raises(VerifyError, match="pair: infer promises 2 outputs"):
        evaluate(pair.node(constant(1.0)))


def test_a_primitive_without_a_reference_runs_expanded() -> None:
    assert lying(expand=lambda x: x * 2.0)[0].tolist() == [2, 2]
    split = Primitive("split", lambda x: (x, x.with_dtype(bool_)), expand=lambda x: (E.neg(x), E.gt(x, 0.0)))
    assert [a.item() for a in apply(split, [np.array(3.0)], {})] == [-3.0, True]
    with pytest.raises(Unsupported, match="lying has no reference and no expansion"):
        lying()


def test_tokens_pass_through() -> None:
    log: list[float] = []
    note = Primitive(
        "note", lambda token, x: (TOKEN, x), reference=lambda token, x: (log.append(float(x)), x), effect=True
    )
    token, x = input_node(TOKEN), input_node(tensor_type((), float64))
    after, y = note(token, x)
    last, _ = note(after, y * 2.0)
    assert evaluate(Graph([token, x], [last, y]), [None, np.array(1.5)])[1] == 1.5
    assert log == [1.5, 3.0]


def test_nested_graphs_inherit_sizes() -> None:
    body = Graph([], [constant(N)], "body")
    size = Primitive("inner", lambda *, body: body.output_types[0], reference=lambda *, body: evaluate(body)[0])
    run = Primitive(
        "outer", lambda x, *, body: body.output_types[0], reference=lambda x, *, body: evaluate(body, [])[0]
    )
    x = input_node(tensor_type((N,), float32))
    assert size.node(body=body).type is body.output_types[0]
    assert evaluate(Graph([x], [run.node(x, body=body)]), [np.zeros(4, np.float32)]) == (4,)
