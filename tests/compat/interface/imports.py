"""Write `mycel/compat/imports.json` from the tables here: which names of MindSpore's modules are
imported, and from where.

    python imports.py
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE.parents[2] / "mycel" / "compat" / "imports.json"


def tables() -> dict[str, dict[str, list[str]]]:
    """All modules of all tables."""
    return {m: names for path in sorted(HERE.glob("*.json")) for m, names in json.loads(path.read_text()).items()}


def content() -> str:
    """The text of the file."""
    found: dict[str, dict[str, list[str]]] = {}
    for module, names in sorted(tables().items()):
        for name, (kind, _, home) in sorted(names.items()):
            if home:
                owner, _, there = ("", "", home) if kind == "module" else home.rpartition(".")
                entry = name if there == name else f"{name}={there}"
                found.setdefault(module, {}).setdefault(owner, []).append(entry)
    joined = {module: {home: " ".join(n) for home, n in homes.items()} for module, homes in found.items()}
    return json.dumps(joined, indent=0, sort_keys=True) + "\n"


if __name__ == "__main__":
    TARGET.write_text(content())
