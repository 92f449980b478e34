"""Every primitive, divided in some of its ways, through the whole partitioner."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.prims.base import REGISTRY
from mycel._src.compiler.transforms.partition import WHOLE, divisions_of, partition
from mycel._src.compiler.transforms.partition.node_sharding import factors_at
from mycel._src.engines.reference import evaluate
from tests.prims.cases import Case, apply_node, nodes_for
from tests.prims.test_factors import _chosen
from tests.transforms.partition.support import close, run_ranks

MESHES = (Mesh((3,), ("x",)), Mesh((2, 2), ("x", "y")))
TOLERANCE = {"float16": 5e-3, "bfloat16": 5e-2}


def graphs(name: str) -> Iterator[tuple[Case, Graph]]:
    for case in _chosen(REGISTRY[name]):
        inputs = nodes_for(case.draw())
        yield case, Graph(inputs, apply_node(case.primitive, inputs, case.sample.params), case.label)


@pytest.mark.parametrize("name", sorted(n for n, p in REGISTRY.items() if p.factors is not None))
def test_divisions(name: str) -> None:
    rng = np.random.default_rng(len(name))
    for case, graph in graphs(name):
        node = graph.nodes[0]
        if not factors_at(node):
            continue
        arrays = case.draw()
        with np.errstate(all="ignore"):
            expected = evaluate(graph, arrays)
        for mesh in MESHES:
            divisions = divisions_of(node, mesh)[1:]
            for k in rng.permutation(len(divisions))[:1]:
                made = partition(graph, mesh, [WHOLE] * len(arrays), [WHOLE] * len(expected), plan={node: divisions[k]})
                with np.errstate(all="ignore"):
                    found = run_ranks(made, arrays)
                close(found, expected, max([TOLERANCE.get(d.name, 3e-5) for d in case.dtypes], default=0))
