"""The store with real sockets: several clients, in threads and in another process, that set, add,
wait and fail.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from mycel.ops import TCPStore

CHECKED = {"ops.TCPStore": "definition"}
HOST = "127.0.0.1"
SHORT = timedelta(seconds=0.05)


@pytest.fixture
def store() -> Iterator[TCPStore]:
    with TCPStore(HOST, 0, is_master=True, timeout=timedelta(seconds=20)) as made:
        yield made


def client(store: TCPStore, **options: Any) -> TCPStore:
    return TCPStore(HOST, store.port, **options)


def test_values_are_shared(store: TCPStore) -> None:
    with client(store) as other:
        store.set("a", "é")
        other.set("b", b"\0\xff")
        assert other.get("a") == "é".encode() and store.get("b") == b"\0\xff"
        store.set("a", "")
        assert other.get("a") == b""
        assert other.num_keys() == 2 and other.check(["a", "b"]) and not other.check(["a", "c"]) and other.check([])
        assert store.delete_key("a") and not other.delete_key("a") and other.num_keys() == 1
        large = bytes(range(256)) * 20000
        other.set("large", large)
        assert store.get("large") == large


def test_counts_of_many_clients_lose_nothing(store: TCPStore) -> None:
    def work() -> None:
        with client(store) as own:
            for _ in range(50):
                own.add("n", 2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.add("n", -1) == 399 and store.get("n") == b"399"
    store.set("m", "41")
    assert store.add("m", 1) == 42
    store.set("word", "x")
    with pytest.raises(RuntimeError, match="value b'x' of 'word' is not a whole number"):
        store.add("word", 1)
    assert store.get("word") == b"x"


def test_a_key_is_waited_for(store: TCPStore) -> None:
    found: list[bytes] = []
    begun = threading.Event()

    def work() -> None:
        with client(store) as own:
            begun.set()
            found.append(own.get("late"))
            own.wait(["late", "later"])
            found.append(own.get("later"))

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(10)
    store.set("late", "1")
    store.add("later", 2)
    thread.join(20)
    assert found == [b"1", b"2"]


def test_waiting_ends(store: TCPStore) -> None:
    with client(store, timeout=SHORT) as own:
        with pytest.raises(RuntimeError, match=r"\['never'\] was not set within 0.05 s"):
            own.get("never")
        own.set("here", "1")
        with pytest.raises(RuntimeError, match=r"\['here', 'never'\] was not set"):
            own.wait(["here", "never"])
        with pytest.raises(RuntimeError, match="within 0.01 s"):
            store.wait(["never"], timedelta(seconds=0.01))
        assert own.get("here") == b"1"


def test_another_process(store: TCPStore) -> None:
    program = (
        "import sys; from mycel.communication.store import TCPStore\n"
        f"s = TCPStore('{HOST}', int(sys.argv[1])); s.set('from', b'there'); print(s.add('n', 5), s.get('here'))"
    )
    store.set("here", "me")
    done = subprocess.run([sys.executable, "-c", program, str(store.port)], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "5 b'me'", done.stderr
    assert store.get("from") == b"there" and store.add("n", 1) == 6


def test_a_server_waits_for_its_workers() -> None:
    with socket.create_server((HOST, 0)) as probe:
        port = probe.getsockname()[1]
    made: list[TCPStore] = []
    thread = threading.Thread(target=lambda: made.append(TCPStore(HOST, port, timeout=timedelta(seconds=20))))
    thread.start()
    with TCPStore(HOST, port, world_size=2, is_master=True, timeout=timedelta(seconds=20)) as master:
        thread.join(20)
        master.set("a", "b")
        assert made[0].get("a") == b"b"
        made[0].close()
    with pytest.raises(RuntimeError, match="1 of 2 processes connected within 0.05 s"):
        TCPStore(HOST, 0, world_size=2, is_master=True, timeout=SHORT)
    with TCPStore(HOST, 0, world_size=2, is_master=True, timeout=SHORT, wait_for_workers=False) as alone:
        assert alone.num_keys() == 0


def test_ends_and_absences(store: TCPStore) -> None:
    own = client(store)
    with pytest.raises(RuntimeError, match="cannot listen at"):
        TCPStore(HOST, store.port, is_master=True)
    store.close()
    with pytest.raises(RuntimeError, match="is gone"):
        own.set("a", "b")
    own.close()
    with pytest.raises(RuntimeError, match="no server at"):
        client(store, timeout=SHORT)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"host_name": 1}, TypeError, "host_name must be a string"),
        ({"port": "1"}, TypeError, "port must be an int"),
        ({"port": 70000}, ValueError, "1 to 65535"),
        ({"port": 0}, ValueError, "1 to 65535"),
        ({"world_size": 0}, ValueError, "must be positive"),
        ({"timeout": 3}, TypeError, "must be a timedelta"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TCPStore(**{"host_name": HOST, "port": 1, **options})


def test_keys_and_values_that_cannot_be(store: TCPStore) -> None:
    for call in (
        lambda: store.get(1),
        lambda: store.set("a", 1),
        lambda: store.add("a", 1.5),
        lambda: store.delete_key(b"a"),
    ):
        with pytest.raises(TypeError, match="must be"):
            call()
    with pytest.raises(ValueError, match="up to 4096 bytes"):
        store.set("k" * 4097, "v")
    with pytest.raises(ValueError, match="zero character"):
        store.set("a\0b", "v")
