"""What all tests share."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule

from mycel._src.engines.native.program import program_cache
from mycel._src.foundation.settings import config

# How many objects are set aside at once, and how many are before garbage is sought among them.
ASIDE = 100_000
enough = 30 * ASIDE


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without the garbage collector, and take them and all modules out of its sight:
    it went through the objects of all tests again in each full collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def what_was_there_is_no_garbage() -> None:
    """Let the garbage collector go through what a module's tests make, not through all that other
    tests have left; of what was set aside, it sees the garbage whenever much has been added.
    """
    global enough
    if len(gc.get_objects(generation=2)) > ASIDE:
        again = gc.get_freeze_count() > enough
        if again:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        if again:
            enough = gc.get_freeze_count() + 20 * ASIDE


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Look for examples only in those files of the tests that have some."""
    found: Any = yield
    if found and ">>>" not in file_path.read_text(encoding="utf-8", errors="replace"):
        found = [c for c in found if not isinstance(c, DoctestModule)]
    return found


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
