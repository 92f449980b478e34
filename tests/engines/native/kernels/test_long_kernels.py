"""Kernels that run for so long that they ask on the way whether to end: in pieces where there are
many rows, inside of long rows; their results are the same.
"""

from __future__ import annotations

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.engines.native.kernels.kernel_form import LONG
from mycel._src.engines.native.kernels.loop_schedule import GRAIN_WORK
from mycel._src.engines.native.runtime.step_interpreter_ir import PIECES

MANY = 2 * PIECES * GRAIN_WORK + 12_345


@pytest.fixture(scope="module")
def numbers():
    yield np.random.default_rng(0).integers(-100, 100, MANY, dtype=np.int8)
    # Half a gigabyte would wait for tensors as large as these, which other tests do not have.
    ms.runtime.empty_cache()


def test_a_step_in_pieces_gives_every_element(numbers):
    found = ms.jit(lambda x: x * 3 + 1)(Tensor(numbers)).asnumpy()
    assert np.array_equal(found, numbers * np.int8(3) + np.int8(1))


def test_rows_in_pieces(numbers):
    rows = numbers[: MANY // 4096 * 4096].reshape(-1, 4096)
    found = ms.jit(lambda x: ops.maximum(x, 0).amax(1) + ops.arange(rows.shape[0]).astype(ms.int8))(Tensor(rows))
    assert np.array_equal(found.asnumpy(), np.maximum(rows, 0).max(1) + np.arange(len(rows)).astype(np.int8))


@pytest.mark.parametrize("work", ["argmax", "cumsum", "any"])
def test_long_rows(numbers, work):
    assert MANY >= LONG
    expected = {
        "argmax": lambda: numbers[:LONG].argmax(),
        "cumsum": lambda: numbers[:LONG].cumsum(dtype=np.int32),
        "any": lambda: (numbers[:LONG] == 101).any(),
    }[work]()
    run = {
        "argmax": lambda x: x.argmax(),
        "cumsum": lambda x: x.astype(ms.int32).cumsum(0),
        "any": lambda x: (x == 101).any(),
    }[work]
    assert np.array_equal(ms.jit(run)(Tensor(numbers[:LONG])).asnumpy(), expected)
