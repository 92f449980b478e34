"""Plans of graphs: the best of all assignments, never worse than named ones, files, changes."""

import json

import numpy as np
import pytest

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transforms.partition import partition, shard, sharding, whole
from mycel._src.compiler.transport import thread_ranks
from mycel._src.engines.reference import evaluate
from mycel._src.planner.kernel_cost import nbytes_of
from mycel._src.planner.named_plans import starts_of
from mycel._src.planner.optimisation_problem import fixed
from mycel._src.planner.plan_search import Answer, search
from mycel._src.planner.planning import Plan, load_plan, plan
from mycel._src.planner.sharding_problem import pose
from tests.planner.exhaustive import FLAT, PLANE, best, compared
from tests.planner.graphs import random_graph, summed_graph, toy, training_step, various_graph

MESHES = [
    Mesh((2,), ("a",)),
    Mesh((3,), ("a",)),
    Mesh((2, 2), ("a", "b")),
    Mesh((2, 3), ("a", "b")),
    Mesh((8,), ("a",)),
]


@pytest.mark.parametrize("mesh", MESHES, ids=lambda m: "x".join(map(str, m.sizes)))
def test_plans_of_random_graphs_are_the_best(mesh):
    flat = len(mesh.sizes) == 1
    for seed in range(40 if flat else 12):
        graph = random_graph(seed, 3 + seed % (6 if flat else 4))
        limit = 200.0 * (1 + seed % 7) if seed % 3 == 0 else None
        posed = pose(graph, toy(mesh, latency=1e-9), limit=limit)
        try:
            answer = search(posed.problem)
        except ValueError as error:
            assert "no plan holds at most" in str(error) and best(posed.problem)[1] is None
            continue
        assert answer.exact and posed.problem.fits(answer.choices)
        # No assignment is cheaper.
        assert best(posed.problem, answer.seconds * (1 - 1e-6))[1] is None, seed


@pytest.mark.parametrize("mesh", (*FLAT, *PLANE), ids=lambda m: "x".join(map(str, m.sizes)))
def test_plans_of_various_graphs_are_the_best(mesh):
    assert max(compared(seed, mesh, 1 + seed % 8) for seed in range(12 if len(mesh.sizes) == 1 else 6)) < 1e-6


@pytest.mark.parametrize("mesh", [Mesh((3,), ("a",)), Mesh((2, 2), ("a", "b"))], ids=["3", "2x2"])
def test_any_plan_computes_the_same_and_sends_what_it_says(mesh):
    """Alternatives that are chosen by chance, those with sums that stay partial among them."""
    rng = np.random.default_rng(0)
    for seed in range(16):
        graph = summed_graph(seed) if seed % 2 else various_graph(seed, 8)
        posed = pose(graph, toy(mesh))
        choices = [int(rng.integers(i.count)) for i in posed.problem.items]
        made = Plan(posed, Answer(choices, 0.0, 0.0, False), {})
        local = partition(graph, mesh, made.inputs, plan=made.divisions)
        arrays = [some(n.type, rng) for n in graph.inputs]

        def run(rank, local=local, arrays=arrays):
            return evaluate(local.graph, [shard(a, s, mesh, rank) for a, s in zip(arrays, local.inputs)])

        parts = thread_ranks.run(mesh.size, run)
        for k, (want, layout) in enumerate(zip(evaluate(graph, arrays), local.outputs)):
            np.testing.assert_allclose(whole([p[k] for p in parts], layout, mesh), want, rtol=1e-4, atol=1e-4)


def some(type, rng):
    """Return random elements of a type; of integers small ones."""
    if type.dtype.kind == "i":
        return rng.integers(0, 2, type.shape).astype(type.dtype.numpy)
    return rng.uniform(-1, 1, type.shape).astype(type.dtype.numpy)


