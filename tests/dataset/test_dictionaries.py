"""Dictionaries as columns; what is expected was asked of MindSpore."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds


def rows(data: ds.Dataset, numbers: bool = True) -> list[Any]:
    found = list(data.create_dict_iterator(num_epochs=1, output_numpy=numbers))
    return [_plain(row) for row in found] if numbers else found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    assert isinstance(value, np.ndarray)
    return value.tolist()


def source() -> Iterator[Any]:
    for number in range(3):
        yield {"k": number, "n": {"m": np.ones(2) * number}}, number


def pairs() -> ds.Dataset:
    return ds.GeneratorDataset(source, ["d", "i"])


def flat() -> ds.Dataset:
    return pairs().map(lambda d: {"k": d["k"], "w": "ab"}, "d")


def test_sources_give_dictionaries() -> None:
    assert rows(pairs())[1] == {"d": {"k": 1, "n": {"m": [1.0, 1.0]}}, "i": 1}
    assert rows(ds.GeneratorDataset(lambda: iter([{"k": 1}]), ["d"])) == [{"d": {"k": 1}}]
    assert pairs().output_types() == [np.dtype(object), np.dtype(np.int64)] and pairs().output_shapes() == [[0], []]
    assert pairs().output_shapes(estimate=True) == [[0], []]
    row = rows(pairs(), numbers=False)[2]
    assert isinstance(row["d"]["k"], ms.Tensor) and isinstance(row["d"]["n"]["m"], ms.Tensor)


def test_functions_receive_and_give_dictionaries() -> None:
    assert [r["d"] for r in rows(pairs().map(lambda d: d["k"] * 2, "d"))] == [0, 2, 4]
    assert rows(pairs().map([lambda d: {**d, "z": [1, 2]}, lambda d: d], "d"))[0]["d"]["z"] == [1, 2]
    assert [r["i"] for r in rows(pairs().filter(lambda d: d["k"] > 0, "d"))] == [1, 2]
    assert len(rows(pairs().shuffle(3).skip(1).repeat(2))) == 4
    assert list(rows(pairs().zip(ds.NumpySlicesDataset([5, 6], ["a"], shuffle=False)))[0]) == ["d", "i", "a"]
    assert rows(pairs().concat(pairs()))[3]["d"]["k"] == 0


def test_batches_of_dictionaries() -> None:
    assert rows(flat().batch(2)) == [
        {"d": {"k": [0, 1], "w": ["ab", "ab"]}, "i": [0, 1]},
        {"d": {"k": [2], "w": ["ab"]}, "i": [2]},
    ]
    with pytest.raises(ValueError, match="key 'n' holds dictionaries, which cannot be stacked"):
        rows(pairs().batch(2))
    different = ds.GeneratorDataset([{"a": 1}, {"b": 1}], ["d"], shuffle=False)
    with pytest.raises(ValueError, match="same keys"):
        rows(different.batch(2))
    with pytest.raises(ValueError, match="cannot be padded"):
        rows(flat().padded_batch(2))


def test_batches_that_a_function_makes_of_dictionaries() -> None:
    numbers = ds.NumpySlicesDataset({"a": [1, 2]}, shuffle=False)
    for made in (
        lambda a, info: {"k": a},
        lambda a, info: ({"k": a},),
        lambda a, info: [{"k": x} for x in a],
    ):
        assert rows(numbers.batch(2, per_batch_map=made)) == [{"a": {"k": [1, 2]}}]
    taken = pairs().batch(2, per_batch_map=lambda d, i, info: ([x["k"] for x in d], i))
    assert rows(taken) == [{"d": [0, 1], "i": [0, 1]}, {"d": [2], "i": [2]}]


def test_anything_may_be_in_a_dictionary() -> None:
    something = object()
    data = ds.GeneratorDataset([({"n": None, "o": something, "l": [1, None]},)], ["d"], shuffle=False)
    (row,) = data.create_dict_iterator(num_epochs=1, output_numpy=True)
    assert row["d"]["n"] is None and row["d"]["o"] is something and row["d"]["l"] == [1, None]


OBJECTS = [
    np.array(["a", "bb"], object),
    np.array([1, 2], object),
    np.array([[1], [2, 3]], object),
    np.array("a", object),
    np.array([None], object),
    np.array([], object),
]


@pytest.mark.parametrize("value", OBJECTS, ids=repr)
def test_arrays_of_objects_are_no_columns(value: Any) -> None:
    numbers = ds.NumpySlicesDataset([1, 2], ["x"], shuffle=False)
    for data in (
        ds.GeneratorDataset(lambda: ((value,) for _ in range(2)), ["x"]),
        ds.GeneratorDataset([(value,)] * 2, ["x"]).batch(2),
        numbers.map(lambda x: value, ["x"]),
        numbers.map(lambda x: (x, value), ["x"], ["x", "y"]),
    ):
        with pytest.raises(RuntimeError, match="not an array of objects, array.*convert it with astype"):
            list(data)
    if value.size > 1:
        with pytest.raises(RuntimeError, match="not an array of objects"):
            list(numbers.batch(2, per_batch_map=lambda x, info: (value,)))


@pytest.mark.parametrize("value", OBJECTS, ids=repr)
def test_dictionaries_may_hold_arrays_of_objects(value: Any) -> None:
    (row,) = ds.GeneratorDataset([({"value": value},)], ["x"]).create_tuple_iterator(num_epochs=1)
    found = row[0]["value"]
    assert found.tolist() == value.tolist() if value.ndim else str(found) == value.item()
