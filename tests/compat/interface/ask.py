"""Ask MindSpore what its modules have: every name that is MindSpore's own, its kind, its signature,
and the place where it is defined if the module only imports it.

    python ask.py TABLE.json [MODULE ...]

Run with an interpreter that has MindSpore 2.10. The modules are those that the table has already,
and those given; the table is written again, in order of names. Names of other packages that a
module imports (`os`, `np`, `wraps`) are not in it.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

FOREIGN = ("builtins", "numpy", "_thread", "collections")
GENERATED = ("_pb2",)


def is_own(name: str, value: Any) -> bool:
    """Whether a value of a module is MindSpore's own."""
    if name.startswith("__"):
        return False
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("mindspore")
    owner = getattr(value, "__module__", None) or type(value).__module__
    if isinstance(value, type) or callable(value):
        return owner.startswith("mindspore") or owner.endswith(GENERATED)
    kind = type(value).__module__
    return kind.startswith("mindspore") or kind in FOREIGN and not isinstance(value, type)


def kind_of(value: Any) -> str:
    """Whether something is a module, a class, a function (anything that is called), or a value."""
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    return "function" if callable(value) else "value"


def signature_of(value: Any) -> str:
    """The parameters of something that is called, with defaults; empty where there are none to
    know.
    """
    if not callable(value):
        return ""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def home_of(module: str, value: Any) -> str:
    """The module and name under which something is defined, if that is not `module` itself."""
    if isinstance(value, types.ModuleType):
        return "" if value.__name__.rpartition(".")[0] == module else value.__name__
    owner, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if not callable(value) or not isinstance(owner, str) or owner == module or not name.isidentifier():
        return ""
    home = f"mindspore.train.{owner}" if owner.endswith(GENERATED) else owner
    return f"{home}.{name}" if vars(sys.modules.get(home)).get(name) is value else ""


def table_of(module: str) -> dict[str, list[str]]:
    """The names of a module, each with its kind, its signature, and its home elsewhere."""
    found = vars(importlib.import_module(module))
    own = {name: value for name, value in found.items() if is_own(name, value)}
    return {n: [kind_of(own[n]), signature_of(own[n]), home_of(module, own[n])] for n in sorted(own)}


if __name__ == "__main__":
    path = Path(sys.argv[1])
    modules = {*(json.loads(path.read_text()) if path.exists() else ()), *sys.argv[2:]}
    asked = {module: table_of(module) for module in sorted(modules)}
    rows = [
        json.dumps(module)
        + ": {\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in names.items())
        + "\n}"
        for module, names in asked.items()
    ]
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n")
