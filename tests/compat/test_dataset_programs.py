"""Drawn programs of datasets give what MindSpore gives, and end with its class of error."""

from __future__ import annotations

import json

import pytest

import mycel as ms
import mycel.dataset
from tests.compat import dataset_programs

PROGRAMS = [json.loads(line) for line in dataset_programs.STORED.read_text(encoding="utf-8").splitlines()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, len(PROGRAMS), 20))
def test_programs(first: int) -> None:
    for source, wanted, ended in PROGRAMS[first : first + 20]:
        shown, error = dataset_programs.run(ms, source)
        assert json.loads(json.dumps(shown)) == wanted, source
        assert (error is None) == (ended is None), (source, error)
        if error is not None:
            assert ended in {kind.__name__ for kind in type(error).__mro__}, (source, error)
