"""The names of MindSpore's modules, as the tables here have them, and those that Mycel lacks."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def tables() -> dict[str, dict[str, list[str]]]:
    """The names of all modules of all tables, each with its kind, its parameters and its home."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(HERE.glob("*.json")):
        found.update(json.loads(path.read_text(encoding="utf-8")))
    return found


def module_of(path: str) -> Any:
    """A module under MindSpore's path; None where Mycel has none."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        return None


def lacking(modules: dict[str, dict[str, list[str]]]) -> list[str]:
    """The names that Mycel, answering for MindSpore, lacks, without "mindspore." in front."""
    found = []
    for path, names in modules.items():
        module = module_of(path)
        found += [f"{path}.{name}" for name in names if module is None or not hasattr(module, name)]
    return sorted(name.removeprefix("mindspore.") for name in found)
