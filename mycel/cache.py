"""The folder of compiled code: sealed files, found by a digest of all that they were made from.

A file is written whole or not at all: into a temporary file that is then given its name, so that processes may write and read at once. It ends with
the SHA-256 of its digest and its content. One that does not agree with that is not used, whatever happened to it: damage, a full disk, another file's name.
Reading a file makes it recent. When a process first writes, and now and then after, the folder is measured; where it has become larger than `limit`,
files go, those longest unused first.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple, Optional

from mycel import config
from mycel.log import logger

__all__ = ["Entry", "clear", "entries", "is_on", "limit", "read", "trim", "write"]

_SEAL = 32
_KIND = re.compile(r"[a-z]+-[0-9a-f]{16}")
_PART = re.compile(r"[0-9a-f]{2}")
# What a process that was killed left is there, too, and objects of earlier versions.
_NAME = re.compile(r"[0-9a-f]{64}(\.o)?|\.new.*")
_DEFAULT_LIMIT = 2048
_OFTEN = 64 << 20
_RECENT = 3600.0
# What a trim leaves, so that the next write does not have to trim again.
_LEFT = 0.8

_lock = threading.Lock()
_unmeasured = {"bytes": _OFTEN}


class Entry(NamedTuple):
    """A file of the cache: where it is, its bytes, and when it was last used."""

    path: Path
    bytes: int
    used: float


def is_on() -> bool:
    """Whether compiled code is kept in files: the `enable_compile_cache` option."""
    return bool(config._context["enable_compile_cache"])


def limit() -> int:
    """How many bytes the folder may have: MYCEL_CACHE_SIZE (in MiB), or 2 GiB.

    Raises ValueError where the variable is not a whole number.
    """
    text = os.environ.get("MYCEL_CACHE_SIZE", "").strip()
    if not text:
        return _DEFAULT_LIMIT << 20
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"MYCEL_CACHE_SIZE={text}: give a whole number of MiB, or unset it")
    return int(text) << 20


def _path(kind: str, digest: str) -> Path:
    return config.cache_directory() / kind / digest[:2] / digest


def _seal(digest: str, content: bytes) -> bytes:
    return hashlib.sha256(digest.encode() + content).digest()


def read(kind: str, digest: str) -> Optional[bytes]:
    """What is kept under a digest in the folder `kind`; None where there is no sound file."""
    path = _path(kind, digest)
    try:
        with open(path, "rb") as file:
            data = file.read()
            used = os.fstat(file.fileno()).st_mtime
    except OSError as error:
        logger.debug("not in the cache: %s", error)
        return None
    content = data[:-_SEAL]
    if data[-_SEAL:] != _seal(digest, content):
        logger.info("the cached file %s is damaged; it is made anew", path)
        return None
    if abs(time.time() - used) > _RECENT:
        try:
            os.utime(path)
        except OSError as error:
            logger.debug("its use was not noted: %s", error)
    return content


def write(kind: str, digest: str, content: bytes) -> None:
    """Keep something under a digest; where that cannot be done, it is said in the log."""
    path = _path(kind, digest)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content + _seal(digest, content))
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        logger.info("the compiled-object cache could not be written: %s", error)
        return
    with _lock:
        _unmeasured["bytes"] += len(content) + _SEAL
        due = _unmeasured["bytes"] >= _OFTEN
        if due:
            _unmeasured["bytes"] = 0
    if due:
        trim(limit())


def entries() -> list[Entry]:
    """The files of the cache, those longest unused first; what else lies in the folder is not looked at."""
    found: list[Entry] = []
    try:
        for kind in _inside(os.fspath(config.cache_directory()), _KIND):
            for part in _inside(kind.path, _PART):
                for item in _inside(part.path, _NAME):
                    facts = item.stat(follow_symlinks=False)
                    if not item.name.startswith(".new") or time.time() - facts.st_mtime > _RECENT:
                        found.append(Entry(Path(item.path), facts.st_size, facts.st_mtime))
    except OSError as error:
        logger.info("a part of the cache of compiled code cannot be read: %s", error)
    return sorted(found, key=lambda e: (e.used, e.path))


def _inside(folder: str, names: re.Pattern[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as inside:
            return [item for item in inside if names.fullmatch(item.name) and not item.is_symlink()]
    except (FileNotFoundError, NotADirectoryError):
        # Nothing was ever kept, or another process clears it meanwhile.
        return []


def trim(most: int) -> int:
    """Delete the files longest unused where all together have more bytes than `most`; the bytes that are left."""
    known = entries()
    total = sum(e.bytes for e in known)
    if total <= most:
        return total
    for entry in known:
        if total <= most * _LEFT:
            break
        try:
            entry.path.unlink()
        except FileNotFoundError:
            pass
        except OSError as error:
            logger.info("a file of the cache could not be deleted: %s", error)
            continue
        total -= entry.bytes
    return total


def clear() -> tuple[int, int]:
    """Delete everything in the cache: how many files, and their bytes. Processes that run go on; they compile anew what they need again."""
    count = size = 0
    for entry in entries():
        try:
            entry.path.unlink()
        except FileNotFoundError:
            continue
        count, size = count + 1, size + entry.bytes
    return count, size


def _in_child() -> None:
    global _lock
    # Another thread of the parent may have held it.
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
