"""The output of ranks, shown in whole lines with the rank in front.

Ranks write into pipes, which one thread reads. A line is shown once it has ended, so that lines of
ranks never mix; what ends by a carriage return, as bars of progress do, is a line too. A line that
grows beyond `_LONGEST` bytes is shown in parts.
"""

from __future__ import annotations

import os
import select
import selectors
import subprocess
import sys
import threading
from collections.abc import Callable

from mycel._src.foundation.system import locks

__all__ = ["Lines", "Piped", "front_of", "writer"]

_LONGEST = 1 << 20
_PIECE = 1 << 16


def front_of(rank: int) -> str:
    """Return what stands before each line of a rank."""
    return f"[rank {rank}] "


class Lines:
    """What is written to one output, as it comes, to be shown in lines.

    `show` is given whole lines, each with `front` before it.
    """

    def __init__(self, front: str, show: Callable[[bytes], None]) -> None:
        self._front, self._show = front.encode(), show
        self._rest, self._returned = b"", False

    def add(self, data: bytes) -> None:
        """Take what has been written further."""
        if self._returned and data[:1] == b"\n":
            data = data[1:]  # the second half of an end of a line
        if not data:
            return
        self._returned = data.endswith(b"\r")
        *whole, self._rest = (self._rest + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        while len(self._rest) >= _LONGEST:
            whole.append(self._rest[:_LONGEST])
            self._rest = self._rest[_LONGEST:]
        if whole:
            self._show(b"".join([self._front + line + b"\n" for line in whole]))

    def end(self) -> None:
        """Show the last line, which has no end."""
        if self._rest:
            self._show(self._front + self._rest + b"\n")
            self._rest = b""


class Piped:
    """Pipes of several processes, and the thread that shows what comes of them."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._read, name="mycel-lines", daemon=True)
        self._left = 0
        self._asked = False

    def add(self, front: str, process: subprocess.Popen[bytes]) -> None:
        """Show from `begin` on what comes of the two outputs of a process, which are pipes."""
        for pipe, target in ((process.stdout, 1), (process.stderr, 2)):
            if pipe is not None:
                self._selector.register(pipe, selectors.EVENT_READ, Lines(front, writer(target)))
                self._left += 1

    def begin(self) -> None:
        """Start to read."""
        self._thread.start()

    def end(self) -> None:
        """Show what is left, once the processes have ended."""
        self._asked = True
        if self._thread.ident is not None:
            self._thread.join()

    def _read(self) -> None:
        while self._left:
            ready = self._selector.select(0.1)
            if not ready and self._asked:
                break  # a process that nobody knows has the pipe, and says nothing
            for key, _ in ready:
                pipe, lines = key.fileobj, key.data
                try:
                    data = os.read(key.fd, _PIECE)
                    lines.add(data)
                    if not data:
                        lines.end()
                except OSError:  # nobody reads what is shown: the rank is told by its pipe
                    data = b""
                if not data:
                    self._selector.unregister(pipe)
                    pipe.close()  # type: ignore[union-attr]
                    self._left -= 1
        for key in list(self._selector.get_map().values()):
            key.data.end()


_writing = locks.reentrant()


def writer(target: int) -> Callable[[bytes], None]:
    """Return what writes all of some bytes to this process's output or errors.

    One thread writes at a time: both may be the same terminal.
    """

    def write(data: bytes) -> None:
        with _writing:
            stream = sys.stdout if target == 1 else sys.stderr
            stream.flush()
            while data:
                try:
                    data = data[os.write(target, data) :]
                except BlockingIOError:  # another process has made it one that does not wait
                    select.select([], [target], [])

    return write
