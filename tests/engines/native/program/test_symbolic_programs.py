"""Programs of symbolic graphs: one lowering serves all sizes, guards tell for which, and small
sizes get graphs of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dim_values import evaluate
from mycel._src.compiler.ir.dims import DimLike, symbol
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, constant, outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.sort_and_scan import cumsum, sort
from mycel._src.engines import buffers
from mycel._src.engines.native.program.compiling import host_steps
from mycel._src.engines.native.program.symbolic_programs import Instances
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.size_specialization import programs_of, types_for
from mycel._src.foundation.bounded_caches import FEW
from mycel._src.foundation.dtype import float32, int64

N = symbol("rows", 2)
M = symbol("columns", 2)
SIZES = (2, 3, 5, 7, 8, 31, 33, 64, 257)


def graph_of(build: Callable[..., Any], *shapes: tuple[DimLike, ...]) -> Graph:
    inputs = [input_node(tensor_type(s, float32)) for s in shapes]
    result = build(*inputs)
    return Graph(inputs, result if isinstance(result, tuple) else (result,))


def run(
    instances: Instances, sizes: dict[str, int], arrays: Sequence[np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    values = instances.entry(sizes)(*[buffers.from_array(a) for a in arrays])
    values = values if isinstance(values, tuple) else (values,)
    types = types_for(instances.graph.output_types, sizes)
    return [buffers.to_array(v, t) for v, t in zip(values, types)]


def draw(shapes: Sequence[tuple[DimLike, ...]], sizes: dict[str, int]) -> list[np.ndarray[Any, Any]]:
    source = np.random.default_rng(sum(sizes.values()))
    return [source.normal(size=[evaluate(d, sizes) for d in s]).astype(np.float32) for s in shapes]


def softmax(x: Node, axis: int) -> Node:
    e = E.exp(E.sub(x, R.reduce_max(x, axes=(axis,), keepdims=True)))
    return E.div(e, R.reduce_sum(e, axes=(axis,), keepdims=True))


def np_softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


CASES: dict[str, tuple[Any, Any, tuple[tuple[DimLike, ...], ...]]] = {
    "elementwise": (lambda x: E.add(E.sin(x), x), lambda x: np.sin(x) + x, ((N, 3),)),
    "inner axis": (lambda x: E.mul(E.exp(x), 2.0), lambda x: np.exp(x) * 2, ((3, N),)),
    "two symbols": (lambda x: E.neg(x), lambda x: -x, ((N, M),)),
    "soft-max of rows": (lambda x: softmax(x, 1), lambda x: np_softmax(x, 1), ((3, N),)),
    "soft-max of columns": (lambda x: softmax(x, 0), lambda x: np_softmax(x, 0), ((N, M),)),
    "mean": (lambda x: R.reduce_mean(x, axes=(0,)), lambda x: x.mean(0), ((N, 3),)),
    "product": (matmul, np.matmul, ((N, 4), (4, 5))),
    "product over the symbol": (matmul, np.matmul, ((3, N), (N, M))),
    "product with itself": (lambda x: matmul(x, S.transpose(x, (1, 0))), lambda x: x @ x.T, ((N, 3),)),
    "broadcast": (E.add, np.add, ((N, M), (M,))),
    "iota": (
        lambda x: E.add(x, S.iota(shape=(N, 3), axis=0, dtype=float32)),
        lambda x: x + np.arange(len(x))[:, None],
        ((N, 3),),
    ),
    "size": (lambda x: E.mul(x, constant(N, float32)), lambda x: x * len(x), ((N, 3),)),
    "size by itself": (lambda x: constant(2 * N + 1, float32), lambda x: np.float32(2 * len(x) + 1), ((N, 3),)),
    "concat": (lambda x, y: S.concat([x, y, x], 0), lambda x, y: np.concatenate([x, y, x]), ((N, 3), (M, 3))),
    "transposed": (lambda x: S.transpose(x, (1, 0)), lambda x: x.T, ((N, M),)),
    "transposed sum": (lambda x, y: E.add(x, S.transpose(y, (1, 0))), lambda x, y: x + y.T, ((N, M), (M, N))),
    "turned round": (lambda x: E.neg(S.reverse(x, axes=(1,))), lambda x: -x[:, ::-1], ((3, N),)),
    "running sums of rows": (lambda x: cumsum(x, axis=1, reverse=False), lambda x: x.cumsum(1), ((3, N),)),
    "running sums of columns": (lambda x: cumsum(x, axis=0, reverse=False), lambda x: x.cumsum(0), ((N, M),)),
    "inner slice": (lambda x: S.slice_axis(x, 0, 1, N - 1), lambda x: x[1:-1], ((N + 2, 3),)),
    "reverse": (lambda x: S.reverse(x, axes=(0,)), lambda x: x[::-1], ((N, 3),)),
    "flat": (
        lambda x: E.exp(S.reshape(S.transpose(x, (1, 0)), (3 * N,))),
        lambda x: np.exp(x.T.reshape(-1)),
        ((N, 3),),
    ),
    "flat of two": (lambda x: S.reshape(x, (N * M,)), lambda x: x.reshape(-1), ((N, M),)),
    "pad by a size": (
        lambda x: S.pad(x, 1.0, (1, 0), (2, N)),
        lambda x: np.pad(x, ((1, 2), (0, len(x))), constant_values=1),
        ((N, 3),),
    ),
    "take": (lambda x: I.take(x, constant(np.array([0, 1, -1]), int64), axis=0), lambda x: x[[0, 1, -1]], ((N, 3),)),
    "sort": (lambda x: sort(x, axis=0, descending=False)[0], lambda x: np.sort(x, 0), ((N, 3),)),
    "argmax": (lambda x: R.argmax(x, axis=0), lambda x: x.argmax(0).astype(np.int32), ((N, 3),)),
}


@pytest.mark.parametrize("name", CASES)
def test_one_lowering_serves_all_sizes(name: str) -> None:
    build, reference, shapes = CASES[name]
    if name == "inner slice":
        build = lambda x: S.slice_axis(x, 0, 1, N + 1)
    instances = Instances(graph_of(build, *shapes))
    before = Template.lowerings
    for n in SIZES:
        sizes = {"rows": n, "columns": 2 + n % 5} if any(M in s for s in shapes) else {"rows": n}
        arrays = draw(shapes, sizes)
        (found,) = run(instances, sizes, arrays)
        expected = np.asarray(reference(*arrays))
        assert found.shape == expected.shape and found.dtype.kind == expected.dtype.kind
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4, err_msg=f"{name} for {sizes}")
    assert Template.lowerings - before == 1


def test_sizes_below_two_have_graphs_of_their_own() -> None:
    instances = Instances(graph_of(lambda x: E.add(x, R.reduce_sum(x, axes=(1,), keepdims=True)), (N, M)))
    before = Template.lowerings
    for n in (5, 1, 0, 6, 1, 0):
        for m in (4, 9):
            (x,) = draw([(N, M)], {"rows": n, "columns": m})
            (found,) = run(instances, {"rows": n, "columns": m}, [x])
            np.testing.assert_allclose(found, x + x.sum(1, keepdims=True), rtol=1e-4, atol=1e-4)
    assert Template.lowerings - before == 3


def test_what_was_decided_by_a_size_is_lowered_again_where_it_does_not_hold() -> None:
    instances = Instances(graph_of(lambda x: S.reshape(S.transpose(x, (1, 0)), (3, N)), (N, 3)))
    for n in SIZES:
        (x,) = draw([(N, 3)], {"rows": n})
        (found,) = run(instances, {"rows": n}, [x])
        np.testing.assert_array_equal(found, x.T)
        wide = Instances(graph_of(lambda x: S.reshape(x, (N, 3)), (3, N)))
        (found,) = run(wide, {"rows": n}, [x.T.copy()])
        np.testing.assert_array_equal(found, x.T.reshape(n, 3))
    assert len(instances.templates) == 1


def test_loops_and_branches() -> None:
    i, x = input_node(tensor_type((), int64)), input_node(tensor_type((N, 3), float32))
    test = Graph((i, x), (E.lt(i, constant(N, int64)),), "test")
    body = Graph((i, x), (E.add(i, 1), E.add(x, E.cast(i, dtype=float32))), "body")
    given = input_node(tensor_type((N, 3), float32))
    state = outputs_of(control.while_loop.node(constant(0, int64), given, test=test, body=body, carried=2))
    y = input_node(tensor_type((N, 3), float32))
    branches = {"true": Graph((y,), (E.neg(y),)), "false": Graph((y,), (E.mul(y, constant(N, float32)),))}
    pred = E.lt(R.reduce_sum(given, axes=(0, 1), keepdims=False), 0.0)
    chosen = outputs_of(control.cond.node(pred, given, **branches))
    instances = Instances(Graph((given,), (state[1], chosen[0])))
    before = Template.lowerings
    for n in SIZES:
        (a,) = draw([(N, 3)], {"rows": n})
        looped, picked = run(instances, {"rows": n}, [a])
        np.testing.assert_allclose(looped, a + n * (n - 1) / 2, rtol=1e-4)
        np.testing.assert_allclose(picked, -a if a.sum() < 0 else a * n, rtol=1e-5)
    assert Template.lowerings - before == 1


def test_outputs_over_inputs() -> None:
    graph = graph_of(lambda w, x: E.add(w, R.reduce_sum(x, axes=(0,), keepdims=False)), (3,), (N, 3))
    instances = Instances(graph, {0: 0})
    w = buffers.from_array(np.zeros(3, np.float32))
    total = np.zeros(3)
    for n in (2, 5, 9, 33):
        (x,) = draw([(N, 3)], {"rows": n})
        assert instances.entry({"rows": n})(w, buffers.from_array(x)) is w
        total += x.sum(0)
        np.testing.assert_allclose(buffers.to_array(w, tensor_type((3,), float32)), total, rtol=1e-4, atol=1e-5)


def test_programs_are_bounded_and_shared() -> None:
    graph = graph_of(lambda x: E.sin(x), (N,))
    instances = programs_of(graph)
    assert instances is programs_of(graph)
    first = instances.program({"rows": 2})
    assert instances.program({"rows": 2}) is first
    for n in range(3, FEW + 10):
        instances.program({"rows": n})
    assert FEW // 2 <= len(instances.programs) <= FEW and instances.program({"rows": 2}) is not first


def test_host_steps_of_a_symbolic_graph() -> None:
    alone = Primitive("alone", lambda x: x, lambda x: x + 1)
    graph = graph_of(lambda x: alone(x), (N, 3))
    assert [node.prim.name for node, _ in host_steps(graph)] == ["alone"]


LONG: dict[str, Any] = {
    "rows and columns": (
        lambda x: R.reduce_sum(E.mul(x, x), axes=(0, 1), keepdims=False),
        lambda x: (x * x).sum(),
        (N, M),
    ),
    "one axis": (
        lambda x: R.reduce_sum(E.exp(x), axes=(0,), keepdims=True),
        lambda x: np.exp(x).sum(keepdims=True),
        (N,),
    ),
    "maxima": (lambda x: R.reduce_max(x, axes=(0,), keepdims=False), lambda x: x.max(), (N,)),
    "columns": (lambda x: R.reduce_sum(x, axes=(0,), keepdims=False), lambda x: x.sum(0), (N, 3)),
    "rows of images": (
        lambda x: R.reduce_min(x, axes=(0, 2), keepdims=True),
        lambda x: x.min((0, 2), keepdims=True),
        (N, 3, M),
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_long_reductions_over_symbols_are_cut_for_all_sizes(name: str) -> None:
    build, reference, shape = LONG[name]
    instances = Instances(graph_of(build, shape))
    before = Template.lowerings
    for n, m in ((100_003, 2), (31, 5), (32, 2), (131_072, 2), (2, 7), (65_537, 2)):
        sizes = {"rows": n, "columns": m} if M in shape else {"rows": n}
        (x,) = draw([shape], sizes)
        (found,) = run(instances, sizes, [x])
        np.testing.assert_allclose(found, reference(x.astype(np.float64)), rtol=1e-4, atol=1e-3, err_msg=f"for {sizes}")
    # One for long and one for short ones.
    assert Template.lowerings - before == 2
    counts = [sum(s.kind == "kernel" and bool(s.data.reduces) for s in t.steps) for _, t in instances.templates]
    assert counts[0] == 1 < counts[1]
