"""Ranks in a cluster of Ray that is started here: two machines of Ray on this one."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest

from mycel.cli import main

INSTALLED = importlib.util.find_spec("ray") is not None
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="clusters are started on Linux")
needs_ray = pytest.mark.skipif(not INSTALLED, reason="Ray is not installed")

ROOT = pathlib.Path(__file__).parents[2]
RAY = [sys.executable, "-c", "from ray.scripts.scripts import main; main()"]
LIMIT = 900


class Cluster:
    """A cluster of Ray, of a first machine and others that may be added and killed."""

    def __init__(self, folder: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as made:
            self.port = made.getsockname()[1]
        self.folder, self.machines = folder, list[subprocess.Popen[bytes]]()
        self.variables = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_DISABLE_IMPORT_WARNING": "1",
            "RAY_ADDRESS": f"127.0.0.1:{self.port}",
        }

    def add(self, processors: int) -> subprocess.Popen[bytes]:
        first = not self.machines
        place = ["--head", f"--port={self.port}", f"--temp-dir={self.folder}", "--include-dashboard=false"]
        options = ["--node-ip-address=127.0.0.1", f"--num-cpus={processors}", "--disable-usage-stats", "--block"]
        memory = [f"--object-store-memory={80 << 20}"]
        command = [*RAY, "start", *(place if first else [f"--address=127.0.0.1:{self.port}"]), *options, *memory]
        with open(f"{self.folder}.{len(self.machines)}.log", "wb") as log:
            made = subprocess.Popen(
                command, env=self.variables, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.machines.append(made)
        return made

    def end(self) -> None:
        for machine in self.machines:
            end_session(machine.pid)
            machine.wait()

    def launch(self, *arguments: object, folder: pathlib.Path | None = None, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "mycel", "launch", "--ray", f"127.0.0.1:{self.port}", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=folder,
            env={**self.variables, **variables},
        )


def members(session: int) -> list[int]:
    """The processes of a session."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = pathlib.Path(f"/proc/{entry}/stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry))
    return found


def end_session(session: int) -> None:
    """Kill all processes of a machine of Ray, as where it has lost its power."""
    while found := members(session):
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # The sockets of Ray take short paths alone.
    folder = tempfile.mkdtemp(prefix="ray")
    made = Cluster(folder)
    try:
        made.add(2)
        yield made
    finally:
        made.end()
        shutil.rmtree(folder, ignore_errors=True)
        for log in pathlib.Path(folder).parent.glob(f"{pathlib.Path(folder).name}.*.log"):
            log.unlink()


SHOW = """import os, sys, time
names = ("RANK_ID", "RANK_SIZE", "MS_LOCAL_RANK", "MS_LOCAL_WORKER_NUM", "MYCEL_RESTART", "MYCEL_TEST")
print(*[os.environ.get(n) for n in names], sys.argv[1:], flush=True)
key = os.environ["MYCEL_KEY"]
seen = [open(f"/proc/{p}/cmdline", "rb").read() for p in os.listdir("/proc") if p.isdigit() and p == str(os.getpid())]
assert len(key) == 64 and not any(key.encode() in s for s in seen)
if "fail" in sys.argv and os.environ["RANK_ID"] == "1" and os.environ["MYCEL_RESTART"] != "2":
    os.write(1, b"\\xff half a line")
    os.kill(os.getpid(), 9)
if "fail" in sys.argv and os.environ["MYCEL_RESTART"] != "2":
    time.sleep(1000)
if "wrong" in sys.argv:
    sys.exit(7)
"""


@pytest.fixture
def script(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "show.py").write_text(SHOW)
    return tmp_path / "show.py"


@needs_ray
def test_ranks_are_actors(cluster: Cluster, script: pathlib.Path) -> None:
    process = cluster.launch("-n", 2, "--plain", script, "a b", MYCEL_TEST="x")
    out, error = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, error
    assert sorted(out.splitlines()) == [f"[rank {k}] {k} 2 {k} 2 0 x ['a b']" for k in (0, 1)]


