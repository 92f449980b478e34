"""What modules of MindSpore have, as tables that were asked of the real package.

Each module answered by rule has a file ``facts/MODULE.json`` (named below "mindspore."), read when
it is first asked for. `Facts` knows of every name what it is there: one of `KINDS`, and its content
as the table has it: the parameters of a function, the constructor and the call of a class, the
expression of an instance, the path of what is defined elsewhere.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["KINDS", "Fact", "Facts", "facts_of", "has_facts"]

_FOLDER = Path(__file__).parent / "facts"
KINDS = ("classes", "functions", "instances", "values", "modules", "others", "names", "whole")


class Fact(NamedTuple):
    """What a name is in a module: its kind of `KINDS`, and its content in the table."""

    kind: str
    content: Any


class Facts:
    """The names of a module, each with a `Fact`; see the module."""

    def __init__(self, path: str, table: dict[str, Any]) -> None:
        self.path = path
        self.names: dict[str, Fact] = {}
        for kind in ("classes", "functions", "instances", "values", "modules", "others"):
            for name, content in table.get(kind, {}).items():
                self.names[name] = Fact(kind, content)
        for where, listed in table.get("names", {}).items():
            for word in listed.split():
                name, _, there = word.partition("=")
                self.names[name] = Fact("names", (where, there or name))
        for where in table.get("whole", ()):
            for name, fact in facts_of(where).names.items():
                if not name.startswith("_"):
                    self.names.setdefault(name, fact if fact.kind == "modules" else Fact("names", (where, name)))
        listed = table.get("all")
        self.public: list[str] = (
            listed.split()
            if listed is not None
            else sorted(n for n, f in self.names.items() if n[0] != "_" and f.kind != "modules")
        )

    def get(self, name: str) -> Fact | None:
        """Return what a name is, or None for a name that the module does not have."""
        return self.names.get(name)


def has_facts(path: str) -> bool:
    """Return whether there is a table for the module of a path below MindSpore's root.

    >>> has_facts("ops.auto_generate"), has_facts("ops.no_such_module")
    (True, False)
    """
    return path in _known()


@cache
def _known() -> frozenset[str]:
    return frozenset(file.stem for file in _FOLDER.glob("*.json"))


@cache
def facts_of(path: str) -> Facts:
    """Return the table of a module.

    >>> facts_of("ops.auto_generate.gen_ops_prim").get("AddExt").content
    ['', 'input, other, alpha=1']
    """
    return Facts(path, json.loads((_FOLDER / f"{path}.json").read_text(encoding="utf-8")))
