"""Five steps of each optimizer give MindSpore's parameters (see `cases`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from tests.nn.optim import cases

EXPECTED: dict[str, list[list[float]]] = json.loads((Path(__file__).parent / "expected.json").read_text())
CHECKED = dict.fromkeys(
    """nn.ASGD nn.AdaFactor nn.AdaMax nn.Adadelta nn.Adagrad nn.Adam nn.AdamWeightDecay nn.FTRL
    nn.LazyAdam nn.Momentum nn.ProximalAdagrad nn.RMSProp nn.Rprop nn.SGD""".split(),
    "MindSpore 2.10",
)


@pytest.fixture(autouse=True)
def restored_mode() -> Iterator[None]:
    before = ms.get_context("mode")
    yield
    ms.set_context(mode=before)


def test_every_case_is_recorded() -> None:
    assert set(EXPECTED) == set(cases.CASES)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])
@pytest.mark.parametrize("case", list(cases.CASES))
def test_steps_are_those_recorded(case: str, mode: int) -> None:
    ms.set_context(mode=mode)
    np.testing.assert_allclose(cases.run(ms, case), EXPECTED[case], rtol=1e-5, atol=1e-6)
