"""Operations of libraries of C++ classes, compiled here with both forms of strings."""

from __future__ import annotations

import pickle
import platform
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel
import mycel.dataset as ds
from mycel._src.engines.routines.cpp_plugins import opened
from mycel.dataset.transforms import Plugin

COMPILER = shutil.which("g++")
pytestmark = pytest.mark.skipif(
    COMPILER is None or platform.machine() not in ("x86_64", "AMD64"), reason="needs g++ for x86-64"
)
# A version that the string itself holds, and one that it keeps elsewhere.
FORMS = {
    "old": (0, "0.5.6"),
    "new": (1, "0.5.6"),
    "old-long": (0, "0.5.6 and more text"),
    "new-long": (1, "0.5.6 and more text"),
}


@pytest.fixture(scope="module", params=FORMS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    form, version = FORMS[request.param]
    path = tmp_path_factory.mktemp("plugin") / "operations.so"
    include = Path(mycel.__file__).parent / "include"
    assert COMPILER is not None
    subprocess.run(
        [COMPILER, "-std=c++17", "-shared", "-fPIC", "-Wall", "-Werror", f"-D_GLIBCXX_USE_CXX11_ABI={form}"]
        + [f'-DVERSION="{version}"', f"-I{include}", str(Path(__file__).parent / "plugin.cc"), "-o", str(path)],
        check=True,
    )
    assert opened(str(path)).version == version
    return str(path)


def shown(library: str, *arrays: Any, arguments: Any = None) -> str:
    return bytes(Plugin(library, "Show", arguments)(*arrays)).decode()


def test_what_a_library_receives(library: str) -> None:
    three = np.arange(3, dtype=np.uint8)
    assert shown(library, three) == "|uint8 3:0 0 1 2"
    assert shown(library, np.array([1.5], np.float16), arguments="text of more than fifteen letters") == (
        "text of more than fifteen letters|float16 1:0 0 62"
    )
    assert shown(library, np.array([[1, -2]], np.int16).T) == "|int16 2 1:0 1 0 254 255"
    assert shown(library, np.array([1, 2], ">i4")) == "|int32 2:0 1 0 0 0 2 0 0 0"
    assert shown(library, np.float32(2), np.array([True, False])) == "|float32:0 0 0 0 64|bool 2:0 1 0"
    assert shown(library, np.array("xy"), np.array([b"q"])) == "|string:0 120 121|string 1:0 113"
    assert shown(library, np.array(["é中"])) == "|string 1:0 195 169 228 184 173"
    assert shown(library, np.zeros((0, 3), np.float32)) == "|float32 0 3:0"


def test_what_it_returns(library: str) -> None:
    random = np.random.default_rng(1)
    for name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "f2", "f4", "f8"):
        one = random.integers(0, 2, (3, 1, 5)).astype(name)
        two = random.integers(0, 2, ()).astype(name)
        for row in ((one,), (two, one), (one, two, one)):
            made = Plugin(library, "Same")(*row)
            twice = Plugin(library, "Twice")(*row)
            found = made if isinstance(made, tuple) else (made,)
            for array, expected in zip((*found, *twice), row * 3, strict=True):
                assert array.dtype == expected.dtype and array.shape == expected.shape
                np.testing.assert_array_equal(array, expected)
                assert array.flags.writeable


