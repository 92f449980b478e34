"""Sizes that vary: a program for each, also where inputs are declared without them; and sizes that
data decide, which are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transport import thread_ranks
from mycel._src.foundation.errors import ShapeError
from mycel._src.staging.distributed import Layouts, distribute

ROWS = Layouts(Mesh((2,), ("data",)), [("data",)])


class Sums(nn.Cell):
    def construct(self, x: Any) -> Any:
        return (ops.tanh(x) * x.shape[0]).sum(0)


def test_a_program_for_each_size() -> None:
    def rank(_: int) -> list[Any]:
        net = Sums()
        net.set_inputs(ms.Tensor(shape=(None, 3), dtype=ms.float32))
        step = distribute(net, ROWS)
        found = [step(ms.Tensor(np.full((n, 3), 0.5, np.float32))).asnumpy() for n in (4, 6, 5, 4)]
        assert len(step._divided) == 3
        return found

    for found in thread_ranks.run(2, rank):
        for n, value in zip((4, 6, 5, 4), found):
            np.testing.assert_allclose(value, np.full(3, np.tanh(0.5) * n * n), rtol=1e-6)


def test_sizes_that_data_decide_are_refused_by_line() -> None:
    def chosen(x: Any) -> Any:
        positive = x[x > 0]
        return positive.sum()

    with pytest.raises(ShapeError, match=r"data decide the size of int64\[.*\], which positions gives") as caught:
        distribute(chosen, Layouts(Mesh((1,), ("data",))))(ms.Tensor([-1.0, 2.0]))
    assert "test_sizes.py" in str(caught.value) and "positive = x[x > 0]" in str(caught.value)
