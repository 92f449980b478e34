"""Training that goes on from its last checkpoint on other numbers of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from tests.parallel.programs import resume

pytestmark = pytest.mark.skipif(os.name != "posix", reason="ranks need a POSIX system")

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "programs" / "resume.py"
WAYS = ("data", "parts", "full")
STEPS = 12


def launched(count: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mycel", "launch", "-n", count, PROGRAM, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment, cwd=ROOT, timeout=200)


def losses(folder: Path, way: str) -> list[tuple[int, float]]:
    lines = [line.split() for line in (folder / f"{way}.txt").read_text().splitlines()]
    return [(int(step), float(loss)) for step, loss in lines]


def test_training_goes_on_on_other_numbers_of_ranks(tmp_path: Path) -> None:
    """Four ranks stop, one of two is killed, three stop, and this process does the rest."""
    before = ms.get_context("mode"), ms.get_rng_state()
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        for way in WAYS:
            resume.run(tmp_path / "alone", way, STEPS, None)
        first = launched(4, tmp_path, 3)
        assert first.returncode == 0, first.stderr
        killed = launched(2, tmp_path, 6, "data,full,parts", "1:6")
        assert killed.returncode != 0 and "rank 1" in killed.stderr and "SIGKILL" in killed.stderr, killed.stderr
        assert losses(tmp_path, "full")[-1][0] == 6
        third = launched(3, tmp_path, 9)
        assert third.returncode == 0, third.stderr
        for way in WAYS:
            resume.run(tmp_path, way, STEPS, None)
    finally:
        ms.set_context(mode=before[0])
        ms.set_rng_state(before[1])
    for way in WAYS:
        wanted, own = dict(losses(tmp_path / "alone", way)), losses(tmp_path, way)
        assert {step for step, _ in own} == set(wanted) == set(range(1, STEPS + 1))
        np.testing.assert_allclose([x for _, x in own], [wanted[step] for step, _ in own], rtol=1e-5, err_msg=way)
