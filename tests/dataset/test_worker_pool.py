"""Worker processes: equal rows, errors, deaths, ends."""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel._src.foundation import logged_once
from mycel.dataset import config
from mycel.dataset.execution import code_pickling, shared_memory_channel, worker_pool
from mycel.dataset.rows import column_blocks

pytestmark = pytest.mark.skipif(not worker_pool.has_processes("tests"), reason="no worker processes here")

ROWS = 24


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    logged_once._said.clear()
    yield
    config.set_multiprocessing_start_method("forkserver")
    config.set_enable_shared_mem(True)
    config.set_multiprocessing_timeout_interval(300)
    config.set_enable_watchdog(True)
    gc.collect()
    end = time.monotonic() + 5
    while any(crew.pids() and not crew.closed for crew in worker_pool._crews) and time.monotonic() < end:
        time.sleep(0.01)
    assert not [crew for crew in worker_pool._crews if not crew.closed]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[Any]:
    logger = logging.getLogger("mycel")
    logger.addHandler(caplog.handler)
    yield lambda: [record.getMessage() for record in caplog.records]
    logger.removeHandler(caplog.handler)


class Numbers:
    """A source that seeks in itself, and draws."""

    def __init__(self) -> None:
        self.place = 0
        self.data = np.arange(ROWS, dtype=np.int64) * 3

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, number: int) -> Any:
        self.place = number
        noise = np.random.random()
        return self.data[self.place], np.full((40, 50), number, np.float32), np.float64(noise)


def add_noise(x: Any) -> Any:
    return x + np.random.random()


def pipeline(workers: int, apart: bool) -> ds.Dataset:
    data: ds.Dataset = ds.GeneratorDataset(
        Numbers(), ["n", "image", "noise"], num_parallel_workers=workers, python_multiprocessing=apart
    )
    data = data.map(add_noise, "noise", num_parallel_workers=workers, python_multiprocessing=apart)
    data = data.filter(lambda n: n % 2 == 0, "n", num_parallel_workers=workers)
    return data.batch(
        3,
        num_parallel_workers=workers,
        per_batch_map=lambda n, info: ([x + info.get_batch_num() for x in n],),
        input_columns=["n"],
        python_multiprocessing=apart,
    )


def contents(iterator: Any) -> list[Any]:
    return [[a.tolist() for a in row] for row in iterator]


def rows(data: ds.Dataset, epochs: int = 2) -> list[Any]:
    iterator = data.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    found = [contents(iterator) for _ in range(epochs)]
    iterator.stop()
    return found


@pytest.mark.parametrize("method, shares", [("forkserver", True), ("fork", False)])
def test_rows_are_the_same_whoever_makes_them(method: str, shares: bool) -> None:
    ds.config.set_seed(5)
    expected = rows(pipeline(1, False))
    config.set_multiprocessing_start_method(method)
    config.set_enable_shared_mem(shares)
    for workers, apart in ((2, False), (8, False), (2, True), (3, True)):
        data = pipeline(workers, apart)
        assert rows(data) == expected, (workers, apart)
        iterator = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
        iterator.load_state_dict({"seed": 5, "seeded": 1, "epoch": 1, "step": 2})
        assert contents(iterator) == expected[1][2:], (workers, apart)
        iterator.stop()


def test_processes_that_start_afresh_know_the_functions_of_a_script() -> None:
    config.set_multiprocessing_start_method("spawn")
    offset = 7

    def shifted(x: Any) -> Any:
        return x + offset, np.int64(os.getpid())

    data = ds.NumpySlicesDataset(np.arange(5), ["x"], shuffle=False)
    data = data.map(shifted, "x", ["x", "pid"], num_parallel_workers=1, python_multiprocessing=True)
    ((found),) = rows(data, 1)
    assert [x for x, _ in found] == [7, 8, 9, 10, 11] and os.getpid() not in {pid for _, pid in found}


class Odd(Exception):
    """An error that cannot be made from its arguments."""

    def __init__(self, one: Any, two: Any) -> None:
        super().__init__(f"{one} {two}")


