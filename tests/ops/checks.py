"""What the tests of operations share: comparison with arrays, and gradients by finite differences in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mycel as ms
from mycel import Tensor

__all__ = ["check_gradient", "close", "numbers"]


def numbers(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """float64 numbers that are the same in every run."""
    return np.random.default_rng(seed).uniform(low, high, shape)


def close(got: Any, want: Any, tolerance: float = 1e-12) -> None:
    """The tensor has the shape of the array and its values."""
    want = np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.asnumpy(), want, rtol=tolerance, atol=tolerance)


def _values(result: Any) -> list[Tensor]:
    return [t for t in (result if isinstance(result, (tuple, list)) else (result,)) if t.dtype.is_floating]


def check_gradient(
    function: Callable[..., Any], *arrays: np.ndarray, step: float = 1e-6, tolerance: float = 1e-6
) -> None:
    """The gradients of a weighted sum of the results by every array agree with central differences."""

    def loss(*tensors: Tensor) -> Tensor:
        total: Any = 0.0
        for k, out in enumerate(_values(function(*tensors))):
            weight = np.cos(np.arange(np.prod(out.shape, dtype=int)) + k).reshape(out.shape)
            total = total + ms.ops.sum(out * Tensor(weight))
        return total

    gradients = ms.grad(loss, tuple(range(len(arrays))))(*[Tensor(a) for a in arrays])
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    for k, (array, gradient) in enumerate(zip(arrays, gradients)):
        want = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                moved = array.copy()
                moved[place] += sign * step
                ends.append(float(loss(*[Tensor(moved if i == k else a) for i, a in enumerate(arrays)])))
            want[place] = (ends[0] - ends[1]) / (2 * step)
        assert gradient.shape == array.shape
        np.testing.assert_allclose(gradient.asnumpy(), want, rtol=tolerance, atol=tolerance)
