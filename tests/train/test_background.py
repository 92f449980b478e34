"""Threads beside the training: order, bounds, errors with their tracebacks, and that they end."""

from __future__ import annotations

import gc
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from mycel.train import _background
from mycel.train._background import Ahead, Later


def running() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name in ("mycel-batches", "mycel-later")]


def gone() -> bool:
    """Whether our threads end within some seconds."""
    for _ in range(500):
        if not running():
            return True
        time.sleep(0.01)
    return False


class Counted:
    """An iterator of numbers that counts how many were asked for."""

    def __init__(self, count: int, size: int = 1) -> None:
        self.count, self.size, self.made = count, size, 0

    def items(self) -> Iterator[tuple[int, int]]:
        for k in range(self.count):
            self.made += 1
            yield k, self.size


def settle(source: Counted) -> int:
    """How many were made, once that does not change any more."""
    before = -1
    while source.made != before:
        before = source.made
        time.sleep(0.05)
    return before


def test_items_come_in_order_and_end() -> None:
    ahead = Ahead(Counted(100).items(), 7)
    found: list[Any] = []
    while items := ahead.take(5):
        assert 1 <= len(items) <= 5
        found += items
    assert found == list(range(100)) and ahead.take(1) == [] and gone()
    ahead.close()


def test_no_more_is_made_than_may_be_held() -> None:
    source = Counted(1000)
    ahead = Ahead(source.items(), 6)
    assert settle(source) <= 7
    ahead.take(2)
    assert settle(source) <= 9
    ahead.close()
    assert gone() and source.made <= 9


def test_large_items_are_bounded_by_their_bytes(monkeypatch: Any) -> None:
    monkeypatch.setattr(_background, "BYTES", 100)
    small, large = Counted(1000, 10), Counted(1000, 1000)
    both = [Ahead(source.items(), 500) for source in (small, large)]
    assert settle(small) <= 11 and settle(large) <= 3
    assert [both[1].take(1)[0] for _ in range(5)] == [0, 1, 2, 3, 4]
    for ahead in both:
        ahead.close()
    assert gone()


def test_a_take_stops_at_a_mark() -> None:
    ahead = Ahead(((c, 1) for c in "ab|cd|"), 10)
    while len(ahead._channel.items) < 6:
        time.sleep(0.001)
    assert [ahead.take(10, lambda item: item == "|") for _ in range(2)] == [["a", "b", "|"], ["c", "d", "|"]]
    ahead.close()


def test_an_error_comes_after_the_items_before_it_with_its_traceback() -> None:
    def items() -> Iterator[tuple[int, int]]:
        yield 1, 1
        yield 2, 1
        raise ZeroDivisionError("here")

    ahead = Ahead(items(), 10)
    assert ahead.take(1) + ahead.take(1) == [1, 2]
    with pytest.raises(ZeroDivisionError, match="here") as caught:
        ahead.take(1)
    assert "items" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    with pytest.raises(ZeroDivisionError):
        ahead.take(1)
    assert gone()


def test_the_iterator_is_closed_in_its_thread() -> None:
    closed = []

    def items() -> Iterator[tuple[int, int]]:
        try:
            while True:
                yield 0, 1
        finally:
            closed.append(threading.current_thread().name)

    ahead = Ahead(items(), 2)
    ahead.take(1)
    ahead.close()
    assert closed == ["mycel-batches"] and gone()


def test_threads_end_with_their_owners() -> None:
    ahead, later = Ahead(Counted(1000).items(), 3), Later()
    later(int)
    assert ahead.take(1) == [0] and len(running()) == 2
    del ahead, later
    gc.collect()
    assert gone()


def test_tasks_are_done_in_order() -> None:
    later, done = Later(), []
    for k in range(300):
        later(done.append, k)
    later.flush()
    assert done == list(range(300)) and later.is_idle
    later(done.append, -1)
    later.close()
    assert done[-1] == -1 and gone()
    later.close()
    later(done.append, -2)
    later.close()
    assert done[-1] == -2 and gone()


def test_a_failing_task_is_raised_and_those_behind_it_are_dropped() -> None:
    later, done = Later(), []
    hold = threading.Event()

    def fail() -> None:
        hold.wait()
        raise ValueError("no room on the disk")

    later(done.append, 1)
    later(fail)
    later(done.append, 2)
    hold.set()
    with pytest.raises(ValueError, match="no room") as caught:
        later.flush()
    assert "fail" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert done == [1]
    later(done.append, 3)
    later.close()
    assert done == [1, 3] and gone()


def test_a_giver_waits_where_many_tasks_are_waiting() -> None:
    later, hold, given = Later(), threading.Event(), []
    later(hold.wait)

    def give() -> None:
        for k in range(Later.MOST + 10):
            later(int)
            given.append(k)

    giver = threading.Thread(target=give)
    giver.start()
    for _ in range(200):
        time.sleep(0.01)
        if len(given) >= Later.MOST - 1:
            break
    time.sleep(0.05)
    waiting = len(given)
    hold.set()
    giver.join()
    # Whether the first task was taken before the others came is a matter of time.
    assert Later.MOST - 1 <= waiting <= Later.MOST + 1
    later.close()
    assert len(given) == Later.MOST + 10 and gone()
