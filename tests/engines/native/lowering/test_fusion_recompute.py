"""What is written to memory, and what is computed again where it is used; reductions that share a
pass; the moments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.convolution.window import window_sum
from mycel._src.compiler.prims.neural.normalization import moments
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.native.program.program import Program
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.foundation.dtype import float32, int8, int32

SHAPE = (64, 96)


def written(program: Program, shape: tuple[int, ...] = SHAPE) -> int:
    """How many arrays of a shape the steps write."""
    size = int(np.prod(shape))
    return sum(hint(b.size) == size for s in program.lowered.steps for b in s.writes)


def check(graph: Graph) -> Program:
    """The program of a graph, after comparing its results with the reference engine's."""
    program = compile_native(graph)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=i.type.shape).astype(np.float32) for i in graph.inputs]
    results = program.entry(*[ms.Tensor(a)._buf for a in arrays])
    results = results if isinstance(results, tuple) else (results,)
    from mycel._src.engines import buffers

    for found, wanted, t in zip(results, evaluate(graph, arrays), graph.output_types):
        np.testing.assert_allclose(
            buffers.to_array(found, t), wanted, rtol=2e-5, atol=2e-6 * max(1, np.abs(wanted).max())
        )
    return program


def test_cheap_values_are_computed_again() -> None:
    x, w = input_node(tensor_type(SHAPE, float32), "x"), input_node(tensor_type((96, 96), float32), "w")
    y = matrix_product.matmul(x, w)
    mean = E.div(R.reduce_sum(y, axes=(0,), keepdims=True), 64.0)
    apart = E.sub(y, mean)
    first = R.reduce_sum(E.mul(apart, apart), axes=(0,), keepdims=False)
    later = matrix_product.matmul(E.exp(E.mul(apart, 0.01)), w)
    program = check(Graph([x, w], [first, later]))
    # The product, what the second product reads, and its result; not the deviations.
    assert written(program) == 3


def test_costly_values_are_kept() -> None:
    x = input_node(tensor_type(SHAPE, float32), "x")
    y = E.exp(x)
    total = R.reduce_sum(y, axes=(0, 1), keepdims=True)
    program = check(Graph([x], [E.div(y, total), R.reduce_sum(E.mul(y, total), axes=(1,), keepdims=False)]))
    assert written(program) == 2


def test_a_value_that_a_result_needs_is_kept() -> None:
    x = input_node(tensor_type(SHAPE, float32), "x")
    y = E.sub(x, 1.0)
    total = R.reduce_sum(y, axes=(0,), keepdims=True)
    program = check(Graph([x], [y, E.mul(y, total)]))
    assert written(program) == 2


def test_reductions_of_the_same_memory_share_a_pass() -> None:
    x, y = (input_node(tensor_type(SHAPE, float32), n) for n in "xy")
    w = input_node(tensor_type((96, 96), float32), "w")
    u, v = matrix_product.matmul(x, w), matrix_product.matmul(y, w)
    outputs = [R.reduce_sum(u, axes=(1,), keepdims=False), R.reduce_sum(E.mul(u, v), axes=(1,), keepdims=False)]
    program = check(Graph([x, y, w], outputs))
    assert [s.kind for s in program.lowered.steps].count("kernel") == 1


def test_a_reduction_that_needs_another_is_not_merged_with_it() -> None:
    x, w = input_node(tensor_type(SHAPE, float32), "x"), input_node(tensor_type((96, 96), float32), "w")
    u = matrix_product.matmul(x, w)
    total = R.reduce_sum(u, axes=(0,), keepdims=True)
    check(Graph([x, w], [R.reduce_sum(E.mul(u, total), axes=(0,), keepdims=False)]))


def test_batch_normalisation_passes_over_memory_as_often_as_it_has_to() -> None:
    net = nn.SequentialCell(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3))
    net.set_train()
    step = ms.jit(ms.value_and_grad(lambda x: ops.sum(net(x) ** 2), None, net.trainable_params()))
    x = ms.Tensor(np.random.default_rng(0).normal(size=(4, 4, 20, 20)).astype(np.float32))
    from mycel._src.engines.native.report.trace import tracing

    step(x)
    with tracing() as trace:
        step(x)
    size = 4 * 8 * 20 * 20
    kernels = [e.step.step for e in trace.events if e.step.kind == "kernel"]
    reads = sum(b.size == size for s in kernels for b in {id(b): b for b in s.reads}.values())
    writes = sum(b.size == size for s in kernels for b in s.writes)
    # Forward: statistics, then normalising. Backward: two sums and the derivative, channel by
    # channel while it is in a cache.
    assert (reads, writes) == (5, 2)


@pytest.mark.parametrize("axes", [(0, 2, 3), (1,), (3,), (0, 1, 2, 3)])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_moments_are_exact_far_from_zero(axes: Any, offset: float) -> None:
    x = np.random.default_rng(1).normal(size=(4, 6, 40, 50)).astype(np.float32) + np.float32(offset)
    node = input_node(tensor_type(x.shape, float32), "x")
    program = compile_native(Graph([node], moments(node, axes=axes)))
    from mycel._src.engines import buffers

    found = [buffers.to_array(b, t) for b, t in zip(program.entry(ms.Tensor(x)._buf), program.graph.output_types)]
    wide = x.astype(np.float64)
    np.testing.assert_allclose(found[0], wide.mean(axes), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found[1], wide.var(axes), rtol=2e-4 if offset else 1e-5)


def test_recomputation_inside_a_gradient_of_everything() -> None:
    x, w = input_node(tensor_type(SHAPE, float32), "x"), input_node(tensor_type((96, 96), float32), "w")
    y = matrix_product.matmul(x, w)
    z = E.select(E.le(y, 0.0), E.mul(y, 0.1), y)
    loss = R.reduce_sum(E.mul(matrix_product.matmul(z, w), z), axes=(0, 1), keepdims=False)
    seed = E.mul(loss, 0.0) + 1.0
    grads = vjp([loss], [seed], [x, w])
    check(Graph([x, w], [loss, *grads]))


def test_what_is_widened_is_kept_in_its_narrow_type() -> None:
    # The 8 bits of a rounded value go to memory; a sum over windows and a sum of values widen them.
    x = input_node(tensor_type((1, 4, 8, 8), float32), "x")
    narrow = E.cast(E.minimum(E.exp(x), 100.0), dtype=int8)
    wide = E.sub(E.cast(narrow, dtype=int32), 3)
    windows = window_sum(wide, window=(4, 4), strides=(4, 4), padding=((0, 0), (0, 0)))
    program = check(Graph([x], [windows]))
    sizes = [b.dtype for s in program.lowered.steps for b in s.writes if hint(b.size) == 256]
    assert sizes == [int8]
    over = window_sum(wide, window=(4, 4), strides=(1, 1), padding=((0, 0), (0, 0)))
    check(Graph([x], [over, windows]))
