"""16-bit floats: every value widened, and float32 rounded at, beside and between them, on every
level of x86-64.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import mycel as ms

HALF = np.arange(1 << 16, dtype=np.uint16)
TYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def hard_values(numpy_type: np.dtype) -> np.ndarray:
    """Float32 values at the 16-bit values, at the midpoints between them, and one unit beside both;
    and random ones.
    """
    exact = HALF.view(numpy_type)
    exact = exact[np.isfinite(exact.astype(np.float32))].astype(np.float32).view(np.uint32)
    half_step = 0x1000 if numpy_type == np.float16 else 0x8000
    random = np.random.default_rng(0).integers(0, 1 << 32, 10000, dtype=np.uint32)
    near = [exact + np.uint32((step + side) % (1 << 32)) for step in (0, half_step) for side in (-1, 0, 1)]
    return np.concatenate([*near, random]).view(np.float32)


def differing(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where results have other bits, all NaNs counting as one."""
    unsigned = f"u{want.itemsize}"
    nan = np.isnan(got.astype(np.float32)) & np.isnan(want.astype(np.float32))
    return np.flatnonzero((got.view(unsigned) != want.view(unsigned)) & ~nan)


@pytest.mark.parametrize("name", TYPES)
def test_conversions(name: str) -> None:
    numpy_type, dtype = TYPES[name], getattr(ms, name)
    narrow = HALF.view(numpy_type)
    with np.errstate(all="ignore"):
        wide = narrow.astype(np.float32)
        values = hard_values(numpy_type)
        rounded = values.astype(numpy_type)
    assert not differing(ms.Tensor(narrow).astype(ms.float32).asnumpy(), wide).size
    wrong = differing(ms.Tensor(values).astype(dtype).asnumpy(), rounded)
    assert not wrong.size, values[wrong[:5]]
    # One at a time there are no vectors.
    for value in (1.0, -65519.0, 65520.0, 6e-8, -1e-39, 0.1, np.inf):
        with np.errstate(over="ignore"):
            one = np.full((), value, np.float32)
            want = one.astype(numpy_type).reshape(1)
        assert not differing(ms.Tensor(one).astype(dtype).asnumpy().reshape(1), want).size


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="levels are those of x86-64")
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3"])
def test_conversions_on_lower_levels(level: str, tmp_path: Path) -> None:
    from mycel._src.engines.native.llvm.target import host

    if level == "x86-64-v3" and not {"avx2", "f16c", "fma"} <= host().feature_set:
        pytest.skip("this processor is below x86-64-v3")
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import test_half_conversion\n"
        "from mycel._src.engines.native.llvm.target import host\n"
        f"assert host().cpu == {level!r}\n"
        "for name in test_half_conversion.TYPES: test_half_conversion.test_conversions(name)\n"
    )
    environment = {**os.environ, "MYCEL_CPU": level, "MYCEL_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
