"""Routes: every pair of layouts of a tensor moves right, and sends what is said."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.transforms.partition import (
    WHOLE,
    Part,
    Sharding,
    apply,
    local_shape,
    part_of,
    route,
    shard,
    sharding,
    whole,
)
from mycel._src.compiler.transport import thread_ranks
from mycel._src.compiler.transport.base import Transport
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import float32
from mycel._src.foundation.errors import ShapeError

SHAPE = (8, 6)
TYPE = tensor_type(SHAPE, float32)


def all_layouts(mesh: Mesh) -> list[Sharding]:
    """Layouts of 8 by 6 elements: axes, products of axes, and stretches inside of them."""
    found: dict[Sharding, None] = {WHOLE: None}
    for places in itertools.product(("", "0", "1", "in", "end", "+"), repeat=len(mesh.names)):
        parts: tuple[Part, ...] = ()
        for name, place in zip(mesh.names, places):
            if place in ("0", "1"):
                parts += part_of(mesh, int(place), (name,), SHAPE[int(place)])
            elif place == "in":
                parts += part_of(mesh, 0, (name,), 2, before=2, after=2)
            elif place == "end":
                parts += part_of(mesh, 1, (name,), 3, before=2, after=1)
            elif place == "+":
                parts += part_of(mesh, 0, mesh.names, 8) if name == mesh.names[0] else ()
        try:
            found[Sharding(parts)] = None
        except ShapeError:
            continue
    return list(found)


def moved(mesh: Mesh, start: Sharding, end: Sharding) -> None:
    array = np.arange(1, math.prod(SHAPE) + 1, dtype=np.float32).reshape(SHAPE)
    partial = [a for a, _ in start.partial]
    x = input_node(tensor_type(local_shape(SHAPE, start), float32), "x")
    moves = route(start, end, TYPE, mesh)
    graph = Graph([x], [apply(x, moves, TYPE, mesh)])

    def program(rank: int) -> Any:
        # What is partial is a sum of unlike terms.
        share = mesh.position(rank, partial) + 1 if partial else 1
        weight = share / sum(range(1, mesh.count(partial) + 1))
        return evaluate(graph, [shard(array, start.reduced, mesh, rank) * np.float32(weight)])[0]

    parts = thread_ranks.run(mesh.size, program)
    assert parts[0].shape == local_shape(SHAPE, end)
    np.testing.assert_allclose(whole(parts, end, mesh), array, rtol=1e-5)


@pytest.mark.parametrize("mesh", [Mesh((2,), ("x",)), Mesh((3,), ("x",)), Mesh((2, 2), ("x", "y"))], ids=str)
def test_all_pairs(mesh: Mesh) -> None:
    layouts = all_layouts(mesh)
    for start, end in itertools.product(layouts, layouts):
        moved(mesh, start, end)


@pytest.mark.parametrize("mesh", [Mesh((3,), ("x",)), Mesh((2, 2), ("x", "y")), Mesh((2, 3), ("x", "y"))], ids=str)
def test_partial_values_are_reduced(mesh: Mesh) -> None:
    layouts = all_layouts(mesh)
    for start, end in itertools.product(layouts[:8], layouts):
        free = [a for a in mesh.names if a not in start.mesh_axes]
        if free:
            moved(mesh, Sharding(start.parts, tuple((a, "sum") for a in free)), end)


def test_what_ranks_send() -> None:
    mesh = Mesh((2, 2), ("x", "y"))
    rows, columns = sharding(mesh, SHAPE, ("x",)), sharding(mesh, SHAPE, (None, "x"))
    summed = Sharding((), (("x", "sum"),))
    both = sharding(mesh, SHAPE, (("x", "y"),))

    def sent(start: Sharding, end: Sharding) -> list[tuple[str, float]]:
        return [(m.kind, m.sent) for m in route(start, end, TYPE, mesh)]

    assert sent(rows, WHOLE) == [("all_gather", 96)]
    assert sent(WHOLE, rows) == [("slice", 0)]
    assert sent(rows, columns) == [("all_to_all", 48)]
    assert sent(summed, WHOLE) == [("all_reduce", 192)]
    assert sent(summed, columns) == [("reduce_scatter", 96)]
    assert sent(both, WHOLE) == [("all_gather", 144)]
    assert sent(rows, sharding(mesh, SHAPE, ("y",))) == [("permute", 96)]
    assert sent(rows, rows) == []


def test_bytes_are_those_of_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gathers and exchanges send as many bytes as is said, of which a rank keeps its own share."""
    mesh, counts = Mesh((3,), ("x",)), [0.0] * 3
    met = thread_ranks.Threads.met

    def counted(self: Any, kind: str, parts: Any, ranks: Any) -> Any:
        counts[self.rank] += sum(p.nbytes for p, r in zip(parts, ranks) if r != self.rank)
        return met(self, kind, parts, ranks)

    monkeypatch.setattr(thread_ranks.Threads, "met", counted)
    rows, columns = sharding(mesh, SHAPE, ("x",)), sharding(mesh, SHAPE, (None, "x"))
    for start, end in ((rows, WHOLE), (columns, rows), (rows, columns)):
        counts[:] = [0.0] * 3
        moved(mesh, start, end)
        assert counts == [sum(m.sent for m in route(start, end, TYPE, mesh))] * 3
    assert isinstance(transport(), Transport)


def test_refusals() -> None:
    mesh = Mesh((2,), ("x",))
    with pytest.raises(ShapeError, match="nothing makes a value partial"):
        route(WHOLE, Sharding((), (("x", "max"),)), TYPE, mesh)
    with pytest.raises(ShapeError, match="uses a mesh axis twice"):
        Sharding((*part_of(mesh, 0, ("x",), 8), *part_of(mesh, 1, ("x",), 6)))
    with pytest.raises(ShapeError, match="no 3 axes"):
        sharding(mesh, SHAPE, (None, None, "x"))
