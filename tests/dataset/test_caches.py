"""Caches of rows: what is kept, shared, spilled and refused, and servers that end."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.cli import dataset_cache
from mycel.dataset import config, vision
from mycel.dataset.caching import admin, protocol
from mycel.dataset.caching.client import CacheError, Client
from mycel.dataset.caching.row_encoding import decoded, encoded
from mycel.dataset.execution import worker_pool

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the server runs on Linux")
PORT = 20000 + os.getpid() % 20000


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    admin.start(PORT, spilldir=str(tmp_path_factory.mktemp("spill")))
    yield PORT
    admin.stop(PORT)


@pytest.fixture
def cache(port: int) -> Iterator[ds.DatasetCache]:
    session = admin.generate_session(port)
    made = ds.DatasetCache(session, port=port, prefetch_size=4)
    yield made
    admin.destroy_session(session, port)
    made.client.close()


class Counting:
    """Doubles rows, and counts them in a file that all processes append to."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __call__(self, x: Any) -> Any:
        with open(self.path, "a") as handle:
            handle.write("x")
        return x * 2

    def count(self) -> int:
        return os.path.getsize(self.path) if os.path.exists(self.path) else 0


def rows_of(count: int = 10, **options: Any) -> ds.Dataset:
    return ds.NumpySlicesDataset({"x": np.arange(3 * count).reshape(count, 3)}, **options)


def values(data: ds.Dataset, epochs: int = 1) -> list[list[int]]:
    iterator = data.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[int(row[0].ravel()[0]) for row in iterator] for _ in range(epochs)]


@pytest.mark.parametrize("options", [{}, {"num_parallel_workers": 3}])
@pytest.mark.parametrize("debugs", [False, True])
def test_rows_are_made_once(cache: ds.DatasetCache, tmp_path: Path, options: dict[str, Any], debugs: bool) -> None:
    config.set_debug_mode(debugs)
    counting = Counting(tmp_path / "count")
    plain = rows_of().map(lambda x: x * 2, "x").batch(2)
    data = rows_of().map(counting, "x", cache=cache, **options).batch(2)
    config.set_seed(5)
    expected = values(plain, 3)
    config.set_seed(5)
    assert values(data, 3) == expected and counting.count() == 10
    statistics = cache.get_stat()
    assert (statistics.num_mem_cached, statistics.num_disk_cached) == (10, 0) and statistics.avg_cache_sz > 24
    # Another pipeline that does the same, in another order and shard.
    other = rows_of(num_shards=2, shard_id=1, shuffle=False).map(counting, "x", cache=cache)
    assert values(other) == [[6, 18, 30, 42, 54]] and counting.count() == 10
    # One that does something else has rows of its own.
    assert values(rows_of(shuffle=False).map(lambda x: x * 3, "x", cache=cache))[0][:2] == [0, 9]
    assert cache.get_stat().num_mem_cached == 20


class Source:
    def __len__(self) -> int:
        return 10

    def __getitem__(self, number: int) -> Any:
        return np.arange(3) + 3 * number


@pytest.mark.skipif(not worker_pool.has_processes("tests"), reason="no worker processes here")
@pytest.mark.parametrize("made", ["arrays", "generator", "processes"])
def test_rows_are_made_in_processes(cache: ds.DatasetCache, made: str) -> None:
    data: Any = rows_of(shuffle=False)
    if made != "arrays":
        data = ds.GeneratorDataset(Source(), ["x"], shuffle=False, num_parallel_workers=1 + (made == "processes"))
    data = data.map(lambda x: x * 2, "x").map(
        lambda x: (x, np.int64(os.getpid())),
        "x",
        ["x", "pid"],
        num_parallel_workers=2,
        python_multiprocessing=True,
        cache=cache,
    )
    pids = []
    for _ in range(2):
        rows = list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
        assert [x.tolist() for x, _ in rows] == [[6 * n, 6 * n + 2, 6 * n + 4] for n in range(10)]
        pids.append([int(pid) for _, pid in rows])
    assert os.getpid() not in pids[0] and pids[0] == pids[1] and cache.get_stat().num_mem_cached == 10

    def fails(x: Any) -> Any:
        if x[0] == 12:
            raise ValueError("four is refused")
        return x

    data = data.map(fails, "x", num_parallel_workers=2, python_multiprocessing=True, cache=cache)
    found = []
    with pytest.raises(RuntimeError, match="four is refused"):
        for x, _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
            found.append(int(x[0]))
    assert found == [0, 6]


