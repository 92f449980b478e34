"""Files that fsspec reaches: the same rows as from this machine, where they are and as copies."""

from __future__ import annotations

import io
import os
import threading
import uuid
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel._src.foundation.files import fsspec_files
from mycel.mindrecord import FileWriter
from mycel.mindrecord.errors import MRMOpenError
from tests.dataset.test_webdataset import pack
from tests.tfrecords import write

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install mycel[remote]")

ROWS = 60


def text(folder: Path) -> Any:
    for part in range(2):
        lines = "".join(f"{n}\n" for n in range(part * 30, part * 30 + 30))
        (folder / f"{part}.txt").write_text(lines)
    return lambda place, **given: ds.TextFileDataset(f"{place}/*.txt", **given)


def csv(folder: Path) -> Any:
    for part in range(2):
        lines = "".join(f"{n},é\n" for n in range(part * 30, part * 30 + 30))
        (folder / f"{part}.csv").write_text("n,word\n" + lines)
    return lambda place, **given: ds.CSVDataset(f"{place}/*.csv", column_defaults=[0, ""], **given)


def tar(folder: Path) -> Any:
    for part in range(2):
        names = range(part * 30, part * 30 + 30)
        members = [(f"{n:03d}.{end}", str(n).encode() * (1 + n % 3 * 400)) for n in names for end in ("txt", "bin")]
        pack(folder / f"{part}.tar", [(name, content) for name, content in members])
    own = {"txt": lambda content: int(content[:2].decode()) if content[:2].decode().isdigit() else -1}
    return lambda place, **given: ds.WebDataset(f"{place}/{{0..1}}.tar", ["txt", "bin"], decode=own, **given)


def tfrecord(folder: Path) -> Any:
    for part in range(2):
        rows = [{"n": [n], "x": [float(n)] * (1 + n % 5)} for n in range(part * 30, part * 30 + 30)]
        write(folder / f"{part}.tfrecord", rows)
    return lambda place, **given: ds.TFRecordDataset(f"{place}/*.tfrecord", **given)


def parquet(folder: Path) -> Any:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for part in range(2):
        numbers = np.arange(part * 30, part * 30 + 30)
        table = pa.table({"n": numbers, "text": [f"row {n}" for n in numbers]})
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=7)
    return lambda place, **given: ds.ArrowDataset(f"{place}", **given)


def feather(folder: Path) -> Any:
    pa = pytest.importorskip("pyarrow")
    for part in range(2):
        table = pa.table({"n": np.arange(part * 30, part * 30 + 30)})
        with pa.ipc.new_file(os.fspath(folder / f"{part}.arrow"), table.schema) as file:
            file.write_table(table, 7)
    return lambda place, **given: ds.ArrowDataset(f"{place}/*.arrow", **given)


def mindrecord(folder: Path) -> Any:
    writer = FileWriter(str(folder / "rows.mindrecord"), 2)
    writer.add_schema({"n": {"type": "int32"}, "raw": {"type": "bytes"}})
    writer.write_raw_data([{"n": n, "raw": bytes([n]) * (n + 1)} for n in range(ROWS)])
    writer.commit()
    return lambda place, **given: ds.MindDataset(f"{place}/rows.mindrecord0", **given)


KINDS = {kind.__name__: kind for kind in (text, csv, tar, tfrecord, parquet, feather, mindrecord)}


