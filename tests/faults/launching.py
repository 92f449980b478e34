"""Launches on two machines, two ranks each, of which a rank, a launcher or the network fails: all
end within 15 seconds, with a status other than 0 and a message that names what failed. Nobody is
left on either machine.

The machines are network namespaces of this one (`tests.faults.network`). They are started by the
same command on each, or from the first one by ssh.

`python -m tests.faults.launching COUNT WAYS` does it COUNT times for each way (all without any) and
start, and prints the longest time from the failure to the end of both launchers.
"""

from __future__ import annotations

import os
import pathlib
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from tests.faults import network
from tests.faults.ranks import LIMIT, ROOT, left

SCRIPT = """import os, signal, sys, time
import mycel as ms
from mycel import ops
failing, file = int(sys.argv[1]), sys.argv[2]
ms.communication.init()
rank = ms.communication.get_rank()
x = ms.Tensor([1.0])
step = ms.jit(lambda x: ops.AllReduce()(x))
def note():
    with open(file + ".new", "w") as made:
        made.write(f"{time.time()} {os.getpid()} {os.getppid()}")
    os.rename(file + ".new", file)
for k in range(10**7):
    x = step(x) / 4
    if k == 10 and rank == failing:
        note()
        LINE
    time.sleep(0.01)
"""
SECOND = r"machine 1 (10.99.0.2)"
RANK = 2  # the first of the second machine

GONE = [
    f"was on {SECOND}, whose launcher is not heard any more",
    f"{SECOND} is lost",
    "the launcher on 10.99.0.2 has ended with status ",
]

# Each way, the line by which the rank fails, and what is said of it.
WAYS = {
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", [f"rank {RANK} was ended by SIGKILL"]),
    "raise": ("raise ValueError('what is wrong')", [f"rank {RANK} has failed: ValueError: what is wrong at "]),
    "stop": ("os.kill(os.getpid(), signal.SIGSTOP)", [f"rank {RANK} stands still at "]),
    "launcher": ("pass", [f"on {SECOND}: interrupted"]),
    "keeper": ("pass", GONE),
    "both": ("pass", GONE),
    "cut": ("pass", [f"{SECOND} is lost: its launcher has not been heard"]),
}
STARTS = ("hosts", "ssh")


def act(way: str, net: network.Network, keeper: int) -> None:
    """Do to the second machine, or to its launcher, what is not done by the rank itself."""
    first = int(pathlib.Path(f"/proc/{keeper}/stat").read_text().rpartition(") ")[2].split()[1])
    if way == "cut":
        net.cut(1)
    if way in ("launcher", "both"):
        os.kill(first, signal.SIGKILL)
    if way in ("keeper", "both"):
        os.kill(keeper, signal.SIGKILL)


def begun(start: str, net: network.Network, script: str, file: str) -> list[subprocess.Popen[str]]:
    """Start the launchers: one on each machine, or one that starts both."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MYCEL_KEY": secrets.token_hex(32)}
    hosts = ",".join(f"{address}:2" for address in net.addresses)
    words = [sys.executable, "-m", "mycel", "launch", "--hosts", hosts, *(["--ssh"] if start == "ssh" else [])]
    return [
        subprocess.Popen(
            [*net.within(node), *words, script, str(RANK), file],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            cwd=ROOT,
        )
        for node in range(1 if start == "ssh" else 2)
    ]


def fail(way: str, start: str, net: network.Network) -> float:
    """Have a launch fail; gives the seconds from then to the end of all launchers."""
    line, messages = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        script, file = pathlib.Path(folder) / "script.py", pathlib.Path(folder) / "when"
        script.write_text(SCRIPT.replace("LINE", line))
        processes = begun(start, net, str(script), str(file))
        while not file.exists():
            if all(process.poll() is not None for process in processes):
                raise AssertionError("".join(process.communicate()[0] for process in processes))
            time.sleep(0.01)
        when, _, keeper = file.read_text().split()
        if line == "pass":
            when = str(time.time())
            act(way, net, int(keeper))
        texts = [process.communicate(timeout=300)[0] for process in processes]
        while left(str(script)) and time.time() - float(when) < 60:
            time.sleep(0.02)  # those of the other machine, of which nobody here is told
        ended, text = time.time(), "".join(texts)
        assert any(m in line for m in messages for line in texts[0].splitlines() if "mycel launch:" in line), text
        assert all(process.returncode != 0 for process in processes), text
        assert not left(str(script)), text
    return ended - float(when)


def once(way: str, start: str) -> float:
    """The same on two new machines."""
    with network.namespaces() as net:
        if start == "hosts":
            return fail(way, start, net)
        with network.servers(net.addresses, [net.within(0), net.within(1)]) as ssh:
            before = os.environ["PATH"]
            os.environ["PATH"] = ssh.path
            try:
                return fail(way, start, net)
            finally:
                os.environ["PATH"] = before


def main(count: int, ways: Sequence[str]) -> None:
    for way in ways or WAYS:
        for start in STARTS:
            longest = 0.0
            for k in range(count):
                longest = max(longest, once(way, start))
                print(f"{way}, {start}: {k + 1} of {k + 1} ended, the slowest after {longest:.1f} s", flush=True)
                assert longest < LIMIT, f"{way}, {start}: {longest:.1f} s"


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
