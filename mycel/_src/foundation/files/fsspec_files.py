"""Remote files through fsspec: on object stores, servers, in archives, in memory.

A path with `://` in it names such a file, in fsspec's form: `s3://bucket/a.parquet`,
`memory://a.tar`, `zip://b.txt::s3://bucket/a.zip`. What a store wants to know, as keys, is told to
fsspec itself (`fsspec.config.conf`, its environment variables). `file://` is a path of this
machine. Invariants:

* Every reader has a position of its own, and reading a range has none, so threads may read one file
  at once.
* Whatever a store raises becomes an OSError that names the file; a backend that is not installed is
  an ImportError.
* Nobody waits for a store longer than `MYCEL_REMOTE_WAIT` says. A backend cannot be told to stop,
  so a thread of ours asks it (`_Asker`), and is left behind where the store says nothing.
* Copies (`copied`) are whole or not there, and follow the file: what the store says of it, its size
  and date or hash, is in their name.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib
import io
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import IO, Any

from mycel._src.foundation.files import atomic_files, remote_copies
from mycel._src.foundation.files.decompression import limit
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.settings import config

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LOCAL = re.compile(r"(?:file|local)://(?!.*::)(?:localhost)?(?=/)")
_PLAIN = (str, int, float, bytes, tuple, datetime.datetime)
# When a file was read last.
_READ = ("atime", "time", "accessed")
_PIECE, _BUFFER = 1 << 22, 1 << 18


def is_remote(path: Any) -> bool:
    """Return whether a path names a file for fsspec.

    >>> from mycel._src.foundation.files.fsspec_files import is_remote
    >>> is_remote("s3://bucket/a.tar"), is_remote("/data/a.tar"), is_remote("file:///data/a.tar")
    (True, False, False)
    """
    return isinstance(path, str) and _SCHEME.search(path) is not None and _LOCAL.match(path) is None


def local_name(path: str) -> str:
    """Return the path of a file of this machine that has one; others as they are.

    >>> from mycel._src.foundation.files.fsspec_files import local_name
    >>> local_name("file:///data/a.tar"), local_name("memory://a.tar")
    ('/data/a.tar', 'memory://a.tar')
    """
    found = _LOCAL.match(path)
    return path if found is None else path[found.end() :]


# Those that answer without waiting for another machine.
_NEAR = {"memory://", "file://", "local://", "zip://", "tar://", "libarchive://", "reference://", "data://"}
_WAIT, _BYTES_A_SECOND, _BLOCK = 60.0, 1 << 20, 5 << 20
# For lists of files, which come in many pages.
_LIST = 600 * _BYTES_A_SECOND


def wait() -> float:
    """Return how many seconds a store may take to answer: MYCEL_REMOTE_WAIT, or 60.

    Raises ValueError where MYCEL_REMOTE_WAIT is not a number above 0.
    """
    chosen = os.environ.get("MYCEL_REMOTE_WAIT", "").strip()
    if not chosen:
        return _WAIT
    try:
        seconds = float(chosen)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < threading.TIMEOUT_MAX / 2:
        raise ValueError(f"MYCEL_REMOTE_WAIT: expected a number of seconds above 0, got {chosen!r}")
    return seconds


class _Silent(OSError):
    """A store did not answer in time."""


class _Asker:
    """A thread that asks stores for one other thread, as file systems of fsspec belong to threads.

    It ends with the object.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self.questions: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=_answer_all, args=(self.questions,), name="mycel-remote", daemon=True).start()
        # A function of C, which puts the reference.
        finalization.at_end(self, self.questions.put)


def _answer_all(questions: SimpleQueue[Any]) -> None:
    while not isinstance(question := questions.get(), weakref.ref):
        call, answers = question
        try:
            answers.put((call(), None))
        except BaseException as error:
            answers.put((None, error))
        # Nothing is held while the next question is awaited.
        question = call = answers = None


_of_thread = threading.local()


