"""Sources of files: rows, types and orders as MindSpore 2.10 gives them for files of the same
content.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import vision
from tests import tfrecords


def rows(data: ds.Dataset) -> list[dict[str, Any]]:
    return list(data.create_dict_iterator(num_epochs=1, output_numpy=True))


def values(data: ds.Dataset, name: str) -> list[Any]:
    return [row[name].tolist() for row in rows(data)]


def kinds(data: ds.Dataset) -> dict[str, str]:
    return {name: f"{array.dtype} {list(array.shape)}" for name, array in rows(data)[0].items()}


def picture(path: Path, seed: int, height: int = 3, width: int = 4) -> np.ndarray:
    pytest.importorskip("PIL")
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    vision.write_png(os.fspath(path), pixels)
    return pixels


def test_image_folders(tmp_path: Path) -> None:
    shown = {}
    for seed, name in enumerate(("dog/b.png", "dog/a.PNG", "cat/1.png", "ant/1.png", "cat/deeper/1.png")):
        shown[name] = picture(tmp_path / name, seed)
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("not in a folder")
    data = ds.ImageFolderDataset(tmp_path, shuffle=False, decode=True)
    assert values(data, "label") == [0, 1, 2, 2] and kinds(data) == {"image": "uint8 [3, 4, 3]", "label": "int32 []"}
    for row, name in zip(rows(data), ("ant/1.png", "cat/1.png", "dog/a.PNG", "dog/b.png")):
        assert np.array_equal(row["image"], shown[name])
    assert data.get_class_indexing() == {"ant": 0, "cat": 1, "dog": 2, "empty": 3} and data.num_classes() == 4
    raw = ds.ImageFolderDataset(os.fspath(tmp_path), shuffle=False, extensions=[".png"])
    assert (
        values(raw, "label") == [0, 1, 2] and rows(raw)[0]["image"].tobytes() == (tmp_path / "ant/1.png").read_bytes()
    )
    chosen = ds.ImageFolderDataset(tmp_path, shuffle=False, class_indexing={"dog": 7, "cat": 3, "bee": 1})
    assert values(chosen, "label") == [3, 7, 7] and chosen.get_class_indexing() == {"dog": 7, "cat": 3, "bee": 1}
    assert sorted(values(ds.ImageFolderDataset(tmp_path, sampler=ds.PKSampler(1)), "label")) == [0, 1, 2]
    hidden = ds.ImageFolderDataset(tmp_path, shuffle=False, decrypt=lambda path: path.encode()[::-1])
    assert rows(hidden)[0]["image"].tobytes() == os.fspath(tmp_path / "ant/1.png").encode()[::-1]
    for arguments, message in (
        ((tmp_path / "none",), "there is no directory"),
        ((tmp_path / "cat" / "deeper",), "has no folders with images"),
        ((tmp_path, None, None, None, None, "png"), "extensions must be a list of text"),
        ((tmp_path, None, None, None, None, None, ["a"]), "class_indexing must be a dictionary"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            ds.ImageFolderDataset(*arguments)
    (tmp_path / "ant/1.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match="are not an image that Pillow can read"):
        rows(data)


def test_cifar(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    images = random.integers(0, 256, (7, 3, 32, 32)).astype(np.uint8)
    for name, part in (
        ("data_batch_2.bin", slice(2, 5)),
        ("data_batch_1.bin", slice(0, 2)),
        ("test_batch.bin", slice(5, 7)),
    ):
        numbers = np.arange(7)[part]
        (tmp_path / name).write_bytes(b"".join(bytes([n]) + images[n].tobytes() for n in numbers))
    data = ds.Cifar10Dataset(tmp_path, shuffle=False)
    assert values(data, "label") == list(range(7)) and kinds(data) == {
        "image": "uint8 [32, 32, 3]",
        "label": "uint32 []",
    }
    assert all(np.array_equal(row["image"], image.transpose(1, 2, 0)) for row, image in zip(rows(data), images))
    assert values(ds.Cifar10Dataset(tmp_path, "train", shuffle=False), "label") == [0, 1, 2, 3, 4]
    assert values(ds.Cifar10Dataset(tmp_path, "test", shuffle=False), "label") == [5, 6]
    assert len(values(ds.Cifar10Dataset(tmp_path, sampler=ds.PKSampler(1)), "label")) == 7
    for name, part in (("train.bin", [0, 1]), ("test.bin", [2])):
        (tmp_path / name).write_bytes(b"".join(bytes([n, n + 50]) + images[n].tobytes() for n in part))
    data = ds.Cifar100Dataset(tmp_path, shuffle=False)
    assert data.get_col_names() == ["image", "coarse_label", "fine_label"]
    # MindSpore reads the files in the order of their names: the test images first.
    assert (values(data, "coarse_label"), values(data, "fine_label")) == ([2, 0, 1], [52, 50, 51])
    with pytest.raises(ValueError, match="usage must be one of 'train', 'test', 'all', not 'x'"):
        ds.Cifar10Dataset(tmp_path, "x")
    (tmp_path / "train.bin").write_bytes(bytes(3073))
    with pytest.raises(ValueError, match="'train.bin' has 3073 bytes, which are no rows of 3074"):
        ds.Cifar100Dataset(tmp_path, "train").get_dataset_size()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="the binary version is needed"):
        ds.Cifar10Dataset(tmp_path / "empty")


def test_stl10_and_svhn(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    images = {
        part: random.integers(0, 256, (count, 3, 96, 96)).astype(np.uint8)
        for part, count in (("train", 2), ("test", 1), ("unlabeled", 1))
    }
    for part, pixels in images.items():
        (tmp_path / f"{part}_X.bin").write_bytes(pixels.tobytes())
        if part != "unlabeled":
            (tmp_path / f"{part}_y.bin").write_bytes(bytes([3, 10][: len(pixels)]))
    data = ds.STL10Dataset(tmp_path, shuffle=False)
    assert values(data, "label") == [2, 2, 9, -1] and kinds(data) == {"image": "uint8 [96, 96, 3]", "label": "int32 []"}
    # The files hold columns, not rows.
    assert np.array_equal(rows(data)[0]["image"], images["test"][0].transpose(2, 1, 0))
    assert values(ds.STL10Dataset(tmp_path, "train+unlabeled", shuffle=False), "label") == [2, 9, -1]
    io = pytest.importorskip("scipy.io")
    for number, part in enumerate(("train", "test", "extra")):
        pixels = random.integers(0, 256, (32, 32, 3, 2)).astype(np.uint8)
        io.savemat(tmp_path / f"{part}_32x32.mat", {"X": pixels, "y": np.array([[10], [number + 1]], np.uint8)})
    data = ds.SVHNDataset(tmp_path, shuffle=False)
    assert values(data, "label") == [0, 1, 0, 2, 0, 3] and kinds(data) == {
        "image": "uint8 [32, 32, 3]",
        "label": "uint32 []",
    }
    assert np.array_equal(rows(data)[5]["image"], pixels[..., 1])
    assert values(ds.SVHNDataset(tmp_path, "test", shuffle=False), "label") == [0, 2]


def test_celeba(tmp_path: Path) -> None:
    shown = [picture(tmp_path / f"{n}.png", n) for n in range(4)]
    lines = [f"{n}.png  {1 if n % 2 else -1} -1  1" for n in range(4)]
    (tmp_path / "list_attr_celeba.txt").write_text("\n".join(["4", "A B C", *lines, ""]))
    (tmp_path / "list_eval_partition.txt").write_text("".join(f"{n}.png {n % 3}\n" for n in range(4)))
    data = ds.CelebADataset(tmp_path, shuffle=False, decode=True)
    assert kinds(data) == {"image": "uint8 [3, 4, 3]", "attr": "uint32 [3]"}
    assert values(data, "attr") == [[0, 0, 1], [1, 0, 1], [0, 0, 1], [1, 0, 1]]
    train = ds.CelebADataset(tmp_path, usage="train", shuffle=False, decode=True, extensions=[".png"])
    assert [row["image"].tolist() for row in rows(train)] == [shown[0].tolist(), shown[3].tolist()]
    with pytest.raises(ValueError, match="usage must be one of"):
        ds.CelebADataset(tmp_path, usage="eval")


def voc(folder: Path) -> list[np.ndarray]:
    shown = []
    (folder / "Annotations").mkdir()
    box = "<bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox>"
    for n in range(2):
        shown += [
            picture(folder / "JPEGImages" / f"{n}.jpg", n),
            picture(folder / "SegmentationClass" / f"{n}.png", 9 + n),
        ]
        name = "car" if n else "train"
        first = f"<object><name>{name}</name><difficult>{n}</difficult>{box.format(1, 2, 4 + n, 5)}</object>"
        second = f"<object><name>car</name><truncated>1</truncated>{box.format(2, 1, 5, 3)}</object>"
        (folder / "Annotations" / f"{n}.xml").write_text(f"<annotation>{first}{second if n else ''}</annotation>")
    for task in ("Segmentation", "Main"):
        (folder / "ImageSets" / task).mkdir(parents=True)
        (folder / "ImageSets" / task / "train.txt").write_text("0\n1\n")
    return shown


def test_voc(tmp_path: Path) -> None:
    shown = voc(tmp_path)
    data = ds.VOCDataset(tmp_path, decode=True, shuffle=False)
    assert data.get_col_names() == ["image", "target"] and data.get_class_indexing() == {}
    assert [row[name].tolist() for row in rows(data) for name in row] == [pixels.tolist() for pixels in shown]
    data = ds.VOCDataset(tmp_path, "Detection", shuffle=False)
    assert data.get_class_indexing() == {"car": 0, "train": 1}
    assert kinds(data.project(["bbox", "label", "difficult", "truncate"])) == {
        "bbox": "float32 [1, 4]",
        "label": "uint32 [1, 1]",
        "difficult": "uint32 [1, 1]",
        "truncate": "uint32 [1, 1]",
    }
    assert values(data, "bbox") == [[[1, 2, 3, 3]], [[1, 2, 4, 3], [2, 1, 3, 2]]]
    assert (values(data, "label"), values(data, "difficult")) == ([[[1]], [[0], [0]]], [[[0]], [[1], [0]]])
    assert values(data, "truncate") == [[[0]], [[0], [1]]]
    chosen = ds.VOCDataset(tmp_path, "Detection", class_indexing={"car": 3}, shuffle=False)
    assert values(chosen, "label") == [[[3], [3]]] and chosen.get_dataset_size() == 1
    named = ds.VOCDataset(tmp_path, "Detection", extra_metadata=True, shuffle=False)
    assert named.get_col_names()[-1] == "_meta-filename" and "_meta-filename" not in rows(named)[0]
    assert len(next(named.create_tuple_iterator(num_epochs=1))) == 5
    assert values(named.rename("_meta-filename", "file"), "file") == ["0", "1"]
    for arguments, message in (
        ({"usage": "val"}, "there is no file .*val.txt"),
        ({"task": "Pose"}, "task must be one of"),
        ({"class_indexing": {"car": 1}}, "has a meaning for task='Detection' alone"),
    ):
        with pytest.raises(ValueError, match=message):
            ds.VOCDataset(tmp_path, **arguments)
    (tmp_path / "Annotations" / "0.xml").write_text("<annotation><object></object></annotation>")
    with pytest.raises(ValueError, match="VOCDataset: .*0.xml.* is damaged"):
        ds.VOCDataset(tmp_path, "Detection")


ANNOTATIONS: dict[str, Any] = {
    "images": [{"id": n, "file_name": f"{n}.jpg"} for n in (3, 1, 2)],
    "annotations": [
        {
            "image_id": 1,
            "category_id": 7,
            "bbox": [1, 1, 2, 3],
            "iscrowd": 0,
            "segmentation": [[1, 1, 2, 1, 2, 2]],
            "keypoints": [1, 2, 2],
            "num_keypoints": 1,
            "caption": "a cat",
        },
        {
            "image_id": 2,
            "category_id": 9,
            "bbox": [0, 1, 2.5, 3],
            "iscrowd": 0,
            "segmentation": [[1, 1, 2, 1, 2, 2, 0, 0], [3, 3, 4, 4, 5, 5]],
            "keypoints": [1, 2, 0],
            "num_keypoints": 0,
            "caption": "dog",
        },
        {
            "image_id": 1,
            "category_id": 9,
            "bbox": [2, 2, 1, 1],
            "iscrowd": 1,
            "segmentation": {"counts": [3, 2, 25], "size": [5, 6]},
            "keypoints": [0, 0, 2],
            "num_keypoints": 1,
            "caption": "two",
        },
    ],
    "categories": [{"id": 7, "name": "cat", "isthing": 1}, {"id": 9, "name": "dog", "isthing": 0}],
}


def test_coco(tmp_path: Path) -> None:
    shown = {n: picture(tmp_path / f"{n}.jpg", n) for n in (1, 2, 3)}
    file = tmp_path / "a.json"
    file.write_text(json.dumps(ANNOTATIONS))
    data = ds.CocoDataset(tmp_path, file, decode=True, shuffle=False)
    assert kinds(data) == {
        "image": "uint8 [3, 4, 3]",
        "bbox": "float32 [2, 4]",
        "category_id": "uint32 [2, 1]",
        "iscrowd": "uint32 [2, 1]",
    }
    assert [row["image"].tolist() for row in rows(data)] == [shown[1].tolist(), shown[2].tolist()]
    assert values(data, "bbox") == [[[1, 1, 2, 3], [2, 2, 1, 1]], [[0, 1, 2.5, 3]]]
    assert (values(data, "category_id"), values(data, "iscrowd")) == ([[[7], [9]], [[9]]], [[[0], [1]], [[0]]])
    assert data.get_class_indexing() == {"cat": [7], "dog": [9]}
    stuff = ds.CocoDataset(tmp_path, file, "Stuff", shuffle=False)
    polygons = [[[1, 1, 2, 1, 2, 2], [3, 2, 25, -1, -1, -1]], [[1, 1, 2, 1, 2, 2, 0, 0], [3, 3, 4, 4, 5, 5, -1, -1]]]
    assert values(stuff, "segmentation") == polygons and stuff.get_col_names() == ["image", "segmentation", "iscrowd"]
    points = ds.CocoDataset(tmp_path, file, "Keypoint", shuffle=False)
    assert (values(points, "keypoints")[0], values(points, "num_keypoints")[0]) == ([[1, 2, 2], [0, 0, 2]], [[1], [1]])
    said = ds.CocoDataset(tmp_path, file, "Captioning", shuffle=False, extra_metadata=True)
    assert values(said, "captions") == [[["a cat"], ["two"]], [["dog"]]]
    assert values(said.rename("_meta-filename", "file"), "file") == ["1", "2"]
    parts = [
        {"category_id": 7, "bbox": [1, 1, 2, 3], "area": 6, "iscrowd": 0},
        {"category_id": 9, "bbox": [0, 1, 2, 3], "area": 5, "iscrowd": 1},
    ]
    file.write_text(json.dumps({**ANNOTATIONS, "annotations": [{"image_id": 3, "segments_info": parts}]}))
    panoptic = ds.CocoDataset(tmp_path, file, "Panoptic", shuffle=False)
    assert panoptic.get_col_names() == ["image", "bbox", "category_id", "iscrowd", "area"]
    assert values(panoptic, "area") == [[[6], [5]]] and panoptic.get_class_indexing() == {"cat": [7, 1], "dog": [9, 0]}
    with pytest.raises(ValueError, match="a.json' is damaged, or has another layout: KeyError: 'bbox'"):
        ds.CocoDataset(tmp_path, file)


def test_text(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"second file\nx\n")
    (tmp_path / "a.txt").write_text("This is\n\nthe first \u00e9\nlast line without end", encoding="utf-8")
    (tmp_path / "c.txt").write_bytes(b"crlf\r\n")
    paths = [os.fspath(tmp_path / f"{name}.txt") for name in "ba"]
    lines = ["This is", "the first \u00e9", "last line without end", "second file", "x"]
    data = ds.TextFileDataset(paths, shuffle=False)
    assert values(data, "text") == lines and data.get_dataset_size() == 5
    assert values(ds.TextFileDataset(os.fspath(tmp_path / "*.txt"), shuffle=False), "text") == [*lines, "crlf\r"]
    shards = [values(ds.TextFileDataset(paths, shuffle=False, num_shards=3, shard_id=n), "text") for n in range(3)]
    assert shards == [lines[:2], lines[2:4], [lines[4], lines[0]]]
    assert values(ds.TextFileDataset(paths, 1, shuffle=False, num_shards=2, shard_id=1), "text") == ["second file"]
    shuffled = values(ds.TextFileDataset(paths), "text")
    assert sorted(shuffled) == sorted(lines)
    inside = values(ds.TextFileDataset(paths, shuffle=ds.Shuffle.INFILE), "text")
    assert sorted(inside[:3]) == sorted(lines[:3]) and sorted(inside[3:]) == sorted(lines[3:])
    assert values(ds.TextFileDataset(paths, shuffle=ds.Shuffle.FILES), "text") in (lines, lines[3:] + lines[:3])
    halves = [values(ds.TextFileDataset(paths, num_shards=2, shard_id=n), "text") for n in range(2)]
    assert set(halves[0]) | set(halves[1]) == set(lines)
    with pytest.raises(ValueError, match="no file matches"):
        ds.TextFileDataset(os.fspath(tmp_path / "n*"))
    with pytest.raises(RuntimeError, match="num_shards and shard_id must be given together"):
        ds.TextFileDataset(paths, num_shards=2)
    (tmp_path / "d.txt").write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="is not UTF-8"):
        ds.TextFileDataset(os.fspath(tmp_path / "d.txt")).get_dataset_size()


def test_csv(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "a.csv")
    Path(path).write_bytes(b'a,b,c\r\n1,2.5,x\r\n\r\n-4,5,"y, ""z""\n"\r\n7,,w\r\n')
    data = ds.CSVDataset(path, shuffle=False)
    assert [list(map(str, row.values())) for row in rows(data)] == [
        ["1", "2.5", "x"],
        ["-4", "5", 'y, "z"\n'],
        ["7", "", "w"],
    ]
    assert values(ds.CSVDataset([path, path], shuffle=False), "a") == ["1", "-4", "7"] * 2
    Path(path).write_text("1;2.5;x\n-4;5;yy\n")
    names = ["p", "q", "r"]
    typed = ds.CSVDataset(path, ";", [1, 1.0, ""], names, shuffle=False)
    assert kinds(typed) == {"p": "int32 []", "q": "float32 []", "r": "<U1 []"}
    assert (values(typed, "p"), values(typed, "q")) == ([1, -4], [2.5, 5.0])
    for arguments, message in (
        ((path, ";", None, ["p", "q"]), "row 0 has 3 values, but there are 2 columns"),
        ((path, ";", [1, 1, ""], names), "a.csv', row 0, column 'q': '2.5' is no int32"),
        ((path, ";", [1, 1.0], names), "3 columns but 2 values in column_defaults"),
        ((path, ";", None, ["p", "p", "r"]), "a column is named twice"),
        ((path, ";;"), "field_delim must be one letter"),
    ):
        with pytest.raises(ValueError, match=message):
            ds.CSVDataset(*arguments)
    Path(path).write_text('a,b\n"1\n')
    with pytest.raises(ValueError, match="cannot be read, at byte 4: unexpected end of data"):
        ds.CSVDataset(path)


@pytest.mark.parametrize("shuffle", [False, ds.Shuffle.PARTIAL])
def test_what_is_wrong_in_csv_is_found(tmp_path: Path, shuffle: Any) -> None:
    (tmp_path / "a.csv").write_text("n,x\n1,2\n3,4\n")
    other = tmp_path / "b.csv"
    names = [os.fspath(tmp_path / "a.csv"), os.fspath(other)]
    for text, message in (
        ("5,6\n7\n", r"b.csv', row 1 has 1 values, but there are 2 columns: \['7'\]"),
        ("5,6\n7,8\n9,\n", r"b.csv', row 2, column 'x': '' is no float32"),
        ("5,6\n99999999999,8\n", r"b.csv', row 1, column 'n': '99999999999' is no int32"),
        (f"5,{'6' * 200000}\n", "at byte 4: field larger than field limit .*; csv.field_size_limit of Python"),
    ):
        other.write_text("n,x\n" + text)
        with pytest.raises(ValueError, match=message):
            ds.CSVDataset(names, column_defaults=[1, 1.0], shuffle=shuffle)
    other.write_text("n,x\n5,6\n")
    data = ds.CSVDataset(names, column_defaults=[1, 1.0], shuffle=shuffle)
    assert sorted([int(row["n"]), float(row["x"])] for row in rows(data)) == [[1, 2.0], [3, 4.0], [5, 6.0]]


FEATURES = [{"i": [k], "f": [0.5 * k, 1.0], "s": [b"ab" * (k + 1)], "l": [1, -2, 3 * k]} for k in range(4)]
MORE = [{"i": [k], "f": [0.5 * k, 1.0], "s": [b"a", b"bcd"], "l": [7, 8, 9]} for k in range(10, 13)]


def test_tfrecord(tmp_path: Path) -> None:
    one, two = tfrecords.write(tmp_path / "a", FEATURES), tfrecords.write(tmp_path / "b", MORE)
    data = ds.TFRecordDataset([two, one], shuffle=False)
    assert kinds(data) == {"f": "float32 [2]", "i": "int64 [1]", "l": "int64 [3]", "s": "uint8 [2]"}
    assert values(data, "i") == [[n] for n in (0, 1, 2, 3, 10, 11, 12)] and values(data, "l")[3] == [1, -2, 9]
    assert rows(data)[1]["s"].tobytes() == b"abab" and rows(data)[4]["s"].tobytes() == b"a  bcd"
    assert ds.TFRecordDataset(one, columns_list=["l", "i"]).get_col_names() == ["l", "i"]
    by_file = [values(ds.TFRecordDataset([one, two], shuffle=False, num_shards=2, shard_id=n), "i") for n in (0, 1)]
    assert by_file == [[[0], [1], [2], [3]], [[10], [11], [12]]]
    equal = ds.TFRecordDataset([one, two], shuffle=False, num_shards=2, shard_id=1, shard_equal_rows=True)
    assert values(equal, "i") == [[10], [11], [12], [0]]
    with pytest.raises(RuntimeError, match="2 files cannot be shared by 3 shards"):
        ds.TFRecordDataset([one, two], num_shards=3, shard_id=0)
    whole = Path(one).read_bytes()
    for kind, content in (("GZIP", gzip.compress(whole)), ("ZLIB", zlib.compress(whole))):
        (tmp_path / kind).write_bytes(content)
        packed = ds.TFRecordDataset(os.fspath(tmp_path / kind), shuffle=False, compression_type=kind)
        assert values(packed, "i") == [[0], [1], [2], [3]]
        with pytest.raises(ValueError, match="is not a TFRecord file"):
            ds.TFRecordDataset(os.fspath(tmp_path / kind))
    with pytest.raises(ValueError, match="cannot be decompressed as GZIP"):
        ds.TFRecordDataset(one, compression_type="GZIP")


def test_tfrecord_with_a_schema(tmp_path: Path) -> None:
    one = tfrecords.write(tmp_path / "a", FEATURES)
    content = {
        "datasetType": "TF",
        "numRows": 3,
        "columns": {"s": {"type": "uint8"}, "i": {"type": "int32"}, "f": {"type": "float32", "shape": [2]}},
    }
    (tmp_path / "s.json").write_text(json.dumps(content))
    data = ds.TFRecordDataset(one, os.fspath(tmp_path / "s.json"), shuffle=False)
    assert kinds(data) == {"f": "float32 [2]", "i": "int32 [1]", "s": "uint8 [2]"} and data.get_dataset_size() == 3

    def read(name: str, kind: str, shape: Any = None) -> np.ndarray:
        schema = ds.Schema()
        schema.add_column(name, kind, shape)
        array: np.ndarray = rows(ds.TFRecordDataset(one, schema, shuffle=False))[1][name]
        return array

    assert read("l", "int64", [-1, 1]).tolist() == [[1], [-2], [3]] and read("s", "string", []).item() == "abab"
    assert read("i", "int32", []).shape == () and read("i", "bool", [1]).tolist() == [True]
    assert read("f", "float16").dtype == np.float16 and read("f", "int32").tolist() == [0, 1]
    for name, kind, shape, message in (
        ("i", "int32", [2], "feature 'i' has 1 values, which do not fit shape"),
        ("i", "string", [1], "feature 'i' is int64, not string"),
        ("none", "int32", None, "record 0 has no feature"),
    ):
        with pytest.raises(ValueError, match=message):
            read(name, kind, shape)
    with pytest.raises(ValueError, match="there is no feature 'zz'"):
        ds.TFRecordDataset(one, columns_list=["zz"])


def test_schema(tmp_path: Path) -> None:
    import mycel as ms

    schema = ds.Schema()
    schema.add_column("a", ms.int64, [2])
    schema.add_column("b", "uint8")
    # The text that MindSpore 2.10 gives.
    expected = [{"name": "a", "rank": 1, "shape": [2], "type": "int64"}, {"name": "b", "rank": 1, "type": "uint8"}]
    assert schema.to_json() == str(schema) == json.dumps({"columns": expected}, indent=2)
    schema.parse_columns({"z": {"type": "int8", "shape": [3, 3]}, "y": {"type": "bool"}})
    assert [column["name"] for column in schema.columns] == ["y", "z"]
    schema.from_json({"columns": [{"name": "q", "type": "string"}], "numRows": 3, "datasetType": "TF"})
    assert ds.Schema.get_num_rows(schema) == 3 and json.loads(schema.to_json())["datasetType"] == "TF"
    for call in (
        lambda: schema.add_column("n", "int9"),
        lambda: schema.add_column("n", "int8", [2.0]),
        lambda: schema.add_column(3, "int8"),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="there is a column 'q' already"):
        schema.add_column("q", "int8")
    for columns in ("x", [{"name": "l"}], [3]):
        with pytest.raises(RuntimeError):
            schema.parse_columns(columns)
    with pytest.raises(RuntimeError, match="must be a dictionary with"):
        schema.from_json({"col": {}})
    with pytest.raises(ValueError, match="cannot be read as JSON"):
        ds.Schema(os.fspath(tmp_path / "none.json"))


def test_padded() -> None:
    data = ds.PaddedDataset([{"a": np.zeros(2, np.uint8), "b": np.array(3)}] * 2)
    assert (
        data.get_col_names() == ["a", "b"]
        and data.get_dataset_size() == 2
        and kinds(data) == {"a": "uint8 [2]", "b": "int64 []"}
    )
    joined = ds.GeneratorDataset([(np.ones(1),)] * 3, ["a"], shuffle=False) + ds.PaddedDataset([{"a": np.zeros(1)}])
    assert values(joined, "a") == [[1], [1], [1], [0]]
    for samples in ([], [{}], [{"a": 1}, {"b": 2}]):
        with pytest.raises(ValueError, match="PaddedDataset"):
            ds.PaddedDataset(samples)
    with pytest.raises(TypeError, match="PaddedDataset"):
        ds.PaddedDataset(3)
