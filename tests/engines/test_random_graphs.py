"""Random graphs of every kind of work, at every level of the processor, and with every access
checked; see `random_graphs`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.engines.random_graphs import check_seed, levels


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs_agree_with_the_reference(seed: int) -> None:
    assert check_seed(seed) == ""


@pytest.mark.parametrize("level", [*levels(), "bounds"])
def test_random_graphs_at_each_level(level: str) -> None:
    wanted = {"MYCEL_CHECK": "bounds"} if level == "bounds" else {"MYCEL_CPU": level}
    command = [sys.executable, "-m", "tests.engines.random_graphs", "8", "4"]
    done = subprocess.run(command, env={**os.environ, **wanted}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 graphs from 8, 0 failed" in done.stdout
