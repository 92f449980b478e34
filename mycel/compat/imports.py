"""What modules of MindSpore show only because they import it from another module of MindSpore.

`imports.json` has, for each module, the modules that it imports from and the names, as `name` or
`name=name_there`; a name alone with the path "" is a module by its alias. It is written from the
tables of the tests by `tests/compat/interface/imports.py`, and read when a program asks for a name
that none of a view's sources has.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

__all__ = ["home_of"]


def home_of(module: str, name: str) -> str:
    """Return the path that a name imported by a module of MindSpore stands for.

    It is "" for a name that the module does not import.

    >>> home_of("mindspore.train.serialization", "mstype")
    'mindspore.common.dtype'
    """
    return _homes(module).get(name, "")


@functools.cache
def _homes(module: str) -> dict[str, str]:
    found = {}
    for home, names in _table().get(module, {}).items():
        for entry in names.split():
            here, _, there = entry.partition("=")
            found[here] = f"{home}.{there or here}" if home else there
    return found


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    table: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return table
