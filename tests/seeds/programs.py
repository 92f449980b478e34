"""The programs of the documents, as printed, and what runs them.

Each file under `programs/` is a program's text, verbatim. A test completes it where the document
leaves something out: with what goes before and after, and with replacements, each of which must fit
exactly once, so that nothing else of the text can have changed. The completed text is written to a
file and run as a module of its own, under the names of MindSpore.
"""

from __future__ import annotations

import itertools
import sys
import types
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "programs"
_numbers = itertools.count()


def printed(name: str) -> str:
    """The text of a program."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def completed(text: str, *replacements: tuple[str, str], before: str = "", after: str = "") -> str:
    """A program with what its document leaves out."""
    for old, new in replacements:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in the text"
        text = text.replace(old, new)
    return f"{before}\n{text}\n{after}"


def run(text: str, folder: Path, /, **names: Any) -> types.SimpleNamespace:
    """Run a program with some names defined for it; its names."""
    number = next(_numbers)
    path = folder / f"program_{number}.py"
    path.write_text(text, encoding="utf-8")
    module = types.ModuleType(f"program_{number}")
    module.__file__ = str(path)
    module.__dict__.update(names)
    sys.modules[module.__name__] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    return types.SimpleNamespace(**module.__dict__)
