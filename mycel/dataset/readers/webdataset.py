"""`WebDataset`: samples in tar files as a source, after WebDataset (Aizman, Maltby, Breuel, 2019).

Files that follow each other in a tar file and have one name before the first dot are a sample; what
follows the dot is the column. The headers of a tar file are read once (`tar_index`); then any
sample is read by number, so all samplers, shards and positions work as in other sources.
"""

from __future__ import annotations

import io
import json
import os
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, NoReturn

import numpy as np

from mycel._src.foundation.files import fsspec_files
from mycel._src.foundation.logged_once import no_effect
from mycel._src.foundation.python_runtime.syntax_trees import undisturbed
from mycel.dataset.arguments import check_count, names
from mycel.dataset.basic_sources.mappable_source import MappableDataset
from mycel.dataset.readers import sharded_files, tar_index
from mycel.dataset.readers.coalesced_reads import HELD, Pieces
from mycel.dataset.rows.column_blocks import Array, Block, Row, as_array
from mycel.dataset.samplers import Indices, Shuffle
from mycel.dataset.vision.codecs.image_io import decode_image

_OWN = "WebDataset"
KEY = "__key__"


def _bytes(content: bytes) -> Array:
    return np.frombuffer(bytearray(content), np.uint8)


def _number(content: bytes) -> Array:
    return np.array(int(content), np.int64)


def _text(content: bytes) -> Array:
    return np.array(content.decode("utf-8"))


def _json(content: bytes) -> Array:
    return as_array(json.loads(content))


def _npy(content: bytes) -> Array:
    try:
        return np.asarray(undisturbed(lambda: np.load(io.BytesIO(content), allow_pickle=False)))
    except Exception as error:
        # NumPy raises what comes up where a header is damaged, or promises more than memory has.
        raise ValueError(f"{type(error).__name__}: {error}") from error


_DECODERS: dict[str, Callable[[bytes], Any]] = {
    **dict.fromkeys(("jpg", "jpeg", "png", "ppm", "bmp", "webp", "tif", "tiff"), decode_image),
    **dict.fromkeys(("cls", "cls2", "index", "inx", "id"), _number),
    **dict.fromkeys(("txt", "text", "transcript"), _text),
    "json": _json,
    "npy": _npy,
}


