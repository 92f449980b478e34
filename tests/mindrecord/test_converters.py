"""Converters: what they write is what the source files hold."""

from __future__ import annotations

import io
import math
import os
import pickle
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mycel._src.foundation import log
from mycel._src.foundation.files.idx_format import write_idx
from mycel.mindrecord import (
    Cifar10ToMR,
    Cifar100ToMR,
    CsvToMR,
    FileReader,
    ImageNetToMR,
    MnistToMR,
    PathNotExistsError,
    TFRecordToMR,
)
from mycel.mindrecord.tfrecord import masked_checksum, parse_example, read_records, record_spans
from tests import tfrecords

CHECKED = dict.fromkeys(
    ("Cifar10ToMR", "Cifar100ToMR", "CsvToMR", "ImageNetToMR", "MnistToMR", "TFRecordToMR"),
    "the values in the source files",
)
Feature = namedtuple("Feature", "shape dtype")


def read(path: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    reader = FileReader(os.fspath(path))
    found = list(reader.get_next()), reader.schema()
    reader.close()
    return found


def pixels(content: bytes) -> np.ndarray:
    image_module = pytest.importorskip("PIL.Image")
    return np.asarray(image_module.open(io.BytesIO(content)))


def smooth(count: int, size: int) -> np.ndarray:
    """Images that JPEG keeps well: ramps."""
    ramp = np.add.outer(np.arange(size), np.arange(size)) * 3
    return np.stack([ramp + n for n in range(count)]).astype(np.uint8)


def cifar(path: Path, count: int, keys: tuple[str, ...]) -> np.ndarray:
    images = np.repeat(smooth(count, 32)[:, None], 3, 1)
    images[:, 1] += 20
    content: dict[bytes, Any] = {b"data": images.reshape(count, -1)}
    for step, key in enumerate(keys):
        content[key.encode()] = [n * 3 + step for n in range(count)]
    path.write_bytes(pickle.dumps(content, protocol=2))
    return images.transpose(0, 2, 3, 1)


def test_cifar_10(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    for name, count in (("data_batch_1", 3), ("data_batch_2", 2), ("test_batch", 2)):
        images = cifar(tmp_path / name, count, ("labels",))
    Cifar10ToMR(os.fspath(tmp_path), os.fspath(tmp_path / "c")).transform(["id", "label"])
    rows, schema = read(tmp_path / "c")
    assert schema == {"id": {"type": "int64"}, "label": {"type": "int64"}, "data": {"type": "bytes"}}
    assert [(row["id"], row["label"]) for row in rows] == [(0, 0), (1, 3), (2, 6), (3, 0), (4, 3)]
    rows, _ = read(tmp_path / "c_test")
    assert len(rows) == 2 and np.abs(pixels(rows[1]["data"]).astype(int) - images[1]).max() <= 8
    os.remove(tmp_path / "test_batch")
    with pytest.raises(PathNotExistsError, match="test_batch is missing"):
        Cifar10ToMR(os.fspath(tmp_path), os.fspath(tmp_path / "d"))


def test_cifar_100(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    for name, count in (("train", 2), ("test", 1)):
        cifar(tmp_path / name, count, ("fine_labels", "coarse_labels"))
    Cifar100ToMR(os.fspath(tmp_path), os.fspath(tmp_path / "c")).transform()
    rows, _ = read(tmp_path / "c")
    assert [(row["id"], row["fine_label"], row["coarse_label"]) for row in rows] == [(0, 0, 1), (1, 3, 4)]
    assert len(read(tmp_path / "c_test")[0]) == 1


class _Runs:
    def __reduce__(self) -> Any:
        return print, ("this must not be printed",)


def test_pickles_run_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("train", "test"):
        (tmp_path / name).write_bytes(pickle.dumps({b"data": _Runs()}))
    with pytest.raises(RuntimeError, match="print has no place in a file of CIFAR"):
        Cifar100ToMR(os.fspath(tmp_path), os.fspath(tmp_path / "c")).transform()
    assert capsys.readouterr().out == "" and sorted(os.listdir(tmp_path)) == ["test", "train"]


def test_mnist(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    for part, count in (("train", 5), ("t10k", 2)):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", smooth(count, 28))
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", np.arange(count, dtype=np.uint8))
    MnistToMR(os.fspath(tmp_path), os.fspath(tmp_path / "m"), 2).transform()
    rows, schema = read(tmp_path / "m_train.mindrecord0")
    assert schema == {"label": {"type": "int64"}, "data": {"type": "bytes"}} and sorted(
        row["label"] for row in rows
    ) == list(range(5))
    assert np.abs(pixels(rows[0]["data"]).astype(int) - smooth(5, 28)[rows[0]["label"]]).max() <= 8
    assert len(read(tmp_path / "m_test.mindrecord1")[0]) == 2


def test_imagenet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(log, "warning", lambda text, *values: said.append(text % values))
    for name, files in (
        ("n1", {"a.JPEG": b"11", "b.jpg": b"12", "c.png": b"13"}),
        ("n2", {"d.JPEG": b"21", "e.JPEG": b""}),
    ):
        (tmp_path / name).mkdir()
        for file, content in files.items():
            (tmp_path / name / file).write_bytes(content)
    (tmp_path / "map.txt").write_text("n2 0\nn1 7\nn3 8\n")
    ImageNetToMR(os.fspath(tmp_path / "map.txt"), os.fspath(tmp_path), os.fspath(tmp_path / "i")).transform()
    rows, _ = read(tmp_path / "i")
    found = [(row["label"], row["image"], os.path.basename(row["file_name"])) for row in rows]
    assert found == [(0, b"21", "d.JPEG"), (7, b"11", "a.JPEG"), (7, b"12", "b.jpg")]
    assert len(said) == 3
    (tmp_path / "map.txt").write_text("n9 0\n")
    with pytest.raises(PathNotExistsError, match="none of the folders"):
        ImageNetToMR(os.fspath(tmp_path / "map.txt"), os.fspath(tmp_path), os.fspath(tmp_path / "j")).transform()


def test_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,real,flag,text,gap\n1,0.5,True,"a, b",1\n-20,2,False,c,\n', encoding="utf-8")
    source = os.fspath(tmp_path / "a.csv")
    CsvToMR(source, os.fspath(tmp_path / "all")).transform()
    rows, schema = read(tmp_path / "all")
    kinds = {"n": "int64", "real": "float64", "flag": "int32", "text": "string", "gap": "float64"}
    assert schema == {name: {"type": kind} for name, kind in kinds.items()}
    assert rows[0] == {"n": 1, "real": 0.5, "flag": 1, "text": "a, b", "gap": 1.0}
    assert rows[1]["n"] == -20 and rows[1]["flag"] == 0 and math.isnan(rows[1]["gap"])
    CsvToMR(source, os.fspath(tmp_path / "some"), ["text", "n"], 2).transform()
    assert read(tmp_path / "some0")[0] == [{"n": 1, "text": "a, b"}, {"n": -20, "text": "c"}]
    with pytest.raises(RuntimeError, match="has no column q; its columns are"):
        CsvToMR(source, os.fspath(tmp_path / "no"), ["q"]).transform()
    (tmp_path / "b.csv").write_text("1,2\n3,4\n")
    with pytest.raises(ValueError, match="and '1' is a number"):
        CsvToMR(os.fspath(tmp_path / "b.csv"), os.fspath(tmp_path / "no")).transform()
    with pytest.raises(ValueError, match="columns_list must be a list of strings"):
        CsvToMR(source, os.fspath(tmp_path / "no"), "n")


ROWS = [
    {
        "image/name": [f"file {n}".encode()],
        "raw": [b"\xff\0"],
        "n": [n - 1],
        "list": [1, -2, 3 * n],
        "f": [n / 4],
        "fs": [0.5, n / 1],
    }
    for n in range(3)
]
FEATURES = {
    "image/name": Feature([], "string"),
    "raw": Feature([], "string"),
    "n": Feature([], "int64"),
    "list": Feature([3], "int64"),
    "f": Feature([], "float32"),
    "fs": Feature([2], "float32"),
}


def test_tfrecord(tmp_path: Path) -> None:
    source = tfrecords.write(tmp_path / "a.tfrecord", ROWS)
    TFRecordToMR(source, os.fspath(tmp_path / "t"), FEATURES, ["raw"]).transform()
    rows, schema = read(tmp_path / "t")
    assert schema["image_name"] == {"type": "string"} and schema["raw"] == {"type": "bytes"}
    assert schema["list"] == {"type": "int64", "shape": [3]} and schema["f"] == {"type": "float32"}
    for number, row in enumerate(rows):
        assert (row["image_name"], row["raw"], row["n"], row["f"]) == (
            f"file {number}",
            b"\xff\0",
            number - 1,
            number / 4,
        )
        assert row["list"].tolist() == [1, -2, 3 * number] and row["fs"].tolist() == [0.5, number]
    with pytest.raises(ValueError, match="3 values for feature 'list'"):
        TFRecordToMR(source, os.fspath(tmp_path / "u"), {"list": Feature([2], "int64")}).transform()
    with pytest.raises(ValueError, match="bytes_fields has 'n'"):
        TFRecordToMR(source, os.fspath(tmp_path / "u"), FEATURES, ["n"])
    with pytest.raises(ValueError, match="must have a shape and a dtype"):
        TFRecordToMR(source, os.fspath(tmp_path / "u"), {"n": 3})
    assert sorted(os.listdir(tmp_path)) == ["a.tfrecord", "t", "t.db"]


def test_tfrecord_files_are_read_with_care(tmp_path: Path) -> None:
    # The CRC-32C of the digits 1 to 9 is a standard check value.
    state = 0xE3069283
    assert (
        masked_checksum(b"123456789")
        == ((state >> 15 | state << 17) + 0xA282EAD8) % 2**32
        == tfrecords.checksum(b"123456789")
    )
    path = tfrecords.write(tmp_path / "a", ROWS)
    contents = list(read_records(path))
    assert contents == [tfrecords.example(row) for row in ROWS]
    whole = Path(path).read_bytes()
    assert [whole[start : start + size] for start, size in record_spans(path)] == contents
    for content, message in (
        (whole[:-3], "ends within record 2"),
        (whole + b"1", "ends within record 3"),
        (b"x" * 40, "is not a TFRecord file"),
    ):
        Path(path).write_bytes(content)
        for function in (lambda: list(read_records(path)), lambda: record_spans(path)):
            with pytest.raises(ValueError, match=message):
                function()
    for broken in (contents[0][:-1], b"\xff" * 20, b"\x0a\x03abc"):
        with pytest.raises(ValueError):
            parse_example(broken)
    unpacked = tfrecords.field(
        1, tfrecords.field(1, tfrecords.field(1, b"x") + tfrecords.field(2, tfrecords.field(3, b"\x08\x05\x08\x06")))
    )
    assert list(parse_example(unpacked)["x"]) == [5, 6]
