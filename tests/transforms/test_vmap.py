"""Vectorised graphs: what is computed once for all examples, what becomes of control flow, and what
other examples must not do to an example.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import mycel._src.compiler.prims  # noqa: F401
from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.ir.verify import verify
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, get_item
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.random import random_bits
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.compiler.transforms.vmap import batch, batch_graph
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import bool_, float64, int32, int64, uint64
from tests.transforms.support import graph_of

F = tensor_type((), float64)
V = tensor_type((3,), float64)
M = tensor_type((3, 2), float64)
K = tensor_type((), int64)
TRUTH = tensor_type((), bool_)


def names(graph: Graph) -> Counter[str]:
    return Counter(n.prim.name for n in graph.nodes if n.prim is not None)


def choice(kinds: Sequence[TensorType], true: Callable[..., Any], false: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a condition and operands that is a `cond`."""
    graphs = {"true": graph_of(true, *kinds), "false": graph_of(false, *kinds)}
    count = len(graphs["true"].outputs)

    def run(*operands: Node) -> list[Node]:
        whole = control.cond.node(*operands, **graphs)
        return [get_item(whole, i) for i in range(count)]

    return run


def loop(kinds: Sequence[TensorType], carried: int, test: Callable[..., Any], body: Callable[..., Any]) -> Any:
    graphs = {"test": graph_of(test, *kinds), "body": graph_of(body, *kinds)}

    def run(*operands: Node) -> list[Node]:
        whole = control.while_loop.node(*operands, **graphs, carried=carried)
        return [get_item(whole, i) for i in range(carried)]

    return run


def check(graph: Graph, axes: Any, *arrays: Any) -> tuple[Graph, Any]:
    """The vectorised graph and its axes.

    It must be valid and give what the graph gives for one example after another.
    """
    size = next(a.shape[x] for a, x in zip(arrays, axes) if x is not None)
    made, places = batch_graph(graph, axes, size)
    verify(made)
    rows = [evaluate(graph, [a if x is None else np.take(a, i, x) for a, x in zip(arrays, axes)]) for i in range(size)]
    for value, axis, parts in zip(evaluate(made, arrays), places, zip(*rows)):
        wanted = np.stack(parts)
        moved = np.broadcast_to(value, wanted.shape) if axis is None else np.moveaxis(np.asarray(value), axis, 0)
        np.testing.assert_allclose(moved, wanted, rtol=1e-12, atol=1e-12)
    return made, places


def gradients(graph: Graph, wrt: Sequence[int]) -> Graph:
    """The derivative of the sum of the floating outputs."""
    outputs = [o for o in graph.outputs if o.dtype.is_differentiable]
    chosen = [graph.inputs[i] for i in wrt]
    found = vjp(outputs, [S.full(o.shape, 1, o.dtype) for o in outputs], chosen)
    return Graph(graph.inputs, [S.zeros_like(w) if g is None else g for g, w in zip(found, chosen)], "gradients")


def gradients_agree(graph: Graph, axes: Any, wrt: Sequence[int], *arrays: Any) -> None:
    """The derivative of the vectorised graph is the derivatives of the examples, summed where they
    share an operand.
    """
    size = next(a.shape[x] for a, x in zip(arrays, axes) if x is not None)
    made, places = batch_graph(graph, axes, size)
    repeated = [S.broadcast_to(o, (size, *o.shape)) if a is None else o for o, a in zip(made.outputs, places)]
    made = Graph(made.inputs, repeated, made.name)
    one = gradients(graph, wrt)
    rows = [evaluate(one, [a if x is None else np.take(a, i, x) for a, x in zip(arrays, axes)]) for i in range(size)]
    for found, i, parts in zip(evaluate(gradients(made, wrt), arrays), wrt, zip(*rows)):
        wanted = np.sum(parts, 0) if axes[i] is None else np.stack(parts, axes[i])
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


RNG = np.random.default_rng(5)


# What is mapped.


def test_what_does_not_depend_on_the_example_is_computed_once() -> None:
    def both(x: Node, y: Node) -> tuple[Node, Node]:
        shared = E.exp(y)
        return E.add(x, shared), shared

    graph = graph_of(both, V, V)
    made, places = check(graph, (0, None), RNG.normal(size=(4, 3)), RNG.normal(size=3))
    assert places == (0, None)
    (exp,) = [n for n in made.nodes if n.prim is E.exp]
    assert exp.shape == (3,)


