"""Descriptions of pipelines as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import transforms, vision


def values(data: ds.Dataset) -> list[Any]:
    return [
        [np.asarray(x).tolist() for x in row] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    ]


def test_pipelines_are_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    name = str(tmp_path / "a.txt")
    lines = ds.TextFileDataset(name, shuffle=False)
    numbers = ds.FakeImageDataset(6, (4, 5, 3), 3, sampler=ds.SequentialSampler(1, 5))
    chain = (
        numbers.map([vision.Resize((3, 2), vision.Inter.NEAREST), transforms.TypeCast(np.float32)], "image")
        .batch(2, True)
        .repeat(2)
    )
    chain = chain.skip(1).take(2).rename("label", "y").project(["y", "image"])
    for data in (lines, chain, lines.zip(numbers), lines.concat(lines), lines.map(transforms.Fill("x"))):
        found = json.loads(json.dumps(ds.serialize(data, str(tmp_path / "d.json"))))
        for again in (ds.deserialize(found), ds.deserialize(json_filepath=str(tmp_path / "d.json"))):
            assert values(again) == values(data) and ds.compare(again, data)
    assert not ds.compare(lines, lines.batch(2))
    # The form of MindSpore's.
    found = ds.serialize(lines.filter(lambda x: True).shuffle(4))
    assert (found["op_type"], found["buffer_size"], found["children"][0]["op_type"]) == ("Shuffle", 4, "Filter")
    assert found["children"][0]["predicate"] == "pyfunc"
    assert found["children"][0]["children"][0]["dataset_files"] == name
    described = ds.serialize(lines.map(transforms.Fill("x")))["operations"]
    assert described == [{"tensor_op_name": "Fill", "tensor_op_params": {"fill_value": "x"}}]
    ds.show(lines)
    assert json.loads(capsys.readouterr().out)["op_type"] == "TextFileDataset"


def test_what_has_no_description(tmp_path: Path) -> None:
    memory = ds.NumpySlicesDataset([1, 2])
    for data in (memory, ds.GeneratorDataset([1], ["x"]), ds.FakeImageDataset(2).map(lambda x: x)):
        with pytest.raises(ValueError, match="is a function or an object in memory|are an object in memory"):
            ds.deserialize(ds.serialize(data))
    with pytest.raises(ValueError, match="there is no dataset 'X'"):
        ds.deserialize({"op_type": "X"})
    with pytest.raises(ValueError, match="must describe a dataset"):
        ds.deserialize({})
    with pytest.raises(ValueError, match="give a description"):
        ds.deserialize()
    (tmp_path / "d.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read as JSON"):
        ds.deserialize(json_filepath=str(tmp_path / "d.json"))
    wrong: Any = 3
    with pytest.raises(TypeError, match="serialize: dataset must be a dataset"):
        ds.serialize(wrong)
