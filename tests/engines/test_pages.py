"""Kernels in pages that they share: right results, few mappings, children of a fork, and what goes
to LLVM's linker instead.
"""

from __future__ import annotations

import ctypes
import math
import os
import pathlib
import struct
import sys

import pytest

from mycel._src.engines.native.llvm import jit
from mycel._src.engines.native.llvm.object_loader import CHUNK, CodePages

pytestmark = pytest.mark.skipif(
    not (sys.platform == "linux" and os.uname().machine == "x86_64"), reason="pages are shared on Linux and x86-64"
)

ADD = """
@table = private unnamed_addr constant [4 x double] [double 1.0, double 2.0, double 4.0, double {last}]
define double @f(i64 %i, double %x) {{
  %p = getelementptr [4 x double], ptr @table, i64 0, i64 %i
  %c = load double, ptr %p
  %y = fadd double %c, %x
  %z = fmul double %y, {factor}
  ret double %z
}}
"""
MODULUS = """
declare double @fmod(double, double)
define double @f(i64 %i, double %x) {
  %y = fmul double %x, 3.5
  %z = call double @fmod(double %y, double 2.25)
  ret double %z
}
"""
WRITTEN = """
@count = internal global i64 5
define double @f(i64 %i, double %x) {
  %n = load i64, ptr @count
  %m = add i64 %n, 1
  store i64 %m, ptr @count
  %y = sitofp i64 %m to double
  ret double %y
}
"""


def function(address: int) -> ctypes._FuncPointer:
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_double)(address)


def pages() -> CodePages:
    return CodePages(jit._address)


def test_constants_and_code_of_many_objects_in_few_mappings() -> None:
    store, host = pages(), jit.machine()
    before = len(pathlib.Path("/proc/self/maps").read_text().splitlines())
    loaded = []
    for k in range(60):
        (address,) = store.load(host.compile(ADD.format(last=f"{k}.5", factor="3.25")), ["f"]) or [0]
        assert address and address % 64 == 0
        loaded.append(function(address))
    for k, f in enumerate(loaded):
        assert f(3, 1.0) == (k + 1.5) * 3.25 and f(2, 0.5) == 4.5 * 3.25
    assert len(pathlib.Path("/proc/self/maps").read_text().splitlines()) <= before + 8


def test_calls_of_the_c_library_go_through_stubs() -> None:
    store, host = pages(), jit.machine()
    for _ in range(2):
        (address,) = store.load(host.compile(MODULUS), ["f"]) or [0]
        assert function(address)(0, 7.0) == math.fmod(24.5, 2.25)
    assert CodePages(lambda name: 0).load(host.compile(MODULUS), ["f"]) is None


def test_what_is_not_such_an_object_is_refused() -> None:
    store, host = pages(), jit.machine()
    assert store.load(host.compile(WRITTEN), ["f"]) is None
    good = host.compile(ADD.format(last="8.0", factor="2.0"))
    assert store.load(good, ["g"]) is None and store.load(good, ["f"]) is not None
    for bad in (
        b"",
        good[:30],
        b"\x7fELG" + good[4:],
        good[:18] + struct.pack("<H", 183) + good[20:],
        good[:40] + struct.pack("<Q", 1 << 40) + good[48:],
    ):
        assert store.load(bad, ["f"]) is None


def test_the_linker_takes_the_rest() -> None:
    host = jit.machine()
    (address,) = host.link(host.compile(WRITTEN), ["f"], {})
    assert [function(address)(0, 0.0) for _ in range(3)] == [6.0, 7.0, 8.0]


def test_a_full_chunk_is_followed_by_another() -> None:
    store, host = pages(), jit.machine()
    code = host.compile(ADD.format(last="8.0", factor="2.0"))
    (first,) = store.load(code, ["f"]) or [0]
    assert store._current is not None
    store._current.used = CHUNK - 64
    (second,) = store.load(code, ["f"]) or [0]
    assert len(store._chunks) == 2 and function(first)(3, 1.0) == function(second)(3, 1.0) == 18.0


def test_a_child_and_its_parent_load_apart() -> None:
    host = jit.machine()
    texts = [ADD.format(last=f"{k}.0", factor="1.5") for k in (10, 20, 30)]
    codes = [host.compile(t) for t in texts]
    shared = function(host.link(codes[0], ["f"], {})[0])
    child = os.fork()
    if child == 0:
        own = function(host.link(codes[1], ["f"], {})[0])
        os._exit(0 if own(3, 1.0) == 31.5 and shared(3, 1.0) == 16.5 else 1)
    mine = function(host.link(codes[2], ["f"], {})[0])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert mine(3, 1.0) == 46.5 and shared(3, 1.0) == 16.5


def test_without_such_memory_llvm_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise OSError("not permitted")

    monkeypatch.setattr(os, "memfd_create", refused)
    store = pages()
    assert store.load(jit.machine().compile(ADD.format(last="8.0", factor="2.0")), ["f"]) is None and not store.works
