"""Coalesced reads: many rows of a file by one read of a large range of bytes.

A row is a stretch of bytes in a file. Each could be read alone, but disks and stores give one large
range sooner than many small ones. A piece is consecutive rows of one file, of about `_PIECE` bytes,
and is read as a whole when the first of its rows is asked for. Pieces are the groups that orders
such as Shuffle.PARTIAL keep together (`sharded_files.py`), so each is read about once in an epoch,
whatever the size of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation.files import fsspec_files
from mycel.dataset.readers.read_cache import Held

HELD = 1 << 28
_PIECE = 1 << 22

Spans = np.ndarray[Any, np.dtype[np.int64]]


class Pieces:
    """The pieces of some files.

    * `files`: the paths.
    * `spans`: for each file where its rows begin and end, int64 [rows, 2], in increasing order.
    * `check`: raises an error where a file, by its number, has changed.
    * `held`: how many bytes of pieces stay in memory, about.
    """

    def __init__(
        self, files: Sequence[str], spans: Sequence[Spans], check: Callable[[int], None], held: int = HELD
    ) -> None:
        self.files, self.check = list(files), check
        size = max(1, min(_PIECE, held // 16))
        parts, sizes = [], []
        for number, rows in enumerate(spans):
            if not len(rows):
                continue
            # A new piece begins with the row in which the last one would become too large.
            cuts = np.flatnonzero(np.diff((rows[:, 0] - rows[0, 0]) // size)) + 1
            begins, ends = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(rows)]])
            places = [np.full(len(begins), number), rows[begins, 0], np.maximum.reduceat(rows[:, 1], begins)]
            parts.append(np.stack(places, 1))
            sizes.append(ends - begins)
        self.places = np.concatenate(parts) if parts else np.zeros((0, 3), np.int64)
        self.groups = np.concatenate(sizes) if sizes else np.zeros(0, np.int64)
        self.ends = np.cumsum(self.groups)
        self.held = Held(self._read, held)
        total = int((self.places[:, 2] - self.places[:, 1]).sum())
        rows_in_all = int(self.ends[-1]) if len(self.ends) else 0
        # Half of what can be held, as the next rows are read while these are in use.
        self.mixed = rows_in_all * held // max(1, 2 * total)

    def _read(self, number: int) -> tuple[memoryview, int]:
        file, start, end = self.places[number].tolist()
        self.check(file)
        path = self.files[file]
        if fsspec_files.is_remote(path):
            content = fsspec_files.read(path, start, end - start)
        else:
            with open(path, "rb", buffering=0) as handle:
                handle.seek(start)
                content = handle.read(end - start)
                while len(content) < end - start and (more := handle.read(end - start - len(content))):
                    content += more
        if len(content) < end - start:
            raise ValueError(f"{path!r} has become shorter: it ends at byte {start + len(content)}, before {end}")
        return memoryview(content), len(content)

    def content(self, row: int, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end` of the file of a row, which are the row's."""
        piece = int(np.searchsorted(self.ends, row, "right"))
        begin = int(self.places[piece, 1])
        return bytes(self.held.part(piece)[start - begin : end - begin])
