"""Record files against those that MindSpore 2.10 wrote from the same rows: every byte of the files,
and every entry of their indexes.
"""

from __future__ import annotations

import os
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mycel import mindrecord
from mycel._src.foundation import log
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.python_runtime import finalization
from mycel.mindrecord import FileReader, FileWriter, MindPage, set_dec_mode, set_enc_key, set_enc_mode
from mycel.mindrecord.file_layout import Header
from mycel.mindrecord.packed_integers import pack_integers, unpack_integers
from mycel.mindrecord.row_encoding import pack_map, unpack_map
from tests.mindrecord.cases import CASES, write_cases

CHECKED = dict.fromkeys(("FileReader", "FileWriter", "MindPage"), "MindSpore 2.10") | dict.fromkeys(
    ("set_dec_mode", "set_enc_key", "set_enc_mode"), "a cipher written here"
)
SMALL = {"x": {"type": "int32"}, "d": {"type": "bytes"}}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mindspore")
    with zipfile.ZipFile(Path(__file__).parent / "values" / "mindspore_files.zip") as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mycel")
    write_cases(mindrecord, os.fspath(folder))
    return folder


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


def rows_of(path: Any, **options: Any) -> list[dict[str, Any]]:
    reader = FileReader(path if isinstance(path, list) else os.fspath(path), **options)
    rows = list(reader.get_next())
    assert reader.len() == len(rows)
    reader.close()
    return rows


def same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    return type(left) is type(right) and left == right


def write(path: Path, rows: list[dict[str, Any]], schema: Any = None, **options: Any) -> str:
    writer = FileWriter(os.fspath(path), **options)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema(schema or SMALL)
    writer.write_raw_data(rows)
    writer.commit()
    return os.fspath(path)


def test_files_are_those_of_mindspore(ours: Path, theirs: Path) -> None:
    names = sorted(os.listdir(theirs))
    assert names == sorted(os.listdir(ours)) and len(names) > 20
    for name in names:
        if name.endswith(".db"):
            assert dump(ours / name) == dump(theirs / name), name
        else:
            assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
        assert (ours / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", CASES)
def test_files_of_mindspore_are_read(name: str, theirs: Path) -> None:
    schema, index, batches, shards = CASES[name]
    rows = rows_of(theirs / (name if shards == 1 else f"{name}1"))
    expected = [row for batch in batches for row in batch]
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected):
        assert set(row) == set(wanted)
        assert all(same(row[key], wanted[key]) for key in row)
        plain = sorted(key for key in schema if schema[key]["type"] != "bytes" and "shape" not in schema[key])
        assert list(row) == plain + sorted(set(schema) - set(plain))
    header = Header.read(os.fspath(theirs / (name if shards == 1 else f"{name}0")))
    assert header.schema == schema and header.description == "what it is"
    assert header.index_fields == (index or plain)


def test_a_file_without_rows(theirs: Path) -> None:
    assert rows_of(theirs / "empty") == []
    assert FileReader(os.fspath(theirs / "empty")).schema() == {"x": {"type": "int32"}}


def test_which_files_and_columns_are_read(theirs: Path) -> None:
    paths = [os.fspath(theirs / f"shards{n}") for n in (2, 0)]
    assert [row["x"] for row in rows_of(paths)] == [8, 9, 10, 11, 0, 1, 2, 3]
    assert [row["x"] for row in rows_of(paths[:1])] == [8, 9, 10, 11]
    assert rows_of(paths[:1], columns=["d", "x"])[0] == {"x": 8, "d": b"ab" * 9}
    assert list(rows_of(theirs / "mixed", columns=["vec", "img", "l"])[1]) == ["l", "vec", "img"]
    with pytest.raises(mindrecord.ParamValueError, match="there is no field 'q'; the fields are"):
        FileReader(paths[0], columns=["q"])
    with pytest.raises(mindrecord.ParamTypeError, match="'columns' expect list"):
        FileReader(paths[0], columns="x")


