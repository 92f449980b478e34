"""Queues of rows: `device_que`, the limit of batches sent, and rows from one rank to another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn
from mycel._src.compiler.transport import thread_ranks
from mycel.dataset import config
from mycel.dataset.iteration import iterators
from mycel.train import DatasetHelper, Model


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    config.set_sending_batches(0)


def numbers(count: int = 6) -> ds.Dataset:
    return ds.NumpySlicesDataset({"x": np.arange(count, dtype=np.float32)}, shuffle=False)


def soon(what: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not what() and time.monotonic() < end:
        time.sleep(0.005)
    return what()


def test_rows_are_sent_ahead() -> None:
    queue = numbers().batch(2).device_que(create_data_info_queue=True, queue_name="rows")
    assert isinstance(queue, ds.TransferDataset) and queue.queue_name == "rows" and queue.get_dataset_size() == 3
    for info in (queue.get_data_info, queue.get_send_info):
        with pytest.raises(RuntimeError, match="call send first"):
            info()
    queue.send(2)
    assert soon(lambda: queue.get_send_info()[0] == [6.0])
    assert queue.get_mbuf_queue_size() == 6 and queue.get_data_info() == ([np.dtype("float32")], [[2]])
    mean, least, most = queue.get_send_info()[2]
    assert 0 <= least <= mean <= most
    rows = queue.create_tuple_iterator()
    assert [[x.tolist() for (x,) in rows] for _ in range(2)] == [[[0, 1], [2, 3], [4, 5]]] * 2
    with pytest.raises(RuntimeError, match="all epochs that were sent are taken"):
        next(rows)
    queue.release()
    assert queue.get_mbuf_queue_size() == 0


def test_epochs_without_marks_are_one_stream() -> None:
    queue = numbers(2).device_que(send_epoch_end=False)
    queue.send(2)
    rows = queue.create_tuple_iterator()
    assert [int(next(rows)[0]) for _ in range(4)] == [0, 1, 0, 1]
    queue.release()


def test_sending_pauses_and_goes_on() -> None:
    queue = numbers().device_que()
    queue.stop_send()
    queue.send(1)
    queue.stop_send()
    time.sleep(0.02)
    before = queue.get_send_info()[0][0]
    time.sleep(0.02)
    assert queue.get_send_info()[0][0] in (before, before + 1)
    queue.continue_send()
    assert soon(lambda: queue.get_send_info()[0][0] == 6.0)
    queue.release()
    queue.release()
    queue.continue_send()


def test_an_error_comes_after_the_rows_before_it() -> None:
    def fails(x: Any) -> Any:
        if x == 2:
            raise ValueError("two")
        return x

    queue = numbers().map(fails, "x").device_que()
    rows = queue.create_tuple_iterator()
    found = []
    with pytest.raises(RuntimeError, match="ValueError: two"):
        for (x,) in rows:
            found.append(int(x))
    assert found == [0, 1]


def test_the_limit_of_batches_holds_in_each_epoch() -> None:
    config.set_sending_batches(2)
    queue = numbers(4).device_que()
    queue.send(2)
    assert soon(lambda: queue.get_mbuf_queue_size() == 2)
    time.sleep(0.02)
    assert queue.get_mbuf_queue_size() == 2
    config.set_sending_batches(3)
    assert soon(lambda: queue.get_mbuf_queue_size() == 3)
    config.set_sending_batches(0)
    assert soon(lambda: queue.get_mbuf_queue_size() == 8)
    queue.release()
    for wrong, error in (("a", TypeError), (True, TypeError), (-1, ValueError)):
        with pytest.raises(error, match="set_sending_batches"):
            config.set_sending_batches(wrong)  # type: ignore[arg-type]


def test_a_queue_that_waits_at_its_limit_is_released() -> None:
    config.set_sending_batches(1)
    queue = numbers(4).device_que()
    queue.send()
    assert soon(lambda: queue.get_mbuf_queue_size() == 1)
    thread = queue._sender.thread if queue._sender is not None else None
    queue.release()
    assert thread is not None and not thread.is_alive()


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(0.0, ms.float32), name="w")

    def construct(self, x: Any) -> Any:
        return (self.w - x).sum()


def trained(data: ds.Dataset, sinks: bool) -> float:
    net = Net()
    Model(net, optimizer=nn.SGD(net.trainable_params(), 0.5)).train(2, data, dataset_sink_mode=sinks)
    return float(net.w)


@pytest.mark.parametrize("sinks", [False, True])
def test_a_model_trains_from_a_queue(sinks: bool) -> None:
    assert trained(numbers().batch(2).device_que(), sinks) == trained(numbers().batch(2), sinks) != 0.0


def test_a_training_that_sinks_waits_for_the_limit() -> None:
    config.set_sending_batches(1)
    timer = threading.Timer(0.3, lambda: config.set_sending_batches(100))
    timer.start()
    begin = time.monotonic()
    trained(numbers().batch(2), True)
    assert time.monotonic() - begin > 0.2
    timer.join()


def test_a_helper_tells_of_its_queue() -> None:
    helper = DatasetHelper(numbers().batch(2), epoch_num=1)
    iter(helper)
    assert helper.next_batch()[0].asnumpy().tolist() == [0.0, 1.0]
    assert soon(lambda: helper.get_send_info()[0][0] >= 3.0) and helper.get_mbuf_queue_size() >= 0
    helper.stop_send()
    helper.continue_send()
    helper.release()
    with pytest.raises(RuntimeError, match="there is no queue of batches"):
        DatasetHelper(numbers(), dataset_sink_mode=False).get_send_info()


def test_a_queue_is_released_while_its_thread_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    begins, released = threading.Event(), threading.Event()
    added = iterators._threads.add

    def add(thread: threading.Thread) -> None:
        if threading.current_thread() is not threading.main_thread():
            begins.set()
            released.wait(20)
        added(thread)

    monkeypatch.setattr(iterators, "_threads", SimpleNamespace(add=add))
    queue = numbers().device_que()
    queue.send()
    assert begins.wait(20)
    # Both threads are at one iterator, whose own thread has not begun.
    threading.Timer(0.05, released.set).start()
    queue.release()
    for _ in range(30):
        helper = DatasetHelper(numbers().batch(2), sink_size=1)
        helper.release()


def test_what_a_queue_does_not_do_is_refused() -> None:
    queue = numbers().device_que()
    with pytest.raises(RuntimeError, match="use create_tuple_iterator"):
        queue.create_dict_iterator()
    with pytest.raises(ValueError, match="has no columns"):
        queue.create_tuple_iterator(["x"])
    with pytest.raises(RuntimeError, match="set create_data_info_queue=True"):
        queue.get_data_info()
    for options in ({"send_epoch_end": 1}, {"create_data_info_queue": "a"}, {"queue_name": 3}):
        with pytest.raises(TypeError, match="device_que"):
            numbers().device_que(**options)  # type: ignore[arg-type]


def test_rows_to_other_ranks() -> None:
    data = numbers()
    assert [float(data.recv()) for _ in range(3)] == [0.0, 1.0, 2.0]
    assert [float(x) for x in data.recv([0])] == [3.0]
    with pytest.raises(ValueError, match="dst must not hold the rank of this process, 0"):
        data.send()
    with pytest.raises(ValueError, match="dst must be below 1, the number of ranks"):
        data.send(dst=1)
    with pytest.raises(ValueError, match="src must be below 1"):
        data.recv(3)


def test_rows_go_to_several_ranks() -> None:
    def program(rank: int) -> Any:
        data = ds.NumpySlicesDataset({"a": [rank, 10 + rank], "b": ["x", "y"]}, shuffle=False)
        ds.sync_wait_for_dataset(rank, 3, 0)
        if rank == 0:
            data.send(dst=[1, 2])
            data.send(ms.Tensor([7.0]), 2)
            return None
        a, b = data.recv()
        both = [int(a), str(b)]
        return both if rank == 1 else [both, data.recv().tolist(), [int(x[0]) for x in data.recv([2, 2])]]

    assert thread_ranks.run(3, program) == [None, [0, "x"], [[0, "x"], [7.0], [2, 12]]]
    with pytest.raises(RuntimeError, match="the ranks begin different epochs"):
        thread_ranks.run(2, lambda rank: ds.sync_wait_for_dataset(rank, 2, rank))
