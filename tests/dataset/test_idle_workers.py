"""Worker processes that rest between iterators: the next job is new, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import config
from mycel.dataset.execution import idle_workers, worker_pool

pytestmark = pytest.mark.skipif(not worker_pool.has_processes("tests"), reason="no worker processes here")

ROWS = 40


class Counting:
    """A source that counts what it was asked for, in its own worker."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset
        self.asked = 0

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, number: int) -> Any:
        self.asked += 1
        return np.int64(number + self.offset), np.int64(self.asked), np.int64(os.getpid())


def _rows(source: Any, workers: int = 2) -> tuple[list[int], int, set[int]]:
    data = ds.GeneratorDataset(source, ["n", "asked", "pid"], shuffle=False, num_parallel_workers=workers)
    found = [[int(x) for x in row] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    return [n for n, _, _ in found], max(asked for _, asked, _ in found), {pid for _, _, pid in found}


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(autouse=True)
def _nobody_rests() -> Any:
    yield
    end = time.monotonic() + 10
    while worker_pool._resting.count() and time.monotonic() < end:
        time.sleep(0.01)
    assert not worker_pool._resting.count()


@pytest.fixture
def long_rest(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let workers rest until the test ends."""
    monkeypatch.setattr(idle_workers, "REST", 60.0)
    monkeypatch.setattr(worker_pool, "YOUNG", 600.0)
    yield
    for shares in (False, True):
        while (found := worker_pool._resting.take(("forkserver", shares))) is not None:
            found.end()


def test_the_next_iterator_has_the_workers_and_a_job_of_its_own(long_rest: None) -> None:
    source = Counting()
    rows, asked, first = _rows(source)
    assert rows == list(range(ROWS)) and asked <= ROWS and os.getpid() not in first
    source.offset = 100
    again, asked, second = _rows(source)
    assert again == list(range(100, 100 + ROWS)) and asked <= ROWS and second & first
    scale = 3

    def scaled(n: Any) -> Any:
        return n * scale, np.int64(os.getpid())

    for scale in (3, 5):
        data = ds.NumpySlicesDataset(np.arange(ROWS), ["n"], shuffle=False)
        data = data.map(scaled, "n", ["n", "pid"], num_parallel_workers=2, python_multiprocessing=True)
        found = [[int(x) for x in row] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        assert [n for n, _ in found] == [scale * n for n in range(ROWS)] and {pid for _, pid in found} & first


def test_a_worker_that_dies_while_it_rests_is_not_missed(long_rest: None) -> None:
    rows, _, first = _rows(Counting())
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    again, _, second = _rows(Counting())
    assert rows == again == list(range(ROWS)) and not second & first


def test_workers_of_another_kind_go_on_resting(long_rest: None) -> None:
    _, _, first = _rows(Counting())
    config.set_enable_shared_mem(False)
    rows, _, second = _rows(Counting())
    assert rows == list(range(ROWS)) and not second & first


class Unreadable(Counting):
    def __setstate__(self, state: Any) -> None:
        raise ValueError("no worker has this")


def test_a_job_that_cannot_be_read_harms_no_other(long_rest: None) -> None:
    _, _, first = _rows(Counting())
    with pytest.raises(ValueError, match="no worker has this"):
        _rows(Unreadable())
    rows, _, second = _rows(Counting())
    assert rows == list(range(ROWS)) and second & first


def test_no_worker_rests_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_workers, "REST", 2.0)
    monkeypatch.setattr(worker_pool, "YOUNG", 600.0)
    _, _, pids = _rows(Counting())
    assert worker_pool._resting.count()
    end = time.monotonic() + 30
    while any(map(_runs, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(_runs, pids)) and not worker_pool._resting.count()
    while any(t.name == "mycel-workers" for t in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(t.name == "mycel-workers" for t in threading.enumerate())


def test_old_workers_and_busy_ones_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "YOUNG", 0.0)
    _, _, pids = _rows(Counting())
    assert not worker_pool._resting.count() and not any(map(_runs, pids))
    monkeypatch.setattr(worker_pool, "YOUNG", 10.0)

    def slow(n: Any) -> Any:
        time.sleep(0.3)
        return n

    data = ds.NumpySlicesDataset(np.arange(ROWS), ["n"], shuffle=False)
    data = data.map(slow, "n", num_parallel_workers=2, python_multiprocessing=True)
    iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert int(next(iterator)[0]) == 0
    time.sleep(0.1)
    iterator.stop()
    assert not worker_pool._resting.count()
