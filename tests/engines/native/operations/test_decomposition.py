"""Small matrices decomposed natively, against NumPy and SciPy in float64."""

import numpy as np
import pytest
import scipy.linalg

import mycel as ms
import mycel.scipy.linalg as linalg
from mycel import ops
from mycel._src.compiler.prims.linear_algebra.decompositions import lu
from mycel._src.engines.native.operations.decomposition_kernel import MOST
from mycel._src.tensors.core.eager import execute


def matrices(shape, dtype, seed=0):
    a = np.random.default_rng([seed, *shape]).normal(size=shape)
    positive = a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1])
    return a.astype(dtype), positive.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 15, 17, 33, MOST, MOST + 1])
def test_decompositions(n, dtype):
    eps = float(np.finfo(dtype).eps)
    for lead in ((), (5,), (2, 3)):
        a, positive = matrices((*lead, n, n), dtype)
        factor = ops.cholesky(ms.Tensor(positive)).asnumpy()
        expected = np.linalg.cholesky(positive.astype(np.float64))
        assert np.abs(factor - expected).max() <= 20 * eps * np.sqrt(n) * np.abs(expected).max()
        packed, pivots = (v.asnumpy() for v in linalg.lu_factor(ms.Tensor(a)))
        for place in np.ndindex(*lead):
            wide, order = scipy.linalg.lu_factor(a[place].astype(np.float64))
            assert (order == pivots[place]).all()
            assert np.abs(wide - packed[place]).max() <= 1e4 * eps * n
        inverse = ops.inverse(ms.Tensor(positive)).asnumpy()
        assert np.abs(inverse @ positive - np.eye(n)).max() <= 500 * eps * n


@pytest.mark.parametrize("n", [1, 3, 16, 19])
def test_triangular_systems(n):
    random = np.random.default_rng(n)
    for lower, trans, unit in [(lo, t, u) for lo in (True, False) for t in ("N", "T") for u in (True, False)]:
        a = random.normal(size=(4, n, n)) / n + 3 * np.eye(n)
        b = random.normal(size=(4, n, int(random.integers(1, 40))))
        found = linalg.solve_triangular(ms.Tensor(a), ms.Tensor(b), trans=trans, lower=lower, unit_diagonal=unit)
        read = np.tril(a) if lower else np.triu(a)
        if unit:
            read[:, np.arange(n), np.arange(n)] = 1
        read = np.swapaxes(read, 1, 2) if trans == "T" else read
        np.testing.assert_allclose(read @ found.asnumpy(), b, atol=1e-9 * (1 + np.abs(found.asnumpy()).max()))


def test_matrices_without_a_result_are_nan_and_others_are_not():
    _, good = matrices((3, 3), np.float32)
    stack = np.stack([good, -good])
    found = ops.cholesky(ms.Tensor(stack)).asnumpy()
    assert np.isfinite(found[0]).all() and np.isnan(found[1]).all()
    triangles = np.stack([np.tril(good), np.tril(good) * (1 - np.eye(3, dtype=np.float32))])
    solved = linalg.solve_triangular(ms.Tensor(triangles), ms.Tensor(stack), lower=True).asnumpy()
    assert np.isfinite(solved[0]).all() and np.isnan(solved[1]).all()


def test_singular_and_wide_matrices():
    a = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]], np.float64)
    for m in (a, a.T.copy(), np.zeros((4, 4))):
        packed, _, order = (v.asnumpy() for v in _lu(m))
        k = min(m.shape)
        lower = np.tril(packed[:, :k], -1) + np.eye(m.shape[0], k)
        np.testing.assert_allclose(lower @ np.triu(packed[:k]), m[order])


def _lu(m):
    return execute(lu, [ms.Tensor(m)], {})


def test_only_large_matrices_are_left_to_the_host():
    for n, few in ((MOST, True), (MOST + 1, False)):
        _, positive = matrices((n, n), np.float32)
        assert (ms.explain(ms.jit(ops.cholesky), ms.Tensor(positive)).host_steps == []) is few
