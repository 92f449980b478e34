"""Errors for damaged files: each becomes a ValueError that names the reader and the file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mycel.dataset.pipeline_errors import reading
from mycel.dataset.readers.matlab import read_variables

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


@contextmanager
def stored(operation: str) -> Iterator[None]:
    """Turn errors of a store within a block, which name the file, into a ValueError of a source.

    >>> from mycel.dataset.readers.damaged_files import stored
    >>> try:
    ...     with stored("WebDataset"):
    ...         raise OSError("'memory://a.tar' cannot be read")
    ... except ValueError as error:
    ...     print(error)
    WebDataset: 'memory://a.tar' cannot be read
    """
    try:
        yield
    except OSError as error:
        raise ValueError(f"{operation}: {error}") from error


def read_json(operation: str, path: str | os.PathLike[str]) -> Any:
    """Return the content of a JSON file."""
    with reading(operation, path), open(path, encoding="utf-8") as handle:
        return json.load(handle)


def read_xml(operation: str, path: str | os.PathLike[str]) -> Element:
    """Return the root of an XML file."""
    from xml.etree import ElementTree

    if not os.path.isfile(path):
        raise ValueError(f"{operation}: there is no file {os.fspath(path)!r}")
    with reading(operation, path), open(path, "rb") as handle:
        return ElementTree.parse(handle).getroot()


def read_matlab(operation: str, path: str | os.PathLike[str], variables: dict[str, int]) -> dict[str, Any]:
    """Return variables of a MATLAB file.

    `variables` gives how many axes each has at least (0 for structs).
    """
    if not os.path.isfile(path):
        raise ValueError(f"{operation}: there is no file {os.fspath(path)!r}")
    with reading(operation, path):
        found = read_variables(path, frozenset(variables))
        for name, axes in variables.items():
            if name not in found or getattr(found[name], "ndim", 0) < axes:
                raise ValueError(f"it has no variable {name!r}{f' of {axes} or more axes' if axes else ''}")
        return found
