"""`ArrowDataset` against pyarrow's own reading: types, orders, shards, positions, nulls, damage."""

from __future__ import annotations

import datetime
import itertools
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset.execution.pass_context import Run

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install mycel[arrow]")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 57


def table(rows: int = ROWS, start: int = 0) -> Any:
    numbers = np.arange(start, start + rows)
    pixels = (numbers[:, None, None] * np.ones((2, 3))).astype(np.float32)
    kind = pa.fixed_shape_tensor(pa.float32(), [2, 3])
    tensor = pa.ExtensionArray.from_storage(kind, pa.FixedSizeListArray.from_arrays(pixels.ravel(), 6))
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(n)) for n in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "u8": pa.array(numbers % 256, pa.uint8()),
            "half": pa.array(numbers.astype(np.float16)),
            "flag": pa.array(numbers % 3 == 0),
            "text": [f"row {n} é" for n in numbers],
            "raw": pa.array([bytes([n % 256]) * (n % 4) for n in numbers], pa.binary()),
            "word": pa.array([("a", "bb", "ccc")[n % 3] for n in numbers]).dictionary_encode(),
            "pair": pa.FixedSizeListArray.from_arrays(np.repeat(numbers, 2).astype(np.int32), 2),
            "many": pa.array([list(range(n % 4)) for n in numbers], pa.list_(pa.int16())),
            "grid": pa.array([[[n, 1], [2, 3]] for n in numbers], pa.large_list(pa.list_(pa.float64()))),
            "names": pa.array([["x", "yy"][: n % 3] for n in numbers], pa.list_(pa.string())),
            "image": tensor,
            "day": pa.array(days, pa.date32()),
            "time": pa.array(numbers * 1000, pa.timestamp("us")),
            "both": pa.array([{"n": int(n), "t": [n, n]} for n in numbers]),
        }
    )


def expected(whole: Any, row: int) -> dict[str, Any]:
    found = {name: whole[name][row].as_py() for name in whole.column_names if name not in ("image", "day", "time")}
    found["raw"] = list(found["raw"])
    found["image"] = np.full((2, 3), found["id"]).tolist()
    found["day"] = (datetime.date(2020, 1, 1) - datetime.date(1970, 1, 1)).days + found["id"]
    found["time"] = found["id"] * 1000
    return found


def shown(row: dict[str, Any]) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(part) for name, part in value.items()}
        return value.tolist()

    return {name: plain(value) for name, value in row.items()}


def rows(data: ds.Dataset) -> list[dict[str, Any]]:
    return [shown(row) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]


def ids(data: ds.Dataset) -> list[int]:
    return [int(row["id"]) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]


