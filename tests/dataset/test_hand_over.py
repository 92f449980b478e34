"""Batches become tensors without a copy, and nobody sees one change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn
from mycel._src.engines import buffers
from mycel.dataset.rows.column_blocks import aligned, stack
from mycel.train import LambdaCallback, Model
from mycel.train._batches import Epochs

ROWS = 96
IMAGES = np.random.default_rng(0).integers(0, 255, (ROWS, 3, 32, 32)).astype(np.float32)


class Rows:
    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, number: int) -> Any:
        return IMAGES[number].copy(), np.int32(number)


def slices(shuffle: bool = False) -> Any:
    return ds.NumpySlicesDataset((IMAGES, np.arange(ROWS, dtype=np.int32)), ["x", "y"], shuffle=shuffle)


def add_one(x: Any) -> Any:
    return x + 1


PIPELINES: dict[str, Any] = {
    "arrays": lambda: slices().batch(16),
    "shuffled arrays": lambda: slices(True).batch(16),
    "small batches": lambda: slices().batch(2),
    "rows": lambda: ds.GeneratorDataset(Rows(), ["x", "y"], shuffle=False).batch(16),
    "threads": lambda: slices().map(add_one, ["x"], num_parallel_workers=2).batch(16, num_parallel_workers=2),
    "processes": lambda: (
        slices().map(add_one, ["x"], num_parallel_workers=2, python_multiprocessing=True).batch(16).repeat(2)
    ),
    "library": lambda: slices().map(ds.vision.Rescale(2.0, 1.0), ["x"]).batch(16).project(["x"]).take(5),
    "padded": lambda: slices().padded_batch(16, pad_info={"x": ([3, 40, 40], 0)}),
    "batches of batches": lambda: slices().batch(4).batch(4),
}


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each array that is copied into a buffer."""
    found: list[int] = []
    from_array = buffers.from_array
    monkeypatch.setattr(buffers, "from_array", lambda array: found.append(array.nbytes) or from_array(array))
    return found


