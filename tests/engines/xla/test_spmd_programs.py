"""Programs on eight devices at once give what ranks give that are threads with a transport."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed: pip install mycel[xla]")

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.distributed import collectives
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.linear_algebra.spectral import eig
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transport.thread_ranks import run
from mycel._src.engines import buffers, select
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import float32, from_any, int32, int64
from mycel._src.foundation.errors import ShapeError, Unsupported

ENGINE = select.engines()["xla"]
RANKS = 8
MESHES = (
    Mesh((8,), ("x",)),
    Mesh((2, 4), ("a", "b"), (3, 1, 2, 0, 4, 6, 5, 7)),
    Mesh((2, 2, 2), ("p", "q", "r")),
)

pytestmark = pytest.mark.skipif(
    ENGINE.device_count() < RANKS, reason=f"jax started before this folder's tests, with fewer than {RANKS} devices"
)


class Program:
    """A random graph of one rank, with collectives along axes of several meshes."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.inputs = [input_node(tensor_type((8, 16), kind)) for kind in (float32, int32)]
        self.values: list[Node] = list(self.inputs)
        for _ in range(12):
            self.values.append(self.step(self.one()))
        self.graph = Graph(self.inputs, self.values[2:], f"random_{seed}")

    def one(self) -> Node:
        return self.values[int(self.rng.integers(len(self.values)))]

    def axes(self) -> dict[str, Any]:
        mesh = MESHES[int(self.rng.integers(len(MESHES)))]
        names = list(self.rng.permutation(mesh.names))[: int(self.rng.integers(1, len(mesh.names) + 1))]
        return {"mesh": mesh, "axes": tuple(map(str, names))}

    def step(self, x: Node) -> Node:
        at = self.axes()
        count = at["mesh"].count(at["axes"])
        axis = int(self.rng.integers(2))
        fits = x.shape[axis] % count == 0
        kind = self.rng.integers(8)
        if kind == 0:
            op = str(self.rng.choice(["sum", "max", "min"]))
            return self.tamed(collectives.all_reduce(x, **at, op=op))
        if kind == 1 and x.shape[axis] * count <= 64:
            return collectives.all_gather(x, **at, axis=axis)
        if kind == 2 and fits:
            return self.tamed(collectives.reduce_scatter(x, **at, axis=axis, op=str(self.rng.choice(["sum", "max"]))))
        if kind == 3 and fits:
            return collectives.all_to_all(x, **at, split=axis, concat=int(self.rng.integers(2)))
        if kind == 4:
            targets = self.rng.permutation(count)
            pairs = tuple((k, int(t)) for k, t in enumerate(targets) if self.rng.random() < 0.8)
            return collectives.permute(x, **at, pairs=pairs)
        if kind == 5:
            return E.add(x, E.cast(collectives.mesh_position(**at), dtype=x.dtype))
        other = next((v for v in reversed(self.values) if v.type == x.type and v is not x), x)
        return self.tamed(E.sub(E.mul(x, 2), other))

    def tamed(self, x: Node) -> Node:
        """A value that stays small, whatever it was."""
        return E.sin(x) if x.dtype is float32 else E.mod(x, 101)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_give_what_threads_give(seed: int) -> None:
    graph, rng = Program(seed).graph, np.random.default_rng(100 + seed)
    given = [
        [rng.standard_normal((8, 16)).astype(np.float32), rng.integers(-9, 9, (8, 16)).astype(np.int32)]
        for _ in range(RANKS)
    ]
    wanted = run(RANKS, lambda rank: evaluate(graph, given[rank]))
    mesh = MESHES[seed % len(MESHES)]
    spreads = [ENGINE.spread(mesh, [arrays[k] for arrays in given]) for k in range(2)]
    for j, found in enumerate(ENGINE.together(graph, mesh).entry(*spreads)):
        for rank, part in enumerate(found.parts()):
            assert part.dtype == wanted[rank][j].dtype
            if part.dtype == np.int32:
                np.testing.assert_array_equal(part, wanted[rank][j])
            else:
                np.testing.assert_allclose(part, wanted[rank][j], rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(found.part(rank), part)


@pytest.mark.parametrize("kind", ["float16", "float32", "int8", "bool", "complex64"])
def test_the_value_of_one_position(kind: str) -> None:
    mesh = MESHES[1]
    parts = [np.array([k, -0.0, 0.5 * k, np.inf if kind[0] in "fc" else 1]).astype(kind) for k in range(RANKS)]
    x = input_node(tensor_type((4,), from_any(parts[0].dtype)))
    graph = Graph([x], [collectives.spread(x, mesh=mesh, axes=("b",), source=2)])
    wanted = run(RANKS, lambda rank: evaluate(graph, [parts[rank]]))
    (found,) = ENGINE.together(graph, mesh).entry(ENGINE.spread(mesh, parts))
    for rank, part in enumerate(found.parts()):
        assert part.tobytes() == wanted[rank][0].tobytes()


@pytest.mark.parametrize("op", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("kind", ["float32", "float16", "int32"])
def test_reductions_of_every_kind(op: str, kind: str) -> None:
    mesh = MESHES[1]
    parts = [np.arange(1, 9).astype(kind) * (-1) ** k / (1 if kind == "int32" else 4) for k in range(RANKS)]
    parts = [p.astype(kind) for p in parts]
    x = input_node(tensor_type((8,), from_any(parts[0].dtype)))
    both = {"mesh": mesh, "axes": ("b",)}
    graph = Graph([x], [collectives.all_reduce(x, **both, op=op), collectives.reduce_scatter(x, **both, axis=0, op=op)])
    wanted = run(RANKS, lambda rank: evaluate(graph, [parts[rank]]))
    for j, found in enumerate(ENGINE.together(graph, mesh).entry(ENGINE.spread(mesh, parts))):
        for rank, part in enumerate(found.parts()):
            np.testing.assert_allclose(part, wanted[rank][j], rtol=2e-3 if kind == "float16" else 2e-6)


def test_a_loop_of_products_divided_by_columns_keeps_its_state_on_the_devices() -> None:
    """The rows of x are every rank's; the columns of w are divided; the state is written over."""
    mesh = Mesh((8,), ("x",))
    both = {"mesh": mesh, "axes": ("x",)}
    i, x, w = input_node(tensor_type((), int64)), *[input_node(tensor_type(s, float32)) for s in ((4, 16), (16, 2))]
    product = collectives.all_gather(matmul(x, w), **both, axis=1)
    body = Graph((i, x, w), (E.add(i, 1), E.sin(product)), "body")
    test = Graph((i, x, w), (E.lt(i, 3),), "test")
    outer = [input_node(n.type) for n in (i, x, w)]
    done = outputs_of(control.while_loop.node(*outer, test=test, body=body, carried=2))
    mean = collectives.all_reduce(reduce.reduce_sum(outer[2], axes=(0, 1), keepdims=False), **both, op="sum")
    graph = Graph(outer, [done[1], E.mul(outer[2], 0.5), mean])
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((16, 16)).astype(np.float32) / 4
    state = rng.standard_normal((4, 16)).astype(np.float32)
    program = ENGINE.together(graph, mesh, {0: 1, 1: 2})
    count = ENGINE.spread(mesh, [np.int64(0)] * 8)
    xs = ENGINE.spread(mesh, [state] * 8)
    ws = ENGINE.spread(mesh, [weights[:, 2 * k : 2 * k + 2] for k in range(8)])
    for _ in range(2):
        found = program.entry(count, xs, ws)
        assert found[0] is xs and found[1] is ws
        for _ in range(3):
            state = np.sin(state @ weights)
        np.testing.assert_allclose(found[2].part(5), weights.sum(), rtol=1e-4)
        weights = weights * np.float32(0.5)
    for part in xs.parts():
        np.testing.assert_allclose(part, state, rtol=1e-4, atol=1e-5)
    text = program.text()
    assert "all-gather" in text and "all-reduce" in text and "all-to-all" not in text


def test_what_stops_one_device_stops_all_and_leaves_the_state() -> None:
    mesh = Mesh((8,), ("x",))
    table, place = input_node(tensor_type((3,), float32)), input_node(tensor_type((), int64))
    graph = Graph((table, place), (E.add(table, 1.0), I.take(table, place, axis=0)))
    program = ENGINE.together(graph, mesh, {0: 0})
    state = ENGINE.spread(mesh, [np.zeros(3, np.float32)] * 8)
    program.entry(state, ENGINE.spread(mesh, [np.int64(1)] * 8))
    wrong = ENGINE.spread(mesh, [np.int64(5 if k == 6 else 1) for k in range(8)])
    with pytest.raises(IndexError, match="index 5 is out of range for axis 0 of size 3"):
        program.entry(state, wrong)
    assert {tuple(p.tolist()) for p in state.parts()} == {(1.0, 1.0, 1.0)}


def test_refusals() -> None:
    mesh = Mesh((8,), ("x",))
    x = input_node(tensor_type((2, 2), float32))
    with pytest.raises(Unsupported, match="eig in a program for several devices"):
        ENGINE.together(Graph([x], outputs_of(eig.node(x))), mesh)
    with pytest.raises(ValueError, match="a mesh of the ranks 0 to 63 needs as many devices, but jax has"):
        ENGINE.together(Graph([x], [S.reshape(x, (4,))]), Mesh((64,), ("x",)))
    half = Mesh((4,), ("x",))
    reduced = Graph([x], [collectives.all_reduce(x, mesh=half, axes=("x",), op="sum")])
    with pytest.raises(Unsupported, match="all devices of a program take part in each collective"):
        ENGINE.together(reduced, mesh).entry(ENGINE.spread(mesh, [np.zeros((2, 2), np.float32)] * 8))
    with pytest.raises(ShapeError, match="8 ranks need as many arrays of one type"):
        ENGINE.spread(mesh, [np.zeros(2)] * 3)
    own = collectives.exchange(x, mesh=half, axes=("x",), sent=(2, 0, 0, 0), received=(2, 0, 0, 0))
    with pytest.raises(Unsupported, match="exchange in a program for several devices"):
        ENGINE.together(Graph([x], [own]), half)
    program = ENGINE.together(Graph([x], [E.exp(x)]), mesh)
    with pytest.raises(TypeError, match="takes .* on 8 devices, not float64"):
        program.entry(ENGINE.spread(mesh, [np.zeros((2, 2))] * 8))
    with pytest.raises(TypeError, match="takes 1 inputs, 0 were given"):
        program.entry()


def test_ranks_with_a_program_each_exchange_through_their_transport() -> None:
    mesh = Mesh((3,), ("x",))
    x = input_node(tensor_type((2,), float32))
    total = collectives.all_reduce(E.mul(x, 2.0), mesh=mesh, axes=("x",), op="sum")
    graph = Graph([x], [E.add(total, 1.0)])
    assert [why for _, why in ENGINE.host_steps(graph)] == ["all_reduce goes through the transport of this process"]
    entry = ENGINE.compile(graph)

    def main(rank: int) -> Any:
        found = entry(buffers.from_array(np.full(2, rank, np.float32)))
        return buffers.to_array(found, x.type).tolist()

    assert run(3, main) == [[7, 7]] * 3
