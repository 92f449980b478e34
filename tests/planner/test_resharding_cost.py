"""Tables of ways against the routes between single layouts."""

import pytest

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.transforms.partition import Sharding, route
from mycel._src.foundation.dtype import float32
from mycel._src.planner.resharding_cost import Ways, bytes_of, seconds_of_route
from mycel._src.planner.sharding_problem import layouts_of
from tests.planner.graphs import toy

SHAPES = [(12, 7), (14, 6), (7, 12), (5, 24, 7), (48, 7)]


@pytest.mark.parametrize("mesh", [Mesh((4,), ("a",)), Mesh((2, 3), ("a", "b"))], ids=["4", "2x3"])
def test_tables_have_what_routes_cost(mesh):
    """Tensors of several shapes share what is remembered, where they divide and where not."""
    topology = toy(mesh)
    ways = Ways(topology)
    for shape in SHAPES:
        type = tensor_type(shape, float32)
        ends = layouts_of(type, mesh)
        free = [(s, a) for s in ends for a in mesh.names if a not in s.mesh_axes]
        starts = [*ends, *(Sharding(s.parts, ((a, "sum"),)) for s, a in free)]
        seconds, copies = ways.table(starts, ends, type)
        for i, start in enumerate(starts):
            for j, end in enumerate(ends):
                moves = [] if start == end else route(start, end, type, mesh)
                assert seconds[i, j] == pytest.approx(seconds_of_route(moves, type, topology), rel=1e-12)
                assert copies[i, j] == (bytes_of(type, end) if moves else 0)
        assert len({ways.form(s) for s in starts}) == len(set(starts))
