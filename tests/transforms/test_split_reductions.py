"""Reductions in two stages: which are split, into what, and that values stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import Graph, Where, at, input_node
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.ir.verify import verify
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.transforms.optimisation.passes import optimize
from mycel._src.compiler.transforms.optimisation.simplify import simplify
from mycel._src.compiler.transforms.optimisation.split_reductions import FEW, MANY, split_reductions
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import DType, bfloat16, bool_, float16, float32, float64, int32
from tests.ir.graphs import mapped
from tests.transforms.support import assert_same_values, graph_of, random_inputs

Shape = tuple[int, ...]


def reduction(
    shape: Shape, axes: tuple[int, ...], prim: Any = R.reduce_sum, dtype: DType = float32, keep: bool = False
) -> Graph:
    return graph_of(lambda x: prim(x, axes=axes, keepdims=keep), tensor_type(shape, dtype))


def stages(graph: Graph) -> list[Any]:
    """The operand's shape and the axes of each reduction."""
    return [
        (n.inputs[0].shape, n.params["axes"])
        for n in graph.nodes
        if n.prim is not None and n.prim.name.startswith("reduce")
    ]


@pytest.mark.parametrize(
    "shape, axes, wanted",
    [
        # One axis is cut into a number of parts near 32 ...
        ((1 << 17,), (0,), [((32, 4096), (1,)), ((32,), (0,))]),
        ((100_000,), (0,), [((32, 3125), (1,)), ((32,), (0,))]),
        ((3 * 29 * 1009,), (0,), [((29, 3027), (1,)), ((29,), (0,))]),
        ((3, 1 << 16), (1,), [((3, 32, 2048), (2,)), ((3, 32), (1,))]),
        ((1 << 16, 3), (0,), [((32, 2048, 3), (1,)), ((32, 3), (0,))]),
        # ... or the outermost of several makes the parts as it is.
        ((32, 56, 56), (0, 1, 2), [((32, 56, 56), (1, 2)), ((32,), (0,))]),
        ((8, 3, 64, 64), (0, 2, 3), [((8, 3, 64, 64), (2, 3)), ((8, 3), (0,))]),
        ((2, 7, 10_000), (0, 1, 2), [((2, 7, 10_000), (2,)), ((2, 7), (0, 1))]),
        ((4, 50_000), (0, 1), [((4, 8, 6250), (2,)), ((4, 8), (0, 1))]),
        ((1024, 128), (0, 1), [((1024, 128), (1,)), ((1024,), (0,))]),
        ((8192, 64), (0, 1), [((32, 256, 64), (1, 2)), ((32,), (0,))]),
        # An axis that would leave too little for each part is cut all the same.
        ((100_000, 3), (0, 1), [((32, 3125, 3), (1, 2)), ((32,), (0,))]),
    ],
)
def test_long_reductions_are_split(shape: Shape, axes: tuple[int, ...], wanted: list[Any]) -> None:
    graph = reduction(shape, axes)
    result = split_reductions(graph)
    verify(result)
    assert stages(result) == wanted
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    (value,) = evaluate(result, [x])
    np.testing.assert_allclose(value, x.sum(axes, dtype=np.float64), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("prim", [R.reduce_max, R.reduce_min, R.reduce_prod, R.reduce_sum], ids=lambda p: p.name)
@pytest.mark.parametrize("keep", [False, True])
def test_every_kind_is_split_with_the_same_values(prim: Any, keep: bool) -> None:
    graph = reduction((3, 400, 64), (1, 2), prim, float64, keep)
    result = split_reductions(graph)
    verify(result)
    assert result.output_types == graph.output_types
    assert stages(result) == [((3, 400, 64), (2,)), ((3, 400), (1,))]
    assert_same_values(graph, result, [np.random.default_rng(1).uniform(0.99, 1.01, (3, 400, 64))], 1e-11)


def test_nan_and_infinities_pass_through_both_stages() -> None:
    graph = reduction((1 << 17,), (0,), R.reduce_max)
    x = np.zeros(1 << 17, np.float32)
    x[77] = np.inf
    assert_same_values(graph, split_reductions(graph), [x])
    x[99_999] = np.nan
    assert_same_values(graph, split_reductions(graph), [x])


def test_columns_of_many_rows_are_cut_into_parts_that_fit_a_cache() -> None:
    graph = reduction((8, 128, 56, 56), (0, 2, 3))
    after = split_reductions(graph)
    assert [n.type.shape for n in after.nodes if n.prim is R.reduce_sum] == [(8, 128, 14), (128,)]
    x = np.random.default_rng(0).normal(size=(8, 128, 56, 56)).astype(np.float32)
    assert_same_values(graph, after, [x], tolerance=1e-3)
    assert split_reductions(after) is after


@pytest.mark.parametrize(
    "graph",
    [
        reduction((MANY,), (0,)),
        reduction((FEW, 1 << 14), (1,)),
        reduction((0, 1 << 17), (1,)),
        reduction((65_537,), (0,)),
        reduction((3, 65_537), (0, 1)),
        reduction((1 << 17,), (0,), dtype=float16),
        reduction((1 << 17,), (0,), R.reduce_prod, bfloat16),
        reduction((1 << 17,), (0,), R.reduce_any, bool_),
        graph_of(lambda x: R.argmax(x, axis=0), tensor_type((1 << 17,), float32)),
        graph_of(lambda x: R.reduce_sum(x, axes=(0, 1), keepdims=False), tensor_type((symbol("n"), 1 << 17), float32)),
    ],
    ids=[
        "short",
        "many results",
        "no result",
        "prime",
        "no fit",
        "16-bit sum",
        "16-bit product",
        "any",
        "argmax",
        "symbol",
    ],
)
def test_other_reductions_stay(graph: Graph) -> None:
    assert split_reductions(graph) is graph


def test_a_16_bit_maximum_and_an_integer_sum_are_split() -> None:
    for graph in (reduction((1 << 17,), (0,), R.reduce_max, float16), reduction((1 << 17,), (0,), dtype=int32)):
        result = split_reductions(graph)
        assert len(stages(result)) == 2
        assert_same_values(graph, result, random_inputs(graph))


def test_the_cut_is_made_below_element_wise_work_that_nothing_else_uses() -> None:
    kind = tensor_type((1 << 17,), float64)

    def function(x: Any, y: Any, a: Any) -> Any:
        shared = E.tanh(x)
        return R.reduce_sum(E.exp(shared * a) * y * 0.5, axes=(0,), keepdims=False), shared

    graph = graph_of(function, kind, kind, tensor_type((), float64))
    result = split_reductions(graph)
    verify(result)
    reshapes = [n for n in result.nodes if n.prim is S.RESHAPE]
    assert {n.inputs[0] for n in reshapes} == {result.outputs[1], graph.inputs[1]}
    assert {n.shape for n in reshapes} == {(32, 4096)}
    assert_same_values(graph, result, random_inputs(graph), 1e-13)
    once = optimize(graph)
    assert structural_hash(optimize(once)) == structural_hash(once)


def test_a_cut_below_much_work_stops_somewhere() -> None:
    def function(x: Any, y: Any) -> Any:
        for _ in range(200):
            x = E.tanh(x)
        return R.reduce_sum(x + y, axes=(0,), keepdims=False)

    graph = graph_of(function, tensor_type((1 << 17,), float64), tensor_type((1,), float64))
    assert_same_values(graph, split_reductions(graph), random_inputs(graph), 1e-13)
    once = optimize(graph)
    verify(once)
    assert structural_hash(optimize(once)) == structural_hash(once)


def test_the_number_of_parts_can_be_chosen() -> None:
    assert stages(split_reductions(reduction((1 << 17,), (0,)), parts=16))[0] == ((16, 8192), (1,))
    assert stages(split_reductions(reduction((1 << 17,), (0,)), parts=64))[0] == ((64, 2048), (1,))


@pytest.mark.parametrize(
    "shape, axes", [((1 << 17,), (0,)), ((32, 56, 56), (0, 1, 2)), ((4, 50_000), (0, 1)), ((3, 1 << 16), (1,))]
)
def test_splitting_again_changes_nothing(shape: Shape, axes: tuple[int, ...]) -> None:
    graph = reduction(shape, axes)
    once = split_reductions(graph)
    assert split_reductions(once) is once
    # The rules join the stages again, and so optimizing twice gives the same.
    assert structural_hash(simplify(once)) == structural_hash(simplify(graph))
    assert structural_hash(optimize(once)) == structural_hash(optimize(graph))


def test_a_reduction_with_another_user_is_split() -> None:
    def both(x: Any) -> Any:
        rows = R.reduce_sum(x, axes=(1,), keepdims=False)
        return R.reduce_sum(rows, axes=(0,), keepdims=False), rows

    result = split_reductions(graph_of(both, tensor_type((10, 1 << 16), float32)))
    verify(result)
    assert stages(result)[0] == ((10, 32, 2048), (2,))


def test_reductions_in_nested_graphs_are_split() -> None:
    kind = tensor_type((1 << 17,), float32)
    body = reduction((1 << 17,), (0,))
    result = split_reductions(graph_of(lambda x: mapped(x, body=body), kind))
    assert len(stages(result.outputs[0].params["body"])) == 2


def test_positions_are_kept() -> None:
    x = input_node(tensor_type((1 << 17,), float32), "x")
    with at(Where("model.py", 9)):
        y = E.exp(S.reshape(R.reduce_sum(x, axes=(0,), keepdims=False), (1,)))
    assert {str(n.where) for n in split_reductions(Graph([x], [y])).nodes} == {"model.py:9"}
