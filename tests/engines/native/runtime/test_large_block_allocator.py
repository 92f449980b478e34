"""Large blocks of memory: whether what is given never overlaps, and how much is held."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from mycel._src.compiler.ir.types import tensor_type
from mycel._src.devices import runtime
from mycel._src.engines import buffers
from mycel._src.foundation import dtype as D
from mycel._src.foundation.python_runtime import garbage_collection

MEGABYTE = 1 << 20


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    # What other tests left must not go while these count.
    gc.collect()
    runtime.empty_cache()
    with garbage_collection.left_alone():
        yield


def words(buffer: object, count: int) -> np.ndarray:
    return buffers.to_array(buffer, tensor_type((count,), D.int64))


@pytest.mark.parametrize("seed", range(4))
def test_blocks_do_not_overlap(seed: int) -> None:
    draw = random.Random(seed)
    held: list[tuple[object, int, int]] = []
    before = runtime.memory_allocated()
    for mark in range(600):
        if held and draw.random() < 0.45 + 0.1 * (len(held) > 40):
            buffer, count, was = held.pop(draw.randrange(len(held)))
            found = words(buffer, count)
            assert (found[0], found[count // 2], found[-1]) == (was, was, was)
            del buffer, found
        elif draw.random() < 0.02:
            runtime.empty_cache()
        else:
            count = int(2 ** draw.uniform(10, 20))
            buffer = buffers.empty(8 * count)
            assert buffers.address(buffer) % 64 == 0
            words(buffer, count)[[0, count // 2, count - 1]] = mark
            held.append((buffer, count, mark))
            del buffer
        total = sum(8 * count for _, count, _ in held)
        assert runtime.memory_allocated() - before == total
        assert runtime.memory_reserved() >= runtime.memory_allocated()
    held.clear()
    assert runtime.memory_allocated() == before


SIZES_IN_TURN = """
from mycel._src.devices import runtime
from mycel._src.engines import buffers

base = runtime.memory_reserved()
for size in range(20, 61):
    buffers.empty(size << 20)
print(runtime.max_memory_reserved() - base)
"""


def test_what_was_written_is_used_again_by_other_sizes() -> None:
    # A process of its own, as what may wait depends on what was held before.
    done = subprocess.run([sys.executable, "-c", SIZES_IN_TURN], capture_output=True, text=True, check=True)
    # One block at a time: the largest, and what may wait.
    assert int(done.stdout) < 61 * MEGABYTE * 17 // 16 + 16 * MEGABYTE


def test_parts_join_again() -> None:
    runtime.empty_cache()
    base = runtime.memory_reserved()
    parts = [buffers.empty(4 * MEGABYTE) for _ in range(8)]
    held = runtime.memory_reserved()
    for k in (1, 3, 5, 7, 0, 2, 4, 6):
        parts[k] = None
    whole = buffers.empty(31 * MEGABYTE)
    assert runtime.memory_reserved() == held
    del whole
    runtime.empty_cache()
    assert runtime.memory_reserved() <= base