def test_nothing_mapped_leaves_nodes_alone() -> None:
    x = input_node(V, "x")
    y = E.sin(x)
    assert batch([y], {input_node(V): (input_node(tensor_type((2, 3), float64)), 0)}, 2) == [(y, None)]


def test_a_product_of_every_row_with_a_matrix_is_one_product() -> None:
    graph = graph_of(lambda x, w: S.reshape(matrix_product.matmul(S.reshape(x, (1, 3)), w), (2,)), V, M)
    made, _ = check(graph, (0, None), RNG.normal(size=(5, 3)), RNG.normal(size=(3, 2)))
    (product,) = [n for n in made.nodes if n.prim is matrix_product.matmul]
    assert [i.shape for i in product.inputs] == [(5, 1, 3), (3, 2)]


def test_a_product_of_a_matrix_with_every_column_is_one_product() -> None:
    graph = graph_of(lambda w, x: matrix_product.matmul(w, x), tensor_type((2, 3), float64), M)
    made, _ = check(graph, (None, 2), RNG.normal(size=(2, 3)), RNG.normal(size=(3, 2, 5)))
    assert names(made)["matmul"] == 1


def test_a_product_of_a_matrix_with_every_vector_is_one_product() -> None:
    graph = graph_of(
        lambda w, x: matrix_product.matmul(w, x), tensor_type((2, 3), float64), tensor_type((3, 1), float64)
    )
    for axis in (0, 1, 2):
        made, _ = check(graph, (None, axis), RNG.normal(size=(2, 3)), np.moveaxis(RNG.normal(size=(5, 3, 1)), 0, axis))
        (product,) = [n for n in made.nodes if n.prim is matrix_product.matmul]
        assert [i.shape for i in product.inputs] == [(5, 3), (3, 2)]


def test_the_batch_may_lie_on_any_axis() -> None:
    graph = graph_of(lambda x, y: R.reduce_sum(E.mul(x, y), axes=(0,), keepdims=False), M, M)
    for axes in ((1, None), (2, 0), (0, 2), (None, 1)):
        arrays = [RNG.normal(size=(3, 2)) if a is None else np.moveaxis(RNG.normal(size=(4, 3, 2)), 0, a) for a in axes]
        check(graph, axes, *arrays)


def test_a_batch_of_symbolic_size() -> None:
    size = symbol("B")
    body = lambda x, n: (E.mul(E.add(x, 1.0), 2.0), E.sub(n, 1))
    inner = loop((V, K), 2, lambda x, n: E.gt(n, 0), body)
    graph = graph_of(lambda x, n, w: (matrix_product.matmul(S.reshape(inner(x, n)[0], (1, 3)), w),), V, K, M)
    made, (place,) = batch_graph(graph, (1, 0, None), size)
    for count in (1, 2, 5):
        x, n, w = RNG.normal(size=(3, count)), RNG.integers(0, 4, count), RNG.normal(size=(3, 2))
        rows = [evaluate(graph, (x[:, i], n[i], w))[0] for i in range(count)]
        np.testing.assert_allclose(np.moveaxis(evaluate(made, (x, n, w))[0], place, 0), np.stack(rows), rtol=1e-12)


def test_an_empty_batch() -> None:
    branches = choice((F, V), lambda x, w: E.mul(E.log(x), w), lambda x, w: w)
    graph = graph_of(lambda x, w: branches(E.gt(x, 0.0), x, w), F, V)
    made, _ = batch_graph(graph, (0, None), 0)
    assert evaluate(made, (np.zeros(0), np.ones(3)))[0].shape == (0, 3)
    ended = loop(
        (F, V), 1, lambda x, w: E.lt(x, 5.0), lambda x, w: (E.add(x, R.reduce_sum(w, axes=(0,), keepdims=False)), w)[:1]
    )
    made, _ = batch_graph(graph_of(lambda x, w: ended(x, w), F, V), (0, None), 0)
    assert evaluate(made, (np.zeros(0), np.ones(3)))[0].shape == (0,)


def test_a_primitive_without_a_rule_goes_from_example_to_example() -> None:
    odd = Primitive(
        "odd_sum",
        lambda x, w: (tensor_type((), x.dtype), w),
        lambda x, w: (x.sum(), w * x.max()),
    )
    x, w = input_node(V, "x"), input_node(M, "w")
    whole = odd.node(x, w)
    batches = input_node(tensor_type((3, 4), float64), "xs")
    found = batch([get_item(whole, 0), get_item(whole, 1)], {x: (batches, 1)}, 4)
    xs, ws = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 2))
    sums, scaled = evaluate(tuple([n for n, _ in found]), {batches: xs, w: ws})
    assert [a for _, a in found] == [0, 0]
    np.testing.assert_allclose(sums, xs.sum(0))
    np.testing.assert_allclose(scaled, xs.max(0)[:, None, None] * ws)


