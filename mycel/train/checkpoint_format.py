"""The two file formats of checkpoints: both map names to NumPy arrays or strings.

**ckpt**, MindSpore's own, is a Protocol Buffers message, in proto2 notation::

    Checkpoint     { repeated Value value = 1; }
    Value          { required string tag = 1;
                     oneof { TensorProto tensor = 2; MapTensorProto maptensor = 3; } }
    TensorProto    { repeated int64 dims = 1; required string tensor_type = 2;
                     required bytes tensor_content = 3; }

`tensor_type` is the type's title ("Float32", "BFloat16", "Bool"), the content is little-endian in
row-major order, and a scalar has no dims. A tensor of more than 512 MiB is cut into contents of 512
MiB, each in a value of its own under the same tag with the dims of the whole. A string has type
"str", dims [0] and UTF-32 content. A trailer of 17 bytes may follow: ``crc_num`` and the CRC-32 of
all before it as a big-endian integer of 10 bytes.

The wire format is read and written by `foundation.files.protobuf_wire`, not by the protobuf
package, whose messages end at 2 GiB and are held in memory twice. Reading takes two passes. The
first walks the headers and checks every length against the length of the enclosing message or file,
and every shape against the length of its content. Only then is memory allocated, never more than
the file is long, and contents are read straight into their arrays. Nothing is unpickled. A message
may end after any value, so only the checksum finds a file that was cut exactly there.

**safetensors** is read by the package of that name, and written here: eight bytes that say how long
the header is, the header, JSON, and the tensors. MindSpore's checksum there is metadata
``crc_num``: the CRC-32, in decimal, of name and content of every tensor, ordered by name.
"""

from __future__ import annotations

import json
import math
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation import dtype
from mycel._src.foundation.files.atomic_files import replacing
from mycel._src.foundation.files.protobuf_wire import BYTES, VARINT, Cursor, field, varint
from mycel.formats.encryption import Encrypted, decrypted, is_encrypted

__all__ = [
    "CheckpointError",
    "Entry",
    "Later",
    "MAX_RANK",
    "Saved",
    "ckpt_places",
    "file_checksum",
    "fill_safetensors",
    "read_ckpt",
    "read_safetensors",
    "safetensors_order",
    "titles_of_safetensors",
    "unchecked",
    "unknown_type",
    "write_ckpt",
    "write_safetensors",
]

Entry = NDArray[Any] | str


class Later(Protocol):
    """A tensor whose values are put together when they are written, one at a time."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the tensor."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements."""

    @property
    def nbytes(self) -> int:
        """The number of bytes that all values take."""

    def array(self) -> NDArray[Any]:
        """Return all values."""


Saved = Entry | Later

SLICE = 512 * 1024 * 1024
_TRAILER = b"crc_num"
_TRAILER_SIZE = len(_TRAILER) + 10
_TITLE = {d.numpy: str(d) for d in (*dtype.ALL, *dtype.STORED)}
_NUMPY = {title: numpy_type for numpy_type, title in _TITLE.items()}
MAX_RANK = 32
_CHUNK = 1 << 20
_COUNTED = 1 << 24
# So many are read of a shape that has too many.
_MOST_DIMS = 1024


class CheckpointError(ValueError):
    """An error: a checkpoint file cannot be read, or a value cannot be saved; the message names the
    file and the entry.
    """


def write_ckpt(
    path: str | os.PathLike[str],
    entries: Mapping[str, Saved],
    *,
    checksum: bool = False,
    key: bytes | None = None,
    mode: str = "AES-GCM",
) -> None:
    """Write `entries` to `path` in MindSpore's format, whole or not at all. `checksum` adds the
    trailer. With a `key` the file is encrypted in a `mode` (see `encryption`).

    Raises CheckpointError for an array whose type the format lacks and OSError where the file
    cannot be written.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.ckpt"
    >>> write_ckpt(path, {"weight": np.ones((2, 1), np.float32), "name": "demo"})
    >>> read_ckpt(path)
    {'weight': array([[1.], [1.]], dtype=float32), 'name': 'demo'}
    """
    with replacing(path, "checkpoint") as temporary, open(temporary, "wb") as plain:
        file: BinaryIO | Encrypted = plain if key is None else Encrypted(plain, key, mode)
        crc = 0
        for name, entry in entries.items():
            for piece in _value_messages(name, entry, path):
                file.write(piece)
                if checksum:
                    crc = zlib.crc32(piece, crc)
                # The values of one entry go before those of the next come.
                del piece
        if checksum:
            file.write(_TRAILER + crc.to_bytes(10, "big"))
        if isinstance(file, Encrypted):
            file.close()


