"""The index of a record file: an SQLite database beside it, with `.db` added to its name.

The table INDEXES has a row for every row of the file: its place (`Place`) and, for each index
field, a count that is always 0 and the field's value, in the column named after the field with `_0`
added. The table SHARD_NAME holds the file's name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from mycel.mindrecord.errors import DbConnectionError
from mycel.mindrecord.file_layout import Place
from mycel.mindrecord.row_encoding import Field

if TYPE_CHECKING:
    import sqlite3

_PLACES = (
    "ROW_ID",
    "PAGE_ID_RAW",
    "PAGE_OFFSET_RAW",
    "PAGE_OFFSET_RAW_END",
    "ROW_GROUP_ID",
    "PAGE_ID_BLOB",
    "PAGE_OFFSET_BLOB",
    "PAGE_OFFSET_BLOB_END",
)
# A million instructions are granted to the smallest file.
_LEAST_STEPS = 1000
# Limits of SQLite, by its numbers for them.
_LENGTH, _ATTACHED = 0, 7
_TYPES = {"string": "TEXT", "int32": "INTEGER", "int64": "INTEGER", "float32": "REAL", "float64": "REAL"}


def _column(field: str) -> str:
    """Return the column of an index field in SQL, quoted, as its name may begin with a digit."""
    return f'"{field}_0"' if field[0].isdigit() else f"{field}_0"


def same_columns(fields: Sequence[str]) -> list[str]:
    """Return the fields whose column another field or the index itself has.

    To SQLite, "a" and "A" are one name.
    """
    known = [*_PLACES, *(f"INC_{number}" for number in range(len(fields)))]
    names = [name.lower() for name in (*known, *(f"{field}_0" for field in fields))]
    return [field for field in fields if names.count(f"{field}_0".lower()) > 1]


def write_index(
    path: str,
    name: str,
    fields: Sequence[str],
    schema: Mapping[str, Field],
    rows: Iterable[tuple[Place, Mapping[str, Any]]],
) -> None:
    """Write the index of the file called `name`.

    * `path`: the index file.
    * `fields`: the index fields.
    * `schema`: the schema of the rows.
    * `rows`: the place and the plain fields of each row.
    """
    import sqlite3

    columns = [f" {column:<20} INT  NOT NULL" for column in _PLACES]
    definition = "CREATE TABLE INDEXES( " + ",".join(columns)
    for number, field in enumerate(fields):
        definition += f",INC_{number} INT, {_column(field)} {_TYPES[schema[field]['type']]}"
    keys = ",".join(["ROW_ID", *(f"INC_{number}" for number in range(len(fields)))])
    with closing(sqlite3.connect(path)) as database, database:
        # The file gets its name when it is whole, so it needs no journal, which a killed process
        # would leave behind.
        database.execute("PRAGMA journal_mode = OFF")
        database.execute(f"{definition}, PRIMARY KEY({keys}))")
        database.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
        database.execute("INSERT INTO SHARD_NAME (NAME) VALUES (?)", (name,))
        marks = ",".join("?" * (len(_PLACES) + 2 * len(fields)))
        database.executemany(f"INSERT INTO INDEXES VALUES ({marks})", _entries(fields, rows))


def _entries(fields: Sequence[str], rows: Iterable[tuple[Place, Mapping[str, Any]]]) -> Iterator[list[Any]]:
    for number, (place, plain) in enumerate(rows):
        entry = [number, place.raw_page, *place.raw, place.group, place.blob_page, *place.blob]
        for field in fields:
            entry += [0, plain[field]]
        yield entry


@contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    import sqlite3

    if not os.path.isfile(path):
        raise DbConnectionError(
            f"there is no index file {path!r}; it belongs to the record file and must lie beside it"
        )
    try:
        with closing(sqlite3.connect(f"file:{_quoted(path)}?mode=ro&immutable=1", uri=True)) as database:
            _restrict(database, os.path.getsize(path))
            kinds = dict(
                database.execute("SELECT name, type FROM sqlite_master WHERE name IN ('INDEXES', 'SHARD_NAME')")
            )
            if kinds != {"INDEXES": "table", "SHARD_NAME": "table"}:
                raise DbConnectionError(
                    f"the index file {path!r} is no index: it has not the two tables INDEXES and SHARD_NAME, but "
                    f"{kinds}"
                )
            yield database
    except (sqlite3.Error, ValueError, OverflowError) as error:
        raise DbConnectionError(f"the index file {path!r} cannot be read: {error}") from error


def _restrict(database: sqlite3.Connection, size: int) -> None:
    """Keep a database's schema from running anything, and limit the work of a statement.

    The limit is what reading all of a file of this size could take.
    """
    for setting in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0", "query_only=ON"):
        database.execute(f"PRAGMA {setting}")
    if hasattr(database, "setlimit"):  # since Python 3.11
        database.setlimit(_LENGTH, max(1 << 16, min(size, 1 << 28)))
        database.setlimit(_ATTACHED, 0)
    left = iter(range(_LEAST_STEPS + size // 100))
    # Called every 1000 instructions; a row has more than ten bytes and takes some tens of them.
    database.set_progress_handler(lambda: 0 if next(left, None) is not None else 1, 1000)


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(os.path.abspath(path))


def read_places(path: str, name: str) -> list[tuple[int, ...]]:
    """Return (raw page, start, end, blob page, start, end) of every row, in order.

    Raises DbConnectionError where the index is another file's or damaged.
    """
    with _opened(path) as database:
        owner = database.execute("SELECT NAME FROM SHARD_NAME").fetchone()
        if owner is None or owner[0] != name:
            raise DbConnectionError(
                f"the index file {path!r} belongs to {owner[0] if owner else None!r}, not to {name!r}; record files "
                "must keep their names"
            )
        wanted = [column for column in _PLACES if column not in ("ROW_ID", "ROW_GROUP_ID")]
        odd = " OR ".join(f"typeof({column}) <> 'integer'" for column in ("ROW_ID", *wanted))
        (count,) = database.execute(f"SELECT COUNT(*) FROM INDEXES WHERE {odd}").fetchone()
        if count:
            raise DbConnectionError(
                f"the index file {path!r} is damaged: {count} rows have places that are no integers"
            )
        return database.execute(f"SELECT {','.join(wanted)} FROM INDEXES ORDER BY ROW_ID").fetchall()


def read_categories(path: str, field: str, count: int) -> dict[str, list[int]]:
    """Return the row numbers, below `count`, for every value of an index field, as text."""
    found: dict[str, list[int]] = {}
    with _opened(path) as database:
        for value, row in database.execute(
            f"SELECT CAST({_column(field)} AS TEXT), ROW_ID FROM INDEXES ORDER BY ROW_ID"
        ):
            if not 0 <= row < count:
                raise DbConnectionError(f"the index file {path!r} is damaged: it has a row {row!r} of {count}")
            found.setdefault("" if value is None else value, []).append(row)
    return found
