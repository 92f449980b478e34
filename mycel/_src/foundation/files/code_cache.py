"""The on-disk cache of compiled code: sealed files, each named by a digest of all its sources.

The process runs the code in these files. So a folder or file that others may write is neither read
nor written (`foundation.files.file_ownership`): a warning says so once, and code is compiled anew.
A file is written whole or not at all, into a temporary file that is then given its name, so that
processes may write and read at once. It ends with a checksum, the SHA-256 of its digest and its
content. A file with a wrong checksum, by damage, a full disk or a wrong name, is not used. (The
checksum needs no key, so it does not protect against somebody who writes such a file on purpose:
the checks of owners and modes do.)

Reading a file makes it recent. The folder is measured when a process first writes, when its own
writes since could have made the folder larger than `limit`, and often enough besides to notice
other processes. Then the least recently used files are evicted until a fifth of the limit is free.
Sizes are those that files and folders take on the disk. Files dated in the future, by a clock that
was wrong, are evicted first unless they are used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mycel._src.foundation.files.file_ownership import Folder, Refused, open_folder, warn_once
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import config
from mycel._src.foundation.system import locks

__all__ = ["Entry", "clear", "entries", "is_on", "limit", "read", "read_note", "trim", "write", "write_note"]

_SEAL = 32
_KIND = re.compile(r"[a-z]+-[0-9a-f]{16}")
_PART = re.compile(r"[0-9a-f]{2}")
# What a process that was killed left is there, too, and objects of earlier versions.
_NAME = re.compile(r"[0-9a-f]{64}(\.o)?|\.new-[0-9a-f]{12}|\.new\w{4,8}")
_DEFAULT_LIMIT = 2048
_OFTEN = 64 << 20
# At least so many times is the folder measured while it is filled.
_TIMES = 32
_RECENT = 3600.0
# What a trim leaves, so that the next write does not have to trim again.
_LEFT = 0.8
_BLOCK = 4096
_MOST_NOTE = 1 << 20

_lock = locks.lock()


class _Account:
    """The size of the folder as this process knows it: bytes when measured, and written since."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.measured = self.written = 0


_account = _Account()


class Entry(NamedTuple):
    """A file of the cache: where it is, its bytes on the disk, and when it was last used."""

    path: Path
    bytes: int
    used: float


def is_on() -> bool:
    """Return whether compiled code is kept in files: the `enable_compile_cache` option."""
    return bool(config._context["enable_compile_cache"])


def limit() -> int:
    """Return how many bytes the folder may have: MYCEL_CACHE_SIZE (in MiB), or 2 GiB.

    Raises ValueError where the variable is not a whole number.
    """
    text = os.environ.get("MYCEL_CACHE_SIZE", "").strip()
    if not text:
        return _DEFAULT_LIMIT << 20
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"MYCEL_CACHE_SIZE={text}: give a whole number of MiB, or unset it")
    return int(text) << 20


def _seal(digest: str, content: bytes) -> bytes:
    return hashlib.sha256(digest.encode() + content).digest()


@contextlib.contextmanager
def _open(*names: str, create: bool = False) -> Iterator[Folder]:
    """Open the cache's folder, or one in it; the caller handles OSError."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(open_folder(config.cache_directory(), create))
        for name in names:
            folder = stack.enter_context(folder.enter(name, create))
        yield folder


def _refused(error: Refused) -> None:
    warn_once(f"compiled code is neither taken from there nor kept, as {error}")


def read(kind: str, digest: str) -> bytes | None:
    """Return the content kept under a digest in the folder `kind`; None without a sound file."""
    try:
        with _open(kind, digest[:2]) as folder:
            data, used = folder.read(digest, limit())
            content = data[:-_SEAL]
            if data[-_SEAL:] != _seal(digest, content):
                logger.info("the cached file %s is damaged; it is made anew", os.path.join(folder.path, digest))
                return None
            if abs(time.time() - used) > _RECENT:
                _touch(folder, digest)
            return content
    except Refused as error:
        _refused(error)
    except (OSError, ValueError) as error:
        logger.debug("not in the cache: %s", error)
    return None


def _touch(folder: Folder, digest: str) -> None:
    try:
        folder.touch(digest)
    except OSError as error:
        logger.debug("its use was not noted: %s", error)


def write(kind: str, digest: str, content: bytes) -> None:
    """Keep content under a digest in the folder `kind`; where that fails, log why."""
    most = limit()
    size = -(-(len(content) + _SEAL) // _BLOCK) * _BLOCK
    # Its folder may be new.
    if size + _BLOCK > most:
        logger.info("%d bytes are not kept, as the cache of compiled code may have %d (MYCEL_CACHE_SIZE)", size, most)
        return
    _make_room(size + _BLOCK, most)
    _kept((kind, digest[:2]), digest, content + _seal(digest, content))


def _kept(names: tuple[str, ...], name: str, data: bytes) -> None:
    for attempt in range(2):
        try:
            with _open(*names, create=True) as folder:
                folder.write(name, data)
            return
        except Refused as error:
            _refused(error)
            return
        except FileNotFoundError as error:
            # Another process has trimmed meanwhile, and the folder was empty.
            if attempt:
                logger.info("the compiled-object cache could not be written: %s", error)
        except OSError as error:
            logger.info("the compiled-object cache could not be written: %s", error)
            return


def _make_room(size: int, most: int) -> None:
    folder = config.cache_directory()
    with _lock:
        if _account.folder != folder:
            _account.folder, _account.measured, _account.written = folder, most, 0
        _account.written += size
        total = _account.measured + _account.written
        due = total > most or _account.written > min(_OFTEN, most // _TIMES)
        if due:
            # Others need not measure at the same time.
            _account.measured, _account.written = 0, 0
    if due:
        left = trim(most - size)
        with _lock:
            if _account.folder == folder:
                _account.measured = left + size


def read_note(name: str) -> str | None:
    """Return what `write_note` kept under a name; None where there is nothing."""
    try:
        with _open() as folder:
            return folder.read(name, _MOST_NOTE)[0].decode()
    except Refused as error:
        _refused(error)
    except (OSError, ValueError) as error:
        logger.debug("not in the cache: %s", error)
    return None


def write_note(name: str, text: str) -> None:
    """Keep a text in a file of the cache's folder; trimming the cache does not delete it."""
    _kept((), name, text.encode())


