"""The folder of compiled code: sealed files, the longest unused of which go."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mycel as ms
from mycel import cache

KIND = "objects-0123456789abcdef"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def digest(number: int) -> str:
    return f"{number:064x}"


def age(entry: cache.Entry, seconds: float) -> None:
    os.utime(entry.path, (time.time() - seconds,) * 2)


def test_what_is_written_is_read() -> None:
    assert cache.read(KIND, digest(1)) is None
    cache.write(KIND, digest(1), b"one")
    cache.write(KIND, digest(2), b"")
    assert cache.read(KIND, digest(1)) == b"one"
    assert cache.read(KIND, digest(2)) == b""
    cache.write(KIND, digest(1), b"another")
    assert cache.read(KIND, digest(1)) == b"another"
    assert cache.read("programs-0123456789abcdef", digest(1)) is None


@pytest.mark.parametrize("data", [b"", b"one", b"x" * 31, b"x" * 32, b"x" * 100])
def test_what_was_not_sealed_is_not_read(data: bytes) -> None:
    cache.write(KIND, digest(1), b"one")
    (entry,) = cache.entries()
    entry.path.write_bytes(data)
    assert cache.read(KIND, digest(1)) is None


def test_the_longest_unused_go_first() -> None:
    for k in range(10):
        cache.write(KIND, digest(k), bytes(968))
    for k, entry in enumerate(sorted(cache.entries(), key=lambda e: e.path.name)):
        age(entry, 10_000 * (20 - k))
    # Reading makes it recent.
    assert cache.read(KIND, digest(0)) is not None
    assert cache.trim(10_000) == 10_000
    assert cache.trim(9_999) == 7_000
    left = [int(entry.path.name, 16) for entry in cache.entries()]
    assert left == [4, 5, 6, 7, 8, 9, 0]


def test_writing_trims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCEL_CACHE_SIZE", "1")
    monkeypatch.setattr(cache, "_OFTEN", 400_000)
    for k in range(12):
        cache.write(KIND, digest(k), bytes(200_000))
        for entry in cache.entries():
            age(entry, time.time() - entry.used + 10)
    assert sum(entry.bytes for entry in cache.entries()) < (1 << 20) + 400_000
    assert cache.read(KIND, digest(11)) == bytes(200_000)
    assert cache.read(KIND, digest(0)) is None


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MYCEL_CACHE_SIZE", raising=False)
    assert cache.limit() == 2 << 30
    monkeypatch.setenv("MYCEL_CACHE_SIZE", "12")
    assert cache.limit() == 12 << 20
    monkeypatch.setenv("MYCEL_CACHE_SIZE", "-1")
    with pytest.raises(ValueError, match="MYCEL_CACHE_SIZE=-1: give a whole number of MiB"):
        cache.limit()


def test_nothing_else_is_deleted(folder: Path) -> None:
    cache.write(KIND, digest(1), b"one")
    others = [
        folder / "mine.txt",
        folder / KIND / "mine.txt",
        folder / KIND / "00" / "mine.txt",
        folder / "mine" / "00" / digest(1),
        folder / KIND / "00" / ".newer-than-an-hour",
    ]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    (folder / KIND / "01").symlink_to(folder / "mine")
    left_over = folder / KIND / "00" / ".new1234"
    left_over.write_text("half")
    os.utime(left_over, (time.time() - 9999,) * 2)
    assert cache.clear() == (2, len(b"one") + 32 + 4)
    assert all(path.exists() for path in others)
    assert cache.entries() == [] and cache.clear() == (0, 0)


def test_a_folder_that_was_never_made(folder: Path) -> None:
    assert cache.entries() == [] and cache.trim(0) == 0
    assert not folder.exists()


def test_it_can_be_turned_off() -> None:
    assert cache.is_on()
    ms.set_context(enable_compile_cache=False)
    try:
        assert not cache.is_on()
    finally:
        ms.set_context(enable_compile_cache=True)


def test_processes_that_write_read_and_trim_at_once() -> None:
    program = (
        "import sys\n"
        "from mycel import cache\n"
        "for k in range(300):\n"
        "    name = f'{k % 20:064x}'\n"
        "    found = cache.read('objects-0123456789abcdef', name)\n"
        "    assert found is None or found == bytes([k % 20]) * 5000, k\n"
        "    cache.write('objects-0123456789abcdef', name, bytes([k % 20]) * 5000)\n"
        "    if k % 7 == 0:\n"
        "        cache.trim(50000)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(ms.__file__).parent.parent)}
    running = [
        subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [p.communicate(timeout=100)[1] for p in running] == ["", "", ""]
    assert all(len(entry.path.read_bytes()) == 5032 for entry in cache.entries())