def test_sums_stay_partial_until_they_meet():
    mesh = Mesh((4,), ("a",))
    graph = summed_graph(0)
    columns, rows = sharding(mesh, (8, 16), (None, "a")), sharding(mesh, (16, 8), ("a",))
    given = [columns if n.type.shape == (8, 16) else rows for n in graph.inputs]
    found = plan(graph, toy(mesh, latency=1e-5), given)
    made = partition(graph, mesh, found.inputs, plan=found.divisions)
    assert [m.kind for m in made.messages] in (["reduce_scatter"], ["all_reduce"], ["reduce_scatter", "all_gather"])
    assert found.sent == made.sent and any(d.partial for d in found.divisions.values())


def solved(posed, start):
    """Return the seconds of a named plan, completed as well as possible; None where none fits."""
    given = [[start[k]] if k in start else None for k in range(len(posed.nodes))]
    try:
        return search(fixed(posed.problem, given)).seconds
    except ValueError:
        return None


@pytest.mark.parametrize("batch, width", [(1024, 64), (16, 512)])
@pytest.mark.parametrize("share", [None, 3.0])
def test_plans_are_never_worse_than_named_ones(batch, width, share):
    graph, aliases = training_step(batch, width)
    topology = toy(Mesh((2, 2), ("data", "model")))
    limit = None if share is None else share * 4 * width * width * 4 + 40 * batch * width
    found = plan(graph, topology, aliases=aliases, limit=limit or 1e12)
    posed = found.posed
    for name, start in starts_of(posed, aliases).items():
        seconds = solved(posed, start)
        assert seconds is None or found.seconds <= seconds * (1 + 1e-6), name
    # Large searches keep the promise too.
    large = search(posed.problem, starts=list(starts_of(posed, aliases).values()), ties=posed.ties, small=0)
    assert found.seconds * (1 - 1e-6) <= large.seconds <= found.seconds * 1.05


def test_plans_have_names():
    graph, aliases = training_step(16, 64)
    posed = pose(graph, toy(Mesh((2, 2), ("data", "model"))), aliases=aliases)
    found = starts_of(posed, aliases)
    assert list(found) == ["whole", "data", "zero1", "zero2", "zero3", "megatron"]
    inputs = len(graph.inputs)
    assert {k: a for k, a in found["zero2"].items() if k < inputs} == found["zero1"]
    # The moments and the new parameters: their sums, differences and products.
    updates = {k: a for k, a in found["zero2"].items() if k >= inputs}
    assert sorted(posed.nodes[k].op for k in updates) == ["add", "add", "mul", "mul", "mul", "mul", "sub", "sub"]
    state = posed.alternatives[4][found["zero2"][4]]
    assert state.parts and all(posed.given[k][a][0] == state for k, a in updates.items())


@pytest.mark.parametrize("batch, width", [(256, 64), (16, 256)])
def test_no_plan_within_a_limit_is_faster_than_the_one_without(batch, width):
    graph, aliases = training_step(batch, width, layers=4)
    topology = toy(Mesh((2, 2), ("data", "model")))
    everything = sum(nbytes_of(n.type) for n in (*graph.inputs, *graph.nodes))
    free = pose(graph, topology, aliases=aliases, limit=everything)
    named = list(starts_of(free, aliases).values())
    fastest = search(free.problem, starts=named, ties=free.ties, small=0)
    for share in (0.99, 0.9):
        posed = pose(graph, topology, aliases=aliases, limit=fastest.bytes * share)
        try:
            answer = search(posed.problem, starts=named, ties=posed.ties, small=0)
        except ValueError as error:
            assert "no plan holds at most" in str(error)
            continue
        assert posed.problem.fits(answer.choices) and answer.seconds >= fastest.seconds * (1 - 1e-9)


def test_much_data_is_divided_and_large_weights_are():
    topology = toy(Mesh((4,), ("d",)))
    graph, aliases = training_step(4096, 32)
    found = plan(graph, topology, aliases=aliases)
    assert str(found["x"]) == str(found["y"]) == "0:d" and found.exact
    graph, aliases = training_step(4, 1024)
    found = plan(graph, topology, aliases=aliases)
    assert all(found[w].parts for w in ("w0", "w1", "m0", "m1"))


