"""The names of MindSpore's modules, as the tables here have them, and those that Mycel lacks."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from mycel.compat.names import is_made

HERE = Path(__file__).resolve().parent


def tables() -> dict[str, dict[str, list[str]]]:
    """The names of all modules of all tables, each with its kind, its parameters and its home."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(HERE.glob("*.json")):
        found.update(json.loads(path.read_text(encoding="utf-8")))
    return found


def module_of(path: str) -> Any:
    """A module under MindSpore's path."""
    return importlib.import_module(path)


def is_lacking(value: Any) -> bool:
    """Whether something is there by its name alone: it, or a module that no source serves."""
    sources = getattr(getattr(value, "__spec__", None), "origin", None)
    return is_made(value) or sources == "mycel (mycel.compat.names)"


def lacking(modules: dict[str, dict[str, list[str]]]) -> list[str]:
    """The names that Mycel, answering for MindSpore, does not serve, without "mindspore." in
    front.
    """
    found = []
    for path, names in modules.items():
        module = module_of(path)
        found += [f"{path}.{name}" for name in names if is_lacking(module) or is_lacking(getattr(module, name))]
    return sorted(name.removeprefix("mindspore.") for name in found)
