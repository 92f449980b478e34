"""Groups that read each other's values in place become one pass, and only those."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.engines import buffers
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.foundation import dtype as D


def kernels(graph: Graph, seed: int = 0) -> int:
    """The number of kernels of a graph, whose values are the reference's."""
    random = np.random.default_rng(seed)
    arrays = [random.normal(size=t.shape).astype(t.dtype.numpy) for t in graph.input_types]
    program = compile_native(graph)
    results = program.entry(*[buffers.from_array(a) for a in arrays])
    results = results if isinstance(results, tuple) else (results,)
    for got, kind, want in zip(results, graph.output_types, evaluate(graph, arrays)):
        np.testing.assert_allclose(buffers.to_array(got, kind), want, rtol=1e-5, atol=1e-6)
    return sum(s.kind == "kernel" for s in program.all_steps)


def given(*shapes: tuple[int, ...]) -> list[Node]:
    return [input_node(tensor_type(s, D.float32)) for s in shapes]


def step_of_adam(p: Node, g: Node, m: Node, v: Node) -> list[Any]:
    m = E.add(E.mul(m, 0.9), E.mul(g, 0.1))
    v = E.add(E.mul(v, 0.99), E.mul(E.mul(g, g), 0.01))
    return [E.sub(p, E.div(E.mul(m, 0.1), E.add(E.sqrt(E.abs_(v)), 1e-3))), m, v]


def test_averages_that_a_step_reads_are_computed_in_its_pass() -> None:
    inputs = given(*[(40, 30)] * 4)
    assert kernels(Graph(inputs, step_of_adam(*inputs))) == 1


def test_a_group_between_two_keeps_them_apart() -> None:
    x, y = given((20, 30), (20, 30))
    first = E.exp(x)
    total = R.reduce_sum(first, axes=(0, 1), keepdims=True)
    second = E.mul(E.exp(y), E.add(first, total))
    kernels(Graph([x, y], [first, second, total]))


def test_what_is_read_elsewhere_keeps_its_place_in_memory() -> None:
    x, y = given((24, 24), (24, 24))
    first = E.exp(x)
    turned = S.transpose(first, permutation=(1, 0))
    kernels(Graph([x, y], [E.add(E.exp(y), first), E.mul(E.sin(y), turned)]))


def test_a_value_of_a_joined_group_that_others_need_is_kept() -> None:
    x, y = given((16, 8), (16, 8))
    a, b = E.exp(x), E.sin(y)
    both = E.mul(a, b)
    sums = R.reduce_sum(a, axes=(0,), keepdims=False)
    kernels(Graph([x, y], [both, sums, R.reduce_sum(both, axes=(1,), keepdims=False)]))