def test_random_bits_of_states_are_those_of_each_state() -> None:
    graph = graph_of(lambda s: random_bits(s, shape=(4,), dtype=uint64), tensor_type((2,), uint64))
    check(graph, (0,), np.array([[1, 2], [3, 4], [1, 3]], np.uint64))


# Conditions.


def test_a_shared_condition_stays_a_condition() -> None:
    branches = choice((V, V), lambda x, w: (E.sin(x), w, E.exp(w)), lambda x, w: (x, w, w))
    graph = graph_of(lambda p, x, w: branches(p, x, w), TRUTH, V, V)
    for p in (True, False):
        made, places = check(graph, (None, 0, None), np.array(p), RNG.normal(size=(4, 3)), RNG.normal(size=3))
        assert places == (0, None, None)
        assert names(made)["cond"] == 1 and names(made)["select"] == 0


def test_a_condition_of_its_own_selects() -> None:
    branches = choice((V, V), lambda x, w: (E.sin(x), w, E.exp(w)), lambda x, w: (E.mul(x, w), w, w))
    graph = graph_of(lambda p, x, w: branches(p, x, w), TRUTH, V, V)
    p, x, w = np.array([True, False, True, False]), RNG.normal(size=(4, 3)), RNG.normal(size=3)
    _, places = check(graph, (0, 0, None), p, x, w)
    assert places == (0, None, 0)
    gradients_agree(graph, (0, 0, None), (1, 2), p, x, w)
    gradients_agree(graph, (0, 0, 0), (1, 2), p, x, RNG.normal(size=(4, 3)))


def test_a_cheap_branch_needs_no_condition() -> None:
    branches = choice((F,), lambda x: E.sqrt(x), lambda x: E.neg(x))
    graph = graph_of(lambda x: branches(E.gt(x, 0.0), x), F)
    made, _ = check(graph, (0,), np.array([1.0, -2.0, 0.0]))
    assert names(made)["cond"] == 0


def test_a_condition_in_a_condition() -> None:
    inner = choice((F,), lambda x: E.log(x), lambda x: E.mul(x, x))
    outer = choice((F,), lambda x: inner(E.lt(x, 2.0), x), lambda x: E.exp(x))
    graph = graph_of(lambda x: outer(E.gt(x, 0.0), x), F)
    x = np.array([-1.0, 0.5, 3.0, 0.0, 2.0])
    check(graph, (0,), x)
    gradients_agree(graph, (0,), (0,), x)


@pytest.mark.parametrize("values", [[1.0, -2.0, 0.0, 3.0], [-1.0, -2.0, 0.0, -3.0], [1.0, 2.0, 0.5, 3.0]])
def test_derivatives_of_a_branch_not_taken_do_not_leak(values: list[float]) -> None:
    """log and sqrt have no finite derivative where the branch is not taken."""

    def build(kind: TensorType) -> Graph:
        branches = choice((F, kind), lambda x, v: E.mul(E.add(E.log(x), E.sqrt(x)), v), lambda x, v: E.mul(x, v))
        return graph_of(lambda x, v: branches(E.gt(x, 0.0), x, v), F, kind)

    for w, kind in ((np.array(1.5), F), (RNG.normal(size=3), V), (RNG.normal(size=(4, 3)), V)):
        graph = build(kind)
        axes = (0, 0 if w.ndim == 2 else None)
        with np.errstate(all="ignore"):
            check(graph, axes, np.array(values), w)
            gradients_agree(graph, axes, (0, 1), np.array(values), w)


def test_second_derivatives_of_a_branch_not_taken_do_not_leak() -> None:
    branches = choice((F, F), lambda x, v: E.mul(E.sqrt(x), v), lambda x, v: E.mul(E.mul(x, x), v))
    graph = graph_of(lambda x, v: branches(E.gt(x, 0.0), x, v), F, F)
    first = gradients(graph, (0, 1))
    with np.errstate(all="ignore"):
        for x in ([1.0, -2.0, 0.0, 4.0], [-1.0, 0.0, -2.0, -3.0]):
            check(first, (0, None), np.array(x), np.array(0.5))
            gradients_agree(first, (0, None), (0, 1), np.array(x), np.array(0.5))


