"""The fixed corpus of every driver, and the harness itself on cases that crash, hang, take memory,
and raise.
"""

from __future__ import annotations

import pytest

from tests.fuzz import harness


@pytest.mark.parametrize("name", harness.names())
def test_corpus(name: str) -> None:
    seeds = harness.corpus(harness.load(name))
    ran, findings = harness.run_seeds(name, seeds)
    assert not findings, harness.report(findings)
    assert ran == len(seeds)


def test_harness_finds_what_it_looks_for() -> None:
    _, findings = harness.run_seeds("_selftest", range(-6, 0))
    kinds = {finding.case: finding.kind for finding in findings}
    assert kinds == {"'crash'": "crash", "'hang'": "hang", "'memory'": "error", "'silent'": "error", "'inner'": "error"}
    assert all(finding.alone for finding in findings)
    text = harness.report(findings)
    assert "SIGSEGV" in text and "KeyError" in text and "MemoryError" in text and "--seed" in text
