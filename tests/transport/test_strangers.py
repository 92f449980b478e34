"""Whoever connects to where ranks meet, and has not their key, holds up nobody and counts for
nothing; and what goes wrong with a rank is said by its name.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import numpy as np
import pytest

from mycel._src.compiler.transport import authentication, rendezvous
from mycel._src.compiler.transport import tcp_store as stores
from mycel._src.compiler.transport.sockets import Sockets
from mycel._src.compiler.transport.tcp_store import TCPStore

GREETING = stores._GREETING
drawn = random.Random(31).randbytes

# What strangers say, and whether they close then.
STRANGERS = {
    "nothing": (b"", False),
    "gone": (b"", True),
    "one byte": (b"m", False),
    "a page": (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", False),
    "a page and gone": (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", True),
    "random": (drawn(100), False),
    "a lot of random": (drawn(1 << 16), True),
    "zeros": (bytes(200), False),
    "half": (GREETING[:7], False),
    "half and gone": (GREETING[:7], True),
    "another rank": (rendezvous._GREETING + struct.pack("!I32s", 1, bytes(32)), False),
    "a client without key": (GREETING + bytes(4 + 32 + 32), False),
    "a client without key and gone": (GREETING + bytes(4 + 32 + 32), True),
    "a client that says no more": (GREETING + bytes(4 + 32), False),
    "a large promise": (struct.pack("!cII", b"s", 2**32 - 1, 2**32 - 1), False),
}
# What they may say once they have been greeted as clients.
REQUESTS = {
    "no request": b"?" + bytes(8),
    "a long key": struct.pack("!cII", b"s", 2**31, 3),
    "a long value": struct.pack("!cII", b"s", 1, 2**31) + b"x",
    "a time that is none": struct.pack("!cII", b"g", 1, 3) + b"xabc",
    "no number": struct.pack("!cII", b"g", 1, 3) + b"xnan",
    "a negative time": struct.pack("!cII", b"g", 1, 2) + b"x-1",
    "an endless time": struct.pack("!cII", b"w", 0, 3) + b"inf",
    "an amount that is none": struct.pack("!cII", b"a", 1, 1) + b"yz",
    "an amount without end": struct.pack("!cII", b"a", 1, 4300) + b"y" + b"9" * 4300,
    "random": drawn(64),
}


def speak(place: object, said: bytes, closes: bool, family: int = socket.AF_INET) -> socket.socket:
    made = socket.socket(family)
    made.settimeout(60)
    made.connect(place)  # type: ignore[arg-type]
    with suppress(OSError):  # it has been sent away meanwhile
        made.sendall(said)
    if closes:
        made.close()
    return made


def client(place: object, said: bytes) -> socket.socket:
    """A connection that has authenticated, and says something else than clients do."""
    made = speak(place, b"", False)
    authentication.authenticate(made, GREETING, 0, authentication.key(), time.monotonic() + 60)
    with suppress(OSError):
        made.sendall(said)
    return made


@contextmanager
def strangers(connect: Callable[[bytes, bool], socket.socket]) -> Iterator[None]:
    """Have all strangers there, and one that says a byte now and then."""
    made = [connect(said, closes) for said, closes in STRANGERS.values()]
    slow, over = connect(b"", False), threading.Event()

    def drip() -> None:
        for byte in GREETING * 100:
            if over.wait(0.01):
                return
            try:
                slow.sendall(bytes([byte ^ 1]))
            except OSError:
                return

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for one in (*made, slow):
            one.close()


def test_a_store_counts_clients_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "PATIENCE", 1e6)
    monkeypatch.setattr(stores, "_GLANCE", 0.05)
    with TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=60)) as store:
        place = ("127.0.0.1", store.port)
        with strangers(lambda said, closes: speak(place, said, closes)):
            assert store._server is not None and store._server.clients == 1
            clients = [client(place, said) for said in REQUESTS.values()]
            with TCPStore("127.0.0.1", store.port) as other:
                other.set("x", "1")
                assert store.add("x", 1) == 2
            for one in clients:
                one.close()
            # All have gone that ever were clients, and the strangers are still there.
            store.await_departures(2 + len(REQUESTS))


def until_closed(one: socket.socket) -> bytes:
    """What a connection says until the other side has closed it."""
    said = b""
    with suppress(ConnectionError):
        while part := one.recv(1000):
            said += part
    one.close()
    return said


def test_strangers_are_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "PATIENCE", 0.05)
    with TCPStore("127.0.0.1", 0, is_master=True) as store:
        for said, closes in STRANGERS.values():
            made = speak(("127.0.0.1", store.port), said, closes)
            if not closes:
                told = until_closed(made)
                # The greeting and what is to be proven; nothing is said of the key.
                assert told in (b"", bytes(32)) or (told.startswith(GREETING) and len(told) in (48, 80))
                assert len(told) < 80 or told.endswith(bytes(32))
        assert store.num_keys() == 0


def test_there_is_a_bound_on_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have been silent make room, and a client that was sent away comes again."""
    monkeypatch.setattr(authentication, "PATIENCE", 1e6)
    monkeypatch.setattr(authentication, "MOST", 4)
    with TCPStore("127.0.0.1", 0, is_master=True) as store:
        kept = [speak(("127.0.0.1", store.port), b"", False) for _ in range(20)]
        with TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=60)) as other:
            other.set("x", "1")
        assert store._server is not None and len(store._server.reception._strangers) <= 4
        assert sum(thread.name.startswith("mycel-store-client") for thread in threading.enumerate()) <= 2
        for one in kept[:15]:
            assert until_closed(one) == b""
        for one in kept:
            one.close()


