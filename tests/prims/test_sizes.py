"""Absurd numbers in the parameters of every primitive: a clear error or the right result, and no
crash; see `absurd`.
"""

from __future__ import annotations

import os

import pytest

from tests.prims.absurd import campaign


@pytest.mark.skipif(os.name != "posix", reason="limits of memory are POSIX's")
def test_absurd_parameters() -> None:
    """Every 9th case; all with MYCEL_EDGES=20 or more."""
    step = 9 if int(os.environ.get("MYCEL_EDGES", "1")) < 20 else 1
    found = list(campaign(step))
    assert len(found) > 1000
    bad = [f"{what}: {outcome}" for what, outcome in found if outcome.startswith("BAD")]
    assert not bad, "\n".join(bad)
