"""Worker processes where the program, its limits or its functions do what nobody expects."""

from __future__ import annotations

import gc
import os
import pathlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import config
from mycel.dataset.execution import fork_server, shared_memory_channel, worker_pool

pytestmark = pytest.mark.skipif(not worker_pool.has_processes("tests"), reason="no worker processes here")

ROWS = 60


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    config.set_multiprocessing_start_method("forkserver")
    gc.collect()
    assert not [crew for crew in worker_pool._crews if not crew.closed]


class Source:
    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, number: int) -> Any:
        return np.int64(number)


def opened(function: Any = lambda x: x, workers: int = 2) -> Any:
    data = ds.GeneratorDataset(Source(), ["x"], shuffle=False)
    data = data.map(function, "x", num_parallel_workers=workers, python_multiprocessing=True)
    return data.create_tuple_iterator(num_epochs=1, output_numpy=True)


def read(iterator: Any) -> list[int]:
    return [int(x) for (x,) in iterator]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit("not shown")


@pytest.mark.parametrize("apart", [False, True])
def test_an_error_whose_message_cannot_be_shown_is_named(apart: bool) -> None:
    def fails(x: Any) -> Any:
        raise Unspeakable

    data = ds.GeneratorDataset(Source(), ["x"]).map(fails, "x", num_parallel_workers=2, python_multiprocessing=apart)
    with pytest.raises(RuntimeError, match=r"map: operation 'fails' .* Unspeakable, whose message cannot be shown"):
        next(data.create_tuple_iterator(num_epochs=1))


def test_an_iterator_that_is_collected_while_the_fork_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As garbage may be anywhere; it waited for itself."""
    exactly, left = fork_server._exactly, []

    def collects(connection: Any, count: int) -> Any:
        if left:
            cycle = [left.pop()]
            cycle.append(cycle)
            del cycle
            gc.collect()
        return exactly(connection, count)

    first = opened()
    next(first)
    pids = [pid for crew in worker_pool._crews if not crew.closed for pid in crew.pids()]
    left.append(first)
    del first
    monkeypatch.setattr(fork_server, "_exactly", collects)
    # Without a worker that rests, one is started.
    monkeypatch.setattr(worker_pool._resting, "take", lambda kind: None)
    monkeypatch.setattr(worker_pool._resting, "add", lambda worker: False)
    assert read(opened()) == list(range(ROWS))
    assert pids and not left and not worker_pool._server.asking
    end = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < end:
        # What was killed is asked for with the next question.
        read(opened())
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_half_an_answer_of_the_fork_server_is_no_other_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    exactly = fork_server._exactly

    def interrupted(connection: Any, count: int) -> Any:
        exactly(connection, count)
        raise KeyboardInterrupt

    iterator = opened()
    next(iterator)
    pid = next(pid for crew in worker_pool._crews if not crew.closed for pid in crew.pids())
    monkeypatch.setattr(fork_server, "_exactly", interrupted)
    with pytest.raises(KeyboardInterrupt):
        worker_pool._server.ask({"status": pid})
    monkeypatch.undo()
    # The server is given up with its workers; the next one answers what it is asked.
    iterator.stop()
    assert read(opened()) == list(range(ROWS))


def test_half_an_answer_of_a_worker_is_no_other_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    exactly, times = shared_memory_channel.Channel._exactly, [20]

    def without_memory(self: Any, *arguments: Any) -> Any:
        times[0] -= 1
        if not times[0]:
            raise MemoryError
        return exactly(self, *arguments)

    monkeypatch.setattr(shared_memory_channel.Channel, "_exactly", without_memory)
    with pytest.raises(MemoryError):
        read(opened())
    monkeypatch.undo()
    assert read(opened(lambda x: x + 100)) == list(range(100, 100 + ROWS))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_death_is_noticed_whatever_the_worker_forked(tmp_path: pathlib.Path) -> None:
    mark = str(tmp_path / "mark")

    def dies(x: Any) -> Any:
        if x == 5 and not os.path.exists(mark):
            with open(mark, "w"):
                pass
            child = os.fork()
            if not child:
                time.sleep(60)
                os._exit(0)
            with open(mark, "w") as file:
                file.write(str(child))
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    iterator = opened(dies, 1)
    assert read(iterator) == list(range(ROWS))
    # The child still sleeps.
    os.kill(int(pathlib.Path(mark).read_text()), signal.SIGKILL)


def test_odd_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    monkeypatch.setattr(sys, "path", [pathlib.Path("/nowhere"), *sys.path])
    for method in ("forkserver", "spawn", "fork"):
        config.set_multiprocessing_start_method(method)
        assert read(opened()) == list(range(ROWS)), method


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_limits_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    # Workers that rest have the limits of before.
    monkeypatch.setattr(worker_pool._resting, "take", lambda kind: None)

    def large(x: Any) -> Any:
        return np.full(1 << 18, x)

    def limited(name: int, value: int) -> str:
        before = resource.getrlimit(name)
        resource.setrlimit(name, (value, before[1]))
        try:
            config.set_multiprocessing_start_method("spawn")
            with pytest.raises((RuntimeError, OSError)) as found:
                list(opened(large))
            return str(found.value)
        finally:
            resource.setrlimit(name, before)

    said = limited(resource.RLIMIT_FSIZE, 1 << 20)
    assert "map: rows cannot be sent" in said and "no shared memory for 2097152 bytes" in said, said
    said = limited(resource.RLIMIT_NOFILE, len(os.listdir("/proc/self/fd")) + 2)
    assert "map: no worker process can be started: Too many open files" in said, said


def test_iterators_and_queues_that_are_stopped_while_they_start() -> None:
    for number in range(30):
        data = ds.GeneratorDataset(Source(), ["x"], shuffle=False)
        queue = data.device_que()
        queue.send()
        time.sleep(0.0002 * (number % 10))
        queue.release()
        iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
        found: list[Any] = []

        def reads(iterator: Any = iterator, found: list[Any] = found) -> None:
            try:
                found.append(len(list(iterator)))
            except RuntimeError as error:
                found.append(error)

        thread = threading.Thread(target=reads)
        thread.start()
        time.sleep(0.0002 * (number % 10))
        iterator.stop()
        thread.join(10)
        assert not thread.is_alive() and (found == [ROWS] or "stopped" in str(found[0])), found
    gc.collect()
    assert not [thread for thread in threading.enumerate() if thread.name == "mycel-send"]