def test_images_are_decoded_once(cache: ds.DatasetCache, tmp_path: Path) -> None:
    from PIL import Image

    folder = tmp_path / "set"
    (folder / "a").mkdir(parents=True)
    random = np.random.default_rng(1)
    for n in range(4):
        Image.fromarray(random.integers(0, 255, (8, 6 + n, 3), np.uint8)).save(folder / "a" / f"{n}.png")
    counting = Counting(tmp_path / "count")
    chain = [vision.Decode(), vision.Resize((4, 4))]
    plain = ds.ImageFolderDataset(str(folder), shuffle=False, extensions=[".png"]).map(chain, "image")
    data = ds.ImageFolderDataset(str(folder), shuffle=False, extensions=[".png"], num_parallel_workers=2)
    data = data.map([*chain, counting], "image", cache=cache, num_parallel_workers=2).batch(2)
    for _ in range(2):
        found = [row for batch in data.create_tuple_iterator(num_epochs=1, output_numpy=True) for row in batch[0]]
        wanted = [row[0] * 2 for row in plain.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        assert all((a == b).all() and a.dtype == b.dtype for a, b in zip(found, wanted, strict=True))
    assert counting.count() == 4
    # A file that changed is another source.
    read = ds.ImageFolderDataset(str(folder), decode=True, shuffle=False, extensions=[".png"], cache=cache)
    assert len(values(read, 2)[1]) == 4 and cache.get_stat().num_mem_cached == 8


def test_rows_without_numbers_are_kept_by_place(cache: ds.DatasetCache, tmp_path: Path) -> None:
    counting = Counting(tmp_path / "count")
    data = rows_of(shuffle=False).filter(lambda x: x[0] % 2 == 0, "x").map(counting, "x", cache=cache)
    assert values(data, 3) == [[0, 12, 24, 36, 48]] * 3 and counting.count() == 5
    data.set_init_step(3)
    assert values(data, 1) == [[36, 48]] and counting.count() == 5
    data.reset()
    short = data.take(2)
    assert values(short, 2) == [[0, 12]] * 2
    stopped = rows_of(shuffle=False).repeat(2).map(counting, "x", cache=cache)
    assert values(stopped.take(7), 1) == [[0, 6, 12, 18, 24, 30, 36]]
    assert values(stopped, 2) == [[6 * n for n in range(10)] * 2] * 2


def test_a_row_that_fails_comes_after_those_before_it(cache: ds.DatasetCache) -> None:
    def fails(x: Any) -> Any:
        if x[0] == 15:
            raise ValueError("five")
        return x

    iterator = (
        rows_of(shuffle=False).map(fails, "x", cache=cache).create_tuple_iterator(num_epochs=1, output_numpy=True)
    )
    found = []
    with pytest.raises(RuntimeError, match="row 5: ValueError: five"):
        for (x,) in iterator:
            found.append(int(x[0]))
    assert found == [0, 3, 6, 9, 12]


@pytest.mark.parametrize("spilling", [False, True])
def test_a_session_keeps_to_its_size(port: int, tmp_path: Path, spilling: bool) -> None:
    counting = Counting(tmp_path / "count")
    session = admin.generate_session(port)
    cache = ds.DatasetCache(session, size=1, spilling=spilling, port=port)
    data = ds.NumpySlicesDataset({"x": np.zeros((8, 1 << 15))}, shuffle=False).map(counting, "x", cache=cache)
    assert values(data, 3) == [[0] * 8] * 3
    statistics = cache.get_stat()
    assert statistics.num_mem_cached == 3 and statistics.num_disk_cached == (5 if spilling else 0)
    assert counting.count() == (8 if spilling else 3 + 5 * 3)
    admin.destroy_session(session, port)
    cache.client.close()


SCRIPT = """
import sys, numpy as np, mycel.dataset as ds
cache = ds.DatasetCache(int(sys.argv[1]), port=int(sys.argv[2]))
data = ds.NumpySlicesDataset({"x": np.arange(30).reshape(10, 3)}, shuffle=False)
def triple(x):
    print("made")
    return x * 3
for (x,) in data.map(triple, "x", cache=cache).create_tuple_iterator(num_epochs=1, output_numpy=True):
    print(int(x[0]))
"""


def test_processes_share_rows(cache: ds.DatasetCache) -> None:
    said = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT, str(cache.session_id), str(cache.port)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    ]
    numbers = [str(9 * n) for n in range(10)]
    assert said[0].count("made") == 10 and [word for word in said[0] if word != "made"] == numbers == said[1]


