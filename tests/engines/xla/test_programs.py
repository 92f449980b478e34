"""Programs of the XLA engine: training, control flow, errors, host steps, buffers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed: pip install mycel[xla]")

from mycel._src.compiler.ir.graph import Graph, Node, Where, at, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import random
from mycel._src.compiler.prims.base import outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.linear_algebra import decompositions
from mycel._src.compiler.prims.linear_algebra.spectral import eig
from mycel._src.engines import buffers, select
from mycel._src.engines.reference import evaluate
from mycel._src.engines.xla.device_buffers import Held
from mycel._src.foundation.dtype import bool_, float32, float64, int64, uint64
from mycel._src.foundation.errors import Unsupported

ENGINE = select.engines()["xla"]


def held(array: Any) -> Held:
    return Held(buffers.host_copy(np.asarray(array)))


def tensor(shape: tuple[int, ...] = (3,), dtype: Any = float32, name: str = "x") -> Node:
    return input_node(tensor_type(shape, dtype), name)


def run(graph: Graph, *arrays: Any, aliases: Any = None) -> list[Any]:
    found = ENGINE.compile(graph, aliases)(*[held(a) for a in arrays])
    found = found if isinstance(found, tuple) else (found,)
    return [buffers.to_array(b, n.type) for b, n in zip(found, graph.outputs)]


def agrees(graph: Graph, *arrays: Any) -> None:
    for a, b in zip(run(graph, *arrays), evaluate(graph, [np.asarray(a) for a in arrays])):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


# Training.

LENET = """
import json
import numpy as np
import mycel as ms
from mycel import nn

class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.pool, self.flat, self.relu = nn.MaxPool2d(2, 2), nn.Flatten(), nn.ReLU()
        self.dense, self.last, self.drop = nn.Dense(256, 84), nn.Dense(84, 10), nn.Dropout(p=0.25)

    def construct(self, x):
        x = self.pool(self.relu(self.second(self.pool(self.relu(self.first(x))))))
        return self.last(self.drop(self.relu(self.dense(self.flat(x)))))

