"""The folder of compiled code: sealed files, the longest unused of which go."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mycel as ms
from mycel._src.foundation.files import code_cache

KIND = "objects-0123456789abcdef"
# With its seal a whole number of blocks.
CONTENT = 65536 - 32


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def digest(number: int) -> str:
    return f"{number:064x}"


def disk(folder: Path) -> int:
    """What a folder takes on the disk, apart from itself."""
    return sum(max(p.lstat().st_size, p.lstat().st_blocks * 512) for p in folder.rglob("*"))


def age(entry: code_cache.Entry, seconds: float) -> None:
    os.utime(entry.path, (time.time() - seconds,) * 2)


def test_what_is_written_is_read() -> None:
    assert code_cache.read(KIND, digest(1)) is None
    code_cache.write(KIND, digest(1), b"one")
    code_cache.write(KIND, digest(2), b"")
    assert code_cache.read(KIND, digest(1)) == b"one"
    assert code_cache.read(KIND, digest(2)) == b""
    code_cache.write(KIND, digest(1), b"another")
    assert code_cache.read(KIND, digest(1)) == b"another"
    assert code_cache.read("programs-0123456789abcdef", digest(1)) is None


@pytest.mark.parametrize("data", [b"", b"one", b"x" * 31, b"x" * 32, b"x" * 100])
def test_what_was_not_sealed_is_not_read(data: bytes) -> None:
    code_cache.write(KIND, digest(1), b"one")
    (entry,) = code_cache.entries()
    entry.path.write_bytes(data)
    assert code_cache.read(KIND, digest(1)) is None


def test_the_longest_unused_go_first(folder: Path) -> None:
    for k in range(10):
        code_cache.write(KIND, digest(k), bytes(CONTENT))
    for k, entry in enumerate(sorted(code_cache.entries(), key=lambda e: e.path.name)):
        age(entry, 10_000 * (20 - k))
    # Reading makes it recent.
    assert code_cache.read(KIND, digest(0)) is not None
    whole = disk(folder)
    assert code_cache.trim(whole) == whole == disk(folder)
    assert code_cache.trim(whole - 1) == disk(folder) <= 0.8 * whole
    left = [int(entry.path.name, 16) for entry in code_cache.entries()]
    assert left == [4, 5, 6, 7, 8, 9, 0]


@pytest.mark.parametrize("size", [40, 3000, 200_000])
def test_the_limit_holds(folder: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setenv("MYCEL_CACHE_SIZE", "1")
    for k in range(300 if size < 4096 else 40):
        code_cache.write(KIND, f"{k:02x}{k:062x}"[-64:] if k % 2 else f"{k * 37 % 256:02x}{k:062x}", bytes(size))
        assert k % 50 or disk(folder) <= 1 << 20
        last = k
    assert disk(folder) <= 1 << 20
    assert len(code_cache.entries()) >= (60 if size < 4096 else 3)
    assert any(int(entry.path.name[2:], 16) == last for entry in code_cache.entries())


def test_one_that_is_larger_than_the_limit_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCEL_CACHE_SIZE", "1")
    code_cache.write(KIND, digest(1), bytes(1000))
    code_cache.write(KIND, digest(2), bytes(1 << 20))
    assert code_cache.read(KIND, digest(1)) == bytes(1000)
    assert code_cache.read(KIND, digest(2)) is None
    monkeypatch.setenv("MYCEL_CACHE_SIZE", "0")
    code_cache.write(KIND, digest(3), b"")
    assert code_cache.read(KIND, digest(3)) is None


def test_the_limit_holds_for_processes_at_once(folder: Path) -> None:
    program = (
        "import sys\n"
        "from mycel._src.foundation.files import code_cache as cache\n"
        "for k in range(80):\n"
        "    cache.write('objects-0123456789abcdef', f'{k % 256:02x}{sys.argv[1]}{k:061x}', bytes(50000))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(ms.__file__).parent.parent), "MYCEL_CACHE_SIZE": "2"}
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(n)], env=environment, stderr=subprocess.PIPE, text=True)
        for n in range(2)
    ]
    assert [p.communicate(timeout=100)[1] for p in running] == ["", ""]
    # Each may have written a thirty-second of it since it measured.
    assert disk(folder) <= (2 << 20) * (1 + 2 / 32)


@pytest.mark.parametrize("offset", [-2e9, 3e9], ids=["then", "in the future"])
def test_a_clock_that_was_wrong(folder: Path, offset: float) -> None:
    for k in range(20):
        code_cache.write(KIND, digest(k), bytes(CONTENT))
    for k, entry in enumerate(sorted(code_cache.entries(), key=lambda e: e.path.name)):
        if k % 2:
            os.utime(entry.path, (max(time.time() + offset, 0),) * 2)
    whole = disk(folder)
    assert code_cache.read(KIND, digest(1)) is not None
    assert 0.6 * whole < code_cache.trim(whole - 1) <= 0.8 * whole
    left = [int(entry.path.name, 16) for entry in code_cache.entries()]
    # Those with impossible times go first, but for the one that was used.
    assert len(left) in (15, 16) and {k for k in range(0, 20, 2)} | {1} <= set(left)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MYCEL_CACHE_SIZE", raising=False)
    assert code_cache.limit() == 2 << 30
    monkeypatch.setenv("MYCEL_CACHE_SIZE", "12")
    assert code_cache.limit() == 12 << 20
    monkeypatch.setenv("MYCEL_CACHE_SIZE", "-1")
    with pytest.raises(ValueError, match="MYCEL_CACHE_SIZE=-1: give a whole number of MiB"):
        code_cache.limit()


def test_nothing_else_is_deleted(folder: Path) -> None:
    code_cache.write(KIND, digest(1), b"one")
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
    assert code_cache.clear()[0] == 2
    assert all(path.exists() for path in others)
    assert code_cache.entries() == [] and code_cache.clear() == (0, 0)


def test_a_folder_that_was_never_made(folder: Path) -> None:
    assert code_cache.entries() == [] and code_cache.trim(0) == 0
    assert not folder.exists()


def test_it_can_be_turned_off() -> None:
    assert code_cache.is_on()
    ms.set_context(enable_compile_cache=False)
    try:
        assert not code_cache.is_on()
    finally:
        ms.set_context(enable_compile_cache=True)


def test_processes_that_write_read_and_trim_at_once() -> None:
    program = (
        "import sys\n"
        "from mycel._src.foundation.files import code_cache as cache\n"
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
    assert all(len(entry.path.read_bytes()) == 5032 for entry in code_cache.entries())


def test_a_full_disk_is_no_error(folder: Path) -> None:
    """Neither for what is being written, nor for what was there."""
    resource = pytest.importorskip("resource")
    code_cache.write(KIND, digest(1), b"one")
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        code_cache.write(KIND, digest(1), bytes(40_000))
        code_cache.write(KIND, digest(2), bytes(40_000))
        f = ms.jit(lambda x: ms.ops.exp(x) + 0.625)
        assert abs(float(f(ms.Tensor(0.0)).asnumpy()) - 1.625) < 1e-6
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert code_cache.read(KIND, digest(1)) == b"one" and code_cache.read(KIND, digest(2)) is None
    assert not [p for p in folder.rglob(".new*")]


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system of 64 KiB; only root makes one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = shutil.which("mount") and hasattr(os, "geteuid") and os.geteuid() == 0
    if (
        not made
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(disk)], capture_output=True
        ).returncode
    ):
        pytest.skip("no small file system can be made here")
    try:
        monkeypatch.setenv("MYCEL_CACHE", str(disk / "cache"))
        for k in range(40):
            code_cache.write(KIND, digest(k), bytes(5000))
        found = [k for k in range(40) if code_cache.read(KIND, digest(k)) is not None]
        assert found and len(found) < 20
        assert len(code_cache.entries()) == len(found)
        assert code_cache.clear()[0] == len(found)
        code_cache.write(KIND, digest(99), bytes(5000))
        assert code_cache.read(KIND, digest(99)) == bytes(5000)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_what_killed_writers_left_is_counted_and_goes(folder: Path) -> None:
    program = (
        "import os, signal\n"
        "from mycel._src.foundation.files import code_cache as cache\n"
        "from mycel._src.foundation.files import file_ownership as private\n"
        "def kill(*names): os.kill(os.getpid(), signal.SIGKILL)\n"
        "private.Folder._rename = kill\n"
        "cache.write('objects-0123456789abcdef', '0' * 64, bytes(5000))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(ms.__file__).parent.parent)}
    assert subprocess.run([sys.executable, "-c", program], env=environment).returncode == -signal.SIGKILL
    assert (
        [p.name for p in folder.rglob("*") if p.is_file()] == [entry.path.name for entry in code_cache.entries()] != []
    )
    code_cache.trim(0)
    assert not [p for p in folder.rglob("*") if p.is_file()]