def test_pages_of_categories(theirs: Path) -> None:
    pages = MindPage(os.fspath(theirs / "shards0"))
    assert pages.candidate_fields == ["x"] and pages.category_field is None
    with pytest.raises(mindrecord.MRMReadCategoryInfoError, match="Set category_field first"):
        pages.read_category_info()
    pages.category_field = "x"
    names = ["0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9"]
    listed = ",".join(f'{{"count":1,"id":{n},"name":"{name}"}}' for n, name in enumerate(names))
    assert pages.read_category_info() == f'{{"categories":[{listed}],"key":"x_0"}}'
    assert pages.read_at_page_by_id(2, 0, 4) == [{"x": 10, "z": "10", "d": b"ab" * 11}]
    assert pages.read_at_page_by_name("5", 0, 1) == [{"x": 5, "z": "5", "d": b"ab" * 6}]
    for call in (lambda: pages.read_at_page_by_id(12, 0, 1), lambda: pages.read_at_page_by_id(0, 1, 1)):
        with pytest.raises(mindrecord.MRMFetchDataError, match="There is no"):
            call()
    with pytest.raises(mindrecord.MRMFetchDataError, match="No row has '55'"):
        pages.read_at_page_by_name("55", 0, 1)
    with pytest.raises(mindrecord.MRMDefineCategoryError, match="'z' is not an index field"):
        pages.category_field = "z"
    # MindSpore writes 1e30 in the same way.
    plain = MindPage(os.fspath(theirs / "plain"))
    plain.category_field = "f"
    assert '"name":"1.0e+30"' in plain.read_category_info() and '"name":"0.1"' in plain.read_category_info()


def test_rows_are_found_page_by_page(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [{"x": n % 3, "d": bytes([n])} for n in range(10)], shard_num=2)
    pages = MindPage([f"{path}0", f"{path}1"])
    pages.category_field = "x"
    assert [row["d"] for row in pages.read_at_page_by_name("0", 0, 3)] == [b"\0", b"\3", b"\6"]
    assert [row["d"] for row in pages.read_at_page_by_id(0, 1, 3)] == [b"\x09"]


@pytest.mark.parametrize(
    "number",
    [
        0,
        1,
        -1,
        127,
        128,
        -32,
        -33,
        255,
        256,
        -128,
        -129,
        2**15,
        -(2**15) - 1,
        2**31,
        -(2**31) - 1,
        2**32,
        2**63 - 1,
        -(2**63),
    ],
)
def test_numbers_survive_packing(number: int) -> None:
    assert unpack_map(pack_map({"n": number})) == {"n": number}
    array = np.array([number, 0, number])
    assert np.array_equal(unpack_integers(pack_integers(array), "int64"), array)


