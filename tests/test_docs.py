"""The programs of the pages under docs/ run, each page from top to bottom, and print what the page
says they print.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import mycel as ms

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PACKAGE = ROOT / "mycel"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "api" not in path.relative_to(DOCS).parts)
DESIGN = [DOCS / "design.md", DOCS / "compiled_and_kept.md", *sorted((DOCS / "design").glob("*.md"))]
WITHOUT_PROGRAMS = {
    *DESIGN,
    *(DOCS / f"{name}.md" for name in ("glossary", "measured", "status")),
} - {DOCS / "compiled_and_kept.md", DOCS / "design" / "paths.md"}
# What paths on a page of the design, or in CONTRIBUTING, may begin at.
HOMES = (ROOT, PACKAGE, *(PACKAGE / "_src" / wing for wing in ("", "compiler", "tensors", "staging")))
HOME_OF_PAGE = {
    "native.md": PACKAGE / "_src" / "engines" / "native",
    "partition.md": PACKAGE / "_src" / "compiler" / "transforms" / "partition",
}

# What the programs of a page need beside Mycel.
NEEDS = {
    "sources.md": ("pyarrow", "mycel[arrow]"),
    "files_elsewhere.md": ("fsspec", "mycel[remote]"),
    "tuning_optuna.md": ("optuna", "optuna"),
    "tuning_ray.md": ("ray.tune", "ray[tune]"),
}


def agree(expected: str, printed: str) -> bool:
    """Whether a block of output is what was printed; "..." stands for anything, and runs of blanks
    are one.
    """
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected, printed, flags)


@pytest.mark.parametrize("page", PAGES, ids=["/".join(p.relative_to(DOCS).with_suffix("").parts) for p in PAGES])
def test_the_programs_of_a_page_run(page: Path, caplog: Any, monkeypatch: Any, tmp_path: Path) -> None:
    if page.name in NEEDS:
        module, package = NEEDS[page.name]
        reason = f"{module} is not installed: pip install '{package}'"
        pytest.importorskip(module, reason=reason, exc_type=ImportError)
    caplog.set_level(logging.ERROR, "mycel")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "example"}
    blocks = re.findall(r"^```(python|text)\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    mode, check_nan = ms.get_context("mode"), ms.get_context("check_nan")
    printed = ""
    try:
        for number, (kind, block) in enumerate(blocks):
            if kind == "text":
                assert agree(block, printed), f"{page.name} says\n{block}\nand the program before prints\n{printed}"
                continue
            name = f"<{page.name}, example {number}>"
            linecache.cache[name] = (len(block), None, block.splitlines(True), name)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(block, name, "exec"), namespace)
            printed = output.getvalue()
    finally:
        ms.set_context(mode=mode, check_nan=check_nan)
    assert blocks or page in WITHOUT_PROGRAMS


def test_the_pages_are_those_of_the_table_of_contents() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^((?:tutorials|concepts|design)/\w+|\w+)$", index, re.M))
    assert {p.relative_to(DOCS).with_suffix("").as_posix() for p in PAGES} - {"index"} <= listed


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+\.(?:md|rst|py|toml))[^)]*\)", page.read_text(encoding="utf-8")):
            if "api/" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", [*DESIGN, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_files_that_the_design_names_are_there(page: Path) -> None:
    homes = (*HOMES, HOME_OF_PAGE.get(page.name, PACKAGE))
    paths = re.findall(r"`([\w.]+(?:/[\w.]+)*(?:\.(?:pyi?|toml)|/))`", page.read_text(encoding="utf-8"))
    # Words in capitals stand for a name that the reader chooses.
    named = {path for path in paths if not re.search(r"[A-Z]{4,}", path)}
    missing = {path for path in named if not any((home / path).exists() for home in homes)}
    assert not missing


@pytest.mark.parametrize("page", DESIGN, ids=lambda page: page.stem)
def test_functions_that_the_design_names_are_there(page: Path) -> None:
    """Tables of the design name a file, and functions and classes in it.

    Functions of the runtime are LLVM IR.
    """
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (`[^|]*`)", page.read_text(encoding="utf-8"), re.M)
    for path, cell in rows:
        file = next(home / path for home in HOMES[1:] if (home / path).exists())
        source = file.read_text(encoding="utf-8")
        for name in re.findall(r"`([\w.]+)`", cell):
            for part in name.split("."):
                assert re.search(rf"(?:def|class) {part}\b|@{part}\(", source), f"{path} has no {name}"
    assert rows or page.name not in ("design.md", "paths.md")


def test_the_map_of_the_design_has_every_folder() -> None:
    the_map = (DOCS / "design.md").read_text(encoding="utf-8").split("```\nmycel/\n")[1].split("```")[0]
    named = set(re.findall(r"(\w+)/", the_map))
    assert {p.parent.name for p in PACKAGE.rglob("__init__.py")} - {"mycel"} <= named


@pytest.mark.parametrize("page", [*DESIGN, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_lines_of_the_design_fit_a_screen(page: Path) -> None:
    text = re.sub(r"```mermaid\n.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    # Rows of tables, which cannot be wrapped, have a path in front.
    wide = [line for line in text.splitlines() if len(line) > (140 if line.startswith("|") else 100)]
    assert not wide


def test_output_is_compared() -> None:
    assert agree("a ... c\n", "a b  c\n") and not agree("a\n", "b\n")
