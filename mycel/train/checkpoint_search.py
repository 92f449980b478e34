"""The newest checkpoint of earlier runs, from which a program goes on.

`ModelCheckpoint` calls files ``prefix-epoch_step.ckpt``, and ``prefix_1-...``, ``prefix_2-...`` in
later runs. A run that goes on counts on from where it began, so the newest file is that of the
highest epoch and step, whichever run or rank has written it. Files appear whole or not at all.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mycel._src.foundation import arguments

__all__ = ["latest_checkpoint"]


def latest_checkpoint(directory: str | os.PathLike[str], prefix: str | None = None) -> str:
    """Return the path of the newest checkpoint in a directory and those below it; empty where there
    is none, or no such directory.

    With a `prefix` only files that a `ModelCheckpoint` of that prefix has saved count. The newest
    is that of the highest epoch and step, and among equal ones the one whose path comes first.
    Raises TypeError for a `directory` that is no path, or a `prefix` that is no string.

    >>> latest_checkpoint("no-such-directory")
    ''
    """
    if not isinstance(directory, (str, os.PathLike)):
        raise arguments.wrong_type("latest_checkpoint", "directory", "a path", directory)
    arguments.optional("latest_checkpoint", "prefix", prefix, str)
    name = ".+" if prefix is None else rf"{re.escape(prefix)}(?:_\d+)?"
    pattern = re.compile(rf"(?!\.){name}-(\d+)_(\d+)\.(?:ckpt|safetensors)")
    newest, order = "", (-1, -1)
    for path in sorted(Path(directory).rglob("*-*_*")):
        found = pattern.fullmatch(path.name)
        if found is not None and path.is_file() and (int(found[1]), int(found[2])) > order:
            newest, order = str(path), (int(found[1]), int(found[2]))
    return newest