def test_random_rows_survive(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    schema = {
        "s": {"type": "string"},
        "f": {"type": "float64"},
        "b": {"type": "bytes"},
        "a": {"type": "float64", "shape": [-1, 2]},
        "i": {"type": "int32", "shape": [-1]},
    }
    writer = FileWriter(os.fspath(tmp_path / "a"), shard_num=3)
    writer.set_page_size(1 << 15)
    writer.add_schema(schema)
    written: list[dict[str, Any]] = []
    for count in (1, 7, 40, 2):
        rows = [
            {
                "s": "x" * int(random.integers(0, 3000)),
                "f": float(random.normal()),
                "b": random.bytes(int(random.integers(0, 4000))),
                "a": random.normal(size=(int(random.integers(0, 9)), 2)),
                "i": random.integers(-(2**31), 2**31, int(random.integers(0, 9))).astype(np.int32)
                >> int(random.integers(0, 31)),
            }
            for _ in range(count)
        ]
        written += rows
        writer.write_raw_data(rows)
    writer.commit()
    read = rows_of(tmp_path / "a0")
    assert len(read) == len(written)
    by_text = {(row["s"], row["f"]): row for row in read}
    for row in written:
        found = by_text[row["s"], row["f"]]
        assert all(same(found[key], row[key]) for key in schema)
    counts = [len(rows_of([os.fspath(tmp_path / f"a{n}")])) for n in range(3)]
    assert sum(counts) == 50 and max(counts) - min(counts) <= 1


def test_empty_bytes_and_nan(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [{"x": 1, "d": b""}, {"x": 2, "d": b"q"}])
    assert rows_of(path) == [{"x": 1, "d": b""}, {"x": 2, "d": b"q"}]
    path = write(tmp_path / "b", [{"f": float("nan")}, {"f": 3.0}], {"f": {"type": "float32"}})
    first, second = rows_of(path)
    assert np.isnan(first["f"]) and second == {"f": 3.0} and isinstance(second["f"], float)


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [{"x": 1, "d": b"a"}])
    with pytest.raises(
        mindrecord.MRMOpenError, match="is there already; remove it, or pass overwrite=True to FileWriter"
    ):
        write(tmp_path / "a", [{"x": 2, "d": b"b"}])
    writer = FileWriter(path, overwrite=True)
    writer.add_schema(SMALL)
    writer.write_raw_data([{"x": 3, "d": b"c"}])
    assert rows_of(path) == [{"x": 1, "d": b"a"}] and len(os.listdir(tmp_path)) == 3
    del writer
    finalization.settle()
    assert sorted(os.listdir(tmp_path)) == ["a", "a.db"]
    write(tmp_path / "a", [{"x": 4, "d": b"d"}], overwrite=True)
    assert rows_of(path) == [{"x": 4, "d": b"d"}]
    writer = FileWriter(os.fspath(tmp_path / "b"))
    writer.add_schema({f"field_{n}_{'x' * 60}": {"type": "int32"} for n in range(200)})
    writer.set_header_size(1 << 14)
    with pytest.raises(
        mindrecord.MRMInvalidHeaderSizeError, match="more than the 16384 that it has; call set_header_size"
    ):
        writer.commit()
    assert sorted(os.listdir(tmp_path)) == ["a", "a.db"]


def test_appending(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [{"x": 1, "d": b"a"}])
    writer = FileWriter.open_for_append(path)
    for number in (2, 3):
        writer.write_raw_data([{"x": number, "d": b"b"}])
        writer.commit()
    assert [row["x"] for row in rows_of(path)] == [1, 2, 3]
    with pytest.raises(mindrecord.MRMOpenForAppendError, match="There is no file"):
        FileWriter.open_for_append(os.fspath(tmp_path / "none"))
    shards = write(tmp_path / "s", [{"x": 1, "d": b"a"}, {"x": 2, "d": b"a"}], shard_num=2)
    with pytest.raises(mindrecord.MRMOpenForAppendError, match="one of 2 shards"):
        FileWriter.open_for_append(f"{shards}0")


