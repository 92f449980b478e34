"""Files that were made to mislead: indexes with a schema of their own, headers and rows that lie,
compressed files that stand for far more.
"""

from __future__ import annotations

import gzip
import sqlite3
import struct
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from mycel._src.foundation.files import decompression as inflate
from mycel._src.foundation.files.decompression import Inflated
from mycel._src.foundation.files.idx_format import read_idx
from mycel.mindrecord import FileReader, FileWriter, MindPage
from mycel.mindrecord.errors import DbConnectionError, MRMOpenError
from mycel.mindrecord.packed_integers import pack_integers, unpack_arrays, unpack_integers
from mycel.mindrecord.row_encoding import unpack_map
from mycel.mindrecord.tfrecord import read_records
from tests import tfrecords

RECURSIVE = (
    "DROP TABLE INDEXES; CREATE VIEW INDEXES AS WITH RECURSIVE n(ROW_ID) AS (SELECT 0 UNION ALL SELECT ROW_ID + 1 "
    "FROM n) SELECT ROW_ID, 1 AS PAGE_ID_RAW, 0 AS PAGE_OFFSET_RAW, "
    "8 AS PAGE_OFFSET_RAW_END, 0 AS PAGE_ID_BLOB, 0 AS PAGE_OFFSET_BLOB, 8 AS PAGE_OFFSET_BLOB_END FROM n"
)


@pytest.fixture
def record(tmp_path):
    path = str(tmp_path / "a.mindrecord")
    writer = FileWriter(path)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema({"label": {"type": "int32"}, "x": {"type": "int64", "shape": [-1]}})
    writer.write_raw_data([{"label": n, "x": np.arange(n)} for n in range(4)])
    writer.commit()
    return path


def read(path):
    reader = FileReader(path)
    try:
        return [row["label"] for row in reader.get_next()]
    finally:
        reader.close()


@pytest.mark.parametrize(
    "statement, message",
    [
        ("DROP TABLE INDEXES", "has not the two tables"),
        (RECURSIVE, "has not the two tables"),
        ("DROP TABLE SHARD_NAME; CREATE VIEW SHARD_NAME AS SELECT 'a.mindrecord' AS NAME", "has not the two tables"),
        ("DELETE FROM SHARD_NAME", "belongs to None"),
        ("UPDATE INDEXES SET PAGE_ID_RAW = 'x'", "4 rows have places that are no integers"),
        (
            "UPDATE INDEXES SET PAGE_OFFSET_BLOB = NULL WHERE 0; UPDATE INDEXES SET PAGE_OFFSET_BLOB = 1.5 WHERE "
            "ROW_ID = 2",
            "1 rows have places",
        ),
        ("ALTER TABLE INDEXES RENAME COLUMN PAGE_ID_RAW TO other", "no such column"),
        (
            "DROP TABLE SHARD_NAME; CREATE TABLE SHARD_NAME(x, NAME AS (hex(zeroblob(3000000)))); INSERT INTO "
            "SHARD_NAME(x) VALUES (1)",
            "too big",
        ),
    ],
)
def test_indexes_run_nothing_and_are_believed_nothing(record, statement, message):
    with closing(sqlite3.connect(record + ".db")) as database, database:
        database.executescript(statement)
    with pytest.raises(DbConnectionError, match=message):
        read(record)


def test_places_beyond_the_file_and_rows_beyond_the_index(record):
    with closing(sqlite3.connect(record + ".db")) as database, database:
        database.execute("UPDATE INDEXES SET PAGE_ID_RAW = 9223372036854775807 WHERE ROW_ID = 3")
    with pytest.raises(MRMOpenError, match="cut off or damaged"):
        read(record)
    with closing(sqlite3.connect(record + ".db")) as database, database:
        database.execute("UPDATE INDEXES SET ROW_ID = 77 WHERE ROW_ID = 3")
    pages = MindPage(record)
    with pytest.raises(DbConnectionError, match="has a row 77 of 4"):
        pages.category_field = "label"
    assert Path(record + ".db").is_file()
    Path(record + ".db").write_bytes(Path(record + ".db").read_bytes()[:1000])
    with pytest.raises(DbConnectionError, match="cannot be read"):
        read(record)


