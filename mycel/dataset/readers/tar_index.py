"""Index of the members of a tar file, made by one pass over its headers and kept on disk.

Formats are ustar, GNU (long names, large sizes) and pax (`path`, `size`), not compressed. The
checksum of each header is compared, and the archive must have its end mark, so that a damaged or
truncated file is an error with the offset where reading went wrong, and loses no sample silently.

The index is in the cache of compiled code, under the path, size and date of the file: a file that
was changed is indexed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from mycel._src.foundation.files import code_cache, fsspec_files

BLOCK = 512
# As in `foundation.files.code_cache`: a word and 16 digits, here of the version of the format.
_KIND = "tars-0000000000000003"
_MOST_EXTRA = 1 << 20
# A name up to the first dot after the last slash, and what follows it.
_SAMPLE = re.compile(r"((?:.*/)?[^./][^./]*)\.([^/]+)", re.DOTALL)
_NAMED = {b"1": "a hard link", b"2": "a symbolic link", b"S": "a sparse file", b"M": "a part of a file in volumes"}


class Damaged(ValueError):
    """An archive that cannot be read, and the offset where."""


Places = np.ndarray[Any, np.dtype[np.int64]]


class Index:
    """The samples of a tar file: files with one name before the first dot.

    * `keys`: their names, in order.
    * `endings`: what follows the first dot, over all samples.
    * `counts`: int64 [samples], how many files each has.
    * `members`: int64 [files, 3], in the order of samples and endings: the number of the ending,
      the offset and the size. So an index is as long as its files are many, however many endings
      there are.
    """

    def __init__(self, keys: list[str], endings: list[str], counts: Places, members: Places) -> None:
        self.keys, self.endings, self.counts, self.members = keys, endings, counts, members
        self.starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def __len__(self) -> int:
        return len(self.keys)

    def parts(self, number: int) -> dict[str, tuple[int, int]]:
        """Return the offsets and sizes of a sample's files, by their endings."""
        own = self.members[self.starts[number] : self.starts[number + 1]].tolist()
        return {self.endings[ending]: (offset, size) for ending, offset, size in own}

    def endings_of(self, number: int) -> list[str]:
        """Return the endings that a sample has."""
        return list(self.parts(number))

    def is_complete(self) -> bool:
        """Return whether every sample has every ending."""
        return bool((self.counts == len(self.endings)).all())

    def spans(self, wanted: Collection[str]) -> Places:
        """Return where the files of each sample with one of the endings `wanted` begin and end,
        int64 [samples, 2]; both are 0 where there is none, and all files count where no ending is
        wanted.
        """
        known = np.array([not wanted or ending in wanted for ending in self.endings], np.bool_)
        there = known[self.members[:, 0]]
        sample = np.repeat(np.arange(len(self)), self.counts)[there]
        begins, ends = self.members[there, 1], self.members[there, 1] + self.members[there, 2]
        found = np.zeros((len(self), 2), np.int64)
        found[sample, 0] = np.iinfo(np.int64).max
        np.minimum.at(found[:, 0], sample, begins)
        np.maximum.at(found[:, 1], sample, ends)
        return found

    def packed(self) -> bytes:
        """Return the index as bytes."""
        head = json.dumps([self.keys, self.endings]).encode()
        arrays = (self.counts.astype("<i8").tobytes(), self.members.astype("<i8").tobytes())
        return b"".join((len(head).to_bytes(8, "little"), head, *arrays))

    @staticmethod
    def unpacked(content: bytes) -> Index:
        """Return the index that `packed` gave."""
        end = 8 + int.from_bytes(content[:8], "little")
        keys, endings = json.loads(content[8:end])
        numbers = np.frombuffer(content, "<i8", offset=end)
        return Index(keys, endings, numbers[: len(keys)], numbers[len(keys) :].reshape(-1, 3))


def stamp_of(facts: os.stat_result) -> list[Any]:
    """Return what changes when a file does: its size and date."""
    return [facts.st_size, facts.st_mtime_ns]


def stamp_at(path: str) -> list[Any]:
    """Return what changes when a file does, of this machine or not."""
    return list(fsspec_files.stamp(path)) if fsspec_files.is_remote(path) else stamp_of(os.stat(path))


def index_of(path: str) -> tuple[Index, list[Any]]:
    """Return the index of a tar file and the stamp of the file.

    Raises Damaged with the offset where the file is no sound archive.
    """
    with fsspec_files.opened(path) as handle:
        if fsspec_files.is_remote(path):
            stamp, place = stamp_at(path), path
        else:
            stamp, place = stamp_of(os.fstat(handle.fileno())), os.path.realpath(path)
        digest = hashlib.sha256(json.dumps([place, *stamp]).encode()).hexdigest()
        kept = code_cache.read(_KIND, digest) if code_cache.is_on() else None
        if kept is not None:
            return Index.unpacked(kept), stamp
        index = _grouped(_members(handle, stamp[0]))
    if code_cache.is_on():
        code_cache.write(_KIND, digest, index.packed())
    return index, stamp


