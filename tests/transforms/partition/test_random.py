"""Random graphs, divided at random, compute what they compute undivided."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.indexing.index import take, take_add
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.normalization import log_softmax, softmax
from mycel._src.compiler.prims.random import random_bits
from mycel._src.compiler.transforms.partition import Part, Sharding, divisions_of, part_of, partition
from mycel._src.compiler.transforms.partition.node_sharding import factors_at
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import DType, bool_, float32, int32, uint32, uint64
from tests.transforms.partition.support import bytes_sent, close, run_ranks
from tests.transforms.random_graphs import Generator
from tests.transforms.support import random_inputs

MESHES = (Mesh((2,), ("x",)), Mesh((3,), ("x",)), Mesh((2, 2), ("x", "y")), Mesh((2, 3), ("x", "y")))


class Divisible(Generator):
    """Random graphs with products, softmax, reads by index, positions and random bits as well."""

    def __init__(self, seed: int, dtype: DType, size: int = 14) -> None:
        super().__init__(seed, dtype, size)
        self.state = input_node(tensor_type((2,), uint64), "state")
        more: list[Callable[[], Node]] = [self.counted, self.drawn, self.read, self.added, self.product, self.product]
        if not dtype.is_integer:
            more += [self.normalized, self.normalized]
        self.operations = [*self.operations, *more]

    def graph(self) -> Graph:
        made = super().graph()
        return Graph([*made.inputs, self.state], made.outputs, made.name)

    def product(self) -> Node:
        x = self.pick()
        if x.type.rank < 2:
            x = S.reshape(x, (1, int(x.type.size)))
        y = self.pick()
        if y.type.rank < 2 or y.shape[-1] != x.shape[-1]:
            y = x
        y = S.reshape(y, (int(y.type.size) // int(y.shape[-1]), y.shape[-1]))
        return matmul(x, S.transpose(y, (1, 0)))

    def normalized(self) -> Node:
        x = self.pick()
        return (softmax, log_softmax)[self.draw(2)](x, axis=self.draw(x.type.rank)) if x.type.rank else x

    def counted(self) -> Node:
        x = self.pick()
        return E.add(x, S.iota(shape=x.shape, axis=self.draw(x.type.rank), dtype=self.dtype)) if x.type.rank else x

    def drawn(self) -> Node:
        x = self.pick()
        bits = random_bits(self.state, shape=tuple(x.shape), dtype=uint32)
        return E.select(E.cast(E.bitwise_and(bits, 1), dtype=bool_), x, constant(2, self.dtype))

    def read(self) -> Node:
        x = self.pick()
        if not x.type.rank:
            return x
        axis = self.draw(x.type.rank)
        indices = constant(self.rng.integers(0, x.shape[axis], (4,)), int32)
        return take(x, indices, axis=axis)

    def added(self) -> Node:
        x = self.pick()
        if not x.type.rank:
            return x
        axis = self.draw(x.type.rank)
        indices = constant(self.rng.integers(0, 5, (x.shape[axis],)), int32)
        return take_add(x, indices, axis=axis, size=5)


def random_layout(rng: np.random.Generator, mesh: Mesh, shape: tuple[int, ...]) -> Sharding:
    """A layout that divides axes, or stretches of them, along some mesh axes."""
    layout = Sharding()
    for name in mesh.names:
        if not shape or not rng.integers(0, 4):
            continue
        axis = int(rng.integers(0, len(shape)))
        size, n = shape[axis], mesh.count((name,))
        parts: tuple[Part, ...] = part_of(mesh, axis, (name,), size) if size >= n else ()
        if size % (2 * n) == 0 and not rng.integers(0, 3):
            parts = part_of(mesh, axis, (name,), size // 2, before=2)
        if all(layout.fits(p) for p in parts):
            layout = Sharding((*layout.parts, *parts))
    return layout


def trial(seed: int, dtype: DType, mesh: Mesh, planned: bool) -> None:
    graph = Divisible(seed, dtype).graph()
    rng = np.random.default_rng(seed)
    arrays = random_inputs(graph, seed)
    inputs = [random_layout(rng, mesh, n.type.shape) for n in graph.inputs[:-1]]
    outputs: list[Sharding | None] = [
        random_layout(rng, mesh, n.type.shape) if rng.integers(0, 2) else None for n in graph.outputs
    ]
    plan: dict[Node, Sharding] = {}
    for node in graph.nodes if planned else ():
        known = divisions_of(node, mesh) if factors_at(node) else []
        if len(known) > 1 and rng.integers(0, 3):
            plan[node] = known[int(rng.integers(0, len(known)))]
    made = partition(graph, mesh, [*inputs, Sharding()], outputs, plan=plan)
    again = partition(graph, mesh, [*inputs, Sharding()], outputs, plan=plan)
    assert [n.op for n in made.graph.nodes] == [n.op for n in again.graph.nodes]
    assert all(o is None or o == m for o, m in zip(outputs, made.outputs))
    assert planned or made.sent == pytest.approx(bytes_sent(made))
    with np.errstate(all="ignore"):
        close(run_ranks(made, arrays), evaluate(graph, arrays), 3e-5)


@pytest.mark.parametrize("planned", [False, True], ids=["chosen", "planned"])
@pytest.mark.parametrize("mesh", MESHES, ids=lambda m: "x".join(map(str, m.sizes)))
@pytest.mark.parametrize("dtype", [float32, int32], ids=str)
def test_random_graphs(dtype: DType, mesh: Mesh, planned: bool) -> None:
    for seed in range(4):
        trial(seed, dtype, mesh, planned)
