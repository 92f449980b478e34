"""Launches on several machines from one, with an agent that runs commands here."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from mycel.cli import launch, main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="ranks need a POSIX system")

ROOT = pathlib.Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

SHOW = """import os, sys, time
names = ("RANK_ID", "RANK_SIZE", "MS_LOCAL_RANK", "MS_LOCAL_WORKER_NUM", "MS_SCHED_HOST")
print(*[os.environ[n] for n in names], os.environ.get("MYCEL_TEST"), sys.argv[1:], flush=True)
if "fail" in sys.argv and os.environ["RANK_ID"] == "2":
    sys.exit(7)
if "wait" in sys.argv:
    open(f"{sys.argv[-1]}/{os.environ['RANK_ID']}", "w").write(str(os.getpid()))
if len(sys.argv) > 2:
    time.sleep(1000)
"""


@pytest.fixture
def script(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "show.py").write_text(SHOW)
    return tmp_path / "show.py"


@pytest.fixture
def agent(tmp_path: pathlib.Path) -> pathlib.Path:
    made = tmp_path / "agent"
    made.write_text('#!/bin/sh\ncd / && exec sh -c "$2"\n')
    made.chmod(0o755)
    return made


def started(*arguments: object, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mycel", "launch", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, **variables},
    )


HOSTS = "localhost:2,127.0.0.1"


def test_machines_are_named_with_their_ranks(script: pathlib.Path, agent: pathlib.Path) -> None:
    process = started("--hosts", HOSTS, "--agent", agent, "--plain", script, "a b", MYCEL_TEST="x")
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    assert sorted(out.splitlines()) == [
        "[rank 0] 0 3 0 2 localhost x ['a b']",
        "[rank 1] 1 3 1 2 localhost x ['a b']",
        "[rank 2] 2 3 0 1 localhost x ['a b']",
    ]


def test_the_first_failure_ends_all_machines(script: pathlib.Path, agent: pathlib.Path) -> None:
    process = started("--hosts", HOSTS, "--agent", agent, "--plain", script, "fail", "x")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 7
    assert f"mycel launch: rank 2 has failed: SystemExit: 7 at {script}:5" in error
    assert "mycel launch: the launcher on 127.0.0.1 has ended with status 7" in error


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_all_machines_end_with_who_started_them(
    tmp_path: pathlib.Path, script: pathlib.Path, agent: pathlib.Path, number: int
) -> None:
    process = started("--hosts", HOSTS, "--agent", agent, "--plain", script, "wait", tmp_path)
    files = [tmp_path / str(rank) for rank in range(3)]
    while not all(f.exists() and f.read_text() for f in files):
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=120)  # all have closed their ends of the pipes
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    for file in files:
        while os.path.exists(f"/proc/{file.read_text()}"):
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--hosts", "a", "--ssh", "--agent", "rsh"], "--ssh and --agent exclude each other"),
        (["--ssh", "-n", "2"], "--ssh and --agent need --hosts"),
        (["--hosts", "no-such-host.invalid,192.0.2.1"], "is none of them; --node says which one it is, and --ssh"),
        (["--hosts", "localhost,127.0.0.1"], "may be several of them; --node"),
        (["--hosts", "a,b", "--node", "2"], "--node must be from 0 to 1, not 2"),
        (["--hosts", "a:b"], "--hosts a:b: it must be NAME:RANKS"),
        (["--hosts", "a:0"], "must be NAME:RANKS"),
        (["--hosts", "-oProxyCommand=x"], "must be NAME:RANKS"),
        (["--hosts", "a:2,b:2", "-n", "3"], "-n 3: --hosts a:2,b:2 has 4 ranks"),
        (["--hosts", "a", "--nodes", "2"], "leave --ray, --nodes and --local out"),
        (["--hosts", "a", "--ssh", "--node", "1"], "--node is chosen where"),
        (["--hosts", "a", "--agent", "no-such-agent"], "no command 'no-such-agent'"),
        (["--master-port", "99"], "--master-addr and --master-port go together"),
        (["--master-addr", "a", "--master", "b:1"], "without --master"),
        ([], "-n must say how many ranks"),
    ],
)
def test_options_that_make_no_sense(
    capsys: pytest.CaptureFixture[str], script: pathlib.Path, options: list[str], message: str
) -> None:
    options = [f"--hosts={options[1]}", *options[2:]] if options[:1] == ["--hosts"] else options
    assert main(["launch", *options, str(script)]) == 2
    assert message in capsys.readouterr().err


def test_options_by_their_other_names(script: pathlib.Path) -> None:
    import argparse

    parser = argparse.ArgumentParser()
    launch.add_options(parser)
    named = ["--nnodes=2", "--node_rank=1", "--nproc-per-node=4", "--master_addr=h", "--master_port=9000", str(script)]
    options = parser.parse_args(named)
    launch._check(options)
    job = launch._job(options)
    assert (job.size, job.local, job.first, job.node, job.nodes, job.host, job.port) == (8, 4, 4, 1, 2, "h", 9000)
