"""Launches on two machines that are network namespaces of this one, by the same command on each and
by ssh with a real server; and on this machine through ssh.
"""

from __future__ import annotations

import os
import pathlib
import secrets
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.faults import launching, network

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are those of Linux")

ROOT = pathlib.Path(__file__).parents[2]
LIMIT = 900
KEY = secrets.token_hex(32)

SHOW = """import os, sys
key, rank = os.environ["MYCEL_KEY"], os.environ["RANK_ID"]
for process in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{process}/cmdline", "rb").read()
    except OSError:
        continue
    assert key.encode() not in words, words
print(rank, os.environ["MS_SCHED_HOST"], os.environ.get("MYCEL_TEST"), flush=True)
if "meet" in sys.argv:
    import mycel as ms
    ms.communication.init()
    from mycel._src.compiler.transport.current_transport import transport
    total = ms.ops.AllReduce()(ms.Tensor([1.0 + int(rank)]))
    kinds = sorted(c.family.name for c in transport()._connections.values())
    print(rank, float(total[0]), *kinds, flush=True)
"""


@pytest.fixture
def script(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "show.py").write_text(SHOW)
    return tmp_path / "show.py"


@pytest.fixture
def net() -> Iterator[network.Network]:
    try:
        made = network.namespaces()
        found = made.__enter__()
    except network.Unavailable as error:
        pytest.skip(str(error))
    try:
        yield found
    finally:
        made.__exit__(None, None, None)


def launch(*arguments: object, within: list[str], **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    return subprocess.Popen(
        [*within, sys.executable, "-m", "mycel", "launch", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_ranks_of_two_machines_meet(net: network.Network, script: pathlib.Path) -> None:
    hosts = f"{net.addresses[0]}:2,{net.addresses[1]}"
    started = [launch("--hosts", hosts, "--plain", script, "meet", within=net.within(k), MYCEL_KEY=KEY) for k in (0, 1)]
    texts = [process.communicate(timeout=LIMIT) for process in started]
    assert [process.returncode for process in started] == [0, 0], texts
    assert [error for _, error in texts] == ["", ""]
    lines = sorted(line for out, _ in texts for line in out.splitlines())
    near, far = "AF_INET AF_UNIX", "AF_INET AF_INET"
    assert lines == sorted(
        [f"[rank {k}] {k} 10.99.0.1 None" for k in range(3)]
        + [f"[rank {k}] {k} 6.0 {kinds}" for k, kinds in enumerate((near, near, far))]
    )


def test_a_machine_with_another_key_is_refused(net: network.Network, script: pathlib.Path) -> None:
    hosts = ",".join(net.addresses)
    started = [
        launch("--hosts", hosts, "--plain", script, within=net.within(k), MYCEL_KEY=key)
        for k, key in enumerate((KEY, "another key of 28 characters"))
    ]
    _, error = started[1].communicate(timeout=LIMIT)
    assert started[1].returncode == 2
    assert "the server at 10.99.0.1:8118 has another key than this process; MYCEL_KEY must be the same" in error
    started[0].terminate()
    started[0].communicate(timeout=LIMIT)


def test_ranks_are_started_by_ssh(script: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        made = network.servers(["127.0.0.1"], [[]])
        ssh = made.__enter__()
    except network.Unavailable as error:
        pytest.skip(str(error))
    try:
        process = launch(
            *("--hosts", "127.0.0.1:2", "--ssh", "--plain", script, "meet"), within=[], PATH=ssh.path, MYCEL_TEST="a b"
        )
        out, error = process.communicate(timeout=LIMIT)
    finally:
        made.__exit__(None, None, None)
    assert process.returncode == 0, error
    assert sorted(out.splitlines()) == sorted(
        [f"[rank {k}] {k} 127.0.0.1 a b" for k in (0, 1)] + [f"[rank {k}] {k} 3.0 AF_UNIX" for k in (0, 1)]
    )


@pytest.mark.parametrize(("way", "start"), [("kill", "ssh"), ("both", "hosts"), ("cut", "hosts"), ("cut", "ssh")])
def test_what_fails_on_two_machines_ends_both(way: str, start: str) -> None:
    try:
        launching.once(way, start)
    except network.Unavailable as error:
        pytest.skip(str(error))
