"""Threads of a pipeline: what they share, how whatever a user's function raises reaches the
consumer, and how they end.
"""

from __future__ import annotations

import gc
import itertools
import logging
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import mycel.dataset as ds
from mycel._src.foundation import logged_once
from mycel.dataset.execution import thread_safety
from mycel.dataset.iteration.iterators import _Queue

ROWS = 12


class Boom(BaseException):
    """Not an Exception."""


def pipeline_threads():
    return [t for t in threading.enumerate() if t.name.startswith("mycel-")]


@pytest.fixture(autouse=True)
def all_threads_end():
    yield
    gc.collect()
    end = time.monotonic() + 10
    while pipeline_threads() and time.monotonic() < end:
        time.sleep(0.01)
    assert not pipeline_threads()


@pytest.fixture
def said(caplog):
    logged_once._said.clear()
    logger = logging.getLogger("mycel")
    logger.addHandler(caplog.handler)
    yield lambda: [record.getMessage() for record in caplog.records]
    logger.removeHandler(caplog.handler)


def bounded(function, seconds=20):
    """What a function returns or raises, within a time: a test that hangs fails."""
    found = []

    def run():
        try:
            found.append((function(), None))
        except BaseException as error:
            found.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "the consumer waits for ever"
    return found[0]


class Raises:
    """A user's object that raises where it is called for row `at`."""

    def __init__(self, kind, at):
        self.kind, self.at, self.calls = kind, at, itertools.count()

    def check(self):
        if next(self.calls) == self.at:
            raise self.kind("from the user")

    def __call__(self, *row):
        self.check()
        return row[0]

    def __getitem__(self, number):
        if number == self.at:
            raise self.kind("from the user")
        return np.int64(number)

    def __len__(self):
        return ROWS

    def rows(self):
        for number in range(ROWS):
            self.check()
            yield number


def numbers():
    return ds.NumpySlicesDataset(list(range(ROWS)), ["x"], shuffle=False)


class BadSampler(ds.Sampler):
    def __init__(self, raises):
        super().__init__()
        self.raises = raises

    def __iter__(self):
        for number in range(ROWS):
            self.raises.check()
            yield number


def batches_of(raises):
    for number in range(ROWS):
        raises.check()
        yield [number]


