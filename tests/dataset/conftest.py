"""Every test starts and ends with the pipeline's default settings."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from mycel.dataset import config


@pytest.fixture(autouse=True)
def default_settings() -> Iterator[None]:
    before = dict(config._settings)
    workers_were_set = config._workers_were_set
    yield
    config._settings.clear()
    config._settings.update(before)
    config._workers_were_set = workers_were_set


@pytest.fixture(autouse=True, scope="module")
def what_was_there_is_no_garbage() -> Iterator[None]:
    # Collections go through what these tests make, not through all that other tests have left.
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
