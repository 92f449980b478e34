"""A few interrupts and kills at random moments; `make faults` sends a thousand."""

from __future__ import annotations

import os

import pytest

from tests.faults import harness

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")


def test_interrupted_runs_end_as_undisturbed_ones():
    assert harness.interrupts(5, steps=4) == 5


def test_killed_runs_end_as_undisturbed_ones():
    assert harness.kills(2, steps=4, each=2) <= 2
