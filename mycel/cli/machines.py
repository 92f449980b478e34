"""Launches on several machines, from one, by an agent such as ssh.

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

from mycel._src.compiler.transport import addresses, authentication
from mycel._src.foundation.system import subprocesses
from mycel.cli.lines import Piped

__all__ = ["SSH", "Machine", "by_agent", "key_line", "settings"]

# The network is looked at, so that a machine that is cut off is told from one that says nothing.
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=2 -o ServerAliveCountMax=3".split()

_PATIENCE = 2.5  # seconds that launchers have to end by themselves, once one has failed
_LEAVE = 3.5  # seconds that they have to end when asked to
_PASSED = ("PYTHONPATH", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class Machine:
    """A machine with `local` ranks, from the number `first` on."""

    name: str
    local: int
    first: int


def settings() -> list[str]:
    """Return the variables of this process that concern ranks, as NAME=VALUE.

    The key is none of them, as command lines are seen by all users of a machine, and neither is an
    address, which is of one machine.
    """
    found = [k for k in sorted(os.environ) if k.startswith("MYCEL_") or k in _PASSED]
    own = {authentication.KEY} | ({addresses.INTERFACE} if "." in os.environ.get(addresses.INTERFACE, "") else set())
    return [f"{k}={os.environ[k]}" for k in found if k not in own]


def key_line() -> bytes:
    """Return the line that launchers read first: the key of this launch."""
    return (authentication.key().decode() or authentication.new_key()).encode() + b"\n"


def by_agent(
    name: str,
    machines: Sequence[Machine],
    agent: Sequence[str],
    command: Callable[[int, int, int, int, int, str, str], list[str]],
) -> int:
    """Run a launcher on each of `machines` by `agent`, which takes a machine and a command.

    ``command(ranks, machines, number, local, first, master, machine)`` gives the launcher of one
    machine; `name` is that of this command. The key goes to the launchers by their input. Returns
    the status of the first that fails, or 0.
    """
    count = sum(m.local for m in machines)
    master = f"{machines[0].name}:{random.randrange(20000, 32000)}"  # below the ports that systems give away
    started: list[subprocess.Popen[bytes]] = []
    piped = Piped()
    before = {s: signal.signal(s, _interrupted) for s in (signal.SIGTERM, signal.SIGHUP)}
    try:
        line_of_key = key_line()
        for k, machine in enumerate(machines):
            inner = command(count, len(machines), k, machine.local, machine.first, master, machine.name)
            line = f"cd {shlex.quote(os.getcwd())} && exec env {shlex.join([*settings(), *inner])}"
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
            assert process.stdin is not None
            with suppress(OSError):  # it has ended already
                process.stdin.write(line_of_key)
                process.stdin.flush()
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
    limit = time.monotonic() + _LEAVE
    while time.monotonic() < limit and any(p.poll() is None for p in started):
        time.sleep(0.05)
    for process in started:
        if process.poll() is None:
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
