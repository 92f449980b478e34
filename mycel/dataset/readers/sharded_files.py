"""Sources of many files: their names, and a shuffle that keeps rows of one place together.

Rows of a source lie in *groups*, which are read as a whole (row groups of a file), and groups in
files. `Together` draws an order in which the rows that come near to each other lie in few groups,
so that few groups are in memory at a time. Its orders are functions of (seed, epoch) and of the
sizes of files and groups, as those of all samplers.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.files import fsspec_files
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.execution_options import kept
from mycel.dataset.samplers import BuiltinSampler, Indices, Labels, Shuffle, select_sampler

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_MOST_NAMES = 1_000_000


def expanded(pattern: str) -> list[str]:
    """Return the names that a pattern with braces stands for.

    `{000..012}` are numbers, of as many digits as the first has, and `{a,b}` are alternatives.
    Raises ValueError for braces that do not match, and more than a million names.

    >>> from mycel.dataset.readers.sharded_files import expanded
    >>> expanded("{train,test}-{08..10}.tar")[1:4]
    ['train-09.tar', 'train-10.tar', 'test-08.tar']
    """
    parts: list[Sequence[str]] = []
    end = 0
    for found in _BRACES.finditer(pattern):
        parts += [[pattern[end : found.start()]], _choices(found.group(1), pattern)]
        end = found.end()
    parts.append([pattern[end:]])
    count = 1
    for part in parts:
        count *= len(part)
    if count > _MOST_NAMES:
        raise ValueError(f"{pattern!r} stands for {count} names; at most {_MOST_NAMES} are read")
    if any("{" in text or "}" in text for text in parts[::2] for text in text):
        raise ValueError(f"{pattern!r} has a brace without its partner, or braces within braces")
    return ["".join(chosen) for chosen in itertools.product(*parts)]


def _choices(inner: str, pattern: str) -> Sequence[str]:
    numbers = _RANGE.fullmatch(inner)
    if numbers is None:
        if "," not in inner:
            raise ValueError(f"{pattern!r}: {{{inner}}} is neither a range such as 000..012 nor alternatives a,b")
        return inner.split(",")
    first, last = int(numbers[1]), int(numbers[2])
    if last - first >= _MOST_NAMES or last < first:
        raise ValueError(f"{pattern!r}: {{{inner}}} must go up, over at most {_MOST_NAMES} numbers")
    return [f"{number:0{len(numbers[1])}d}" for number in range(first, last + 1)]


def files_of(operation: str, given: Any, endings: Sequence[str]) -> list[str]:
    """Return the files that an argument names, in its order.

    * `operation`: what messages call the source.
    * `given`: a path or a list of paths. A folder stands for the files with one of `endings` in it
      and in its folders, in the order of their names; text may have braces (`expanded`) and the
      wildcards of `glob`. What exists is taken as it is. Paths for fsspec have them, too.
    * `endings`: in small letters.

    Raises ValueError where there is no such file, or a file is named twice.
    """
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    files: list[str] = []
    for one in several:
        if not isinstance(one, (str, os.PathLike)) or not isinstance(os.fspath(one), str):
            raise arguments.wrong_type(operation, "the files", "a path or a list of paths", one)
        try:
            path = fsspec_files.local_name(os.fspath(one))
            names = [path] if not fsspec_files.is_remote(path) and os.path.exists(path) else expanded(path)
        except ValueError as error:
            raise ValueError(f"{operation}: {error}") from error
        for name in names:
            files += _files_at(operation, name, tuple(endings))
    if not files:
        raise ValueError(f"{operation}: no files are given")
    places: set[str] = set()
    for file in files:
        place = file if fsspec_files.is_remote(file) else os.path.realpath(file)
        if place in places:
            raise ValueError(f"{operation}: {file!r} is named twice")
        places.add(place)
    return [kept(operation, file) for file in files]


def _files_at(operation: str, name: str, endings: tuple[str, ...]) -> list[str]:
    if fsspec_files.is_remote(name):
        return remote_files(operation, name, endings)
    if os.path.isfile(name):
        return [name]
    if os.path.isdir(name):
        found = [
            os.path.join(folder, file)
            for folder, _, inside in os.walk(name)
            for file in inside
            if file.lower().endswith(endings)
        ]
        if not found:
            raise ValueError(f"{operation}: the folder {name!r} has no file that ends with {' or '.join(endings)}")
        return sorted(found)
    matches = sorted(file for file in glob.glob(name, recursive=True) if os.path.isfile(file))
    if not matches:
        raise ValueError(f"{operation}: there is no file {name!r}")
    return matches


def remote_files(operation: str, name: str, endings: tuple[str, ...]) -> list[str]:
    """Return the files that a path for fsspec names; ValueError where there is none.

    * `operation`: what messages call the source.
    * `name`: the path, with wildcards or of a folder, too.
    * `endings`: those of the files of a folder, in small letters.
    """
    try:
        return fsspec_files.files_at(name, endings)
    except OSError as error:
        raise ValueError(f"{operation}: no file matches: {error}") from error
    except ImportError as error:
        raise ImportError(f"{operation}: {error}") from error


class Together(BuiltinSampler):
    """A sampler of all rows that keeps what lies in one file or group together.

    * `kind`: FILES shuffles the files, INFILE the rows of each file, and PARTIAL the groups, then
      the rows of `mixed` rows' worth of consecutive groups.
    * `files`: the number of rows of each file.
    * `groups`: the number of rows of each group, over all files.
    * `mixed`: how many rows are mixed with each other in PARTIAL, at least those of one group.
    """

    shuffles = True

    def __init__(self, kind: Shuffle, files: Sequence[int], groups: Sequence[int], mixed: int) -> None:
        super().__init__()
        self.kind, self.files, self.groups, self.mixed = kind, list(files), list(groups), mixed

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        random = run.generator(depth, 6)
        if self.kind is Shuffle.PARTIAL:
            return partial_order(random, self.groups, self.mixed)
        parts = _ranges(self.files)
        if self.kind is Shuffle.INFILE:
            parts = [random.permutation(part) for part in parts]
        else:
            parts = [parts[place] for place in random.permutation(len(parts))]
        return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64)


def partial_order(random: np.random.Generator, groups: Sequence[int], mixed: int) -> Indices:
    """Return an order of the rows of groups in which rows that come near to each other lie in few.

    * `random`: what is drawn from.
    * `groups`: the number of rows of each group.
    * `mixed`: how many rows are permuted together, at least those of one group.

    Groups are permuted, and then the rows of each window of consecutive ones. Windows have nearly
    equally many rows, so that none at the end is mixed less. So every row comes equally likely at
    any place of the epoch, up to the sizes of groups, and what is next to it comes from any part of
    its window.
    """
    sizes = np.asarray(groups, np.int64)
    if not sizes.sum():
        return np.zeros(0, np.int64)
    permuted = random.permutation(len(sizes))
    ends = np.cumsum(sizes)
    inside = np.cumsum(sizes[permuted])
    parts = []
    for first, last in _windows(inside, mixed):
        window = [np.arange(ends[group] - sizes[group], ends[group]) for group in permuted[first:last]]
        parts.append(random.permutation(np.concatenate(window)))
    return np.concatenate(parts).astype(np.int64)


def _windows(inside: Indices, mixed: int) -> list[tuple[int, int]]:
    """Return the windows of groups, of which `inside` says where each ends: at most `mixed` rows,
    or one group.
    """
    total = int(inside[-1])
    each = total / -(-total // max(1, mixed))
    found: list[tuple[int, int]] = []
    first = begin = 0
    while first < len(inside):
        # Ends are as near as can be to equal parts of what is left.
        left = total - begin
        wish = begin + left / max(1, round(left / each))
        last = int(np.searchsorted(inside, wish)) + 1
        if last - 1 > first and (last > len(inside) or wish - inside[last - 2] < inside[last - 1] - wish):
            last -= 1
        while last - 1 > first and inside[last - 1] - begin > mixed:
            last -= 1
        last = min(last, len(inside))
        found.append((first, last))
        first, begin = last, int(inside[last - 1])
    return found


def _ranges(sizes: Sequence[int]) -> list[Indices]:
    ends = np.cumsum(np.asarray(sizes, np.int64))
    return [np.arange(end - size, end, dtype=np.int64) for end, size in zip(ends, sizes)]


def together(operation: str, sampler: Together, num_shards: int | None, shard_id: int | None) -> BuiltinSampler:
    """Return a sampler, or that of one shard of its rows.

    `operation` is named in messages; `num_shards` and `shard_id` are those of `MappableDataset`.
    """
    if num_shards is None or shard_id is None:
        return sampler
    chosen = select_sampler(operation, None, None, False, num_shards, shard_id)
    chosen.add_child(sampler)
    return chosen
