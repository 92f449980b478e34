"""TFRecord files that pipelines write, descriptions of pipelines, and helpers around them."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import transforms, vision
from mycel.dataset.utils import LineReader, imshow_det_bbox


def rows_of(data: ds.Dataset) -> list[dict[str, Any]]:
    return list(data.create_dict_iterator(num_epochs=1, output_numpy=True))


def test_rows_come_back_from_tfrecord(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    kinds = "bool int8 uint8 int16 uint16 int32 uint32 int64 float16 float32".split()
    columns = {kind: (random.random((5, 2, 3)) * 200 - 100).astype(kind) for kind in kinds}
    columns["scalar"] = np.array([-(2**63), -1, 0, 1, 2**63 - 1])
    columns["big"] = np.arange(5, dtype=np.uint64)
    columns["text"] = np.array(["", "a", "two words", "é", "x" * 300])
    columns["bytes"] = np.array([b"a", b"bc", b"\x01\xff", b"d", b"e"])
    name = str(tmp_path / "rows")
    ds.NumpySlicesDataset(columns, shuffle=False).save(name, file_type="tfrecord")
    found = rows_of(ds.TFRecordDataset(name, name + ".schema.json", shuffle=False))
    assert len(found) == 5
    for number, row in enumerate(found):
        for key, column in columns.items():
            wanted = np.asarray(column[number])
            if key == "bytes":
                wanted = np.frombuffer(column[number], np.uint8)
            assert row[key].shape == wanted.shape and (row[key] == wanted).all(), key
            assert key == "text" or row[key].dtype == wanted.dtype, key


def test_lengths_may_vary_and_files_share_rows(tmp_path: Path) -> None:
    name = str(tmp_path / "rows")
    data = ds.GeneratorDataset([np.full((n, 2), n, np.float32) for n in range(1, 6)], ["x"], shuffle=False)
    data.save(name, 2, "tfrecord")
    assert sorted(os.listdir(tmp_path)) == ["rows.schema.json", "rows0", "rows1"]
    found = rows_of(ds.TFRecordDataset([name + "0", name + "1"], name + ".schema.json", shuffle=False))
    assert [row["x"].shape for row in found] == [(n, 2) for n in (1, 3, 5, 2, 4)]
    with pytest.raises(RuntimeError, match="there is a file .* already"):
        data.save(name, 2, "tfrecord")


@pytest.mark.parametrize(
    "column, message",
    [
        (np.zeros(2, np.float64), "float64, which TFRecord has no values for"),
        (np.array([1, 2**63], np.uint64), "numbers above"),
        (np.array([["a", "b"]], "S1"), "arrays of bytes"),
        ([np.zeros((1, 2)).astype("f4"), np.zeros((1, 3)).astype("f4")], "only the first axis may vary"),
        ([np.float32([1]), np.int32([1])], "rows of type float32 and of type int32"),
    ],
)
def test_what_tfrecord_cannot_hold_leaves_no_file(tmp_path: Path, column: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        ds.GeneratorDataset(list(column), ["x"], shuffle=False).save(str(tmp_path / "rows"), file_type="tfrecord")
    assert os.listdir(tmp_path) == []


# Descriptions.

_STEPS: dict[str, Callable[[ds.Dataset], ds.Dataset]] = {
    "map": lambda d: d.map(transforms.TypeCast(np.float32), "label"),
    "vision": lambda d: d.map([vision.Rescale(0.5, 1.0), vision.HWC2CHW()], ["image"], num_parallel_workers=2),
    "rename": lambda d: d.rename("label", "label"),
    "project": lambda d: d.project(["image", "label"]),
    "skip": lambda d: d.skip(1),
    "take": lambda d: d.take(4),
    "repeat": lambda d: d.repeat(2),
    "shuffle": lambda d: d.shuffle(3),
    "zip": lambda d: ds.zip(
        (d, ds.FakeImageDataset(3, (2, 2, 3), 2, shuffle=False).rename(["image", "label"], ["i", "l"]))
    ),
    "concat": lambda d: d + ds.FakeImageDataset(2, (2, 2, 3), 2, shuffle=False),
    "sync": lambda d: d.sync_wait("go"),
    "cache": lambda d: d.map(vision.VerticalFlip(), "image", cache=ds.DatasetCache(3, size=5)),
}


def _chains() -> list[tuple[str, ...]]:
    chains: list[tuple[str, ...]] = [(step,) for step in _STEPS]
    random = np.random.default_rng(7)
    pairs = list(itertools.permutations(_STEPS, 3))
    return chains + [pairs[i] for i in random.choice(len(pairs), 40, replace=False)]


@pytest.mark.parametrize("chain", _chains(), ids="-".join)
def test_a_described_pipeline_gives_its_rows_again(chain: tuple[str, ...], tmp_path: Path) -> None:
    data: ds.Dataset = ds.FakeImageDataset(6, (2, 2, 3), 3, shuffle=False)
    try:
        for step in chain:
            data = _STEPS[step](data)
    except (TypeError, ValueError, RuntimeError):
        # Not every order is a pipeline.
        return
    name = str(tmp_path / "p.json")
    assert data.to_json(name) == ds.serialize(data)
    with open(name) as handle:
        assert json.load(handle) == json.loads(json.dumps(data.to_json()))
    again = ds.deserialize(json_filepath=name)
    assert ds.compare(data, again) and again.get_col_names() == data.get_col_names()
    if "cache" in chain or "sync" in chain:
        return
    ds.config.set_seed(3)
    wanted = rows_of(data)
    ds.config.set_seed(3)
    found = rows_of(again)
    assert len(found) == len(wanted)
    assert all((a[k] == b[k]).all() and a[k].dtype == b[k].dtype for a, b in zip(found, wanted) for k in b)


def test_functions_have_no_description() -> None:
    data = ds.FakeImageDataset(3, (2, 2, 3), 3).map(lambda x: x, "image")
    with pytest.raises(ValueError, match="is a function or an object in memory"):
        ds.deserialize(data.to_json())


# Helpers.


@pytest.mark.parametrize("content", ["one\ntwo\n\nfour", "one\r\ntwo\r\n", "", "\n", "é\nü\n"])
def test_lines_by_number(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content.encode())
    reader = LineReader(str(path))
    lines = content.replace("\r\n", "\n").split("\n")
    wanted = lines[:-1] if lines[-1] == "" else lines
    assert [reader.readline(n + 1) for n in range(reader.len())] == wanted
    for wrong, error in ((0, ValueError), (reader.len() + 1, ValueError), ("a", TypeError), (1.0, TypeError)):
        with pytest.raises(error, match="line must be"):
            reader.readline(wrong)  # type: ignore[arg-type]
    reader.close()
    assert not wanted or reader.readline(1) == wanted[0]
    reader.close()
    for name, message in ((str(tmp_path), "not a regular file"), (str(tmp_path / "no"), "does not exist")):
        with pytest.raises(RuntimeError, match=message):
            LineReader(name)


def test_boxes_are_drawn(tmp_path: Path) -> None:
    image = np.zeros((3, 40, 60), np.uint8)
    boxes = np.array([[10, 20, 30, 15, 0.9], [0, 0, 5, 5, 0.1]])
    mask = np.zeros((2, 40, 60), bool)
    mask[0, 30:33, 12:20] = True
    name = str(tmp_path / "out.png")
    options: dict[str, Any] = {"class_names": ["cat", "dog"], "score_threshold": 0.5, "show": False, "out_file": name}
    found = imshow_det_bbox(image, boxes, np.array([[1], [0]]), mask, thickness=1, **options)
    assert found.shape == (40, 60, 3) and found[35, 25].tolist() == [0, 255, 0] and not image.any()
    assert found[31, 15].tolist() == [64, 0, 64] and not found[5, 2].any()
    from PIL import Image

    assert (np.asarray(Image.open(name)) == found).all()
    for wrong in ({"image": image[0]}, {"bboxes": boxes[:, :3]}, {"labels": np.array([1])}, {"class_names": 3}):
        given = {"image": image, "bboxes": boxes, "labels": np.array([[1], [0]]), "show": False, **wrong}
        with pytest.raises(AssertionError, match="imshow_det_bbox: "):
            imshow_det_bbox(**given)


@pytest.mark.parametrize("kind", ["mindrecord", "tfrecord"])
def test_a_disk_without_room_is_an_error_that_names_the_file(kind: str, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    data = ds.NumpySlicesDataset({"x": np.zeros((64, 1 << 14), np.float32)}, shuffle=False)
    name = os.fspath(tmp_path / f"rows.{kind}")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 21, before[1]))
    try:
        with pytest.raises(OSError, match=f"cannot write saved dataset: .*rows.{kind}"):
            data.save(name, file_type=kind)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == []
    data.save(name, file_type=kind)
    assert os.path.getsize(name) > 1 << 22


def test_rows_that_fail_while_they_are_saved_are_runtime_errors(tmp_path: Path) -> None:
    ragged = ds.GeneratorDataset([np.zeros(1), np.zeros(2)], ["x"], shuffle=False).batch(2)
    with pytest.raises(RuntimeError, match="batch: column 'x': row 1 has shape"):
        ragged.save(os.fspath(tmp_path / "a.mindrecord"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["mindrecord", "tfrecord"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_is_interrupted_leaves_no_file(kind: str, error: type[BaseException], tmp_path: Any) -> None:
    def rows() -> Any:
        yield from range(1500)
        raise error

    with pytest.raises((KeyboardInterrupt, RuntimeError)) as found:
        ds.GeneratorDataset(rows, ["x"]).save(str(tmp_path / "a"), 2, kind)
    assert os.listdir(tmp_path) == [], found
