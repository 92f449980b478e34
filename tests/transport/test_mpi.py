"""MPI: what is said without it, and with it the programs of several processes under mpirun."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from mycel._src.compiler.transport.mpi import Mpi

ROOT = pathlib.Path(__file__).parents[2]
INSTALLED = importlib.util.find_spec("mpi4py") is not None


@pytest.mark.skipif(INSTALLED, reason="mpi4py is installed")
def test_without_mpi4py_it_is_said_what_to_install() -> None:
    with pytest.raises(RuntimeError, match=r"pip install 'mycel\[mpi\]'"):
        Mpi()


@pytest.mark.skipif(not INSTALLED, reason="mpi4py is not installed")
@pytest.mark.parametrize("program", ["operations", "training"])
def test_programs_under_mpirun(program: str) -> None:
    starter = shutil.which("mpirun", path=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
    assert starter is not None
    script = ROOT / "tests" / "communication" / "programs" / f"{program}.py"
    found = subprocess.run(
        [starter, "-n", "4", sys.executable, "-m", "mycel", "run", str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count(" checks") == 4


@pytest.mark.skipif(not INSTALLED or sys.platform != "linux", reason="mpi4py is not installed, or no Linux")
def test_a_rank_that_sleeps_before_init_is_named(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, time\nimport mycel as ms\nif os.environ.get('PMI_RANK') == '1':\n    time.sleep(1000)\n"
        "ms.communication.init()\n"
    )
    starter = shutil.which("mpiexec", path=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
    assert starter is not None
    found = subprocess.run(
        [starter, "-n", "3", sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MYCEL_STANDSTILL": "2"},
        timeout=120,
    )
    assert found.returncode != 0
    assert f"rank 1 stands still at {script}:4 (in <module>), while rank" in found.stdout + found.stderr