def _within(path: str, call: Callable[[], Any], size: int = 0) -> Any:
    """Return what a call of a store gives, or raise OSError where it takes too long.

    * `path`: the file.
    * `call`: asks the store.
    * `size`: how many bytes it has to send, for which there is a second a megabyte.
    """
    if set(_SCHEME.findall(path)) <= _NEAR:
        return call()
    seconds = wait() + size / _BYTES_A_SECOND
    asker = getattr(_of_thread, "asker", None)
    if asker is None or asker.process != os.getpid():
        asker = _of_thread.asker = _Asker()
    answers: SimpleQueue[Any] = SimpleQueue()
    asker.questions.put((call, answers))
    try:
        found, error = answers.get(timeout=seconds)
    except Empty:
        _of_thread.asker = None
        raise _Silent(
            f"its store did not answer within {seconds:.3g} seconds; the environment variable MYCEL_REMOTE_WAIT says "
            "how many to wait"
        ) from None
    except BaseException:
        # As from Ctrl-C: the answer is nobody's.
        _of_thread.asker = None
        raise
    if error is not None:
        raise error
    return found


@contextlib.contextmanager
def _asking(path: str) -> Iterator[None]:
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no file {path!r}") from error
    except Exception as error:
        raise OSError(f"{path!r} cannot be read: {type(error).__name__}: {str(error)[:300]}") from error


def _place(path: str) -> tuple[Any, str]:
    """Return the file system of fsspec for a path, and what it calls the file."""
    try:
        url_to_fs = importlib.import_module("fsspec.core").url_to_fs
    except ImportError as error:
        raise ImportError(f"{path!r}: reading it needs fsspec; pip install 'mycel[remote]'") from error
    try:
        with _asking(path):
            system, inner = _within(path, lambda: url_to_fs(path))
            return system, str(inner)
    except ImportError as error:
        raise ImportError(f"{path!r}: a package that fsspec needs for it is missing: {error}") from error


def _renamed(path: str, inner: str) -> str:
    """Return the path of another file of the same file system."""
    first, chained, rest = path.partition("::")
    if "://" not in first:
        # As in `simplecache::s3://bucket/a`: the last one has the name.
        head, _, last = path.rpartition("::")
        return f"{head}::{_renamed(last, inner)}"
    scheme = first.partition("://")[0]
    return f"{scheme}://{inner}{chained}{rest}"


def files_at(path: str, endings: Sequence[str]) -> list[str]:
    """Return the files that a path names: itself, those in a folder, or those of a pattern.

    `endings` are those of the files of a folder, in small letters. Raises OSError, and
    FileNotFoundError where there is none.
    """
    system, inner = _place(path)
    with _asking(path):
        if any(letter in inner for letter in "*?["):
            all_of = _within(path, lambda: system.glob(inner, detail=True), _LIST)
            found = [name for name, facts in all_of.items() if facts["type"] == "file"]
        elif _within(path, lambda: system.isdir(inner), _LIST):
            listed = _within(path, lambda: system.find(inner), _LIST)
            found = [name for name in listed if name.lower().endswith(tuple(endings))]
        else:
            return [path] if _within(path, lambda: system.isfile(inner)) else _none(path)
    return [_renamed(path, name) for name in sorted(found)] or _none(path)


def _none(path: str) -> list[str]:
    raise FileNotFoundError(path)


def stamp(path: str) -> tuple[int, str]:
    """Return the size of a file, and text that changes when the file does."""
    system, inner = _place(path)
    with _asking(path):
        facts = _within(path, lambda: system.info(inner))
        size, packed = facts.get("size"), facts.get("compress_size")
        if not isinstance(size, int):
            raise OSError("its size is not known, so it cannot be read by place")
        if packed is not None and size > limit(int(packed)):
            raise ValueError(f"it becomes {size >> 20} MiB when it is decompressed; MYCEL_INFLATE limits that")
        # What a store says of a file may hold objects of this process.
        said = sorted(
            (name, repr(value)) for name, value in facts.items() if type(value) in _PLAIN and name not in _READ
        )
        return size, hashlib.sha256(repr(said).encode()).hexdigest()


def read(path: str, start: int, size: int) -> bytes:
    """Return the `size` bytes from `start` on; fewer at the end of the file."""
    if size <= 0:
        return b""
    system, inner = _place(path)
    with _asking(path):
        content = _within(path, lambda: system.cat_file(inner, start=start, end=start + size), size)
        return _fitting(bytes(content), size, start)


