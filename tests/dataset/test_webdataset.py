"""`WebDataset` against `tarfile`: formats of archives, decoders, orders, positions, damage."""

from __future__ import annotations

import importlib.util
import io
import itertools
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import vision
from mycel.dataset.nodes.cached_rows import key_of
from mycel.dataset.readers import tar_index

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def pack(path: Path, members: list[tuple[str, bytes]], kind: int = tarfile.PAX_FORMAT) -> str:
    with tarfile.open(path, "w", format=kind) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return os.fspath(path)


def npy(array: np.ndarray) -> bytes:
    target = io.BytesIO()
    np.save(target, array)
    return target.getvalue()


def members(start: int, count: int) -> list[tuple[str, bytes]]:
    found = []
    for n in range(start, start + count):
        found += [
            (f"set/{n:04d}.cls", str(n).encode()),
            (f"set/{n:04d}.txt", f"number {n} é".encode()),
            (f"set/{n:04d}.npy", npy(np.full((2, n % 3), n, np.float32))),
            (f"set/{n:04d}.json", json.dumps({"n": n, "all": [n, n + 1]}).encode()),
            (f"set/{n:04d}.meta.bin", bytes(n % 700)),
        ]
    return found


@pytest.fixture
def shards(tmp_path: Path) -> str:
    """Three shards of 20, 7 and 13 samples."""
    start = 0
    for number, count in enumerate((20, 7, 13)):
        pack(tmp_path / f"s-{number:03d}.tar", members(start, count))
        start += count
    return os.fspath(tmp_path / "s-{000..002}.tar")


def rows(data: ds.Dataset) -> list[dict[str, Any]]:
    found = data.create_dict_iterator(num_epochs=1, output_numpy=True)
    return [
        {name: value if isinstance(value, dict) else value.tolist() for name, value in row.items()} for row in found
    ]