def test_a_plan_is_what_the_partitioner_does():
    for batch, width in ((256, 32), (8, 128)):
        graph, aliases = training_step(batch, width)
        mesh = Mesh((2, 2), ("data", "model"))
        found = plan(graph, toy(mesh), aliases=aliases)
        made = partition(graph, mesh, found.inputs, tied=aliases, plan=found.divisions)
        assert made.inputs == found.inputs
        assert [made.outputs[o] for o in aliases] == [found.inputs[i] for i in aliases.values()]
        moving = sum(r.moving for r in found.rows())
        assert (made.sent > 0) == (moving > 0)


def test_plans_are_read_and_changed():
    graph, aliases = training_step(64, 32)
    mesh = Mesh((2, 2), ("data", "model"))
    found = plan(graph, toy(mesh), aliases=aliases)
    other = found.changed({"w0": "1:model", "matmul-0": sharding(mesh, (64, 32, 32), ("data", "model"))})
    assert str(other["w0"]) == "1:model" and str(other["matmul-0"]) == "0:data 1:model"
    assert other.seconds >= found.seconds and not other.exact
    assert other.seconds == pytest.approx(sum(r.computing + r.moving for r in other.rows()), rel=1e-9)
    assert other.tensor_maps()["w0"] == ([2, 2], [-1, 0])
    assert "plan for 4 devices (data 2 x model 2)" in str(other) and "matmul-0" in str(other)
    with pytest.raises(ValueError, match="w0 of .* cannot be divided by '7:model'; it can by 'whole'"):
        found.changed({"w0": "7:model"})
    with pytest.raises(ValueError, match="no entry 'matmul-99'; there are matmul-0"):
        found.changed({"matmul-99": "whole"})


def test_plans_are_saved_and_loaded(tmp_path):
    graph, aliases = training_step(64, 32)
    topology = toy(Mesh((2, 2), ("data", "model")))
    found = plan(graph, topology, aliases=aliases)
    found.save(tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json", graph, topology, aliases)
    assert again.choices == found.choices and again.seconds == found.seconds
    with pytest.raises(ValueError, match="is of another graph: "):
        load_plan(tmp_path / "plan.json", training_step(64, 16)[0], topology, aliases)
    with pytest.raises(ValueError, match="is for the mesh"):
        load_plan(tmp_path / "plan.json", graph, toy(Mesh((4,), ("data",))), aliases)
    content = json.loads((tmp_path / "plan.json").read_text())
    del content["entries"]["w0"]
    (tmp_path / "plan.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="w0 is missing in it"):
        load_plan(tmp_path / "plan.json", graph, topology, aliases)
    (tmp_path / "plan.json").write_text("[1")
    with pytest.raises(ValueError, match="is no plan"):
        load_plan(tmp_path / "plan.json", graph, topology, aliases)


def test_modes():
    graph, aliases = training_step(64, 64)
    topology = toy(Mesh((2, 3), ("data", "model")))
    exact = plan(graph, topology, aliases=aliases)
    recursive = plan(graph, topology, aliases=aliases, mode="recursive_programming")
    propagated = plan(graph, topology, aliases=aliases, mode="sharding_propagation")
    assert exact.seconds <= recursive.seconds <= exact.seconds * 2
    moving = [sum(r.moving for r in p.rows()) for p in (exact, propagated)]
    assert moving[1] <= moving[0] * (1 + 1e-6)
    with pytest.raises(ValueError, match="mode"):
        plan(graph, topology, aliases=aliases, mode="guessing")


def test_given_layouts_are_kept():
    graph, aliases = training_step(64, 64)
    mesh = Mesh((2, 2), ("data", "model"))
    given = [sharding(mesh, (64, 64), (("data", "model"),)), *[None] * 5]
    found = plan(graph, toy(mesh), given, aliases=aliases, mode="sharding_propagation")
    assert found.inputs[0] == given[0]
