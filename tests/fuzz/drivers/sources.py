"""The readers of other frameworks' files, and files read in pieces: Arrow and Parquet, tar files of
samples, tables of Hugging Face, CSV, text and TFRecord. One file is damaged, and all rows are read.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import random as random_module
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

import mycel.dataset as ds
from tests import tfrecords
from tests.fuzz.drivers._damage import clear, damage

CORPUS = 60
ROWS = 40
HAS_ARROW = importlib.util.find_spec("pyarrow") is not None
_NEEDS_ARROW = ("parquet", "ipc", "table")


def _table() -> Any:
    import pyarrow as pa

    numbers = np.arange(ROWS)
    return pa.table(
        {
            "n": numbers,
            "text": [f"row {n}" for n in numbers],
            "raw": pa.array([bytes([n]) * (n % 4) for n in numbers], pa.binary()),
            "word": pa.array([("a", "bb", "ccc")[n % 3] for n in numbers]).dictionary_encode(),
            "pair": pa.FixedSizeListArray.from_arrays(np.repeat(numbers, 2).astype(np.int32), 2),
            "many": pa.array([list(range(n % 4)) for n in numbers], pa.list_(pa.int16())),
            "half": pa.array([None if n % 7 == 0 else n / 2 for n in numbers]),
            "both": pa.array([{"n": int(n), "t": [int(n)]} for n in numbers]),
        }
    )


@functools.cache
def sound(kind: str, form: str) -> bytes:
    """A file of a kind; `form` is how it is compressed, or what else differs."""
    content = io.BytesIO()
    if kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(_table(), content, row_group_size=15, compression=form, write_page_checksum=False)
    elif kind in ("ipc", "table"):
        import pyarrow as pa

        options = pa.ipc.IpcWriteOptions(compression=None if form == "none" else form)
        make = pa.ipc.new_file if kind == "ipc" else pa.ipc.new_stream
        with make(content, _table().schema, options=options) as file:
            file.write_table(_table(), 15)
    elif kind == "tar":
        form_of = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}[form]
        with tarfile.open(fileobj=content, mode="w", format=form_of) as archive:
            for n in range(4):
                folder = "some/long/folder/" * 8 if n == 2 else ""
                npy = io.BytesIO()
                np.save(npy, np.arange(n, dtype=np.float32))
                for ending, value in (("txt", b"x" * n), ("cls", b"%d" % n), ("json", b"[1]"), ("npy", npy.getvalue())):
                    member = tarfile.TarInfo(f"{folder}{n}.{ending}")
                    member.size = len(value)
                    archive.addfile(member, io.BytesIO(value))
    elif kind == "csv":
        rows = "".join(f'{n},{n / 2},"word ""{n}""\nmore"\n' for n in range(ROWS))
        content.write(f"n,x,name\n{rows}".encode())
    elif kind == "text":
        content.write("".join(f"line {n} é\n" for n in range(ROWS)).encode())
    else:
        rows = [{"n": [n], "x": [0.5 * n, 1.0], "b": [b"some", bytes([n])]} for n in range(ROWS)]
        content.write(tfrecords.records(rows))
    return content.getvalue()


# Each kind as often as it has forms.
KINDS = (
    *(("parquet", form) for form in ("none", "snappy", "zstd", "gzip")),
    *(("ipc", form) for form in ("none", "lz4", "zstd")),
    *(("table", form) for form in ("none", "none", "lz4")),
    *(("tar", form) for form in ("ustar", "gnu", "pax")),
    *(("csv", form) for form in ("all", "pieces")),
    ("text", "pieces"),
    ("tfrecord", "pieces"),
)
_ENDINGS = {"ipc": "arrow"}


def case(random: random_module.Random) -> tuple[str, str, bytes]:
    kind, form = random.choice(KINDS)
    if kind in _NEEDS_ARROW and not HAS_ARROW:
        return kind, form, b""
    content = sound(kind, form)
    if kind in ("parquet", "ipc") and random.random() < 0.5:
        # The tables at the end say where everything is.
        at = len(content) - min(len(content), random.choice((600, 1500, 4000)))
        return kind, form, content[:at] + damage(random, content[at:])
    return kind, form, damage(random, content)


def opened(kind: str, form: str, path: str) -> Any:
    partial = ds.Shuffle.PARTIAL if form == "pieces" else False
    if kind == "table":
        import pyarrow as pa

        with pa.memory_map(path) as file, pa.ipc.open_stream(file) as stream:
            return ds.HuggingFaceDataset(stream.read_all(), shuffle=False)
    if kind in ("parquet", "ipc"):
        return ds.ArrowDataset(path, shuffle=False, null={"half": 0.5} if len(path) % 2 else None)
    if kind == "tar":
        return ds.WebDataset(path, shuffle=False)
    if kind == "csv":
        return ds.CSVDataset(path, column_defaults=[0, 0.0, ""], shuffle=partial)
    if kind == "text":
        return ds.TextFileDataset(path, shuffle=partial)
    return ds.TFRecordDataset(path, shuffle=partial)


def run(case: tuple[str, str, bytes]) -> None:
    kind, form, content = case
    if kind in _NEEDS_ARROW and not HAS_ARROW:
        return
    path = f"a.{_ENDINGS.get(kind, kind)}"
    Path(path).write_bytes(content)
    count = 0
    try:
        data = opened(kind, form, path)
    except Exception as error:
        if kind == "table" and "mycel" not in str(error.__traceback__ and _innermost(error)):
            # What pyarrow does not read is no table.
            return
        raise
    for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        assert sum(np.asarray(value).nbytes for value in row) < 1 << 26
        count += 1
        if count > 100_000:
            raise AssertionError("more rows than the file has bytes")


def _innermost(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else trace.tb_frame.f_code.co_filename


def describe(case: tuple[str, str, bytes]) -> str:
    return f"{case[0]} {case[1]}, {len(case[2])} bytes: {case[2][:300]!r}"


def judge(error: BaseException, case: tuple[str, str, bytes]) -> str:
    return clear(error, (f"a.{_ENDINGS.get(case[0], case[0])}", "Dataset: "))
