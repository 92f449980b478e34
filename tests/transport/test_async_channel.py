"""Exchanges that run beside the thread that starts them: their order, errors, interrupts, forks."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.transport import async_channel as module
from mycel._src.compiler.transport import rank_status, thread_ranks
from mycel._src.compiler.transport.async_channel import Channel, channel
from mycel._src.compiler.transport.current_transport import transport, within
from mycel._src.compiler.transport.delayed_transport import Slowed
from mycel._src.compiler.transport.single_process import Alone


@pytest.fixture
def way() -> Any:
    own = Alone()
    with within(own):
        yield own


def test_exchanges_run_one_after_the_other_in_their_order(way: Alone) -> None:
    own, seen, gate = channel(), [], threading.Event()

    def work(k: int) -> Callable[[], int]:
        def run() -> int:
            gate.wait(10)
            seen.append(k)
            return k

        return run

    started = [own.start(work(k)) for k in range(5)]
    assert not any(s.is_done for s in started) and not own.is_idle
    gate.set()
    assert own.call(work(5)) == 5
    assert [s.result() for s in started] == list(range(5)) and seen == list(range(6))
    assert own.is_idle and channel() is own


def test_exchanges_use_the_transport_of_who_started_them() -> None:
    def program(rank: int) -> list[Any]:
        own = transport()
        sums = [
            channel().start(lambda k=k: transport().all_reduce(np.array([rank + k]), "sum", (0, 1))) for k in (0, 9)
        ]
        assert channel().call(lambda: transport()) is own
        return [s.result().tolist() for s in sums]

    assert thread_ranks.run(2, program) == [[[1], [19]], [[1], [19]]]


def test_an_error_is_raised_where_the_result_is_asked_for(way: Alone) -> None:
    own = channel()
    wrong, right = own.start(lambda: 1 // 0), own.start(lambda: 7)
    own.settle()
    with pytest.raises(ZeroDivisionError):
        wrong.result()
    assert right.result() == 7
    with pytest.raises(ZeroDivisionError):
        own.call(lambda: 1 // 0)


def test_a_wait_can_be_interrupted(way: Alone) -> None:
    own, gate = channel(), threading.Event()
    held = own.start(lambda: gate.wait(20))

    def heard(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, heard)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            held.result()
    finally:
        signal.signal(signal.SIGALRM, before)
    gate.set()
    assert held.result() is True


def test_a_rank_that_has_ended_is_an_error_of_those_that_wait() -> None:
    def program(rank: int) -> None:
        if rank:
            raise ValueError("rank 1 ends")
        started = channel().start(lambda: transport().all_reduce(np.ones(2), "sum", (0, 1)))
        with pytest.raises(RuntimeError, match="rank 1 has ended with ValueError"):
            started.result()

    with pytest.raises(ValueError, match="rank 1 ends"):
        thread_ranks.run(2, program)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_none_of_the_exchanges_and_begins_anew(way: Alone) -> None:
    own, gate = channel(), threading.Event()
    pending = [own.start(lambda: gate.wait(20)), own.start(lambda: 1)]
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        status = 1
        try:
            for one in pending:
                with pytest.raises(RuntimeError, match="forked from a rank"):
                    one.result()
            status = int(own.start(lambda: 5).result() != 5)
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    gate.set()
    assert [one.result() for one in pending] == [True, 1]


def test_the_thread_ends_where_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE", 0.01)
    own = Channel(way := Alone())
    for _ in range(2):
        assert own.start(lambda: 3).result() == 3
        thread = own._thread
        if thread is not None:
            thread.join(20)
        assert own._thread is None
    assert way.size == 1


def test_who_is_waited_for_is_told_once_the_main_thread_waits(way: Alone) -> None:
    begun, gate = threading.Event(), threading.Event()

    def work() -> None:
        with rank_status.waiting("all_reduce sum", 3):
            begun.set()
            gate.wait(20)

    started = channel().start(work)
    begun.wait(20)
    told = [rank_status.waits()]
    with rank_status.joined():
        told.append(rank_status.waits())
    gate.set()
    started.result()
    assert told[0] is None and told[1] is not None and told[1][:2] == ("all_reduce sum", 3)
    assert rank_status.waits() is None


def test_a_slow_link_takes_its_time() -> None:
    taken: list[tuple[str, int, int]] = []

    def seconds(kind: str, nbytes: int, count: int) -> float:
        taken.append((kind, nbytes, count))
        return 0.02

    way, began = Slowed(Alone(), seconds), time.monotonic()
    x = np.ones((2, 4), np.float32)
    assert np.array_equal(way.all_reduce(x, "sum", (0,)), x)
    assert np.array_equal(way.all_gather(x, 0, (0,)), x)
    assert np.array_equal(way.reduce_scatter(x, 0, "sum", (0,)), x)
    assert np.array_equal(way.all_to_all(x, 0, 1, (0,)), x)
    way.send(x, 0)
    assert np.array_equal(way.receive(0), x)
    way.barrier((0,))
    assert time.monotonic() - began >= 0.12
    kinds = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send", "all_to_all"]
    assert [k for k, _, _ in taken] == kinds and [n for _, n, _ in taken] == [32, 32, 32, 32, 32, 0]
