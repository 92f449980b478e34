"""`HuggingFaceDataset` against the library's own rows, and with objects that are only like it."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install mycel[arrow]")

ROWS = 83


def columns(start: int = 0, count: int = ROWS) -> dict[str, Any]:
    numbers = range(start, start + count)
    return {
        "n": list(numbers),
        "text": [f"row {n} é" for n in numbers],
        "pair": [[n / 2, -n] for n in numbers],
        "many": [list(range(n % 4)) for n in numbers],
        "raw": [bytes([n % 256]) * (n % 3) for n in numbers],
        "both": [{"a": n, "b": str(n)} for n in numbers],
    }


def rows(data: Any, epochs: int = 1) -> list[dict[str, Any]]:
    def plain(value: Any) -> Any:
        return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else np.asarray(value).tolist()

    iterator = data.create_dict_iterator(num_epochs=epochs, output_numpy=True)
    return [{name: plain(value) for name, value in row.items()} for _ in range(epochs) for row in iterator]


def numbers(data: Any, epochs: int = 1) -> list[int]:
    return [row["n"] for row in rows(data, epochs)]


def listed(row: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, bytes) else value for name, value in row.items()}


class ByNumber:
    """Like a dataset, without a table."""

    column_names = ("n", "text")

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, number: int) -> dict[str, Any]:
        return {"text": f"row {number}", "n": number}


class Stream:
    """Like a stream: rows of an epoch in the order of its number."""

    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Any:
        return iter({"n": (n + 10 * self.epoch) % ROWS} for n in range(ROWS))


def sources() -> dict[str, Any]:
    table = pa.concat_tables([pa.table({"n": np.arange(start, min(start + 9, ROWS))}) for start in range(0, ROWS, 9)])
    return {"table": table, "by number": ByNumber(), "stream": Stream()}


@pytest.mark.parametrize("kind", sorted(sources()))
@pytest.mark.parametrize("shuffle", [False, None])
def test_workers_positions_and_shards(kind: str, shuffle: Any) -> None:
    ds.config.set_seed(3)

    def data(workers: int | None = None, processes: bool = False, **given: Any) -> Any:
        source = ds.HuggingFaceDataset(sources()[kind], ["n"], num_parallel_workers=workers, shuffle=shuffle, **given)
        return source.map(lambda x: x * 2, num_parallel_workers=workers, python_multiprocessing=processes)

    alone = numbers(data(), 2)
    assert sorted(alone[:ROWS]) == sorted(alone[ROWS:]) == list(range(0, 2 * ROWS, 2))
    assert (alone[:ROWS] == list(range(0, 2 * ROWS, 2))) == (kind == "stream" or shuffle is False)
    if kind != "stream":
        assert all(numbers(data(workers), 2) == alone for workers in (1, 2, 8))
        assert (alone[:ROWS] == alone[ROWS:]) == (shuffle is False)
    else:
        assert alone[ROWS] == 20
    assert numbers(data(2, True), 2) == alone
    for place in (1, 40, 82, 83, 120):
        first = data().create_tuple_iterator(num_epochs=2, output_numpy=True)
        everything = itertools.chain(first, first)
        for _ in range(place):
            next(everything)
        again = data().create_tuple_iterator(num_epochs=2, output_numpy=True)
        again.load_state_dict(first.state_dict())
        found: list[int] = []
        while len(found) < 2 * ROWS - place:
            found += [int(n) for (n,) in again]
        assert found == alone[place:]
        first.stop()
    parts = [numbers(data(num_shards=4, shard_id=n)) for n in range(4)]
    assert set(itertools.chain(*parts)) == set(range(0, 2 * ROWS, 2))
    assert len(numbers(data(num_samples=7))) == 7


def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    mark = str(tmp_path / "killed")

    def kill(x: Any) -> Any:
        if int(x) == 20 and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    for source in sources().values():
        data = ds.HuggingFaceDataset(source, ["n"], shuffle=False)
        found = numbers(data.map(kill, num_parallel_workers=2, python_multiprocessing=True))
        assert os.path.exists(mark) and found == list(range(ROWS))
        os.unlink(mark)


def test_values_of_a_table() -> None:
    data = ds.HuggingFaceDataset(pa.table(columns()), shuffle=False)
    assert rows(data) == [listed(row) for row in pa.table(columns()).to_pylist()]
    holes = pa.table({"n": [1, None], "text": ["a", None]})
    words = "HuggingFaceDataset: 'the table of a Table', row 1, column 'n': it is null"
    with pytest.raises((ValueError, RuntimeError), match=words):
        rows(ds.HuggingFaceDataset(holes, shuffle=False))
    assert rows(ds.HuggingFaceDataset(holes, shuffle=False, null={"n": 5, "text": "z"}))[1] == {"n": 5, "text": "z"}
    with pytest.raises(ValueError, match=r"HuggingFaceDataset: null names columns \['m'\]"):
        ds.HuggingFaceDataset(holes, null={"m": 5})
    labels = ds.HuggingFaceDataset(
        pa.table({"n": range(6), "k": [0, 1] * 3}), sampler=ds.PKSampler(2, class_column="k")
    )
    assert sorted(row["k"] for row in rows(labels)) == [0, 0, 1, 1]


def test_what_is_refused() -> None:
    for wrong, error, words in (
        (3, TypeError, "dataset must be one with __getitem__"),
        ({"train": ByNumber()}, TypeError, r"several datasets, \['train'\]"),
        ([(1, 2)], ValueError, "columns_list has to name"),
    ):
        with pytest.raises(error, match=words):
            ds.HuggingFaceDataset(wrong)
    with pytest.raises(ValueError, match="no column 'z'; the columns are"):
        ds.HuggingFaceDataset(ByNumber(), ["z"])
    with pytest.raises(ValueError, match="a stream keeps its order"):
        ds.HuggingFaceDataset(Stream(), ["n"], shuffle=True)
    with pytest.raises(ValueError, match="sampler needs a dataset"):
        ds.HuggingFaceDataset(Stream(), ["n"], sampler=[1])
    with pytest.raises((ValueError, RuntimeError), match="can be read once"):
        rows(ds.HuggingFaceDataset(iter([{"n": 1}]), ["n"]))

    class WithFeatures(list[Any]):
        features = {"n": SimpleNamespace(dtype="int32")}

    for values, words in (
        (WithFeatures([{"n": 0.5}]), "HuggingFaceDataset: row 0, column 'n': 0.5 is no int32"),
        ([{"n": 1}, {"m": 1}], "row 1 has no 'n'; it has"),
        ([(1, 2), (1,)], "row 0 has 2 values for 1 columns"),
        ([{"n": [[1], [2, 3]]}], "row 0, column 'n'"),
        ([{"n": None}], "row 0, column 'n': it is null"),
    ):
        with pytest.raises((ValueError, RuntimeError), match=words):
            rows(ds.HuggingFaceDataset(values, ["n"], shuffle=False))

    class Fails(ByNumber):
        def __getitem__(self, number: int) -> Any:
            raise KeyError(number)

    with pytest.raises(RuntimeError, match="operation 'Fails' failed on columns 'n', 'text', rows .*KeyError"):
        rows(ds.HuggingFaceDataset(Fails()))
    assert rows(ds.HuggingFaceDataset([(1, "a")], ["n", "text"])) == [{"n": 1, "text": "a"}]
    assert rows(ds.HuggingFaceDataset([], ["n"])) == []


datasets: Any = None
try:
    import datasets
except ImportError:
    pass
needs_library = pytest.mark.skipif(datasets is None, reason="datasets is not installed")
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)


@needs_library
def test_rows_are_those_of_the_library(tmp_path: Path) -> None:
    whole = datasets.Dataset.from_dict(columns())
    whole.save_to_disk(str(tmp_path / "saved"), num_shards=3)
    mapped = datasets.load_from_disk(str(tmp_path / "saved"))
    kinds = {
        "whole": whole,
        "mapped": mapped,
        "chosen": mapped.select([5, 80, 3, 3]),
        "shuffled": mapped.shuffle(seed=2),
        "shard": mapped.shard(3, 1),
        "transformed": whole.with_transform(lambda rows: {**rows, "n": [n + 1 for n in rows["n"]]}),
    }
    for kind, dataset in kinds.items():
        data = ds.HuggingFaceDataset(dataset, shuffle=False)
        assert (data._table is None) == (kind == "transformed")
        assert rows(data) == [listed(dataset[n]) for n in range(len(dataset))], kind
        assert len(data) == len(dataset) and data.get_col_names() == dataset.column_names
    arrays = whole.with_format("numpy", columns=["n", "pair"])
    assert rows(ds.HuggingFaceDataset(arrays, shuffle=False))[7] == {"n": 7, "pair": [3.5, -7.0]}
    for form in ("arrow", "pandas"):
        pytest.importorskip("pandas" if form == "pandas" else "pyarrow")
        assert rows(ds.HuggingFaceDataset(mapped.with_format(form), shuffle=False)) == list(map(listed, whole))
    other = whole.with_transform(lambda rows: {"length": [len(text) for text in rows["text"]]})
    assert ds.HuggingFaceDataset(other).get_col_names() == ["length"]
    assert rows(ds.HuggingFaceDataset(other, shuffle=False))[:2] == [{"length": len(t)} for t in whole["text"][:2]]
    halves = whole.with_transform(lambda rows: {"n": [n / 2 for n in rows["n"]]})
    assert [row["n"] for row in rows(ds.HuggingFaceDataset(halves, shuffle=False))][:4] == [0, 0.5, 1, 1.5]
    # Numbers of tables in files are views of the file.
    assert not ds.HuggingFaceDataset(mapped, ["n"], shuffle=False)._table._groups.part(0)[0].flags.owndata
    both = ds.HuggingFaceDataset(mapped.shuffle(seed=2), ["n"], num_parallel_workers=2)
    assert sorted(numbers(both)) == list(range(ROWS))


@needs_library
def test_features_of_the_library() -> None:
    pytest.importorskip("PIL")
    pixels = [np.full((4, 5 + n, 3), 40 * n, np.uint8) for n in range(4)]
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=["a", "b"]),
            "grid": datasets.Array2D((2, 2), "float32"),
            "small": datasets.Value("int16"),
        }
    )
    content = {"image": pixels, "label": [0, 1, 1, 0], "grid": [[[n, 1], [2, 3]] for n in range(4)], "small": [1] * 4}
    whole = datasets.Dataset.from_dict(content, features=features)
    for dataset in (whole, whole.select([3, 1])):
        data = ds.HuggingFaceDataset(dataset, shuffle=False)
        assert data._table is not None
        for number, row in enumerate(data.create_dict_iterator(num_epochs=1, output_numpy=True)):
            theirs = dataset[number]
            assert np.array_equal(row["image"], np.asarray(theirs["image"])) and row["label"] == theirs["label"]
            assert row["grid"].dtype == np.float32 and row["grid"].tolist() == np.asarray(theirs["grid"]).tolist()
            assert row["small"].dtype == np.int16
    alone = ds.HuggingFaceDataset(whole.with_format(None), ["image"], shuffle=False)
    assert [row["image"].shape for row in alone.create_dict_iterator(num_epochs=1, output_numpy=True)] == [
        (4, 5 + n, 3) for n in range(4)
    ]
    batches = ds.HuggingFaceDataset(whole, ["small", "grid"], shuffle=False).batch(4)
    assert [a.shape for a in next(batches.create_tuple_iterator(output_numpy=True))] == [(4,), (4, 2, 2)]


@needs_library
def test_streams_of_the_library() -> None:
    whole = datasets.Dataset.from_dict({"n": list(range(ROWS))})
    stream = whole.to_iterable_dataset(num_shards=4).shuffle(seed=5, buffer_size=10)
    data = ds.HuggingFaceDataset(stream)
    first = numbers(data, 2)
    assert sorted(first[:ROWS]) == sorted(first[ROWS:]) == list(range(ROWS)) and first[:ROWS] != first[ROWS:]
    assert numbers(data, 2) == first
    iterator = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
    iterator.load_state_dict({"seed": 0, "seeded": 0, "epoch": 1, "step": 30})
    assert [int(n) for (n,) in iterator] == first[ROWS + 30 :]


def test_rows_of_many_batches_at_once() -> None:
    tables = []
    for start in range(0, ROWS, 7):
        part = columns(start, min(7, ROWS - start))
        # Some batches have nulls, so their numbers are no arrays.
        part["hole"] = [None if n % 11 == 3 else float(n) for n in part["n"]]
        part["word"] = pa.array([("a", "bb")[n % 2] for n in part["n"]]).dictionary_encode()
        tables.append(pa.table(part))
    whole = pa.concat_tables(tables)
    wanted = [listed({**row, "hole": -1.0 if row["hole"] is None else row["hole"]}) for row in whole.to_pylist()]
    ds.config.set_seed(2)
    for chosen in (None, ["n", "text"], ["hole"], ["word", "many"]):
        data = ds.HuggingFaceDataset(whole, chosen, null={"hole": -1.0} if chosen in (None, ["hole"]) else None)
        order = [row["n"] for row in rows(ds.HuggingFaceDataset(whole, ["n"]))]
        names = chosen or list(wanted[0])
        assert rows(data) == [{name: wanted[n][name] for name in names} for n in order]
        assert rows(data.batch(ROWS).take(1) if chosen == ["n", "text"] else data)
    with pytest.raises((ValueError, RuntimeError), match="(row 3|one of rows .*), column 'hole': it is null"):
        rows(ds.HuggingFaceDataset(whole, ["hole"], sampler=[70, 40, 20, 3, 60]).batch(5))
