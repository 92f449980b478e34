"""Calls that keep what their derivative needs: what is kept, what is computed again, and that
nothing costly is computed twice.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims.base import outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.compiler.transforms.residuals import link
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import float32
from mycel._src.foundation.pytree import flatten
from tests.transforms.support import graph_of, names, random_inputs, types


def kept_names(graph: Graph, active: Any) -> list[str]:
    return [n.prim.name for n in link(graph, active).kept if n.prim is not None]


def test_costly_values_are_kept_and_cheap_ones_computed_again() -> None:
    graph = graph_of(lambda x, y: E.exp(E.mul(x, y) + 1.0) * E.tanh(x), *types(float32, (4,), (4,)))
    assert sorted(kept_names(graph, [0, 1])) == ["exp", "tanh"]
    assert sorted(kept_names(graph, [1])) == ["exp", "tanh"]
    assert kept_names(graph_of(lambda x: E.mul(x + 1.0, x), *types(float32, (4,))), [0]) == []


def test_products_are_never_computed_twice() -> None:
    graph = graph_of(
        lambda x, w, v: matrix_product.matmul(E.maximum(matrix_product.matmul(x, w), 0.0), v),
        *types(float32, (4, 4), (4, 4), (4, 4)),
    )
    found = link(graph, [0, 1, 2])
    backward, wanted = found.backward((True,))
    assert wanted == (0, 1, 2) and [n.prim.name for n in found.kept if n.prim] == ["matmul"]
    assert backward is not None and names(backward).count("matmul") == 4


@pytest.mark.parametrize("present", [(True, True), (True, False), (False, True)])
def test_the_derivative_is_that_of_the_graph(present: Any) -> None:
    def body(x: Any, y: Any) -> Any:
        a, b = outputs_of(control.call.node(E.sin(x), y, graph=C_INNER))
        return E.exp(a) * b, E.tanh(b) + x

    graph = graph_of(body, *types(float32, (3,), (3,)))
    found = link(graph, [0, 1])
    backward, wanted = found.backward(present)
    assert backward is not None
    inputs = random_inputs(graph)
    cts = [np.full(3, 2.0, np.float32), np.full(3, -1.5, np.float32)]
    given = [c for c, p in zip(cts, present) if p]
    results = evaluate(found.graph, inputs)
    for a, b in zip(results, evaluate(graph, inputs)):
        np.testing.assert_array_equal(a, b)
    actual = evaluate(backward, (*inputs, *results[2:], *given))
    seeds = [input_node(o.type) for o, p in zip(graph.outputs, present) if p]
    plain = vjp([o for o, p in zip(graph.outputs, present) if p], seeds, graph.inputs)
    wanted_nodes = [plain[i] for i in wanted]
    expected = evaluate(wanted_nodes, dict(zip([*graph.inputs, *seeds], [*inputs, *given])))
    for a, b in zip(actual, expected):
        np.testing.assert_allclose(a, b, rtol=1e-6)


C_INNER = graph_of(lambda x, y: (E.mul(x, E.exp(y)), E.sin(y)), *types(float32, (3,), (3,)))


def test_no_derivative_where_there_is_none() -> None:
    graph = graph_of(lambda x, y: (E.exp(x), E.floor(y)), *types(float32, (3,), (3,)))
    assert link(graph, [1]).backward((False, True)) == (None, ())


def test_links_are_remembered_as_long_as_the_graph() -> None:
    graph = graph_of(lambda x: E.exp(x), *types(float32, (3,)))
    found = link(graph, [0])
    assert link(graph, (0,)) is found
    gone = weakref.ref(graph)
    del graph, found
    gc.collect()
    assert gone() is None


def test_a_compiled_network_under_an_eager_gradient() -> None:
    """To the second order, and the same as without compiling."""
    net = nn.SequentialCell([nn.Dense(3, 5), nn.Tanh(), nn.Dense(5, 2), nn.Sigmoid()])
    compiled = ms.jit(net)
    x = Tensor(np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32))
    weights = net.trainable_params()

    def loss(f: Any) -> Any:
        return lambda a: ops.sum(f(a) ** 2)

    def slope(f: Any) -> Any:
        return ms.grad(loss(f))

    calls = (
        lambda f: ms.grad(loss(f), 0, weights)(x),
        lambda f: ms.grad(loss(slope(f)), 0, weights)(x),
        lambda f: ms.jvp(slope(f), x, x)[1],
        lambda f: ms.vjp(f, x)[1](ops.ones((4, 2), ms.float32)),
    )
    for call in calls:
        plain, kept = (flatten(call(f))[0] for f in (net, compiled))
        for a, b in zip(plain, kept):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=2e-4, atol=2e-5)