ONE, OTHER = "one key of sixteen bytes", "another key of sixteen bytes"


def test_a_client_with_another_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCEL_KEY", ONE)
    with TCPStore("127.0.0.1", 0, is_master=True) as store:
        for other in (OTHER, ""):
            monkeypatch.setenv("MYCEL_KEY", other)
            with pytest.raises(RuntimeError, match=f"server at 127.0.0.1:{store.port} has another key .*; MYCEL_KEY"):
                TCPStore("127.0.0.1", store.port)
        monkeypatch.setenv("MYCEL_KEY", ONE)
        with TCPStore("127.0.0.1", store.port) as client:
            assert client.num_keys() == 0
        assert store._server is not None and store._server.clients == 2
    monkeypatch.setenv("MYCEL_KEY", "short")
    with pytest.raises(RuntimeError, match="MYCEL_KEY must be at least 16 random characters, not 5; `openssl"):
        TCPStore("127.0.0.1", 0, is_master=True)


def test_a_server_without_the_key_is_refused() -> None:
    """It sends back what the client says, or random bytes."""
    for answer in (lambda proof: proof, lambda proof: drawn(32)):
        ours, theirs = socket.socketpair()

        def serve(answer: Callable[[bytes], bytes] = answer, theirs: socket.socket = theirs) -> None:
            hello = theirs.recv(52, socket.MSG_WAITALL)
            theirs.sendall(hello[:16] + hello[20:])
            theirs.sendall(answer(theirs.recv(32, socket.MSG_WAITALL)))

        thread = threading.Thread(target=serve)
        thread.start()
        with ours, theirs, pytest.raises(authentication.Refused, match="it has another key"):
            authentication.authenticate(ours, GREETING, 0, ONE.encode(), time.monotonic() + 60)
        thread.join()


def test_what_was_heard_once_proves_nothing() -> None:
    """Who repeats the bytes of a client that has authenticated is refused."""
    said: list[bytes] = []

    class Recorded(socket.socket):
        def sendall(self, data: bytes, *_: int) -> None:  # type: ignore[override]
            said.append(data)
            super().sendall(data)

    with TCPStore("127.0.0.1", 0, is_master=True) as store:
        made = Recorded()
        made.connect(("127.0.0.1", store.port))
        authentication.authenticate(made, GREETING, 0, authentication.key(), time.monotonic() + 60)
        assert len(said) == 2
        told = until_closed(speak(("127.0.0.1", store.port), b"".join(said), False))
        assert len(told) == 80 and told.endswith(bytes(32))
        made.close()


