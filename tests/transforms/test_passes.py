"""All passes in order: on random graphs and on derivatives the values stay, the result is settled,
valid and keeps positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import Graph, Node, Where, at, input_node
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.ir.verify import verify
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.grad import gradient_graph
from mycel._src.compiler.transforms.graph_rewriting import rewrite
from mycel._src.compiler.transforms.optimisation import passes
from mycel._src.compiler.transforms.optimisation.passes import optimize
from mycel._src.compiler.transforms.optimisation.simplify import simplify_counted
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import DType, bool_, float32, float64
from mycel._src.foundation.errors import VerifyError
from tests.ir.graphs import F23, choose, effects, linear, unary_graph
from tests.transforms.random_graphs import KINDS, Generator
from tests.transforms.support import assert_same_values, graph_of, names, random_inputs

TOLERANCE = {"float64": 2e-14, "int32": 0.0}


def assert_as_accurate(before: Graph, after: Graph, wide: Graph, inputs: list[Any]) -> None:
    """Of the values in float64, the result is as close as the graph was, or within 1e-6."""
    truth = evaluate(wide, [x.astype(np.float64) for x in inputs])
    for t, a, b in zip(truth, evaluate(before, inputs), evaluate(after, inputs)):
        scale = np.maximum(1, np.abs(t))
        allowed = 1e-6 + 4 * np.max(np.abs(a - t) / scale, initial=0.0)
        assert np.max(np.abs(b - t) / scale, initial=0.0) <= allowed


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("dtype", KINDS, ids=lambda d: d.name)
def test_random_graphs_keep_their_values_and_settle(seed: int, dtype: DType) -> None:
    graph = Generator(seed, dtype).graph()
    verify(graph)
    result = optimize(graph)
    verify(result)
    assert result.inputs == graph.inputs
    assert result.output_types == graph.output_types
    assert len(result.nodes) <= 2 * len(graph.nodes)
    inputs = random_inputs(graph, seed)
    if dtype is float32:
        assert_as_accurate(graph, result, Generator(seed, float64).graph(), inputs)
    else:
        assert_same_values(graph, result, inputs, TOLERANCE[dtype.name])
    assert structural_hash(optimize(result)) == structural_hash(result)
    assert all(n.where is not None and n.where.file == "random.py" for n in result.nodes)


@pytest.mark.parametrize("seed", range(20))
def test_the_same_structure_gives_the_same_structure(seed: int) -> None:
    one, two = (optimize(Generator(seed, float32).graph()) for _ in range(2))
    assert structural_hash(one) == structural_hash(two)


@pytest.mark.parametrize("seed", range(20))
def test_derivatives_of_random_graphs_keep_their_values(seed: int) -> None:
    graph = Generator(seed, float64, 12).graph()
    total: Any = constant(0.0, float64)
    for o in graph.outputs:
        total = total + R.reduce_sum(E.tanh(o), axes=tuple(range(o.type.rank)), keepdims=False)
    before = gradient_graph(Graph(graph.inputs, [total]), range(len(graph.inputs)))
    result = optimize(before)
    verify(result)
    assert len(result.nodes) <= len(before.nodes)
    assert_same_values(before, result, random_inputs(graph, seed), 1e-10)
    assert structural_hash(optimize(result)) == structural_hash(result)


def network() -> Graph:
    """The loss of a small classifier and its gradients."""
    n = symbol("n")
    x, t = input_node(tensor_type((n, 6), float64), "x"), input_node(tensor_type((n, 3), float64), "t")
    weights = [input_node(tensor_type(s, float64), "w") for s in ((6, 8), (8,), (8, 3))]
    hidden = E.maximum(matmul(x, weights[0]) + weights[1], 0.0)
    mean = R.reduce_mean(hidden, axes=(1,), keepdims=True)
    centred = hidden - mean
    spread = R.reduce_mean(E.pow_(centred, 2.0), axes=(1,), keepdims=True)
    logits = matmul(centred / E.pow_(spread + 1e-5, 0.5), weights[2])
    shifted = logits - E.stop_gradient(R.reduce_max(logits, axes=(1,), keepdims=True))
    log_sum = E.log(R.reduce_sum(E.exp(shifted), axes=(1,), keepdims=True))
    loss = E.neg(R.reduce_mean(R.reduce_sum((shifted - log_sum) * t, axes=(1,), keepdims=False), axes=(0,)))
    return gradient_graph(Graph([x, t, *weights], [loss], "loss"), (2, 3, 4))


def test_a_training_graph_of_symbolic_size_shrinks_and_keeps_its_values() -> None:
    graph = network()
    result = optimize(graph)
    verify(result)
    assert len(result.nodes) < 0.9 * len(graph.nodes)
    left = names(result)
    assert not {"pow", "stop_gradient", "identity", "broadcast_to"} & set(left)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in ((5, 6), (5, 3), (6, 8), (8,), (8, 3))]
    assert_same_values(graph, result, arrays, 1e-13)
    assert structural_hash(optimize(result)) == structural_hash(result)


def test_nothing_to_do_gives_the_graph_itself() -> None:
    graph = graph_of(lambda x, y: E.exp(x) + y, F23, F23)
    assert optimize(graph) is graph


def test_unused_inputs_stay_inputs() -> None:
    graph = graph_of(lambda x, y: x * 1.0 + E.stop_gradient(x) * 0.0, F23, F23)
    assert optimize(graph).inputs == graph.inputs


def test_an_output_may_become_an_input() -> None:
    graph = graph_of(lambda x: (E.identity(x), E.neg(E.neg(x))), F23)
    result = optimize(graph)
    assert result.outputs == graph.inputs * 2
    verify(result)


def test_symbolic_graphs_and_their_text_survive() -> None:
    graph = linear()
    result = optimize(graph)
    verify(result)
    assert result.output_types == graph.output_types


def test_effects_stay_in_order() -> None:
    graph, _ = effects(3)
    result = optimize(graph)
    verify(result)
    assert names(result).count("shout") == 3


def test_nested_graphs_are_optimized() -> None:
    graph = graph_of(
        lambda p, x: choose(
            p,
            x * 1.0,
            branches=(
                unary_graph("then", lambda a: E.neg(E.neg(a)) + E.exp(constant(0.0, float32))),
                unary_graph("orelse", lambda a: E.sin(a) + E.sin(a)),
            ),
        ),
        tensor_type((), bool_),
        F23,
    )
    result = optimize(graph)
    verify(result)
    then, orelse = result.outputs[0].params["branches"]
    assert result.outputs[0].inputs == graph.inputs
    assert names(then) == ["add"]
    assert names(orelse) == ["sin", "add"]


def test_positions_of_what_stays_are_those_of_the_user() -> None:
    x = input_node(F23, "x")
    with at(Where("model.py", 1)):
        y = E.exp(x * 1.0)
    with at(Where("model.py", 2)):
        z = R.reduce_sum(y * 2.0, axes=(0, 1), keepdims=False)
    result = optimize(Graph([x], [z]))
    assert [(n.prim.name, n.where.line) for n in result.nodes if n.prim and n.where and not n.is_constant] == [
        ("exp", 1),
        ("reduce_sum", 2),
        ("mul", 2),
    ]


def test_every_pass_is_verified_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(graph: Graph) -> Graph:
        def visit(old: Node, new: Node) -> Node:
            return Node(new.prim, new.inputs, new.params, tensor_type((9,), float32), new.where)

        return rewrite(graph, lambda inner: visit)

    monkeypatch.setattr(passes, "ROUND", (broken,))
    graph = graph_of(E.exp, F23)
    monkeypatch.setenv("MYCEL_VERIFY", "1")
    with pytest.raises(
        VerifyError, match="broken gave a graph that breaks an invariant: f: .*should have type float32"
    ):
        optimize(graph)
    monkeypatch.setenv("MYCEL_VERIFY", "0")
    assert optimize(graph).output_types[0].shape == (9,)


def test_a_broken_graph_is_refused_before_the_first_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCEL_VERIFY", "1")
    with pytest.raises(VerifyError, match="is reached but is not an input"):
        optimize(Graph([], [E.exp(input_node(F23, "x"))]))


def layers(count: int) -> Graph:
    """The derivative of a chain of blocks with everything that the rules rewrite."""

    def chain(x: Node, w: Node) -> Node:
        for _ in range(count):
            mean = R.reduce_mean(x, axes=(1,), keepdims=True)
            y = E.tanh(matmul((x - mean) * 1.0, w) * 0.5 + 0.0)
            x = x + S.transpose(S.transpose(y, (1, 0)), (1, 0)) * constant(np.full((4, 4), 0.5), float32)
        return R.reduce_sum(x, axes=(0, 1), keepdims=False)

    return gradient_graph(graph_of(chain, *[tensor_type((4, 4), float32)] * 2), (0, 1))


def test_work_grows_in_proportion_to_the_graph() -> None:
    counts = []
    for length in (20, 80):
        graph = layers(length)
        visited = 0

        def visit(old: Node, new: Node) -> Node:
            nonlocal visited
            visited += 1
            return new

        assert rewrite(graph, lambda inner: visit) is graph
        assert visited == len(graph.nodes)
        counts.append((len(graph.nodes), simplify_counted(graph)[1], len(optimize(graph).nodes)))
    (nodes, rules, left), (more_nodes, more_rules, more_left) = counts
    assert more_rules / more_nodes <= 1.05 * rules / nodes
    assert more_left / more_nodes <= 1.05 * left / nodes


def test_deep_graphs_need_no_deep_stack() -> None:
    def chain(x: Node) -> Node:
        for k in range(3000):
            x = (x * 1.5, x / 3.0, E.neg(x), x + 1.0, E.tanh(x))[k % 5 if k % 7 else 0]
        return R.reduce_sum(x, axes=(0, 1), keepdims=False)

    graph = graph_of(chain, F23)
    assert_same_values(graph, optimize(graph), random_inputs(graph), 1e-4)

    def factors(x: Node) -> Node:
        for k in range(3000):
            x = x / 1.01 if k % 2 else x * 1.01
        return R.reduce_sum(x, axes=(0, 1), keepdims=False)

    graph = graph_of(factors, tensor_type((2, 3), float64))
    assert_same_values(graph, optimize(graph), random_inputs(graph), 1e-11)
