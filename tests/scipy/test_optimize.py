"""Optimisation against known minima and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import mycel as ms
from mycel import Tensor
from mycel.scipy import optimize

CHECKED = {
    "scipy.optimize.minimize": "definition",
    "scipy.optimize.line_search": "SciPy",
    "scipy.optimize.linear_sum_assignment": "SciPy",
}


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("method", [None, "BFGS", "LBFGS", "bfgs"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_valley_of_rosenbrock(method: Any, dtype: Any) -> None:
    seen: list[Any] = []
    found = optimize.minimize(rosenbrock, Tensor(np.zeros(3, dtype)), method=method, callback=seen.append)
    np.testing.assert_allclose(found.x.asnumpy(), 1, rtol=1e-4 if dtype is np.float64 else 2e-2)
    assert found.x.dtype is ms.float64 or dtype is np.float32
    assert len(seen) == found.nit > 3 and found.nfev >= found.nit
    assert (found.hess_inv is None) == (method == "LBFGS")
    if dtype is np.float64:
        assert found.success and found.status == 0 and float(found.fun) < 1e-8
        np.testing.assert_allclose(found.jac.asnumpy(), scipy.optimize.rosen_der(found.x.asnumpy()), atol=1e-9)


def test_arguments_shapes_and_a_gradient_of_ones_own() -> None:
    target = Tensor(np.arange(6.0).reshape(2, 3))
    calls = []

    def gradient(x: Tensor, t: Tensor) -> Tensor:
        calls.append(1)
        return 2 * (x - t)

    def distance(x: Tensor, t: Tensor) -> Tensor:
        return ((x - t) ** 2).sum()

    start = Tensor(np.zeros((2, 3)))
    np.testing.assert_allclose(optimize.minimize(distance, start, (target,)).x.asnumpy(), target.asnumpy(), atol=1e-6)
    np.testing.assert_allclose(
        optimize.minimize(distance, start, target, jac=gradient).x.asnumpy(), target.asnumpy(), atol=1e-6
    )
    assert calls


def test_a_step_along_a_line_is_scipys() -> None:
    x = np.array([-1.0, 1.5])
    p = -scipy.optimize.rosen_der(x)
    want = scipy.optimize.line_search(scipy.optimize.rosen, scipy.optimize.rosen_der, x, p)
    got = optimize.line_search(rosenbrock, Tensor(x), Tensor(p))
    assert not got.failed and got.status == 0
    np.testing.assert_allclose(float(got.a_k), want[0], rtol=1e-9)
    np.testing.assert_allclose(float(got.f_k), want[3], rtol=1e-9)
    np.testing.assert_allclose(got.g_k.asnumpy(), scipy.optimize.rosen_der(x + want[0] * p), rtol=1e-9)
    assert optimize.line_search(lambda v: v.sum(), Tensor(x), Tensor(np.ones(2))).failed


def test_assignments() -> None:
    random = np.random.default_rng(2)
    for shape in ((3, 3), (2, 5), (5, 2)):
        costs = random.normal(size=shape)
        for maximize in (False, True):
            want = scipy.optimize.linear_sum_assignment(costs, maximize)
            for got, expected in zip(optimize.linear_sum_assignment(Tensor(costs), maximize), want):
                assert got.dtype is ms.int64 and got.tolist() == expected.tolist()
    rows, columns = optimize.linear_sum_assignment(Tensor([[4.0, 1, 3], [2, 0, 5], [3, 2, 2]]), False, Tensor(2))
    assert rows.tolist() == [0, 1, -1] and columns.tolist() == [1, 0, -1]


def test_errors() -> None:
    x = Tensor([1.0])
    with pytest.raises(ValueError, match="method must be"):
        optimize.minimize(rosenbrock, x, method="Newton")
    with pytest.raises(ValueError, match="bounds is not used"):
        optimize.minimize(rosenbrock, x, bounds=[(0, 1)])
    with pytest.raises(ValueError, match="takes a matrix"):
        optimize.linear_sum_assignment(x, False)
