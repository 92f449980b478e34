"""The account of memory: what tensors and compiled functions take and give back, and the limit."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

import mycel as ms
from mycel._src.devices import hal, runtime

MEGABYTE = 1 << 20
CHECKED = {
    n: "definition"
    for n in (
        "empty_cache",
        "max_memory_allocated",
        "max_memory_reserved",
        "memory_allocated",
        "memory_reserved",
        "memory_stats",
        "memory_summary",
        "reset_max_memory_allocated",
        "reset_max_memory_reserved",
        "reset_peak_memory_stats",
        "set_memory",
    )
}


@pytest.fixture(autouse=True)
def no_limit() -> Iterator[None]:
    # What other tests left must not go while these count.
    gc.collect()
    yield
    ms.set_context(max_device_memory=None)


def test_what_tensors_take_is_counted() -> None:
    before = runtime.memory_allocated()
    x = ms.Tensor(np.ones((512, 1024), np.float32))
    assert runtime.memory_allocated() - before == 2 * MEGABYTE
    y = x.reshape(1024, 512)
    assert y.asnumpy().shape == (1024, 512)
    # A reshaped view shares the memory of its root.
    assert runtime.memory_allocated() - before == 2 * MEGABYTE
    del x, y
    assert runtime.memory_allocated() == before
    assert runtime.memory_reserved() >= before


def test_maxima_begin_again() -> None:
    x = ms.ops.zeros((1024, 1024), ms.float32)
    del x
    runtime.reset_peak_memory_stats()
    start = runtime.max_memory_allocated()
    assert start == runtime.memory_allocated()
    x = ms.ops.zeros((2048, 1024), ms.float32)
    del x
    assert runtime.max_memory_allocated() >= start + 8 * MEGABYTE
    assert runtime.max_memory_reserved() >= runtime.memory_reserved()


def test_the_cache_is_given_back() -> None:
    x = ms.ops.zeros((1024, 1024), ms.float32)
    del x
    held = runtime.memory_reserved()
    runtime.empty_cache()
    assert runtime.memory_reserved() <= held - 4 * MEGABYTE
    stats = runtime.memory_stats()
    assert stats["total_idle_memory"] == stats["total_reserved_memory"] - stats["total_allocated_memory"] >= 0
    assert stats["common_mem_pool_stats"]["block_counts"] >= 0


def test_compiled_functions_keep_a_small_arena_until_the_cache_is_emptied() -> None:
    @ms.jit
    def f(x: ms.Tensor) -> ms.Tensor:
        return ms.ops.matmul(ms.ops.tanh(ms.ops.matmul(x, x)), x)

    x = ms.Tensor(np.full((256, 256), 0.01, np.float32))
    f(x)
    runtime.empty_cache()
    before = runtime.memory_allocated()
    wanted = f(x).asnumpy().copy()
    assert runtime.memory_allocated() >= before + MEGABYTE // 4
    runtime.empty_cache()
    assert runtime.memory_allocated() <= before
    np.testing.assert_array_equal(f(x).asnumpy(), wanted)


def test_the_limit_holds() -> None:
    runtime.empty_cache()
    x = ms.Tensor(np.ones((1024, 1024), np.float32))
    ms.set_context(max_device_memory=f"{(runtime.memory_reserved() + 6 * MEGABYTE) / 2**30}GB")
    y = ms.Tensor(np.ones((1024, 1024), np.float32))
    with pytest.raises(MemoryError, match="a tensor needs 8 MiB.* of max_device_memory"):
        ms.Tensor(np.ones((2048, 1024), np.float32))
    with pytest.raises(MemoryError, match="needs more memory"):
        ms.ops.concat((x, y, x))
    # What waits in the cache makes room for another size.
    del y
    assert ms.Tensor(np.ones((1024, 1280), np.float32)).shape == (1024, 1280)
    ms.set_context(max_device_memory=None)
    assert ms.Tensor(np.ones((2048, 1024), np.float32)).sum() == 2048 * 1024


@pytest.mark.parametrize("wrong", ["2", "2MB", "GB", "-1GB", 3, "0GB"])
def test_sizes_of_limits_are_checked(wrong: object) -> None:
    with pytest.raises((TypeError, ValueError), match="a size of memory is a number and GB|must be a string"):
        ms.set_context(max_device_memory=wrong)
    with pytest.raises(ValueError, match="max_size"):
        runtime.set_memory(max_size=wrong)


def test_set_memory_sets_the_limit() -> None:
    runtime.set_memory(max_size="3GB")
    assert ms.get_context("max_device_memory") == "3GB"
    assert "3GB" in runtime.memory_summary()
    with pytest.raises(ValueError, match="optimize_level"):
        runtime.set_memory(optimize_level="O7")


def test_the_older_names_give_the_same() -> None:
    assert hal.memory_stats("CPU") == ms.memory_stats() == runtime.memory_stats()
    assert hal.memory_summary() == runtime.memory_summary()
    with pytest.raises(ValueError, match="device_target 'Ascend' is not available"):
        hal.max_memory_allocated("Ascend")


def test_the_paths_of_mindspore_lead_here() -> None:
    from mycel import compat

    compat.install()
    try:
        import mindspore

        assert mindspore.runtime.memory_stats is runtime.memory_stats
        assert mindspore.hal.memory_allocated is hal.memory_allocated
        assert mindspore.max_memory_allocated is runtime.max_memory_allocated
    finally:
        compat.uninstall()
