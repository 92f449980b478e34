"""Sets of images, digits and letters: the rows that MindSpore 2.10 gives for the same files,
stored.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from tests.dataset import image_set_files, set_files

EXPECTED: dict[str, Any] = json.loads(Path(__file__).with_name("values").joinpath("image_sets.json").read_text("utf-8"))
CASES = {**image_set_files.image_cases(), **image_set_files.digit_cases()}
NEED_SCIPY = ("Caltech101", "Flowers102", "SB ")


def opened(case: str, folder: Path, **more: Any) -> ds.Dataset:
    kind, build, inside, arguments = CASES[case]
    build(folder)
    places = (
        [folder / name for name in inside] if isinstance(inside, tuple) else [folder / inside if inside else folder]
    )
    return getattr(ds, f"{kind}Dataset")(*places, **{**arguments, **more})


@pytest.mark.parametrize("case", sorted(CASES))
def test_rows_are_those_of_mindspore(case: str, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    if case.startswith(NEED_SCIPY):
        pytest.importorskip("scipy")
    found, expected = json.loads(json.dumps(set_files.describe(opened(case, tmp_path)))), EXPECTED[case]
    assert found["columns"] == expected["columns"]
    if case == "LSUN usage=None":
        # MindSpore numbers the folders bedroom_train, bedroom_val, classroom_train and
        # classroom_val.
        for row in expected["rows"]:
            row["label"][2] //= 2
    if case.startswith("WIDERFace"):
        # MindSpore takes the files' columns invalid, occlusion and pose for occlusion, pose and
        # invalid.
        for row in expected["rows"]:
            if len(row) > 1:
                row["invalid"], row["occlusion"], row["pose"] = row["occlusion"], row["pose"], row["invalid"]
    if case == "USPS None":
        # MindSpore takes rows from both files in turn, Mycel file by file.
        found["rows"], expected["rows"] = (sorted(one["rows"], key=json.dumps) for one in (found, expected))
    assert found["rows"] == expected["rows"]


def test_errors(tmp_path: Path) -> None:
    image_set_files.lsun(tmp_path)
    image_set_files.kitti(tmp_path)
    (tmp_path / "semeion.data").write_text("1 2 3\n")
    (tmp_path / "usps").write_text("1 1:0.5\n")
    for make, message in (
        (lambda: ds.LSUNDataset(tmp_path, "train", ["kitchen"]), "there are no classes"),
        (lambda: ds.LSUNDataset(tmp_path, "valid", decode=1), "decode must be a bool"),
        (lambda: ds.KITTIDataset(tmp_path, "valid"), "usage must be one of 'train', 'test'"),
        (lambda: ds.DIV2KDataset(tmp_path, downgrade="mild"), "scale for downgrade='mild' must be one of 4, not 2"),
        (lambda: ds.EMnistDataset(tmp_path, "x"), "name must be one of"),
        (lambda: ds.EMnistDataset(tmp_path, "mnist"), "there is no file emnist-mnist-test-images-idx3-ubyte"),
        (lambda: ds.SemeionDataset(tmp_path), "must have 266 numbers"),
        (lambda: ds.USPSDataset(tmp_path, "train"), "line 0 .* has not 256 entries"),
        (lambda: ds.Caltech256Dataset(tmp_path / "test"), "has no images"),
        (lambda: ds.PhotoTourDataset(tmp_path, "here"), "name must be one of"),
        (lambda: ds.CityscapesDataset(tmp_path, "test", "coarse"), "usage must be one of"),
        (lambda: ds.Places365Dataset(tmp_path), "there is no file .*places365_train-standard.txt"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            make().get_dataset_size()


def test_wider_face_without_faces(tmp_path: Path) -> None:
    image_set_files.wider_face(tmp_path)
    zeros = "0 0 0 0 0 0 0 0 0 0 \n"
    (tmp_path / "wider_face_split" / "wider_face_val_bbx_gt.txt").write_text(
        f"0--Parade/p2.jpg\n0\n{zeros}1--Shake/s2.jpg\n1\n1 2 3 4 0 0 0 1 0 0 \n"
    )
    found = list(ds.WIDERFaceDataset(tmp_path, "valid", shuffle=False).create_dict_iterator(1, output_numpy=True))
    assert [row["bbox"].shape for row in found] == [(0, 4), (1, 4)]
    assert [row["invalid"].tolist() for row in found] == [[], [1]]


def test_samplers_read_labels(tmp_path: Path) -> None:
    image_set_files.lsun(tmp_path)
    data = ds.LSUNDataset(tmp_path, sampler=ds.PKSampler(1))
    assert sorted(int(row["label"]) for row in data.create_dict_iterator(1, output_numpy=True)) == [0, 1]
    for kind in ("LSUN", "Mnist", "Cifar100", "STL10", "SVHN", "Coco", "ImageFolder", "USPS", "FakeImage"):
        assert issubclass(getattr(ds, f"{kind}Dataset"), ds.VisionBaseDataset)
    assert issubclass(ds.TextFileDataset, ds.TextBaseDataset)
    assert not issubclass(ds.TextFileDataset, ds.VisionBaseDataset)
    assert (
        sum(
            len(list(ds.LSUNDataset(tmp_path, num_shards=2, shard_id=n).create_tuple_iterator(num_epochs=1)))
            for n in (0, 1)
        )
        == ds.LSUNDataset(tmp_path).get_dataset_size()
    )


def test_made_up_rows() -> None:
    data = ds.FakeImageDataset(20, (4, 5, 3), 3, shuffle=False)
    first, again = (list(data.create_dict_iterator(1, output_numpy=True)) for _ in range(2))
    assert {str(row["image"].dtype) + str(row["image"].shape) for row in first} == {"uint8(4, 5, 3)"}
    assert {int(row["label"]) for row in first} == {0, 1, 2} and first[0]["label"].dtype == np.uint32
    assert all(np.array_equal(a["image"], b["image"]) for a, b in zip(first, again))
    assert not np.array_equal(first[0]["image"], first[1]["image"])
    other = next(iter(ds.FakeImageDataset(1, (4, 5, 3), base_seed=1).create_dict_iterator(1, output_numpy=True)))
    assert not np.array_equal(other["image"], first[0]["image"])
    schema = ds.Schema()
    kinds = {"a": ("int8", [3]), "b": ("float32", [2, 2]), "c": ("bool", []), "d": ("string", [1])}
    for name, (kind, shape) in kinds.items():
        schema.add_column(name, kind, shape)
    found = list(ds.RandomDataset(7, schema, shuffle=False).create_dict_iterator(1, output_numpy=True))
    assert len(found) == 7
    assert {name: list(value.shape) for name, value in found[0].items()} == {n: s for n, (_, s) in kinds.items()}
    assert [found[0][name].dtype.kind for name in "abcd"] == ["i", "f", "b", "U"]
    assert len({row["b"].tobytes() for row in found}) == 7
    assert ds.RandomDataset(3, schema, ["b", "a"]).get_col_names() == ["b", "a"]
    assert ds.RandomDataset(columns_list=["u", "v"]).get_col_names() == ["u", "v"]
    free = ds.RandomDataset()
    assert len(list(free.create_dict_iterator(1, output_numpy=True))) == free.get_dataset_size() >= 1
    with pytest.raises(ValueError, match="has no column 'x'"):
        ds.RandomDataset(3, schema, ["x"])
