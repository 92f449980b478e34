"""Two processes with two devices each, which one program uses together."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="jax is not installed: pip install mycel[xla]")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="ranks need a POSIX system")

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).parent / "programs" / "rows.py"
QUICKLY = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
FLAGS = f"--xla_force_host_platform_device_count=2 {QUICKLY}"


def launched(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mycel", "launch", "-n", "2", "--plain", "--standstill", "3", script, *arguments]
    environment = {**os.environ, "MYCEL_ENGINE": "xla", "PYTHONPATH": str(ROOT), "XLA_FLAGS": FLAGS, "NPROC": "8"}
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, timeout=200)


def test_a_network_is_trained_on_the_devices_of_both() -> None:
    done = launched(PROGRAM, "trains")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("trained") == 2
    assert done.stdout.count("have the parts [[0, 2], [1, 3]] along ('dp',)") == 2
    assert done.stdout.count("IndexError") == 2


def test_lenet_agrees_with_one_device() -> None:
    script = ROOT / "tests" / "parallel" / "compare.py"
    done = launched(script, "--devices", "4", "--tasks", "lenet", "--ways", "both", "--steps", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" agrees ") == 1


@pytest.mark.parametrize(
    "how, why",
    [
        ("leaves", "rank 1 has ended, with status 0, while others wait for it"),
        ("sleeps", "rank 1 stands still"),
        ("differs", "runs another program than rank"),
        ("dies", "rank 1 was ended by SIGKILL"),
    ],
)
def test_one_that_fails_ends_both(how: str, why: str) -> None:
    done = launched(PROGRAM, how)
    assert done.returncode != 0
    assert why in done.stderr
    ends = float(next(line for line in done.stdout.splitlines() if line.startswith("fails at ")).split()[-1])
    assert time.time() - ends < 15
