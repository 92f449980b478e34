"""Operators written by hand: values against NumPy, derivatives against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from tests.te.cases import CASES, Case

STEP = 1e-6


def tensors(case: Case) -> list[Any]:
    return [ms.Tensor(a) if isinstance(a, np.ndarray) else a for a in case.arguments]


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    case = CASES[name]
    found, expected = listed(case.operator(*tensors(case))), listed(case.expected(*case.arguments))
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        np.testing.assert_allclose(f.asnumpy(), e, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.smooth])
def test_derivatives(name: str) -> None:
    """The gradient of a weighted sum of all results, by every input of a floating type."""
    case = CASES[name]
    args = tensors(case)
    rng = np.random.default_rng(1)
    weights = [ms.Tensor(rng.standard_normal(f.shape)) for f in listed(case.operator(*args))]

    def total(*args: Any) -> Any:
        return sum((w * f).sum() for w, f in zip(weights, listed(case.operator(*args))))

    places = tuple(k for k, a in enumerate(args) if isinstance(a, ms.Tensor) and a.dtype == ms.float64)
    gradients = ms.grad(total, places)(*args)
    for k, gradient in zip(places, listed(gradients)):
        expected = np.zeros(args[k].shape)
        for p in np.ndindex(*expected.shape):
            ends = []
            for step in (STEP, -STEP):
                moved = case.arguments[k].copy()
                moved[p] += step
                ends.append(float(total(*args[:k], ms.Tensor(moved), *args[k + 1 :])))
            expected[p] = (ends[0] - ends[1]) / (2 * STEP)
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(gradient.asnumpy() / scale, expected / scale, atol=2e-5)


@pytest.mark.parametrize("name", ["softmax", "convolution by 2", "cholesky", "gathered", "edit_distance"])
def test_batches(name: str) -> None:
    """A batch of examples gives what each example gives."""
    case = CASES[name]
    args = tensors(case)
    first = ms.ops.stack([args[0], args[0] + args[0], args[0]])
    found = ms.vmap(lambda x: case.operator(x, *args[1:]))(first)
    for k in range(3):
        expected = case.operator(first[k], *args[1:])
        np.testing.assert_allclose(found[k].asnumpy(), expected.asnumpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["layer_norm", "padded", "tridiagonal", "scattered", "gauss_seidel"])
def test_reference_engine(name: str) -> None:
    """The reference engine gives the same numbers."""
    from mycel._src.compiler.loops.evaluation import run
    from mycel._src.compiler.prims.base import REGISTRY

    case = CASES[name]
    args = tensors(case)
    program = case.operator.program(*args)
    arrays = [a.asnumpy() for a in args if isinstance(a, ms.Tensor)]
    (found,) = run(program, arrays, lambda name: REGISTRY[name].reference)  # type: ignore[arg-type,return-value]
    np.testing.assert_allclose(case.operator(*args).asnumpy(), found, rtol=1e-12)


@pytest.mark.parametrize(
    "name",
    ["softmax", "convolution by 2", "recurrence", "cholesky", "gauss_seidel", "distances", "tridiagonal", "scattered"],
)
def test_second_derivatives(name: str) -> None:
    """The derivative of a gradient along a direction, against differences of gradients."""
    case = CASES[name]
    args = tensors(case)
    rng = np.random.default_rng(3)
    weight = ms.Tensor(rng.standard_normal(case.operator(*args).shape))
    along, step = (ms.Tensor(rng.standard_normal(args[0].shape)) for _ in range(2))

    def gradient(x: Any) -> Any:
        return ms.grad(lambda x: (weight * case.operator(x, *args[1:]) ** 2).sum())(x)

    found = (ms.grad(lambda x: (gradient(x) * along).sum())(args[0]) * step).sum()
    ends = [float((gradient(args[0] + sign * STEP * step) * along).sum()) for sign in (1, -1)]
    assert float(found) == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.smooth])
def test_adjoints(name: str) -> None:
    """The derivative as loops, which operators with another form do without, gives the same."""
    from mycel._src.compiler.loops.adjoint import adjoint
    from mycel._src.compiler.loops.evaluation import run
    from mycel._src.compiler.prims.base import REGISTRY
    from mycel._src.compiler.prims.loops import partials

    case = CASES[name]
    args = tensors(case)
    program = case.operator.program(*args)
    arrays = [a.asnumpy() for a in args if isinstance(a, ms.Tensor)]
    results = [np.asarray(r.asnumpy()) for r in listed(case.operator(*args))]
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal(r.shape) for r in results]
    found = run(
        adjoint(program, partials),
        [*arrays, *results, *weights],
        lambda name: REGISTRY[name].reference,  # type: ignore[arg-type,return-value]
    )

    def total(*args: Any) -> Any:
        return sum((ms.Tensor(w) * f).sum() for w, f in zip(weights, listed(case.operator(*args))))

    places = tuple(k for k, a in enumerate(args) if isinstance(a, ms.Tensor) and a.dtype == ms.float64)
    for mine, expected in zip(found, listed(ms.grad(total, places)(*args))):
        np.testing.assert_allclose(mine, expected.asnumpy(), rtol=1e-8, atol=1e-8)
