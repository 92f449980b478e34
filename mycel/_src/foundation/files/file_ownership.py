"""File ownership checks: files that only their user may write, from which code may be loaded.

Whoever can write the code that a process runs can do whatever the process may. So a folder of code
is used only if it belongs to the user, others may not write into it, and nobody else can replace
it: each folder above belongs to the user, to root, or to the owner of the root folder, and others
may not write into it unless its sticky bit keeps them from renaming files of other owners. The
checks look at the open file (`fstat`), not at its name; links are not followed, and everything
below is opened relative to the folder that was checked. So nothing can change between check and
use. New folders are for the user alone (0700), and so are files (0600).

A group of the user's name with no other member does not count as others for the folders above:
many systems let it write into the user's home folder. Windows has no such owners and modes: nothing
is checked there.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
from collections.abc import Collection, Iterator
from types import TracebackType

from mycel._src.foundation.files import atomic_files as whole
from mycel._src.foundation.log import logger
from mycel._src.foundation.system import locks

__all__ = ["Folder", "Refused", "check_code", "open_folder", "warn_once"]

HAS_OWNERS = hasattr(os, "geteuid") and os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | _NO_LINK | getattr(os, "O_DIRECTORY", 0)
# A folder above may be one that its user may pass, and not list.
_PASS = _FOLDER | getattr(os, "O_PATH", 0)
# A pipe in the place of a file must not keep its reader waiting.
_READ = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | _NO_LINK | getattr(os, "O_BINARY", 0)

_MOST_LINKS = 40

_lock = locks.lock()
_said: set[str] = set()
# Folders that were reached by asking each one above: the path without links, device and number.
_reached: dict[str, tuple[str, int, int]] = {}


class Refused(OSError):
    """The content of a folder or file is not to be trusted; the message says why and what to do."""

    def __init__(self, path: str, reason: str, mend: str) -> None:
        super().__init__(errno.EPERM, f"{reason}; {mend}", path)
        self.path, self.reason, self.mend = path, reason, mend

    def __str__(self) -> str:
        return f"{self.path} {self.reason}; {self.mend}"


def warn_once(text: str) -> None:
    """Log a warning the first time that this process gives it."""
    with _lock:
        if text in _said:
            return
        _said.add(text)
    logger.warning("%s", text)


class Folder:
    """An open folder that only its user may write; a context manager that closes it."""

    def __init__(self, path: str, descriptor: int | None) -> None:
        self.path, self.descriptor = path, descriptor

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def _at(self, name: str) -> str:
        return name if self.descriptor is not None else os.path.join(self.path, name)

    def enter(self, name: str, create: bool = False) -> Folder:
        """Open a folder in this one; with `create`, make it where it is missing.

        Raises Refused where others may write into it.
        """
        path = os.path.join(self.path, name)
        if self.descriptor is None:
            if create:
                os.makedirs(path, exist_ok=True)
            elif not os.path.isdir(path) or os.path.islink(path):
                raise FileNotFoundError(errno.ENOENT, "there is no such folder", path)
            return Folder(path, None)
        found = _opened(name, path, self.descriptor, _FOLDER, create)
        try:
            _check_own(os.fstat(found), path)
        except BaseException:
            os.close(found)
            raise
        return Folder(path, found)

    def read(self, name: str, most: int) -> tuple[bytes, float]:
        """Return the content of a file, and when it was last changed.

        Raises Refused if others own or may write it, ValueError if it has more bytes than `most`.
        """
        path = os.path.join(self.path, name)
        try:
            handle = os.open(self._at(name), _READ, dir_fd=self.descriptor)
        except OSError as error:
            raise _without_link(error, path) from None
        with open(handle, "rb") as file:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode):
                raise Refused(path, "is no file", "delete it")
            if HAS_OWNERS:
                _check_own(facts, path)
            if facts.st_size > most:
                raise ValueError(f"{path} has {facts.st_size} bytes, more than {most}")
            return file.read(), facts.st_mtime

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all, replacing one of this name."""
        temporary, handle = whole.new_file(
            lambda temporary: os.open(self._at(temporary), _NEW, 0o600, dir_fd=self.descriptor),
            lambda temporary: os.stat(self._at(temporary), dir_fd=self.descriptor, follow_symlinks=False),
            ".new-",
        )
        try:
            with open(handle, "wb") as file:
                file.write(content)
                file.flush()
                if whole.HAS_LOCKS:
                    self._rename(temporary, name)
            if not whole.HAS_LOCKS:
                self._rename(temporary, name)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                self.remove(temporary)
            raise

    def _rename(self, before: str, after: str) -> None:
        os.replace(self._at(before), self._at(after), src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def touch(self, name: str) -> None:
        """Set the time of last use of a file to now."""
        if self.descriptor is None:
            os.utime(self._at(name))
        else:
            os.utime(name, dir_fd=self.descriptor, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Delete a file."""
        os.unlink(self._at(name), dir_fd=self.descriptor)

    def remove_folder(self, name: str) -> None:
        """Delete a folder that is empty."""
        os.rmdir(self._at(name), dir_fd=self.descriptor)

    def is_abandoned(self, name: str) -> bool:
        """Return whether `name` is a file that no process is writing any more."""
        return whole.is_abandoned(self._at(name), self.descriptor)

    def entries(self) -> Iterator[tuple[str, os.stat_result]]:
        """List the names in the folder with their `os.stat_result`; links are not followed."""
        with os.scandir(self.path if self.descriptor is None else self.descriptor) as inside:
            for item in inside:
                with contextlib.suppress(FileNotFoundError):
                    yield item.name, item.stat(follow_symlinks=False)


def open_folder(path: str | os.PathLike[str], create: bool = False) -> Folder:
    """Open the folder at `path`; with `create`, make it and those above it where they are missing.

    Raises Refused where others may write into it or replace it, FileNotFoundError where there is
    none, and any other OSError that the system gives.
    """
    text = os.path.abspath(os.fspath(path))
    if not HAS_OWNERS:
        if create:
            os.makedirs(text, 0o700, exist_ok=True)
        elif not os.path.isdir(text):
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", text)
        return Folder(text, None)
    known = _reached.get(text)
    if known is not None:
        # Nobody else can have put another in its place since.
        with contextlib.suppress(OSError):
            found = os.open(known[0], _FOLDER)
            facts = os.fstat(found)
            same = (facts.st_dev, facts.st_ino) == known[1:]
            if same and facts.st_uid == os.geteuid() and not facts.st_mode & _OTHERS:
                return Folder(known[0], found)
            os.close(found)
    real = _without_links(text, _owners())
    found = _walked(real, create)
    facts = os.fstat(found)
    _reached[text] = (real, facts.st_dev, facts.st_ino)
    return Folder(real, found)


def check_code(path: str | os.PathLike[str]) -> None:
    """Raise Refused if anybody else may write a file of code.

    The file, and each folder above it, must belong to the user, to root, or to the owner of Mycel's
    own files, and others may not write it.
    """
    if not HAS_OWNERS:
        return
    owners = _owners_of_code()
    real = _without_links(os.path.abspath(os.fspath(path)), owners)
    place = ""
    for name in real.split(os.sep):
        place = os.path.join(place, name) if name else os.sep
        facts = os.stat(place, follow_symlinks=False)
        if facts.st_uid not in owners:
            raise Refused(place, f"belongs to {_name(facts.st_uid)}", "use a copy in a folder of your own")
        if _others_may_write(facts, place):
            raise Refused(place, _writers(facts), f"chmod go-w {place}")


@functools.cache
def _owners_of_code() -> frozenset[int]:
    # Who owns the program may do all of this anyway.
    return frozenset({*_owners(), os.stat(__file__).st_uid})


def _owners() -> tuple[int, ...]:
    return 0, os.geteuid(), os.stat(os.sep).st_uid


def _without_links(text: str, owners: Collection[int]) -> str:
    """Follow the links in an absolute path.

    Raises Refused for a link that another user made or could replace.
    """
    left, path, count = text.split(os.sep)[::-1], os.sep, 0
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        if name == "..":
            path = os.path.dirname(path)
            continue
        place = os.path.join(path, name)
        try:
            facts = os.lstat(place)
        except FileNotFoundError:
            facts = None
        if facts is None or not stat.S_ISLNK(facts.st_mode):
            path = place
            continue
        count += 1
        if count > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), text)
        if facts.st_uid not in owners:
            raise Refused(place, f"is a link of {_name(facts.st_uid)}", _ELSEWHERE)
        _check_above(os.stat(path), path, owners)
        target = os.readlink(place)
        path = os.sep if os.path.isabs(target) else path
        left += target.split(os.sep)[::-1]
    return path


def _check_above(facts: os.stat_result, path: str, owners: Collection[int]) -> None:
    """Raise Refused if another user could replace what a folder holds."""
    if facts.st_uid not in owners:
        raise Refused(path, f"belongs to {_name(facts.st_uid)}", _ELSEWHERE)
    if _others_may_write(facts, path):
        raise Refused(path, _writers(facts), f"chmod go-w {path}")


def _walked(real: str, create: bool) -> int:
    """Open the folder at a path without links, checking each folder above it."""
    owners = _owners()
    names = [name for name in real.split(os.sep) if name]
    path, here = os.sep, os.open(os.sep, _PASS if names else _FOLDER)
    try:
        for number, name in enumerate(names, 1):
            _check_above(os.fstat(here), path, owners)
            path = os.path.join(path, name)
            below = _opened(name, path, here, _FOLDER if number == len(names) else _PASS, create)
            os.close(here)
            here = below
        _check_own(os.fstat(here), path)
    except BaseException:
        os.close(here)
        raise
    return here


_ELSEWHERE = "let MYCEL_CACHE name a folder of your own"


def _opened(name: str, path: str, within: int, flags: int, create: bool) -> int:
    """Open a folder in an open one; with `create`, make it where it is missing."""
    for _ in range(2):
        try:
            return os.open(name, flags, dir_fd=within)
        except FileNotFoundError:
            if not create:
                raise
        except OSError as error:
            raise _without_link(error, path) from None
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=within)
    return os.open(name, flags, dir_fd=within)


def _without_link(error: OSError, path: str) -> OSError:
    # A link in the place of a folder is no folder to some systems.
    if error.errno in (errno.ELOOP, errno.EMLINK) or (error.errno == errno.ENOTDIR and os.path.islink(path)):
        return Refused(path, "is a link", "delete it")
    return OSError(error.errno, error.strerror, path)


def _check_own(facts: os.stat_result, path: str) -> None:
    if facts.st_uid != os.geteuid():
        raise Refused(path, f"belongs to {_name(facts.st_uid)}, not to {_name(os.geteuid())}", _ELSEWHERE)
    if facts.st_mode & _OTHERS:
        raise Refused(path, _writers(facts), f"if you trust what it holds, chmod go-w {path}")


def _writers(facts: os.stat_result) -> str:
    who = "everybody" if facts.st_mode & stat.S_IWOTH else "its group"
    return f"may be written by {who} (mode {stat.S_IMODE(facts.st_mode):04o})"


def _others_may_write(facts: os.stat_result, path: str) -> bool:
    """Return whether another user may replace what is in a folder, or write into a file."""
    mode = facts.st_mode
    if not mode & _OTHERS or (mode & stat.S_ISVTX and stat.S_ISDIR(mode)):
        return False
    return bool(mode & stat.S_IWOTH) or facts.st_gid != _own_group() or _has_list(path)


@functools.cache
def _group_of(user: int) -> int:
    """Return the group with this user's name and no other member; -1 if there is none."""
    import grp
    import pwd

    try:
        entry = pwd.getpwuid(user)
        group = grp.getgrgid(entry.pw_gid)
    except KeyError:
        return -1
    alone = group.gr_name == entry.pw_name and not set(group.gr_mem) - {entry.pw_name}
    return entry.pw_gid if alone else -1


def _own_group() -> int:
    user = os.geteuid()
    # The group of root has members on some systems that its entry does not show.
    return -1 if user == 0 else _group_of(user)


def _has_list(path: str) -> bool:
    """Return whether an access control list (ACL) gives others access besides the mode."""
    if not hasattr(os, "listxattr"):
        return False
    with contextlib.suppress(OSError):
        return "system.posix_acl_access" in os.listxattr(path)
    return False


def _name(user: int) -> str:
    import pwd

    try:
        return f"{pwd.getpwuid(user).pw_name} (uid {user})"
    except KeyError:
        return f"uid {user}"