def test_rows_that_do_not_match_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(log, "warning", lambda text, *values: said.append(text % values))
    schema = {"f": {"type": "float64"}, "a": {"type": "int32", "shape": [2]}}
    good = {"f": 1.0, "a": np.zeros(2, np.int32), "other": 3}
    bad: list[dict[str, Any]] = [
        {**good, "f": 1},
        {"f": 1.0},
        {**good, "a": np.zeros(2)},
        {**good, "a": np.zeros(3, np.int32)},
        {**good, "a": [1, 2]},
    ]
    path = write(tmp_path / "a", [good, *bad, good], schema)
    assert len(rows_of(path)) == 2 and set(rows_of(path)[0]) == {"a", "f"}
    assert [line.split(":")[0] for line in said] == [
        f"write_raw_data: row {n} is left out".split(":")[0] for n in range(1, 6)
    ]
    assert "the value is of type int" in said[0] and "has shape [2], but the value has shape [3]" in said[3]
    with pytest.raises(RuntimeError, match="no rows that match the schema"):
        write(tmp_path / "b", bad, schema)
    with pytest.raises(mindrecord.MRMValidateDataError, match="field 'x' is int32, which 1099511627776 does not fit"):
        write(tmp_path / "c", [{"x": 2**40, "d": b""}])


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    name = os.fspath(tmp_path / "a")
    for arguments in ((3,), ("",), ("a:b",), ("a/",), (" a",), (name, 0), (name, 1001), (name, None), (name, 1, 1)):
        with pytest.raises(mindrecord.ParamValueError):
            FileWriter(*arguments)
    writer = FileWriter(name)
    with pytest.raises(mindrecord.MRMGetMetaError, match="call add_schema first"):
        writer.add_index(["x"])
    for schema in (
        {},
        {"a b": {"type": "int32"}},
        {"a": {"type": "uint8"}},
        {"a": {"type": "bytes", "shape": [2]}},
        {"a": "int32"},
        {"a": {"type": "int32", "shape": 2}},
    ):
        with pytest.raises(mindrecord.MRMInvalidSchemaError):
            writer.add_schema(schema)
    writer.add_schema(SMALL)
    with pytest.raises(mindrecord.MRMAddSchemaError):
        writer.add_schema(SMALL)
    with pytest.raises(mindrecord.MRMDefineIndexError, match="'d' is bytes or an array"):
        writer.add_index(["d"])
    with pytest.raises(mindrecord.MRMAddIndexError, match="has no field 'q'"):
        writer.add_index(["q"])
    for wrong in ("16", 3.0, True):
        with pytest.raises(TypeError, match="must be an int"):
            writer.set_header_size(wrong)
    for size in (0, (1 << 14) + 1, (1 << 27) + 4):
        with pytest.raises(mindrecord.MRMInvalidHeaderSizeError):
            writer.set_header_size(size)
    for size in ((1 << 15) - 4, (1 << 15) + 2, (1 << 28) + 4):
        with pytest.raises(mindrecord.MRMInvalidPageSizeError):
            writer.set_page_size(size)
    writer.set_page_size(1 << 15)
    with pytest.raises(
        mindrecord.MRMWriteDatasetError, match="take 40008 bytes, more than a page of 32768; call set_page_size"
    ):
        writer.write_raw_data([{"x": 1, "d": bytes(40000)}])
    with pytest.raises(mindrecord.ParamTypeError):
        writer.write_raw_data({"x": 1})
    writer.commit()
    with pytest.raises(RuntimeError, match="the files are committed"):
        writer.write_raw_data([{"x": 1, "d": b""}])


def test_parallel_writing_fills_shards_in_turn(tmp_path: Path) -> None:
    writer = FileWriter(os.fspath(tmp_path / "a"), 2)
    writer.add_schema(SMALL)
    for number in range(3):
        writer.write_raw_data([{"x": number, "d": b"1"}, {"x": number, "d": b"2"}], True)
    with pytest.raises(RuntimeError, match="must be the same in every call"):
        writer.write_raw_data([{"x": 1, "d": b""}])
    writer.commit()
    assert [[row["x"] for row in rows_of([os.fspath(tmp_path / f"a{n}")])] for n in (0, 1)] == [[0, 0, 2, 2], [1, 1]]


def damaged(path: str, at: int, content: bytes) -> None:
    with open(path, "r+b") as handle:
        handle.seek(at)
        handle.write(content)


def test_damage_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [{"x": 1, "d": b"abc"}])
    start = 1 << 14
    whole = Path(path).read_bytes()
    for at, content in (
        (0, b"\xff" * 8),
        (0, bytes(8)),
        (30, b"\xff\xfe"),
        (start, b"\x09"),
        (start + (1 << 15) + 8, b"\xc1"),
    ):
        damaged(path, at, content)
        with pytest.raises(mindrecord.MRMOpenError, match="damaged|not a record file"):
            rows_of(path)
        with open(path, "wb") as handle:
            handle.write(whole)
    os.truncate(path, start + 10)
    with pytest.raises(mindrecord.MRMOpenError, match="cut off or damaged"):
        rows_of(path)
    os.truncate(path, 3)
    with pytest.raises(mindrecord.MRMOpenError, match="is cut off"):
        rows_of(path)
    other = write(tmp_path / "b", [{"x": 1, "d": b"abc"}])
    os.replace(other + ".db", path + ".db")
    with open(path, "wb") as handle:
        handle.write(whole)
    with pytest.raises(mindrecord.DbConnectionError, match="belongs to 'b', not to 'a'"):
        rows_of(path)
    Path(path + ".db").write_bytes(b"no database" * 100)
    with pytest.raises(mindrecord.DbConnectionError, match="cannot be read"):
        rows_of(path)
    os.remove(path + ".db")
    with pytest.raises(RuntimeError, match="a record file needs its index"):
        rows_of(path)
    with pytest.raises(RuntimeError, match="there is no file"):
        rows_of(tmp_path / "none")


