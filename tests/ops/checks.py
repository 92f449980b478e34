"""What the tests of operations share: comparison with arrays, and gradients by finite differences
in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mycel as ms
from mycel import Tensor

__all__ = ["add_everywhere", "check_gradient", "close", "everywhere", "numbers"]


def everywhere(names: str) -> str:
    """The public names that functions with one meaning have: in `ops`, in `numpy` and as methods,
    one for each object.
    """
    found: dict[int, str] = {}
    for name in names.split():
        for full in (f"ops.{name}", f"Tensor.{name}", f"numpy.{name}"):
            owner = {"ops": ms.ops, "Tensor": Tensor, "numpy": ms.numpy}[full.split(".")[0]]
            if hasattr(owner, name):
                found.setdefault(id(getattr(owner, name)), full)
    assert found, f"nothing is called {names}"
    return " ".join(found.values())


def add_everywhere(checks: Any, names: str, expected: Callable[..., Any], *cases: Any, **more: Any) -> None:
    """Declare a check of all names.

    Further names of the same function are compiled and differentiated in the first case only.
    """
    first, *others = everywhere(names).split()
    checks.add(first, expected, *cases, **more)
    if others:
        checks.add(" ".join(others), expected, cases[0], **more)
        checks.add(" ".join(others), expected, *cases[1:], **{**more, "jit": False, "grad": ()})


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
    """The gradients of a weighted sum of the results by every array agree with differences."""

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
