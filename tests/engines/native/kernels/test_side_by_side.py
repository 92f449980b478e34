"""Several reductions in one kernel, for every level of the processor that there is here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mycel._src.engines.native.llvm.target import LEVELS, host

SEEDS = 12
ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("level", ["", *LEVELS])
def test_reductions_side_by_side_agree_with_the_reference(level: str, tmp_path: Path) -> None:
    names = list(LEVELS)
    needed = " ".join(LEVELS[name] for name in names[: names.index(level) + 1]).split() if level else []
    if not host().feature_set.issuperset(needed):
        pytest.skip(f"this processor is below {level}")
    environment = {**os.environ, "MYCEL_CPU": level, "MYCEL_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "tests.engines.native.kernels.side_by_side", "0", str(SEEDS)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{SEEDS} graphs agree\n"
