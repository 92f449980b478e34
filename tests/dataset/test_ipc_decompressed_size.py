"""Small Arrow files that would become large, and tables of theirs that are damaged."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset.readers.columnar import ipc_decompressed_size

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install mycel[arrow]")


def write(path: Path, table: Any, codec: str | None, rows: int | None = None) -> str:
    with pa.ipc.new_file(os.fspath(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as file:
        file.write_table(table, rows)
    return os.fspath(path)


def some() -> Any:
    numbers = np.arange(4000)
    words = pa.array([f"word {n % 90}" for n in numbers]).dictionary_encode()
    return pa.table({"n": numbers, "word": words, "text": [f"row {n}" for n in numbers], "one": np.ones(4000, np.int8)})


@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_rows_and_what_they_become(tmp_path: Path, codec: str | None) -> None:
    path = write(tmp_path / "a.arrow", some(), codec, 900)
    data = ds.ArrowDataset(path, shuffle=False)
    rows = [(int(n), str(w), str(t)) for n, w, t, _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert rows == [(n, f"word {n % 90}", f"row {n}") for n in range(4000)]
    with open(path, "rb") as handle:
        sizes = ipc_decompressed_size.Sizes(handle, os.path.getsize(path))
        becomes = [sizes._becomes(handle, block) for block in sizes.batches]
    with pa.ipc.open_file(path) as file:
        held = [sum(c.get_total_buffer_size() for c in file.get_batch(n).columns) for n in range(5)]
        words = file.get_batch(0).column(1).dictionary.get_total_buffer_size()
    if codec is None:
        assert becomes == [0] * 5
    else:
        # Columns of dictionaries count theirs in each batch.
        assert all(abs(a - (b - words)) < 600 for a, b in zip(becomes, held))
        assert abs(sizes._of_dictionaries - words) < 600


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_what_becomes_too_large_is_refused(tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.arrow", pa.table({"x": np.zeros(1 << 18)}), codec)
    words = pa.array(["x" * (1 << 20), "y" * (1 << 20)]).dictionary_encode()
    large = write(tmp_path / "b.arrow", pa.table({"w": words}), codec)
    monkeypatch.setenv("MYCEL_INFLATE", "0.001GB")
    with pytest.raises(ValueError, match="a.arrow': record batch 0 would become 2 MiB of a file .* MYCEL_INFLATE"):
        ds.ArrowDataset(path)
    with pytest.raises(ValueError, match="b.arrow': its dictionaries would become 2 MiB"):
        ds.ArrowDataset(large)
    monkeypatch.setenv("MYCEL_INFLATE", "0.003GB")
    assert len(ds.ArrowDataset(path)) == 1 << 18 and len(ds.ArrowDataset(large)) == 2


def test_tables_that_lead_elsewhere_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.arrow", some(), "lz4", 1500)
    content = Path(path).read_bytes()
    random = np.random.default_rng(3)
    for trial in range(600):
        changed = bytearray(content)
        tables = len(content) - 1600
        for place in random.integers(tables, len(content), random.integers(1, 5)).tolist():
            changed[place] = int(random.integers(0, 256))
        if trial % 5 == 0:
            del changed[int(random.integers(0, len(changed))) :]
        try:
            handle = io.BytesIO(changed)
            sizes = ipc_decompressed_size.Sizes(handle, len(changed))
            for number in range(len(sizes.batches)):
                sizes.check(handle, number)
        except ipc_decompressed_size.Refused as error:
            assert str(error)
