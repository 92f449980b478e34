"""What calls of divided functions cut and gather: a value once, as long as it is the same."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transport import thread_ranks
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.staging.distributed import Layouts, distribute, rank_executors, sharded_tensors

RANKS = 2


def layouts(*inputs: Any) -> Layouts:
    return Layouts(Mesh((RANKS,), ("data",)), inputs, lambda p: ("data",) if p.ndim else None)


def ranks(function: Callable[[int], Any]) -> list[Any]:
    return list(thread_ranks.run(RANKS, function))


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """How often each rank has cut values and gathered parts."""
    found = {"cuts": [0] * RANKS, "joins": [0] * RANKS}

    def counted(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            found[kind][transport().rank] += 1
            return function(*args)

        return call

    monkeypatch.setattr(rank_executors, "shard", counted("cuts", rank_executors.shard))
    monkeypatch.setattr(sharded_tensors, "_gathered", counted("joins", sharded_tensors._gathered))
    return found


def batch(rows: int) -> ms.Tensor:
    return ms.Tensor(np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4))


def test_what_is_read_is_cut_once(counts: dict[str, list[int]]) -> None:
    def rank(_: int) -> None:
        weight = ms.Parameter(np.ones((4, 6), np.float32), "weight")
        table = ms.Tensor(np.ones((4, 1), np.float32))
        infer = distribute(lambda x: ops.relu(x @ weight) + table.sum(), layouts())
        infer(batch(4))
        before = counts["cuts"][transport().rank]
        assert before >= 1
        for _ in range(3):
            infer(batch(4))
        infer(batch(8))
        assert counts["cuts"][transport().rank] == before

    ranks(rank)
    assert counts["joins"] == [0] * RANKS


CHANGES: dict[str, Callable[[ms.Parameter], Any]] = {
    "set_data": lambda p: p.set_data(ms.Tensor(np.full((4, 6), 3.0, np.float32))),
    "assign": lambda p: ops.assign(p, ms.Tensor(np.full((4, 6), 3.0, np.float32))),
    "an index": lambda p: p.__setitem__((1, 2), 7.0),
    "in place": lambda p: p.add_(2.0),
    "an array": lambda p: p.asnumpy().__setitem__(0, 5.0),
    "a view": lambda p: p[1].__setitem__(slice(None), 4.0),
    "a reshaped view": lambda p: p.reshape(-1).__setitem__(3, 4.0),
    "a compiled function": lambda p: ms.jit(lambda: ops.assign(p, p * 2))(),
    "load_param_into_net": lambda p: ms.load_param_into_net(
        Holding(p), {"weight": ms.Parameter(np.full((4, 6), 9.0, np.float32), "weight")}
    ),
    "an optimizer": lambda p: nn.SGD([p], 0.5)((ms.Tensor(np.ones((4, 6), np.float32)),)),
    "a divided function": lambda p: distribute(lambda: ops.assign(p, p * 3), layouts())(),
}


class Holding(nn.Cell):
    def __init__(self, weight: ms.Parameter) -> None:
        super().__init__()
        self.weight = weight


def check_that_a_change_is_seen(change: str) -> None:
    """Two divided functions give other results once a parameter that they read has been changed."""
    weight = ms.Parameter(np.arange(24, dtype=np.float32).reshape(4, 6), "weight")
    infer = distribute(lambda x: x @ weight, layouts())
    other = distribute(lambda x: (x * 2) @ weight, Layouts(Mesh((RANKS,), ("data",)), [("data",)]))
    x = batch(4)
    for _ in range(2):
        first = infer(x).asnumpy().copy()
        other(x)
    CHANGES[change](weight)
    found, second = infer(x).asnumpy().copy(), other(x).asnumpy().copy()
    want = x.asnumpy() @ weight.asnumpy()
    assert not np.allclose(first, want)
    np.testing.assert_allclose(found, want, rtol=1e-5)
    np.testing.assert_allclose(second, 2 * want, rtol=1e-5)


@pytest.mark.parametrize("change", list(CHANGES))
def test_who_ever_changes_a_value_is_seen(change: str) -> None:
    ranks(lambda _: check_that_a_change_is_seen(change))


def test_arrays_and_views_that_are_alive_are_seen() -> None:
    def rank(_: int) -> None:
        given = np.ones((4, 6), np.float32)
        tensors = [ms.Parameter(np.ones((4, 6), np.float32), "a"), ms.Tensor(np.ones((4, 6), np.float32))]
        tensors.append(ms.Tensor.from_numpy(given))
        a, b, c = tensors
        infer = distribute(lambda x: x @ a + x @ b + x @ c, layouts())
        x = batch(4)
        arrays, row = [a.asnumpy(), b.asnumpy(), given], b[2:]
        for n in range(3):
            for array in arrays:
                array[n] = n + 5.0
            row[0] = -float(n)
            want = sum(x.asnumpy() @ t.asnumpy() for t in tensors)
            np.testing.assert_allclose(infer(x).asnumpy(), want, rtol=1e-5)

    ranks(rank)


def test_a_captured_view_follows_its_root() -> None:
    def rank(_: int) -> None:
        root = ms.Tensor(np.ones((2, 4, 6), np.float32))
        views = [root[1], root.reshape(8, 6)]
        infer = distribute(lambda x: x @ views[0] + ops.concat([x, x], 1) @ views[1], layouts())
        x = batch(4)
        for n in range(3):
            root[n % 2] = n + 2.0
            want = x.asnumpy() @ root.asnumpy()[1] + np.tile(x.asnumpy(), 2) @ root.asnumpy().reshape(8, 6)
            for _ in range(2):
                np.testing.assert_allclose(infer(x).asnumpy(), want, rtol=1e-5)

    ranks(rank)


def test_pieces_go_with_the_program_and_the_tensor() -> None:
    def rank(_: int) -> None:
        weight = ms.Parameter(np.ones((4, 6), np.float32), "weight")
        infer = distribute(lambda x: x @ weight, layouts())
        infer(batch(4))
        pieces = weight.__dict__["_pieces"]
        assert len(pieces) == 1
        del infer
        gc.collect()
        assert not pieces
        weight.asnumpy()
        assert type(weight) is ms.Parameter and "_pieces" not in weight.__dict__

    ranks(rank)


def test_a_batch_of_another_size_leaves_parameters_divided(counts: dict[str, list[int]]) -> None:
    def rank(_: int) -> None:
        net = nn.SequentialCell(nn.Dense(4, 6), nn.ReLU(), nn.Dense(6, 2))
        optimizer = nn.Adam(net.trainable_params(), 0.01)
        gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)

        def step(x: ms.Tensor) -> ms.Tensor:
            loss, gradients = gradient(x)
            optimizer(gradients)
            return loss

        divided = distribute(step, layouts())
        here = transport().rank
        divided(batch(4))
        before = counts["cuts"][here]
        for rows in (4, 8, 4, 2, 8):
            divided(batch(rows))
        assert counts["cuts"][here] == before and counts["joins"][here] == 0
        assert len(divided.programs) == 3

    ranks(rank)


def test_calls_that_are_known_take_the_program_that_still_holds() -> None:
    def rank(_: int) -> None:
        scale = {"by": 2.0}
        infer = distribute(lambda x, y: x * scale["by"] + y, Layouts(Mesh((RANKS,), ("data",)), [("data",)] * 2))
        x = batch(4)
        for by in (2.0, 3.0, 2.0, 3.0):
            scale["by"] = by
            for other in (x, batch(4), 1.0, 2.0):
                value = other.asnumpy() if isinstance(other, ms.Tensor) else other
                np.testing.assert_allclose(infer(x, other).asnumpy(), x.asnumpy() * by + value, rtol=1e-6)

    ranks(rank)
