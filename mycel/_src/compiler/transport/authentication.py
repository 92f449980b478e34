"""Mutual authentication of processes that share a key, and the reception of connections by it.

Anybody may connect to a port. So before anything else is read from a connection, both sides show by
a challenge-response that they have the key of the launch (MYCEL_KEY), which never goes over the
network:

1. the client sends a greeting, a number of its own (its rank) and 32 random bytes;
2. the server sends the greeting back, and 32 random bytes;
3. the client sends an HMAC-SHA256 of all that was said, by the key, with its role in front;
4. the server sends the same with its own role, or zeros to who has another key.

Messages have fixed lengths, and nothing that a stranger says takes memory. Without a key both sides
use the empty one: then the exchange tells a rank from another program, and not friend from foe.

A `Reception` accepts connections side by side, each as its bytes come: who says something else, or
nothing within `PATIENCE` seconds, is dropped, and delays nobody. There are at most `MOST` at a
time: then the oldest, once it has been silent for `_BRIEFLY`, makes room for the next.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

__all__ = ["KEY", "LEAST_KEY", "MOST", "PATIENCE", "Reception", "Refused", "authenticate", "key", "new_key"]

KEY = "MYCEL_KEY"
LEAST_KEY = 16
PATIENCE = 10.0
MOST = 256
_BRIEFLY = 0.25
_GREETING = 16
_HELLO = struct.Struct(f"!{_GREETING}sI32s")
_ANSWER = struct.Struct(f"!{_GREETING}s32s")
_PROOF = 32


class Refused(RuntimeError):
    """Raised where the other side has another key, or is no server of this kind; `answer` is what
    it said in place of the greeting, if that is so.
    """

    def __init__(self, answer: bytes = b"") -> None:
        super().__init__(f"it says {answer!r}" if answer else "it has another key")
        self.answer = answer


def new_key() -> str:
    """Return a random key for a launch.

    >>> len(new_key())
    64
    """
    return secrets.token_hex(32)


def key() -> bytes:
    """Return the key of this launch, from MYCEL_KEY; empty where there is none.

    Raises RuntimeError for a key that could be guessed.
    """
    text = os.environ.get(KEY, "").strip()
    if text and len(text) < LEAST_KEY:
        raise RuntimeError(
            f"communication.init: {KEY} must be at least {LEAST_KEY} random characters, not {len(text)}; `openssl rand "
            "-hex 32` gives some"
        )
    return text.encode()


def _proof(secret: bytes, role: bytes, *said: bytes) -> bytes:
    return hmac.new(secret, role + b"".join(said), hashlib.sha256).digest()


def authenticate(connection: socket.socket, greeting: bytes, number: int, secret: bytes, limit: float) -> None:
    """Show the server of a new connection that this side has the key `secret`, and see that it has.

    `greeting` are 16 bytes that say what both speak, `number` is this side's, and `limit` the time
    of `time.monotonic` until which the server has to answer. Raises Refused where it is another
    one, OSError where it has gone or is late.
    """
    hello = _HELLO.pack(greeting, number, secrets.token_bytes(32))
    connection.settimeout(max(limit - time.monotonic(), 0.001))
    connection.sendall(hello)
    answer = _exactly(connection, _ANSWER.size, limit, greeting)
    connection.sendall(_proof(secret, b"client", hello, answer))
    if not hmac.compare_digest(_exactly(connection, _PROOF, limit), _proof(secret, b"server", hello, answer)):
        raise Refused


def _exactly(connection: socket.socket, count: int, limit: float, greeting: bytes = b"") -> bytes:
    """Return so many bytes; raise Refused as soon as it is clear that they begin with no `greeting`
    that is given.
    """
    found = b""
    while len(found) < count:
        connection.settimeout(max(limit - time.monotonic(), 0.001))
        part = connection.recv(count - len(found))
        found += part
        if greeting and not greeting.startswith(found[:_GREETING]) and (not part or len(found) >= _GREETING):
            raise Refused(found)
        if not part:
            raise ConnectionError("the other side closed the connection")
    return found


class _Stranger:
    """A connection that has not authenticated: what it has said, and when it came."""

    def __init__(self) -> None:
        self.said, self.hello, self.answer = b"", b"", b""
        self.began = time.monotonic()

    def heard(self, connection: socket.socket, greeting: bytes, secret: bytes) -> int | None:
        """Read further; return its number, -1 for who has no key, None if more must come."""
        wanted = _PROOF if self.hello else _HELLO.size
        try:
            came = connection.recv(wanted - len(self.said))
        except BlockingIOError:
            return None
        except OSError:
            return -1
        self.said += came
        if not came or (not self.hello and not greeting.startswith(self.said[:_GREETING])):
            return -1
        if len(self.said) < wanted:
            return None
        if not self.hello:
            self.hello, self.said = self.said, b""
            self.answer = _ANSWER.pack(greeting, secrets.token_bytes(32))
            return None if _sent(connection, self.answer) else -1
        if not hmac.compare_digest(self.said, _proof(secret, b"client", self.hello, self.answer)):
            _sent(connection, bytes(_PROOF))  # so that it does not try again
            return -1
        if not _sent(connection, _proof(secret, b"server", self.hello, self.answer)):
            return -1
        return int(_HELLO.unpack(self.hello)[1])


def _sent(connection: socket.socket, data: bytes) -> bool:
    """Send a few bytes, for which a new connection has room; return whether they have gone."""
    try:
        return connection.send(data) == len(data)
    except OSError:
        return False


class Reception:
    """Accepts connections at `listeners`, and gives those that have authenticated.

    It closes `listeners` and the connections of strangers when it is closed. It is used by one
    thread; any thread may `wake` it.
    """

    def __init__(self, listeners: Sequence[socket.socket], greeting: bytes, secret: bytes) -> None:
        self._greeting, self._secret = greeting, secret
        self._listeners = list(listeners)
        self._strangers: dict[socket.socket, _Stranger] = {}
        self._selector = selectors.DefaultSelector()
        self._woken, self._wakes = os.pipe()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._paused = 0.0
        for one in self._listeners:
            one.setblocking(False)
            self._selector.register(one, selectors.EVENT_READ)

    def wake(self) -> None:
        """Have `next` return at once."""
        with suppress(OSError):  # it is closed
            os.write(self._wakes, b".")

    def next(self, seconds: float | None = None) -> list[tuple[socket.socket, int]]:
        """Return connections that have authenticated, each with the number that it has given.

        Returns without any after `seconds`, when woken, and now and then where strangers are there.
        """
        found: list[tuple[socket.socket, int]] = []
        now = time.monotonic()
        limits = [] if seconds is None else [seconds]
        limits += [PATIENCE / 10] if self._strangers else []
        limits += [max(self._paused - now, 0.0)] if self._paused else []
        for chosen, _ in self._selector.select(min(limits) if limits else None):
            one: Any = chosen.fileobj
            if one == self._woken:
                os.read(self._woken, 4096)
            elif one in self._strangers:
                number = self._strangers[one].heard(one, self._greeting, self._secret)
                if number is not None:
                    self._drop(one, number < 0)
                    if number >= 0:
                        one.setblocking(True)
                        found.append((one, number))
            else:
                self._accept(one)
        self._tidy()
        return found

    def _accept(self, listener: socket.socket) -> None:
        if len(self._strangers) >= MOST:
            oldest = next(iter(self._strangers))
            if time.monotonic() - self._strangers[oldest].began < _BRIEFLY:
                self._pause()
                return
            self._drop(oldest, True)
        try:
            made, _ = listener.accept()
        except BlockingIOError:
            return
        except OSError:  # who has gone again; or the system has no room for one more
            self._pause()
            return
        made.setblocking(False)
        self._strangers[made] = _Stranger()
        self._selector.register(made, selectors.EVENT_READ)

    def _pause(self) -> None:
        """Accept nobody for a moment."""
        if not self._paused:
            self._paused = time.monotonic() + 0.02
            for one in self._listeners:
                self._selector.unregister(one)

    def _tidy(self) -> None:
        now = time.monotonic()
        for one in [one for one, stranger in self._strangers.items() if now - stranger.began >= PATIENCE]:
            self._drop(one, True)
        if self._paused and now >= self._paused:
            self._paused = 0.0
            for one in self._listeners:
                self._selector.register(one, selectors.EVENT_READ)

    def _drop(self, one: socket.socket, closes: bool) -> None:
        self._selector.unregister(one)
        del self._strangers[one]
        if closes:
            one.close()

    def close(self) -> None:
        """Close the listeners, and the connections of strangers."""
        self._selector.close()
        for one in (*self._listeners, *self._strangers):
            one.close()
        for end in (self._woken, self._wakes):
            os.close(end)
        self._wakes = self._woken = -1
