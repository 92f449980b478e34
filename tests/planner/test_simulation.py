"""Programs in time: events and memory counted by hand, bubbles by their formulas, pictures."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.control_flow.control import cond
from mycel._src.compiler.prims.distributed.collectives import all_gather, all_reduce
from mycel._src.compiler.prims.indexing.index import take
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.engines.select import engines
from mycel._src.foundation.dtype import bool_, float32, int32
from mycel._src.foundation.errors import CompileError, ShapeError
from mycel._src.planner.event_simulation import run_graph
from mycel._src.planner.kernel_cost import seconds_of, tasks_of
from mycel._src.planner.simulation import Pipeline, Simulation, Stage, simulate
from mycel._src.planner.topology import Device, Link, Topology

MESH = Mesh((4,), ("data",))
# A product of 1000 x 1000 takes 2 s; an all-reduce of its 4 MB 6 s, a gather to 4 MB 3 s.
TOY = Device("toy", {"float32": 1e9, "elementwise float32": 1e18}, bandwidth=1e18, memory=1 << 30)
ONE = Topology(TOY, MESH, {"data": Link(0.0, 1e6)})


def _square() -> Node:
    return input_node(tensor_type((1000, 1000), float32))


def _sum(x: Node) -> Node:
    return all_reduce(x, mesh=MESH, axes=("data",), op="sum")


def test_messages_go_while_others_are_computed() -> None:
    x, w = _square(), _square()
    y = matmul(x, w)
    z = matmul(y, w)
    run = run_graph(Graph([x, w], [_sum(y), z]), ONE)
    assert [(e.stream, e.start, e.end) for e in sorted(run.events, key=lambda e: (e.start, e.stream))] == [
        ("compute", 0, 2),
        ("compute", 2, 4),
        ("data", 2, 8),
    ]
    assert (run.seconds, run.compute, run.communication, run.exposed) == (8, 4, 6, 4)
    alone = run_graph(Graph([x, w], [_sum(y), z]), ONE, overlap=False)
    assert (alone.seconds, alone.compute, alone.communication, alone.exposed) == (10, 4, 6, 6)


def test_what_waits_for_a_message_lets_others_pass() -> None:
    x, w = _square(), _square()
    late = matmul(_sum(matmul(x, w)), w)
    other = matmul(matmul(w, w), x)
    run = run_graph(Graph([x, w], [late, other]), ONE)
    # 0-2 the product that is sent, 2-4 and 4-6 the other two, 8-10 the one that waits.
    assert run.seconds == 10 and run.compute == 8 and run.exposed == 2


def test_messages_over_one_channel_wait_for_each_other() -> None:
    x = _square()
    run = run_graph(Graph([x], [_sum(x), _sum(E.exp(x))]), ONE)
    assert run.seconds == pytest.approx(12)
    two = Topology(TOY, Mesh((4, 4), ("data", "model")), {"data": Link(0, 1e6), "model": Link(0, 1e6)})
    other = all_reduce(E.exp(x), mesh=two.mesh, axes=("model",), op="sum")
    assert run_graph(Graph([x], [_sum(x), other]), two).seconds == pytest.approx(6)
    shared = Topology(TOY, two.mesh, {"data": Link(0, 1e6, "wire"), "model": Link(0, 1e6, "wire")})
    assert run_graph(Graph([x], [_sum(x), other]), shared).seconds == pytest.approx(12)


def test_memory_counts_values_from_their_start_to_their_last_use() -> None:
    x, w = _square(), _square()
    y = matmul(x, w)
    z = matmul(y, w)
    # At z there are x, w, y and z; y is gone when the last begins.
    run = run_graph(Graph([x, w], [matmul(z, w)]), ONE)
    assert (run.inputs, run.peak) == (8_000_000, 16_000_000)
    # Arithmetic writes over what nothing else reads, and an alias over the input.
    assert run_graph(Graph([x, w], [E.exp(y)]), ONE).peak == 12_000_000
    assert run_graph(Graph([x, w], [E.exp(y), E.neg(w)]), ONE, {1: 1}).peak == 12_000_000
    assert run_graph(Graph([x, w], [E.exp(y), E.neg(w)]), ONE).peak == 16_000_000


def test_kernels_are_fused_and_views_are_free() -> None:
    x, w = _square(), _square()
    y = E.exp(E.mul(x, w))
    z = E.add(y, E.mul(w, w))
    tasks, ends = tasks_of(Graph([x, w], [matmul(z, y)]))
    assert [(t.names, t.read, t.written) for t in tasks] == [
        (["mul", "exp", "mul", "add"], 8_000_000, 8_000_000),
        (["matmul"], 8_000_000, 4_000_000),
    ]
    assert ends == [(1, 0)]


def test_gathers_read_what_they_give() -> None:
    table, words = input_node(tensor_type((100_000, 64), float32)), input_node(tensor_type((10,), int32))
    tasks, _ = tasks_of(Graph([table, words], [take(table, words, axis=0)]))
    assert (tasks[-1].read, tasks[-1].written) == (10 * 64 * 4 + 10 * 4, 10 * 64 * 4)


@pytest.mark.parametrize("name", ["native", "reference"])
def test_seconds_of_an_engines_own_steps(name: str) -> None:
    x, w = _square(), _square()
    graph = Graph([x, w], [E.exp(matmul(x, w))])
    slow = Device("slow", {"float32": 1e9, "elementwise float32": 1e18}, bandwidth=1e18, memory=1 << 30)
    assert seconds_of(engines()[name].account(graph), slow) == pytest.approx(2)
    assert seconds_of(graph, slow) == pytest.approx(2)


def test_other_meshes_and_collectives_in_branches_are_refused() -> None:
    x = _square()
    with pytest.raises(ShapeError, match="all_reduce along data joins 4 ranks, but topology has 2 there"):
        run_graph(Graph([x], [_sum(x)]), Topology(TOY, Mesh((2,), ("data",)), {"data": Link(0, 1)}))
    y = input_node(x.type)
    take, leave = Graph([y], [_sum(y)]), Graph([y], [y])
    flag = input_node(tensor_type((), bool_))
    branch = cond.outputs(flag, x, true=take, false=leave)
    with pytest.raises(CompileError, match="cond holds collectives"):
        tasks_of(Graph([flag, x], branch))


def _stage(sends: int = 0) -> Stage:
    """A stage whose forward takes 2 s and whose backward takes 4 s."""
    x, w, ct = _square(), _square(), _square()
    return Stage(Graph([x, w, ct], [matmul(x, w), matmul(ct, w), matmul(x, ct)]), entering=1)


def _line(count: int, latency: float = 0.0) -> Topology:
    return Topology(TOY, Mesh((count, 4), ("pipe", "data")), {"pipe": Link(latency, 1e30), "data": Link(0, 1e6)})


@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (4, 16)])
def test_bubbles_are_those_of_the_formulas(p: int, m: int) -> None:
    stage = _stage()
    for kind in ("gpipe", "1f1b"):
        found = simulate(Pipeline([stage] * p, m, kind), _line(p))
        assert found.bubble == pytest.approx((p - 1) / (m + p - 1))
        assert found.seconds == pytest.approx(6 * (m + p - 1))
    for v in (2, 4):
        found = simulate(Pipeline([stage] * (p * v), m, "interleaved"), _line(p))
        # The ramp is as long as p - 1 chunks, each a v-th of a device's work on a micro-batch.
        assert found.seconds == pytest.approx(6 * v * (m + (p - 1) / v))
        assert found.bubble == pytest.approx((p - 1) / (v * m + p - 1))


def test_1f1b_keeps_fewer_microbatches_than_gpipe() -> None:
    stage = _stage()
    most = [simulate(Pipeline([stage] * 4, 16, kind), _line(4)).classes for kind in ("gpipe", "1f1b")]
    # Weight, micro-batch's input, results, and kept inputs of the others.
    own = most[1][3].memory
    assert [c.memory - own for c in most[1]] == [12_000_000, 8_000_000, 4_000_000, 0]
    assert [c.memory - own for c in most[0]] == [15 * 4_000_000] * 4


def test_messages_between_stages_and_updates_take_their_time() -> None:
    stage = _stage()
    slow = simulate(Pipeline([stage] * 2, 1), _line(2, latency=0.5))
    assert slow.seconds == pytest.approx(2 + 0.5 + 2 + 4 + 0.5 + 4)
    w, g = _square(), _square()
    update = Graph([w, g], [E.sub(w, _sum(g))])
    found = simulate(Pipeline([Stage(stage.step, update=update, aliases={0: 0})] * 2, 1), _line(2))
    assert found.seconds == pytest.approx(12 + 6)
    assert found.exposed == pytest.approx(6 / 18) and found.bubble == pytest.approx(6 / 18)
    again = simulate(Pipeline([Stage(stage.step, recompute=True)] * 2, 1), _line(2))
    assert again.seconds == pytest.approx(2 * (2 + 6))


def test_pipelines_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="3 stages do not divide among 2 devices along 'pipe'"):
        simulate(Pipeline([_stage()] * 3, 4), _line(2))
    with pytest.raises(ShapeError, match="stages lie along 'pipe', but the mesh has the axes data"):
        simulate(Pipeline([_stage()] * 4, 4), ONE)
    with pytest.raises(ValueError, match="schedule"):
        simulate(Pipeline([_stage()] * 2, 4, "eager"), _line(2))


def _found() -> Simulation:
    return simulate(Pipeline([_stage()] * 2, 3), _line(2), name="toy")


def test_tables_show_the_classes_of_devices() -> None:
    text = _found().text()
    assert text.splitlines()[0] == "toy on 8 x toy (topology)"
    assert "24 s a step" in text and " of 1 GiB a device" in text
    assert text.splitlines()[3].split()[:7] == ["stage", "0", "4", "75.0%", "0.0%", "0.0%", "25.0%"]
    whole = simulate(Graph([(x := _square())], [all_gather(x, mesh=MESH, axes=("data",), axis=0)]), ONE)
    assert (whole.devices, whole.seconds, whole.exposed, whole.fits) == (4, 12, 1.0, True)
    small = Topology(Device("tiny", {"float32": 1e9}, bandwidth=1e15, memory=1 << 20), MESH, ONE.links)
    tight = simulate(Graph([x], [_sum(x)]), small)
    assert not tight.fits and "more than there are" in str(tight)


def test_pictures(tmp_path: Path) -> None:
    found = _found()
    found.save(tmp_path / "a.svg")
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    bars = [r for r in root.iter(f"{space}rect") if r.find(f"{space}title") is not None]
    assert len(bars) == 2 * 3 * 2
    with pytest.raises(ValueError, match="name it .svg"):
        found.save(tmp_path / "a.txt")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match=r"mycel\[plot\]"):
            found.save(tmp_path / "a.png")
    else:
        found.save(tmp_path / "a.png")
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