@pytest.mark.parametrize("kind", (ValueError, SystemExit, KeyboardInterrupt, Odd))
def test_what_a_function_raises_comes_with_its_traceback(kind: Any) -> None:
    def fails(x: Any) -> Any:
        if x == 4:
            raise kind("from the user", 1) if kind is Odd else kind("from the user")
        return x

    data = ds.NumpySlicesDataset(np.arange(ROWS), ["x"], shuffle=False)
    data = data.map(fails, "x", num_parallel_workers=2, python_multiprocessing=True)
    seen: list[int] = []
    with pytest.raises(RuntimeError if issubclass(kind, Exception) else kind, match="from the user") as caught:
        for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
            seen.append(int(x))
    assert seen == [0, 1, 2, 3]
    assert "in a worker process" in str(caught.value.__cause__) and "in fails" in str(caught.value.__cause__)


def test_a_killed_worker_is_replaced_and_its_rows_done_again(said: Any) -> None:
    def slow(x: Any) -> Any:
        time.sleep(0.01)
        return x

    data = ds.NumpySlicesDataset(np.arange(60), ["x"], shuffle=False)
    data = data.map(slow, "x", num_parallel_workers=2, python_multiprocessing=True)
    iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    found = [int(next(iterator)[0]) for _ in range(5)]
    (crew,) = [crew for crew in worker_pool._crews if not crew.closed]
    for pid in crew.pids():
        os.kill(pid, signal.SIGKILL)
    found += [int(x) for (x,) in iterator]
    assert found == list(range(60)) and "was ended by SIGKILL" in said()[0] and "done again" in said()[0]


@pytest.mark.parametrize("how, text", [("os._exit(3)", "ended with status 3"), ("fault", "was ended by SIGSEGV")])
def test_rows_that_end_workers_are_an_error(how: str, text: str) -> None:
    def ends(x: Any) -> Any:
        if x == 2:
            if how == "fault":
                os.kill(os.getpid(), signal.SIGSEGV)
            os._exit(3)
        return x

    data = ds.NumpySlicesDataset(np.arange(ROWS), ["x"], shuffle=False)
    data = data.map(ends, "x", num_parallel_workers=2, python_multiprocessing=True)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=f"map: two worker processes died of the same rows; the last one {text}"):
        list(data.create_tuple_iterator(num_epochs=1))
    assert time.monotonic() - begin < 60


def test_a_worker_that_hangs_is_reported_and_stopping_ends_it(said: Any) -> None:
    config.set_multiprocessing_timeout_interval(1)

    def hangs(x: Any) -> Any:
        time.sleep(1000)
        return x

    data = ds.NumpySlicesDataset(np.arange(4), ["x"], shuffle=False)
    data = data.map(hangs, "x", num_parallel_workers=1, python_multiprocessing=True)
    iterator = data.create_tuple_iterator(num_epochs=1)
    reader = threading.Thread(target=lambda: pytest.raises(RuntimeError, next, iterator), daemon=True)
    reader.start()
    end = time.monotonic() + 30
    while len(said()) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    for message in said()[:2]:
        assert "map: worker process" in message and message.count("in hangs") == 1
        # Nothing of what is not the user's concern, or was said before.
        assert "_watch" not in message and message.count("hread 0x") == 1
    iterator.stop()
    reader.join(10)
    assert not reader.is_alive()


def test_what_cannot_be_sent(said: Any) -> None:
    lock = threading.Lock()

    def locked(x: Any) -> Any:
        with lock:
            return x

    data = ds.NumpySlicesDataset(np.arange(4), ["x"], shuffle=False)
    with pytest.raises(TypeError, match="map: it cannot be sent to worker processes .*lock"):
        rows(data.map(locked, "x", num_parallel_workers=2, python_multiprocessing=True), 1)
    source = Numbers()
    source.lock = lock  # type: ignore[attr-defined]
    found = rows(ds.GeneratorDataset(source, ["n", "image", "noise"], shuffle=False, num_parallel_workers=2), 1)
    assert [row[0] for row in found[0]] == (np.arange(ROWS) * 3).tolist()
    assert "num_parallel_workers=2 has no effect for a source of class Numbers" in said()[0]


