"""Sets of text: the rows that MindSpore 2.10 gives for the same files, stored."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import mycel.dataset as ds
from tests.dataset import set_files

EXPECTED: dict[str, Any] = json.loads(Path(__file__).with_name("values").joinpath("text_sets.json").read_text("utf-8"))
CASES = set_files.text_cases()


def opened(case: str, folder: Path, **more: Any) -> ds.Dataset:
    kind, build, inside, arguments = CASES[case]
    build(folder)
    return getattr(ds, f"{kind}Dataset")(str(folder / inside) if inside else folder, **{**arguments, **more})


@pytest.mark.parametrize("case", sorted(CASES))
def test_rows_are_those_of_mindspore(case: str, tmp_path: Path) -> None:
    found, expected = json.loads(json.dumps(set_files.describe(opened(case, tmp_path)))), EXPECTED[case]
    assert found["columns"] == expected["columns"]
    if CASES[case][3].get("usage", "") is None:
        # Several files: MindSpore takes rows from them in turn, Mycel file by file.
        found["rows"], expected["rows"] = (sorted(one["rows"], key=json.dumps) for one in (found, expected))
    assert found["rows"] == expected["rows"]


def test_order_shards_and_shuffling(tmp_path: Path) -> None:
    data = opened("UDPOS None", tmp_path)
    assert [row["word"].tolist() for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)] == [
        ["d"],
        ["x"],
        ["From", "the"],
        ["AP"],
    ]
    shards = [opened("UDPOS None", tmp_path, num_shards=3, shard_id=n) for n in range(3)]
    assert [shard.get_dataset_size() for shard in shards] == [2, 2, 2]
    assert opened("UDPOS None", tmp_path, num_samples=3).get_dataset_size() == 3
    shuffled = opened("PennTreebank train", tmp_path, shuffle=True)
    texts = [str(text) for (text,) in shuffled.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert sorted(texts) == [" = Title =", " first train line ", "last train ü"]
    picked = opened("IMDB train", tmp_path, shuffle=None, sampler=ds.PKSampler(1))
    assert sorted(int(row[1]) for row in picked.create_tuple_iterator(num_epochs=1, output_numpy=True)) == [0, 1]


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="usage must be one of 'train', 'test', 'all', not 'x'"):
        opened("AGNews train", tmp_path, usage="x")
    with pytest.raises(ValueError, match="language_pair must be one of"):
        opened("IWSLT2016 train", tmp_path, language_pair=("de", "fr"))
    with pytest.raises(ValueError, match="task must be one of"):
        opened("CLUE train AFQMC", tmp_path, task="X")
    with pytest.raises(ValueError, match="has not the columns"):
        opened("CLUE train AFQMC", tmp_path, task="CSL").get_dataset_size()
    with pytest.raises(ValueError, match="there is no directory"):
        ds.IMDBDataset(tmp_path / "none")
    (tmp_path / "train.csv").write_text('"1","only two"\n')
    with pytest.raises(ValueError, match="row 0 of .* has 2 values instead of 3"):
        ds.AGNewsDataset(tmp_path, "train").get_dataset_size()
    (tmp_path / "enwik9").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not UTF-8"):
        ds.EnWik9Dataset(tmp_path).get_dataset_size()
    (tmp_path / "train-v1.1.json").write_text("{}")
    with pytest.raises(ValueError, match="has another layout: KeyError: 'data'"):
        ds.SQuADDataset(tmp_path, "train").get_dataset_size()
    (tmp_path / "train.txt").write_text("word NN\n")
    with pytest.raises(ValueError, match="has not 3 values"):
        ds.CoNLL2000Dataset(tmp_path, "train").get_dataset_size()


def test_translations_must_align(tmp_path: Path) -> None:
    set_files.multi30k(tmp_path)
    (tmp_path / "training" / "train.de").write_text("one\n")
    with pytest.raises(ValueError, match="2 sentences but 1 translations"):
        ds.Multi30kDataset(tmp_path, "train").get_dataset_size()


def test_places_of_arguments() -> None:
    assert list(inspect.signature(ds.YelpReviewDataset).parameters)[-2:] == ["num_parallel_workers", "cache"]
    assert list(inspect.signature(ds.WikiTextDataset).parameters)[3] == "num_parallel_workers"
    assert issubclass(ds.AGNewsDataset, ds.TextBaseDataset)
