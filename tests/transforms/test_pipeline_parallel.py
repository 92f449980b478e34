"""Graphs of micro-batches cut into the graphs of stages, and run by threads as ranks."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.ir.verify import verify
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.distributed.point_to_point import messages
from mycel._src.compiler.prims.distributed.sharding_constraint import INPUT, RESULT, Mark, Operator, constrain
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.compiler.transforms.pipeline_parallel import Kind, Unit, assign, cut
from mycel._src.compiler.transforms.pipeline_parallel.stage_graphs import Pipe
from mycel._src.compiler.transport import thread_ranks
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import float32
from mycel._src.foundation.errors import ShapeError

PARTS, BASE = 3, Mesh((1,), ("x",))


def operator(name: str, micro: int, stage: int, *inputs: Node) -> Node:
    """The product of a value and a weight, squashed, with marks around it."""
    own = Operator(f"{name}-op{micro}", name, stage=stage, micro=micro)
    x, w = (constrain(v, mark=Mark(own, INPUT, k)) for k, v in enumerate(inputs))
    return constrain(E.tanh(matmul(x, w)), mark=Mark(own, RESULT))


def training(stages: tuple[int, ...] = (0, -1, 1), product: bool = False) -> Graph:
    """A step of three layers: the loss, and weights that have moved against their gradients."""
    x = input_node(tensor_type((PARTS * 2, 4), float32), "x")
    weights = [input_node(tensor_type((4, 4), float32), f"w{k}") for k in range(len(stages))]
    losses = []
    for micro in range(PARTS):
        value = S.slice_axis(x, 0, 2 * micro, 2 * micro + 2)
        for k, stage in enumerate(stages):
            value = operator(f"L{k}", micro, stage, value, weights[k])
        losses.append(reduce_sum(value * value, axes=(0, 1), keepdims=False))
    loss = reduce(E.mul if product else E.add, losses)
    gradients = vjp([loss], [constant(1.0, float32)], weights)
    moved = [w - g * 0.1 for w, g in zip(weights, gradients) if g is not None]
    return Graph([x, *weights], [loss, *moved], "step")


def orders(first_forward: bool = True, stages: int = 2) -> list[list[Unit]]:
    found = []
    for s in range(stages):
        f, b = ([Unit(k, s, m) for m in range(PARTS)] for k in (Kind.FORWARD, Kind.BACKWARD))
        ahead = PARTS if first_forward else stages - s
        mixed = [u for pair in zip(b, f[ahead:]) for u in pair]
        found.append([*f[:ahead], *mixed, *b[PARTS - ahead :]])
    return found


def asked(operator: Operator) -> int | None:
    return operator.stage if operator.stage >= 0 else None


def test_operators_belong_to_the_last_stage_before_them() -> None:
    graph = training()
    made = assign(graph, graph.inputs[:1], asked, 2)
    assert {o.name: s for o, s in made.stages.items() if o.micro == 1} == {"L0-op1": 0, "L1-op1": 0, "L2-op1": 1}
    kinds = {(u.kind, u.stage, u.micro) for n, u in made.units.items() if n.prim is matmul}
    assert kinds == {(k, s, m) for k in (0, 1) for s in (0, 1) for m in range(PARTS)}
    sliced = [n for n in graph.nodes if n.prim is S.SLICE]
    assert sliced and made.data >= set(sliced) and not made.units.keys() & set(sliced)


@pytest.mark.parametrize("first_forward", [True, False])
def test_stages_compute_the_whole(first_forward: bool) -> None:
    graph, random = training(), np.random.default_rng(0)
    arrays = [random.normal(size=n.type.shape).astype(np.float32) for n in graph.inputs]
    made = assign(graph, graph.inputs[:1], asked, 2)
    meshes = [Mesh((1,), ("x",), (k,)) for k in range(2)]

    def run(rank: int) -> dict[int, Any]:
        stage = cut(graph, made, orders(first_forward), BASE, meshes, {1: 1, 2: 2, 3: 3}, rank)
        verify(stage.graph)
        found = evaluate(stage.graph, [arrays[k] for k in stage.inputs])
        return dict(zip(stage.outputs, found))

    expected = evaluate(graph, arrays)
    first, second = thread_ranks.run(2, run)
    assert sorted(first) == [0, 1, 2] and sorted(second) == [0, 3]  # each has its own weights
    for found in (first, second):
        for k, value in found.items():
            np.testing.assert_allclose(value, expected[k], rtol=1e-5)


def test_messages_are_in_the_order_of_the_schedule() -> None:
    graph = training()
    made = assign(graph, graph.inputs[:1], asked, 2)
    meshes = [Mesh((1,), ("x",), (k,)) for k in range(2)]
    seen = {}
    for first_forward in (True, False):
        stage = cut(graph, made, orders(first_forward), BASE, meshes, {1: 1, 2: 2, 3: 3}, 0)
        nodes = [n for n in stage.graph.nodes if n.prim is messages]
        seen[first_forward] = "".join("s" if n.params["sent"] else "r" for n in nodes)
    assert seen == {True: "sssrrrr", False: "ssrsrrr"}  # the last is the loss


def test_sums_of_gradients_grow_with_the_schedule() -> None:
    graph = training()
    made = assign(graph, graph.inputs[:1], asked, 2)
    pipe = Pipe(graph, made, orders(), BASE, [Mesh((1,), ("x",), (k,)) for k in range(2)], {1: 1, 2: 2, 3: 3})
    sums = [n for n in pipe.graph.nodes if n.prim is E.add and n.shape == (4, 4)]
    units = [[pipe.units[n].micro for n in (s, *s.inputs)] for s in sums]
    assert sorted(units) == sorted([[1, 0, 1], [2, 1, 2]] * 3)


def test_losses_of_all_parts_together_need_all_forwards_first() -> None:
    graph, random = training(product=True), np.random.default_rng(1)
    arrays = [random.normal(size=n.type.shape).astype(np.float32) for n in graph.inputs]
    made = assign(graph, graph.inputs[:1], asked, 2)
    meshes = [Mesh((1,), ("x",), (k,)) for k in range(2)]
    expected = evaluate(graph, arrays)

    def run(rank: int) -> Any:
        stage = cut(graph, made, orders(), BASE, meshes, {1: 1, 2: 2, 3: 3}, rank)
        return dict(zip(stage.outputs, evaluate(stage.graph, [arrays[k] for k in stage.inputs])))

    for found in thread_ranks.run(2, run):
        for k, value in found.items():
            np.testing.assert_allclose(value, expected[k], rtol=1e-4, atol=1e-5)
    with pytest.raises(ShapeError, match="needs the schedule 'gpipe'"):
        cut(graph, made, orders(False), BASE, meshes, {1: 1, 2: 2, 3: 3}, 0)


@pytest.mark.parametrize(
    ("stages", "count", "text"),
    [((1, 0, 0), 2, "it is in stage 0, and uses a value of stage 1"), ((0, 3, -1), 2, "to be in stage 3")],
)
def test_stages_that_do_not_fit_are_refused(stages: tuple[int, ...], count: int, text: str) -> None:
    graph = training(stages)
    with pytest.raises(ShapeError, match=text):
        assign(graph, graph.inputs[:1], asked, count)
