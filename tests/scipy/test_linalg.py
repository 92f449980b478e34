"""Linear algebra in SciPy's forms against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import mycel as ms
from mycel import Tensor
from mycel.scipy import linalg
from tests.meaning import A, Checks

checks = Checks("SciPy")
RANDOM = np.random.default_rng(4)
CHECKED = {f"scipy.linalg.{n}": "SciPy" for n in linalg.__all__}


def square(n: int) -> Any:
    return A(n, n, values=RANDOM.normal(size=(n, n)) + 2 * np.eye(n))


def positive(n: int) -> Any:
    x = RANDOM.normal(size=(n, n))
    return A(n, n, values=x @ x.T + 2 * np.eye(n))


def by(name: str) -> Any:
    return lambda *args, **kwargs: getattr(scipy.linalg, name)(*args, **kwargs)


checks.add("scipy.linalg.det", by("det"), (square(3),), (square(1),), (square(5),), tolerance=30)
checks.add("scipy.linalg.inv", by("inv"), (square(3),), (square(1),), (square(5),), tolerance=30)
checks.add("scipy.linalg.block_diag", by("block_diag"), (A(2, 3), A(1, 1), A(3, 2)), (A(2, 2),))
for lower in (False, True):
    checks.add(
        "scipy.linalg.cholesky",
        by("cholesky"),
        (positive(3),),
        (positive(1),),
        kwargs={"lower": lower},
        grad=(),
        tolerance=30,
    )
    for trans in (0, 1, "C"):
        for unit in (False, True):
            checks.add(
                "scipy.linalg.solve_triangular",
                by("solve_triangular"),
                (square(3), A(3, 2)),
                (square(4), A(4)),
                kwargs={"trans": trans, "lower": lower, "unit_diagonal": unit},
                tolerance=30,
            )
    checks.add(
        "scipy.linalg.eigh",
        by("eigh"),
        (positive(4),),
        kwargs={"lower": lower, "eigvals_only": True},
        grad=(),
        tolerance=30,
    )
test_values, test_gradients = checks.tests()


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-9, atol=1e-9)


def test_factors_and_solutions() -> None:
    a, p = square(4).values, positive(4).values
    for b in (RANDOM.normal(size=(4, 2)), RANDOM.normal(size=4)):
        for lower in (False, True):
            factor = linalg.cho_factor(Tensor(p), lower)
            assert factor[1] is lower
            close(linalg.cho_solve(factor, Tensor(b)), np.linalg.solve(p, b))
        for trans in (0, 1, 2):
            close(
                linalg.lu_solve(linalg.lu_factor(Tensor(a)), Tensor(b), trans), np.linalg.solve(a.T if trans else a, b)
            )
    for got, want in zip(linalg.lu_factor(Tensor(a)), scipy.linalg.lu_factor(a)):
        close(got, want)
    for shape in ((4, 4), (3, 5), (5, 3)):
        m = RANDOM.normal(size=shape)
        for got, want in zip(linalg.lu(Tensor(m)), scipy.linalg.lu(m)):
            close(got, want)
        for got, want in zip(linalg.lu(Tensor(m), permute_l=True), scipy.linalg.lu(m, permute_l=True)):
            close(got, want)
    assert linalg.lu_pivots_to_permutation(Tensor([1, 1, 2], ms.int32), 3).tolist() == [1, 0, 2]


@pytest.mark.parametrize("type", [1, 2, 3])
@pytest.mark.parametrize("lower", [True, False])
def test_generalised_eigenvalues(type: int, lower: bool) -> None:
    a, b = positive(4).values - 3 * np.eye(4), positive(4).values
    want_w, want_v = scipy.linalg.eigh(a, b, type=type, lower=lower)
    for w, v in (
        linalg.eigh(Tensor(a), Tensor(b), lower, type=type),
        ms.jit(lambda x, y: linalg.eigh(x, y, lower, type=type))(Tensor(a), Tensor(b)),
    ):
        close(w, want_w)
        np.testing.assert_allclose(np.abs(v.asnumpy()), np.abs(want_v), rtol=1e-8, atol=1e-8)
    close(linalg.eigh(Tensor(a), Tensor(b), lower, True, type=type, eigvals=(1, 2)), want_w[1:3])


def test_least_squares() -> None:
    for shape, columns in (((5, 3), (2,)), ((5, 3), ()), ((3, 5), (2,)), ((3, 3), (1,))):
        a, b = RANDOM.normal(size=shape), RANDOM.normal(size=(shape[0], *columns))
        want = scipy.linalg.lstsq(a, b)
        got = linalg.lstsq(Tensor(a), Tensor(b))
        close(got[0], want[0])
        close(got[1], np.asarray(want[1]))
        assert int(got[2]) == want[2]
        close(got[3], want[3])


def test_objects() -> None:
    p, a, b = positive(3).values, square(3).values, RANDOM.normal(size=(3, 2))
    close(linalg.Cholesky()(Tensor(p)), np.linalg.cholesky(p))
    close(linalg.Cholesky(upper=True)(Tensor(p)), np.linalg.cholesky(p).T)
    close(linalg.Eigh(False)(Tensor(p)), np.linalg.eigvalsh(p))
    close(linalg.Eigh()(Tensor(p))[0], np.linalg.eigvalsh(p))
    packed, pivots, order = linalg.LU()(Tensor(a))
    close(packed, scipy.linalg.lu_factor(a)[0])
    lower, upper = np.tril(packed.asnumpy(), -1) + np.eye(3), np.triu(packed.asnumpy())
    np.testing.assert_allclose(lower @ upper, a[order.asnumpy()])
    close(
        linalg.SolveTriangular(lower=True, trans="T")(Tensor(a), Tensor(b)),
        scipy.linalg.solve_triangular(a, b, "T", lower=True),
    )


def test_errors() -> None:
    with pytest.raises(ValueError, match="infinities or NaN"):
        linalg.inv(Tensor([[float("nan")]]))
    assert np.isnan(linalg.inv(Tensor([[float("nan")]]), check_finite=False).asnumpy()).all()
    for call, message in (
        (lambda: linalg.eigh(Tensor([[1.0]]), type=4), "type must be"),
        (lambda: linalg.lu_solve(linalg.lu_factor(Tensor([[1.0]])), Tensor([1.0]), 3), "trans must be"),
        (lambda: linalg.solve_triangular(Tensor([[1.0]]), Tensor([1.0, 2.0])), "does not fit"),
        (lambda: linalg.lstsq(Tensor([[1.0]]), Tensor([1.0]), driver="other"), "driver must be"),
        (lambda: linalg.solve_triangular(Tensor([[1.0]]), Tensor([1.0]), trans="X"), "trans must be"),
        (lambda: linalg.SolveTriangular(trans="X"), "trans must be"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