@needs_ray
def test_ranks_that_fail_are_started_again(cluster: Cluster, script: pathlib.Path) -> None:
    process = cluster.launch("-n", 2, "--plain", script, "fail")
    out, error = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, error
    assert error.count("mycel launch: rank 1 was ended by SIGKILL") == 2
    assert "mycel launch: restart 2 of 3, with 2 ranks" in error and "restart 3" not in error
    assert out.count("half a line\n") == 2 and "[rank 0] 0 2 0 2 2 None ['fail']" in out
    process = cluster.launch("-n", 2, "--restarts", 1, "--plain", script, "wrong")
    out, error = process.communicate(timeout=LIMIT)
    assert process.returncode == 7 and error.count("restart") == 1, error


@needs_ray
def test_places_that_there_are_not(cluster: Cluster, script: pathlib.Path) -> None:
    process = cluster.launch("-n", 3000, "--cpus-per-rank", 0.5, "--wait", 1, script)
    error = process.communicate(timeout=LIMIT)[1]
    assert process.returncode == 2
    assert "3000 x 0.5 processors are needed, and the cluster has room for 4 ranks; add machines" in error


NOTE = """
import os, time
class Note(ms.train.Callback):
    def on_train_step_end(self, run_context):
        told, restart = run_context.original_args(), os.environ.get("MYCEL_RESTART", "none")
        with open(f"losses_{rank}", "a") as file:
            file.write(f"{restart} {told.cur_step_num} {float(told.net_outputs)}\\n")
        if restart == "0" and told.cur_step_num == 5 and rank == ranks - 1:
            open("reached", "w").close()
            time.sleep(1000)
"""


def losses(folder: pathlib.Path) -> dict[tuple[str, int], float]:
    lines = [line.split() for line in (folder / "losses_0").read_text().splitlines()]
    return {(restart, int(step)): float(loss) for restart, step, loss in lines}


@needs_ray
def test_training_goes_on_when_a_machine_is_lost(cluster: Cluster, tmp_path: pathlib.Path) -> None:
    """The program of the page about checkpoints goes on with two ranks where three had begun."""
    page = (ROOT / "docs" / "concepts" / "resuming_ranks.md").read_text()
    program = page.split("```python\n")[1].split("```")[0]
    assert program.count("callbacks=keeper") == 1
    *before, last = program.rstrip().splitlines()
    text = "\n".join([*before, NOTE, last.replace("callbacks=keeper", "callbacks=[keeper, Note()]"), ""])
    for name in ("one", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    command = [sys.executable, "-m", "mycel", "run", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    alone = subprocess.run(
        command, cwd=tmp_path / "one", env=environment, capture_output=True, text=True, timeout=LIMIT
    )
    assert alone.returncode == 0, alone.stderr
    expected = losses(tmp_path / "one")

    folder = tmp_path / "three"
    machine = cluster.add(1)
    process = cluster.launch("-n", 3, "--min-ranks", 2, "train.py", folder=folder)
    while not (folder / "reached").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    end_session(machine.pid)
    _, error = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, error
    assert "mycel launch: restart 1 of 3, with 2 ranks" in error and "restart 2" not in error
    found = losses(folder)
    # The newest checkpoint is that of the fourth step.
    assert [key for key in found if key[0] == "1"] == [("1", step) for step in range(5, 13)]
    for (_, step), loss in found.items():
        assert loss == pytest.approx(expected["none", step], rel=1e-3, abs=1e-5)


@pytest.mark.skipif(INSTALLED, reason="Ray is installed")
def test_without_ray_it_is_said_what_to_install(capsys: pytest.CaptureFixture[str], script: pathlib.Path) -> None:
    assert main(["launch", "--ray", "local", "-n", "2", str(script)]) == 2
    assert "pip install 'mycel[ray]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--ray needs -n"),
        (["-n", "2", "--nodes", "2"], "leave --nodes, --local and --master out"),
        (["-n", "2", "--min-ranks", "3"], "--min-ranks must be from 1 to -n 2, not 3"),
        (["-n", "2", "--restarts", "-1"], "--restarts must not be negative"),
        (["-n", "2", "--cpus-per-rank", "0"], "--cpus-per-rank must be positive"),
        (["-n", "2", "--node", "1"], "--node is chosen where"),
    ],
)
def test_options_that_make_no_sense(
    capsys: pytest.CaptureFixture[str], script: pathlib.Path, options: list[str], message: str
) -> None:
    assert main(["launch", "--ray", "auto", *options, str(script)]) == 2
    assert message in capsys.readouterr().err