def _value_messages(name: str, entry: Saved, path: str | os.PathLike[str]) -> Iterator[bytes | memoryview]:
    if isinstance(entry, str):
        title, dims, content = "str", b"\x08\x00", memoryview((entry or "\0").encode("utf-32-le"))
    else:
        found = _TITLE.get(entry.dtype)
        if found is None:
            raise CheckpointError(f"{os.fspath(path)}: entry {name!r}: no tensor has elements of type {entry.dtype}")
        title = found
        dims = b"".join(b"\x08" + varint(size) for size in entry.shape)
        content = _content(values_of(entry))
    tag = field(1, name.encode())
    head = dims + field(2, title.encode())
    for start in range(0, max(len(content), 1), SLICE):
        piece = content[start : start + SLICE]
        before = head + b"\x1a" + varint(len(piece))
        tensor = b"\x12" + varint(len(before) + len(piece)) + before
        yield b"\x0a" + varint(len(tag) + len(tensor) + len(piece)) + tag + tensor
        yield piece


def values_of(entry: NDArray[Any] | Later) -> NDArray[Any]:
    """Return the values of an entry, which are put together if they have not been."""
    return np.asarray(entry) if isinstance(entry, (np.ndarray, np.generic)) else entry.array()


def _content(array: NDArray[Any]) -> memoryview:
    flat = np.ascontiguousarray(array).reshape(-1)
    if sys.byteorder == "big" and flat.dtype.itemsize > 1:
        flat = flat.byteswap()
    return flat.view(np.uint8).data


def read_ckpt(
    path: str | os.PathLike[str],
    *,
    wanted: Callable[[str], bool] | None = None,
    verify: bool = False,
    key: bytes | None = None,
    mode: str = "AES-GCM",
) -> dict[str, Entry]:
    """Return the entries of the MindSpore checkpoint at `path` whose names `wanted` accepts
    (default: all), in the file's order.

    An encrypted file is decrypted in memory with its `key` and `mode`.

    With `verify`, the checksum at the end of the file is compared; a file without one is refused.
    Raises CheckpointError for a damaged file or one with types that tensors do not have, OSError
    where it cannot be read.
    """
    with open(path, "rb") as found:
        file: BinaryIO = found
        if key is not None:
            try:
                file = decrypted(found, os.fspath(path), key, mode)
            except ValueError as error:
                raise CheckpointError(str(error)) from None
        elif is_encrypted(found):
            raise CheckpointError(f"{os.fspath(path)}: it is encrypted; give its key as dec_key")
        reader = _Reader(file, os.fspath(path))
        pieces = list(reader.pieces())
        if verify:
            reader.compare_checksum()
        entries: dict[str, Entry] = {}
        for whole in _grouped(pieces, reader):
            if wanted is None or wanted(whole[0].name):
                entries[whole[0].name] = reader.load(whole)
        return entries


