"""`mycel launch`: runs a script in several processes, as ranks that communicate.

On one machine ``mycel launch -n 4 train.py`` is all. On several, each runs the same command with
its own ``--node``, and ``--master`` names the first.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import timedelta
from pathlib import Path

from mycel.cli.supervisor import Job, Supervisor
from mycel.transport.store import TCPStore

__all__ = ["add_options", "command", "run_job", "threads_of"]

NAME = "mycel launch"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("-n", "--ranks", type=int, required=True, metavar="N", help="how many ranks there are in all")
    parser.add_argument(
        "--plain", action="store_true", help="run the script as it is: `import mindspore` is not answered by mycel"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="end all ranks when one keeps others waiting for longer (default: 600; 0: never)",
    )
    parser.add_argument(
        "--standstill",
        type=float,
        default=8.0,
        metavar="SECONDS",
        help="the same for a rank that does not run at all meanwhile, as in an endless sleep (default: 8; 0: never)",
    )
    parser.add_argument("--nodes", type=int, default=1, metavar="M", help="how many machines there are (default: 1)")
    parser.add_argument("--node", type=int, default=0, metavar="K", help="which of them this is (default: 0)")
    parser.add_argument(
        "--local", type=int, metavar="L", help="how many of the ranks this machine has (default: N / M)"
    )
    parser.add_argument("--first", type=int, metavar="R", help="the number of its first rank (default: K * L)")
    parser.add_argument(
        "--master", default="127.0.0.1:0", metavar="HOST:PORT", help="where machine 0 is reached (several machines)"
    )
    parser.add_argument("--logs", type=Path, metavar="DIR", help="write the ranks' output to DIR/rank_K.log")
    parser.add_argument("script", type=Path, metavar="SCRIPT", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's own arguments")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit status."""
    try:
        job = _job(options)
    except ValueError as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return 2
    return run_job(job)


def _job(options: argparse.Namespace) -> Job:
    count, nodes = options.ranks, options.nodes
    if count < 1 or nodes < 1 or not 0 <= options.node < nodes:
        raise ValueError(f"-n {count} --nodes {nodes} --node {options.node}: there must be ranks, and nodes from 0 on")
    if options.timeout < 0 or options.standstill < 0:
        raise ValueError("--timeout and --standstill must not be negative")
    if not options.script.is_file():
        raise ValueError(f"no such script: {options.script}")
    if options.local is None and count % nodes:
        raise ValueError(f"-n {count} does not divide among {nodes} machines; give --local and --first on each")
    local = count // nodes if options.local is None else options.local
    first = options.node * local if options.first is None else options.first
    if local < 1 or first < 0 or first + local > count:
        raise ValueError(f"--local {local} --first {first}: they must be ranks among {count}")
    host, _, port = options.master.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"--master {options.master}: it must be HOST:PORT")
    if nodes > 1 and int(port) == 0:
        raise ValueError("--master HOST:PORT must say where machine 0 is reached by the others")
    logs = None
    if options.logs is not None:
        folder = options.logs
        folder.mkdir(parents=True, exist_ok=True)
        logs = lambda k: str(folder / f"rank_{k}.log")
    plain = ["--plain"] if options.plain else []
    return Job(
        NAME,
        [sys.executable, "-m", "mycel.cli.ranked", *plain, str(options.script), *options.arguments],
        count,
        local,
        first,
        options.node,
        nodes,
        host,
        int(port),
        options.timeout,
        options.standstill,
        threads_of(local),
        logs=logs,
    )


def threads_of(ranks: int) -> dict[str, str]:
    """Return the variables that divide the cores of this machine among `ranks`."""
    if "OMP_NUM_THREADS" in os.environ:
        return {}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"OMP_NUM_THREADS": str(max(1, cores // ranks))}


def run_job(job: Job, wait: float = 300.0) -> int:
    """Serve or find the store, which is given `wait` seconds, and run the ranks of this machine."""
    if os.name != "posix":
        print(f"{job.name}: ranks need a POSIX system", file=sys.stderr)
        return 2
    try:
        store = TCPStore(
            "0.0.0.0" if job.node == 0 and job.nodes > 1 else job.host,
            job.port,
            is_master=job.node == 0,
            timeout=timedelta(seconds=wait),
        )
    except RuntimeError as error:
        print(f"{job.name}: {error}", file=sys.stderr)
        return 2
    with store:
        return Supervisor(job, store).run()
