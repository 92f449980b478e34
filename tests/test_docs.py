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

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "api" not in path.relative_to(DOCS).parts)
WITHOUT_PROGRAMS = {"design.md", "index.md"}


def agree(expected: str, printed: str) -> bool:
    """Whether a block of output is what was printed; "..." stands for anything, and runs of blanks
    are one.
    """
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected, printed, flags)


@pytest.mark.parametrize("page", PAGES, ids=["/".join(p.relative_to(DOCS).with_suffix("").parts) for p in PAGES])
def test_the_programs_of_a_page_run(page: Path, caplog: Any, monkeypatch: Any, tmp_path: Path) -> None:
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
    assert blocks or page.name in WITHOUT_PROGRAMS


def test_the_pages_are_those_of_the_table_of_contents() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^((?:tutorials|concepts)/\w+|\w+)$", index, re.M))
    assert {p.relative_to(DOCS).with_suffix("").as_posix() for p in PAGES} - {"index"} <= listed


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+\.(?:md|rst|py|toml))[^)]*\)", page.read_text(encoding="utf-8")):
            if "api/" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_output_is_compared() -> None:
    assert agree("a ... c\n", "a b  c\n") and not agree("a\n", "b\n")
