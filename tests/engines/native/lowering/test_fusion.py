"""Fusion against the reference: random graphs of element-wise work, reductions, movements and
products give the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive
from mycel._src.compiler.prims.convolution import window
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.engines import buffers
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.foundation import dtype as D


def check(graph: Graph, arrays: list[Any], aliases: Any = None, rtol: float = 2e-5) -> Any:
    """The native program of a graph, after comparing its results with the reference's."""
    program = compile_native(graph, aliases)
    want = evaluate(graph, arrays)
    got = program.entry(*[buffers.from_array(a) for a in arrays])
    for g, w, t in zip(got if isinstance(got, tuple) else (got,), want, graph.output_types):
        value = buffers.to_array(g, t)
        scale = max(1.0, float(np.max(np.abs(w), initial=0.0))) if w.dtype.kind == "f" else 1
        np.testing.assert_allclose(value, w, rtol=rtol, atol=rtol * scale)
    return program


class Generator:
    """A random graph over a growing pool of float32 nodes, and arrays for its inputs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs: list[Node] = []
        self.arrays: list[Any] = []
        self.pool: list[Node] = []
        for shape in ((4, 6), (4, 6), (6,), (3, 4, 6), (4, 1), (17, 33)):
            self.inputs.append(input_node(tensor_type(shape, D.float32)))
            self.arrays.append(self.rng.uniform(-1, 1, shape).astype(np.float32))
        self.pool.extend(self.inputs)

    def pick(self) -> Node:
        recent = self.pool[-8:] if self.rng.random() < 0.6 else self.pool
        return recent[self.rng.integers(len(recent))]

    def step(self) -> None:
        x = self.pick()
        kind = self.rng.integers(12)
        rank = x.type.rank
        if kind <= 2:
            self.pool.append([E.tanh, E.sin, E.neg, E.abs_][self.rng.integers(4)](x))
        elif kind <= 5:
            y = self.pick()
            try:
                self.pool.append([E.add, E.mul, E.sub, E.maximum][self.rng.integers(4)](x, y))
            except ValueError:
                self.pool.append(E.mul(x, 0.5))
        elif kind == 6 and rank:
            axis = int(self.rng.integers(rank))
            reduce = [R.reduce_sum, R.reduce_max, R.reduce_min][self.rng.integers(3)]
            self.pool.append(E.tanh(reduce(x, axes=(axis,), keepdims=bool(self.rng.integers(2)))))
        elif kind == 7 and rank:
            self.pool.append(S.transpose(x, tuple(int(p) for p in self.rng.permutation(rank))))
        elif kind == 8 and rank and all(d > 1 for d in x.shape):
            starts = tuple(int(self.rng.integers(0, d - 1)) for d in x.shape)
            self.pool.append(S.slice_(x, starts, x.shape, tuple(int(self.rng.integers(1, 3)) for _ in x.shape)))
        elif kind == 9:
            total = int(np.prod(x.shape))
            self.pool.append(S.reshape(x, (total,) if self.rng.integers(2) else (1, total)))
        elif kind == 10 and rank:
            low = tuple(int(self.rng.integers(-1, 2)) if d > 2 else 0 for d in x.shape)
            self.pool.append(S.pad(x, 0.25, low, tuple(int(self.rng.integers(0, 2)) for _ in x.shape)))
        elif rank == 2:
            self.pool.append(E.tanh(matrix_product.matmul(x, S.transpose(x, (1, 0)))))


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_agree_with_the_reference(seed: int) -> None:
    g = Generator(seed)
    for _ in range(30):
        g.step()
    outputs = g.pool[-6:]
    check(Graph(g.inputs, outputs), g.arrays)


@pytest.mark.parametrize("seed", range(100, 120))
def test_gradients_of_random_graphs_agree_with_the_reference(seed: int) -> None:
    g = Generator(seed)
    for _ in range(14):
        g.step()
    out = g.pool[-1]
    total = R.reduce_sum(out, axes=tuple(range(out.type.rank)), keepdims=False)
    grads = vjp([total], [E.add(E.mul(total, 0.0), 1.0)], g.inputs)
    outputs = [total, *[x for x in grads if x is not None]]
    check(Graph(g.inputs, outputs), g.arrays, rtol=1e-4)


def soft_max(x: Node) -> Node:
    shifted = E.exp(E.sub(x, S.reshape(R.reduce_max(x, axes=(1,), keepdims=False), (x.shape[0], 1))))
    return E.div(shifted, R.reduce_sum(shifted, axes=(1,), keepdims=True))


def test_a_soft_max_is_one_kernel() -> None:
    x = input_node(tensor_type((50, 37), D.float32))
    array = np.random.default_rng(0).normal(size=(50, 37)).astype(np.float32)
    program = check(Graph([x], [soft_max(x)]), [array])
    assert [s.kind for s in program.all_steps] == ["kernel"]


def test_a_chain_is_one_kernel_that_reads_transposes_in_place() -> None:
    x, y = (input_node(tensor_type(s, D.float32)) for s in ((40, 30), (30, 40)))
    out = E.tanh(E.mul(E.add(x, S.transpose(y, (1, 0))), 2.0))
    rng = np.random.default_rng(1)
    program = check(Graph([x, y], [out]), [rng.normal(size=s).astype(np.float32) for s in ((40, 30), (30, 40))])
    assert len(program.all_steps) == 1


def test_an_update_is_written_over_its_input() -> None:
    w, g = (input_node(tensor_type((100,), D.float32)) for _ in range(2))
    graph = Graph([w, g], [E.sub(w, E.mul(g, 0.1))])
    program = compile_native(graph, {0: 0})
    value, step = np.ones(100, np.float32), np.full(100, 2, np.float32)
    held = buffers.from_array(value)
    result = program.entry(held, buffers.from_array(step))
    assert result is held
    np.testing.assert_allclose(buffers.to_array(held, w.type), 0.8)
    assert len(program.all_steps) == 1


def test_a_value_that_is_read_later_is_not_overwritten_early() -> None:
    w, g = (input_node(tensor_type((4, 4), D.float32)) for _ in range(2))
    new = E.sub(w, g)
    graph = Graph([w, g], [new, matrix_product.matmul(w, new), S.transpose(w, (1, 0))])
    arrays = [np.arange(16, dtype=np.float32).reshape(4, 4), np.ones((4, 4), np.float32)]
    check(graph, arrays, {0: 0})


def test_swapped_states_keep_their_values() -> None:
    a, b = (input_node(tensor_type((3,), D.float32)) for _ in range(2))
    check(Graph([a, b], [b, a]), [np.zeros(3, np.float32), np.ones(3, np.float32)], {0: 0, 1: 1})


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_pooling_and_its_gradient(stride: int) -> None:
    x = input_node(tensor_type((2, 5, 9, 9), D.float32))
    out = window.window_max(x, window=(2, 2), strides=(stride, stride), padding=((0, 1), (1, 0)))
    (grad,) = vjp([out], [E.mul(out, 3.0)], [x])
    assert grad is not None
    check(Graph([x], [out, grad]), [np.random.default_rng(2).normal(size=(2, 5, 9, 9)).astype(np.float32)])


def test_embeddings_and_their_gradient() -> None:
    table, ids = input_node(tensor_type((11, 20), D.float32)), input_node(tensor_type((3, 7), D.int32))
    out = I.take(table, ids, axis=0)
    (grad,) = vjp([out], [E.tanh(out)], [table])
    assert grad is not None
    rng = np.random.default_rng(3)
    check(
        Graph([table, ids], [out, grad]),
        [rng.normal(size=(11, 20)).astype(np.float32), rng.integers(0, 11, (3, 7)).astype(np.int32)],
    )


def test_a_constant_too_large_for_code_is_kept_in_memory() -> None:
    from mycel._src.compiler.prims.base import constant

    x = input_node(tensor_type((64,), D.float32))
    check(Graph([x], [E.add(x, constant(np.arange(64, dtype=np.float32)))]), [np.ones(64, np.float32)])


def without_code(reference: Any) -> Primitive:
    """A primitive of two results that no engine but the reference has code for."""
    return Primitive("halves", lambda x: (x, x), reference)


def test_what_has_no_code_runs_in_the_reference_engine_and_is_listed() -> None:
    x = input_node(tensor_type((5, 6), D.float32))
    half, rest = without_code(lambda a: (a / 2, a - a / 2))(x)
    program = check(
        Graph([x], [E.mul(half, 2.0), rest]), [np.random.default_rng(4).normal(size=(5, 6)).astype(np.float32)]
    )
    assert [node.prim.name for node, _ in program.lowered.fallbacks] == ["halves"]


def test_an_error_in_a_host_step_is_raised_by_the_call() -> None:
    def fail(x: Any) -> Any:
        raise ZeroDivisionError("in the middle")

    x = input_node(tensor_type((5,), D.float32))
    program = compile_native(Graph([x], [without_code(fail)(x)[0]]))
    with pytest.raises(ZeroDivisionError, match="in the middle"):
        program.entry(buffers.from_array(np.ones(5, np.float32)))


@pytest.mark.parametrize("dtype", [D.float64, D.int64, D.float32], ids=str)
def test_a_product_of_a_product_with_the_same_operand(dtype: Any) -> None:
    """Both have the same domain and read the same matrix, but the second needs all of the first."""
    a, b = (input_node(tensor_type((5, 5), dtype)) for _ in range(2))
    first = matrix_product.matmul(a, b)
    second = matrix_product.matmul(a, E.neg(first))
    arrays = [np.random.default_rng(k).integers(-4, 5, (5, 5)).astype(dtype.numpy) for k in range(2)]
    check(Graph((a, b), (second, matrix_product.matmul(a, first), first)), arrays)