def write(path: Path, whole: Any, group: int = 10) -> str:
    if path.suffix == ".parquet":
        pq.write_table(whole, path, row_group_size=group)
    else:
        with pa.ipc.new_file(path, whole.schema) as file:
            # Dictionaries cannot be replaced in a file.
            file.write_table(whole.unify_dictionaries(), max_chunksize=group)
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of 57, 0 and 13 rows, in groups of 10."""
    place = tmp_path / "parts"
    place.mkdir()
    write(place / "part-00.parquet", table())
    write(place / "part-01.parquet", table().slice(0, 0))
    write(place / "part-02.parquet", table(13, ROWS))
    return place


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("held", [1, 1 << 28])
def test_types_and_values(tmp_path: Path, ending: str, held: int) -> None:
    whole = table()
    path = write(tmp_path / f"a.{ending}", whole)
    data = ds.ArrowDataset(path, shuffle=False, held_bytes=held)
    assert data.get_col_names() == whole.column_names and data.get_dataset_size() == ROWS
    assert rows(data) == [expected(whole, row) for row in range(ROWS)]
    first = next(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    kinds = {name: (str(value.dtype), value.shape) for name, value in first.items() if not isinstance(value, dict)}
    assert kinds["id"] == ("int64", ()) and kinds["half"] == ("float16", ()) and kinds["flag"] == ("bool", ())
    assert kinds["image"] == ("float32", (2, 3)) and kinds["grid"] == ("float64", (2, 2))
    assert kinds["many"] == ("int16", (0,)) and kinds["names"] == ("<U1", (0,)) and kinds["raw"] == ("uint8", (0,))
    assert kinds["day"] == ("int32", ()) and kinds["time"] == ("int64", ()) and kinds["pair"] == ("int32", (2,))
    some = ds.ArrowDataset(path, ["text", "id"], shuffle=False).take(2)
    assert rows(some) == [{"text": "row 0 é", "id": 0}, {"text": "row 1 é", "id": 1}]


def test_rows_belong_to_who_gets_them(tmp_path: Path) -> None:
    path = write(tmp_path / "a.arrow", table())
    data = ds.ArrowDataset(path, shuffle=False)

    def change(*values: Any) -> Any:
        for value in values:
            value[...] = 0 if value.dtype.kind != "U" else ""
        return values

    names = [name for name in data.get_col_names() if name != "both"]
    before = rows(data)
    assert {int(row["id"]) for row in rows(data.map(change, names, names))} == {0}
    assert rows(data) == before


def test_files_folders_and_patterns(folder: Path) -> None:
    every = list(range(ROWS + 13))
    for given in (
        str(folder),
        folder,
        str(folder / "part-*.parquet"),
        str(folder / "part-{00..02}.parquet"),
        [folder / "part-00.parquet", str(folder / "part-{01,02}.parquet")],
    ):
        assert ids(ds.ArrowDataset(given, ["id"], shuffle=False)) == every
    assert ids(ds.ArrowDataset(folder / "part-01.parquet", shuffle=False)) == []
    for given, message in (
        (str(folder / "none.parquet"), "there is no file"),
        ([str(folder), str(folder / "part-02.parquet")], "is named twice"),
        (str(folder / "{02..01}"), "must go up"),
        (str(folder / "{a,b"), "brace without its partner"),
        (str(folder / "{a{1,2},b}"), "braces within braces|brace without"),
        ([], "no files are given"),
        (str(folder.parent), None),
    ):
        if message is None:
            assert len(ds.ArrowDataset(given)) == len(every)
            continue
        with pytest.raises(ValueError, match=message):
            ds.ArrowDataset(given)
    with pytest.raises(TypeError, match="must be a path"):
        ds.ArrowDataset(3)
    (folder / "empty").mkdir()
    with pytest.raises(ValueError, match="has no file that ends with"):
        ds.ArrowDataset(folder / "empty")


@pytest.mark.parametrize("kind", [None, True, "adaptive", "global", "partial", "files", "infile"])
def test_shuffles(folder: Path, kind: Any) -> None:
    shuffle = ds.Shuffle(kind) if isinstance(kind, str) else kind
    held = 1 << 28 if kind != "partial" else 6000
    ds.config.set_seed(5)
    data = ds.ArrowDataset(folder, ["id"], shuffle=shuffle, held_bytes=held)
    iterator = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
    first, second = ([int(x) for (x,) in iterator] for _ in range(2))
    every = list(range(ROWS + 13))
    assert sorted(first) == sorted(second) == every and first != every
    if kind == "files":
        assert first in (every, every[ROWS:] + every[:ROWS]) or first == every[ROWS:] + every[:ROWS]
    else:
        assert first != second
    if kind == "infile":
        assert sorted(first[:ROWS]) == every[:ROWS]
    shards = [
        ids(ds.ArrowDataset(folder, ["id"], shuffle=shuffle, held_bytes=held, num_shards=2, shard_id=i)) for i in (0, 1)
    ]
    assert sorted(itertools.chain(*shards)) == every


def test_a_partial_shuffle_holds_few_groups_and_mixes_them(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.table({"id": np.arange(4000)}), 100)
    ds.config.set_seed(1)
    data = ds.ArrowDataset(path, held_bytes=8600)
    reads: list[int] = []
    read = data._groups.read
    data._groups.read = lambda number: reads.append(number) or read(number)
    found = np.concatenate([block.columns[0] for block in data._blocks(Run(1), 0)])
    assert found.tolist() == ids(ds.ArrowDataset(path, held_bytes=8600))
    assert sorted(found.tolist()) == list(range(4000))
    # Each window of 5 groups is shuffled as a whole, from everywhere in the file.
    for window in range(8):
        part = found[500 * window : 500 * window + 500]
        assert len(set(part // 100)) == 5 and np.abs(np.diff(part)).mean() > 50
    assert sorted(reads) == list(range(40))
    assert abs(np.corrcoef(found, np.arange(4000))[0, 1]) < 0.5


@pytest.mark.parametrize("shuffle", [False, True, ds.Shuffle.PARTIAL])
@pytest.mark.parametrize("batched", [False, True])
def test_workers_change_nothing(folder: Path, shuffle: Any, batched: bool) -> None:
    def run(workers: int | None) -> Any:
        ds.config.set_seed(3)
        data: Any = ds.ArrowDataset(folder, shuffle=shuffle, num_parallel_workers=workers, held_bytes=4000)
        data = data.map(lambda x: x + 1, ["half"], num_parallel_workers=workers)
        if batched:
            data = data.project(["id", "half", "image", "pair", "text"]).batch(4)
        return rows(data)

    alone = run(None)
    assert all(run(workers) == alone for workers in (1, 2, 8))


def test_processes_change_nothing(folder: Path) -> None:
    ds.config.set_seed(3)
    data = ds.ArrowDataset(folder, ["id", "text"])
    there = data.map(lambda x: x * 2, ["id"], num_parallel_workers=2, python_multiprocessing=True)
    assert rows(there) == rows(data.map(lambda x: x * 2, ["id"]))


def test_a_killed_worker_changes_nothing(folder: Path, tmp_path: Path, caplog: Any) -> None:
    ds.config.set_seed(3)
    data = ds.ArrowDataset(folder, ["id", "image"], shuffle=ds.Shuffle.PARTIAL, held_bytes=4000)
    alone = rows(data)
    flag = os.fspath(tmp_path / "killed")

    def killed_once(x: Any) -> Any:
        if int(x) == 44 and not os.path.exists(flag):
            open(flag, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    assert rows(data.map(killed_once, ["id"], num_parallel_workers=2, python_multiprocessing=True)) == alone
    assert os.path.exists(flag) and "was ended by SIGKILL" in caplog.text


@pytest.mark.parametrize("shuffle", [False, True, ds.Shuffle.PARTIAL])
def test_positions_are_exact(folder: Path, shuffle: Any) -> None:
    ds.config.set_seed(9)
    data = ds.ArrowDataset(folder, ["id", "many"], shuffle=shuffle, held_bytes=3000)
    for place in np.random.default_rng(0).integers(1, 2 * (ROWS + 13) - 1, 6).tolist():
        iterator = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
        everything = itertools.chain(iterator, iterator)
        for _ in range(place):
            next(everything)
        state = iterator.state_dict()
        rest = [int(row[0]) for row in everything]
        again = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
        again.load_state_dict(state)
        found: list[int] = []
        while len(found) < len(rest):
            found += [int(row[0]) for row in again]
        assert found == rest


def test_samplers_splits_and_descriptions(folder: Path) -> None:
    data = ds.ArrowDataset(folder, ["id"], sampler=ds.SubsetSampler([69, 0, 30, 30]))
    assert ids(data) == [69, 0, 30, 30]
    with pytest.raises((ValueError, RuntimeError), match="range|70"):
        ids(ds.ArrowDataset(folder, ["id"], sampler=ds.SubsetSampler([70])))
    words = ds.ArrowDataset(folder, ["word", "id"], sampler=ds.PKSampler(2, class_column="word"))
    assert sorted(row["word"] for row in rows(words)) == ["a", "a", "bb", "bb", "ccc", "ccc"]
    parts = ds.ArrowDataset(str(folder), ["id"], shuffle=False).split([0.5, 0.5])
    assert sorted(ids(parts[0]) + ids(parts[1])) == list(range(ROWS + 13))
    again = ds.deserialize(ds.serialize(ds.ArrowDataset(str(folder), ["id"], shuffle=False).batch(7)))
    assert again.get_dataset_size() == 10


def test_nulls(tmp_path: Path) -> None:
    whole = pa.table(
        {
            "n": pa.array([1, None, 3], pa.int32()),
            "x": pa.array([None, 0.5, 1.0]),
            "s": ["a", "b", None],
            "l": pa.array([[1, None], [2], []], pa.list_(pa.int8())),
            "b": pa.array([b"", None, b"x"]),
            "t": pa.array([1, None, 2], pa.timestamp("us")),
            "whole": pa.array([[1], None, [2]], pa.list_(pa.int8())),
        }
    )
    path = write(tmp_path / "a.parquet", whole)
    for name, row in (("n", 1), ("x", 0), ("s", 2), ("b", 1), ("t", 1)):
        with pytest.raises((ValueError, RuntimeError), match=rf"row {row}, column '{name}': it is null, and null="):
            rows(ds.ArrowDataset(path, [name], shuffle=False))
    with pytest.raises((ValueError, RuntimeError), match="column 'l': it is null"):
        rows(ds.ArrowDataset(path, ["l"], shuffle=False))
    assert [row["n"] for row in rows(ds.ArrowDataset(path, ["n"], sampler=[0, 2]))] == [1, 3]
    null = {"n": -1, "x": 2.5, "s": "none", "l": 9, "b": b"??", "t": 7}
    found = rows(ds.ArrowDataset(path, list(null), shuffle=False, null=null))
    assert [list(column) for column in zip(*(row.values() for row in found))] == [
        [1, -1, 3],
        [2.5, 0.5, 1.0],
        ["a", "b", "none"],
        [[1, 9], [2], []],
        [[], [63, 63], [120]],
        [1, 7, 2],
    ]
    for columns, value, message in (
        (["n"], "text", "null='text' is no int32"),
        (["n"], 2**40, "is no int32"),
        (["n"], 0.5, "null=0.5 is no int32: it is no whole number"),
        (["t"], 0.5, "null=0.5 is no int64: it is no whole number"),
        (["l"], 0.5, "null=0.5 is no int8: it is no whole number"),
        (["whole"], 1, "null as a whole"),
    ):
        with pytest.raises((ValueError, RuntimeError), match=message):
            rows(ds.ArrowDataset(path, columns, shuffle=False, null=value))
    with pytest.raises(ValueError, match=r"null names columns \['y'\]"):
        ds.ArrowDataset(path, ["n"], null={"y": 1})


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    decimals = pa.table(
        {
            "id": [1],
            "d": pa.array([1], pa.decimal128(5, 2)),
            "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
            "structs": [[{"a": 1}]],
        }
    )
    path = write(tmp_path / "a.parquet", decimals)
    for name in ("d", "m", "structs"):
        with pytest.raises(
            ValueError, match=f"column '{name}' has type .* has no rows here; there are rows of integers"
        ):
            ds.ArrowDataset(path, ["id", name])
    assert ids(ds.ArrowDataset(path, ["id"])) == [1]
    with pytest.raises(ValueError, match="has no column 'z'; its columns are"):
        ds.ArrowDataset(path, ["z"])
    other = write(tmp_path / "b.parquet", pa.table({"id": pa.array([1], pa.int8())}))
    with pytest.raises(ValueError, match="column 'id' is int8 in .*b.parquet', but int64 in"):
        ds.ArrowDataset([path, other], ["id"])
    ragged = write(tmp_path / "c.parquet", pa.table({"r": [[[1], [2, 3]]]}))
    with pytest.raises((ValueError, RuntimeError), match="make no rectangular array"):
        rows(ds.ArrowDataset(ragged))
    for arguments, message in (
        ({"held_bytes": 0}, "held_bytes must be within"),
        ({"num_samples": 1, "shuffle": ds.Shuffle.FILES}, "num_samples cannot be given"),
        ({"num_shards": 2}, "num_shards and shard_id must be given together"),
    ):
        with pytest.raises(ValueError, match=message):
            ds.ArrowDataset(path, ["id"], **arguments)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "a.arrow", pa.table({"name": [1]})))
    path.write_bytes(path.read_bytes().replace(b"name", b"n\xffme"))
    with pytest.raises(ValueError, match="ArrowDataset: .* is damaged or cannot be read: .*utf-8"):
        ds.ArrowDataset(path)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_damaged_files(tmp_path: Path, ending: str) -> None:
    whole = table().drop_columns(["both"])
    path = Path(write(tmp_path / f"a.{ending}", whole))
    sound = path.read_bytes()
    good = rows(ds.ArrowDataset(path, shuffle=False))
    random = np.random.default_rng(2)
    for length in (0, 3, 7, 8, len(sound) // 2, len(sound) - 1):
        path.write_bytes(sound[:length])
        with pytest.raises(ValueError, match="ArrowDataset: .*a\\."):
            rows(ds.ArrowDataset(path, shuffle=False))
    for _ in range(60):
        content = bytearray(sound)
        content[int(random.integers(8, len(content)))] ^= int(random.integers(1, 256))
        path.write_bytes(bytes(content))
        try:
            found = rows(ds.ArrowDataset(path, shuffle=False))
        except (ValueError, RuntimeError, MemoryError) as error:
            assert "ArrowDataset" in str(error)
        else:
            # Values have no checksums unless the writer asked for them.
            assert len(found) == len(good)


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", pa.table({"id": np.arange(30)}))
    data = ds.ArrowDataset(path, shuffle=False)
    write(tmp_path / "a.parquet", pa.table({"id": np.arange(7)}))
    with pytest.raises((ValueError, RuntimeError), match="damaged"):
        ids(data)
    Path(path).unlink()
    with pytest.raises((ValueError, RuntimeError), match="cannot be read"):
        ids(data)
