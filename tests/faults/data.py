"""`python -m tests.faults.data COUNT [SEED [FAULT ...]]`: faults of pipelines, COUNT times each.

Each fault is a function of a generator of random numbers that raises where something is wrong. A
pipeline with workers (threads or processes) is disturbed: a worker is killed, a function raises,
Ctrl-C arrives, the consumer stops, the program forks, the disk is full, a file is damaged. It has
to end, or to go on with the right rows, within `LIMIT` seconds, and to leave no thread, process or
descriptor behind.
"""

from __future__ import annotations

import functools
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import mycel.dataset as ds
from mycel.dataset.execution import worker_pool
from tests.fuzz.drivers._damage import damage

try:
    import resource
except ImportError:  # Windows
    resource = None

ROWS = 60
LIMIT = 2.0
THREADS = ("mycel-rows", "mycel-dataset", "mycel-workers", "mycel-send")  # those of pipelines
STAGES = ("source", "map", "filter", "batch")
KINDS = (ValueError, StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError)


class Trouble:
    """What a stage does at one row; `kind` None does nothing."""

    def __init__(self, stage="", kind=None, at=0, pause=0.0):
        self.stage, self.kind, self.at, self.pause = stage, kind, at, pause

    def __call__(self, stage, value):
        if self.pause:
            time.sleep(self.pause)
        if stage == self.stage and value == self.at:
            raise self.kind("from the user")


class Source:
    def __init__(self, trouble):
        self.trouble = trouble

    def __len__(self):
        return ROWS

    def __getitem__(self, number):
        self.trouble("source", number)
        return np.int64(number)


def pipeline(trouble, workers, apart):
    def changed(x):
        trouble("map", int(x))
        return x, np.full(1000, x)

    def kept(x):
        trouble("filter", int(x))
        return True

    def batched(xs, info):
        for x in xs:
            trouble("batch", int(x))
        return (xs,)

    options = {"num_parallel_workers": workers, "python_multiprocessing": apart}
    data = ds.GeneratorDataset(Source(trouble), ["x"], shuffle=False, **options)
    data = data.map(changed, "x", ["x", "y"], **options).filter(kept, "x", num_parallel_workers=workers)
    return data.batch(4, per_batch_map=batched, input_columns=["x"], **options)


def drawn(draw, trouble):
    return pipeline(trouble, draw.choice((1, 2, 3)), draw.random() < 0.5)


def read(iterator):
    return [int(x) for xs, _ in iterator for x in xs]


def left():
    """What may not grow: threads and processes of pipelines, and open descriptors."""
    gc.collect()
    threads = sorted(t.name for t in threading.enumerate() if t.name.startswith(THREADS))
    crews = [crew.name for crew in worker_pool._crews if not crew.closed]
    return threads, crews, len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def clean(before, begin):
    """Wait for the end of what was left; raise where it takes longer than `LIMIT`. Gives what there
    is: a descriptor of what ended before may have been open still.
    """
    while (now := left())[:2] != before[:2] or now[2] > before[2]:
        if time.monotonic() - begin > LIMIT:
            raise AssertionError(f"after {LIMIT} s there are {now}, there were {before}")
        time.sleep(0.01)
    return now


def raises(draw):
    trouble = Trouble(draw.choice(STAGES), draw.choice(KINDS), draw.randrange(ROWS))
    iterator = drawn(draw, trouble).create_tuple_iterator(num_epochs=1, output_numpy=True)
    try:
        read(iterator)
    except BaseException as error:
        text = f"{error} {error.__cause__}"
        assert isinstance(error, (trouble.kind, RuntimeError)), error
        assert "from the user" in text or "StopIteration" in text, error
    else:
        raise AssertionError("the error was lost")


def kills_worker(draw):
    iterator = pipeline(Trouble(pause=0.002), 2, True).create_tuple_iterator(num_epochs=1, output_numpy=True)
    found = [int(x) for x in next(iterator)[0]]
    over = threading.Event()

    def kill():
        while not over.wait(0.2 * draw.random()):
            pids = [pid for crew in worker_pool._crews if not crew.closed for pid in crew.pids()]
            if pids:
                os.kill(draw.choice(pids), signal.SIGKILL)
                return

    thread = threading.Thread(target=kill)
    thread.start()
    found += read(iterator)
    over.set()
    thread.join()
    assert found == list(range(ROWS)), found


