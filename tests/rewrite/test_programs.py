"""Programs that change networks give what MindSpore 2.10 gave (see `programs`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.rewrite.programs import PROGRAMS, Programs

EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "expected.json").read_text())


def close(given: Any, wanted: Any) -> bool:
    """Whether two answers are equal, numbers to 4 digits."""
    if isinstance(wanted, float):
        return bool(np.isclose(given, wanted, rtol=1e-3, atol=2e-4))
    if isinstance(wanted, list):
        return len(given) == len(wanted) and all(close(g, w) for g, w in zip(given, wanted))
    return bool(given == wanted)


def test_every_program_is_recorded() -> None:
    assert set(EXPECTED) == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_they_give_there(name: str) -> None:
    given = json.loads(json.dumps(getattr(Programs(), name)()))
    assert close(given, EXPECTED[name]), (given, EXPECTED[name])
