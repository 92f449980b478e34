"""The arena: lives that never overlap, steps in an order that needs less, and results written over
what is not needed any more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.engines import buffers
from mycel._src.engines.native.program import arena as memory
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.native.program.program import Program
from mycel._src.engines.native.program.step_order import peak_bytes, schedule
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.native.steps.inplace import may_overwrite
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.foundation.dtype import float32


def run(program: Program, arrays: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    results = program.entry(*[buffers.from_array(a) for a in arrays])
    results = results if isinstance(results, tuple) else (results,)
    return [buffers.to_array(b, t).copy() for b, t in zip(results, program.outputs)]


def drawn(graph: Graph) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return [(rng.normal(size=i.type.shape) * 0.2).astype(np.float32) for i in graph.inputs]


def check(graph: Graph) -> Program:
    """The program of a graph; its results are those of the reference engine, and the same in a
    second run over the used arena.
    """
    program = compile_native(graph)
    arrays = drawn(graph)
    found = run(program, arrays)
    for a, wanted in zip(found, evaluate(graph, arrays)):
        np.testing.assert_allclose(a, wanted, rtol=2e-5, atol=2e-5 * max(1.0, float(np.abs(wanted).max())))
    for a, b in zip(found, run(program, arrays)):
        np.testing.assert_array_equal(a, b)
    return program


def random_lives(seed: int) -> list[memory.Life]:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 100, 60)
    return [(k, int(rng.integers(1, 5000)), int(f), int(f + rng.integers(0, 40))) for k, f in enumerate(first.tolist())]


@pytest.mark.parametrize("seed", range(8))
def test_buffers_that_are_alive_together_lie_apart(seed: int) -> None:
    lives = random_lives(seed)
    offsets, total = memory.plan(lives)
    assert total >= memory.bound(lives)
    for i, n, first, last in lives:
        assert offsets[i] % 64 == 0 and offsets[i] + n <= total
        for j, m, start, end in lives:
            if i < j and first <= end and start <= last:
                assert offsets[i] + n <= offsets[j] or offsets[j] + m <= offsets[i]


def test_the_bound_is_what_is_alive_at_the_fullest_moment() -> None:
    assert memory.bound([(0, 64, 0, 2), (1, 128, 2, 3), (2, 64, 3, 4)]) == 192
    assert memory.bound([(0, 1, 0, 0)]) == 64
    assert memory.bound([]) == 0


def test_a_buffer_takes_the_place_of_one_that_ends() -> None:
    lives = [(0, 640, 0, 3), (1, 640, 3, 6), (2, 640, 6, 8), (3, 320, 3, 5)]
    offsets, total = memory.plan(lives, [(1, 0), (2, 1)])
    assert offsets[0] == offsets[1] == offsets[2] and total == 960
    # Of other sizes, twice, or already given: each has a place of its own.
    offsets, _ = memory.plan(lives, [(3, 0)])
    assert offsets[3] != offsets[0]
    offsets, _ = memory.plan([(0, 64, 0, 1), (1, 64, 1, 2), (2, 64, 1, 2)], [(1, 0), (2, 0)])
    assert offsets[1] != offsets[2]


def layers(depth: int = 6, size: int = 256) -> Graph:
    """The gradients of a chain of products, and parameters that they change: what a training step
    is.
    """
    t = tensor_type((size, size), float32)
    x = h = input_node(t, "x")
    weights = [input_node(t, f"w{k}") for k in range(depth)]
    for w in weights:
        h = E.tanh(matrix_product.matmul(h, w))
    grads = vjp([h], [h], weights)
    return Graph([x, *weights], [E.sub(w, E.mul(g, 0.01)) for w, g in zip(weights, grads)], "layers")


def test_a_training_step_needs_less_in_its_new_order() -> None:
    template = Template(layers(), {j: j + 1 for j in range(6)})
    lowered = template.lowered
    kept = [*lowered.inputs, *[v.buffer for v in lowered.outputs]]
    before, after = (peak_bytes(steps, kept, hint) for steps in (lowered.steps, template.ordered(template.aliases)))
    assert after < 0.85 * before
    # The updates write over the parameters: nothing is copied.
    assert all(step.kind != "copy" for step in template.steps)
    program = check(layers())
    over = Program(template)
    # The library may want some memory of its own in each call.
    assert 0.5 * after < over.arena_bytes < before
    arrays = drawn(layers())
    for a, b in zip(run(program, arrays), run(over, arrays)):
        np.testing.assert_array_equal(a, b)


def test_the_new_order_keeps_each_step_behind_what_it_needs() -> None:
    template = Template(layers(), {j: j + 1 for j in range(6)})
    steps = template.lowered.steps
    kept = [*template.lowered.inputs, *[v.buffer for v in template.lowered.outputs]]
    order = schedule(steps, kept, {}, hint)
    assert sorted(map(id, order)) == sorted(map(id, steps)) and [*map(id, order)] != [*map(id, steps)]
    made = {id(b) for b in template.lowered.inputs}
    for step in order:
        assert all(id(b) in made for b in step.reads)
        made.update(id(b) for b in step.writes)


def test_small_programs_keep_their_order() -> None:
    template = Template(layers(4, 8), {})
    steps = template.lowered.steps
    assert [*map(id, schedule(steps, [], {}, hint))] == [*map(id, steps)]


def inner_kernel(build: Any, shape: tuple[int, ...] = (33, 50)) -> tuple[Program, list[Any]]:
    """A program of x @ w, `build` of the product, and a product of that; with the kernels in
    between, and whether they write over what they read.
    """
    x, w = input_node(tensor_type(shape, float32), "x"), input_node(tensor_type((shape[-1],) * 2, float32), "w")
    y = matrix_product.matmul(x, w)
    z: Node = build(y)
    program = check(Graph([x, w], [matrix_product.matmul(z, w) if z.type.shape == shape else z]))
    kernels = [s for s in program.all_steps if s.kind == "kernel"]
    return program, [
        any(may_overwrite(s, b, a) for b in s.writes for a in s.reads if a.name == "matmul") for s in kernels
    ]


def softmax(y: Node) -> Node:
    e = E.exp(E.sub(y, R.reduce_max(y, axes=(1,), keepdims=True)))
    return E.div(e, R.reduce_sum(e, axes=(1,), keepdims=True))


def test_results_are_written_over_what_ends() -> None:
    for build in (lambda y: E.tanh(y), lambda y: E.mul(E.add(y, 1.0), y), softmax):
        program, taken = inner_kernel(build)
        assert taken == [True]
        # The product and what is made of it share one place.
        assert program.arena_bytes < 2 * 33 * 50 * 4


def test_what_is_read_elsewhere_is_not_written_over() -> None:
    for build in (
        lambda y: E.add(y, S.reverse(y, axes=(1,))),
        lambda y: E.add(y, S.reverse(y, axes=(0,))),
        lambda y: E.add(y, S.transpose(y, permutation=(1, 0))),
    ):
        _, taken = inner_kernel(build, (40, 40))
        assert taken == [False]


def test_a_result_of_an_early_stage_does_not_replace_what_a_later_one_reads() -> None:
    """exp(y - max) is stored in the pass over the row in which it is summed.

    Y is read in the next pass again.
    """
    x, w = input_node(tensor_type((40, 64), float32), "x"), input_node(tensor_type((64, 64), float32), "w")
    y = matrix_product.matmul(x, w)
    e = E.exp(E.sub(y, R.reduce_max(y, axes=(1,), keepdims=True)))
    z = E.add(E.div(e, R.reduce_sum(e, axes=(1,), keepdims=True)), y)
    program = check(Graph([x, w], [matrix_product.matmul(e, w), matrix_product.matmul(z, w)]))
    (kernel,) = [s for s in program.all_steps if s.kind == "kernel" and s.data.reduces]
    (product,) = [b for b in kernel.reads if b.name == "matmul"]
    by_name = {b.name: may_overwrite(kernel, b, product) for b in kernel.writes}
    assert by_name["exp"] is False and sum(by_name.values()) == 1


@pytest.mark.parametrize("shape", [(1, 7), (5, 1), (17, 33), (64, 64), (3, 1000), (130, 257)])
def test_programs_that_write_in_place_give_the_same_numbers(shape: tuple[int, ...]) -> None:
    x = input_node(tensor_type(shape, float32), "x")
    w = input_node(tensor_type((shape[1], shape[1]), float32), "w")
    h = x
    for _ in range(3):
        h = matrix_product.matmul(softmax(E.tanh(matrix_product.matmul(h, w))), w)
        h = E.sub(h, R.reduce_sum(h, axes=(0,), keepdims=True))
    (gradient,) = vjp([h], [h], [w])
    assert gradient is not None
    check(Graph([x, w], [h, gradient]))
