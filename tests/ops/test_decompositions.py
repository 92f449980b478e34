"""Determinants, inverses, systems and decompositions against NumPy and SciPy.

Numbers of MindSpore where forms are conventions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Array, Checks

checks = Checks("NumPy")
RANDOM = np.random.default_rng(1)
CHECKED = {f"ops.{n}": "definition" for n in ("qr", "svd", "eig", "geqrf")} | {
    f"Tensor.{n}": "definition" for n in ("qr", "svd", "geqrf")
}


def square(*shape: int) -> Any:
    return A(*shape, values=RANDOM.normal(size=shape) + 2 * np.eye(shape[-1]))


def factor(*shape: int) -> Any:
    return A(*shape, values=np.tril(RANDOM.normal(size=shape)) + 3 * np.eye(shape[-1]))


def positive(*shape: int) -> Any:
    x = RANDOM.normal(size=shape)
    return A(*shape, values=x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1]))


def t(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


SQUARES = ((square(3, 3),), (square(2, 4, 4),), (square(1, 1),))
FACTORS = ((factor(3, 3),), (factor(2, 4, 4),), (factor(1, 1),))
NEAR = 30.0
checks.add(
    "ops.det Tensor.det ops.matrix_determinant Tensor.matrix_determinant", np.linalg.det, *SQUARES, tolerance=NEAR
)
checks.add(
    "ops.slogdet Tensor.slogdet ops.log_matrix_determinant Tensor.log_matrix_determinant",
    lambda x: tuple(np.linalg.slogdet(x)),
    *SQUARES,
    tolerance=NEAR,
)
checks.add(
    "ops.logdet Tensor.logdet",
    lambda x: np.linalg.slogdet(x)[1],
    (positive(3, 3),),
    (positive(2, 4, 4),),
    (positive(1, 1),),
    tolerance=NEAR,
)
checks.add("ops.inverse Tensor.inverse", np.linalg.inv, *SQUARES, (A(2, 0, 0),), tolerance=NEAR)
checks.add("ops.matrix_exp", scipy.linalg.expm, *SQUARES, tolerance=NEAR * 10, oracle="SciPy")
checks.add("ops.cholesky_inverse Tensor.cholesky_inverse", lambda x: np.linalg.inv(x @ t(x)), *FACTORS, tolerance=NEAR)
checks.add(
    "ops.cholesky_inverse",
    lambda x, upper: np.linalg.inv(t(np.triu(x)) @ np.triu(x)),
    *FACTORS,
    kwargs={"upper": True},
    tolerance=NEAR,
)
SYSTEMS = ((A(3, 2), factor(3, 3)), (A(2, 4, 1), factor(2, 4, 4)), (A(1, 1), factor(1, 1)))
checks.add(
    "ops.cholesky_solve Tensor.cholesky_solve", lambda b, x: np.linalg.solve(x @ t(x), b), *SYSTEMS, tolerance=NEAR
)
checks.add(
    "ops.cholesky_solve",
    lambda b, x, upper: np.linalg.solve(t(np.triu(x)) @ np.triu(x), b),
    *SYSTEMS,
    kwargs={"upper": True},
    tolerance=NEAR,
)
checks.add(
    "ops.matrix_solve",
    np.linalg.solve,
    (square(3, 3), A(3, 2)),
    (square(2, 4, 4), A(2, 4, 1)),
    (square(4, 4), A(2, 4, 3)),
    tolerance=NEAR,
)
checks.add(
    "ops.matrix_solve",
    lambda x, b, adjoint: np.linalg.solve(t(x), b),
    (square(3, 3), A(3, 2)),
    kwargs={"adjoint": True},
    tolerance=NEAR,
)
TALL = ((A(4, 3),), (A(2, 5, 2),), (A(3, 4),))
checks.add("ops.pinv", np.linalg.pinv, *TALL, tolerance=NEAR * 10)
checks.add(
    "ops.pinv",
    lambda x, hermitian: np.linalg.pinv(x),
    (positive(3, 3),),
    kwargs={"hermitian": True},
    grad=(),
    tolerance=NEAR,
)
checks.add(
    "ops.pinv", lambda x, rtol: np.linalg.pinv(x, rtol), (A(4, 3),), kwargs={"rtol": 0.5}, grad=(), tolerance=NEAR
)
checks.add(
    "ops.lstsq Tensor.lstsq",
    lambda x, b: np.linalg.lstsq(x, b.reshape(len(b), -1), rcond=None)[0],
    (A(5, 3), A(5, 2)),
    (A(4, 2), A(4)),
    (A(2, 4), A(2, 3)),
    tolerance=NEAR * 10,
)
for order in ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf):
    checks.add(
        "ops.matrix_norm",
        lambda x, ord: np.linalg.norm(x, ord, (-2, -1)),
        (A(4, 3),),
        (A(2, 3, 4),),
        (A(2, 2),),
        kwargs={"ord": order},
        tolerance=NEAR,
    )
checks.add(
    "ops.matrix_norm",
    lambda x, ord, axis, keepdims: np.linalg.norm(x, ord, axis, keepdims),
    (A(4, 3, 2),),
    kwargs={"ord": 2, "axis": (0, 2), "keepdims": True},
    tolerance=NEAR,
)
checks.add("ops.norm Tensor.norm", lambda x: np.sqrt((x * x).sum()), (A(4, 3),), (A(5),), (A(2, 3, 4),))
checks.add(
    "ops.norm Tensor.norm",
    lambda x, ord, dim: np.linalg.norm(x, ord, dim),
    (A(4, 3),),
    (A(2, 3),),
    kwargs={"ord": "nuc", "dim": (0, 1)},
    tolerance=NEAR,
)
checks.add(
    "ops.norm", lambda x, ord, dim: np.linalg.norm(x, ord, dim), (A(4, 3),), kwargs={"ord": 3, "dim": 1}, tolerance=NEAR
)
for order in (None, "fro", 2, -2, 1, np.inf):
    checks.add("ops.cond", lambda x, p: np.linalg.cond(x, p), *SQUARES[:2], kwargs={"p": order}, tolerance=NEAR * 10)
checks.add(
    "ops.cholesky Tensor.cholesky",
    np.linalg.cholesky,
    (positive(3, 3),),
    (positive(2, 4, 4),),
    (positive(1, 1),),
    grad=(),
    tolerance=NEAR,
)
checks.add(
    "ops.cholesky",
    lambda x, upper: t(np.linalg.cholesky(x)),
    (positive(3, 3),),
    kwargs={"upper": True},
    grad=(),
    tolerance=NEAR,
)
checks.add(
    "ops.eigvals Tensor.eigvals",
    lambda x: np.linalg.eigvals(x) + 0j,
    (positive(3, 3),),
    (positive(1, 1),),
    (positive(2, 2, 2),),
    grad=(),
    tolerance=NEAR,
)


def unpacked(b: Any, packed: Any, pivots: Any) -> Any:
    return scipy.linalg.lu_solve((packed, pivots - 1), b)


PIVOTS = Array((3,), dtype="int32", values=np.array([2, 3, 3], np.int32))
checks.add(
    "ops.lu_solve Tensor.lu_solve",
    unpacked,
    (A(3, 2), square(3, 3), PIVOTS),
    (A(3, 1), square(3, 3), PIVOTS),
    oracle="SciPy",
    tolerance=NEAR,
)


def reflections(a: Any, tau: Any) -> Any:
    q = np.eye(a.shape[0])
    for k in range(len(tau)):
        v = np.concatenate([np.zeros(k), [1.0], a[k + 1 :, k]])
        q = q @ (np.eye(a.shape[0]) - tau[k] * np.outer(v, v))
    return q


checks.add(
    "ops.orgqr Tensor.orgqr",
    lambda a, tau: reflections(a, tau)[:, : a.shape[1]],
    (A(4, 3), A(3)),
    (A(3, 3), A(2)),
    (A(2, 1), A(1)),
    oracle="definition",
    tolerance=NEAR,
)
for left, transpose in ((True, False), (True, True), (False, False), (False, True)):

    def multiplied(a: Any, tau: Any, x: Any, left: bool, transpose: bool) -> Any:
        q = reflections(a, tau)
        q = q.T if transpose else q
        return q @ x if left else x @ q

    checks.add(
        "ops.ormqr Tensor.ormqr",
        multiplied,
        (A(4, 3), A(3), A(4, 4)),
        (A(2, 2), A(2), A(2, 2)),
        kwargs={"left": left, "transpose": transpose},
        oracle="definition",
        tolerance=NEAR,
    )
for upper, transpose, unit in ((True, False, False), (False, True, False), (True, False, True)):

    def solved(b: Any, a: Any, upper: bool, transpose: bool, unitriangular: bool) -> Any:
        return scipy.linalg.solve_triangular(
            a, b, trans=int(transpose), lower=not upper, unit_diagonal=unitriangular
        ), a

    checks.add(
        "Tensor.triangular_solve",
        solved,
        (A(3, 2), square(3, 3)),
        kwargs={"upper": upper, "transpose": transpose, "unitriangular": unit},
        oracle="SciPy",
        tolerance=NEAR,
    )
test_values, test_gradients = checks.tests()


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 5), (2, 4, 2)], ids=str)
def test_qr_and_svd(shape: tuple[int, ...]) -> None:
    a = RANDOM.normal(size=shape)
    for full in (False, True):
        q, r = ops.qr(Tensor(a), "complete" if full else "reduced")
        want = np.linalg.qr(a, "complete" if full else "reduced")
        np.testing.assert_allclose(q.asnumpy(), want[0], atol=1e-12)
        np.testing.assert_allclose(r.asnumpy(), want[1], atol=1e-12)
        np.testing.assert_allclose(Tensor(a).qr(not full)[0].asnumpy(), want[0], atol=1e-12)
        s, u, v = ops.svd(Tensor(a), full)
        least = min(shape[-2:])
        np.testing.assert_allclose(
            (u.asnumpy()[..., :least] * s.asnumpy()[..., None, :]) @ t(v.asnumpy()[..., :least]), a, atol=1e-12
        )
        assert u.shape[-1] == (shape[-2] if full else least) and v.shape[-1] == (shape[-1] if full else least)
    np.testing.assert_allclose(
        Tensor(a).svd(compute_uv=False).asnumpy(), np.linalg.svd(a, compute_uv=False), atol=1e-12
    )
    packed, tau = Tensor(a).geqrf()
    raw = np.linalg.qr(a, "raw")
    np.testing.assert_allclose(packed.asnumpy(), t(raw[0]), atol=1e-12)
    np.testing.assert_allclose(tau.asnumpy(), raw[1], atol=1e-12)


def test_eigenvectors() -> None:
    a = RANDOM.normal(size=(2, 3, 3))
    w, v = (x.asnumpy() for x in ops.eig(Tensor(a)))
    np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1)


def test_row_exchanges_unpack_as_in_mindspore() -> None:
    packed = np.array([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]])
    p, lower, upper = ops.lu_unpack(Tensor(packed), Tensor([2, 2, 3], ms.int32))
    assert p.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    np.testing.assert_array_equal(lower.asnumpy(), np.tril(packed, -1) + np.eye(3))
    np.testing.assert_array_equal(upper.asnumpy(), np.triu(packed))
    a = RANDOM.normal(size=(2, 3, 4))
    for m in a:
        want = scipy.linalg.lu(m)
        packed, pivots = scipy.linalg.lu_factor(m)
        for got, expected in zip(ops.lu_unpack(Tensor(packed), Tensor(pivots.astype(np.int32) + 1)), want):
            np.testing.assert_allclose(got.asnumpy(), expected, atol=1e-12)
    assert ops.lu_unpack(Tensor(packed), Tensor([1, 2, 3], ms.int32), unpack_data=False)[1].size == 0


CHECKED["ops.lu_unpack"] = "SciPy"


def test_complex_matrices_and_narrow_types() -> None:
    a = RANDOM.normal(size=(2, 3, 3)) + 1j * RANDOM.normal(size=(2, 3, 3))
    np.testing.assert_allclose(ops.det(Tensor(a)).asnumpy(), np.linalg.det(a))
    np.testing.assert_allclose(ops.inverse(Tensor(a)).asnumpy(), np.linalg.inv(a), rtol=1e-10)
    sign, size = ops.slogdet(Tensor(a))
    np.testing.assert_allclose(sign.asnumpy() * np.exp(size.asnumpy()), np.linalg.det(a))
    np.testing.assert_allclose(np.exp(ops.logdet(Tensor(a)).asnumpy()), np.linalg.det(a))
    np.testing.assert_allclose(ops.pinv(Tensor(a)).asnumpy(), np.linalg.pinv(a), rtol=1e-10)
    assert ops.inverse(Tensor([[2]])).dtype is ms.float32 and ops.det(ops.ones((1, 1), ms.float16)).dtype is ms.float32
    way = RANDOM.normal(size=a.shape) + 1j * RANDOM.normal(size=a.shape)
    got = (np.conj(ms.grad(lambda x: ops.abs(ops.det(x)).sum())(Tensor(a)).asnumpy()) * way).real.sum()
    want = (np.abs(np.linalg.det(a + 1e-6 * way)).sum() - np.abs(np.linalg.det(a - 1e-6 * way)).sum()) / 2e-6
    assert abs(got - want) < 1e-6 * (1 + abs(want))


def test_errors() -> None:
    x = ops.ones((2, 3))
    for function in (ops.det, ops.inverse, ops.cholesky, ops.eig, ops.matrix_exp):
        with pytest.raises(ValueError, match="square matrices"):
            function(x)
    with pytest.raises(ValueError, match="mode must be one of"):
        ops.qr(x, "other")
    with pytest.raises(ValueError, match="ord must be"):
        ops.matrix_norm(x, "other")
    with pytest.raises(ValueError, match="does not fit"):
        ops.matrix_solve(ops.ones((2, 2)), ops.ones((3, 1)))
    with pytest.raises(NotImplementedError, match="geqrf has no derivative"):
        ms.grad(lambda a: ops.geqrf(a)[0].sum())(x)
