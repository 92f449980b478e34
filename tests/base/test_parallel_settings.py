"""The record of parallel settings: what is in force where."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import mycel as ms
from mycel._src.foundation.settings.parallel_settings import (
    AUTO,
    PROCESS,
    SEMI_AUTO,
    ParallelSettings,
    current,
    in_force,
    plan,
)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    ms.reset_auto_parallel_context()


def test_options_are_in_the_record() -> None:
    before = PROCESS.settings
    ms.set_auto_parallel_context(device_num=6, pipeline_stages=3, dataset_strategy=((6, 1),), gradients_mean=True)
    now = current()
    assert now is PROCESS.settings and now is not before
    assert (now.device_num, now.pipeline_stages, now.dataset_strategy, now.gradients_mean) == (6, 3, ((6, 1),), True)
    assert PROCESS.given == {"device_num", "pipeline_stages", "dataset_strategy", "gradients_mean"}
    ms.set_auto_parallel_context(device_num=6)
    assert PROCESS.settings is now
    ms.set_auto_parallel_context(parallel_optimizer_config={"optimizer_weight_shard_size": 2})
    assert PROCESS.settings.optimizer_weight_shard_size == 2
    ms.reset_auto_parallel_context()
    assert PROCESS.settings == ParallelSettings() and not PROCESS.given


def test_nothing_changes_where_one_value_is_wrong() -> None:
    with pytest.raises(ValueError, match="pipeline_stages must be at least 1"):
        ms.set_auto_parallel_context(device_num=8, pipeline_stages=0)
    assert PROCESS.settings.device_num == 1


@pytest.mark.parametrize(
    "mode, devices, divides",
    [(SEMI_AUTO, 8, True), (AUTO, 2, True), (SEMI_AUTO, 1, False), ("data_parallel", 8, False), (None, 8, False)],
)
def test_a_plan_is_there_where_operators_are_divided(mode: str | None, devices: int, divides: bool) -> None:
    ms.set_auto_parallel_context(device_num=devices, **({} if mode is None else {"parallel_mode": mode}))
    assert (plan() is PROCESS.settings) is divides and (PROCESS.settings.dividing == devices) is divides


def test_a_network_has_settings_of_its_own_in_its_thread() -> None:
    own, seen = ParallelSettings(parallel_mode=AUTO, device_num=4), []
    with in_force(own):
        assert current() is own and plan() is own
        thread = threading.Thread(target=lambda: seen.append((current(), plan())))
        thread.start()
        thread.join()
        with in_force(ParallelSettings()):
            assert plan() is None
        with in_force(None):
            assert current() is PROCESS.settings
        assert plan() is own
    assert seen == [(PROCESS.settings, None)] and current() is PROCESS.settings
