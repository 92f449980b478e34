"""A few faults of pipelines of each kind; `python -m tests.faults.data 100` does a hundred."""

from __future__ import annotations

import pytest

from mycel.dataset.execution import idle_workers, worker_pool
from tests.faults import data

pytestmark = [
    pytest.mark.skipif(not worker_pool.has_processes("tests"), reason="no worker processes here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.mark.parametrize("fault", data.FAULTS)
def test_pipelines_survive(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Where other programs run as well, little of the time to clean up is left after a second.
    monkeypatch.setattr(idle_workers, "REST", 0.2)
    data.run(fault, 3, 0)
