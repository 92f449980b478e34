"""Predicted communication: bytes and messages by line, and equal to what ranks count."""

from __future__ import annotations

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, Where, at, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.base import constant, outputs_of
from mycel._src.compiler.prims.control_flow.control import while_loop
from mycel._src.compiler.prims.distributed.collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    permute,
    reduce_scatter,
)
from mycel._src.compiler.transport import thread_ranks
from mycel._src.compiler.transport.counting_transport import Counted
from mycel._src.compiler.transport.current_transport import transport, within
from mycel._src.engines import buffers
from mycel._src.engines.select import engines
from mycel._src.foundation.dtype import bool_, float32, int64
from mycel._src.foundation.errors import ShapeError
from mycel._src.planner.communication_volume import Communication
from mycel._src.planner.topology import A100

MESH = Mesh((2, 3), ("data", "model"))


def _graph() -> Graph:
    x = input_node(tensor_type((6, 5), float32))
    with at(Where("net.py", 3)):
        summed = all_reduce(x, mesh=MESH, axes=("data", "model"), op="sum")
        most = all_reduce(x, mesh=MESH, axes=("model",), op="max")
    with at(Where("net.py", 7)):
        part = reduce_scatter(x, mesh=MESH, axes=("model",), axis=0, op="sum")
        whole = all_gather(part, mesh=MESH, axes=("model",), axis=1)
        moved = all_to_all(x, mesh=MESH, axes=("data",), split=0, concat=1)
        shifted = permute(x, mesh=MESH, axes=("model",), pairs=((0, 1), (1, 0), (2, 2)))
    return Graph([x], [summed, most, whole, moved, shifted])


@pytest.mark.parametrize("name", ["native", "reference"])
def test_bytes_that_run_are_those_predicted(name):
    graph = _graph()

    def program(rank: int) -> tuple[int, int]:
        entry = engines()[name].compile(graph)
        counted = Counted(transport())
        with within(counted):
            entry(buffers.from_array(np.full((6, 5), rank, np.float32)))
        return counted.sent, sum(c.messages for c in counted.counts.values())

    predicted = [Communication(graph, rank=r) for r in range(6)]
    assert thread_ranks.run(6, program) == [(p.sent, p.messages) for p in predicted]
    assert Communication(graph).sent == max(p.sent for p in predicted) > min(p.sent for p in predicted)


def test_text_by_line():
    found = Communication(_graph())
    # 120 bytes: 2*5/6, 2*2/3; 2/3, 2/3 of 40 * 3, 1/2, and 120 as they are.
    assert [e.sent for e in found.exchanges] == [200, 160, 80, 80, 60, 120]
    assert found.text().splitlines() == [
        "a rank sends 700 bytes in 20 messages of 6 collectives",
        "  all_reduce along data, model (6 ranks), once: 200 bytes in 10 messages; net.py:3",
        "  all_reduce along model (3 ranks), once: 160 bytes in 4 messages; net.py:3",
        "  reduce_scatter along model (3 ranks), once: 80 bytes in 2 messages; net.py:7",
        "  all_gather along model (3 ranks), once: 80 bytes in 2 messages; net.py:7",
        "  all_to_all along data (2 ranks), once: 60 bytes in 1 message; net.py:7",
        "  permute along model (3 ranks), once: 120 bytes in 1 message; net.py:7",
    ]
    assert found.text(most=5).splitlines()[-1] == "  1 more: 120 bytes"


def test_seconds_need_the_mesh_of_the_program():
    assert "ms; net.py:7" in str(Communication(_graph(), A100.topology(MESH)))
    with pytest.raises(ShapeError, match="joins 6 ranks, but A100.* has 4 there"):
        str(Communication(_graph(), A100.topology(Mesh((2, 2), ("data", "model")))))


def test_collectives_are_scaled_to_other_meshes() -> None:
    wide = A100.topology(Mesh((8, 4), ("data", "model")))
    found = [e.scaled(wide) for e in Communication(_graph()).exchanges]
    # The gather of 40 bytes from each of four ranks is one of 160.
    assert [(e.count, e.sent) for e in found] == [(32, 233), (4, 180), (4, 90), (4, 120), (8, 105), (4, 120)]
    assert found[3].nbytes == 160 and found[0].scaled(wide) is found[0]


@pytest.mark.parametrize("name", ["native", "reference"])
def test_collectives_in_loops_count_by_rounds(name):
    """Of a loop in a loop, in a test and in a body; the counter of the inner one is found by the
    body, as loops of programs are.
    """
    mesh, kind, count = Mesh((2,), ("data",)), tensor_type((4,), float32), tensor_type((), int64)

    def summed(x):
        return all_reduce(x, mesh=mesh, axes=("data",), op="sum")

    alive, i, x = (input_node(t) for t in (tensor_type((), bool_), count, kind))
    again = E.add(i, 1)
    inner = {"test": Graph([alive, i, x], [alive]), "carried": 3}
    inner["body"] = Graph([alive, i, x], [E.lt(again, 3), again, E.mul(summed(x), 0.5)])
    k, y = input_node(count), input_node(kind)
    step = outputs_of(while_loop.node(E.lt(constant(0, int64), 3), constant(0, int64), y, **inner))[2]
    small = E.lt(R.reduce_sum(summed(y), axes=(0,), keepdims=False), 1e9)
    test = Graph([k, y], [E.lt(k, E.select(small, constant(5, int64), 0))])
    z = input_node(kind)
    params = {"test": Graph([k, y], [E.lt(k, 5)]), "body": Graph([k, y], [E.add(k, 1), E.add(step, summed(y))])}
    known = Graph([z], [outputs_of(while_loop.node(constant(0, int64), z, **params, carried=2))[1]])
    found = Communication(known)
    assert sorted((e.times, e.sent) for e in found.exchanges) == [(5, 16), (15, 16)]
    assert "20 times: 320 bytes in 40 messages" in str(found)

    def program(rank: int) -> int:
        entry = engines()[name].compile(known)
        counted = Counted(transport())
        with within(counted):
            entry(buffers.from_array(np.ones(4, np.float32)))
        return counted.sent

    assert thread_ranks.run(2, program) == [found.sent] * 2
    params["test"] = test
    unknown = Graph([z], [outputs_of(while_loop.node(constant(0, int64), z, **params, carried=2))[1]])
    assert "3 times a round" in str(Communication(unknown))
