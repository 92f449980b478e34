"""Parameters that are gathered for each pass: the memory and the bytes of it, and equal results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.distributed import collectives
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.partition import WHOLE, Fusing, partition, sharding
from mycel._src.compiler.transport import thread_ranks
from mycel._src.engines.native.report.footprint import footprint
from mycel._src.foundation.dtype import bfloat16, float16, float32
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.settings.parallel_settings import current
from mycel._src.staging.distributed import Layouts, distribute
from mycel._src.staging.distributed.parallel_modes import distributed

LAYERS, SIZE, ROWS = 8, 192, 16
MESH = Mesh((2,), ("data",))
WEIGHT = SIZE * SIZE * 4


class Attention(nn.Cell):
    """Products of one value beside each other, of unlike lengths of the ways behind them."""

    def __init__(self, made: Callable[[], nn.Cell]) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = made(), made(), made(), made()

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        weights = ops.softmax(ops.matmul(self.q(x), self.k(x).T) / SIZE**0.5, -1)
        return x + self.out(ops.matmul(weights, self.v(x)))


def step(again: Any = False, marked: bool = False, attends: bool = False) -> tuple[Any, ms.Tensor, nn.Cell]:
    """A training step with all parameters divided, its batch, and its network: of dense layers, or
    of those of attention.
    """
    random = np.random.default_rng(0)

    def dense() -> nn.Cell:
        weight = ms.Tensor((random.normal(size=(SIZE, SIZE)) / SIZE**0.5).astype("f4"))
        return nn.Dense(SIZE, SIZE, weight_init=weight, has_bias=False)

    cells = [f() for _ in range(LAYERS) for f in (dense, nn.Tanh)]
    net = nn.SequentialCell(*[Attention(dense) for _ in range(LAYERS // 2)] if attends else cells)
    for parameter in net.get_parameters():
        parameter.parallel_optimizer_comm_recompute = marked
    update = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    derive = ms.value_and_grad(lambda x: ops.square(net(x)).mean(), None, update.parameters)

    def train(x: ms.Tensor) -> ms.Tensor:
        loss, gradients = derive(x)
        update(gradients)
        return loss

    divided = lambda p: ("data",) if p.shape else None
    layouts = Layouts(MESH, [("data",)], divided, fusing=Fusing(WEIGHT, WEIGHT), gather_again=again)
    made = distribute(train, layouts)
    return made, ms.Tensor(random.normal(size=(ROWS, SIZE)).astype("f4")), net


def planned(*args: Any) -> tuple[Graph, dict[int, int]]:
    """The graph of a rank, and the inputs that its outputs replace."""
    made, x, _ = step(*args)
    found = made.planned(x)
    return found.graph, found.aliases


def gathers(graph: Graph) -> int:
    return sum(n.prim is collectives.all_gather and n.type.size == SIZE * SIZE for n in graph.nodes)


def test_the_memory_of_a_rank_holds_few_gathered_weights() -> None:
    kept, again = planned(), planned(True)
    assert gathers(kept[0]) == LAYERS
    # In the last layer both passes meet; the first one needs no gradient of what it is given.
    assert gathers(again[0]) == 2 * LAYERS - 2
    before, after = (footprint(*g).arena for g in (kept, again))
    assert before >= LAYERS * WEIGHT and after <= 6 * WEIGHT < 0.75 * before


def test_products_beside_each_other_are_gathered_again() -> None:
    kept, again = planned(False, False, True), planned(True, False, True)
    # The last two of the last layer are used by both passes at once.
    assert gathers(kept[0]) == 2 * LAYERS < gathers(again[0])
    assert footprint(*again).arena < 0.75 * footprint(*kept).arena
    losses = []
    for way in (False, True):
        function, x, _ = step(way, attends=True)
        losses.append(thread_ranks.run(2, lambda rank, f=function, x=x: [float(f(x)) for _ in range(3)]))
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)


def test_the_account_of_a_function_is_that_of_a_rank() -> None:
    made, x, net = step(True)
    program = made.planned(x)
    found, account = ms.estimate(made, x), ms.explain(made, x)
    assert found.footprint == account.memory[0] == footprint(program.graph, program.aliases)
    assert found.arguments == x.nbytes / 2
    # Weights and moments, and small states.
    divided = 2 * sum(p.nbytes for p in net.get_parameters()) / 2
    assert divided <= found.captured <= divided + 64


def test_messages_are_those_of_the_graph() -> None:
    sent = []
    for again in (False, True):
        function, x, _ = step(again)
        found = thread_ranks.run(2, lambda rank, f=function, x=x: f.divided(x).made if rank == 0 else None)[0]
        sent.append(found.sent)
    assert sent[1] - sent[0] == (LAYERS - 2) * WEIGHT / 2


def test_a_parameter_or_a_function_may_ask_for_it() -> None:
    assert gathers(planned(False, True)[0]) == 2 * LAYERS - 2
    assert gathers(planned(lambda p: p.name == "2.weight")[0]) == LAYERS + 1


def test_results_are_those_of_weights_that_are_kept() -> None:
    def program(again: bool) -> Any:
        function, x, net = step(again)
        return [float(function(x)) for _ in range(3)], [p.asnumpy() for p in net.get_parameters()]

    (losses, states), (others, values) = (thread_ranks.run(2, lambda rank, a=a: program(a))[0] for a in (False, True))
    assert losses == others and all(np.array_equal(a, b) for a, b in zip(states, values))


@pytest.mark.parametrize("level, count", [("level1", LAYERS), ("level3", 2 * LAYERS - 2)])
def test_level_3_of_the_parallel_optimizer_gathers_again(level: str, count: int) -> None:
    net = step()[2]
    loss = lambda x: ops.square(net(x)).mean()
    derive = ms.jit(ms.value_and_grad(loss, None, net.trainable_params()))
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel",
        device_num=2,
        enable_parallel_optimizer=True,
        parallel_optimizer_config={"optimizer_level": level, "parallel_optimizer_threshold": 0},
    )
    try:
        # A large batch, so that weights are moved and not activations.
        graph = distributed(derive, current()).planned(ops.ones((1024, SIZE))).graph
    finally:
        ms.reset_auto_parallel_context()
    used = {i for n in graph.nodes for i in n.inputs}
    assert (
        sum(n in used for n in graph.nodes if n.prim is collectives.all_gather and n.type.size == SIZE * SIZE) == count
    )


@pytest.mark.parametrize("kind", [float16, bfloat16])
def test_sums_of_gradients_may_be_made_in_float32(kind: Any) -> None:
    x, c, w = (input_node(tensor_type(s, kind), n) for s, n in (((4, 8), "x"), ((8, 6), "c"), ((4, 6), "w")))
    loss = E.tanh(matmul(c, input_node(tensor_type((6, 2), kind), "v")))
    v = loss.inputs[0].inputs[1]
    graph = Graph([x, c, w, v], [E.sub(w, matmul(x, c)), loss])
    layouts = [
        sharding(MESH, (4, 8), (None, "data")),
        sharding(MESH, (8, 6), ("data",)),
        WHOLE,
        WHOLE,
    ]

    def kinds(how: str) -> tuple[list[Any], float]:
        made = partition(graph, MESH, layouts, [None, None], {0: 2}, wide_sums=how)
        return [n.dtype for n in made.graph.nodes if n.prim is collectives.all_reduce], made.sent

    assert kinds("") == ([kind], 48.0)
    assert kinds("gradients") == kinds("all") == ([float32], 96.0)


def test_sums_that_are_no_gradients_stay_narrow() -> None:
    x, w = (input_node(tensor_type(s, float16), n) for s, n in (((4, 8), "x"), ((8, 6), "w")))
    layouts = [sharding(MESH, (4, 8), (None, "data")), sharding(MESH, (8, 6), ("data",))]
    graph = Graph([x, w], [E.tanh(matmul(x, w)), E.mul(w, 2.0)])
    for how, kind in (("gradients", float16), ("all", float32)):
        made = partition(graph, MESH, layouts, [WHOLE, None], {1: 1}, wide_sums=how)
        assert [n.dtype for n in made.graph.nodes if n.prim is collectives.all_reduce] == [kind]


def test_other_words_are_refused() -> None:
    with pytest.raises(ValueError, match="wide_sums"):
        Layouts(MESH, wide_sums="some")
    with pytest.raises(CompileError, match="divided among 2 ranks"):
        step()[0].divided(ms.Tensor(np.ones((ROWS, SIZE), np.float32)))
