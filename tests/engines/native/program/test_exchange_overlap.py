"""The order in which programs exchange and compute: what begins when, and equal results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.distributed import collectives
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.partition import Fusing
from mycel._src.compiler.transport import thread_ranks
from mycel._src.compiler.transport.base import Array
from mycel._src.compiler.transport.current_transport import transport, within
from mycel._src.compiler.transport.delayed_transport import Slowed
from mycel._src.engines.native.program.exchange_overlap import BEHIND
from mycel._src.engines.native.program.program import build, template_of
from mycel._src.engines.native.steps.step_types import HostCall, Step
from mycel._src.engines.select import compile_graph
from mycel._src.foundation.dtype import float32
from mycel._src.staging.distributed import Layouts, distribute

MESH = Mesh((2,), ("data",))
AXES: dict[str, Any] = {"mesh": MESH, "axes": ("data",)}


def told(steps: Sequence[Step]) -> list[str]:
    """What steps do: exchanges with their numbers, "x" for what computes."""
    return [f"{s.data.phase or 'whole'}{s.data.number}" if isinstance(s.data, HostCall) else "x" for s in steps]


def total(x: Node) -> Node:
    return collectives.all_reduce(x, op="sum", **AXES)


def weights(count: int, size: int = 16) -> tuple[Node, list[Node]]:
    return input_node(tensor_type((size, size), float32), "x"), [
        input_node(tensor_type((size, size), float32), f"w{k}") for k in range(count)
    ]


def test_sums_begin_when_their_operands_are_there_and_are_awaited_where_they_are_used() -> None:
    x, ws = weights(3)
    values = [x]
    for w in ws:
        values.append(matmul(values[-1], w))
    sums = [total(matmul(v, v)) for v in values[1:]]
    graph = Graph([x, *ws], [E.exp(s) for s in sums], "sums")
    found = told(template_of(graph).steps)
    first, second, last = (found.index(f"begin{k}") for k in (0, 1, 2))
    assert first < second < last and "x" in found[first:second] and "x" in found[second:last]
    assert found[last + 1] == "end0"
    for k in range(3):
        assert found[found.index(f"end{k}") + 1] == "x"


def test_what_waits_for_a_sum_runs_when_some_more_have_begun() -> None:
    x, ws = weights(8)
    values = [x]
    for w in ws:
        values.append(matmul(values[-1], w))
    graph = Graph([x, *ws], [E.sub(w, total(matmul(v, v))) for w, v in zip(ws, values[1:])], "updates")
    steps = template_of(graph, {k: k + 1 for k in range(8)}).steps
    found = told(steps)
    for k in range(8):
        end, latest = found.index(f"end{k}"), found.index(f"begin{min(k + BEHIND, 7)}")
        assert latest < end and found[end + 1] == "x"
        if k + BEHIND < 7:
            assert end < found.index(f"begin{k + BEHIND + 1}")


def test_an_exchange_beside_which_nothing_is_computed_is_one_step() -> None:
    x, (w,) = weights(1)
    graph = Graph([x, w], [E.exp(total(matmul(x, w)))], "alone")
    assert told(template_of(graph).steps) == ["x", "whole-1", "x"]


def test_gathers_begin_a_little_before_they_are_used() -> None:
    x = input_node(tensor_type((16, 16), float32), "x")
    parts = [input_node(tensor_type((8, 16), float32), f"w{k}") for k in range(5)]
    y = x
    for part in parts:
        y = matmul(y, collectives.all_gather(part, axis=0, **AXES))
    found = told(template_of(Graph([x, *parts], [y], "gathers")).steps)
    open_ = most = 0
    for step in found:
        open_ += step.startswith("begin") - step.startswith("end")
        most = max(most, open_)
    assert most == 2 and found.count("x") == 5 and found[:2] == ["whole-1", "begin1"]
    order = [s for s in found if s.startswith("end")]
    assert order == sorted(order) and len(order) == 4 and found[-1] == "x"


def test_what_waits_for_several_gathers_at_once_is_no_circle() -> None:
    parts = [input_node(tensor_type((8, 16), float32), f"w{k}") for k in range(6)]
    whole = [collectives.all_gather(p, axis=0, **AXES) for p in parts]
    y = whole[0]
    for w in whole[1:]:
        y = E.add(y, w)
    graph = Graph(parts, [y, matmul(y, whole[3])], "at_once")
    arrays = [np.full((8, 16), k, np.float32) for k in range(6)]

    def program(rank: int) -> Any:
        from mycel._src.engines import buffers

        found = compile_graph(graph)(*[buffers.from_array(a) for a in arrays])
        return [buffers.to_array(f, n.type) for f, n in zip(found, graph.outputs)]

    for y, product in thread_ranks.run(2, program):
        assert (y == 15).all() and (product == 15 * 3 * 16).all()


def test_without_overlap_all_stay_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCEL_OVERLAP", "0")
    x, ws = weights(2)
    graph = Graph([x, *ws], [E.exp(total(matmul(x, w))) for w in ws], "blocking")
    assert {t for t in told(template_of(graph).steps) if t != "x"} == {"whole-1"}


WAYS = {
    "data": lambda p: None,
    "states": lambda p: ("data",) if p.shape and p.name.startswith("moments.") else None,
    "weights": lambda p: ("data",) if p.shape else None,
}


def trained(way: str, count: int, steps: int = 3) -> tuple[list[float], list[Array]]:
    random = np.random.default_rng(0)
    cells = []
    for _ in range(4):
        weight = ms.Tensor((random.normal(size=(32, 32)) / 5).astype("f4"))
        cells += [nn.Dense(32, 32, weight_init=weight, bias_init="zeros"), nn.Tanh()]
    net = nn.SequentialCell(*cells)
    update = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    derive = ms.value_and_grad(lambda x: ops.square(net(x)).mean(), None, update.parameters)

    def step(x: ms.Tensor) -> ms.Tensor:
        loss, gradients = derive(x)
        update(gradients)
        return loss

    layouts = Layouts(Mesh((count,), ("data",)), [("data",)], WAYS[way], fusing=Fusing(5000, 5000, 5000))
    divided = distribute(step, layouts)
    x = ms.Tensor(random.normal(size=(8, 32)).astype("f4"))
    losses = [float(divided(x)) for _ in range(steps)]
    return losses, [p.asnumpy() for p in net.trainable_params()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [2, 4])
def test_results_are_those_of_the_blocking_way(way: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def program(rank: int) -> tuple[list[float], list[Array]]:
        # Ranks of which some are slow.
        with within(Slowed(transport(), lambda *_: 1e-4 * rank)):
            return trained(way, count)

    found = []
    for on in ("0", "1"):
        monkeypatch.setenv("MYCEL_OVERLAP", on)
        found.append(thread_ranks.run(count, program))
    for (losses, states), (others, values) in zip(*found):
        assert losses == others and all(np.array_equal(a, b) for a, b in zip(states, values))


class Broken(Slowed):
    """A transport whose exchanges of one number fail."""

    def __init__(self, number: int) -> None:
        super().__init__(transport(), lambda *_: 0.0)
        self.number, self.seen = number, 0

    def all_reduce(self, array: Array, op: str, ranks: Sequence[int]) -> Array:
        self.seen += 1
        if self.seen == self.number:
            raise OSError("the link is broken")
        return self.inner.all_reduce(array, op, ranks)


def test_an_exchange_that_fails_is_an_error_of_the_call_and_of_no_other() -> None:
    x, ws = weights(3)
    graph = Graph([x, *ws], [E.exp(total(matmul(x, w))) for w in ws], "failing")
    assert "begin0" in told(template_of(graph).steps)

    def program(rank: int) -> list[Any]:
        from mycel._src.engines import buffers

        way = Broken(2)
        with within(way):
            entry = build(graph).entry
            given = [buffers.from_array(np.full((16, 16), rank + 1, np.float32)) for _ in range(4)]
            with pytest.raises(OSError, match="the link is broken"):
                entry(*given)
            assert way.channel.is_idle and way.seen == 3
            found = entry(*given)
        return [buffers.to_array(f, n.type) for f, n in zip(found, graph.outputs)]

    expected = np.exp(np.float32(16 * (1 + 4)))
    for results in thread_ranks.run(2, program):
        assert all(np.allclose(r, expected, rtol=1e-6) for r in results)
