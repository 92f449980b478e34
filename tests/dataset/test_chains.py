"""Chains of dataset operations, drawn at random, against what MindSpore gives for them.

`ask_chains.py` drew them and stored the answers, of those that MindSpore runs.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

import mycel.dataset as ds
from mycel.dataset import config

from .chains import answers

STORED: list[Any] = json.loads((pathlib.Path(__file__).parent / "values" / "chains.json").read_text())


def _unlike(wanted: Any, found: Any) -> list[str]:
    """Return the questions of which the answers differ."""
    questions = [name for name in wanted if found[name] != wanted[name]]
    # MindSpore refuses to compare the shapes of columns of several lengths after a zip, and of
    # datasets without rows.
    if isinstance(wanted["estimated"], str) and "estimated" in questions:
        questions.remove("estimated")
    # It repeats the columns in some shapes and types after a split.
    if isinstance(wanted["shapes"], list) and len(wanted["shapes"]) > len(wanted["names"]):
        questions = [name for name in questions if name not in ("shapes", "estimated", "types")]
    return questions


@pytest.mark.parametrize("number", range(len(STORED)))
def test_chains(number: int) -> None:
    program, wanted = STORED[number]
    found = json.loads(json.dumps(answers(ds, program)))
    assert "build" not in found, (program, found)
    unlike = _unlike(wanted, found)
    assert not unlike, (program, {name: (wanted[name], found[name]) for name in unlike})


@pytest.mark.parametrize("number", range(0, len(STORED), 5))
def test_chains_with_workers_give_the_same(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "_workers_were_set", True)
    monkeypatch.setitem(config._settings, "num_parallel_workers", 2 + number % 3)
    test_chains(number)


def test_chains_reach_every_operation() -> None:
    used = {operation for program, _ in STORED for operation, _ in program["steps"]}
    assert used >= {
        *("map", "batch", "padded_batch", "bucket_batch_by_length", "repeat", "take", "skip", "filter", "project"),
        *("rename", "zip", "concat", "add", "split", "apply", "use_sampler"),
    }
