"""Parsing of CSV files (RFC 4180): all rows at once, or an index of where each lies.

Python's `csv` decides where a row ends, as fields in quotes may have line breaks in them: it is
given the lines of a file one by one, and the bytes that it took for a row are the row's.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from mycel.dataset.readers.coalesced_reads import Spans
from mycel.dataset.readers.text_lines import Lines, read_text
from mycel.dataset.rows.column_blocks import Column

# As many rows are checked at once.
_SOME = 4096


class Form:
    """The form of some files: the `delimiter`, and the `names` of the columns, which are in the
    first row of each file where None is given.
    """

    def __init__(self, operation: str, delimiter: str, names: Sequence[str] | None) -> None:
        self.operation, self.delimiter = operation, delimiter
        self.names = None if names is None else list(names)
        self._has_heads = names is None

    def rows(self, path: str) -> Iterator[tuple[list[str], int, int]]:
        """Yield the rows of a file, without those of no field, and where each begins and ends.

        Raises ValueError for what is no CSV in UTF-8, and for other columns than in the files
        before.
        """
        start = taken = 0

        def lines(handle: Any) -> Iterator[str]:
            nonlocal taken
            for line in handle:
                taken += len(line.encode())
                yield line

        try:
            with read_text(self.operation, path, "") as handle:
                begins = self._has_heads
                for row in csv.reader(lines(handle), delimiter=self.delimiter, strict=True):
                    if row and begins:
                        self._head(path, row)
                    elif row:
                        yield row, start, taken
                    start, begins = taken, begins and not row
        except (UnicodeDecodeError, csv.Error) as error:
            more = "; csv.field_size_limit of Python sets another" if "field limit" in str(error) else ""
            place = "" if isinstance(error, UnicodeDecodeError) else f", at byte {start}"
            raise ValueError(f"{self.operation}: {path!r} cannot be read{place}: {error}{more}") from error
        if begins:
            raise ValueError(f"{self.operation}: {path!r} has no line of column names")

    def _head(self, path: str, head: list[str]) -> None:
        if self.names is not None and head != self.names:
            raise ValueError(f"{self.operation}: {path!r} has the columns {head}, another file has {self.names}")
        self.names = head

    def row(self, text: str) -> list[str]:
        """Return the fields of one row."""
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter, strict=True))


class Rows:
    """The rows of files, read by number in pieces.

    * `files`, `form`: the paths, and their form.
    * `check`: raises ValueError for rows that are not as they should be; it is told their file, and
      the number of the first in it.
    * `convert`: makes columns of rows; it is told where a row lies, by its place among them.
    """

    def __init__(
        self,
        files: Sequence[str],
        form: Form,
        check: Callable[[str, int, list[list[str]]], list[Column]],
        convert: Callable[[list[list[str]], Callable[[int], str]], list[Column]],
    ) -> None:
        self._form, self._check, self._convert = form, check, convert
        self.lines = Lines(form.operation, files, self._spans)

    def _spans(self, path: str) -> Spans:
        spans: list[np.ndarray[Any, Any]] = [np.zeros((0, 2), np.int64)]
        first, rows = 0, self._form.rows(path)
        while some := list(islice(rows, _SOME)):
            self._check(path, first, [row for row, _, _ in some])
            spans.append(np.array([place for _, *place in some], np.int64))
            first += len(some)
        return np.concatenate(spans)

    def columns(self, numbers: Sequence[int]) -> list[Column]:
        """Return the columns of some rows, which are all in their files."""
        found = [self._form.row(self.lines.line(number)) for number in numbers]
        return self._convert(found, lambda place: f"row {numbers[place]}")
