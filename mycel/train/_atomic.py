"""Files that appear whole or not at all.

A file is written under a temporary name in the folder of its destination, flushed to the disk, and renamed over the destination;
POSIX and Windows both make that rename atomic within a file system. Whatever interrupts the writing, a full disk, an exception
or Ctrl-C, the destination keeps its former content and the temporary file is removed. A symbolic link stays a link: the file it
points to is the one that is replaced, and keeps its permission bits.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], purpose: str = "file") -> Iterator[Path]:
    """A new empty file to fill; it becomes `path` when the block ends and vanishes if the block raises.

    Raises the OSError that the system gives, with `purpose` and the destination in its message.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with replacing(target) as temporary:
    ...     size = temporary.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    target = Path(os.path.realpath(path))
    try:
        former = _permissions(target)
        temporary = target.with_name(f".{target.name[:60]}.{os.urandom(6).hex()}.tmp")
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        # A library may put a file of its own, with its own permissions, in the place of this one.
        mode = stat.S_IMODE(os.stat(temporary).st_mode) if former is None else former
    except OSError as error:
        raise _explained(error, purpose, path) from error
    try:
        yield temporary
        _flush(temporary)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except OSError as error:
        _remove(temporary)
        raise _explained(error, purpose, path) from error
    except BaseException:
        _remove(temporary)
        raise
    _flush_folder(target.parent)


def _permissions(target: Path) -> int | None:
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise IsADirectoryError(21, "it exists and is not a regular file")
    return stat.S_IMODE(status.st_mode)


def _flush(path: Path) -> None:
    # Windows flushes only what is open for writing.
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_folder(folder: Path) -> None:
    # The new file is in place already; a file system that cannot flush a folder (or Windows) keeps its own order.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def _explained(error: OSError, purpose: str, path: str | os.PathLike[str]) -> OSError:
    if error.errno is None:
        return OSError(f"cannot write {purpose} {os.fspath(path)!r}: {error}")
    return OSError(error.errno, f"cannot write {purpose}: {error.strerror}", os.fspath(path))
