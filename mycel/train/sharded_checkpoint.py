"""Sharded checkpoints: several safetensors files with an index, as Hugging Face's libraries use.

``name.safetensors.index.json`` holds the sum of the tensors' bytes and, for every tensor, the name
of its file, ``name-00001-of-00003.safetensors`` and so on. A file takes tensors in order up to the
wanted size, one at least. All files are written under temporary names before the first of them gets
its own, and the index comes last. Files and index of one saving have the same mark, so that a
mixture of files of different savings is detected; sets of other libraries have no mark.

Reading is lazy: names, types and shapes come from the files' headers, and a tensor is read when it
is asked for. So a network can be loaded even if its checkpoint would not fit into memory beside it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from mycel._src.foundation.files.atomic_files import replacing
from mycel._src.foundation.python_runtime.finalization import Interned
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.train.checkpoint_format import (
    CheckpointError,
    Entry,
    Saved,
    fill_safetensors,
    read_safetensors,
    safetensors_order,
    write_safetensors,
)
from mycel.train.stored_values import (
    OpenFile,
    Place,
    StoredTensor,
    StoredValues,
    safetensors_header,
    stored_safetensors,
)

__all__ = [
    "ShardedCheckpoint",
    "byte_count",
    "index_of",
    "read_shards",
    "shards_order",
    "stored_shards",
    "write_shards",
]

INDEX = ".safetensors.index.json"
_MARK = "mycel_set"
_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}


def byte_count(size: Any) -> int:
    """Return a number of bytes from a positive number, or from a string such as "5GB" (decimal) or
    "512MiB" (binary). Raises ValueError for anything else.

    >>> byte_count("1.5KB"), byte_count("2KiB"), byte_count(77)
    (1500, 2048, 77)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(size))
    unit = _UNITS.get(found[2].upper()) if found else None
    count = int(float(found[1]) * unit) if found and unit else 0
    if isinstance(size, (bool, float)) or count < 1:
        raise ValueError(f'max_shard_size must be a positive number of bytes or a size such as "5GB", not {size!r}')
    return count


def index_of(path: str) -> str | None:
    """Return the path of the index that `path` names; None if there is none.

    It is the file itself, the only index of a folder, or the one beside ``name.safetensors``.
    """
    if path.endswith(INDEX):
        return path
    if os.path.isdir(path):
        found = sorted(name for name in os.listdir(path) if name.endswith(INDEX))
        if len(found) > 1:
            raise CheckpointError(f"the folder {path!r} holds several indices, {', '.join(found)}; name one of them")
        return os.path.join(path, found[0]) if found else None
    if path.endswith(".safetensors") and not os.path.exists(path) and os.path.exists(path + ".index.json"):
        return path + ".index.json"
    return None


