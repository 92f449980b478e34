"""Decompressed size of a row group of a Parquet file, known before decompressing it.

The footer of a file says how large its pages are, but whoever wrote it may say anything. So the
headers of the pages are read, in the compact form of Thrift; the pages are not. A column takes its
pages as they are when decompressed, or its values as Arrow holds them, as runs and dictionaries
make many values of a few bytes. Text and bytes from a dictionary may all be as long as it is, so
where that could be too much the column stays one in memory.

Source: the format's `parquet.thrift` (Apache Parquet 2.10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mycel._src.foundation.files.decompression import limit
from mycel.dataset.readers.columnar.parquet_footer import walked

# Headers have statistics, which are some values long.
_PIECE, _MOST_HEADER = 1 << 10, 1 << 24
_DICTIONARY, _INDEX = 2, 1
_BY_DICTIONARY = (2, 8)
_DEEPEST = 16


class Refused(ValueError):
    """Columns that take too much memory, or headers that are damaged."""


class _Damaged(Exception):
    """What is no header of a page."""


class _Short(_Damaged):
    """What is the beginning of one."""


class _Compact:
    """A reader of structures in Thrift's compact protocol: dictionaries of integers by field."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def _byte(self) -> int:
        if self.at >= len(self.content):
            raise _Short
        self.at += 1
        return self.content[self.at - 1]

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7
            if shift > 63:
                raise _Damaged

    def _integer(self) -> int:
        found = self._varint()
        return found >> 1 ^ -(found & 1)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 7:
            return self._passed(8)
        if kind == 8:
            return self._passed(self._varint())
        if kind == 12:
            return self.structure(depth + 1)
        # Headers of pages have neither lists nor maps.
        raise _Damaged

    def _passed(self, size: int) -> None:
        self.at += size
        if self.at > len(self.content):
            raise _Short

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """Read a structure."""
        if depth > _DEEPEST:
            raise _Damaged
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._integer()
            found[field] = self._value(head & 15, depth)
        return found


class _Tables(_Compact):
    """A reader of structures with lists and bytes in them, as the footer has, in one loop: there
    are many. What reads beyond the end is an IndexError.
    """

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """Read a structure."""
        if depth > _DEEPEST:
            raise _Damaged
        content, found, field = self.content, dict[int, Any](), 0
        while head := content[self.at]:
            self.at += 1
            field = field + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            if 4 <= kind <= 6:
                number = content[self.at]
                if number < 128:
                    self.at += 1
                else:
                    number = self._varint()
                found[field] = number >> 1 ^ -(number & 1)
            elif kind == 8:
                found[field] = self._bytes()
            elif kind == 12:
                found[field] = self.structure(depth + 1)
            elif kind in (9, 10):
                found[field] = self._list(depth)
            else:
                found[field] = self._value(kind, depth)
        self.at += 1
        return found

    def _bytes(self) -> bytes:
        size = self._varint()
        self._passed(size)
        return self.content[self.at - size : self.at]

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        count, kind = head >> 4, head & 15
        if count == 15:
            count = self._varint()
        # Each takes a byte at least, and lists within lists are as deep as structures.
        if count > len(self.content) - self.at or depth > _DEEPEST:
            raise _Damaged
        if kind == 8:
            return [self._bytes() for _ in range(count)]
        if kind == 12:
            return [self.structure(depth + 1) for _ in range(count)]
        if kind in (1, 2):
            return [self._byte() == 1 for _ in range(count)]
        if kind in (9, 10):
            return [self._list(depth + 1) for _ in range(count)]
        return [self._value(kind, depth) for _ in range(count)]


class Chunk(NamedTuple):
    """A column of a row group, by the names that pyarrow has for what the footer says of it."""

    physical_type: str
    path_in_schema: str
    total_uncompressed_size: int
    total_compressed_size: int
    data_page_offset: int
    dictionary_page_offset: int | None


_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")


class Chunks:
    """The columns of each row group."""

    def __init__(self, groups: list[list[Chunk]]) -> None:
        self.groups = groups

    def of(self, number: int) -> list[Chunk]:
        """Return the columns of a row group."""
        return self.groups[number]

    def unpacked(self, names: Sequence[str]) -> list[int]:
        """Return how many bytes columns take in each row group, by what the footer says.

        `names` are those of columns, or of the outermost fields that they are in.
        """
        wanted = set(names)
        return [
            sum(c.total_uncompressed_size for c in chunks if c.path_in_schema.partition(".")[0] in wanted)
            for chunks in self.groups
        ]


class _Numbers(Chunks):
    """The same as numbers: `numbers` of `walked`, and the paths that all groups have."""

    def __init__(self, numbers: Any, paths: list[str]) -> None:
        self.numbers, self.paths = numbers, paths

    def of(self, number: int) -> list[Chunk]:
        return [
            Chunk(_TYPES[kind], path, unpacked, packed, data, dictionary or None)
            for path, (kind, unpacked, packed, data, dictionary, _, _) in zip(self.paths, self.numbers[number].tolist())
        ]

    def unpacked(self, names: Sequence[str]) -> list[int]:
        wanted = set(names)
        places = [place for place, path in enumerate(self.paths) if path.partition(".")[0] in wanted]
        # As what the footer says may be any number.
        return [sum(row) for row in self.numbers[:, places, 1].tolist()]


