"""Triangular systems of all ranks of matrices and right sides, eigenvalues of any matrices, and
assignments, against NumPy and SciPy in float64.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import mycel as ms
from mycel import Tensor, nn
from mycel.scipy import linalg, optimize
from mycel.scipy.linalg import Eig

RANDOM = np.random.default_rng(3)
COSTS = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2], [1, 1, 9]], np.float64)
# Axes in front of the matrices, and the right side's shape behind or instead of them.
SIDES = [
    (lead, side) for lead in ((), (2,), (2, 3)) for side in ((*lead, 4), (*lead, 4, 1), (*lead, 4, 2), (4,), (4, 2))
]


@pytest.mark.parametrize(("lead", "side"), SIDES)
def test_triangular_systems(lead: Any, side: Any) -> None:
    a = RANDOM.normal(size=(*lead, 4, 4)) + 3 * np.eye(4)
    b = RANDOM.normal(size=side)
    # A matrix (2, 4) beside a batch (2, 4, 4) is a batch of vectors.
    vectors = len(side) == 1 or side == a.shape[:-1]
    columns = b[..., None] if vectors else b
    for lower, trans, unit in itertools.product((False, True), ("N", "T", "C", 0, 1), (False, True)):
        part = np.tril(a) if lower else np.triu(a)
        if unit:
            part = np.where(np.eye(4, dtype=bool), 1.0, part)
        want = np.linalg.solve(part if trans in ("N", 0) else np.swapaxes(part, -1, -2), columns)
        want = want[..., 0] if vectors else want
        found = linalg.solve_triangular(Tensor(a), Tensor(b), trans, lower, unit)
        assert found.shape == want.shape
        np.testing.assert_allclose(found.asnumpy(), want, rtol=1e-10, atol=1e-12)


def test_batches_of_vectors_compiled_and_differentiated() -> None:
    a, b = Tensor(RANDOM.normal(size=(2, 3, 3)) + 3 * np.eye(3)), Tensor(RANDOM.normal(size=(2, 3)))

    def total(a: Tensor, b: Tensor) -> Tensor:
        return (linalg.solve_triangular(a, b, lower=True) ** 2).sum()

    value = ms.jit(total)(a, b)
    np.testing.assert_allclose(value.asnumpy(), total(a, b).asnumpy(), rtol=1e-12)
    by_b = ms.grad(total, 1)(a, b).asnumpy()
    inverse = np.linalg.inv(np.tril(a.asnumpy()))
    x = np.einsum("bij,bj->bi", inverse, b.asnumpy())
    np.testing.assert_allclose(by_b, 2 * np.einsum("bji,bj->bi", inverse, x), rtol=1e-10)
    of_objects = linalg.SolveTriangular(True)(a, b)
    np.testing.assert_allclose(of_objects.asnumpy(), x, rtol=1e-10)


def test_types_of_systems() -> None:
    whole = Tensor([[2, 1], [1, 3]])
    for found in (
        linalg.inv(whole),
        linalg.det(whole),
        linalg.cholesky(whole),
        linalg.eigh(whole, eigvals_only=True),
        linalg.solve_triangular(whole, Tensor([1, 2])),
        linalg.lu(whole)[1],
        linalg.lu_factor(whole)[0],
    ):
        assert found.dtype is ms.float64
    half = Tensor(np.eye(2), ms.float16)
    assert linalg.solve_triangular(half, Tensor([1.0, 2.0], ms.float16)).dtype is ms.float16
    empty = linalg.block_diag()
    assert empty.shape == (1, 0) and empty.dtype is ms.float32


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int64"])
@pytest.mark.parametrize("lead", [(), (2,)])
def test_eigenvalues_of_any_matrices(dtype: str, lead: Any) -> None:
    a = RANDOM.normal(size=(*lead, 3, 3)) * 4
    a = (a + 1j * RANDOM.normal(size=a.shape) if dtype.startswith("complex") else a).astype(dtype)
    values, vectors = (v.asnumpy() for v in Eig()(Tensor(a)))
    single = dtype in ("float32", "complex64")
    assert values.dtype == vectors.dtype == (np.complex64 if single else np.complex128)
    np.testing.assert_allclose(a @ vectors, vectors * values[..., None, :], atol=1e-4 if single else 1e-10)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), np.ones(values.shape), rtol=1e-5)
    alone, nothing = Eig(compute_v=False)(Tensor(a))
    np.testing.assert_array_equal(alone.asnumpy(), values)
    assert nothing.shape == () and nothing.dtype is alone.dtype
    with pytest.raises(TypeError, match="Eig: compute_v must be a bool, not int"):
        Eig(1)


class Assigned(nn.Cell):
    """An assignment as a network."""

    def construct(self, costs: Tensor, maximize: Any, limit: Any) -> Any:
        return optimize.linear_sum_assignment(costs, maximize, limit)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("limit", [None, 2, Tensor(2), Tensor(2**63 - 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_assignments(largest: bool, limit: Any, dtype: str) -> None:
    columns = min(3, 3 if limit is None else int(limit))
    rows, chosen = scipy.optimize.linear_sum_assignment(COSTS[:, :columns], largest)
    want = [[*map(int, v), *[-1] * (3 - columns)] for v in (rows, chosen)]
    costs = Tensor(COSTS.astype(dtype))
    for maximize in (largest, Tensor(largest), Tensor([largest])):
        found = optimize.linear_sum_assignment(costs, maximize, limit)
        of_objects = optimize.LinearSumAssignment()(costs, 3 if limit is None else limit, maximize)
        assert [t.tolist() for t in found] == want == [t.tolist() for t in of_objects]
    assert [t.tolist() for t in Assigned()(costs, largest, limit)] == want


def test_what_says_largest() -> None:
    for wrong in (1, None, "yes", Tensor(1), Tensor([True, False])):
        with pytest.raises(TypeError, match="linear_sum_assignment: maximize must be a bool, not"):
            optimize.linear_sum_assignment(Tensor(COSTS), wrong)
