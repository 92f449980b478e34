"""The elementary functions over their whole range: a stratified sample of float32, all 16-bit
floats, and float64 through identities that hold exactly.

Oracles and the count of errors are those of `benchmarks/elementary.py`, which takes all of float32.
On every level of x86-64, whose code differs.
"""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mycel import Tensor, ops

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
# Some numbers of each exponent of both signs: 65,536 of the float32 arguments.
STRIDE = 65_521
# What is not within two units of the last place, in float32; composed functions may double an error
# where they subtract.
LIMITS = {
    "bessel_i0": 5.0,
    "bessel_i0e": 5.0,
    "bessel_i1": 5.0,
    "bessel_i1e": 5.0,
    "bessel_k0": 9.0,
    "bessel_k0e": 9.0,
    "bessel_k1": 7.0,
    "bessel_k1e": 7.0,
    "bessel_j0": 16.0,
    "bessel_j1": 16.0,
    "bessel_y0": 16.0,
    "bessel_y1": 16.0,
    "floor_divide": 2.5,
}
# Differences of nearly equal numbers by definition.
WITHOUT = {"logit", "tanhshrink", "silu", "mish", "sinc", "logaddexp"}
LEVELLED = ["sin", "tan", "exp", "pow", "erf", "round", "floor_divide"]


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The benchmark, which is a script."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("elementary")
    finally:
        sys.path.remove(str(FOLDER))
        sys.modules.pop("elementary", None)


def check(bench: Any, name: str, kind: str) -> None:
    dtype = bench.HALF.get(kind, np.dtype(np.float32))
    worst = bench.unary(name, dtype, STRIDE) if name in bench.UNARY else bench.binary(name, dtype, 5000)
    assert worst.count > 10_000
    limit = LIMITS.get(name, 2.0) if kind == "float32" else 1.5
    assert worst.error <= limit, (name, kind, worst.error, worst.at, worst.got, worst.want)


def names() -> list[str]:
    sys.path.insert(0, str(FOLDER))
    module = importlib.import_module("elementary")
    sys.path.remove(str(FOLDER))
    return [n for n in (*module.UNARY, *module.BINARY) if n not in WITHOUT]


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", names())
def test_whole_range(bench: Any, name: str, kind: str) -> None:
    check(bench, name, kind)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="levels are those of x86-64")
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_whole_range_on_other_levels(level: str, tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path[:0] = [{str(FOLDER)!r}, {str(Path(__file__).parent)!r}]\n"
        "import elementary, test_elementary_range as tests\n"
        "for name in tests.LEVELLED: tests.check(elementary, name, 'float32')\n"
    )
    environment = {**os.environ, "MYCEL_CPU": level, "MYCEL_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    if "this processor lacks" in done.stderr:
        pytest.skip(f"this processor is below {level}")
    assert done.returncode == 0, done.stderr


def test_saturated_functions_are_exact() -> None:
    for dtype in (np.float32, np.float64):
        large = np.array([40.0, 1e3, 1e20, 3e38, np.inf], dtype)
        for function in (ops.erf, ops.tanh, ops.sigmoid):
            np.testing.assert_array_equal(function(Tensor(large)).asnumpy(), np.ones_like(large))
        np.testing.assert_array_equal(ops.erf(Tensor(-large)).asnumpy(), -np.ones_like(large))
        # What is multiplied by their difference from 1 is then 0.
        np.testing.assert_array_equal(ops.gelu(Tensor(-large[:-1])).asnumpy(), np.zeros_like(large[:-1]))
        np.testing.assert_array_equal(ops.gelu(Tensor(large)).asnumpy(), large)