def write_shards(path: str, entries: Mapping[str, Saved], most: int, *, checksum: bool = False) -> list[str]:
    """Write `entries` to files of at most `most` bytes and their index, and return the paths of the
    files.

    If they fit into one file, only `path` (``name.safetensors``) is written. Leftovers of an
    earlier saving under this name are removed at the end. `checksum` and errors are those of
    `write_safetensors`.
    """
    groups = _groups(entries, most)
    total = sum(0 if isinstance(entry, str) else entry.nbytes for entry in entries.values())
    stem = path.removesuffix(".safetensors")
    if len(groups) == 1:
        write_safetensors(path, entries, checksum=checksum)
        _remove_others(stem, {os.path.basename(path)})
        return [path]
    mark = secrets.token_hex(8)
    files = [f"{stem}-{i:05d}-of-{len(groups):05d}.safetensors" for i in range(1, len(groups) + 1)]
    weight_map = {name: os.path.basename(file) for file, group in zip(files, groups) for name in group}
    index = {"metadata": {"total_size": total, _MARK: mark}, "weight_map": weight_map}
    with contextlib.ExitStack() as stack:
        # The stack unwinds from its end: the index, entered first, gets its name last.
        temporary = stack.enter_context(replacing(stem + INDEX, "index of a checkpoint"))
        temporary.write_text(json.dumps(index, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        for file, group in zip(files, groups):
            draft = stack.enter_context(replacing(file, "checkpoint"))
            fill_safetensors(draft, group, shown=file, checksum=checksum, further={_MARK: mark})
    _remove_others(stem, {os.path.basename(file) for file in files} | {os.path.basename(stem + INDEX)})
    return [*files, stem + INDEX]


def _groups(entries: Mapping[str, Saved], most: int) -> list[dict[str, Saved]]:
    groups: list[dict[str, Saved]] = [{}]
    filled = 0
    for name, entry in entries.items():
        size = 0 if isinstance(entry, str) else entry.nbytes
        if groups[-1] and filled + size > most:
            groups.append({})
            filled = 0
        groups[-1][name] = entry
        filled += size
    return groups


def shards_order(entries: Mapping[str, Saved], most: int) -> list[str]:
    """Return the names of entries in the order in which `write_shards` writes them."""
    return [name for group in _groups(entries, most) for name in safetensors_order(group)]


def _remove_others(stem: str, kept: set[str]) -> None:
    """Remove the files of earlier savings under this name, which no index names any more."""
    folder, name = os.path.split(stem)
    pattern = re.compile(
        rf"{re.escape(name)}(-\d{{5}}-of-\d{{5}}\.safetensors|\.safetensors|\.safetensors\.index\.json)"
    )
    for found in os.listdir(folder or "."):
        if pattern.fullmatch(found) and found not in kept:
            os.remove(os.path.join(folder, found))


def read_shards(index: str, wanted: Callable[[str], bool], verify: bool) -> dict[str, Entry]:
    """Return the tensors whose names `wanted` accepts; `verify` compares the checksum of each file
    first.
    """
    shards = ShardedCheckpoint(index)
    for file in shards.files if verify else ():
        read_safetensors(file, verify=True)
    return dict(shards.arrays(filter(wanted, shards)))


def stored_shards(index: str, wanted: Callable[[str], bool], verify: bool) -> dict[str, StoredValues | str]:
    """Return what `read_shards` reads, as values that lie in the files."""
    shards = ShardedCheckpoint(index)
    for file in shards.files if verify else ():
        stored_safetensors(file, verify=True)
    return {name: shards.stored(name) for name in shards if wanted(name)}


class ShardedCheckpoint(Mapping[str, Any]):
    """The tensors of a checkpoint in safetensors files, by name.

    Each is read at access, as a Parameter of that name.

    `path` is an index (``name.safetensors.index.json``), a folder that holds one, or a single
    ``.safetensors`` file. `info` returns types and shapes without reading. `load_param_into_net`
    accepts it as it accepts a dict, and reads one file after the other. Raises ValueError
    (CheckpointError) for files that are missing or damaged.

    >>> import mycel as ms, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "net"
    >>> net = ms.nn.Dense(2, 3)
    >>> ms.save_checkpoint(net, path, format="safetensors", max_shard_size=16)
    >>> lazy = ms.train.ShardedCheckpoint(path.parent)
    >>> lazy.info("weight"), lazy["bias"].shape
    (('Float32', (3, 2)), (3,))
    >>> ms.load_param_into_net(net, lazy)
    ([], [])
    """

    def __init__(self, path: Any) -> None:
        given = os.fsdecode(path)
        index = index_of(given)
        self.path = index or given
        self._files: dict[str, str] = {}
        self._entries: dict[str, Place] = {}
        self._open = Interned[str, OpenFile]()
        mark, wanted = None, None
        if index is not None:
            mark, wanted = _read_index(index)
            places = {name: os.path.join(os.path.dirname(index), file) for name, file in wanted.items()}
            files = list(dict.fromkeys(places.values()))
        else:
            files = [given]
        for file in files:
            if not os.path.isfile(file):
                raise CheckpointError(f"{self.path}: there is no file {file!r}")
            found, metadata = safetensors_header(OpenFile(file))
            if mark is not None and metadata.get(_MARK) != mark:
                raise CheckpointError(
                    f"{self.path}: {file!r} is of another saving than the index; save the checkpoint again"
                )
            names = found if wanted is None else [name for name in wanted if places[name] == file]
            for name in names:
                if name not in found:
                    raise CheckpointError(f"{self.path}: {file!r} should hold {name!r} and does not")
                self._files[name], self._entries[name] = file, found[name]

    @property
    def files(self) -> list[str]:
        """The paths of the files with tensors."""
        return list(dict.fromkeys(self._files.values()))

    def info(self, name: str) -> tuple[str, tuple[int, ...]]:
        """Return the element type (the title that a dtype prints) and the shape of a tensor,
        without reading it.

        Raises KeyError for a name that is not there.
        """
        entry = self._entry(name)
        return entry.title, entry.shape

    def _entry(self, name: str) -> Place:
        if name not in self._entries:
            raise KeyError(f"{self.path} has no tensor {name!r:.200}")
        return self._entries[name]

    def arrays(self, names: Any = None) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield names and values, those in `names` or all.

        Files are read one after the other, so that memory never holds more than one of them.
        """
        chosen = set(self._files if names is None else names)
        for file in self.files:
            for name in [name for name in self._files if self._files[name] == file and name in chosen]:
                yield name, self._array(name)

    def _array(self, name: str) -> NDArray[Any]:
        return self.stored(name).array()

    def stored(self, name: str) -> StoredTensor:
        """Return a tensor's values as they lie in its file, which stays open as long as they are
        referred to.

        Raises KeyError for a name that is not there, and CheckpointError where the file has become
        another one.
        """
        entry, path = self._entry(name), self._files[name]
        file = self._open.get(path)
        if file is None:
            file = OpenFile(path)
            if safetensors_header(file)[0].get(name) != entry:
                raise CheckpointError(f"{path}: it is not the file any more that was there; open the checkpoint again")
            file = self._open.enter(path, file)
        return StoredTensor(
            file, entry.shape, entry.kind, [(entry.start, math.prod(entry.shape) * entry.kind.itemsize)]
        )

    def __getitem__(self, name: str) -> Parameter:
        return Parameter(Tensor.from_numpy(self._array(name)), name=name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, name: Any) -> bool:
        return name in self._files

    def __repr__(self) -> str:
        return f"ShardedCheckpoint({self.path!r}: {len(self)} tensors in {len(self.files)} files)"


def _read_index(path: str) -> tuple[str | None, dict[str, str]]:
    try:
        with open(path, encoding="utf-8") as file:
            index = json.load(file)
    except FileNotFoundError:
        raise CheckpointError(f"there is no file {path!r}") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: damaged, or not an index in JSON: {error}") from error
    found = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(found, dict) or not all(isinstance(file, str) for file in found.values()):
        raise CheckpointError(f"{path}: an index has a 'weight_map' from names of tensors to files")
    for file in found.values():
        # Nothing outside of the folder, whatever an index says.
        if os.path.basename(file) != file or not file.endswith(".safetensors"):
            raise CheckpointError(f"{path}: {file!r} is not the name of a .safetensors file beside the index")
    metadata = index.get("metadata")
    mark = metadata.get(_MARK) if isinstance(metadata, dict) else None
    return mark if isinstance(mark, str) else None, found
