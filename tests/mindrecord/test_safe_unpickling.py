"""Pickles hold data: what would call, allocate, or make objects of bytes is refused first."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np
import pytest

from mycel.mindrecord import safe_unpickling


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_data_comes_back(protocol: int) -> None:
    content = {
        b"data": np.arange(6, dtype=np.uint8).reshape(2, 3),
        b"labels": [1, 2],
        b"x": np.asfortranarray(np.ones((2, 3), ">f4")),
        "t": "é",
    }
    found = safe_unpickling.load(pickle.dumps(content, protocol=protocol))
    assert found[b"labels"] == [1, 2] and found["t"] == "é"
    for name in (b"data", b"x"):
        assert found[name].dtype == content[name].dtype and np.array_equal(found[name], content[name])


def test_what_a_pickle_must_not_hold() -> None:
    class Runs:
        def __reduce__(self) -> Any:
            return os.mkdir, ("ran",)

    words = {
        # An array of one object whose address is AAAAAAAA.
        b"\x80\x02cnumpy\nndarray\n(K\x01\x85U\x01OU\x08AAAAAAAAtR.": "an array has no elements",
        b"\x80\x02cnumpy\nndarray\n(J\xff\xff\xff\x7ftR.": "an array has no elements",
        b"\x80\x02}r\xff\xff\xff\x3f.": "it counts to 1073741823 in 9 bytes",
        b"\x80\x05\x96" + (2**40).to_bytes(8, "little") + b"x.": "damaged|expected|BYTEARRAY8",
        pickle.dumps(Runs()): "posix.mkdir has no place in a file of CIFAR|nt.mkdir has no place in a file of CIFAR",
        pickle.dumps(np.array([object])): "has no place in a file of CIFAR|are no numbers",
        pickle.dumps({1: np.array(["text"])}): "are no numbers",
        b"": "damaged|pickle exhausted",
        b"\x80\x02]": "damaged|exhausted",
    }
    for content, message in words.items():
        with pytest.raises(ValueError, match=message):
            safe_unpickling.load(content)
    assert not os.path.exists("ran")
