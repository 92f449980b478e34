"""A few faults of pipelines of each kind; `python -m tests.faults.data 100` does a hundred."""

from __future__ import annotations

import pytest

from mycel.dataset import processes
from tests.faults import data

pytestmark = [
    pytest.mark.skipif(not processes.has_processes("tests"), reason="no worker processes here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.mark.parametrize("fault", data.FAULTS)
def test_pipelines_survive(fault: str) -> None:
    data.run(fault, 3, 0)
