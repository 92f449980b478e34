"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from mycel._src.engines.native.program import program_cache
from mycel._src.foundation.settings import config


@pytest.fixture(scope="session", autouse=True)
def answered_interrupts() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, also where the tests were started in the background,
    which ignores it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def compiled_anew() -> Iterator[None]:
    """Compile every program that a test runs, whatever an earlier run has kept: a test may have
    changed how it is compiled.
    """
    before, program_cache.LEAST = program_cache.LEAST, 1 << 62
    yield
    program_cache.LEAST = before


@pytest.fixture(autouse=True)
def same_mode() -> Iterator[None]:
    """Let no test leave its mode to the next one."""
    before = config.get_context("mode")
    yield
    if config.get_context("mode") != before:
        config.set_context(mode=before)