def test_reading_an_index_ends(record, monkeypatch):
    # As if the file were so small that it could not hold what is read from it.
    monkeypatch.setattr("mycel.mindrecord.sqlite_index._LEAST_STEPS", 0)
    monkeypatch.setattr("os.path.getsize", lambda path: 100)
    with closing(sqlite3.connect(record + ".db")) as database, database:
        database.executemany(
            "INSERT INTO INDEXES VALUES (?, 1, 0, 8, 0, 0, 0, 8, 0, 0)", [(n,) for n in range(10, 3000)]
        )
    from mycel.mindrecord.sqlite_index import read_places

    with pytest.raises(DbConnectionError, match="interrupted"):
        read_places(record + ".db", "a.mindrecord")


def test_names_of_index_fields_may_begin_with_a_digit(tmp_path):
    path = str(tmp_path / "a.mindrecord")
    writer = FileWriter(path)
    writer.add_schema({"16es": {"type": "string"}, "select": {"type": "int32"}})
    writer.add_index(["16es", "select"])
    writer.write_raw_data([{"16es": "ab"[n % 2], "select": n} for n in range(3)])
    writer.commit()
    pages = MindPage(path)
    for field, name, rows in (("16es", "a", [0, 2]), ("select", "1", [1])):
        pages.category_field = field
        assert [row["select"] for row in pages.read_at_page_by_name(name, 0, 9)] == rows


@pytest.mark.parametrize(
    "before, after",
    [
        (b'"type":"int32"', b'"type":"int99"'),
        (b'"type":"int32"', b'"type":["int32"]'),
        (b'"shape":[-1]', b'"shape":["x"]'),
        (b'"shape":[-1]', b'"shape":[1e999]'),
        (b'"blob_fields":["x"]', b'"blob_fields":["label"]'),
        (b'"blob_fields":["x"]', b'"blob_fields":[]'),
        (b'"page_size":32768', b'"page_size":-32768'),
        (b'"header_size":16384', b'"header_size":1e999'),
        (b'"schema":[{', b'"schema":[[{'),
        (b'"version"', b'"versio"'),
        (b'{"header_size"', b"[" * 9000),
    ],
)
def test_headers_that_lie(record, before, after):
    content = Path(record).read_bytes()
    text = content[8:].partition(b"\0")[0]
    assert before in text
    text = text.replace(before, after, 1)
    Path(record).write_bytes((len(text).to_bytes(8, "little") + text).ljust(1 << 14, b"\0") + content[1 << 14 :])
    with pytest.raises(MRMOpenError, match=r"a\.mindrecord.*its header is damaged"):
        read(record)


def test_rows_are_of_their_types(record):
    content = Path(record).read_bytes()
    # The map of the last row, {"label": 3}: text in place of the number, another name, a map within
    # the map.
    packed = b"\x81\xa5label\x03"
    assert content.count(packed) == 1
    for other, message in (
        (b"\x81\xa5label\xa0", "field 'label' is int32, but has the value ''"),
        (b"\x81\xa5lebel\x03", "has no field 'label'"),
        (b"\x81\x85label\x03", "damaged"),
    ):
        Path(record).write_bytes(content.replace(packed, other))
        with pytest.raises(MRMOpenError, match=f"row 3 of .*{message}"):
            read(record)
    for content in (b"\x81" * 5000, b"\xdf\xff\xff\xff\xff\x01\x01", b"\x81\xa1x\x81\xa1y\x01"):
        with pytest.raises(ValueError, match="row"):
            unpack_map(content)


def test_integers_in_pieces():
    for count in (1, 3, 100, 1 << 18, (1 << 18) + 1, (1 << 19) + 5):
        values = np.random.default_rng(count).integers(-(2**40), 2**40, count) >> np.arange(count) % 40
        packed = pack_integers(values)
        assert np.array_equal(unpack_integers(packed, "int64"), values)
        for wrong in (packed[:-1], packed + b"\0", struct.pack(">I", 2**32 - 1) + packed[4:]):
            with pytest.raises(ValueError, match="an array"):
                unpack_integers(wrong, "int64")
            assert unpack_arrays([packed, wrong, packed], count, "int64") is None
        several = unpack_arrays([packed, pack_integers(-values)], count, "int64")
        assert several is not None and np.array_equal(several, [values, -values])
        assert unpack_arrays([packed, pack_integers(values[1:])], count, "int64") is None


# Compressed files.


