"""A few random graphs as libraries; `python -m tests.deploy.random_graphs` checks thousands."""

from __future__ import annotations

import shutil

import pytest

from mycel._src.engines.aot.targets import named
from mycel._src.engines.native.llvm.target import host
from tests.deploy import random_graphs
from tests.deploy.boards import BOARDS, missing_tools


@pytest.mark.parametrize("target", ("x86-64", "cortex-m4", "aarch64", "wasm32"))
def test_libraries_compute_what_the_reference_does(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    if target in BOARDS:
        there = not missing_tools()
    elif target in random_graphs.EMULATED or target == "wasm32":
        there = all(map(shutil.which, random_graphs.EMULATED.get(target, ("node",))))
    else:
        there = host().is_family("x86_64") and named(target).feature_set <= host().feature_set
    if not there:
        pytest.skip(f"libraries for {target} do not run here")
    assert random_graphs.main([target, "0", "4"]) == 0, capsys.readouterr().out
    assert capsys.readouterr().out.startswith(f"{target}: 4 graphs from 0, 0 failed")
