"""The trace of the native engine: which steps ran, in which order, inside what."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel._src.engines.native.report import trace as trace_module
from mycel._src.engines.native.report.trace import ALLOCATED, PART, RELEASED, tracing
from mycel._src.engines.native.runtime.runtime import runtime


def test_steps_are_noted_with_their_nodes_and_times() -> None:
    fn = ms.jit(lambda x, y: ops.exp(ops.matmul(x, y)).sum())
    x = ms.Tensor(np.ones((16, 16), np.float32))
    fn(x, x)
    before = time.monotonic_ns()
    with tracing() as trace:
        fn(x, x)
        fn(x, x)
    after = time.monotonic_ns()
    assert not trace.missed and len(trace.events) % 2 == 0
    kinds = [e.step.kind for e in trace.events]
    assert kinds[: len(kinds) // 2] == kinds[len(kinds) // 2 :]
    assert any(n.prim.name == "matmul" for e in trace.events for n in e.step.nodes)
    assert all(before <= e.begin <= e.end <= after for e in trace.events)
    assert not any(e.inner for e in trace.events)


def test_the_schedule_of_a_kernel_is_noted_in_words() -> None:
    x = ms.Tensor(np.ones((300, 200), np.float32))
    turned = ms.jit(lambda x: x.transpose(1, 0))
    turned(x)
    with tracing() as trace:
        turned(x)
    (event,) = (e for e in trace.events if e.step.kind == "kernel")
    assert event.step.schedule.startswith("200p 300p: ")
    assert "lanes of 300" in event.step.schedule and "tiles of 200 for 1; threads share " in event.step.schedule


def test_nothing_is_noted_outside_of_a_trace() -> None:
    x = ms.Tensor([1.0, 2.0])
    with tracing() as trace:
        x + x
    x + x
    assert len(trace.events) == 1


def test_steps_inside_loops_are_marked() -> None:
    @ms.jit
    def fn(x: Any) -> Any:
        while x.sum() < 100:
            x = x * 2
        return x + 1

    fn(ms.Tensor([1.0, 2.0]))
    with tracing() as trace:
        fn(ms.Tensor([1.0, 2.0]))
    (loop,) = [e for e in trace.events if e.step.kind == "while"]
    inner = [e for e in trace.events if e.inner]
    assert len(inner) >= 6 and all(loop.begin <= e.begin and e.end <= loop.end for e in inner)
    assert not loop.inner and not trace.events[-1].inner


def test_a_full_log_counts_what_it_missed() -> None:
    x = ms.Tensor([1.0, 2.0])
    found = []
    for room in (None, 8):
        with tracing(room) as trace:
            for _ in range(5):
                x + x
        found.append(trace)
    whole, part = found
    assert len(whole.events) == 5 and not whole.missed
    assert len(part.records) == 8 and part.missed == len(whole.records) - 8


def test_a_long_trace_goes_on_in_another_log(monkeypatch: Any) -> None:
    monkeypatch.setattr(trace_module, "_ROOM", 4096)
    x = ms.Tensor([1.0, 2.0])
    with tracing() as trace:
        for round in range(3):
            for _ in range(700):
                x + x
            while len(trace.logs) < round + 2:
                time.sleep(0.01)
    assert len(trace.events) == 2100 and not trace.missed


def test_memory_and_runs_are_noted() -> None:
    fn = ms.jit(lambda x: ops.exp(ops.matmul(x, x)).sum())
    x = ms.Tensor(np.ones((64, 64), np.float32))
    fn(x)
    with tracing() as trace:
        y = fn(x)
        del y
    (run,) = trace.runs
    assert run.thread == threading.get_ident()
    assert all(run.begin <= e.begin <= e.end <= run.end for e in trace.events)
    taken, given = trace.of(ALLOCATED), trace.of(RELEASED)
    assert len(taken) == len(given) == 1 and taken[0, 1] == given[0, 1]
    assert taken[0, 3] == run.program.program.output_bytes[0] and taken[0, 2] < given[0, 2]


def test_the_parts_of_a_step_belong_to_its_threads() -> None:
    x = ms.Tensor(np.ones(1 << 22, np.float32))
    before, most = runtime().threads, 0
    try:
        ms.set_context(runtime_num_threads=2)
        # Who comes too late for a step has no part of it.
        for _ in range(2000):
            with tracing() as trace:
                x + x
            (event,) = trace.events
            parts = trace.of(PART)
            assert 1 <= len(parts) <= 2
            assert all(event.begin <= b <= e <= event.end for _, _, b, e, _ in parts.tolist())
            assert len({t for *_, t in parts.tolist()}) == len(parts)
            most = max(most, len(parts))
            if most == 2:
                break
    finally:
        ms.set_context(runtime_num_threads=before)
    assert most == 2


def test_threads_share_a_trace() -> None:
    x = ms.Tensor([1.0, 2.0])
    x * x
    with tracing() as trace:
        workers = [threading.Thread(target=lambda: [x * x for _ in range(50)]) for _ in range(3)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    assert len(trace.events) == 150


def test_two_traces_at_once_are_refused() -> None:
    with tracing(), pytest.raises(RuntimeError, match="already being taken"), tracing():
        pass
    with tracing() as trace:
        ms.Tensor([1.0]) + 1
    assert trace.events
