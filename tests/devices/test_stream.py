"""Streams, events, layouts, and settings of what one process has not: the checks are MindSpore
2.10's, the rest is what they mean on one device.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Layout, Parameter, Tensor, nn
from mycel._src.devices import stream
from mycel._src.devices.stream import Event, Stream, StreamCtx

CHECKED = dict.fromkeys(
    (
        "DeviceCtx Event Stream StreamCtx communication_stream current_stream default_stream set_cur_stream "
        "set_kernel_launch_capture set_kernel_launch_group Layout "
        "parameter_broadcast reshard shard sync_pipeline_shared_parameters get_ps_context reset_ps_context "
        "set_ps_context enable_dynamic UntypedStorage"
    ).split(),
    "MindSpore",
)


def test_a_stream_is_chosen_for_a_block_and_a_thread() -> None:
    assert ms.current_stream() == ms.default_stream() != ms.communication_stream()
    first, second = Stream(), Stream(priority=-1)
    assert first != second and len({first, second, ms.default_stream()}) == 3
    with StreamCtx(first):
        assert ms.current_stream() == first
        with StreamCtx(None):
            assert ms.current_stream() is first
        seen: list[Stream] = []
        thread = threading.Thread(target=lambda: seen.append(ms.current_stream()))
        thread.start()
        thread.join()
        assert seen == [ms.default_stream()]
        ms.set_cur_stream(second)
        assert ms.current_stream() == second
    assert ms.current_stream() == ms.default_stream()
    assert (
        ms.runtime.Stream is ms.hal.Stream is Stream
        and repr(ms.default_stream()) == "Stream(device_name=CPU, device_id:0, stream id:0)"
    )


def test_work_is_done_in_the_order_of_the_program() -> None:
    a = Tensor(np.ones((3, 3), np.float32))
    first, second = Stream(), Stream()
    with StreamCtx(first):
        c = a + a
        event = first.record_event()
    with StreamCtx(second):
        second.wait_event(event)
        second.wait_stream(first)
        d = c * 2
    event.wait()
    event.synchronize()
    second.synchronize()
    assert event.query() and second.query() and d.tolist() == np.full((3, 3), 4.0).tolist()


def test_events_keep_the_time() -> None:
    start, middle, end = (Event(enable_timing=True) for _ in range(3))
    for event in (start, middle, end):
        event.record()
    assert start.elapsed_time(start) == 0 and start.elapsed_time(middle) >= 0
    np.testing.assert_allclose(
        start.elapsed_time(middle) + middle.elapsed_time(end), start.elapsed_time(end), rtol=1e-9
    )
    np.testing.assert_allclose(end.elapsed_time(start), -start.elapsed_time(end))
    with pytest.raises(RuntimeError, match="keeps no time"):
        start.elapsed_time(Event())
    with pytest.raises(RuntimeError, match="not recorded"):
        start.elapsed_time(Event(enable_timing=True))


def test_streams_and_events_check_what_they_take() -> None:
    stream, event = Stream(), Event()
    for call in (
        lambda: Stream(priority="a"),
        lambda: Stream(device=1),
        lambda: Event(1),
        lambda: Event(blocking=0),
        lambda: stream.wait_event(3),
        lambda: stream.wait_stream(event),
        lambda: stream.record_event(3),
        lambda: event.record(3),
        lambda: event.wait(3),
        lambda: event.elapsed_time(3),
        lambda: StreamCtx(3),
        lambda: ms.set_cur_stream(3),
    ):
        with pytest.raises(TypeError):
            call()
    with ms.DeviceCtx("CPU", 0):
        assert ms.get_current_device().device_target == "CPU"
    with pytest.raises(RuntimeError, match="not available"):
        ms.DeviceCtx("Ascend")


def test_options_of_launching_say_once_that_they_have_no_effect(monkeypatch: Any) -> None:
    told: list[str] = []
    monkeypatch.setattr(stream, "_told", set())
    monkeypatch.setattr(logging.getLogger("mycel"), "info", lambda text, name, why: told.append(name))
    for _ in range(2):
        ms.set_kernel_launch_group(thread_num=2, kernel_group_num=8)
        ms.set_kernel_launch_capture(True, ["matmul"])
    assert told == ["set_kernel_launch_group", "set_kernel_launch_capture"]
    for call, error in (
        (lambda: ms.set_kernel_launch_group("a"), TypeError),
        (lambda: ms.set_kernel_launch_group(0), ValueError),
        (lambda: ms.set_kernel_launch_group(2, 7), ValueError),
        (lambda: ms.set_kernel_launch_capture(1), TypeError),
        (lambda: ms.set_kernel_launch_capture(True, "a"), TypeError),
    ):
        with pytest.raises(error):
            call()


def test_settings_of_parameter_servers_are_kept() -> None:
    try:
        ms.set_ps_context(enable_ps=False, config_file_path="a", enable_ssl=True, client_password="b")
        assert [ms.get_ps_context(n) for n in ("enable_ps", "config_file_path", "enable_ssl")] == [False, "a", True]
        for call, error in (
            (lambda: ms.set_ps_context(enable_ps=True), RuntimeError),
            (lambda: ms.set_ps_context(enable_ps=3), TypeError),
            (lambda: ms.set_ps_context(zz=1), ValueError),
            (lambda: ms.get_ps_context("zz"), ValueError),
            (lambda: ms.get_ps_context("client_password"), ValueError),
        ):
            with pytest.raises(error):
                call()
    finally:
        ms.reset_ps_context()
    assert [ms.get_ps_context(n) for n in ("enable_ps", "config_file_path", "enable_ssl")] == [False, "", False]


# What MindSpore gives for these: grid, names, call, tensor_map, whether interleaved.
LAYOUTS: list[Any] = [
    ((2, 2), ("a", "b"), ("a", "b"), (1, 0), False),
    ((2, 2, 2), ("dp", "sp", "mp"), ("dp", "mp"), (2, 0), False),
    ((2, 2), ("a", "b"), ("None", "b"), (-1, 0), False),
    ((2, 2), ("a", "b"), (("a", "b"), "None"), ((1, 0), -1), False),
    ((2, 2, 2), ("dp", "sp", "interleaved_parallel"), (("dp", "interleaved_parallel"), "sp"), ((2, 0), 1), True),
]


@pytest.mark.parametrize(("grid", "names", "call", "places", "copies"), LAYOUTS)
def test_layouts_describe_tensors(grid: Any, names: Any, call: Any, places: Any, copies: bool) -> None:
    devices = list(range(int(np.prod(grid))))
    want = {
        "device_matrix": grid,
        "tensor_map": places,
        "interleaved_parallel": copies,
        "alias_name": names,
        "rank_list": devices,
    }
    layout = Layout(grid, names)
    assert layout(*call).to_dict() == want
    assert Layout(grid, names, devices[::-1])(*call).to_dict() == {**want, "rank_list": devices[::-1]}
    with pytest.raises(ValueError, match="says nothing of a tensor"):
        layout.to_dict()


def test_layouts_check_what_they_take() -> None:
    wrong: list[Any] = [
        (([2], ("a",)), TypeError),
        (((2,), ["a"]), TypeError),
        (((2, 2), ("a",)), ValueError),
        (((2.0,), ("a",)), TypeError),
        (((2,), (3,)), TypeError),
        (((2,), ("",)), ValueError),
        (((2,), ("None",)), ValueError),
        (((2, 2), ("a", "a")), ValueError),
        (((2,), ("a",), (0, 1)), TypeError),
        (((2,), ("a",), [0.0, 1]), TypeError),
        (((2,), ("a",), [0]), ValueError),
        (((2, 2), ("interleaved_parallel", "a")), ValueError),
        (((2,), ("a",), [0, 0]), ValueError),
        (((0,), ("a",)), ValueError),
    ]
    for args, error in wrong:
        with pytest.raises(error):
            Layout(*args)
    for call in (("z",), ("a", "a"), (3,), (("a", "a"),), (("a", 3),)):
        with pytest.raises(ValueError, match="axis"):
            Layout((2, 2), ("a", "b"))(*call)


def test_divided_work_is_the_whole_on_one_device() -> None:
    net, x = nn.Dense(2, 3), Tensor(np.ones((1, 2), np.float32))
    layout = Layout((1, 1), ("dp", "mp"))
    assert ms.shard(net, ((1, 1),), ((1, 1),), {"weight": (1, 1)}) is net and ms.reshard(x, layout("dp", "mp")) is x
    double = ms.shard(lambda x: x * 2, in_strategy=(layout("dp", "mp"), None))
    assert ms.jit(lambda x: ms.reshard(double(x), layout("dp", "None")))(x).tolist() == [[2.0, 2.0]]
    before = net.weight.asnumpy().copy()
    assert ms.parameter_broadcast(net, {"weight": None}) is None and ms.sync_pipeline_shared_parameters(net) is None
    np.testing.assert_array_equal(net.weight.asnumpy(), before)
    wrong: list[Any] = [
        (lambda: ms.shard(3, ((1,),)), TypeError),
        (lambda: ms.shard(net, [1]), TypeError),
        (lambda: ms.shard(net, (("a",),)), TypeError),
        (lambda: ms.shard(net, ((1,),), 3), TypeError),
        (lambda: ms.shard(net, ((1,),), None, 3), TypeError),
        (lambda: ms.shard(net, ((1,),), None, {"w": 3}), TypeError),
        (lambda: ms.reshard(3, layout), TypeError),
        (lambda: ms.reshard(x, 3), TypeError),
        (lambda: ms.parameter_broadcast(3, {}), TypeError),
        (lambda: ms.parameter_broadcast(net, {"zz": None}), ValueError),
        (lambda: ms.parameter_broadcast(net, {}, 1), ValueError),
        (lambda: ms.parameter_broadcast(net, 3), TypeError),
        (lambda: ms.sync_pipeline_shared_parameters(3), TypeError),
    ]
    for call, error in wrong:
        with pytest.raises(error):
            call()


# Sizes that vary.


@ms.enable_dynamic(y=Tensor(shape=None, dtype=ms.float32))
@ms.jit
def both(x: Any, y: Any) -> Any:
    return x + 1, y.sum() + x.sum()


@ms.enable_dynamic(x=Tensor(shape=[None, 3], dtype=ms.float32), rest=(Tensor(shape=[None], dtype=ms.int32),))
@ms.jit
def rows(x: Any, rest: Any = None) -> Any:
    return x * x.shape[0] if rest is None else x * rest[0].sum()


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def test_declared_arguments_have_any_size_without_compiling_again() -> None:
    assert float(both(ones(2, 3), ones(4))[1]) == 10 and float(both(ones(2, 3), ones(2, 2, 2))[1]) == 14
    for n in (4, 7, 9):
        np.testing.assert_array_equal(rows(ones(n, 3)).asnumpy(), np.full((n, 3), n))
    assert [calls.staged for calls in rows.dimensions.calls.values()] == [1]
    counts = (Tensor(np.array([1, 2], np.int32)),)
    assert rows(ones(2, 3), counts).tolist() == np.full((2, 3), 3.0).tolist()
    for call, error, text in (
        (lambda: rows(ones(5, 4)), ValueError, "shape"),
        (lambda: rows(ones(5)), ValueError, "shape"),
        (lambda: rows(Tensor(np.ones((5, 3), np.int32))), TypeError, "int32"),
        (lambda: rows(3), TypeError, "declared as a tensor"),
        (lambda: rows(ones(2, 3), 3), TypeError, "1 tensors"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_declarations_are_checked() -> None:
    plain = lambda x: x
    declared = Tensor(shape=[None], dtype=ms.float32)
    for call, error in (
        (lambda: ms.enable_dynamic(), ValueError),
        (lambda: ms.enable_dynamic(x=3), TypeError),
        (lambda: ms.enable_dynamic(z=declared)(ms.jit(plain)), ValueError),
        (lambda: ms.enable_dynamic(x=Tensor(shape=[2], dtype=ms.float32)), TypeError),
        (lambda: ms.enable_dynamic(x=[declared, ones(2)]), TypeError),
    ):
        with pytest.raises(error):
            call()
    assert ms.enable_dynamic(x=declared)(plain) is plain


def test_storages_come_from_tensors() -> None:
    with pytest.raises(TypeError, match="untyped_storage"):
        ms.UntypedStorage()
    p = Parameter(ones(2, 2), name="p")
    assert isinstance(p.untyped_storage(), ms.UntypedStorage) and p.untyped_storage().nbytes() == 16


def test_the_names_of_parallel_are_those_of_the_top_level() -> None:
    for name in set(ms.parallel.__all__) - {"Layouts", "Mesh", "distribute", "set_op_strategy_config", "simulate"}:
        # "convert" is the module's own word for what the top level calls "transform".
        assert getattr(ms.parallel, name) is getattr(ms, name.replace("convert", "transform"))
