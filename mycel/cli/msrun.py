"""`msrun`: MindSpore's way to start ranks, with its options.

Each machine of a cluster runs the same command with its own ``--node_rank``; ``--master_addr`` and
``--master_port`` say where the first one is. The output of rank K goes to DIR/worker_K.log. Without
``--join`` the command returns at once, and a process of its own watches the ranks and writes to
DIR/scheduler.log; with it, it waits, and the output of the ranks named by ``--tail_worker_log`` is
shown as well.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mycel._src.foundation.system import subprocesses
from mycel.cli.launch import ranked, run_job, threads_of
from mycel.cli.parsing import Parser
from mycel.cli.supervisor import Job

__all__ = ["main"]

NAME = "msrun"


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither True nor False")
    return text.lower() == "true"


def _parser() -> Parser:
    parser = Parser(prog=NAME, description="Run a script in several processes that communicate.")
    parser.with_version()
    add: Callable[..., Any] = parser.add_argument
    add("--worker_num", type=int, default=8, help="how many ranks there are in all (default: 8)")
    add("--local_worker_num", type=int, default=8, help="how many of them this machine has (default: 8)")
    add("--master_addr", default="127.0.0.1", help="the address of the first machine (default: 127.0.0.1)")
    add("--master_port", type=int, default=8118, help="its port (default: 8118)")
    add("--node_rank", type=int, default=-1, help="which machine this is, needed where there are several")
    add("--log_dir", default="", help="where the logs go (default: the present folder)")
    add("--worker_log_name", default="worker", help="how the logs begin (default: worker)")
    add("--join", type=_flag, default=False, help="whether to wait for the ranks (default: False)")
    add("--tail_worker_log", default="-1", help="with --join, whose output is shown: -1 all, or numbers: 0,3")
    add("--cluster_time_out", type=int, default=600, help="seconds in which all ranks must come (default: 600)")
    add("--bind_core", default="", help="True divides the cores among the ranks of this machine")
    add("--sim_level", type=int, default=-1, help="simulation without devices: only -1, none, is supported")
    add("--sim_rank_id", type=int, default=-1, help="the rank to simulate: only -1, none, is supported")
    add("--rank_table_file", default="", help="a table of devices of a cluster: not supported")
    add("task_script", help="a Python file")
    add("task_script_args", nargs=argparse.REMAINDER, help="the script's own arguments")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (default: those of the process); return its exit status.

    >>> main(["--worker_num=2", "--local_worker_num=2", "no-such-script.py"])
    2
    """
    options = _parser().parse_args(arguments)
    try:
        job = _job(options)
    except ValueError as error:
        print(f"{NAME}: {error}", file=sys.stderr)
        return 2
    if options.join:
        return run_job(job, float(options.cluster_time_out))
    return _in_background(job, options)


def _job(options: argparse.Namespace) -> Job:
    count, local = options.worker_num, options.local_worker_num
    if count < 1 or local < 1 or count % local:
        raise ValueError(f"--worker_num {count} must be a multiple of --local_worker_num {local}")
    nodes = count // local
    node = 0 if nodes == 1 and options.node_rank == -1 else options.node_rank
    if not 0 <= node < nodes:
        raise ValueError(f"--node_rank must be 0 to {nodes - 1}, one of the {nodes} machines, not {options.node_rank}")
    for name, only in (("sim_level", -1), ("sim_rank_id", -1), ("rank_table_file", "")):
        if getattr(options, name) != only:
            raise ValueError(
                f"--{name}={getattr(options, name)} is not supported; ranks are processes that run the script"
            )
    if options.bind_core not in ("", "True", "False"):
        raise ValueError(f"--bind_core must be True or False, not {options.bind_core}")
    if options.cluster_time_out < 1 or not 0 < options.master_port < 65536:
        raise ValueError("--cluster_time_out must be positive, and --master_port from 1 to 65535")
    if not Path(options.task_script).is_file():
        raise ValueError(f"no such script: {options.task_script}")
    first = node * local
    folder = Path(options.log_dir or ".").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    master = options.master_addr
    if nodes == 1 and master == socket.gethostname():
        master = "127.0.0.1"
    return Job(
        NAME,
        ranked(options.task_script, *options.task_script_args),
        count,
        local,
        first,
        node,
        nodes,
        master,
        options.master_port,
        environment={**threads_of(local), "MYCEL_MEETING": str(options.cluster_time_out)},
        of_rank=_cores(local, first) if options.bind_core == "True" else lambda _: {},
        logs=lambda k: str(folder / f"{options.worker_log_name}_{k}.log"),
        shown=_shown(options.tail_worker_log, range(first, first + local)) if options.join else (),
    )


def _shown(text: str, ranks: range) -> tuple[int, ...]:
    if text == "-1":
        return tuple(ranks)
    parts = text.split(",")
    if not all(p.strip().isdigit() for p in parts):
        raise ValueError(f"--tail_worker_log must be -1, or numbers of ranks such as 0,3, not {text}")
    return tuple([int(p) for p in parts if int(p) in ranks])


def _cores(local: int, first: int) -> Callable[[int], dict[str, str]]:
    if not hasattr(os, "sched_getaffinity"):
        raise ValueError("--bind_core: this system does not bind processes to cores")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < local:
        raise ValueError(f"--bind_core: there are {len(cores)} cores for {local} ranks; leave it out")
    each = len(cores) // local

    def of_rank(number: int) -> dict[str, str]:
        start = (number - first) * each
        return {"MYCEL_CORES": ",".join(map(str, cores[start : start + each]))}

    return of_rank


def _in_background(job: Job, options: argparse.Namespace) -> int:
    """Leave the ranks to a process of its own, and return at once."""
    if subprocesses.fork():
        return 0
    os.setsid()
    log = os.open(str(Path(options.log_dir or ".").resolve() / "scheduler.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    status = run_job(job, float(options.cluster_time_out))
    os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
