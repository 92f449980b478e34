"""Launches on several machines, from one: by an agent such as ssh, or by Ray.

On each machine a launcher runs with its part of the ranks. They watch each other through the store
that the first one serves, so that the first failure ends all (`mycel.cli.supervisor`). Each holds
the end of a pipe, its *leash*: when who started it is gone, its input ends, and so do its ranks.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mycel._src.foundation.system import subprocesses
from mycel.cli.lines import Piped

__all__ = ["Machine", "by_agent", "by_ray"]

_PATIENCE = 12.0  # seconds that launchers have to end, once one has failed
_PASSED = ("PYTHONPATH", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class Machine:
    """A machine with `local` ranks, from the number `first` on."""

    name: str
    local: int
    first: int


def _settings() -> list[str]:
    """Return the variables of this process that concern ranks, as NAME=VALUE."""
    return [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("MYCEL_") or k in _PASSED]


def by_agent(
    name: str,
    machines: Sequence[Machine],
    agent: Sequence[str],
    command: Callable[[int, int, int, int, int, str], list[str]],
) -> int:
    """Run a launcher on each of `machines` by `agent`, which takes a machine and a command.

    ``command(ranks, machines, number, local, first, master)`` gives the launcher of one machine;
    `name` is that of this command. Returns the status of the first that fails, or 0.
    """
    count = sum(m.local for m in machines)
    master = f"{machines[0].name}:{random.randrange(20000, 32000)}"  # below the ports that systems give away
    started: list[subprocess.Popen[bytes]] = []
    piped = Piped()
    before = {s: signal.signal(s, _interrupted) for s in (signal.SIGTERM, signal.SIGHUP)}
    try:
        for k, machine in enumerate(machines):
            inner = command(count, len(machines), k, machine.local, machine.first, master)
            line = f"cd {shlex.quote(os.getcwd())} && exec env {shlex.join([*_settings(), *inner])}"
            # In a group of its own, so that an interrupt of the keyboard ends it through its leash.
            process = subprocesses.start(
                [*agent, machine.name, line],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            started.append(process)
            piped.add("", process)
        piped.begin()
        failed = _first_failure(started)
        if failed is None:
            return 0
        status = started[failed].returncode
        print(f"{name}: the launcher on {machines[failed].name} has ended with status {status}", file=sys.stderr)
        return status if status > 0 else 128 - status
    except FileNotFoundError:
        print(f"{name}: there is no command {agent[0]!r}; --agent says what runs a command elsewhere", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        _end(started)
        piped.end()
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupted(number: int, _: Any) -> None:
    raise KeyboardInterrupt


def _first_failure(started: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """Wait for launchers; return the number of one that has failed and did so by itself, or None.

    A launcher that has been told of a failure elsewhere ends with status 1.
    """
    limit = None
    while True:
        statuses = [p.poll() for p in started]
        failed = [k for k, status in enumerate(statuses) if status]
        if None not in statuses or (limit is not None and time.monotonic() >= limit):
            own = [k for k in failed if statuses[k] != 1]
            return own[0] if own else failed[0] if failed else None
        if failed and limit is None:
            limit = time.monotonic() + _PATIENCE
        time.sleep(0.05)


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """Let go of the leashes, and after a while end who has not ended."""
    for process in started:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
    limit = time.monotonic() + _PATIENCE
    while time.monotonic() < limit and any(p.poll() is None for p in started):
        time.sleep(0.05)
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def _library() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ValueError("--ray needs Ray, which is not installed; `pip install 'mycel[ray]'` installs it") from error
    return ray


def by_ray(name: str, nodes: int, local: int, address: str, command: Callable[[int, str], list[str]]) -> int:
    """Run a launcher in each of `nodes` tasks of Ray, which have `local` processors each.

    Ray spreads them over the machines of the cluster at `address` ("auto": the one that is there,
    "local": a new one on this machine). ``command(number, master)`` gives the launcher of one;
    `name` is that of this command. Returns the status of the first that fails, or 0.

    Raises ValueError where Ray is not installed, or there is no such cluster.
    """
    ray = _library()
    from ray.util.placement_group import placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as Strategy

    try:
        ray.init(address=address, log_to_driver=True, configure_logging=False)
    except ConnectionError as error:
        raise ValueError(f"--ray {address}: {error}; `ray start` makes a cluster, and --ray local one here") from error
    try:
        free = ray.cluster_resources().get("CPU", 0)
        if free < nodes * local:
            raise ValueError(f"--ray: {nodes} x {local} processors are needed, and the cluster has {free:.0f}")
        group = placement_group([{"CPU": local}] * nodes, strategy="SPREAD")
        ray.get(group.ready())
        places = [Strategy(group, placement_group_bundle_index=k) for k in range(nodes)]
        run = ray.remote(num_cpus=local, max_retries=0)(_run_in_task)
        master = ray.get(ray.remote(num_cpus=local)(_place_in_task).options(scheduling_strategy=places[0]).remote())
        settings, folder = dict(s.split("=", 1) for s in _settings()), os.getcwd()
        tasks = [
            run.options(scheduling_strategy=places[k]).remote(command(k, master), folder, settings)
            for k in range(nodes)
        ]
        statuses = ray.get(tasks)
        failed = [s for s in statuses if s]
        own = [s for s in failed if s != 1]
        return int((own or failed or [0])[0])
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    finally:
        ray.shutdown()


def _place_in_task() -> str:
    """Return the address of the machine of a task, and a port that is free there."""
    import socket

    import ray

    address = ray.util.get_node_ip_address()
    with socket.create_server((address, 0)) as made:
        return f"{address}:{made.getsockname()[1]}"


def _run_in_task(command: list[str], folder: str, settings: dict[str, str]) -> int:
    """Run a launcher in a task of Ray; its leash ends with the task's process."""
    variables = {**os.environ, **settings}
    process = subprocesses.start(
        command, cwd=folder, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    for line in process.stdout:
        print(line.decode(errors="replace"), end="", flush=True)
    status = process.wait()
    return status if status >= 0 else 128 - status
