"""What a program needs and does, told before it runs: footprints, estimates, and the account of its
steps.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.devices import runtime
from mycel._src.engines.host_memory import available_memory
from mycel._src.engines.native.program.compiling import prepared
from mycel._src.engines.native.program.program import build
from mycel._src.engines.native.report.account import account
from mycel._src.engines.native.report.costs import cost
from mycel._src.engines.native.report.footprint import footprint
from mycel._src.foundation.errors import CompileError
from mycel._src.staging.compiled.explain import explain
from mycel.common.initializer import Zero

CHECKED = {"Estimate": "definition", "estimate": "definition"}


def declared(*shape: int) -> ms.Tensor:
    """A tensor that takes no memory."""
    return ms.Tensor(shape=shape, dtype=ms.float32, init=Zero())


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Dense(64, 512), nn.Dense(512, 8)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.b(ops.relu(self.a(x)))


def test_an_estimate_is_what_a_run_takes() -> None:
    net = Net()
    found = ms.estimate(net, declared(1000, 64))
    assert found.arguments == 1000 * 64 * 4 and found.captured == (64 * 512 + 512 + 512 * 8 + 8) * 4
    assert found.present == found.captured and found.needed == found.total - found.present
    compiled = ms.jit(net)
    x = ms.Tensor(np.ones((1000, 64), np.float32))
    again = ms.estimate(compiled, x)
    assert again.total == found.total and again.present == found.total - again.needed
    runtime.empty_cache()
    before = runtime.memory_allocated()
    runtime.reset_peak_memory_stats()
    out = compiled(x)
    # Results are rounded up to lines of the cache.
    assert 0 <= runtime.max_memory_allocated() - before - again.needed < 128
    assert out.shape == (1000, 8)


def test_an_estimate_takes_no_memory_and_runs_nothing() -> None:
    seen = []

    def work(x: ms.Tensor) -> ms.Tensor:
        seen.append(1)
        return ops.matmul(ops.tanh(ops.matmul(x, x)), x)

    before = runtime.memory_allocated()
    found = ms.estimate(work, declared(40_000, 40_000))
    assert runtime.memory_allocated() == before and seen == []
    assert found.present == 0 and found.total >= 3 * 40_000**2 * 4


def test_what_does_not_fit_is_said() -> None:
    def work(x: ms.Tensor) -> ms.Tensor:
        return ops.exp(ops.matmul(x, x.T)).sum()

    try:
        ms.set_context(max_device_memory="0.05GB")
        small, large = ms.estimate(work, declared(1000, 10)), ms.estimate(work, declared(5000, 10))
    finally:
        ms.set_context(max_device_memory=None)
    assert small.fits and not large.fits
    small.check()
    with pytest.raises(MemoryError, match="it does not fit") as caught:
        large.check()
    assert "test_account.py" in str(caught.value) and "MiB" in str(caught.value)
    left = available_memory()
    assert left is None or left > 0


def test_a_program_that_takes_more_than_there_is_says_so_first(caplog: pytest.LogCaptureFixture) -> None:
    from mycel._src.foundation.log import logger

    compiled = ms.jit(lambda x: ops.matmul(ops.exp(ops.matmul(x, x.T)), x))
    x = ms.Tensor(np.zeros((4500, 4), np.float32))
    runtime.empty_cache()
    before = logger.propagate
    logger.propagate = True
    try:
        ms.set_context(max_device_memory=f"{(runtime.memory_reserved() + (50 << 20)) / 2**30}GB")
        with caplog.at_level("WARNING", logger.name), pytest.raises(MemoryError, match="needs more memory"):
            compiled(x)
    finally:
        ms.set_context(max_device_memory=None)
        logger.propagate = before
    assert "beside its inputs, but" in caplog.text and "mycel.estimate" in caplog.text
    assert float(compiled(x).asnumpy().sum()) == 0


def test_functions_in_segments_cannot_be_estimated() -> None:
    with pytest.raises(CompileError, match="known only as it runs"):
        ms.estimate(lambda x: x * x.sum().item(), ms.Tensor([2.0, 3.0]))
    with pytest.raises(CompileError, match="data decide sizes"):
        ms.estimate(lambda x: ops.nonzero(x), ms.Tensor([2.0, 0.0]))


def test_the_footprint_is_the_programs() -> None:
    net = Net()
    x = ms.Tensor(np.ones((100, 64), np.float32))
    (graph,) = explain(net, x).graphs
    found = footprint(graph)
    program = build(prepared(graph))
    assert found.arena == program.arena_bytes >= found.bound
    assert sum(a.nbytes for a in found.alive) <= found.bound
    assert found.bound - sum(a.nbytes for a in found.alive) < 64 * len(found.alive)
    assert found.results == 100 * 8 * 4 and len(found.inputs) == 5
    assert sum(n for n, _ in found.by_line()) == sum(a.nbytes for a in found.alive)
    assert f"step {found.at} of {found.steps}" in found.text()


def test_the_account_names_what_each_step_does() -> None:
    net = Net()
    told = explain(net, ms.Tensor(np.ones((100, 64), np.float32)))
    (found,) = told.steps
    assert [s.kind for s in found.steps] == ["dense", "kernel", "dense", "kernel"]
    first, middle, second, last = found.steps
    assert (first.cost.flops, second.cost.flops) == (2 * 100 * 64 * 512, 2 * 100 * 512 * 8)
    assert middle.cost.read == 100 * 512 * 4 + 512 * 4 and middle.cost.written == 100 * 512 * 4
    assert middle.operations[0] == "add" and "512" in middle.loops
    assert middle.stores[0][2] == "matmul of the dense library reads it" and middle.stores[0][3]
    assert last.stores[0][2] == "a result"
    assert found.total.flops == sum(s.cost.flops for s in found.steps)
    text = told.costs
    assert "memory of Net at its peak" in text and "2 dense:" in text and "over what it reads" in text
    assert "memory of Net at its peak" in str(told)


def test_what_is_computed_again_is_named() -> None:
    def work(x: ms.Tensor, w: ms.Tensor) -> tuple[ms.Tensor, ...]:
        apart = ops.relu(ops.matmul(x, w) + 1.0)
        return apart.sum(0), ops.matmul(ops.exp(apart), w), apart.sum(1)

    x, w = (ms.Tensor(np.ones(s, np.float32)) for s in ((64, 96), (96, 96)))
    (graph,) = explain(work, x, w).graphs
    found = account(graph)
    assert any({"select", "add"} <= {*s.again} for s in found.steps)
    assert all(s.cost == cost(step) for s, step in zip(found.steps, build(prepared(graph)).template.steps))


def test_long_programs_show_what_moves_most() -> None:
    net = Net()
    (graph,) = explain(net, ms.Tensor(np.ones((100, 64), np.float32))).graphs
    text = account(graph).text(2)
    assert "the 2 that move most" in text and text.count("writes") == 2
