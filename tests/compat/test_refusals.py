"""What MindSpore refuses, Mycel refuses with the same class of error at the same place.

`refusals/answers` holds what MindSpore 2.10 answers to wrong arguments by rule (`refusals/cases.py`
has the rules, `refusals/ask.py` asks). Where Mycel answers otherwise the reason is one of `REASONS`
in `refusals/run.py`, or the case is listed in `refusals/different.json`, which only gets shorter:
``python tests/compat/refusals/run.py --write`` writes it anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "refusals"
TABLES = sorted(p.name for p in (HERE / "answers").glob("*.json"))


@pytest.mark.parametrize("table", TABLES)
def test_answers(table: str) -> None:
    """The differences are those that are listed."""
    listed = json.loads((HERE / "different.json").read_text()).get(table, {})
    place = os.pathsep.join([str(HERE.parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(HERE / "run.py"), table],
        env={**os.environ, "PYTHONPATH": place},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout)
    found = result["found"][table]
    new = {p: sorted(set(v.split()) - set(listed.get(p, "").split())) for p, v in found.items()}
    gone = {p: sorted(set(v.split()) - set(found.get(p, "").split())) for p, v in listed.items()}
    assert not {p: v for p, v in new.items() if v}, "answers that differ and are not listed"
    assert not {p: v for p, v in gone.items() if v}, "listed differences that are gone: write the list anew"
    assert result["count"]["cases"] > 20
