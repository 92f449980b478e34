"""Kernels that run together: which may, and that nothing that is computed changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.engines import buffers
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.native.report.trace import tracing
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.foundation import dtype as D


def given(*shapes: tuple[int, ...]) -> list[Node]:
    return [input_node(tensor_type(s, D.float32)) for s in shapes]


def batches_of(program: Any) -> list[int]:
    """The sizes of the program's batches."""
    numbers = [s.batch for s in program.all_steps if s.batch is not None]
    return [numbers.count(k) for k in sorted(set(numbers))]


def check_apart(program: Any, aliases: dict[int, int]) -> None:
    """No member of a batch writes what another reads or writes, in the arena, the inputs or the
    outputs.
    """
    number = program.number

    def spans(side: Any) -> list[tuple[Any, int, int]]:
        found = []
        for b in side:
            kind, where = b.place or ("arena", program.places[id(b)])
            if kind == "output" and where in aliases:
                kind, where = "input", aliases[where]
            start = where if kind == "arena" else 0
            found.append((kind if kind == "arena" else (kind, where), start, start + number(b.size) * b.dtype.itemsize))
        return found

    steps = [s for s in program.all_steps if s.batch is not None]
    for a in steps:
        for b in steps:
            if a is not b and a.batch == b.batch:
                for memory, low, high in spans(a.writes):
                    for other, begin, end in spans([*b.reads, *b.writes]):
                        assert memory != other or high <= begin or end <= low


def run(graph: Graph, aliases: Any = None) -> tuple[Any, list[Any], list[Any]]:
    """The program, its results and the reference's, for numbers that are small and exact."""
    random = np.random.default_rng(0)
    arrays = [random.integers(-8, 9, t.shape).astype(np.float32) for t in graph.input_types]
    want = evaluate(graph, [a.copy() for a in arrays])
    program = compile_native(graph, aliases)
    results = program.entry(*[buffers.from_array(a) for a in arrays])
    results = results if isinstance(results, tuple) else (results,)
    check_apart(program, dict(aliases or {}))
    return program, [buffers.to_array(v, t).copy() for v, t in zip(results, graph.output_types)], want


SHAPES = [(300, 301), (7,), (128, 513), (1,), (64, 64), (100_003,)]


def test_updates_in_place_of_parameters_of_many_sizes_are_one_batch() -> None:
    count = len(SHAPES)
    inputs = given(*SHAPES, *SHAPES)
    graph = Graph(inputs, [E.sub(p, E.mul(g, 0.5)) for p, g in zip(inputs[:count], inputs[count:])])
    program, got, want = run(graph, {k: k for k in range(count)})
    assert batches_of(program) == [count]
    assert program.arena_bytes == 0
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_number_of_threads_covers_every_element_once(threads: int) -> None:
    before = ms.get_context("runtime_num_threads") if hasattr(ms, "get_context") else 0
    ms.set_context(runtime_num_threads=threads)
    try:
        inputs = given(*SHAPES)
        graph = Graph(inputs, [o for x in inputs for o in (E.add(x, 1.0), R.reduce_sum(x, axes=(0,), keepdims=False))])
        program, got, want = run(graph)
        assert batches_of(program)
        for a, b in zip(got, want):
            np.testing.assert_array_equal(a, b)
    finally:
        ms.set_context(runtime_num_threads=before)


def test_what_waits_for_another_is_in_a_later_batch() -> None:
    inputs = given(*[(400, 300)] * 4)
    sums = [R.reduce_sum(x, axes=(0,), keepdims=True) for x in inputs]
    outs = [R.reduce_max(E.sub(x, s), axes=(1,), keepdims=False) for x, s in zip(inputs, sums)]
    program, got, want = run(Graph(inputs, outs))
    assert batches_of(program) == [4, 4]
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)


def test_what_is_written_over_an_input_waits_for_those_that_read_it() -> None:
    x, y = given((500, 400), (500, 400))
    graph = Graph([x, y], [E.mul(x, 2.0), R.reduce_sum(E.add(x, y), axes=(0,), keepdims=False)])
    program, got, want = run(graph, {0: 0})
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)


def test_members_do_not_take_the_place_of_what_another_reads() -> None:
    x, w = given((300, 300), (300, 300))
    middle = R.reduce_sum(E.mul(x, w), axes=(0,), keepdims=True)
    wide = E.add(middle, w)
    rows = R.reduce_sum(wide, axes=(1,), keepdims=True)
    outs = [
        R.reduce_sum(E.sub(wide, rows), axes=(0,), keepdims=False),
        R.reduce_max(E.mul(wide, rows), axes=(1,), keepdims=False),
    ]
    program, got, want = run(Graph([x, w], outs))
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_trace_shows_a_batch_as_a_step() -> None:
    inputs = given(*[(300, 300)] * 3)
    graph = Graph(inputs, [E.exp(x) for x in inputs])
    program = compile_native(graph)
    data = [buffers.from_array(np.zeros((300, 300), np.float32)) for _ in inputs]
    with tracing() as trace:
        program.entry(*data)
    (event,) = [e for e in trace.events if e.step.program.program is program]
    assert event.step.kind == "batch" and len(event.step.step.data.members) == 3


@pytest.mark.parametrize("name", ["Adam", "Momentum", "Lamb", "Rprop"])
def test_optimizers_step_as_they_do_eagerly(name: str) -> None:
    def trained(mode: int) -> list[Any]:
        ms.set_context(mode=mode)
        random = np.random.default_rng(1)
        parameters = [
            ms.Parameter(ms.Tensor(random.normal(size=s).astype(np.float32)), name=f"p{k}")
            for k, s in enumerate(SHAPES)
        ]
        rest = (1e-2, 0.9) if name == "Momentum" else (1e-2,)
        step = getattr(ms.nn, name)(parameters, *rest)
        for _ in range(3):
            step(tuple(ms.Tensor(random.normal(size=s).astype(np.float32)) for s in SHAPES))
        return [p.asnumpy() for p in parameters]

    try:
        compiled = trained(ms.GRAPH_MODE)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    for a, b in zip(compiled, trained(ms.PYNATIVE_MODE)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)
