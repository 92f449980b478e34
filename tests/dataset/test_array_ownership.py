"""What users' functions return is the row's own, whatever they keep, and whoever calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel.dataset.rows.array_ownership import owned

ROWS = 40
WORKERS = [(1, False), (2, False), (1, True), (2, True)]


def source() -> Any:
    return ds.NumpySlicesDataset({"x": np.arange(ROWS * 2).reshape(ROWS, 2)}, shuffle=False)


def read(data: Any) -> list[list[Any]]:
    rows = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    return [[np.asarray(value).tolist() for value in row] for row in rows]


class Keeps:
    """A function with one buffer, which it fills anew for each row, and returns in some form."""

    def __init__(self, form: Callable[[Any], Any]) -> None:
        self.buffer, self.form = np.zeros(2, np.int64), form

    def __call__(self, x: Any) -> Any:
        self.buffer[:] = x
        return self.form(self.buffer)


FORMS = {
    "whole": lambda a: a,
    "view": lambda a: a[:],
    "tensor": ms.Tensor.from_numpy,
    "memory": lambda a: np.frombuffer(memoryview(a), np.int64),
}


@pytest.mark.parametrize("workers,apart", WORKERS)
@pytest.mark.parametrize("form", FORMS)
def test_a_buffer_that_a_function_writes_again(form: str, workers: int, apart: bool) -> None:
    data = source().map(
        [Keeps(FORMS[form]), lambda x: x], "x", num_parallel_workers=workers, python_multiprocessing=apart
    )
    assert read(data) == read(source())
    assert read(data.batch(3)) == read(source().batch(3))


@pytest.mark.parametrize("workers,apart", WORKERS)
def test_a_buffer_of_batches(workers: int, apart: bool) -> None:
    kept = np.zeros((4, 2), np.int64)
    rows = [np.zeros(2, np.int64) for _ in range(4)]

    def batched(xs: Any, info: Any) -> Any:
        kept[:] = xs
        for row, x in zip(rows, xs):
            row[:] = x
        return kept, rows

    data = source().batch(
        4,
        per_batch_map=batched,
        input_columns=["x"],
        output_columns=["x", "y"],
        num_parallel_workers=workers,
        python_multiprocessing=apart,
    )
    assert read(data) == [[x, x] for (x,) in read(source().batch(4))]


def test_a_buffer_in_dictionaries() -> None:
    kept = {"a": np.zeros(2, np.int64), "b": [np.zeros(2, np.int64)]}

    def filled(x: Any) -> Any:
        kept["a"][:] = kept["b"][0][:] = x
        return kept

    rows = source().map(filled, "x").create_tuple_iterator(num_epochs=1, output_numpy=True)
    found = [(row["a"].tolist(), row["b"][0].tolist()) for (row,) in rows]
    assert found == [(x, x) for (x,) in read(source())]


def test_buffers_of_sources() -> None:
    def rows() -> Iterator[Any]:
        kept = {"a": np.zeros(2, np.int64)}
        tensor = ms.Tensor.from_numpy(kept["a"])
        for number in range(ROWS):
            kept["a"][:] = number
            yield kept["a"], kept, tensor

    data = ds.GeneratorDataset(rows, ["x", "d", "t"])
    found = list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert [(int(x[0]), int(d["a"][0]), int(t[0])) for x, d, t in found] == [(n, n, n) for n in range(ROWS)]


@pytest.mark.parametrize("workers,apart", WORKERS)
@pytest.mark.parametrize("twice", [lambda x: (x, x), lambda x: (x, x[:]), lambda x: (x[:], x), lambda x: (x[:], x[:])])
def test_columns_do_not_share_memory(twice: Any, workers: int, apart: bool) -> None:
    options = {"num_parallel_workers": workers, "python_multiprocessing": apart}
    data = source().map(twice, "x", ["x", "y"], **options)
    data = data.map(lambda x: np.add(x, 1, out=x), "x", **options)
    assert read(data) == [[[x + 1, y + 1], [x, y]] for ((x, y),) in read(source())]


@pytest.mark.parametrize("apart", [False, True])
def test_what_cannot_be_written_to_is_copied(apart: bool) -> None:
    def fixed(x: Any) -> Any:
        return np.broadcast_to(x[:1], 2)

    data = source().map(fixed, "x", num_parallel_workers=2, python_multiprocessing=apart)
    data = data.map(lambda x: np.add(x, 1, out=x), "x")
    assert read(data) == [[[x + 1, x + 1]] for ((x, _),) in read(source())]


def test_nothing_is_copied_without_need() -> None:
    given = np.arange(6).reshape(2, 3)

    def fresh() -> Any:
        return np.arange(6).reshape(3, 2)

    (found,) = owned((given,), (given,))
    assert found is given
    view = given[::-1]
    assert owned([view], (given,))[0] is view
    made = [fresh()]
    assert owned(made, (given,)) is made
    kept = fresh()
    assert owned((kept,), (given,))[0] is not kept
    assert np.array_equal(owned((kept,), (given,))[0], kept)
