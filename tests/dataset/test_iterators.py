"""Iterators: epochs, resuming, background threads and their end."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import vision


def pipeline() -> ds.Dataset:
    images = np.arange(30 * 2 * 3, dtype=np.uint8).reshape(30, 2, 3, 1)
    data: ds.Dataset = ds.NumpySlicesDataset({"image": images, "n": np.arange(30)})
    data = data.map([vision.RandomHorizontalFlip(), vision.RandomCrop((2, 2))], "image")
    return data.shuffle(8).batch(4, drop_remainder=True).repeat(2)


def contents(row: list[Any]) -> list[Any]:
    return [a.tolist() for a in row]


def producers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "mycel-dataset" and t.is_alive()]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("read", [0, 1, 9, 14, 20])
def test_resuming_gives_the_rows_that_would_have_followed(read: int, debug: bool) -> None:
    ds.config.set_debug_mode(debug)
    first = pipeline().create_tuple_iterator(output_numpy=True)

    def take(iterator: Any, count: int) -> list[Any]:
        out: list[Any] = []
        while len(out) < count:
            try:
                out.append(contents(next(iterator)))
            except StopIteration:
                out.append("end of epoch")
        return out

    take(first, read)
    state = first.state_dict()
    following = take(first, 20)
    first.stop()
    second = pipeline().create_tuple_iterator(output_numpy=True)
    take(second, 3)
    second.load_state_dict(state)
    assert take(second, 20) == following
    assert second.state_dict()["seed"] == state["seed"]
    second.stop()


def test_initial_step_counts_over_epochs() -> None:
    ds.config.set_seed(1)
    data = pipeline()
    iterator = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
    epochs = [[contents(row) for row in iterator] for _ in range(2)]
    size = data.get_dataset_size()
    assert size == len(epochs[0]) == 14
    data.set_init_step(size + 5)
    later = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [contents(row) for row in later] == epochs[1][5:]
    data.reset()
    assert data.get_init_step() == 0


def test_the_number_of_epochs_is_kept() -> None:
    iterator = ds.NumpySlicesDataset([1, 2]).create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [len(list(iterator)) for _ in range(2)] == [2, 2]
    with pytest.raises(RuntimeError, match="created for num_epochs=2, and they are over"):
        next(iterator)
    endless = ds.NumpySlicesDataset([1, 2]).create_tuple_iterator(output_numpy=True)
    assert [len(list(endless)) for _ in range(5)] == [2] * 5
    endless.stop()
    with pytest.raises(ValueError, match="num_epochs must be within"):
        ds.NumpySlicesDataset([1]).create_tuple_iterator(num_epochs=0)


def test_forms_of_rows() -> None:
    data = ds.NumpySlicesDataset({"a": [1], "b": [2]})
    (row,) = data.create_dict_iterator(num_epochs=1, output_numpy=True)
    assert {k: v.tolist() for k, v in row.items()} == {"a": 1, "b": 2}
    iterator = data.create_tuple_iterator(columns=["b"], num_epochs=1, output_numpy=True)
    assert [contents(row) for row in iterator] == [[2]]
    assert iterator.get_col_names() == ["b"]
    with pytest.raises(ValueError, match="no column 'z'"):
        data.create_tuple_iterator(columns="z")


def test_tensors_come_out_by_default() -> None:
    from mycel._src.tensors.core.tensor import Tensor

    data = ds.NumpySlicesDataset({"a": np.array([1.5, 2.5], np.float32), "t": ["x", "y"]}, shuffle=False)
    ((number, text),) = list(data.batch(2))
    assert isinstance(number, Tensor) and number.asnumpy().tolist() == [1.5, 2.5]
    assert text.tolist() == ["x", "y"]


def test_threads_end_with_their_iterator() -> None:
    gc.collect()
    before = len(producers())
    iterator = ds.NumpySlicesDataset(list(range(1000))).create_tuple_iterator(output_numpy=True)
    next(iterator)
    assert len(producers()) == before + 1
    iterator.release()
    assert len(producers()) == before
    with pytest.raises(RuntimeError, match="was stopped"):
        next(iterator)
    forgotten = ds.NumpySlicesDataset(list(range(1000))).create_tuple_iterator(output_numpy=True)
    next(forgotten)
    thread = forgotten._thread
    del forgotten
    gc.collect()
    assert thread is not None
    thread.join(5)
    assert len(producers()) == before


def test_generators_of_the_user_are_closed() -> None:
    closed = threading.Event()

    def source() -> Any:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    iterator = (
        ds.GeneratorDataset(source, ["x"]).map(lambda x: x + 1, "x").batch(2).create_tuple_iterator(output_numpy=True)
    )
    assert next(iterator)[0].tolist() == [2, 2]
    iterator.stop()
    gc.collect()
    assert closed.wait(5)


def test_debug_mode_runs_in_this_thread_and_calls_hooks() -> None:
    seen = []

    def hook(row: Any) -> Any:
        seen.append(int(row[0]))
        return row

    ds.config.set_debug_mode(True, [hook])
    threads = []
    data = ds.NumpySlicesDataset([1, 2], shuffle=False).map(
        lambda x: threads.append(threading.current_thread()) or x * 5
    )
    assert [int(x) for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [5, 10]
    assert set(threads) == {threading.current_thread()}
    assert seen == [5, 10]


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"set_seed: -1 is not within the required range \[0, 4294967295\]"):
        ds.config.set_seed(-1)
    with pytest.raises(ValueError, match="set_num_parallel_workers: 0"):
        ds.config.set_num_parallel_workers(0)
    with pytest.raises(TypeError, match="set_prefetch_size: the value must be an int, not float"):
        ds.config.set_prefetch_size(1.5)
    ds.config.set_seed(12)
    assert ds.config.get_seed() == ds.get_seed() == 12


def test_settings_load_from_json(tmp_path: Any) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"seed": 4, "prefetchSize": 3}')
    ds.config.load(str(path))
    assert (ds.config.get_seed(), ds.config.get_prefetch_size()) == (4, 3)
    path.write_text('{"speed": 4}')
    with pytest.raises(ValueError, match="unknown setting 'speed'"):
        ds.config.load(str(path))
    path.write_text('{"logFilePath": "/tmp", "rowsPerBuffer": 1, "opConnectorSize": 5, "workerConnectorSize": 7}')
    ds.config.load(path)
    assert ds.config.get_prefetch_size() == 5
    for wrong in ("{", "[]"):
        path.write_text(wrong)
        with pytest.raises(ValueError, match="load: "):
            ds.config.load(path)
    for kind in (FileNotFoundError, RuntimeError):
        with pytest.raises(kind, match="there is no such file of settings"):
            ds.config.load(str(tmp_path / "none.json"))
    with pytest.raises(TypeError, match="file must be a path"):
        ds.config.load(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="there is no folder"):
        ds.config.set_enable_autotune(True, str(tmp_path / "none" / "tuned"))


@pytest.mark.parametrize("source", [[10, 11, 12], np.array([10, 11, 12])])
def test_samplers_that_only_iterate(source: Any) -> None:
    class Numbers:
        def __getitem__(self, place: int) -> int:
            return (2, 0)[place]

    class Iterates:
        def __iter__(self) -> Any:
            return iter((2, 0))

    class Derived(ds.Sampler):
        def __iter__(self) -> Any:
            yield from (2, 0)

    for sampler in (Numbers(), Iterates(), Derived(), [2, 0], np.array([2, 0])):
        for data in (
            ds.NumpySlicesDataset(source, ["x"], sampler=sampler),
            ds.GeneratorDataset(source, ["x"], sampler=sampler),
        ):
            for _ in range(2):
                assert [int(x) for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [12, 10]
    with pytest.raises(TypeError, match="sampler must be a sampler or row numbers"):
        ds.NumpySlicesDataset(source, ["x"], sampler=Derived)


class Seeks:
    """A source that has a place, which other readers change."""

    def __init__(self) -> None:
        self.place = 0

    def __len__(self) -> int:
        return 200

    def __getitem__(self, number: int) -> Any:
        self.place = number
        time.sleep(0.0001)
        return np.int64(self.place)


def test_iterators_read_one_source_in_turns() -> None:
    source = Seeks()
    data, other = (ds.GeneratorDataset(source, ["x"], shuffle=False) for _ in range(2))
    collated = ds.GeneratorDataset(source, ["x"], batch_sampler=[[n] for n in range(200)])
    iterators = [each.create_tuple_iterator(num_epochs=1, output_numpy=True) for each in (data, data, other, collated)]
    for number, rows in enumerate(zip(*iterators)):
        assert [int(x.ravel()[0]) for (x,) in rows] == [number] * 4
    column = data.map(lambda x: x, "x", ["y"], num_parallel_workers=2)
    for number, (x, y) in enumerate(ds.zip((data, column)).create_tuple_iterator(num_epochs=1, output_numpy=True)):
        assert int(x) == int(y) == number
