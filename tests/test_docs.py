"""The examples of the pages under docs/ run, each page from top to bottom."""

from __future__ import annotations

import linecache
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import mycel as ms

PAGES = sorted((Path(__file__).parent.parent / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=[p.stem for p in PAGES])
def test_the_examples_of_a_page_run(page: Path, caplog: Any) -> None:
    caplog.set_level(logging.ERROR, "mycel")
    namespace: dict[str, Any] = {"__name__": "example"}
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    mode = ms.get_context("mode")
    try:
        for number, block in enumerate(blocks):
            name = f"<{page.name}, example {number}>"
            linecache.cache[name] = (len(block), None, block.splitlines(True), name)
            exec(compile(block, name, "exec"), namespace)
    finally:
        ms.set_context(mode=mode)
    assert blocks or page.name == "design.md"
