"""Rows that were written by MindSpore 2.10 too: values/mindspore_files.zip has the files that
`write_cases(mindspore.mindrecord, folder)` made there.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

Case = tuple[dict[str, Any], Any, list[list[dict[str, Any]]], int]


def _mixed(number: int) -> dict[str, Any]:
    return {
        "name": f"n{number}",
        "id": number * 3 - 2,
        "vec": np.arange(number + 1, dtype=np.float32) * 0.5,
        "mat": np.arange(4).reshape(2, 2) + number,
        "img": bytes([number] * (5 + number)),
        "l": number * 10**12,
        "f": number / 3,
        "g": number / 7,
    }


def _long(number: int, blob: int, text: int) -> dict[str, Any]:
    return {"x": number, "d": bytes([number]) * blob, "s": "abcde" * text}


def _integers(*lists: list[int]) -> dict[str, Any]:
    return {name: np.array(values, kind) for name, values, kind in zip("abc", lists, ("int64", "int32", "int64"))}


_LONG = {"x": {"type": "int32"}, "d": {"type": "bytes"}, "s": {"type": "string"}}
_MIXED = {
    "name": {"type": "string"},
    "id": {"type": "int32"},
    "vec": {"type": "float32", "shape": [-1]},
    "mat": {"type": "int64", "shape": [2, 2]},
    "img": {"type": "bytes"},
    "l": {"type": "int64"},
    "f": {"type": "float64"},
    "g": {"type": "float32"},
}
_ROWS = [_mixed(n) for n in range(6)]

CASES: dict[str, Case] = {
    "mixed": (_MIXED, ["id", "name", "g"], [_ROWS[:4], _ROWS[4:]], 1),
    "integers": (
        {
            "a": {"type": "int64", "shape": [-1]},
            "b": {"type": "int32", "shape": [-1]},
            "c": {"type": "int64", "shape": [-1]},
        },
        None,
        [
            [_integers([1, 2, -3], [1000, -7], []), _integers([1, 128], [40000, -7], [-128, 127])],
            [_integers([2**40], [-(2**15), 2**15 - 1], [-129]), _integers([2**31], [-32769], [-(2**31), 32768])],
            [_integers([1, 1000, 100000, 2**40, -1, -1000], [0], [2**63 - 1, -(2**63)])],
        ],
        1,
    ),
    "lone": (
        {"a": {"type": "int64", "shape": [-1]}, "x": {"type": "int32"}},
        None,
        [[{"a": np.array([1, 2, 3]), "x": 5}]],
        1,
    ),
    "plain": (
        {"z": {"type": "string"}, "x": {"type": "int32"}, "f": {"type": "float32"}},
        None,
        [[{"z": "\u00e9\u4e2d'q", "x": 5, "f": 0.1}, {"z": "", "x": -5, "f": 1e30}, {"z": "b", "x": 7, "f": -2.0}]],
        1,
    ),
    "shards": (
        {"z": {"type": "string"}, "x": {"type": "int32"}, "d": {"type": "bytes"}},
        ["x"],
        [[{"z": f"{n}", "x": n, "d": b"ab" * (n + 1)} for n in range(12)]],
        3,
    ),
    "blob_pages": (_LONG, None, [[_long(n, 9000, 9) for n in range(12)]], 1),
    "raw_pages": (_LONG, ["x"], [[_long(n, 30, 1800) for n in range(count)] for count in (7, 2, 5, 1, 1, 9)], 1),
    "moved_group": (
        _LONG,
        ["x"],
        [[_long(n, 9000, 900) for n in range(5)], *([_long(n, 30, 900)] for n in range(9))],
        1,
    ),
    "wide": (
        {**{f"f{n}": {"type": "int32"} for n in range(20)}, "s": {"type": "string"}},
        ["f3"],
        [[{**{f"f{n}": 2**n for n in range(20)}, "s": "q" * size} for size in (0, 31, 32, 255, 256, 21845)]],
        1,
    ),
}


def write_case(records: Any, path: str, case: Case) -> Any:
    """Write one case with a module that has FileWriter."""
    schema, index, batches, shards = case
    writer = records.FileWriter(path, shards)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema({name: dict(field) for name, field in schema.items()}, "what it is")
    if index:
        writer.add_index(index)
    for batch in batches:
        writer.write_raw_data([dict(row) for row in batch])
    writer.commit()


def write_cases(records: Any, folder: str) -> None:
    """Write all cases, a file that was appended to, and one without rows."""
    for name, case in CASES.items():
        write_case(records, os.path.join(folder, name), case)
    path = os.path.join(folder, "appended")
    write_case(
        records,
        path,
        (
            {"x": {"type": "int32"}, "d": {"type": "bytes"}},
            ["x"],
            [[{"x": n, "d": bytes([n]) * 30} for n in range(3)]],
            1,
        ),
    )
    writer = records.FileWriter.open_for_append(path)
    writer.write_raw_data([{"x": 9, "d": b"zz"}, {"x": -70000, "d": b"z"}])
    writer.commit()
    writer = records.FileWriter(os.path.join(folder, "empty"))
    writer.add_schema({"x": {"type": "int32"}})
    writer.commit()