def test_what_is_no_store_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            made, _ = server.accept()
            made.recv(100)
            made.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            made.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(RuntimeError, match=f"what listens at 127.0.0.1:{port} is no store: it says b'HTTP/1.1 400"):
            TCPStore("127.0.0.1", port)
        thread.join()
        with pytest.raises(RuntimeError, match="did not answer as a store within 0.2 s"):
            TCPStore("127.0.0.1", port, timeout=timedelta(seconds=0.2))


@pytest.mark.parametrize("apart", [False, True])
def test_ranks_meet_among_strangers(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers are there before the last rank comes, and stay until all have met."""
    if not apart and not rendezvous.machine():
        pytest.skip("there are no such sockets here")
    monkeypatch.setattr(authentication, "PATIENCE", 1e6)
    own = threading.local()
    if apart:
        monkeypatch.setattr(rendezvous, "machine", lambda: own.name)
    found: list[float] = []
    with TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=60)) as store:

        def main(rank: int) -> None:
            own.name = f"machine {rank}"
            with TCPStore("127.0.0.1", store.port) as mine:
                way = Sockets(rank, 3, mine)
            found.append(float(way.all_reduce(np.ones(3), "sum", range(3))[0]))
            way.close()

        started = [threading.Thread(target=main, args=(rank,)) for rank in range(3)]
        for thread in started[:2]:
            thread.start()
        # Rank 2 comes last: its place is known here before it is there.
        began = rendezvous._Meeting.accept
        present = threading.Event()
        monkeypatch.setattr(rendezvous._Meeting, "accept", lambda *a: (present.wait(60), began(*a)))
        started[2].start()
        addresses = [json.loads(store.get(f"ranks/{rank}")) for rank in range(2)]
        assert all(("port" in a) == apart for a in addresses)
        assert all(a["host"] == "127.0.0.1" for a in addresses if apart)

        def connect(said: bytes, closes: bool) -> socket.socket:
            for a in addresses:
                if apart:
                    last = speak((a["host"], a["port"]), said, closes)
                else:
                    last = speak("\0" + a["path"], said, closes, socket.AF_UNIX)
                kept.append(last)
            return last

        kept: list[socket.socket] = []
        with strangers(connect):
            present.set()
            for thread in started:
                thread.join()
        for one in kept:
            one.close()
    assert found == [3.0] * 3


def test_the_same_rank_twice_is_named() -> None:
    errors: list[str] = []
    with TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=1)) as store:

        def main(rank: int) -> None:
            try:
                with TCPStore("127.0.0.1", store.port, timeout=timedelta(seconds=1)) as own:
                    Sockets(rank, 3, own).close()
            except RuntimeError as error:
                errors.append(str(error))

        started = [threading.Thread(target=main, args=(rank,)) for rank in (0, 1, 1)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
    who = f"process {os.getpid()} on {socket.gethostname()}"
    twice = f"rank 1 has come twice: {who} has this number, and {who} has it, too"
    assert f"communication.init: {twice}; give each process a RANK_ID of its own" in errors
    # Those that waited for the third rank say why it may be missing.
    assert sum(e.startswith("communication.init: rank 2 of 3 did not come") and twice in e for e in errors) == 2


NO_MEMORY = """
import resource
import numpy as np
from mycel import communication, ops
from mycel._src.compiler.transport.current_transport import transport
communication.init()
way, kind = transport(), np.uint8
if way.rank == 0:
    way.receive(1)
    way.send(np.zeros(96 << 20, kind), 1)
    way.receive(1)
else:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (48 << 20),) * 2)
    way.send(np.zeros(1, kind), 0)
    way.receive(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_a_rank_without_memory_is_named(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(NO_MEMORY)
    ran = subprocess.run(
        [sys.executable, "-m", "mycel", "launch", "-n", "2", "--plain", str(script)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "mycel launch: rank 1 has failed: MemoryError: receive: rank 1 has no memory for what rank 0" in ran.stderr
    assert f"uint8 (100663296,), 100,663,296 bytes at {script}:17" in ran.stderr and ran.returncode == 1
