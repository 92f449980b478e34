"""Bounded decompression: compressed files read piece by piece, no further than a limit.

A few bytes of a compressed file can stand for a thousand times as many. So nothing is
decompressed as a whole: at most `PIECE` bytes at a time leave the decompressor, and a file may
grow to `limit(its size)`: 32 times its size, but at least 256 MiB, or what MYCEL_INFLATE says. A
file that ends too early, fails its checksum or has other bytes behind it is damaged.
"""

from __future__ import annotations

import os
import zlib
from typing import IO

from mycel._src.foundation.settings.config import memory_size

PIECE = 1 << 20
LEAST, TIMES = 256 << 20, 32
_WINDOW = {"GZIP": 31, "ZLIB": 15}


def limit(size: int) -> int:
    """Return how many bytes a compressed file of this size may become.

    Raises ValueError where MYCEL_INFLATE is not a size.
    """
    chosen = os.environ.get("MYCEL_INFLATE", "").strip()
    try:
        return memory_size(chosen) if chosen else max(LEAST, TIMES * size)
    except ValueError as error:
        raise ValueError(f"MYCEL_INFLATE: {error}") from None


class Inflated:
    """The content of a compressed file, read from its beginning to its end.

    `form` is "GZIP", of one or several members, or "ZLIB"; `source` is the open file and its size
    where `path` is not one of this machine. Whatever is wrong with the file raises a ValueError
    that names it.

    >>> import gzip, os, tempfile
    >>> from mycel._src.foundation.files.decompression import Inflated
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "a.gz")
    ...     with open(name, "wb") as handle:
    ...         _ = handle.write(gzip.compress(b"some text"))
    ...     with Inflated(name, "GZIP") as found:
    ...         found.read(4), found.read(100), found.read(1)
    (b'some', b' text', b'')
    """

    def __init__(self, path: str | os.PathLike[str], form: str, source: tuple[IO[bytes], int] | None = None) -> None:
        self.path = os.fspath(path)
        self.form = form
        self.handle = open(self.path, "rb") if source is None else source[0]
        self.limit = limit(os.fstat(self.handle.fileno()).st_size if source is None else source[1])
        self.given = 0
        self._machine = zlib.decompressobj(_WINDOW[form])
        self._left = b""
        self._ready = b""

    def __enter__(self) -> Inflated:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.handle.close()

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes; fewer only at the end."""
        parts: list[bytes] = []
        wanted = count
        while wanted > 0:
            part = self._ready or self._more()
            if not part:
                break
            parts.append(part[:wanted])
            self._ready = part[wanted:]
            wanted -= len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _more(self) -> bytes:
        """Return some more bytes, none at the end."""
        while True:
            source = self._left or self.handle.read(1 << 16)
            if self._machine.eof:
                if not source:
                    return b""
                source = self._next_member(source)
                if not source:
                    continue
            try:
                found = self._machine.decompress(source, PIECE)
            except zlib.error as error:
                raise ValueError(f"{self.path!r} cannot be decompressed as {self.form}: {error}") from error
            self._left = self._machine.unused_data if self._machine.eof else self._machine.unconsumed_tail
            if found:
                self.given += len(found)
                if self.given > self.limit:
                    raise ValueError(
                        f"{self.path!r} becomes more than {self.limit >> 20} MiB when it is decompressed as "
                        f"{self.form}; if it may, "
                        'set the environment variable MYCEL_INFLATE to a size such as "8GB"'
                    )
                return found
            if not source and not self._machine.eof:
                raise ValueError(f"{self.path!r} cannot be decompressed as {self.form}: it is cut off")

    def _next_member(self, source: bytes) -> bytes:
        """Return the input of the next member of a file of several; empty if there is none.

        Zeros after the last member are ignored.
        """
        if self.form == "GZIP":
            source = source.lstrip(b"\0")
            self._left = b""
            if source:
                self._machine = zlib.decompressobj(_WINDOW[self.form])
            return source
        raise ValueError(f"{self.path!r} cannot be decompressed as {self.form}: it has other bytes behind its end")
