"""Every public name of the reference is there, or docs/left_out.toml says why it is not."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"


def load(name: str) -> Any:
    """A module of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


left_out = load("left_out")


def test_every_name_that_is_missing_has_a_reason() -> None:
    by_module: dict[str, list[str]] = {}
    for name in left_out.unexplained():
        module, _, last = name.rpartition(".")
        by_module.setdefault(module or "top level", []).append(last)
    told = [f"{module} ({len(names)}): {' '.join(names)}" for module, names in by_module.items()]
    assert not told, "neither in Mycel nor in docs/left_out.toml:\n" + "\n".join(told)


def test_the_table_explains_nothing_that_is_there() -> None:
    assert left_out.needless() == [], (
        "patterns of docs/left_out.toml that match no missing name; `python docs/left_out.py --prune` takes them out"
    )


def test_groups_have_a_title_a_reason_and_names() -> None:
    for group in left_out.groups():
        assert set(group) - {"inner"} == {"title", "reason", "names"}
        assert len(group["reason"].split()) > 8 and group["names"]
        assert len(set(group["names"])) == len(group["names"])


def test_the_list_of_names_is_one_of_the_interface() -> None:
    names = left_out.public_names()
    assert {"mindspore", "mindspore.ops", "mindspore.nn", "class:Tensor"} <= set(names)
    assert sum(map(len, names.values())) > 4000
    assert "relu" in names["mindspore.ops"] and "Dense" in names["mindspore.nn"]


def test_the_page_lists_each_missing_name_once(tmp_path: Path) -> None:
    text = left_out.write(tmp_path / "page.rst").read_text(encoding="utf-8")
    listed = sum(
        line.count("``") // 2 - ("top level" not in line) for line in text.splitlines() if line.startswith("* ")
    )
    assert listed == len(left_out.missing())