def test_functions_and_classes_by_value() -> None:
    class Base:
        def name(self) -> str:
            return "base"

    class Made(Base):
        __slots__ = ("value",)

        def __init__(self, value: Any) -> None:
            self.value = value

        def name(self) -> str:
            return super().name() + str(count())

    total = 3

    def count() -> int:
        nonlocal total
        total += 1
        return total

    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    import pickle

    for item, ask in (
        (Made(5), lambda x: (x.value, x.name(), x.name())),
        (even, lambda f: (f(10), f(7))),
        (lambda x, y=3: x + y, lambda f: f(1)),
        (np.linalg, lambda m: m.__name__),
    ):
        content, buffers = code_pickling.dumps(item)
        again = pickle.loads(content, buffers=buffers)
        before = total
        expected = ask(item)
        total = before
        assert ask(again) == expected


def test_regions_grow_and_are_read_back() -> None:
    import socket

    ours, theirs = socket.socketpair()
    one, two = shared_memory_channel.memory(), shared_memory_channel.memory()
    left = shared_memory_channel.Channel(
        ours, shared_memory_channel.Region(os.dup(one)), shared_memory_channel.Region(os.dup(two))
    )
    right = shared_memory_channel.Channel(theirs, shared_memory_channel.Region(two), shared_memory_channel.Region(one))
    for size in (0, 1, 3000, 5000, 1 << 20, 70):
        left.send({"x": np.arange(size), "y": "text"})
        found = right.receive()
        assert np.array_equal(found["x"], np.arange(size)) and found["x"].flags.writeable and found["y"] == "text"
    left.close()
    with pytest.raises(shared_memory_channel.Ended):
        right.receive()
    right.close()


SCRIPT = """
import os, sys, time
import numpy as np
import mycel.dataset as ds

def slow(x):
    time.sleep(0.02)
    return x

class Source:
    def __len__(self):
        return 1000
    def __getitem__(self, n):
        return slow(np.int64(n))

data = ds.GeneratorDataset(Source(), ["x"], num_parallel_workers=2).map(slow, num_parallel_workers=2)
iterator = data.create_tuple_iterator(output_numpy=True)
next(iterator)
from mycel.dataset.execution import worker_pool as processes
print(*(pid for crew in processes._crews for pid in crew.pids()), flush=True)
{end}
"""


