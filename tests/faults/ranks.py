"""Ranks that fail, one of four, in every way and each place: all end within 15 seconds, with
a status other than 0, and the launcher names the rank, the reason and the line. Nobody is left.

`python -m tests.faults.ranks COUNT WAYS` does it COUNT times for each way (all without any) and
rank, and prints the longest time from the failure to the end of the launch.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).parents[2]
LIMIT = 15.0

# Each way, the line of the program by which it fails, and what is said of it.
WAYS = {
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL"),
    "raise": ("raise ValueError('what is wrong')", "has failed: ValueError: what is wrong at PLACE"),
    "interrupt": ("raise KeyboardInterrupt", "has failed: KeyboardInterrupt at PLACE"),
    "exit": ("sys.exit(3)", "has failed: SystemExit: 3 at PLACE"),
    "quit": ("os._exit(4)", "has ended with status 4"),
    "sleep": ("time.sleep(10**6)", "stands still at PLACE"),
    "stop": ("os.kill(os.getpid(), signal.SIGSTOP)", "stands still at"),
    "wait": ("threading.Event().wait()", "stands still at PLACE"),
    "receive": ("ops.recv(ms.Tensor([1.0]), (rank + 1) % 4)", "in receive at PLACE"),
    "leave": ("sys.exit(0)", "has ended, with status 0, while "),
    "own": ("raise Own('mine')", "has failed: Own: mine at PLACE"),
    "memory": ("np.empty(2**60, np.uint8)", "has failed: MemoryError: "),
    "abort": ("os.abort()", "was ended by SIGABRT"),
    "fault": ("ctypes.string_at(0)", "was ended by SIGSEGV"),
    "thread": (
        "threading.Thread(target=broken, name='loader').start(); threading.Event().wait()",
        "stands still at PLACE; its thread loader has failed: ValueError: in a thread at",
    ),
    "lock": ("lock = threading.Lock(); lock.acquire(); lock.acquire()", "stands still at PLACE"),
    "child": ("child.wait()", "stands still at PLACE"),
    "end": ("threading.Thread(target=time.sleep, args=(10**6,)).start(); sys.exit(0)", "stands still at "),
    "compiling": (
        "later(0.5); [ms.jit(lambda x, k=k: (x * k).sum() + x)(x) for k in range(10**6)]",
        "was ended by SIGKILL",
    ),
    "saving": (
        "later(0.5); [ms.save_checkpoint([{'name': 'a', 'data': x}], file + '.ckpt') for _ in [0] * 9999]",
        "was ended by SIGKILL",
    ),
    "worker": (
        "list(ms.dataset.GeneratorDataset(list(range(9)), ['x']).map(broken, ['x'], num_parallel_workers=2))",
        "ValueError: in a thread",
    ),
    "early kill": ("EARLY time.sleep(0.5); os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL"),
    "early sleep": ("EARLY time.sleep(10**6)", "stands still at PLACE"),
    "early raise": ("EARLY raise ValueError('what is wrong')", "has failed: ValueError: what is wrong at PLACE"),
    "early exit": ("EARLY sys.exit(0)", "has ended, with status 0, while "),
}
# Where the ranks differ, any of them may be the first to say so.
ANY = {
    "order": ("ops.AllGather()(x)", "all ranks of a group must call the same collectives in the same order at"),
    "shape": ("ops.AllReduce()(ops.ones(2))", "all must be alike at"),
    "type": ("ops.AllReduce()(ops.ones(1, ms.int32))", "all must be alike at"),
}
WAYS.update(ANY)

# A rank shows where it is five times a second.
PROGRAM = """import ctypes, os, signal, subprocess, sys, threading, time
import numpy as np
failing, file = int(sys.argv[1]), sys.argv[2]
child = subprocess.Popen(["sleep", "1000"])
class Own(BaseException): pass
def note(): open(file, "w").write(f"{time.time()} {child.pid}")
def broken(*_): raise ValueError("in a thread")
def later(seconds): threading.Timer(seconds, lambda: (note(), os.kill(os.getpid(), signal.SIGKILL))).start()
import mycel as ms
from mycel import ops
if int(os.environ["RANK_ID"]) == failing:
    BEFORE
ms.communication.init()
rank = ms.communication.get_rank()
x = ms.Tensor([1.0])
step = ms.jit(lambda x: ops.AllReduce()(x))
for k in range(20):
    x = step(x) / 4
    if k == 10 and rank == failing:
        time.sleep(0.5)
        LINE
"""


def fail(way: str, rank: int) -> float:
    """Have one rank of four fail; gives the seconds from then to the end of the launch."""
    line, message = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        script, file = pathlib.Path(folder) / "script.py", pathlib.Path(folder) / "when"
        early = line.removeprefix("EARLY ")
        text = PROGRAM.replace("BEFORE", f"note(); {early}" if early != line else "pass")
        text = text.replace("LINE", "pass" if early != line else f"note(); {line}")
        number = next(k for k, row in enumerate(text.splitlines(), 1) if "note(); " in row)
        script.write_text(text)
        process = subprocess.Popen(
            [sys.executable, "-m", "mycel", "launch", "-n", "4", str(script), str(rank), str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )
        text, _ = process.communicate(timeout=300)
        ended = time.time()
        begun, child = file.read_text().split()
        told = [line for line in text.splitlines() if line.startswith("mycel launch:")]
        assert told and (way in ANY or f"rank {rank} " in told[0]) and f"{script}:" in told[0], text
        assert re.search(re.escape(message).replace("PLACE", rf"{script}:{number} \(in \S+\)"), told[0]), text
        assert process.returncode not in (0, None), text
        assert not left(str(script)) and not os.path.exists(f"/proc/{child}"), text
    return ended - float(begun)


def left(script: str) -> list[str]:
    """The processes whose command names a script."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    if script.encode() in file.read():
                        found.append(entry)
            except OSError:
                continue
    return found


def main(count: int, ways: Sequence[str]) -> None:
    for way in ways or WAYS:
        longest = max(fail(way, rank) for rank in range(4) for _ in range(count))
        print(f"{way}: {4 * count} of {4 * count} ended, the slowest after {longest:.1f} s", flush=True)
        assert longest < LIMIT, f"{way}: {longest:.1f} s"


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
