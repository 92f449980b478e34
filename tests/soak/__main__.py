"""`python -m tests.soak --minutes N`: work that begins and ends things, over and over, and what it
may leave behind: nothing.

A round trains with sizes that change, makes and drops functions, Cells and classes, opens pipelines
and leaves some of them half read, saves and loads, forks, and raises errors on the way. After each
round memory in use (the program's account and the process's resident set), open descriptors,
threads, Python's objects and the cache folder are measured. The first third of the rounds, five at
least, is warm-up. Of the rest the growth is the slope of a line through the medians of both halves,
times the rounds: it may be at most `TOLERANCE` of the mean (resident set, objects, cache) or
nothing at all (descriptors, threads). The exit status is 1 where something grows.
"""

from __future__ import annotations

import argparse
import gc
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

import numpy as np

import mycel as ms
from mycel import Tensor, nn, ops

TOLERANCE = {
    "resident MiB": 0.05,
    "allocated MiB": 0.02,
    "objects": 0.01,
    "cache MiB": 0.1,
    "descriptors": 0.0,
    "threads": 0.0,
}
SLACK = {
    "resident MiB": 24.0,
    "allocated MiB": 0.5,
    "objects": 2000.0,
    "cache MiB": 2.0,
    "descriptors": 0.5,
    "threads": 0.5,
}
SIZES = (3, 5, 8, 13)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(nn.Dense(16, 64), nn.ReLU(), nn.Dense(64, 4))

    @ms.jit
    def compiled(self, x):
        return self.layers(x) * 2

    def construct(self, x):
        return self.layers(x)


def train(k):
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, optimizer.parameters)

    @ms.jit
    def step(x, y):
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        return loss

    for n in SIZES:
        x, y = Tensor(np.ones((n, 16), np.float32)), Tensor(np.zeros(n, np.int32))
        step(x, y)
        net.compiled(x)
        gradient(x, y)


def functions(k):
    for n in range(4):
        held = Tensor(np.full(1000, n, np.float32))
        ms.jit(lambda x, held=held, n=n: (x * held).sum() + n)(held)
        ms.grad(lambda x: ops.tanh(x * held).sum())(held)  # noqa: B023

    class Local(nn.Cell):
        def construct(self, x):
            return x + 1 if x.sum() > 0 else x - 1

    ms.jit(Local())(Tensor([1.0]))
    big = Tensor(np.zeros(1 << 20, np.float32))
    big[5] = 1.0
    (big[big > 0].sum() + ops.nonzero(big).shape[0]).asnumpy()


def pipelines(k):
    rows = [(np.full(64, i, np.float32),) for i in range(64)]
    data = ms.dataset.GeneratorDataset(rows, ["a"]).map(lambda a: a * 2, "a").batch(4)
    list(data.create_tuple_iterator(num_epochs=1))
    left = iter(data.create_dict_iterator(num_epochs=3))
    next(left)


def files(k, folder):
    net = Net()
    path = os.path.join(folder, "net.ckpt")
    ms.save_checkpoint(net, path)
    ms.load_param_into_net(net, ms.load_checkpoint(path))
    ms.save_checkpoint(net, path, async_save=True)


def errors(k):
    for bad in (lambda: ops.reshape(Tensor([1.0]), (2,)), lambda: ms.jit(lambda x: x.nothing)(Tensor([1.0]))):
        try:
            bad()
        except (ValueError, AttributeError):
            continue
        raise AssertionError("no error")


def forks(k):
    if not hasattr(os, "fork"):
        return
    pid = os.fork()
    if pid == 0:
        try:
            functions(k)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def measure():
    gc.collect()
    found = {
        "allocated MiB": ms.runtime.memory_allocated() / 2**20,
        "objects": float(len(gc.get_objects())),
        "threads": float(threading.active_count()),
    }
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        (line,) = [v for v in status.read_text().splitlines() if v.startswith("VmRSS")]
        found["resident MiB"] = int(line.split()[1]) / 1024
        found["descriptors"] = float(len(os.listdir("/proc/self/fd")))
    cache = pathlib.Path(os.environ["MYCEL_CACHE"])
    found["cache MiB"] = sum(p.stat().st_size for p in cache.rglob("*") if p.is_file()) / 2**20
    return found


def growth(values):
    """How much a line through the medians of both halves rises over all values."""
    half = len(values) // 2
    return 2 * (statistics.median(values[-half:]) - statistics.median(values[:half]))


def verdict(history):
    """What grew, with the numbers of all that was measured."""
    rest = history[max(5, len(history) // 3) :]
    grown, lines = [], []
    for name in rest[0]:
        values = [m[name] for m in rest]
        rise, allowed = growth(values), max(SLACK[name], TOLERANCE[name] * statistics.mean(values))
        lines.append(f"{name}: {values[0]:.1f} to {values[-1]:.1f}, growth {rise:+.1f}, {allowed:.1f} allowed")
        if rise > allowed:
            grown.append(name)
    return grown, lines


def soak(minutes):
    """Rounds for so many minutes, eleven at least; what was measured after each."""
    history, end = [], time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        while len(history) < 11 or time.monotonic() < end:
            k = len(history)
            train(k), functions(k), pipelines(k), files(k, folder), errors(k), forks(k)
            ms.train.serialization._background.wait()
            history.append(measure())
    return history


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MYCEL_CACHE"] = cache
        history = soak(minutes)
        grown, lines = verdict(history)
    print("\n".join([f"{len(history)} rounds", *lines]))
    print(f"grows: {', '.join(grown)}" if grown else "flat")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
