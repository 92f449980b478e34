"""Every test starts and ends with the pipeline's default settings."""

from __future__ import annotations

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
