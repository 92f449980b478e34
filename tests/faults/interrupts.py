"""`python -m tests.faults.interrupts COUNT [SEED [KIND ...]]`: COUNT times Ctrl-C for each kind of
program, at random moments, to all processes of its terminal.

A program does its work in a loop and hears Ctrl-C `EACH` times; it goes on after all but the last,
which ends it. Each has to be heard, and the last one has to end all of its processes: who reads
their output waits for these too. An interrupt is lost that is not heard within `PATIENCE` seconds.
The longest times are printed; those of one program alone on a machine should lie within two
seconds.
"""

from __future__ import annotations

import os
import pathlib
import random
import selectors
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
PATIENCE = 30.0
EACH = 20
# Most interrupts come within so many seconds of the last one.
SOON = 0.5

HEAD = """
import os, sys, threading
import numpy as np
import mycel as ms
from mycel import nn, ops, train
import mycel.dataset as ds

def rows(apart, count=2, size=4):
    data = ds.NumpySlicesDataset((np.ones((64, 8), np.float32), np.zeros(64, np.int32)), ["x", "y"])
    return data.map(half, ["x"], num_parallel_workers=count, python_multiprocessing=apart).batch(size)

def half(x):
    return x * np.float32(0.5)

def go():
"""
TAIL = """
times = int(sys.argv[1])
os.write(1, b"on\\n")
while True:
    try:
        while True:
            go()
    except KeyboardInterrupt:
        times -= 1
        if not times:
            raise
        os.write(1, b"heard\\n")
"""
KINDS = {
    "processes": """
    for x, y in rows(True).create_tuple_iterator(num_epochs=1):
        pass
""",
    "left early": """
    for k, _ in enumerate(rows(True).create_tuple_iterator()):
        if k == 5:
            break
""",
    "spawn": """
    ds.config.set_multiprocessing_start_method("spawn")
    for x, y in rows(True, 1).create_dict_iterator(num_epochs=1):
        pass
""",
    "threads": """
    for x, y in rows(False).create_tuple_iterator(num_epochs=2):
        pass
""",
    "compiling": """
    k = float(np.random.rand())
    net = nn.SequentialCell(nn.Dense(4, 4), nn.Tanh(), nn.Dense(4, 3))
    x = ms.Tensor(np.ones((2, 4), np.float32))
    step = ms.jit(lambda x: (ops.tanh(net(x)) * k).sum())
    step(x).asnumpy()
    ms.value_and_grad(lambda x: ops.exp(net(x)).sum(), None, net.trainable_params())(x)
""",
    "checkpoints": """
    state = [{"name": "w", "data": ms.Tensor(np.ones((64, 64), np.float32))}]
    ms.save_checkpoint(state, "state.ckpt")
    ms.save_checkpoint(state, "other", async_save=True)
    assert float(ms.load_checkpoint("state.ckpt")["w"].sum()) == 4096
""",
    "training": """
    net = nn.Dense(8, 3)
    model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.01))
    saves = train.ModelCheckpoint("net", "saved", train.CheckpointConfig(save_checkpoint_steps=5))
    model.train(2, rows(True), callbacks=[saves, train.BackupAndRestore("backup")])
""",
    "sinking": """
    net = nn.Dense(8, 3)
    model = train.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params(), 0.01))
    model.train(2, rows(False), dataset_sink_mode=True)
""",
    "launch": """
    ms.communication.init()
    while True:
        for x, y in rows(False).create_tuple_iterator(num_epochs=1):
            ops.AllReduce()(x)
""",
}


def started(kind: str, folder: str, times: int) -> subprocess.Popen[str]:
    script = pathlib.Path(folder, "program.py")
    script.write_text(HEAD + KINDS[kind] + TAIL)
    launch = ["-m", "mycel", "launch", "-n", "2"] if kind == "launch" else []
    return subprocess.Popen(
        [sys.executable, *launch, str(script), str(times)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MYCEL_CACHE": os.path.join(folder, "cache")},
    )


def interrupted(kind: str, count: int, seed: int) -> tuple[int, list[str], float, float]:
    """Interrupt programs of a kind `count` times.

    Gives how many interrupts there were, what was wrong with those that were lost, and the longest
    times until one was heard, and until a program had ended.
    """
    draw, sent, lost, heard, ended = random.Random(f"{kind} {seed}"), 0, [], 0.0, 0.0
    while sent < count:
        times = 1 if kind == "launch" else min(EACH, count - sent)
        with tempfile.TemporaryDirectory() as folder:
            process = started(kind, folder, times)
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.readline() == "on\n", process.communicate()[1]
            left = times
            while left:
                time.sleep(draw.choice((0.01, SOON, SOON, 4 * SOON)) * draw.random())
                begin = time.monotonic()
                os.killpg(process.pid, signal.SIGINT)
                sent, left = sent + 1, left - 1
                if left and not line_within(process, PATIENCE):
                    break
                heard = max(heard, time.monotonic() - begin) if left else heard
            try:
                process.communicate(timeout=PATIENCE if not left else 0.01)
                ended = max(ended, time.monotonic() - begin)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGINT)
                time.sleep(1)
                os.killpg(process.pid, signal.SIGKILL)
                lost.append(f"{kind}, {left} were left: {process.communicate()[1][-3000:]}")
    return sent, lost, heard, ended


def line_within(process: subprocess.Popen[str], seconds: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
        if not selector.select(seconds):
            return False
    return process.stdout.readline() == "heard\n"  # type: ignore[union-attr]


def main(count: int, seed: int, kinds: list[str]) -> None:
    total = 0
    for kind in kinds or KINDS:
        sent, lost, heard, ended = interrupted(kind, count, seed)
        total += len(lost)
        print(f"{kind}: {sent} interrupts, {len(lost)} lost; heard within {heard:.2f} s, ended within {ended:.2f} s")
        print(*lost, sep="\n", end="\n" * bool(lost), flush=True)
    assert not total, f"{total} interrupts were lost"


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time()), sys.argv[3:])