ms.set_seed(3)
ms.set_context(mode=ms.GRAPH_MODE)
net = LeNet()
net.set_train()
optimizer = nn.Adam(net.trainable_params(), 1e-3)
loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
source = np.random.default_rng(0)
x = ms.Tensor(source.standard_normal((8, 1, 28, 28)).astype(np.float32))
y = ms.Tensor(source.integers(0, 10, 8).astype(np.int32))
losses = [float(step(x, y)) for _ in range(4)]
own = type(net.last.weight._buf).__name__
found = getattr(net.last.weight._buf, "found", None) is not None
parameters = (*net.get_parameters(), *optimizer.get_parameters())
states = [float(np.abs(p.asnumpy().astype(np.float64)).sum()) for p in parameters]
print(json.dumps([losses, states, ms.ops.randint(0, 1 << 30, (4,)).tolist(), own, found]))
"""


def trained(engine: str) -> Any:
    environment = {**os.environ, "MYCEL_ENGINE": engine}
    done = subprocess.run([sys.executable, "-c", LENET], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_training_is_that_of_the_native_engine() -> None:
    losses, states, drawn, kind, on_device = trained("xla")
    assert kind == "Held" and on_device, "parameters stay on the device"
    native = trained("native")
    np.testing.assert_allclose(losses, native[0], rtol=2e-5)
    np.testing.assert_allclose(states, native[1], rtol=1e-4)
    assert drawn == native[2]


def test_random_bits_are_equal() -> None:
    sample = random.random_bits.samples[0]
    nodes = [input_node(tensor_type(np.shape(s) if isinstance(s, np.ndarray) else s, uint64)) for s in sample.shapes]
    graph = Graph(nodes, [random.random_bits(*nodes, **sample.params)])
    arrays = [np.arange(5, 5 + int(np.prod(n.shape)), dtype=np.uint64).reshape(n.shape) for n in nodes]
    (found,), (wanted,) = run(graph, *arrays), evaluate(graph, arrays)
    np.testing.assert_array_equal(found, wanted)


# Control flow, and what stops a program.


def loop(table: Node, count: Node) -> tuple[Node, ...]:
    """Sums of a table at the positions 0, 1, ... below a count."""
    i, total = tensor((), int64, "i"), tensor((), float32, "total")
    inner_table, limit = tensor((4,), float32, "table"), tensor((), int64, "limit")
    inputs = (i, total, inner_table, limit)
    test = Graph(inputs, (E.lt(i, limit),), "test")
    body = Graph(inputs, (E.add(i, 1), E.add(total, I.take(inner_table, i, axis=0))), "body")
    zero, start = E.cast(E.sub(count, count), dtype=int64), E.cast(E.sub(count, count), dtype=float32)
    return outputs_of(control.while_loop.node(zero, start, table, count, test=test, body=body, carried=2))


def test_a_loop_ends_at_what_stops_it() -> None:
    table, count = tensor((4,), float32, "table"), tensor((), int64, "count")
    graph = Graph((table, count), loop(table, count))
    agrees(graph, np.arange(4, dtype=np.float32), np.int64(3))
    with pytest.raises(IndexError, match="index 4 is out of range for axis 0 of size 4"):
        run(graph, np.arange(4, dtype=np.float32), np.int64(1 << 40))


def test_only_the_branch_that_is_taken_stops() -> None:
    table, place = tensor((4,), float32, "table"), tensor((), int64, "place")
    chosen = tensor((), bool_, "chosen")
    reads = Graph((table, place), (I.take(table, place, axis=0),), "reads")
    other_table, other_place = tensor((4,), float32), tensor((), int64)
    zero = Graph((other_table, other_place), (E.cast(other_place, dtype=float32),), "zero")
    outer = [tensor((4,), float32), tensor((), int64)]
    graph = Graph([chosen, *outer], outputs_of(control.cond.node(chosen, *outer, true=reads, false=zero)))
    assert run(graph, np.array(False), np.zeros(4, np.float32), np.int64(9))[0] == 9
    with pytest.raises(IndexError, match="index 9 is out of range"):
        run(graph, np.array(True), np.zeros(4, np.float32), np.int64(9))


def test_what_stops_a_program_leaves_its_inputs() -> None:
    x, place = tensor(), tensor((2,), int64, "place")
    graph = Graph((x, place), (E.add(x, 1.0), I.take(x, place, axis=0)))
    entry = ENGINE.compile(graph, {0: 0})
    state = held(np.zeros(3, np.float32))
    entry(state, held(np.array([0, 2])))
    with pytest.raises(IndexError, match="index -4 is out of range for axis 0 of size 3"):
        entry(state, held(np.array([0, -4])))
    assert buffers.to_array(state, x.type).tolist() == [1, 1, 1]


# Host steps.


def test_the_host_computes_what_xla_has_not() -> None:
    a = tensor((3, 3), float64, "a")
    values, vectors = outputs_of(eig.node(E.add(a, 1.0)))
    graph = Graph((a,), (values, E.mul(vectors, vectors), E.mul(a, 2.0)), "spectrum")
    assert [(n.op, why) for n, why in ENGINE.host_steps(graph)] == [("eig", "XLA has no eig")]
    agrees(graph, np.random.default_rng(0).normal(size=(3, 3)))
    kinds = [step.kind for step in ENGINE.account(graph).steps]
    assert kinds == ["kernel", "host"]
    entry = ENGINE.compile(graph, {2: 0})
    state = held(np.eye(3))
    with ENGINE.tracing() as trace:
        entry(state)
    assert buffers.to_array(state, a.type).tolist() == (2 * np.eye(3)).tolist()
    assert sorted({e.step.kind for e in trace.events}) == ["host", "kernel"]


def test_host_steps_inside_of_control_flow_are_refused_with_the_line() -> None:
    i, a = tensor((), int64, "i"), tensor((2, 2), float64, "a")
    with at(Where("user.py", 12)):
        vectors = outputs_of(eig.node(a))[1]
    body = Graph((i, a), (E.add(i, 1), E.mul(a, 2.0)), "body")
    wrong = Graph((i, a), (E.add(i, 1), E.cast(vectors, dtype=float64)), "body")
    test = Graph((i, a), (E.lt(i, 3),), "test")
    outer = [tensor((), int64), tensor((2, 2), float64)]
    agrees(
        Graph(outer, outputs_of(control.while_loop.node(*outer, test=test, body=body, carried=2))),
        np.int64(0),
        np.eye(2),
    )
    graph = Graph(outer, outputs_of(control.while_loop.node(*outer, test=test, body=wrong, carried=2)))
    with pytest.raises(Unsupported, match=r"cannot run eig inside of control flow[^$]*user.py:12"):
        ENGINE.compile(graph)


def test_decompositions_run_on_the_device() -> None:
    a = tensor((4, 4), float64, "a")
    graph = Graph((a,), outputs_of(decompositions.lu.node(a)))
    assert not ENGINE.host_steps(graph)


# Buffers.


def content(buffer: Any, *shape: int) -> Any:
    return buffers.to_array(buffer, tensor_type(shape, float32))


def test_contents_stay_on_the_device_until_asked_for() -> None:
    x = tensor()
    double = ENGINE.compile(Graph([x], [E.mul(x, 2.0)]))
    state = held(np.array([1, 2, 3], np.float32))
    found = double(double(state))
    assert isinstance(found, Held) and found.host is None and state.host is None
    assert buffers.number(found, x.type) == 4.0 and found.host is None
    array = content(found, 3)
    assert array.tolist() == [4, 8, 12] and found.found is None
    # What is written into an array that is alive is the content.
    array[0] = 1
    assert content(double(found), 3).tolist() == [2, 16, 24] and found.found is None
    del array
    assert content(double(found), 3).tolist() == [2, 16, 24]
    assert found.host is None and found.found is not None


def test_memory_from_outside_stays_where_it_is() -> None:
    x = tensor()
    add = ENGINE.compile(Graph([x], [E.add(x, 1.0)]), {0: 0})
    outside = np.zeros(3, np.float32)
    for buffer in (Held(buffers.share(outside)), buffers.share(outside)):
        assert add(buffer) is buffer and not buffers.is_own(buffer)
    assert outside.tolist() == [2, 2, 2]
    seen = held(np.zeros(3, np.float32))
    array = content(seen, 3)
    add(seen)
    assert array.tolist() == [1, 1, 1], "an array that is alive shows what is written"


def test_two_buffers_never_share_an_array() -> None:
    x, y = tensor(name="x"), tensor(name="y")
    passed = ENGINE.compile(Graph([x, y], [x, E.add(y, 0.0), x]), {1: 1})
    a, b = held(np.ones(3, np.float32)), held(np.zeros(3, np.float32))
    first, _, second = passed(a, b)
    assert len({id(v.found) for v in (a, b, first, second)}) == 4
    both = ENGINE.compile(Graph([x, y], [E.add(x, y), E.mul(x, 2.0)]), {0: 0})
    both(a, a)
    assert content(a, 3).tolist() == [2, 2, 2] and content(first, 3).tolist() == [1, 1, 1]
    other = buffers.copy(b, x.type)
    both(b, held(np.ones(3, np.float32)))
    assert content(other, 3).tolist() == [0, 0, 0] and content(b, 3).tolist() == [1, 1, 1]


def test_a_buffer_can_be_seen_as_another_type() -> None:
    x = tensor((4,), float32)
    made = ENGINE.compile(Graph([x], [E.add(x, 0.0)]))(held(np.arange(4, dtype=np.float32)))
    square = tensor((2, 2), float32)
    found = ENGINE.compile(Graph([square], [E.mul(square, 2.0)]))(made)
    assert content(found, 2, 2).tolist() == [[0, 2], [4, 6]]


def test_what_is_on_the_device_is_accounted() -> None:
    x = tensor((1 << 18,), float32)
    entry = ENGINE.compile(Graph([x], [E.add(x, 1.0)]))
    given = held(np.zeros(1 << 18, np.float32))
    before = ENGINE.memory()
    found = entry(given)
    after = ENGINE.memory()
    assert after.allocated - before.allocated == 1 << 20 and after.most_allocated >= after.allocated
    del found
    assert ENGINE.memory().allocated == before.allocated
    ENGINE.reset_peak(allocated=True, reserved=True)


def test_all_that_was_started_is_waited_for() -> None:
    x = tensor((256, 256), float32)
    found = ENGINE.compile(Graph([x], [E.exp(x)]))(held(np.zeros((256, 256), np.float32)))
    ENGINE.synchronize()
    assert isinstance(found, Held) and found.found.is_ready()
