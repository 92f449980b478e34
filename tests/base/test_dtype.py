"""Element types: spellings, and the type in which two meet, against the table that MindSpore 2.10
follows.
"""

from __future__ import annotations

import copy
import itertools
import pickle

import ml_dtypes
import numpy as np
import pytest

import mycel as ms
from mycel._src.foundation import dtype as D

NAMES = "bool int8 int16 int32 int64 uint8 float16 bfloat16 float32 float64 complex64 complex128".split()
SHORT = dict(zip("b1 i1 i2 i4 i8 u1 f2 bf f4 f8 c8 c16".split(), NAMES))
# What MindSpore's operators give for tensors of the type of the row and of the column.
TABLE = """
b1  i1  i2  i4  i8  u1  f2  bf  f4  f8  c8  c16
i1  i1  i2  i4  i8  i2  f2  bf  f4  f8  c8  c16
i2  i2  i2  i4  i8  i2  f2  bf  f4  f8  c8  c16
i4  i4  i4  i4  i8  i4  f2  bf  f4  f8  c8  c16
i8  i8  i8  i8  i8  i8  f2  bf  f4  f8  c8  c16
u1  i2  i2  i4  i8  u1  f2  bf  f4  f8  c8  c16
f2  f2  f2  f2  f2  f2  f2  f4  f4  f8  c8  c16
bf  bf  bf  bf  bf  bf  f4  bf  f4  f8  c8  c16
f4  f4  f4  f4  f4  f4  f4  f4  f4  f8  c8  c16
f8  f8  f8  f8  f8  f8  f8  f8  f8  f8  c16 c16
c8  c8  c8  c8  c8  c8  c8  c8  c8  c16 c8  c16
c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16
"""
ROWS = {row: dict(zip(NAMES, (SHORT[s] for s in line.split()))) for row, line in zip(NAMES, TABLE.strip().split("\n"))}


@pytest.mark.parametrize("row", NAMES)
def test_where_two_types_meet(row: str) -> None:
    got = {column: D.promote(D.from_any(row), D.from_any(column)).name for column in NAMES}
    assert got == ROWS[row]


def test_where_wide_unsigned_integers_meet_others() -> None:
    for bits, signed in itertools.product((8, 16, 32), (8, 16, 32, 64)):
        want = f"int{max(2 * bits, signed)}"
        assert D.promote(D.from_any(f"uint{bits}"), D.from_any(f"int{signed}")).name == want
    assert D.promote(D.uint64, D.int8) is D.float32 and D.promote(D.uint64, D.uint8) is D.uint64
    assert D.promote(D.uint32, D.float16) is D.float16 and D.promote(D.bool_, D.uint64) is D.uint64


def test_promotion_does_not_depend_on_the_order() -> None:
    for a, b in itertools.product(D.ALL, repeat=2):
        assert D.promote(a, b) is D.promote(b, a)
    assert all(D.promote(a, a) is a for a in D.ALL)


@pytest.mark.parametrize(
    "spelling, name",
    [
        (ms.float16, "float16"),
        ("float16", "float16"),
        ("Half", "float16"),
        (np.float16, "float16"),
        (np.dtype("<f2"), "float16"),
        (ml_dtypes.bfloat16, "bfloat16"),
        ("bfloat16", "bfloat16"),
        (float, "float32"),
        (int, "int64"),
        (bool, "bool"),
        (complex, "complex128"),
        (np.bool_, "bool"),
        ("bool_", "bool"),
        ("double", "float64"),
        (np.uint16, "uint16"),
        (np.intp, "int64"),
    ],
)
def test_spellings(spelling: object, name: str) -> None:
    assert D.from_any(spelling).name == name


@pytest.mark.parametrize("bad", ["float8", "abc", "", 3, object, str, "M8[s]", np.dtype("U3"), [1]])
def test_what_is_no_type_is_named(bad: object) -> None:
    with pytest.raises(TypeError, match="is not a data type that tensors can hold; use one of bool, int8"):
        D.from_any(bad)


def test_types_are_unique() -> None:
    for d in D.ALL:
        assert pickle.loads(pickle.dumps(d)) is d and copy.deepcopy(d) is d and copy.copy(d) is d
        assert D.from_any(d.numpy) is d and D.to_numpy(d) == d.numpy
    assert ms.half is ms.float16 and ms.double is ms.float64 and ms.long is ms.int64
    assert ms.float32 == ms.float32 and ms.float32 != ms.float64 and len({ms.float32, ms.float32, ms.int8}) == 2


def test_how_types_print() -> None:
    assert [str(d) for d in D.ALL] == [
        "Bool",
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "UInt8",
        "UInt16",
        "UInt32",
        "UInt64",
        "Float16",
        "BFloat16",
        "Float32",
        "Float64",
        "Complex64",
        "Complex128",
    ]
    assert repr(ms.float32) == "mindspore.float32"


def test_kinds() -> None:
    assert [d.name for d in D.ALL if d.is_floating] == ["float16", "bfloat16", "float32", "float64"]
    assert [d.name for d in D.ALL if d.is_complex] == ["complex64", "complex128"]
    assert all(d.is_integer == (d.kind in "iu") for d in D.ALL)
    assert all(d.is_differentiable for d in D.ALL) and not any(d.is_differentiable for d in D.STORED)
    assert [d.name for d in D.ALL if not d.is_signed] == ["bool", "uint8", "uint16", "uint32", "uint64"]
    assert {d.name: d.bits for d in D.ALL}["bfloat16"] == 16
