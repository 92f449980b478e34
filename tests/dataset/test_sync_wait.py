"""Callbacks of `map`, and rows that wait for the consumer or the training.

What is expected was asked of MindSpore; the calls for begins and ends of steps, which it makes in
two threads, are compared one kind at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn
from mycel.dataset import config
from mycel.dataset.config import ErrorSamplesMode
from mycel.dataset.nodes.sync_wait import waits
from mycel.train import Model


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    config.set_error_samples_mode(ErrorSamplesMode.RETURN)
    config.set_debug_mode(False)


def numbers(count: int = 3) -> ds.Dataset:
    return ds.NumpySlicesDataset({"a": list(range(count))}, shuffle=False)


def values(data: ds.Dataset, epochs: int = 1) -> list[Any]:
    iterator = data.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[x.tolist() for (x,) in iterator] for _ in range(epochs)]


class Noting(ds.DSCallback):
    def __init__(self, step_size: int = 1) -> None:
        super().__init__(step_size)
        self.calls: dict[str, list[tuple[int, int, int]]] = {}

    def _note(self, name: str, context: Any) -> None:
        at = (context.cur_epoch_num, context.cur_step_num_in_epoch, context.cur_step_num)
        self.calls.setdefault(name, []).append(at)

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


def twice(x: Any) -> Any:
    return x * 2


@pytest.mark.parametrize("after", ["none", "repeat", "take", "skip", "batch"])
@pytest.mark.parametrize("options", [{}, {"num_parallel_workers": 3}, {"python_multiprocessing": True}])
@pytest.mark.parametrize("mode", list(ErrorSamplesMode))
def test_order_of_calls(after: str, options: dict[str, Any], mode: ErrorSamplesMode) -> None:
    if after != "none" and options.get("python_multiprocessing"):
        pytest.skip("processes change nothing of the other nodes")
    config.set_error_samples_mode(mode)
    noting, each = Noting(2), Noting()
    data = numbers(5).map(twice, "a", callbacks=[noting, each], **options)
    changes: dict[str, Any] = {
        "none": lambda d: d,
        "repeat": lambda d: d.repeat(2),
        "take": lambda d: d.take(2),
        "skip": lambda d: d.skip(3),
        "batch": lambda d: d.batch(2),
    }
    data = changes[after](data)
    rows = {
        "none": [0, 2, 4, 6, 8],
        "repeat": [0, 2, 4, 6, 8] * 2,
        "take": [0, 2],
        "skip": [6, 8],
        "batch": [[0, 2], [4, 6], [8]],
    }
    assert values(data, 2) == [rows[after]] * 2
    size = 10 if after == "repeat" else 5
    steps = [(epoch + 1, n, epoch * size + n) for epoch in range(2) for n in range(1, size + 1)]
    ends = [(1, size, size), (2, size, 2 * size)]
    for found, step in ((noting, 2), (each, 1)):
        expected = {
            "begin": [(0, 0, 0)],
            "epoch": [(1, 0, 0), (2, 0, size)],
            "step": [at for at in steps if (at[1] - 1) % step == 0],
            "step end": [at for at in steps if (at[1] - 1) % step == 0],
            "epoch end": ends,
        }
        assert found.calls == expected


def test_steps_are_numbered_on_where_an_iterator_resumes() -> None:
    noting = Noting()
    data = numbers(4).map(twice, "a", callbacks=noting).repeat(2)
    data.set_init_step(13)
    iterator = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [int(x) for (x,) in iterator] == [2, 4, 6]
    assert noting.calls["step"] == noting.calls["step end"] == [(2, 6, 14), (2, 7, 15), (2, 8, 16)]
    assert noting.calls["begin"] == [(0, 0, 0)] and noting.calls["epoch end"] == [(2, 8, 16)]


@pytest.mark.parametrize("name", ["ds_begin", "ds_epoch_begin", "ds_step_begin", "ds_step_end", "ds_epoch_end"])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_callback_stops_the_pipeline(name: str, workers: int) -> None:
    def fails(self: Any, context: Any) -> None:
        raise ValueError("no more")

    callback = type("Failing", (ds.DSCallback,), {name: fails})()
    data = numbers(4).map(twice, "a", callbacks=callback, num_parallel_workers=workers)
    with pytest.raises(RuntimeError, match=f"map: {name} of callback Failing failed in epoch .*ValueError: no more"):
        values(data)


@pytest.mark.parametrize("options", [{}, {"num_parallel_workers": 2}, {"python_multiprocessing": True}])
def test_rows_that_fail_with_workers(options: dict[str, Any]) -> None:
    def fails(x: Any) -> Any:
        if int(x) in (1, 2):
            raise ValueError("odd one out")
        return x * 10

    data = numbers(5).map(fails, "a", **options)
    config.set_error_samples_mode(ErrorSamplesMode.SKIP)
    assert values(data) == [[0, 30, 40]] and values(data.batch(2)) == [[[0, 30], [40]]]
    config.set_error_samples_mode(ErrorSamplesMode.REPLACE)
    assert values(data) == [[0, 30, 40, 0, 30]] and data.get_dataset_size() == 5
    config.set_error_samples_mode(ErrorSamplesMode.RETURN)
    with pytest.raises(RuntimeError, match="odd one out"):
        values(data)


def waiting(workers: int, batch: int, num_batch: int = 1) -> tuple[list[Any], ds.Dataset]:
    log: list[Any] = []

    def seen(x: Any) -> Any:
        log.append(int(x))
        return x

    data = numbers(6).sync_wait("go", num_batch, lambda data: log.append(("update", data)))
    return log, data.map(seen, "a", num_parallel_workers=workers).batch(batch)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("debugs", [False, True])
def test_a_batch_waits_for_its_update(workers: int, debugs: bool) -> None:
    config.set_debug_mode(debugs)
    log, data = waiting(workers, 2)
    for number, (x,) in enumerate(data.create_tuple_iterator(num_epochs=1, output_numpy=True)):
        log.append(x.tolist())
        data.sync_update("go", data=number)
    expected = []
    for number in range(3):
        rows = [2 * number, 2 * number + 1]
        assert sorted(log[: len(rows)]) == rows
        expected = [rows, ("update", number)]
        assert log[2:4] == expected
        del log[:4]
    assert not log


def test_updates_from_another_thread_are_awaited() -> None:
    _, data = waiting(1, 1)
    timers = [threading.Timer(0.05 * n, lambda: data.sync_update("go")) for n in range(1, 6)]
    for timer in timers:
        timer.start()
    assert values(data) == [[[n] for n in range(6)]]
    for timer in timers:
        timer.join()


def test_nested_batches_are_counted_together() -> None:
    data = numbers(8).sync_wait("go").batch(2)
    both = data.batch(2)
    found = []
    for (x,) in both.create_tuple_iterator(num_epochs=1, output_numpy=True):
        found.append(x.tolist())
        both.sync_update("go")
    assert found == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_a_stopped_iterator_waits_no_longer() -> None:
    _, data = waiting(2, 1)
    iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert next(iterator)[0].tolist() == [0]
    thread = iterator._thread
    iterator.stop()
    assert thread is not None and not thread.is_alive()


def test_rows_that_nobody_asks_for_are_not_waited_for() -> None:
    config.set_callback_timeout(5)
    for last in (lambda d: d.take(2), lambda d: d.skip(2)):
        data = last(numbers(4).sync_wait("go").map(twice, "a", callbacks=Noting()))
        found = []
        for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
            found.append(int(x))
            data.sync_update("go")
        assert found in ([0, 2], [4, 6])


@pytest.mark.parametrize("epochs", [3])
def test_a_pass_that_ends_early_takes_no_rows_of_the_next(epochs: int) -> None:
    config.set_callback_timeout(5)
    data = numbers(6).sync_wait("go").map(twice, "a", num_parallel_workers=3).batch(1, num_parallel_workers=2).take(2)
    iterator = data.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    for _ in range(epochs):
        found = []
        for (x,) in iterator:
            found.append(int(x[0]))
            data.sync_update("go")
        assert found == [0, 2]


def test_what_cannot_wait_is_refused() -> None:
    data = numbers().sync_wait("go")
    with pytest.raises(RuntimeError, match="rows cannot be shuffled after sync_wait"):
        data.batch(2).shuffle(2)
    with pytest.raises(RuntimeError, match="there is a condition 'go' already"):
        data.sync_wait("go")
    with pytest.raises(ValueError, match="rank_id must be below rank_size=1"):
        ds.sync_wait_for_dataset(1, 1, 0)
    with pytest.raises(RuntimeError, match="this process is rank 0 of 1, not 0 of 2"):
        ds.sync_wait_for_dataset(0, 2, 0)


# Callbacks that wait for the training.


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(1.0, ms.float32), name="w")

    def construct(self, x: Any) -> Any:
        return (self.w * x).sum()


class Waiting(ds.WaitedDSCallback):
    log: list[Any] = []

    def sync_epoch_begin(self, train_run_context: Any, ds_run_context: Any) -> None:
        done = train_run_context.original_args().cur_step_num
        self.log.append(("epoch", ds_run_context.cur_epoch_num, done))

    def sync_step_begin(self, train_run_context: Any, ds_run_context: Any) -> None:
        done = train_run_context.original_args().cur_step_num
        self.log.append(("step", ds_run_context.cur_step_num, done))


@pytest.mark.parametrize("sinks", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_pipeline_waits_for_steps_of_the_training(sinks: bool, workers: int) -> None:
    log: list[Any] = []

    def seen(x: Any) -> Any:
        log.append(float(x))
        return x

    waits = Waiting(2)
    waits.log = log
    data = ds.NumpySlicesDataset(np.arange(4, dtype=np.float32), ["x"], shuffle=False)
    data = data.map(seen, ["x"], callbacks=waits, num_parallel_workers=workers).batch(2)
    net = Net()
    model = Model(net, optimizer=nn.SGD(net.trainable_params(), 0.0))
    model.train(2, data, callbacks=waits, dataset_sink_mode=sinks)
    found = [sorted(log[:2]), log[2], sorted(log[3:5]), log[5:7], sorted(log[7:9]), log[9], sorted(log[10:])]
    first = [("epoch", 2, 2), ("step", 5, 2)]
    assert found == [[0.0, 1.0], ("step", 3, 1), [2.0, 3.0], first, [0.0, 1.0], ("step", 7, 3), [2.0, 3.0]]


@pytest.mark.parametrize("hook, what", [("sync_step_begin", "step"), ("sync_epoch_begin", "epoch")])
def test_waiting_without_a_training_ends(hook: str, what: str) -> None:
    config.set_callback_timeout(1)
    waits = type("Alone", (ds.WaitedDSCallback,), {hook: lambda self, train, data: None})()
    with pytest.raises(RuntimeError, match=f"timed out after 1 seconds .*: no {what} of the training has ended"):
        values(numbers(2).map(twice, "a", callbacks=waits), 2)


def test_an_iterator_whose_callback_waits_can_be_stopped() -> None:
    waits = type("Alone", (ds.WaitedDSCallback,), {"sync_step_begin": lambda self, train, data: None})()
    iterator = numbers(3).map(twice, "a", callbacks=waits).create_tuple_iterator(num_epochs=1)
    next(iterator)
    thread = iterator._thread
    iterator.stop()
    assert thread is not None and not thread.is_alive()


# Rows that are left out, and rows that are made of more or fewer.


def _few(a: Any) -> Any:
    made = ds.NumpySlicesDataset({"a": np.arange(1 + int(a) % 3) + 10 * int(a)}, shuffle=False)
    return made if int(a) % 4 else made.skip(9)


ABOVE: dict[str, Any] = {
    "filter": lambda d: d.filter(lambda a: a % 3 == 0, "a"),
    "filter with workers": lambda d: d.filter(lambda a: a % 3 == 0, "a", num_parallel_workers=2),
    "nothing": lambda d: d.filter(lambda a: False, "a"),
    "remainder": lambda d: d.batch(3),
    "no remainder": lambda d: d.batch(4, drop_remainder=True),
    "sizes": lambda d: d.batch(lambda info: info.get_batch_num() % 3 + 1),
    "flat": lambda d: d.flat_map(_few),
    "buckets": lambda d: d.bucket_batch_by_length(["a"], [3, 7], [2, 1, 3], element_length_function=int),
    "filtered batches": lambda d: d.batch(2).filter(lambda a: a[0] % 4 == 0, "a"),
    "batches of filtered": lambda d: d.filter(lambda a: a % 3 > 0, "a").batch(2),
    "repeated": lambda d: d.filter(lambda a: a % 3 > 0, "a").repeat(2),
}


@pytest.mark.parametrize("name", ABOVE)
def test_updates_are_for_rows_that_come(name: str) -> None:
    """The rows are those without sync_wait, from any row on, and no update is lost or gained."""
    config.set_callback_timeout(5)
    expected = values(ABOVE[name](numbers(11)), 2)
    data = ABOVE[name](numbers(11).sync_wait("go"))
    for skip in (0, len(expected[0]) // 2):
        iterator = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
        iterator.load_state_dict({**iterator.state_dict(), "step": skip})
        for rows in (expected[0][skip:], expected[1]):
            found = []
            for (x,) in iterator:
                found.append(x.tolist())
                data.sync_update("go")
            assert found == rows
        ((waiting, grouped),) = waits(data)
        assert waiting._gate.left == grouped
        iterator.stop()


def test_rows_that_fail_release_others() -> None:
    config.set_callback_timeout(5)
    config.set_error_samples_mode(ErrorSamplesMode.SKIP)

    def odd(a: Any) -> Any:
        if a % 2 == 0:
            raise ValueError("even")
        return a

    data = numbers(7).sync_wait("go").map(odd, "a")
    found = []
    for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        found.append(int(x))
        data.sync_update("go")
    assert found == [1, 3, 5]
    with pytest.raises(RuntimeError, match="split: rows cannot be shuffled after sync_wait"):
        numbers(7).sync_wait("go").split([3, 4])