@pytest.fixture(params=sorted(KINDS))
def places(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A source, the folder that has its files, and the same at other places."""
    monkeypatch.setenv("MYCEL_CACHE", os.fspath(tmp_path / "cache"))
    folder = tmp_path / "files"
    folder.mkdir()
    make = KINDS[request.param](folder)
    memory, name = fsspec.filesystem("memory"), uuid.uuid4().hex
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            memory.pipe(f"/{name}/{file.name}", file.read_bytes())
            archive.write(file, f"in/{file.name}")
    yield make, os.fspath(folder), f"memory://{name}"
    memory.rm(f"/{name}", recursive=True)


def rows(data: Any, epochs: int = 1) -> list[Any]:
    iterator = data.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[value.tolist() for value in row] for _ in range(epochs) for row in iterator]


@pytest.mark.parametrize("shuffle", [False, True, ds.Shuffle.FILES, ds.Shuffle.PARTIAL])
def test_rows_are_those_of_the_files(places: Any, shuffle: Any) -> None:
    make, folder, elsewhere = places
    ds.config.set_seed(2)
    try:
        expected = rows(make(folder, shuffle=shuffle), 2)
    except NotImplementedError:
        pytest.skip("a source without this order")
    assert len(expected) == 2 * ROWS
    assert rows(make(elsewhere, shuffle=shuffle), 2) == expected
    assert rows(make(f"file://{folder}", shuffle=shuffle), 2) == expected
    for workers in (1, 2, 8):
        data = make(elsewhere, shuffle=shuffle, num_parallel_workers=workers)
        assert rows(data.map(lambda x: x, num_parallel_workers=workers), 2) == expected
    for place in (1, 59, 60, 97):
        again = make(elsewhere, shuffle=shuffle).create_tuple_iterator(num_epochs=2, output_numpy=True)
        again.load_state_dict({"seed": 2, "seeded": 1, "epoch": place // ROWS, "step": place % ROWS})
        found: list[Any] = []
        while len(found) < 2 * ROWS - place:
            found += [[value.tolist() for value in row] for row in again]
        assert found == expected[place:]


def test_copies(places: Any, tmp_path: Path) -> None:
    make, folder, elsewhere = places
    expected = rows(make(folder, shuffle=False))
    ds.config.set_keep_remote_files(True)
    try:
        assert rows(make(elsewhere, shuffle=False)) == expected
        found = sorted(path for path in (tmp_path / "cache" / "copies").rglob("*") if path.is_file())
        # Notes say when a copy was used last.
        copies = [path for path in found if ".of-" not in path.name and path.parent.name != ".users"]
        times = [path.stat().st_mtime_ns for path in copies]
        assert copies and rows(make(elsewhere, shuffle=False)) == expected
        assert times == [path.stat().st_mtime_ns for path in copies]
    finally:
        ds.config.set_keep_remote_files(False)


def test_archives(places: Any, tmp_path: Path) -> None:
    make, folder, _ = places
    expected = rows(make(folder, shuffle=False))
    data = {"mindrecord": lambda: ds.MindDataset(f"zip://in/rows.mindrecord0::{tmp_path}/all.zip", shuffle=False)}
    names = sorted(os.listdir(folder))
    if names[0].startswith("rows"):
        assert rows(data["mindrecord"]()) == expected
        return
    ending = names[0].rpartition(".")[2]
    source = type(make(folder, shuffle=False))
    options = {} if ending != "tar" else {"columns_list": ["txt", "bin"], "decode": make(folder)._decoders}
    options |= {"column_defaults": [0, ""]} if ending == "csv" else {}
    if ending in ("parquet", "arrow", "tar"):
        files: Any = f"zip://in/{{0..1}}.{ending}::{tmp_path}/all.zip"
    else:
        files = f"zip://in/*.{ending}::{tmp_path}/all.zip"
    assert rows(source(files, shuffle=False, **options)) == expected


def test_a_file_that_is_missing_changes_or_is_cut_off(places: Any) -> None:
    make, _, elsewhere = places
    with pytest.raises((ValueError, RuntimeError), match="no file"):
        make(f"{elsewhere}/none")
    memory = fsspec.filesystem("memory")
    inner = elsewhere.removeprefix("memory:/")
    data = make(elsewhere, shuffle=False)
    for name in memory.ls(inner, detail=False):
        if not name.endswith(".db"):
            memory.pipe(name, memory.cat(name)[: len(memory.cat(name)) // 2])
    with pytest.raises((ValueError, RuntimeError, MRMOpenError)):
        found = rows(make(elsewhere, shuffle=False))
        # Text has no end that could be missing.
        assert len(found) < ROWS
        raise ValueError("fewer lines")
    # What was read when the dataset was made is there; what is not, is an error.
    try:
        found = rows(data)
        assert len(found) == ROWS or isinstance(data, ds.TextFileDataset)
    except (ValueError, RuntimeError) as error:
        assert type(data).__name__ in str(error) or "memory:" in str(error)


def test_many_readers_of_a_file_in_memory() -> None:
    memory = fsspec.filesystem("memory")
    content = np.random.default_rng(0).integers(0, 256, 100_000).astype(np.uint8).tobytes()
    memory.pipe("/readers/a.bin", content)
    wrong: list[int] = []

    def read(seed: int) -> None:
        random = np.random.default_rng(seed)
        with fsspec_files.opened("memory://readers/a.bin") as file:
            for start in random.integers(0, 100_000, 300).tolist():
                file.seek(start)
                if file.read(50) != content[start : start + 50] or file.seek(-5, io.SEEK_END) != 99_995:
                    wrong.append(start)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_cannot_be_reached_is_said() -> None:
    with pytest.raises(ValueError, match="TextFileDataset: no file matches: .*s4://x.*not known"):
        ds.TextFileDataset("s4://x/a.txt")
    with pytest.raises(ValueError, match="WebDataset: no file matches: there is no file 'memory://none/a.tar'"):
        ds.WebDataset("memory://none/a.tar")
    with pytest.raises(TypeError, match="the value must be a bool, not"):
        ds.config.set_keep_remote_files(1)


def test_an_archive_that_would_become_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", "0\n" * (1 << 21))
    monkeypatch.setenv("MYCEL_INFLATE", "0.001GB")
    with pytest.raises(ValueError, match="becomes 4 MiB when it is decompressed; MYCEL_INFLATE"):
        rows(ds.TextFileDataset(f"zip://a.txt::{tmp_path}/a.zip"))


def test_copies_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setenv("MYCEL_CACHE", os.fspath(tmp_path / "cache"))
    monkeypatch.setenv("MYCEL_COPIES", "0.0001GB")
    memory, name = fsspec.filesystem("memory"), uuid.uuid4().hex
    for part in range(2):
        memory.pipe(f"/{name}/{part}.txt", b"".join(b"%d\n" % n for n in range(part * 30_000, part * 30_000 + 30_000)))
    said: list[str] = []
    monkeypatch.setattr(
        "mycel.dataset.execution_options.logger.warning", lambda *words: said.append(words[0] % words[1:])
    )
    ds.config.set_keep_remote_files(True)
    try:
        data = ds.TextFileDataset(f"memory://{name}/*.txt", shuffle=False)
        assert [int(str(x)) for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [*range(60_000)]
    finally:
        ds.config.set_keep_remote_files(False)
        memory.rm(f"/{name}", recursive=True)
    assert len(said) == 2 and all("is read where it is: there is no room for a copy" in words for words in said)


@pytest.mark.parametrize("kind", ["text", "csv"])
def test_answers_that_are_cut_off_or_too_long(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that gives less than it promised does not end a file, nor does a whole file stand for
    a part of it.
    """
    make = KINDS[kind](tmp_path)
    memory, name = fsspec.filesystem("memory"), uuid.uuid4().hex
    for file in sorted(tmp_path.iterdir()):
        memory.pipe(f"/{name}/{file.name}", file.read_bytes())
    whole = type(memory).cat_file
    for shuffle in (False, ds.Shuffle.PARTIAL):
        sound = make(f"memory://{name}", shuffle=shuffle)
        assert len(rows(make(f"memory://{name}", shuffle=shuffle))) == ROWS
        monkeypatch.setattr(type(memory), "cat_file", lambda *about, **where: whole(*about, **where)[:-3])
        with pytest.raises((ValueError, OSError), match=rf"memory://.*{name}.*(ends at byte|become shorter)"):
            rows(make(f"memory://{name}", shuffle=shuffle))
        if shuffle is not False:
            monkeypatch.setattr(type(memory), "cat_file", lambda self, path, **where: whole(self, path) + b"more")
            with pytest.raises((ValueError, OSError), match="its server knows no ranges"):
                rows(sound)
        monkeypatch.setattr(type(memory), "cat_file", whole)
    memory.rm(f"/{name}", recursive=True)
