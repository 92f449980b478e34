"""What the launchers of several machines tell each other, and how they find that one is gone.

Each launcher sets a value at the store twice a second: a count, its machine's name and ranks, and
for whom its ranks wait. The first machine, which serves the store, reads all of them, and sets what
all wait for in one value. One whose count has not changed for some seconds is lost: its launcher
was killed, or the network in between is cut. To the others the first machine is lost where the
store does not answer for as long.

The first failure is written to the store, where all read it, so that they end too. The first
machine ends last: when all have seen the failure, or have said that they are done.

All requests are made by one thread, since they wait as long as the network does.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from mycel._src.compiler.transport.tcp_store import TCPStore
from mycel._src.foundation.system import locks

__all__ = ["Heartbeats"]

_BEAT = 0.5
_FAREWELL = 2.0  # seconds that other machines get to see a failure
Waits = dict[int, tuple[int, float]]


class Heartbeats:
    """The launchers of other machines, as the one of machine `node` of `nodes` knows them by the
    `store` that all reach.

    `ranks` are the numbers of its own ranks, and `machine` is its name. `waits` gives the ranks
    that its own wait for, with one of these and its seconds. A machine is lost after `limit`
    seconds.
    """

    def __init__(
        self,
        store: TCPStore,
        node: int,
        nodes: int,
        machine: str,
        ranks: range,
        waits: Callable[[], Waits],
        limit: float,
    ) -> None:
        self.store, self.node, self.nodes, self.ranks, self.limit = store, node, nodes, ranks, limit
        self.machine, self.waits = machine or socket.gethostname(), waits
        self.elsewhere: Waits = {}
        self._count = 0
        self._told: dict[int, dict[str, Any]] = {}
        self._ages: dict[int, float] = {}
        self._answered = time.monotonic()
        self._failure = ""
        self._telling = ""
        self._state = self._said = "runs"
        self._changed = locks.condition()
        self._closed = self._ended = False
        self._thread = threading.Thread(target=self._talk, name="mycel-heartbeats", daemon=True)
        if nodes > 1:
            if node:
                store.limit_answers(limit)
            self._thread.start()

    # What the supervisor asks.

    def failure(self) -> str:
        """Return what has failed on other machines; empty where nothing has."""
        if self.nodes == 1:
            return ""
        with self._changed:
            if self._failure:
                return self._failure
            if self.node and time.monotonic() - self._answered >= self.limit:
                return self._first_is_lost(f"does not answer for {self.limit:.0f} s; the network may be cut")
            lost = [k for k, age in self._ages.items() if age >= self.limit]
            if lost:
                return (
                    f"{self._name(lost[0])} is lost: its launcher has not been heard for {self.limit:.0f} s; it was "
                    "killed, or the network is cut"
                )
        return ""

    def has(self, rank: int) -> str:
        """Return the machine of a rank elsewhere, with what is known of it; empty where nothing."""
        with self._changed:
            for node, told in self._told.items():
                if node != self.node and told["first"] <= rank < told["first"] + told["local"]:
                    silent = ", whose launcher is not heard any more" if self._ages.get(node, 0.0) > 2 * _BEAT else ""
                    return f"on {self._name(node)}{silent}"
        return ""

    def tell(self, text: str) -> None:
        """Tell the others of a failure on this machine; returns after a while if it cannot."""
        self._say("fails", text)

    def finish(self) -> str:
        """Wait until the ranks of this machine are known to have ended well; on the first one,
        until all have. Return what has failed meanwhile.
        """
        if self.nodes == 1:
            return ""
        self._say("done", "")
        while not self.failure() and self.node == 0 and self._left():
            time.sleep(_BEAT / 5)
        return self.failure()

    def close(self) -> None:
        """End the heartbeats; on the first machine, once the others have seen a failure."""
        if self.nodes == 1:
            return
        limit = time.monotonic() + _FAREWELL
        self._say("over", "")
        while self.node == 0 and self._left() and time.monotonic() < limit:
            time.sleep(_BEAT / 5)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _left(self) -> list[int]:
        """Return the machines that run ranks still, without those that are lost."""
        with self._changed:
            there = [k for k in range(1, self.nodes) if self._ages.get(k, 0.0) < self.limit]
            return [k for k in there if self._told.get(k, {}).get("state", "runs") == "runs"]

    def _name(self, node: int) -> str:
        return f"machine {node} ({self._told[node]['machine']})" if node in self._told else f"machine {node}"

    def _first_is_lost(self, why: str) -> str:
        return f"{self._name(0)}, the first one, is lost: its launcher {why}"

    # The thread.

    def _say(self, state: str, text: str) -> None:
        """Have the thread tell of a new state, and wait until it has, for a while."""
        if self.nodes == 1:
            return
        with self._changed:
            self._state, self._telling = state, text or self._telling
            asked = self._count + 1  # the beat that has gone out last may have been made before
            self._changed.notify_all()
            if self.node and time.monotonic() - self._answered >= self.limit:
                return  # the first machine is lost
            self._changed.wait_for(lambda: self._count > asked or self._ended, _FAREWELL)

    def _talk(self) -> None:
        while True:
            began = time.monotonic()
            try:
                self._beat()
            except RuntimeError as error:  # the store is gone, or does not answer
                late = isinstance(error.__cause__, TimeoutError)
                why = (
                    f"does not answer for {self.limit:.0f} s; the network may be cut" if late else f"is gone ({error})"
                )
                with self._changed:
                    self._ended = True
                    if self._state == "runs":
                        self._failure = self._failure or self._first_is_lost(why)
                    self._changed.notify_all()
                return
            with self._changed:
                self._count += 1
                self._answered = time.monotonic()
                self._changed.notify_all()
                if self._closed:
                    return
                if self._state == self._said:
                    self._changed.wait_for(lambda: self._state != self._said or self._closed, _BEAT)
                self._said = self._state
                passed = min(time.monotonic() - began, 2 * _BEAT)  # where this one stood still, it says nothing
                for node in self._ages:
                    self._ages[node] += passed

    def _beat(self) -> None:
        store = self.store
        with self._changed:
            own = {
                "count": self._count,
                "machine": self.machine,
                "first": self.ranks.start,
                "local": len(self.ranks),
                "waits": [(k, *v) for k, v in self.waits().items()],
                "state": self._state,
            }
            telling = self._telling
        if telling and store.add("launch/failures", 1) == 1:
            store.set("launch/failed", f"on machine {self.node} ({self.machine}): {telling}")
        store.set(f"launch/node/{self.node}", json.dumps(own))
        if self.node == 0:
            keys = {node: f"launch/node/{node}" for node in range(1, self.nodes)}
            self._heard({k: json.loads(store.get(key)) for k, key in keys.items() if store.check([key])} | {0: own})
            store.set("launch/all", json.dumps(self._told))
        elif store.check(["launch/all"]):
            self._heard({int(k): told for k, told in json.loads(store.get("launch/all")).items()})
        if not telling and store.check(["launch/failed"]):
            self._failure = store.get("launch/failed").decode()

    def _heard(self, told: dict[int, dict[str, Any]]) -> None:
        """Take what the launchers have told."""
        with self._changed:
            waits: Waits = {}
            for node, facts in told.items():
                if node == self.node:
                    continue
                if node not in self._told or self._told[node]["count"] != facts["count"]:
                    self._ages[node] = 0.0
                if self.node or facts["state"] != "runs":
                    self._ages.pop(node, None)  # the first machine judges, of those that run
                for target, waiter, seconds in facts["waits"]:
                    if target not in waits or waits[target][1] < seconds:
                        waits[target] = (waiter, seconds)
            self._told, self.elsewhere = told, waits
