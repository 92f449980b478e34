"""What a program asks of the machine, the logger and the types, against the system's own answers
and MindSpore's.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import mycel as ms

CHECKED = dict.fromkeys(
    (
        "dispatch_threads_num get_current_device launch_blocking ms_memory_recycle run_check set_cpu_affinity "
        "set_deterministic set_device "
        "synchronize dtype_to_nptype dtype_to_pytype pytype_to_dtype get_level get_log_config ParallelMode "
        "get_algo_parameters "
        "get_auto_parallel_context reset_algo_parameters reset_auto_parallel_context set_algo_parameters "
        "set_auto_parallel_context"
    ).split(),
    "the system, MindSpore",
)


def test_device() -> None:
    ms.set_device("CPU")
    ms.set_device("CPU", 0)
    assert ms.get_current_device() == ("CPU", 0) and ms.get_current_device().device_target == "CPU"
    for error, arguments in ((RuntimeError, ("Ascend",)), (ValueError, ("x",)), (ValueError, ("CPU", 1))):
        with pytest.raises(error, match="set_device"):
            ms.set_device(*arguments)
    assert ms.synchronize() is None and ms.launch_blocking() is None and ms.ms_memory_recycle() is None
    ms.dispatch_threads_num(2)
    with pytest.raises(ValueError, match="threads_num must be at least 1, not 0"):
        ms.dispatch_threads_num(0)


def test_deterministic() -> None:
    before = ms.get_context("deterministic")
    try:
        for value, word in ((False, "OFF"), (True, "ON")):
            ms.set_deterministic(value)
            assert ms.get_context("deterministic") == word
        with pytest.raises(TypeError, match="set_deterministic"):
            ms.set_deterministic("ON")
    finally:
        ms.set_context(deterministic=before)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads can be bound on Linux only")
def test_affinity() -> None:
    allowed = os.sched_getaffinity(0)
    one = min(allowed)
    try:
        ms.set_cpu_affinity(True, [f"{one}-{one}"])
        assert os.sched_getaffinity(0) == {one}
        with pytest.raises(ValueError, match="not all among"):
            ms.set_cpu_affinity(True, [str(max(allowed) + 1000)])
    finally:
        ms.set_cpu_affinity(False)
    assert os.sched_getaffinity(0) == allowed
    with pytest.raises(ValueError, match="no processor or range"):
        ms.set_cpu_affinity(True, ["a"])
    with pytest.raises(ms.errors.Unsupported, match="bind_file"):
        ms.set_cpu_affinity(True, bind_file="f")


def test_run_check(capsys) -> None:
    ms.run_check()
    assert "is correct" in capsys.readouterr().out


def test_types() -> None:
    assert ms.dtype_to_nptype(ms.float32) is np.float32 and ms.dtype_to_nptype(ms.bool_) is np.bool_
    kinds = [ms.dtype_to_pytype(d) for d in (ms.int8, ms.uint64, ms.bool_, ms.complex64, ms.float64, ms.bfloat16)]
    assert kinds == [int, int, bool, complex, float, float]
    wanted = (ms.int64, ms.float64, ms.bool_, ms.complex128, ms.float32, ms.int8)
    assert [ms.pytype_to_dtype(t) for t in (int, float, bool, complex, np.float32, np.int8)] == list(wanted)
    with pytest.raises(NotImplementedError, match="dict"):
        ms.pytype_to_dtype(dict)
    with pytest.raises(TypeError, match="obj must be a type such as int"):
        ms.pytype_to_dtype(None)
    assert (ms.int, ms.float, ms.bool) == (ms.int32, ms.float32, ms.bool_)


def test_log() -> None:
    before = ms.log.logger.level
    try:
        for level, count in ((10, "0"), (20, "1"), (25, "2"), (30, "2"), (40, "3"), (50, "4")):
            ms.log.logger.setLevel(level)
            assert ms.get_level() == count and ms.get_log_config() == {"GLOG_v": count, "GLOG_logtostderr": "1"}
    finally:
        ms.log.logger.setLevel(before)


def test_parallel_settings() -> None:
    for put, get, reset, name, first, value in (
        (
            ms.set_auto_parallel_context,
            ms.get_auto_parallel_context,
            ms.reset_auto_parallel_context,
            "gradients_mean",
            False,
            True,
        ),
        (ms.set_algo_parameters, ms.get_algo_parameters, ms.reset_algo_parameters, "algo_approxi_epsilon", 0.1, 0.5),
    ):
        reset()
        assert get(name) == first
        put(**{name: value})
        assert get(name) == value
        reset()
        assert get(name) == first
        with pytest.raises(ValueError, match="no setting"):
            put(nothing=1)
    with pytest.raises(ValueError, match="device_num must be at least 1"):
        ms.set_auto_parallel_context(device_num=0)
    modes = ["stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel", "auto_parallel"]
    assert ms.ParallelMode.MODE_LIST == modes and ms.ParallelMode.AUTO_PARALLEL == "auto_parallel"
