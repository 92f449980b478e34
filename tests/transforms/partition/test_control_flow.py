"""Loops, conditions and their gradients, divided, compute what they compute undivided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant, outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.control_flow.while_gradient import while_grad
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.recurrence import entry_at
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.compiler.transforms.partition import Sharding, divisions_of, partition
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import DType, float32, int32, int64
from tests.transforms.partition.support import bytes_sent, check, close, kinds, layouts, run_ranks
from tests.transforms.partition.test_random import Divisible, random_layout
from tests.transforms.support import random_inputs

DP, TP, BOTH = Mesh((2,), ("dp",)), Mesh((3,), ("tp",)), Mesh((2, 2), ("dp", "tp"))
MESHES = (Mesh((2,), ("x",)), Mesh((3,), ("x",)), Mesh((2, 2), ("x", "y")))


def total(x: Node) -> Node:
    return R.reduce_sum(x, axes=tuple(range(x.type.rank)), keepdims=False)


# Programs at random.


class Flowing(Divisible):
    """Random graphs with loops and conditions, which hold such graphs again."""

    depth = 0

    def __init__(self, seed: int, dtype: DType) -> None:
        super().__init__(seed, dtype, 8)
        self.operations = [*self.operations, *[self.looped] * 8, *[self.branched] * 4]

    def inside(self, inputs: list[Node], results: list[Any]) -> list[Node]:
        """Values of the types `results` of a random graph of `inputs`, the last of them a state."""
        before = self.pool, self.state
        self.pool, self.state = inputs[:-1], inputs[-1]
        self.depth += 1
        for _ in range(4):
            self.pool.append(self.operations[self.draw(len(self.operations))]())
        found = [self.fitted(self.pick(), t) for t in results]
        self.depth -= 1
        self.pool, self.state = before
        return found

    def fitted(self, x: Node, type: Any) -> Node:
        if x.type != type:
            like = next((n for n in self.pool if n.type == type), None)
            x = E.add(S.full(type.shape, 1, self.dtype) if like is None else like, total(x))
        return x if self.dtype.is_integer else E.sin(x)

    def looped(self) -> Node:
        if self.depth > 1:
            return self.pick()
        values, fixed = [self.pick(), self.pick()], [self.pick(), self.pick(), self.state]
        operands = [constant(0, int64), *values, *fixed]
        graphs = []
        for name in ("test", "body"):
            inputs = [input_node(n.type) for n in operands]
            if name == "test":
                going: Node = E.lt(inputs[0], self.draw(4))
                if not self.draw(3):
                    size = total(E.abs_(inputs[1]))
                    going = E.logical_and(going, E.lt(size, 40))
                graphs.append(Graph(inputs, [going], name))
            else:
                made = self.inside(inputs[1:], [v.type for v in values])
                graphs.append(Graph(inputs, [E.add(inputs[0], 1), *made], name))
        loop = control.while_loop.node(*operands, test=graphs[0], body=graphs[1], carried=3)
        return outputs_of(loop)[1 + self.draw(2)]

    def branched(self) -> Node:
        if self.depth > 1:
            return self.pick()
        x = self.pick()
        pred = E.lt(total(x), 1)
        operands, results = [x, self.pick(), self.state], [self.pick().type, x.type]
        graphs = []
        for name in ("true", "false"):
            inputs = [input_node(n.type) for n in operands]
            graphs.append(Graph(inputs, self.inside(list(inputs), results), name))
        return outputs_of(control.cond.node(pred, *operands, true=graphs[0], false=graphs[1]))[self.draw(2)]


def drawn(seed: int, dtype: DType) -> Graph:
    """A random program, and its gradients where it computes with floats."""
    graph = Flowing(seed, dtype).graph()
    if dtype is not float32:
        return graph
    outputs = [o for o in graph.outputs if o.dtype is float32]
    wrt = graph.inputs[:-1]
    found = vjp(outputs, [S.full(o.shape, 1, float32) for o in outputs], wrt)
    return Graph(graph.inputs, [*graph.outputs, *[g for g in found if g is not None]], graph.name)


def trial(seed: int, dtype: DType, mesh: Mesh) -> None:
    graph = drawn(seed, dtype)
    rng = np.random.default_rng(seed)
    arrays = random_inputs(graph, seed)
    inputs = [random_layout(rng, mesh, n.type.shape) for n in graph.inputs[:-1]]
    outputs: list[Sharding | None] = [
        random_layout(rng, mesh, n.type.shape) if rng.integers(0, 2) else None for n in graph.outputs
    ]
    made = partition(graph, mesh, [*inputs, Sharding()], outputs)
    again = partition(graph, mesh, [*inputs, Sharding()], outputs)
    assert [n.op for n in made.graph.nodes] == [n.op for n in again.graph.nodes]
    assert all(o is None or o == m for o, m in zip(outputs, made.outputs))
    with np.errstate(all="ignore"):
        expected = evaluate(graph, arrays)
        close(run_ranks(made, arrays), expected, 1e-4)


@pytest.mark.parametrize("mesh", MESHES, ids=lambda m: "x".join(map(str, m.sizes)))
@pytest.mark.parametrize("dtype", [float32, int32], ids=str)
def test_random_programs(dtype: DType, mesh: Mesh) -> None:
    for seed in range(6):
        trial(seed, dtype, mesh)


# Loops.


def inputs_of(**shapes: Any) -> list[Node]:
    return [input_node(tensor_type(s, float32), name) for name, s in shapes.items()]


def arrays_of(graph: Graph) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(n.shape).astype(np.float32) for n in graph.inputs]


def loop_of(count: Any, values: list[Node], fixed: list[Node], step: Any, going: Any = None) -> list[Node]:
    """A loop of `count` rounds, which counts; its values after the last one."""
    operands = [constant(0, int64), *values, *fixed]
    graphs = []
    for name in ("test", "body"):
        inputs = [input_node(n.type) for n in operands]
        counter, inner = inputs[0], inputs[1:]
        if name == "test":
            results = [E.lt(counter, count) if going is None else going(counter, *inner)]
        else:
            made = step(counter, *inner)
            results = [E.add(counter, 1), *(made if isinstance(made, list) else [made])]
        graphs.append(Graph(inputs, results, name))
    loop = control.while_loop.node(*operands, test=graphs[0], body=graphs[1], carried=1 + len(values))
    return list(outputs_of(loop))[1:]


def recurrent(steps: int = 5, inside: int = 3, width: int = 4) -> tuple[Graph, list[Node]]:
    """The loss of a recurrent network over a sequence, and its weights."""
    x, w, u = inputs_of(x=(steps, 6, inside), w=(inside, width), u=(width, width))

    def step(t: Node, h: Node, x: Node, w: Node, u: Node) -> Node:
        return E.tanh(E.add(matmul(entry_at(x, t), w), matmul(h, u)))

    (h,) = loop_of(steps, [S.full((6, width), 0, float32)], [x, w, u], step)
    return Graph([x, w, u], [total(E.mul(h, h))], "recurrent"), [w, u]


def with_gradients(graph: Graph, wrt: list[Node]) -> Graph:
    found = vjp(list(graph.outputs), [constant(1, float32)], wrt)
    return Graph(graph.inputs, [*graph.outputs, *found], graph.name)  # type: ignore[list-item]


def test_data_parallel_recurrence_reduces_gradients_once() -> None:
    graph = with_gradients(*recurrent())
    specs = layouts(DP, graph, [(None, "dp"), (), ()])
    made = check(graph, DP, specs, arrays_of(graph), [Sharding()] * 3)
    # The gradients, fused, and the loss beside them: behind the loops, which send nothing.
    assert kinds(made) == {"all_reduce": 1} and [m.times for m in made.messages] == [1] * 3
    inner = [n for n in made.graph.nodes if n.prim in (control.while_loop, while_grad)]
    assert [n.inputs[1].shape for n in inner] == [(3, 4), (3, 4)], "states that begin as zeros are divided"


def test_columns_of_weights_stay_where_they_are() -> None:
    """What moves in each round is the state, its cotangent and that of the sequence's entry, and no
    weight or gradient of one.
    """
    graph = with_gradients(*recurrent(5, 32, 64))
    mesh = Mesh((2,), ("tp",))
    specs = layouts(mesh, graph, [(), (None, "tp"), (None, "tp")])
    arrays = [0.1 * a for a in arrays_of(graph)]
    made = check(graph, mesh, specs, arrays, [Sharding(), *specs[1:]])
    moved = {(m.times, str(m.value)) for m in made.messages}
    assert moved == {(5, "float32[6, 64]"), (5, "float32[6, 32]"), (1, "float32[]")}
    assert sum(m.times == 5 for m in made.messages) <= 4


def test_stored_parts_are_gathered_before_the_loop() -> None:
    graph = with_gradients(*recurrent())
    specs = layouts(DP, graph, [(None, "dp"), (None, "dp"), ("dp",)])
    made = check(graph, DP, specs, arrays_of(graph), [Sharding(), *specs[1:]])
    assert all(m.times == 1 for m in made.messages)
    assert kinds(made) == {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 1}


def test_what_a_round_does_not_keep_is_whole() -> None:
    """A state that each round turns over moves twice a round; it is gathered once instead."""
    (x,) = inputs_of(x=(4, 4))
    (y,) = loop_of(8, [x], [], lambda t, x: E.sin(S.transpose(x, (1, 0))))
    graph = Graph([x], [y])
    made = check(graph, DP, layouts(DP, graph, [("dp",)]), arrays_of(graph))
    assert [(m.kind, m.times) for m in made.messages] == [("all_gather", 1)]


def test_ranks_agree_where_floats_decide() -> None:
    (x,) = inputs_of(x=(60, 40))
    far = lambda t, x: E.gt(total(E.mul(x, x)), 10.0)
    (y,) = loop_of(None, [x], [], lambda t, x: E.mul(x, 0.7), far)
    graph = Graph([x], [y])
    made = check(graph, DP, layouts(DP, graph, [("dp",)]), arrays_of(graph))
    (loop,) = [n for n in made.graph.nodes if n.prim is control.while_loop]
    sent = [n.params["op"] for n in loop.params["test"].nodes if n.op == "all_reduce"]
    assert sent == ["sum", "all"] and [m.times for m in made.messages] == [None, None]
    assert str(made.outputs[0]) == "0:dp" and not any(n.op == "all_reduce" for n in loop.params["body"].nodes)


def test_rounds_count_in_messages() -> None:
    """The mean over a batch is sent in each round of a loop in a loop, and in each test."""
    (x,) = inputs_of(x=(6, 4))
    inner = lambda t, x: loop_of(3, [x], [], lambda t, x: E.sub(E.sin(x), E.mul(total(x), 0.1)))
    (y,) = loop_of(4, [x], [], inner)
    graph = Graph([x], [y])
    made = check(graph, DP, layouts(DP, graph, [("dp",)]), arrays_of(graph))
    assert [(m.kind, m.times) for m in made.messages] == [("all_reduce", 12)]
    assert made.sent == bytes_sent(made) == 12 * 4


# Conditions.


def conditional(true: Any, false: Any, pred: Node, *operands: Node) -> list[Node]:
    graphs = []
    for name, make in (("true", true), ("false", false)):
        inputs = [input_node(n.type) for n in operands]
        graphs.append(Graph(inputs, [make(*inputs)], name))
    return list(outputs_of(control.cond.node(pred, *operands, true=graphs[0], false=graphs[1])))


@pytest.mark.parametrize("value", [0, 7])
def test_branches_are_divided(value: int) -> None:
    x, w = inputs_of(x=(6, 4), w=(4, 4))
    n = input_node(tensor_type((), int64), "n")
    (y,) = conditional(lambda x, w: matmul(x, w), lambda x, w: E.add(x, 1.0), E.lt(n, 3), x, w)
    graph = with_gradients(Graph([x, w, n], [total(E.mul(y, y))]), [x, w])
    arrays = [*arrays_of(graph)[:2], np.int64(value)]
    made = check(graph, DP, layouts(DP, graph, [("dp",), (), ()]), arrays, [Sharding(), None, Sharding()])
    assert str(made.outputs[1]) == "0:dp"
    conds = [n for n in made.graph.nodes if n.prim is control.cond]
    assert len(conds) == 2 and all(n.inputs[1].shape == (3, 4) for n in conds)
    assert {m.kind for m in made.messages} == {"all_reduce"}


@pytest.mark.parametrize("sign", [-1, 1])
def test_ranks_take_one_branch(sign: int) -> None:
    (x,) = inputs_of(x=(6, 4))
    (y,) = conditional(lambda x: E.mul(x, total(x)), lambda x: E.neg(x), E.gt(total(x), 0.0), x)
    graph = Graph([x], [y])
    arrays = [sign * np.abs(a) for a in arrays_of(graph)]
    made = check(graph, DP, layouts(DP, graph, [("dp",)]), arrays)
    assert kinds(made)["all_reduce"] == 2, "the condition's sum, and the agreement"
    assert str(made.outputs[0]) == "0:dp"


def test_plans_reach_into_loops() -> None:
    x, w = inputs_of(x=(6, 4), w=(4, 4))
    (y,) = loop_of(2, [x], [w], lambda t, x, w: matmul(x, w))
    graph = Graph([x, w], [y])
    (loop,) = [n for n in graph.nodes if n.prim is control.while_loop]
    (product,) = [n for n in loop.params["body"].nodes if n.prim is matmul]
    mesh = Mesh((2,), ("tp",))
    division = next(d for d in divisions_of(product, mesh) if str(d) == "1:tp")
    made = partition(graph, mesh, [Sharding(), Sharding()], [None], plan={product: division})
    close(run_ranks(made, arrays_of(graph)), evaluate(graph, arrays_of(graph)))
    assert any(m.times == 2 for m in made.messages)
