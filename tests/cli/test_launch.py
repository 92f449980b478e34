"""`mycel launch` and `msrun`: what ranks get, where output goes, and what is refused."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest

from mycel._src.compiler.transport import rank_status
from mycel.cli import launch, main, msrun
from mycel.cli.supervisor import Job

pytestmark = pytest.mark.skipif(os.name != "posix", reason="ranks need a POSIX system")

ROOT = pathlib.Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
ENVIRONMENT.pop("OMP_NUM_THREADS", None)

# Without mycel, so that it starts at once.
SHOW = """import json, os, sys
names = ("RANK_ID", "RANK_SIZE", "MS_ROLE", "MS_WORKER_NUM", "MS_LOCAL_RANK", "OMP_NUM_THREADS")
text = json.dumps([sys.argv[1:], *[os.environ[n] for n in names]])
open(f"{sys.argv[1]}/{os.environ['RANK_ID']}.json", "w").write(text)
print("rank", os.environ["RANK_ID"])
"""


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *map(str, command)], capture_output=True, text=True, env=ENVIRONMENT, timeout=120
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        return int(made.getsockname()[1])


@pytest.fixture
def script(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "show.py").write_text(SHOW)
    return tmp_path / "show.py"


def told(folder: pathlib.Path, rank: int) -> list[object]:
    found: list[object] = json.loads((folder / f"{rank}.json").read_text())
    return found


def test_ranks_get_their_variables(tmp_path: pathlib.Path, script: pathlib.Path) -> None:
    found = run("mycel", "launch", "-n", 2, "--plain", script, tmp_path, "--option", "x")
    assert (found.returncode, sorted(found.stdout.splitlines())) == (0, ["[rank 0] rank 0", "[rank 1] rank 1"]), (
        found.stderr
    )
    threads = str(max(1, len(os.sched_getaffinity(0)) // 2))
    for rank in (0, 1):
        arguments = [str(tmp_path), "--option", "x"]
        assert told(tmp_path, rank) == [arguments, str(rank), "2", "MS_WORKER", "2", str(rank), threads]


def test_launchers_of_two_machines(tmp_path: pathlib.Path, script: pathlib.Path) -> None:
    master = f"127.0.0.1:{free_port()}"
    common = [sys.executable, "-m", "mycel", "launch", "-n", "3", "--nodes", "2", "--master", master, "--plain"]
    places = [["--node", "0", "--local", "2", "--first", "0"], ["--node", "1", "--local", "1", "--first", "2"]]
    started = [subprocess.Popen([*common, *place, script, tmp_path], env=ENVIRONMENT) for place in places]
    assert [p.wait(120) for p in started] == [0, 0]
    assert [told(tmp_path, rank)[5] for rank in range(3)] == ["0", "1", "0"]


def test_a_failure_ends_both_machines(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "fail.py"
    script.write_text("import os, sys, time\nsys.exit(5) if os.environ['RANK_ID'] == '1' else time.sleep(1000)\n")
    master = f"127.0.0.1:{free_port()}"
    common = [sys.executable, "-m", "mycel", "launch", "-n", "2", "--nodes", "2", "--master", master, "--plain"]
    started = [
        subprocess.Popen([*common, "--node", str(k), script], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
        for k in (0, 1)
    ]
    texts = [p.communicate(timeout=120)[1] for p in started]
    assert [p.returncode for p in started] == [1, 5], texts
    message = f"rank 1 has failed: SystemExit: 5 at {script}:2 (in <module>)"
    assert f"mycel launch: on machine 1 ({socket.gethostname()}): {message}" in texts[0]
    assert f"mycel launch: {message}" in texts[1]


@pytest.mark.skipif(sys.platform != "linux", reason="children are taken over on Linux")
@pytest.mark.parametrize(
    ("number", "kept", "status", "message"),
    [
        (signal.SIGINT, False, 130, "mycel launch: interrupted"),
        (signal.SIGHUP, False, 130, "mycel launch: interrupted"),
        (signal.SIGKILL, False, -9, "mycel launch: interrupted"),
        (signal.SIGKILL, True, 137, "mycel launch: its own process was ended by signal 9, and all ranks with it"),
    ],
)
def test_a_launcher_that_ends_leaves_nobody(
    tmp_path: pathlib.Path, number: int, kept: bool, status: int, message: str
) -> None:
    script = tmp_path / "wait.py"
    # A process that leaves its session, as daemons do, and one that does not.
    script.write_text(
        "import os, subprocess, sys, time\n"
        "made = [subprocess.Popen(['sleep', '1000'], start_new_session=new) for new in (False, True)]\n"
        "text = ' '.join(map(str, [os.getppid(), os.getpid(), *[m.pid for m in made]]))\n"
        f"open('{tmp_path}/pids', 'a').write(text + '\\n')\n"
        "time.sleep(1000)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "mycel", "launch", "-n", "2", "--plain", str(script)],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )
    pids = tmp_path / "pids"
    while not pids.exists() or pids.read_text().count("\n") < 2:
        time.sleep(0.05)
    keeper, *started = {int(pid): None for line in pids.read_text().splitlines() for pid in line.split()}
    os.kill(keeper if kept else process.pid, number)
    text = process.communicate(timeout=60)[1]  # until all have closed their end of the pipe
    assert process.returncode == status and message in text
    for pid in (keeper, *started):
        while _runs(pid):  # where the launcher was killed, init waits for it
            time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_output_goes_to_files(tmp_path: pathlib.Path, script: pathlib.Path) -> None:
    found = run("mycel", "launch", "-n", 2, "--plain", "--logs", tmp_path / "logs", script, tmp_path)
    assert (found.returncode, found.stdout) == (0, "")
    assert (tmp_path / "logs" / "rank_1.log").read_text() == "rank 1\n"


def test_msrun(tmp_path: pathlib.Path, script: pathlib.Path) -> None:
    options = ["--worker_num=2", "--local_worker_num=2", f"--master_port={free_port()}", f"--log_dir={tmp_path}/logs"]
    found = run("mycel.cli.msrun", *options, "--join=True", "--tail_worker_log=1", script, tmp_path)
    assert (found.returncode, found.stdout) == (0, "[rank 1] rank 1\n"), found.stderr
    assert (tmp_path / "logs" / "worker_0.log").read_text() == "rank 0\n"
    assert told(tmp_path, 1)[1:5] == ["1", "2", "MS_WORKER", "2"]
    for rank in (0, 1):
        (tmp_path / f"{rank}.json").unlink()
    assert run("mycel.cli.msrun", *options, "--worker_log_name=w", script, tmp_path).returncode == 0
    while not all((tmp_path / f"{rank}.json").exists() for rank in (0, 1)):
        time.sleep(0.05)  # it has returned before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-n", "0"], "there must be ranks"),
        (["-n", "3", "--nodes", "2"], "does not divide among 2 machines"),
        (["-n", "4", "--nodes", "2"], "--master HOST:PORT must say"),
        (["-n", "4", "--nodes", "2", "--node", "2"], "nodes from 0 on"),
        (["-n", "4", "--local", "3", "--first", "2"], "must be ranks among 4"),
        (["-n", "1", "--timeout", "-1"], "must not be negative"),
        (["-n", "1", "--master", "here"], "must be HOST:PORT"),
    ],
)
def test_options_that_make_no_sense(
    capsys: pytest.CaptureFixture[str], script: pathlib.Path, options: list[str], message: str
) -> None:
    assert main(["launch", *options, str(script)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--worker_num=3", "--local_worker_num=2"], "must be a multiple"),
        (["--worker_num=4", "--local_worker_num=2"], "--node_rank must be 0 to 1"),
        (["--sim_level=1"], "--sim_level=1 is not supported"),
        (["--sim_rank_id=0"], "--sim_rank_id=0 is not supported"),
        (["--rank_table_file=a.json"], "--rank_table_file=a.json is not supported"),
        (["--bind_core=device0"], "--bind_core must be True or False"),
        (["--master_port=0"], "--master_port from 1 to 65535"),
        (["--join=True", "--tail_worker_log=x"], "--tail_worker_log must be -1"),
    ],
)
def test_options_of_msrun_that_are_refused(
    capsys: pytest.CaptureFixture[str], script: pathlib.Path, tmp_path: pathlib.Path, options: list[str], message: str
) -> None:
    assert msrun.main([f"--log_dir={tmp_path}", *options, str(script)]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", "-n", "2", "nowhere.py"]) == 2
    assert msrun.main(["nowhere.py"]) == 2
    assert capsys.readouterr().err.count("no such script: nowhere.py") == 2
    with pytest.raises(argparse.ArgumentTypeError):
        msrun._flag("yes")


def test_threads_that_the_user_chooses_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert launch.threads_of(4) == {}
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert launch.threads_of(1000) == {"OMP_NUM_THREADS": "1"}


def test_places_are_those_of_the_program() -> None:
    frame = sys._getframe()
    assert rank_status.place_of(frame) == f"{__file__}:{frame.f_lineno} (in test_places_are_those_of_the_program)"
    assert rank_status.place_of(None) == ""


def test_a_rank_that_ends_waits_for_nobody() -> None:
    # It ends while what it told last is that it waits: without another word that would stand.
    program = """
