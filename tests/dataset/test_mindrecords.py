"""MindDataset: rows, types and orders, as MindSpore 2.10 gives them for the same files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import vision
from mycel.mindrecord import FileWriter, ParamValueError, packed_integers

PADDING = {"x": -1, "d": b"pp", "z": "zz"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = os.fspath(tmp_path_factory.mktemp("records") / "r")
    writer = FileWriter(path, 3)
    writer.add_schema({"z": {"type": "string"}, "x": {"type": "int32"}, "d": {"type": "bytes"}})
    writer.write_raw_data([{"z": f"{n}", "x": n, "d": b"ab" * (n + 1)} for n in range(12)])
    writer.commit()
    return [f"{path}{n}" for n in range(3)]


def numbers(data: ds.Dataset) -> list[int]:
    return [int(row["x"]) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]


def test_columns_and_types(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "a")
    writer = FileWriter(path)
    writer.add_schema(
        {
            "name": {"type": "string"},
            "id": {"type": "int32"},
            "vec": {"type": "float32", "shape": [-1]},
            "mat": {"type": "int64", "shape": [2, 2]},
            "img": {"type": "bytes"},
            "l": {"type": "int64"},
            "f": {"type": "float64"},
            "g": {"type": "float32"},
        }
    )
    row = {
        "name": "n0",
        "id": -2,
        "vec": np.float32([0.5, 1]),
        "mat": np.arange(4).reshape(2, 2),
        "img": b"\0\1\2",
        "l": 2**40,
        "f": 1 / 3,
        "g": 2.0,
    }
    writer.write_raw_data([row])
    writer.commit()
    data = ds.MindDataset(path, shuffle=False)
    # MindSpore 2.10: names, types and shapes of the same row.
    assert data.get_col_names() == ["f", "g", "id", "img", "l", "mat", "name", "vec"]
    assert [str(kind) for kind in data.output_types()] == [
        "float64",
        "float32",
        "int32",
        "|S0",
        "int64",
        "int64",
        "<U0",
        "float32",
    ]
    assert data.output_shapes() == [[], [], [], [1], [], [2, 2], [], [2]]
    (found,) = data.create_dict_iterator(num_epochs=1, output_numpy=True)
    assert found["img"].tobytes() == b"\0\1\2" and found["img"].dtype == "S3"
    assert all(np.array_equal(found[name], row[name]) for name in row if name != "img")


def test_files_shards_and_samples(files: list[str]) -> None:
    assert numbers(ds.MindDataset(files[0], shuffle=False)) == list(range(12))
    assert numbers(ds.MindDataset(files[1:2], shuffle=False)) == [4, 5, 6, 7]
    assert ds.MindDataset(files[0], ["x", "d"]).get_col_names() == ["x", "d"]
    shards = [numbers(ds.MindDataset(files[0], shuffle=False, num_shards=5, shard_id=n)) for n in range(5)]
    assert shards == [[0, 5, 10], [1, 6, 11], [2, 7, 0], [3, 8, 1], [4, 9, 2]]
    assert numbers(ds.MindDataset(files[0], shuffle=False, num_samples=2, num_shards=2, shard_id=1)) == [1, 3]
    assert numbers(ds.MindDataset(files[0], sampler=ds.SubsetSampler([3, 1, 11]))) == [3, 1, 11]
    assert numbers(ds.MindDataset(files[0], sampler=ds.SequentialSampler(3, 4))) == [3, 4, 5, 6]
    assert sorted(numbers(ds.MindDataset(files[0], sampler=ds.PKSampler(1, class_column="x")))) == list(range(12))
    assert [str(a) for a in ds.MindDataset(files[0])[3]] == ["[b'abababab']", "3", "3"]


def test_shuffling(files: list[str]) -> None:
    for shuffle in (None, True, ds.Shuffle.GLOBAL, ds.Shuffle.ADAPTIVE, ds.Shuffle.PARTIAL):
        order = numbers(ds.MindDataset(files[0], shuffle=shuffle))
        assert sorted(order) == list(range(12)) != order
    fours = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    by_file = numbers(ds.MindDataset(files[0], shuffle=ds.Shuffle.FILES))
    assert sorted(by_file[n : n + 4] for n in (0, 4, 8)) == fours
    within = numbers(ds.MindDataset(files[0], shuffle=ds.Shuffle.INFILE))
    assert [sorted(within[n : n + 4]) for n in (0, 4, 8)] == fours and within != list(range(12))
    halves = [numbers(ds.MindDataset(files[0], shuffle=ds.Shuffle.INFILE, num_shards=2, shard_id=n)) for n in (0, 1)]
    assert len(halves[0]) == len(halves[1]) == 6


def test_padding(files: list[str]) -> None:
    names = ["x", "d", "z"]
    data = ds.MindDataset(files[0], names, shuffle=False, padded_sample=PADDING, num_padded=3)
    rows = [[a.tolist() for a in row] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert rows[0] == [0, [b"ab"], "0"] and rows[12:] == [[-1, [b"pp"], "zz"]] * 3
    shards = [ds.MindDataset(files[0], names, None, False, 5, n, padded_sample=PADDING, num_padded=3) for n in range(5)]
    assert [numbers(shard) for shard in shards] == [[0, 5, 10], [1, 6, 11], [2, 7, -1], [3, 8, -1], [4, 9, -1]]
    for arguments, message in (
        ({"padded_sample": PADDING, "num_padded": 3}, "padded_sample needs columns_list too"),
        ({"padded_sample": PADDING, "columns_list": names}, "padded_sample needs num_padded too"),
        ({"num_padded": 3}, "num_padded is given, but padded_sample is not"),
    ):
        with pytest.raises(RuntimeError, match=message):
            ds.MindDataset(files[0], **arguments)
    with pytest.raises(ValueError, match=r"padded_sample has \['x'\], but columns_list is"):
        ds.MindDataset(files[0], names, padded_sample={"x": 1}, num_padded=1)


def test_what_is_refused(files: list[str], tmp_path: Path) -> None:
    refused: list[tuple[type[Exception], dict[str, Any], str]] = [
        (ParamValueError, {"columns_list": ["q"]}, "there is no field 'q'"),
        (ValueError, {"sampler": ds.WeightedRandomSampler([1.0] * 12, 3)}, "must be one of SubsetRandomSampler"),
        (ValueError, {"sampler": ds.SequentialSampler(), "shuffle": True}, "a sampler was given"),
        (ValueError, {"shuffle": ds.Shuffle.FILES, "num_samples": 3}, "num_samples cannot be given"),
        (ValueError, {"num_shards": 2}, "num_shards and shard_id must be given together"),
        (TypeError, {"cache": object()}, "cache must be a DatasetCache"),
    ]
    for kind, arguments, message in refused:
        with pytest.raises(kind, match=message):
            ds.MindDataset(files[0], **arguments)
    with pytest.raises(RuntimeError, match="there is no file"):
        ds.MindDataset(os.fspath(tmp_path / "none"))


def test_images_are_decoded_from_records(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    path = os.fspath(tmp_path / "a")
    writer = FileWriter(path)
    writer.add_schema({"image": {"type": "bytes"}, "label": {"type": "int32"}})
    writer.write_raw_data([{"image": vision.encode_png(picture).tobytes(), "label": n} for n in range(3)])
    writer.commit()
    data = ds.MindDataset(path, shuffle=False).map(vision.Decode(), "image").batch(3)
    (row,) = data.create_dict_iterator(num_epochs=1, output_numpy=True)
    assert np.array_equal(row["image"], np.stack([picture] * 3)) and row["label"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("routines", [True, False])
def test_rows_of_several_at_once_are_those_of_one(
    tmp_path: Path, routines: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {
        "ids": {"type": "int32", "shape": [3, 4]},
        "long": {"type": "int64", "shape": [5]},
        "any": {"type": "int64", "shape": [-1]},
        "parts": {"type": "float64", "shape": [2]},
        "content": {"type": "bytes"},
        "number": {"type": "int32"},
        "name": {"type": "string"},
    }
    random = np.random.default_rng(3)
    rows = [
        {
            "ids": random.integers(-(2**31), 2**31, (3, 4)).astype(np.int32) >> int(random.integers(0, 31)),
            "long": random.integers(-(2**63), 2**63 - 1, 5) >> random.integers(0, 63, 5),
            "any": np.arange(number % 4 + 1),
            "parts": random.random(2),
            "content": bytes(number + 1),
            "number": number,
            "name": "x" * number,
        }
        for number in range(40)
    ]
    path = str(tmp_path / "some.mindrecord")
    writer = FileWriter(path)
    writer.add_schema(kinds)
    writer.write_raw_data(rows)
    writer.commit()
    monkeypatch.setattr(packed_integers, "are_on", lambda: routines)
    data = ds.MindDataset(path, shuffle=False)
    found = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    for index, (row, given) in enumerate(zip(found, rows, strict=True)):
        alone = dict(zip(data.get_col_names(), data[index]))
        for name in kinds:
            assert row[name].dtype == alone[name].dtype and np.array_equal(row[name], alone[name])
        for name in ("ids", "long", "any", "parts", "number", "name"):
            assert np.array_equal(row[name], given[name])