def ckpt_places(
    file: BinaryIO, path: str, wanted: Callable[[str], bool] | None = None, verify: bool = False
) -> dict[str, str | tuple[tuple[int, ...], np.dtype[Any], list[tuple[int, int]]]]:
    """Return the strings of a ckpt file by name, and of tensors the shape, the type, and the places
    and lengths of their bytes in the file.

    `path` names it in errors; `wanted` and `verify` are those of `read_ckpt`, as are the errors.
    """
    if is_encrypted(file):
        raise CheckpointError(f"{path}: it is encrypted; give its key as dec_key")
    reader = _Reader(file, path)
    pieces = list(reader.pieces())
    if verify:
        reader.compare_checksum()
    found: dict[str, str | tuple[tuple[int, ...], np.dtype[Any], list[tuple[int, int]]]] = {}
    for group in _grouped(pieces, reader):
        first = group[0]
        if wanted is not None and not wanted(first.name):
            continue
        if first.title == "str":
            text = reader.load(group)
            assert isinstance(text, str)
            found[first.name] = text
        else:
            kind = _NUMPY[first.title]
            shape = _shape(first, sum(piece.length for piece in group), kind.itemsize)
            found[first.name] = shape, kind, [(piece.offset, piece.length) for piece in group]
    return found


class _Piece:
    """One value of the file: the header of a tensor or of a slice of it, and where its content
    lies.

    `name` is the tensor's name, `title` its element type; `dims` are those of the whole tensor. The
    content has `length` bytes from `offset` on.
    """

    __slots__ = ("name", "dims", "title", "offset", "length")

    def __init__(self, name: str, dims: tuple[int, ...], title: str, offset: int, length: int) -> None:
        self.name = name
        self.dims = dims
        self.title = title
        self.offset = offset
        self.length = length


def _grouped(pieces: list[_Piece], reader: _Reader) -> Iterator[list[_Piece]]:
    """Yield the pieces of each tensor together, checked to be exactly as long as its shape
    requires.
    """
    groups: dict[str, list[_Piece]] = {}
    for piece in pieces:
        groups.setdefault(piece.name, []).append(piece)
    for name, group in groups.items():
        first = group[0]
        for piece in group[1:]:
            if (piece.dims, piece.title) != (first.dims, first.title):
                raise reader.error(
                    f"comes twice, as {first.title} {list(first.dims)} and as {piece.title} {list(piece.dims)}", name
                )
        length = sum(piece.length for piece in group)
        if first.title == "str":
            if len(group) > 1 or length % 4:
                raise reader.error(
                    f"is a string of {length} bytes in {len(group)} parts; UTF-32 takes 4 a character", name
                )
        else:
            itemsize = _NUMPY[first.title].itemsize
            shape = _shape(first, length, itemsize)
            if math.prod(shape) * itemsize != length:
                raise reader.error(
                    f"has {length} bytes where {first.title} {list(first.dims)} takes {math.prod(shape) * itemsize}",
                    name,
                )
        yield group


def _shape(piece: _Piece, length: int, itemsize: int) -> tuple[int, ...]:
    # Early versions of MindSpore wrote the dims of a scalar as [0].
    return () if piece.dims == (0,) and length == itemsize else piece.dims


