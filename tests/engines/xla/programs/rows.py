"""Two ranks with two devices each train a network on all of them, and alone; or one of them fails.

rows.py trains|sleeps|leaves|differs|dies
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.staging.distributed import Layouts, distribute
from mycel.communication import get_group_size, get_rank, init

X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
Y = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32)


def trained(rows: Any, mesh: Any = None) -> tuple[list[float], dict[str, np.ndarray]]:
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(6, 16), nn.ReLU(), nn.Dense(16, 4))
    if mesh == "marked":
        net[0].matmul.shard(((2, 1), (2, 1)))
    update = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    derive = ms.value_and_grad(lambda a, b: ((net(a) - b) ** 2).mean(), None, update.parameters)

    def step(a: Any, b: Any) -> Any:
        loss, gradients = derive(a, b)
        update(gradients)
        return loss

    if isinstance(mesh, Layouts):
        step = distribute(step, mesh)
    else:
        step = ms.jit(step)
    losses = [float(step(ms.Tensor(X[rows]), ms.Tensor(Y[rows]))) for _ in range(4)]
    return losses, {k: p.asnumpy() for k, p in net.parameters_dict().items()}


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5)
    for name, value in wanted[1].items():
        np.testing.assert_allclose(found[1][name], value, atol=5e-5)


def trains(rank: int, own: slice) -> None:
    wanted = trained(slice(None))
    grid = Mesh((2, 2), ("dp", "tp"))
    rows = [("dp",), ("dp",)]
    same(trained(slice(None), Layouts(grid, rows, {"0.weight": ("tp",)})), wanted)
    same(trained(own, Layouts(grid, rows, {"2.weight": ("dp", "tp")}, parts=True)), wanted)
    line = Layouts(Mesh((4,), ("all",)), [("all",), ("all",)], lambda p: ("all",) if p.ndim else None, parts=True)
    same(trained(own, line), wanted)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="data_parallel")
    assert ms.get_auto_parallel_context("device_num") == 4
    same(trained(own, "marked"), wanted)
    ms.reset_auto_parallel_context()
    # Processes remain ranks of everything else.
    total = ops.AllReduce()(ms.Tensor([rank + 1.0]))
    assert total.asnumpy().tolist() == [3.0]
    among = distribute(lambda v: v.sum(), Layouts(Mesh((2,), ("dp",)), [("dp",)]))
    assert abs(float(among(ms.Tensor(X))) - X.sum()) < 1e-4
    turned = Layouts(Mesh((4,), ("dp",), (0, 2, 1, 3)), [("dp",)], parts=True)
    try:
        distribute(lambda v: v * 2, turned)(ms.Tensor(X[own]))
    except ValueError as error:
        print(error)
    given = distribute(lambda v: v[0], Layouts(Mesh((4,), ("dp",)), [("dp",)], parts=True))(ms.Tensor(X[own]))
    assert np.array_equal(given.asnumpy(), X[0])
    same_one = distribute(lambda v: v, Layouts(Mesh((4,), ("dp",)), [("dp",)], parts=True))(ms.Tensor(X[own]))
    assert np.array_equal(same_one.asnumpy(), X)
    try:
        distribute(lambda v: v[ms.Tensor(9)], Layouts(Mesh((4,), ("dp",)), [(None, None)]))(ms.Tensor(X))
    except IndexError as error:
        print("IndexError", error)
    print("trained", rank)


def fails(rank: int, how: str) -> None:
    line = Layouts(Mesh((4,), ("all",)), [("all",)])
    double = distribute(lambda v: (v * 2).sum(), line)
    float(double(ms.Tensor(X)))
    if rank == 1:
        print("fails at", time.time(), flush=True)
        if how == "sleeps":
            time.sleep(1000)
        if how == "leaves":
            sys.exit(0)
        if how == "differs":
            distribute(lambda v: v.max(), line)(ms.Tensor(X))
        if how == "dies":
            os.kill(os.getpid(), 9)
    for _ in range(10**9):
        float(double(ms.Tensor(X)))


def main(how: str) -> None:
    ms.set_context(device_target="CPU")  # before the ranks have met
    init()
    rank, ranks = get_rank(), get_group_size()
    if how == "trains":
        trains(rank, slice(rank * 8 // ranks, (rank + 1) * 8 // ranks))
    else:
        fails(rank, how)


if __name__ == "__main__":
    main(sys.argv[1])
