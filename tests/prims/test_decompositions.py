"""Decompositions: their defining equations, and derivatives along random directions, for real and
complex stacks of matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel._src.compiler.prims.linear_algebra import decompositions, spectral
from mycel.ops._operands import run

RANDOM = np.random.default_rng(0)


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def matrices(*shape: int, complex_: bool = False) -> Any:
    x = RANDOM.normal(size=shape)
    return x + 1j * RANDOM.normal(size=shape) if complex_ else x


def positive(complex_: bool) -> Any:
    x = matrices(2, 3, 3, complex_=complex_)
    return x @ adjoint(x) + 3 * np.eye(3)


def weighted(*outs: Tensor) -> Tensor:
    total: Any = 0.0
    for k, out in enumerate(outs):
        weight = np.cos(np.arange(np.prod(out.shape)) + k).reshape(out.shape)
        total = total + (ops.real(out) * Tensor(weight)).sum()
        if out.dtype.is_complex:
            total = total + (ops.imag(out) * Tensor(np.sin(2 * weight))).sum()
    return total


def check(function: Callable[[Tensor], Any], x: Any, hermitian: bool = False) -> None:
    """The gradient along a direction, eagerly and compiled, is the central difference."""
    way = RANDOM.normal(size=x.shape)
    if np.iscomplexobj(x):
        way = way + 1j * RANDOM.normal(size=x.shape)
    if hermitian:
        way = (way + adjoint(way)) / 2
    want = (float(function(Tensor(x + 1e-6 * way))) - float(function(Tensor(x - 1e-6 * way)))) / 2e-6
    for gradient in (ms.grad(function), ms.jit(ms.grad(function))):
        got = float((np.conj(gradient(Tensor(x)).asnumpy()) * way).real.sum())
        assert abs(got - want) < 1e-6 * (1 + abs(want))


BOTH = pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
SHAPES = pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 5)], ids=str)


@BOTH
def test_cholesky(complex_: bool) -> None:
    a = positive(complex_)
    lower = run(decompositions.cholesky, Tensor(a)).asnumpy()
    np.testing.assert_allclose(lower @ adjoint(lower), a, rtol=1e-12, atol=1e-12)
    assert np.all(np.triu(lower, 1) == 0)
    check(lambda x: weighted(run(decompositions.cholesky, x)), a, hermitian=True)
    broken = np.stack([np.eye(2), -np.eye(2)])
    result = run(decompositions.cholesky, Tensor(broken)).asnumpy()
    assert np.array_equal(result[0], np.eye(2)) and np.isnan(result[1]).all()


@BOTH
def test_eigh(complex_: bool) -> None:
    a = positive(complex_)
    w, v = (t.asnumpy() for t in run(spectral.eigh, Tensor(a), lower=True))
    np.testing.assert_allclose(a @ v, v * w[..., None, :], rtol=1e-10, atol=1e-10)
    # Vectors are known up to a factor of length 1: their squared moduli are functions.
    check(
        lambda x: weighted(
            run(spectral.eigh, x, lower=True)[0], ops.abs(run(spectral.eigh, x, lower=True)[1]).square()
        ),
        a,
        hermitian=True,
    )


@BOTH
def test_eig(complex_: bool) -> None:
    a = matrices(2, 3, 3, complex_=complex_)
    w, v = (t.asnumpy() for t in run(spectral.eig, Tensor(a)))
    np.testing.assert_allclose(a @ v, v * w[..., None, :], rtol=1e-10, atol=1e-10)
    check(lambda x: weighted(ops.abs(run(spectral.eig, x)[0]), ops.abs(run(spectral.eig, x)[1]).square()), a)


@BOTH
def test_lu_and_solve(complex_: bool) -> None:
    a = matrices(2, 3, 3, complex_=complex_)
    packed, pivots, order = (t.asnumpy() for t in run(decompositions.lu, Tensor(a)))
    lower, upper = np.tril(packed, -1) + np.eye(3), np.triu(packed)
    np.testing.assert_allclose(lower @ upper, np.take_along_axis(a, order[..., None].astype(int), -2), rtol=1e-12)
    assert pivots.dtype == np.int32
    check(lambda x: weighted(run(decompositions.lu, x)[0]), a)


@BOTH
@SHAPES
def test_qr(shape: tuple[int, int], complex_: bool) -> None:
    a = matrices(2, *shape, complex_=complex_)
    for full in (False, True):
        q, r = (t.asnumpy() for t in run(decompositions.qr, Tensor(a), full=full))
        np.testing.assert_allclose(q @ r, a, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (2, q.shape[-1], q.shape[-1])), atol=1e-12
        )
    check(lambda x: weighted(*run(decompositions.qr, x, full=False)), a)
    if shape[0] > shape[1]:
        with pytest.raises(NotImplementedError, match="not unique"):
            ms.grad(lambda x: weighted(*run(decompositions.qr, x, full=True)))(Tensor(a))


@BOTH
@SHAPES
def test_svd(shape: tuple[int, int], complex_: bool) -> None:
    a = matrices(2, *shape, complex_=complex_)
    u, s, vh = (t.asnumpy() for t in run(spectral.svd, Tensor(a), full=False, vectors=True))
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, a, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run(spectral.svd, Tensor(a), full=False, vectors=False).asnumpy(), s, rtol=1e-10)
    check(lambda x: weighted(run(spectral.svd, x, full=False, vectors=False)), a)
    if not complex_:
        check(lambda x: weighted(*[o.square() for o in run(spectral.svd, x, full=False, vectors=True)]), a)


@BOTH
@pytest.mark.parametrize("trans", "NTC")
@pytest.mark.parametrize("lower", [True, False])
def test_triangular_solve(lower: bool, trans: str, complex_: bool) -> None:
    a, b = positive(complex_), matrices(2, 3, 2, complex_=complex_)
    triangle = np.tril(a) if lower else np.triu(a)
    op = {"N": triangle, "T": np.swapaxes(triangle, -1, -2), "C": adjoint(triangle)}[trans]

    def solved(x: Any, y: Any) -> Any:
        return run(decompositions.triangular_solve, x, y, lower=lower, trans=trans, unit=False)

    np.testing.assert_allclose(op @ solved(Tensor(a), Tensor(b)).asnumpy(), b, rtol=1e-10, atol=1e-12)
    check(lambda x: weighted(solved(x, Tensor(b))), a)
    check(lambda y: weighted(solved(Tensor(a), y)), b)


def test_fourier_is_the_definition() -> None:
    from mycel._src.compiler.prims.fourier import fourier

    x = matrices(2, 5, complex_=True)
    k = np.arange(5)
    kernel = np.exp(-2j * np.pi * np.outer(k, k) / 5)
    np.testing.assert_allclose(run(fourier, Tensor(x), axes=(1,), inverse=False).asnumpy(), x @ kernel, rtol=1e-12)
    np.testing.assert_allclose(
        run(fourier, Tensor(x), axes=(1,), inverse=True).asnumpy(), x @ kernel.conj(), rtol=1e-12
    )
    check(lambda z: weighted(run(fourier, z, axes=(1,), inverse=False)), x)
