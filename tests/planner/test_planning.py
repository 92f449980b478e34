"""Plans of graphs: the best of all assignments, never worse than named ones, files, changes."""

import json

import pytest

from mycel.ir.mesh import Mesh
from mycel.planner.named import starts_of
from mycel.planner.planning import load_plan, plan
from mycel.planner.problems import pose
from mycel.planner.search import search
from mycel.transforms.partition import partition, sharding
from tests.planner.exhaustive import best
from tests.planner.graphs import node, random_graph, toy, training_step

MESHES = [Mesh((2,), ("a",)), Mesh((3,), ("a",)), Mesh((2, 2), ("a", "b")), Mesh((2, 3), ("a", "b")), Mesh((8,), ("a",))]


@pytest.mark.parametrize("mesh", MESHES, ids=lambda m: "x".join(map(str, m.sizes)))
def test_plans_of_random_graphs_are_the_best(mesh):
    for seed in range(40):
        graph = random_graph(seed, 3 + seed % 6)
        limit = 200.0 * (1 + seed % 7) if seed % 3 == 0 else None
        posed = pose(graph, toy(mesh, latency=1e-9), limit=limit)
        seconds, choices = best(posed.problem)
        if choices is None:
            with pytest.raises(ValueError, match="no plan holds at most"):
                search(posed.problem)
            continue
        answer = search(posed.problem)
        assert answer.exact and answer.seconds == pytest.approx(seconds, rel=1e-6), (seed, choices)
