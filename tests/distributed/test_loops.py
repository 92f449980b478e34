"""Networks with loops and conditions that data decide, trained by ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.prims.control_flow.control import while_loop
from mycel._src.compiler.prims.custom_derivatives import all_nodes
from mycel._src.compiler.prims.distributed.collectives import COLLECTIVES
from mycel._src.compiler.transport import thread_ranks
from mycel._src.staging.distributed import Layouts, Pipeline, distribute

TIMES, BATCH, WIDTH = 4, 130, 24
SEQUENCE = np.random.default_rng(0).normal(size=(TIMES, BATCH, WIDTH)).astype("f4")


class Recurrent(nn.Cell):
    """A recurrence that centres its states over the batch, branches by their spread, and shrinks
    them until they are small.
    """

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(1)
        self.w, self.u = (
            ms.Parameter(ms.Tensor(0.2 * random.normal(size=(WIDTH, WIDTH)), ms.float32), name=name) for name in "wu"
        )

    def construct(self, x: Any, length: Any, limit: Any) -> Any:
        h = ops.zeros((x.shape[1], WIDTH), ms.float32)
        t = ms.Tensor(0, ms.int64)
        while t < length:
            h = ops.tanh(ops.matmul(x[t], self.w) + ops.matmul(h, self.u))
            h = h - h.mean(0)
            if h.std() > limit:
                h = h * 0.9
            else:
                h = h + h.mean()
            t = t + 1
        while (h * h).sum() > limit * 100:
            h = h * 0.8
        return h


def trained(wrap: Callable[[Any], Any]) -> tuple[list[float], list[np.ndarray], Any]:
    net = Recurrent()
    update = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    derive = ms.value_and_grad(lambda x, n, m: (net(x, n, m) ** 2).mean(), None, update.parameters)

    def step(x: Any, n: Any, m: Any) -> Any:
        value, gradients = derive(x, n, m)
        update(gradients)
        return value

    wrapped = wrap(step)
    given = ms.Tensor(SEQUENCE), ms.Tensor(TIMES, ms.int64), ms.Tensor(0.5, ms.float32)
    return [float(wrapped(*given)) for _ in range(3)], [p.asnumpy() for p in net.trainable_params()], wrapped


@pytest.mark.parametrize("count", [2, 3, 4])
def test_loops_are_trained_as_on_one_device(count: int) -> None:
    losses, values, _ = trained(ms.jit)
    ways = Layouts(Mesh((count,), ("data",)), [(None, "data"), (), ()])
    ranks = thread_ranks.run(count, lambda rank: trained(lambda s: distribute(s, ways)))
    for found, own, _ in ranks:
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        for a, b in zip(own, values):
            np.testing.assert_allclose(a, b, atol=5e-5)
    graph = ranks[0][2].planned(*[ms.Tensor(v) for v in (SEQUENCE, np.int64(TIMES), np.float32(0.5))]).graph
    loops = [n for n in graph.nodes if n.prim is while_loop]
    rows = -(-BATCH // count)
    assert len(loops) == 2 and all((rows, WIDTH) in [i.shape for i in n.inputs] for n in loops)
    assert any(n.prim in COLLECTIVES for n in all_nodes(loops[0].params["body"]))


class Centred(nn.Cell):
    """Rounds of a product, each centred over the batch."""

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(1)
        self.u = ms.Parameter(ms.Tensor(0.2 * random.normal(size=(WIDTH, WIDTH)), ms.float32), name="u")

    def construct(self, h: Any) -> Any:
        t = ms.Tensor(0, ms.int64)
        while t < 3:
            h = ops.tanh(ops.matmul(h, self.u))
            h = h - h.mean(0)
            t = t + 1
        return h


def test_stages_of_a_pipeline_have_loops_of_their_own() -> None:
    """Each stage is divided among two ranks, which exchange values in its loop."""
    batch = np.random.default_rng(2).normal(size=(256, WIDTH)).astype("f4")

    def losses(wrap: Callable[[Any], Any]) -> list[float]:
        net = nn.SequentialCell(Centred(), nn.Dense(WIDTH, WIDTH, weight_init="ones", has_bias=False), Centred())
        update = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        derive = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, update.parameters)

        def step(x: Any) -> Any:
            value, gradients = derive(x)
            update(gradients)
            return value

        step = wrap(step)
        return [float(step(ms.Tensor(batch))) for _ in range(2)]

    mesh = Mesh((2,), ("data",))
    one = Pipeline(stages=1, micro_batches=2)
    ways = Pipeline(stages=2, micro_batches=2, schedule="1f1b", cuts=["1"])
    wanted = losses(lambda step: distribute(step, Layouts(Mesh((1,), ("data",))), one))
    layouts = Layouts(mesh, [("data",)])
    for found in thread_ranks.run(4, lambda rank: losses(lambda step: distribute(step, layouts, ways))):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
