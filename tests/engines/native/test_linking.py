"""LLVM's linker in a process whose addresses are taken: parts of an object may lie far apart."""

from __future__ import annotations

import subprocess
import sys

import pytest

CHILD = """
import ctypes, mmap
from mycel._src.engines.native.llvm.jit import machine

values = ", ".join(f"float {k}.5" for k in range(40000))
# What may be written goes to LLVM's linker.
code = machine().compile(f'''
@table = internal constant [40000 x float] [{values}]
@calls = internal global i64 0
define float @get(i64 %k) {{
  %n = load i64, ptr @calls
  %m = add i64 %n, 1
  store i64 %m, ptr @calls
  %p = getelementptr [40000 x float], ptr @table, i64 0, i64 %k
  %v = load float, ptr %p
  ret float %v
}}''')
assert machine().pages.load(code, ["get"]) is None
# Only holes below 128 KiB are left within 8 GiB.
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
for _ in range((8 << 30) // (128 << 10)):
    assert libc.mmap(None, 128 << 10, 0, 0x4022, -1, 0) != ctypes.c_void_p(-1).value
for k in range(3):
    address, = machine().link(code, ["get"], {})
    print(ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(address)(k))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the addresses of Linux are filled")
def test_parts_of_an_object_are_near_each_other() -> None:
    child = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=120)
    assert (child.returncode, child.stdout) == (0, "0.5\n1.5\n2.5\n"), child.stderr[-600:]