def _counted(footer: bytes, groups: int, columns: int) -> Chunks | None:
    """Return the columns of row groups by one routine; None for footers that it leaves."""
    numbers = walked(footer, groups, columns)
    if numbers is None or numbers[:, :, 0].min() < 0 or numbers[:, :, 0].max() >= len(_TYPES):
        return None
    paths = []
    for begin in numbers[0, :, 5].tolist():
        reader = _Tables(footer)
        reader.at = begin
        paths.append(b".".join(reader._list(0)).decode())
    return _Numbers(numbers, paths)


def chunks_of(file: Any, size: int, groups: int, columns: int) -> Chunks:
    """Return the columns of each row group, from the footer of a file.

    pyarrow has them too, but ends the process where statistics of a column are damaged.

    * `file`, `size`: the open file, and its bytes.
    * `groups`, `columns`: how many row groups and columns pyarrow has found.

    Raises Refused for a damaged footer.
    """
    try:
        file.seek(max(0, size - 8))
        length = int.from_bytes(file.read(4), "little")
        if length > size - 8:
            raise _Damaged
        file.seek(size - 8 - length)
        content = file.read(length)
        counted = _counted(content, groups, columns)
        if counted is not None:
            return counted
        footer = _Tables(content).structure()
        found = [[_chunk(column[3]) for column in group.get(1, [])] for group in footer.get(4, [])]
    except (_Damaged, KeyError, TypeError, AttributeError, IndexError, UnicodeDecodeError):
        raise Refused("its footer is damaged") from None
    if len(found) != groups:
        raise Refused(f"its footer is damaged: it has {len(found)} row groups, where {groups} were found")
    return Chunks(found)


def _chunk(about: dict[int, Any]) -> Chunk:
    path = b".".join(about[3]).decode()
    kind, unpacked, packed, data = (about[field] for field in (1, 6, 7, 9))
    if any(type(number) is not int for number in (kind, unpacked, packed, data, about.get(11, 0))) or kind < 0:
        raise _Damaged
    return Chunk(_TYPES[kind], path, unpacked, packed, data, about.get(11) or None)


class _Page(NamedTuple):
    kind: int
    inflated: int
    values: int
    encoding: int
    end: int


def _page(file: Any, at: int, end: int) -> _Page:
    """Read the header of the page at a position of a file."""
    size = _PIECE
    while True:
        file.seek(at)
        reader = _Compact(file.read(min(size, end - at)))
        try:
            header = reader.structure()
            break
        except _Short:
            if size >= min(_MOST_HEADER, end - at):
                raise _Damaged from None
            size *= 16
    kind, inflated, packed = (header.get(field, -1) for field in (1, 2, 3))
    # Those of data pages, of dictionaries, and of data pages of the second version.
    about: dict[int, Any] = next((header[field] for field in (5, 7, 8) if isinstance(header.get(field), dict)), {})
    # Data pages of the second version have counts of nulls and rows before it.
    values, encoding = about.get(1, 0), about.get(4 if 8 in header else 2, 0)
    numbers = (kind, inflated, packed, values, encoding)
    if any(type(number) is not int or number < 0 for number in numbers) or at + reader.at + packed > end:
        raise _Damaged
    return _Page(kind, inflated, values, encoding, at + reader.at + packed)


class _Sizes(NamedTuple):
    """What a column takes: bytes in memory, without the text that dictionaries repeat; the bytes of
    its largest dictionary; and how many values may be from one.
    """

    total: int
    dictionary: int
    repeated: int


_WIDTHS = {"BOOLEAN": 0.125, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}


def _of_column(file: Any, column: Any, width: float) -> _Sizes:
    """Return the sizes of a column of a row group; Refused for a damaged header of a page."""
    at = column.data_page_offset
    if column.dictionary_page_offset:
        at = min(at, column.dictionary_page_offset)
    begin, end = at, at + column.total_compressed_size
    pages = count = dictionary = repeated = 0
    try:
        if begin < 0:
            raise _Damaged
        while at < end:
            page = _page(file, at, end)
            pages += page.inflated
            if page.kind == _DICTIONARY:
                dictionary = max(dictionary, page.inflated)
            elif page.kind != _INDEX:
                count += page.values
                repeated += page.values if page.encoding in _BY_DICTIONARY else 0
            at = page.end
    except _Damaged:
        raise Refused(f"it is damaged: the header of a page at byte {at} is damaged") from None
    return _Sizes(max(pages, int(count * width)), dictionary, repeated)


def check_group(file: Any, size: int, schema: Any, chunks: Sequence[Chunk], columns: list[str]) -> list[str]:
    """Return the paths of those of some columns of a row group that have to stay dictionaries.

    * `file`, `size`: the open file, and its bytes.
    * `schema`, `chunks`: pyarrow's of the file, and the columns of the row group.
    * `columns`: the names of some columns.

    Raises Refused where the columns become more in memory than they may.
    """
    most = limit(size)
    total, kept = 0, []
    if len(chunks) != len(schema):
        raise Refused(f"its footer is damaged: a row group has {len(chunks)} columns, and the file {len(schema)}")
    for place, column in enumerate(chunks):
        path = column.path_in_schema
        if not any(path == name or path.startswith(f"{name}.") for name in columns):
            continue
        width = _WIDTHS.get(column.physical_type)
        sizes = _of_column(file, column, schema.column(place).length if width is None else width)
        total += sizes.total
        if column.physical_type == "BYTE_ARRAY" and sizes.repeated * sizes.dictionary > most:
            kept.append(path)
        if total > most:
            raise Refused(
                f"column {path!r} takes {total >> 20} MiB or more when it is decompressed, and the columns of a row "
                f"group may take {most >> 20} MiB together; if they may take more, "
                'set the environment variable MYCEL_INFLATE to a size such as "8GB"'
            )
    return kept
