"""Loops and conditions that are divided run on several devices of one program."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed: pip install mycel[xla]")

from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import constant, outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.distributed import collectives
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.transforms.partition import Sharding, partition, shard, whole
from mycel._src.engines import select
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import DType, float32, int32, int64
from tests.transforms.partition.support import close
from tests.transforms.partition.test_control_flow import drawn, recurrent, with_gradients
from tests.transforms.partition.test_random import random_layout
from tests.transforms.support import random_inputs

ENGINE = select.engines()["xla"]

pytestmark = pytest.mark.skipif(
    ENGINE.device_count() < 4, reason="jax started before this folder's tests, with fewer than 4 devices"
)


def devices_run(graph: Graph, mesh: Mesh, inputs: list[Sharding], arrays: list[np.ndarray]) -> list[np.ndarray]:
    made = partition(graph, mesh, inputs)
    spreads = [
        ENGINE.spread(mesh, [shard(a, layout, mesh, r) for r in range(mesh.size)])
        for a, layout in zip(arrays, made.inputs)
    ]
    found = ENGINE.together(made.graph, mesh).entry(*spreads)
    return [whole(f.parts(), layout, mesh) for f, layout in zip(found, made.outputs)]


@pytest.mark.parametrize("dtype, seed, count", [(float32, 0, 2), (float32, 4, 3), (int32, 1, 4)])
def test_random_programs(dtype: DType, seed: int, count: int) -> None:
    mesh, graph = Mesh((count,), ("x",)), drawn(seed, dtype)
    rng, arrays = np.random.default_rng(seed), random_inputs(graph, seed)
    inputs = [random_layout(rng, mesh, n.type.shape) for n in graph.inputs[:-1]]
    with np.errstate(all="ignore"):
        close(devices_run(graph, mesh, [*inputs, Sharding()], arrays), evaluate(graph, arrays), 1e-4)


def test_gradients_of_a_recurrence() -> None:
    mesh, graph = Mesh((4,), ("x",)), with_gradients(*recurrent())
    arrays = random_inputs(graph, 0)
    arrays = [np.random.default_rng(k).standard_normal(a.shape).astype(np.float32) for k, a in enumerate(arrays)]
    rows = random_layout(np.random.default_rng(1), mesh, (5, 6, 3))
    close(devices_run(graph, mesh, [rows, Sharding(), Sharding()], arrays), evaluate(graph, arrays), 1e-5)


def test_what_stops_a_loop_on_one_device_stops_it_on_all() -> None:
    """The others would wait for the one that has left the loop."""
    mesh = Mesh((4,), ("x",))
    types = [tensor_type((), int64), tensor_type((3,), float32), tensor_type((), int64)]
    i, table, place = (input_node(t) for t in types)
    read = I.take(table, E.add(place, i), axis=0)
    total = collectives.all_reduce(read, mesh=mesh, axes=("x",), op="sum")
    params = {"test": Graph([i, table, place], [E.lt(i, 3)]), "carried": 2}
    params["body"] = Graph([i, table, place], [E.add(i, 1), E.add(table, total)])
    outer = [input_node(t) for t in types[1:]]
    graph = Graph(outer, [outputs_of(control.while_loop.node(constant(0, int64), *outer, **params))[1]])
    program = ENGINE.together(graph, mesh)
    state = ENGINE.spread(mesh, [np.ones(3, np.float32)] * 4)
    (found,) = program.entry(state, ENGINE.spread(mesh, [np.int64(0)] * 4))
    assert found.part(2).tolist() == [125.0] * 3
    with pytest.raises(IndexError, match="index 3 is out of range for axis 0 of size 3"):
        program.entry(state, ENGINE.spread(mesh, [np.int64(2 if k == 2 else 0) for k in range(4)]))
