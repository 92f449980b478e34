"""Ranks without a launcher that do not come to `init`: the others name them and end, and wait for
those that work.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="standstills are seen on Linux")

ROOT = Path(__file__).parents[2]
PROGRAM = """import os, sys, time
me, way, folder = int(os.environ["RANK_ID"]), *sys.argv[1:]
def both(place):
    if me != 1: open(f"{folder}/{place}{me}", "w").close()
    while not all(os.path.exists(f"{folder}/{place}{k}") for k in (0, 2)): sum(range(1000))
if me == 1 and way == "before the import": time.sleep(1000)
if me == 1 and way == "exit before":
    both("imported")
    sys.exit(0)
import mycel as ms
both("imported")
if me != 1 and way == "exit before": time.sleep(0.5)
def load():
    if way == "sleep": time.sleep(1000)
    if way == "exit":
        both("loaded")
        time.sleep(0.5)
        sys.exit(0)
    end = time.monotonic() + 3
    while time.monotonic() < end: sum(range(1000))
if me == 1: load()
else: both("loaded")
ms.communication.init()
print("met")
"""
LOAD, INIT = (1 + PROGRAM[: PROGRAM.index(s)].count("\n") for s in ('if way == "sleep"', "ms.communication.init"))


def started(way: str, folder: Path) -> tuple[str, list[subprocess.CompletedProcess[str]]]:
    """Start three ranks by hand, of which rank 1 fails."""
    script = folder / "script.py"
    script.write_text(PROGRAM)
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    kept = {k: v for k, v in os.environ.items() if k not in ("MYCEL_SHOWN", "MYCEL_WATCH")}
    variables = {**kept, "RANK_SIZE": "3", "MS_SCHED_PORT": str(port), "MYCEL_STANDSTILL": "2"}
    variables |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ranks = []
    for rank in range(3):
        ranks.append(
            subprocess.Popen(
                [sys.executable, str(script), way, str(folder)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**variables, "RANK_ID": str(rank)},
            )
        )
    try:
        ends = [r.communicate(timeout=120) for r in ranks]
    finally:
        for r in ranks:
            r.kill()
    return str(script), [subprocess.CompletedProcess(way, r.returncode, *e) for r, e in zip(ranks, ends)]


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("sleep", f"rank 1 stands still at SCRIPT:{LOAD} (in load), while rank"),
        ("before the import", "rank 1 stands still at no known line, while rank"),
        ("exit", "rank 1 has ended, while rank"),
        ("exit before", "rank 1 has ended, while rank"),
    ],
)
def test_a_rank_that_does_not_come_is_named(way: str, said: str, tmp_path: Path) -> None:
    script, ranks = started(way, tmp_path)
    assert ranks[0].returncode == ranks[2].returncode == 1, ranks
    told = ranks[0].stderr + ranks[2].stderr
    assert said.replace("SCRIPT", script) in told and f"in communication.init at {script}:{INIT} (in <module>)" in told


def test_a_rank_that_works_is_waited_for(tmp_path: Path) -> None:
    _, ranks = started("work", tmp_path)
    assert [(r.returncode, r.stdout, r.stderr) for r in ranks] == [(0, "met\n", "")] * 3