def test_what_a_cache_cannot_keep_is_refused(cache: ds.DatasetCache) -> None:
    with pytest.raises(ValueError, match="RandomCrop draws random numbers"):
        rows_of().map(vision.RandomCrop(2), "x", cache=cache)
    with pytest.raises(ValueError, match="the same order in every epoch; use shuffle=False"):
        rows_of(shuffle=False).shuffle(3).map(lambda x: x, "x", cache=cache)
    with pytest.raises(ValueError, match="neither sync_wait nor callbacks"):
        rows_of(shuffle=False).sync_wait("go").map(lambda x: x, "x", cache=cache)
    with pytest.raises(ValueError, match="neither sync_wait nor callbacks"):
        rows_of().map(lambda x: x, "x", cache=cache, callbacks=ds.DSCallback())
    with pytest.raises(TypeError, match="not columns of type object"):
        values(rows_of().map(lambda x: {"a": 1}, "x", cache=cache))
    with pytest.raises(ValueError, match="hostname must be 127.0.0.1, not"):
        ds.DatasetCache(1, hostname="elsewhere")
    with pytest.raises(RuntimeError, match="there is no session 7; the sessions are"):
        values(rows_of().map(lambda x: x, "x", cache=ds.DatasetCache(7, port=cache.port)))


def test_rows_as_bytes() -> None:
    row = (
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.array("text"),
        np.array(b"ab"),
        np.float16(2)[...],
        np.zeros((0, 3)),
    )
    found = decoded(bytearray(encoded(row, "test")))
    for a, b in zip(row, found, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and (a == b).all() and b.flags.writeable and b.flags.aligned
    whole = encoded(row, "test")
    for cut in range(0, len(whole) - 1, 7):
        with pytest.raises(ValueError, match="not a cached row"):
            decoded(bytearray(whole[:cut]))
    random = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[random.integers(len(whole))] = random.integers(256)
        try:
            decoded(damaged)
        except ValueError as error:
            assert "not a cached row" in str(error)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{process}/stat") as handle:
        return handle.read().split()[2] != "Z"


def test_a_server_that_is_killed_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    process = admin.start(PORT + 1, spilldir=str(tmp_path))
    session = admin.generate_session(PORT + 1)
    cache = ds.DatasetCache(session, size=1, spilling=True, port=PORT + 1, prefetch_size=2)
    data = ds.NumpySlicesDataset({"x": np.zeros((8, 1 << 15))}, shuffle=False).map(lambda x: x, "x", cache=cache)
    assert values(data) == [[0] * 8]
    iterator = data.create_tuple_iterator(num_epochs=100, output_numpy=True)
    next(iterator)
    os.kill(process, signal.SIGKILL)
    with pytest.raises(CacheError, match=f"on port {PORT + 1}.*start"):
        for _ in range(100):
            for _ in iterator:
                pass
    cache.client.close()
    assert os.listdir(tmp_path) == [] and not admin.is_there(PORT + 1)
    # The port is free at once.
    assert alive(admin.start(PORT + 1))
    admin.stop(PORT + 1)
    assert not admin.is_there(PORT + 1)


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    folder = Path("/dev/full")
    if not folder.exists():
        pytest.skip("there is no /dev/full")
    from mycel.dataset.caching import store

    session = store.Session()
    session.limit, session.folder = 1, str(tmp_path)
    number = session._opened(True, 10)
    os.close(session.files[number])
    session.files[number] = os.open(folder, os.O_WRONLY)
    cache = store.Cache()
    with pytest.raises(store.NoRoom, match="no room in the disk of .* for a row of 10 bytes: .*No space left"):
        session.keep(cache, 0, memoryview(bytes(10)))
    assert not cache.places
    session.close()


def test_other_users_are_refused(port: int, cache: ds.DatasetCache) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can be another user")
    code = (
        "import os, socket, sys\n"
        "os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)\n"
        f"s.connect({protocol.address(port)!r})\n"
        "s.settimeout(10)\n"
        "print(s.recv(1000))\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "belongs to another user" in said


def test_what_is_no_request_ends_its_connection_alone(port: int) -> None:
    random = np.random.default_rng(3)
    for content in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 64,
        random.bytes(200),
        b"\x02\x00\x00\x00" + b"\0" * 8 + b"[]",
        struct.pack("<IQ", 1 << 16, 0) + b"[" * (1 << 16),
    ):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(protocol.address(port))
            connection.sendall(content)
    client = Client(port)
    requests: list[tuple[str, dict[str, Any]]] = [("keep", {"session": 1}), ("find", {}), ("open", {"session": {}})]
    requests += [
        ("open", {"session": client.ask("generate")["session"], "size": float("inf"), "spilling": False, "key": "k"})
    ]
    for what, words in [*requests, ("nonsense", {}), ("file", {"session": 1})]:
        with pytest.raises(CacheError, match="DatasetCache: "):
            client.ask(what, **words)
    assert client.ask("info")["process"] > 0
    client.close()


@pytest.mark.parametrize("words", [0, 2, 15 << 20, 1 << 30])
@pytest.mark.parametrize("size", [0, 3, 700 << 20, 63 << 30, 1 << 63])
def test_a_message_takes_the_memory_of_what_has_come(words: int, size: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(struct.pack("<IQ", words, size) + b"{}abc"[: 2 + min(size, 3)])
        ours.close()
        tracemalloc.start()
        try:
            message, content, _ = protocol.receive(theirs)
            assert (words, message, bytes(content)) == (2, {}, b"abc"[:size])
        except (protocol.Ended, ValueError):
            assert words != 2 or size > 3
        finally:
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    assert most < 4 << 20


def test_a_message_longer_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_PIECE", 16)
    ours, theirs = socket.socketpair()
    content = np.random.default_rng(0).bytes(1000)
    with ours, theirs:
        protocol.send(ours, {"do": "keep"}, content)
        assert protocol.receive(theirs)[:2] == ({"do": "keep"}, bytearray(content))


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    where = ["--port", str(PORT + 2)]
    assert dataset_cache.main(["--server_info", *where]) == 2
    assert "start one: mycel dataset-cache --start" in capsys.readouterr().err
    assert dataset_cache.main(["--start", "--spilldir", str(tmp_path / "none"), *where]) == 2
    assert "is not a folder" in capsys.readouterr().err
    assert dataset_cache.main(["--start", "--workers", "2", *where]) == 0
    assert f"listening on port {PORT + 2}" in capsys.readouterr().out
    assert dataset_cache.main(["--start", *where]) == 2
    assert "Address already in use" in capsys.readouterr().err
    assert dataset_cache.main(["-g", *where]) == 0
    session = capsys.readouterr().out.split()[-1]
    assert dataset_cache.main(["--list_sessions", *where]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == [session, "0", "0", "0"]
    assert dataset_cache.main(["--server_info", *where]) == 0
    assert "number of workers 2" in capsys.readouterr().out
    assert dataset_cache.main(["-d", session, *where]) == 0
    assert dataset_cache.main(["-d", session, *where]) == 2
    assert dataset_cache.main(["--stop", *where]) == 0
    end = time.monotonic() + 10
    while admin.is_there(PORT + 2) and time.monotonic() < end:
        time.sleep(0.01)
    assert not admin.is_there(PORT + 2)


def test_caches_by_places_in_an_epoch_go_on_with_as_many_shards_only(cache: ds.DatasetCache) -> None:
    config.set_seed(3)

    def data(shards: int, by_place: bool) -> Any:
        rows = rows_of(24, shuffle=False, num_shards=shards, shard_id=0)
        rows = rows.batch(2) if by_place else rows
        made = rows.map(lambda x: x * 1, "x", cache=cache)
        return made if by_place else made.batch(2)

    state = data(4, True).state_at(1)
    same, other = data(4, True), data(2, True)
    same.set_init_state(state)
    assert values(same) == [values(data(4, True))[0][1:]]
    with pytest.raises(ValueError, match="from 4 shards to 2: the cache of map keeps rows by their places"):
        other.set_init_state(state)
    # Rows that are kept by number are those of any shard and position.
    other = data(2, False)
    other.set_init_state(data(4, False).state_at(1))
    whole = values(data(2, False))[0]
    assert values(other, 2) == [whole[2:], whole]
