"""A few interrupts and kills at random moments, and ranks that fail; `make faults` does a thousand,
and `make ranks` each way for each rank.
"""

from __future__ import annotations

import os
import sys

import pytest

from tests.faults import harness, ranks

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")


def test_interrupted_runs_end_as_undisturbed_ones():
    assert harness.interrupts(5, steps=4) == 5


def test_killed_runs_end_as_undisturbed_ones():
    assert harness.kills(2, steps=4, each=2) <= 2


@pytest.mark.skipif(sys.platform != "linux", reason="standstills are seen on Linux")
@pytest.mark.parametrize("way", ["kill", "raise", "exit", "sleep"])
def test_a_rank_that_fails_ends_all(way):
    ranks.fail(way, 2)
