"""Constant folding: what is computed while compiling, and what must not be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import Graph, Where, at, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.ir.verify import verify
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims import sort_and_scan
from mycel._src.compiler.prims.base import Primitive, constant
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.random import random_bits
from mycel._src.compiler.transforms.optimisation.constant_folding import LIMIT, fold_constants
from mycel._src.foundation.dtype import float32, float64, int32, uint32, uint64
from mycel._src.foundation.errors import VerifyError
from tests.ir.graphs import F23, mapped, unary_graph
from tests.transforms.support import assert_same_values, constant_of, graph_of, names, special_inputs

A = np.array([[1.0, -2.0, 3.5], [0.5, np.inf, -0.0]])


def k(value: Any, dtype: Any = float64) -> Any:
    return constant(value, dtype)


FOLDED: dict[str, tuple[Any, Any]] = {
    "element-wise": (lambda: E.exp(k(A)) * 2.0, np.exp(A) * 2),
    "NaN": (lambda: k(A) - k(A), A - np.where(np.isinf(A), np.nan, A)),
    "product": (lambda: matmul(k([[1.0, 2.0]]), k([[3.0], [5.0]])), np.array([[13.0]])),
    "reduction": (lambda: R.reduce_sum(k(A[:1]), axes=(1,), keepdims=False), np.array([2.5])),
    "movement": (lambda: S.transpose(S.reshape(k(A), (3, 2)), (1, 0)), A.reshape(3, 2).T),
    "join with a uniform part": (
        lambda: S.concat([S.full((2,), 1.0, float64), k([2.0, 3.0])], 0),
        np.array([1.0, 1.0, 2.0, 3.0]),
    ),
    "conversion": (lambda: E.cast(k([1.5, -2.5, 0.0]), dtype=int32), np.array([1, -2, 0], np.int32)),
    "integers that wrap": (lambda: k(np.array(2**31 - 1, np.int32), int32) + 1, np.array(-(2**31), np.int32)),
    "pad of a scalar": (lambda: S.PAD(k(2.0), k(0.0), low=(), high=(), interior=()) * 2.0, np.array(4.0)),
    "one of several outputs": (
        lambda: sort_and_scan.sort(k([3.0, 1.0, 2.0]), axis=0, descending=False)[1],
        np.array([1, 2, 0], np.int32),
    ),
    "both of several outputs": (
        lambda: (
            sort_and_scan.sort(k([3.0, 1.0, 2.0]), axis=0, descending=True)[0]
            + E.cast(sort_and_scan.sort(k([3.0, 1.0, 2.0]), axis=0, descending=True)[1], dtype=float64)
        ),
        np.array([3.0, 4.0, 2.0]),
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_what_depends_on_constants_is_a_constant(name: str) -> None:
    function, wanted = FOLDED[name]
    graph = graph_of(function)
    with np.errstate(invalid="ignore"):
        result = fold_constants(graph)
    verify(result)
    assert names(result) in ([], ["broadcast_to"])
    value = constant_of(result.outputs[0])
    assert value.dtype == wanted.dtype
    np.testing.assert_allclose(value, wanted, rtol=1e-15)
    assert fold_constants(result) is result


def test_a_constant_of_equal_elements_is_a_broadcast_scalar() -> None:
    graph = graph_of(lambda x: x * constant(np.full((2, 3), 2.5), float32), F23)
    result = fold_constants(graph)
    broadcast = result.outputs[0].inputs[1]
    assert broadcast.prim is S.BROADCAST_TO
    assert broadcast.inputs[0].shape == ()
    assert broadcast.inputs[0].value == np.float32(2.5)
    assert_same_values(graph, result, special_inputs(graph))


@pytest.mark.parametrize(
    "array",
    [np.array([1.0, 2.0]), np.array([0.0, -0.0]), np.zeros((0, 2)), np.float64(3.0), np.r_[np.zeros(100), 1.0]],
    ids=["different", "zeros of two signs", "empty", "scalar", "late"],
)
def test_other_constants_stay(array: Any) -> None:
    graph = graph_of(lambda: k(array))
    assert fold_constants(graph) is graph


def test_equal_nans_are_uniform() -> None:
    result = fold_constants(graph_of(lambda: k([np.nan, np.nan])))
    assert names(result) == ["broadcast_to"]


def test_large_results_are_not_computed_and_large_operands_of_small_ones_are() -> None:
    line = np.arange(LIMIT + 1.0)
    graph = graph_of(lambda: E.exp(k(line)))
    assert fold_constants(graph) is graph
    small = fold_constants(graph_of(lambda: R.reduce_max(k(line), axes=(0,), keepdims=False)))
    assert small.outputs[0].value == LIMIT
    exact = fold_constants(graph_of(lambda: E.neg(k(line[:LIMIT]))))
    np.testing.assert_array_equal(exact.outputs[0].value, -line[:LIMIT])


def test_broadcasts_and_counters_stay() -> None:
    graph = graph_of(
        lambda: (
            S.full((5,), 1.0, float64),
            S.iota(shape=(4,), axis=0, dtype=int32),
            S.broadcast_to(k([1.0, 2.0]), (3, 2)),
        )
    )
    assert fold_constants(graph) is graph


def test_random_numbers_effects_and_nested_graphs_are_never_computed() -> None:
    effect = Primitive("effect_in_test", lambda x: x, lambda x: x, effect=True, doc="An effect.")
    state = constant(np.array([1, 2], np.uint64), uint64)
    graph = graph_of(
        lambda: (
            random_bits(state, shape=(3,), dtype=uint32),
            effect(k([1.0, 2.0])),
            mapped(constant(A, float32), body=unary_graph("body", E.exp)),
        )
    )
    assert fold_constants(graph) is graph


def test_symbolic_sizes_are_not_computed() -> None:
    n = symbol("n")
    graph = graph_of(
        lambda x: S.size_node(n, float32) * 2.0 + R.reduce_sum(x, axes=(0,), keepdims=False), tensor_type((n,), float32)
    )
    assert fold_constants(graph) is graph
    sliced = graph_of(
        lambda x: S.SLICE(k([1.0, 2.0, 3.0]), starts=(0,), stops=(n,), steps=(1,)), tensor_type((n,), float32)
    )
    assert fold_constants(sliced) is sliced


def test_constants_in_nested_graphs_are_computed() -> None:
    graph = graph_of(lambda x: mapped(x, body=unary_graph("body", lambda a: a + E.exp(constant(0.0, float32)))), F23)
    body = fold_constants(graph).outputs[0].params["body"]
    assert names(body) == ["add"]
    assert body.outputs[0].inputs[1].value == 1


def test_a_reference_that_breaks_its_promise_is_named() -> None:
    wrong = Primitive("wrong_in_test", lambda x: x, lambda x: x[:1], doc="Wrong.")
    with pytest.raises(
        VerifyError, match=r"wrong_in_test: infer promises float32\[2\], the reference gave float32\[1\]"
    ):
        fold_constants(graph_of(lambda: wrong(constant([1.0, 2.0], float32))))


def test_positions_are_kept() -> None:
    x = input_node(F23, "x")
    with at(Where("model.py", 5)):
        y = x + E.exp(constant(np.zeros((2, 3)), float32))
    result = fold_constants(Graph([x], [y]))
    assert {str(n.where) for n in result.nodes} == {"model.py:5"}