def _grouped(members: Iterable[tuple[str, int, int]]) -> Index:
    keys: list[str] = []
    samples: list[dict[int, tuple[int, int]]] = []
    numbers: dict[str, int] = {}
    for name, offset, size in members:
        found = _SAMPLE.fullmatch(name)
        # As in WebDataset, __name__ is a note of who wrote the archive.
        if found is None or os.path.basename(name).startswith("__"):
            continue
        key, ending = found[1], found[2].lower()
        if not keys or keys[-1] != key:
            keys.append(key)
            samples.append({})
        number = numbers.setdefault(ending, len(numbers))
        if number in samples[-1]:
            raise Damaged(f"at offset {offset}: sample {key!r} has {ending!r} twice")
        samples[-1][number] = (offset, size)
    rows = [(number, *place) for parts in samples for number, place in sorted(parts.items())]
    counts = np.array([len(parts) for parts in samples], np.int64)
    return Index(keys, list(numbers), counts, np.array(rows, np.int64).reshape(-1, 3))


def _members(handle: Any, length: int) -> Iterator[tuple[str, int, int]]:
    """Yield the name, offset and size of each file in an archive of `length` bytes."""
    offset = 0
    extra: dict[str, str] = {}
    while True:
        handle.seek(offset)
        header = handle.read(BLOCK)
        if offset == 0 and header[:2] in (b"\x1f\x8b", b"BZ", b"\xfd7") or header[:4] == b"\x28\xb5\x2f\xfd":
            raise Damaged("at offset 0: it is compressed; rows are read by number, so uncompress it first")
        if len(header) < BLOCK:
            cut = "it is truncated" if offset else "it is truncated, or no tar file"
            raise Damaged(f"at offset {offset}: it ends without its end mark, so {cut}")
        if not any(header):
            _check_end(handle, offset, length)
            return
        _check_header(header, offset)
        kind = header[156:157]
        size = int(extra.pop("size")) if "size" in extra else _number(header[124:136], offset)
        begin = offset + BLOCK
        if begin + size > length:
            raise Damaged(f"at offset {offset}: a member of {size} bytes goes beyond the end, at {length}: truncated")
        if kind in (b"L", b"x", b"g", b"K"):
            if size > _MOST_EXTRA:
                raise Damaged(f"at offset {offset}: a name or its attributes have {size} bytes")
            content = handle.read(size)
            if kind == b"L":
                extra["path"] = _text(content.rstrip(b"\0"), begin)
            elif kind == b"x":
                extra.update(_attributes(content, begin))
        else:
            name = extra.get("path") or _name(header, offset)
            extra = {}
            if kind in _NAMED:
                raise Damaged(
                    f"at offset {offset}: {name!r} is {_NAMED[kind]}, which is not read; store the file itself"
                )
            if kind in (b"0", b"\0", b"7") and not name.endswith("/"):
                yield name, begin, size
        offset = begin + -(-size // BLOCK) * BLOCK


def _check_end(handle: Any, offset: int, length: int) -> None:
    at = offset + BLOCK
    while at < length:
        rest = handle.read(1 << 20)
        if any(rest):
            more = at + next(place for place, byte in enumerate(rest) if byte)
            raise Damaged(
                f"at offset {more}: more follows after the end mark at {offset}; archives cannot be joined so"
            )
        at += len(rest)
        if not rest:
            return


def _check_header(header: bytes, offset: int) -> None:
    expected = _number(header[148:156], offset)
    if sum(header) - sum(header[148:156]) + 8 * 32 != expected:
        raise Damaged(f"at offset {offset}: the checksum of the header is wrong")


def _number(field: bytes, offset: int) -> int:
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    text = field.strip(b" \0")
    if not re.fullmatch(rb"[0-7]*", text):
        raise Damaged(f"at offset {offset}: {field!r} is no number, so there is no header of a member")
    return int(text or b"0", 8)


def _text(content: bytes, offset: int) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged(f"at offset {offset}: the name {content[:80]!r} is no UTF-8") from error


def _name(header: bytes, offset: int) -> str:
    name = header[:100].split(b"\0", 1)[0]
    prefix = header[345:500].split(b"\0", 1)[0] if header[257:263] == b"ustar\0" else b""
    return _text(prefix + b"/" + name if prefix else name, offset)


def _attributes(content: bytes, offset: int) -> dict[str, str]:
    """Return the pax attributes that say where a file is: its `path` and `size`."""
    found: dict[str, str] = {}
    at = 0
    while at < len(content):
        head = re.compile(rb"(\d{1,7}) ").match(content, at)
        end = at + int(head[1]) if head else 0
        if head is None or not head.end() < end <= len(content) or content[end - 1 : end] != b"\n":
            raise Damaged(f"at offset {offset + at}: {content[at : at + 40]!r} is no attribute of a member")
        key, _, value = content[head.end() : end - 1].partition(b"=")
        if key == b"path" or key == b"size":
            found[key.decode()] = _text(value, offset + at)
        if key.startswith(b"GNU.sparse"):
            raise Damaged(f"at offset {offset + at}: a sparse file, which is not read; store the file itself")
        at = end
    if not re.fullmatch(r"\d{1,18}", found.get("size", "0")):
        raise Damaged(f"at offset {offset}: a member has size {found['size']!r}")
    return found