def entries() -> list[Entry]:
    """List the files of the cache, least recently used first; other files are not looked at."""
    return [entry for entry, _ in _found()[0]]


def _bytes(facts: os.stat_result) -> int:
    return max(facts.st_size, getattr(facts, "st_blocks", 0) * 512)


def _found(strict: bool = False) -> tuple[list[tuple[Entry, tuple[str, str, str]]], int]:
    """Find the entries, with the names of their folders and files, and the bytes of the folders.

    With `strict`, raises OSError where the cache cannot be read.
    """
    found: list[tuple[Entry, tuple[str, str, str]]] = []
    folders = 0
    try:
        with _open() as top:
            for kind, facts in _inside(top, _KIND):
                with _entered(top, kind) as middle:
                    folders += _bytes(facts)
                    for part, more in _inside(middle, _PART):
                        with _entered(middle, part) as last:
                            folders += _bytes(more)
                            found += [(entry, (kind, part, entry.path.name)) for entry in _files(last)]
    except FileNotFoundError:
        pass
    except OSError as error:
        if strict:
            raise
        if isinstance(error, Refused):
            _refused(error)
        else:
            logger.info("the cache of compiled code cannot be read: %s", error)
    future = time.time() + _RECENT
    return sorted(found, key=lambda e: (e[0].used <= future, e[0].used, e[0].path)), folders


def _files(folder: Folder | None) -> Iterator[Entry]:
    """Find the files of the cache in a folder, except those that are being written."""
    if folder is None:
        return
    for name, facts in folder.entries():
        if _NAME.fullmatch(name) and stat.S_ISREG(facts.st_mode):
            if not name.startswith(".new") or folder.is_abandoned(name):
                yield Entry(Path(folder.path) / name, _bytes(facts), facts.st_mtime)


@contextlib.contextmanager
def _entered(folder: Folder | None, name: str) -> Iterator[Folder | None]:
    """Enter a folder; None where that cannot be done, or another process has deleted it."""
    with contextlib.ExitStack() as stack:
        inside = None
        try:
            if folder is not None:
                inside = stack.enter_context(folder.enter(name))
        except FileNotFoundError:
            pass
        except Refused as error:
            _refused(error)
        except OSError as error:
            logger.info("a part of the cache of compiled code cannot be read: %s", error)
        yield inside


def _inside(folder: Folder | None, names: re.Pattern[str]) -> list[tuple[str, os.stat_result]]:
    if folder is None:
        return []
    return [(name, facts) for name, facts in folder.entries() if names.fullmatch(name) and stat.S_ISDIR(facts.st_mode)]


def trim(most: int) -> int:
    """Delete the least recently used files until at most `most` bytes are left.

    Returns the number of bytes left.
    """
    known, folders = _found()
    total = sum(e.bytes for e, _ in known) + folders
    if total <= most:
        return total
    done = 0
    while done < len(known) and total > most * _LEFT:
        begin, going = done, 0
        while done < len(known) and total - going > most * _LEFT:
            going += known[done][0].bytes
            done += 1
        total -= _delete(known[begin:done])[1]
    return total


def _delete(known: list[tuple[Entry, tuple[str, str, str]]], strict: bool = False) -> tuple[int, int]:
    """Delete entries and the folders that they leave empty.

    Returns the number of deleted files and the bytes freed. With `strict`, raises OSError for a
    file that cannot be deleted.
    """
    parts: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for entry, (kind, part, name) in known:
        parts.setdefault((kind, part), []).append((name, entry.bytes))
    count = free = 0
    for (kind, part), files in parts.items():
        try:
            with _open(kind, part) as folder:
                for name, size in files:
                    try:
                        folder.remove(name)
                        count += 1
                    except FileNotFoundError:
                        pass
                    free += size
                facts = None if folder.descriptor is None else os.fstat(folder.descriptor)
            with contextlib.suppress(OSError), _open(kind) as above:
                above.remove_folder(part)
                free += 0 if facts is None else _bytes(facts)
        except FileNotFoundError:
            free += sum(size for _, size in files)
        except OSError as error:
            if strict:
                raise
            logger.info("a part of the cache of compiled code cannot be deleted: %s", error)
    return count, free


def clear() -> tuple[int, int]:
    """Delete everything in the cache; return how many files there were, and their bytes.

    Running processes go on, and compile anew what they need again. Raises OSError where files
    cannot be deleted. Nothing is deleted in a folder that others may write.
    """
    known = _found(strict=True)[0]
    return _delete(known, strict=True)[0], sum(entry.bytes for entry, _ in known)
