"""Small Parquet files that would become large: what is refused, and what stays a dictionary."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset.readers.columnar import parquet_decompressed_size

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install mycel[arrow]")
pq = pytest.importorskip("pyarrow.parquet")


def write(path: Path, table: Any, **options: Any) -> str:
    pq.write_table(table, path, **options)
    return os.fspath(path)


def first(path: str, *columns: str) -> list[Any]:
    data = ds.ArrowDataset(path, list(columns) or None, shuffle=False)
    return list(next(data.create_tuple_iterator(num_epochs=1, output_numpy=True)))


@pytest.mark.parametrize("compression", ["snappy", "gzip", "zstd", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_runs_and_compressed_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str, version: str
) -> None:
    rows = 300_000
    table = pa.table(
        {
            "few": np.arange(rows, dtype=np.int8),
            "zeros": np.zeros(rows),
            "lists": pa.ListArray.from_arrays([0] * rows + [rows], pa.array(np.zeros(rows, np.int64))),
        }
    )
    options = {"compression": compression, "data_page_version": version, "row_group_size": rows}
    path = write(tmp_path / "a.parquet", table, **options)
    assert os.path.getsize(path) < 400_000
    assert first(path)[1] == 0
    monkeypatch.setenv("MYCEL_INFLATE", "0.0015GB")
    for column in ("zeros", "lists"):
        with pytest.raises(ValueError, match=rf"row group 0: column '{column}.*takes [24] MiB.*MYCEL_INFLATE"):
            first(path, column)
    assert first(path, "few") == [0]
    monkeypatch.setenv("MYCEL_INFLATE", "0.06GB")
    assert first(path)[1] == 0


def test_text_of_a_dictionary_is_made_for_the_rows_that_are_asked_for(tmp_path: Path) -> None:
    # Two gigabytes and more of text, in a file of some kilobytes.
    rows, long = 300_000, "a" * 10_000
    words = pa.DictionaryArray.from_arrays(pa.array(np.arange(rows, dtype=np.int32) % 2), [long, "b"])
    nested = pa.ListArray.from_arrays(np.arange(rows + 1, dtype=np.int32), words)
    path = write(tmp_path / "a.parquet", pa.table({"word": words, "nested": nested}), row_group_size=rows)
    assert os.path.getsize(path) < 100_000
    data = ds.ArrowDataset(path, shuffle=False)
    found = list(data.take(3).create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert [str(word) for word, _ in found] == [long, "b", long]
    assert [nested.tolist() for _, nested in found] == [[long], ["b"], [long]]
    held = data._groups.places[0]
    assert held.bytes < 40 << 20


def test_sizes_are_those_of_pages(tmp_path: Path) -> None:
    table = pa.table({"x": np.random.default_rng(0).random(50_000), "s": [f"row {n}" for n in range(50_000)]})
    for version in ("1.0", "2.0"):
        path = write(tmp_path / "a.parquet", table, data_page_version=version, write_page_checksum=True)
        group = pq.ParquetFile(path).metadata.row_group(0)
        with open(path, "rb") as handle:
            sizes = [parquet_decompressed_size._of_column(handle, group.column(n), 8) for n in range(2)]
        assert sizes[0].total >= 8 * 50_000
        assert all(0 <= group.column(n).total_uncompressed_size - s.total < 4096 for n, s in enumerate(sizes) if n)


def test_damaged_headers_of_pages(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "a.parquet", pa.table({"x": np.arange(100)})))
    sound = path.read_bytes()
    for content in (b"\xff" * 30, b"\x15\x04\x15\xfe\xff\xff\xff\x0f", b"\x1c" * 30, b"\x19" + b"\xfe" * 20):
        path.write_bytes(sound[:4] + content + sound[4 + len(content) :])
        with pytest.raises(ValueError, match=r"a.parquet', row group 0: it is damaged: the header of a page at byte 4"):
            first(os.fspath(path))


def _chunks(content: bytes, groups: int, columns: int) -> Any:
    """Return the columns of all groups, and how they were read; None for a refused footer."""
    try:
        found = parquet_decompressed_size.chunks_of(io.BytesIO(content), len(content), groups, columns)
    except parquet_decompressed_size.Refused:
        return None, ""
    return [found.of(number) for number in range(groups)], type(found).__name__


@pytest.mark.parametrize("seed", range(4))
def test_the_routine_for_footers_reads_what_the_parser_reads(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    target = io.BytesIO()
    columns = {
        "a": np.arange(20),
        "é": ["word"] * 20,
        "list": [[n, 2] for n in range(20)],
        "pair": [{"x": n, "y": "s"} for n in range(20)],
    }
    options: dict[str, Any] = {"use_dictionary": seed % 2 == 0, "write_statistics": seed < 2, "row_group_size": 7}
    pq.write_table(pa.table(columns), target, **options)
    sound, length = target.getvalue(), int.from_bytes(target.getvalue()[-8:-4], "little")
    routine, used = parquet_decompressed_size.walked, 0
    for trial in range(150):
        content = bytearray(sound)
        for _ in range(draw.choice((1, 1, 3)) if trial else 0):
            at = len(content) - 8 - length + draw.randrange(length - 2)
            if draw.random() < 0.7:
                content[at] = draw.randrange(256)
            else:
                del content[at]
        content[-8:-4] = (length + len(content) - len(sound)).to_bytes(4, "little")
        monkeypatch.setattr(parquet_decompressed_size, "walked", routine)
        found, how = _chunks(bytes(content), 3, 5)
        monkeypatch.setattr(parquet_decompressed_size, "walked", lambda *_: None)
        assert found == _chunks(bytes(content), 3, 5)[0]
        used += how == "_Numbers"
        assert trial or how == "_Numbers"
    assert 10 < used < 150


def test_the_sizes_of_columns_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    target = io.BytesIO()
    table = pa.table({"a": np.arange(9), "ab": ["x"] * 9, "pair": [{"x": n, "y": "s"} for n in range(9)]})
    pq.write_table(table, target, row_group_size=4)
    metadata = pq.ParquetFile(target).metadata
    for routine in (parquet_decompressed_size.walked, lambda *_: None):
        monkeypatch.setattr(parquet_decompressed_size, "walked", routine)
        chunks = parquet_decompressed_size.chunks_of(target, len(target.getvalue()), 3, 4)
        for names, places in ((["a"], [0]), (["ab", "pair"], [1, 2, 3]), ([], [])):
            groups = [metadata.row_group(number) for number in range(3)]
            wanted = [sum(group.column(place).total_uncompressed_size for place in places) for group in groups]
            assert chunks.unpacked(names) == wanted
