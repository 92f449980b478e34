"""Large parameters that are gathered and scattered block by block: equal results, less memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.distributed import collectives
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.partition import Fusing, block_messages
from mycel._src.compiler.transport import thread_ranks
from mycel._src.engines.native.lowering import blocked_products
from mycel._src.engines.native.report.footprint import footprint
from mycel._src.foundation.dtype import float16, float32
from mycel._src.staging.distributed import Layouts, distribute

RANKS, ROWS, WIDE, NARROW = 4, 24, 96, 64
MESH = Mesh((2, 2), ("one", "two"))


class Plain(nn.Cell):
    """A product with a weight of (inputs, outputs)."""

    def __init__(self, inputs: int, outputs: int, random: np.random.Generator) -> None:
        super().__init__()
        self.weight = ms.Parameter(ms.Tensor(random.normal(size=(inputs, outputs)) / inputs**0.5, ms.float32))

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return ops.matmul(x, self.weight)


class Dense(Plain):
    """A product with a weight of (outputs, inputs)."""

    def __init__(self, inputs: int, outputs: int, random: np.random.Generator) -> None:
        super().__init__(outputs, inputs, random)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return ops.matmul(x, self.weight.T)


def made(kind: type[nn.Cell], optimizer: Any, half: bool = False) -> Any:
    """A training step whose parameters are divided by rows, and gathered for each pass; with `half`
    products are of float16.
    """
    random = np.random.default_rng(3)
    sizes = [(NARROW, WIDE), (WIDE, NARROW)] * 3
    cells = [cell for i, o in sizes for cell in (kind(i, o, random), nn.Tanh())]
    net = nn.SequentialCell(*cells)
    if half:
        net.to_float(ms.float16)
    update = optimizer(net.trainable_params())

    def loss(x: ms.Tensor) -> ms.Tensor:
        return ops.square(net(x)).mean(dtype=ms.float32)

    derive = ms.value_and_grad(loss, None, update.parameters)

    def train(x: ms.Tensor) -> ms.Tensor:
        value, gradients = derive(x)
        update(gradients)
        return value

    by_rows = lambda p: (("one", "two"),) if p.shape and p.shape[0] % RANKS == 0 else None
    layouts = Layouts(MESH, [(("one", "two"),)], by_rows, fusing=Fusing(0, 0, 0), gather_again=True)
    return distribute(train, layouts), net


def batch() -> ms.Tensor:
    return ms.Tensor(np.random.default_rng(5).normal(size=(ROWS, NARROW)), ms.float32)


def trained(*args: Any) -> list[tuple[list[float], list[Any]]]:
    """The losses of three steps on each rank, and the parts of the weights."""

    def rank(_: int) -> tuple[list[float], list[Any]]:
        step, net = made(*args)
        return [float(step(batch())) for _ in range(3)], [p.asnumpy() for p in net.trainable_params()]

    return thread_ranks.run(RANKS, rank)


def count(graph: Graph, prim: Any) -> int:
    return sum(node.prim is prim for node in graph.nodes)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a third of a weight be the most that a block has."""
    monkeypatch.setattr(block_messages, "MOST_BYTES", WIDE * NARROW * 4 // 3)
    monkeypatch.setattr(blocked_products, "LEAST_PART", 1)


OPTIMIZERS = {
    "SGD": lambda p: nn.SGD(p, 0.1),
    "Momentum": lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.01),
    "Adam": lambda p: nn.Adam(p, 0.01),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", [Plain, Dense])
def test_training_is_that_of_whole_messages(
    kind: type[nn.Cell], optimizer: str, request: pytest.FixtureRequest
) -> None:
    wanted = trained(kind, OPTIMIZERS[optimizer])
    request.getfixturevalue("small")
    found = trained(kind, OPTIMIZERS[optimizer])
    for (losses, weights), (own_losses, own_weights) in zip(wanted, found):
        np.testing.assert_allclose(own_losses, losses, rtol=2e-6)
        for a, b in zip(own_weights, weights):
            np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.parametrize("kind", [Plain, Dense])
def test_no_message_has_more_than_a_block(kind: type[nn.Cell], request: pytest.FixtureRequest) -> None:
    whole = made(kind, OPTIMIZERS["SGD"])[0].planned(batch())
    request.getfixturevalue("small")
    cut = made(kind, OPTIMIZERS["SGD"])[0].planned(batch())
    most = WIDE * NARROW * 4 // 3
    for prim, gets in ((collectives.all_gather, True), (collectives.reduce_scatter, False)):
        assert any(n.prim is prim for n in whole.graph.nodes)
        sizes = [(n if gets else n.inputs[0]).type.nbytes for n in cut.graph.nodes if n.prim is prim]
        assert max(sizes) <= most and len(sizes) > count(whole.graph, prim)
    before, after = (footprint(p.graph, p.aliases).arena for p in (whole, cut))
    assert after < 0.8 * before


def gathered(use: Callable[[Node, Node], list[Node]]) -> tuple[Graph, Graph]:
    """A graph in which `use` gets a value and a weight that is gathered, before and after."""
    x, part = (input_node(tensor_type(s, float32)) for s in ((4, WIDE), (WIDE // RANKS, NARROW)))
    whole = collectives.all_gather(S.reshape(part, (1, *part.shape)), mesh=MESH, axes=MESH.names, axis=0)
    graph = Graph([x, part], use(x, S.reshape(whole, (WIDE, NARROW))))
    return graph, block_messages.in_blocks(graph, [part])


@pytest.mark.usefixtures("small")
def test_weights_that_others_read_are_gathered_whole() -> None:
    uses: list[Callable[[Node, Node], list[Node]]] = [
        lambda x, w: [matmul(x, w), E.exp(w)],
        lambda x, w: [matmul(x, w), w],
        lambda x, w: [matmul(S.transpose(w, (1, 0)), w)],
        lambda x, w: [matmul(x, w), S.transpose(w, (1, 0))],
    ]
    for use in uses:
        before, after = gathered(use)
        assert after is before
    before, after = gathered(lambda x, w: [y := matmul(x, w), matmul(y, S.transpose(w, (1, 0)))])
    # Each product gathers for itself.
    assert count(after, collectives.all_gather) == 6 and count(after, matmul) == 6


@pytest.mark.usefixtures("small")
def test_sums_of_what_others_read_are_scattered_whole() -> None:
    x, y = (input_node(tensor_type(s, float32)) for s in ((4, WIDE), (4, NARROW)))
    product = matmul(S.transpose(x, (1, 0)), y)

    def scattered(value: Node, op: str = "sum") -> Node:
        apart = S.reshape(value, (RANKS, WIDE // RANKS, NARROW))
        return collectives.reduce_scatter(apart, mesh=MESH, axes=MESH.names, axis=0, op=op)

    for outputs in ([scattered(product), product], [scattered(product, "max")], [scattered(E.exp(product))]):
        graph = Graph([x, y], outputs)
        assert block_messages.in_blocks(graph, []) is graph
    # A cast between two messages is of the first one's sums.
    once = collectives.reduce_scatter(
        S.reshape(product, (2, WIDE // 2, NARROW)), mesh=MESH, axes=("one",), axis=0, op="sum"
    )
    half = S.reshape(E.cast(once, dtype=float16), (2, WIDE // RANKS, NARROW))
    graph = Graph([x, y], [collectives.reduce_scatter(half, mesh=MESH, axes=("two",), axis=0, op="sum")])
    assert block_messages.in_blocks(graph, []) is graph
    graph = Graph([x, y], [scattered(E.mul(product, 0.5))])
    assert count(block_messages.in_blocks(graph, []), collectives.reduce_scatter) == 3


def test_casts_are_those_of_a_block(request: pytest.FixtureRequest) -> None:
    wanted = trained(Plain, OPTIMIZERS["SGD"], True)
    request.getfixturevalue("small")
    found = trained(Plain, OPTIMIZERS["SGD"], True)
    np.testing.assert_allclose(found[0][0], wanted[0][0], rtol=2e-3)
