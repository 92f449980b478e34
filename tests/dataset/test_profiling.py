"""What pipelines tell of their nodes, and what autotune makes of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import config


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    config.set_enable_autotune(False)
    config.set_autotune_interval(0)
    config.set_auto_num_workers(False)


def slow(x: Any) -> Any:
    time.sleep(0.002)
    return x


def numbers(count: int = 60) -> ds.Dataset:
    return ds.NumpySlicesDataset(np.arange(count), ["x"], shuffle=False)


def values(data: ds.Dataset, epochs: int = 1) -> list[Any]:
    iterator = data.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[x.tolist() for (x,) in iterator] for _ in range(epochs)]


def test_a_profile_counts_every_node() -> None:
    data = numbers().map(slow, "x", num_parallel_workers=2).filter(lambda x: x % 2 == 0).batch(5)
    found = ds.profile(data, 2)
    assert [(n.name, n.depth, n.kind, n.workers, n.rows, n.size) for n in found.nodes] == [
        ("batch", 0, "inline", 1, 12, 480),
        ("filter", 1, "inline", 1, 60, 480),
        ("map", 2, "threads", 2, 120, 960),
        ("NumpySlices", 3, "inline", 1, 120, 960),
    ]
    slowest = found.bottleneck
    assert slowest is not None and slowest.name == "map" and slowest.busy >= 0.24 and 0 < found.share(slowest) <= 1
    assert [n.calls for n in found.nodes] == [(), ("<lambda>",), ("slow",), ()]
    text = str(found).splitlines()
    assert len(text) == 7 and text[4].startswith("    map slow              threads x2 ")
    assert text[4].split()[-4:] == ["120", "960", "B", "1"] and text[6] == "bottleneck: map slow, threads x2"
    assert max(map(len, text)) <= 80


def test_a_dataset_in_two_places_is_counted_once() -> None:
    def a_function_whose_name_is_longer_than_columns_are(x: Any) -> Any:
        return slow(x)

    shared = numbers(20).map(a_function_whose_name_is_longer_than_columns_are, "x")
    found = ds.profile((shared + shared).zip(shared.rename("x", "y")))
    assert [(n.name, n.depth, n.kind) for n in found.nodes] == [
        ("zip", 0, "inline"),
        ("concat", 1, "inline"),
        ("map", 2, "inline"),
        ("NumpySlices", 3, "inline"),
        ("map", 2, "above"),
        ("rename", 1, "inline"),
        ("map", 2, "above"),
    ]
    assert all(node.busy >= 0 for node in found.nodes) and found.bottleneck == found.nodes[2]
    text = str(found).splitlines()
    assert text[4].startswith("    map a_function_who... inline x1 ") and text[6].split() == ["map", "above"]
    assert max(map(len, text[:-1])) <= 80


def test_a_profile_of_an_iterator() -> None:
    iterator = numbers().create_tuple_iterator(output_numpy=True)
    assert ds.profile(iterator).nodes == []
    for _ in range(3):
        next(iterator)
        time.sleep(0.2)
    found = ds.profile(iterator)
    assert found.bottleneck is None and str(found).endswith("the consumer is slower than the pipeline")
    iterator.stop()
    wrong: Any = 3
    with pytest.raises(TypeError, match="profile: pipeline must be a dataset or an iterator, not 3"):
        ds.profile(wrong)


def test_autotune_changes_workers_and_no_rows(tmp_path: Path) -> None:
    def pipeline() -> ds.Dataset:
        images = ds.FakeImageDataset(120, (2, 2, 3), 3, shuffle=False).project(["image"])
        return images.map(slow, "image").map(ds.transforms.RandomApply([slow], 0.5), "image").batch(4)

    ds.config.set_seed(3)
    expected = values(pipeline(), 2)
    config.set_enable_autotune(True, str(tmp_path / "tuned"))
    config.set_autotune_interval(5)
    data = pipeline()
    iterator = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
    assert [[x.tolist() for (x,) in iterator] for _ in range(2)] == expected
    assert all(node.workers >= 1 for node in ds.profile(iterator).nodes)
    written = json.loads((tmp_path / "tuned_0.json").read_text())
    assert written["remark"].startswith("The following file") and len(written["summary"]) == 5
    assert written["tree"]["op_type"] == "Batch"


def test_a_tuned_pipeline_is_made_again(tmp_path: Path) -> None:
    config.set_enable_autotune(True, str(tmp_path / "tuned"))
    data = ds.FakeImageDataset(40, (2, 2, 3), 3, shuffle=False).map(ds.transforms.TypeCast("int32"), "image").batch(4)
    expected = [x.tolist() for x, _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    config.set_enable_autotune(False)
    again = ds.deserialize(json_filepath=str(tmp_path / "tuned_0.json"))
    assert [x.tolist() for x, _ in again.create_tuple_iterator(num_epochs=1, output_numpy=True)] == expected


def test_workers_of_operations_that_do_not_say() -> None:
    config.set_auto_num_workers(True)
    (found,) = [node for node in ds.profile(numbers().map(slow, "x")).nodes if node.name == "map"]
    assert found.workers == config.get_num_parallel_workers()
