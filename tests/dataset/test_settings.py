"""Settings, callbacks, hooks, waiting, saving and caches of pipelines.

What is expected was asked of MindSpore.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import config, debug
from mycel.dataset.config import ErrorSamplesMode


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    config.set_error_samples_mode(ErrorSamplesMode.RETURN)
    config.set_debug_mode(False)


def numbers(count: int = 3) -> ds.Dataset:
    return ds.NumpySlicesDataset({"a": list(range(count))}, shuffle=False)


def values(data: ds.Dataset) -> list[Any]:
    return [x.tolist() for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def test_switches_keep_their_values() -> None:
    for name, default in (
        ("numa_enable", False),
        ("enable_autotune", False),
        ("auto_offload", False),
        ("enable_watchdog", True),
        ("fast_recovery", True),
        ("dynamic_shape", False),
    ):
        put, get = getattr(config, f"set_{name}"), getattr(config, f"get_{name}")
        assert get() is default
        put(not default)
        assert get() is not default
        put(default)
        with pytest.raises(TypeError, match=f"set_{name}: the value must be a bool, not int"):
            put(1)
    config.set_autotune_interval(5)
    assert config.get_autotune_interval() == 5
    config.set_autotune_interval(0)
    config.set_multiprocessing_start_method("spawn")
    assert config.get_multiprocessing_start_method() == "spawn"
    config.set_multiprocessing_start_method("fork")
    assert config.get_video_backend() == "CPU"
    for call, error in (
        (lambda: config.set_autotune_interval(-1), ValueError),
        (lambda: config.set_multiprocessing_start_method("x"), ValueError),
        (lambda: config.set_video_backend(1), TypeError),
        (lambda: config.set_enable_autotune(True, ""), RuntimeError),
        (lambda: config.set_enable_autotune(True, 3), TypeError),
        (lambda: config.set_sending_batches(True), TypeError),
        (lambda: config.set_error_samples_mode(1), TypeError),
    ):
        with pytest.raises(error):
            call()


def test_rows_that_fail() -> None:
    def even(x: Any) -> Any:
        if x in (1, 3):
            raise ValueError("odd")
        return x

    data = numbers(6).map(even, "a")
    config.set_error_samples_mode(ErrorSamplesMode.SKIP)
    assert (values(data), data.get_dataset_size()) == ([0, 2, 4, 5], 4)
    assert values(data.batch(3)) == [[0, 2, 4], [5]]
    config.set_error_samples_mode(ErrorSamplesMode.REPLACE)
    assert (values(data), data.get_dataset_size()) == ([0, 2, 4, 5, 0, 2], 6)
    config.set_error_samples_mode(ErrorSamplesMode.RETURN)
    with pytest.raises(RuntimeError, match="ValueError: odd"):
        values(data)


class Noting(ds.DSCallback):
    def __init__(self, step_size: int) -> None:
        super().__init__(step_size)
        self.calls: list[tuple[Any, ...]] = []

    def _note(self, name: str, context: Any) -> None:
        self.calls.append((name, context.cur_epoch_num, context.cur_step_num_in_epoch, context.cur_step_num))

    def ds_begin(self, ds_run_context: Any) -> None:
        self._note("begin", ds_run_context)

    def ds_epoch_begin(self, ds_run_context: Any) -> None:
        self._note("epoch", ds_run_context)

    def ds_epoch_end(self, ds_run_context: Any) -> None:
        self._note("epoch end", ds_run_context)

    def ds_step_begin(self, ds_run_context: Any) -> None:
        self._note("step", ds_run_context)

    def ds_step_end(self, ds_run_context: Any) -> None:
        self._note("step end", ds_run_context)


def test_callbacks_of_map() -> None:
    noting = Noting(2)
    data = numbers().map(lambda x: x, "a", callbacks=noting)
    assert data.output_shapes() == [[]] and not noting.calls
    iterator = data.create_tuple_iterator(num_epochs=2)
    assert [len(list(iterator)) for _ in range(2)] == [3, 3]
    assert noting.calls == [
        ("begin", 0, 0, 0),
        ("epoch", 1, 0, 0),
        ("step", 1, 1, 1),
        ("step end", 1, 1, 1),
        ("step", 1, 3, 3),
        ("step end", 1, 3, 3),
        ("epoch end", 1, 3, 3),
        ("epoch", 2, 0, 3),
        ("step", 2, 1, 4),
        ("step end", 2, 1, 4),
        ("step", 2, 3, 6),
        ("step end", 2, 3, 6),
        ("epoch end", 2, 3, 6),
    ]
    with pytest.raises(TypeError, match="each of callbacks must be a DSCallback, not int"):
        numbers().map(lambda x: x, "a", callbacks=[1])
    with pytest.raises(ValueError, match="step_size must be within"):
        ds.DSCallback(0)


def test_debug_hooks(capsys: pytest.CaptureFixture[str]) -> None:
    def double(x: Any) -> Any:
        return x * 2

    config.set_debug_mode(True, [debug.PrintDataHook(), debug.PrintMetaDataHook()])
    assert values(numbers(2).skip(1).map([double, ds.transforms.TypeCast(np.float32)], "a")) == [2.0]
    said = capsys.readouterr().out.splitlines()
    assert said[:4] == [
        "[Dataset debugger] Print the [INPUT] of the operation [double].",
        "Column 0. The data is [1].",
        "[Dataset debugger] Print the [INPUT] of the operation [double].",
        "Column 0. The dtype is [int64]. The shape is [()].",
    ]
    assert said[-4:] == [
        "[Dataset debugger] Print the [OUTPUT] of the operation [TypeCast].",
        "Column 0. The data is [2.0].",
        "[Dataset debugger] Print the [OUTPUT] of the operation [TypeCast].",
        "Column 0. The dtype is [float32]. The shape is [()].",
    ]
    wrong: Any = 1
    with pytest.raises(TypeError, match="must be a list of hooks"):
        config.set_debug_mode(True, wrong)
    with pytest.raises(NotImplementedError, match="DebugHook must define compute"):
        debug.DebugHook()((1,))


def test_rows_wait_for_updates() -> None:
    got: list[Any] = []
    data = numbers(5).sync_wait("step", 2, got.append)
    seen = []
    for place, (x,) in enumerate(data.create_tuple_iterator(num_epochs=1, output_numpy=True)):
        seen.append(int(x))
        if place < 4:
            data.sync_update("step", None if place % 2 else 1, place)
    assert seen == [0, 1, 2, 3, 4] and got == [0, 1, 2, 3] and data.is_sync()
    config.set_callback_timeout(1)
    with pytest.raises(RuntimeError, match="no row was released for condition 'step' within 1 seconds"):
        values(numbers().sync_wait("step"))
    with pytest.raises(RuntimeError, match="there is no condition 'other'"):
        data.sync_update("other")
    data.disable_sync()
    assert len(values(data)) == 5 and not numbers().is_sync()


def test_saved_rows_are_read_again(tmp_path: Path) -> None:
    def rows() -> Iterator[Any]:
        for n in range(3):
            yield np.array(n % 2 == 0), np.uint32(n), np.float16(n), np.ones((n + 1, 3), np.float64), f"s{n}"

    name = str(tmp_path / "x.mindrecord")
    ds.GeneratorDataset(rows, list("abcde")).save(name)
    found = list(ds.MindDataset(name, shuffle=False).create_dict_iterator(num_epochs=1, output_numpy=True))
    assert [str(found[1][c].dtype) for c in "abcd"] == ["int32", "int64", "float32", "float64"]
    assert [(int(r["a"]), int(r["b"]), float(r["c"]), r["d"].shape, str(r["e"])) for r in found] == [
        (1, 0, 0.0, (1, 3), "s0"),
        (0, 1, 1.0, (2, 3), "s1"),
        (1, 2, 2.0, (3, 3), "s2"),
    ]
    numbers().save(str(tmp_path / "y"), 2)
    assert sorted(p.name for p in tmp_path.glob("y*")) == ["y0", "y0.db", "y1", "y1.db"]
    for arguments, error in (((3,), TypeError), ((name, 0), ValueError), ((name, 1, "csv"), ValueError)):
        with pytest.raises(error, match="save: "):
            numbers().save(*arguments)
    with pytest.raises(RuntimeError, match="arrays of text"):
        ds.NumpySlicesDataset({"x": [["a", "b"]]}).save(str(tmp_path / "z"))


def test_order_of_inputs_for_other_devices() -> None:
    first, second = numbers(), numbers().rename("a", "b")
    assert first.zip(second).batch(2).input_indexs == ()
    second.input_indexs = 3
    assert first.zip(second).batch(2).input_indexs == second.zip(first).input_indexs == 3
    first.input_indexs = (1, 0)
    assert first.zip(second).input_indexs == (1, 0) and first.repeat(2).input_indexs == (1, 0)


@pytest.mark.parametrize("count", [1025, 2**31 - 1, 2**40])
def test_no_more_workers_than_a_machine_can_have(count: int) -> None:
    before = config.get_num_parallel_workers()
    for ask in (
        lambda: numbers().map(lambda a: a, num_parallel_workers=count),
        lambda: ds.GeneratorDataset([1], ["a"], num_parallel_workers=count),
        lambda: config.set_num_parallel_workers(count),
    ):
        with pytest.raises(ValueError, match=r"num_parallel_workers.* within .*\[1, "):
            ask()
    assert config.get_num_parallel_workers() == before


def test_every_setting_has_a_line_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    assert [name for name in config.__all__ if name.startswith("set_") and f"`{name}`" not in page] == []
