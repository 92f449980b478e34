"""Interrupts and kills at random moments of `tests.faults.victim`.

`interrupts` sends Ctrl-C to one process after the other: each has to end by itself, with the digest
of a run that nobody disturbed, and with nothing on its error stream. `kills` ends processes with
SIGKILL and starts others in their place, until one is done; after each kill whatever lies under a
final name has to be whole.
"""

from __future__ import annotations

import functools
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 300.0
FINAL = ".ckpt"

# An interrupt that arrives inside of a callback of Python's own import locks or weak references is
# reported there and lost before any code of ours could hear it.
UNHEARD = re.compile(
    r"Exception ignored in: .*\nTraceback \(most recent call last\):\n"
    r"(?:  File \"(?:<frozen importlib\._bootstrap(?:_external)?>|[^\"\n]*/(?:weakref|_weakrefset)\.py)\", .*\n"
    r"(?:    .*\n| *\n)*)+KeyboardInterrupt: *\n?"
)


def start(folder, steps):
    environment = {**os.environ, "MYCEL_CACHE": os.path.join(folder, "cache")}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.victim", folder, str(steps)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=pathlib.Path(__file__).parents[2],
    )
    line = process.stdout.readline()
    if line.strip() != "ready":
        raise AssertionError(f"the victim does not begin: {line}{process.communicate()[1]}")
    return process


def finished(process):
    """The digest of a victim that is left alone."""
    try:
        out, error = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        out, error = process.communicate()
        raise AssertionError(f"the victim hangs: {out}{error}") from None
    lines = [
        line for line in UNHEARD.sub("", error).splitlines() if "WARNING" not in line and not line.startswith("  ")
    ]
    if process.returncode or not out.startswith("done") or lines:
        raise AssertionError(f"the victim ends with {process.returncode}: {out}{error}")
    return out.split()[1]


@functools.cache
def undisturbed(steps):
    """The digest of a run that nobody disturbs, which is the same each time."""
    with tempfile.TemporaryDirectory() as folder:
        return finished(start(folder, steps))


def interrupts(count, seed=0, steps=12, each=10):
    """Send `count` interrupts, `each` to a process at most; gives how many were sent."""
    draw, expected, sent = random.Random(seed), undisturbed(steps), 0
    while sent < count:
        with tempfile.TemporaryDirectory() as folder:
            process = start(folder, steps)
            for _ in range(min(each, count - sent)):
                time.sleep(draw.choice((0.001, 0.02, 0.2, 0.6)) * draw.random() * 2)
                if process.poll() is not None:
                    break
                process.send_signal(signal.SIGINT)
                sent += 1
            found = finished(process)
            assert found == expected, f"after interrupts (seed {seed}) the run ends with {found}, not {expected}"
    return sent


def kills(count, seed=0, steps=12, each=10):
    """Kill `count` processes, `each` of a run; gives how many were killed."""
    draw, expected, killed = random.Random(seed), undisturbed(steps), 0
    while killed < count:
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(min(each, count - killed)):
                process = start(folder, steps)
                time.sleep(draw.choice((0.05, 0.3, 1.0)) * draw.random())
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    killed += 1
                process.communicate()
                look(folder)
            found = finished(start(folder, steps))
            assert found == expected, f"after kills (seed {seed}) the run ends with {found}, not {expected}"
    return killed


def look(folder):
    """Whatever has a final name is whole."""
    import mycel as ms

    for path in pathlib.Path(folder).iterdir():
        if path.name.endswith(FINAL) and not path.name.startswith("."):
            ms.load_checkpoint(str(path))
