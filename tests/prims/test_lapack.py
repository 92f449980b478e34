"""LAPACK called without detours, against NumPy and SciPy in float64."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from mycel.prims import lapack
from mycel.prims.decompositions import cholesky, triangular_solve
from mycel.prims.spectral import eigh, svd

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
    before = [told() for told, _ in lapack._libraries()]
    with lapack.alone(), lapack.alone():
        assert all(told() == 1 for told, _ in lapack._libraries())
    assert [told() for told, _ in lapack._libraries()] == before
    with pytest.raises(KeyError), lapack.alone():
        raise KeyError
    assert [told() for told, _ in lapack._libraries()] == before
