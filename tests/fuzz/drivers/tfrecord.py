"""TFRecord files, plain and compressed: damaged bytes, damaged messages within records whose
checksums are right, lengths that are not there, and bombs.
"""

from __future__ import annotations

import functools
import gzip
import json
import random as random_module
import struct
import zlib
from pathlib import Path

import mycel.dataset as ds
from tests import tfrecords
from tests.fuzz.drivers._damage import clear, damage

CORPUS = 80
NAME, SCHEMA = "a.tfrecord", "schema.json"
_ROWS = [{"x": [n, -n, 7], "f": [0.5 * n, 1.0], "b": [b"some bytes", bytes([n])], "t": [b"text"]} for n in range(4)]
_SCHEMA = {
    "numRows": 4,
    "columns": [
        {"name": "x", "type": "int64", "rank": 1, "shape": [3]},
        {"name": "f", "type": "float32"},
        {"name": "b", "type": "uint8"},
        {"name": "t", "type": "string"},
    ],
}


def record(content: bytes, size: int | None = None) -> bytes:
    head = struct.pack("<Q", len(content) if size is None else size)
    return (
        head
        + struct.pack("<I", tfrecords.checksum(head))
        + content
        + struct.pack("<I", tfrecords.checksum(content[:64]))
    )


@functools.cache
def sound() -> bytes:
    return tfrecords.records(_ROWS)


@functools.cache
def bomb(kind: str) -> bytes:
    """A record of 320 MiB of zeros, in some MiB or less."""
    machine = zlib.compressobj(1, wbits=31 if kind == "GZIP" else 15)
    head = struct.pack("<Q", 320 << 20)
    parts = [machine.compress(head + struct.pack("<I", tfrecords.checksum(head)))]
    parts += [machine.compress(bytes(1 << 20)) for _ in range(320)]
    return b"".join(parts) + machine.flush()


def case(random: random_module.Random) -> tuple[str, bytes, bytes | None]:
    kind = random.choice(("", "", "GZIP", "ZLIB"))
    schema = json.dumps(_SCHEMA).encode() if random.random() < 0.6 else None
    if kind and random.random() < 0.001:
        return kind, b"bomb", schema
    way = random.choice(("message", "message", "file", "length", "packed", "schema"))
    content = sound()
    if way == "message":
        parts = [record(damage(random, tfrecords.example(row), 3)) for row in _ROWS]
        content = b"".join(parts)
    elif way == "file":
        content = damage(random, content)
    elif way == "length":
        size = random.choice((0, 1, 2**20, 2**31, 2**40, 2**62, 2**63, 2**64 - 16, 2**64 - 1))
        content += record(b"abc", size)
    elif way == "schema":
        schema = damage(random, json.dumps(_SCHEMA).encode())
    packed = {"": lambda c: c, "GZIP": lambda c: gzip.compress(c, mtime=0), "ZLIB": zlib.compress}[kind](content)
    if way == "packed" or random.random() < 0.1:
        packed = damage(random, packed)
    return kind, packed, schema


def run(case: tuple[str, bytes, bytes | None]) -> None:
    kind, content, schema = case
    Path(NAME).write_bytes(bomb(kind) if content == b"bomb" else content)
    if schema is not None:
        Path(SCHEMA).write_bytes(schema)
    data = ds.TFRecordDataset(NAME, None if schema is None else SCHEMA, shuffle=False, compression_type=kind or None)
    for row in data.create_dict_iterator(num_epochs=1, output_numpy=True):
        assert sum(value.nbytes for value in row.values()) < 1 << 26


def judge(error: BaseException, case: tuple[str, bytes, bytes | None]) -> str:
    return clear(error, (NAME, SCHEMA, "TFRecordDataset", "Schema", "add_column", "parse_columns", "from_json"))
