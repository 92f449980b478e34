"""Graphs under the layouts that have names: what ranks compute together, and what they send."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant, outputs_of
from mycel._src.compiler.prims.control_flow.recompute import recompute
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.indexing.index import scatter_nd, take
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.normalization import log_softmax, moments, softmax
from mycel._src.compiler.prims.random import random_bits
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.compiler.transforms.optimisation.passes import optimize
from mycel._src.compiler.transforms.partition import (
    ALONE,
    WHOLE,
    Fusing,
    Partitioned,
    Sharding,
    divisions_of,
    part_of,
    partition,
    sharding,
)
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import float32, int32, uint32, uint64
from mycel._src.foundation.errors import ShapeError
from tests.transforms.partition.support import bytes_sent, check, close, kinds, layouts, run_ranks

DP, DP3, TP, BOTH = Mesh((4,), ("dp",)), Mesh((3,), ("dp",)), Mesh((2,), ("tp",)), Mesh((2, 2), ("dp", "tp"))


def inputs_of(**shapes: tuple[int, ...]) -> list[Node]:
    return [input_node(tensor_type(s, float32), name) for name, s in shapes.items()]


def total(x: Node, axes: tuple[int, ...]) -> Node:
    return R.reduce_sum(x, axes=axes, keepdims=False)


def arrays_of(graph: Graph, high: int = 4) -> list[Any]:
    """Values of the inputs, the same whatever tests ran before. Halves keep softmaxes from having
    one score, in which roundings of float32 grow beyond the tolerance.
    """
    draw = np.random.default_rng(0)
    return [
        (draw.integers(0, high, n.shape) if n.dtype.is_integer else draw.normal(0, 0.5, n.shape)).astype(n.dtype.numpy)
        for n in graph.inputs
    ]


def step(loss: Node, data: Sequence[Node], weights: Sequence[Node], states: Sequence[Node] = ()) -> Graph:
    """A training step: the loss, and the new weights, each behind its momentum if there are any."""
    grads = vjp([loss], [constant(1.0, float32)], weights)
    new: list[Node] = []
    for w, g, m in zip(weights, grads, [*states, *[None] * len(weights)]):
        assert g is not None
        if m is not None:
            g = E.add(E.mul(m, 0.9), E.mul(g, 0.1))
            new.append(g)
        new.append(E.sub(w, E.mul(g, 0.5)))
    kept = [x for pair in zip(states, weights) for x in pair] if states else list(weights)
    return Graph([*data, *kept], [loss, *new], "step")


def mlp(batch: int = 12, momentum: bool = False) -> Graph:
    x, w1, b1, w2, b2 = inputs_of(x=(batch, 8), w1=(8, 16), b1=(16,), w2=(16, 4), b2=(4,))
    y = E.add(matmul(E.tanh(E.add(matmul(x, w1), b1)), w2), b2)
    loss = E.div(total(E.mul(y, y), (0, 1)), float(batch * 4))
    weights = [w1, b1, w2, b2]
    states = [input_node(w.type, "m") for w in weights] if momentum else []
    return step(loss, [x], weights, states)


def tied(graph: Graph, data: int = 1) -> dict[int, int]:
    """The outputs behind the loss replace the inputs behind the data."""
    return {k: k + data - 1 for k in range(1, len(graph.outputs))}


def weight_bytes(graph: Graph, data: int = 1) -> int:
    return sum(4 * math.prod(n.shape) for n in graph.inputs[data:])


def trained(graph: Graph, mesh: Mesh, specs: Sequence[Any], data: int = 1) -> Partitioned:
    return check(graph, mesh, layouts(mesh, graph, specs), arrays_of(graph), tied=tied(graph, data))


# Training steps.


@pytest.mark.parametrize("mesh", [DP, DP3, Mesh((6,), ("dp",)), Mesh((5,), ("dp",))], ids=str)
def test_data_parallel(mesh: Mesh) -> None:
    graph = mlp()
    made = trained(graph, mesh, [("dp",), (), (), (), ()])
    assert kinds(made) == {"all_reduce": 1}
    share = 2 * (mesh.size - 1) / mesh.size
    assert made.sent == pytest.approx(share * (weight_bytes(graph) + 4)) == bytes_sent(made)
    assert all(m.where is None for m in made.messages)


@pytest.mark.parametrize("count", [2, 3])
def test_columns_then_rows(count: int) -> None:
    mesh = Mesh((count,), ("tp",))
    graph = mlp()
    made = trained(graph, mesh, [(), (None, "tp"), ("tp",), ("tp",), ()])
    assert kinds(made) == {"all_reduce": 1}, "one in the forward pass; nobody asks for the gradient of x"
    assert [str(m.value) for m in made.messages] == ["float32[12, 4]"]


def test_data_and_columns() -> None:
    graph = mlp()
    made = trained(graph, BOTH, [("dp",), (None, "tp"), ("tp",), ("tp",), ()])
    assert kinds(made) == {"all_reduce": 2}
    assert made.sent == bytes_sent(made) == 12 // 2 * 4 * 4 + (weight_bytes(graph) + 4 * 4) // 2 + 4


def test_divided_states_of_the_optimizer() -> None:
    graph = mlp(momentum=True)
    made = trained(graph, DP, [("dp",), *[("dp",), ()] * 4])
    assert kinds(made) == {"all_reduce": 1, "reduce_scatter": 1, "all_gather": 1}
    plain = trained(graph, DP, [("dp",), *[(), ()] * 4])
    assert made.sent == plain.sent == bytes_sent(made)
    assert made.graph.inputs[1].shape == (2, 16)


def test_divided_weights_are_gathered_where_they_are_used() -> None:
    graph = mlp(momentum=True)
    made = trained(graph, DP, [("dp",), *[("dp",)] * 8])
    assert sum(m.kind == "all_gather" for m in made.messages) == 4, "forwards, and kept for the derivative"
    assert kinds(made) == {"all_reduce": 1, "reduce_scatter": 1, "all_gather": 1}
    plain = trained(graph, DP, [("dp",), *[(), ()] * 4])
    assert made.sent == plain.sent == bytes_sent(made)
    assert not any("12" in str(m.value) for m in made.messages), "no activation moves"


def test_inputs_that_are_left_open() -> None:
    graph = mlp()
    made = trained(graph, TP, [(), (None, "tp"), "free", ("tp",), "free"])
    assert [str(p) for p in made.inputs] == ["whole", "1:tp", "0:tp", "0:tp", "whole"]
    assert made.outputs[1:] == made.inputs[1:]
    assert kinds(made) == {"all_reduce": 1}


def test_convolutions_and_moments() -> None:
    x, w, gamma, head = inputs_of(x=(6, 3, 5, 5), w=(4, 3, 3, 3), gamma=(4, 1, 1), head=(4, 2))
    params = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    y = conv(x, w, **params)
    mean, var = moments.outputs(y, axes=(0, 2, 3))[:2]
    mean, var = (S.reshape(v, (1, 4, 1, 1)) for v in (mean, var))
    y = E.mul(E.div(E.sub(y, mean), E.sqrt(E.add(var, 1e-3))), gamma)
    loss = total(E.tanh(matmul(total(E.tanh(y), (2, 3)), head)), (0, 1))
    graph = step(loss, [x], [w, gamma, head])
    for mesh in (DP3, DP):
        made = trained(graph, mesh, [("dp",), (), (), ()])
        assert set(kinds(made)) == {"all_reduce"}
        assert max(math.prod(m.value.shape) for m in made.messages) == math.prod(w.shape)
    trained(graph, TP, [(), ("tp",), ("tp",), ("tp",)])


# Transformers.


def block(batch: int = 4, length: int = 6, width: int = 8, heads: int = 4) -> Graph:
    """A layer with attention of its own and a residual, packed weights as three stretches."""
    x, qkv, out, up, down = inputs_of(
        x=(batch, length, width), qkv=(width, 3 * width), out=(width, width), up=(width, 16), down=(16, width)
    )
    flat = S.reshape(x, (batch * length, width))
    packed = matmul(flat, qkv)
    parts = [S.slice_axis(packed, 1, k * width, (k + 1) * width) for k in range(3)]
    q, k, v = (S.transpose(S.reshape(p, (batch, length, heads, width // heads)), (0, 2, 1, 3)) for p in parts)
    weights = softmax(E.mul(matmul(q, S.transpose(k, (0, 1, 3, 2))), 0.7), axis=3)
    mixed = S.reshape(S.transpose(matmul(weights, v), (0, 2, 1, 3)), (batch * length, width))
    y = E.add(matmul(mixed, out), flat)
    y = E.add(matmul(E.tanh(matmul(E.sin(y), up)), down), y)
    loss = total(E.mul(y, E.tanh(y)), (0, 1))
    grads = vjp([loss], [constant(1.0, float32)], [x, qkv, out, up, down])
    return Graph([x, qkv, out, up, down], [loss, *grads], "block")  # type: ignore[list-item]


def packed(mesh: Mesh, axis: str, width: int = 8) -> Sharding:
    return Sharding(part_of(mesh, 1, (axis,), width, before=3))


def test_block_by_heads_sends_four_times() -> None:
    graph = block()
    specs = layouts(TP, graph, [(), (), ("tp",), (None, "tp"), ("tp",)])
    specs[1] = packed(TP, "tp")
    made = check(graph, TP, specs, arrays_of(graph), outputs=[None, WHOLE, *specs[1:]])
    assert [m.kind for m in made.messages] == ["all_reduce"] * 4
    assert {str(m.value) for m in made.messages} <= {"float32[24, 8]", "float32[4, 6, 8]"}
    assert kinds(made) == {"all_reduce": 4}
    assert made.sent == 4 * 24 * 8 * 4


@pytest.mark.parametrize("mesh", [BOTH, Mesh((3, 2), ("dp", "tp")), Mesh((2, 3), ("dp", "tp"))], ids=str)
def test_block_by_heads_and_batch(mesh: Mesh) -> None:
    graph = block()
    specs = layouts(mesh, graph, [("dp",), (), ("tp",), (None, "tp"), ("tp",)])
    specs[1] = packed(mesh, "tp")
    made = check(graph, mesh, specs, arrays_of(graph))
    if mesh is BOTH:
        assert set(kinds(made)) == {"all_reduce"}


@pytest.mark.parametrize("mesh", [TP, Mesh((3,), ("tp",)), Mesh((4,), ("tp",))], ids=str)
def test_block_by_positions(mesh: Mesh) -> None:
    graph = block()
    made = check(graph, mesh, layouts(mesh, graph, [(None, "tp"), (), (), (), ()]), arrays_of(graph))
    gathered = [m for m in made.messages if m.kind == "all_gather"]
    assert len(gathered) <= 4, "keys and values, and what their derivatives need"


def embedding(batch: int = 6, vocabulary: int = 12) -> Graph:
    ids = input_node(tensor_type((batch, 3), int32), "ids")
    labels = input_node(tensor_type((batch, 3), int32), "labels")
    (table,) = inputs_of(table=(vocabulary, 8))
    logits = matmul(E.tanh(take(table, ids, axis=0)), S.transpose(table, (1, 0)))
    chosen = E.eq(S.reshape(labels, (batch, 3, 1)), S.iota(shape=(vocabulary,), axis=0, dtype=int32))
    loss = E.neg(total(E.mul(log_softmax(logits, axis=2), E.cast(chosen, dtype=float32)), (0, 1, 2)))
    return step(loss, [ids, labels], [table])


@pytest.mark.parametrize("count", [3, 8])
@pytest.mark.parametrize("shape, axes", [((24, 4, 16, 16), (0, 2, 3)), ((24, 5), (0,)), ((24, 6, 4), (1, 0))])
def test_moments_of_divided_rows_gather_nothing(count: int, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    (x,) = inputs_of(x=shape)
    mesh = Mesh((count,), ("dp",))
    graph = Graph([x], list(moments(x, axes=axes)))
    made = check(graph, mesh, layouts(mesh, graph, [("dp",)]), arrays_of(graph))
    assert set(kinds(made)) == {"all_reduce"}


def test_a_term_that_a_sum_has_twice() -> None:
    x, y = inputs_of(x=(8, 3), y=(8, 3))
    twice = total(E.mul(x, x), (0, 1))
    graph = Graph([x, y], [E.add(E.add(total(y, (0, 1)), twice), twice)])
    made = check(graph, DP, layouts(DP, graph, [("dp",), ("dp",)]), arrays_of(graph))
    assert set(kinds(made)) == {"all_reduce"}


@pytest.mark.parametrize("count", [2, 3])
def test_rows_of_an_embedding(count: int) -> None:
    """The table is never moved, nor are logits, of which nobody has all: softmax is combined."""
    mesh = Mesh((count,), ("tp",))
    made = trained(embedding(vocabulary=36), mesh, [(), (), ("tp",)], data=2)
    assert set(kinds(made)) == {"all_reduce"}
    assert not any(36 in n.shape for n in made.graph.nodes if isinstance(n.type, TensorType))


def test_batch_of_an_embedding() -> None:
    graph = embedding()
    made = trained(graph, DP, [("dp",), ("dp",), ()], data=2)
    assert set(kinds(made)) == {"all_reduce"}
    assert made.sent == pytest.approx(1.5 * (weight_bytes(graph, 2) + 4))
    trained(graph, Mesh((5,), ("dp",)), [("dp",), ("dp",), ()], data=2)


def test_additions_into_partial_values() -> None:
    """Both gradients of a table that is used twice are added up before they are sent."""
    graph = optimize(embedding())
    assert any(n.prim is scatter_nd for n in graph.nodes)
    made = trained(graph, DP, [("dp",), ("dp",), ()], data=2)
    assert kinds(made) == {"all_reduce": 1}
    assert made.sent == 1.5 * (weight_bytes(graph, 2) + 4)


# Values that depend on the place.


def test_random_bits_and_positions_are_the_same_bits() -> None:
    (x,) = inputs_of(x=(6, 4))
    state = input_node(tensor_type((2,), uint64), "state")
    bits = random_bits(state, shape=(6, 4), dtype=uint32)
    y = E.select(E.gt(E.bitwise_and(bits, 3), 0), x, 0.0)
    graph = Graph([x, state], [y, E.add(x, S.iota(shape=(6, 4), axis=0, dtype=float32)), bits], "drawn")
    for mesh in (DP3, DP, Mesh((2,), ("dp",))):
        made = check(graph, mesh, layouts(mesh, graph, [("dp",), ()]), arrays_of(graph), [None, None, WHOLE])
        assert made.outputs[0] == made.outputs[1] == made.inputs[0]


# What is opened, and what runs whole.


def test_recomputed_regions_are_opened() -> None:
    x, w = inputs_of(x=(8, 4), w=(4, 4))
    inner = inputs_of(x=(8, 4), w=(4, 4))
    region = Graph(inner, [E.tanh(matmul(E.sin(matmul(*inner)), inner[1]))], "region")
    y = outputs_of(recompute.node(x, w, graph=region, fresh=(0,)))[0]
    graph = step(total(E.mul(y, y), (0, 1)), [x], [w])
    made = trained(graph, DP, [("dp",), ()])
    assert kinds(made) == {"all_reduce": 1}
    assert sum(n.op == "after" for n in made.graph.nodes) == 1


# Decisions from outside, and refusals.


def test_a_plan_decides() -> None:
    x, w = inputs_of(x=(8, 4), w=(4, 6))
    y = matmul(x, w)
    graph = Graph([x, w], [y], "planned")
    for division in divisions_of(y, TP):
        made = partition(graph, TP, [WHOLE, WHOLE], [None], plan={y: division})
        assert made.divisions[y] == division
        arrays = arrays_of(graph)
        close(run_ranks(made, arrays), evaluate(graph, arrays))


def test_outputs_as_asked() -> None:
    (x,) = inputs_of(x=(8, 6))
    graph = Graph([x], [E.sin(x), x, R.reduce_max(x, axes=(0,), keepdims=False)], "asked")
    wanted: list[Sharding | None] = [sharding(DP, (8, 6), (None, "dp")), WHOLE, sharding(DP, (6,), ("dp",))]
    made = check(graph, DP, layouts(DP, graph, [("dp",)]), arrays_of(graph), wanted)
    assert list(made.outputs) == wanted
    assert kinds(made) == {"all_to_all": 1, "all_gather": 1, "reduce_scatter": 1}


def test_messages_are_no_larger_than_asked() -> None:
    graph = mlp()
    specs = layouts(DP, graph, [("dp",), (), (), (), ()])
    assert kinds(partition(graph, DP, specs, tied=tied(graph), fusing=ALONE)) == {"all_reduce": 5}
    assert kinds(partition(graph, DP, specs, tied=tied(graph), fusing=Fusing(600))) == {"all_reduce": 2}


def test_one_device_changes_nothing() -> None:
    graph, mesh = mlp(), Mesh((1,), ("dp",))
    made = trained(graph, mesh, [("dp",), (), (), (), ()])
    assert not kinds(made) and not made.messages


def test_every_rank_finds_the_same_graph() -> None:
    graph = mlp(momentum=True)
    specs = layouts(BOTH, graph, [("dp",), (None, "tp"), (None, "tp"), ("tp",), ("tp",), "free", "free", (), ()])
    made = [partition(graph, BOTH, specs, tied=tied(graph)) for _ in range(2)]
    assert structural_hash(made[0].graph) == structural_hash(made[1].graph)
    assert [str(m) for m in made[0].messages] == [str(m) for m in made[1].messages]
    other = Mesh((2, 2), ("dp", "tp"), (3, 2, 1, 0))
    assert structural_hash(partition(graph, other, specs, tied=tied(graph)).graph) != structural_hash(made[0].graph)


def test_refusals() -> None:
    x = input_node(tensor_type((symbol("n"), 2), float32), "x")
    with pytest.raises(ShapeError, match="symbolic size"):
        partition(Graph([x], [E.sin(x)]), DP, [WHOLE])
    (y,) = inputs_of(y=(4, 2))
    graph = Graph([y], [E.sin(y)])
    with pytest.raises(ShapeError, match="1 inputs and 1 outputs need as many layouts, not 2 and 1"):
        partition(graph, DP, [WHOLE, WHOLE])
    with pytest.raises(ShapeError, match="inputs cannot be partial"):
        partition(graph, DP, [Sharding((), (("dp", "sum"),))])
    with pytest.raises(
        ShapeError, match=r"input 0 \(y\): the layout 0:dp divides axis 0 as 1 \* 4 \* 2, the sizes are"
    ):
        partition(graph, DP, [sharding(DP, (8, 2), ("dp",))])
    with pytest.raises(ShapeError, match=r"output 0 \(sin\): the layout 0:dp was made for another mesh"):
        partition(graph, DP, [WHOLE], [sharding(Mesh((2,), ("dp",)), (4, 2), ("dp",))])
    counted = R.reduce_max(y, axes=(0,), keepdims=False)
    wrong = Sharding(part_of(DP, 2, ("dp",), 4))
    with pytest.raises(ShapeError, match=r"divides 1 nodes, as <reduce_max: float32\[2\]>, that the graph has not"):
        partition(graph, DP, [WHOLE], plan={counted: WHOLE})
    with pytest.raises(ShapeError, match=r"the division of reduce_max: the layout 2:dp divides axis 2"):
        partition(Graph([y], [counted]), DP, [WHOLE], plan={counted: wrong})
