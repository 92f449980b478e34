"""What calls of divided functions send to the devices of one process: a value once, as long as it
is the same.

An engine is in force for a whole process, so these tests run in one of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed: pip install mycel[xla]")

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.engines import select
from mycel._src.staging.distributed import Layouts, Pipeline, distribute
from tests.distributed.test_kept_pieces import CHANGES, RANKS, batch, check_that_a_change_is_seen, layouts

ENGINE = select.engines()["xla"]

IN_FORCE = os.environ.get("MYCEL_ENGINE") == "xla"
on_xla = pytest.mark.skipif(not IN_FORCE, reason="it runs in the process that the first test starts")


@pytest.mark.skipif(IN_FORCE, reason="this is the process that it would start")
def test_in_a_process_of_its_own() -> None:
    flags = {"MYCEL_ENGINE": "xla", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", __file__],
        env={**os.environ, **flags},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is sent to the devices."""
    found: list[int] = []

    def spread(mesh: Mesh, parts: Any, of: Callable[..., Any] = ENGINE.spread) -> Any:
        found.append(sum(p.size for p in parts))
        return of(mesh, parts)

    monkeypatch.setattr(ENGINE, "spread", spread)
    return found


@on_xla
def test_what_is_read_is_sent_once(sent: list[int]) -> None:
    weight = ms.Parameter(np.ones((4, 6), np.float32), "weight")
    table = ms.Tensor(np.ones((4, 1), np.float32))
    infer = distribute(lambda x: ops.relu(x @ weight) + table.sum(), layouts(("data",)))
    infer(batch(4))
    sent.clear()
    for rows in (4, 4, 8, 4):
        infer(batch(rows))
    assert sent == [16, 16, 32, 16]


@on_xla
@pytest.mark.parametrize("change", list(CHANGES))
def test_who_ever_changes_a_value_is_seen(change: str) -> None:
    check_that_a_change_is_seen(change)


class Looking(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.table = ms.Tensor(np.ones((4, 6), np.float32))

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return x @ self.table


@on_xla
def test_a_tensor_that_is_kept_remains_what_it_was_to_programs(sent: list[int]) -> None:
    cell = Looking()
    infer = distribute(cell, Layouts(Mesh((RANKS,), ("data",)), [(None, "data")]))
    for rows in (4, 4, 8, 4):
        infer(batch(rows))
    assert len(infer.programs) == 2
    assert sorted(sent) == [16, 16, 16, 32, 48]
    cell.table = ms.Tensor(np.full((4, 6), 2.0, np.float32))
    np.testing.assert_allclose(infer(batch(4)).asnumpy(), batch(4).asnumpy() @ cell.table.asnumpy(), rtol=1e-6)
    assert len(infer.programs) == 2


@on_xla
def test_arrays_that_are_alive_are_seen() -> None:
    a = ms.Parameter(np.ones((4, 6), np.float32), "a")
    infer = distribute(lambda x: x @ a, layouts())
    x, array, _ = batch(4), a.asnumpy(), a.asnumpy().sum()
    for n in range(3):
        array[n] = n + 5.0
        np.testing.assert_allclose(infer(x).asnumpy(), x.asnumpy() @ array, rtol=1e-5)


@on_xla
def test_a_pipeline_sends_what_it_reads_once(sent: list[int]) -> None:
    frozen, net = ms.Parameter(np.ones((4, 4), np.float32), "frozen", False), nn.Dense(4, 2)
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(lambda x: net(ops.relu(x @ frozen)).sum(), None, optimizer.parameters)

    def step(x: ms.Tensor) -> ms.Tensor:
        loss, gradients = gradient(x)
        optimizer(gradients)
        return loss

    divided = distribute(step, Layouts(Mesh((1,), ("data",))), Pipeline(2, 2))
    divided(batch(4))
    sent.clear()
    for _ in range(2):
        divided(batch(4))
    assert set(sent) == {16}
    assert len(sent) <= 4