@pytest.mark.parametrize(
    "says, message",
    [
        ("uint8 3 4", "returned 3 bytes for shape .4,. of uint8, which takes 4"),
        ("wrong 3 3", "returned type 'wrong'; types are bool, int8"),
        ("string 3 3", "returned type 'string'"),
        ("int16 4 -1", "sizes are not negative"),
        ("int16 4 -1 -2", "sizes are not negative"),
        ("uint8 3 9223372036854775807 9223372036854775807", "returned 3 bytes"),
        ("uint8 0", "returned 0 bytes for shape .. of uint8"),
    ],
)
def test_what_is_no_array_is_refused(library: str, says: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        Plugin(library, "Make", says)(np.zeros(1))


def test_what_is_made_of_more_bytes(library: str) -> None:
    assert Plugin(library, "Make", "uint8 4 3")(1).tolist() == [1, 2, 3]
    assert Plugin(library, "Make", "int32 8 2")(1).tolist() == [67305985, 134678021]
    assert Plugin(library, "Make", "uint8 0 0 7")(1).shape == (0, 7)


def test_errors_name_their_cause(library: str, tmp_path: Path) -> None:
    one = np.zeros(1)
    with pytest.raises(RuntimeError, match="'Fail' failed: this row is more than the library can take"):
        Plugin(library, "Fail")(one)
    with pytest.raises(RuntimeError, match="has no operation 'Nope'; it names 'Fail', 'Make', 'Twice', 'Same', 'Show'"):
        Plugin(library, "Nope")(one)
    with pytest.raises(RuntimeError, match="refuses its arguments 'bad': these arguments cannot be read"):
        Plugin(library, "Show", "bad")(one)
    with pytest.raises(RuntimeError, match="texts one at a time, got an array of 2"):
        Plugin(library, "Show")(np.array(["a", "b"]))
    with pytest.raises(RuntimeError, match="got complex128"):
        Plugin(library, "Show")(np.zeros(1, complex))
    text = tmp_path / "text.so"
    text.write_text("no library")
    for path, message in ((str(text), "cannot load"), (str(tmp_path / "no"), "cannot load"), ("", "it is no path")):
        with pytest.raises(RuntimeError, match=message):
            Plugin(path, "Show")(one)
    with pytest.raises(RuntimeError, match="it has no GetInstance|it has no _Znwm"):
        Plugin("libm.so.6", "Show")(one)
    for arguments in ((1, "Show"), ("a.so", 2), ("a.so", "Show", 3)):
        with pytest.raises(TypeError, match="Plugin: "):
            Plugin(*arguments)  # type: ignore[arg-type]


def test_pipelines_with_threads_and_processes(library: str) -> None:
    rows = ds.NumpySlicesDataset({"x": np.arange(40, dtype=np.int32).reshape(20, 2), "y": np.arange(20)}, shuffle=False)
    for options in ({}, {"num_parallel_workers": 2}, {"num_parallel_workers": 2, "python_multiprocessing": True}):
        names = ["a", "b", "c", "d"]
        made = rows.map(Plugin(library, "Twice"), ["x", "y"], names, **options)  # type: ignore[arg-type]
        made = made.map([lambda a: a + 1, Plugin(library, "Same")], ["a"])
        found = list(made.project(names).batch(20).create_tuple_iterator(num_epochs=1, output_numpy=True))
        ((a, b, c, d),) = found
        np.testing.assert_array_equal(a, c + 1)
        np.testing.assert_array_equal(c, np.arange(40, dtype=np.int32).reshape(20, 2))
        assert b.tolist() == d.tolist() == list(range(20))
    with pytest.raises(RuntimeError, match="operation 'Plugin' failed on column 'x', row 0.*more than the library"):
        list(rows.map(Plugin(library, "Fail"), ["x"]))


def test_it_is_described_and_copied(library: str) -> None:
    used = Plugin(library, "Show", "a")
    assert used(np.uint8(1)).size == pickle.loads(pickle.dumps(used))(np.uint8(1)).size == 11
    rows = ds.NumpySlicesDataset({"x": np.arange(2, dtype=np.uint8)}, shuffle=False).map(used, ["x"])
    assert "Plugin" in str(ds.serialize(rows))


def test_threads_that_compute_at_once(library: str) -> None:
    plugin, wrong = Plugin(library, "Same"), []

    def compute(number: int) -> None:
        for size in range(1, 200):
            array = np.full(size, number)
            if not np.array_equal(plugin(array), array):
                wrong.append((number, size))

    threads = [threading.Thread(target=compute, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