@pytest.fixture
def no_key() -> Iterator[None]:
    yield
    set_enc_key(None)
    set_enc_mode()
    set_dec_mode(None)


def xor(source: Any, size: int, target: Any, key: str) -> None:
    content = source.read(size)
    target.write(bytes(byte ^ ord(key[n % 16]) for n, byte in enumerate(content[:2000])) + content[2000:])


def unxor(source: Any, size: int, target: Any, key: str) -> None:
    xor(source, size - 11, target, key)


def test_encrypted_files(tmp_path: Path, no_key: None) -> None:
    set_enc_key("0123456789abcdef")
    with pytest.raises(Unsupported, match="'AES-GCM' is not built in; give set_enc_mode and set_dec_mode functions"):
        write(tmp_path / "a", [{"x": 1, "d": b"abc"}])
    assert os.listdir(tmp_path) == []
    set_enc_mode(xor)
    path = write(tmp_path / "a", [{"x": 1, "d": b"abc"}])
    content = Path(path).read_bytes()
    assert content.endswith(bytes(4) + b"UDF-ENCENCRYPT") and b"schema" not in content
    with pytest.raises(RuntimeError, match="give set_dec_mode the one that decrypts"):
        rows_of(path)
    set_dec_mode(unxor)
    assert rows_of(path) == [{"x": 1, "d": b"abc"}] and sorted(os.listdir(tmp_path)) == ["a", "a.db"]
    writer = FileWriter.open_for_append(path)
    writer.write_raw_data([{"x": 2, "d": b"d"}])
    writer.commit()
    assert [row["x"] for row in rows_of(path)] == [1, 2]
    with pytest.raises(RuntimeError, match="encrypted files cannot be sharded"):
        FileWriter(path, 2)
    set_enc_key(None)
    with pytest.raises(RuntimeError, match="is encrypted; call set_enc_key"):
        rows_of(path)
    plain = write(tmp_path / "b", [{"x": 1, "d": b"abc"}])
    set_enc_key("0123456789abcdef" * 2)
    with pytest.raises(RuntimeError, match="is not encrypted"):
        rows_of(plain)
    for key in (3, "short"):
        with pytest.raises(ValueError, match="set_enc_key: the key must"):
            set_enc_key(key)
    with pytest.raises(ValueError, match="must be a function or 'AES-GCM'"):
        set_enc_mode("ROT13")


def test_errors_have_the_codes_of_mindspore() -> None:
    # str(error) and error.error_code of MindSpore 2.10.
    assert str(mindrecord.MRMOpenError()) == "[MRMOpenError]: MindRecord File could not open successfully."
    errors = mindrecord.MRMOpenError(), mindrecord.ParamValueError("x"), mindrecord.MRMDefineCategoryError("q")
    assert [error.error_code for error in errors] == [1347690596, 1347686402, 1347694797]
    assert mindrecord.UnknownError().error_code == 1347686400
    assert (
        str(mindrecord.ParamTypeError("a", "list")) == "[ParamTypeError]: Invalid parameter type. 'a' expect list type."
    )
    assert mindrecord.EXCEPTIONS["MRMDefineCategoryError"] == [205, "Category field is error."]
    assert (mindrecord.SUCCESS, mindrecord.FAILED, mindrecord.SYS_ID) == (0, 1, 42)


def test_pages_name_the_file_that_is_none() -> None:
    for wrong in (None, 3, "", []):
        with pytest.raises(mindrecord.ParamValueError, match="MindPage reads a file or a list of files"):
            MindPage(wrong)  # type: ignore[arg-type]
