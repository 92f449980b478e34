"""Shuffles of files larger than memory: how well they mix, what they read, and where they go on."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset.readers import coalesced_reads as pieces_module
from mycel.dataset.readers.sharded_files import partial_order
from mycel.mindrecord import FileWriter
from tests.dataset.test_webdataset import pack
from tests.tfrecords import write

FILES = (70, 1, 130, 55)
ROWS = sum(FILES)


def text(folder: Path) -> Any:
    start = 0
    for number, count in enumerate(FILES):
        lines = [f"{n} " + "é" * (n % 40) for n in range(start, start + count)]
        (folder / f"{number}.txt").write_text("\n\n".join(lines) + "\n" * (number % 2))
        start += count
    return lambda **options: ds.TextFileDataset(str(folder / "*.txt"), **options)


def csv(folder: Path) -> Any:
    start = 0
    for number, count in enumerate(FILES):
        form = '{0},"a ""{0}""\r\nb\u2028c, {1}"' + ("\n", "\r\n", "\n\n", "\r")[number]
        rows = "".join(form.format(n, "é" * (n % 40)) for n in range(start, start + count))
        (folder / f"{number}.csv").write_bytes(("n,word\n" + rows).encode())
        start += count
    return lambda **options: ds.CSVDataset(str(folder / "*.csv"), column_defaults=[0, ""], **options)


def tar(folder: Path) -> Any:
    start = 0
    for number, count in enumerate(FILES):
        members: list[tuple[str, bytes]] = []
        for n in range(start, start + count):
            members += [(f"{n:05d}.txt", str(n).encode()), (f"{n:05d}.bin", bytes(n % 900))]
        pack(folder / f"{number}.tar", members)
        start += count
    name = str(folder / "{0..3}.tar")
    return lambda **options: ds.WebDataset(name, ["txt", "bin"], held_bytes=1 << 17, **options)


def tfrecord(folder: Path) -> Any:
    start = 0
    for number, count in enumerate(FILES):
        rows = [{"n": [n], "x": [float(n)] * (1 + n % 30)} for n in range(start, start + count)]
        write(folder / f"{number}.tfrecord", rows)
        start += count
    name = str(folder / "*.tfrecord")
    return lambda **options: ds.TFRecordDataset(name, columns_list=["n"], shard_equal_rows=True, **options)


def mindrecord(folder: Path) -> Any:
    start, names = 0, []
    for number, count in enumerate(FILES):
        names.append(str(folder / f"{number}.mindrecord"))
        writer = FileWriter(names[-1])
        writer.add_schema({"n": {"type": "int32"}})
        writer.write_raw_data([{"n": n} for n in range(start, start + count)])
        writer.commit()
        start += count
    return lambda **options: ds.MindDataset(names, **options)


KINDS = {"text": text, "csv": csv, "tar": tar, "tfrecord": tfrecord, "mindrecord": mindrecord}


@pytest.fixture(params=sorted(KINDS))
def source(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(pieces_module, "_PIECE", 1 << 9)
    monkeypatch.setattr(pieces_module.Pieces.__init__, "__defaults__", (1 << 12,))
    monkeypatch.setattr("mycel.dataset.readers.mindrecords._PIECE", 1 << 20)
    return KINDS[request.param](tmp_path)


def numbers(rows: Any) -> list[int]:
    return [int(str(np.ravel(row[0])[0]).split()[0]) for row in rows]


def all_of(data: Any, epochs: int = 1) -> list[int]:
    iterator = data.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [n for _ in range(epochs) for n in numbers(iterator)]


def test_orders_are_those_of_any_workers_and_positions(source: Any) -> None:
    ds.config.set_seed(6)
    alone = all_of(source(shuffle=ds.Shuffle.PARTIAL), 2)
    assert sorted(alone[:ROWS]) == sorted(alone[ROWS:]) == list(range(ROWS))
    assert alone[:ROWS] != alone[ROWS:] and alone[:ROWS] != list(range(ROWS))
    for workers in (1, 2, 8):
        data = source(shuffle=ds.Shuffle.PARTIAL, num_parallel_workers=workers)
        assert all_of(data.map(lambda x: x, num_parallel_workers=workers), 2) == alone
    for place in np.random.default_rng(1).integers(0, 2 * ROWS, 6).tolist():
        first = source(shuffle=ds.Shuffle.PARTIAL).create_tuple_iterator(num_epochs=2, output_numpy=True)
        for _ in range(place):
            if next(first, None) is None:
                next(first)
        again = source(shuffle=ds.Shuffle.PARTIAL).create_tuple_iterator(num_epochs=2, output_numpy=True)
        again.load_state_dict(first.state_dict())
        found: list[int] = []
        while len(found) < 2 * ROWS - place:
            found += numbers(again)
        assert found == alone[place:]
        first.stop()
    parts = [all_of(source(shuffle=ds.Shuffle.PARTIAL, num_shards=4, shard_id=n)) for n in range(4)]
    assert sorted(itertools.chain(*parts)) == list(range(ROWS))


def test_a_killed_worker_changes_nothing(source: Any, tmp_path: Path) -> None:
    ds.config.set_seed(6)
    mark = str(tmp_path / "killed")

    def kill(x: Any) -> Any:
        if int(str(np.ravel(x)[0]).split()[0]) == 20 and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    data = source(shuffle=ds.Shuffle.PARTIAL)
    found = all_of(data.map(kill, num_parallel_workers=2, python_multiprocessing=True))
    assert os.path.exists(mark) and found == all_of(data)


@pytest.mark.parametrize("kind", ["text", "tar", "tfrecord"])
def test_pieces_are_read_about_once_and_only_those_that_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(pieces_module, "_PIECE", 1 << 9)
    monkeypatch.setattr(pieces_module.Pieces.__init__, "__defaults__", (1 << 12,))
    ds.config.set_seed(6)
    made = KINDS[kind](tmp_path)
    data = made(shuffle=ds.Shuffle.PARTIAL)
    found = data._lines.pieces if kind == "text" else data._pieces
    reads: list[int] = []
    read = found.held.read
    found.held.read = lambda number: reads.append(number) or read(number)
    found.held.places.clear()
    whole = all_of(data)
    count = len(found.groups)
    assert count > 8 and set(reads) == set(range(count)) and len(reads) <= 1.3 * count
    # At a place in the epoch nothing of what was before is read but for the window that it is in.
    reads.clear()
    found.held.places.clear()
    begun = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    begun.load_state_dict({"seed": 6, "seeded": 1, "epoch": 0, "step": ROWS - 20})
    assert numbers(begun) == whole[-20:] and len(reads) <= 0.7 * count
    assert sorted(all_of(made(shuffle=ds.Shuffle.PARTIAL))) == list(range(ROWS))


def test_how_well_rows_are_mixed() -> None:
    groups, mixed, rows = [25] * 40, 200, 1000
    places = np.empty((300, rows))
    near = []
    for epoch in range(300):
        order = partial_order(np.random.default_rng(epoch), groups, mixed)
        assert sorted(order) == list(range(rows))
        places[epoch, order] = np.arange(rows)
        near.append(np.abs(np.diff(places[epoch]))[np.arange(1, rows) % 25 != 0].mean())
    # A row comes equally likely at any place: means and deviations are those of a uniform order.
    assert abs(places.mean() - (rows - 1) / 2) < 1e-6
    assert np.abs(places.mean(0) - rows / 2).max() < 5 * rows / np.sqrt(12 * 300)
    assert np.abs(places.std(0) / (rows / np.sqrt(12)) - 1).max() < 0.2
    # Neighbours in a file are a third of a window apart in the mean, as in a uniform order of it.
    assert abs(np.mean(near) / (mixed / 3) - 1) < 0.05
    # A batch has rows of nearly as many groups as it could have: of 8 in a window for 32 rows.
    order = partial_order(np.random.default_rng(0), groups, mixed)
    assert np.mean([len(set(order[start : start + 32] // 25)) for start in range(0, 960, 32)]) > 7


def test_windows_are_about_equal_and_no_larger_than_they_may_be() -> None:
    random = np.random.default_rng(3)
    for _ in range(300):
        groups = random.integers(1, 50, random.integers(1, 60)).tolist()
        mixed = int(random.integers(1, 2 * sum(groups)))
        seed = int(random.integers(1 << 30))
        order = partial_order(np.random.default_rng(seed), groups, mixed)
        assert sorted(order.tolist()) == list(range(sum(groups)))
        group_of = np.repeat(np.arange(len(groups)), groups)
        first = {g: int(np.flatnonzero(group_of[order] == g).min()) for g in range(len(groups))}
        last = {g: int(np.flatnonzero(group_of[order] == g).max()) for g in range(len(groups))}
        assert all(last[g] - first[g] < max(mixed, groups[g]) for g in range(len(groups)))
    assert partial_order(random, [], 4).tolist() == [] and partial_order(random, [3], 1).size == 3


def test_files_that_change_or_cannot_be_read_by_place(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    data = ds.TextFileDataset(str(tmp_path / "a.txt"), shuffle=ds.Shuffle.PARTIAL)
    (tmp_path / "a.txt").write_text("one\n")
    with pytest.raises((ValueError, RuntimeError), match="was changed after this dataset was made"):
        all_of(data)
    (tmp_path / "a.txt").write_bytes(b"one\n\xff\n")
    with pytest.raises((ValueError, RuntimeError), match="a.txt' is not UTF-8, in the line at byte 4"):
        list(ds.TextFileDataset(str(tmp_path / "a.txt"), shuffle=ds.Shuffle.PARTIAL))
    (tmp_path / "a.txt").write_bytes(b"\n\n")
    assert list(ds.TextFileDataset(str(tmp_path / "a.txt"), shuffle=ds.Shuffle.PARTIAL)) == []
    write(tmp_path / "a.tfrecord", [{"n": [1]}])
    with pytest.raises(ValueError, match="compressed files do not have"):
        ds.TFRecordDataset(str(tmp_path / "a.tfrecord"), shuffle=ds.Shuffle.PARTIAL, compression_type="GZIP")
    pack(tmp_path / "a.tar", [("1.txt", b"a")])
    with pytest.raises(ValueError, match="held_bytes must be within"):
        ds.WebDataset(str(tmp_path / "a.tar"), held_bytes=0)


def test_csv_in_pieces_is_csv(tmp_path: Path) -> None:
    """The same rows and the same errors as all at once."""
    contents = [
        'a,b\n1,x\n2,"y\nz"\n\n3,"q""r"\n',
        'a,b\r\n1,x\r2,é\r\n3,"\u2028\x0b\x1c"\n4,k\x0bl\u2028m',
        "\n\na,b\n\n\n5,x\n\n",
        "a,b\n",
        'a,b\n1,x"y\n2,z"\n3,w\n',
        "a,b\n1,x\n2\n",
        "a,b\n1,x\nz,y\n",
        'a,b\n1,"open\n2,x\n',
        "a,a\n1,2\n",
        "",
        "a,b\n1,\xff\n",
        "a,b\n99999999999,x\n",
        'a,b\n1,"x"y\n',
    ]
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(content.encode("latin-1") if "\xff" in content else content.encode())
        found: list[Any] = []
        for shuffle in (False, ds.Shuffle.PARTIAL):
            try:
                data = ds.CSVDataset(str(path), column_defaults=[0, ""], shuffle=shuffle)
                rows = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
                found.append(sorted((int(a), str(b)) for a, b in rows))
                assert data.get_col_names() == ["a", "b"] and data.get_dataset_size() == len(found[-1])
            except ValueError as error:
                found.append(str(error))
        assert found[0] == found[1], content
    pieces = ds.CSVDataset(str(tmp_path / "0.csv"), shuffle=ds.Shuffle.PARTIAL)
    (tmp_path / "0.csv").write_text("a,b\n1,x\n")
    with pytest.raises(ValueError, match="was changed after this dataset was made"):
        list(pieces.create_tuple_iterator(num_epochs=1))