@pytest.mark.parametrize("form, pack", [("GZIP", gzip.compress), ("ZLIB", zlib.compress)])
def test_inflated_gives_what_was_packed_and_nothing_else(tmp_path, form, pack):
    content = np.random.default_rng(1).integers(0, 4, 300_000).astype(np.uint8).tobytes()
    packed = pack(content)
    path = tmp_path / "a"
    path.write_bytes(packed)
    with Inflated(path, form) as found:
        parts = [found.read(size) for size in (1, 0, 12, 1 << 16, 1 << 22, 5)]
    assert b"".join(parts) == content and len(parts[2]) == 12 and parts[-1] == b""
    for wrong, message in (
        (packed[:-1], "cut off"),
        (packed[: len(packed) // 2], "cut off"),
        (packed[:-3] + b"abc", "incorrect|cut off"),
        (packed + b"abc", "behind its end|incorrect header|cut off"),
        (b"abc" + packed, "incorrect|unknown"),
        (b"", "cut off"),
    ):
        path.write_bytes(wrong)
        with (
            pytest.raises(ValueError, match=f"cannot be decompressed as {form}: .*({message})"),
            Inflated(path, form) as found,
        ):
            while found.read(1 << 20):
                pass
    if form == "GZIP":
        path.write_bytes(packed + bytes(100) + packed)
        with Inflated(path, form) as found:
            assert found.read(1 << 24) == content * 2


def test_limits_of_what_a_file_may_become(tmp_path, monkeypatch):
    assert inflate.limit(0) == 256 << 20 and inflate.limit(1 << 30) == 32 << 30
    monkeypatch.setenv("MYCEL_INFLATE", "0.5GB")
    assert inflate.limit(1 << 30) == 1 << 29
    monkeypatch.setenv("MYCEL_INFLATE", "much")
    with pytest.raises(ValueError, match="MYCEL_INFLATE: a size of memory"):
        inflate.limit(1)
    monkeypatch.setenv("MYCEL_INFLATE", "0.001GB")
    head = struct.pack("<Q", 1 << 24)
    record = head + struct.pack("<I", tfrecords.checksum(head)) + bytes((1 << 24) + 4)
    for form, pack in (("GZIP", gzip.compress), ("ZLIB", zlib.compress)):
        path = tmp_path / form
        path.write_bytes(pack(record))
        with pytest.raises(ValueError, match=f"{form}' becomes more than 1 MiB .* MYCEL_INFLATE"):
            list(read_records(str(path), form))
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(struct.pack(">HBBI", 0, 8, 1, 1 << 24) + bytes(1 << 24)))
    with pytest.raises(ValueError, match="becomes more than 1 MiB"):
        read_idx(path)
    monkeypatch.delenv("MYCEL_INFLATE")
    assert len(read_idx(path)) == 1 << 24


def test_a_record_takes_no_more_than_is_there(tmp_path):
    path = tmp_path / "a"
    for size in (2**40, 2**62, 2**63, 2**64 - 1):
        head = struct.pack("<Q", size)
        path.write_bytes(zlib.compress(head + struct.pack("<I", tfrecords.checksum(head)) + b"abc"))
        with pytest.raises(ValueError, match="ends within record 0"):
            list(read_records(str(path), "ZLIB"))


# Writers that are killed.

KILLED = """
import os, sys, threading, time
import numpy as np
from mycel.mindrecord import FileWriter
path, pause = sys.argv[1], float(sys.argv[2])
writer = FileWriter(path, overwrite=True)
writer.add_schema({"n": {"type": "int32"}, "x": {"type": "float32", "shape": [-1]}})
print("ready", flush=True)
threading.Thread(target=lambda: (time.sleep(pause), os.kill(os.getpid(), 9)), daemon=True).start()
for start in range(0, 400, 20):
    writer.write_raw_data([{"n": n, "x": np.full(50, n, np.float32)} for n in range(start, start + 20)])
writer.commit()
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("pause", [0.02, 10.0])
def test_a_killed_writer_leaves_no_half_file_under_its_name(tmp_path, pause):
    path = tmp_path / "a.mindrecord"
    found = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(pause)], capture_output=True, text=True, timeout=60
    )
    assert found.returncode == -9 and found.stdout == "ready\n", found.stderr
    if path.exists() and Path(f"{path}.db").exists():
        reader = FileReader(str(path))
        assert [row["n"] for row in reader.get_next()] == list(range(400))
        reader.close()
    else:
        assert pause < 10
        with pytest.raises(RuntimeError, match="there is no file"):
            FileReader(str(path))