def test_a_division_by_zero_that_is_not_asked_for_is_not_done() -> None:
    """The operands of an example that takes the branch stand for those of the others."""
    branches = choice((K, K), lambda n, d: E.floor_div(n, d), lambda n, d: n)
    graph = graph_of(lambda n, d: branches(E.ne(d, 0), n, d), K, K)
    made, _ = check(graph, (0, 0), np.array([7, 8, 9]), np.array([2, 0, 4]))
    (whole,) = [n for n in made.nodes if n.prim is control.cond]
    divisions = [n for n in whole.params["true"].nodes if n.prim is E.floor_div]
    ((first, second),) = [n.inputs for n in divisions]
    values = evaluate(
        (second,),
        dict(
            zip(whole.params["true"].inputs, (np.array([True, False, True]), np.array([7, 8, 9]), np.array([2, 0, 4])))
        ),
    )
    assert values[0].tolist() == [2, 2, 4]
    assert first.shape == (3,)


def test_a_branch_that_no_example_takes_is_not_computed() -> None:
    inner = loop((K,), 1, lambda n: E.ne(n, 0), lambda n: E.sub(n, 1))
    branches = choice((K,), lambda n: inner(n), lambda n: E.neg(n))
    graph = graph_of(lambda n: branches(E.ge(n, 0), n), K)
    check(graph, (0,), np.array([-1, -2, -3]))
    check(graph, (0,), np.array([4, -2, 0, 2]))


# Loops.


def test_a_loop_that_all_share_keeps_its_test() -> None:
    count = loop((K, V, V), 2, lambda n, x, w: E.lt(n, 4), lambda n, x, w: (E.add(n, 1), E.sin(E.add(x, w))))
    graph = graph_of(lambda n, x, w: count(n, x, w), K, V, V)
    made, places = check(graph, (None, 0, None), np.array(0), RNG.normal(size=(4, 3)), RNG.normal(size=3))
    assert places == (None, 0)
    (whole,) = [n for n in made.nodes if n.prim is control.while_loop]
    assert whole.params["test"].output_types == (TRUTH,) and names(whole.params["test"])["reduce_any"] == 0
    assert names(whole.params["body"])["select"] == 0
    gradients_agree(graph, (None, 0, None), (1, 2), np.array(0), RNG.normal(size=(4, 3)), RNG.normal(size=3))


def test_what_a_loop_carries_becomes_mapped_where_it_must() -> None:
    """y takes the mapped x in the second round, and z takes y in the third."""
    body = lambda n, x, y, z, w: (E.add(n, 1), x, E.add(x, y), E.add(y, z), w)[:4]
    count = loop((K, F, F, F, F), 4, lambda n, *_: E.lt(n, 3), body)
    graph = graph_of(lambda *o: count(*o), K, F, F, F, F)
    given = np.array(0), RNG.normal(size=4), np.array(1.0), np.array(2.0), np.array(3.0)
    assert check(graph, (None, 0, None, None, None), *given)[1] == (None, 0, 0, 0)


def test_a_loop_runs_until_the_last_example_ends() -> None:
    body = lambda n, x, w: (E.add(n, 1), E.mul(x, w))
    rounds = loop((K, F, F), 2, lambda n, x, w: E.lt(x, 10.0), body)
    graph = graph_of(lambda n, x, w: rounds(n, x, w), K, F, F)
    x, w = np.array([1.0, 20.0, 0.1, 9.9]), np.array([2.0, 2.0, 1.5, 3.0])
    made, places = check(graph, (None, 0, 0), np.array(0), x, w)
    assert places == (0, 0)
    (whole,) = [n for n in made.nodes if n.prim is control.while_loop]
    assert names(whole.params["test"])["reduce_any"] == 1
    gradients_agree(graph, (None, 0, 0), (1, 2), np.array(0), x, w)
    gradients_agree(graph, (None, 0, None), (1, 2), np.array(0), x, np.array(1.5))


def test_a_finished_example_does_not_spoil_derivatives() -> None:
    """Behind its end, an example would take the root of a negative number."""

    def build(kind: TensorType) -> Graph:
        axes = tuple(range(kind.rank))
        body = lambda x, v: E.sub(E.mul(E.sqrt(x), R.reduce_sum(v, axes=axes, keepdims=False)), 1.0)
        return graph_of(loop((F, kind), 1, lambda x, v: E.gt(x, 0.0), body), F, kind)

    for kind, w in ((F, np.array(0.9)), (tensor_type((2,), float64), np.array([0.5, 0.4]))):
        graph = build(kind)
        with np.errstate(all="ignore"):
            x = np.array([4.0, -1.0, 0.5, 9.0])
            check(graph, (0, None), x, w)
            gradients_agree(graph, (0, None), (0, 1), x, w)
            check(gradients(graph, (0, 1)), (0, None), x, w)


