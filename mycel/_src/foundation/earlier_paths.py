"""Earlier import paths of modules, under which pickles and programs name them.

`mycel.core.tensor` is `mycel._src.tensors.core.tensor`: one module, under both names. Modules whose
own names have changed too are listed in `_src/data/earlier_paths.txt`, which is read when a name is
imported that is not found otherwise.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from mycel._src.foundation.package import FOLDER

__all__ = ["ROOMS", "install", "renamed"]

# Where each former package of `mycel` is now.
ROOMS = {"base": "foundation"} | {
    room: f"{wing}{room}"
    for wing, rooms in (
        ("compiler.", "ir loops prims transforms transport"),
        ("tensors.", "cells core"),
        ("staging.", "compiled derivatives distributed frontend"),
        ("", "devices engines planner"),
    )
    for room in rooms.split()
}


class _Same(Loader):
    """Loads the module of another name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.module = importlib.import_module(self.name)
        self.spec = self.module.__spec__
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        # It was executed, and it keeps its own name.
        module.__spec__ = self.spec


@cache
def renamed() -> dict[str, str]:
    """Return the present name of each module of which more than the package has changed."""
    text = (Path(FOLDER) / "_src" / "data" / "earlier_paths.txt").read_text(encoding="ascii")
    return {f"mycel.{before}": f"mycel.{now}" for before, now in map(str.split, text.splitlines())}


class _Aliases(MetaPathFinder):
    """Finds former packages, and what lies in a module that is imported under an earlier path.

    It is asked first, as others would load a second module from the same file.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith("mycel._src") or not fullname.startswith("mycel."):
            return None
        package, _, name = fullname.rpartition(".")
        if package == "mycel":
            return _same(fullname, f"mycel._src.{ROOMS[name]}") if name in ROOMS else None
        home = getattr(sys.modules.get(package), "__name__", package)
        return None if home == package else _same(fullname, f"{home}.{name}")


class _Renamed(MetaPathFinder):
    """Finds modules whose own names have changed, where nobody else finds one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("mycel."):
            return None
        name = renamed().get(fullname)
        return None if name is None else _same(fullname, name)


def _same(fullname: str, name: str) -> ModuleSpec | None:
    """Return the spec by which `fullname` is the module `name`; None where there is no such one."""
    found = importlib.util.find_spec(name)
    if found is None:
        return None
    return ModuleSpec(fullname, _Same(name), is_package=found.submodule_search_locations is not None)


def install() -> None:
    """Let imports find the modules, once in a process."""
    if not any(isinstance(finder, _Aliases) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Aliases())
        sys.meta_path.append(_Renamed())
