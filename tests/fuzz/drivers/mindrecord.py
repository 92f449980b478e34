"""Record files and their indexes: damaged bytes, headers with other numbers, and databases that
were made to mislead.
"""

from __future__ import annotations

import functools
import os
import random as random_module
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import mycel.dataset as ds
from mycel.mindrecord import FileReader, FileWriter, MindPage
from tests.fuzz.drivers._damage import clear, damage

CORPUS = 60
NAME = "a.mindrecord"
_STATEMENTS = (
    "DROP TABLE INDEXES",
    "DROP TABLE SHARD_NAME",
    "DELETE FROM INDEXES",
    "DELETE FROM SHARD_NAME",
    "UPDATE SHARD_NAME SET NAME = 7",
    "UPDATE SHARD_NAME SET NAME = x'ff00'",
    "UPDATE INDEXES SET {column} = {value} WHERE ROW_ID = {row}",
    "UPDATE INDEXES SET {column} = {value}",
    "ALTER TABLE INDEXES RENAME COLUMN {column} TO other",
    "INSERT INTO INDEXES SELECT ROW_ID + 100, PAGE_ID_RAW, PAGE_OFFSET_RAW, PAGE_OFFSET_RAW_END, ROW_GROUP_ID, "
    "PAGE_ID_BLOB, PAGE_OFFSET_BLOB, PAGE_OFFSET_BLOB_END, 0, label_0 FROM INDEXES",
    "DROP TABLE INDEXES; CREATE VIEW INDEXES AS WITH RECURSIVE n(ROW_ID) AS (SELECT 0 UNION ALL SELECT ROW_ID + 1 FROM "
    "n) SELECT ROW_ID, 1 AS PAGE_ID_RAW, 0 AS PAGE_OFFSET_RAW, "
    "8 AS PAGE_OFFSET_RAW_END, 0 AS ROW_GROUP_ID, 0 AS PAGE_ID_BLOB, 0 AS PAGE_OFFSET_BLOB, 8 AS PAGE_OFFSET_BLOB_END "
    "FROM n",
    "DROP TABLE SHARD_NAME; CREATE VIEW SHARD_NAME AS WITH RECURSIVE n(NAME) AS (SELECT 'a' UNION ALL SELECT NAME FROM "
    "n) SELECT NAME FROM n",
    "DROP TABLE SHARD_NAME; CREATE TABLE SHARD_NAME(x, NAME AS (hex(zeroblob(9000000)))); INSERT INTO SHARD_NAME(x) "
    "VALUES (1)",
    "CREATE TRIGGER t AFTER INSERT ON INDEXES BEGIN DELETE FROM INDEXES; END",
    "PRAGMA journal_mode = WAL",
    "CREATE TABLE big(x); INSERT INTO big VALUES (zeroblob(200000))",
)
_VALUES = (
    "-1",
    "0",
    "1",
    "7",
    "1.5",
    "'x'",
    "NULL",
    "x'00'",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967296",
    "32768",
)
_COLUMNS = (
    "ROW_ID",
    "PAGE_ID_RAW",
    "PAGE_OFFSET_RAW",
    "PAGE_OFFSET_RAW_END",
    "ROW_GROUP_ID",
    "PAGE_ID_BLOB",
    "PAGE_OFFSET_BLOB",
    "PAGE_OFFSET_BLOB_END",
    "label_0",
)


@functools.cache
def sound() -> tuple[bytes, bytes]:
    """A small record file and its index."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, NAME)
        writer = FileWriter(path)
        writer.set_header_size(1 << 14)
        writer.set_page_size(1 << 15)
        writer.add_schema(
            {
                "label": {"type": "int32"},
                "text": {"type": "string"},
                "weight": {"type": "float64"},
                "data": {"type": "bytes"},
                "ids": {"type": "int64", "shape": [-1, 2]},
                "x": {"type": "float32", "shape": [3]},
            }
        )
        writer.add_index(["label"])
        rows = [
            {
                "label": n,
                "text": "row" * n,
                "weight": n / 3,
                "data": bytes(range(n)),
                "ids": np.arange(2 * n).reshape(n, 2) * 1000,
                "x": np.arange(3, dtype=np.float32) + n,
            }
            for n in range(6)
        ]
        writer.write_raw_data(rows)
        writer.commit()
        return Path(path).read_bytes(), Path(path + ".db").read_bytes()


def case(random: random_module.Random) -> tuple[str, Any, Any]:
    content, index = sound()
    kind = random.choice(("header", "header", "file", "index", "index", "both", "sql"))
    if kind == "sql":
        statement = random.choice(_STATEMENTS).format(
            column=random.choice(_COLUMNS), value=random.choice(_VALUES), row=random.randrange(6)
        )
        return kind, None, statement
    if kind in ("header", "both"):
        length = int.from_bytes(content[:8], "little")
        text = damage(random, content[8 : 8 + length])
        if len(text) < 1 << 14:
            content = len(text).to_bytes(8, "little") + text.ljust((1 << 14) - 8, b"\0") + content[1 << 14 :]
    elif kind == "file":
        pages = content[1 << 14 :]
        at = random.choice((0, 0, 1 << 15))
        # What the pages hold is at their beginnings.
        content = content[: 1 << 14] + pages[:at] + damage(random, pages[at : at + 600]) + pages[at + 600 :]
    if kind in ("index", "both"):
        index = damage(random, index, 8)
    return kind, content, index


def setup() -> None:
    sound()


def run(case: tuple[str, Any, Any]) -> None:
    kind, content, index = case
    for name in (NAME, NAME + ".db"):
        Path(name).unlink(missing_ok=True)
    if kind == "sql":
        content, statements = sound()[0], index
        Path(NAME + ".db").write_bytes(sound()[1])
        with closing(sqlite3.connect(NAME + ".db")) as database, database:
            database.execute("PRAGMA synchronous = OFF")
            try:
                database.executescript(statements)
            except sqlite3.Error:
                pass
        for rest in Path(".").glob(NAME + ".db-*"):
            shutil.move(rest, "rest")
    else:
        Path(NAME + ".db").write_bytes(index)
    Path(NAME).write_bytes(content)
    errors = []
    for read in (_reader, _pages, _rows):
        try:
            read()
        except Exception as error:
            errors.append(error)
    for error in errors:
        if clear(error, (NAME,)):
            raise error
    if errors:
        raise errors[0]


def _reader() -> None:
    reader = FileReader(NAME)
    try:
        for row in reader.get_next():
            assert isinstance(row, dict)
    finally:
        reader.close()


def _pages() -> None:
    pages = MindPage(NAME)
    if "label" in pages.candidate_fields:
        pages.category_field = "label"
        pages.read_category_info()
        pages.read_at_page_by_name("1", 0, 1)


def _rows() -> None:
    data = ds.MindDataset(NAME, shuffle=False)
    for _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        pass


def describe(case: tuple[str, Any, Any]) -> str:
    kind, content, index = case
    return f"{kind}: {index if kind == 'sql' else content[8:700]!r}"


def judge(error: BaseException, case: tuple[str, Any, Any]) -> str:
    from mycel.mindrecord.errors import MRMFetchDataError

    return "" if isinstance(error, MRMFetchDataError) else clear(error, (NAME,))
