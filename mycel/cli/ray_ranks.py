"""Ranks as actors of Ray, which places them, tells of machines that are lost, and starts anew.

Each rank is an actor in a placement group, and runs a launcher of its own with one rank: so output,
failures and standstills are those of any launch of several machines. The output of the ranks comes
back as a stream of Ray's objects, in whole lines; Ray's log files have it too.

An attempt ends when all ranks have ended, or one has failed. Then all actors are ended, and the
program is started again from its beginning, at most `restarts` times. It goes on by itself where it
loads its newest checkpoint when it begins. Where the cluster has become smaller there are fewer
ranks, but not fewer than `least`.

A launcher holds the end of a pipe of its actor: where the actor is gone, its input ends, and so
does the rank. The key of the launch goes to actors as an argument, so that no page of Ray shows it.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mycel._src.foundation.system import subprocesses
from mycel.cli.lines import Lines, writer

__all__ = ["Cluster", "by_ray"]

_PLACES = 10.0  # seconds in which Ray places ranks for which there is room
_SETTLES = 5.0  # seconds that a cluster gets to say that it is smaller
_OTHERS = 8.0  # seconds that ranks have to end by themselves, once one has failed
_TOGETHER = 0.05  # seconds of output that go as one object
_PIECE = 1 << 16
Command = Callable[[int, int, str, tuple[int, int]], list[str]]


@dataclass(frozen=True)
class Cluster:
    """What is asked of Ray: `ranks` actors, at least `least`, of `processors` each, in the cluster
    at `address` ("auto": the one that is there, "local": a new one on this machine), for which it
    has `seconds`; and how many `restarts` there may be.
    """

    ranks: int
    least: int
    processors: float = 1.0
    address: str = "auto"
    restarts: int = 3
    seconds: float = 300.0


def _library() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ValueError("--ray needs Ray, which is not installed; `pip install 'mycel[ray]'` installs it") from error
    return ray


class _Actor:
    """One rank in its process of Ray."""

    def place(self) -> tuple[str, str, int]:
        """Return the machine's number in the cluster, its address, and a free port of it."""
        import ray

        address = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call, unused-ignore]
        with socket.create_server((address, 0)) as made:
            return ray.get_runtime_context().get_node_id(), address, made.getsockname()[1]

    def run(self, command: list[str], key: bytes, folder: str, settings: dict[str, str]) -> Iterator[Any]:
        """Run a launcher; give its output as it comes, by stream and bytes, and its status.

        `command` is its command line, `key` the line that it reads first, `folder` where it runs,
        and `settings` are variables of its environment.
        """
        process = subprocesses.start(
            command,
            cwd=folder,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        with suppress(OSError):  # it has ended already
            process.stdin.write(key)
            process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ, 1)
            selector.register(process.stderr, selectors.EVENT_READ, 2)
            while selector.get_map():
                for chosen, _ in selector.select():
                    time.sleep(_TOGETHER)
                    data = os.read(chosen.fd, _PIECE)
                    if not data:
                        selector.unregister(chosen.fileobj)
                        continue
                    writer(chosen.data)(data)  # into Ray's log files
                    yield chosen.data, data
        yield process.wait()


class _Attempt:
    """One start of the ranks: their actors, and how each has ended, by its number."""

    def __init__(self, ray: Any, count: int) -> None:
        self.ray, self.count = ray, count
        self.group: Any = None
        self.actors: list[Any] = []
        self.ends: dict[int, int | str] = {}
        self.failed = threading.Event()

    def place(self, processors: float) -> bool:
        """Have Ray place the actors; return whether there is room for them."""
        from ray.util.placement_group import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as Strategy

        self.group = placement_group([{"CPU": processors}] * self.count, strategy="PACK")
        if not self.group.wait(_PLACES):
            return False
        made = self.ray.remote(num_cpus=processors, max_restarts=0, max_task_retries=0)(_Actor)
        places = [Strategy(self.group, placement_group_bundle_index=k) for k in range(self.count)]
        self.actors = [made.options(scheduling_strategy=place).remote() for place in places]
        return True

    def run(self, command: Command, key: bytes, settings: dict[str, str]) -> None:
        """Run all ranks until they have ended, or a while after one has failed.

        Raises Ray's errors where an actor is lost before it runs.
        """
        found = self.ray.get([actor.place.remote() for actor in self.actors], timeout=10 * _PLACES)
        # The ranks of one machine have numbers one after the other.
        machines = list(dict.fromkeys(node for node, _, _ in found))
        order = sorted(range(self.count), key=lambda k: machines.index(found[k][0]))
        master = f"{found[order[0]][1]}:{found[order[0]][2]}"
        started = []
        for rank, k in enumerate(order):
            near = [other for other in order if found[other][0] == found[k][0]]
            words = command(self.count, rank, master, (near.index(k), len(near)))
            stream = self.actors[k].run.options(num_returns="streaming").remote(words, key, os.getcwd(), settings)
            name = f"rank {rank} at {found[k][1]}"
            started.append(threading.Thread(target=self._follow, args=(rank, name, stream), daemon=True))
        for thread in started:
            thread.start()
        limit = float("inf")
        while any(thread.is_alive() for thread in started) and time.monotonic() < limit:
            if limit == float("inf") and self.failed.wait(0.2):
                limit = time.monotonic() + _OTHERS
            elif self.failed.is_set():
                time.sleep(0.1)

    def _follow(self, rank: int, name: str, stream: Any) -> None:
        """Show the output of a rank, and keep how it has ended."""
        end: int | str = f"{name} has ended without a status"
        shown = {target: Lines("", writer(target)) for target in (1, 2)}
        try:
            for reference in stream:
                told = self.ray.get(reference)
                if isinstance(told, int):
                    end = told if told >= 0 else 128 - told
                else:
                    shown[told[0]].add(told[1])
        except self.ray.exceptions.RayError as error:
            end = f"{name} is lost: {str(error).strip().splitlines()[0] or type(error).__name__}"
        for lines in shown.values():
            lines.end()
        self.ends[rank] = end
        if end != 0:
            self.failed.set()

    @property
    def succeeded(self) -> bool:
        """Whether all ranks have ended with status 0."""
        return len(self.ends) == self.count and not any(self.ends.values())

    def failure(self) -> tuple[str, int]:
        """Return what Ray says of the first rank that it has lost, if it has, and a status."""
        ends = [self.ends[rank] for rank in sorted(self.ends)]
        texts = [end for end in ends if isinstance(end, str)]
        numbers = [end for end in ends if isinstance(end, int) and end]
        # A launcher that was told of a failure elsewhere ends with status 1.
        return (texts[0] if texts else ""), next((n for n in numbers if n != 1), 1)

    def end(self) -> None:
        """End all actors, and give their places back."""
        for actor in self.actors:
            self.ray.kill(actor)
        if self.group is not None:
            self.ray.util.remove_placement_group(self.group)