def interrupted(draw):
    iterator = drawn(draw, Trouble(pause=0.002)).create_tuple_iterator(output_numpy=True)
    next(iterator)
    timer = threading.Timer(0.05 * draw.random(), os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()  # it may have come before this returns
        for _ in range(1000):
            read(iterator)
        raise AssertionError("the interrupt was lost")
    except KeyboardInterrupt:
        pass
    timer.join()
    iterator.stop()


def stops_early(draw):
    iterator = drawn(draw, Trouble(pause=draw.choice((0.0, 0.001)))).create_tuple_iterator(output_numpy=True)
    for _ in range(draw.randrange(ROWS // 4)):
        next(iterator)
    if draw.random() < 0.5:
        iterator.stop()


def forks(draw):
    iterator = drawn(draw, Trouble(pause=0.001)).create_tuple_iterator(num_epochs=1, output_numpy=True)
    found = [int(x) for _ in range(draw.randrange(1, 4)) for x in next(iterator)[0]]
    child = os.fork()
    if not child:
        # It leaves at once, with the parent's iterator still live in it.
        os._exit(0 if len(iterator.get_col_names()) == 2 else 1)
    found += read(iterator)
    assert found == list(range(ROWS)) and os.waitpid(child, 0)[1] == 0


def full_disk(draw):
    """Files may only have so many bytes while a pipeline is saved, or copies are written."""
    count, kind = draw.randrange(200, 400), draw.choice(("mindrecord", "tfrecord"))
    options = {"num_parallel_workers": draw.choice((1, 2)), "python_multiprocessing": False}
    data = ds.NumpySlicesDataset({"x": np.arange(count)}, shuffle=False)
    # TFRecord keeps small numbers in fewer bytes.
    data = data.map(lambda x: (x, np.full(200, x + (1 << 30), np.int32)), "x", ["x", "y"], **options)
    with tempfile.TemporaryDirectory() as folder:
        path, files = os.path.join(folder, f"a.{kind}"), draw.choice((1, 2))
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (draw.randrange(1, 80_000), before[1]))
        begin = time.monotonic()
        try:
            data.save(path, files if kind == "mindrecord" else 1, kind)
        except (OSError, RuntimeError, ValueError) as error:
            assert "File too large" in f"{error} {error.__cause__}", repr(error)
        else:
            raise AssertionError("more was written than there was room for")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert time.monotonic() - begin < LIMIT and os.listdir(folder) == [], os.listdir(folder)
        data.save(path, 1, kind)
        rows = opened(kind, path, columns_list=["x"]).create_tuple_iterator(num_epochs=1, output_numpy=True)
        assert [int(np.ravel(x)[0]) for (x,) in rows] == list(range(count))


def opened(kind, path, **options):
    make = {"text": ds.TextFileDataset, "tfrecord": ds.TFRecordDataset, "mindrecord": ds.MindDataset}[kind]
    return make(path, **{"shuffle": False, **options})


@functools.cache
def sound(kind):
    """Files with the rows 0 to `ROWS`, by their names."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "text":
            Path(folder, "a.text").write_text("".join(f"{n} some words\n" for n in range(ROWS)))
        else:
            data = ds.NumpySlicesDataset({"x": np.arange(ROWS), "y": np.ones((ROWS, 9), np.float32)}, shuffle=False)
            data.save(os.path.join(folder, f"a.{kind}"), 1, kind)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def damaged(draw):
    """A file has other bytes, or ends early: its rows, or an error that names it, and no worker
    that waits.
    """
    kind = draw.choice(("text", "tfrecord", "mindrecord"))
    files = dict(sound(kind))
    name = draw.choice(sorted(files))
    files[name] = damage(draw, files[name])
    with tempfile.TemporaryDirectory() as folder:
        for other, content in files.items():
            Path(folder, other).write_bytes(content)
        path, count = os.path.join(folder, f"a.{kind}"), 0
        partial = draw.choice((False, ds.Shuffle.PARTIAL))
        options = {"num_parallel_workers": draw.choice((1, 2, 8)), "shuffle": partial}
        begin = time.monotonic()
        try:
            data = opened(kind, path, **options)
            data = data.map(lambda x: x, num_parallel_workers=2, python_multiprocessing=draw.random() < 0.5)
            for _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
                count += 1
        except Exception as error:
            assert "a." in str(error) or "Dataset" in str(error), repr(error)
            assert time.monotonic() - begin < 10 * LIMIT
        else:
            # Text may have other line ends.
            assert count <= 2 * ROWS + 20_000, count


FAULTS = {
    fault.__name__: fault
    for fault in (raises, kills_worker, interrupted, stops_early, forks, *([full_disk] if resource else []), damaged)
}


def run(name, count, seed):
    """Run one fault `count` times; return the longest time that cleaning up took."""
    draw, longest = random.Random(f"{name} {seed}"), 0.0
    # The fork server, which stays, has its descriptors open from here on.
    read(pipeline(Trouble(), 2, True).create_tuple_iterator(num_epochs=1, output_numpy=True))
    # Code for the parsing of records is made once, and has descriptors of its own.
    for kind in ("mindrecord", "tfrecord"):
        with tempfile.TemporaryDirectory() as folder:
            for file, content in sound(kind).items():
                Path(folder, file).write_bytes(content)
            list(opened(kind, os.path.join(folder, f"a.{kind}")).create_tuple_iterator(num_epochs=1))
    # `left` collects garbage, which takes seconds among the objects of all other tests. They stay
    # out of its sight: what collects later goes through as many.
    gc.collect()
    gc.freeze()
    # Workers rest; what ends them is gone after the last of them.
    begin = time.monotonic()
    while (before := left())[:2] != ([], []):
        assert time.monotonic() - begin < 10 * LIMIT, f"from others there are still {before}"
        time.sleep(0.01)
    for number in range(count):
        try:
            FAULTS[name](draw)
            begin = time.monotonic()
            before = clean(before, begin)
        except BaseException as error:
            raise AssertionError(f"{name}, number {number} of seed {seed}: {error!r}") from error
        longest = max(longest, time.monotonic() - begin)
    return longest


if __name__ == "__main__":
    many, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    for fault in sys.argv[3:] or FAULTS:
        begun = time.monotonic()
        worst = run(fault, many, first)
        took = time.monotonic() - begun
        print(f"{fault}: {many} times (seed {first}) in {took:.0f} s, cleaned up within {worst:.2f} s", flush=True)
