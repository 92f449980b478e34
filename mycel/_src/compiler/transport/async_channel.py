"""Asynchronous exchanges: a thread runs a rank's collectives in order while the rank computes.

A rank's exchanges have one order, which is that of the other ranks. `start` gives one to a thread
of its own and returns at once; `call` runs one now, behind those that were started. So a thread
that computes meets the others only where it needs what they have: at `Started.result`.

The thread owns what it sends and what it gets: who starts an exchange gives it arrays that nobody
changes, and takes the result when it likes. So nothing has to be undone where a program ends
between the two: the exchange goes on, as it does on the ranks that do not end, and its result is
dropped. An error of the exchange is raised where its result is asked for. A wait for a result can
be interrupted as any wait for a lock can.

The thread sleeps where there is nothing to do, and ends after `IDLE` seconds of that. A forked
child has no such thread and no exchanges.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from mycel._src.compiler.transport import rank_status
from mycel._src.compiler.transport.base import Transport
from mycel._src.compiler.transport.current_transport import transport, within
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.system import locks

__all__ = ["IDLE", "Channel", "Started", "channel"]

IDLE = 2.0
_all: finalization.Living[Channel] = finalization.Living()


class Started:
    """An exchange that was started; `result` waits for what it gives."""

    def __init__(self, own: Channel, work: Callable[[], Any]) -> None:
        self._channel = own
        self._work: Callable[[], Any] | None = work
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None

    def _run(self) -> None:
        work, self._work = self._work, None
        assert work is not None
        try:
            self._value = work()
        except BaseException as error:
            self._error = error

    @property
    def is_done(self) -> bool:
        """Whether the exchange has ended, well or not."""
        return self._done

    def result(self) -> Any:
        """Wait until the exchange has ended; return what it gave.

        Raises what it raised, and RuntimeError in a process forked since it was started.
        """
        changed = self._channel.changed
        if not self._done:
            with rank_status.joined(), changed:
                changed.wait_for(lambda: self._done)
        value, error, self._value, self._error = self._value, self._error, None, None
        if error is not None:
            raise error
        return value


class Channel:
    """The order of one rank's exchanges through a transport; see the module's description.

    >>> from mycel._src.compiler.transport.single_process import Alone
    >>> alone = Alone()
    >>> way = Channel(alone)
    >>> first = way.start(lambda: "started")
    >>> way.call(lambda: "called"), first.is_done, first.result()
    ('called', True, 'started')
    """

    def __init__(self, own: Transport) -> None:
        self._transport = weakref.ref(own)
        self.changed = locks.condition()
        self._waiting: deque[Started] = deque()
        self._under_way: Started | None = None
        self._thread: threading.Thread | None = None
        _all.add(self)

    @property
    def is_idle(self) -> bool:
        """Whether all that was started has ended."""
        return not self._waiting and self._under_way is None

    def start(self, work: Callable[[], Any]) -> Started:
        """Have `work` run behind what was started before it, beside this thread.

        Raises RuntimeError where the transport is gone.
        """
        own, made = self._transport(), Started(self, work)
        if own is None:
            raise RuntimeError("communication: the transport of this exchange is gone")
        with self.changed:
            self._waiting.append(made)
            if self._thread is None:
                self._thread = threading.Thread(target=self._main, args=(own,), name="mycel-exchange", daemon=True)
                self._thread.start()
            self.changed.notify_all()
        return made

    def call(self, work: Callable[[], Any]) -> Any:
        """Run `work` behind what was started before it; return what it gives.

        It runs in this thread where nothing is under way.
        """
        return work() if self.is_idle else self.start(work).result()

    def settle(self) -> None:
        """Wait until all that was started has ended."""
        if not self.is_idle:
            with rank_status.joined(), self.changed:
                self.changed.wait_for(lambda: self.is_idle)

    def _main(self, own: Transport) -> None:
        with within(own), rank_status.beside():
            while True:
                with self.changed:
                    if not self.changed.wait_for(lambda: self._waiting, IDLE):
                        self._thread = None
                        return
                    now = self._under_way = self._waiting.popleft()
                now._run()
                with self.changed:
                    now._done, self._under_way = True, None
                    self.changed.notify_all()
                del now

    def forked(self) -> None:
        """Forget, in a forked child, what the parent's thread was to do."""
        pending = [s for s in (self._under_way, *self._waiting) if s is not None]
        for one in pending:
            one._error = RuntimeError("communication: this is a process forked from a rank, which is no rank itself")
            one._done = True
        self._waiting.clear()
        self._thread = self._under_way = None


@locks.in_child
def _in_child() -> None:
    for one in list(_all):
        one.forked()


_making = locks.lock()


def channel() -> Channel:
    """Return the channel of the transport in force in this thread, of which it has one."""
    own = transport()
    if own.channel is None:
        with _making:
            own.channel = own.channel or Channel(own)
    found: Channel = own.channel
    return found
