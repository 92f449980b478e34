"""Cosine transforms give SciPy's values, for even and odd sizes, and have gradients."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft as oracle

import mycel as ms
from mycel import Tensor
from mycel.scipy import fft

RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 15, 64])
@pytest.mark.parametrize("name", ["dct", "idct"])
def test_lines(name: str, size: int) -> None:
    x = RANDOM.normal(size=(3, size))
    for axis in (-1, 0):
        got = getattr(fft, name)(Tensor(x), axis=axis)
        np.testing.assert_allclose(got.asnumpy(), getattr(oracle, name)(x, norm="ortho", axis=axis), atol=1e-12)
    for n in (1, size + 3):
        got = getattr(fft, name)(Tensor(x), 2, n, -1, "ortho")
        np.testing.assert_allclose(got.asnumpy(), getattr(oracle, name)(x, n=n, norm="ortho"), atol=1e-12)


@pytest.mark.parametrize("name", ["dctn", "idctn"])
def test_several_axes(name: str) -> None:
    x = RANDOM.normal(size=(2, 5, 6))
    for s, axes in ((None, None), ((3, 7), None), (None, (0, 2)), ((4, 2), (1, 0))):
        got = getattr(fft, name)(Tensor(x), s=s, axes=axes)
        np.testing.assert_allclose(got.asnumpy(), getattr(oracle, name)(x, s=s, axes=axes, norm="ortho"), atol=1e-12)


def test_types_and_gradients() -> None:
    for dtype, kind in (
        (np.float16, ms.float32),
        (np.int64, ms.float32),
        (np.float32, ms.float32),
        (float, ms.float64),
    ):
        assert fft.dct(Tensor(np.arange(4).astype(dtype))).dtype is kind
    x, w = (RANDOM.normal(size=7) for _ in range(2))
    gradient = ms.grad(lambda v: (fft.dct(v) * Tensor(w)).sum())(Tensor(x))
    np.testing.assert_allclose(gradient.asnumpy(), oracle.idct(w, norm="ortho"), atol=1e-12)
    np.testing.assert_allclose(ms.jit(fft.dct)(Tensor(x)).asnumpy(), oracle.dct(x, norm="ortho"), atol=1e-12)


def test_errors() -> None:
    for wrong in (lambda: fft.dct(Tensor([1.0]), 3), lambda: fft.idctn(Tensor([1.0]), norm="forward")):
        with pytest.raises(ValueError, match="only"):
            wrong()
    with pytest.raises(ValueError, match="2 sizes for 1 axes"):
        fft.dctn(Tensor([[1.0]]), s=(1, 1), axes=(0,))
