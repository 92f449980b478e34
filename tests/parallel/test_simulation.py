"""A network of Cells, from types alone to a simulated step on thousands of devices."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.transforms.partition import Sharding
from mycel._src.compiler.transport import thread_ranks
from mycel._src.compiler.transport.counting_transport import Counted
from mycel._src.compiler.transport.current_transport import transport, within
from mycel._src.engines import buffers
from mycel._src.engines.select import engines
from mycel._src.foundation.errors import CompileError
from mycel._src.planner.communication_volume import Communication
from mycel.common.initializer import Zero
from mycel.parallel.simulation import (
    A100,
    WHOLE,
    Mesh,
    Pipeline,
    Stage,
    Staged,
    adam,
    partition,
    sharding,
    simulate,
    staged,
    with_gradients,
)

WIDTH, HEADS, LENGTH = 256, 8, 64


class Block(nn.Cell):
    """A layer of a GPT."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm([WIDTH]), nn.LayerNorm([WIDTH])
        self.q, self.k, self.v = (nn.Dense(WIDTH, WIDTH) for _ in "qkv")
        self.o, self.up, self.down = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)

    def heads(self, x):  # type: ignore[no-untyped-def]
        return x.reshape(x.shape[0], LENGTH, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    def construct(self, x):  # type: ignore[no-untyped-def]
        y = self.norm1(x)
        q, k, v = self.heads(self.q(y)), self.heads(self.k(y)), self.heads(self.v(y))
        y = ops.matmul(ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) * 0.1), v)
        x = x + self.o(y.transpose(0, 2, 1, 3).reshape(x.shape))
        return x + self.down(ops.gelu(self.up(self.norm2(x))))


class Net(nn.Cell):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.blocks = nn.SequentialCell([Block() for _ in range(layers)])

    def construct(self, x):  # type: ignore[no-untyped-def]
        return (self.blocks(x) ** 2).mean()


def _activations(batch: int) -> ms.Tensor:
    return ms.Tensor(shape=(batch, LENGTH, WIDTH), dtype=ms.float32, init=Zero())


def _layout(mesh: Mesh, name: str, shape: tuple[int, ...]) -> Sharding:
    """Megatron's layouts: weights into heads and hidden units by rows, out of them by columns."""
    if re.search(r"\b(q|k|v|up)\.(weight|bias)", name):
        return sharding(mesh, shape, ("model", *(None,) * (len(shape) - 1)))
    if re.search(r"\b(o|down)\.weight", name):
        return sharding(mesh, shape, (None, "model"))
    return WHOLE


def _layouts(found: Staged, mesh: Mesh) -> list[Sharding]:
    shapes = [n.type.shape for n in found.graph.inputs]
    batch = [sharding(mesh, s, ("data", None, None)) if not n else None for n, s in zip(found.names, shapes)]
    return [b or _layout(mesh, n, s) for b, n, s in zip(batch, found.names, shapes)]


def _step(layers: int, batch: int) -> Staged:
    with nn.no_init_parameters():
        net = Net(layers)
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    gradient = ms.value_and_grad(net, None, optimizer.parameters)

    def step(x):  # type: ignore[no-untyped-def]
        loss, gradients = gradient(x)
        optimizer(gradients)
        return loss

    return staged(step, _activations(batch))


def test_a_step_with_tensor_and_data_parallel_layers():
    found, mesh = _step(2, 8), Mesh((4, 2), ("data", "model"))
    made = partition(found.graph, mesh, _layouts(found, mesh), None, found.aliases)
    large = 2 * LENGTH * WIDTH * 4
    sums = [e for e in Communication(made.graph).exchanges if e.axes == ("model",) and e.nbytes >= large]
    assert [e.kind for e in sums] == ["all_reduce"] * 4 * 2  # four a layer
    small = simulate(made, A100.topology(mesh), found.aliases)
    assert small.devices == 8 and small.fits and small.exposed > 0
    # Each rank has the same work on more devices, and messages that take longer, so that some
    # values are held a little longer.
    many = simulate(made, A100.topology(Mesh((512, 8), mesh.names)), found.aliases, scaled=True)
    assert many.devices == 4096 and small.memory <= many.memory < 1.1 * small.memory
    assert many.seconds > small.seconds
    assert many.classes[0].compute == pytest.approx(small.classes[0].compute)


@pytest.mark.parametrize("name", ["native", "reference"])
def test_a_partitioned_step_sends_the_bytes_that_were_predicted(name: str) -> None:
    found, mesh = _step(1, 4), Mesh((2, 2), ("data", "model"))
    local = partition(found.graph, mesh, _layouts(found, mesh), None, found.aliases).graph

    def program(rank: int) -> int:
        entry, counted = engines()[name].compile(local), Counted(transport())
        given = [np.ones(n.type.shape, n.type.dtype.numpy) for n in local.inputs]
        with within(counted):
            entry(*[buffers.from_array(a) for a in given])
        return counted.sent

    predicted = [Communication(local, rank=rank).sent for rank in range(4)]
    assert thread_ranks.run(4, program) == predicted and min(predicted) > 0


def test_memory_is_about_what_an_engine_lays_out() -> None:
    found = _step(2, 16)
    alone = simulate(found.graph, A100.topology(Mesh((1,), ("data",))), found.aliases)
    assert alone.memory == pytest.approx(engines()["native"].footprint(found.graph, found.aliases).total, rel=0.3)


def test_stages_of_layers_in_a_pipeline():
    with nn.no_init_parameters():
        block = Block()
    found = staged(block, _activations(2))
    stage = Stage(with_gradients(found.graph))
    types = [n.type for n in found.graph.inputs[1:]]
    update, aliases = adam(types, Mesh((4, 16), ("pipe", "data")), ("data",))
    stage = Stage(stage.step, update=update, aliases=aliases)
    topology = A100.topology(Mesh((4, 16), ("pipe", "data")))
    runs = {
        kind: simulate(Pipeline([stage] * count, 8, kind), topology)
        for kind, count in (("gpipe", 4), ("1f1b", 4), ("interleaved", 8))
    }
    assert all(r.devices == 64 and len(r.classes) == 4 for r in runs.values())
    assert runs["1f1b"].memory < runs["gpipe"].memory
    assert runs["interleaved"].bubble < runs["1f1b"].bubble
    # Parameters, two moments and gradients, on each device.
    assert runs["1f1b"].classes[0].parameters == 4 * sum(t.nbytes for t in types)


def test_functions_that_are_not_one_graph_are_refused():
    with pytest.raises(CompileError, match="staged: .* is not one graph of known sizes"):
        staged(lambda x: x * x.sum().item(), ms.Tensor([1.0, 2.0]))
