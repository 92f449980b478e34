"""Transforms of any data, against NumPy and values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel._src.foundation import dtype
from mycel.dataset import audio, transforms
from mycel.dataset.random_numbers.random_streams import Stream, first_uniform, key_of, row_keys, using


@pytest.mark.parametrize("target", [np.int32, "float16", dtype.float32, dtype.uint8, np.dtype("bool")])
def test_type_cast(target: Any) -> None:
    array = np.array([1.7, 0.0, 3.2])
    result = transforms.TypeCast(target)(array)
    wanted = dtype.to_numpy(target)
    assert result.dtype == wanted and (result == array.astype(wanted)).all()
    with pytest.raises(TypeError, match="TypeCast: 'int3' is not a data type"):
        transforms.TypeCast("int3")


def test_one_hot() -> None:
    assert transforms.OneHot(4)(np.array(2)).tolist() == [0, 0, 1, 0]
    assert transforms.OneHot(4)(np.array([1, -1], np.int32)).tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]
    assert transforms.OneHot(4)(np.array(1, np.uint8)).dtype == np.uint8
    np.testing.assert_allclose(transforms.OneHot(4, 0.1)(np.array(2)), [0.025, 0.025, 0.925, 0.025])
    with pytest.raises(ValueError, match="class 4 is not below num_classes, 4"):
        transforms.OneHot(4)(np.array(4))
    with pytest.raises(TypeError, match="class numbers must be integers, not float64"):
        transforms.OneHot(4)(np.array(1.0))


def test_one_hot_in_a_block_names_the_row() -> None:
    labels = ds.NumpySlicesDataset({"y": [0, 1, 5, 2]}, shuffle=False)
    batches = labels.map(transforms.OneHot(6), "y").batch(4)
    assert (
        next(iter(batches.create_tuple_iterator(num_epochs=1, output_numpy=True)))[0].tolist()
        == np.eye(6)[[0, 1, 5, 2]].tolist()
    )
    with pytest.raises(RuntimeError, match="'OneHot' failed on column 'y', row 2: InputValueError: OneHot: class 5"):
        list(labels.map(transforms.OneHot(4), "y").batch(4).create_tuple_iterator(num_epochs=1, output_numpy=True))


def test_fill_and_mask() -> None:
    assert transforms.Fill(300)(np.array([2, 3], np.uint8)).tolist() == [44, 44]
    assert transforms.Fill("z")(np.array(["ab", "c"])).tolist() == ["z", "z"]
    expected = {"EQ": [2], "NE": [1, 3], "GT": [3], "GE": [2, 3], "LT": [1], "LE": [1, 2]}
    array = np.array([1, 2, 3])
    for name, kept in expected.items():
        assert array[transforms.Mask(transforms.Relational[name], 2)(array)].tolist() == kept
    assert transforms.Mask(transforms.Relational.GT, 2, np.float32)(array).dtype == np.float32
    with pytest.raises(TypeError, match="'a' cannot be compared to an array of type int64"):
        transforms.Mask(transforms.Relational.EQ, "a")(array)


def test_pad_end() -> None:
    assert transforms.PadEnd([4], 9)(np.array([1, 2])).tolist() == [1, 2, 9, 9]
    assert transforms.PadEnd([1])(np.array([1, 2])).tolist() == [1]
    assert transforms.PadEnd([2, None])(np.array([[1, 2]])).tolist() == [[1, 2], [0, 0]]
    assert transforms.PadEnd([3], "zz")(np.array(["a"])).tolist() == ["a", "zz", "zz"]
    with pytest.raises(ValueError, match="has 2 axes, the array 1"):
        transforms.PadEnd([4, 4])(np.array([1]))


def test_slice() -> None:
    array = np.arange(12).reshape(3, 4)
    cases: list[tuple[tuple[Any, ...], Any]] = [
        ((1,), array[[1]]),
        (([0, 2],), array[[0, 2]]),
        ((slice(0, 2), slice(1, 3)), array[:2, 1:3]),
        ((...,), array),
        ((..., 1), array[:, [1]]),
        ((None, [0, 2]), array[:, [0, 2]]),
        ((True, 1), array[:, [1]]),
        ((-1,), array[[-1]]),
    ]
    for parts, expected in cases:
        assert transforms.Slice(*parts)(array).tolist() == expected.tolist()
    with pytest.raises(IndexError, match="index 9 is out of range for axis 0 of length 3"):
        transforms.Slice(9)(array)


def test_unique_duplicate_concatenate() -> None:
    values, places, counts = transforms.Unique()(np.array([[3, 1], [3, 2]]))
    assert (values.tolist(), places.tolist(), counts.tolist()) == ([3, 1, 2], [0, 1, 0, 2], [2, 1, 1])
    assert transforms.Concatenate(0, np.array([1.0]), np.array([9.0]))(np.array([2.0, 3.0])).tolist() == [1, 2, 3, 9]
    data = ds.NumpySlicesDataset({"a": [[1]], "b": [[2]]})
    (joined,) = data.map(transforms.Concatenate(), ["a", "b"], ["c"]).create_tuple_iterator(
        num_epochs=1, output_numpy=True
    )
    assert joined[0].tolist() == [1, 2]
    (twice,) = (
        data.project("a")
        .map(transforms.Duplicate(), "a", ["x", "y"])
        .create_tuple_iterator(num_epochs=1, output_numpy=True)
    )
    assert [a.tolist() for a in twice] == [[1], [1]]
    with pytest.raises(TypeError, match="types differ: int64 and float64"):
        transforms.Concatenate()(np.array([1]), np.array([1.0]))


def test_random_composition() -> None:
    one, two = transforms.Fill(1), transforms.Fill(2)
    array = np.array([0])
    ds.config.set_seed(0)
    assert transforms.RandomApply([one, two], 1.0)(array).tolist() == [2]
    assert transforms.RandomApply([one], 0.0)(array).tolist() == [0]
    drawn = [int(transforms.RandomChoice([one, two])(array)[0]) for _ in range(200)]
    assert 60 < drawn.count(1) < 140
    orders = {int(transforms.RandomOrder([one, two])(array)[0]) for _ in range(50)}
    assert orders == {1, 2}
    with pytest.raises(ValueError, match=r"prob must be within \[0, 1\], not 1.1"):
        transforms.RandomApply([one], 1.1)
    with pytest.raises(ValueError, match="the list of transforms is empty"):
        transforms.Compose([])


def test_compose_passes_several_values_on() -> None:
    assert transforms.Compose([transforms.Duplicate(), transforms.Concatenate(), lambda x: x * 2])(
        np.array([1, 2])
    ).tolist() == [2, 4, 2, 4]


def test_streams_are_uniform_and_repeat() -> None:
    stream = Stream(key_of(1, 2))
    drawn = np.array([stream.uniform() for _ in range(20000)])
    # The means of x and x squared, to five standard errors.
    assert abs(drawn.mean() - 1 / 2) < 5 / np.sqrt(12 * 20000)
    assert abs((drawn**2).mean() - 1 / 3) < 5 * np.sqrt(4 / 45 / 20000)
    normal = np.array([stream.normal() for _ in range(20000)])
    assert abs(normal.mean()) < 5 / np.sqrt(20000) and abs(normal.std() - 1) < 5 / np.sqrt(40000)
    assert {stream.integer(3, 5) for _ in range(100)} == {3, 4, 5}
    assert sorted(stream.permutation(9)) == list(range(9))
    keys = row_keys(key_of(7), 5, 10)
    assert (keys[3:] == row_keys(key_of(7), 8, 7)).all()
    assert first_uniform(keys).tolist() == [Stream(int(key)).uniform() for key in keys]
    with using(Stream(4)):
        first = transforms.RandomChoice([transforms.Fill(1), transforms.Fill(2)])(np.zeros(1))
    with using(Stream(4)):
        assert (transforms.RandomChoice([transforms.Fill(1), transforms.Fill(2)])(np.zeros(1)) == first).all()


def test_splitmix_reference_values() -> None:
    # The first outputs of SplitMix64 seeded with 1234567, as published with Vigna's implementation.
    stream = Stream(1234567)
    assert [stream.bits() for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_results_without_axes_are_arrays() -> None:
    for found in (
        transforms.Mask(transforms.Relational.NE, 1, dtype.float16)(np.array(1)),
        audio.Angle()(np.array([1.0, 1.0])),
        audio.ComplexNorm(2.0)(np.array([1.0, 1.0])),
        *audio.Magphase(1.0)(np.array([1.0, 1.0])),
    ):
        assert type(found) is np.ndarray and found.shape == ()