@pytest.mark.parametrize("name", sorted(PIPELINES))
def test_large_batches_are_not_copied_and_stay(name: str, copied: list[int]) -> None:
    ds.config.set_seed(1)
    data = PIPELINES[name]()
    expected = [
        [np.array(value) for value in row] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    ]
    ds.config.set_seed(1)
    epochs = Epochs(data)
    for make in (lambda: [list(row) for row in data.create_tuple_iterator(num_epochs=1)], lambda: list(epochs.epoch())):
        copied.clear()
        ds.config.set_seed(1)
        kept = make()
        assert sum(copied) <= 4096 * len(kept)
        # Writing into one batch changes no other, nor the source.
        for number, row in enumerate(kept):
            row[0][0] = -5.0
            others = [other for place, other in enumerate(kept) if place > number]
            for other, wanted in zip(others, expected[number + 1 :]):
                assert all(np.array_equal(value.asnumpy(), array) for value, array in zip(other, wanted))
        assert len(kept) == len(expected)
    epochs.close()
    assert IMAGES.min() >= 0
    ds.config.set_seed(1)
    again = [[np.array(value) for value in row] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert all(np.array_equal(a, b) for x, y in zip(again, expected) for a, b in zip(x, y))


def test_what_functions_of_the_user_have_seen_is_copied(copied: list[int]) -> None:
    held = np.zeros((16, 3, 32, 32), np.float32)
    seen: list[Any] = []

    def kept(x: Any) -> Any:
        seen.append(x)
        return x

    for data in (
        slices().batch(16).map(lambda x: held, ["x"]),
        slices().batch(16).map(kept, ["x"]),
        slices().batch(16, per_batch_map=lambda x, y, info: (held, y)),
        slices(),
    ):
        copied.clear()
        first, second = (row[0] for row in list(data.create_tuple_iterator(num_epochs=1))[:2])
        assert sum(copied) >= first.nbytes
        before = second.asnumpy().copy()
        first[0] = 7.0
        held[:] = 3.0
        for array in seen:
            array[:] = 9.0
        assert np.array_equal(second.asnumpy(), before)
        held[:] = 0.0
    copied.clear()
    iterator = slices().batch(16).create_tuple_iterator(num_epochs=1, do_copy=True)
    assert sum(row[0].nbytes for row in iterator) <= sum(copied)
    ds.config.set_iterator_mode(do_copy=True)
    try:
        made = slices().batch(16).create_dict_iterator(num_epochs=1)
    finally:
        ds.config.set_iterator_mode()
    copied.clear()
    next(made)
    assert sum(copied) > IMAGES[:16].nbytes


def test_dictionaries(copied: list[int]) -> None:
    def both(x: Any) -> dict[str, Any]:
        return {"image": x, "sum": x.sum()}

    data = slices().project(["x"]).map(both, ["x"]).batch(16)
    copied.clear()
    found = [row[0] for row in data.create_tuple_iterator(num_epochs=1)]
    assert sum(copied) <= 4096 * len(found)
    for number, row in enumerate(found):
        assert np.array_equal(row["image"].asnumpy(), IMAGES[16 * number : 16 * number + 16])
        row["image"][0] = 1.0


def test_a_training_sees_what_the_dataset_has() -> None:
    seen: list[Any] = []

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(ms.Tensor(1.0))

        def construct(self, x: Any, y: Any) -> Any:
            return (x.mean() * self.w - y.mean()) ** 2

    net = Net()
    model = Model(net, None, nn.SGD(net.trainable_params(), 1e-9))
    keep = LambdaCallback(on_train_step_end=lambda c: seen.append(c.original_args().train_dataset_element))
    for sink in (False, True):
        seen.clear()
        model.train(2, slices().batch(16), callbacks=[keep], dataset_sink_mode=sink, sink_size=1 if sink else -1)
        for number, (x, y) in enumerate(seen):
            start = 16 * (number % 6)
            assert np.array_equal(x.asnumpy(), IMAGES[start : start + 16])
            assert y.asnumpy().tolist() == list(range(start, start + 16))


def test_batches_begin_at_a_line_of_the_cache() -> None:
    for shape in ((0, 4), (3, 5), (16, 3, 32, 32), (1,)):
        for kind in (np.uint8, np.float16, np.int64, np.complex64):
            made = aligned(shape, np.dtype(kind))
            assert made.shape == shape and made.dtype == kind and made.flags.c_contiguous and made.flags.writeable
            assert not made.size or made.__array_interface__["data"][0] % 64 == 0
    rows = [np.full((50, 50), n, np.float32)[::-1] for n in range(4)]
    made = stack(rows, "test")
    assert made.__array_interface__["data"][0] % 64 == 0 and np.array_equal(made, np.stack(rows))
    for x, _ in slices(True).batch(16).create_tuple_iterator(num_epochs=1, output_numpy=True):
        assert x.__array_interface__["data"][0] % 64 == 0


class _Varying:
    """Large arrays, of which some have another shape or type or are lists."""

    def __len__(self) -> int:
        return 50

    def __getitem__(self, number: int) -> Any:
        others: dict[int, Any] = {
            3: np.full(3, number, np.float32),
            5: [float(number)] * 2,
            6: np.full((100, 101), number, np.float64),
        }
        return others.get(number % 7, np.full((100, 100), number, np.float32)), number


class _Reused(_Varying):
    """The same array in every row."""

    def __init__(self) -> None:
        self.held = np.zeros((100, 100), np.float32)

    def __getitem__(self, number: int) -> Any:
        self.held[...] = number
        return self.held, number


@pytest.mark.parametrize("options", [{}, {"num_parallel_workers": 2, "python_multiprocessing": False}])
def test_large_rows_of_a_generator_have_their_own_places(options: dict[str, Any]) -> None:
    rows = ds.GeneratorDataset(_Varying(), ["x", "n"], shuffle=False, **options)
    for number, (row, n) in enumerate(rows.create_tuple_iterator(num_epochs=1, output_numpy=True)):
        expected = np.asarray(_Varying()[number][0])
        assert n == number and row.dtype == expected.dtype and np.array_equal(row, expected)

    def stream() -> Any:
        source = _Reused()
        return (source[number] for number in range(50))

    for data in (
        ds.GeneratorDataset(_Reused(), ["x", "n"], shuffle=False, **options),
        ds.GeneratorDataset(stream, ["x", "n"]),
    ):
        held = [row[0] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        assert [np.unique(row).tolist() for row in held] == [[number] for number in range(50)]
        held[0][...] = -1
        assert np.unique(held[1]).tolist() == [1]
        batches = [row[0] for row in data.batch(8).create_tuple_iterator(num_epochs=1, output_numpy=True)]
        assert [np.unique(row).tolist() for batch in batches for row in batch] == [[number] for number in range(50)]