class WebDataset(MappableDataset):
    """The samples of tar files in the form of WebDataset.

    Args:
        dataset_files (str | os.PathLike[str] | Sequence[str]): A file, a folder or a list of them;
            text may have wildcards and braces, such as `train-{000..012}.tar`. Files are not
            compressed.
        columns_list (list[str] | None): The columns: what follows the first dot of names, in small
            letters. `jpg;png` is whichever of them a sample has, and `__key__` the name before the
            dot. By default they are those of the first sample, and all samples must have the same.
            Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
        decode (bool | Mapping[str, Callable[[bytes], Any]]): Whether images are pixels, uint8 [H,
            W, 3], instead of the files' bytes. Default: True.
        held_bytes (int): How many bytes of pieces stay in memory, about, with Shuffle.PARTIAL and
            for files that fsspec reaches; 256 MiB by default. Default: 268435456.

    Raises:
        ValueError: For files that are missing or damaged, with the offset, for samples without one
            of the columns, and while iterating for values that cannot be decoded.

    Examples:
        >>> import io, os, tarfile, tempfile
        >>> import mycel.dataset as ds
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "a-000.tar")
        ...     with tarfile.open(name, "w") as archive:
        ...         for file, content in (("1.txt", b"one"), ("1.cls", b"4")):
        ...             member = tarfile.TarInfo(file)
        ...             member.size = len(content)
        ...             archive.addfile(member, io.BytesIO(content))
        ...     data = ds.WebDataset(os.path.join(folder, "a-{000..000}.tar"), shuffle=False)
        ...     data.get_col_names(), data.get_dataset_size(), data.output_types()
        (['txt', 'cls'], 1, [dtype('<U'), dtype('int64')])
    """

    _uses_workers = True
    _reads_files = True

    def __init__(
        self,
        dataset_files: Any,
        columns_list: list[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
        decode: bool | Mapping[str, Callable[[bytes], Any]] = True,
        held_bytes: int = HELD,
    ) -> None:
        check_count(_OWN, "held_bytes", held_bytes, 1)
        by_file = shuffle in (Shuffle.FILES, Shuffle.INFILE, Shuffle.PARTIAL)
        super().__init__(
            num_parallel_workers, sampler, num_samples, False if by_file else shuffle, num_shards, shard_id, cache
        )
        self._decoders = _chosen_decoders(decode)
        self._shards = sharded_files.files_of(_OWN, dataset_files, (".tar",))
        self._files: list[tar_index.Index] = []
        self._stamps: list[list[Any]] = []
        for path in self._shards:
            try:
                index, stamp = tar_index.index_of(path)
            except tar_index.Damaged as error:
                raise ValueError(f"{_OWN}: {path!r}: {error}") from error
            except OSError as error:
                raise ValueError(f"{_OWN}: {path!r} cannot be read: {error}") from error
            self._files.append(index)
            self._stamps.append(stamp)
        self._ends = list(accumulate(map(len, self._files)))
        if not self._ends[-1]:
            raise ValueError(f"{_OWN}: there is no sample in {', '.join(map(repr, self._shards[:4]))}")
        if isinstance(decode, Mapping):
            self._check_endings(decode)
        self.columns_list = self._chosen(columns_list)
        self._alternatives = [tuple(name.lower().split(";")) for name in self.columns_list]
        self._pieces: Pieces | None = None
        if by_file:
            if num_samples:
                raise ValueError(f"{_OWN}: num_samples cannot be given with {shuffle}; use take")
            sizes = [len(index) for index in self._files]
            if shuffle is Shuffle.PARTIAL:
                self._pieces = self._in_pieces(held_bytes)
                order = sharded_files.Together(shuffle, sizes, self._pieces.groups.tolist(), self._pieces.mixed)
            else:
                order = sharded_files.Together(Shuffle(shuffle), sizes, sizes, 1)
            self.sampler = sharded_files.together(_OWN, order, num_shards, shard_id)
        if (
            self._pieces is None
            and shuffle in (False, Shuffle.FILES)
            and any(map(fsspec_files.is_remote, self._shards))
        ):
            self._pieces = self._in_pieces(held_bytes)

    def _chosen(self, columns: list[str] | None) -> list[str]:
        if columns is not None:
            return names(columns, f"{_OWN}: columns_list")
        first = next(index for index in self._files if len(index)).endings_of(0)
        for path, index in zip(self._shards, self._files):
            if not len(index) or (set(index.endings) == set(first) and index.is_complete()):
                continue
            other = next(row for row in range(len(index)) if set(index.endings_of(row)) != set(first))
            raise ValueError(
                f"{_OWN}: sample {index.keys[other]!r} of {path!r} has {index.endings_of(other)}, but the first sample "
                f"{first}; choose with columns_list, where 'jpg;png' stands for either of them"
            )
        return first

    def _check_endings(self, decode: Mapping[str, Any]) -> None:
        """Raise ValueError where no name ends in what there is a function for, and say it where
        that holds for some.
        """
        there = {ending for index in self._files for ending in index.endings}
        known = there | {ending.rpartition(".")[2] for ending in there}
        unknown = [name for name in decode if _ending(name) not in known]
        if unknown and len(unknown) == len(decode):
            raise ValueError(
                f"{_OWN}: decode has functions for {unknown}, but no file in the archives is named so; there are "
                f"{sorted(there)}"
            )
        if unknown:
            no_effect(_OWN, "decode", unknown, f"files in the archives are named {sorted(there)}", True)

    def _columns(self) -> list[str]:
        return list(self.columns_list)

    def _total(self) -> int:
        return self._ends[-1]

    def _in_pieces(self, held: int) -> Pieces:
        """Return the files in pieces, of which samples are the rows."""
        wanted = {name for either in self._alternatives for name in either}
        # Samples without any of the columns are an error when they are read.
        spans = [index.spans(wanted.intersection(index.endings)) for index in self._files]
        return Pieces(self._shards, spans, self._check, held)

    def _check(self, file: int) -> None:
        if tar_index.stamp_at(self._shards[file]) != self._stamps[file]:
            self._changed(file)

    def _changed(self, file: int) -> NoReturn:
        raise ValueError(f"{_OWN}: {self._shards[file]!r} was changed after this dataset was made; make it again")

    def _gather(self, indices: Indices) -> Block:
        rows: list[Row] = []
        handle: Any = None
        opened = -1
        try:
            for index in indices.tolist():
                file = bisect_right(self._ends, index)
                if file != opened:
                    if handle is not None:
                        handle.close()
                    handle, opened = self._open(file), file
                rows.append(self._row(handle, file, index - self._ends[file] + len(self._files[file])))
        finally:
            if handle is not None:
                handle.close()
        return Block.from_rows(rows)

    def _open(self, file: int) -> Any:
        """Return a file, open for `_content`."""
        path = self._shards[file]
        if self._pieces is not None:
            return _Closed()
        try:
            if fsspec_files.is_remote(path):
                self._check(file)
                return fsspec_files.opened(path)
            handle = open(path, "rb", buffering=0)
        except OSError as error:
            raise ValueError(f"{_OWN}: {path!r} cannot be read: {error}") from error
        if tar_index.stamp_of(os.fstat(handle.fileno())) != self._stamps[file]:
            handle.close()
            self._changed(file)
        return handle

    def _content(self, handle: Any, file: int, number: int, offset: int, size: int) -> bytes:
        """Return a part of a file; fewer bytes where that has become shorter."""
        if self._pieces is not None:
            row = number + self._ends[file] - len(self._files[file])
            return self._pieces.content(row, offset, offset + size)
        handle.seek(offset)
        content: bytes = handle.read(size)
        while len(content) < size and (more := handle.read(size - len(content))):
            content += more
        return content

    def _row(self, handle: Any, file: int, number: int) -> Row:
        return tuple(self._value(handle, file, number, either) for either in self._alternatives)

    def _value(self, handle: Any, file: int, number: int, either: tuple[str, ...]) -> Array:
        """Return a value of a sample, `number` of its file, which is open as `handle`.

        `either` are the names that it may have.
        """
        index = self._files[file]
        if either == (KEY,):
            return np.array(index.keys[number])
        there = index.parts(number)
        name = next((name for name in either if name in there), None)
        where = f"{_OWN}: {self._shards[file]!r}, sample {index.keys[number]!r}"
        if name is None:
            raise ValueError(f"{where} has no {' or '.join(either)}; it has {', '.join(there)}")
        offset, size = there[name]
        try:
            content = self._content(handle, file, number, offset, size)
        except OSError as error:
            raise ValueError(f"{where}: {name} at offset {offset} cannot be read: {error}") from error
        if len(content) < size:
            raise ValueError(f"{where}: {name} of {size} bytes at offset {offset} ends after {len(content)}")
        decoder = self._decoders.get(name) or self._decoders.get(name.rpartition(".")[2], _bytes)
        try:
            return as_array(decoder(content))
        except MemoryError:
            raise
        except Exception as error:
            # A function of the user's raises whatever it likes.
            kind = "" if isinstance(error, (ValueError, TypeError)) else f"{type(error).__name__}: "
            raise ValueError(f"{where}: {name} at offset {offset} cannot be decoded: {kind}{error}") from error

    def _labels(self, column: str) -> Array:
        if column not in self.columns_list:
            raise ValueError(f"PKSampler: there is no column {column!r}; the columns are {self.columns_list}")
        either = self._alternatives[self.columns_list.index(column)]
        values: list[Array] = []
        for file, index in enumerate(self._files):
            with self._open(file) as handle:
                values += [self._value(handle, file, number, either) for number in range(len(index))]
        return np.array(values)


class _Closed(io.RawIOBase):
    """What stands for a file that is read in pieces."""


def _chosen_decoders(decode: Any) -> dict[str, Callable[[bytes], Any]]:
    if isinstance(decode, bool):
        return _DECODERS if decode else {}
    if not isinstance(decode, Mapping) or not all(isinstance(n, str) and callable(f) for n, f in decode.items()):
        raise TypeError(f"{_OWN}: decode must be a bool or functions from bytes by extension, not {decode!r}")
    return {**_DECODERS, **{_ending(name): function for name, function in decode.items()}}


def _ending(name: str) -> str:
    return name.lower().lstrip(".")