def test_gradients_of_every_example_of_a_loop() -> None:
    body = lambda n, x, w: (E.add(n, 1), E.sin(E.mul(x, w)))
    rounds = loop((K, V, V), 2, lambda n, x, w: E.lt(n, 3), body)
    shared = gradients(graph_of(lambda n, x, w: rounds(n, x, w), K, V, V), (1, 2))
    given = np.array(0), RNG.normal(size=(4, 3)), RNG.normal(size=3)
    assert check(shared, (None, 0, None), *given)[1] == (0, 0)
    rounds = loop((K, V, V), 2, lambda n, x, w: E.lt(n, 5), body)
    own = gradients(graph_of(lambda n, x, w: rounds(n, x, w), K, V, V), (1, 2))
    check(own, (0, 0, None), np.array([0, 3, 9, 1]), *given[1:])
    check(own, (0, None, None), np.array([0, 3, 9, 1]), given[1][0], given[2])
    gradients_agree(own, (0, 0, None), (1, 2), np.array([0, 3, 9, 1]), *given[1:])


def test_a_loop_in_a_loop_ends() -> None:
    inner = loop((F, F), 1, lambda y, x: E.lt(y, x), lambda y, x: E.mul(y, 1.5))
    body = lambda x, y: (E.add(x, inner(y, E.abs_(x))[0]), y)[:1]
    rounds = loop((F, F), 1, lambda x, y: E.lt(x, 8.0), body)
    graph = graph_of(lambda x, y: rounds(x, y), F, F)
    x, y = np.array([1.0, 9.0, -2.0, 5.0]), np.array([0.5, -1.0, 1.0, 0.2])
    check(graph, (0, 0), x, y)
    gradients_agree(graph, (0, 0), (0, 1), x, y)


def test_a_called_graph_is_called_mapped() -> None:
    inner = graph_of(lambda x, w: (E.mul(x, w), E.exp(w)), V, V)
    graph = graph_of(lambda x, w: control.call(x, w, graph=inner), V, V)
    made, places = check(graph, (1, None), RNG.normal(size=(3, 4)), RNG.normal(size=3))
    assert places == (0, None) and names(made)["call"] == 1
    gradients_agree(graph, (1, None), (0, 1), RNG.normal(size=(3, 4)), RNG.normal(size=3))


def test_a_batch_of_batches_of_loops() -> None:
    rounds = loop((F, F), 1, lambda x, w: E.lt(x, 10.0), lambda x, w: (E.add(E.mul(x, w), 1.0), w)[:1])
    graph = graph_of(lambda x, w: rounds(x, w), F, F)
    once, _ = batch_graph(graph, (0, None), 3)
    twice, (place,) = batch_graph(once, (None, 0), 2)
    x, w = np.array([1.0, 12.0, 0.5]), np.array([1.5, 2.5])
    wanted = [[evaluate(graph, (a, b))[0] for a in x] for b in w]
    np.testing.assert_allclose(np.moveaxis(evaluate(twice, (x, w))[0], place, 0), wanted)


def test_graphs_of_nested_loops_stay_small() -> None:
    """Each level of nesting adds nodes; it does not multiply them."""

    def nested(depth: int, x: Node) -> Node:
        step = lambda v: nested(depth - 1, v)
        return E.add(x, 1.0) if depth == 0 else loop((F,), 1, lambda v: E.lt(v, 10.0), step)(x)[0]

    sizes = [total(batch_graph(graph_of(functools.partial(nested, d), F), (0,), 4)[0]) for d in range(1, 6)]
    steps = [b - a for a, b in zip(sizes, sizes[1:])]
    assert max(steps) <= 2 * min(steps)


def total(graph: Graph) -> int:
    """The nodes of a graph and of the graphs in it."""
    inner = [g for n in graph.nodes for g in n.params.values() if isinstance(g, Graph)]
    return len(graph.nodes) + sum(map(total, inner))


def test_indices_may_differ() -> None:
    from mycel._src.compiler.prims.indexing import index as I

    graph = graph_of(lambda x, i: I.take(x, i, axis=0), M, tensor_type((), int32))
    check(graph, (0, 0), RNG.normal(size=(4, 3, 2)), np.array([2, 0, -1, 1], np.int32))
    check(graph, (None, 0), RNG.normal(size=(3, 2)), np.array([2, 0, -1, 1], np.int32))
