"""Every name of every module of MindSpore 2.10, and what those are that Mycel does not serve.

`names.json` was asked of the real package (`tests/compat/interface/ask_names.py` says what is in
it) and is read when a program asks for a name, or a module, that none of a view's sources has:

* what a module imports from another one is looked up there;
* constants and enumerations are what they are;
* functions, classes and objects of MindSpore's own machinery are made such that they can be
  imported, subclassed and asked about, and raise Unsupported, with what to use instead, where a
  program uses them (`mycel.compat.unserved`).

Each name gives the same object every time.
"""

from __future__ import annotations

import enum
import functools
import importlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from mycel.compat.unserved import is_unserved, unserved_class, unserved_function, unserved_object
from mycel.compat.unserved_advice import advice_on

__all__ = ["has_module", "home_of", "is_made", "made", "public_names"]

_ROOT = "mindspore"
_made: dict[tuple[str, str], Any] = {}


class _Names(NamedTuple):
    """What a module has: for names from elsewhere their homes, and its own by their kinds."""

    homes: dict[str, str]
    functions: frozenset[str]
    objects: frozenset[str]
    classes: dict[str, str]
    enumerations: dict[str, dict[str, Any]]
    constants: dict[str, Any]


def has_module(path: str) -> bool:
    """Return whether MindSpore has a module of this path below its root.

    >>> has_module("graph._parse"), has_module("graph._pars")
    (True, False)
    """
    return path in _table()


def home_of(path: str, name: str) -> str:
    """Return the path that a name imported by a module of MindSpore stands for.

    It is "" for a name that the module does not import, and begins with "/" for one of another
    package.

    >>> home_of("train.serialization", "mstype"), home_of("train.serialization", "RLock")
    ('mindspore.common.dtype', '/threading.RLock')
    """
    return _names(path).homes.get(name, "")


def public_names(path: str) -> list[str]:
    """Return the names of a module that `import *` brings where it does not list them."""
    names = _names(path)
    own = [n for n in names.homes if not names.homes[n].startswith("/")]
    return sorted(n for part in (own, *names[1:]) for n in part if not n.startswith("_"))


def made(path: str, name: str) -> Any:
    """Return a name that a module of MindSpore defines and no source of Mycel has.

    Raises AttributeError where MindSpore's module does not define it.

    >>> made("_c_mindrecord", "MAX_PAGE_SIZE"), made("_c_mindrecord", "MSRStatus").FAILED.value
    (268435456, 1)
    >>> made("graph._parse.parser", "Parser")()
    Traceback (most recent call last):
    mycel.errors.Unsupported: mindspore.graph._parse.parser.Parser belongs to MindSpore's ...
    """
    if (path, name) not in _made:
        _made[path, name] = _make(path, name)
    return _made[path, name]


def is_made(value: Any) -> bool:
    """Return whether something is there by its name alone, only to say that it is not served."""
    return is_unserved(value) and any(value is one for one in _made.values())


def _make(path: str, name: str) -> Any:
    names = _names(path)
    whole = f"{_ROOT}.{path}.{name}" if path else f"{_ROOT}.{name}"
    if name in names.constants:
        return names.constants[name]
    if name in names.enumerations:
        return enum.Enum(name, names.enumerations[name], module=whole.rpartition(".")[0])
    if name in names.objects:
        owner = next((e for e, members in names.enumerations.items() if name in members), None)
        return made(path, owner)[name] if owner else unserved_object(whole, advice_on(path))
    if name in names.functions:
        return unserved_function(whole, advice_on(path))
    if name in names.classes:
        return _class(whole, advice_on(path), names.classes[name])
    raise AttributeError(f"module {_ROOT}.{path} has no attribute {name!r}")


def _class(whole: str, advice: str, base: str) -> type:
    """Return a class that refuses to be created, of the class that it is derived from."""
    kind = _base(base)
    try:
        return unserved_class(whole, advice, None, kind)
    except TypeError:  # a base that nothing can be derived from
        return unserved_class(whole, advice)


def _base(path: str) -> type:
    if not path or path.startswith("/pybind11_builtins"):
        return object
    owner, _, name = (path[1:] if path.startswith("/") else f"{_ROOT}.{path}").rpartition(".")
    try:
        found = getattr(importlib.import_module(owner), name)
    except (ImportError, AttributeError):
        return object
    return found if isinstance(found, type) and not isinstance(found, enum.EnumMeta) else object


@functools.cache
def _names(path: str) -> _Names:
    table = _table().get(path, {})
    homes = {}
    for home, names in table.get("i", {}).items():
        for entry in names.split():
            here, _, there = entry.partition("=")
            homes[here] = _home(home, there or here)
    return _Names(
        homes,
        frozenset(table.get("f", {}).get("", "").split()),
        frozenset(table.get("o", {}).get("", "").split()),
        {name: base for base, names in table.get("c", {}).items() for name in names.split()},
        table.get("e", {}),
        {n: tuple(v) if isinstance(v, list) else v for n, v in table.get("v", {}).items()},
    )


def _home(home: str, name: str) -> str:
    if home == "/":
        return name if name.startswith(_ROOT) else f"/{name}"
    if home.startswith("/"):
        return f"{home}.{name}"
    return f"{_ROOT}.{name}" if home == "." else f"{_ROOT}.{home}.{name}"


@functools.cache
def _table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return table
