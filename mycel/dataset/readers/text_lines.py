"""Lines of text files: all at once, or one by one from files larger than memory."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO

import numpy as np

from mycel._src.foundation.files import fsspec_files
from mycel.dataset.readers.coalesced_reads import Pieces, Spans

_PIECE = 1 << 22


@contextmanager
def read_text(operation: str, path: str, newline: str) -> Iterator[IO[str]]:
    """Give a file as UTF-8 text, with the `newline` of `open`.

    Raises ValueError in the name of `operation` where a store does not give it.
    """
    if not fsspec_files.is_remote(path):
        with open(path, encoding="utf-8", newline=newline) as file:
            yield file
        return
    try:
        with fsspec_files.opened(path) as content, io.TextIOWrapper(content, encoding="utf-8", newline=newline) as file:
            yield file
    except OSError as error:
        raise ValueError(f"{operation}: {error}") from error


class Lines:
    """The lines of files that are not empty, or other stretches of text, read by number in pieces.

    * `operation`: what messages call the source.
    * `files`: the paths.
    * `spans_of`: says where the lines of a file begin and end.
    """

    def __init__(self, operation: str, files: Sequence[str], spans_of: Callable[[str], Spans] | None = None) -> None:
        self.operation, self.files = operation, list(files)
        self._stamps = [_stamp(path) for path in files]
        spans = [(_spans if spans_of is None else spans_of)(path) for path in files]
        self.sizes = [len(rows) for rows in spans]
        self.pieces = Pieces(files, spans, self._check)
        self._spans = np.concatenate(spans)

    def _check(self, file: int) -> None:
        if _stamp(self.files[file]) != self._stamps[file]:
            raise ValueError(
                f"{self.operation}: {self.files[file]!r} was changed after this dataset was made; make it again"
            )

    def line(self, row: int) -> str:
        """Return a line by its number, over all files."""
        start, end = self._spans[row].tolist()
        content = self.pieces.content(row, start, end)
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            file = int(np.searchsorted(np.cumsum(self.sizes), row, "right"))
            raise ValueError(
                f"{self.operation}: {self.files[file]!r} is not UTF-8, in the line at byte {start}: {error}"
            ) from error


def _stamp(path: str) -> tuple[int, str]:
    if fsspec_files.is_remote(path):
        return fsspec_files.stamp(path)
    facts = os.stat(path)
    return facts.st_size, str(facts.st_mtime_ns)


def _spans(path: str) -> Spans:
    """Return where the lines of a file that are not empty begin and end."""
    ends, at = [np.zeros(0, np.int64)], 0
    with fsspec_files.opened(path) as handle:
        while piece := handle.read(_PIECE):
            ends.append(np.flatnonzero(np.frombuffer(piece, np.uint8) == 10) + at)
            at += len(piece)
    last = np.concatenate([*ends, [at]])
    first = np.concatenate([[0], last[:-1] + 1])
    rows: Spans = np.stack([first, last], 1).astype(np.int64)
    return rows[last > first]
