"""Copies of files elsewhere: what goes when there is no room, and what stays as it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mycel._src.foundation.files import remote_copies
from mycel._src.foundation.files.atomic_files import HAS_LOCKS

pytestmark = pytest.mark.skipif(not HAS_LOCKS, reason="the system has no locks of files")
KEYS = [f"{n:032x}" for n in range(5)]
SIZE = 1 << 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(remote_copies, "_notes", remote_copies._Notes())
    monkeypatch.setenv("MYCEL_COPIES", f"{4 * SIZE / (1 << 30)}GB")
    yield os.fspath(tmp_path)
    for handle in remote_copies._notes.files.values():
        os.close(handle)


def made(folder: str, key: str, age: int) -> None:
    place = Path(folder, key)
    place.mkdir(exist_ok=True)
    file = place / "a.bin"
    file.write_bytes(bytes(SIZE - 8192))
    os.utime(file, (1e9 - age, 1e9 - age))


def there(folder: str) -> list[int]:
    return [n for n, key in enumerate(KEYS) if os.path.isdir(os.path.join(folder, key))]


def test_those_longest_unused_go_first(folder: str) -> None:
    remote_copies.use(folder, KEYS[4])
    for number, age in enumerate((10, 30, 20)):
        made(folder, KEYS[number], age)
    remote_copies.make_room(folder, SIZE // 2, "s3://a")
    assert there(folder) == [0, 1, 2, 4]
    remote_copies.make_room(folder, SIZE + SIZE // 2, "s3://a")
    assert there(folder) == [0, 2, 4]
    remote_copies.make_room(folder, 3 * SIZE, "s3://a")
    assert there(folder) == [0, 4]


def test_what_a_living_process_uses_stays(folder: str) -> None:
    code = "import sys\nfrom mycel._src.foundation.files import remote_copies as copies\ncopies.use(*sys.argv[1:])\n"
    code += "print('used', flush=True)\ninput()"
    other = subprocess.Popen(
        [sys.executable, "-c", code, folder, KEYS[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdin is not None
    try:
        assert other.stdout.readline() == "used\n"
        remote_copies.use(folder, KEYS[0])
        for number, age in enumerate((30, 20, 10)):
            made(folder, KEYS[number], age)
        with pytest.raises(remote_copies.NoRoom, match=r"no room for a copy of 's3://a': it has 3 MiB.*MYCEL_COPIES"):
            remote_copies.make_room(folder, 3 * SIZE, "s3://a")
        assert there(folder) == [0, 1]
    finally:
        other.kill()
        other.wait()
        other.stdin.close(), other.stdout.close()
    # Its lock has gone with it.
    remote_copies.make_room(folder, 3 * SIZE - 8192, "s3://a")
    assert there(folder) == [0] and len(os.listdir(os.path.join(folder, remote_copies._USERS))) == 1


def test_the_limit_is_a_size(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCEL_COPIES", "many")
    with pytest.raises(ValueError, match="MYCEL_COPIES"):
        remote_copies.limit()
    monkeypatch.delenv("MYCEL_COPIES")
    assert remote_copies.limit() == 100 << 30
