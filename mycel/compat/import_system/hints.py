"""Hints for names that a program looked for in the wrong place, or spelled differently."""

from __future__ import annotations

import difflib
import importlib

from mycel.compat.import_system.module_paths import ROOT, is_absent, sources

__all__ = ["missing"]

_SEARCHED = (
    "",
    "nn",
    "ops",
    "train",
    "numpy",
    "scipy",
    "amp",
    "common.initializer",
    "dataset",
    "dataset.transforms",
    "dataset.vision",
    "context",
    "communication",
)


def missing(parent: str, name: str) -> str:
    """Return a message for a `name` that `parent` (a path such as "mindspore.nn") does not have.

    >>> print(missing("mindspore.nn", "CosineDecayLr"))
    mindspore.nn has no 'CosineDecayLr' in Mycel; close names: mindspore.nn.CosineDecayLR
    """
    path = f"{parent}.{name}"[len(ROOT) + 1 :]
    reason = is_absent(path)
    if reason is not None:
        return reason
    index = _names()
    here = parent[len(ROOT) + 1 :]
    same = [f"{_join(where)}.{name}" for where in index.get(name, ()) if where != here]
    close = [_spell(word, index[word], here) for word in difflib.get_close_matches(name, index, n=4, cutoff=0.75)]
    lower = [_spell(word, index[word], here) for word in index if word.lower() == name.lower()]
    found = list(dict.fromkeys([*same, *lower, *close]))[:4]
    text = f"{parent} has no {name!r} in Mycel"
    return f"{text}; close names: {', '.join(found)}" if found else f"{text}, nor any name close to it"


def _join(where: str) -> str:
    return f"{ROOT}.{where}" if where else ROOT


def _spell(word: str, places: list[str], here: str) -> str:
    return f"{_join(here if here in places else places[0])}.{word}"


def _names() -> dict[str, list[str]]:
    """Return the public names, each with the paths that have it."""
    found: dict[str, list[str]] = {}
    for where in _SEARCHED:
        for source in sources(where)[:1]:
            module = importlib.import_module(source)
            for name in getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]:
                found.setdefault(name, []).append(where)
    return found
