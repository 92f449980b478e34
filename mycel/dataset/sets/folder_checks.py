"""Checks of the folders and usages of well-known datasets, and reading of their listings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from mycel._src.foundation import arguments


def check_folder(operation: str, path: str | os.PathLike[str]) -> str:
    """Return the path of a folder; raise ValueError where there is none."""
    arguments.path(operation, "the directory", path)
    if not os.path.isdir(path):
        raise ValueError(f"{operation}: there is no directory {os.fspath(path)!r}")
    return os.fspath(path)


def check_usage(operation: str, usage: str | None, known: Sequence[str]) -> str:
    """Return the wanted part of a dataset, "all" for None; raise ValueError for unknown ones."""
    if usage is not None:
        arguments.one_of(operation, "usage", usage, known)
    return usage or "all"


def check_class_indexing(operation: str, class_indexing: Any) -> dict[str, int] | None:
    """Return a dictionary from names to numbers, or None; raise TypeError otherwise."""
    if class_indexing is None:
        return None
    if not isinstance(class_indexing, dict) or not all(
        isinstance(name, str) and isinstance(number, int) and number >= 0 for name, number in class_indexing.items()
    ):
        raise TypeError(
            f"{operation}: class_indexing must be a dictionary from names to numbers, not {class_indexing!r}"
        )
    return dict(class_indexing)


def check_extensions(operation: str, extensions: Any) -> tuple[str, ...] | None:
    """Return endings of file names, or None; raise TypeError otherwise."""
    if extensions is None:
        return None
    if not isinstance(extensions, (list, tuple)) or not all(isinstance(ending, str) for ending in extensions):
        raise TypeError(f"{operation}: extensions must be a list of text, not {extensions!r}")
    return tuple(extensions) or None


def image_names(folder: str, names: Iterable[str], operation: str) -> list[str]:
    """Return the paths of images; raise ValueError for the first that is missing."""
    paths = [os.path.join(folder, name) for name in names]
    for path in paths:
        if not os.path.isfile(path):
            raise ValueError(f"{operation}: there is no file {path!r}")
    return paths


def read_lines(operation: str, path: str | os.PathLike[str]) -> list[str]:
    """Return the lines of a UTF-8 file, without their ends.

    Raises ValueError where there is none, or it is not UTF-8.
    """
    if not os.path.isfile(path):
        raise ValueError(f"{operation}: there is no file {os.fspath(path)!r}")
    try:
        with open(path, encoding="utf-8", newline="\n") as handle:
            return [line.rstrip("\r\n") for line in handle]
    except UnicodeDecodeError as error:
        raise ValueError(f"{operation}: {os.fspath(path)!r} is not UTF-8: {error}") from error
