"""Programs below `answers/`, each a function `run`, and what the real package gives for them.

A file has several programs; a line ``# --- name`` begins one, and all begin with the same imports.
With the real package installed, `python tests/language/answered.py` run from the repository's root
asks it and stores the answers in `expected_answers.json`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import tempfile
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected_answers.json"
IMPORTS = """import numpy as np
import mindspore as ms
from mindspore import Parameter, Tensor, jit, mint, mutable, nn, ops
"""


def programs() -> dict[str, str]:
    """Return the programs by name, with the file's name before it."""
    found = {}
    for path in sorted((HERE / "answers").glob("*.txt")):
        for part in re.split(r"^# --- ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name, _, text = part.partition("\n")
            found[f"{path.stem}.{name.strip()}"] = IMPORTS + text
    return found


def runner(name: str, text: str, folder: Path) -> Callable[[], Any]:
    """Return a function that runs a program, as a module of its own whose source can be read."""

    def run() -> Any:
        path = folder / f"{name.replace('.', '_')}.py"
        path.write_text(text, encoding="utf-8")
        module = types.ModuleType(path.stem)
        module.__file__ = str(path)
        sys.modules[path.stem] = module
        exec(compile(text, str(path), "exec"), module.__dict__)
        return module.run()

    return run


def ask() -> None:
    """Ask the real package for all answers, and store them."""
    spec = importlib.util.spec_from_file_location("answers", HERE.parent / "answers.py")
    assert spec is not None and spec.loader is not None
    answers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(answers)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # where it writes about errors
        found = {n: answers.answer(runner(n, text, Path(folder))) for n, text in programs().items()}
    EXPECTED.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.path.pop(0)
    ask()
