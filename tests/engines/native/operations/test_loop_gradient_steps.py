"""Gradients of loops in the native engine: every length and both ways of keeping states, against
the recurrence in float64; and what recomputation saves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import constant, outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.control_flow.recompute import with_root_tapes
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.native.steps.step_types import Tape, flat
from mycel._src.foundation.dtype import bool_, float32, int64
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.recording import Recorder
from mycel._src.tensors.core.tensor import make

X, A = np.array([0.4, -1.1, 0.9], np.float32), np.array([1.1, 0.7, -0.8], np.float32)


def loop_graph(value: bool = False) -> Graph:
    """(x, a, n) -> the gradients of the sum of n rounds of x -> sin(a x) + x / 2, with a flag and a
    counter carried too, and the value.
    """
    vector, number = tensor_type((3,), float32), tensor_type((), int64)
    i, flag, x, n, a = (input_node(t) for t in (number, tensor_type((), bool_), vector, number, vector))
    test = Graph((i, flag, x, n, a), (E.lt(i, n),), "test")
    moved = E.add(E.sin(E.mul(a, x)), E.mul(x, E.SELECT(flag, E.mul(x, 0.0) + 0.5, E.mul(x, 0.0) + 0.25)))
    body = Graph((i, flag, x, n, a), (E.add(i, 1), E.logical_not(flag), moved), "body")
    start, scale, rounds = input_node(vector, "x"), input_node(vector, "a"), input_node(number, "n")
    zero, yes = E.mul(rounds, 0), E.ge(E.mul(rounds, 0), 0)
    out = outputs_of(control.while_loop.node(zero, yes, start, rounds, scale, test=test, body=body, carried=3))[2]
    squared = reduce_sum(E.mul(out, out), axes=(0,), keepdims=False)
    grads = vjp([squared], [constant(1, float32)], [start, scale])
    outputs = [g for g in grads if g is not None]
    return Graph((start, scale, rounds), [*outputs, squared] if value else outputs, "f")


def expected(rounds: int) -> tuple[Any, Any, float]:
    x, a = X.astype(np.float64), A.astype(np.float64)
    states = []
    for k in range(rounds):
        states.append(x)
        x = np.sin(a * x) + x * (0.25 if k % 2 else 0.5)
    by_x, by_a = 2 * x, np.zeros(3)
    for k in reversed(range(rounds)):
        s = states[k]
        slope = by_x * np.cos(a * s)
        by_a, by_x = by_a + slope * s, slope * a + by_x * (0.25 if k % 2 else 0.5)
    return by_x, by_a, float((x * x).sum())


def run(graph: Graph, rounds: int) -> Any:
    program = compile_native(graph)
    given = [Tensor(X), Tensor(A), Tensor(np.array(rounds, np.int64))]
    values = program.entry(*[t._buf for t in given])
    return [make(t, v).asnumpy() for t, v in zip(graph.output_types, values)]


@pytest.mark.parametrize("rounds", [0, 1, 2, 15, 16, 17, 33, 64, 100, 1000, 4097])
@pytest.mark.parametrize("keep", ["all", "root"])
def test_every_number_of_rounds(keep: str, rounds: int) -> None:
    graph = loop_graph()
    found = run(with_root_tapes(graph) if keep == "root" else graph, rounds)
    for actual, wanted in zip(found, expected(rounds)):
        np.testing.assert_allclose(actual, wanted, rtol=2e-4, atol=1e-5)


def test_the_loop_itself_records_for_its_gradient() -> None:
    graph = loop_graph(value=True)
    program = compile_native(graph)
    loops = [s for s in program.all_steps if s.kind == "while"]
    pushes = [s for s in program.all_steps if isinstance(s.data, Tape) and s.data.operation == "push"]
    assert len(loops) == 2 and len(pushes) == 1
    # The counter is not on the tape: the derivative does not read it.
    assert [b.dtype.name for b in pushes[0].data.states] == ["bool", "float32"]
    for actual, wanted in zip(run(graph, 50), expected(50)):
        np.testing.assert_allclose(actual, wanted, rtol=2e-4, atol=1e-5)


def test_a_tape_near_the_root_runs_stretches_again() -> None:
    program = compile_native(with_root_tapes(loop_graph(value=True)))
    tapes = [s.data for s in program.all_steps if isinstance(s.data, Tape)]
    assert sum(t.operation == "push" and t.root for t in tapes) == 1
    assert sum(t.operation == "push" for t in tapes) == 2 and sum(t.operation == "count" for t in tapes) == 1


def test_running_again_finds_a_clean_tape() -> None:
    graph = loop_graph()
    program = compile_native(graph)
    for rounds in (40, 3, 0, 90):
        given = [Tensor(X), Tensor(A), Tensor(np.array(rounds, np.int64))]
        values = program.entry(*[t._buf for t in given])
        np.testing.assert_allclose(
            make(graph.output_types[0], values[0]).asnumpy(), expected(rounds)[0], rtol=2e-4, atol=1e-5
        )


@pytest.mark.parametrize("again", [False, True])
def test_a_loop_whose_derivative_reads_no_state(again: bool) -> None:
    def f(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = x * 1.01
        return x

    take = ms.jit(ms.grad(lambda x, n: ms.recompute(f, x, n) if again else f(x, n)))
    for rounds in (0, 1, 100, 700):
        actual = take(Tensor([1.0, 2.0]), Tensor(rounds)).asnumpy()
        slope = 1.0
        for _ in range(rounds):
            slope *= 1.01
        np.testing.assert_allclose(actual, [slope, slope], rtol=1e-3)


def test_a_gradient_of_a_loop_inside_a_loop() -> None:
    @ms.jit
    def f(x: Any, n: Any) -> Any:
        def inner(u: Any) -> Any:
            for _ in range(n):
                u = ops.sin(u) * 1.5
            return ops.sum(u)

        total = x * 0
        for _ in range(n):
            total = total + ms.grad(inner)(x + total)
        return total

    x, n = np.array([0.3, 0.8]), 6
    total = x * 0
    for _ in range(n):
        u, slope = x + total, np.ones(2)
        for _ in range(n):
            slope, u = slope * np.cos(u) * 1.5, np.sin(u) * 1.5
        total = total + slope
    actual = f(Tensor(x.astype(np.float32)), Tensor(n)).asnumpy()
    np.testing.assert_allclose(actual, total, rtol=1e-4)


def chain(again: bool) -> Any:
    ws = [Tensor(np.full((16, 16), 0.01 * (k + 1), np.float32)) for k in range(16)]

    def block(x: Any, *weights: Any) -> Any:
        for w in weights:
            x = ops.sin(ops.matmul(x, w)) * ops.exp(-x * x)
        return x

    def f(x: Any) -> Any:
        for k in range(0, 16, 4):
            part = ws[k : k + 4]
            x = ms.recompute(block, x, *part) if again else block(x, *part)
        return ops.sum(x)

    return f


def test_recomputation_needs_less_memory() -> None:
    x = Tensor(np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32))
    arenas, results = [], []
    for again in (False, True):
        compiled = ms.jit(ms.grad(chain(again)))
        results.append(compiled(x).asnumpy())
        ((version,),) = compiled.versions.values()
        arenas.append(compile_native(version.graph).arena_bytes)
    assert arenas[1] < 0.55 * arenas[0]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-7)


def test_eager_recomputation_keeps_only_what_goes_in() -> None:
    """On a recording, a block's values die with the block."""
    x = Tensor(np.ones((64, 16), np.float32))
    counts = []
    for again in (False, True):
        f = chain(again)
        before: list[int] = []

        def counted(a: Any, f: Any = f, before: list[int] = before) -> Any:
            out = f(a)
            recorder = eager.current_context()
            assert isinstance(recorder, Recorder)
            seen, stack = set(), [recorder.node_of(out)]
            while stack:
                node = stack.pop()
                if node is not None and node not in seen:
                    seen.add(node)
                    stack.extend(node.inputs)
            before.append(len({id(n.buffer) for n in seen if n.buffer is not None and not isinstance(n.type, tuple)}))
            return out

        ms.grad(counted)(x)
        counts.append(before[0])
    assert counts[1] < counts[0] / 3


def test_steps_of_tapes_are_listed_inside_loops() -> None:
    program = compile_native(loop_graph())
    assert {s.data.operation for s in flat(program.lowered.steps) if isinstance(s.data, Tape)} == {
        "begin",
        "push",
        "pop",
    }
