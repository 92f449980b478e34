"""Ranks that fail, one of four, in every way and each place: all end within 15 seconds, with
a status other than 0, and the launcher names the rank, the reason and the line. Nobody is left.

`python -m tests.faults.ranks COUNT` does it COUNT times for each way and rank, and prints the
longest time from the failure to the end of the launch.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import time

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
    "leave": ("sys.exit(0)", "has ended, with status 0, while others wait for it"),
}

PROGRAM = """import os, signal, subprocess, sys, threading, time
import mycel as ms
from mycel import ops

ms.communication.init()
rank, failing, file = ms.communication.get_rank(), int(sys.argv[1]), sys.argv[2]
child = subprocess.Popen(["sleep", "1000"])
x = ms.Tensor([1.0])
step = ms.jit(lambda x: ops.AllReduce()(x))
for k in range(20):
    x = step(x) / 4
    if k == 10 and rank == failing:
        open(file, "w").write(f"{time.time()} {child.pid}")
        LINE
"""
NUMBER = 14  # of the line


def fail(way: str, rank: int) -> float:
    """Have one rank of four fail; gives the seconds from then to the end of the launch."""
    line, message = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        script, file = pathlib.Path(folder) / "script.py", pathlib.Path(folder) / "when"
        script.write_text(PROGRAM.replace("LINE", line))
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
        assert told and f"rank {rank} " in told[0] and f"{script}:" in told[0], text
        assert message.replace("PLACE", f"{script}:{NUMBER} ") in told[0], text
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


def main(count: int) -> None:
    for way in WAYS:
        longest = max(fail(way, rank) for rank in range(4) for _ in range(count))
        print(f"{way}: {4 * count} of {4 * count} ended, the slowest after {longest:.1f} s", flush=True)
        assert longest < LIMIT, f"{way}: {longest:.1f} s"


if __name__ == "__main__":
    main(int(sys.argv[1]))
