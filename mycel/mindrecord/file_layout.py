"""The layout of one record file.

A file is a header and pages. The header's first eight bytes, little-endian, are the length of the
JSON text that follows; the header fills `header_size` bytes, and page n starts at `header_size + n
* page_size`. A *blob page* holds the blobs of consecutive rows, a *raw page* their plain fields,
  each row after its length in eight bytes, little-endian. The rows of one blob page are a *row
  group*; the plain fields of a group lie together, in one raw page, which may hold several groups:
  when a growing group no longer fits behind the others, it moves to a page of its own, and the
  place that it leaves is not used again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from mycel.mindrecord.errors import MRMInvalidHeaderSizeError, MRMOpenError, MRMWriteDatasetError, failure
from mycel.mindrecord.row_encoding import Schema, blob_fields

MIN_HEADER_SIZE, MAX_HEADER_SIZE = 1 << 14, 1 << 27
MIN_PAGE_SIZE, MAX_PAGE_SIZE = 1 << 15, 1 << 28
BLOB, RAW = "BLOB_DATA", "RAW_DATA"
MAX_SHARD_COUNT = 1000
VERSION = "3.0"
PLAIN_TYPES = ("int32", "int64", "float32", "float64", "string", "bytes")
ARRAY_TYPES = ("int32", "int64", "float32", "float64")
FIELD_NAME = re.compile(r"[0-9a-zA-Z_]+")


@dataclass
class Page:
    """One page of a file: its place, its content, and how many bytes it holds.

    A blob page has rows, a raw page groups (number and offset).
    """

    page_id: int
    page_type: str
    page_type_id: int
    start_row: int = 0
    end_row: int = 0
    groups: list[tuple[int, int]] = field(default_factory=list)
    size: int = 0

    def described(self, shard: int) -> dict[str, Any]:
        """Return the page in the form of the header."""
        return {
            "end_row_id": self.end_row,
            "page_id": self.page_id,
            "page_size": self.size,
            "page_type": self.page_type,
            "page_type_id": self.page_type_id,
            "row_group_ids": [{"id": number, "offset": offset} for number, offset in self.groups or [(0, 0)]],
            "shard_id": shard,
            "start_row_id": self.start_row,
        }


@dataclass
class Header:
    """All that a file states about itself."""

    schema: Schema
    blob_fields: list[str]
    description: str = ""
    index_fields: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    shard: int = 0
    header_size: int = 1 << 24
    page_size: int = 1 << 25
    saved: int = 0
    pages: list[Page] = field(default_factory=list)

    def pack(self) -> bytes:
        """Return the bytes at the start of the file.

        Raises MRMInvalidHeaderSizeError if they are more than `header_size`.
        """
        schema = {
            "blob_fields": self.blob_fields,
            "desc": self.description,
            "schema": {name: dict(sorted(self.schema[name].items())) for name in sorted(self.schema)},
        }
        text = json.dumps(
            {
                "header_size": self.header_size,
                "index_fields": [{"index_field": name, "schema_id": 0} for name in self.index_fields] or None,
                "page": [page.described(self.shard) for page in self.pages] or None,
                "page_size": self.page_size,
                "compression_size": max(0, self.saved),
                "schema": [schema],
                "shard_addresses": self.addresses,
                "shard_id": self.shard,
                "statistics": None,
                "version": VERSION,
            },
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode()
        if len(text) + 8 > self.header_size:
            raise failure(
                MRMInvalidHeaderSizeError,
                f"The header takes {len(text) + 8} bytes, more than the {self.header_size} that it has; call "
                "set_header_size",
            )
        return len(text).to_bytes(8, "little") + text

    @staticmethod
    def read(path: str) -> Header:
        """Read the header of a file; raise MRMOpenError for other kinds of files."""
        size = os.path.getsize(path)
        with open(path, "rb") as handle:
            length = int.from_bytes(handle.read(8), "little")
            if size < 8 or not 0 < length <= min(size - 8, MAX_HEADER_SIZE):
                raise failure(MRMOpenError, f"{path!r} is not a record file, or is cut off: it has {size} bytes")
            text = handle.read(length)
        try:
            header = _parsed(json.loads(text))
            header.check()
            return header
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
            raise failure(MRMOpenError, f"{path!r} is not a record file: its header is damaged ({error!r})") from error

    def check(self) -> None:
        """Raise ValueError where the header describes a file that cannot have been written."""
        for name, entry in self.schema.items():
            if not isinstance(entry, dict) or entry.get("type") not in (
                ARRAY_TYPES if "shape" in entry else PLAIN_TYPES
            ):
                raise ValueError(f"field {name!r} is {entry!r:.80}")
            shape = entry.get("shape", [])
            if not isinstance(shape, list) or any(type(n) is not int or not -1 <= n < 1 << 40 for n in shape):
                raise ValueError(f"field {name!r} has shape {shape!r:.80}")
        if self.blob_fields != blob_fields(self.schema):
            raise ValueError(f"the fields of bytes and arrays are {self.blob_fields!r:.200}")
        if not 0 < self.header_size <= 1 << 40 or not 0 < self.page_size <= 1 << 40:
            raise ValueError(f"headers of {self.header_size} bytes and pages of {self.page_size}")
        if len(set(self.addresses)) != len(self.addresses) or len(self.addresses) > MAX_SHARD_COUNT:
            raise ValueError(f"{len(self.addresses)} files, {len(set(self.addresses))} of them different")


def _parsed(found: dict[str, Any]) -> Header:
    if found["version"] != VERSION:
        raise ValueError(f"version {found['version']!r}, where this reader knows {VERSION!r}")
    schema = found["schema"][0]
    odd = [name for name in schema["schema"] if not FIELD_NAME.fullmatch(name)]
    if odd:
        raise ValueError(f"fields called {odd}")
    pages = [
        Page(
            int(page["page_id"]),
            str(page["page_type"]),
            int(page["page_type_id"]),
            int(page["start_row_id"]),
            int(page["end_row_id"]),
            [(int(group["id"]), int(group["offset"])) for group in page["row_group_ids"] or ()]
            if page["page_type"] == RAW
            else [],
            int(page["page_size"]),
        )
        for page in found["page"] or ()
    ]
    return Header(
        schema=dict(schema["schema"]),
        blob_fields=[str(name) for name in schema["blob_fields"] or ()],
        description=str(schema["desc"]),
        index_fields=[_known(schema["schema"], entry["index_field"]) for entry in found["index_fields"] or ()],
        addresses=[str(name) for name in found["shard_addresses"]],
        shard=int(found["shard_id"]),
        header_size=int(found["header_size"]),
        page_size=int(found["page_size"]),
        saved=int(found.get("compression_size") or 0),
        pages=pages,
    )


def _known(schema: Schema, name: str) -> str:
    if name not in schema:
        raise ValueError(f"index field {name!r}, which is not in the schema")
    return name


@dataclass
class Place:
    """The place of a row: its raw page and bytes, its group, and its blob page and bytes."""

    raw_page: int
    raw: tuple[int, int]
    group: int
    blob_page: int
    blob: tuple[int, int]


class ShardWriter:
    """A writer of rows into the pages of one open file."""

    def __init__(self, handle: IO[bytes], header: Header) -> None:
        self.handle = handle
        self.header = header
        self._blob = _last(header.pages, BLOB)
        self._raw = _last(header.pages, RAW)

    def append(self, plain: Sequence[bytes], blobs: Sequence[bytes]) -> None:
        """Write rows, given as their packed maps and blobs.

        Raises MRMWriteDatasetError where one is larger than a page.
        """
        for name, contents in (("plain fields", plain), ("bytes and arrays", blobs)):
            largest = max(map(len, contents), default=0) + 8
            if largest > self.header.page_size:
                raise failure(
                    MRMWriteDatasetError,
                    f"The {name} of a row take {largest} bytes, more than a page of {self.header.page_size}; call "
                    "set_page_size",
                )
        plain = [len(content).to_bytes(8, "little") + content for content in plain]
        blobs = [len(content).to_bytes(8, "little") + content for content in blobs]
        if not plain:
            return
        start, cuts = self._cuts(plain, blobs)
        self._write_blobs(blobs, start, cuts)
        self._make_room(sum(map(len, plain[:start])))
        self._write_plain(plain, start, cuts)

    def finish(self) -> None:
        """Write the header."""
        self.handle.seek(0)
        self.handle.write(self.header.pack())

    def _cuts(self, plain: Sequence[bytes], blobs: Sequence[bytes]) -> tuple[int, list[tuple[int, int]]]:
        """Return how many rows go to the present group, and the ranges of rows of new groups."""
        limit = self.header.page_size
        blob_size = self._blob.size if self._blob else 0
        raw_size = self._raw.size - self._raw.groups[-1][1] if self._raw and self._raw.groups else 0
        bounds = []
        for row, (raw, blob) in enumerate(zip(plain, blobs)):
            if not blob_size or blob_size + len(blob) > limit or raw_size + len(raw) > limit:
                bounds.append(row)
                blob_size = raw_size = 0
            blob_size += len(blob)
            raw_size += len(raw)
        bounds.append(len(plain))
        return bounds[0], list(zip(bounds, bounds[1:]))

    def _put(self, page: Page, contents: Sequence[bytes]) -> None:
        self.handle.seek(self.header.header_size + page.page_id * self.header.page_size + page.size)
        self.handle.write(b"".join(contents))
        page.size += sum(map(len, contents))

    def _new_page(self, kind: str, type_id: int, row: int = 0) -> Page:
        page = Page(len(self.header.pages), kind, type_id, row, row)
        self.header.pages.append(page)
        return page

    def _write_blobs(self, blobs: Sequence[bytes], start: int, cuts: list[tuple[int, int]]) -> None:
        if start and self._blob:
            self._put(self._blob, blobs[:start])
            self._blob.end_row += start
        for low, high in cuts:
            before = self._blob
            self._blob = self._new_page(BLOB, before.page_type_id + 1 if before else 0, before.end_row if before else 0)
            self._put(self._blob, blobs[low:high])
            self._blob.end_row += high - low

    def _make_room(self, extra: int) -> None:
        """Move the last group to a page of its own if `extra` bytes more of it would not fit."""
        page = self._raw
        if not page or not page.groups or not extra or page.size + extra <= self.header.page_size:
            return
        number, offset = page.groups.pop()
        self.handle.seek(self.header.header_size + page.page_id * self.header.page_size + offset)
        content = self.handle.read(page.size - offset)
        page.size = offset
        self._raw = self._new_page(RAW, page.page_id + 1)
        self._raw.groups.append((number, 0))
        self._put(self._raw, [content])

    def _write_plain(self, plain: Sequence[bytes], start: int, cuts: list[tuple[int, int]]) -> None:
        if start and self._raw:
            self._put(self._raw, plain[:start])
        for low, high in cuts:
            size = sum(map(len, plain[low:high]))
            before = self._raw
            last = before.groups[-1][0] if before and before.groups else -1
            if before is None or before.size + size > self.header.page_size:
                # The number follows the page's number here, not its kind's.
                self._raw = self._new_page(RAW, before.page_id + 1 if before else 0)
            assert self._raw is not None
            self._raw.groups.append((last + 1, self._raw.size))
            self._put(self._raw, plain[low:high])

    def places(self) -> list[Place]:
        """Return the place of every row, found by walking through the pages."""
        blob_pages = [page for page in self.header.pages if page.page_type == BLOB]
        found: list[Place] = []
        for page in self.header.pages:
            for position, (group, offset) in enumerate(page.groups):
                if page.page_type != RAW:
                    continue
                end = page.groups[position + 1][1] if position + 1 < len(page.groups) else page.size
                blob = blob_pages[group]
                plain_spans = self._spans(page, offset, end)
                blob_spans = self._spans(blob, 0, blob.size)
                found += [
                    Place(page.page_id, raw, group, blob.page_id, span) for raw, span in zip(plain_spans, blob_spans)
                ]
        return sorted(found, key=lambda place: (place.group, place.raw))

    def _spans(self, page: Page, start: int, end: int) -> list[tuple[int, int]]:
        base = self.header.header_size + page.page_id * self.header.page_size
        spans = []
        while start < end:
            self.handle.seek(base + start)
            size = 8 + int.from_bytes(self.handle.read(8), "little")
            spans.append((start, start + size))
            start += size
        return spans


def _last(pages: Sequence[Page], kind: str) -> Page | None:
    found = [page for page in pages if page.page_type == kind]
    return found[-1] if found else None
