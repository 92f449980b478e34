"""Atomic file writes: files appear whole or not at all, and leave no temporary files behind.

A file is written under a temporary name in the folder of its destination, flushed to the disk
and renamed over the destination; POSIX and Windows both make that rename atomic within a file
system. Whatever interrupts the writing, a full disk, an exception or Ctrl-C, the destination
keeps its former content and the temporary file is removed. A symbolic link stays a link: the
file that it points to is the one that is replaced, and keeps its permission bits.

A process that is killed removes nothing. So each temporary file is locked (`flock`) while it is
written, and the lock ends with the process, however that ends and on whichever machine. The next
writer into the folder removes the temporary files that no process has locked. A lock is taken after
the file is made; a writer whose file was removed in between makes another. Where the system has no
such locks, nothing is removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mycel._src.foundation.log import logger

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["Draft", "clean", "is_abandoned", "new_file", "replacing", "write", "write_folder"]

HAS_LOCKS = fcntl is not None
SUFFIX = ".mycel.tmp"
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.mycel\.tmp", re.DOTALL)
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_LOOK = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
# Names have at most 255 bytes.
_MOST_NAME = 180


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], purpose: str = "file", durable: bool = True) -> Iterator[Path]:
    """Give a new empty file to fill; it becomes `path` when the block ends without an error.

    If the block raises, the file is removed. With `durable`, the content is flushed to the disk
    before the file gets its name; without it, a crash of the machine may lose the file. Raises the
    OSError that the system gives, with `purpose` and the destination in its message.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with replacing(target) as temporary:
    ...     size = temporary.write_text("whole")
    >>> target.read_text()
    'whole'
    """
    draft = Draft(path, purpose)
    try:
        yield draft.path
        draft.publish(durable)
    except OSError as error:
        draft.discard()
        raise _explained(error, purpose, path) from error
    except BaseException:
        draft.discard()
        raise


class Draft:
    """A file in the making, at `path` until it is published or discarded.

    `publish` gives it the name of its destination, `discard` removes it. Its permissions are `mode`
    where given, else those of the file that it replaces, else those of a new file. Raises the
    OSError that the system gives, with `purpose` and the destination in its message.
    """

    def __init__(self, path: str | os.PathLike[str], purpose: str = "file", mode: int | None = None) -> None:
        self.target = Path(os.path.realpath(path))
        self._handle: int | None = None
        try:
            former = _permissions(self.target)
            clean(self.target.parent)
            folder = self.target.parent
            cut = os.fsencode(self.target.name)[:_MOST_NAME].decode(errors="ignore")
            name, handle = new_file(
                lambda name: os.open(folder / name, _NEW, 0o666 if mode is None else mode),
                lambda name: os.stat(folder / name, follow_symlinks=False),
                f".{cut}.",
                SUFFIX,
            )
        except OSError as error:
            raise _explained(error, purpose, path) from error
        self.path = folder / name
        # A library may put a file of its own, with its own permissions, in the place of this one.
        self._mode = stat.S_IMODE(os.fstat(handle).st_mode) if former is None or mode is not None else former
        if HAS_LOCKS:
            self._handle = handle
        else:
            # Windows renames no file that is open.
            os.close(handle)

    def publish(self, durable: bool = True) -> None:
        """Flush the file to the disk, if it is to be `durable`, and give it its name."""
        if durable:
            _flush(self.path)
        os.chmod(self.path, self._mode)
        os.replace(self.path, self.target)
        self._unlock()
        if durable:
            _flush_folder(self.target.parent)

    def discard(self) -> None:
        """Remove the file, if it still has its temporary name."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self._unlock()

    def _unlock(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def write(path: str | os.PathLike[str], content: bytes, purpose: str = "file") -> None:
    """Write a file whole or not at all, without waiting until it is on the disk."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        # A device or a pipe.
        with open(path, "wb") as file:
            file.write(content)
        return
    with replacing(path, purpose, durable=False) as temporary:
        temporary.write_bytes(content)


def write_folder(folder: str | os.PathLike[str], files: Mapping[str, bytes]) -> None:
    """Write files by name to a folder, which is made; each whole or not at all."""
    os.makedirs(folder, exist_ok=True)
    for name, content in files.items():
        with replacing(os.path.join(os.fspath(folder), name)) as draft:
            draft.write_bytes(content)


def new_file(
    create: Callable[[str], int], look: Callable[[str], os.stat_result], before: str, after: str = ""
) -> tuple[str, int]:
    """Make a file that this process holds locked; return its name and its descriptor.

    The name is random digits between `before` and `after`. `create(name)` makes and opens the file,
    and raises FileExistsError where there is one; `look(name)` returns the `os.stat_result` of the
    file that has the name.
    """
    while True:
        name = f"{before}{os.urandom(6).hex()}{after}"
        try:
            handle = create(name)
        except FileExistsError:
            continue
        if holds(handle, True):
            try:
                facts, found = os.fstat(handle), look(name)
                if (facts.st_dev, facts.st_ino) == (found.st_dev, found.st_ino):
                    return name, handle
            except FileNotFoundError:
                pass
            os.close(handle)
        else:
            return name, handle


def is_abandoned(path: str | os.PathLike[str], within: int | None = None) -> bool:
    """Return whether a file exists and no process is writing it any more.

    `path` is relative to the open folder `within`, where given. Only files that are locked while
    they are written (`new_file`) can be told so.
    """
    if not HAS_LOCKS:
        return False
    try:
        handle = os.open(path, _LOOK, dir_fd=within)
    except OSError:
        return False
    try:
        return stat.S_ISREG(os.fstat(handle).st_mode) and holds(handle, False)
    finally:
        os.close(handle)


def clean(folder: str | os.PathLike[str]) -> int:
    """Remove the temporary files that killed processes left in a folder; return how many."""
    count = 0
    if not HAS_LOCKS:
        return count
    with contextlib.suppress(OSError), os.scandir(folder) as inside:
        for item in inside:
            if _TEMPORARY.fullmatch(item.name) and _removed(item.path):
                count += 1
    return count


def _removed(path: str) -> bool:
    try:
        handle = os.open(path, _LOOK)
    except OSError:
        return False
    try:
        # Held while it is removed: its writer, if there is one, then finds that it is gone.
        if not stat.S_ISREG(os.fstat(handle).st_mode) or not holds(handle, False):
            return False
        os.unlink(path)
    except OSError as error:
        logger.info("%s, which a killed process left, cannot be removed: %s", path, error)
        return False
    finally:
        os.close(handle)
    logger.info("%s was left by a process that was killed; it is removed", path)
    return True


def holds(handle: int, wait: bool) -> bool:
    """Lock an open file; return whether that was possible."""
    if not HAS_LOCKS:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Another holds it, or this file system has no locks.
        return False
    return True


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
    # The new file is in place already; a file system that cannot flush a folder (or Windows)
    # keeps its own order.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _explained(error: OSError, purpose: str, path: str | os.PathLike[str]) -> OSError:
    if error.errno is None:
        return OSError(f"cannot write {purpose} {os.fspath(path)!r}: {error}")
    return OSError(error.errno, f"cannot write {purpose}: {error.strerror}", os.fspath(path))
