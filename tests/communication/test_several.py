"""Four processes that communicate: programs that check every operation and data parallel training,
and the ways by which processes find each other.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from tests.parallel.launched import Several

pytestmark = pytest.mark.skipif(os.name != "posix", reason="ranks need a POSIX system")

ROOT = pathlib.Path(__file__).parents[2]
HERE = pathlib.Path(__file__).parent
LIMIT = 300


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}


@pytest.fixture(scope="module")
def on_four() -> Several:
    # After collectives that do not match there are no others.
    programs = ("programs/training", "sweep", "programs/operations")
    return Several(4, {name: (HERE / f"{name}.py",) for name in programs})


@pytest.mark.parametrize("program", ["programs/operations", "programs/training", "sweep"])
def test_programs_of_four_processes(program: str, on_four: Several) -> None:
    assert on_four[program].count(" checks") == 4


MEETING = """
import sys
import mycel as ms
from mycel import mint, ops

kind, rank, size, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
if kind == "store":
    store = mint.distributed.TCPStore("127.0.0.1", port, is_master=rank == 0)
    mint.distributed.init_process_group(world_size=size, rank=rank, store=store)
elif kind == "tcp":
    place = f"tcp://127.0.0.1:{port}"
    mint.distributed.init_process_group(init_method=place, world_size=size, rank=rank)
else:
    ms.communication.init()
x = ms.Tensor([1.0 + ms.communication.get_rank()])
mint.distributed.all_reduce(x)
assert x.tolist() == [3.0], x
print("met", flush=True)
"""


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as made:
        return int(made.getsockname()[1])


@pytest.mark.parametrize("kind", ["store", "tcp", "scheduler", "variables"])
def test_processes_find_each_other(kind: str) -> None:
    port, started = free_port(), []
    for rank in range(3 if kind == "scheduler" else 2):
        place = {"MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": str(port)}
        variables: dict[str, str] = {}
        if kind == "scheduler":
            # By hand, as for MindSpore: workers without numbers, and a process that lets them meet.
            variables = {**place, "MS_WORKER_NUM": "2", "MS_ROLE": "MS_SCHED" if rank == 2 else "MS_WORKER"}
        elif kind == "variables":
            variables = {**place, "RANK_SIZE": "2", "RANK_ID": str(rank)}
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", MEETING, kind, str(rank), "2", str(port)],
                env=environment(**variables),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    outputs = [p.communicate(timeout=LIMIT)[0] for p in started]
    assert [p.returncode for p in started] == [0] * len(started), outputs
    assert sum("met" in out for out in outputs) == 2


STILL = """
import sys, threading
import mycel as ms
from mycel import ops

ms.communication.init()
rank = ms.communication.get_rank()
ops.AllReduce()(ms.Tensor([1.0]))
if rank == 1:
    threading.Event().wait() if sys.argv[1] == "still" else ops.recv(ms.Tensor([1.0]), 0)
ops.AllReduce()(ms.Tensor([1.0]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="standstills are seen on Linux")
@pytest.mark.parametrize("kind", ["still", "circle"])
def test_without_a_launcher_ranks_watch_each_other(kind: str, tmp_path: pathlib.Path) -> None:
    script, port = tmp_path / "script.py", str(free_port())
    script.write_text(STILL)
    place = {"MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": port, "RANK_SIZE": "2", "MYCEL_STANDSTILL": "2"}
    started = [
        subprocess.Popen(
            [sys.executable, str(script), kind],
            env=environment(**place, RANK_ID=str(rank)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    text = "".join(p.communicate(timeout=LIMIT)[0] for p in started)
    assert all(p.returncode for p in started), text
    if kind == "still":
        assert f"mycel: rank 1 stands still at {script}:10 (in <module>), while rank 0 waits for it in " in text
    else:
        assert "mycel: ranks wait for each other: rank " in text
        assert "rank 0 for rank 1 in all_reduce sum at " in text
        assert f"rank 1 for rank 0 in receive at {script}:10 (in <module>)" in text
