"""LAPACK called without detours, against NumPy and SciPy in float64."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from mycel._src.compiler.prims.linear_algebra import lapack
from mycel._src.compiler.prims.linear_algebra.decompositions import cholesky, triangular_solve
from mycel._src.compiler.prims.linear_algebra.spectral import eigh, svd

KINDS = (np.float32, np.float64)


def positive(draw, *shape):
    x = draw.normal(size=shape)
    return x @ np.swapaxes(x, -1, -2) / shape[-1] + np.eye(shape[-1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(48, 48), (3, 61, 61), (2, 1, 130, 130)])
def test_decompositions_are_those_of_float64(kind, shape):
    draw = np.random.default_rng(len(shape))
    tolerance = 3e-4 if kind is np.float32 else 1e-11
    a = positive(draw, *shape)
    np.testing.assert_allclose(
        cholesky.reference(a.astype(kind)), np.linalg.cholesky(a), rtol=tolerance, atol=tolerance
    )
    other = np.where(np.tri(shape[-1], k=-1).T > 0, 7.0, a)  # only the lower triangle is read
    for lower, given in ((True, other), (False, np.swapaxes(other, -1, -2))):
        values, vectors = eigh.reference(given.astype(kind), lower=lower)
        assert values.dtype == vectors.dtype == kind
        np.testing.assert_allclose(values, np.linalg.eigvalsh(a), rtol=tolerance, atol=tolerance)
        back = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        np.testing.assert_allclose(back, a, rtol=10 * tolerance, atol=10 * tolerance)
    wide = draw.normal(size=(*shape[:-1], shape[-1] + 9))
    for m in (wide, np.swapaxes(wide, -1, -2)):
        expected = np.linalg.svd(m, compute_uv=False)
        found = svd.reference(m.astype(kind), full=False, vectors=False)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trans", ["N", "T", "C"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangles_are_solved(kind, trans, lower, unit):
    draw = np.random.default_rng(1)
    for columns in (1, 5, 70):
        a = 0.1 * draw.normal(size=(2, 53, 53)) + 2 * np.eye(53)
        b = draw.normal(size=(2, 53, columns))
        found = triangular_solve.reference(a.astype(kind), b.astype(kind), lower=lower, trans=trans, unit=unit)
        for x, m, y in zip(found, a, b):
            expected = solve_triangular(m, y, trans=trans, lower=lower, unit_diagonal=unit)
            np.testing.assert_allclose(x, expected, rtol=2e-3 if kind is np.float32 else 1e-9, atol=1e-4)


def test_what_has_no_decomposition_is_nan():
    a = positive(np.random.default_rng(2), 3, 50, 50)
    a[1, 7, 7] = -1.0
    found = cholesky.reference(a)
    assert np.isnan(found[1]).all() and np.isfinite(found[[0, 2]]).all()
    singular = np.tril(np.ones((2, 50, 50)))
    singular[1, 49, 49] = 0.0
    x = triangular_solve.reference(singular, np.ones((2, 50, 2)), lower=True, trans="N", unit=False)
    assert np.isfinite(x[0]).all() and np.isnan(x[1]).all()


def test_threads_of_openblas_come_back():
    def counts():
        return [threads.told() for threads in lapack._libraries()]

    before = counts()
    with lapack.alone(), lapack.alone():
        assert set(counts()) <= {1}
    assert counts() == before
    with pytest.raises(KeyError), lapack.alone():
        raise KeyError
    assert counts() == before


# What lies beside NumPy and SciPy: libraries that are none, folders called as packages that Mycel
# asks for, and packages that cannot be imported.
BESIDE = """
import pathlib, sys
folder = pathlib.Path(sys.path[1])
for name in ("openblas-r0-1", "lapack", "dnnl", "gomp", "jpeg", "mpi"):
    for place in ("neighbour.libs", "numpy.libs", "scipy.libs", "pillow.libs", "lib"):
        (folder / place).mkdir(exist_ok=True)
        (folder / place / f"lib{name}.so.3").write_bytes(b"no library")
for name in ("jax", "islpy", "pybind11", "mpi4py", "av", "fsspec", "mindspore"):
    (folder / name).mkdir()
for name in ("cv2", "sentencepiece", "pyarrow", "matplotlib"):
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("raise OSError('damaged')")
"""
USE = """
import numpy as np
import mycel as ms
import mycel.dataset as ds
from mycel import ops
from mycel.dataset import vision
from mycel.dataset.vision.codecs import jpeg
from mycel._src.engines.select import engines
from mycel._src.compiler.loops.integer_sets import is_exact
from mycel.ops.operations.custom_sources import paths_for_modules

x = np.eye(64, dtype=np.float32) * 2
t = ms.Tensor(x)
assert np.allclose(ops.eigvals(ms.Tensor(np.diag(np.float32([1, 2, 3])))).asnumpy(), [1, 2, 3])
for name in ("svd", "cholesky", "matmul"):
    given = (t, t) if name == "matmul" else (t,)
    found = getattr(ops, name)(*given)
assert np.allclose(ops.cholesky(t).asnumpy(), np.sqrt(x))
rows = ds.GeneratorDataset(list(np.ones((8, 4, 4, 3), np.uint8)), "a", shuffle=False)
rows = rows.map(lambda a: a @ np.eye(3), num_parallel_workers=2)
assert len(list(rows.create_tuple_iterator(output_numpy=True))) == 8
assert not is_exact() and paths_for_modules() and jpeg.decoder() is not None
assert "jax" in engines()["xla"].describe()["uses"] and engines()["native"].describe()
print("as it should be")
"""


def test_what_lies_beside_numpy_is_left_alone(tmp_path):
    """Other packages of the environment may bring libraries and be damaged."""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", BESIDE + USE], cwd="/", env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.stdout == "as it should be\n", ran.stderr


def test_only_what_numpy_and_scipy_call_is_touched(monkeypatch):
    opened = []
    monkeypatch.setattr(lapack.ctypes, "CDLL", lambda path, real=ctypes.CDLL: opened.append(path) or real(path))
    lapack._threads_of.cache_clear()
    with lapack.alone():
        pass
    assert opened and all(sys.modules[name].__file__ == path for name, path in zip(lapack._CALLERS, opened))
