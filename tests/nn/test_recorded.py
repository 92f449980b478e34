"""Layers and losses give MindSpore's outputs, gradients and running statistics (see `cases`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from tests.nn import cases

EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "expected.json").read_text())
CHECKED = {f"nn.{name.split('_')[0]}": "MindSpore" for name in cases.CASES}


@pytest.fixture(autouse=True)
def restored_mode() -> Iterator[None]:
    before = ms.get_context("mode")
    yield
    ms.set_context(mode=before)


def test_every_case_is_recorded() -> None:
    assert set(EXPECTED) == set(cases.CASES)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
@pytest.mark.parametrize("name", list(cases.CASES))
def test_outputs_and_gradients_are_those_recorded(name: str, mode: int) -> None:
    ms.set_context(mode=mode)
    found, expected = cases.run(ms, name), EXPECTED[name]
    assert found["shape"] == expected["shape"]
    np.testing.assert_allclose(found["out"], expected["out"], rtol=2e-5, atol=2e-6)
    for part in ("state", "gradients"):
        assert len(found.get(part, [])) == len(expected.get(part, []))
        for got, wanted in zip(found.get(part, []), expected.get(part, [])):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=2e-5)