OPERATIONS = {
    "map": lambda r, w: numbers().map(r, "x", num_parallel_workers=w),
    "filter": lambda r, w: numbers().filter(lambda x: r(x) >= 0, num_parallel_workers=w),
    "generator": lambda r, w: ds.GeneratorDataset(r.rows, ["x"], num_parallel_workers=w),
    "getitem": lambda r, w: ds.GeneratorDataset(r, ["x"], shuffle=False, num_parallel_workers=w),
    "sampler": lambda r, w: ds.NumpySlicesDataset(list(range(ROWS)), ["x"], sampler=BadSampler(r)),
    "batch_sampler": lambda r, w: ds.GeneratorDataset(list(range(ROWS)), ["x"], batch_sampler=batches_of(r)),
    "collate": lambda r, w: ds.GeneratorDataset(
        list(range(ROWS)), ["x"], batch_sampler=[[n] for n in range(ROWS)], collate_fn=r
    ),
    "per_batch_map": lambda r, w: numbers().batch(
        1, per_batch_map=lambda x, info: (list(r(x)),), num_parallel_workers=w
    ),
    "batch_size": lambda r, w: numbers().batch(lambda info: r(1)),
    "bucket": lambda r, w: numbers().bucket_batch_by_length(["x"], [100], [1, 1], lambda x: int(r(x)) % 3),
    "flat_map": lambda r, w: numbers().flat_map(lambda x: ds.NumpySlicesDataset([r(x)], ["x"])),
}
PLACES = {
    "alone": lambda d: d,
    "shuffle": lambda d: d.shuffle(4),
    "repeat": lambda d: d.repeat(2),
    "batch": lambda d: d.batch(3),
    "zip": lambda d: d.zip(numbers().rename("x", "y")),
    "concat": lambda d: d + d,
    "skip take": lambda d: d.skip(1).take(ROWS - 1),
}
KINDS = (Exception, ValueError, StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit, Boom)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("at", (1, ROWS // 2))
def test_whatever_is_raised_reaches_the_consumer_and_ends_the_threads(operation, at):
    for number, (place, kind) in enumerate(itertools.product(PLACES, KINDS)):
        data = PLACES[place](OPERATIONS[operation](Raises(kind, at), 1 + number % 3))
        iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
        _, error = bounded(lambda iterator=iterator: list(iterator))
        what = (operation, place, kind, at)
        if issubclass(kind, Exception):
            assert isinstance(error, (RuntimeError, kind)), what
            text = str(error) + str(error.__cause__)
            assert "from the user" in text or "StopIteration" in text, (what, error)
        else:
            assert type(error) is kind and error.args == ("from the user",), (what, error)
        with pytest.raises(RuntimeError, match="stopped"):
            next(iterator)


def test_rows_before_the_error_come_first():
    for workers, kind in itertools.product((1, 2, 3), (ValueError, SystemExit)):
        data = ds.GeneratorDataset(Raises(kind, 5), ["x"], shuffle=False, num_parallel_workers=workers)
        seen = []

        def consume(data=data, seen=seen):
            for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
                seen.append(int(x))

        assert bounded(consume)[1] is not None and seen == list(range(5)), (workers, kind)


def test_iterators_that_are_dropped_or_whose_consumer_fails_end_their_threads():
    data = OPERATIONS["map"](lambda x: x, 2).repeat()
    for _ in range(10):
        next(iter(data.create_tuple_iterator(output_numpy=True)))
        with pytest.raises(ZeroDivisionError):
            for (x,) in data.create_tuple_iterator(output_numpy=True):
                1 / (int(x) - 3)
    holder = data.create_tuple_iterator(output_numpy=True)
    holder.cycle = holder
    next(holder)
    del holder


def test_a_queue_may_be_closed_while_its_lock_is_held():
    # As a collection of garbage does that begins within `put`.
    queue = _Queue(2)

    def close_within():
        with queue.may_write:
            queue.close()
        return queue.put(1)

    assert bounded(close_within) == (False, None)


def test_rows_read_in_debug_mode_raise_as_they_are():
    ds.config.set_debug_mode(True)
    try:
        for kind in KINDS[3:]:
            iterator = OPERATIONS["map"](Raises(kind, 3), 2).create_tuple_iterator(num_epochs=1)
            assert type(bounded(lambda iterator=iterator: list(iterator))[1]) is kind
    finally:
        ds.config.set_debug_mode(False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("workers", (1, 3))
def test_a_forked_child_reads_on(workers):
    iterator = OPERATIONS["map"](lambda x: x, workers).repeat(100).batch(5).create_tuple_iterator(output_numpy=True)
    for _ in range(7):
        next(iterator)
    for _ in range(5):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.write(writing, repr([next(iterator)[0].tolist() for _ in range(3)]).encode())
            del iterator
            gc.collect()
            os._exit(0)
        os.close(writing)
        status = bounded(lambda child=child: os.waitpid(child, 0)[1])[0]
        found = os.read(reading, 1000).decode()
        os.close(reading)
        assert status == 0 and found == repr([next(iterator)[0].tolist() for _ in range(3)])
    iterator.stop()


EXIT = """
import sys, threading, time
import mycel.dataset as ds
def slow(x):
    time.sleep({pause})
    return x
data = ds.NumpySlicesDataset(list(range(64)), ["x"], shuffle=False)
data = data.map(slow, "x", num_parallel_workers={workers}).repeat()
iterator = iter(data.create_tuple_iterator(output_numpy=True))
next(iterator)
print("read", flush=True)
{end}
"""


@pytest.mark.parametrize("pause, workers, end, code", [(0.002, 3, "sys.exit(3)", 3), (0.002, 2, "1 / 0", 1)])
def test_the_interpreter_ends_while_workers_run(pause, workers, end, code):
    found = subprocess.run(
        [sys.executable, "-c", EXIT.format(pause=pause, workers=workers, end=end)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert found.returncode == code and found.stdout == "read\n", found.stderr
    assert "Fatal" not in found.stderr and ("ZeroDivisionError" in found.stderr) == (code == 1)


def test_the_interpreter_ends_although_a_function_never_does():
    script = EXIT.format(pause=0.0, workers=2, end="").replace("time.sleep(0.0)", "x == 40 and time.sleep(1000)")
    found = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert found.returncode == 0 and found.stdout == "read\n" and "Fatal" not in found.stderr, found.stderr


# What threads share.

COUNT = 4000


@pytest.fixture(scope="module")
def numbers_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "numbers.bin"
    np.arange(COUNT, dtype="<i8").tofile(path)
    return path


class Seeks:
    """A source that seeks in an open file."""

    def __init__(self, path, opened):
        self.opened = opened(path)

    def __len__(self):
        return COUNT

    def __getitem__(self, number):
        self.opened.seek(8 * number)
        return np.frombuffer(self.opened.read(8), "<i8")[0]


class SeeksDescriptor(Seeks):
    def __getitem__(self, number):
        os.lseek(self.opened, 8 * number, os.SEEK_SET)
        return np.frombuffer(os.read(self.opened, 8), "<i8")[0]


class Reopens(Seeks):
    """A source that can be copied: a copy opens the file itself."""

    def __init__(self, path):
        super().__init__(path, lambda path: open(path, "rb"))
        self.path = path

    def __getstate__(self):
        return self.path

    def __setstate__(self, path):
        self.__init__(path)

    def __del__(self):
        self.opened.close()


class Scratch:
    """A source that writes what it is doing into itself."""

    def __init__(self):
        self.now = 0
        self.buffer = np.zeros(1, np.int64)

    def __len__(self):
        return COUNT

    def __getitem__(self, number):
        self.now = number
        self.buffer[0] = number
        for _ in range(20):
            pass
        return self.now * 10000 + int(self.buffer[0])


def rows_of(source, workers):
    data = ds.GeneratorDataset(source, ["x"], shuffle=False, num_parallel_workers=workers, python_multiprocessing=False)
    return np.array([int(x) for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)])


@pytest.fixture(autouse=True)
def threads_change_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("workers", (2, 4))
def test_a_source_that_seeks_gives_every_row_right(numbers_file, workers, said):
    expected = np.arange(COUNT)
    held = Seeks(numbers_file, lambda path: open(path, "rb", buffering=0))
    assert np.array_equal(rows_of(held, workers), expected)
    for _ in range(2):
        rows_of(held, workers)
    (warning,) = said()
    assert (
        f"num_parallel_workers={workers} has no effect" in warning
        and "Seeks" in warning
        and "cannot be copied" in warning
    )
    held.opened.close()
    descriptor = SeeksDescriptor(numbers_file, lambda path: os.open(path, os.O_RDONLY))
    assert np.array_equal(rows_of(descriptor, workers), expected) and "by its descriptor" in said()[-1]
    os.close(descriptor.opened)
    before = len(said())
    assert np.array_equal(rows_of(Reopens(numbers_file), workers), expected)
    assert np.array_equal(rows_of(Scratch(), workers), expected * 10001)
    assert len(said()) == before
    gc.collect()


def test_files_in_classes_globals_and_closures_are_found(numbers_file, said):
    with open(numbers_file, "rb") as opened:

        class Around:
            def __len__(self):
                return 100

            def __getitem__(self, number):
                opened.seek(8 * number)
                return np.frombuffer(opened.read(8), "<i8")[0]

        assert np.array_equal(rows_of(Around(), 3), np.arange(100)) and "'opened'" in said()[-1]

        class Held:
            file = opened

        assert "its class holds" in thread_safety.held(Held())

        def seek(x, file=opened):
            file.seek(8 * int(x))
            return np.frombuffer(file.read(8), "<i8")[0]

        data = ds.NumpySlicesDataset(np.arange(COUNT), ["x"], shuffle=False).map(seek, num_parallel_workers=4)
        found = [int(x) for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        assert found == list(range(COUNT)) and "map: num_parallel_workers=4 has no effect" in said()[-1]


def test_copies_share_what_cannot_change_and_are_bounded(monkeypatch):
    fixed = np.arange(1000)
    fixed.flags.writeable = False

    class Source(Scratch):
        def __init__(self):
            super().__init__()
            self.fixed, self.changing, self.function = fixed, np.arange(10), lambda x: x + 1

    source = Source()
    made, reason = thread_safety.copies(source, 3)
    assert not reason and made[0] is source and type(made[1]) is Source
    assert np.shares_memory(made[1].fixed, fixed) and not np.shares_memory(made[1].changing, source.changing)
    assert made[2].changing.flags.writeable and made[1].function is source.function
    source.names = [(f"{n}.jpg", n) for n in range(2000)]
    source.by_name = {name: n for name, n in source.names}
    source.short, source.mixed = [1, 2], [[n] for n in range(2000)]
    (_, copy), _ = thread_safety.copies(source, 2)
    assert copy.names is source.names and copy.by_name is source.by_name
    assert copy.short == [1, 2] and copy.short is not source.short
    assert copy.mixed == source.mixed and copy.mixed[0] is not source.mixed[0]
    monkeypatch.setattr(thread_safety, "MOST", 1 << 20)
    source.changing = np.zeros(1 << 20, np.uint8)
    assert thread_safety.copies(source, 3) == ([source], "copies of it would take more than 1 MiB")
    items = [1, 2]
    assert thread_safety.copies(items, 2) == ([items, items], "")
    source.changing = threading.Lock()
    assert "it cannot be copied" in thread_safety.copies(source, 2)[1]
