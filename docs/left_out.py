"""The page of what is left out of MindSpore's interface, and why.

`left_out.toml` is kept by hand: groups with a title, a reason, and patterns of names as the shell
has them ("hal.*"), written without "mindspore." in front. `missing` asks the package which names of
`tests/data/public_names.json` it lacks, so a name that is there is never listed as left out, and
one that neither is there nor has a reason is what `unexplained` gives.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
NAMES = HERE.parent / "tests" / "data" / "public_names.json"


def public_names() -> dict[str, list[str]]:
    """Return the public names of the reference by module; "class:Tensor" are those of a class."""
    return {
        module: names.split()
        for module, names in json.loads(NAMES.read_text(encoding="utf-8")).items()
    }


def groups() -> list[dict[str, Any]]:
    """Return the groups of the table."""
    table: list[dict[str, Any]] = tomllib.loads(
        (HERE / "left_out.toml").read_text(encoding="utf-8")
    )["group"]
    return table


def owner_of(module: str) -> Any:
    """Return what has the names of a module of the reference.

    None where Mycel has nothing of the kind.
    """
    if module.startswith("class:"):
        name = module.removeprefix("class:")
        return getattr(
            importlib.import_module("mycel.nn" if name == "Cell" else "mycel"), name
        )
    try:
        return importlib.import_module(module.replace("mindspore", "mycel", 1))
    except ModuleNotFoundError:
        return None


def missing() -> list[str]:
    """Return the names that Mycel lacks, without "mindspore." in front and in order."""
    lacking = []
    for module, names in public_names().items():
        owner = owner_of(module)
        prefix = module.removeprefix("class:").removeprefix("mindspore").lstrip(".")
        lacking += [
            f"{prefix}.{n}".lstrip(".")
            for n in names
            if owner is None or not hasattr(owner, n)
        ]
    return sorted(lacking)


def group_of(name: str, table: list[dict[str, Any]]) -> int:
    """Return the number of the first group that has a pattern for a name; -1 where none has."""
    for number, group in enumerate(table):
        if any(fnmatchcase(name, pattern) for pattern in group["names"]):
            return number
    return -1


def unexplained() -> list[str]:
    """Return the names that Mycel lacks and the table does not explain."""
    table = groups()
    return [name for name in missing() if group_of(name, table) < 0]


def needless() -> list[str]:
    """Return the patterns of the table that no missing name matches."""
    lacking = missing()
    return [
        p
        for group in groups()
        for p in group["names"]
        if not any(fnmatchcase(n, p) for n in lacking)
    ]


def write(target: Path) -> Path:
    """Write the page as reStructuredText."""
    table = groups()
    by_group: dict[int, list[str]] = {}
    lacking = missing()
    for name in lacking:
        by_group.setdefault(group_of(name, table), []).append(name)
    total = sum(map(len, public_names().values()))
    text = "What is left out, and why\n=========================\n\n"
    text += (
        f"MindSpore 2.10 has {total} public names, inherited ones counted in each class. Mycel has "
        f"{total - len(lacking)} of them. "
        "A name that would do nothing, or something else than it says, is left out instead of being there for show; "
        "this page has all of those, as ``mindspore.`` has them.\n\n"
    )
    for number, group in enumerate(
        [*table, {"title": "Not there yet", "reason": "These are not written yet."}]
    ):
        listed = by_group.get(number if number < len(table) else -1)
        if not listed:
            continue
        title = group["title"]
        text += f"{title}\n{'-' * len(title)}\n\n{group['reason'].strip()}\n\n"
        by_module: dict[str, list[str]] = {}
        for name in listed:
            module, _, last = name.rpartition(".")
            by_module.setdefault(module, []).append(last)
        for module, names in sorted(by_module.items()):
            text += (
                f"* {f'``{module}``' if module else 'top level'}: "
                + ", ".join(f"``{n}``" for n in names)
                + "\n"
            )
        text += "\n"
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")
    return target


def prune() -> None:
    """Take the patterns that nothing needs out of the table."""
    path = HERE / "left_out.toml"
    text = path.read_text(encoding="utf-8")
    for pattern in needless():
        text = re.sub(rf'"{re.escape(pattern)}",?[ ]?', "", text)
    text = re.sub(r"[ ]+\n", "\n", text)
    path.write_text(re.sub(r"(?<=\[)\n\n+|(?<=,)\n\n+", "\n", text), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Say what is missing without a reason; with "--prune" take what is explained needlessly out of
    the table first.
    """
    if arguments == ["--prune"]:
        prune()
    lacking, unneeded = unexplained(), needless()
    print(
        f"{len(missing())} names are missing, {len(lacking)} of them without a reason in docs/left_out.toml",
        *lacking,
        sep="\n",
    )
    if unneeded:
        print(
            "patterns that nothing needs (--prune takes them out):", *unneeded, sep="\n"
        )
    return int(bool(lacking or unneeded))


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    sys.exit(main(sys.argv[1:]))