def by_ray(name: str, asked: Cluster, command: Command, key: Callable[[], bytes], settings: dict[str, str]) -> int:
    """Run ranks as actors of Ray, in the cluster that was `asked` for, again where they fail; give
    the status of the last attempt.

    ``command(ranks, rank, master, place)`` gives the launcher of one rank, whose place among those
    of its machine is `place`; ``key()`` gives the line that it reads first, `settings` are its
    variables, and `name` is that of this command.

    Raises ValueError where Ray is not installed, or there is no such cluster.
    """
    ray = _library()
    try:
        ray.init(address=asked.address, log_to_driver=False, configure_logging=False)
    except ConnectionError as error:
        raise ValueError(
            f"--ray {asked.address}: {error}; `ray start` makes a cluster, and --ray local one here"
        ) from error
    before = {s: signal.signal(s, _interrupted) for s in (signal.SIGTERM, signal.SIGHUP)}
    try:
        for number in range(asked.restarts + 1):
            attempt = _placed(name, ray, asked, number)
            try:
                if number:
                    _say(name, f"restart {number} of {asked.restarts}, with {attempt.count} ranks")
                try:
                    attempt.run(command, key(), {**settings, "MYCEL_RESTART": str(number)})
                except (ray.exceptions.RayError, ray.exceptions.GetTimeoutError) as error:
                    attempt.ends[0] = f"an actor is lost before it runs: {str(error).strip().splitlines()[0]}"
                if attempt.succeeded:
                    return 0
                text, status = attempt.failure()
                if text:
                    _say(name, text)
            finally:
                attempt.end()
        return status
    except KeyboardInterrupt:
        _say(name, "interrupted")
        return 130
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        ray.shutdown()


def _placed(name: str, ray: Any, asked: Cluster, number: int) -> _Attempt:
    """Return an attempt for whose ranks there is room: for all, or for those that there may be.

    Raises ValueError where there is none in time.
    """
    began, told = time.monotonic(), False
    while True:
        room = _room(ray, asked.processors)
        passed = time.monotonic() - began
        if number == 0 and asked.address == "local" and room < asked.least:
            passed = asked.seconds  # nobody adds machines to it
        if room >= asked.ranks or (room >= asked.least and passed >= _SETTLES):
            attempt = _Attempt(ray, min(room, asked.ranks))
            if attempt.place(asked.processors):
                return attempt
            attempt.end()
        needs = f"{asked.least} x {asked.processors:g} processors are needed, and the cluster has room for {room}"
        if passed >= asked.seconds:
            raise ValueError(f"--ray: {needs} ranks; add machines, or give fewer by --min-ranks")
        if not told and passed >= _SETTLES:
            told = True
            _say(name, f"waits for places: {needs} ranks")
        time.sleep(0.5)


def _room(ray: Any, processors: float) -> int:
    """Return how many ranks the machines of the cluster that are alive have room for."""
    alive = [node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]]
    return sum(int(cores // processors) for cores in alive)


def _say(name: str, text: str) -> None:
    writer(2)(f"{name}: {text}\n".encode(errors="replace"))


def _interrupted(number: int, _: Any) -> None:
    raise KeyboardInterrupt