@pytest.mark.parametrize("end, code", [("", 0), ("1 / 0", 1), ("os.kill(os.getpid(), 9)", -9)])
def test_no_process_outlives_the_program(end: str, code: int) -> None:
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(end=end)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert found.returncode == code, found.stderr
    pids = [int(pid) for pid in found.stdout.split()]
    limit = time.monotonic() + 10
    while any(map(_runs, pids)) and time.monotonic() < limit:
        time.sleep(0.02)
    assert pids and not any(map(_runs, pids))
    assert "Error" not in found.stderr or code == 1, found.stderr


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_resting_workers_that_all_die_as_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are done again in a new process, not in the next one that rests."""
    data = ds.NumpySlicesDataset(np.arange(ROWS), ["x"], shuffle=False)
    data = data.map(lambda x: x + 1, "x", num_parallel_workers=2, python_multiprocessing=True)
    read = lambda: [int(x) for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    expected = read()
    turned = worker_pool.Worker.turn_to
    killed: list[int] = []

    def turn_to(worker: Any, *about: Any) -> bool:
        found = turned(worker, *about)
        os.kill(worker.pid, signal.SIGKILL)
        killed.append(worker.pid)
        return found

    monkeypatch.setattr(worker_pool.Worker, "turn_to", turn_to)
    assert read() == expected


class Stuck:
    """What cannot be pickled."""

    def __reduce__(self) -> Any:
        raise ValueError("it stays here")


class Lost:
    """What cannot be made again."""

    def __reduce__(self) -> Any:
        return float, ("no number",)


@pytest.mark.parametrize(
    "value, why", [(Stuck, "ValueError: it stays here"), (Lost, "could not convert string to flo")]
)
def test_values_that_cannot_be_sent_are_named(value: Any, why: str) -> None:
    numbers = ds.NumpySlicesDataset([1, 2, 3], ["x"], shuffle=False)
    options: dict[str, Any] = {"python_multiprocessing": True, "num_parallel_workers": 2}
    for data in (
        # What a worker gives, and what it is given.
        numbers.map(lambda x: {"value": value()}, ["x"], **options),
        numbers.map(lambda x: {"value": value()}, ["x"]).map(lambda x: x, ["x"], **options),
    ):
        with pytest.raises(RuntimeError, match=f"map: rows cannot be sent between processes .*{why}.*dictionaries"):
            list(data)


@pytest.mark.parametrize("length", [-1, 2.5, None, 1 << 70])
def test_a_source_without_a_sound_length_is_named(length: Any) -> None:
    class Source:
        def __len__(self) -> int:
            return length  # type: ignore[no-any-return]

        def __getitem__(self, index: int) -> int:
            return index

    data = ds.GeneratorDataset(Source(), ["x"])
    for ask in (data.get_dataset_size, lambda: list(data)):
        with pytest.raises(RuntimeError, match="the source, of class Source, does not say its length: [A-Z]"):
            ask()


def _columns() -> dict[str, list[np.ndarray[Any, Any]]]:
    ramp = np.arange(12, dtype=np.float64).reshape(3, 4)
    return {
        "scalars": [np.asarray(n, np.int16) for n in range(3)],
        "texts of other lengths": [np.array("a"), np.array("längere"), np.array("")],
        "bytes": [np.array(b"abc"), np.array(b"x"), np.array(b"yz")],
        "lists of texts": [np.array(["a", "bc"]), np.array(["def"]), np.array([], "U1")],
        "other shapes": [ramp, ramp[:1], ramp[:, :0]],
        "other byte order": [ramp.astype(">f8"), ramp, ramp.astype(">f8")],
        "other types": [ramp, ramp.astype(np.float32), ramp.astype(np.int8)],
        "strided": [ramp[:, ::2], ramp.T, ramp],
        "no elements": [np.zeros((0, 3), np.uint8)] * 3,
        "times": [np.array("2020-01-01", "M8[D]")] * 3,
        "dictionaries": [column_blocks.of_dictionary({"a": n}) for n in range(3)],
        "large": [np.full(5000, n, np.float32) for n in range(3)],
        "structures": [np.zeros(2, [("x", np.int32), ("y", "U3")])] * 3,
    }


@pytest.mark.parametrize("name", _columns())
@pytest.mark.parametrize("apart", [True, False])
def test_rows_are_sent_as_they_are(name: str, apart: bool) -> None:
    column = _columns()[name]
    content, buffers = code_pickling.dumps(column_blocks.Block([column, np.arange(3)], 3), apart)
    came = pickle.loads(content, buffers=[bytearray(buffer) for buffer in buffers])
    assert came.count == 3 and isinstance(came.columns[0], list) and len(came.columns[0]) == 3
    for ours, theirs in zip(column, came.columns[0]):
        assert ours.dtype == theirs.dtype and ours.dtype.byteorder == theirs.dtype.byteorder
        assert ours.shape == theirs.shape and np.array_equal(ours, theirs)
        assert theirs.flags.writeable and theirs.flags.aligned
    np.testing.assert_array_equal(came.columns[1], np.arange(3))


def test_rows_that_were_sent_share_nothing() -> None:
    rows = [np.array([n, n]) for n in range(4)]
    came = pickle.loads(code_pickling.dumps(column_blocks.Block([rows], 4), False)[0])
    came.columns[0][1][:] = 9
    np.testing.assert_array_equal(came.columns[0], [[0, 0], [9, 9], [2, 2], [3, 3]])
    np.testing.assert_array_equal(rows[1], [1, 1])
