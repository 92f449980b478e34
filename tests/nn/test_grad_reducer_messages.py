"""Gradients of several ranks go in as many messages as `comm_fusion` says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.compiler.transport import thread_ranks
from mycel._src.compiler.transport.counting_transport import Counted
from mycel._src.compiler.transport.current_transport import transport, within

CASES = [
    ({}, 8),
    ({"allreduce": {"mode": "size", "config": 4}}, 2),
    ({"allreduce": {"mode": "index", "config": [2, 5]}}, 3),
    ({"openstate": False}, 8),
]


@pytest.mark.parametrize("config, count", CASES)
def test_messages_of_gradients(config: dict[str, Any], count: int) -> None:
    def program(rank: int) -> tuple[list[float], int]:
        way = Counted(transport())
        with within(way):
            zeros = np.zeros((512, 512), np.float32)
            reduce = nn.DistributedGradReducer([ms.Parameter(ms.Tensor(zeros), name=f"w{k}") for k in range(8)])
            given = [ms.Tensor(np.full((512, 512), rank + k, np.float32)) for k in range(8)]
            found = ms.jit(lambda *g: reduce(g))(*given)
        return [float(f.asnumpy().sum()) / 512**2 for f in found], way.counts["all_reduce"].times

    ms.set_auto_parallel_context(comm_fusion=config)
    try:
        results = thread_ranks.run(2, program)
    finally:
        ms.reset_auto_parallel_context()
    assert results == [([2 * k + 1 for k in range(8)], count)] * 2
