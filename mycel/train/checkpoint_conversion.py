"""Conversion of checkpoints between MindSpore's format and safetensors."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.foundation import arguments
from mycel.train.checkpoint_format import (
    CheckpointError,
    Entry,
    read_ckpt,
    read_safetensors,
    write_ckpt,
    write_safetensors,
)
from mycel.train.sharded_checkpoint import INDEX, ShardedCheckpoint

__all__ = ["ckpt_to_safetensors", "safetensors_to_ckpt"]

_FORMATS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "ckpt": (read_ckpt, write_ckpt),
    "safetensors": (read_safetensors, write_safetensors),
}


def ckpt_to_safetensors(
    file_path: Any,
    save_path: Any = None,
    name_map: Mapping[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Convert a .ckpt file, or all in a folder and its subfolders, to safetensors files of the same
    names.

    Args:
        file_path (str | os.PathLike[str]): The file or the folder.
        save_path (str | os.PathLike[str] | None): The folder of the new files, with the same
            subfolders; None for beside their sources. Default: None.
        name_map (Mapping[str, str] | None): New names of entries. Default: None.
        file_name_regex (str | None): Which files of a folder are converted: their names begin like
            it. Default: None.
        processes_num (int): Has no effect: files are converted one after the other. Default: 1.

    Raises:
        ValueError: For paths that do not fit, entries that safetensors cannot hold, and names that
            clash.

    Examples:
        >>> import mycel as ms, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "one.ckpt"
        >>> ms.save_checkpoint({"w": ms.Parameter(1.0)}, path)
        >>> ckpt_to_safetensors(path, name_map={"w": "weight"})
        >>> ms.load_checkpoint(path.with_suffix(".safetensors"), format="safetensors")
        {'weight': Parameter (name=weight, shape=(), dtype=Float32, requires_grad=True)}
    """
    _convert("ckpt", "safetensors", file_path, save_path, name_map, file_name_regex, processes_num)


def safetensors_to_ckpt(
    file_path: Any,
    save_path: Any = None,
    name_map: Mapping[str, str] | None = None,
    file_name_regex: str | None = None,
    processes_num: int = 1,
) -> None:
    """Convert a .safetensors file, or all in a folder, to .ckpt files.

    The files of an index become one file.

    Args:
        file_path (str | os.PathLike[str]): The file or the folder.
        save_path (str | os.PathLike[str] | None): The folder of the new files, with the same
            subfolders; None for beside their sources. Default: None.
        name_map (Mapping[str, str] | None): New names of entries. Default: None.
        file_name_regex (str | None): Which files of a folder are converted: their names begin like
            it. Default: None.
        processes_num (int): Has no effect: files are converted one after the other. Default: 1.
    """
    _convert("safetensors", "ckpt", file_path, save_path, name_map, file_name_regex, processes_num)


def _convert(
    source: str,
    target: str,
    file_path: Any,
    save_path: Any,
    name_map: Mapping[str, str] | None,
    file_name_regex: str | None,
    processes_num: int,
) -> None:
    function = f"{source}_to_{target}"
    arguments.integer(function, "processes_num", processes_num, 1, flags=True, numpy=False, error=ValueError)
    arguments.path(function, "file_path", file_path)
    arguments.optional(function, "save_path", save_path, (str, os.PathLike), "a path")
    if name_map is not None:
        arguments.mapping(function, "name_map", name_map, "a dict or None")
    given = os.fspath(file_path)
    folder = given if os.path.isdir(given) else os.path.dirname(given) or "."
    if save_path is not None and os.path.isfile(save_path):
        raise ValueError(f"{function}: save_path must be a folder, and {os.fspath(save_path)!r} is a file")
    for path in _files(given, source, file_name_regex, function):
        whole = dict(ShardedCheckpoint(path).arrays()) if path.endswith(INDEX) else _FORMATS[source][0](path)
        entries = _renamed(whole, name_map or {}, path)
        place = os.path.relpath(path, folder).removesuffix(".index.json").removesuffix(source) + target
        destination = os.path.join(folder if save_path is None else os.fspath(save_path), place)
        os.makedirs(os.path.dirname(destination), exist_ok=True)
        _FORMATS[target][1](destination, entries)


def _files(given: str, suffix: str, regex: str | None, function: str) -> list[str]:
    if os.path.isfile(given) and (given.endswith("." + suffix) or suffix == "safetensors" and given.endswith(INDEX)):
        return [given]
    found = [
        os.path.join(root, name)
        for root, _, names in os.walk(given)
        for name in sorted(names)
        if name.endswith("." + suffix) and (regex is None or re.match(regex, name))
    ]
    if not found:
        raise ValueError(f"{function}: {given!r} is neither a .{suffix} file nor a folder with files to convert")
    return found


def _renamed(entries: Mapping[str, Entry], names: Mapping[str, str], path: str) -> dict[str, Entry]:
    renamed: dict[str, Entry] = {}
    for name, entry in entries.items():
        new = names.get(name, name)
        if new in renamed:
            raise CheckpointError(f"{path}: name_map gives two entries the name {new!r}")
        renamed[new] = entry
    return renamed