def _fitting(content: bytes, most: int, start: int) -> bytes:
    # A server may answer with the whole file.
    if len(content) > most:
        raise OSError(f"{len(content)} bytes came for the {most} from byte {start} on: its server knows no ranges")
    return content


class _Opened(io.RawIOBase):
    """A file of a store, which has a position of its own: one that the store opened, or ranges."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path, self.length, self.at = path, stamp(path)[0], 0
        # An archive is closed with the last one who knows its file system.
        self.system, self.inner = _place(path)
        # Files in memory have one position for all who open them.
        ranges = getattr(self.system, "protocol", None) == "memory"
        with _asking(path):
            self.file = None if ranges else _within(path, lambda: self.system.open(self.inner, "rb"))

    def close(self) -> None:
        if not self.closed and self.file is not None:
            self.file.close()
        super().close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = max(0, offset + (0, self.at, self.length)[whence])
        return self.at

    def _next(self, file: Any, size: int) -> bytes:
        if file.tell() != self.at:
            file.seek(self.at)
        content: bytes = file.read(size)
        return content

    def readinto(self, target: Any) -> int:
        wanted = max(0, min(len(target), self.length - self.at))
        if self.file is None:
            content = read(self.path, self.at, wanted)
        else:
            file = self.file
            with _asking(self.path):
                try:
                    found = _within(self.path, lambda: self._next(file, wanted), wanted + _BLOCK)
                except _Silent:
                    # A thread is still in it.
                    self.file = None
                    raise
                content = _fitting(found, wanted, self.at)
        if len(content) < wanted:
            raise OSError(
                f"{self.path!r} ends at byte {self.at + len(content)}, where it has {self.length}: it was cut off, or "
                "changed meanwhile"
            )
        target[: len(content)] = content
        self.at += len(content)
        return len(content)


def opened(path: str) -> IO[bytes]:
    """Return an open file, of this machine or not, which can be sought in.

    >>> import os, tempfile
    >>> from mycel._src.foundation.files import fsspec_files as remote
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "a.txt")
    ...     with open(name, "w") as file:
    ...         _ = file.write("some text")
    ...     with remote.opened(name) as file:
    ...         file.seek(5), file.read()
    (5, b'text')
    """
    return io.BufferedReader(_Opened(path), _BUFFER) if is_remote(path) else open(path, "rb")


def size_of(path: str) -> int:
    """Return the size of a file, of this machine or not."""
    return stamp(path)[0] if is_remote(path) else os.path.getsize(path)


def copied(path: str, beside: str | None = None) -> str:
    """Return the path of a copy of a file, which is made unless the file is there already.

    Copies lie in the folder `copies` of the cache. Those that no process uses go where there is no
    room for a new one (`remote_copies.py`); NoRoom, an OSError, where that is not enough. With
    `beside`, the path of another file of the same folder, the copy lies beside that one's.
    """
    size, mark = stamp(path)
    name = re.split(r"[/\\]", path.partition("::")[0])[-1]
    key = hashlib.sha256(f"{beside or path}\0{stamp(beside)[1] if beside else mark}".encode()).hexdigest()[:32]
    folder = os.path.join(config.cache_directory(), "copies")
    place = remote_copies.use(folder, key)
    made = os.path.join(place, name or "file")
    # The copy of a file beside may be of an earlier one.
    note = f"{made}.of-{hashlib.sha256(mark.encode()).hexdigest()[:16]}"
    if os.path.isfile(made) and os.path.getsize(made) == size and os.path.exists(note):
        # So it was used last now.
        os.utime(note)
        return made
    remote_copies.make_room(folder, size, path)
    with opened(path) as source, atomic_files.replacing(made, "copy", durable=False) as target:
        with open(target, "wb") as file:
            while piece := source.read(_PIECE):
                file.write(piece)
            if file.tell() != size:
                raise OSError(f"{path!r} gave {file.tell()} bytes, where {size} were promised")
    with open(note, "wb"):
        pass
    return made