def numbers(data: ds.Dataset) -> list[int]:
    return [int(row["cls"]) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_formats_and_decoders(tmp_path: Path, kind: str) -> None:
    content = members(0, 9)
    long = "deep/" * 40 + "é" * 30
    if kind != "ustar":
        content += [(name.replace("set/0008", long), value) for name, value in content[-5:]]
    data = ds.WebDataset(pack(tmp_path / "a.tar", content, FORMATS[kind]), shuffle=False)
    assert data.get_col_names() == ["cls", "txt", "npy", "json", "meta.bin"]
    found = rows(data)
    assert len(found) == len(content) // 5 == data.get_dataset_size()
    for n, row in enumerate(found):
        n = min(n, 8)
        assert row["cls"] == n and row["txt"] == f"number {n} é" and row["npy"] == [[n] * (n % 3)] * 2
        assert {k: np.asarray(v).tolist() for k, v in row["json"].items()} == {"n": n, "all": [n, n + 1]}
        assert row["meta.bin"] == [0] * n
    keys = [str(row["__key__"]) for row in rows(ds.WebDataset(str(tmp_path / "a.tar"), ["__key__"], shuffle=False))]
    assert keys[:9] == [f"set/{n:04d}" for n in range(9)] and keys[9:] == ([long] if kind != "ustar" else [])
    raw = rows(ds.WebDataset(str(tmp_path / "a.tar"), ["txt"], shuffle=False, decode=False))
    assert bytes(raw[1]["txt"]) == "number 1 é".encode()
    own = {"txt": lambda content: len(content), ".bin": lambda content: np.array([len(content), 1])}
    assert rows(ds.WebDataset(str(tmp_path / "a.tar"), ["txt", "meta.bin", "cls"], shuffle=False, decode=own))[2] == {
        "txt": 11,
        "meta.bin": [2, 1],
        "cls": 2,
    }


def test_images(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    pixels = np.random.default_rng(0).integers(0, 256, (2, 5, 4, 3)).astype(np.uint8)
    for number, name in enumerate(("a.png", "b.jpg")):
        write = vision.write_png if name.endswith("png") else vision.write_jpeg
        write(os.fspath(tmp_path / name), pixels[number])
    content = [("0.png", (tmp_path / "a.png").read_bytes()), ("1.JPG", (tmp_path / "b.jpg").read_bytes())]
    path = pack(tmp_path / "a.tar", content)
    with pytest.raises(ValueError, match=r"sample '1' .* has \['jpg'\], but the first sample \['png'\]"):
        ds.WebDataset(path)
    found = list(ds.WebDataset(path, ["jpg;png"], shuffle=False).create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert np.array_equal(found[0][0], pixels[0]) and found[1][0].shape == (5, 4, 3)
    assert np.array_equal(found[1][0], vision.read_image(os.fspath(tmp_path / "b.jpg")))


# It leaves closing to the collector of garbage.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.skipif(importlib.util.find_spec("webdataset") is None, reason="webdataset is not installed")
def test_samples_are_those_of_webdataset(tmp_path: Path, shards: str) -> None:
    import webdataset

    peer = webdataset.WebDataset(shards.replace("{000..002}", "000"), shardshuffle=False, empty_check=False)
    theirs = [(s["__key__"], s["txt"].decode(), bytes(s["meta.bin"])) for s in peer]
    ours = rows(ds.WebDataset(shards.replace("{000..002}", "000"), ["__key__", "txt", "meta.bin"], shuffle=False))
    assert [(row["__key__"], row["txt"], bytes(row["meta.bin"])) for row in ours] == theirs


def test_orders_and_shards(shards: str) -> None:
    every = list(range(40))
    assert numbers(ds.WebDataset(shards, shuffle=False)) == every
    ds.config.set_seed(4)
    for shuffle in (None, True, ds.Shuffle.FILES, ds.Shuffle.INFILE):
        found = numbers(ds.WebDataset(shards, shuffle=shuffle))
        assert sorted(found) == every
        if shuffle is ds.Shuffle.INFILE:
            assert sorted(found[:20]) == every[:20] and found != every
        if shuffle is ds.Shuffle.FILES:
            assert [found[found.index(n) + 1] for n in (0, 20, 27)] == [1, 21, 28]
        parts = [numbers(ds.WebDataset(shards, shuffle=shuffle, num_shards=4, shard_id=i)) for i in range(4)]
        assert sorted(itertools.chain(*parts)) == every
    assert numbers(ds.WebDataset(shards, sampler=[39, 0, 27, 26])) == [39, 0, 27, 26]
    labels = ds.WebDataset(shards, ["txt", "cls"], sampler=ds.PKSampler(1, class_column="cls"))
    assert sorted(numbers(labels)) == every
    again = ds.deserialize(ds.serialize(ds.WebDataset(shards, ["cls"], shuffle=False).batch(8)))
    assert again.get_dataset_size() == 5


@pytest.mark.parametrize("shuffle", [False, True])
def test_workers_and_positions_change_nothing(shards: str, shuffle: bool) -> None:
    def data(workers: int | None, processes: bool = False) -> Any:
        ds.config.set_seed(3)
        source = ds.WebDataset(shards, shuffle=shuffle, num_parallel_workers=workers)
        return source.map(lambda x: x * 2, ["cls"], num_parallel_workers=workers, python_multiprocessing=processes)

    alone = rows(data(None))
    assert all(str(rows(data(workers))) == str(alone) for workers in (1, 2, 8))
    assert str(rows(data(2, True))) == str(alone)
    for place in (1, 19, 40, 63):
        iterator = data(2).create_tuple_iterator(num_epochs=2, output_numpy=True)
        everything = itertools.chain(iterator, iterator)
        for _ in range(place):
            next(everything)
        state = iterator.state_dict()
        rest = [int(row[0]) for row in everything]
        again = data(None).create_tuple_iterator(num_epochs=2, output_numpy=True)
        again.load_state_dict(state)
        found: list[int] = []
        while len(found) < len(rest):
            found += [int(row[0]) for row in again]
        assert found == rest


def test_the_index_is_kept_and_follows_the_file(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("MYCEL_CACHE", os.fspath(tmp_path / "cache"))
    path = pack(tmp_path / "a.tar", members(0, 5))
    read: list[str] = []
    members_of = tar_index._members
    monkeypatch.setattr(tar_index, "_members", lambda *given: read.append("") or members_of(*given))
    data = ds.WebDataset(path, shuffle=False)
    first = rows(data)
    assert str(rows(ds.WebDataset(path, shuffle=False))) == str(first) and len(read) == 1
    pack(tmp_path / "a.tar", members(3, 6))
    with pytest.raises((ValueError, RuntimeError), match="was changed after this dataset was made"):
        rows(data)
    assert numbers(ds.WebDataset(path, shuffle=False)) == list(range(3, 9)) and len(read) == 2


def test_truncated_and_damaged_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    pack(path, members(0, 4))
    sound = path.read_bytes()
    good = str(rows(ds.WebDataset(path, shuffle=False)))
    end = len(sound.rstrip(b"\0"))
    for length in (*range(0, end, 700), 512, 1024, end):
        path.write_bytes(sound[:length])
        with pytest.raises(ValueError, match=r"WebDataset: .*a.tar': at offset \d+: .*(truncated|end mark)"):
            ds.WebDataset(path)
    random = np.random.default_rng(1)
    for _ in range(150):
        content = bytearray(sound)
        content[int(random.integers(0, len(content)))] ^= int(random.integers(1, 256))
        path.write_bytes(bytes(content))
        try:
            found = rows(ds.WebDataset(path, shuffle=False))
        except (ValueError, RuntimeError) as error:
            assert "offset" in str(error) or "sample" in str(error)
        else:
            # Contents have no checksums.
            assert len(found) == 4 or str(found) == good
    path.write_bytes(sound + sound)
    with pytest.raises(ValueError, match="more follows after the end mark"):
        ds.WebDataset(path)


def test_what_is_not_read_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    with pytest.raises(ValueError, match="at offset 0: it is compressed"):
        ds.WebDataset(path)
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("a.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(ValueError, match="'a.txt' is a symbolic link"):
        ds.WebDataset(path)
    pack(path, [("1.txt", b"a"), ("1.cls", b"0"), ("1.txt", b"b")])
    with pytest.raises(ValueError, match=r"at offset \d+: sample '1' has 'txt' twice"):
        ds.WebDataset(path)
    pack(path, [("folder/", b""), ("README", b"no sample"), ("__notes__.txt", b""), (".hidden", b"")])
    with pytest.raises(ValueError, match="there is no sample in"):
        ds.WebDataset(path)
    pack(path, [("1.cls", b"one"), ("2.json", b"{"), ("3.npy", b"none"), ("4.txt", b"\xff"), ("5.json", b"[1, [2]]")])
    for number, name in enumerate(("cls", "json", "npy", "txt", "json")):
        data = ds.WebDataset(path, [name], sampler=[number])
        with pytest.raises((ValueError, RuntimeError), match=rf"sample '{number + 1}': {name} at offset \d+ cannot be"):
            rows(data)
    with pytest.raises((ValueError, RuntimeError), match="sample '1' has no jpg or png; it has cls"):
        rows(ds.WebDataset(path, ["jpg;png"], shuffle=False))
    pickled = io.BytesIO()
    np.save(pickled, np.array([{}], object), allow_pickle=True)
    pack(path, [("1.npy", pickled.getvalue())])
    with pytest.raises((ValueError, RuntimeError), match="cannot be decoded"):
        rows(ds.WebDataset(path))
    words = "sample '1': npy at offset 512 cannot be decoded: ZeroDivisionError: "
    with pytest.raises((ValueError, RuntimeError), match=words):
        rows(ds.WebDataset(path, decode={".NPY": lambda content: 1 // 0}))
    with pytest.raises(ValueError, match=r"decode has functions for \['npz'\], but no file .* there are \['npy'\]"):
        ds.WebDataset(path, decode={"npz": len})
    # One table of functions may be for several sets.
    assert rows(ds.WebDataset(path, decode={"npz": len, "npy": len})) == [{"npy": len(pickled.getvalue())}]
    with pytest.raises(TypeError, match="decode must be a bool or functions"):
        ds.WebDataset(path, decode="npy")
    with pytest.raises(ValueError, match="num_samples cannot be given"):
        ds.WebDataset(path, shuffle=ds.Shuffle.FILES, num_samples=1)


def test_what_identifies_rows_in_a_cache_follows_the_files(tmp_path: Path) -> None:
    def key() -> str:
        return key_of(ds.WebDataset(os.fspath(tmp_path / "s-{0..1}.tar"), shuffle=False), "test")

    pack(tmp_path / "s-0.tar", members(0, 2))
    pack(tmp_path / "s-1.tar", members(2, 2))
    first = key()
    assert key() == first
    pack(tmp_path / "s-1.tar", members(2, 3))
    assert key() != first


def test_an_index_is_as_long_as_its_files_are_many(tmp_path: Path) -> None:
    """Samples with endings of their own, as many as there are samples."""
    count = 500
    path = pack(tmp_path / "a.tar", [(f"s{n}.e{n}", bytes([n % 7])) for n in range(count)])
    index, _ = tar_index.index_of(path)
    assert len(index.packed()) < 100 * count
    again = tar_index.Index.unpacked(index.packed())
    assert [again.endings_of(n) for n in range(count)] == [[f"e{n}"] for n in range(count)]
    assert not again.is_complete()
    spans = again.spans({"e3", "e400"})
    assert np.flatnonzero(spans[:, 1]).tolist() == [3, 400]
    offsets, sizes = np.array([again.parts(n)[f"e{n}"] for n in range(count)]).T
    np.testing.assert_array_equal(again.spans(()), np.stack([offsets, offsets + sizes], 1))
    rows = ds.WebDataset(path, ["e3;e4"], decode=False, num_samples=5, shuffle=False)
    with pytest.raises(ValueError, match="has no e3 or e4"):
        list(rows)