class _Reader(Cursor):
    """A cursor over the file of a checkpoint."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        super().__init__(file)
        self.path = path
        self.end = self.size

    def error(self, what: str, name: str | None = None) -> CheckpointError:
        entry = "" if name is None else f"entry {name!r} "
        return CheckpointError(f"{self.path}: {entry}{what}")

    def damaged(self, what: str) -> CheckpointError:
        return self.error(f"damaged, or not a MindSpore checkpoint: {what} at byte {self.position} of {self.size}")

    def pieces(self) -> Iterator[_Piece]:
        while self.position < self.size:
            if self.size - self.position == _TRAILER_SIZE and self._peek_trailer():
                self.end = self.position
                return
            number, kind = self.field(self.size)
            if (number, kind) != (1, BYTES):
                raise self.damaged(f"a field numbered {number} of kind {kind}")
            yield self._value(self.length(self.size))

    def _peek_trailer(self) -> bool:
        found = self.file.read(len(_TRAILER)) == _TRAILER
        self.file.seek(self.position)
        return found

    def _value(self, end: int) -> _Piece:
        name: str | None = None
        tensor: tuple[tuple[int, ...], str, int, int] | None = None
        other = False
        while self.position < end:
            number, kind = self.field(end)
            if (number, kind) == (1, BYTES):
                name = self.text(self.length(end), "a name")
            elif (number, kind) == (2, BYTES):
                tensor = self._tensor(self.length(end), name)
            else:
                other |= number == 3
                self.skip(number, kind, end)
        if name is None:
            raise self.damaged("an entry without a name ends")
        if tensor is None:
            held = "a hash table (MapTensor); tensors and strings are supported" if other else "nothing"
            raise self.error(f"holds {held}", name)
        return _Piece(name, *tensor)

    def _tensor(self, end: int, name: str | None) -> tuple[tuple[int, ...], str, int, int]:
        dims: list[int] = []
        title: str | None = None
        content: tuple[int, int] | None = None
        while self.position < end and len(dims) < _MOST_DIMS:
            number, kind = self.field(end)
            if (number, kind) == (1, VARINT):
                dims.append(self.number(end))
            elif (number, kind) == (1, BYTES):
                stop = self.length(end)
                while self.position < stop and len(dims) < _MOST_DIMS:
                    dims.append(self.number(stop))
            elif (number, kind) == (2, BYTES):
                title = self.text(self.length(end), "a type")
            elif (number, kind) == (3, BYTES):
                stop = self.length(end)
                content = self.position, stop - self.position
                self.seek(stop)
            else:
                self.skip(number, kind, end)
        if len(dims) > MAX_RANK:
            raise self.error(f"has an impossible shape: {len(dims)} dimensions", name or "?")
        if title is None or content is None:
            raise self.error(f"has no {'type' if title is None else 'content'}", name or "?")
        if title != "str" and title not in _NUMPY:
            raise self.error(f"has elements of type {title}; supported: {', '.join(_NUMPY)}, str", name or "?")
        if any(size >= 1 << 62 for size in dims):
            raise self.error(f"has an impossible shape: the largest of its sizes is {max(dims)}", name or "?")
        if math.prod(size for size in dims if size) >= 1 << 58:
            raise self.error(f"has the impossible shape {dims}", name or "?")
        return tuple(dims), title, *content

    def load(self, group: list[_Piece]) -> Entry:
        first = group[0]
        length = sum(piece.length for piece in group)
        buffer = np.empty(length, np.uint8)
        filled = 0
        for piece in group:
            self.seek(piece.offset)
            view = buffer.data[filled : filled + piece.length]
            while view:
                count = self.file.readinto(view)  # type: ignore[attr-defined]
                if not count:
                    raise self.damaged("the file grew shorter while it was read")
                view = view[count:]
            filled += piece.length
        if first.title == "str":
            try:
                return buffer.tobytes().decode("utf-32-le").rstrip("\0")
            except UnicodeDecodeError as error:
                raise self.error("is a string that is not UTF-32", first.name) from error
        numpy_type = _NUMPY[first.title]
        if numpy_type.kind == "b":
            buffer = (buffer != 0).view(np.uint8)
        array: NDArray[Any] = buffer.view(numpy_type)
        if sys.byteorder == "big":
            array = array.byteswap()
        return array.reshape(_shape(first, length, numpy_type.itemsize))

    def compare_checksum(self) -> None:
        if self.end == self.size:
            raise unchecked(self.path)
        self.file.seek(0)
        crc, left = 0, self.end
        while left:
            block = self.file.read(min(left, _CHUNK))
            if not block:
                raise self.damaged("the file grew shorter while it was read")
            crc = zlib.crc32(block, crc)
            left -= len(block)
        stored = int.from_bytes(self.file.read(_TRAILER_SIZE)[len(_TRAILER) :], "big")
        if crc != stored:
            raise self.error(f"damaged: its checksum is {crc:08x}, and {stored:08x} was saved with it")


def write_safetensors(
    path: str | os.PathLike[str],
    entries: Mapping[str, Saved],
    *,
    checksum: bool = False,
    further: Mapping[str, str] | None = None,
) -> None:
    """Write `entries` to `path` in the safetensors format, whole or not at all.

    `checksum` adds MindSpore's checksum to the metadata, `further` other texts by name. Raises
    CheckpointError for strings and for types that the format lacks, OSError where the file cannot
    be written.
    """
    with replacing(path, "checkpoint") as temporary:
        fill_safetensors(temporary, entries, shown=os.fspath(path), checksum=checksum, further=further)


def fill_safetensors(
    path: str | os.PathLike[str],
    entries: Mapping[str, Saved],
    *,
    shown: str,
    checksum: bool = False,
    further: Mapping[str, str] | None = None,
) -> None:
    """Write `entries` into the file at `path`, which no other process reads yet.

    Errors name the file as `shown`. `checksum` and `further` are those of `write_safetensors`.
    """
    for name, entry in entries.items():
        if isinstance(entry, str):
            raise CheckpointError(f"{shown}: entry {name!r} is a string; safetensors holds tensors only, ckpt both")
        if entry.dtype not in _TITLE or entry.dtype == np.complex128:
            raise CheckpointError(
                f"{shown}: entry {name!r}: safetensors has no type {entry.dtype}; save it with format='ckpt'"
            )
    kinds = _safetensors_kinds()
    header: dict[str, Any] = {}
    end = 0
    for name in safetensors_order(entries):
        found = entries[name]
        assert not isinstance(found, str)
        start, end = end, end + found.nbytes
        header[name] = {"dtype": kinds[found.dtype], "shape": found.shape, "data_offsets": [start, end]}
    # The longest checksum has ten digits; blanks take the place of those that are not there.
    text = _header_text(header, further, "0" * 10 if checksum else None)
    with open(path, "w+b") as file:
        file.write(text)
        for name in header:
            found = entries[name]
            assert not isinstance(found, str)
            file.write(_content(values_of(found)))
        if checksum:
            at = {name: (entries[name], len(text) + header[name]["data_offsets"][0]) for name in header}
            places = {name: (e.shape, e.dtype, start) for name, (e, start) in at.items() if not isinstance(e, str)}
            known = _header_text(header, further, str(file_checksum(file, places)))
            file.seek(0)
            file.write(len(text[8:]).to_bytes(8, "little") + known[8:].ljust(len(text) - 8))


def safetensors_order(entries: Mapping[str, Saved]) -> list[str]:
    """Return the names of entries in the order in which they are written: wider elements come
    first, so that all are aligned.
    """
    kinds = _safetensors_kinds()
    found = {name: entry.dtype for name, entry in entries.items() if not isinstance(entry, str)}
    return sorted(found, key=lambda name: (-found[name].itemsize, kinds.get(found[name], ""), name))


def _safetensors_kinds() -> dict[np.dtype[Any], str]:
    return {kind: name for name, (_, kind) in titles_of_safetensors().items()}


def _header_text(header: Mapping[str, Any], further: Mapping[str, str] | None, crc: str | None) -> bytes:
    metadata = {"format": "ms", **(further or {}), **({} if crc is None else {"crc_num": crc})}
    text = json.dumps({"__metadata__": metadata, **header}, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def file_checksum(file: BinaryIO, places: Mapping[str, tuple[tuple[int, ...], np.dtype[Any], int]]) -> int:
    """Return the checksum that the metadata of a safetensors file holds.

    `places` has the shape, the type and the first byte of each tensor in the file.
    """
    crc = 0
    for name in sorted(places):
        shape, kind, start = places[name]
        crc, left = zlib.crc32(name.encode(), crc), math.prod(shape) * kind.itemsize
        file.seek(start)
        if shape == () and kind.kind in "iu":
            crc = _counted(np.frombuffer(file.read(left), kind.newbyteorder("<"))[0], crc)
            continue
        while left:
            block = file.read(min(left, _CHUNK))
            if not block:
                raise CheckpointError(f"{file.name}: damaged: the file grew shorter while it was read")
            crc, left = zlib.crc32(block, crc), left - len(block)
    return crc


def _counted(number: Any, crc: int) -> int:
    # MindSpore takes an integer scalar for a count and adds that many zeros.
    if 0 <= int(number) < _COUNTED:
        return zlib.crc32(bytes(int(number)), crc)
    return zlib.crc32(_content(np.asarray(number)), crc)


def read_safetensors(
    path: str | os.PathLike[str], *, wanted: Callable[[str], bool] | None = None, verify: bool = False
) -> dict[str, Entry]:
    """Return the tensors of the safetensors file at `path` whose names `wanted` accepts (default:
    all), in the file's order.

    With `verify`, the checksum in the metadata is compared; a file without one is refused. Raises
    CheckpointError for a damaged file or one with types that tensors do not have, OSError where it
    cannot be read.
    """
    import safetensors

    shown = os.fspath(path)
    arrays: dict[str, NDArray[Any]] = {}
    titles = titles_of_safetensors()
    with open(path, "rb"):
        pass
    try:
        with safetensors.safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            for name in file.keys():
                if not verify and wanted is not None and not wanted(name):
                    continue
                kind = file.get_slice(name).get_dtype()
                if kind not in titles:
                    raise unknown_type(shown, name, kind)
                narrow = _EIGHT_BITS.get(kind)
                arrays[name] = np.asarray(file.get_tensor(name)) if narrow is None else _bytes_of(path, name, narrow)
    except safetensors.SafetensorError as error:
        raise CheckpointError(f"{shown}: damaged, or not a safetensors file: {error}") from error
    if verify:
        stored = metadata.get("crc_num")
        crc = _entries_checksum(arrays)
        if stored is None:
            raise unchecked(shown)
        if str(crc) != stored:
            raise CheckpointError(f"{shown}: damaged: its checksum is {crc}, and {stored} was saved with it")
    return {name: array for name, array in arrays.items() if wanted is None or wanted(name)}


def titles_of_safetensors() -> dict[str, tuple[str, np.dtype[Any]]]:
    """Return the map from the types in headers of safetensors files to our titles and NumPy's
    types.
    """
    letters = {"i": "I", "u": "U", "f": "F", "c": "C"}
    plain = {
        f"{letters[kind.kind]}{kind.itemsize * 8}": kind
        for kind in _TITLE
        if kind.kind in letters and kind != np.complex128
    }
    found = {"BOOL": np.dtype(np.bool_), "BF16": dtype.bfloat16.numpy, **plain, **_EIGHT_BITS}
    return {name: (_TITLE[kind], kind) for name, kind in found.items()}


def unknown_type(path: str, name: str, kind: str) -> CheckpointError:
    """Return the error for a tensor of a safetensors file whose type our tensors do not have.

    Such are the scales and elements of 8, 6 and 4 bits of other hardware's formats.
    """
    return CheckpointError(
        f"{path}: entry {name!r} has elements of type {kind}, which tensors do not have; convert it to another type "
        f"first; supported: {', '.join(titles_of_safetensors())}"
    )


# The types that the library writes, but does not give back as NumPy arrays.
_EIGHT_BITS = {"F8_E4M3": dtype.float8_e4m3fn.numpy, "F8_E5M2": dtype.float8_e5m2.numpy}


def _bytes_of(path: str | os.PathLike[str], name: str, kind: Any) -> NDArray[Any]:
    """Return a tensor from the bytes of a safetensors file that has been checked.

    The file is the header's length, the header in JSON, and the tensors.
    """
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(length))[name]
        start, stop = entry["data_offsets"]
        file.seek(8 + length + start)
        return np.frombuffer(file.read(stop - start), np.uint8).view(kind).reshape(entry["shape"]).copy()


def unchecked(path: str) -> CheckpointError:
    """Return the error for a missing checksum, which damage could have removed."""
    return CheckpointError(
        f"{path} holds no checksum, so it cannot be checked: it was saved without one, or is damaged at its end; "
        "save with crc_check=True, or load with crc_check=False"
    )


def _entries_checksum(arrays: Mapping[str, NDArray[Any]]) -> int:
    crc = 0
    for name in sorted(arrays):
        array = arrays[name]
        crc = zlib.crc32(name.encode(), crc)
        if array.ndim == 0 and array.dtype.kind in "iu":
            crc = _counted(array, crc)
        else:
            crc = zlib.crc32(_content(array), crc)
    return crc
