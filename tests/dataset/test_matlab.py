"""Files of MATLAB against SciPy's writer and reader."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from mycel.dataset.readers.matlab import read_variables


def cells(*values):
    found = np.empty((len(values), 1), object)
    for place, value in enumerate(values):
        found[place, 0] = value
    return found


VALUES = {
    "numbers": np.arange(24.0).reshape(2, 3, 4),
    **{
        np.dtype(kind).name: np.arange(-3, 3).astype(kind).reshape(2, 3)
        for kind in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4")
    },
    "complex": np.array([[1 + 2j, 3 - 1j]]),
    "empty": np.zeros((0, 3)),
    "sparse": scipy.sparse.csc_matrix(np.array([[0, 5.0, 0], [7, 0, 8]])),
    "cells": cells(np.eye(2), np.array([[3]]), cells(np.ones((1, 2)))),
}


@pytest.mark.parametrize("compressed", (False, True))
def test_values_are_those_that_scipy_reads(tmp_path, compressed):
    path = tmp_path / "a.mat"
    scipy.io.savemat(
        path, {**VALUES, "text": "a text ü", "struct": {"x": np.arange(3.0), "long_name": 5}}, do_compression=compressed
    )
    expected = scipy.io.loadmat(path)
    found = read_variables(path, frozenset((*VALUES, "text", "struct")))
    for name, value in VALUES.items():
        if name == "cells":
            assert found[name].shape == (3, 1) and np.array_equal(found[name][0, 0], np.eye(2))
            assert np.array_equal(found[name][2, 0][0, 0], np.ones((1, 2)))
            continue
        wanted = value.toarray() if name == "sparse" else expected[name]
        assert found[name].dtype == wanted.dtype and np.array_equal(found[name], wanted), name
    assert found["text"] == "a text ü" and list(found["struct"]) == ["x", "long_name"]
    assert found["struct"]["x"].shape == (1, 1) and found["struct"]["long_name"][0, 0].tolist() == [[5]]
    assert list(read_variables(path, frozenset(["int8", "none"]))) == ["int8"]


@pytest.mark.parametrize("order, mark", [("<", b"IM"), (">", b"MI")])
def test_both_orders_of_bytes(tmp_path, order, mark):
    def element(kind, content):
        return struct.pack(order + "II", kind, len(content)) + content + bytes(-len(content) % 8)

    matrix = (
        element(6, struct.pack(order + "II", 6, 0)) + element(5, struct.pack(order + "ii", 1, 2)) + element(1, b"x")
    )
    matrix += element(4, struct.pack(order + "HH", 7, 300))
    path = tmp_path / "a.mat"
    path.write_bytes(bytes(124) + struct.pack(order + "H", 0x0100) + mark + element(14, matrix))
    assert read_variables(path, frozenset("x"))["x"].tolist() == [[7, 300]]


def test_files_that_lie(tmp_path, monkeypatch):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"x": np.arange(6.0).reshape(2, 3)})
    content = path.read_bytes()

    def refused(content, message):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_variables(path, frozenset("x"))

    refused(b"abc", "not the header")
    refused(content[:124] + b"\x00\x02IM" + content[128:], "save it with -v7")
    for size in range(129, len(content)):
        refused(content[:size], "cut off|ends beyond|values for sizes|of type")
    sizes = content.index(struct.pack("<ii", 2, 3))
    for height, width in ((2, 4), (-1, 3), (2**31 - 1, 2**31 - 1)):
        refused(content[:sizes] + struct.pack("<ii", height, width) + content[sizes + 8 :], "sizes")
    deep = cells(np.eye(1))
    for _ in range(25):
        deep = cells(deep)
    scipy.io.savemat(path, {"x": deep})
    refused(path.read_bytes(), "more than 20 deep")
    zeros = zlib.compress(bytes(1 << 22))
    monkeypatch.setattr("mycel._src.foundation.files.decompression.LEAST", 1 << 20)
    refused(content[:128] + struct.pack("<II", 15, len(zeros)) + zeros, "becomes more than 1 MiB.*MYCEL_INFLATE")
