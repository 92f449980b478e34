"""Loops over the bytes of TFRecord files, as routines: where records lie, and features in them.

They know the form in which writers put `Example` messages: one `Features`, whose entries are a name
and a feature, whose list is packed. Whatever differs from that by a byte is left to the general
parser, which also says what is wrong with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on, routine
from mycel._src.engines.routines.routine_language import Bytes, Int, Ints, Longs, i32, i64

__all__ = ["find_records", "parse_rows"]

_NUMBERS, _FLOATS, _TEXTS = 3, 2, 1
Array = np.ndarray[Any, np.dtype[Any]]
Column = Array | list[Array]


@routine
def _records(content: Bytes, total: Int, first: Int, table: Ints, most: Int, spans: Longs, state: Longs) -> None:
    at, count, good = first, 0, 1
    while good == 1 and count < most and at + 16 <= total:
        check = i32(-1)
        for k in range(8):
            check = table[(check ^ content[at + k]) & 255] ^ ((check >> 8) & 16777215)
        check = check ^ i32(-1)
        masked = (((check >> 15) & 131071) | (check << 17)) + i32(-1568477480)
        found = content[at + 8] | (content[at + 9] << 8) | (content[at + 10] << 16) | (content[at + 11] << 24)
        size = i64(0)
        for j in range(8):
            size = size | (i64(content[at + j]) << (8 * j))
        if masked == found and size >= 0 and size <= total - at - 16:
            spans[2 * count] = at + 12
            spans[2 * count + 1] = size
            count += 1
            at += 16 + size
        else:
            good = 0
    state[0] = at
    state[1] = count
    state[2] = good


def find_records(content: np.ndarray[Any, Any], table: list[int]) -> tuple[list[tuple[int, int]], int]:
    """Return where the contents of records start and their lengths, and where the records end that
    have the form of records.

    `content` is a file, uint8 [N]; `table` has the remainders of bytes for the checksum.
    """
    found: list[tuple[int, int]] = []
    at, good = 0, True
    remainders = np.array(table, np.uint32).view(np.int32)
    spans, state = np.empty((4096, 2), np.int64), np.empty(3, np.int64)
    while good and at < content.size:
        _records(content, content.size, at, remainders, len(spans), spans, state)
        at, good = int(state[0]), bool(state[2]) and state[1] > 0
        found += list(map(tuple, spans[: state[1]].tolist()))
    return found, at


def _length(content: Bytes, at: Int, end: Int) -> Int:
    """Return a length of up to four groups of bits and where it ends; -1 where it is none."""
    size, after, shift, more = i64(0), at, 0, 1
    while more == 1 and after < end and shift < 28:
        byte = i64(content[after])
        size = size | ((byte & 127) << shift)
        shift += 7
        after += 1
        if byte < 128:
            more = 0
    bad = more == 1 or size > end - after
    return (-1 if bad else size), after


def _feature(content: Bytes, at: Int, end: Int) -> Any:
    """Return where an entry ends, the place and length of its name, its kind, and the place and
    length of its values; an entry of another form ends at -1.
    """
    last, name, letters, tag, place, room = i64(-1), i64(0), i64(0), i64(0), i64(0), i64(0)
    if content[at] == 10 and at + 1 < end:
        whole, after = _length(content, at + 1, end)
        if whole > 2 and content[after] == 10:
            stop = after + whole
            letters, name = _length(content, after + 1, stop)
            feature = name + letters
            if letters >= 0 and feature + 2 < stop and content[feature] == 18:
                inner, kind = _length(content, feature + 1, stop)
                if inner > 2 and kind + inner == stop:
                    tag = i64(content[kind]) >> 3
                    listed, start = _length(content, kind + 1, stop)
                    if (content[kind] & 7) == 2 and listed > 1 and start + listed == stop and content[start] == 10:
                        place, room = start, listed
                        if tag == 1:
                            last = stop
                        elif tag == 2 or tag == 3:
                            room, place = _length(content, start + 1, stop)
                            if room > 0 and place + room == stop and (tag == 3 or (room & 3) == 0):
                                last = stop
    return last, name, letters, tag, place, room


@routine
def _index(
    content: Bytes, starts: Longs, rows: Int, names: Bytes, ends: Longs, wanted: Int, entries: Longs, state: Longs
) -> None:
    good, row = 1, 0
    while good == 1 and row < rows:
        at, end = starts[row], starts[row + 1]
        for j in range(wanted):
            entries[(row * wanted + j) * 3] = 0
        good = 0
        if end - at > 2 and content[at] == 10:
            size, first = _length(content, at + 1, end)
            if size > 0 and first + size == end:
                good = 1
                at = first
        while good == 1 and at < end:
            last, name, letters, tag, place, room = _feature(content, at, end)
            if last < 0:
                good = 0
            else:
                for w in range(wanted):
                    if ends[w + 1] - ends[w] == letters:
                        same, k = 1, 0
                        while same == 1 and k < letters:
                            if names[ends[w] + k] != content[name + k]:
                                same = 0
                            k += 1
                        if same == 1:
                            into = (row * wanted + w) * 3
                            entries[into] = tag
                            entries[into + 1] = place
                            entries[into + 2] = room
                at = last
        row += 1
    state[0] = good


@routine
def _copied(content: Bytes, places: Longs, rows: Int, size: Int, result: Bytes) -> None:
    for row in range(rows):
        at = places[row]
        for i in range(size):
            result[row * size + i] = content[at + i]


@routine
def _numbers(
    content: Bytes, places: Longs, sizes: Longs, rows: Int, result: Longs, counts: Longs, state: Longs
) -> None:
    count, row, good = 0, 0, 1
    while good == 1 and row < rows:
        before, at = count, places[row]
        end = at + sizes[row]
        while good == 1 and at < end:
            value, shift, more = i64(0), 0, 1
            while more == 1 and at < end and shift < 63:
                byte = i64(content[at])
                value = value | ((byte & 127) << shift)
                shift += 7
                at += 1
                if byte < 128:
                    more = 0
            if more == 1 and at < end and shift == 63:
                byte = i64(content[at])
                if byte < 2:
                    value = value | (byte << 63)
                    at += 1
                    more = 0
            if more == 1:
                good = 0
            else:
                result[count] = value
                count += 1
        counts[row] = count - before
        row += 1
    state[0] = good


@routine
def _texts(content: Bytes, places: Longs, sizes: Longs, rows: Int, spans: Longs, state: Longs) -> None:
    good, row = 1, 0
    while good == 1 and row < rows:
        end = places[row] + sizes[row]
        size, first = _length(content, places[row] + 1, end)
        good = 0
        if size >= 0 and first + size == end:
            spans[2 * row] = first
            spans[2 * row + 1] = size
            good = 1
        row += 1
    state[0] = good


def parse_rows(contents: list[bytes], names: list[str]) -> list[Column] | None:
    """Return a column for each of some features of `Example` messages: what `parse_example` gives
    for each, stacked where all have as many values.

    Lists of bytes are uint8 here, and of one value. Returns None where a feature is missing, or one
    has more values or another form: the general parser is for these.
    """
    if not are_on() or not contents or not names:
        return None
    rows, wanted = len(contents), len(names)
    content = b"".join(contents)
    starts = np.cumsum([0, *map(len, contents)])
    letters = [name.encode() for name in names]
    entries, state = np.empty((rows, wanted, 3), np.int64), np.empty(1, np.int64)
    ends = np.cumsum([0, *map(len, letters)])
    _index(content, starts, rows, b"".join(letters), ends, wanted, entries, state)
    if not state[0]:
        return None
    columns = []
    for number in range(wanted):
        kinds, places, sizes = (np.ascontiguousarray(part) for part in entries[:, number].T)
        if not kinds[0] or (kinds != kinds[0]).any():
            return None
        column = _column(content, int(kinds[0]), places, sizes)
        if column is None:
            return None
        columns.append(column)
    return columns


def _column(content: bytes, kind: int, places: Array, sizes: Array) -> Column | None:
    """Return the values of one feature of all rows, which lie at `places` and take `sizes` bytes.

    `kind` is that of all of them.
    """
    rows, state = len(places), np.empty(1, np.int64)
    if kind == _NUMBERS:
        values, counts = np.empty(int(sizes.sum()), np.int64), np.empty(rows, np.int64)
        _numbers(content, places, sizes, rows, values, counts, state)
        if not state[0]:
            return None
        if (counts == counts[0]).all():
            together: Array = values[: rows * counts[0]].reshape(rows, -1).copy()
            return together
        return [part.copy() for part in np.split(values[: counts.sum()], np.cumsum(counts[:-1]))]
    if kind == _TEXTS:
        spans = np.empty((rows, 2), np.int64)
        _texts(content, places, sizes, rows, spans, state)
        if not state[0]:
            return None
        places, sizes = np.ascontiguousarray(spans[:, 0]), spans[:, 1]
    if (sizes == sizes[0]).all():
        size = int(sizes[0])
        joined = np.empty((rows, size), np.uint8)
        _copied(content, places, rows, size, joined)
        return joined.view("<f4").astype(np.float32, copy=False) if kind == _FLOATS else joined
    parts = [np.frombuffer(content, np.uint8, n, at).copy() for at, n in zip(places.tolist(), sizes.tolist())]
    return [part.view("<f4").astype(np.float32, copy=False) for part in parts] if kind == _FLOATS else parts