import os, sys
from mycel._src.compiler.transport import rank_status as watch
gate = int(sys.argv[1])
os.environ[watch.PIPE] = sys.argv[2]
watch.begin()
with watch.waiting("all_reduce sum", 0):
    os.read(gate, 1)
"""
    gate, opens = os.pipe()
    told, tells = os.pipe()
    words = [sys.executable, "-c", program, str(gate), str(tells)]
    process = subprocess.Popen(words, env=ENVIRONMENT, pass_fds=(gate, tells))
    try:
        os.close(tells)
        text = b""
        while b'"all_reduce sum"' not in text:
            piece = os.read(told, 65536)
            assert piece, text
            text += piece
        os.write(opens, b".")
        while piece := os.read(told, 65536):
            text += piece
        assert process.wait(60) == 0
        last = json.loads(text.splitlines()[-1])
        assert last["waits"] is None and last["where"] == ""
    finally:
        process.kill()
        process.wait()
        for end in (gate, opens, told):
            os.close(end)


def test_code_without_a_file_is_no_place_of_the_program() -> None:
    names = {"watch": rank_status, "sys": sys}
    exec("def inner():\n    return watch.place_of(sys._getframe())\n", names)
    line = sys._getframe().f_lineno + 1
    found = names["inner"]()  # type: ignore[operator]
    assert found == f"{__file__}:{line} (in test_code_without_a_file_is_no_place_of_the_program)"


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("192.0.2.1", "0.0.0.0"),
        ("no-such-host.invalid", "0.0.0.0"),
    ],
)
def test_the_first_machine_listens_where_it_is_named(
    host: str, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def looked_up(name: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        if name.endswith(".invalid"):
            raise socket.gaierror
        return [(0, 0, 0, "", ("127.0.0.1" if name == "localhost" else name, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    job = Job("mycel launch", [], 2, 1, nodes=2, host=host)
    assert launch._listening(job) == address
    assert ("is not an address of this machine" in capsys.readouterr().err) == (address == "0.0.0.0")
