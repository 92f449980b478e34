"""What the tests of the partitioner share: graphs run by ranks as threads, and joined again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.verify import verify
from mycel._src.compiler.prims.control_flow.control import while_loop
from mycel._src.compiler.prims.control_flow.trip_count import known_rounds
from mycel._src.compiler.prims.distributed.collectives import COLLECTIVES
from mycel._src.compiler.transforms.partition import Partitioned, Sharding, partition, shard, sharding, whole
from mycel._src.compiler.transport import thread_ranks
from mycel._src.engines.reference import evaluate

Array = np.ndarray[Any, Any]


def layouts(mesh: Mesh, graph: Graph, specs: Sequence[Any]) -> list[Sharding | None]:
    """Layouts of a graph's inputs from tuples of mesh axes; "free" leaves one open."""
    return [None if s == "free" else sharding(mesh, n.type.shape, s) for n, s in zip(graph.inputs, specs)]


def run_ranks(made: Partitioned, arrays: Sequence[Array]) -> list[Array]:
    """Run the graph of each rank in a thread, and return the whole outputs."""
    verify(made.graph)
    mesh = made.mesh

    def program(rank: int) -> Any:
        own = [shard(a, layout, mesh, rank) for a, layout in zip(arrays, made.inputs)]
        for a, n in zip(own, made.graph.inputs):
            assert a.shape == n.type.shape and a.dtype == n.type.dtype.numpy, (a.dtype, n)
        return evaluate(made.graph, own)

    results = thread_ranks.run(mesh.size, program)
    return [whole([r[k] for r in results], layout, mesh) for k, layout in enumerate(made.outputs)]


def close(actual: Sequence[Array], expected: Sequence[Array], tolerance: float = 1e-5) -> None:
    for a, e in zip(actual, expected):
        assert a.shape == e.shape and a.dtype == e.dtype
        if e.dtype.kind == "f":
            scale = max(1.0, float(np.abs(e[np.isfinite(e)]).max(initial=0.0)))
            np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(a, e)


def check(
    graph: Graph,
    mesh: Mesh,
    inputs: Sequence[Sharding | None],
    arrays: Sequence[Array],
    outputs: Sequence[Sharding | None] | None = None,
    tied: Mapping[int, int] | None = None,
    tolerance: float = 1e-5,
) -> Partitioned:
    """Partition a graph and assert that the ranks together compute what it computes."""
    made = partition(graph, mesh, inputs, outputs, tied)
    close(run_ranks(made, arrays), evaluate(graph, arrays), tolerance)
    return made


def kinds(made: Partitioned) -> dict[str, int]:
    """How many collectives of each kind are in a rank's graph."""
    result: dict[str, int] = {}
    for node in made.graph.nodes:
        if node.prim in COLLECTIVES:
            result[node.op] = result.get(node.op, 0) + 1
    return result


def bytes_sent(made: Partitioned) -> float:
    """What the collectives of a rank's graph send, from the nodes themselves."""
    return _sent(made.graph, made.mesh)


def _sent(graph: Graph, mesh: Mesh) -> float:
    total = 0.0
    for node in graph.nodes:
        if node.prim in COLLECTIVES:
            n = mesh.count(node.params["axes"])
            size = max(math.prod(v.shape) for v in (node, *node.inputs)) * node.dtype.itemsize
            total += size * {"all_reduce": 2 * (n - 1) / n, "permute": 1}.get(node.op, (n - 1) / n)
        elif node.prim is while_loop:
            rounds = known_rounds(node) or 1
            total += _sent(node.params["body"], mesh) * rounds + _sent(node.params["test"], mesh) * (rounds + 1)
    return total
