"""Training steps of networks as they are compiled, divided among ranks on both engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transforms.optimisation.passes import optimize
from mycel._src.compiler.transforms.partition import (
    WHOLE,
    Partitioned,
    Sharding,
    part_of,
    partition,
    shard,
    sharding,
    whole,
)
from mycel._src.compiler.transport import thread_ranks
from mycel._src.engines import buffers
from mycel._src.engines.reference import evaluate
from mycel._src.engines.select import compile_graph
from mycel._src.staging.compiled.jit import Jit
from mycel.demo.lenet import LeNet5
from tests.transforms.partition.support import kinds, run_ranks

Array = np.ndarray[Any, Any]
# The layout of an input from the name of its parameter (None for data) and its shape.
Spec = Callable[[Mesh, str | None, tuple[int, ...]], Sharding]
WIDTH, HEADS, WORDS = 16, 4, 24


class Encoder(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.drop = nn.Dropout(p=0.1)
        self.layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, dropout=0.1, batch_first=True)
        self.head = nn.Dense(WIDTH, WORDS)
        self.loss = nn.CrossEntropyLoss()

    def construct(self, ids: Any, labels: Any) -> Any:
        made = self.head(self.layer(self.drop(self.words(ids))))
        return self.loss(made.reshape(-1, WORDS), labels.reshape(-1))


class Normalized(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Dense(4, 10)

    def construct(self, x: Any) -> Any:
        return self.head(ops.relu(self.norm(self.conv(x))).mean((2, 3)))


def encoder(batch: int) -> tuple[Any, list[Any]]:
    net = Encoder()
    draw = np.random.default_rng(0)
    data = [ms.Tensor(draw.integers(0, WORDS, (batch, 6)).astype(np.int32)) for _ in range(2)]
    return nn.TrainOneStepCell(net, nn.AdamWeightDecay(net.trainable_params(), 1e-2)), data


def images(net: Any, batch: int) -> tuple[Any, list[Any]]:
    draw = np.random.default_rng(0)
    x = ms.Tensor(draw.standard_normal((batch, 1, 32, 32)).astype(np.float32))
    labels = ms.Tensor(draw.integers(0, 10, batch).astype(np.int32))
    loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    return nn.TrainOneStepCell(loss, nn.Momentum(net.trainable_params(), 0.03, 0.9)), [x, labels]


class Step:
    """The graph of a training step, its inputs and the inputs that its outputs replace."""

    def __init__(self, step: Any, data: list[Any]) -> None:
        step.set_train()
        version, _ = Jit(step).look(tuple(data), {})
        assert version is not None
        self.graph: Graph = optimize(version.graph)
        self.names = [*[None] * len(data), *[str(getattr(t, "name", "")) for t in version.tensors]]
        tensors = [*data, *version.tensors]
        self.arrays = [t.asnumpy().astype(n.dtype.numpy).reshape(n.shape) for t, n in zip(tensors, self.graph.inputs)]
        self.tied = {place: len(data) + k for k, place in version.writes}

    def divided(self, mesh: Mesh, spec: Spec) -> Partitioned:
        inputs = [spec(mesh, name, a.shape) for name, a in zip(self.names, self.arrays)]
        return partition(self.graph, mesh, inputs, tied=self.tied)

    def agrees(self, results: list[Array]) -> None:
        for actual, expected in zip(results, evaluate(self.graph, self.arrays)):
            assert actual.shape == expected.shape
            if expected.dtype.kind == "f":
                scale = np.abs(expected).max(initial=1e-6)
                np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4 * scale)
            else:
                np.testing.assert_array_equal(actual, expected)

    @property
    def gradient_bytes(self) -> int:
        return sum(4 * a.size for name, a in zip(self.names, self.arrays) if name and name.split(".")[0] in STATES)


STATES = ("moments",)


def natively(made: Partitioned, arrays: list[Array]) -> list[Array]:
    """What ranks compute with the native engine, each with a program of its own."""
    mesh = made.mesh
    programs = [compile_graph(made.graph) for _ in range(mesh.size)]

    def main(rank: int) -> list[Array]:
        own = [buffers.from_array(shard(a, s, mesh, rank)) for a, s in zip(arrays, made.inputs)]
        results = zip(programs[rank](*own), made.graph.outputs)
        return [buffers.to_array(b, n.type).copy() for b, n in results]

    parts = thread_ranks.run(mesh.size, main)
    return [whole([p[k] for p in parts], layout, mesh) for k, layout in enumerate(made.outputs)]


def by_batch(mesh: Mesh, name: str | None, shape: tuple[int, ...]) -> Sharding:
    return sharding(mesh, shape, ("dp",)) if name is None else WHOLE


def by_heads(mesh: Mesh, name: str | None, shape: tuple[int, ...]) -> Sharding:
    if name is None:
        return sharding(mesh, shape, ("dp",))
    if "in_proj" in name:
        return Sharding(part_of(mesh, 0, ("tp",), WIDTH, before=3))
    if "dense1" in name:
        return sharding(mesh, shape, ("tp",))
    if name.endswith(("out_proj.weight", "dense2.weight")):
        return sharding(mesh, shape, (None, "tp"))
    return WHOLE


def by_states(mesh: Mesh, name: str | None, shape: tuple[int, ...]) -> Sharding:
    is_state = name is not None and "adam" in name and len(shape) > 0
    return sharding(mesh, shape, ("dp",)) if name is None or is_state else WHOLE


@pytest.mark.parametrize("count", [4, 3])
def test_lenet(count: int) -> None:
    step = Step(*images(LeNet5(), 8))
    mesh = Mesh((count,), ("dp",))
    made = step.divided(mesh, by_batch)
    assert set(kinds(made)) == {"all_reduce"} and sum(kinds(made).values()) <= 2
    assert made.sent <= 1.05 * 2 * (count - 1) / count * step.gradient_bytes
    step.agrees(run_ranks(made, step.arrays))
    step.agrees(natively(made, step.arrays))


def test_statistics_of_a_batch() -> None:
    """Every rank normalises by the whole batch, whose activations nobody gathers."""
    step = Step(*images(Normalized(), 6))
    made = step.divided(Mesh((4,), ("dp",)), by_batch)
    assert set(kinds(made)) == {"all_reduce"}
    step.agrees(run_ranks(made, step.arrays))


def test_encoder_by_batch_and_heads() -> None:
    step = Step(*encoder(4))
    made = step.divided(Mesh((2, 2), ("dp", "tp")), by_heads)
    assert set(kinds(made)) == {"all_reduce"}
    assert sum("tp" in m.mesh_axes and len(m.value.shape) == 3 for m in made.messages) == 4
    step.agrees(run_ranks(made, step.arrays))
    step.agrees(natively(made, step.arrays))


def test_encoder_with_divided_states() -> None:
    step = Step(*encoder(8))
    mesh = Mesh((4,), ("dp",))
    plain, made = step.divided(mesh, by_batch), step.divided(mesh, by_states)
    assert kinds(made) == {"all_reduce": 1, "reduce_scatter": 1, "all_gather": 1}
    assert made.sent == plain.sent
    step.agrees(run_ranks(made, step.arrays))
